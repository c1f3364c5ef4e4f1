"""One repository, event by event through the Action: what is remembered, answered and left alone."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from bot.action.main import run
from bot.domain.thread import Record, Thread, Tombstone
from bot.pipeline.run_context import DAILY_LIMIT_REACHED
from bot.reading.digest import digest
from tests.acceptance.stage import BOT, DECISION, REPOSITORY, Stage
from tests.marker import find_marker
from tests.memory.remotes import HostedRepository

ROOT = Path(__file__).parents[2]
POST = "POST /repos/*/issues/*/comments"
PATCH = "PATCH /repos/*/issues/comments/*"


def act(
    stage: Stage,
    event: str,
    action: str | None = None,
    number: int | None = None,
    comment: int | None = None,
    **inputs: str,
) -> int:
    """Run the Action some seconds after the event, as a runner does; request counts start again."""
    stage.github.clock.advance(20)
    stage.github.mark()
    return stage.act(event, action, number, comment, {name.replace("_", "-"): value for name, value in inputs.items()})


def open_issue(stage: Stage, body: str = "As in #1, but worse.", author: str = "hubot") -> int:
    number = stage.github.open_issue(author, "Everybody is logged out", body)
    assert act(stage, "issues", "opened", number) == 0
    return number


def post_comment(stage: Stage, number: int, text: str, author: str = "hubot") -> int:
    comment = stage.github.comment(number, author, text)
    assert act(stage, "issue_comment", "created", number, comment) == 0
    return comment


def edit_issue(stage: Stage, number: int, body: str) -> None:
    stage.github.edit_issue(number, body=body)
    assert act(stage, "issues", "edited", number) == 0


def our_comment_id(stage: Stage, number: int) -> int:
    (comment,) = stage.github.comments_by(BOT, number)
    return comment.id


def read_record(stage: Stage, number: int) -> Record | None:
    return stage.memory().records([number]).get(number)


def answer_state(stage: Stage, number: int) -> str:
    """The state of the answer on an issue in memory."""
    answer = stage.memory().state.answers([number]).get(number)
    return answer.state if answer else ""


def branch_files(stage: Stage) -> dict[str, bytes]:
    """Every file at the tip of the memory branch."""
    packed = subprocess.run(["git", "-C", str(stage.bare), "archive", "precedent"], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        return {member.name: file.read() for member in archive if (file := archive.extractfile(member))}


def make_environment(stage: Stage, event: str, **changes: str) -> Mapping[str, str]:
    return stage.environment(event) | changes


@pytest.mark.slow
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


def test_an_opened_issue_gets_one_comment_with_what_is_known(stage: Stage) -> None:
    number = open_issue(stage)
    (text,) = stage.comments(number)
    assert text.startswith("<!-- precedent:v1 id=action -->\n")
    assert "Where should sessions live?" in text
    assert "We decided to go with PostgreSQL" in text
    assert (stage.github.writes, stage.outputs()["spoke"]) == (1, "true")
    assert read_record(stage, number) is not None


@pytest.mark.slow
def test_a_usual_event_costs_at_most_two_reads_and_one_write(stage: Stage) -> None:
    number = open_issue(stage)
    costs = []
    for text in ("Me too.", "See #2 as well.", "Thanks."):
        post_comment(stage, number, text)
        costs.append((stage.github.reads, stage.github.writes))
    stage.github.close(number, "octocat")
    act(stage, "issues", "closed", number)
    costs.append((stage.github.reads, stage.github.writes))
    second = stage.github.open_issue("monalisa", "Slow printer", "Like #2.")
    act(stage, "issues", "opened", second)
    costs.append((stage.github.reads, stage.github.writes))
    assert costs == [(2, 0), (2, 1), (2, 0), (2, 0), (1, 1)]


def test_an_issue_that_nothing_is_known_about_gets_no_comment(stage: Stage) -> None:
    number = open_issue(stage, "zyx wvu tsr")
    assert stage.comments(number) == []
    assert (stage.github.writes, answer_state(stage, number), stage.outputs()["spoke"]) == (0, "silent", "false")


def test_an_edit_updates_the_comment_in_place(stage: Stage) -> None:
    number = open_issue(stage)
    mine = our_comment_id(stage, number)
    edit_issue(stage, number, "No: as in #2.")
    (text,) = stage.comments(number)
    assert our_comment_id(stage, number) == mine
    assert "Dark mode for the printer" in text
    assert "Where should sessions live?" not in text


@pytest.mark.slow
def test_our_comment_is_withdrawn_when_an_edit_makes_it_untrue(stage: Stage) -> None:
    number = open_issue(stage)
    edit_issue(stage, number, "zyx wvu tsr")
    (text,) = stage.comments(number)
    assert "no longer applies" in text
    assert "PostgreSQL" not in text
    assert stage.github.comment_by_id(our_comment_id(stage, number)).minimized == "OUTDATED"
    act(stage, "schedule")
    assert answer_state(stage, number) == "withdrawn"


@pytest.mark.slow
def test_a_withdrawn_comment_is_expanded_once_it_applies_again(stage: Stage) -> None:
    number = open_issue(stage)
    edit_issue(stage, number, "zyx wvu tsr")
    edit_issue(stage, number, "As in #1 after all.")
    (text,) = stage.comments(number)
    assert "Where should sessions live?" in text
    assert stage.github.comment_by_id(our_comment_id(stage, number)).minimized is None


def test_a_new_reference_in_a_comment_updates_our_existing_comment(stage: Stage) -> None:
    number = open_issue(stage)
    mine = our_comment_id(stage, number)
    post_comment(stage, number, "Perhaps #2 has to do with it.")
    (text,) = stage.comments(number)
    assert "Where should sessions live?" in text
    assert "Dark mode for the printer" in text
    assert our_comment_id(stage, number) == mine


@pytest.mark.slow
def test_a_comment_without_anything_new_is_only_remembered(stage: Stage) -> None:
    number = open_issue(stage)
    (before,) = stage.comments(number)
    post_comment(stage, number, "It happens to me too, see #1.")
    assert stage.comments(number) == [before]
    assert stage.github.writes == 0
    thread = read_record(stage, number)
    assert isinstance(thread, Thread)
    assert [comment.text for comment in thread.comments] == ["It happens to me too, see #1."]


@pytest.mark.slow
def test_repeating_an_event_changes_nothing(stage: Stage) -> None:
    number = open_issue(stage)
    comment = post_comment(stage, number, "And #2.")
    edit_issue(stage, number, "As in #1, but much worse.")
    act(stage, "schedule")
    texts, files = stage.comments(number), branch_files(stage)
    for event in (("issues", "opened", number), ("issue_comment", "created", number, comment)):
        assert act(stage, *event) == 0
        assert stage.github.writes == 0
    for event in (("issues", "edited", number), ("issue_comment", "created", number, comment), ("schedule",)):
        assert act(stage, *event) == 0
        assert stage.github.writes == 0
    assert stage.comments(number) == texts
    assert branch_files(stage) == files


@pytest.mark.slow
def test_a_comment_that_a_person_deleted_is_not_written_again(stage: Stage) -> None:
    number = open_issue(stage)
    post_comment(stage, number, "Thanks.")
    comment = our_comment_id(stage, number)
    stage.github.delete_comment(comment, by="octocat")
    act(stage, "issue_comment", "deleted", number, comment)
    edit_issue(stage, number, "See #2 instead.")
    post_comment(stage, number, "And #1 again.")
    act(stage, "schedule")
    assert stage.comments(number) == []
    assert answer_state(stage, number) == "removed"


@pytest.mark.slow
def test_a_comment_that_a_person_deleted_at_once_is_not_written_again(stage: Stage) -> None:
    number = open_issue(stage)
    comment = our_comment_id(stage, number)
    stage.github.clock.advance(5)
    stage.github.delete_comment(comment, by="octocat")
    act(stage, "issue_comment", "deleted", number, comment)
    stage.github.clock.advance(300)
    act(stage, "schedule")
    assert stage.comments(number) == []
    assert answer_state(stage, number) == "removed"


@pytest.mark.slow
def test_a_comment_that_was_deleted_before_any_run_saw_it_is_not_written_weeks_later(stage: Stage) -> None:
    number = open_issue(stage)
    stage.github.clock.advance(20 * 86_400)
    stage.github.delete_comment(our_comment_id(stage, number), by="octocat")
    edit_issue(stage, number, "See #2 instead.")
    assert stage.comments(number) == []
    assert answer_state(stage, number) == "removed"


@pytest.mark.slow
def test_a_comment_edited_in_the_second_in_which_it_was_read_is_read_again(stage: Stage) -> None:
    number = open_issue(stage)
    moment = stage.github.clock.now
    comment_id = post_comment(stage, number, "Thanks.")
    stage.github.edit_comment(comment_id, "Thanks, it works.", at=moment)
    act(stage, "issue_comment", "edited", number, comment_id)
    thread = read_record(stage, number)
    assert isinstance(thread, Thread)
    assert [comment.text for comment in thread.comments] == ["Thanks, it works."]


@pytest.mark.slow
def test_a_comment_written_in_the_second_in_which_another_was_deleted_is_read(stage: Stage) -> None:
    number = open_issue(stage)
    moment = stage.github.clock.now
    comment_id = post_comment(stage, number, "Thanks.")
    stage.github.delete_comment(comment_id, at=moment)
    stage.github.comment(number, "monalisa", "It fails again.", at=moment)  # its own event is lost
    act(stage, "issue_comment", "deleted", number, comment_id)
    thread = read_record(stage, number)
    assert isinstance(thread, Thread)
    assert [comment.text for comment in thread.comments] == ["It fails again."]


@pytest.mark.slow
def test_a_comment_that_a_person_edited_is_left_alone(stage: Stage) -> None:
    number = open_issue(stage)
    mine = our_comment_id(stage, number)
    edited = stage.comments(number)[0].replace("We decided", "They decided")
    stage.github.edit_comment(mine, edited, by="octocat")
    post_comment(stage, number, "And #2.")
    edit_issue(stage, number, "zyx wvu tsr")
    assert stage.comments(number) == [edited]
    assert stage.github.writes == 0


@pytest.mark.slow
@pytest.mark.parametrize("author", ["dependabot[bot]", "Nightly-Tester", "shy-person"])
def test_bots_and_ignored_people_are_remembered_but_not_answered(stage: Stage, author: str) -> None:
    configure(stage, "ignore: {authors: [nightly-tester], people: [shy-person]}")
    number = open_issue(stage, author=author)
    act(stage, "schedule")
    assert stage.comments(number) == []
    assert isinstance(read_record(stage, number), Thread)


@pytest.mark.slow
def test_an_issue_with_an_ignored_label_gets_no_comment(stage: Stage) -> None:
    configure(stage, 'ignore: {labels: ["[meta]"]}')
    number = stage.github.open_issue("hubot", "Plan", "As in #1.", labels=["[Meta]"])
    act(stage, "issues", "opened", number)
    assert stage.comments(number) == []


@pytest.mark.slow
def test_ignored_people_are_not_quoted(stage: Stage) -> None:
    configure(stage, "ignore: {people: [OctoCat]}")
    number = open_issue(stage)
    (text,) = stage.comments(number)
    assert "Where should sessions live?" in text
    assert "PostgreSQL" not in text


def configure(stage: Stage, settings: str, path: str = ".github/precedent.yml") -> None:
    """Commit a file to the default branch."""
    stage.git.commit(REPOSITORY, path, settings)


@pytest.mark.slow
def test_pull_requests_are_neither_remembered_nor_answered_by_default(stage: Stage) -> None:
    number = stage.github.add_pull("hubot", "Fix the sessions", "Closes #1.")
    comment = stage.github.comment(number, "monalisa", "See #2.")
    assert act(stage, "issue_comment", "created", number, comment) == 0
    assert stage.comments(number) == []
    assert read_record(stage, number) is None


@pytest.mark.slow
def test_pull_requests_are_answered_if_the_settings_ask_for_it(stage: Stage) -> None:
    configure(stage, "pulls: true")
    open_issue(stage)
    number = stage.github.add_pull("hubot", "Fix the sessions", "As in #1.")
    comment = stage.github.comment(number, "monalisa", "See #2.")
    assert act(stage, "issue_comment", "created", number, comment) == 0
    assert len(stage.comments(number)) == 1


@pytest.mark.slow
def test_a_referenced_pull_request_is_shown_with_its_current_state(stage: Stage) -> None:
    pull = stage.github.add_pull("octocat", "Keep sessions in a table", "A new table.")
    stage.github.clock.advance(600)
    assert "still open" in stage.comments(open_issue(stage, f"As in #{pull}."))[0]
    stage.github.clock.advance(3_600)
    stage.github.merge_pull(pull, "octocat")
    stage.github.clock.advance(600)
    assert "merged" in stage.comments(open_issue(stage, f"Not as in #{pull}."))[0]
    assert answer_state(stage, pull) == ""


@pytest.mark.slow
@pytest.mark.parametrize("role", ["MEMBER", "NONE"])
def test_a_fix_is_shown_once_it_is_merged_and_only_quoted_before(stage: Stage, role: str) -> None:
    number = open_issue(stage, "Sessions are lost.")
    pull = stage.github.add_pull("octocat", "Keep sessions in a table", "A new table.")
    author = "octocat" if role == "MEMBER" else "hubot"
    post_comment(stage, number, f"Fixed by #{pull}, which keeps them.", author)
    stage.github.close(number, "octocat")
    assert act(stage, "issues", "closed", number) == 0
    stage.github.clock.advance(600)
    before = stage.comments(open_issue(stage, f"As in #{number}."))[0]
    assert "which keeps them" in before
    assert "**fixed" not in before
    stage.github.merge_pull(pull, "octocat")
    stage.github.clock.advance(25 * 3_600)
    after = stage.comments(open_issue(stage, f"Not as in #{number}."))[0]
    assert f"**fixed** by [pull request {pull}]" in after
    assert "which keeps them" in after
    stage.github.clock.advance(600)
    assert "**fixed** by" in stage.comments(open_issue(stage, f"Much as in #{number}."))[0]
    assert not [call for call in stage.github.recent if "/pulls/" in call.path], "it was looked up once"


@pytest.mark.slow
def test_changed_pull_requests_do_not_hold_the_cursor_back(stage: Stage) -> None:
    open_issue(stage)
    stage.github.clock.advance(3600)
    stage.github.add_pull("hubot", "Fix the sessions", "")
    act(stage, "push")
    cursor = stage.memory().state.manifest.cursor
    assert cursor is not None
    assert cursor > datetime.fromisoformat("2026-01-05T12:59:00Z")


@pytest.mark.slow
@pytest.mark.parametrize("action", ["deleted", "transferred"])
def test_a_deleted_or_transferred_issue_leaves_a_tombstone_and_no_text(stage: Stage, action: str) -> None:
    number = stage.github.open_issue("hubot", "Canarytitle logs out", "Canarybody, see #1. canary_identifier")
    act(stage, "issues", "opened", number)
    comment = stage.github.comment(number, "hubot", "Canarycomment")
    act(stage, "issue_comment", "created", number, comment)
    assert any(b"anarycomment" in data.lower() for data in branch_files(stage).values())
    if action == "deleted":
        stage.github.delete_issue(number)
    else:
        stage.github.transfer(number, stage.github.add_project("octo-org/other"))
    assert act(stage, "issues", action, number) == 0
    files = branch_files(stage)
    assert act(stage, "issues", action, number) == 0
    record = read_record(stage, number)
    assert isinstance(record, Tombstone)
    assert (record.reason, record.moved_to) == (action, "octo-org/other#1" if action == "transferred" else None)
    assert branch_files(stage) == files
    assert [name for name, data in files.items() if b"canary" in data.lower()] == []


@pytest.mark.slow
def test_a_closed_issue_is_remembered_with_its_outcome(stage: Stage) -> None:
    number = open_issue(stage)
    (before,) = stage.comments(number)
    post_comment(stage, number, "Fixed in v2.3.0, please upgrade.", "octocat")
    stage.github.close(number, "octocat")
    assert act(stage, "issues", "closed", number) == 0
    thread = read_record(stage, number)
    assert isinstance(thread, Thread)
    assert (thread.state, thread.closed_by) == ("closed", "octocat")
    assert digest(thread).outcome.kind == "fixed"
    assert stage.comments(number) == [before]


@pytest.mark.slow
def test_an_edit_of_a_closed_issue_leaves_the_comment_alone(stage: Stage) -> None:
    number = open_issue(stage)
    (before,) = stage.comments(number)
    stage.github.close(number, "octocat")
    act(stage, "issues", "closed", number)
    edit_issue(stage, number, "zyx wvu tsr")
    assert stage.comments(number) == [before]


@pytest.mark.slow
def test_a_rebuild_reads_everything_again_and_leaves_tombstones_for_deleted_issues(stage: Stage) -> None:
    number = open_issue(stage)
    lost = open_issue(stage, "zyx")
    stage.github.delete_issue(lost)
    assert act(stage, "workflow_dispatch", run="rebuild") == 0
    assert isinstance(read_record(stage, lost), Tombstone)
    assert isinstance(read_record(stage, number), Thread)
    assert stage.memory().state.manifest.threads == 3
    assert len(stage.comments(number)) == 1


@pytest.mark.slow
def test_a_rebuild_writes_a_report_of_the_comments_it_would_have_made(stage: Stage) -> None:
    open_issue(stage)
    workspace = stage.folder / "workspace"
    workspace.mkdir()
    stage.github.write_event(stage.folder / "event.json", "workflow_dispatch")
    environment = stage.environment("workflow_dispatch", {"run": "rebuild"}) | {"GITHUB_WORKSPACE": str(workspace)}
    assert run(environment, datetime.fromisoformat(stage.github.clock.now), write_gap=0) == 0
    report = (workspace / ".precedent/backtest.html").read_text(encoding="utf-8")
    assert "Everybody is logged out" in report
    job_summary = stage.summary.read_text(encoding="utf-8")
    assert "What it would have said is in .precedent/backtest.html, which is lost when the job ends" in job_summary
    assert "Of the 3 newest issues, it would have shown similar ones on 0" in job_summary
    assert {"model/ranking.json", "model/backtest.json"} <= set(branch_files(stage))
    assert "model/words.bin" not in branch_files(stage)


@pytest.mark.slow
def test_a_manual_backtest_shows_the_comments_it_would_have_made_and_writes_nothing(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    open_issue(stage)
    before = branch_files(stage)
    assert act(stage, "workflow_dispatch", run="backtest") == 0
    assert branch_files(stage) == before
    assert stage.github.writes == 0
    assert "Everybody is logged out" in (stage.folder / ".precedent/backtest.html").read_text(encoding="utf-8")
    assert "Of the 3 newest issues" in stage.summary.read_text(encoding="utf-8")
    assert "it would have shown similar ones on 0 (0.0\u00a0%)." in capfd.readouterr().out


def test_a_backtest_of_an_empty_memory_says_that_there_is_nothing_yet(stage: Stage) -> None:
    assert act(stage, "workflow_dispatch", run="backtest") == 0
    assert "There is no issue to replay yet" in stage.summary.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_memory_that_has_grown_learns_and_still_answers(fast_stage: Stage) -> None:
    stage = fast_stage
    for count in range(60):
        thing, trouble = ("sync", "import", "login", "theme")[count % 4], ("crashes", "hangs", "is slow")[count % 3]
        body = f"The {thing} {trouble} after the upgrade, with a snapshot on drive {count}."
        opened = f"2025-09-{1 + count // 3:02}T10:00:00Z"
        stage.github.open_issue("monalisa", f"{thing} {trouble} again", body, at=opened)
    act(stage, "schedule")
    memory = stage.memory()
    assert memory.state.manifest.learned_from == memory.state.manifest.threads == 60
    assert "model/words.bin" in branch_files(stage)
    assert "Of the 60 newest issues" in stage.summary.read_text(encoding="utf-8")
    number = open_issue(stage)
    assert len(stage.comments(number)) == 1
    assert stage.memory().state.manifest.learned_from == 60
    assert "newest issues" not in stage.summary.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_manual_catch_up_answers_missed_issues_but_not_those_of_bots(stage: Stage) -> None:
    open_issue(stage, "zyx")
    missed = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    robot = stage.github.open_issue("dependabot[bot]", "Bump", "As in #1.")
    assert act(stage, "workflow_dispatch", run="catch-up") == 0
    assert [len(stage.comments(number)) for number in (missed, robot)] == [1, 0]


@pytest.mark.slow
def test_a_manual_answer_is_posted_however_old_the_issue_is(stage: Stage) -> None:
    old = stage.github.open_issue("hubot", "Logged out", "As in #1.", at="2025-09-01T10:00:00Z")
    act(stage, "schedule")
    assert stage.comments(old) == []
    assert act(stage, "workflow_dispatch", run="answer", issue=str(old)) == 0
    assert len(stage.comments(old)) == 1
    assert act(stage, "workflow_dispatch", run="answer", issue=str(old)) == 0
    assert (len(stage.comments(old)), stage.github.writes) == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "hours", "answers"), [("", 20, 1), ("", 25, 0), ("comment: {answer_within_hours: 48}", 25, 1)]
)
def test_a_scheduled_run_answers_an_issue_with_a_lost_event_within_the_set_hours(
    stage: Stage, settings: str, hours: int, answers: int
) -> None:
    if settings:
        configure(stage, settings)
    act(stage, "schedule")
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.", at="2026-01-05T13:00:00Z")
    stage.github.clock.advance(hours * 3600)
    act(stage, "schedule")
    assert len(stage.comments(number)) == answers


@pytest.mark.slow
def test_an_old_issue_is_answered_even_if_another_run_read_the_change_first(stage: Stage) -> None:
    old = stage.github.open_issue("hubot", "Logged out", "zyx", at="2025-09-01T10:00:00Z")
    act(stage, "schedule")
    comment = stage.github.comment(old, "hubot", "Like #1?")
    act(stage, "schedule")
    assert stage.comments(old) == []
    act(stage, "issue_comment", "created", old, comment)
    assert len(stage.comments(old)) == 1
    stage.github.clock.advance(26 * 3600)
    stage.github.edit_issue(old, body="Like #2?")
    act(stage, "schedule")
    assert "Dark mode" not in stage.comments(old)[0]
    act(stage, "issues", "edited", old)
    assert "Dark mode" in stage.comments(old)[0]


@pytest.mark.slow
def test_a_post_with_a_lost_response_leaves_one_comment(stage: Stage) -> None:
    stage.github.faults.add(POST, "dup")
    number = open_issue(stage)
    assert len(stage.comments(number)) == 1
    act(stage, "schedule")
    assert (len(stage.comments(number)), answer_state(stage, number)) == (1, "said")


@pytest.mark.slow
def test_a_comment_that_could_not_be_posted_is_posted_by_the_next_run(stage: Stage) -> None:
    stage.github.faults.add(POST, "drop")
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    assert act(stage, "issues", "opened", number) == 1
    assert (stage.comments(number), answer_state(stage, number)) == ([], "pending")
    assert act(stage, "schedule") == 0
    act(stage, "schedule")
    assert (len(stage.comments(number)), answer_state(stage, number)) == (1, "said")


@pytest.mark.slow
@pytest.mark.parametrize("body", ["Now as in #2.", "zyx wvu tsr"])
def test_an_update_that_could_not_be_made_is_made_by_the_next_run(stage: Stage, body: str) -> None:
    number = open_issue(stage)
    (before,) = stage.comments(number)
    stage.github.faults.add(PATCH, "drop")
    stage.github.edit_issue(number, body=body)
    assert act(stage, "issues", "edited", number) == 1
    assert stage.comments(number) == [before]
    stage.github.clock.advance(3600)
    assert act(stage, "schedule") == 0
    assert stage.comments(number) != [before]
    act(stage, "schedule")
    assert answer_state(stage, number) in ("said", "withdrawn")


@pytest.mark.slow
def test_a_pending_comment_is_given_up_after_a_day(stage: Stage) -> None:
    stage.github.faults.add(POST, "drop", None)
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    assert act(stage, "issues", "opened", number) == 1
    stage.github.clock.advance(25 * 3600)
    assert act(stage, "schedule") == 0
    assert (stage.memory().state.manifest.pending, answer_state(stage, number)) == ((), "silent")


@pytest.mark.slow
def test_repeated_runs_even_in_the_same_second_write_one_comment(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    for hours in (0, 0, 1, 1, 1):
        stage.github.clock.advance(hours * 3600)
        stage.github.comment(2, "hubot", "noise")
        assert stage.act("issues", "opened", number) == 0
    assert len(stage.comments(number)) == 1


@pytest.mark.slow
def test_a_strangers_marker_is_not_taken_for_ours(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    spoof = stage.github.comment(number, "monalisa", "<!-- precedent:v1 id=action -->\nHa!\n")
    assert act(stage, "issues", "opened", number) == 0
    assert len(stage.comments(number)) == 1
    assert stage.github.comment_by_id(spoof).body == "<!-- precedent:v1 id=action -->\nHa!\n"
    thread = read_record(stage, number)
    assert isinstance(thread, Thread)
    assert [comment.author for comment in thread.comments] == ["monalisa"]


@pytest.mark.slow
def test_another_workflows_comment_that_quotes_our_marker_is_not_ours(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    other = stage.github.comment(number, BOT, "Copied: <!-- precedent:v1 id=action --> As in #1.")
    assert act(stage, "issues", "opened", number) == 0
    assert len(stage.comments(number)) == 2
    assert stage.github.comment_by_id(other).body.startswith("Copied")


@pytest.mark.slow
def test_our_comment_is_found_on_the_third_page(fast_stage: Stage) -> None:
    stage = fast_stage
    stage.github.open_issue("monalisa", "Where should sessions live?", DECISION, at="2025-07-15T10:00:00Z")
    stage.github.close(1, "octocat", at="2025-07-16T10:00:00Z")
    number = stage.github.open_issue("hubot", "Logged out", "zyx", at="2025-09-01T10:00:00Z")
    for count in range(210):
        stage.github.comment(number, "hubot", f"Still there, {count}.", at="2025-09-02T10:00:00Z")
    act(stage, "schedule")
    edit_issue(stage, number, "As in #1.")
    for count in range(40):
        stage.github.comment(number, "hubot", f"Still there, {count}.", at="2026-01-05T13:00:00Z")
    stage.github.clock.advance(24 * 3600)
    act(stage, "schedule")
    edit_issue(stage, number, "zyx")
    assert len(stage.comments(number)) == 1
    assert "no longer applies" in stage.comments(number)[0]


@pytest.mark.slow
def test_summary_mode_shows_the_comment_in_the_job_summary_only_and_only_once(stage: Stage) -> None:
    configure(stage, "mode: summary")
    number = open_issue(stage)
    assert (stage.comments(number), stage.github.writes) == ([], 0)
    assert "What it would have said" in stage.summary.read_text(encoding="utf-8")
    assert (stage.outputs()["spoke"], stage.outputs()["would-speak"]) == ("false", "true")
    act(stage, "issues", "opened", number)
    assert "What it would have said" not in stage.summary.read_text(encoding="utf-8")
    configure(stage, "mode: comment")
    act(stage, "schedule")
    assert stage.comments(number) == []


@pytest.mark.slow
def test_mode_off_only_remembers(stage: Stage) -> None:
    configure(stage, "mode: off")
    number = open_issue(stage)
    assert (stage.comments(number), stage.github.writes) == ([], 0)
    assert isinstance(read_record(stage, number), Thread)
    assert stage.outputs()["reason"] == "the mode is off"


@pytest.mark.slow
def test_a_dry_run_writes_nothing_and_shows_what_it_would_post(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    assert act(stage, "issues", "opened", number, dry_run="true") == 0
    assert (stage.comments(number), stage.github.writes, stage.git.pushes) == ([], 0, 0)
    job_summary = stage.summary.read_text(encoding="utf-8")
    assert "What it would have said" in job_summary
    assert "PostgreSQL" in job_summary
    assert act(stage, "issues", "opened", number) == 0
    assert len(stage.comments(number)) == 1


@pytest.mark.slow
def test_outputs_hold_nothing_that_a_stranger_wrote(stage: Stage) -> None:
    title = "x\nspoke=false\nEOF\nreason<<EOF\nowned\nEOF"
    number = stage.github.open_issue("hubot", title, "As in #1.")
    act(stage, "issues", "opened", number)
    outputs = stage.outputs()
    assert sorted(outputs) == ["comment-id", "comment-url", "context", "matches", "reason", "spoke", "would-speak"]
    assert outputs["comment-id"] == str(our_comment_id(stage, number))
    assert outputs["comment-url"].endswith(f"#issuecomment-{our_comment_id(stage, number)}")
    assert (outputs["spoke"], outputs["matches"]) == ("true", "[]")
    assert "PostgreSQL" in Path(outputs["context"]).read_text(encoding="utf-8")
    assert "owned" not in stage.output.read_text(encoding="utf-8")


def test_the_job_summary_shows_what_happened(stage: Stage) -> None:
    number = open_issue(stage)
    job_summary = stage.summary.read_text(encoding="utf-8")
    assert f"- issue {number}: Everybody is logged out · [created](" in job_summary
    assert "API: " in job_summary


@pytest.mark.slow
def test_a_github_enterprise_server_is_reached_below_its_api_path(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", "Logged out", "As in #1.")
    environment = make_environment(stage, "issues", GITHUB_API_URL=stage.github.enterprise_url)
    now = datetime.fromisoformat(stage.github.clock.now)
    stage.github.write_event(stage.folder / "event.json", "issues", "opened", number)
    assert run(environment, now, write_gap=0) == 0
    stage.github.edit_issue(number, body="zyx wvu tsr")
    stage.github.write_event(stage.folder / "event.json", "issues", "edited", number)
    assert run(environment, now, write_gap=0) == 0
    assert stage.github.comment_by_id(our_comment_id(stage, number)).minimized == "OUTDATED"


@pytest.mark.slow
def test_one_run_answers_five_issues_and_the_next_runs_the_others(stage: Stage) -> None:
    act(stage, "schedule")
    numbers = [stage.github.open_issue("hubot", f"Logged out {n}", "As in #1.") for n in range(7)]
    counts = []
    for _ in range(3):
        act(stage, "schedule")
        counts.append(sum(len(stage.comments(number)) for number in numbers))
    assert counts == [5, 7, 7]


@pytest.mark.slow
def test_no_24_hours_have_more_comments_than_the_daily_limit(stage: Stage) -> None:
    configure(stage, "comment: {daily_limit: 2, answer_within_hours: 48}")
    act(stage, "schedule")
    numbers = [stage.github.open_issue("hubot", f"Logged out {n}", "As in #1.") for n in range(3)]
    for _ in range(3):
        act(stage, "schedule")
    assert sum(len(stage.comments(number)) for number in numbers) == 2
    stage.github.clock.advance(13 * 3600)  # it is another day
    act(stage, "schedule")
    assert sum(len(stage.comments(number)) for number in numbers) == 2
    stage.github.clock.advance(11 * 3600)
    act(stage, "schedule")
    assert [len(stage.comments(number)) for number in numbers] == [1, 1, 1]


@pytest.mark.slow
def test_replies_and_comments_share_one_daily_limit(stage: Stage) -> None:
    configure(stage, "comment: {daily_limit: 2}")
    act(stage, "schedule")
    first = open_issue(stage, "What is this?")
    comment = stage.github.comment(first, "hubot", "/precedent search sessions")
    act(stage, "issue_comment", "created", first, comment)
    numbers = [open_issue(stage), open_issue(stage)]
    assert [len(stage.comments(number)) for number in (first, *numbers)] == [1, 1, 0]
    assert stage.outputs()["reason"] == DAILY_LIMIT_REACHED


@pytest.mark.slow
def test_the_daily_limit_hides_nothing_while_no_comments_are_written(stage: Stage) -> None:
    configure(stage, "comment: {daily_limit: 2}")
    act(stage, "schedule")
    for _ in range(2):
        number = open_issue(stage)
        assert len(stage.comments(number)) == 1
    configure(stage, "mode: summary\ncomment: {daily_limit: 1}")
    for _ in range(2):
        number = open_issue(stage)
        assert stage.outputs()["would-speak"] == "true"
        assert stage.comments(number) == []
    configure(stage, "comment: {daily_limit: 3}")
    number = open_issue(stage)
    assert len(stage.comments(number)) == 1


QUESTIONS = (
    "What did we decide about sessions? As in #1, I think.",
    "As in #1, but worse.\n\nWhat did we decide about sessions?",
    "What did we decide in #1?",
    "Didn't we discuss this before? It looks like #1.",
)


@pytest.mark.slow
@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_that_refers_to_an_issue_gets_one_comment(stage: Stage, text: str) -> None:
    number = open_issue(stage, text)
    act(stage, "schedule")
    assert len(stage.comments(number)) == 1
    other = open_issue(stage, "Nothing to see.")
    comment = stage.github.comment(other, "hubot", text)
    act(stage, "issue_comment", "created", other, comment)
    act(stage, "schedule")
    (reply,) = stage.comments(other)
    assert find_marker(reply, reply_to=comment)
    assert "Where should sessions live?" in reply


@pytest.mark.slow
@pytest.mark.parametrize("task", ["rebuild", "backtest"])
def test_an_empty_repository_gets_no_report_and_no_mention_of_one(
    empty_stage: Stage, tmp_path: Path, task: str
) -> None:
    stage = empty_stage
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    stage.github.write_event(tmp_path / "event.json", "workflow_dispatch")
    environment = stage.environment("workflow_dispatch", {"run": task}) | {"GITHUB_WORKSPACE": str(workspace)}
    assert run(environment, datetime.fromisoformat(stage.github.clock.now), write_gap=0) == 0
    job_summary = stage.summary.read_text(encoding="utf-8")
    assert "There is no issue to replay yet" in job_summary
    assert "What it would have said" not in job_summary
    assert not (workspace / ".precedent/backtest.html").exists()


@pytest.mark.slow
def test_a_refresh_that_changes_nothing_gets_only_a_reaction(stage: Stage) -> None:
    number = open_issue(stage)
    for count in (1, 1):
        comment = stage.github.comment(number, "hubot", "/precedent refresh")
        act(stage, "issue_comment", "created", number, comment)
        assert len(stage.comments(number)) == count
        assert [reaction.content for reaction in stage.github.comment_by_id(comment).reactions] == ["eyes", "rocket"]


@pytest.mark.slow
def test_too_many_changes_for_one_run_are_read_in_bulk_as_history(fast_stage: Stage) -> None:
    stage = fast_stage
    stage.github.open_issue("monalisa", "Where should sessions live?", DECISION, at="2025-07-15T10:00:00Z")
    act(stage, "schedule")
    for count in range(400):
        stage.github.open_issue("hubot", f"Spam {count}", "", at="2025-12-01T10:00:00Z")
    fresh = stage.github.open_issue("hubot", "Logged out", "As in #1.", at="2026-01-05T13:00:00Z")
    act(stage, "schedule")
    assert stage.memory().state.manifest.threads == 402
    assert len(stage.comments(fresh)) == 1
    assert stage.github.reads < 20


@pytest.mark.slow
def test_concurrent_runs_write_one_comment_on_each_issue(stage: Stage) -> None:
    act(stage, "schedule")
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
    moment = f"datetime.fromisoformat({stage.github.clock.now!r}) + timedelta(microseconds={number})"
    code = (
        "import os, sys; from datetime import datetime, timedelta; from bot.action.main import run; "
        f"sys.exit(run(os.environ, {moment}))"
    )
    environment = make_environment(stage, "issues", **files, **changes)
    return subprocess.Popen([sys.executable, "-c", code], env=dict(environment), cwd=ROOT, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_the_context_file_for_an_agent_contains_the_conversation_of_the_issue(stage: Stage) -> None:
    number = open_issue(stage, "The form comes back at once.", "monalisa")
    assert stage.outputs()["context"] == ""
    post_comment(stage, number, "Since when? <!-- not seen -->", "octocat")
    context = Path(stage.outputs()["context"]).read_text(encoding="utf-8")
    assert "## What was said lately\n\n- thread status: CONTINUATION" in context
    assert "] monalisa: The form comes back at once.\n" in context
    assert "] octocat: Since when?\n" in context
    assert "not seen" not in context


@pytest.mark.slow
def test_the_context_file_for_an_agent_does_not_quote_ignored_people(stage: Stage) -> None:
    configure(stage, "ignore: {people: [octocat]}")
    number = open_issue(stage, "The form comes back at once.", "monalisa")
    post_comment(stage, number, "Secret words.", "OctoCat")
    assert stage.outputs()["context"] == ""
    post_comment(stage, number, "More.", "hubot")
    context = Path(stage.outputs()["context"]).read_text(encoding="utf-8")
    assert "] hubot: More.\n" in context
    assert "Secret" not in context


@pytest.mark.slow
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
