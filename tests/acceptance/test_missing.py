"""What a rebuild does not meet is asked about: only what GitHub calls gone is taken out of memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bot.domain.changes import Changes, HistoryProgress
from bot.domain.thread import Thread, Tombstone
from bot.github.history import SIZES
from bot.pipeline.rebuild import MAX_LOOKUPS
from tests.acceptance.stage import Stage, rebuild, summary

pytestmark = pytest.mark.slow
GRAPHQL = "POST /graphql"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Three issues, remembered by a rebuild an hour ago."""
    with Stage(tmp_path) as stage:
        for count in range(1, 4):
            stage.github.open_issue("octocat", f"Crash {count}", at=f"2026-01-01T00:00:0{count}Z")
        assert rebuild(stage) == 0
        stage.github.clock.advance(3600)
        yield stage


def held(stage: Stage, *numbers: int) -> dict[int, str]:
    """What memory has of each: the title of a thread, else the reason of a tombstone."""
    records = stage.memory().records(numbers or (1, 2, 3))
    return {
        number: record.title if isinstance(record, Thread) else f"({record.reason})"
        for number, record in records.items()
        if isinstance(number, int)
    }


def asked_about(stage: Stage) -> int:
    """Issues that the last run asked for by their numbers."""
    return sum(request.path.endswith("/issues/{issue_number}") for request in stage.github.recent)


ALL = {1: "Crash 1", 2: "Crash 2", 3: "Crash 3"}


def test_an_issue_that_was_listed_and_cannot_be_read_for_a_moment_stays(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "drop", len(SIZES))
    stage.github.faults.add("GET */issues/2", "404")
    assert rebuild(stage) == 0
    assert stage.github.faults.injected[-1][0] == "404"
    assert held(stage) == ALL
    assert asked_about(stage) == 3, "it was listed, so that there was nothing to ask about"


def test_an_issue_that_is_gone_when_it_is_read_by_itself_is_a_tombstone(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "drop", len(SIZES))
    stage.github.faults.add("GET */issues/2", "410")
    assert rebuild(stage) == 0
    assert held(stage) == ALL | {2: "(deleted)"}


def test_switched_off_issues_are_not_gone(stage: Stage) -> None:
    stage.github.switch_issues(on=False)
    assert rebuild(stage) == 0
    assert "switched off" in summary(stage)
    assert held(stage) == ALL
    stage.github.switch_issues(on=True)
    assert rebuild(stage) == 0
    assert held(stage) == ALL
    assert stage.memory().state.manifest.reading is None


def test_issues_that_are_switched_off_while_they_are_asked_about_stay(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "empty")
    stage.github.faults.add("GET */issues/*", "issues-off")
    assert rebuild(stage) == 0
    assert "switched off" in summary(stage)
    assert held(stage) == ALL


def test_an_empty_list_takes_nothing_away_and_what_is_asked_about_is_remembered_as_it_is_now(stage: Stage) -> None:
    stage.github.edit_issue(2, title="Hang")
    stage.github.faults.add(GRAPHQL, "empty")
    assert rebuild(stage) == 0
    assert "Missing from the history: 3; gone from GitHub: 0; not checked yet: 0." in summary(stage)
    assert held(stage) == ALL | {2: "Hang"}


def test_issues_of_an_author_who_is_held_for_a_spammer_stay_and_are_told_of_when_they_come_back(stage: Stage) -> None:
    stage.github.hide_issue(2)
    for _ in range(2):
        assert rebuild(stage) == 0
        assert "gone from GitHub: 0" in summary(stage)
        assert asked_about(stage) == 1
        stage.github.clock.advance(3600)
    assert held(stage) == ALL
    stage.github.show_issue(2)
    stage.github.edit_issue(2, title="Not spam")
    assert rebuild(stage) == 0
    assert held(stage) == ALL | {2: "Not spam"}


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(minutes=5)], ids=["a damaged mark", "a clock that is ahead"])
def test_a_reading_that_does_not_know_what_it_met_takes_nothing_away(stage: Stage, ahead: timedelta) -> None:
    number = stage.github.open_issue("hubot", "Again", "As in #1.")
    assert stage.act("issues", "opened", number) == 0
    now = datetime.fromisoformat(stage.github.clock.now)
    memory = stage.memory()
    memory.stage(Changes(reading=HistoryProgress(now + ahead, memory.state.manifest.cursor)))
    memory.commit("A reading that is nearly at its end")
    assert stage.act("schedule") == 0
    assert held(stage, 1, 2, 3, number) == ALL | {number: "Again"}
    assert stage.memory().state.manifest.reading is None


