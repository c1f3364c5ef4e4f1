"""Discussions are remembered with their history, shown with the marked answer, kept up to date and forgotten."""

from __future__ import annotations

import pytest

from bot.domain.changes import DiscussionProgress
from bot.domain.thread import Kind, OutcomeKind, Thread, Tombstone
from bot.pipeline.discussions import MAX_PAGES
from bot.reading.endings.outcome import outcome
from tests.acceptance.stage import DECISION, Stage, graph_requests, rebuild, summary

QUESTION = "How do I keep the login cookie behind a proxy?"
TEXT = "The proxy refuses the cookie after login, and auth/cookie.py raises CookieRefused."
ANSWER = "Set `trust_proxy: true` in the settings, then the cookie is sent with the right domain."
SIMILAR_ISSUE = ("Login cookie refused behind a proxy", f"{TEXT} How do I keep it?")


def discuss(stage: Stage, *, marked: bool = True) -> tuple[int, int]:
    """An old discussion, and the id of the comment that answers it."""
    number = stage.github.discuss("hubot", QUESTION, TEXT, at="2025-09-01T10:00:00Z", labels=["help"])
    comment = stage.github.say(number, "octocat", ANSWER, at="2025-09-02T10:00:00Z")
    stage.github.say(number, "hubot", "It does not work, it is still broken!", at="2025-09-03T10:00:00Z", to=comment)
    if marked:
        stage.github.mark_answer(number, comment, "hubot", at="2025-09-04T10:00:00Z")
    return number, comment


def run_event(stage: Stage, event: str, action: str | None = None, number: int | None = None, comment: int = 0) -> None:
    stage.github.clock.advance(600)
    stage.github.mark()
    assert stage.act(event, action, number, comment or None) == 0


def comment_on_new_issue(stage: Stage, title: str, body: str) -> str:
    """Our comment on a new issue; "" if there is none."""
    number = stage.github.open_issue("monalisa", title, body)
    run_event(stage, "issues", "opened", number)
    return "\n".join(stage.comments(number))


def read_thread(stage: Stage, number: int) -> Thread:
    record = stage.memory().records([number])[number]
    assert isinstance(record, Thread)
    return record


def progress(stage: Stage) -> DiscussionProgress | None:
    return stage.memory().state.manifest.discussions


def test_the_first_run_reads_the_history_of_discussions(stage: Stage) -> None:
    number, comment = discuss(stage)
    run_event(stage, "schedule")
    thread = read_thread(stage, number)
    assert (thread.kind, thread.title, thread.author, thread.labels) == (
        Kind.DISCUSSION, QUESTION, "hubot", ("Q&A", "help"),
    )  # fmt: skip
    assert [reply.text for reply in thread.comments][:1] == [ANSWER]
    assert (outcome(thread).kind, outcome(thread).comment_id) == (OutcomeKind.ANSWERED, comment)
    state = progress(stage)
    assert state is not None
    assert (state.is_done, state.after) == (True, "")
    assert "Discussions read: 1." in summary(stage)


def test_the_comment_on_a_new_issue_shows_the_marked_answer_of_a_similar_discussion(stage: Stage) -> None:
    number, comment = discuss(stage)
    run_event(stage, "schedule")
    text = comment_on_new_issue(stage, *SIMILAR_ISSUE)
    address = f"{stage.git.url}/octo-org/hello-world/discussions/{number}"
    assert f"**Seen before**\n\n- [{QUESTION}]({address}) · discussion, **answered**, 4 September 2025\n" in text
    assert (
        f"“{ANSWER.replace('`', '')}” ([maintainer, 2 September 2025]({address}#discussioncomment-{comment}))" in text
    )
    assert graph_requests(stage) == 0
    assert (stage.github.reads, stage.github.writes) == (1, 1)


def test_a_discussion_without_a_marked_answer_is_shown_as_open(stage: Stage) -> None:
    number, _ = discuss(stage, marked=False)
    run_event(stage, "schedule")
    assert (
        f"**Open now**\n\n- [{QUESTION}]({stage.git.url}/octo-org/hello-world/discussions/{number})"
        in comment_on_new_issue(stage, *SIMILAR_ISSUE)
    )


@pytest.mark.parametrize("reference", ["#{}", "http://127.0.0.1/octo-org/hello-world/discussions/{}"])
def test_a_referenced_discussion_is_shown_as_a_discussion(stage: Stage, reference: str) -> None:
    number, _ = discuss(stage)
    run_event(stage, "schedule")
    text = comment_on_new_issue(stage, "Everybody is logged out", f"As {reference.format(number)} says.")
    assert "**Mentioned here**" in text
    assert f"/discussions/{number}) · discussion, **answered**, 4 September 2025" in text


