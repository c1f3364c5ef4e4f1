"""Discussions are remembered with their history, shown with the marked answer, kept up to date and forgotten."""

from __future__ import annotations

import pytest

from bot.domain.changes import DiscussionProgress
from bot.domain.thread import Kind, Outcome, OutcomeKind, Thread, Tombstone
from bot.pipeline.discussions import MAX_PAGES
from bot.reading.endings.outcome import outcome
from tests.acceptance.stage import Stage, graph_requests, rebuild, summary, with_memory, with_mentions, with_past

QUESTION = "How do I keep the login cookie behind a proxy?"
TEXT = "The proxy refuses the cookie after login, and auth/cookie.py raises CookieRefused."
ANSWER = "Set `trust_proxy: true` in the settings, then the cookie is sent with the right domain."
SIMILAR_ISSUE = ("Login cookie refused behind a proxy", f"{TEXT} How do I keep it?")


NUMBER = 3
"""The discussion; 4 is the issue with our comment that shows it."""


def discuss(stage: Stage) -> None:
    """An old discussion, and a comment that answers it but is not marked as its answer."""
    number = stage.github.discuss("hubot", QUESTION, TEXT, at="2025-09-01T10:00:00Z", labels=["help"])
    comment = stage.github.say(number, "octocat", ANSWER, at="2025-09-02T10:00:00Z")
    stage.github.say(number, "hubot", "It does not work, it is still broken!", at="2025-09-03T10:00:00Z", to=comment)
    assert number == NUMBER


def mark(stage: Stage) -> None:
    stage.github.mark_answer(NUMBER, answer_id(stage), "hubot", at="2025-09-04T10:00:00Z")


def answer_id(stage: Stage) -> int:
    return stage.github.discussion(NUMBER).comments[0].id


def show(stage: Stage) -> None:
    """Comment on an issue like the discussion."""
    assert "trust_proxy" in comment_on_new_issue(stage, *SIMILAR_ISSUE)


@pytest.fixture
def unread(empty_stage: Stage) -> Stage:
    """A discussion with a marked answer; memory is empty."""
    return empty_stage.begin(with_mentions, with_past, discuss, mark)


@pytest.fixture
def unmarked(empty_stage: Stage) -> Stage:
    """Memory has the discussion, whose answer is not marked."""
    return empty_stage.begin(with_mentions, with_past, discuss, with_memory)


@pytest.fixture
def answered(empty_stage: Stage) -> Stage:
    """Memory has the discussion with its marked answer."""
    return empty_stage.begin(with_mentions, with_past, discuss, mark, with_memory)


@pytest.fixture
def shown(empty_stage: Stage) -> Stage:
    return empty_stage.begin(with_mentions, with_past, discuss, mark, with_memory, show)


def comment_on_new_issue(stage: Stage, title: str, body: str) -> str:
    """Our comment on a new issue; "" if there is none."""
    number = stage.github.open_issue("monalisa", title, body)
    stage.deliver("issues", "opened", number)
    return "\n".join(stage.comments(number))


def read_thread(stage: Stage, number: int) -> Thread:
    record = stage.memory().records([number])[number]
    assert isinstance(record, Thread)
    return record


def progress(stage: Stage) -> DiscussionProgress | None:
    return stage.memory().state.manifest.discussions


@pytest.mark.slow
def test_the_first_run_reads_the_history_of_discussions(unread: Stage) -> None:
    unread.deliver("schedule")
    thread = read_thread(unread, NUMBER)
    assert (thread.kind, thread.title, thread.author, thread.labels) == (
        Kind.DISCUSSION, QUESTION, "hubot", ("Q&A", "help"),
    )  # fmt: skip
    assert [reply.text for reply in thread.comments][:1] == [ANSWER]
    assert (outcome(thread).kind, outcome(thread).comment_id) == (OutcomeKind.ANSWERED, answer_id(unread))
    state = progress(unread)
    assert state is not None
    assert (state.is_done, state.after) == (True, "")
    assert "Discussions read: 1." in summary(unread)


