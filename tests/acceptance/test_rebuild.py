"""A rebuild that a limit, a fault or the end of a run cut short is continued, with the same result as in one go."""

from __future__ import annotations

from datetime import datetime

import pytest

from bot.domain.thread import Thread, Tombstone
from bot.domain.thread_json import parse_time
from bot.github.history import PER_PAGE
from tests.acceptance.stage import Stage, graph_requests, rebuild, summary, with_issues, with_mentions

pytestmark = pytest.mark.slow
FULL = 3 * PER_PAGE
"""Number of issues: three requests for fifty each."""


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    with_mentions(empty_stage)
    return with_issues(empty_stage, FULL)


def test_a_limit_ends_a_rebuild_cleanly_and_a_scheduled_run_continues_it(stage: Stage) -> None:
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


def test_the_first_run_reads_what_changed_all_at_once_only_once(empty_stage: Stage) -> None:
    for number in range(301):  # more than a run reads one by one
        empty_stage.github.open_issue("octocat", f"Crash {number}", at="2026-01-01T00:00:00Z")
    empty_stage.github.mark()
    assert empty_stage.act("schedule") == 0
    assert (graph_requests(empty_stage), empty_stage.memory().state.manifest.threads) == (7, 301)


@pytest.mark.night
def test_issues_deleted_while_a_rebuild_was_cut_short_become_tombstones(stage: Stage) -> None:
    assert rebuild(stage) == 0
    stage.github.clock.advance(3600)
    for number in (1, FULL):  # one in the first part of the rebuild, one in the second; no event reports it
        stage.github.delete_issue(number)
    stage.github.faults.add("POST /graphql", "429", None, after=1, seconds=3600)
    assert rebuild(stage) == 0
    stage.github.faults.clear()
    assert isinstance(stage.memory().records([1])[1], Thread)
    stage.github.clock.advance(3600)
    assert rebuild(stage) == 0
    records = stage.memory().records([1, 2, FULL])
    assert [type(records[number]) for number in (1, 2, FULL)] == [Tombstone, Thread, Tombstone]


def test_an_event_during_a_rebuild_is_answered_before_reading_continues(stage: Stage) -> None:
    stage.github.faults.add("POST /graphql", "primary403", 1, after=1)
    assert rebuild(stage) == 0
    number = stage.github.open_issue("hubot", "Again", "As in #1")
    assert stage.act("issues", "opened", number) == 0
    assert len(stage.comments(number)) == 1
    memory = stage.memory()
    assert memory.state.manifest.threads == FULL + 1
    assert memory.state.manifest.reading is not None  # its last steps are left to a run that nobody waits for
    assert memory.state.manifest.reading.seen == frozenset(range(1, FULL + 2))
    assert stage.act("schedule") == 0
    assert stage.memory().state.manifest.reading is None


def test_a_page_that_is_too_much_for_the_server_is_requested_in_parts(stage: Stage) -> None:
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


@pytest.mark.night
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


def test_two_rebuilds_end_in_the_same_memory_as_one(stage: Stage) -> None:
    assert rebuild(stage) == 0
    once = stage.memory()
    tree = once.state.base.snapshot.files  # type: ignore[attr-defined]
    stage.github.clock.advance(60)
    assert rebuild(stage) == 0
    again = stage.memory()
    assert once.state.manifest.cursor == again.state.manifest.cursor == parse_time("2026-01-01T02:29:00Z")
    changed = {path for path, entry in again.state.base.snapshot.files.items() if tree.get(path) != entry}  # type: ignore[attr-defined]
    times = {"clusters/0000.jsonl", "clusters/0001.jsonl"}  # when each issue was compared
    assert changed <= {"manifest.json", "model/backtest.json", *times}


# While a rebuild is open


@pytest.fixture
def half_rebuilt(empty_stage: Stage) -> Stage:
    """A rebuild that was cut short after fifty issues; the others have not changed since, so no event brings them."""
    return empty_stage.begin(with_mentions, cut_short)


