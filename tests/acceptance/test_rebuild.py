"""A rebuild that a limit, a fault or the end of a run cut short is continued, and ends as one in one go does."""

from __future__ import annotations

from datetime import datetime

import pytest

from bot.domain.thread import Thread, Tombstone
from bot.domain.thread_json import parse_time
from bot.github.history import PER_PAGE
from tests.acceptance.stage import Stage, graph_requests, rebuild, summary, with_issues

pytestmark = pytest.mark.slow
FULL = 3 * PER_PAGE
"""Issues: three requests for fifty each."""


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    return with_issues(empty_stage, FULL)


def test_a_limit_ends_it_cleanly_and_the_schedule_goes_on_from_there(stage: Stage) -> None:
    stage.github.faults.add("POST /graphql", "primary403", None, after=2)
    assert rebuild(stage) == 0
    assert "The rebuild is not finished" in summary(stage)
    assert "UTC" in summary(stage)
    memory = stage.memory()
    assert (memory.state.manifest.threads, memory.state.manifest.reading is None) == (2 * PER_PAGE, False)
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    stage.github.mark()
    assert stage.act("schedule") == 0
    assert "UTC continues." in summary(stage)
    assert graph_requests(stage) <= 2
    memory = stage.memory()
    assert (memory.state.manifest.threads, memory.state.manifest.reading) == (FULL, None)
    assert memory.state.manifest.read_whole == datetime.fromisoformat("2026-01-05T12:00:00+00:00")


def test_what_went_while_it_was_cut_short_is_buried_in_the_end(stage: Stage) -> None:
    assert rebuild(stage) == 0
    stage.github.clock.advance(3600)
    for number in (1, FULL):  # one that the first part would have met, one of the second; no event tells of it
        stage.github.delete_issue(number)
    stage.github.faults.add("POST /graphql", "429", None, after=1, seconds=3600)
    assert rebuild(stage) == 0
    stage.github.faults.clear()
    assert isinstance(stage.memory().records([1])[1], Thread)
    stage.github.clock.advance(3600)
    assert rebuild(stage) == 0
    found = stage.memory().records([1, 2, FULL])
    assert [type(found[number]) for number in (1, 2, FULL)] == [Tombstone, Thread, Tombstone]


def test_an_event_between_is_answered_first_and_reads_on_after_it(stage: Stage) -> None:
    stage.github.faults.add("POST /graphql", "primary403", 1, after=1)
    assert rebuild(stage) == 0
    number = stage.github.open_issue("hubot", "Again", "As in #1")
    assert stage.act("issues", "opened", number) == 0
    assert len(stage.comments(number)) == 1
    memory = stage.memory()
    assert memory.state.manifest.threads == FULL + 1
    assert memory.state.manifest.reading is not None  # its last steps are for a run that nobody waits for
    assert memory.state.manifest.reading.seen == frozenset(range(1, FULL + 2))
    assert stage.act("schedule") == 0
    assert stage.memory().state.manifest.reading is None


def test_a_short_pause_that_github_asks_for_is_waited_for(stage: Stage) -> None:
    stage.github.clock.now = None  # the pause is reckoned by real clocks
    stage.github.faults.add("POST /graphql", "secondary403", 1, after=1, seconds=1)
    assert rebuild(stage) == 0
    assert (stage.memory().state.manifest.threads, stage.memory().state.manifest.reading) == (FULL, None)


def test_a_page_that_is_too_much_for_the_server_is_asked_for_in_parts(stage: Stage) -> None:
    stage.github.faults.add("POST /graphql", "drop", 3, after=1)
    assert rebuild(stage) == 0
    assert (stage.memory().state.manifest.threads, stage.memory().state.manifest.reading) == (FULL, None)


def test_a_server_without_graphql_is_read_issue_by_issue(stage: Stage) -> None:
    stage.github.comment(1, "hubot", "Me too")
    stage.github.close(2, "octocat")
    stage.github.faults.add("POST /graphql", "404", None)
    assert rebuild(stage) == 0
    assert "no GraphQL" in summary(stage)
    memory = stage.memory()
    assert (memory.state.manifest.threads, memory.state.manifest.reading) == (FULL, None)
    first, second = (memory.records([1, 2])[number] for number in (1, 2))
    assert isinstance(first, Thread)
    assert isinstance(second, Thread)
    assert [comment.text for comment in first.comments] == ["Me too"]
    assert second.is_closed


def test_reading_issue_by_issue_leaves_requests_for_the_events_of_the_hour(stage: Stage) -> None:
    for number in range(1, 60):
        stage.github.comment(number, "hubot", "Me too")
    stage.github.faults.add("POST /graphql", "404", None)
    stage.github.limits.set(60)
    assert rebuild(stage) == 0
    assert "kept for new issues" in summary(stage)
    number = stage.github.open_issue("hubot", "Again", "As in #100")
    assert stage.act("issues", "opened", number) == 0
    stage.github.limits.set(1000)
    assert stage.act("schedule") == 0
    assert stage.memory().state.manifest.threads == FULL + 1