def test_a_thread_that_is_gone_by_a_clock_ahead_of_the_runners_is_a_tombstone(stage: Stage) -> None:
    stage.github.edit_issue(2, title="From tomorrow", at="2026-01-06T12:00:00Z")
    assert stage.act("schedule") == 0
    stage.github.delete_issue(2)
    stage.github.clock.now = "2026-01-05T13:00:00Z"  # by which the runner goes
    memory = stage.memory()
    memory.stage(
        Changes(reading=HistoryProgress(datetime.fromisoformat("2026-01-07T12:00:00Z"), memory.state.manifest.cursor))
    )
    memory.commit("A reading that is nearly at its end")
    assert stage.act("schedule") == 0
    assert held(stage)[2] == "(deleted)"


def test_a_limit_while_it_asks_keeps_the_rebuild_open_and_nothing_is_asked_twice(stage: Stage) -> None:
    stage.github.hide_issue(1)
    stage.github.delete_issue(2)
    stage.github.delete_issue(3)
    stage.github.faults.add("GET */issues/*", "primary403", None, after=2)
    assert rebuild(stage) == 0
    assert "The rebuild is not finished" in summary(stage)
    assert "gone from GitHub: 1; not checked yet: 1." in summary(stage)
    assert asked_about(stage) == 3
    assert stage.memory().state.manifest.reading is not None
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    stage.github.mark()
    assert stage.act("schedule") == 0
    assert asked_about(stage) == 1
    assert held(stage) == {1: "Crash 1", 2: "(deleted)", 3: "(deleted)"}
    assert stage.memory().state.manifest.reading is None


def test_an_outage_of_one_issue_leaves_it_as_it_is(stage: Stage) -> None:
    stage.github.delete_issue(1)
    stage.github.hide_issue(2)
    stage.github.faults.add("GET */issues/2", "5xx", None)
    assert rebuild(stage) == 0
    assert held(stage) == ALL | {1: "(deleted)"}
    assert stage.memory().state.manifest.reading is None


def test_a_transferred_issue_is_told_where_it_went(stage: Stage) -> None:
    other = stage.github.add_project("octo-org/other")
    there = stage.github.transfer(2, other, "octocat")
    assert rebuild(stage) == 0
    gone = stage.memory().records([2])[2]
    assert isinstance(gone, Tombstone)
    assert (gone.reason, gone.moved_to) == ("transferred", f"octo-org/other#{there}")


def test_a_dry_run_tells_what_is_gone_and_writes_nothing(stage: Stage) -> None:
    stage.github.delete_issue(1)
    assert rebuild(stage, **{"dry-run": "true"}) == 0
    assert "Missing from the history: 1; gone from GitHub: 1; not checked yet: 0." in summary(stage)
    assert held(stage) == ALL


def test_one_run_asks_about_so_many_and_the_next_ones_about_the_rest(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [stage.github.open_issue("octocat", f"Spam {count}") for count in range(MAX_LOOKUPS + 2)]
    assert rebuild(stage) == 0
    for number in more:
        stage.github.delete_issue(number)
    stage.github.clock.advance(3600)
    assert rebuild(stage) == 0
    assert asked_about(stage) == MAX_LOOKUPS
    assert f"50 of {MAX_LOOKUPS} missing threads checked" in capsys.readouterr().out
    assert f"gone from GitHub: {MAX_LOOKUPS}; not checked yet: 2." in summary(stage)
    stage.github.clock.advance(3600)
    assert stage.act("schedule") == 0
    assert set(held(stage, *more).values()) == {"(deleted)"}
    assert held(stage) == ALL
