"""Changes of runs reach the organisation's index, a LanceDB in a folder, whatever happens in between."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.cli.commands.org_server import rebuild_on_server
from bot.cli.options import ServerArguments
from bot.domain.organisation import OrganisationThread
from bot.domain.post import OrganisationKey
from bot.errors import UserError
from bot.organisation.lance import COMPACT_SECONDS
from bot.recall.candidates import Candidates, OrganisationUnavailable
from bot.server.options import ServerOptions
from bot.server.organisation.guard import COOLDOWN_SECONDS, REPAIR_AFTER
from bot.server.organisation.indexer import RebuildResult, rebuild_installation
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.outbox import FIRST_ROW_PAUSE, MAX_ROW_PAUSE, PURGE_DELAY, queue_key
from bot.server.work.resync import Resync
from bot.server.work.worker import HANG_TIMEOUT
from tests.fakes.payloads import EventfulProject
from tests.github.keys import key_pair
from tests.server.app_environment import APP
from tests.server.harness import ServerHarness
from tests.server.harness_index import HarnessIndex
from tests.server.queues import keys

QUESTION = "Where should sessions live?"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarnessIndex]:
    """The sdk has been read and is in the index: an issue of its owner, and one of a stranger, which is shown nowhere
    else."""
    harness = ServerHarness(tmp_path_factory.mktemp("server"))
    sdk = harness.project("octo-org/sdk", "PostgreSQL")
    number = harness.github.tenants.install("octo-org", ["octo-org/sdk"])
    index = HarnessIndex(harness, tmp_path_factory.mktemp("index") / "index", number)
    index.align()
    harness.ask(sdk)
    harness.settle()
    index.work()
    harness.save()
    yield index
    harness.close()


@pytest.fixture
def harness(saved: HarnessIndex) -> Iterator[ServerHarness]:
    server = saved.harness
    server.restore()
    yield server
    assert (server.github.violations, server.token_misuses()) == ([], [])


@pytest.fixture
def sdk(harness: ServerHarness) -> EventfulProject:
    return harness.known("octo-org/sdk")


@pytest.fixture
def index(saved: HarnessIndex, harness: ServerHarness, tmp_path: Path) -> HarnessIndex:
    """The saved index in a folder of its own, as the engine caches what it read."""
    shutil.copytree(saved.folder, tmp_path / "index")
    return HarnessIndex(harness, tmp_path / "index", saved.installation)


@pytest.fixture
def rereading(index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject) -> HarnessIndex:
    """An index that does not exist yet, while the whole memory of the sdk waits to be indexed."""
    shutil.rmtree(index.folder)
    index.changes.request_reread([harness.repository(sdk)])
    return index


def open_lost(harness: ServerHarness, sdk: EventfulProject) -> int:
    """Open the issue "Sessions are lost" and have it read. Returns its number."""
    number = sdk.open_issue("octo-org", "Sessions are lost", "The session store forgets them.")
    harness.deliver_opened(sdk, number)
    harness.settle()
    return number


def titles(index: HarnessIndex, *projects: EventfulProject) -> list[str]:
    return sorted(match.thread.title for match in index.search("sessions store", *projects))


def deny_git(harness: ServerHarness, name: str) -> Callable[[], None]:
    """Deny git access to this repository until the returned function is called."""
    access = harness.git.access
    harness.git.access = lambda token, full_name: None if full_name == name else access(token, full_name)

    def allow_again() -> None:
        harness.git.access = access

    return allow_again


@pytest.mark.slow
def test_old_and_new_threads_of_a_repository_are_found(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject
) -> None:
    assert titles(index, sdk) == [QUESTION]
    (match,) = index.search("sessions live", sdk)[:1]
    assert (match.thread.name, match.thread.url) == ("octo-org/sdk", f"{harness.git.url}/octo-org/sdk/issues/1")
    assert index.waiting() == 0
    assert queue_key(index.installation) not in keys(harness.env.inbox)
    number = open_lost(harness, sdk)
    index.work()
    assert "Sessions are lost" in titles(index, sdk)
    assert index.notifications[-1] == (harness.repository(sdk), [number])


@pytest.mark.slow
def test_a_deleted_issue_is_no_longer_found(index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject) -> None:
    register, app, key = (
        OrganisationRegister(harness.env.inbox),
        harness.repository(sdk),
        OrganisationKey(sdk.repo.id, 1),
    )
    register.add_shown(app, 5, [key])
    sdk.delete_issue(1)
    harness.env.arrive(harness.repository(sdk), "issues", "deleted", 1)
    harness.settle()
    assert register.filter_shown(app, 5, [key]) == [key]
    index.work()
    assert QUESTION not in titles(index, sdk)
    assert index.notifications[-1] == (harness.repository(sdk), [1])
    assert register.filter_shown(app, 5, [key]) == [], "no comment may keep it"


@pytest.mark.slow
@pytest.mark.parametrize("action", ["edited", pytest.param("deleted", marks=pytest.mark.slow)])
def test_a_quotation_disappears_when_its_author_edits_or_deletes_it(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject, action: str
) -> None:
    (before,) = index.search("sessions live", sdk)[:1]
    assert "PostgreSQL" in before.thread.outcome.quote
    (comment_id,) = (comment.id for comment in sdk.issue(1).comments)
    if action == "edited":
        sdk.edit_comment(comment_id, "I was wrong.")
    else:
        sdk.delete_comment(comment_id)
    harness.env.arrive(harness.repository(sdk), "issue_comment", action, 1, comment_id=comment_id)
    harness.settle()
    index.work()
    (after,) = index.search("sessions live", sdk)[:1]
    assert "PostgreSQL" not in str(after.thread)
    assert index.notifications[-1] == (harness.repository(sdk), [1]), "comments elsewhere are worked out again"


@pytest.mark.slow
def test_each_installation_has_its_own_index(index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject) -> None:
    foreign = harness.project("octocat/app", "Redis")
    other = HarnessIndex(harness, index.folder, harness.github.tenants.install("octocat", ["octocat/app"]))
    harness.ask(foreign)
    harness.settle()
    other.work()
    assert titles(index, sdk, foreign) == titles(other, sdk, foreign) == [QUESTION]
    assert {match.thread.repository for match in other.search("session", sdk, foreign)} == {foreign.repo.id}


@pytest.mark.slow
def test_a_deleted_or_excluded_repository_is_erased_from_the_index(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject
) -> None:
    index.align()
    index.work()
    options = harness.dependencies.options
    harness.dependencies = replace(harness.dependencies, options=replace(options, exclude=("octo-org/sdk",)))
    assert index.align() == 1
    index.work()
    assert titles(index, sdk) == []
    harness.dependencies = replace(harness.dependencies, options=options)
    assert index.align() == 1
    index.work()
    assert titles(index, sdk) == [QUESTION]
    OrganisationRegister(harness.env.inbox).mark_gone(harness.repository(sdk), "deleted")
    index.work()
    assert titles(index, sdk) == []


@pytest.mark.slow
def test_an_unreadable_memory_is_retried_later_and_does_not_hold_up_others(
    rereading: HarnessIndex, harness: ServerHarness, sdk: EventfulProject, caplog: pytest.LogCaptureFixture
) -> None:
    index, allow_again = rereading, deny_git(harness, "octo-org/sdk")
    app = harness.project("octo-org/app", "Redis")
    harness.github.tenants.add(index.installation, ["octo-org/app"])
    harness.ask(app)
    harness.settle()
    with caplog.at_level(logging.WARNING):
        index.work()
    assert titles(index, sdk, app) == [QUESTION]
    assert "read again" in caplog.text
    assert index.waiting() == 1
    allow_again()
    harness.pass_time(FIRST_ROW_PAUSE / 1000)
    index.work()
    assert len(titles(index, sdk, app)) == 2
    assert index.waiting() == 0


class ProcessDeath(BaseException):
    """The end of a process."""


class FailingIndex:
    """An index whose calls fail one after another with ``faults``; None lets a call succeed."""

    def __init__(self, index: Candidates, faults: list[BaseException | None]) -> None:
        self._index = index
        self._faults = faults

    def __getattr__(self, name: str) -> object:
        fault = self._faults.pop(0) if self._faults else None
        if fault:
            raise fault
        return getattr(self._index, name)


@pytest.mark.slow
@pytest.mark.parametrize("calls", range(4))
def test_indexing_is_repeated_after_a_process_dies_between_two_steps(
    rereading: HarnessIndex, harness: ServerHarness, sdk: EventfulProject, calls: int
) -> None:
    """The process ends before the erasing, or before one of the two writes, and another one continues later."""
    index = rereading
    faults: list[BaseException | None] = [*[None] * calls, ProcessDeath()]
    index.wrap = lambda candidates: FailingIndex(candidates, faults)  # type: ignore[assignment, return-value]
    try:
        index.work()
    except ProcessDeath:
        harness.env.inbox.database.change("update queue set due = 0, ready = 1, lease = '', owner = ''")
    harness.pass_time(FIRST_ROW_PAUSE / 1000)
    index.work()
    assert titles(index, sdk) == [QUESTION]
    assert index.waiting() == 0


@pytest.mark.slow
def test_an_index_that_is_down_is_logged_once_and_used_again_when_it_answers(
    rereading: HarnessIndex, harness: ServerHarness, sdk: EventfulProject, caplog: pytest.LogCaptureFixture
) -> None:
    index = rereading
    faults: list[BaseException | None] = [OrganisationUnavailable("no route to host") for _ in range(3)]
    index.wrap = lambda candidates: FailingIndex(candidates, faults)  # type: ignore[assignment, return-value]
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            index.work()
            assert not index.guard.is_up
            index.work()  # it rests
            harness.pass_time(max(COOLDOWN_SECONDS, FIRST_ROW_PAUSE / 1000 * 4))
        assert caplog.text.count("no route to host") == 1
        harness.pass_time(MAX_ROW_PAUSE / 1000)
        index.work()
    assert index.guard.is_up
    assert caplog.text.count("answers again") == 1
    assert titles(index, sdk) == [QUESTION]


@pytest.mark.slow
@pytest.mark.parametrize("damaged", ["threads-*/**/*", pytest.param("**/*", marks=pytest.mark.slow)])
def test_a_damaged_index_is_rebuilt_automatically(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject, damaged: str
) -> None:
    for file in (index.folder / str(index.installation)).glob(damaged):
        if file.is_file():
            file.write_bytes(b"damaged")
    open_lost(harness, sdk)
    spent = 0.0
    while spent <= REPAIR_AFTER + MAX_ROW_PAUSE / 1000 and index.waiting():
        index.work()
        harness.pass_time(COOLDOWN_SECONDS)
        spent += COOLDOWN_SECONDS
    assert titles(index, sdk) == ["Sessions are lost", QUESTION]


@pytest.mark.slow
def test_a_deleted_index_is_rebuilt_at_the_next_change(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject
) -> None:
    shutil.rmtree(index.folder)
    index.reopen()  # in a process of another container
    open_lost(harness, sdk)
    index.work()
    assert titles(index, sdk) == ["Sessions are lost", QUESTION]


@pytest.mark.slow
def test_text_of_people_who_become_ignored_leaves_the_index(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject
) -> None:
    assert index.search("slow", sdk)
    harness.git.commit("octo-org/sdk", ".github/precedent.yml", "ignore:\n  people: [octo-org]\n")
    harness.ask(sdk)
    harness.settle()
    index.work()
    assert QUESTION in titles(index, sdk)
    assert not index.search("slow", sdk)


def files_contain(index: HarnessIndex, words: str) -> bool:
    return any(words.encode() in file.read_bytes() for file in index.folder.rglob("*") if file.is_file())


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", ["gone", *(pytest.param(way, marks=pytest.mark.slow) for way in ("deleted", "ignored"))]
)
def test_forgotten_text_is_purged_from_the_files_within_an_hour(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject, way: str
) -> None:
    secret, key = "zqxjkvbp", queue_key(index.installation)
    number = sdk.open_issue("octo-org", "Sessions", " ".join([secret * 20, *(secret + each for each in QUESTION)]))
    for each in range(3):
        sdk.open_issue("octo-org", f"Sessions {each}", "They are lost.")
    harness.deliver_opened(sdk, number)
    harness.settle()
    index.work()
    assert files_contain(index, secret)
    assert key not in keys(harness.env.inbox), "nothing is forgotten yet"
    if way == "deleted":
        sdk.delete_issue(number)
        harness.env.arrive(harness.repository(sdk), "issues", "deleted", number)
    elif way == "ignored":
        harness.git.commit("octo-org/sdk", ".github/precedent.yml", "ignore:\n  people: [octo-org]\n")
        harness.ask(sdk)
    else:
        OrganisationRegister(harness.env.inbox).mark_gone(harness.repository(sdk), "deleted")
    harness.settle()
    index.work()
    assert titles(index, sdk) == [] if way == "gone" else titles(index, sdk)
    faults: list[BaseException | None] = [None, OrganisationUnavailable("no route to host")]
    index.wrap = lambda candidates: FailingIndex(candidates, faults)  # type: ignore[assignment, return-value]
    index.reopen()
    for attempt in range(3):  # the first fails
        assert key in keys(harness.env.inbox)
        assert attempt > 1 or files_contain(index, secret)
        harness.pass_time(PURGE_DELAY / 1000 * (1, 2, 1)[attempt])
        index.work()
        index.work()  # it is not tried twice
    assert not files_contain(index, secret)
    assert key not in keys(harness.env.inbox)


@pytest.mark.slow
def test_a_temporarily_hidden_issue_causes_no_purge(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject
) -> None:
    sdk.hide_issue(1)
    harness.deliver_opened(sdk, 1)
    harness.settle()
    index.work()
    assert titles(index, sdk) == []
    assert queue_key(index.installation) not in keys(harness.env.inbox), "no file need be written again"


def test_a_compaction_times_out_before_its_worker_counts_as_hung() -> None:
    assert COMPACT_SECONDS < HANG_TIMEOUT


def test_a_worker_without_an_index_leaves_the_changes_to_others(rereading: HarnessIndex) -> None:
    rereading.guard = None  # type: ignore[assignment]
    rereading.work()
    assert rereading.waiting() == 1


# -- the rebuild ---------------------------------------------------------------------------------------------------


def test_a_rebuild_reads_the_memory_branches(index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject) -> None:
    result = rebuild_installation(index.installation, index.dependencies)
    assert result == RebuildResult(index.installation, 1, 2)
    assert titles(index, sdk) == [QUESTION]
    assert queue_key(index.installation) not in keys(harness.env.inbox)


@pytest.mark.slow
def test_a_change_during_a_rebuild_gets_into_the_new_index(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject
) -> None:
    def open_issue_meanwhile(_: int) -> None:
        open_lost(harness, sdk)
        assert harness.env.inbox.queue.claim_key("another", queue_key(index.installation)) is None

    rebuild_installation(index.installation, index.dependencies, open_issue_meanwhile)
    index.work()
    assert "Sessions are lost" in titles(index, sdk)
    assert index.notifications[-1][0] == harness.repository(sdk)


@pytest.mark.slow
def test_a_rebuild_reports_an_unreadable_memory_which_is_read_later(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject
) -> None:
    allow_again = deny_git(harness, "octo-org/sdk")
    result = rebuild_installation(index.installation, index.dependencies)
    assert [name for name, _ in result.unread] == ["octo-org/sdk"]
    assert titles(index, sdk) == []
    allow_again()
    index.work()
    assert titles(index, sdk) == [QUESTION]


def test_a_rebuild_that_loses_its_lease_changes_nothing(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject
) -> None:
    with pytest.raises(OrganisationUnavailable, match="another process"):
        rebuild_installation(index.installation, index.dependencies, lambda _: lose_lease(harness), 0.01)
    assert titles(index, sdk) == [QUESTION]


def lose_lease(harness: ServerHarness) -> None:
    """Have another process take all leases, and wait until this one has noticed."""
    harness.env.inbox.database.change("update queue set owner = 'another', lease = 'another'")
    harness.stop.wait(0.5)


@pytest.mark.slow
def test_a_rebuild_that_loses_its_lease_ends_in_the_middle_of_a_memory(
    index: HarnessIndex, harness: ServerHarness
) -> None:
    read_ids = []

    class LeaseLosing(FailingIndex):
        def rebuild(self, threads: Iterable[OrganisationThread]) -> None:
            for each in threads:
                read_ids.append(each.id)
                lose_lease(harness)

    index.wrap = lambda candidates: LeaseLosing(candidates, [])  # type: ignore[assignment, return-value]
    with pytest.raises(OrganisationUnavailable, match="another process"):
        rebuild_installation(index.installation, index.dependencies, renewal_interval=0.01)
    assert len(read_ids) == 1


@pytest.mark.slow
def test_a_resync_switches_the_index_on_and_off(
    index: HarnessIndex, harness: ServerHarness, sdk: EventfulProject
) -> None:
    def resync(options: ServerOptions) -> None:
        env = harness.env
        Resync(env.api, env.inbox, options, env.tokens, env.removed_clones.append).run(env.clock.now)

    resync(harness.dependencies.options)
    assert index.changes.backlog() is None
    resync(index.dependencies.options)
    assert index.waiting() == 1
    index.work()
    assert titles(index, sdk) == [QUESTION]


@pytest.mark.slow
def test_the_operator_rebuilds_the_index_by_command(
    index: HarnessIndex,
    harness: ServerHarness,
    sdk: EventfulProject,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the database and App of the harness."""
    (url, key) = (harness.env.inbox.database.engine.url, key_pair()[0])
    monkeypatch.setattr("os.environ", dict(os.environ))
    for name, value in {
        "APP_ID": str(APP),
        "PRIVATE_KEY": key,
        "API_URL": harness.github.url,
        "SERVER_URL": harness.git.url,
        "DATA": str(Path(str(url.database)).parent),
        "ORGANISATION": str(index.folder),
    }.items():
        monkeypatch.setitem(os.environ, f"PRECEDENT_{name}", value)
    result = rebuild_on_server(ServerArguments(), [], as_json=True, header=True)
    assert result == (
        [{"installation": index.installation, "repositories": 1, "threads": 2, "unread": []}],
        0,
    )
    assert "PRECEDENT_PRIVATE_KEY" not in os.environ
    monkeypatch.setitem(os.environ, "PRECEDENT_PRIVATE_KEY", key)
    index.harness.git.access = lambda token, name: None
    text, code = rebuild_on_server(ServerArguments(), [index.installation], as_json=False, header=False)
    assert code == 1
    assert [line.split("\t")[:2] for line in str(text).splitlines()] == [
        [str(index.installation), "0"],
        [str(index.installation), "octo-org/sdk"],
    ]


def test_a_rebuild_by_command_without_an_index_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"PRECEDENT_APP_ID": "1", "PRECEDENT_PRIVATE_KEY": key_pair()[0]})
    with pytest.raises(UserError, match="--organisation"):
        rebuild_on_server(ServerArguments(), [], as_json=False, header=False)
