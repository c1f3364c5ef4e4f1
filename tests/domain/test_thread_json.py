"""Threads from archives: whatever a line holds, it gives a clean thread or a plain refusal, and comes back the same."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.bounds import MAX_NAME
from bot.domain.thread import GHOST, Kind, Message, Thread
from bot.domain.thread_json import (
    MAX_LABELS,
    MAX_MIDDLE_TEXT,
    MAX_TEXT,
    MAX_THREAD_CHARS,
    archive_fields,
    limit_size,
    parse_key,
    parse_time,
    stamp,
    storable,
    thread_from_archive,
)
from bot.memory.records import encode_record
from tests.examples import examples

MINIMAL = {"id": 7, "title": "It crashes", "created_at": "2015-01-01T00:00:00Z"}
NOON = datetime(2015, 1, 1, 12, tzinfo=UTC)
REFUSALS = (KeyError, TypeError, ValueError)
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def thread(**fields: object) -> Thread:
    return thread_from_archive({**MINIMAL, **fields})


def comment(hour: int = 1, **fields: object) -> dict[str, object]:
    return {"created_at": f"2015-01-02T{hour:02d}:00:00Z", "author": "octocat", "body": "Me too.", **fields}


# -- what real archives hold -----------------------------------------------------------------------------------------


def test_a_minimal_line_is_an_open_issue_by_the_ghost() -> None:
    parsed = thread_from_archive(MINIMAL)
    assert (parsed.id, parsed.kind, parsed.title, parsed.body) == (7, Kind.ISSUE, "It crashes", "")
    assert (parsed.author, parsed.role, parsed.state) == (GHOST, "", "open")
    assert parsed.created_at == parsed.revised_at == datetime(2015, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("archived", "role"), [({}, ""), (None, ""), ("", ""), ("NONE", "NONE"), ("OWNER", "OWNER")])
def test_an_unknown_role_is_not_the_role_none(archived: object, role: str) -> None:
    author_field = {} if archived == {} else {"author_association": archived}
    comment_field = {} if archived == {} else {"association": archived}
    parsed = thread(**author_field, comments=[comment(**comment_field)])
    assert (parsed.role, parsed.comments[0].role) == (role, role)
    assert thread_from_archive(archive_fields(parsed)) == parsed


def test_null_bodies_authors_comments_and_labels_are_empty() -> None:
    parsed = thread(body=None, author=None, comments=None, labels=None, events=None, xrefs=None, title=None)
    assert (parsed.body, parsed.author, parsed.comments, parsed.labels, parsed.events) == ("", GHOST, (), (), ())
    [message] = thread(comments=[comment(body=None, author=None)]).comments
    assert (message.text, message.author, message.is_bot) == ("", GHOST, False)


@pytest.mark.parametrize("key", [1, 2**53 - 1, "ABC-123", "123", "a" * 200, "日本/語 #1"])
def test_an_id_is_a_number_or_a_name(key: int | str) -> None:
    assert thread(id=key).id == parse_key(key) == key


@pytest.mark.parametrize("key", [0, -1, 2**53, 10**400, True, 1.0, float("inf"), "", None, [], {}, [[1]]])
def test_any_other_value_is_no_id(key: object) -> None:
    with pytest.raises(ValueError, match="an id is a number"):
        thread(id=key)


@pytest.mark.parametrize("name", ["id", "created_at"])
def test_a_line_without_an_id_or_a_time_is_refused(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        thread_from_archive({key: value for key, value in MINIMAL.items() if key != name})


@pytest.mark.parametrize("line", [None, [], "text", 5, [MINIMAL]])
def test_a_line_that_is_not_an_object_is_refused(line: Any) -> None:
    with pytest.raises(ValueError, match="not an object"):
        thread_from_archive(line)


def test_labels_may_be_names_or_objects_with_a_name() -> None:
    assert thread(labels=["bug", {"name": "help wanted", "color": "fff"}, "", None, 5]).labels == (
        "bug",
        "help wanted",
        "5",
    )
    with pytest.raises(KeyError):
        thread(labels=[{"color": "fff"}])


def test_reactions_without_a_positive_count_are_left_out() -> None:
    odd = {"+1": 2, "eyes": 0, "heart": -3, "url": "x", "a": None, "b": float("inf"), "c": 10**400, "d": True, "e": 1.5}
    comment = {"created_at": "2020-01-01", "reactions": odd}
    assert thread(comments=[comment]).comments[0].reactions == (("+1", 2),)


def test_bots_in_an_archive_are_known_by_their_name_or_a_flag() -> None:
    assert thread(author="helper[bot]").is_bot
    assert thread(author="octocat", is_bot=True).is_bot
    assert not thread(author="octocat").is_bot
    assert thread(comments=[comment(author="helper[bot]")]).comments[0].is_bot


def test_comments_are_put_in_the_order_of_their_times() -> None:
    parsed = thread(comments=[comment(3), comment(1), comment(2, id=9), comment(2, id=8)])
    assert [(message.created_at.hour, message.id) for message in parsed.comments] == [
        (1, None),
        (2, 8),
        (2, 9),
        (3, None),
    ]


@pytest.mark.parametrize("number", [True, -1, 0, 2**53, "12", 1.5, None])
def test_a_comment_whose_id_is_no_number_has_none(number: object) -> None:
    assert thread(comments=[comment(id=number)]).comments[0].id is None


def test_the_last_person_who_closed_it_is_found_in_its_events() -> None:
    events = [
        {"event": "closed", "at": f"2015-01-0{day}T00:00:00Z", "actor": who} for day, who in ((2, "hubot"), (3, None))
    ]
    assert thread(state="closed", events=events).closed_by == "hubot"
    assert thread(state="closed", events=events, closed_by="monalisa").closed_by == "monalisa"


def test_events_of_an_open_thread_are_not_kept() -> None:
    reference = {"event": "cross-referenced", "from": 12, "type": "pull", "date": "2015-01-02T00:00:00Z"}
    assert thread(xrefs=[reference]).events == ()
    [event] = thread(xrefs=[reference, {"event": "labeled"}], state="closed").events
    assert (event.name, event.source, event.source_kind, event.actor) == ("cross-referenced", 12, Kind.PULL, GHOST)


# -- text that cannot be stored ----------------------------------------------------------------------------------------


def test_nuls_and_lone_surrogates_become_replacement_characters_everywhere() -> None:
    bad = "a\x00b\ud800c\udfffd"
    parsed = thread(
        title=bad, body=bad, author=bad, labels=[bad], closed_by=bad, author_association=bad,
        id=bad, state="closed", state_reason=bad, comments=[comment(body=bad, author=bad, association=bad)],
        events=[{"event": "closed", "at": "2015-01-02", "actor": bad, "commit": bad, "source": bad}],
    )  # fmt: skip
    assert not UNSTORABLE.search(str(archive_fields(parsed)))
    assert parsed.title == parsed.body == parsed.author == parsed.comments[0].text == "a�b�c�d"
    assert encode_record(parsed).decode("utf-8")


@pytest.mark.parametrize(
    "text", ["🎉 ok", "é\u0301", "\u202e\u2066bidi", "line\u2028separator\x85", "\x1b[31m", "\ufeff"]
)
def test_all_other_text_is_kept_as_it_is(text: str) -> None:
    assert storable(text) == thread(body=text).body == text


@pytest.mark.parametrize("size", [MAX_TEXT, MAX_TEXT + 1, 1_000_000])
def test_a_message_is_cut_at_what_github_accepts(size: int) -> None:
    parsed = thread(body="[" * size, comments=[comment(body="*" * size)])
    assert (len(parsed.body), len(parsed.comments[0].text)) == (MAX_TEXT, MAX_TEXT)


def test_names_and_lists_of_names_are_bounded() -> None:
    parsed = thread(author="a" * 999, labels=[f"{number}" + "x" * 999 for number in range(999)], id="k" * 999)
    assert (len(parsed.author), len(parsed.labels), len(parsed.labels[0]), len(str(parsed.id))) == (
        MAX_NAME, MAX_LABELS, MAX_NAME, MAX_NAME,
    )  # fmt: skip


def characters(issue: Thread) -> int:
    return len(issue.body) + sum(len(message.text) for message in issue.comments)


def test_the_longest_thread_that_github_allows_stays_within_the_limit_and_keeps_both_ends() -> None:
    text = "x" * MAX_TEXT
    messages = [Message("octocat", "NONE", NOON + timedelta(minutes=at), text) for at in range(2_500)]
    limited = limit_size(replace(thread(body=text), comments=tuple(messages)))
    assert characters(limited) <= MAX_THREAD_CHARS
    sizes = [len(message.text) for message in limited.comments]
    assert len(sizes) == 2_500
    assert sizes[0] == sizes[1] == sizes[-1] == MAX_TEXT
    assert 0 < sizes[1_250] <= MAX_MIDDLE_TEXT
    assert {message.text_id for message in limited.comments} == {messages[0].text_id}
    assert limit_size(limited) == limited == thread_from_archive(archive_fields(limited))


@pytest.mark.parametrize("count", [1, 2, 30, 20_000])
@pytest.mark.parametrize("size", [60, 700, 65_536])
def test_a_thread_is_cut_to_the_limit_only_if_it_exceeds_it(count: int, size: int) -> None:
    message = Message("octocat", "NONE", NOON, "x" * size)
    original = replace(thread(body="b" * MAX_TEXT), comments=(message,) * count)
    limited = limit_size(original)
    assert characters(limited) <= MAX_THREAD_CHARS
    assert (limited == original) == (characters(original) <= MAX_THREAD_CHARS)
    assert limit_size(limited) == limited


# -- times -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2015-01-01T12:00:00Z", NOON),
        ("2015-01-01T12:00:00", NOON),
        ("2015-01-01T14:00:00+02:00", NOON),
        ("2015-01-01T12:00:00.5Z", NOON.replace(microsecond=500_000)),
        ("2015-01-01", NOON.replace(hour=0)),
    ],
)
def test_a_time_is_in_utc(text: str, expected: datetime) -> None:
    assert parse_time(text) == expected
    assert parse_time(text).tzinfo is UTC
    assert parse_time(stamp(parse_time(text))) == expected


INVALID_TIMES = ["", "yesterday", "2015-13-01", "0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z", "\ud800"]
INVALID_TIMES += ["9000-01-01T00:00:01Z", "9999-12-31T23:59:59-14:00", "2" * 9_999]


@pytest.mark.parametrize("text", [*INVALID_TIMES, 5, None, []])
def test_an_invalid_time_is_refused(text: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - half of the messages are the library's
        parse_time(text)


# -- anything at all -------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec=None, exclude_categories=[]) | st.sampled_from("\x00\ud800\u2028@#`"), max_size=8)
TIMES = st.datetimes(datetime(1970, 1, 1), datetime(8999, 12, 31), timezones=st.just(UTC)).map(stamp)  # noqa: DTZ001
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | TIMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
COMMENTS = st.fixed_dictionaries(
    {"created_at": TIMES},
    optional={
        "id": st.integers(-5, 2**60),
        "author": st.none() | TEXTS,
        "association": TEXTS,
        "is_bot": st.booleans(),
        "updated_at": st.none() | TIMES,
        "body": st.none() | TEXTS,
        "reactions": st.dictionaries(TEXTS, st.integers(-2, 5), max_size=3),
    },
)
EVENTS = st.fixed_dictionaries(
    {"event": st.sampled_from(["closed", "reopened", "referenced", "labeled"]), "at": TIMES},
    optional={
        "actor": st.none() | TEXTS,
        "commit": st.none() | TEXTS,
        "source": st.none() | st.integers(1, 9) | st.just("ABC-1"),
        "source_kind": st.sampled_from(["issue", "pull", "page", None]),
    },
)
LINES = st.fixed_dictionaries(
    {"id": st.integers(1, 2**53 - 1) | TEXTS.filter(bool), "title": TEXTS, "created_at": TIMES},
    optional={
        "kind": st.sampled_from(["issue", "pull", "page", "session"]),
        "body": st.none() | TEXTS,
        "author": st.none() | TEXTS,
        "author_association": st.none() | st.sampled_from(["OWNER", "NONE"]),
        "is_bot": st.booleans(),
        "updated_at": st.none() | TIMES,
        "state": st.sampled_from(["open", "closed", "odd"]),
        "state_reason": st.none() | TEXTS,
        "closed_at": st.none() | TIMES,
        "closed_by": st.none() | TEXTS,
        "locked": st.booleans(),
        "labels": st.lists(TEXTS, max_size=3),
        "comments": st.none() | st.lists(COMMENTS, max_size=3),
        "events": st.none() | st.lists(EVENTS, max_size=3),
    },
)


@settings(deadline=None)
@given(LINES)
def test_a_thread_survives_a_round_trip_through_its_fields(line: dict[str, Any]) -> None:
    parsed = thread_from_archive(line)
    fields = archive_fields(parsed)
    again = thread_from_archive(json.loads(json.dumps(fields)))
    assert again == parsed
    assert again.revised_at == parsed.revised_at
    assert encode_record(again) == encode_record(parsed)


@settings(deadline=None)
@given(LINES, st.randoms(use_true_random=False))
def test_the_bytes_of_a_record_do_not_depend_on_the_order_of_its_fields(line: dict[str, Any], rng: Any) -> None:
    shuffled = list(line.items())
    rng.shuffle(shuffled)
    assert encode_record(thread_from_archive(dict(shuffled))) == encode_record(thread_from_archive(line))


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(300))
@given(LINES, st.data())
def test_odd_values_give_a_clean_thread_or_a_plain_refusal(line: dict[str, Any], data: st.DataObject) -> None:
    for name in data.draw(st.lists(st.sampled_from([*MINIMAL, *line]), min_size=1, max_size=3)):
        line[name] = data.draw(ODD)
    for holder in ("comments", "events"):
        if isinstance(line.get(holder), list) and data.draw(st.booleans()):
            line[holder] = [*line[holder], data.draw(ODD)]
    try:
        parsed = thread_from_archive(line)
    except REFUSALS:
        return
    assert thread_from_archive(archive_fields(parsed)) == parsed
    assert encode_record(parsed).decode("utf-8")


@pytest.mark.parametrize("name", sorted([*MINIMAL, "body", "labels", "comments", "events", "author", "kind", "state"]))
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_refused_or_ignored(name: str, left: str, right: str) -> None:
    value: object = json.loads(left * 800 + "[]" + right * 800)
    with suppress(*REFUSALS):
        assert isinstance(thread(**{name: value}), Thread)
