"""One budget for each installation: what its workers have left of GitHub's limits, and what history leaves of it."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.errors import WorldError
from bot.github.budget import RESERVE, Rate
from bot.github.errors import CORE, GRAPHQL, HISTORY
from bot.github.events import Event
from bot.server.budgets import Budgets, ScarcestLimit
from bot.server.database import Database
from bot.server.inbox import Inbox
from bot.server.installations import TokenCache
from bot.server.metrics import ReceiveHistogram, render
from bot.server.model import DAY, HOUR, Instant, Lease, PendingWork, Priority, RepositoryKey, Result, RunReport
from bot.server.reconcile import reconcile
from bot.server.status_page import status_page
from bot.server.worker import RunDependencies
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server.queues import REPOSITORY, FileInbox, Queue, all_done, arrival, leased
from tests.server.town import AGO, Town


def ends(at: Instant) -> datetime:
    return datetime.fromtimestamp(at // 1000, UTC)


def rate(left: int, at: Instant, limit: int = 5000) -> Rate:
    return Rate(left, limit, ends(at))


# -- what is kept --------------------------------------------------------------------------------------------------


def test_the_newest_window_wins_and_within_one_the_lowest(queue: Queue) -> None:
    budgets, end = queue.inbox.budgets(), queue.clock() + HOUR // 2
    told = [
        (rate(900, end), 900, end),
        (rate(950, end), 900, end),
        (rate(800, end + 1000), 800, end + 1000),
        (rate(850, end - 1000), 800, end + 1000),
        (rate(4990, end + HOUR), 4990, end + HOUR),
        (rate(10, end), 4990, end + HOUR),
        (Rate(5, 5000, None), 4990, end + HOUR),
        (rate(5, end + DAY), 4990, end + HOUR),  # no hour ends that late
    ]
    for given, left, over in told:
        budgets.store(7, {CORE: given})
        assert budgets.rates(7)[CORE] == rate(left, over)
    assert budgets.rates(8) == {}


def test_workers_that_store_at_once_keep_the_lowest(queue: Queue) -> None:
    end, lowest = queue.clock() + HOUR // 2, 100
    ready = threading.Barrier(4)

    def work(place: int) -> None:
        with closing(Database(queue.url)) as database:
            budgets = Budgets(database.transaction, queue.clock)
            ready.wait()
            for step in range(10):
                budgets.store(7, {CORE: rate(lowest + 10 * place + step, end), GRAPHQL: rate(4000 - step, end)})

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = queue.inbox.budgets().rates(7)
    assert {name: each.left for name, each in found.items()} == {CORE: lowest, GRAPHQL: 3991}


def test_a_window_that_is_over_is_not_known_any_more_and_deleted_later(queue: Queue) -> None:
    budgets = queue.inbox.budgets()
    budgets.store(7, {CORE: rate(3, queue.clock() + HOUR)})
    queue.clock.ahead = HOUR + 1000
    assert budgets.rates(7) == {}
    assert budgets.scarcest() == []
    queue.inbox.purge(queue.clock() + DAY)
    with queue.inbox.database.transaction() as asking:
        assert asking.rows("select * from budgets") == []


def test_a_run_stores_what_it_saw_with_its_results_or_not_at_all(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    seen = {CORE: rate(4321, queue.clock() + HOUR)}
    work = begun(queue, REPOSITORY)
    lost = replace(work, lease=replace(work.lease, id="another"))
    assert not queue.inbox.end(lost, all_done(lost), RunReport(rates={CORE: rate(1, queue.clock() + HOUR)}))
    assert queue.inbox.end(work, all_done(work), RunReport(rates=seen))
    assert queue.inbox.budgets().rates(REPOSITORY.installation) == seen


def begun(queue: Queue, repository: RepositoryKey) -> PendingWork:
    work = queue.inbox.begin(leased(queue.inbox, repository))
    assert work is not None
    return work


def test_a_database_that_is_away_in_the_middle_of_a_run_does_not_end_it(queue: Queue) -> None:
    class Away(Budgets):
        def store(self, installation: int, rates: object) -> None:
            raise WorldError("away")

    found = Away(queue.inbox.database.transaction, queue.clock).for_run(7)
    for left in range(120):
        found.note({"x-ratelimit-remaining": str(4000 - left), "x-ratelimit-limit": "5000"})
    assert found.rates[CORE].left == 3881


def test_a_long_reading_passes_its_numbers_on(queue: Queue) -> None:
    found = queue.inbox.budgets().for_run(7)
    reset = str((queue.clock() + HOUR // 2) // 1000)
    for left in range(60):
        found.note({"x-ratelimit-remaining": str(4000 - left), "x-ratelimit-limit": "5000", "x-ratelimit-reset": reset})
    assert queue.inbox.budgets().rates(7)[CORE].left == 3951


# -- the queue while history rests ---------------------------------------------------------------------------------


def reads_on(queue: Queue) -> None:
    """The repository has nothing to do but to read its history on."""
    queue.inbox.put([arrival("a")])
    work = begun(queue, REPOSITORY)
    assert queue.inbox.end(work, all_done(work), RunReport(requeue_after=queue.clock()))


def rests(queue: Queue, minutes: int = 30) -> Instant:
    until = queue.clock() + minutes * 60_000
    queue.inbox.installations().pause(REPOSITORY.installation, HISTORY, until)
    return until


def due(queue: Queue) -> tuple[int, Instant]:
    with queue.inbox.database.transaction() as asking:
        row = asking.row("select priority, due from queue where key = :key", key=REPOSITORY.text)
    assert row is not None
    return row["priority"], row["due"]


def claimed(queue: Queue) -> Lease:
    lease = queue.inbox.queue.claim("one")
    assert lease is not None
    return lease


def test_a_repository_that_only_reads_on_is_due_when_history_does_not_rest_any_more(queue: Queue) -> None:
    reads_on(queue)
    until = rests(queue)
    assert queue.inbox.begin(claimed(queue)) is None
    assert due(queue) == (Priority.HISTORY, until)
    queue.clock.ahead += 31 * 60_000
    assert begun(queue, REPOSITORY).deliveries[0].event.name == "catch-up"


def test_urgent_work_of_that_repository_is_done_and_the_rest_waits_on(queue: Queue) -> None:
    reads_on(queue)
    lease, until = claimed(queue), rests(queue)
    queue.inbox.put([replace(arrival("b", number=2), priority=Priority.URGENT)])  # while the lease is held
    work = queue.inbox.begin(lease)
    assert work is not None
    assert [each.event.number for each in work.deliveries] == [2]
    assert queue.inbox.end(work, all_done(work), RunReport())
    assert queue.inbox.begin(claimed(queue)) is None
    assert due(queue) == (Priority.HISTORY, until)
    queue.inbox.put([replace(arrival("c", number=3), priority=Priority.URGENT)])
    assert [each.event.number for each in begun(queue, REPOSITORY).deliveries] == [3]


def test_what_is_due_later_is_not_held_up_by_a_history_that_rests_longer(queue: Queue) -> None:
    reads_on(queue)
    queue.inbox.put([arrival("b", number=2)])
    until = rests(queue)
    work, soon = begun(queue, REPOSITORY), queue.clock() + 60_000
    queue.inbox.end(work, [Result(work.deliveries[0].seq, "waiting", "GitHub is away", soon)], RunReport())
    priority, at = due(queue)
    assert priority == Priority.HISTORY or at == soon
    if at < soon:
        assert queue.inbox.begin(claimed(queue)) is None
    assert due(queue) == (Priority.CHANGE, soon)
    assert soon < until


# -- two workers of one installation -------------------------------------------------------------------------------

MANY = 220
"""Issues of a repository with a history that is longer than the limits of these tests."""


def with_history(town: Town, name: str) -> EventfulProject:
    project, past = town.project(name, "PostgreSQL"), from_epoch(town.github.clock.epoch - AGO)
    for each in range(MANY):
        number = project.open_issue("monalisa", f"Crash {each}", "It crashes.", at=past)
        project.comment(number, "hubot", "Here too.", at=past)
    return project


def hour_passes(town: Town) -> None:
    town.github.clock.advance(3700)
    town.pass_time(3700)


def left(town: Town, resource: str, installation: int) -> int:
    """What the fake knows, by any token of the installation."""
    token = next(each for each in list(town.github.world.tokens.values()) if each.installation == installation)
    return town.github.limits.allowance(token, resource).remaining


def use_up(town: Town, resource: str, installation: int, but: int) -> None:
    """Urgent work of other workers uses all but so many."""
    token = next(each for each in town.github.world.tokens.values() if each.installation == installation)
    allowance = town.github.limits.allowance(token, resource)
    allowance.used = max(allowance.used, allowance.limit - but)


OF_HISTORY = {CORE: "/timeline", GRAPHQL: "/graphql"}
"""How the path of a request for history ends that counts towards a limit. Discussions ask for GraphQL anyway."""


def another_worker(town: Town, within: ExitStack) -> RunDependencies:
    """A process on another machine: it shares nothing but the database."""
    assert isinstance(town.here.inbox, FileInbox)
    database = within.enter_context(closing(Database(town.here.inbox.database.url)))
    inbox = Inbox(database, "there", town.here.clock)
    return replace(town.dependencies, inbox=inbox, tokens=TokenCache(town.here.api))


def read_by_two(town: Town, projects: list[EventfulProject]) -> None:
    """Two workers read the histories of two repositories at once, in a part each."""
    with ExitStack() as within:
        workers = [town.dependencies, another_worker(town, within)]
        leases = [leased(each.inbox, town.repository(project)) for each, project in zip(workers, projects, strict=True)]
        threads = [
            threading.Thread(target=reconcile, args=(lease, each)) for lease, each in zip(leases, workers, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_a_run_begins_with_what_others_saw(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    installation = town.github.tenants.install("octo-org", ["octo-org/app"])
    over = town.here.clock() // 1000 * 1000 + HOUR // 2
    town.here.inbox.budgets().store(installation, {GRAPHQL: rate(1499, over)})
    asked: list[str] = []
    town.asked = asked.append
    number = town.ask(project)
    town.settle()
    assert town.row(project, number).state == "done"
    assert "POST /graphql" not in asked
    with town.here.inbox.database.transaction() as asking:
        assert [(row["due"], row["priority"]) for row in asking.rows("select * from queue")] == [
            (over, Priority.HISTORY)
        ]
    town.pass_time(HOUR // 2 // 1000 + 1)
    town.settle()
    assert "POST /graphql" in asked


OTHERWISE = 10
"""Requests that the run of an event needs besides history, and a few more."""


@pytest.mark.slow
@pytest.mark.parametrize(("resource", "limit", "step"), [(CORE, 400, 1), (GRAPHQL, 13, 2)])
def test_history_leaves_the_reserve_and_urgent_work_goes_on(town: Town, resource: str, limit: int, step: int) -> None:
    names = ["octo-org/app", "octo-org/web"]
    projects = [with_history(town, name) for name in names]
    known = town.project("octo-org/known", "Redis")
    town.github.clock.advance(0)
    installation = town.github.tenants.install("octo-org", [*names, "octo-org/known"])
    if resource == CORE:
        town.github.faults.add("POST /graphql", "404", times=None)
    town.ask(known)
    town.settle()
    town.github.limits.set(limit, resource=resource)
    for project in projects:
        town.hear_of(project, Event("catch-up"))
    repositories, kept = [town.repository(project) for project in projects], RESERVE * limit
    before: list[int] = []
    history = OF_HISTORY[resource]
    town.asked = lambda asked: before.append(left(town, resource, installation)) if asked.endswith(history) else None

    read_by_two(town, projects)
    town.asked = lambda request: None
    assert len(before) >= 6
    assert min(before) > kept - 2 * step, "the other worker may have had a request on its way"
    rest = left(town, resource, installation)
    assert kept - 2 * (step + (OTHERWISE if resource == CORE else 0)) <= rest < kept
    shared = town.here.inbox.budgets().rates(installation)[resource]
    assert shared.left == rest
    assert shared.ends is not None
    with town.here.inbox.database.transaction() as asking:
        rows = {row["key"]: row for row in asking.rows("select * from queue")}
    for repository in repositories:
        found = rows[repository.text]
        reset = round(1000 * shared.ends.timestamp())
        assert (found["lease"], found["due"], found["priority"]) == ("", reset, Priority.HISTORY)

    use_up(town, resource, installation, but=4 * OTHERWISE)
    asked = 0
    while left(town, CORE, installation) >= OTHERWISE and asked < 15:  # urgent work goes on until the limit itself
        asked += 1
        number = town.ask(known)
        town.pass_time(11)
        town.run(town.repository(known))
        assert len(town.comments(known, number)) == 1
    assert asked >= 4
    assert left(town, resource, installation) < (OTHERWISE if resource == CORE else kept)

    hour_passes(town)
    town.github.limits.set(5000, resource=resource)
    town.settle(20)
    for project in projects:
        number = town.ask(project)
        town.pass_time(11)
        town.settle()
        assert "PostgreSQL" in "".join(town.comments(project, number)), "it is in the history, which was read"
    assert town.github.violations == []


# -- what is shown -------------------------------------------------------------------------------------------------


def test_the_row_of_a_repository_shows_what_its_installation_has_left(queue: Queue) -> None:
    known, now = queue.inbox.installations(), queue.clock()
    for number in (7, 8, 9):
        known.store_repository(RepositoryKey(number, 70), f"octo-org/app-{number}", private=False)
    queue.inbox.budgets().store(7, {CORE: rate(4321, now + HOUR // 2), GRAPHQL: rate(4900, now + HOUR // 2)})
    queue.inbox.budgets().store(8, {CORE: rate(12, now - 5000), GRAPHQL: rate(4900, now + HOUR // 2)})
    page = status_page(queue.inbox, [], now)
    found = re.findall(r">octo-org/app-(.)<.*?Requests left\">(.*?)<", page, re.DOTALL)
    assert sorted(found) == [("7", "4,321"), ("8", "not known"), ("9", "not known")]


def test_what_is_left_is_exported_and_shown_without_a_name(queue: Queue) -> None:
    end, budgets = queue.clock() + HOUR // 2, queue.inbox.budgets()
    assert b"precedent_api_requests_left{" not in render(queue.inbox, ReceiveHistogram(), queue.clock())
    assert "limits this hour" not in status_page(queue.inbox, [], queue.clock())
    queue.inbox.installations().store_installation(7, "octo-org", "active")
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