def test_a_discussion_that_is_not_in_memory_is_looked_up_once(stage: Stage) -> None:
    discuss(stage)
    run_event(stage, "schedule")
    newer = stage.github.discuss("hubot", "Printing in colour", "Where is the setting?")
    text = comment_on_new_issue(stage, "Everybody is logged out", f"As in #{newer}.")
    assert "[Printing in colour]" in text
    assert "discussion, still open" in text
    assert graph_requests(stage) == 1
    comment_on_new_issue(stage, "Logged out once more", f"As in #{newer}.")
    assert graph_requests(stage) == 0


def test_the_events_of_a_discussion_keep_its_record_up_to_date(stage: Stage) -> None:
    number, comment = discuss(stage, marked=False)
    run_event(stage, "discussion", "created", number)
    assert not read_thread(stage, number).is_closed
    stage.github.mark_answer(number, comment, "hubot")
    run_event(stage, "discussion", "answered", number)
    assert outcome(read_thread(stage, number)).kind is OutcomeKind.ANSWERED
    assert graph_requests(stage) == 1
    stage.github.edit_discussion_comment(number, comment, "Use version 3 of the proxy.")
    run_event(stage, "discussion_comment", "edited", number, comment)
    assert outcome(read_thread(stage, number)).quote == "Use version 3 of the proxy."
    stage.github.unmark_answer(number)
    run_event(stage, "discussion", "unanswered", number)
    assert not read_thread(stage, number).is_closed
    stage.github.close_discussion(number, "outdated")
    run_event(stage, "discussion", "closed", number)
    assert (read_thread(stage, number).is_closed, read_thread(stage, number).state_reason) == (True, "outdated")
    assert stage.github.writes == 0


def test_a_comment_that_shows_a_discussion_is_updated_when_its_answer_changes(stage: Stage) -> None:
    number, comment = discuss(stage)
    run_event(stage, "schedule")
    assert "trust_proxy" in comment_on_new_issue(stage, *SIMILAR_ISSUE)
    issue = stage.github.repo.next_number - 1
    stage.github.edit_discussion_comment(number, comment, "Upgrade the proxy to version 3, which keeps the cookie.")
    run_event(stage, "discussion_comment", "edited", number, comment)
    (text,) = stage.comments(issue)
    assert "trust_proxy" not in text
    assert "Upgrade the proxy to version 3, which keeps the cookie." in text


@pytest.mark.parametrize("how", ["deleted", "transferred"])
def test_a_removed_discussion_disappears_from_memory_and_from_our_comments(stage: Stage, how: str) -> None:
    number, _ = discuss(stage)
    run_event(stage, "schedule")
    comment_on_new_issue(stage, *SIMILAR_ISSUE)
    issue = stage.github.repo.next_number - 1
    moved_to = None
    if how == "deleted":
        stage.github.delete_discussion(number)
    else:
        other = stage.github.add_project("octo-org/other")
        moved_to = f"octo-org/other#{stage.github.transfer_discussion(number, other)}"
    run_event(stage, "discussion", how, number)
    assert graph_requests(stage) == 1  # the one that collapses our comment
    record = stage.memory().records([number])[number]
    assert isinstance(record, Tombstone)
    assert (record.reason, record.moved_to) == (how, moved_to)
    (text,) = stage.comments(issue)
    assert "cookie is sent" not in text
    run_event(stage, "schedule")
    assert isinstance(stage.memory().records([number])[number], Tombstone)


def test_a_forgotten_discussion_stays_forgotten(stage: Stage) -> None:
    number, _ = discuss(stage)
    run_event(stage, "schedule")
    assert stage.act("workflow_dispatch", inputs={"run": "forget", "issue": str(number)}) == 0
    stage.github.say(number, "hubot", "Hello again")
    run_event(stage, "discussion_comment", "created", number, stage.github.discussion(number).comments[-1].id)
    assert isinstance(stage.memory().records([number])[number], Tombstone)
    assert "cookie" not in comment_on_new_issue(stage, *SIMILAR_ISSUE)


def test_a_scheduled_run_finds_changes_whose_events_were_lost(stage: Stage) -> None:
    number, comment = discuss(stage, marked=False)
    run_event(stage, "schedule")
    stage.github.clock.advance(3600)
    stage.github.mark_answer(number, comment, "hubot")
    newer = stage.github.discuss("hubot", "Printing in colour", "Where is the setting?")
    run_event(stage, "schedule")
    assert read_thread(stage, number).is_closed
    assert read_thread(stage, newer).title == "Printing in colour"
    assert graph_requests(stage) == 1


def test_discussions_are_not_requested_from_a_repository_that_has_none(stage: Stage) -> None:
    stage.github.open_issue("hubot", "Where should sessions live?", DECISION)
    run_event(stage, "issues", "opened", 1)
    assert graph_requests(stage) == 1  # the history of issues
    for event in ("schedule", "issues"):
        run_event(stage, event, "labeled" if event == "issues" else None, 1 if event == "issues" else None)
        assert graph_requests(stage) == 0
    assert progress(stage) is None