@pytest.mark.slow
def test_the_comment_on_a_new_issue_shows_the_marked_answer_of_a_similar_discussion(answered: Stage) -> None:
    text = comment_on_new_issue(answered, *SIMILAR_ISSUE)
    address = f"{answered.git.url}/octo-org/hello-world/discussions/{NUMBER}"
    link = f"{address}#discussioncomment-{answer_id(answered)}"
    quoted = f"“{ANSWER.replace('`', '')}” ([octocat, maintainer, 2 September 2025]({link}))"
    assert text.split("\n\n")[1:3] == [f"Answered before: {quoted}", "**Seen before**"]
    assert f"\n- [{QUESTION}]({address}) (discussion {NUMBER}) · **answered**, 4 September 2025\n" in text
    assert graph_requests(answered) == 0
    assert (answered.github.reads, answered.github.writes) == (1, 1)


@pytest.mark.slow
def test_a_discussion_without_a_marked_answer_is_shown_as_open(unmarked: Stage) -> None:
    link = f"- [{QUESTION}]({unmarked.git.url}/octo-org/hello-world/discussions/{NUMBER})"
    assert f"**Open now**\n\n{link}" in comment_on_new_issue(unmarked, *SIMILAR_ISSUE)


@pytest.mark.slow
def test_an_answer_in_the_authors_own_words_is_not_shown_as_the_ending(unmarked: Stage) -> None:
    own = unmarked.github.discussion(NUMBER).comments[1].id
    unmarked.github.mark_answer(NUMBER, own, "octocat")
    unmarked.deliver("discussion", "answered", NUMBER)
    assert outcome(read_thread(unmarked, NUMBER)) == Outcome()
    text = comment_on_new_issue(unmarked, *SIMILAR_ISSUE)
    assert "**Open now**" in text
    assert "nswered" not in text


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["#{}", "http://127.0.0.1/octo-org/hello-world/discussions/{}"])
def test_a_referenced_discussion_is_shown_as_a_discussion(answered: Stage, reference: str) -> None:
    text = comment_on_new_issue(answered, "Everybody is logged out", f"As {reference.format(NUMBER)} says.")
    assert "**Mentioned here**" in text
    assert f"/discussions/{NUMBER}) (discussion {NUMBER}) · **answered**, 4 September 2025" in text


@pytest.mark.slow
def test_a_discussion_that_is_not_in_memory_is_looked_up_once(answered: Stage) -> None:
    newer = answered.github.discuss("hubot", "Printing in colour", "Where is the setting?")
    text = comment_on_new_issue(answered, "Everybody is logged out", f"As in #{newer}.")
    assert "- [Printing in colour](" in text
    assert f"/discussions/{newer}) (discussion {newer}) · still open" in text
    assert graph_requests(answered) == 1
    comment_on_new_issue(answered, "Logged out once more", f"As in #{newer}.")
    assert graph_requests(answered) == 0


@pytest.mark.slow
def test_a_marked_answer_and_its_edit_are_remembered_and_a_comment_that_shows_it_is_updated(unmarked: Stage) -> None:
    assert not read_thread(unmarked, NUMBER).is_closed
    unmarked.github.mark_answer(NUMBER, answer_id(unmarked), "hubot")
    unmarked.deliver("discussion", "answered", NUMBER)
    assert outcome(read_thread(unmarked, NUMBER)).kind is OutcomeKind.ANSWERED
    assert graph_requests(unmarked) == 1
    show(unmarked)
    unmarked.github.edit_discussion_comment(NUMBER, answer_id(unmarked), "Use version 3 of the proxy.")
    unmarked.deliver("discussion_comment", "edited", NUMBER, answer_id(unmarked))
    assert outcome(read_thread(unmarked, NUMBER)).quote == "Use version 3 of the proxy."
    (text,) = unmarked.comments(4)
    assert "trust_proxy" not in text
    assert "Use version 3 of the proxy." in text


