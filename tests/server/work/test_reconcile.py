"""Runs over GitHub and git: a delivery ends in one comment, whatever happens on the way."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from bot.domain.changes import Changes, HistoryProgress
from bot.domain.post import Post
from bot.errors import WorldError
from bot.github.errors import CORE
from bot.github.events import Event
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.pipeline.comments import OTHER_RUN_POSTING
from bot.server.model import Delivery, Instant, Lease, PendingWork, Priority, RepositoryKey, Result, RunReport
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.installations import parse_estimate
from bot.server.storage.queue import LEASE_DURATION
from bot.server.work.policy import coalesce
from bot.server.work.reconcile import NOTHING_DUE, RETRY_SECONDS, STORE_PAUSES, reconcile
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.memory.remotes import files_with
from tests.server.harness import HISTORY_AGE, ServerHarness
from tests.server.queues import FileInbox, keys, take_lease


class FlakyInbox(FileInbox):
    """An inbox whose database fails the next few times that a run ends."""

    failures = 0

    def end(self, work: PendingWork, results: Sequence[Result], report: RunReport) -> bool:
        self.failures -= 1
        if self.failures >= 0:
            raise WorldError("the database is away")
        return super().end(work, results, report)


@pytest.fixture
def flaky_harness(tmp_path: Path) -> Iterator[ServerHarness]:
    """A server whose database fails as often as the results can be stored again."""
    inbox = FlakyInbox()
    inbox.failures = len(STORE_PAUSES)
    server = ServerHarness(tmp_path, inbox)
    inbox.now = inbox.queue.now = server.env.clock
    server.github.tenants.install("octo-org", ["octo-org/first"])
    yield server
    server.close()


def due_at(harness: ServerHarness, repository: RepositoryKey) -> Instant:
    """Return when the repository is due, or when its lease expires; 0 without a key."""
    row = harness.env.inbox.database.row("select due from queue where key = :key", key=repository.text)
    return row["due"] if row else 0


def most_in_a_minute(times: list[Instant]) -> int:
    return max((sum(start <= each < start + 60_000 for each in times) for start in times), default=0)


def test_a_delivery_ends_in_a_comment_and_its_row_links_to_it(harness: ServerHarness, project: EventfulProject) -> None:
    number = harness.ask(project)
    harness.run(harness.repository(project))
    (body,) = harness.comments(project, number)
    assert "PostgreSQL" in body
    assert body.startswith("<!-- precedent:v1 id=app -->")
    row = harness.row(project, number)
    assert (row.state, row.said) == ("done", "created")
    comment = project.comments_by("precedent[bot]", number)[0]
    assert row.url.endswith(f"/octo-org/app/issues/{number}#issuecomment-{comment.id}")
    (run,) = harness.runs()
    assert {name for name, _ in run.stages} >= {"token", "settings", "clone", "look", "plan", "push", "say"}
    assert run.reads
    assert run.writes
    stored = harness.env.installations.repository(harness.repository(project))
    assert (stored.name, stored.visibility) == ("octo-org/app", "private")
    assert stored.cursor
    assert harness.env.inbox.limits.remaining(CORE)[stored.repository.installation] > 0


@pytest.mark.slow
def test_a_change_in_another_repository_is_handled_whatever_else_the_run_did(
    harness: ServerHarness, project: EventfulProject
) -> None:
    number = harness.ask(project)
    harness.deliver_events(project, Event("issues", "edited", number), Event("organisation", number=number))
    harness.run(harness.repository(project))
    rows = harness.env.inbox.deliveries(limit=10)
    assert [(row.said, row.reason) for row in rows if row.event.name == "organisation"] == [("silent", NOTHING_DUE)]


@pytest.mark.slow
@pytest.mark.parametrize("granted", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_discussion_is_stored_if_the_app_may_read_it(
    harness: ServerHarness, project: EventfulProject, granted: bool
) -> None:
    if granted:
        next(iter(harness.github.apps.by_id.values())).permissions["discussions"] = "read"
    number = project.discuss("hubot", "How do I keep the cookie?")
    project.mark_answer(number, project.say(number, "octocat", "Set `trust_proxy: true`."), "hubot")
    harness.deliver_events(project, Event("discussion", "answered", number))
    harness.run(harness.repository(project))
    assert harness.row(project, number).state == "done"
    with BranchStore(str(harness.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        state = Memory(store, repo=project.repo.full_name).open([number]).state
        assert (number in state.records([number])) is granted
        assert bool(state.manifest.discussions and state.manifest.discussions.is_done) is granted


@pytest.mark.slow
def test_a_catch_up_reads_the_discussions_that_changed(harness: ServerHarness, project: EventfulProject) -> None:
    next(iter(harness.github.apps.by_id.values())).permissions["discussions"] = "read"
    number = project.discuss("hubot", "How do I keep the cookie?")
    harness.deliver_events(project, Event("discussion", "created", number))
    harness.run(harness.repository(project))
    newer = project.discuss("hubot", "Printing in colour")
    harness.deliver_events(project, Event("catch-up"))
    harness.run(harness.repository(project))
    with BranchStore(str(harness.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        assert newer in Memory(store, repo=project.repo.full_name).open([newer]).state.records([newer])


@pytest.mark.slow
@pytest.mark.parametrize("level", ["write", pytest.param("read", marks=pytest.mark.slow)])
def test_a_discussion_is_answered_if_the_app_may_write_it(harness: ServerHarness, level: str) -> None:
    project = harness.project("octo-org/app", "PostgreSQL")
    harness.git.commit("octo-org/app", ".github/precedent.yml", "discussions:\n  answer: true\n")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    next(iter(harness.github.apps.by_id.values())).permissions["discussions"] = level
    number = project.discuss("hubot", "Where do sessions live?", "As #1 says.")
    harness.deliver_events(project, Event("discussion", "created", number))
    harness.run(harness.repository(project))
    comments = [
        comment for comment in project.discussion(number).comments if comment.author and "[bot]" in comment.author.login
    ]
    assert len(comments) == (1 if level == "write" else 0)
    if comments:
        row = harness.row(project, number)
        assert (row.state, row.said) == ("done", "created")
        assert row.url.endswith(f"/octo-org/app/discussions/{number}#discussioncomment-{comments[0].id}")


@pytest.mark.slow
def test_forty_deliveries_of_one_issue_cause_one_comment_and_few_pushes(
    harness: ServerHarness, project: EventfulProject
) -> None:
    number = harness.ask(project)
    for at in range(39):
        comment = project.comment(number, "hubot", f"Me too, {at}.")
        harness.deliver_events(project, Event("issue_comment", "created", number, comment_id=comment))
    harness.settle()
    assert len(harness.comments(project, number)) == 1
    assert {each.state for each in harness.env.rows(harness.repository(project))} == {"done"}
    assert len(harness.runs()) <= 2
    assert most_in_a_minute(harness.pushes()) <= 6


@pytest.mark.slow
def test_more_comments_than_a_run_may_change_are_changed_by_the_next_when_their_decision_is_deleted(
    harness: ServerHarness, project: EventfulProject
) -> None:
    numbers = [harness.ask(project) for _ in range(12)]
    for _ in range(4):
        harness.settle()
        harness.pass_time(130)
    assert all("PostgreSQL" in harness.comments(project, number)[0] for number in numbers)
    (decision,) = (comment.id for comment in project.issue(1).comments)
    project.delete_comment(decision)
    harness.deliver_events(project, Event("issue_comment", "deleted", 1, comment_id=decision))
    harness.settle(1)
    changed = ["PostgreSQL" not in harness.comments(project, number)[0] for number in numbers]
    assert 10 <= changed.count(True) < 12
    harness.pass_time(130)
    harness.settle()
    assert all("PostgreSQL" not in harness.comments(project, number)[0] for number in numbers)


@pytest.mark.slow
def test_a_comment_that_failed_after_its_promise_is_posted_once(
    harness: ServerHarness, project: EventfulProject
) -> None:
    number = harness.ask(project)
    harness.github.faults.add("POST */issues/*/comments", "5xx", times=None)
    harness.run(harness.repository(project))
    assert harness.row(project, number).state == "waiting"
    assert harness.comments(project, number) == []
    harness.github.faults.clear()
    for _ in range(3):
        harness.pass_time(130)
        harness.settle(1)
    assert len(harness.comments(project, number)) == 1
    assert harness.row(project, number).state == "done"


def store_promise(harness: ServerHarness, project: EventfulProject, number: int, ago: int) -> None:
    """Store the promise of a comment that a killed run made so many seconds ago."""
    at = datetime.fromtimestamp(harness.env.clock.now / 1000, UTC) - timedelta(seconds=ago)
    with BranchStore(str(harness.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        memory = Memory(store, repo=project.repo.full_name).open()
        memory.stage(Changes(posts=(Post(number, "pending", at, trying_since=at),)))
        memory.commit("Promise a comment")


@pytest.mark.slow
def test_an_answer_that_a_killed_run_promised_waits_visibly_and_is_posted_when_due(
    harness: ServerHarness,
    project: EventfulProject,
) -> None:
    harness.ask(project)
    harness.settle()
    harness.pass_time(20)
    number = harness.ask(project)
    store_promise(harness, project, number, ago=60)
    other = harness.ask(project)
    harness.run(harness.repository(project))
    row = harness.row(project, number)
    assert (row.state, row.reason, row.attempts) == ("waiting", OTHER_RUN_POSTING, 0)
    assert len(harness.comments(project, other)) == 1
    harness.pass_time(130)
    harness.settle()
    assert (harness.row(project, number).said, len(harness.comments(project, number))) == ("created", 1)
    undelivered = project.open_issue("monalisa", "Which store, again?", "What did we decide in #1 about sessions?")
    store_promise(harness, project, undelivered, ago=100)
    began = harness.env.clock.now
    harness.deliver_events(project, Event("catch-up"))
    harness.settle(1)
    (waiting,) = harness.env.inbox.deliveries(DeliveryFilter(state="waiting"))
    assert 24_000 <= waiting.next_at - began <= 26_000
    harness.pass_time(26)
    harness.settle()
    assert len(harness.comments(project, undelivered)) == 1


def test_a_repository_that_the_app_can_no_longer_see_is_dropped(harness: ServerHarness) -> None:
    project = harness.project("octo-org/app", "PostgreSQL")
    installed = harness.github.tenants.install("octo-org", ["octo-org/app"])
    number, repository = harness.ask(project), harness.repository(project)
    harness.github.tenants.uninstall(installed)
    harness.run(repository)
    assert [each.state for each in harness.env.rows(repository)] == ["dropped"]
    assert harness.comments(project, number) == []
    assert (harness.env.installations.repositories(), harness.cloned_repositories()) == ([], set())


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["branch: memory\nmode: loud\n", "- branch\n"])
def test_invalid_settings_are_reported_and_the_answer_follows_once_they_are_fixed(
    harness: ServerHarness, project: EventfulProject, broken: str
) -> None:
    harness.git.commit("octo-org/app", ".github/precedent.yml", "branch: memory\n")
    harness.ask(project)
    harness.run(harness.repository(project))
    harness.git.commit("octo-org/app", ".github/precedent.yml", broken)
    number = harness.ask(project)
    harness.run(harness.repository(project))
    assert harness.comments(project, number) == []
    row = harness.row(project, number)
    assert (row.state, ".github/precedent.yml" in row.reason) == ("done", True)
    harness.git.commit("octo-org/app", ".github/precedent.yml", "branch: memory\n")
    harness.pass_time(60)
    harness.deliver_events(project, Event("push"))
    harness.run(harness.repository(project))
    assert len(harness.comments(project, number)) == 1
    folder = harness.git.folder / "octo-org/app.git/refs/heads"
    assert {path.name for path in folder.iterdir()} == {"main", "memory"}


@pytest.mark.slow
def test_a_stopping_server_gives_back_a_delivery_it_has_not_begun(
    harness: ServerHarness, project: EventfulProject
) -> None:
    number = harness.ask(project)
    harness.on_request = lambda request: harness.stop.set()
    harness.run(harness.repository(project))
    row = harness.row(project, number)
    assert (row.state, row.attempts, row.begun) == ("waiting", 0, 0)
    harness.on_request = lambda request: None
    harness.stop.clear()
    harness.settle()
    assert len(harness.comments(project, number)) == 1


@pytest.mark.slow
def test_the_result_of_a_run_is_stored_once_the_database_is_back(flaky_harness: ServerHarness) -> None:
    harness = flaky_harness
    number = harness.ask(harness.github)
    harness.run(harness.repository(harness.github))
    assert harness.row(harness.github, number).state == "done"
    assert harness.waits.slept == list(STORE_PAUSES)


@pytest.mark.slow
def test_a_run_whose_result_could_not_be_stored_is_repeated_without_a_second_comment(
    flaky_harness: ServerHarness,
) -> None:
    harness, inbox = flaky_harness, flaky_harness.env.inbox
    assert isinstance(inbox, FlakyInbox)
    project = harness.project("octo-org/app", "PostgreSQL")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    number, repository = harness.ask(project), harness.repository(project)
    inbox.failures += 1
    harness.run(repository)
    assert harness.row(project, number).state == "working"
    assert due_at(harness, repository) == harness.env.clock.now + 1000 * RETRY_SECONDS, "it runs again soon"
    harness.pass_time(RETRY_SECONDS)
    harness.run(repository)
    assert harness.row(project, number).state == "done"
    assert len(harness.comments(project, number)) == 1


@pytest.mark.slow
def test_a_run_that_lost_its_lease_stores_nothing_and_logs_it(
    harness: ServerHarness, project: EventfulProject, caplog: pytest.LogCaptureFixture
) -> None:
    """Its worker did not renew the lease, and another one takes over the repository in the middle of the run."""
    number, repository, taken = harness.ask(project), harness.repository(project), list[Lease]()

    def take_over(request: str) -> None:
        if not taken:
            harness.pass_time(LEASE_DURATION / 1000)
            taken.append(take_lease(harness.env.inbox, repository))

    harness.on_request = take_over
    with caplog.at_level(logging.INFO, "bot.server.work.reconcile"):
        harness.run(repository)
    assert caplog.messages == ["a run begins", "the results of a run were not stored, as it lost its lease"]
    row = harness.row(project, number)
    assert (row.state, row.said, row.finished_at) == ("working", "", 0)
    assert [run.ended for run in harness.runs()] == [0]
    assert (
        harness.env.installations.repository(repository).last_run,
        harness.env.inbox.counters.read(),
    ) == (0, {})
    reconcile(taken[0], harness.dependencies)
    assert harness.row(project, number).state == "done"
    assert len(harness.comments(project, number)) == 1


@pytest.mark.slow
def test_an_issue_that_is_temporarily_invisible_is_answered_later(
    harness: ServerHarness, project: EventfulProject
) -> None:
    number = harness.ask(project)
    harness.github.faults.add("POST */issues/*/comments", "404")
    harness.run(harness.repository(project))
    assert harness.comments(project, number) == []
    for _ in range(2):
        harness.pass_time(130)
        harness.settle()
    assert len(harness.comments(project, number)) == 1


def store_half_rebuild(harness: ServerHarness, project: EventfulProject) -> None:
    """Store half of a rebuild that the Action began before the App took over."""
    with BranchStore(str(harness.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        memory = Memory(store, repo=project.repo.full_name).open()
        memory.stage(Changes(reading=HistoryProgress(datetime.now(UTC) - timedelta(hours=1))))
        memory.commit("Half a rebuild")


def reading_progress(harness: ServerHarness, project: EventfulProject) -> HistoryProgress | None:
    with BranchStore(str(harness.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        return Memory(store, repo=project.repo.full_name).open().state.manifest.reading


@pytest.mark.slow
def test_the_server_finishes_a_rebuild_that_the_action_began(harness: ServerHarness, project: EventfulProject) -> None:
    harness.ask(project)
    harness.settle()
    store_half_rebuild(harness, project)
    number = harness.ask(project)
    harness.settle()
    assert reading_progress(harness, project) is None
    assert len(harness.comments(project, number)) == 1
    assert harness.env.inbox.deliveries(DeliveryFilter(state="waiting")) == []
    assert len(harness.env.rows(harness.repository(project))) <= 5


@pytest.mark.night
@pytest.mark.slow
def test_other_repositories_are_handled_between_parts_of_a_long_history(harness: ServerHarness) -> None:
    # A part is one answer of GitHub, with fifty issues.
    harness.dependencies = replace(harness.dependencies, reading_seconds=0.0)
    large, small = harness.project("octo-org/app", "PostgreSQL"), harness.project("octo-org/web", "Redis")
    harness.github.tenants.install("octo-org", ["octo-org/app", "octo-org/web"])
    past = harness.github.clock.epoch - HISTORY_AGE
    for minute in range(1, 200):
        large.open_issue("monalisa", f"Crash {minute}", "It crashes.", at=from_epoch(past + 60 * minute))
    harness.deliver_events(large, Event("catch-up"))
    harness.settle()
    store_half_rebuild(harness, large)
    harness.deliver_events(large, Event("catch-up"))
    harness.run(harness.repository(large))
    assert reading_progress(harness, large), "there is more to read"
    estimate = parse_estimate(harness.env.installations.repository(harness.repository(large)).history)
    assert estimate
    assert (estimate.read > 0, estimate.left > 0) == (True, True)
    harness.pass_time(60)
    harness.ask(small)
    leases = [harness.env.inbox.queue.claim("worker"), harness.env.inbox.queue.claim("worker")]
    assert [(lease.key, lease.priority) for lease in leases if lease] == [
        (harness.repository(small).text, Priority.CHANGE),
        (harness.repository(large).text, Priority.HISTORY),
    ]
    harness.env.inbox.queue.release("worker")
    for _ in range(4):
        harness.settle()
        harness.pass_time(60)
    assert reading_progress(harness, large) is None
    assert harness.env.installations.repository(harness.repository(large)).history == ""
    assert len(harness.runs(harness.repository(large))) >= 3
    assert keys(harness.env.inbox) == set()


@pytest.mark.night
def test_a_history_that_makes_no_progress_is_retried_less_and_less_often(
    harness: ServerHarness, project: EventfulProject
) -> None:
    harness.ask(project)
    harness.settle()
    store_half_rebuild(harness, project)
    harness.github.faults.add("POST /graphql", "5xx", times=None)
    began = harness.env.clock.now
    due_times = []
    for _ in range(4):
        harness.deliver_events(project, Event("catch-up")) if not due_times else harness.pass_time(
            (due_times[-1] - harness.env.clock.now) / 1000
        )
        harness.settle()
        (waiting,) = harness.env.inbox.deliveries(DeliveryFilter(state="waiting"), limit=10)
        due_times.append(waiting.next_at)
    gaps = [round((after - before) / 125_000) for before, after in pairwise([began, *due_times])]
    assert gaps == [1, 2, 4, 8]


@pytest.mark.slow
def test_a_rate_limit_pauses_the_whole_installation_and_does_not_count_as_an_attempt(harness: ServerHarness) -> None:
    first, second = harness.project("octo-org/app", "PostgreSQL"), harness.project("octo-org/web", "Redis")
    harness.github.tenants.install("octo-org", ["octo-org/app", "octo-org/web"])
    asked = [(project, harness.ask(project)) for project in (first, second)]
    harness.github.faults.add("POST */issues/*/comments", "secondary403", times=None)
    harness.run(harness.repository(first))
    harness.github.faults.clear()
    harness.run(harness.repository(second))
    assert [harness.row(*each).state for each in asked] == ["waiting"] * 2
    assert [harness.row(*each).attempts for each in asked] == [0, 0]
    assert harness.comments(*asked[1]) == []
    for _ in range(3):
        harness.pass_time(3600)
        harness.settle()
    assert [len(harness.comments(*each)) for each in asked] == [1, 1]


@pytest.mark.slow
def test_a_run_too_soon_after_a_push_gives_its_lease_back_until_the_next_push_is_allowed(
    harness: ServerHarness,
    project: EventfulProject,
) -> None:
    repository, first = harness.repository(project), harness.ask(project)
    harness.run(repository)
    last = harness.pushes()[-1]
    second = harness.ask(project)
    began = harness.env.clock.now
    reconcile(take_lease(harness.env.inbox, repository), harness.dependencies)
    assert (harness.env.clock.now, harness.waits.slept) == (began, []), "nobody waits with a lease"
    assert (harness.row(project, second).state, harness.row(project, second).begun) == ("waiting", 0)
    assert due_at(harness, repository) == last + 10_000
    with pytest.raises(AssertionError, match="nothing to do now"):
        take_lease(harness.env.inbox, repository)
    harness.env.clock.now = last + 10_000
    reconcile(take_lease(harness.env.inbox, repository), harness.dependencies)
    assert [harness.row(project, number).state for number in (first, second)] == ["done"] * 2


@pytest.mark.slow
def test_text_that_an_administrator_has_forgotten_leaves_the_clone_and_the_database(harness: ServerHarness) -> None:
    project = harness.project("octo-org/app", "zebrafinch7731")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    harness.ask(project)
    harness.settle()
    assert files_with(harness.clones, "zebrafinch7731")
    project.set_permission("octo-org", "admin")
    harness.pass_time(150)
    command_id = project.comment(1, "octo-org", "/precedent forget")
    harness.deliver_events(project, Event("issue_comment", "created", 1, comment_id=command_id))
    harness.settle()
    assert "This issue is forgotten" in harness.comments(project, 1)[0]
    assert harness.comments(project, 2) == []
    assert files_with(harness.clones, "zebrafinch7731") == []
    assert "zebrafinch7731" not in repr([harness.env.rows(harness.repository(project)), harness.runs()])


# -- coalescing of waiting deliveries


def issue_event(action: str, number: int = 5) -> Event:
    return Event("issues", action, number)


def comment_event(key: int, number: int = 5, action: str = "created") -> Event:
    return Event("issue_comment", action, number, comment_id=key)


BOTH = Event("organisation", numbers=(5, 6))
OPENED, EDITED, CLOSED = (issue_event(action) for action in ("opened", "edited", "closed"))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [OPENED, issue_event("labeled"), EDITED, CLOSED], [(EDITED, [1, 2, 3, 4])], id="what may be answered wins"
        ),
        pytest.param(
            [comment_event(11), comment_event(12), comment_event(13)],
            [(Event("issue_comment", "created", 5, comment_id=13, earlier=(11, 12)), [1, 2, 3])],
            id="several comments become one event that lists them all",
        ),
        pytest.param(
            [OPENED, comment_event(11)], [(OPENED, [1]), (comment_event(11), [2])], id="an issue and a later comment"
        ),
        pytest.param(
            [OPENED, comment_event(11), issue_event("deleted")],
            [(issue_event("deleted"), [1, 2, 3])],
            id="a deletion replaces all earlier events",
        ),
        pytest.param(
            [Event("organisation", number=5), EDITED, Event("organisation", number=6), Event("organisation", number=5)],
            [(BOTH, [1, 3, 4]), (EDITED, [2])],
            id="changes in another repository are an event of their own",
        ),
        pytest.param(
            [Event("catch-up"), issue_event("opened", 9), issue_event("opened", 3), Event("push")],
            [
                (issue_event("opened", 9), [2]),
                (issue_event("opened", 3), [3]),
                (Event("push"), [4]),
                (Event("catch-up"), [1]),
            ],
            id="in the order of the first deliveries, with the catch-up last",
        ),
        pytest.param(
            [comment_event(11, action="edited")], [(comment_event(11, action="edited"), [1])], id="an edit stays one"
        ),
    ],
)
def test_waiting_deliveries_are_coalesced(events: list[Event], expected: list[tuple[Event, list[int]]]) -> None:
    rows = [
        Delivery(f"1:{seq}", RepositoryKey(1, 2), event, seq=seq, state="working")
        for seq, event in enumerate(events, 1)
    ]
    assert [(group.event, [each.seq for each in group.deliveries]) for group in coalesce(rows)] == expected