def test_discussions_are_not_answered_by_default(stage: Stage) -> None:
    discuss(stage)
    run_event(stage, "schedule")
    number = stage.github.discuss("monalisa", *SIMILAR_ISSUE)
    comment = stage.github.say(number, "monalisa", "/precedent search cookie")
    run_event(stage, "discussion", "created", number)
    run_event(stage, "discussion_comment", "created", number, comment)
    assert stage.github.writes == 0
    assert "No answer was due" in summary(stage)
    assert stage.memory().state.answers([number]) == {}
    assert stage.act("workflow_dispatch", inputs={"run": "answer", "issue": str(number)}) == 2
    assert "is a discussion, and those are answered only with discussions.answer: true" in summary(stage)


def test_a_token_that_may_not_read_discussions_is_reported_if_there_are_any(stage: Stage) -> None:
    number, _ = discuss(stage)
    stage.github.world.tokens[stage.github.token].permissions = {"issues": "write", "contents": "write"}
    run_event(stage, "discussion", "created", number)
    assert "the token may not read discussions: give the job 'discussions: read'" in summary(stage)
    assert number not in stage.memory().records([number])
    run_event(stage, "issues", "labeled", 1)
    assert graph_requests(stage) == 0
    assert progress(stage) is None
    run_event(stage, "schedule")
    assert "the token may not read discussions" in summary(stage)


@pytest.mark.parametrize("kind", ["5xx", "drop", "html", "cut", "secondary200", "limit200"])
def test_a_comment_that_a_fault_hid_is_read_by_a_later_run(stage: Stage, kind: str) -> None:
    number, _ = discuss(stage)
    run_event(stage, "schedule")
    stage.github.clock.advance(3600)
    comment = stage.github.say(number, "hubot", "Hello again")
    stage.github.faults.add("POST /graphql", kind, None, seconds=60)
    assert stage.act("discussion_comment", "created", number, comment) in (0, 1)
    assert len(read_thread(stage, number).comments) == 2
    assert "discussions could be read" in summary(stage)
    stage.github.faults.clear()
    stage.github.clock.advance(7200)
    run_event(stage, "schedule")
    assert len(read_thread(stage, number).comments) == 3


def test_a_first_reading_that_was_cut_short_is_continued(stage: Stage) -> None:
    numbers = [stage.github.discuss("hubot", f"Question {n}", at=f"2025-09-{n + 1:02d}T10:00:00Z") for n in range(25)]
    stage.github.faults.add("POST /graphql", "drop", None, after=2)
    run_event(stage, "schedule")
    partial = progress(stage)
    assert partial is not None
    assert (partial.is_done, bool(partial.after)) == (False, True)
    assert stage.memory().records(numbers).keys() == {*numbers[:20]}
    stage.github.faults.clear()
    run_event(stage, "issues", "labeled", 1)
    complete = progress(stage)
    assert complete is not None
    assert (complete.is_done, complete.began) == (True, partial.began)
    assert stage.memory().records(numbers).keys() == {*numbers}
    assert graph_requests(stage) == 1
    run_event(stage, "issues", "labeled", 1)
    assert graph_requests(stage) == 0


def test_a_rebuild_reads_all_discussions_again(stage: Stage) -> None:
    numbers = [stage.github.discuss("hubot", f"Question {n}", at=f"2025-09-{n + 1:02d}T10:00:00Z") for n in range(25)]
    assert rebuild(stage) == 0
    assert stage.memory().records(numbers).keys() == {*numbers}
    before = progress(stage)
    stage.github.clock.advance(600)
    assert rebuild(stage) == 0
    after = progress(stage)
    assert before is not None
    assert after is not None
    assert (after.is_done, after.began > before.began) == (True, True)


def test_a_discussion_deleted_without_an_event_is_shown_nowhere_after_a_rebuild(stage: Stage) -> None:
    number, _ = discuss(stage)
    other = stage.github.discuss("octocat", "Printing in colour", "Where is the setting?")
    run_event(stage, "schedule")
    comment_on_new_issue(stage, *SIMILAR_ISSUE)
    issue = stage.github.repo.next_number - 1
    stage.github.delete_discussion(number)
    stage.github.clock.advance(600)
    assert rebuild(stage) == 0
    assert {number, other} <= stage.memory().state.records([number, other]).keys()
    assert stage.memory().state.manifest.unseen == (number,)
    run_event(stage, "schedule")
    (text,) = stage.comments(issue)
    assert "cookie is sent" not in text


@pytest.mark.slow
def test_all_discussions_are_read_again_if_too_many_changed(fast_stage: Stage) -> None:
    stage = fast_stage
    discuss(stage)
    run_event(stage, "schedule")
    stage.github.clock.advance(3600)
    numbers = [stage.github.discuss("hubot", f"Question {n}") for n in range(20 * MAX_PAGES + 1)]
    run_event(stage, "schedule")
    assert "Many discussions changed since the last run" in summary(stage)
    assert stage.memory().records(numbers).keys() == {*numbers}
    state = progress(stage)
    assert state is not None
    assert state.is_done
