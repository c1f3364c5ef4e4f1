"""Shards: one line a thread, none lost to odd text or damage around it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.changes import AnswerRecord
from bot.domain.thread import Decision, Message, Outcome, OutcomeKind
from bot.memory.shards import ANSWERS, DIGESTS, edit_shards, parse_answer, read_lines, write_shard
from bot.reading.digest import digest
from tests.memory.samples import at, issue

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\u2028\u2029\x85\x0b\x1c\n"), max_size=20)
STATES = st.sampled_from(["pending", "said", "silent", "withdrawn", "removed"])
SAIDS = st.builds(
    AnswerRecord,
    st.integers(1, 300) | st.just("ABC-1"),
    STATES,
    st.integers(0, 99).map(at),
    TEXTS.map(lambda text: text.replace("\0", "")),
    st.just("abc"),
    st.none() | st.integers(1, 99),
    st.lists(st.tuples(st.integers(1, 99) | st.just("ABC-2"), st.floats(0, 1)), max_size=3).map(tuple),
)


def test_digests_and_answers_of_neighbours_share_a_file() -> None:
    assert (DIGESTS.path(7), DIGESTS.path(99), DIGESTS.path(100)) == (
        "digests/0000.jsonl", "digests/0000.jsonl", "digests/0001.jsonl",
    )  # fmt: skip
    assert ANSWERS.path(4242) == "answers/0042.jsonl"


@pytest.mark.slow
@given(SAIDS)
def test_what_was_said_comes_back_from_its_line(said: AnswerRecord) -> None:
    line = ANSWERS.line(said)
    assert "\n" not in line
    assert parse_answer(json.loads(line)) == said


@pytest.mark.slow
@given(st.lists(SAIDS, max_size=8))
def test_a_shard_holds_the_last_line_of_each_thread_in_the_order_of_their_ids(saids: list[AnswerRecord]) -> None:
    edits = edit_shards({}, [(said.id, ANSWERS.line(said)) for said in saids], lambda _: "answers/all.jsonl")
    data = edits.get("answers/all.jsonl") or b""
    assert read_lines(data)[1]
    kept = {key: parse_answer(line) for key, line in read_lines(data)[0].items()}
    assert kept == {said.id: said for said in saids}
    assert [key for key in kept if isinstance(key, int)] == sorted(key for key in kept if isinstance(key, int))
    lines = [(key, ANSWERS.line(said)) for key, said in reversed(kept.items())]
    assert edit_shards({"answers/all.jsonl": data}, lines, lambda _: "answers/all.jsonl") == {}


@pytest.mark.parametrize("break_", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\n"])
def test_no_character_of_a_title_ends_a_line(break_: str) -> None:
    line = DIGESTS.line(digest(issue(7, body=f"one{break_}two", author=f"a{break_}b")))
    shard = write_shard({7: line, 8: DIGESTS.line(digest(issue(8)))})
    assert list(read_lines(shard)[0]) == [7, 8]
    assert read_lines(shard)[0][7]["author"] == f"a{break_}b"


def test_a_digest_says_which_comment_even_if_it_is_the_first() -> None:
    thread = issue(7, comments=(Message("hubot", "OWNER", at(1), "Fixed in #8."),))
    outcome = Outcome(OutcomeKind.FIXED, comment=0, fix="#8", confidence=0.9)
    decision = Decision("We will not do it.", "hubot", "OWNER", at(1), comment=0)
    line = json.loads(DIGESTS.line(replace(digest(thread), outcome=outcome, decisions=(decision,))))
    assert line["outcome"]["comment"] == 0
    assert line["decisions"][0]["comment"] == 0


def test_fields_with_nothing_in_them_are_left_out_and_times_are_in_utc() -> None:
    line = json.loads(DIGESTS.line(digest(issue(7))))
    assert not [name for name, value in line.items() if value in (None, "", [], {})]
    assert (line["id"], line["kind"], line["created_at"]) == (7, "issue", "2020-01-01T00:00:00Z")


def test_a_damaged_line_costs_no_other_one() -> None:
    lines = {key: ANSWERS.line(AnswerRecord(key, "said", at(key))) for key in range(1, 10)}
    data = write_shard(lines)
    rows = data.split(b"\n")
    for junk in (
        b"{",
        b"\xff\x00",
        b"null",
        b"[]",
        b'{"id": []}',
        b'"id"',
        b"[" * 50_000,
        b"<<<<<<< HEAD",
        rows[4][:-5],
    ):
        damaged = b"\n".join([*rows[:4], junk, *rows[5:]])
        assert not read_lines(damaged)[1]
        assert list(read_lines(damaged)[0]) == [1, 2, 3, 4, 6, 7, 8, 9]
        assert edit_shards({"answers/0000.jsonl": damaged}, [(5, lines[5])], ANSWERS.path) == {
            "answers/0000.jsonl": data
        }
    assert read_lines(data)[1]


def test_a_line_can_be_taken_out_and_an_empty_shard_goes() -> None:
    data = write_shard({7: ANSWERS.line(AnswerRecord(7, "said", at(0)))})
    assert edit_shards({"answers/0000.jsonl": data}, [(7, None)], ANSWERS.path) == {"answers/0000.jsonl": None}
    assert edit_shards({"answers/0000.jsonl": data}, [(8, None)], ANSWERS.path) == {}
    assert edit_shards({}, [(8, None)], ANSWERS.path) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "shouted"}, {"state": []}, {"state": None}, {"at": "2020-13-01"}, {"at": 5}, {"at": None}, {"id": -1},
        {"matches": 5}, {"matches": [5]}, {"matches": [[1, "x"]]}, {"matches": [[1, 10**400]]}, {"matches": [[0, 0.5]]},
    ],
)  # fmt: skip
def test_a_line_of_another_shape_is_refused(wrong: dict[str, object]) -> None:
    line = json.loads(ANSWERS.line(AnswerRecord(7, "said", at(0))))
    with pytest.raises((KeyError, TypeError, ValueError, OverflowError)):
        parse_answer(line | wrong)


def test_a_time_without_a_zone_is_read_as_utc() -> None:
    assert parse_answer({"id": 7, "state": "said", "at": "2020-01-01T00:00:00"}).at == at(0)
