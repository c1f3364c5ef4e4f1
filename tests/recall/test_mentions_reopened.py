"""A reopened issue is shown with how it had ended."""

from datetime import timedelta

from bot.domain.thread import Kind, OutcomeKind, RepositoryAddress, Thread, TimelineEvent
from bot.recall.mentions import earlier_ending, find_mentions
from tests.recall.conftest import Remember
from tests.recall.samples import at, message, thread

FIXED = message("Fixed by #8.", 5, "hubot", "MEMBER")
BACK = message("It still happens to me.", 8, "monalisa")
CLOSED = TimelineEvent("closed", at(5), "hubot")
REOPENED = TimelineEvent("reopened", at(9), "hubot")


def issue(*events: TimelineEvent, **rest: object) -> Thread:
    return thread(3, "Cookies are lost", events=events, comments=(FIXED, BACK), **rest)


def test_a_reopened_issue_keeps_the_outcome_of_its_closing() -> None:
    earlier = earlier_ending(issue(CLOSED, REOPENED), None)
    assert earlier is not None
    assert (earlier.closed_at, earlier.reopened_at) == (at(5), at(9))
    assert (earlier.outcome.kind, earlier.outcome.fix) == (OutcomeKind.FIXED, "#8")


def test_an_issue_that_is_closed_or_never_was_has_no_earlier_ending() -> None:
    assert earlier_ending(issue(), None) is None
    assert earlier_ending(issue(CLOSED, REOPENED, state="closed", closed_at=at(12)), None) is None
    assert earlier_ending(issue(CLOSED, REOPENED, kind=Kind.PULL), None) is None


def test_an_accidental_closing_is_no_ending() -> None:
    at_once = TimelineEvent("reopened", CLOSED.at + timedelta(minutes=3), "hubot")
    assert earlier_ending(issue(CLOSED, at_once), None) is None


def test_a_mention_of_a_reopened_issue_shows_its_last_ending(remember: Remember) -> None:
    again = TimelineEvent("closed", at(12), "hubot"), TimelineEvent("reopened", at(20), "hubot")
    memory = remember(issue(CLOSED, REOPENED, *again))
    (mention,), _ = find_mentions(thread(30, body="As in #3"), RepositoryAddress(), memory, None, (3, 5_000))
    assert mention.earlier is not None
    assert mention.earlier.closed_at == at(12)
    (mention,), _ = find_mentions(thread(30, body="As in #3"), RepositoryAddress(), memory, at(10), (3, 5_000))
    assert mention.earlier is not None
    assert mention.earlier.closed_at == at(5)
