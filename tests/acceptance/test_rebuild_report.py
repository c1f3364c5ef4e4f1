"""What a rebuild reports is true: at an outage, at a limit, in a dry run, after damage, and in its counts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.github.history import PER_PAGE
from tests.acceptance.stage import REPOSITORY, Stage, graph_requests, rebuild, summary, with_issues, with_mentions

pytestmark = pytest.mark.slow
GRAPHQL = "POST /graphql"
FULL = 2 * PER_PAGE
LIMIT = "GitHub's rate limit is exhausted until"


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """A repository with two pages of issues and no memory yet."""
    with_mentions(empty_stage)
    return with_issues(empty_stage, FULL)


def damage(stage: Stage, path: str, content: str = "{") -> None:
    stage.git.commit(REPOSITORY, path, content, "refs/heads/precedent")


def test_the_first_run_reports_what_it_read_and_later_runs_do_not(stage: Stage) -> None:
    reason = "There was no memory to continue from, so the history was read from its beginning: "
    contents = f"{FULL} issues, pull requests and pages"
    assert stage.act("schedule", inputs={"dry-run": "true"}) == 0
    assert f"{reason}{contents} would be on the branch precedent." in summary(stage)
    assert stage.act("schedule") == 0
    assert f"{reason}{contents} are now on the branch precedent." in summary(stage)
    stage.github.clock.advance(3600)
    assert stage.act("schedule") == 0
    assert reason not in summary(stage)


@pytest.mark.parametrize(("issues", "said"), [(0, ""), (1, "1 issue, pull request or page is now on the branch")])
def test_a_first_run_counts_one_issue_and_says_nothing_of_none(empty_stage: Stage, issues: int, said: str) -> None:
    with_issues(empty_stage, issues)
    assert empty_stage.act("schedule") == 0
    assert ("There was no memory" in summary(empty_stage)) is bool(said)
    assert said in summary(empty_stage)


# At an outage


def error_message(stage: Stage, capfd: pytest.CaptureFixture[str]) -> str:
    """The one error of the last run."""
    (line,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("::error::")]
    message = line.removeprefix("::error::")
    assert stage.outputs()["reason"] == message
    return message


def test_an_outage_fails_a_manual_rebuild_and_says_what_to_do(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    stage.github.faults.add(GRAPHQL, "503", None)
    assert rebuild(stage) == 1
    assert error_message(stage, capfd) == (
        "The history could not be read: GitHub answered 503. "
        "Start `rebuild` again later; scheduled runs continue it too."
    )
    assert "threads were read" not in summary(stage)
    assert "is kept" not in summary(stage)
    assert f" GraphQL: {graph_requests(stage)} requests." in summary(stage), "repeats count, as they were sent"


@pytest.mark.parametrize(
    ("dry", "outlook"),
    [
        ("", "What was read is kept. Start `rebuild` again later; scheduled runs continue it too."),
        ("true", "Start `rebuild` again later."),
    ],
)
def test_an_outage_during_a_rebuild_says_whether_what_was_read_is_kept(
    stage: Stage, capfd: pytest.CaptureFixture[str], dry: str, outlook: str
) -> None:
    stage.github.faults.add(GRAPHQL, "drop", None, after=1)
    assert rebuild(stage, **{"dry-run": dry}) == 1
    why = "GitHub did not answer (ConnectionError)"
    assert error_message(stage, capfd) == f"The history could not be read completely: {why}. {outlook}"
    assert stage.memory().state.manifest.threads == (0 if dry else PER_PAGE)


@pytest.mark.night
@pytest.mark.parametrize(("kind", "code"), [("drop", 1), ("primary403", 0)])
def test_a_rebuild_that_could_not_begin_is_done_by_a_scheduled_run(stage: Stage, kind: str, code: int) -> None:
    assert rebuild(stage) == 0
    first = stage.memory().state.manifest.read_whole
    assert first
    stage.github.clock.advance(3600)
    stage.github.faults.add(GRAPHQL, kind, None)
    assert rebuild(stage) == code
    assert "What was read is kept" not in summary(stage)
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    assert stage.act("schedule") == 0
    assert "The rebuild is complete" in summary(stage)
    assert stage.memory().state.manifest.read_whole == first + timedelta(hours=1)


def test_an_outage_does_not_fail_a_run_that_only_continues_a_rebuild(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "primary403", None, after=1)
    assert rebuild(stage) == 0
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    stage.github.faults.add(GRAPHQL, "drop", None)
    assert stage.act("schedule") == 0
    assert "The rebuild is not finished (GitHub did not answer" in summary(stage)


# At a limit


@pytest.mark.parametrize(("after", "outlook"), [
    (0, "The next runs continue."), (1, "What was read is kept, and the next runs continue.")
])  # fmt: skip
def test_a_rebuild_reports_a_limit_once(stage: Stage, after: int, outlook: str) -> None:
    stage.github.faults.add(GRAPHQL, "primary403", None, after=after)
    assert rebuild(stage) == 0
    assert f"- The rebuild is not finished. {outlook}" in summary(stage)
    assert summary(stage).count(LIMIT) == 1
    assert stage.outputs()["reason"].startswith(LIMIT)


def test_the_first_run_reports_a_limit_once(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "primary403", None, after=1)
    assert stage.act("schedule") == 0
    assert "Not all of the history is read yet: the next runs continue" in summary(stage)
    assert summary(stage).count(LIMIT) == 1


def test_answers_wait_until_a_limit_is_over(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    assert rebuild(stage) == 0
    stage.github.clock.advance(3600)
    numbers = [stage.github.open_issue("hubot", "Again", "As in #1.") for _ in range(3)]
    stage.github.mark()
    stage.github.faults.add("POST */comments", "primary403", None)
    capfd.readouterr()
    assert stage.act("schedule") == 0
    out = capfd.readouterr().out.splitlines()
    assert [line for line in out if line.startswith("Issue ")] == [f"Issue {number}: waits" for number in numbers]
    assert sum(LIMIT in line for line in out) == summary(stage).count(LIMIT) == 1
    assert "failed" not in summary(stage)
    assert stage.outputs()["reason"].startswith(LIMIT)
    assert " 1 write." in summary(stage), "those after it were never sent"
    assert stage.github.writes == 1


# In a dry run


def test_a_dry_run_reports_what_would_change(stage: Stage) -> None:
    assert rebuild(stage, **{"dry-run": "true"}) == 0
    lines = summary(stage).partition("**How it went**\n\n")[2].splitlines()
    assert lines[0] == "- Dry run: nothing is written."
    assert f"- {FULL} threads were read, {FULL} would change." in lines
    contents = f"{FULL} issues, pull requests and pages would be in memory."
    assert f"- The dry run of the rebuild is complete after less than a minute: {contents}" in lines
    assert "are in memory" not in summary(stage)
    assert stage.memory().state.manifest.threads == 0


def test_a_dry_run_that_reaches_a_limit_keeps_nothing(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "primary403", None, after=1)
    assert rebuild(stage, **{"dry-run": "true"}) == 0
    assert "The rebuild is not finished. Nothing is kept; a dry run starts over." in summary(stage)
    assert LIMIT in summary(stage)
    assert "continue" not in summary(stage)


# After damage


@pytest.mark.night
def test_damage_that_a_rebuild_repaired_is_reported_in_the_past_tense(stage: Stage) -> None:
    assert rebuild(stage) == 0
    stage.github.delete_issue(7)
    for path in ("records/0000/3.json", "records/0000/7.json", "model/ranking.json", "manifest.json"):
        damage(stage, path)
    stage.github.clock.advance(3600)
    assert rebuild(stage) == 0
    job_summary = summary(stage)
    assert "records/0000/3.json was damaged (" in job_summary
    assert "records/0000/3.json is damaged" not in job_summary
    assert job_summary.count("this rebuild restored it.") == 2
    assert "The manifest was damaged (" in job_summary
    assert "catch up from the beginning" not in job_summary
    assert "records/0000/7.json is damaged and was left out" in job_summary, "it is not on GitHub any more"
    contents = f"{FULL} issues, pull requests and pages are in memory."
    assert f"The rebuild is complete after less than a minute: {contents}" in job_summary
    stage.github.clock.advance(3600)
    assert rebuild(stage) == 0
    assert "3.json" not in summary(stage)


def test_a_ranking_that_a_rebuild_repaired_is_reported_in_the_past_tense(stage: Stage) -> None:
    assert rebuild(stage) == 0
    damage(stage, "model/ranking.json", "")
    stage.github.clock.advance(3600)
    assert rebuild(stage) == 0
    repaired = "model/ranking.json was damaged (it does not match the manifest): this rebuild restored it."
    assert repaired in summary(stage)
    assert "until the next rebuild" not in summary(stage)


def test_a_dry_run_leaves_damage_and_says_so(stage: Stage) -> None:
    assert rebuild(stage) == 0
    damage(stage, "records/0000/3.json")
    assert rebuild(stage, **{"dry-run": "true"}) == 0
    assert "records/0000/3.json is damaged and was left out" in summary(stage)


# What it counts, and what it does once


def test_every_request_that_was_sent_is_counted(stage: Stage) -> None:
    stage.github.faults.add(GRAPHQL, "drop", 1)
    assert rebuild(stage) == 0
    counts = (
        f"API: {stage.github.reads - graph_requests(stage)} reads, 0 writes. GraphQL: {graph_requests(stage)} requests."
    )
    assert counts in summary(stage)


def test_a_run_learns_only_once(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    stage.github.faults.add(GRAPHQL, "primary403", None, after=1)
    assert rebuild(stage) == 0
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    capfd.readouterr()
    assert stage.act("schedule") == 0
    assert capfd.readouterr().out.count("Learning from") == 1
    assert summary(stage).count("newest issues (") == 1
    assert f": {FULL} issues, pull requests and pages are in memory." in summary(stage)
    memory = stage.memory()
    assert (memory.state.manifest.reading, memory.state.manifest.learned_from) == (None, FULL)
    assert len(memory.entries(range(1, FULL + 1))) == FULL
