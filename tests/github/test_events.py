"""Payloads of any shape become an event or a one-line error."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UserError
from bot.github.events import MAX_PAYLOAD, Event, parse_event
from tests.fakes.github import FakeGitHub

NAMES = ["issue", "comment", "number", "id", "action", "user", "login", "changes", "inputs", "x"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=12,
)


def parse(payload: object, name: str = "issues") -> Event:
    return parse_event(name, json.dumps(payload).encode())


def test_events_of_issues_and_workflows_are_parsed(github: FakeGitHub) -> None:
    number = github.open_issue("octocat", "Crash")
    comment = github.comment(number, "hubot", "Me too")
    pull = github.add_pull("hubot", "Fix it")
    review = github.comment(pull, "monalisa", "Nice")
    assert parse(github.payload("issues", "opened", number)) == Event("issues", "opened", number)
    created = parse(github.payload("issue_comment", "created", number, comment), "issue_comment")
    assert created == Event("issue_comment", "created", number, False, comment, "hubot")
    assert parse(github.payload("issue_comment", "created", pull, review), "issue_comment").is_pull
    assert parse(github.payload("schedule"), "schedule") == Event("schedule")
    by_hand = parse(github.payload("workflow_dispatch", extra={"inputs": {"mode": "answer", "issue": "7"}}), "x")
    assert (by_hand.input("mode"), by_hand.input("issue"), by_hand.input("other")) == ("answer", "7", "")


def test_a_transferred_issue_has_its_new_place(github: FakeGitHub) -> None:
    github.open_issue("octocat", "First")
    number = github.open_issue("octocat", "Crash")
    new_number = github.transfer(number, github.add_project("octocat/other"))
    event = parse(github.payload("issues", "transferred", number))
    assert (event.number, event.moved_to, event.forgets) == (number, f"octocat/other#{new_number}", True)


def test_events_of_discussions_are_parsed(github: FakeGitHub) -> None:
    number = github.discuss("hubot", "How?")
    comment = github.say(number, "octocat", "Like that.")
    created = parse(github.payload("discussion", "created", number), "discussion")
    assert (created, created.has_discussions) == (Event("discussion", "created", number), True)
    commented = parse(github.payload("discussion_comment", "created", number, comment), "discussion_comment")
    assert commented == Event("discussion_comment", "created", number)
    assert (commented.is_of_discussion, commented.may_be_answered, commented.forgets) == (True, False, False)
    new_number = github.transfer_discussion(number, github.add_project("octocat/other"))
    event = parse(github.payload("discussion", "transferred", number), "discussion")
    assert (event.number, event.moved_to, event.forgets) == (number, f"octocat/other#{new_number}", True)


def test_has_discussions_is_unknown_unless_the_payload_says_it(github: FakeGitHub) -> None:
    assert parse(github.payload("schedule"), "schedule").has_discussions is False
    assert parse({"schedule": "17 3 * * *"}, "schedule").has_discussions is None
    assert parse({"repository": {"has_discussions": "yes"}}, "schedule").has_discussions is None


@pytest.mark.parametrize(
    ("name", "action", "may_be_answered"),
    [("issues", "opened", True), ("issues", "edited", True), ("issue_comment", "created", True),
     ("issues", "closed", False), ("issues", "labeled", False), ("issue_comment", "edited", False),
     ("issue_comment", "deleted", False), ("issues", "deleted", False), ("push", "", False)],
)  # fmt: skip
def test_which_events_may_be_answered(name: str, action: str, *, may_be_answered: bool) -> None:
    assert Event(name, action, 1).may_be_answered is may_be_answered


def test_missing_or_null_parts_are_not_an_error() -> None:
    for payload in ({}, {"issue": None}, {"issue": {"number": None}, "comment": {"id": "x", "user": None}}):
        assert parse(payload) == Event("issues")


@pytest.mark.parametrize("number", [0, -1, True, "7", 1.5, 2**53, None, [1]])
def test_an_invalid_issue_number_is_read_as_none(number: object) -> None:
    assert parse({"issue": {"number": number}}).number is None


def test_text_that_cannot_be_stored_is_cleaned() -> None:
    event = parse({"action": "a\ud800\x00" + "b" * 100, "comment": {"id": 1, "user": {"login": "\udfff"}}})
    assert event.action.encode()
    assert len(event.action) == 40
    assert event.comment_author.encode()


@pytest.mark.parametrize("payload", [b"", b"x", b"[]", b"1", b"null", b"[" * 200_000, b"\xff", b'{"a": '])
def test_a_payload_that_is_not_a_json_object_is_refused(payload: bytes) -> None:
    with pytest.raises(UserError, match=r"^the payload of the issues event is not .*GITHUB_EVENT_PATH"):
        parse_event("issues", payload)


def test_a_payload_of_more_than_25_mb_is_refused() -> None:
    with pytest.raises(UserError, match="larger than 25 MB"):
        parse_event("issues", b" " * (MAX_PAYLOAD + 1))


@given(JSON | st.fixed_dictionaries({"issue": st.fixed_dictionaries({"number": JSON})}))
def test_any_json_is_an_event_or_one_clear_error(payload: object) -> None:
    if isinstance(payload, dict):
        event = parse(payload)
        assert event.number is None or event.number > 0
    else:
        with pytest.raises(UserError):
            parse(payload)
