"""Discussions: remembered with their history, shown with the marked answer, followed, and forgotten."""

from __future__ import annotations

import pytest

from bot.domain.changes import DiscussionProgress
from bot.domain.thread import Kind, OutcomeKind, Thread, Tombstone
from bot.pipeline.discussions import PAGES
from bot.reading.endings.outcome import outcome
from tests.acceptance.stage import DECISION, Stage, graph_requests, rebuild, summary

ASKED = "How do I keep the login cookie behind a proxy?"
TEXT = "The proxy refuses the cookie after login, and auth/cookie.py raises CookieRefused."
ANSWER = "Set `trust_proxy: true` in the settings, then the cookie is sent with the right domain."
AGAIN = ("Login cookie refused behind a proxy", f"{TEXT} How do I keep it?")


def discuss(stage: Stage, *, marked: bool = True) -> tuple[int, int]:
    """A discussion from long ago, and the id of the comment that answers it."""
    number = stage.github.discuss("hubot", ASKED, TEXT, at="2025-09-01T10:00:00Z", labels=["help"])
    comment = stage.github.say(number, "octocat", ANSWER, at="2025-09-02T10:00:00Z")
    stage.github.say(number, "hubot", "It does not work, it is still broken!", at="2025-09-03T10:00:00Z", to=comment)
    if marked:
        stage.github.mark_answer(number, comment, "hubot", at="2025-09-04T10:00:00Z")
    return number, comment


def happens(stage: Stage, event: str, action: str | None = None, number: int | None = None, made: int = 0) -> None:
    stage.github.clock.advance(600)
    stage.github.mark()
    assert stage.act(event, action, number, made or None) == 0


def opened(stage: Stage, title: str, body: str) -> str:
    """Our comment on a new issue; "" if there is none."""
    number = stage.github.open_issue("monalisa", title, body)
    happens(stage, "issues", "opened", number)
    return "\n".join(stage.comments(number))


def remembered(stage: Stage, number: int) -> Thread:
    found = stage.memory().records([number])[number]
    assert isinstance(found, Thread)
    return found


def progress(stage: Stage) -> DiscussionProgress | None:
    return stage.memory().state.manifest.discussions


def test_the_history_of_discussions_is_read_with_the_first_run(stage: Stage) -> None:
    number, comment = discuss(stage)
    happens(stage, "schedule")
    thread = remembered(stage, number)
    assert (thread.kind, thread.title, thread.author, thread.labels) == (
        Kind.DISCUSSION, ASKED, "hubot", ("Q&A", "help"),
    )  # fmt: skip
    assert [said.text for said in thread.comments][:1] == [ANSWER]
    assert (outcome(thread).kind, outcome(thread).comment_id) == (OutcomeKind.ANSWERED, comment)
    known = progress(stage)
    assert known is not None
    assert (known.is_done, known.after) == (True, "")
    assert "Discussions read: 1." in summary(stage)


def test_a_new_issue_shows_the_marked_answer_of_a_discussion_like_it(stage: Stage) -> None:
    number, comment = discuss(stage)
    happens(stage, "schedule")
    told = opened(stage, *AGAIN)
    address = f"{stage.git.url}/octo-org/hello-world/discussions/{number}"
    assert f"**Seen before**\n\n- [{ASKED}]({address}) · discussion, **answered**, 4 September 2025\n" in told
    assert (
        f"“{ANSWER.replace('`', '')}” ([maintainer, 2 September 2025]({address}#discussioncomment-{comment}))" in told
    )
    assert graph_requests(stage) == 0
    assert (stage.github.reads, stage.github.writes) == (1, 1)


def test_one_without_an_answer_is_open(stage: Stage) -> None:
    number, _ = discuss(stage, marked=False)
    happens(stage, "schedule")
    assert f"**Open now**\n\n- [{ASKED}]({stage.git.url}/octo-org/hello-world/discussions/{number})" in opened(
        stage, *AGAIN
    )


@pytest.mark.parametrize("reference", ["#{}", "http://127.0.0.1/octo-org/hello-world/discussions/{}"])
def test_a_reference_to_a_discussion_is_told_as_what_it_is(stage: Stage, reference: str) -> None:
    number, _ = discuss(stage)
    happens(stage, "schedule")
    told = opened(stage, "Everybody is logged out", f"As {reference.format(number)} says.")
    assert "**Mentioned here**" in told
    assert f"/discussions/{number}) · discussion, **answered**, 4 September 2025" in told