@pytest.mark.slow
def test_a_discussion_whose_answer_is_unmarked_is_open_until_it_is_closed(answered: Stage) -> None:
    answered.github.unmark_answer(NUMBER)
    answered.deliver("discussion", "unanswered", NUMBER)
    assert not read_thread(answered, NUMBER).is_closed
    answered.github.close_discussion(NUMBER, "outdated")
    answered.deliver("discussion", "closed", NUMBER)
    thread = read_thread(answered, NUMBER)
    assert (thread.is_closed, thread.state_reason, answered.github.writes) == (True, "outdated", 0)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["deleted", pytest.param("transferred", marks=pytest.mark.slow)])
def test_a_removed_discussion_disappears_from_memory_and_from_our_comments(shown: Stage, how: str) -> None:
    moved_to = None
    if how == "deleted":
        shown.github.delete_discussion(NUMBER)
    else:
        other = shown.github.add_project("octo-org/other")
        moved_to = f"octo-org/other#{shown.github.transfer_discussion(NUMBER, other)}"
    shown.deliver("discussion", how, NUMBER)
    assert graph_requests(shown) == 1  # whether it is gone
    record = shown.memory().records([NUMBER])[NUMBER]
    assert isinstance(record, Tombstone)
    assert (record.reason, record.moved_to) == (how, moved_to)
    (text,) = shown.comments(4)
    assert "cookie is sent" not in text
    shown.deliver("schedule")
    assert isinstance(shown.memory().records([NUMBER])[NUMBER], Tombstone)


@pytest.mark.slow
def test_a_forgotten_discussion_stays_forgotten(answered: Stage) -> None:
    answered.deliver("workflow_dispatch", run="forget", issue=str(NUMBER))
    comment = answered.github.say(NUMBER, "hubot", "Hello again")
    answered.deliver("discussion_comment", "created", NUMBER, comment)
    assert isinstance(answered.memory().records([NUMBER])[NUMBER], Tombstone)
    assert "cookie" not in comment_on_new_issue(answered, *SIMILAR_ISSUE)
    answered.deliver("workflow_dispatch", run="remember", issue=str(NUMBER))
    assert [message.text for message in read_thread(answered, NUMBER).comments][::2] == [ANSWER, "Hello again"]


@pytest.mark.slow
def test_a_scheduled_run_finds_changes_whose_events_were_lost(unmarked: Stage) -> None:
    unmarked.github.clock.advance(3600)
    unmarked.github.mark_answer(NUMBER, answer_id(unmarked), "hubot")
    newer = unmarked.github.discuss("hubot", "Printing in colour", "Where is the setting?")
    unmarked.deliver("schedule")
    assert read_thread(unmarked, NUMBER).is_closed
    assert read_thread(unmarked, newer).title == "Printing in colour"
    assert graph_requests(unmarked) == 1


@pytest.mark.slow
def test_discussions_are_not_requested_from_a_repository_that_has_none(stage: Stage) -> None:
    stage.deliver("issues", "opened", 1)
    assert graph_requests(stage) == 1  # the history of issues
    for event in (("schedule",), ("issues", "labeled", 1)):
        stage.deliver(*event)
        assert graph_requests(stage) == 0
    assert progress(stage) is None


@pytest.mark.slow
def test_discussions_are_not_answered_by_default(answered: Stage) -> None:
    number = answered.github.discuss("monalisa", *SIMILAR_ISSUE)
    comment = answered.github.say(number, "monalisa", "/precedent search cookie")
    answered.deliver("discussion", "created", number)
    answered.deliver("discussion_comment", "created", number, comment)
    assert answered.github.writes == 0
    assert "There was nothing to answer" in summary(answered)
    assert answered.memory().state.comments([number]) == {}
    answered.deliver("workflow_dispatch", run="answer", issue=str(number), code=2)
    assert "is a discussion, and those are answered only with discussions.answer: true" in summary(answered)


@pytest.mark.slow
def test_a_token_that_may_not_read_discussions_is_reported_if_there_are_any(unread: Stage) -> None:
    unread.github.world.tokens[unread.github.token].permissions = {"issues": "write", "contents": "write"}
    unread.deliver("discussion", "created", NUMBER)
    assert "the token may not read discussions: give the job 'discussions: read'" in summary(unread)
    assert NUMBER not in unread.memory().records([NUMBER])
    unread.deliver("issues", "labeled", 1)
    assert graph_requests(unread) == 0
    assert progress(unread) is None
    unread.deliver("schedule")
    assert "the token may not read discussions" in summary(unread)


