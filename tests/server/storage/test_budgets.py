"""One budget per installation: how much of GitHub's limits its workers have left, and what history leaves over."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain.organisation import Visibility
from bot.errors import WorldError
from bot.github.budget import RESERVE_SHARE, Rate
from bot.github.errors import CORE, GRAPHQL, HISTORY
from bot.github.events import Event
from bot.server.dependencies import RunDependencies
from bot.server.model import DAY, HOUR, Instant, Priority, RepositoryKey, Result, RunReport
from bot.server.organisation.register import OrganisationRegister
from bot.server.pages.metrics import ReceiveHistogram, render
from bot.server.pages.status_page import status_page
from bot.server.storage.database import Database
from bot.server.storage.github_access import GitHubLimits, ScarcestLimit, TokenCache
from bot.server.storage.inbox import Inbox
from bot.server.work.reconcile import reconcile
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server.harness import HISTORY_AGE, ServerHarness
from tests.server.queues import REPOSITORY, FileInbox, Queue, all_done, arrival, begin_work, claim, take_lease


def ends(at: Instant) -> datetime:
    return datetime.fromtimestamp(at // 1000, UTC)


def rate(left: int, at: Instant, limit: int = 5000) -> Rate:
    return Rate(left, limit, ends(at))


# -- what is stored -------------------------------------------------------------------------------------------------


def test_the_newest_window_wins_and_within_a_window_the_lowest_number(queue: Queue) -> None:
    budgets, end = queue.inbox.limits, queue.clock() + HOUR // 2
    updates = [
        (rate(900, end), 900, end),
        (rate(950, end), 900, end),
        (rate(800, end + 1000), 800, end + 1000),
        (rate(850, end - 1000), 800, end + 1000),
        (rate(4990, end + HOUR), 4990, end + HOUR),
        (rate(10, end), 4990, end + HOUR),
        (Rate(5, 5000, None), 4990, end + HOUR),
        (rate(5, end + DAY), 4990, end + HOUR),  # no hour ends that late
    ]
    for update, expected_left, reset in updates:
        budgets.store(7, {CORE: update})
        assert budgets.rates(7)[CORE] == rate(expected_left, reset)
    assert budgets.rates(8) == {}


def test_workers_that_store_at_the_same_time_keep_the_lowest_number(queue: Queue) -> None:
    end, lowest = queue.clock() + HOUR // 2, 100
    ready = threading.Barrier(4)

    def work(worker: int) -> None:
        with closing(Database(queue.url)) as database:
            budgets = GitHubLimits(database, queue.clock)
            ready.wait()
            for step in range(10):
                budgets.store(7, {CORE: rate(lowest + 10 * worker + step, end), GRAPHQL: rate(4000 - step, end)})

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rates = queue.inbox.limits.rates(7)
    assert {name: each.left for name, each in rates.items()} == {CORE: lowest, GRAPHQL: 3991}


def test_an_expired_window_is_ignored_and_purged_later(queue: Queue) -> None:
    budgets = queue.inbox.limits
    budgets.store(7, {CORE: rate(3, queue.clock() + HOUR)})
    queue.clock.ahead = HOUR + 1000
    assert budgets.rates(7) == {}
    assert budgets.scarcest() == []
    queue.inbox.purge(queue.clock() + DAY)
    assert queue.inbox.database.rows("select * from budgets") == []


def test_a_run_stores_its_limits_with_its_results_or_not_at_all(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    rates = {CORE: rate(4321, queue.clock() + HOUR)}
    work = begin_work(queue.inbox, REPOSITORY)
    lost_work = replace(work, lease=replace(work.lease, id="another"))
    assert not queue.inbox.end(lost_work, all_done(lost_work), RunReport(rates={CORE: rate(1, queue.clock() + HOUR)}))
    assert queue.inbox.end(work, all_done(work), RunReport(rates=rates))
    assert queue.inbox.limits.rates(REPOSITORY.installation) == rates


def test_a_database_outage_during_a_run_does_not_end_the_run(queue: Queue) -> None:
    class UnreachableBudgets(GitHubLimits):
        def store(self, installation: int, rates: object) -> None:
            raise WorldError("away")

    run_budget = UnreachableBudgets(queue.inbox.database, queue.clock).for_run(7)
    for left in range(120):
        run_budget.note({"x-ratelimit-remaining": str(4000 - left), "x-ratelimit-limit": "5000"})
    assert run_budget.rates[CORE].left == 3881


def test_a_long_history_read_stores_its_limits_as_it_goes(queue: Queue) -> None:
    run_budget = queue.inbox.limits.for_run(7)
    reset = str((queue.clock() + HOUR // 2) // 1000)
    for left in range(60):
        run_budget.note(
            {"x-ratelimit-remaining": str(4000 - left), "x-ratelimit-limit": "5000", "x-ratelimit-reset": reset}
        )
    assert queue.inbox.limits.rates(7)[CORE].left == 3951


# -- the queue while history rests ---------------------------------------------------------------------------------


def leave_history_to_read(queue: Queue) -> None:
    """Leave the repository with nothing to do but to continue reading its history."""
    queue.inbox.put([arrival("a")])
    work = begin_work(queue.inbox, REPOSITORY)
    assert queue.inbox.end(work, all_done(work), RunReport(requeue_after=queue.clock()))


def pause_history(queue: Queue, minutes: int = 30) -> Instant:
    end = queue.clock() + minutes * 60_000
    queue.inbox.limits.pause(REPOSITORY.installation, HISTORY, end)
    return end


def due(queue: Queue) -> tuple[int, Instant]:
    row = queue.inbox.database.row("select priority, due from queue where key = :key", key=REPOSITORY.text)
    assert row is not None
    return row["priority"], row["due"]


def test_a_repository_that_only_reads_history_is_due_when_the_history_pause_ends(queue: Queue) -> None:
    leave_history_to_read(queue)
    until = pause_history(queue)
    assert queue.inbox.begin(claim(queue.inbox)) is None
    assert due(queue) == (Priority.HISTORY, until)
    queue.clock.ahead += 31 * 60_000
    assert begin_work(queue.inbox, REPOSITORY).deliveries[0].event.name == "catch-up"


def test_urgent_work_of_such_a_repository_is_done_while_its_history_waits(queue: Queue) -> None:
    leave_history_to_read(queue)
    lease, until = claim(queue.inbox), pause_history(queue)
    queue.inbox.put([replace(arrival("b", number=2), priority=Priority.URGENT)])  # while the lease is held
    work = queue.inbox.begin(lease)
    assert work is not None
    assert [each.event.number for each in work.deliveries] == [2]
    assert queue.inbox.end(work, all_done(work), RunReport())
    assert queue.inbox.begin(claim(queue.inbox)) is None
    assert due(queue) == (Priority.HISTORY, until)
    queue.inbox.put([replace(arrival("c", number=3), priority=Priority.URGENT)])
    assert [each.event.number for each in begin_work(queue.inbox, REPOSITORY).deliveries] == [3]


def test_a_delivery_due_later_is_not_delayed_by_a_longer_history_pause(queue: Queue) -> None:
    leave_history_to_read(queue)
    queue.inbox.put([arrival("b", number=2)])
    until = pause_history(queue)
    work, soon = begin_work(queue.inbox, REPOSITORY), queue.clock() + 60_000
    queue.inbox.end(work, [Result(work.deliveries[0].seq, "waiting", "GitHub is away", soon)], RunReport())
    priority, at = due(queue)
    assert priority == Priority.HISTORY or at == soon
    if at < soon:
        assert queue.inbox.begin(claim(queue.inbox)) is None
    assert due(queue) == (Priority.CHANGE, soon)
    assert soon < until


# -- two workers of one installation -------------------------------------------------------------------------------

ISSUE_COUNT = 220
"""Issues of a repository whose history exceeds the limits of these tests."""


def project_with_history(harness: ServerHarness, name: str) -> EventfulProject:
    project, past = harness.project(name, "PostgreSQL"), from_epoch(harness.github.clock.epoch - HISTORY_AGE)
    for each in range(ISSUE_COUNT):
        number = project.open_issue("monalisa", f"Crash {each}", "It crashes.", at=past)
        project.comment(number, "hubot", "Here too.", at=past)
    return project


def pass_an_hour(harness: ServerHarness) -> None:
    harness.github.clock.advance(3700)
    harness.pass_time(3700)


def remaining_requests(harness: ServerHarness, resource: str, installation: int) -> int:
    """The remaining requests by the fake's count, for any token of the installation."""
    token = next(each for each in list(harness.github.world.tokens.values()) if each.installation == installation)
    return harness.github.limits.allowance(token, resource).remaining