def test_a_dry_run_reads_everything_and_writes_nothing(stage: Stage) -> None:
    assert rebuild(stage, **{"dry-run": "true"}) == 0
    assert f"{FULL} threads were read, {FULL} would change." in summary(stage)
    assert stage.memory().state.manifest.threads == 0


def test_two_rebuilds_end_in_the_same_memory_as_one(stage: Stage) -> None:
    assert rebuild(stage) == 0
    once = stage.memory()
    tree = once.state.base.snapshot.files  # type: ignore[attr-defined]
    stage.github.clock.advance(60)
    assert rebuild(stage) == 0
    again = stage.memory()
    assert once.state.manifest.cursor == again.state.manifest.cursor == parse_time("2026-01-01T02:29:00Z")
    changed = {path for path, entry in again.state.base.snapshot.files.items() if tree.get(path) != entry}  # type: ignore[attr-defined]
    assert changed <= {"manifest.json", "model/backtest.json"}


# While a rebuild is open


@pytest.fixture
def half(stage: Stage) -> Stage:
    """A rebuild was cut short after its first fifty; the others are news to no event, as they did not change since."""
    stage.github.faults.add("POST /graphql", "primary403", None, after=1)
    assert rebuild(stage) == 0
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    stage.github.mark()
    return stage


@pytest.mark.parametrize(
    ("fault", "code"), [("secondary403", 0), ("primary403", 0), ("429", 0), ("401", 1), ("secondary403 at a read", 0)]
)
def test_nothing_is_read_on_once_github_has_had_enough_of_a_run(half: Stage, fault: str, code: int) -> None:
    number = half.github.open_issue("hubot", "Again", "As in #1")
    kind, _, at_a_read = fault.partition(" at ")
    half.github.faults.add("GET */issues" if at_a_read else "POST */comments", kind, None, seconds=3600)
    assert half.act("issues", "opened", number) == code
    assert half.github.faults.injected[-1][0] == kind
    assert graph_requests(half) == (0 if at_a_read else 1), "for the open issue that is shown, before the limit"
    memory = half.memory()
    assert memory.state.manifest.reading is not None
    assert len(memory.state.manifest.reading.seen) == PER_PAGE


def test_a_limit_of_graphql_holds_for_the_rest_of_the_run(half: Stage) -> None:
    """More changed than an event's run reads one by one: GraphQL is asked before the answer, and not again after it."""
    for count in range(250):
        half.github.open_issue("octocat", f"Flood {count}", at="2026-01-02T00:00:00Z")
    number = half.github.open_issue("hubot", "Again", "As in #1")
    half.github.faults.add("POST /graphql", "limit200", None)
    assert half.act("issues", "opened", number) == 0
    assert graph_requests(half) == 1
    assert "limit is exhausted" in summary(half)


@pytest.mark.parametrize("afterwards", ["issues-off", "401"])
def test_what_could_not_be_said_fails_the_run_whatever_comes_after_it(half: Stage, afterwards: str) -> None:
    number = half.github.open_issue("hubot", "Again", "As in #1")
    half.github.faults.add("POST */comments", "422", None)
    half.github.faults.add("POST /graphql", afterwards, None, after=1)  # the first one is for the open issue
    assert half.act("issues", "opened", number) == 1
    assert graph_requests(half) == 2
    assert "GitHub rejected the request (422" in summary(half)


def test_one_thread_that_cannot_be_seen_does_not_end_the_reading_or_keep_an_event_from_its_answer(stage: Stage) -> None:
    for _ in range(130):
        stage.github.comment(3, "hubot", "Me too")
    stage.github.faults.add("GET */issues/3/timeline", "404", None)
    assert rebuild(stage) == 0
    memory = stage.memory()
    assert (memory.state.manifest.threads, memory.state.manifest.reading, memory.records([3])) == (FULL - 1, None, {})


def test_a_fresh_issue_that_could_not_be_seen_is_read_and_answered_by_the_next_run(empty_stage: Stage) -> None:
    stage = empty_stage
    stage.github.open_issue("octocat", "Crash 1", at="2025-07-15T10:00:00Z")
    number = stage.github.open_issue("hubot", "Again", "As in #1.")
    for _ in range(130):
        stage.github.comment(number, "monalisa", "Me too")
    stage.github.clock.advance(3600)  # so that it is news to no later run
    other = stage.github.open_issue("hubot", "Hang", "As in #1, too.")
    stage.github.faults.add(f"GET */issues/{number}/timeline", "404", None)
    stage.github.faults.add(f"GET */issues/{number}/comments", "404", None)
    assert stage.act("issues", "opened", other) == 0
    assert [len(stage.comments(key)) for key in (number, other)] == [0, 1]
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    assert stage.act("schedule") == 0
    assert [len(stage.comments(key)) for key in (number, other)] == [1, 1]
