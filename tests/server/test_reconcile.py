"""Runs over GitHub and git: a delivery ends in a comment, once, whatever happens on the way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from bot.domain.changes import AnswerRecord, Changes, HistoryProgress
from bot.errors import WorldError
from bot.github.errors import CORE
from bot.github.events import Event
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.pipeline.plan import BUSY
from bot.server.delivery_groups import coalesce
from bot.server.model import Delivery, Instant, Lease, PendingWork, Priority, RepositoryKey, Result, RunReport
from bot.server.queue import LEASE
from bot.server.reconcile import NOTHING, PAUSES, TROUBLE, reconcile
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.memory.remotes import holds
from tests.server.queues import FileInbox, keys, leased
from tests.server.town import AGO, Town

AWAY = "the database is away"


class Unsteady(FileInbox):
    """An inbox whose database is away the next so many times that a run is to be begun, stored or given back."""

    unbegun = unended = ungiven = 0

    def begin(self, lease: Lease, earliest: Callable[[Sequence[Instant]], Instant] = lambda _: 0) -> PendingWork | None:
        self.unbegun -= 1
        if self.unbegun >= 0:
            raise WorldError(AWAY)
        return super().begin(lease, earliest)

    def end(self, work: PendingWork, results: Sequence[Result], report: RunReport) -> bool:
        self.unended -= 1
        if self.unended >= 0:
            raise WorldError(AWAY)
        return super().end(work, results, report)

    def give_back(self, lease: Lease, seconds: float) -> None:
        self.ungiven -= 1
        if self.ungiven >= 0:
            raise WorldError(AWAY)
        super().give_back(lease, seconds)


def unsteady(folder: Path) -> tuple[Town, Unsteady]:
    inbox = Unsteady()
    town = Town(folder, inbox)
    inbox.now = inbox.queue.now = town.here.clock
    town.github.tenants.install("octo-org", ["octo-org/first"])
    return town, inbox


def due(town: Town, repository: RepositoryKey) -> Instant:
    """When the repository has to be looked at, or when its lease runs out; 0 for not at all."""
    with town.here.inbox.database.transaction() as asking:
        row = asking.row("select due from queue where key = :key", key=repository.text)
    return row["due"] if row else 0


def most_in_a_minute(times: list[Instant]) -> int:
    return max((sum(start <= each < start + 60_000 for each in times) for start in times), default=0)


def test_a_delivery_ends_in_a_comment_and_the_ledger_says_which(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    town.run(town.repository(project))
    (said,) = town.comments(project, number)
    assert "PostgreSQL" in said
    assert said.startswith("<!-- precedent:v1 id=app -->")
    row = town.row(project, number)
    assert (row.state, row.said) == ("done", "created")
    comment = project.comments_by("precedent[bot]", number)[0]
    assert row.url.endswith(f"/octo-org/app/issues/{number}#issuecomment-{comment.id}")
    (told,) = town.done()
    assert {name for name, _ in told.stages} >= {"token", "settings", "clone", "look", "plan", "push", "say"}
    assert told.reads
    assert told.writes
    known = town.here.register.repository(town.repository(project))
    assert (known.name, known.private) == ("octo-org/app", True)
    assert known.cursor
    assert town.here.inbox.budgets().remaining(CORE)[known.repository.installation] > 0


def test_a_change_in_another_repository_is_looked_at_whatever_the_run_did_before(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    town.hear_of(project, Event("issues", "edited", number), Event("organisation", number=number))
    town.run(town.repository(project))
    rows = town.here.inbox.deliveries(limit=10)
    assert [(row.said, row.reason) for row in rows if row.event.name == "organisation"] == [("silent", NOTHING)]


@pytest.mark.parametrize("granted", [True, False])
def test_a_discussion_is_remembered_where_the_app_may_read_it(town: Town, granted: bool) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    if granted:
        next(iter(town.github.apps.known.values())).permissions["discussions"] = "read"
    number = project.discuss("hubot", "How do I keep the cookie?")
    project.mark_answer(number, project.say(number, "octocat", "Set `trust_proxy: true`."), "hubot")
    town.hear_of(project, Event("discussion", "answered", number))
    town.run(town.repository(project))
    assert town.row(project, number).state == "done"
    with BranchStore(str(town.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        state = Memory(store, repo=project.repo.full_name).open([number]).state
        assert (number in state.records([number])) is granted
        assert bool(state.manifest.discussions and state.manifest.discussions.is_done) is granted


def test_a_catch_up_reads_the_discussions_that_changed(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    next(iter(town.github.apps.known.values())).permissions["discussions"] = "read"
    number = project.discuss("hubot", "How do I keep the cookie?")
    town.hear_of(project, Event("discussion", "created", number))
    town.run(town.repository(project))
    newer = project.discuss("hubot", "Printing in colour")
    town.hear_of(project, Event("catch-up"))
    town.run(town.repository(project))
    with BranchStore(str(town.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        assert newer in Memory(store, repo=project.repo.full_name).open([newer]).state.records([newer])


@pytest.mark.parametrize("level", ["write", "read"])
def test_a_discussion_is_answered_where_the_app_may_write_it(town: Town, level: str) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.git.commit("octo-org/app", ".github/precedent.yml", "discussions:\n  answer: true\n")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    next(iter(town.github.apps.known.values())).permissions["discussions"] = level
    number = project.discuss("hubot", "Where do sessions live?", "As #1 says.")
    town.hear_of(project, Event("discussion", "created", number))
    town.run(town.repository(project))
    said = [one for one in project.discussion(number).comments if one.author and "[bot]" in one.author.login]
    assert len(said) == (1 if level == "write" else 0)
    if said:
        row = town.row(project, number)
        assert (row.state, row.said) == ("done", "created")
        assert row.url.endswith(f"/octo-org/app/discussions/{number}#discussioncomment-{said[0].id}")


@pytest.mark.slow
def test_forty_deliveries_of_one_issue_are_one_comment_and_few_pushes(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    for at in range(39):
        comment = project.comment(number, "hubot", f"Me too, {at}.")
        town.hear_of(project, Event("issue_comment", "created", number, comment_id=comment))
    town.settle()
    assert len(town.comments(project, number)) == 1
    assert {each.state for each in town.here.rows(town.repository(project))} == {"done"}
    assert len(town.done()) <= 2
    assert most_in_a_minute(town.pushes()) <= 6


@pytest.mark.slow
def test_a_worker_that_died_between_promise_and_comment_leaves_one_comment(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    town.github.faults.add("POST */issues/*/comments", "5xx", times=None)
    town.run(town.repository(project))
    assert town.row(project, number).state == "waiting"
    assert town.comments(project, number) == []
    town.github.faults.clear()
    for _ in range(3):
        town.pass_time(130)
        town.settle(1)
    assert len(town.comments(project, number)) == 1
    assert town.row(project, number).state == "done"


def promised(town: Town, project: EventfulProject, number: int, ago: int) -> None:
    """A run promised a comment so many seconds ago, and was killed."""
    at = datetime.fromtimestamp(town.here.clock.now / 1000, UTC) - timedelta(seconds=ago)
    with BranchStore(str(town.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        memory = Memory(store, repo=project.repo.full_name).open()
        memory.stage(Changes(answers=(AnswerRecord(number, "pending", at, trying_since=at),)))
        memory.commit("Promise a comment")


@pytest.mark.slow
def test_what_a_killed_run_promised_is_looked_at_as_soon_as_it_may_be_and_tells_till_then_that_it_waits(
    town: Town,
) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.ask(project)
    town.settle()
    town.pass_time(20)
    number = town.ask(project)
    promised(town, project, number, ago=60)
    other = town.ask(project)
    town.run(town.repository(project))
    row = town.row(project, number)
    assert (row.state, row.reason, row.attempts) == ("waiting", BUSY, 0)
    assert len(town.comments(project, other)) == 1
    town.pass_time(130)
    town.settle()
    assert (town.row(project, number).said, len(town.comments(project, number))) == ("created", 1)
    unheard = project.open_issue("monalisa", "Which store, again?", "What did we decide in #1 about sessions?")
    promised(town, project, unheard, ago=100)
    began = town.here.clock.now
    town.hear_of(project, Event("catch-up"))
    town.settle(1)
    (again,) = town.here.inbox.deliveries(state="waiting")
    assert 24_000 <= again.next_at - began <= 26_000
    town.pass_time(26)
    town.settle()
    assert len(town.comments(project, unheard)) == 1


def test_a_repository_that_the_app_may_not_see_any_more_is_let_go(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    installed = town.github.tenants.install("octo-org", ["octo-org/app"])
    number, repository = town.ask(project), town.repository(project)
    town.github.tenants.uninstall(installed)
    town.run(repository)
    assert [each.state for each in town.here.rows(repository)] == ["dropped"]
    assert town.comments(project, number) == []
    assert (town.here.register.repositories(), town.kept()) == ([], set())


@pytest.mark.slow
def test_settings_that_cannot_be_used_are_told_and_what_is_owed_is_said_when_they_are_mended(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.git.commit("octo-org/app", ".github/precedent.yml", "mode: loud\n")
    number = town.ask(project)
    town.run(town.repository(project))
    assert town.comments(project, number) == []
    assert ".github/precedent.yml" in town.row(project, number).reason
    town.git.commit("octo-org/app", ".github/precedent.yml", "mode: comment\n")
    town.pass_time(60)
    town.hear_of(project, Event("push"))
    town.run(town.repository(project))
    assert len(town.comments(project, number)) == 1


@pytest.mark.slow
def test_a_server_that_stops_gives_back_what_it_has_not_begun(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    town.asked = lambda request: town.stop.set()
    town.run(town.repository(project))
    row = town.row(project, number)
    assert (row.state, row.attempts, row.begun) == ("waiting", 0, 0)
    town.asked = lambda request: None
    town.stop.clear()
    town.settle()
    assert len(town.comments(project, number)) == 1


def test_what_a_run_did_is_written_down_once_the_database_is_back(tmp_path: Path) -> None:
    town, ledger = unsteady(tmp_path)
    number = town.ask(town.github)
    ledger.unended = len(PAUSES)
    town.run(town.repository(town.github))
    assert town.row(town.github, number).state == "done"
    assert town.waits.slept == list(PAUSES)
    town.close()


@pytest.mark.slow
def test_a_run_that_could_not_be_written_down_is_done_once_more_and_says_nothing_twice(tmp_path: Path) -> None:
    town, ledger = unsteady(tmp_path)
    number, repository = town.ask(town.github), town.repository(town.github)
    ledger.unended = len(PAUSES) + 1
    town.run(repository)
    assert town.row(town.github, number).state == "working"
    assert due(town, repository) == town.here.clock.now + 1000 * TROUBLE, "it is looked at again soon"
    town.pass_time(TROUBLE)
    town.run(repository)
    assert town.row(town.github, number).state == "done"
    assert len(town.comments(town.github, number)) <= 1
    town.close()


def test_a_run_that_cannot_be_begun_gives_its_lease_back_for_later(tmp_path: Path) -> None:
    town, ledger = unsteady(tmp_path)
    number, repository = town.ask(town.github), town.repository(town.github)
    ledger.unbegun = 1
    town.run(repository)
    assert due(town, repository) == town.here.clock.now + 1000 * TROUBLE
    assert (town.row(town.github, number).state, town.row(town.github, number).begun) == ("waiting", 0)
    town.pass_time(TROUBLE)
    town.run(repository)
    assert town.row(town.github, number).state == "done"
    town.close()


def test_a_lease_that_cannot_be_given_back_runs_out(tmp_path: Path) -> None:
    town, ledger = unsteady(tmp_path)
    number, repository = town.ask(town.github), town.repository(town.github)
    ledger.unbegun = ledger.ungiven = 1
    town.run(repository)
    assert due(town, repository) == town.here.clock.now + LEASE
    with pytest.raises(AssertionError, match="nothing to do now"):
        leased(ledger, repository)
    town.pass_time(LEASE / 1000)
    town.run(repository)
    assert town.row(town.github, number).state == "done"
    town.close()


def test_a_run_that_lost_its_lease_stores_nothing_and_says_so(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    """Its worker did not renew the lease, and another one takes the repository over in the middle of the run."""
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number, repository, taken = town.ask(project), town.repository(project), list[Lease]()

    def take_over(request: str) -> None:
        if not taken:
            town.pass_time(LEASE / 1000)
            taken.append(leased(town.here.inbox, repository))

    town.asked = take_over
    with caplog.at_level(logging.INFO, "bot.server.reconcile"):
        town.run(repository)
    assert caplog.messages == ["the results of a run were not stored, as it lost its lease"]
    row = town.row(project, number)
    assert (row.state, row.said, row.finished_at) == ("working", "", 0)
    assert [run.ended for run in town.done()] == [0]
    assert (town.here.register.repository(repository).last_run, town.here.inbox.counters()) == (0, {})
    reconcile(taken[0], town.dependencies)
    assert town.row(project, number).state == "done"
    assert len(town.comments(project, number)) == 1


def test_a_repository_that_has_nothing_more_to_do_has_no_key(tmp_path: Path) -> None:
    town, ledger = unsteady(tmp_path)
    for _ in range(3):
        town.ask(town.github)
    assert keys(ledger) == {town.repository(town.github).text}
    town.run(town.repository(town.github))
    assert keys(ledger) == set()
    town.close()


def test_what_comes_while_a_run_goes_on_is_done_in_the_next(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    repository, first, later = town.repository(project), town.ask(project), list[int]()

    def ask(request: str) -> None:
        if not later:
            later.append(0)
            later[0] = town.ask(project)

    town.asked = ask
    town.run(repository)
    assert (town.row(project, first).state, town.row(project, later[0]).state) == ("done", "waiting")
    assert due(town, repository) > 0, "it was due at once, or is when its last push is long enough ago"
    town.run(repository)
    assert town.row(project, later[0]).state == "done"
    assert due(town, repository) == 0


@pytest.mark.slow
def test_an_issue_that_cannot_be_seen_for_a_moment_is_answered_later(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    town.github.faults.add("POST */issues/*/comments", "404")
    town.run(town.repository(project))
    assert town.comments(project, number) == []
    for _ in range(2):
        town.pass_time(130)
        town.settle()
    assert len(town.comments(project, number)) == 1


def half_read(town: Town, project: EventfulProject) -> None:
    """A rebuild of the Action's has come half way when the App takes over."""
    with BranchStore(str(town.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        memory = Memory(store, repo=project.repo.full_name).open()
        memory.stage(Changes(reading=HistoryProgress(datetime.now(UTC) - timedelta(hours=1))))
        memory.commit("Half a rebuild")


def reading(town: Town, project: EventfulProject) -> HistoryProgress | None:
    with BranchStore(str(town.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        return Memory(store, repo=project.repo.full_name).open().state.manifest.reading


@pytest.mark.slow
def test_a_rebuild_that_the_action_began_comes_to_its_end_and_runs_do_too(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.ask(project)
    town.settle()
    half_read(town, project)
    number = town.ask(project)
    town.settle()
    assert reading(town, project) is None
    assert len(town.comments(project, number)) == 1
    assert town.here.inbox.deliveries(state="waiting") == []
    assert len(town.here.rows(town.repository(project))) <= 5


@pytest.mark.slow
def test_a_long_history_is_read_in_parts_and_other_repositories_come_between(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.server.reconcile.PART", 0.0)  # a part is one answer of GitHub's, with fifty issues
    large, small = town.project("octo-org/app", "PostgreSQL"), town.project("octo-org/web", "Redis")
    town.github.tenants.install("octo-org", ["octo-org/app", "octo-org/web"])
    past = town.github.clock.epoch - AGO
    for minute in range(1, 200):
        large.open_issue("monalisa", f"Crash {minute}", "It crashes.", at=from_epoch(past + 60 * minute))
    town.hear_of(large, Event("catch-up"))
    town.settle()
    half_read(town, large)
    town.hear_of(large, Event("catch-up"))
    town.run(town.repository(large))
    assert reading(town, large), "there is more to read"
    town.pass_time(60)
    town.ask(small)
    found = [town.here.inbox.queue.claim("worker"), town.here.inbox.queue.claim("worker")]
    assert [(lease.key, lease.priority) for lease in found if lease] == [
        (town.repository(small).text, Priority.CHANGE),
        (town.repository(large).text, Priority.HISTORY),
    ]
    town.here.inbox.queue.release("worker")
    for _ in range(4):
        town.settle()
        town.pass_time(60)
    assert reading(town, large) is None
    assert len(town.done(town.repository(large))) >= 3
    assert keys(town.here.inbox) == set()


@pytest.mark.slow
def test_a_reading_that_does_not_come_further_is_looked_at_ever_more_seldom(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.ask(project)
    town.settle()
    half_read(town, project)
    monkeypatch.setattr("bot.server.reconcile.continue_rebuild", lambda bot, calm: None)
    began = town.here.clock.now
    due = []
    for _ in range(4):
        town.hear_of(project, Event("catch-up")) if not due else town.pass_time((due[-1] - town.here.clock.now) / 1000)
        town.settle()
        (waiting,) = town.here.inbox.deliveries(state="waiting", limit=10)
        due.append(waiting.next_at)
    gaps = [round((after - before) / 125_000) for before, after in pairwise([began, *due])]
    assert gaps == [1, 2, 4, 8]


@pytest.mark.slow
def test_a_limit_of_github_makes_all_repositories_of_the_installation_wait_and_counts_as_no_try(town: Town) -> None:
    first, second = town.project("octo-org/app", "PostgreSQL"), town.project("octo-org/web", "Redis")
    town.github.tenants.install("octo-org", ["octo-org/app", "octo-org/web"])
    numbers = [(project, town.ask(project)) for project in (first, second)]
    town.github.faults.add("POST */issues/*/comments", "secondary403", times=None)
    town.run(town.repository(first))
    town.github.faults.clear()
    town.run(town.repository(second))
    assert [town.row(*each).state for each in numbers] == ["waiting"] * 2
    assert [town.row(*each).attempts for each in numbers] == [0, 0]
    assert town.comments(*numbers[1]) == []
    for _ in range(3):
        town.pass_time(3600)
        town.settle()
    assert [len(town.comments(*each)) for each in numbers] == [1, 1]


def test_a_run_that_comes_too_soon_after_a_push_gives_its_lease_back_until_then(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    repository, first = town.repository(project), town.ask(project)
    town.run(repository)
    last = town.pushes()[-1]
    second = town.ask(project)
    began = town.here.clock.now
    reconcile(leased(town.here.inbox, repository), town.dependencies)
    assert (town.here.clock.now, town.waits.slept) == (began, []), "nobody waits with a lease"
    assert (town.row(project, second).state, town.row(project, second).begun) == ("waiting", 0)
    assert due(town, repository) == last + 10_000
    with pytest.raises(AssertionError, match="nothing to do now"):
        leased(town.here.inbox, repository)
    town.here.clock.now = last + 10_000
    reconcile(leased(town.here.inbox, repository), town.dependencies)
    assert [town.row(project, number).state for number in (first, second)] == ["done"] * 2


@pytest.mark.slow
def test_while_an_installation_is_paused_its_leases_are_given_back_and_others_go_on(town: Town) -> None:
    ours, theirs = town.project("octo-org/app", "PostgreSQL"), town.project("octocat/app", "Redis")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.github.tenants.install("octocat", ["octocat/app"])
    numbers, repository = [town.ask(ours), town.ask(theirs)], town.repository(ours)
    until = town.here.clock.now + 300_000
    town.here.register.pause(repository.installation, "core", until)
    town.settle(1)
    assert (town.row(ours, numbers[0]).state, town.row(ours, numbers[0]).begun) == ("waiting", 0)
    assert due(town, repository) == until
    assert len(town.comments(theirs, numbers[1])) == 1
    town.here.clock.now = until
    town.run(repository)
    assert len(town.comments(ours, numbers[0])) == 1


@pytest.mark.slow
def test_what_an_administrator_has_forgotten_leaves_the_clone_and_the_ledger_too(town: Town) -> None:
    project = town.project("octo-org/app", "zebrafinch7731")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.ask(project)
    town.settle()
    assert holds(town.clones, "zebrafinch7731")
    project.set_permission("octo-org", "admin")
    town.pass_time(150)
    asked = project.comment(1, "octo-org", "/precedent forget")
    town.hear_of(project, Event("issue_comment", "created", 1, comment_id=asked))
    town.settle()
    assert "This issue is forgotten" in town.comments(project, 1)[0]
    assert town.comments(project, 2) == []
    assert holds(town.clones, "zebrafinch7731") == []
    assert "zebrafinch7731" not in repr([town.here.rows(town.repository(project)), town.done()])


# -- deliveries that wait together


def gathered(*events: Event) -> list[tuple[Event, list[int]]]:
    rows = [
        Delivery(seq, f"1:{seq}", RepositoryKey(1, 2), event, "", True, "working", 0)
        for seq, event in enumerate(events, 1)
    ]
    return [(group.event, [each.seq for each in group.deliveries]) for group in coalesce(rows)]


def happened(action: str, number: int = 5) -> Event:
    return Event("issues", action, number)


def commented(key: int, number: int = 5, action: str = "created") -> Event:
    return Event("issue_comment", action, number, comment_id=key)


def test_what_happened_to_an_issue_is_one_event_that_may_be_answered() -> None:
    found = gathered(happened("opened"), happened("labeled"), happened("edited"), happened("closed"))
    assert found == [(happened("edited"), [1, 2, 3, 4])]


def test_comments_are_one_event_that_names_them_all() -> None:
    found = gathered(commented(11), commented(12), commented(13))
    expected = Event("issue_comment", "created", 5, comment_id=13, earlier=(11, 12))
    assert found == [(expected, [1, 2, 3])]


def test_an_opened_issue_is_no_less_for_a_comment_that_came_after_it() -> None:
    assert [event for event, _ in gathered(happened("opened"), commented(11))] == [happened("opened"), commented(11)]


def test_what_is_gone_is_only_gone() -> None:
    assert gathered(happened("opened"), commented(11), happened("deleted")) == [(happened("deleted"), [1, 2, 3])]


def test_what_changed_in_another_repository_is_an_event_besides_what_happened_to_the_issue() -> None:
    five, six = (Event("organisation", number=number) for number in (5, 6))
    both = Event("organisation", numbers=(5, 6))
    assert gathered(five, happened("edited"), six, five) == [(both, [1, 3, 4]), (happened("edited"), [2])]


def test_issues_come_in_the_order_of_their_first_deliveries_and_looking_again_comes_last() -> None:
    found = gathered(
        Event("catch-up"), happened("opened", 9), happened("opened", 3), Event("push"), happened("closed", 9)
    )
    assert [event.number or event.name for event, _ in found] == [9, 3, "push", "catch-up"]
    assert [seqs for _, seqs in found] == [[2, 5], [3], [4], [1]]


def test_an_edited_comment_brings_nobody_an_answer() -> None:
    assert gathered(commented(11, action="edited")) == [(commented(11, action="edited"), [1])]
