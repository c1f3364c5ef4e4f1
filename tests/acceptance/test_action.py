"""One repository, event by event through the Action: what is remembered, answered and left alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bot.domain.thread import Record, Thread, Tombstone
from bot.pipeline.tools import DAILY_LIMIT_REACHED
from bot.reading.digest import digest
from tests.acceptance.bare_repository import Bare
from tests.acceptance.stage import BOT, DECISION, REPOSITORY, Stage, rebuild, summary, with_mentions, with_past
from tests.marker import find_marker
from tests.memory.remotes import HostedRepository

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
POST = "POST /repos/*/issues/*/comments"
PATCH = "PATCH /repos/*/issues/comments/*"


NUMBER = 3
"""The issue that has our comment."""


@pytest.fixture
def answered(empty_stage: Stage) -> Stage:
    """Issue 3 refers to a decision and has our comment."""
    return empty_stage.begin(with_mentions, with_past, open_issue)


def open_issue(stage: Stage, body: str = "As in #1, but worse.", author: str = "hubot") -> int:
    number = stage.github.open_issue(author, "Everybody is logged out", body)
    stage.deliver("issues", "opened", number)
    return number


def post_comment(stage: Stage, number: int, text: str, author: str = "hubot") -> int:
    comment = stage.github.comment(number, author, text)
    stage.deliver("issue_comment", "created", number, comment)
    return comment


def edit_issue(stage: Stage, number: int, body: str) -> None:
    stage.github.edit_issue(number, body=body)
    stage.deliver("issues", "edited", number)


def our_comment_id(stage: Stage, number: int) -> int:
    (comment,) = stage.github.comments_by(BOT, number)
    return comment.id


def read_record(stage: Stage, number: int) -> Record | None:
    return stage.memory().records([number]).get(number)


def answer_state(stage: Stage, number: int) -> str:
    """The state of the answer on an issue in memory."""
    answer = stage.memory().state.comments([number]).get(number)
    return answer.state if answer else ""


def branch_files(stage: Stage) -> dict[str, bytes]:
    """Every file at the tip of the memory branch."""
    snapshot = Bare(stage.bare).snapshot()
    return snapshot.read(snapshot.paths(""))


def test_the_record_of_another_changed_issue_costs_one_more_git_request(stage: Stage) -> None:
    for _ in range(100):
        stage.github.open_issue("monalisa", "Slow thumbnails", at="2025-08-03T10:00:00Z")
    number, fetches = open_issue(stage), []  # far enough from 1 to lie in other shards
    git = HostedRepository(stage.git, stage.bare, REPOSITORY)
    for elsewhere in ("", "I have it too."):
        stage.github.clock.advance(3600)
        if elsewhere:
            stage.github.comment(1, "monalisa", elsewhere)
        git.mark()
        post_comment(stage, number, "Thanks.")
        fetches.append(git.request_lines.count("POST git-upload-pack"))
    assert fetches[1] - fetches[0] == 1


def test_a_usual_event_costs_at_most_two_reads_and_one_write(answered: Stage) -> None:
    costs = []
    for text in ("Me too.", "See #2 as well.", "Thanks."):
        post_comment(answered, NUMBER, text)
        costs.append((answered.github.reads, answered.github.writes))
    answered.github.close(NUMBER, "octocat")
    answered.deliver("issues", "closed", NUMBER)
    costs.append((answered.github.reads, answered.github.writes))
    second = answered.github.open_issue("monalisa", "Slow printer", "Like #2.")
    answered.deliver("issues", "opened", second)
    costs.append((answered.github.reads, answered.github.writes))
    assert costs == [(2, 0), (2, 1), (2, 0), (2, 0), (1, 1)]


def test_our_comment_is_withdrawn_when_an_edit_makes_it_untrue(answered: Stage) -> None:
    edit_issue(answered, NUMBER, "zyx wvu tsr")
    (text,) = answered.comments(NUMBER)
    assert "no longer applies" in text
    assert "PostgreSQL" not in text
    answered.deliver("schedule")
    assert answer_state(answered, NUMBER) == "withdrawn"


def test_a_withdrawn_comment_is_written_again_once_it_applies_again(answered: Stage) -> None:
    edit_issue(answered, NUMBER, "zyx wvu tsr")
    edit_issue(answered, NUMBER, "As in #1 after all.")
    (text,) = answered.comments(NUMBER)
    assert "Where should sessions live?" in text


def test_a_comment_without_anything_new_is_only_remembered(answered: Stage) -> None:
    (before,) = answered.comments(NUMBER)
    post_comment(answered, NUMBER, "It happens to me too, see #1.")
    assert answered.comments(NUMBER) == [before]
    assert answered.github.writes == 0
    thread = read_record(answered, NUMBER)
    assert isinstance(thread, Thread)
    assert [comment.text for comment in thread.comments] == ["It happens to me too, see #1."]


def test_repeating_an_event_changes_nothing(answered: Stage) -> None:
    comment = post_comment(answered, NUMBER, "And #2.")
    edit_issue(answered, NUMBER, "As in #1, but much worse.")
    answered.deliver("schedule")
    texts, files = answered.comments(NUMBER), branch_files(answered)
    for event in (("issues", "opened", NUMBER), ("issue_comment", "created", NUMBER, comment)):
        answered.deliver(*event)
        assert answered.github.writes == 0
    for event in (("issues", "edited", NUMBER), ("issue_comment", "created", NUMBER, comment), ("schedule",)):
        answered.deliver(*event)
        assert answered.github.writes == 0
    assert answered.comments(NUMBER) == texts
    assert branch_files(answered) == files


def test_a_comment_that_a_person_deleted_at_once_is_not_written_again(answered: Stage) -> None:
    comment = our_comment_id(answered, NUMBER)
    answered.github.clock.advance(5)
    answered.github.delete_comment(comment, by="octocat")
    answered.deliver("issue_comment", "deleted", NUMBER, comment)
    answered.github.clock.advance(300)
    answered.deliver("schedule")
    assert answered.comments(NUMBER) == []
    assert answer_state(answered, NUMBER) == "removed"


def test_a_comment_that_was_deleted_before_any_run_saw_it_is_not_written_weeks_later(answered: Stage) -> None:
    answered.github.clock.advance(20 * 86_400)
    answered.github.delete_comment(our_comment_id(answered, NUMBER), by="octocat")
    edit_issue(answered, NUMBER, "See #2 instead.")
    assert answered.comments(NUMBER) == []
    assert answer_state(answered, NUMBER) == "removed"


def test_a_comment_edited_in_the_second_in_which_it_was_read_is_read_again(answered: Stage) -> None:
    moment = answered.github.clock.now
    comment_id = post_comment(answered, NUMBER, "Thanks.")
    answered.github.edit_comment(comment_id, "Thanks, it works.", at=moment)
    answered.deliver("issue_comment", "edited", NUMBER, comment_id)
    thread = read_record(answered, NUMBER)
    assert isinstance(thread, Thread)
    assert [comment.text for comment in thread.comments] == ["Thanks, it works."]


def test_a_comment_written_in_the_second_in_which_another_was_deleted_is_read(answered: Stage) -> None:
    moment = answered.github.clock.now
    comment_id = post_comment(answered, NUMBER, "Thanks.")
    answered.github.delete_comment(comment_id, at=moment)
    answered.github.comment(NUMBER, "monalisa", "It fails again.", at=moment)  # its own event is lost
    answered.deliver("issue_comment", "deleted", NUMBER, comment_id)
    thread = read_record(answered, NUMBER)
    assert isinstance(thread, Thread)
    assert [comment.text for comment in thread.comments] == ["It fails again."]


def test_a_comment_that_a_person_edited_is_left_alone(answered: Stage) -> None:
    mine = our_comment_id(answered, NUMBER)
    edited = answered.comments(NUMBER)[0].replace("We decided", "They decided")
    answered.github.edit_comment(mine, edited, by="octocat")
    post_comment(answered, NUMBER, "And #2.")
    edit_issue(answered, NUMBER, "zyx wvu tsr")
    assert answered.comments(NUMBER) == [edited]
    assert answered.github.writes == 0


@pytest.mark.parametrize("author", ["dependabot[bot]", "Nightly-Tester", "shy-person"])
def test_bots_and_ignored_people_are_remembered_but_not_answered(stage: Stage, author: str) -> None:
    stage.configure("ignore: {authors: [nightly-tester], people: [shy-person]}")
    number = open_issue(stage, author=author)
    stage.deliver("schedule")
    assert stage.comments(number) == []
    assert isinstance(read_record(stage, number), Thread)


def test_ignored_people_are_not_quoted(stage: Stage) -> None:
    stage.configure("ignore: {people: [OctoCat]}\nmentions: {speak: always}")
    number = open_issue(stage)
    (text,) = stage.comments(number)
    assert "Where should sessions live?" in text
    assert "PostgreSQL" not in text


def test_pull_requests_are_neither_remembered_nor_answered_by_default(stage: Stage) -> None:
    number = stage.github.add_pull("hubot", "Fix the sessions", "Closes #1.")
    comment = stage.github.comment(number, "monalisa", "See #2.")
    stage.deliver("issue_comment", "created", number, comment)
    assert stage.comments(number) == []
    assert read_record(stage, number) is None


def test_pull_requests_are_answered_if_the_settings_ask_for_it(stage: Stage) -> None:
    stage.configure("pulls: true")
    open_issue(stage)
    number = stage.github.add_pull("hubot", "Fix the sessions", "As in #1.")
    comment = stage.github.comment(number, "monalisa", "See #2.")
    stage.deliver("issue_comment", "created", number, comment)
    assert len(stage.comments(number)) == 1


def test_a_referenced_pull_request_is_shown_with_its_current_state(stage: Stage) -> None:
    with_mentions(stage)
    pull = stage.github.add_pull("octocat", "Keep sessions in a table", "A new table.")
    stage.github.clock.advance(600)
    assert "still open" in stage.comments(open_issue(stage, f"As in #{pull}."))[0]
    stage.github.clock.advance(3_600)
    stage.github.merge_pull(pull, "octocat")
    stage.github.clock.advance(600)
    assert "merged" in stage.comments(open_issue(stage, f"Not as in #{pull}."))[0]
    assert answer_state(stage, pull) == ""


@pytest.mark.parametrize(
    ("author", "text", "is_fix"),
    [("octocat", "A new table.", True), ("hubot", "A new table.", False), ("hubot", "Fixes #{}", True)],
)
def test_a_fix_is_shown_once_it_is_merged_and_only_quoted_before(
    stage: Stage, author: str, text: str, *, is_fix: bool
) -> None:
    """The words of a maintainer count; those of a stranger only if the change says the same."""
    with_mentions(stage)
    number = open_issue(stage, "Sessions are lost.")
    pull = stage.github.add_pull("octocat", "Keep sessions in a table", text.format(number))
    post_comment(stage, number, f"Fixed by #{pull}, which keeps them.", author)
    stage.github.close(number, "octocat")
    stage.deliver("issues", "closed", number)
    stage.github.clock.advance(600)
    before = stage.comments(open_issue(stage, f"As in #{number}."))[0]
    assert "which keeps them" in before
    assert "**fixed" not in before
    stage.github.merge_pull(pull, "octocat")
    stage.github.clock.advance(25 * 3_600)
    after = stage.comments(open_issue(stage, f"Not as in #{number}."))[0]
    assert (f"**fixed** by [pull request {pull}]" in after) is is_fix
    assert "which keeps them" in after
    stage.github.clock.advance(600)
    assert ("**fixed** by" in stage.comments(open_issue(stage, f"Much as in #{number}."))[0]) is is_fix
    assert not [call for call in stage.github.recent if "/pulls/" in call.path], "it was looked up once"


def test_changed_pull_requests_do_not_hold_the_cursor_back(stage: Stage) -> None:
    open_issue(stage)
    stage.github.clock.advance(3600)
    stage.github.add_pull("hubot", "Fix the sessions", "")
    stage.deliver("push")
    cursor = stage.memory().state.manifest.cursor
    assert cursor is not None
    assert cursor > datetime.fromisoformat("2026-01-05T12:59:00Z")


@pytest.mark.parametrize("action", ["deleted", "transferred"])
def test_a_deleted_or_transferred_issue_leaves_a_tombstone_and_no_text(stage: Stage, action: str) -> None:
    number = stage.github.open_issue("hubot", "Canarytitle logs out", "Canarybody, see #1. canary_identifier")
    stage.deliver("issues", "opened", number)
    comment = stage.github.comment(number, "hubot", "Canarycomment")
    stage.deliver("issue_comment", "created", number, comment)
    assert any(b"anarycomment" in data.lower() for data in branch_files(stage).values())
    if action == "deleted":
        stage.github.delete_issue(number)
    else:
        stage.github.transfer(number, stage.github.add_project("octo-org/other"))
    stage.deliver("issues", action, number)
    files = branch_files(stage)
    stage.deliver("issues", action, number)
    record = read_record(stage, number)
    assert isinstance(record, Tombstone)
    assert (record.reason, record.moved_to) == (action, "octo-org/other#1" if action == "transferred" else None)
    assert branch_files(stage) == files
    assert [name for name, data in files.items() if b"canary" in data.lower()] == []


def test_a_closed_issue_is_remembered_with_its_outcome(answered: Stage) -> None:
    (before,) = answered.comments(NUMBER)
    post_comment(answered, NUMBER, "Fixed in v2.3.0, please upgrade.", "octocat")
    answered.github.close(NUMBER, "octocat")
    answered.deliver("issues", "closed", NUMBER)
    thread = read_record(answered, NUMBER)
    assert isinstance(thread, Thread)
    assert (thread.state, thread.closed_by) == ("closed", "octocat")
    assert digest(thread).outcome.kind == "fixed"
    assert answered.comments(NUMBER) == [before]


def test_an_edit_of_a_closed_issue_leaves_the_comment_alone(answered: Stage) -> None:
    (before,) = answered.comments(NUMBER)
    answered.github.close(NUMBER, "octocat")
    answered.deliver("issues", "closed", NUMBER)
    edit_issue(answered, NUMBER, "zyx wvu tsr")
    assert answered.comments(NUMBER) == [before]


def test_a_rebuild_reads_everything_again_and_leaves_tombstones_for_deleted_issues(answered: Stage) -> None:
    lost = open_issue(answered, "zyx")
    answered.github.delete_issue(lost)
    answered.deliver("workflow_dispatch", run="rebuild")
    assert isinstance(read_record(answered, lost), Tombstone)
    assert isinstance(read_record(answered, NUMBER), Thread)
    assert answered.memory().state.manifest.threads == 3
    assert len(answered.comments(NUMBER)) == 1


def test_a_text_model_that_is_named_and_missing_is_reported_and_the_default_is_not(stage: Stage) -> None:
    open_issue(stage)
    assert "embeddings" not in summary(stage)
    stage.configure("similar: {model: mine}")
    open_issue(stage)
    assert "Similar threads are found without embeddings: " in summary(stage)
    assert "mine: no such folder" in summary(stage)


def test_a_rebuild_writes_a_report_of_the_comments_it_would_have_made(stage: Stage) -> None:
    open_issue(stage)
    workspace = stage.folder / "workspace"
    workspace.mkdir()
    stage.github.write_event(stage.folder / "event.json", "workflow_dispatch")
    assert stage.run("workflow_dispatch", {"run": "rebuild"}, GITHUB_WORKSPACE=str(workspace)) == 0
    report = (workspace / ".precedent/backtest.html").read_text(encoding="utf-8")
    assert "Everybody is logged out" in report
    assert stage.outputs()["report"] == ".precedent/backtest.html"
    job_summary = summary(stage)
    assert "What it would have said is in .precedent/backtest.html, which is lost when the job ends" in job_summary
    assert "It would have commented on" in job_summary
    assert {"model/ranking.json", "model/backtest.json"} <= set(branch_files(stage))


def test_a_manual_backtest_shows_the_comments_it_would_have_made_and_writes_nothing(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    open_issue(stage)
    before = branch_files(stage)
    stage.deliver("workflow_dispatch", run="backtest")
    assert branch_files(stage) == before
    assert stage.github.writes == 0
    assert "Everybody is logged out" in (stage.folder / ".precedent/backtest.html").read_text(encoding="utf-8")
    assert "of the 3 newest issues" in summary(stage)
    assert "newest issues (" in capfd.readouterr().out


def test_a_memory_that_has_grown_learns_and_still_answers(fast_stage: Stage) -> None:
    with_mentions(fast_stage)
    stage = fast_stage
    for count in range(60):
        thing, trouble = ("sync", "import", "login", "theme")[count % 4], ("crashes", "hangs", "is slow")[count % 3]
        body = f"The {thing} {trouble} after the upgrade, with a snapshot on drive {count}."
        opened = f"2025-09-{1 + count // 3:02}T10:00:00Z"
        stage.github.open_issue("monalisa", f"{thing} {trouble} again", body, at=opened)
    stage.deliver("schedule")
    memory = stage.memory()
    assert memory.state.manifest.learned_from == memory.state.manifest.threads == 60
    assert "model/ranking.json" in branch_files(stage)
    assert "of the 60 newest issues" in summary(stage)
    number = open_issue(stage)
    assert len(stage.comments(number)) == 1
    assert stage.memory().state.manifest.learned_from == 60
    assert "newest issues" not in summary(stage)


def test_a_manual_catch_up_answers_missed_issues_but_not_those_of_bots(stage: Stage) -> None:
    open_issue(stage, "zyx")
    missed = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    robot = stage.github.open_issue("dependabot[bot]", "Bump", "As in #1.")
    stage.deliver("workflow_dispatch", run="catch-up")
    assert [len(stage.comments(number)) for number in (missed, robot)] == [1, 0]


def test_a_manual_answer_is_posted_however_old_the_issue_is(stage: Stage) -> None:
    old = stage.github.open_issue("hubot", "Logged out", "As in #1.", at="2025-09-01T10:00:00Z")
    stage.deliver("schedule")
    assert stage.comments(old) == []
    stage.deliver("workflow_dispatch", run="answer", issue=str(old))
    assert len(stage.comments(old)) == 1
    stage.deliver("workflow_dispatch", run="answer", issue=str(old), after=3600)
    assert (len(stage.comments(old)), stage.github.writes) == (1, 0)


@pytest.mark.parametrize(
    ("settings", "author", "reason"),
    [
        ("ignore:\n  people: [Hubot]\n", "hubot", "its author asked to be left alone"),
        ("ignore:\n  authors: [Hubot]\n", "hubot", "its author is a bot or ignored"),
        ("", "dependabot[bot]", "its author is a bot or ignored"),
        ("ignore:\n  labels: [Private]\n", "hubot", "it carries an ignored label"),
        ("mode: off\n", "hubot", "the mode is off"),
    ],
)
def test_a_manual_answer_obeys_the_settings_and_says_why(stage: Stage, settings: str, author: str, reason: str) -> None:
    stage.configure(settings)
    number = stage.github.open_issue(author, "Logged out", "As in #1.", at="2025-09-01T10:00:00Z", labels=["private"])
    stage.deliver("workflow_dispatch", run="answer", issue=str(number))
    assert (stage.comments(number), stage.github.writes) == ([], 0)
    assert reason in summary(stage)


def test_a_manual_answer_is_posted_on_a_closed_issue_unless_it_is_locked(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.", at="2025-09-01T10:00:00Z")
    stage.github.close(number, "hubot")
    stage.github.lock(number)
    stage.deliver("workflow_dispatch", run="answer", issue=str(number))
    assert (stage.comments(number), stage.github.writes) == ([], 0)
    assert "the conversation is locked" in summary(stage)
    stage.github.unlock(number)
    stage.deliver("workflow_dispatch", run="answer", issue=str(number), after=3600)
    assert len(stage.comments(number)) == 1


def test_only_a_manual_catch_up_reads_reactions_and_pages_and_looks_for_clusters(answered: Stage) -> None:
    for run, is_maintenance in (("answer", False), ("catch-up", True)):
        answered.deliver("workflow_dispatch", run=run, issue=str(NUMBER), after=3600)
        asked = {request.path.rpartition("/")[2] for request in answered.github.recent}
        assert asked & {"{comment_id}", "releases"} == ({"{comment_id}", "releases"} if is_maintenance else set())
        assert (answered.memory().uncompared() == {}) is is_maintenance


@pytest.mark.parametrize(
    ("settings", "hours", "answers"), [("", 20, 1), ("", 25, 0), ("comment: {answer_within_hours: 48}", 25, 1)]
)
def test_a_scheduled_run_answers_an_issue_with_a_lost_event_within_the_set_hours(
    stage: Stage, settings: str, hours: int, answers: int
) -> None:
    if settings:
        stage.configure(settings)
    stage.deliver("schedule")
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.", at="2026-01-05T13:00:00Z")
    stage.github.clock.advance(hours * 3600)
    stage.deliver("schedule")
    assert len(stage.comments(number)) == answers


def test_an_old_issue_is_answered_even_if_another_run_read_the_change_first(stage: Stage) -> None:
    old = stage.github.open_issue("hubot", "Logged out", "zyx", at="2025-09-01T10:00:00Z")
    stage.deliver("schedule")
    comment = stage.github.comment(old, "hubot", "Like #1?")
    stage.deliver("schedule")
    assert stage.comments(old) == []
    stage.deliver("issue_comment", "created", old, comment)
    assert len(stage.comments(old)) == 1
    stage.github.clock.advance(26 * 3600)
    stage.github.edit_issue(old, body="Like #2?")
    stage.deliver("schedule")
    assert "Dark mode" not in stage.comments(old)[0]
    stage.deliver("issues", "edited", old)
    assert "Dark mode" in stage.comments(old)[0]


def test_a_pending_comment_is_given_up_after_a_day(stage: Stage) -> None:
    stage.github.faults.add(POST, "drop", None)
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    stage.deliver("issues", "opened", number, code=1)
    stage.github.clock.advance(25 * 3600)
    stage.deliver("schedule")
    assert (stage.memory().state.manifest.pending, answer_state(stage, number)) == ((), "silent")


def test_repeated_runs_even_in_the_same_second_write_one_comment(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    for hours in (0, 0, 1, 1, 1):
        stage.github.clock.advance(hours * 3600)
        stage.github.comment(2, "hubot", "noise")
        assert stage.act("issues", "opened", number) == 0
    assert len(stage.comments(number)) == 1


def test_a_strangers_marker_is_not_taken_for_ours(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    spoof = stage.github.comment(number, "monalisa", "<!-- precedent:v1 id=action -->\nHa!\n")
    stage.deliver("issues", "opened", number)
    assert len(stage.comments(number)) == 1
    assert stage.github.comment_by_id(spoof).body == "<!-- precedent:v1 id=action -->\nHa!\n"
    thread = read_record(stage, number)
    assert isinstance(thread, Thread)
    assert [comment.author for comment in thread.comments] == ["monalisa"]


def test_another_workflows_comment_that_quotes_our_marker_is_not_ours(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    other = stage.github.comment(number, BOT, "Copied: <!-- precedent:v1 id=action --> As in #1.")
    stage.deliver("issues", "opened", number)
    assert len(stage.comments(number)) == 2
    assert stage.github.comment_by_id(other).body.startswith("Copied")


def test_our_comment_is_found_on_the_third_page(fast_stage: Stage) -> None:
    with_mentions(fast_stage)
    stage = fast_stage
    stage.github.open_issue("monalisa", "Where should sessions live?", DECISION, at="2025-07-15T10:00:00Z")
    stage.github.close(1, "octocat", at="2025-07-16T10:00:00Z")
    number = stage.github.open_issue("hubot", "Logged out", "zyx", at="2025-09-01T10:00:00Z")
    for count in range(210):
        stage.github.comment(number, "hubot", f"Still there, {count}.", at="2025-09-02T10:00:00Z")
    stage.deliver("schedule")
    edit_issue(stage, number, "As in #1.")
    for count in range(40):
        stage.github.comment(number, "hubot", f"Still there, {count}.", at="2026-01-05T13:00:00Z")
    stage.github.clock.advance(24 * 3600)
    stage.deliver("schedule")
    edit_issue(stage, number, "zyx")
    assert len(stage.comments(number)) == 1
    assert "no longer applies" in stage.comments(number)[0]


def test_summary_mode_shows_the_comment_in_the_job_summary_only_and_only_once(stage: Stage) -> None:
    stage.configure("mode: summary")
    number = open_issue(stage)
    assert (stage.comments(number), stage.github.writes) == ([], 0)
    assert "What it would have said" in summary(stage)
    assert (stage.outputs()["spoke"], stage.outputs()["would-speak"]) == ("false", "true")
    stage.deliver("issues", "opened", number)
    assert "What it would have said" not in summary(stage)
    stage.configure("mode: comment")
    stage.deliver("schedule")
    assert stage.comments(number) == []


def test_a_dry_run_writes_nothing_and_shows_what_it_would_post(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    stage.deliver("issues", "opened", number, dry_run="true")
    assert (stage.comments(number), stage.github.writes, stage.git.pushes) == ([], 0, 0)
    job_summary = summary(stage)
    assert "What it would have said" in job_summary
    assert "PostgreSQL" in job_summary
    stage.deliver("issues", "opened", number)
    assert len(stage.comments(number)) == 1


def test_outputs_hold_nothing_that_a_stranger_wrote(stage: Stage) -> None:
    title = "x\nspoke=false\nEOF\nreason<<EOF\nowned\nEOF"
    number = stage.github.open_issue("hubot", title, "As in #1.")
    stage.deliver("issues", "opened", number)
    outputs = stage.outputs()
    assert sorted(outputs) == [
        *("comment-id", "comment-url", "context", "matches", "reason", "report", "spoke", "would-speak"),
    ]
    assert outputs["comment-id"] == str(our_comment_id(stage, number))
    assert outputs["comment-url"].endswith(f"#issuecomment-{our_comment_id(stage, number)}")
    assert (outputs["spoke"], outputs["matches"], outputs["report"]) == ("true", "[]", "")
    assert "PostgreSQL" in Path(outputs["context"]).read_text(encoding="utf-8")
    assert "owned" not in stage.output.read_text(encoding="utf-8")


def test_one_run_answers_five_issues_and_the_next_runs_the_others(stage: Stage) -> None:
    stage.deliver("schedule")
    numbers = [stage.github.open_issue("hubot", f"Logged out {n}", "As in #1.") for n in range(7)]
    counts = []
    for _ in range(3):
        stage.deliver("schedule")
        counts.append(sum(len(stage.comments(number)) for number in numbers))
    assert counts == [5, 7, 7]


def test_no_24_hours_have_more_comments_than_the_daily_limit(stage: Stage) -> None:
    stage.configure("comment: {daily_limit: 2, answer_within_hours: 48}")
    stage.deliver("schedule")
    numbers = [stage.github.open_issue("hubot", f"Logged out {n}", "As in #1.") for n in range(3)]
    for _ in range(3):
        stage.deliver("schedule")
    assert sum(len(stage.comments(number)) for number in numbers) == 2
    stage.github.clock.advance(13 * 3600)  # it is another day
    stage.deliver("schedule")
    assert sum(len(stage.comments(number)) for number in numbers) == 2
    stage.github.clock.advance(11 * 3600)
    stage.deliver("schedule")
    assert [len(stage.comments(number)) for number in numbers] == [1, 1, 1]


@pytest.mark.parametrize("days", [365, -365])
def test_no_time_by_a_wrong_clock_is_stored_or_ends_the_daily_limit(stage: Stage, days: int) -> None:
    stage.configure("comment: {daily_limit: 3, answer_within_hours: 48}\nreleases: {notify: comment}\n")
    began, stage.clock_error = stage.github.clock.now, timedelta(days=days)
    assert rebuild(stage) == 0
    open_issue(stage)
    text = summary(stage)
    stage.deliver("workflow_dispatch", run="forget", issue="2")
    stored = b"\n".join(data for path, data in branch_files(stage).items() if ".json" in path)
    times = re.findall(r'"(20[0-9-]{8}T[0-9:.]+Z)"', stored.decode())
    assert began in times
    assert not [time for time in times if not "2025-07" < time <= stage.github.clock.now]
    stage.clock_error = timedelta()
    numbers = [open_issue(stage), open_issue(stage)]
    assert [len(stage.comments(number)) for number in numbers] == [1, 0]
    stage.deliver("schedule", after=24 * 3600)
    assert [len(stage.comments(number)) for number in numbers] == [1, 1]
    assert text.count("GitHub's counts") == 1


def test_replies_and_comments_share_one_daily_limit(stage: Stage) -> None:
    stage.configure("comment: {daily_limit: 2}")
    stage.deliver("schedule")
    first = open_issue(stage, "What is this?")
    comment = stage.github.comment(first, "hubot", "/precedent search sessions")
    stage.deliver("issue_comment", "created", first, comment)
    numbers = [open_issue(stage), open_issue(stage)]
    assert [len(stage.comments(number)) for number in (first, *numbers)] == [1, 1, 0]
    assert stage.outputs()["reason"] == DAILY_LIMIT_REACHED


def test_the_daily_limit_hides_nothing_while_no_comments_are_written(stage: Stage) -> None:
    stage.configure("comment: {daily_limit: 2}")
    stage.deliver("schedule")
    for _ in range(2):
        number = open_issue(stage)
        assert len(stage.comments(number)) == 1
    stage.configure("mode: summary\ncomment: {daily_limit: 1}")
    for _ in range(2):
        number = open_issue(stage)
        assert stage.outputs()["would-speak"] == "true"
        assert stage.comments(number) == []
    stage.configure("comment: {daily_limit: 3}")
    number = open_issue(stage)
    assert len(stage.comments(number)) == 1


QUESTIONS = (
    "What did we decide about sessions? As in #1, I think.",
    "As in #1, but worse.\n\nWhat did we decide about sessions?",
    "What did we decide in #1?",
    "Didn't we discuss this before? It looks like #1.",
)


@pytest.mark.night
@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_that_refers_to_an_issue_gets_one_comment(stage: Stage, text: str) -> None:
    number = open_issue(stage, text)
    stage.deliver("schedule")
    assert len(stage.comments(number)) == 1
    other = stage.github.open_issue("hubot", "Zyx", "Nothing to see.")
    comment = stage.github.comment(other, "hubot", text)
    stage.deliver("issue_comment", "created", other, comment)
    stage.deliver("schedule")
    (reply,) = stage.comments(other)
    assert find_marker(reply, reply_to=comment)
    assert "Where should sessions live?" in reply


@pytest.mark.parametrize("task", ["rebuild", "backtest"])
def test_an_empty_repository_gets_no_report_and_no_mention_of_one(empty_stage: Stage, task: str) -> None:
    empty_stage.deliver("workflow_dispatch", run=task)
    assert "There is no issue to replay yet" in summary(empty_stage)
    assert "What it would have said" not in summary(empty_stage)
    assert not (empty_stage.folder / ".precedent/backtest.html").exists()


@pytest.mark.night
def test_too_many_changes_for_one_run_are_read_in_bulk_as_history(fast_stage: Stage) -> None:
    stage = fast_stage.begin(with_mentions)
    stage.github.open_issue("monalisa", "Where should sessions live?", DECISION, at="2025-07-15T10:00:00Z")
    stage.deliver("schedule")
    for count in range(400):
        stage.github.open_issue("hubot", f"Spam {count}", "", at="2025-12-01T10:00:00Z")
    fresh = stage.github.open_issue("hubot", "Logged out", "As in #1.", at="2026-01-05T13:00:00Z")
    stage.deliver("schedule")
    assert stage.memory().state.manifest.threads == 402
    assert len(stage.comments(fresh)) == 1
    assert stage.github.reads < 20


def test_concurrent_runs_write_one_comment_on_each_issue(stage: Stage) -> None:
    stage.deliver("schedule")
    numbers = [stage.github.open_issue("hubot", f"Logged out {n}", "As in #1.") for n in range(3)]
    runs = [start_run(stage, number) for number in numbers]
    assert [process.wait() for process in runs] == [0, 0, 0]
    assert [len(stage.comments(number)) for number in numbers] == [1, 1, 1]


def start_run(stage: Stage, number: int) -> subprocess.Popen[bytes]:
    """Start the Action on an opened issue in its own process, as a workflow without a concurrency group does."""
    folder = stage.folder / f"runner-{number}"
    folder.mkdir()
    stage.github.write_event(folder / "event.json", "issues", "opened", number)
    files = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    changes = {"GITHUB_EVENT_PATH": str(folder / "event.json"), "RUNNER_TEMP": str(folder), "PATH": os.environ["PATH"]}
    moment = datetime.fromisoformat(stage.github.clock.now) + timedelta(microseconds=number)
    command = [sys.executable, "-m", "tests.acceptance.run_at", moment.isoformat()]
    environment = stage.environment("issues") | files | changes
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)


def test_the_context_file_for_an_agent_contains_the_conversation_of_the_issue(stage: Stage) -> None:
    number = open_issue(stage, "The form comes back at once.", "monalisa")
    assert stage.outputs()["context"] == ""
    post_comment(stage, number, "Since when? <!-- not seen -->", "octocat")
    context = Path(stage.outputs()["context"]).read_text(encoding="utf-8")
    assert "## What was said lately\n\n- thread status: CONTINUATION" in context
    assert "] monalisa: The form comes back at once.\n" in context
    assert "] octocat: Since when?\n" in context
    assert "not seen" not in context


def test_the_context_file_for_an_agent_does_not_quote_ignored_people(stage: Stage) -> None:
    stage.configure("ignore: {people: [octocat]}")
    number = open_issue(stage, "The form comes back at once.", "monalisa")
    post_comment(stage, number, "Secret words.", "OctoCat")
    assert stage.outputs()["context"] == ""
    post_comment(stage, number, "More.", "hubot")
    context = Path(stage.outputs()["context"]).read_text(encoding="utf-8")
    assert "] hubot: More.\n" in context
    assert "Secret" not in context


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("bot.action.main", ("github", "jinja2", "requests", "numpy", "whoosh", "bot.memory", "bot.pipeline.handle")),
        ("bot.action.run", ("numpy", "whoosh", "bot.evaluation.report")),
    ],
    ids=["before the settings are asked for", "before the event is handled"],
)
def test_modules_that_a_run_may_not_need_are_not_imported(module: str, names: tuple[str, ...]) -> None:
    script = f"import sys, {module}; print([name for name in {names} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