SLOW_FAULTS = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("drop", "html", "cut", "limit200")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["5xx", "secondary200", *SLOW_FAULTS])
def test_a_comment_that_a_fault_hid_is_read_by_a_later_run(answered: Stage, kind: str) -> None:
    answered.github.clock.advance(3600)
    comment = answered.github.say(NUMBER, "hubot", "Hello again")
    answered.github.faults.add("POST /graphql", kind, None, seconds=60)
    assert answered.act("discussion_comment", "created", NUMBER, comment) in (0, 1)
    assert len(read_thread(answered, NUMBER).comments) == 2
    assert "discussions could be read" in summary(answered)
    answered.github.faults.clear()
    answered.deliver("schedule", after=7200)
    assert len(read_thread(answered, NUMBER).comments) == 3


def ask_questions(stage: Stage) -> list[int]:
    """Discussions for two pages; returns their numbers."""
    return [stage.github.discuss("hubot", f"Question {n}", at=f"2025-09-{n + 1:02d}T10:00:00Z") for n in range(25)]


@pytest.mark.slow
def test_a_first_reading_that_was_cut_short_is_continued(stage: Stage) -> None:
    numbers = ask_questions(stage)
    stage.github.faults.add("POST /graphql", "drop", None, after=2)
    stage.deliver("schedule")
    partial = progress(stage)
    assert partial is not None
    assert (partial.is_done, bool(partial.after)) == (False, True)
    assert stage.memory().records(numbers).keys() == {*numbers[:20]}
    stage.github.faults.clear()
    stage.deliver("issues", "labeled", 1)
    complete = progress(stage)
    assert complete is not None
    assert (complete.is_done, complete.began) == (True, partial.began)
    assert stage.memory().records(numbers).keys() == {*numbers}
    assert graph_requests(stage) == 1
    stage.deliver("issues", "labeled", 1)
    assert graph_requests(stage) == 0


@pytest.mark.slow
def test_a_rebuild_reads_all_discussions_again(stage: Stage) -> None:
    numbers = ask_questions(stage)
    assert rebuild(stage) == 0
    assert stage.memory().records(numbers).keys() == {*numbers}
    before = progress(stage)
    stage.github.clock.advance(600)
    assert rebuild(stage) == 0
    after = progress(stage)
    assert before is not None
    assert after is not None
    assert (after.is_done, after.began > before.began) == (True, True)


@pytest.mark.slow
def test_a_discussion_deleted_without_an_event_is_shown_nowhere_after_a_rebuild(shown: Stage) -> None:
    other = shown.github.discuss("octocat", "Printing in colour", "Where is the setting?")
    shown.deliver("discussion", "created", other)
    shown.github.delete_discussion(NUMBER)
    shown.github.clock.advance(600)
    assert rebuild(shown) == 0
    assert {NUMBER, other} <= shown.memory().state.records([NUMBER, other]).keys()
    assert shown.memory().state.manifest.hidden_by_github == (NUMBER,)
    shown.deliver("schedule")
    (text,) = shown.comments(4)
    assert "cookie is sent" not in text


@pytest.mark.slow
def test_all_discussions_are_read_again_if_too_many_changed(fast_stage: Stage) -> None:
    stage = fast_stage
    stage.github.discuss("hubot", QUESTION, TEXT, at="2025-09-01T10:00:00Z")
    stage.deliver("schedule")
    stage.github.clock.advance(3600)
    numbers = [stage.github.discuss("hubot", f"Question {n}") for n in range(20 * MAX_PAGES + 1)]
    stage.deliver("schedule")
    assert "Many discussions changed since the last run" in summary(stage)
    assert stage.memory().records(numbers).keys() == {*numbers}
    state = progress(stage)
    assert state is not None
    assert state.is_done