def cut_short(stage: Stage) -> None:
    with_issues(stage, FULL)
    stage.github.faults.add("POST /graphql", "primary403", None, after=1)
    assert rebuild(stage) == 0
    stage.github.faults.clear()
    stage.github.clock.advance(3600)


@pytest.mark.night
@pytest.mark.parametrize(
    ("fault", "code"), [("secondary403", 0), ("primary403", 0), ("429", 0), ("401", 1), ("secondary403 at a read", 0)]
)
def test_reading_does_not_continue_in_a_run_that_github_refused_a_request(
    half_rebuilt: Stage, fault: str, code: int
) -> None:
    number = half_rebuilt.github.open_issue("hubot", "Again", "As in #1")
    kind, _, at_a_read = fault.partition(" at ")
    half_rebuilt.github.faults.add("GET */issues" if at_a_read else "POST */comments", kind, None, seconds=3600)
    assert half_rebuilt.act("issues", "opened", number) == code
    assert half_rebuilt.github.faults.injected[-1][0] == kind
    assert graph_requests(half_rebuilt) == (0 if at_a_read else 1), "for the open issue that is shown, before the limit"
    memory = half_rebuilt.memory()
    assert memory.state.manifest.reading is not None
    assert len(memory.state.manifest.reading.seen) == PER_PAGE


def test_a_limit_of_graphql_holds_for_the_rest_of_the_run(half_rebuilt: Stage) -> None:
    """More changed than an event's run reads one by one: GraphQL is queried before the answer, but not again after."""
    for count in range(250):
        half_rebuilt.github.open_issue("octocat", f"Flood {count}", at="2026-01-02T00:00:00Z")
    number = half_rebuilt.github.open_issue("hubot", "Again", "As in #1")
    half_rebuilt.github.faults.add("POST /graphql", "limit200", None)
    assert half_rebuilt.act("issues", "opened", number) == 0
    assert graph_requests(half_rebuilt) == 1
    assert "limit is exhausted" in summary(half_rebuilt)


@pytest.mark.parametrize("afterwards", ["issues-off", "401"])
def test_a_comment_that_could_not_be_posted_fails_the_run_whatever_follows(
    half_rebuilt: Stage, afterwards: str
) -> None:
    number = half_rebuilt.github.open_issue("hubot", "Again", "As in #1")
    half_rebuilt.github.faults.add("POST */comments", "422", None)
    half_rebuilt.github.faults.add("POST /graphql", afterwards, None, after=1)  # the first one is for the open issue
    assert half_rebuilt.act("issues", "opened", number) == 1
    assert graph_requests(half_rebuilt) == 2
    assert "GitHub rejected the request (422" in summary(half_rebuilt)


def test_a_thread_that_cannot_be_read_does_not_stop_a_rebuild(stage: Stage) -> None:
    for _ in range(130):
        stage.github.comment(3, "hubot", "Me too")
    stage.github.faults.add("GET */issues/3/timeline", "404", None)
    assert rebuild(stage) == 0
    memory = stage.memory()
    assert (memory.state.manifest.threads, memory.state.manifest.reading, memory.records([3])) == (FULL - 1, None, {})


def test_a_new_issue_that_could_not_be_read_is_read_and_answered_by_the_next_run(empty_stage: Stage) -> None:
    stage = empty_stage.begin(with_mentions)
    stage.github.open_issue("octocat", "Crash 1", at="2025-07-15T10:00:00Z")
    number = stage.github.open_issue("hubot", "Again", "As in #1.")
    for _ in range(130):
        stage.github.comment(number, "monalisa", "Me too")
    stage.github.clock.advance(3600)  # so that no later list of changes has it
    other = stage.github.open_issue("hubot", "Hang", "As in #1, too.")
    stage.github.faults.add(f"GET */issues/{number}/timeline", "404", None)
    stage.github.faults.add(f"GET */issues/{number}/comments", "404", None)
    assert stage.act("issues", "opened", other) == 0
    assert [len(stage.comments(key)) for key in (number, other)] == [0, 1]
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    assert stage.act("schedule") == 0
    assert [len(stage.comments(key)) for key in (number, other)] == [1, 1]
