"""The lines of wishes and fixes: they come back, and hostile ones cost nothing but themselves."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.changes import AnswerRecord, FixInfo, Request
from bot.memory.shards import (
    ANSWERS,
    FIXES,
    MAX_REQUESTS,
    REQUESTS,
    StoredShard,
    joined,
    parse_answer,
    parse_fix,
    parse_request,
    parse_requests,
)
from tests.memory.samples import at
from tests.memory.wishes import ANY_WISH, fix, wish

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(lambda text: text.replace("\0", ""))
TIMES = st.none() | st.integers(0, 99).map(at)
FIX = st.builds(
    FixInfo,
    st.integers(1, 300) | st.just("ABC-1"),
    TEXTS,
    st.integers(0, 99).map(at),
    st.booleans(),
    st.none() | st.just("a" * 40),
    TIMES,
    st.lists(TEXTS, max_size=5).map(tuple),
    st.none() | st.just("v1.0"),
    TIMES,
)
FULL_FIX = FixInfo(7, "#9", at(5), True, "a" * 40, at(1), ("src/a.py", "docs/b.md"), "v1.2.0", at(2))


def written(family: StoredShard[Any], value: Any) -> dict[str, Any]:
    line = family.line(value)
    assert line is not None
    assert "\n" not in line
    fields: dict[str, Any] = json.loads(line)
    return fields


@given(st.lists(ANY_WISH, min_size=1, max_size=8))
def test_wishes_come_back_from_their_line(wishes: list[Request]) -> None:
    held = joined(Request(3, *values) for values in map(_without_id, wishes))
    assert parse_requests(written(REQUESTS, held)) == (held, True)


def _without_id(one: Request) -> tuple[Any, ...]:
    return (one.comment_id, one.name, one.by, one.at, one.about, one.state, one.reply_id, one.trying_since)


@given(FIX)
def test_fixes_come_back_from_their_line(one: FixInfo) -> None:
    assert parse_fix(written(FIXES, one)) == one


def test_thumbs_come_back_and_none_take_no_room() -> None:
    said = AnswerRecord(7, "said", at(1), ups=3, downs=1)
    assert parse_answer(written(ANSWERS, said)) == said
    assert written(ANSWERS, AnswerRecord(7, "said", at(1))) == {"id": 7, "state": "said", "at": "2020-01-01T01:00:00Z"}


def test_a_line_says_what_is_not_usual_and_the_thread_once() -> None:
    assert written(REQUESTS, (wish(7, 5, "wrong", about=(3,)),)) == {
        "id": 7,
        "wishes": [
            {
                "comment_id": 5,
                "name": "wrong",
                "by": "octocat",
                "at": "2020-01-01T00:03:00Z",
                "about": [3],
                "state": "pending",
            }
        ],
    }
    assert written(FIXES, fix(7)) == {"id": 7, "ref": "#9", "looked_at": "2020-01-01T01:00:00Z"}
    assert REQUESTS.line(()) is None


PLAIN = {"comment_id": 6, "name": "off", "by": "hubot", "at": "2020-01-01T00:00:00Z", "state": "done"}
WRONG: list[dict[str, Any]] = [
    {"comment_id": True},
    {"comment_id": 10**400},
    {"name": []},
    {"name": "OFF"},
    {"name": "off\n"},
    {"name": "x" * 65_536},
    {"name": None},
    {"at": None},
    {"at": "0000-00-00"},
    {"at": 10**30},
    {"about": "123"},
    {"about": [None]},
    {"about": {"1": 1}},
    {"about": [[1]]},
    {"state": "granted"},
    {"state": ["done"]},
    {"trying_since": "soon"},
    {"trying_since": [1]},
]


@pytest.mark.parametrize("hostile", [None, 5, "x", [], {}, [[]], {"comment_id": 6}, *(PLAIN | one for one in WRONG)])
def test_a_hostile_wish_costs_no_other_one(hostile: Any) -> None:
    whole = wish(7, 5, "wrong", about=(3,))
    line = {"id": 7, "wishes": [hostile, *written(REQUESTS, (whole,))["wishes"]]}
    assert parse_requests(line) == ((whole,), False)


@pytest.mark.parametrize("wishes", [None, 5, "off", {"a": 1}, True])
def test_a_line_without_a_list_of_wishes_is_refused(wishes: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        parse_requests({"id": 7, "wishes": wishes})


@pytest.mark.parametrize(
    "wrong",
    [
        {"looked_at": None}, {"looked_at": 5}, {"id": []}, {"id": 0}, {"files": "abc"}, {"files": 5},
        {"merged_at": "soon"}, {"released_at": [1]}, {"files": {"a": 1}},
    ],
)  # fmt: skip
def test_a_fix_of_another_shape_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, OverflowError)):
        parse_fix(written(FIXES, FULL_FIX) | wrong)


def test_what_is_read_is_within_bounds_and_fit_to_be_written() -> None:
    fields = written(FIXES, FULL_FIX)
    long = parse_fix(fields | {"ref": "#" * 65_536, "files": ["a\0\ud800b" * 9_000] * 65_536, "commit": {}})
    assert len(long.ref) == 200
    assert len(long.files) == 5
    assert max(map(len, long.files)) == 1_024
    assert long.commit is None
    FIXES.line(long).encode()  # type: ignore[union-attr]
    one = written(REQUESTS, (wish(7, 5),))["wishes"][0]
    named = parse_request(one | {"by": "\ud800" * 65_536, "about": list(range(1, 999))}, 7)
    assert (len(named.by), len(named.about)) == (200, 20)
    many = parse_requests({"id": 7, "wishes": [one | {"comment_id": number} for number in range(1, 3_000)]})[0]
    assert len(many) == MAX_REQUESTS


def test_a_word_that_a_later_version_knows_is_kept() -> None:
    assert parse_request(written(REQUESTS, (wish(7, 5),))["wishes"][0] | {"name": "summarise"}, 7).name == "summarise"


def test_times_are_times() -> None:
    assert isinstance(parse_fix(written(FIXES, FULL_FIX)).released_at, datetime)


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["wishes/0042.jsonl", "wishes/x0a.jsonl", "wishes/12345.jsonl"], 3),
        (["wishes/42.jsonl", "wishes/README.md", "wishes/0042.jsonl.bak", "wishes/a/0042.jsonl", "old/0042.jsonl"], 0),
        (["wishes/0042.jsonl\n", "wishes/xZZ.jsonl", "wishes", "wishes/"], 0),
    ],
)
def test_only_shards_are_read_as_shards(paths: list[str], found: int) -> None:
    assert len(REQUESTS.among(paths)) == found


def test_a_line_in_a_shard_that_is_not_its_own_is_not_read() -> None:
    data = f"{FIXES.line(fix(7))}\n{FIXES.line(fix(250))}\n".encode()
    assert FIXES.read("fixes/0000.jsonl", data) == ({7: fix(7)}, True)
    assert FIXES.read("fixes/0000.jsonl", data, [250]) == ({}, True)
