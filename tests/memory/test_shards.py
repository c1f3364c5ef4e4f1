"""Shards: each line comes back, hostile ones cost only themselves, and two states merge the same in any order."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.changes import AnswerRecord, FixInfo, Request
from bot.domain.cluster import MAX_LINKS, MAX_WORDS, ClusterLink, ClusterLinks
from bot.domain.thread import Decision, Message, Outcome, OutcomeKind
from bot.memory.merge import (
    MAX_REQUESTS,
    RECENT,
    later_answer,
    later_fix,
    later_links,
    limit_requests,
    merge_requests,
    recent,
)
from bot.memory.shards import (
    ANSWERS,
    CLUSTERS,
    DIGESTS,
    FIXES,
    REQUESTS,
    StoredShard,
    edit_shards,
    parse_answer,
    parse_cluster_links,
    parse_fix,
    parse_request,
    parse_requests,
    read_lines,
    write_shard,
)
from bot.reading.digest import digest
from tests.memory.samples import ANY_FIX, ANY_WISH, at, fix, issue, wish

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


PLAIN_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(lambda text: text.replace("\0", ""))
TIMES = st.none() | st.integers(0, 99).map(at)
FIX = st.builds(
    FixInfo,
    st.integers(1, 300) | st.just("ABC-1"),
    PLAIN_TEXTS,
    st.integers(0, 99).map(at),
    st.booleans(),
    st.none() | st.just("a" * 40),
    TIMES,
    st.lists(PLAIN_TEXTS, max_size=5).map(tuple),
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
    held = merge_requests(Request(3, *values) for values in map(_without_id, wishes))
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
    assert len(REQUESTS.select_paths(paths)) == found


def test_a_line_in_a_shard_that_is_not_its_own_is_not_read() -> None:
    data = f"{FIXES.line(fix(7))}\n{FIXES.line(fix(250))}\n".encode()
    assert FIXES.read("fixes/0000.jsonl", data) == ({7: fix(7)}, True)
    assert FIXES.read("fixes/0000.jsonl", data, [250]) == ({}, True)


def folded(batches: list[list[Request]], most: int) -> tuple[Request, ...]:
    """The batches one after the other, each time within bounds."""
    held: tuple[Request, ...] = ()
    for batch in batches:
        held = limit_requests(merge_requests(held, batch), most)
    return held


@pytest.mark.slow
@given(st.lists(ANY_WISH, max_size=25), st.integers(1, 12), st.integers(0, 9**9))
def test_wishes_are_the_same_in_whichever_order_and_parts_they_come(
    wishes: list[Request], most: int, seed: int
) -> None:
    chance = Random(seed)
    again = [*wishes, *chance.choices(wishes, k=len(wishes))] if wishes else []
    chance.shuffle(again)
    size = chance.randint(1, 5)
    parts = [again[start : start + size] for start in range(0, len(again), size)]
    assert folded(parts, most) == limit_requests(merge_requests(wishes), most)


@given(st.lists(ANY_WISH, max_size=25, unique_by=lambda one: one.comment_id), st.integers(0, 9**9))
def test_recent_wishes_are_the_same_in_whichever_order_they_come(wishes: list[Request], seed: int) -> None:
    shuffled = Random(seed).sample(wishes, len(wishes))
    held: tuple[Request, ...] = ()
    for one in shuffled:
        held = recent(held, [one])
    assert held == recent(wishes)
    newest = max((one.at for one in wishes), default=None)
    assert all(one.state == "pending" or newest - one.at <= RECENT for one in held if newest)


def test_what_waits_is_recent_for_a_week_and_what_is_done_for_an_hour() -> None:
    waits, done = wish(1, 5, at=at(0)), wish(1, 6, at=at(0), state="done")
    assert recent([waits, done], [wish(2, 9, at=at(1))]) == (waits, done, wish(2, 9, at=at(1)))
    assert recent([waits, done], [wish(2, 9, at=at(7 * 24))]) == (waits, wish(2, 9, at=at(7 * 24)))
    assert recent([waits, done], [wish(2, 9, at=at(7 * 24 + 0.1))]) == (wish(2, 9, at=at(7 * 24 + 0.1)),)


@pytest.mark.slow
@given(st.lists(ANY_FIX, min_size=1, max_size=5))
def test_the_fix_that_was_looked_at_last_stands_in_any_order(fixes: list) -> None:  # type: ignore[type-arg]
    fixes = [replace(one, id=1) for one in fixes]
    for order in list(permutations(fixes))[:24]:
        held = None
        for one in order:
            held = later_fix(one, held)
        assert held is not None
        assert held == later_fix(held, held)
        assert held.looked_at == max(one.looked_at for one in fixes)
        assert held == max(fixes, key=lambda one: (one.looked_at, repr(one)))


@pytest.mark.parametrize(
    ("one", "other", "stands"),
    [
        ({"state": "pending"}, {"state": "done"}, {"state": "done"}),
        ({"state": "pending", "trying_since": at(9)}, {"state": "refused"}, {"state": "refused"}),
        ({"state": "done", "reply_id": 5}, {"state": "done"}, {"state": "done", "reply_id": 5}),
        ({"trying_since": at(1)}, {"trying_since": at(2)}, {"trying_since": at(2)}),
        ({"trying_since": at(1)}, {}, {"trying_since": at(1)}),
    ],
)
def test_of_one_wish_the_state_that_came_further_stands(
    one: dict[str, object], other: dict[str, object], stands: dict[str, object]
) -> None:
    base = wish(1, 7)
    for first, second in ((one, other), (other, one)):
        assert merge_requests([replace(base, **first)], [replace(base, **second)]) == (replace(base, **stands),)


# Bounds.


def test_of_too_many_wishes_those_that_hold_stay_and_of_the_others_the_newest() -> None:
    held = [wish(1, 1, "off", state="done"), wish(1, 2, "wrong", about=(5,)), wish(1, 3, "on")]
    kept = merge_requests(held, [wish(1, 100 + number) for number in range(500)])
    assert len(kept) == MAX_REQUESTS
    assert kept[:3] == tuple(held)
    assert [one.comment_id for one in kept[3:]] == list(range(403, 600))


@pytest.mark.parametrize("name", ["off", "search"])
def test_nobody_pushes_out_what_others_asked_for(name: str) -> None:
    mine = [wish(1, number, name, by="monalisa") for number in range(1, 4)]
    crowd = [wish(1, 100 + number, name, by="Hubot" if number % 2 else "hubot") for number in range(900)]
    for kept in (
        merge_requests(mine, crowd),
        merge_requests(crowd, mine),
        recent([replace(one, at=at(9)) for one in mine + crowd]),
    ):
        assert {one.comment_id for one in kept} >= {1, 2, 3}
        assert len(kept) == MAX_REQUESTS


# What was said.

ANSWER = AnswerRecord(1, "said", at(1), text_hash="x", comment_id=5, question="q")


COUNTED = replace(ANSWER, ups=2, downs=1)
REMOVED = replace(ANSWER, state="removed")
PROMISE = replace(ANSWER, state="pending", comment_id=None, trying_since=at(1))
LATER = replace(ANSWER, at=at(2), text_hash="y")
PENDING = replace(LATER, state="pending", comment_id=None)
OLDER = replace(ANSWER, at=at(0.5), text_hash="w")
OTHER = replace(PROMISE, text_hash="y")
HERE_LATER, HERE_COUNTED = replace(LATER, comment_id=None), replace(COUNTED, comment_id=None)


@pytest.mark.parametrize(
    ("new", "stood", "stands"),
    [
        pytest.param(COUNTED, REMOVED, replace(COUNTED, state="removed"), id="counts read before a deletion"),
        pytest.param(REMOVED, COUNTED, replace(COUNTED, state="removed"), id="a deletion after the counts"),
        pytest.param(COUNTED, PENDING, PENDING, id="counts of an earlier answer"),
        pytest.param(OLDER, COUNTED, COUNTED, id="an older answer"),
        pytest.param(replace(ANSWER, state="pending", trying_since=at(1)), COUNTED, COUNTED, id="its own promise"),
        pytest.param(LATER, COUNTED, replace(LATER, ups=2, downs=1), id="another text in the same comment"),
        pytest.param(replace(LATER, downs=3), COUNTED, replace(LATER, downs=3), id="with counts of its own"),
        pytest.param(replace(LATER, comment_id=6), COUNTED, replace(LATER, comment_id=6), id="another comment"),
        pytest.param(HERE_LATER, HERE_COUNTED, HERE_LATER, id="no comment"),
        pytest.param(ANSWER, replace(ANSWER, downs=1), ANSWER, id="thumbs that were taken back"),
        pytest.param(
            replace(PROMISE, trying_since=None), PROMISE, replace(PROMISE, trying_since=None), id="given back"
        ),
        pytest.param(OTHER, ANSWER, OTHER, id="promised again in one moment"),
        pytest.param(replace(ANSWER, state="silent"), PROMISE, replace(ANSWER, state="silent"), id="settled"),
    ],
)
def test_of_two_answers_one_stands(new: AnswerRecord, stood: AnswerRecord, stands: AnswerRecord) -> None:
    assert later_answer(new, stood) == stands


def test_fixes_are_compared_by_when_they_were_looked_at() -> None:
    assert later_fix(fix(1, 1, release="v1"), fix(1, 2)) == fix(1, 2)
    assert later_fix(fix(1, 3, release="v1"), fix(1, 2)).release == "v1"


SIGNS = ClusterLinks(7, at(1), (ClusterLink(3, "error", "E42: no such door"), ClusterLink("ABC-1", "said")))


def test_the_signs_of_clusters_come_back_from_their_line() -> None:
    assert parse_cluster_links(written(CLUSTERS, SIGNS)) == (SIGNS, True)
    assert CLUSTERS.line(replace(SIGNS, links=())) is None


@pytest.mark.parametrize(
    "wrong",
    [{"to": []}, {"to": -1}, {"sign": 5}, {"sign": "<b>"}, {"sign": "x" * 50}, {"words": {"a": 1}, "sign": None}],
)
def test_a_damaged_sign_costs_no_other_one(wrong: dict[str, object]) -> None:
    line = written(CLUSTERS, SIGNS)
    first, second = line["links"]
    found = CLUSTERS.read("clusters/0000.jsonl", json.dumps(line | {"links": [first | wrong, second]}).encode())
    assert found == ({7: replace(SIGNS, links=SIGNS.links[1:])}, False)


@pytest.mark.parametrize("links", [None, 5, "text", {"to": 3}])
def test_damaged_signs_cost_no_other_thread(links: object) -> None:
    other = CLUSTERS.line(replace(SIGNS, id=8))
    data = f"{json.dumps(written(CLUSTERS, SIGNS) | {'links': links})}\n{other}\n".encode()
    assert CLUSTERS.read("clusters/0000.jsonl", data) == ({8: replace(SIGNS, id=8)}, False)


def test_signs_are_bounded() -> None:
    many = replace(SIGNS, links=tuple(ClusterLink(n, "error", "x" * 500) for n in range(1, 100)))
    found, _ = parse_cluster_links(written(CLUSTERS, many))
    assert len(found.links) == MAX_LINKS
    assert {len(link.words) for link in found.links} == {MAX_WORDS}


def test_of_two_states_of_signs_the_later_thread_counts_and_of_one_state_the_last_finding() -> None:
    later, again = replace(SIGNS, at=at(2), links=()), replace(SIGNS, links=SIGNS.links[:1])
    assert later_links(SIGNS, later) == later_links(later, SIGNS) == later
    assert later_links(again, SIGNS) == again
    assert later_links(SIGNS, None) == SIGNS
