"""Issues that a rebuild does not find are looked up: only those that GitHub calls gone are removed from memory."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from bot.domain.changes import Changes, HistoryProgress
from bot.domain.thread import Thread, Tombstone
from bot.github.history import PAGE_SIZES
from bot.memory.branch_store import BranchStore
from bot.pipeline.rebuild import MAX_LOOKUPS
from tests.acceptance.stage import REPOSITORY, Stage, rebuild, summary

pytestmark = pytest.mark.slow
GRAPHQL = "POST /graphql"


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """Three issues, remembered by a rebuild an hour ago."""
    return empty_stage.begin(remember_three)


def remember_three(stage: Stage) -> None:
    for count in range(1, 4):
        stage.github.open_issue("octocat", f"Crash {count}", at=f"2026-01-01T00:00:0{count}Z")
    assert rebuild(stage) == 0
    stage.github.clock.advance(3600)


def titles_in_memory(stage: Stage, *numbers: int) -> dict[int, str]:
    """What memory has for each issue: the title of its thread, or the reason of its tombstone."""
    records = stage.memory().records(numbers or (1, 2, 3))
    return {
        number: record.title if isinstance(record, Thread) else f"({record.reason})"
        for number, record in records.items()
        if isinstance(number, int)
    }


def lookups(stage: Stage) -> int:
    """How many issues the last run requested by their numbers."""
    return sum(request.path.endswith("/issues/{issue_number}") for request in stage.github.recent)


UNCHANGED = {1: "Crash 1", 2: "Crash 2", 3: "Crash 3"}


def test_a_listed_issue_that_cannot_be_read_for_a_moment_stays(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "drop", len(PAGE_SIZES))
    stage.github.faults.add("GET */issues/2", "404")
    assert rebuild(stage) == 0
    assert stage.github.faults.injected[-1][0] == "404"
    assert titles_in_memory(stage) == UNCHANGED
    assert lookups(stage) == 3, "it was listed, so that there was nothing to ask about"


def test_an_issue_that_is_gone_when_it_is_read_on_its_own_becomes_a_tombstone(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "drop", len(PAGE_SIZES))
    stage.github.faults.add("GET */issues/2", "410")
    assert rebuild(stage) == 0
    assert titles_in_memory(stage) == UNCHANGED | {2: "(deleted)"}


def test_switching_issues_off_during_lookups_removes_nothing_from_memory(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "empty")
    stage.github.faults.add("GET */issues/*", "issues-off")
    assert rebuild(stage) == 0
    assert "switched off" in summary(stage)
    assert titles_in_memory(stage) == UNCHANGED


def test_an_empty_list_removes_nothing_and_issues_that_are_looked_up_are_updated(stage: Stage) -> None:
    stage.github.edit_issue(2, title="Hang")
    stage.github.faults.add(GRAPHQL, "empty")
    assert rebuild(stage) == 0
    assert "Missing from the history: 3; gone from GitHub: 0; not checked yet: 0." in summary(stage)
    assert titles_in_memory(stage) == UNCHANGED | {2: "Hang"}


def test_a_missing_issue_whose_record_is_damaged_is_looked_up_too(stage: Stage) -> None:
    with BranchStore(f"{stage.git.url}/{REPOSITORY}.git", "precedent", stage.git.token) as store:
        store.write(store.open(), {"records/0000/2.json": b"{"}, "Damage")
    stage.github.faults.add(GRAPHQL, "empty")
    assert rebuild(stage) == 0
    assert lookups(stage) == 3
    assert titles_in_memory(stage) == UNCHANGED


def test_hidden_issues_of_a_suspected_spammer_stay_and_are_updated_when_they_return(stage: Stage) -> None:
    stage.github.hide_issue(2)
    for _ in range(2):
        assert rebuild(stage) == 0
        assert "gone from GitHub: 0" in summary(stage)
        assert lookups(stage) == 1
        stage.github.clock.advance(3600)
    assert titles_in_memory(stage) == UNCHANGED
    stage.github.show_issue(2)
    stage.github.edit_issue(2, title="Not spam")
    assert rebuild(stage) == 0
    assert titles_in_memory(stage) == UNCHANGED | {2: "Not spam"}


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(minutes=5)], ids=["a damaged mark", "a clock that is ahead"])
def test_a_reading_that_does_not_know_which_issues_it_has_seen_removes_nothing(stage: Stage, ahead: timedelta) -> None:
    number = stage.github.open_issue("hubot", "Again", "As in #1.")
    assert stage.act("issues", "opened", number) == 0
    now = datetime.fromisoformat(stage.github.clock.now)
    memory = stage.memory(writable=True)
    memory.stage(Changes(reading=HistoryProgress(now + ahead, memory.state.manifest.cursor)))
    memory.commit("A reading that is nearly at its end")
    assert stage.act("schedule") == 0
    assert titles_in_memory(stage, 1, 2, 3, number) == UNCHANGED | {number: "Again"}
    assert stage.memory().state.manifest.reading is None


def test_a_deleted_issue_becomes_a_tombstone_even_if_the_runners_clock_is_behind(stage: Stage) -> None:
    stage.github.edit_issue(2, title="From later", at="2026-01-06T12:00:00Z")
    assert stage.act("schedule") == 0
    stage.github.delete_issue(2)
    stage.github.clock.now = "2026-01-06T11:57:00Z"  # the runner's clock
    memory = stage.memory(writable=True)
    memory.stage(
        Changes(reading=HistoryProgress(datetime.fromisoformat("2026-01-06T12:01:00Z"), memory.state.manifest.cursor))
    )
    memory.commit("A reading that is nearly at its end")
    assert stage.act("schedule") == 0
    assert titles_in_memory(stage)[2] == "(deleted)"


def test_a_limit_during_lookups_keeps_the_rebuild_open_and_no_lookup_is_repeated(stage: Stage) -> None:
    stage.github.hide_issue(1)
    stage.github.delete_issue(2)
    stage.github.delete_issue(3)
    stage.github.faults.add("GET */issues/*", "primary403", None, after=2)
    assert rebuild(stage) == 0
    assert "The rebuild is not finished" in summary(stage)
    assert "gone from GitHub: 1; not checked yet: 1." in summary(stage)
    assert lookups(stage) == 3
    assert stage.memory().state.manifest.reading is not None
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    stage.github.mark()
    assert stage.act("schedule") == 0
    assert lookups(stage) == 1
    assert titles_in_memory(stage) == {1: "Crash 1", 2: "(deleted)", 3: "(deleted)"}
    assert stage.memory().state.manifest.reading is None


def test_an_issue_whose_lookup_fails_stays_as_it_is(stage: Stage) -> None:
    stage.github.delete_issue(1)
    stage.github.hide_issue(2)
    stage.github.faults.add("GET */issues/2", "5xx", None)
    assert rebuild(stage) == 0
    assert titles_in_memory(stage) == UNCHANGED | {1: "(deleted)"}
    assert stage.memory().state.manifest.reading is None


def test_the_tombstone_of_a_transferred_issue_says_where_it_went(stage: Stage) -> None:
    other = stage.github.add_project("octo-org/other")
    new_number = stage.github.transfer(2, other, "octocat")
    assert rebuild(stage) == 0
    record = stage.memory().records([2])[2]
    assert isinstance(record, Tombstone)
    assert (record.reason, record.moved_to) == ("transferred", f"octo-org/other#{new_number}")


def test_a_dry_run_reports_what_is_gone_and_removes_nothing(stage: Stage) -> None:
    stage.github.delete_issue(1)
    pushes = stage.git.pushes
    stage.github.mark()
    assert rebuild(stage, **{"dry-run": "true"}) == 0
    assert "Missing from the history: 1; gone from GitHub: 1; not checked yet: 0." in summary(stage)
    assert titles_in_memory(stage) == UNCHANGED
    assert (stage.github.writes, stage.git.pushes) == (0, pushes)


@pytest.mark.night
def test_one_run_makes_a_limited_number_of_lookups_and_the_next_runs_the_rest(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    spam = [stage.github.open_issue("octocat", f"Spam {count}") for count in range(MAX_LOOKUPS + 2)]
    assert rebuild(stage) == 0
    for number in spam:
        stage.github.delete_issue(number)
    stage.github.clock.advance(3600)
    assert rebuild(stage) == 0
    assert lookups(stage) == MAX_LOOKUPS
    assert f"50 of {MAX_LOOKUPS} missing threads checked" in capsys.readouterr().out
    assert f"gone from GitHub: {MAX_LOOKUPS}; not checked yet: 2." in summary(stage)
    stage.github.clock.advance(3600)
    assert stage.act("schedule") == 0
    assert set(titles_in_memory(stage, *spam).values()) == {"(deleted)"}
    assert titles_in_memory(stage) == UNCHANGED


def test_a_removal_that_a_limit_hid_is_found_by_a_scheduled_run(stage: Stage) -> None:
    """The event says so only once, and no list shows what is gone."""
    number = stage.github.open_issue("octocat", "Lost")
    stage.deliver("issues", "opened", number)
    stage.github.delete_issue(number)
    stage.github.faults.add("GET *", "primary403")
    stage.act("issues", "deleted", number)
    assert number in stage.memory().state.manifest.hidden_by_github
    stage.github.clock.advance(2 * 3600)
    stage.deliver("schedule")
    memory = stage.memory()
    assert isinstance(memory.state.records([number])[number], Tombstone)
    assert number not in memory.state.manifest.hidden_by_github