def use_up_limit(harness: ServerHarness, resource: str, installation: int, leave: int) -> None:
    """Use up the limit except for ``leave``, as urgent work of other workers would."""
    token = next(each for each in harness.github.world.tokens.values() if each.installation == installation)
    allowance = harness.github.limits.allowance(token, resource)
    allowance.used = max(allowance.used, allowance.limit - leave)


HISTORY_PATHS = {CORE: "/timeline", GRAPHQL: "/graphql"}
"""Limit → how the paths of history requests that count towards it end. Discussions use GraphQL anyway."""


def second_worker(harness: ServerHarness, stack: ExitStack) -> RunDependencies:
    """A worker on another machine, which shares only the database."""
    assert isinstance(harness.env.inbox, FileInbox)
    database = stack.enter_context(closing(Database(harness.env.inbox.database.url)))
    inbox = Inbox(database, "there", harness.env.clock)
    return replace(harness.dependencies, inbox=inbox, tokens=TokenCache(harness.env.api))


def read_histories_in_parallel(harness: ServerHarness, projects: list[EventfulProject]) -> None:
    """Two workers each read part of a repository's history at the same time."""
    with ExitStack() as stack:
        workers = [harness.dependencies, second_worker(harness, stack)]
        leases = [
            take_lease(each.inbox, harness.repository(project)) for each, project in zip(workers, projects, strict=True)
        ]
        threads = [
            threading.Thread(target=reconcile, args=(lease, each)) for lease, each in zip(leases, workers, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@pytest.mark.slow
def test_a_run_starts_with_the_limits_that_others_saw(harness: ServerHarness) -> None:
    project = harness.project("octo-org/app", "PostgreSQL")
    installation = harness.github.tenants.install("octo-org", ["octo-org/app"])
    reset = harness.env.clock() // 1000 * 1000 + HOUR // 2
    harness.env.inbox.limits.store(installation, {GRAPHQL: rate(1499, reset)})
    requests: list[str] = []
    harness.on_request = requests.append
    number = harness.ask(project)
    harness.settle()
    assert harness.row(project, number).state == "done"
    assert "POST /graphql" not in requests
    assert [(row["due"], row["priority"]) for row in harness.env.inbox.database.rows("select * from queue")] == [
        (reset, Priority.HISTORY)
    ]
    harness.pass_time(HOUR // 2 // 1000 + 1)
    harness.settle()
    assert "POST /graphql" in requests


OTHER_REQUESTS = 10
"""Requests that the run of an event needs besides history, and a few to spare."""


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize(
    ("resource", "limit", "step"), [(CORE, 400, 1), pytest.param(GRAPHQL, 13, 2, marks=pytest.mark.night)]
)
def test_history_leaves_a_reserve_and_urgent_work_continues(
    harness: ServerHarness, resource: str, limit: int, step: int
) -> None:
    names = ["octo-org/app", "octo-org/web"]
    projects = [project_with_history(harness, name) for name in names]
    known_project = harness.project("octo-org/known", "Redis")
    harness.github.clock.advance(0)
    installation = harness.github.tenants.install("octo-org", [*names, "octo-org/known"])
    if resource == CORE:
        harness.github.faults.add("POST /graphql", "404", times=None)
    harness.ask(known_project)
    harness.settle()
    harness.github.limits.set(limit, resource=resource)
    for project in projects:
        harness.deliver_events(project, Event("catch-up"))
    repositories, reserve = [harness.repository(project) for project in projects], RESERVE_SHARE * limit
    seen: list[int] = []
    history = HISTORY_PATHS[resource]
    harness.on_request = lambda request: (
        seen.append(remaining_requests(harness, resource, installation)) if request.endswith(history) else None
    )

    read_histories_in_parallel(harness, projects)
    harness.on_request = lambda request: None
    assert len(seen) >= 6
    assert min(seen) > reserve - 2 * step, "the other worker may have had a request on its way"
    remaining = remaining_requests(harness, resource, installation)
    assert reserve - 2 * (step + (OTHER_REQUESTS if resource == CORE else 0)) <= remaining < reserve
    shared = harness.env.inbox.limits.rates(installation)[resource]
    assert shared.left == remaining
    assert shared.ends is not None
    rows = {row["key"]: row for row in harness.env.inbox.database.rows("select * from queue")}
    for repository in repositories:
        row = rows[repository.text]
        reset = round(1000 * shared.ends.timestamp())
        assert (row["lease"], row["due"], row["priority"]) == ("", reset, Priority.HISTORY)

    use_up_limit(harness, resource, installation, leave=4 * OTHER_REQUESTS)
    question_count = 0
    while (
        remaining_requests(harness, CORE, installation) >= OTHER_REQUESTS and question_count < 15
    ):  # urgent work continues up to the limit
        question_count += 1
        number = harness.ask(known_project)
        harness.pass_time(11)
        harness.run(harness.repository(known_project))
        assert len(harness.comments(known_project, number)) == 1
    assert question_count >= 4
    assert remaining_requests(harness, resource, installation) < (OTHER_REQUESTS if resource == CORE else reserve)

    pass_an_hour(harness)
    harness.github.limits.set(5000, resource=resource)
    harness.settle(20)
    for project in projects:
        number = harness.ask(project)
        harness.pass_time(11)
        harness.settle()
        assert "PostgreSQL" in "".join(harness.comments(project, number)), "it is in the history, which was read"
    assert harness.github.violations == []


# -- what is shown -------------------------------------------------------------------------------------------------


def test_the_row_of_a_repository_shows_how_many_requests_its_installation_has_left(queue: Queue) -> None:
    register, now = OrganisationRegister(queue.inbox), queue.clock()
    for number in (7, 8, 9):
        register.store_repository(RepositoryKey(number, 70), f"octo-org/app-{number}", Visibility.PUBLIC)
    queue.inbox.limits.store(7, {CORE: rate(4321, now + HOUR // 2), GRAPHQL: rate(4900, now + HOUR // 2)})
    queue.inbox.limits.store(8, {CORE: rate(12, now - 5000), GRAPHQL: rate(4900, now + HOUR // 2)})
    page = status_page(queue.inbox, [], now)
    rows = re.findall(r">octo-org/app-(.)<.*?Requests left\">(.*?)<", page, re.DOTALL)
    assert sorted(rows) == [("7", "4,321"), ("8", "not known"), ("9", "not known")]


def test_the_remaining_requests_are_exported_and_shown_without_a_name(queue: Queue) -> None:
    end, budgets = queue.clock() + HOUR // 2, queue.inbox.limits
    assert b"precedent_api_requests_left{" not in render(queue.inbox, ReceiveHistogram(), queue.clock())
    assert "limits this hour" not in status_page(queue.inbox, [], queue.clock())
    OrganisationRegister(queue.inbox).store_installation(7, "octo-org", "active")
    budgets.store(7, {CORE: rate(4321, end), GRAPHQL: rate(4900, end)})
    assert "Left of GitHub&#39;s limits this hour: 4,321 of 5,000 requests and 4,900 of 5,000 GraphQL points." in (
        status_page(queue.inbox, [], queue.clock())
    )
    budgets.store(8, {CORE: rate(12_000, end, 12_500)})
    assert budgets.scarcest() == [ScarcestLimit(CORE, 4321, 5000, 2), ScarcestLimit(GRAPHQL, 4900, 5000, 1)]
    page = render(queue.inbox, ReceiveHistogram(), queue.clock()).decode()
    assert 'precedent_api_requests_left{resource="core"} 4321.0' in page
    assert 'precedent_api_requests_left{resource="graphql"} 4900.0' in page
    assert "octo-org" not in page
    assert "for the installation that has the fewest: 4,321" in status_page(queue.inbox, [], queue.clock())
