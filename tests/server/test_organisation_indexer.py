"""What runs change gets into the organisation's index, over LanceDB in a folder, whatever happens in between."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bot.cli.commands.org_server import rebuild_on_server
from bot.domain.answer import OrganisationKey
from bot.domain.organisation import OrganisationThread
from bot.errors import UserError
from bot.organisation.lance import COMPACT_SECONDS
from bot.recall.candidates import Candidates, OrganisationUnavailable
from bot.server.options import ServerOptions
from bot.server.organisation_changes import FIRST_PAUSE, LONGEST_PAUSE, PURGE_AFTER, queue_key
from bot.server.organisation_guard import REPAIR_AFTER, REST, OrganisationGuard
from bot.server.organisation_rebuild import RebuildResult, rebuild_installation
from bot.server.organisation_register import OrganisationRegister
from bot.server.resync import Resync
from bot.server.worker import HANGING
from tests.fakes.payloads import EventfulProject
from tests.github.keys import key_pair
from tests.server.organisation import TownIndex
from tests.server.places import APP
from tests.server.queues import keys
from tests.server.town import Town

QUESTION = "Where should sessions live?"


@pytest.fixture
def sdk(town: Town) -> EventfulProject:
    return town.project("octo-org/sdk", "PostgreSQL")


@pytest.fixture
def index(town: Town, sdk: EventfulProject, tmp_path: Path) -> TownIndex:
    """The sdk has been read, and its memory waits to be indexed: an issue of its owner, and one of a stranger, which is
    shown nowhere else."""
    number = town.github.tenants.install("octo-org", ["octo-org/sdk"])
    found = TownIndex(town, tmp_path / "index", number)
    found.align()
    town.ask(sdk)
    town.settle()
    return found


def titles(index: TownIndex, *projects: EventfulProject) -> list[str]:
    return sorted(one.thread.title for one in index.search("sessions store", *projects))


def shut(town: Town, name: str) -> Callable[[], None]:
    """Nobody may read the git of this repository until the returned function is called."""
    may = town.git.access
    town.git.access = lambda token, full_name: None if full_name == name else may(token, full_name)

    def open_again() -> None:
        town.git.access = may

    return open_again


def test_what_a_repository_knows_is_found_and_so_is_what_comes_later(
    index: TownIndex, town: Town, sdk: EventfulProject
) -> None:
    index.work()
    assert titles(index, sdk) == [QUESTION]
    (found,) = index.search("sessions live", sdk)[:1]
    assert (found.thread.name, found.thread.url) == ("octo-org/sdk", f"{town.git.url}/octo-org/sdk/issues/1")
    assert index.waiting() == 0
    assert queue_key(index.installation) not in keys(town.here.inbox)
    number = sdk.open_issue("octo-org", "Sessions are lost", "The session store forgets them.")
    town.tell(sdk, number)
    town.settle()
    index.work()
    assert "Sessions are lost" in titles(index, sdk)
    assert index.told[-1] == (town.repository(sdk), [number])


def test_an_issue_that_is_deleted_is_not_found_any_more(index: TownIndex, town: Town, sdk: EventfulProject) -> None:
    index.work()
    register, app, key = OrganisationRegister(town.here.inbox), town.repository(sdk), OrganisationKey(sdk.repo.id, 1)
    register.add_shown(app, 5, [key])
    sdk.delete_issue(1)
    town.here.arrive(town.repository(sdk), "issues", "deleted", 1)
    town.settle()
    assert register.filter_shown(app, 5, [key]) == [key]
    index.work()
    assert QUESTION not in titles(index, sdk)
    assert index.told[-1] == (town.repository(sdk), [1])
    assert register.filter_shown(app, 5, [key]) == [], "no comment may keep it"


@pytest.mark.parametrize("action", ["edited", "deleted"])
def test_a_quotation_goes_with_the_words_that_its_author_took_back(
    index: TownIndex, town: Town, sdk: EventfulProject, action: str
) -> None:
    index.work()
    (before,) = index.search("sessions live", sdk)[:1]
    assert "PostgreSQL" in before.thread.outcome.quote
    (said,) = (comment.id for comment in sdk.issue(1).comments)
    if action == "edited":
        sdk.edit_comment(said, "I was wrong.")
    else:
        sdk.delete_comment(said)
    town.here.arrive(town.repository(sdk), "issue_comment", action, 1, comment_id=said)
    town.settle()
    index.work()
    (after,) = index.search("sessions live", sdk)[:1]
    assert "PostgreSQL" not in str(after.thread)
    assert index.told[-1] == (town.repository(sdk), [1]), "comments elsewhere are worked out again"


def test_two_repositories_are_in_one_index_and_another_installation_in_its_own(
    index: TownIndex, town: Town, sdk: EventfulProject
) -> None:
    strange = town.project("octocat/app", "Redis")
    other = TownIndex(town, index.folder, town.github.tenants.install("octocat", ["octocat/app"]))
    town.ask(strange)
    town.settle()
    index.work()
    other.work()
    assert titles(index, sdk, strange) == titles(other, sdk, strange) == [QUESTION]
    assert {one.thread.repository for one in other.search("session", sdk, strange)} == {strange.repo.id}


def test_a_repository_that_is_gone_or_left_out_is_erased(index: TownIndex, town: Town, sdk: EventfulProject) -> None:
    index.work()
    options = town.dependencies.options
    town.dependencies = replace(town.dependencies, options=replace(options, exclude=("octo-org/sdk",)))
    assert index.align() == 1
    index.work()
    assert titles(index, sdk) == []
    town.dependencies = replace(town.dependencies, options=options)
    assert index.align() == 1
    index.work()
    assert titles(index, sdk) == [QUESTION]
    town.here.inbox.installations().mark_gone(town.repository(sdk), "deleted")
    index.work()
    assert titles(index, sdk) == []


def test_a_memory_that_cannot_be_read_waits_and_keeps_no_other_waiting(
    index: TownIndex, town: Town, sdk: EventfulProject, caplog: pytest.LogCaptureFixture
) -> None:
    open_again = shut(town, "octo-org/sdk")
    app = town.project("octo-org/app", "Redis")
    town.github.tenants.add(index.installation, ["octo-org/app"])
    town.ask(app)
    town.settle()
    with caplog.at_level(logging.WARNING):
        index.work()
    assert titles(index, sdk, app) == [QUESTION]
    assert "read again" in caplog.text
    assert index.waiting() == 1
    open_again()
    town.pass_time(FIRST_PAUSE / 1000)
    index.work()
    assert len(titles(index, sdk, app)) == 2
    assert index.waiting() == 0


class Dying(BaseException):
    """The end of a process."""


class Failing:
    """An index whose calls fail in turn as ``faults`` say: None for one that goes well."""

    def __init__(self, index: Candidates, faults: list[BaseException | None]) -> None:
        self._index = index
        self._faults = faults

    def __getattr__(self, name: str) -> object:
        fault = self._faults.pop(0) if self._faults else None
        if fault:
            raise fault
        return getattr(self._index, name)


@pytest.mark.parametrize("calls", range(4))
def test_whoever_dies_between_two_steps_has_them_done_again(
    index: TownIndex, town: Town, sdk: EventfulProject, calls: int
) -> None:
    """The erasing and the two writes: the process ends at each of them, and goes on later."""
    faults: list[BaseException | None] = [*[None] * calls, Dying()]
    index.wrap = lambda found: Failing(found, faults)  # type: ignore[assignment, return-value]
    try:
        index.work()
    except Dying:
        with town.here.inbox.database.transaction() as dying:
            dying.change("update queue set due = 0, ready = 1, lease = '', owner = ''")
    town.pass_time(FIRST_PAUSE / 1000)
    index.work()
    assert titles(index, sdk) == [QUESTION]
    assert index.waiting() == 0


def test_an_engine_that_is_down_is_told_once_and_heals(
    index: TownIndex, town: Town, sdk: EventfulProject, caplog: pytest.LogCaptureFixture
) -> None:
    down: list[BaseException | None] = [OrganisationUnavailable("no route to host") for _ in range(3)]
    index.wrap = lambda found: Failing(found, down)  # type: ignore[assignment, return-value]
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            index.work()
            assert not index.guard.is_up
            index.work()  # it rests
            town.pass_time(max(REST, FIRST_PAUSE / 1000 * 4))
        assert caplog.text.count("no route to host") == 1
        town.pass_time(LONGEST_PAUSE / 1000)
        index.work()
    assert index.guard.is_up
    assert caplog.text.count("answers again") == 1
    assert titles(index, sdk) == [QUESTION]


@pytest.mark.parametrize("damaged", ["**/*", "threads-*/**/*"])
def test_a_damaged_index_is_made_again_by_itself(
    index: TownIndex, town: Town, sdk: EventfulProject, damaged: str
) -> None:
    index.work()
    for file in (index.folder / str(index.installation)).glob(damaged):
        if file.is_file():
            file.write_bytes(b"damaged")
    number = sdk.open_issue("octo-org", "Sessions are lost", "The session store forgets them.")
    town.tell(sdk, number)
    town.settle()
    spent = 0.0
    while spent <= REPAIR_AFTER + LONGEST_PAUSE / 1000 and index.waiting():
        index.work()
        town.pass_time(REST)
        spent += REST
    assert titles(index, sdk) == ["Sessions are lost", QUESTION]


def test_an_index_that_somebody_deleted_is_made_again_at_the_next_change(
    index: TownIndex, town: Town, sdk: EventfulProject
) -> None:
    index.work()
    shutil.rmtree(index.folder)
    index.guard = OrganisationGuard(index._open, town.here.inbox.count_up)  # a process of another container
    number = sdk.open_issue("octo-org", "Sessions are lost", "The session store forgets them.")
    town.tell(sdk, number)
    town.settle()
    index.work()
    assert titles(index, sdk) == ["Sessions are lost", QUESTION]


def test_the_words_of_people_leave_the_index_when_the_settings_name_them(
    index: TownIndex, town: Town, sdk: EventfulProject
) -> None:
    index.work()
    assert index.search("slow", sdk)
    town.git.commit("octo-org/sdk", ".github/precedent.yml", "ignore:\n  people: [octo-org]\n")
    town.ask(sdk)
    town.settle()
    index.work()
    assert QUESTION in titles(index, sdk)
    assert not index.search("slow", sdk)


def holds(index: TownIndex, words: str) -> bool:
    return any(words.encode() in file.read_bytes() for file in index.folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("way", ["deleted", "gone", "ignored"])
def test_what_is_forgotten_leaves_the_files_within_an_hour(
    index: TownIndex, town: Town, sdk: EventfulProject, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("bot.organisation.lance.READERS_LEAVE", timedelta(milliseconds=1))
    secret, key = "zqxjkvbp", queue_key(index.installation)
    number = sdk.open_issue("octo-org", "Sessions", " ".join([secret * 20, *(secret + each for each in QUESTION)]))
    for each in range(3):
        sdk.open_issue("octo-org", f"Sessions {each}", "They are lost.")
    town.tell(sdk, number)
    town.settle()
    index.work()
    assert holds(index, secret)
    assert key not in keys(town.here.inbox), "nothing is forgotten yet"
    if way == "deleted":
        sdk.delete_issue(number)
        town.here.arrive(town.repository(sdk), "issues", "deleted", number)
    elif way == "ignored":
        town.git.commit("octo-org/sdk", ".github/precedent.yml", "ignore:\n  people: [octo-org]\n")
        town.ask(sdk)
    else:
        town.here.inbox.installations().mark_gone(town.repository(sdk), "deleted")
    town.settle()
    index.work()
    assert titles(index, sdk) == [] if way == "gone" else titles(index, sdk)
    down: list[BaseException | None] = [None, OrganisationUnavailable("no route to host")]
    index.wrap = lambda found: Failing(found, down)  # type: ignore[assignment, return-value]
    index.guard = OrganisationGuard(index._open, town.here.inbox.count_up, lambda: town.here.clock.now / 1000)
    for turn in range(3):  # the first fails
        assert key in keys(town.here.inbox)
        assert turn > 1 or holds(index, secret)
        town.pass_time(PURGE_AFTER / 1000 * (1, 2, 1)[turn])
        index.work()
        index.work()  # it is not tried twice
    assert not holds(index, secret)
    assert key not in keys(town.here.inbox)


def test_an_issue_that_is_hidden_for_a_moment_is_not_forgotten(
    index: TownIndex, town: Town, sdk: EventfulProject
) -> None:
    index.work()
    sdk.hide_issue(1)
    town.tell(sdk, 1)
    town.settle()
    index.work()
    assert titles(index, sdk) == []
    assert queue_key(index.installation) not in keys(town.here.inbox), "no file need be written again"


def test_a_compaction_is_given_up_before_its_worker_counts_as_hung() -> None:
    assert COMPACT_SECONDS < HANGING


def test_a_large_memory_is_read_in_parts(
    index: TownIndex, town: Town, sdk: EventfulProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.server.organisation_changes.MOST_CHANGED", 1)
    monkeypatch.setattr("bot.server.organisation_changes.AT_ONCE", 1)
    index.work()
    assert titles(index, sdk) == [QUESTION]
    assert {tuple(threads) for _, threads in index.told} == {(1,), (2,)}


def test_a_worker_without_an_index_leaves_the_changes_to_others(index: TownIndex, town: Town) -> None:
    guard, index.guard = index.guard, None  # type: ignore[assignment]
    index.work()
    index.guard = guard
    assert index.waiting() == 1


# -- the rebuild -----------------------------------------------------------------------------------------------------


def test_an_index_is_made_again_from_the_branches(index: TownIndex, town: Town, sdk: EventfulProject) -> None:
    index.work()
    found = rebuild_installation(index.installation, index.dependencies)
    assert found == RebuildResult(index.installation, 1, 2)
    assert titles(index, sdk) == [QUESTION]
    assert queue_key(index.installation) not in keys(town.here.inbox)


def test_what_changes_while_an_index_is_made_again_is_in_the_new_one_afterwards(
    index: TownIndex, town: Town, sdk: EventfulProject
) -> None:
    index.work()

    def meanwhile(_: int) -> None:
        number = sdk.open_issue("octo-org", "Sessions are lost", "The session store forgets them.")
        town.tell(sdk, number)
        town.settle()
        assert town.here.inbox.queue.claim_key("another", queue_key(index.installation)) is None

    rebuild_installation(index.installation, index.dependencies, meanwhile)
    index.work()
    assert "Sessions are lost" in titles(index, sdk)
    assert index.told[-1][0] == town.repository(sdk)


def test_a_memory_that_cannot_be_read_is_named_and_read_later(
    index: TownIndex, town: Town, sdk: EventfulProject
) -> None:
    index.work()
    open_again = shut(town, "octo-org/sdk")
    found = rebuild_installation(index.installation, index.dependencies)
    assert [name for name, _ in found.unread] == ["octo-org/sdk"]
    assert titles(index, sdk) == []
    open_again()
    index.work()
    assert titles(index, sdk) == [QUESTION]


def test_a_rebuild_whose_lease_is_lost_changes_nothing(
    index: TownIndex, town: Town, sdk: EventfulProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.work()
    monkeypatch.setattr("bot.server.organisation_rebuild.RENEWAL", 0.01)

    def loses(_: int) -> None:
        with town.here.inbox.database.transaction() as losing:
            losing.change("update queue set owner = 'another', lease = 'another'")
        town.stop.wait(1.0)

    with pytest.raises(OrganisationUnavailable, match="another process"):
        rebuild_installation(index.installation, index.dependencies, loses)
    assert titles(index, sdk) == [QUESTION]


def test_a_rebuild_whose_lease_is_lost_ends_within_a_memory(
    index: TownIndex, town: Town, sdk: EventfulProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.work()
    monkeypatch.setattr("bot.server.organisation_rebuild.RENEWAL", 0.01)
    read = []

    class Losing(Failing):
        def rebuild(self, threads: Iterable[OrganisationThread]) -> None:
            for each in threads:
                read.append(each.id)
                with town.here.inbox.database.transaction() as losing:
                    losing.change("update queue set owner = 'another', lease = 'another'")
                town.stop.wait(1.0)

    index.wrap = lambda found: Losing(found, [])  # type: ignore[assignment, return-value]
    index.guard = OrganisationGuard(index._open, town.here.inbox.count_up)
    with pytest.raises(OrganisationUnavailable, match="another process"):
        rebuild_installation(index.installation, index.dependencies)
    assert len(read) == 1


def test_a_resync_switches_the_index_on_and_off(town: Town, sdk: EventfulProject, tmp_path: Path) -> None:
    number = town.github.tenants.install("octo-org", ["octo-org/sdk"])
    town.ask(sdk)
    town.settle()
    index = TownIndex(town, tmp_path / "index", number)
    assert index.changes.backlog() is None

    def swept(options: ServerOptions) -> None:
        here = town.here
        Resync(here.api, here.inbox, options, here.tokens, here.forgotten.append).run(here.clock.now)

    swept(index.dependencies.options)
    assert index.waiting() == 1
    index.work()
    assert titles(index, sdk) == [QUESTION]
    swept(town.dependencies.options)
    assert index.changes.backlog() is None


def test_the_operator_makes_the_index_again(
    index: TownIndex,
    town: Town,
    sdk: EventfulProject,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command, in the town's own database and with the town's App."""
    index.work()
    (url, key) = (town.here.inbox.database.engine.url, key_pair()[0])
    monkeypatch.setattr("os.environ", dict(os.environ))
    for name, value in {
        "APP_ID": str(APP),
        "PRIVATE_KEY": key,
        "API_URL": town.github.url,
        "SERVER_URL": town.git.url,
        "DATA": str(Path(str(url.database)).parent),
        "ORGANISATION": str(index.folder),
    }.items():
        monkeypatch.setitem(os.environ, f"PRECEDENT_{name}", value)
    given = argparse.Namespace(installation=[], json=True, header=True)
    found = rebuild_on_server(given)
    assert found == (
        [{"installation": index.installation, "repositories": 1, "threads": 2, "unread": []}],
        0,
    )
    assert "PRECEDENT_PRIVATE_KEY" not in os.environ
    monkeypatch.setitem(os.environ, "PRECEDENT_PRIVATE_KEY", key)
    index.town.git.access = lambda token, name: None
    given = argparse.Namespace(installation=[index.installation], json=False, header=False)
    shown, code = rebuild_on_server(given)
    assert code == 1
    assert [line.split("\t")[:2] for line in str(shown).splitlines()] == [
        [str(index.installation), "0"],
        [str(index.installation), "octo-org/sdk"],
    ]


def test_the_operator_is_told_that_there_is_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"PRECEDENT_APP_ID": "1", "PRECEDENT_PRIVATE_KEY": key_pair()[0]})
    with pytest.raises(UserError, match="--organisation"):
        rebuild_on_server(argparse.Namespace())