def test_one_that_memory_lacks_is_looked_up_once(stage: Stage) -> None:
    discuss(stage)
    happens(stage, "schedule")
    newer = stage.github.discuss("hubot", "Printing in colour", "Where is the setting?")
    told = opened(stage, "Everybody is logged out", f"As in #{newer}.")
    assert "[Printing in colour]" in told
    assert "discussion, still open" in told
    assert graph_requests(stage) == 1
    opened(stage, "Logged out once more", f"As in #{newer}.")
    assert graph_requests(stage) == 0


def test_its_own_events_keep_it_up_to_date(stage: Stage) -> None:
    number, comment = discuss(stage, marked=False)
    happens(stage, "discussion", "created", number)
    assert not remembered(stage, number).is_closed
    stage.github.mark_answer(number, comment, "hubot")
    happens(stage, "discussion", "answered", number)
    assert outcome(remembered(stage, number)).kind is OutcomeKind.ANSWERED
    assert graph_requests(stage) == 1
    stage.github.edit_said(number, comment, "Use version 3 of the proxy.")
    happens(stage, "discussion_comment", "edited", number, comment)
    assert outcome(remembered(stage, number)).quote == "Use version 3 of the proxy."
    stage.github.unmark_answer(number)
    happens(stage, "discussion", "unanswered", number)
    assert not remembered(stage, number).is_closed
    stage.github.close_discussion(number, "outdated")
    happens(stage, "discussion", "closed", number)
    assert (remembered(stage, number).is_closed, remembered(stage, number).state_reason) == (True, "outdated")
    assert stage.github.writes == 0


def test_a_comment_that_shows_it_follows_what_becomes_of_it(stage: Stage) -> None:
    number, comment = discuss(stage)
    happens(stage, "schedule")
    assert "trust_proxy" in opened(stage, *AGAIN)
    shown = stage.github.repo.next_number - 1
    stage.github.edit_said(number, comment, "Upgrade the proxy to version 3, which keeps the cookie.")
    happens(stage, "discussion_comment", "edited", number, comment)
    (told,) = stage.comments(shown)
    assert "trust_proxy" not in told
    assert "Upgrade the proxy to version 3, which keeps the cookie." in told


@pytest.mark.parametrize("how", ["deleted", "transferred"])
def test_one_that_is_gone_leaves_memory_and_the_comments_that_show_it(stage: Stage, how: str) -> None:
    number, _ = discuss(stage)
    happens(stage, "schedule")
    opened(stage, *AGAIN)
    shown = stage.github.repo.next_number - 1
    moved_to = None
    if how == "deleted":
        stage.github.delete_discussion(number)
    else:
        other = stage.github.add_project("octo-org/other")
        moved_to = f"octo-org/other#{stage.github.transfer_discussion(number, other)}"
    happens(stage, "discussion", how, number)
    assert graph_requests(stage) == 1  # which collapses our comment
    gone = stage.memory().records([number])[number]
    assert isinstance(gone, Tombstone)
    assert (gone.reason, gone.moved_to) == (how, moved_to)
    (told,) = stage.comments(shown)
    assert "cookie is sent" not in told
    happens(stage, "schedule")
    assert isinstance(stage.memory().records([number])[number], Tombstone)


def test_a_forgotten_one_stays_forgotten(stage: Stage) -> None:
    number, _ = discuss(stage)
    happens(stage, "schedule")
    assert stage.act("workflow_dispatch", inputs={"run": "forget", "issue": str(number)}) == 0
    stage.github.say(number, "hubot", "Hello again")
    happens(stage, "discussion_comment", "created", number, stage.github.discussion(number).comments[-1].id)
    assert isinstance(stage.memory().records([number])[number], Tombstone)
    assert "cookie" not in opened(stage, *AGAIN)


def test_what_its_events_did_not_tell_is_found_by_the_schedule(stage: Stage) -> None:
    number, comment = discuss(stage, marked=False)
    happens(stage, "schedule")
    stage.github.clock.advance(3600)
    stage.github.mark_answer(number, comment, "hubot")
    newer = stage.github.discuss("hubot", "Printing in colour", "Where is the setting?")
    happens(stage, "schedule")
    assert remembered(stage, number).is_closed
    assert remembered(stage, newer).title == "Printing in colour"
    assert graph_requests(stage) == 1


def test_a_repository_without_discussions_is_asked_for_none(stage: Stage) -> None:
    stage.github.open_issue("hubot", "Where should sessions live?", DECISION)
    happens(stage, "issues", "opened", 1)
    assert graph_requests(stage) == 1  # the history of issues
    for event in ("schedule", "issues"):
        happens(stage, event, "labeled" if event == "issues" else None, 1 if event == "issues" else None)
        assert graph_requests(stage) == 0
    assert progress(stage) is None


def test_the_bot_answers_nothing_in_a_discussion(stage: Stage) -> None:
    discuss(stage)
    happens(stage, "schedule")
    number = stage.github.discuss("monalisa", *AGAIN)
    made = stage.github.say(number, "monalisa", "/precedent search cookie")
    happens(stage, "discussion", "created", number)
    happens(stage, "discussion_comment", "created", number, made)
    assert stage.github.writes == 0
    assert "No answer was due" in summary(stage)
    assert stage.memory().state.answers([number]) == {}
    assert stage.act("workflow_dispatch", inputs={"run": "answer", "issue": str(number)}) == 2
    assert "is a discussion, and those are answered only with discussions.answer: true" in summary(stage)


def test_a_token_that_may_not_read_discussions_is_told_where_there_are_some(stage: Stage) -> None:
    number, _ = discuss(stage)
    stage.github.world.tokens[stage.github.token].permissions = {"issues": "write", "contents": "write"}
    happens(stage, "discussion", "created", number)
    assert "the token may not read discussions: give the job 'discussions: read'" in summary(stage)
    assert number not in stage.memory().records([number])
    happens(stage, "issues", "labeled", 1)
    assert graph_requests(stage) == 0
    assert progress(stage) is None
    happens(stage, "schedule")
    assert "the token may not read discussions" in summary(stage)


@pytest.mark.parametrize("kind", ["5xx", "drop", "html", "cut", "secondary200", "limit200"])
def test_what_a_fault_hid_is_remembered_by_a_later_run(stage: Stage, kind: str) -> None:
    number, _ = discuss(stage)
    happens(stage, "schedule")
    stage.github.clock.advance(3600)
    made = stage.github.say(number, "hubot", "Hello again")
    stage.github.faults.add("POST /graphql", kind, None, seconds=60)
    assert stage.act("discussion_comment", "created", number, made) in (0, 1)
    assert len(remembered(stage, number).comments) == 2
    assert "discussions could be read" in summary(stage)
    stage.github.faults.clear()
    stage.github.clock.advance(7200)
    happens(stage, "schedule")
    assert len(remembered(stage, number).comments) == 3


def test_a_first_reading_that_was_cut_short_goes_on(stage: Stage) -> None:
    numbers = [stage.github.discuss("hubot", f"Question {n}", at=f"2025-09-{n + 1:02d}T10:00:00Z") for n in range(25)]
    stage.github.faults.add("POST /graphql", "drop", None, after=2)
    happens(stage, "schedule")
    half = progress(stage)
    assert half is not None
    assert (half.is_done, bool(half.after)) == (False, True)
    assert stage.memory().records(numbers).keys() == {*numbers[:20]}
    stage.github.faults.clear()
    happens(stage, "issues", "labeled", 1)
    whole = progress(stage)
    assert whole is not None
    assert (whole.is_done, whole.began) == (True, half.began)
    assert stage.memory().records(numbers).keys() == {*numbers}
    assert graph_requests(stage) == 1
    happens(stage, "issues", "labeled", 1)
    assert graph_requests(stage) == 0


def test_a_rebuild_reads_all_of_them_again(stage: Stage) -> None:
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


def test_one_that_was_deleted_unheard_is_shown_nowhere_after_a_rebuild(stage: Stage) -> None:
    number, _ = discuss(stage)
    kept = stage.github.discuss("octocat", "Printing in colour", "Where is the setting?")
    happens(stage, "schedule")
    opened(stage, *AGAIN)
    shown = stage.github.repo.next_number - 1
    stage.github.delete_discussion(number)
    stage.github.clock.advance(600)
    assert rebuild(stage) == 0
    assert {number, kept} <= stage.memory().state.records([number, kept]).keys()
    assert stage.memory().state.manifest.unseen == (number,)
    happens(stage, "schedule")
    (told,) = stage.comments(shown)
    assert "cookie is sent" not in told


@pytest.mark.slow
def test_when_too_much_changed_all_are_read_again(fast_stage: Stage) -> None:
    stage = fast_stage
    discuss(stage)
    happens(stage, "schedule")
    stage.github.clock.advance(3600)
    numbers = [stage.github.discuss("hubot", f"Question {n}") for n in range(20 * PAGES + 1)]
    happens(stage, "schedule")
    assert "Many discussions changed since the last run" in summary(stage)
    assert stage.memory().records(numbers).keys() == {*numbers}
    known = progress(stage)
    assert known is not None
    assert known.is_done
