"""Shards: lines round-trip, hostile ones cost only themselves, and two states merge the same in any order."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.changes import FixInfo, Request
from bot.domain.cluster import MAX_LINK_CHARS, MAX_LINKS, ClusterLink, ClusterLinks
from bot.domain.post import OpenPull, OrganisationKey, Post, PostKey, ThreadPosts, Vote, notice_slot, reply_slot
from bot.domain.thread import Decision, Message, Outcome, OutcomeKind
from bot.memory.codec import decode
from bot.memory.merge import (
    MAX_REQUESTS,
    RECENT_WINDOW,
    REQUEST_STATES,
    later_fix,
    later_links,
    later_post,
    limit_requests,
    merge_requests,
    newest_posts,
    recent,
)
from bot.memory.shards import (
    CLUSTERS,
    DIGESTS,
    FIXES,
    POSTS,
    REQUESTS,
    StoredShard,
    edit_shards,
    parse_cluster_links,
    parse_requests,
    parse_thread_posts,
    read_lines,
    write_shard,
)
from bot.reading.digest import digest
from tests.memory.samples import ANY_REQUEST, ask, at, fix, issue

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\u2028\u2029\x85\x0b\x1c\n"), max_size=20)
STATES = st.sampled_from(["pending", "said", "silent", "withdrawn", "removed"])
SLOTS = ("", reply_slot(77), notice_slot("#57"))
FEW_TIMES, FEW_KEYS = st.integers(0, 2).map(at), st.sampled_from([1, 2, "ABC-1"])
MAYBE_TIME, MAYBE_NUMBER = st.none() | FEW_TIMES, st.none() | st.integers(1, 2)
FEW_TEXTS = st.sampled_from(["", "a", "b"])


def few(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=2).map(tuple)


def any_post(slot: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Post]:
    """Posts on one thread, of few different values, so that many of two are alike."""
    values: dict[str, st.SearchStrategy[Any]] = {
        "state": STATES, "at": FEW_TIMES, "reason": FEW_TEXTS, "content": FEW_TEXTS, "comment_id": MAYBE_NUMBER,
        "trying_since": MAYBE_TIME, "revised_at": MAYBE_TIME, "shows": few(FEW_KEYS), "quotes": few(FEW_TEXTS),
        "others": few(st.builds(OrganisationKey, st.integers(1, 2), FEW_KEYS)),
        "pulls": few(st.builds(OpenPull, st.just(1), st.integers(1, 2), seen_at=MAYBE_TIME)), "question": FEW_TEXTS,
        "matches": few(st.tuples(FEW_KEYS, st.floats(0, 1))), "release": st.sampled_from(["", "v1"]),
        "votes": few(st.builds(Vote, FEW_TEXTS, st.booleans(), st.booleans())),
    }  # fmt: skip
    return st.builds(Post, st.just(1), slot=st.just(slot), **{**values, **fields})


REASON = TEXTS.map(lambda text: text.replace("\0", ""))
ANY_THREAD_POSTS = st.builds(
    lambda key, posts, shown_by: ThreadPosts(key, newest_posts(replace(post, id=key) for post in posts), shown_by),
    st.integers(1, 300) | st.just("ABC-1"),
    st.tuples(*(any_post(slot, reason=REASON) for slot in SLOTS)),
    st.lists(st.builds(PostKey, FEW_KEYS, st.sampled_from(SLOTS)), max_size=3, unique=True).map(tuple),
)
SAID = ThreadPosts(7, (Post(7, "said", at(0)),))


def said(key: int) -> ThreadPosts:
    return ThreadPosts(key, (Post(key, "said", at(key)),))


def test_digests_and_posts_of_neighbours_share_a_file() -> None:
    assert (DIGESTS.path(7), DIGESTS.path(99), DIGESTS.path(100)) == (
        "digests/0000.jsonl", "digests/0000.jsonl", "digests/0001.jsonl",
    )  # fmt: skip
    assert POSTS.path(4242) == "posts/0042.jsonl"


@pytest.mark.slow
@given(ANY_THREAD_POSTS)
def test_the_posts_of_a_thread_round_trip_through_their_line(thread: ThreadPosts) -> None:
    assert parse_thread_posts(line_of(POSTS, thread)) == (thread, True)


@pytest.mark.slow
@given(st.lists(ANY_THREAD_POSTS, max_size=8))
def test_a_shard_holds_the_last_line_of_each_thread_in_id_order(threads: list[ThreadPosts]) -> None:
    edits = edit_shards({}, [(thread.id, POSTS.line(thread)) for thread in threads], lambda _: "posts/all.jsonl")
    data = edits.get("posts/all.jsonl") or b""
    assert read_lines(data)[1]
    stored = {key: parse_thread_posts(line)[0] for key, line in read_lines(data)[0].items()}
    assert stored == {thread.id: thread for thread in threads}
    assert [key for key in stored if isinstance(key, int)] == sorted(key for key in stored if isinstance(key, int))
    lines = [(key, POSTS.line(thread)) for key, thread in reversed(stored.items())]
    assert edit_shards({"posts/all.jsonl": data}, lines, lambda _: "posts/all.jsonl") == {}


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\n"])
def test_no_character_of_a_title_ends_a_line(separator: str) -> None:
    line = DIGESTS.line(digest(issue(7, body=f"one{separator}two", author=f"a{separator}b")))
    shard = write_shard({7: line, 8: DIGESTS.line(digest(issue(8)))})
    assert list(read_lines(shard)[0]) == [7, 8]
    assert read_lines(shard)[0][7]["author"] == f"a{separator}b"


def test_a_digest_names_the_comment_even_if_it_is_the_first() -> None:
    thread = issue(7, comments=(Message("hubot", "OWNER", at(1), "Fixed in #8."),))
    outcome = Outcome(OutcomeKind.FIXED, comment=0, fix="#8", confidence=0.9)
    decision = Decision("We will not do it.", "hubot", "OWNER", at(1), comment=0)
    line = json.loads(DIGESTS.line(replace(digest(thread), outcome=outcome, decisions=(decision,))))
    assert line["outcome"]["comment"] == 0
    assert line["decisions"][0]["comment"] == 0


def test_empty_fields_are_left_out_and_times_are_in_utc() -> None:
    line = json.loads(DIGESTS.line(digest(issue(7))))
    assert not [name for name, value in line.items() if value in (None, "", [], {})]
    assert (line["id"], line["kind"], line["created_at"]) == (7, "issue", "2020-01-01T00:00:00Z")


def test_a_damaged_line_costs_no_other_one() -> None:
    lines = {key: POSTS.line(said(key)) or "" for key in range(1, 10)}
    data = write_shard(lines)
    rows = data.split(b"\n")
    junk = (b"{", b"\xff\x00", b"null", b"[]", b'{"id": []}', b'"id"', b"[" * 50_000, b"<<<<<<< HEAD")
    for wrong in (*junk, rows[4][:-5]):
        damaged = b"\n".join([*rows[:4], wrong, *rows[5:]])
        assert not read_lines(damaged)[1]
        assert list(read_lines(damaged)[0]) == [1, 2, 3, 4, 6, 7, 8, 9]
        assert edit_shards({"posts/0000.jsonl": damaged}, [(5, lines[5])], POSTS.path) == {"posts/0000.jsonl": data}
    assert read_lines(data)[1]


def test_a_line_can_be_removed_and_an_empty_shard_is_deleted() -> None:
    data = write_shard({7: POSTS.line(SAID) or ""})
    assert edit_shards({"posts/0000.jsonl": data}, [(7, None)], POSTS.path) == {"posts/0000.jsonl": None}
    assert edit_shards({"posts/0000.jsonl": data}, [(8, None)], POSTS.path) == {}
    assert edit_shards({}, [(8, None)], POSTS.path) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "shouted"}, {"state": []}, {"state": None}, {"at": "2020-13-01"}, {"at": 5}, {"at": None},
        {"matches": 5}, {"matches": [5]}, {"matches": [[1, "x"]]}, {"matches": [[1, 10**400]]}, {"matches": [[0, 0.5]]},
        {"slot": 5}, {"slot": "reply:"}, {"slot": "reply:x"}, {"slot": "reply:1\n"}, {"slot": "notice:" + "g" * 16},
        {"shows": 5}, {"shows": [0]}, {"quotes": 5}, {"votes": [5]}, {"trying_since": "soon"}, {"revised_at": [1]},
    ],
)  # fmt: skip
def test_a_malformed_post_costs_no_other_one(wrong: dict[str, object]) -> None:
    line = line_of(POSTS, ThreadPosts(7, (SAID.posts[0], replace(SAID.posts[0], slot=SLOTS[1], shows=(3,)))))
    comment, reply = line["posts"]
    assert parse_thread_posts(line | {"posts": [comment | wrong, reply]}) == (
        ThreadPosts(7, parse_thread_posts(line)[0].posts[1:]), False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [{"id": -1}, {"id": []}, {"posts": 5}, {"posts": "x"}, {"shown_by": 5}, {"shown_by": [5]},
              {"shown_by": [[3]]}, {"shown_by": [[0, ""]]}, {"shown_by": [[3, "x"]]}, {"shown_by": [[3, 0]]}],
)  # fmt: skip
def test_a_malformed_line_of_posts_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, OverflowError)):
        parse_thread_posts(line_of(POSTS, SAID) | wrong)


def test_a_time_without_a_zone_is_read_as_utc() -> None:
    line = {"id": 7, "posts": [{"state": "said", "at": "2020-01-01T00:00:00"}]}
    assert parse_thread_posts(line) == (SAID, True)


PLAIN_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(lambda text: text.replace("\0", ""))
TIMES = st.none() | st.integers(0, 99).map(at)
FIX = st.builds(
    FixInfo,
    st.integers(1, 300) | st.just("ABC-1"),
    st.sampled_from(["#9", "a" * 40, "octo-org/sdk#9", "octo-org/sdk@0d0e0ed"]),
    st.integers(0, 99).map(at),
    st.booleans(),
    st.none() | st.just("a" * 40),
    TIMES,
    st.lists(PLAIN_TEXTS, max_size=5).map(tuple),
    st.none() | st.just("v1.0"),
    TIMES,
)
FULL_FIX = FixInfo(7, "#9", at(5), True, "a" * 40, at(1), ("src/a.py", "docs/b.md"), "v1.2.0", at(2))


def line_of(family: StoredShard[Any], value: Any) -> dict[str, Any]:
    line = family.line(value)
    assert line is not None
    assert "\n" not in line
    fields: dict[str, Any] = json.loads(line)
    return fields


@given(st.lists(ANY_REQUEST, min_size=1, max_size=8))
def test_requests_round_trip_through_their_line(requests: list[Request]) -> None:
    merged = merge_requests(Request(3, *values) for values in map(_without_id, requests))
    assert parse_requests(line_of(REQUESTS, merged)) == (merged, True)


def _without_id(one: Request) -> tuple[Any, ...]:
    return (one.comment_id, one.name, one.by, one.at, one.about, one.state, one.trying_since)


@given(FIX)
def test_a_fix_round_trips_through_its_line(fix_info: FixInfo) -> None:
    assert decode(FixInfo, line_of(FIXES, fix_info)) == fix_info


def test_votes_round_trip_and_none_are_left_out() -> None:
    voted = replace(SAID, posts=(replace(SAID.posts[0], votes=(Vote("hubot", True, True), Vote("octocat", False))),))
    assert parse_thread_posts(line_of(POSTS, voted)) == (voted, True)
    assert line_of(POSTS, SAID) == {"id": 7, "posts": [{"state": "said", "at": "2020-01-01T00:00:00Z"}]}
    assert POSTS.line(ThreadPosts(7)) is None


def test_a_line_leaves_out_defaults_and_names_the_thread_once() -> None:
    fields = {"comment_id": 5, "name": "wrong", "by": "octocat", "at": "2020-01-01T00:03:00Z", "about": [3]}
    line = line_of(REQUESTS, (ask(7, 5, "wrong", about=(3,)),))
    assert line == {"id": 7, "requests": [fields | {"state": "pending"}]}
    assert line_of(FIXES, fix(7)) == {"id": 7, "ref": "#9", "looked_at": "2020-01-01T01:00:00Z"}
    assert REQUESTS.line(()) is None


VALID_REQUEST = {"comment_id": 6, "name": "off", "by": "hubot", "at": "2020-01-01T00:00:00Z", "state": "done"}
DAMAGE: dict[str, list[Any]] = {
    "comment_id": [True, 10**400],
    "name": [[], "OFF", "off\n", "x" * 65_536, None],
    "at": [None, "0000-00-00"],
    "about": ["123", [None], {"1": 1}, [[1]]],
    "state": ["granted", ["done"]],
    "trying_since": ["soon", [1]],
}
DAMAGED_REQUESTS = [VALID_REQUEST | {key: value} for key, values in DAMAGE.items() for value in values]


@pytest.mark.parametrize("hostile", [None, 5, "x", [], {}, [[]], {"comment_id": 6}, *DAMAGED_REQUESTS])
def test_a_hostile_request_costs_no_other_one(hostile: Any) -> None:
    intact = ask(7, 5, "wrong", about=(3,))
    line = {"id": 7, "requests": [hostile, *line_of(REQUESTS, (intact,))["requests"]]}
    assert parse_requests(line) == ((intact,), False)


@pytest.mark.parametrize("requests", [None, 5, "off", {"a": 1}, True])
def test_a_line_without_a_list_of_requests_is_refused(requests: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        parse_requests({"id": 7, "requests": requests})


@pytest.mark.parametrize(
    "wrong",
    [
        {"looked_at": None}, {"looked_at": 5}, {"id": []}, {"id": 0}, {"files": "abc"}, {"files": 5},
        {"merged_at": "soon"}, {"released_at": [1]}, {"files": {"a": 1}},
    ],
)  # fmt: skip
def test_a_malformed_fix_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, OverflowError)):
        decode(FixInfo, line_of(FIXES, FULL_FIX) | wrong)


def test_parsed_values_are_bounded_and_can_be_written_again() -> None:
    fields = line_of(FIXES, FULL_FIX)
    long = decode(FixInfo, fields | {"ref": "#" * 65_536, "files": ["a\0\ud800b" * 9_000] * 65_536, "commit": {}})
    assert long.ref == ""
    assert len(long.files) == 5
    assert max(map(len, long.files)) == 1_024
    assert long.commit is None
    FIXES.line(long).encode()  # type: ignore[union-attr]
    request_fields = line_of(REQUESTS, (ask(7, 5),))["requests"][0]
    request = decode(Request, request_fields | {"by": "\ud800" * 65_536, "about": list(range(1, 999))}, id=7)
    assert (len(request.by), len(request.about)) == (200, 20)
    many = parse_requests(
        {"id": 7, "requests": [request_fields | {"comment_id": number} for number in range(1, 3_000)]}
    )[0]
    assert len(many) == MAX_REQUESTS


def test_a_command_of_a_later_version_is_kept() -> None:
    assert (
        decode(Request, line_of(REQUESTS, (ask(7, 5),))["requests"][0] | {"name": "summarise"}, id=7).name
        == "summarise"
    )


@pytest.mark.parametrize(
    ("paths", "count"),
    [
        (["requests/0042.jsonl", "requests/x0a.jsonl", "requests/12345.jsonl"], 3),
        (
            [
                "requests/42.jsonl",
                "requests/README.md",
                "requests/0042.jsonl.bak",
                "requests/a/0042.jsonl",
                "old/0042.jsonl",
            ],
            0,
        ),
        (["requests/0042.jsonl\n", "requests/xZZ.jsonl", "requests", "requests/"], 0),
    ],
)
def test_only_paths_of_shards_are_selected(paths: list[str], count: int) -> None:
    assert len(REQUESTS.select_paths(paths)) == count


def test_a_line_in_the_wrong_shard_is_not_read() -> None:
    data = f"{FIXES.line(fix(7))}\n{FIXES.line(fix(250))}\n".encode()
    assert FIXES.read("fixes/0000.jsonl", data) == ({7: fix(7)}, True)
    assert FIXES.read("fixes/0000.jsonl", data, [250]) == ({}, True)


def merge_in_batches(batches: list[list[Request]], limit: int) -> tuple[Request, ...]:
    """Merge the batches one after the other, limited after each."""
    merged: tuple[Request, ...] = ()
    for batch in batches:
        merged = limit_requests(merge_requests(merged, batch), limit)
    return merged


@pytest.mark.slow
@given(st.lists(ANY_REQUEST, max_size=25), st.integers(1, 12), st.integers(0, 9**9))
def test_merged_requests_do_not_depend_on_order_or_batches(requests: list[Request], limit: int, seed: int) -> None:
    rng = Random(seed)
    shuffled = [*requests, *rng.choices(requests, k=len(requests))] if requests else []
    rng.shuffle(shuffled)
    size = rng.randint(1, 5)
    parts = [shuffled[start : start + size] for start in range(0, len(shuffled), size)]
    assert merge_in_batches(parts, limit) == limit_requests(merge_requests(requests), limit)


@given(st.lists(ANY_REQUEST, max_size=25, unique_by=lambda request: request.comment_id), st.integers(0, 9**9))
def test_recent_requests_do_not_depend_on_order(requests: list[Request], seed: int) -> None:
    shuffled = Random(seed).sample(requests, len(requests))
    kept: tuple[Request, ...] = ()
    for request in shuffled:
        kept = recent(kept, [request])
    assert kept == recent(requests)
    newest = max((request.at for request in requests), default=None)
    assert all(request.state == "pending" or newest - request.at <= RECENT_WINDOW for request in kept if newest)


def test_pending_requests_are_recent_for_a_week_and_done_ones_for_an_hour() -> None:
    waits, done = ask(1, 5, at=at(0)), ask(1, 6, at=at(0), state="done")
    assert recent([waits, done], [ask(2, 9, at=at(1))]) == (waits, done, ask(2, 9, at=at(1)))
    assert recent([waits, done], [ask(2, 9, at=at(7 * 24))]) == (waits, ask(2, 9, at=at(7 * 24)))
    assert recent([waits, done], [ask(2, 9, at=at(7 * 24 + 0.1))]) == (ask(2, 9, at=at(7 * 24 + 0.1)),)


MERGES: dict[str, tuple[Callable[[Any, Any], Any], st.SearchStrategy[Any]]] = {
    "comment": (later_post, any_post(SLOTS[0])),
    "reply": (later_post, any_post(SLOTS[1])),
    "notice": (later_post, any_post(SLOTS[2])),
    "request": (
        lambda new, old: merge_requests([new], [old])[0],
        st.builds(
            Request, st.just(1), st.just(5), st.sampled_from(["waiting", "wrong"]), FEW_TEXTS, FEW_TIMES,
            st.lists(FEW_KEYS, max_size=2).map(tuple), st.sampled_from(REQUEST_STATES), MAYBE_TIME,
        ),
    ),
    "fix": (
        later_fix,
        st.builds(
            FixInfo, st.just(1), FEW_TEXTS, FEW_TIMES, st.booleans(), st.none() | FEW_TEXTS, MAYBE_TIME,
            st.lists(FEW_TEXTS, max_size=2).map(tuple), st.none() | FEW_TEXTS, MAYBE_TIME, st.booleans(),
        ),
    ),
    "links": (
        later_links,
        st.builds(
            ClusterLinks, st.just(1), FEW_TIMES,
            st.lists(st.builds(ClusterLink, FEW_KEYS, st.just("said"), FEW_TEXTS), max_size=2).map(tuple), MAYBE_TIME,
        ),
    ),
}  # fmt: skip


def test_of_two_look_ups_at_one_moment_the_one_that_found_a_release_counts() -> None:
    released = fix(7, release="v1", released_at=at(1))
    assert later_fix(fix(7), released) == later_fix(released, fix(7)) == released


@pytest.mark.parametrize("kind", MERGES)
@given(st.data())
def test_two_states_merge_the_same_in_either_order_and_again(kind: str, data: st.DataObject) -> None:
    merge, values = MERGES[kind]
    one, other = data.draw(values), data.draw(values)
    merged = merge(one, other)
    assert merged == merge(other, one)
    assert merge(merged, one) == merge(merged, other) == merge(merged, merged) == merged


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"state": "pending"}, {"state": "done"}, {"state": "done"}),
        ({"state": "pending", "trying_since": at(9)}, {"state": "refused"}, {"state": "refused"}),
        ({"trying_since": at(1)}, {"trying_since": at(2)}, {"trying_since": at(2)}),
        ({"trying_since": at(1)}, {}, {"trying_since": at(1)}),
    ],
)
def test_the_more_advanced_state_of_a_request_wins(
    one: dict[str, object], other: dict[str, object], expected: dict[str, object]
) -> None:
    base = ask(1, 7)
    for first, second in ((one, other), (other, one)):
        assert merge_requests([replace(base, **first)], [replace(base, **second)]) == (replace(base, **expected),)


# Limits.


def test_of_too_many_requests_the_standing_and_the_newest_are_kept() -> None:
    standing = [ask(1, 1, "off", state="done"), ask(1, 2, "wrong", about=(5,)), ask(1, 3, "on")]
    kept = merge_requests(standing, [ask(1, 100 + number) for number in range(500)])
    assert len(kept) == MAX_REQUESTS
    assert kept[:3] == tuple(standing)
    assert [request.comment_id for request in kept[3:]] == list(range(403, 600))


@pytest.mark.parametrize("name", ["off", "search"])
def test_nobody_can_displace_the_requests_of_others(name: str) -> None:
    mine = [ask(1, number, name, by="monalisa") for number in range(1, 4)]
    others = [ask(1, 100 + number, name, by="Hubot" if number % 2 else "hubot") for number in range(900)]
    for kept in (
        merge_requests(mine, others),
        merge_requests(others, mine),
        recent([replace(request, at=at(9)) for request in mine + others]),
    ):
        assert {request.comment_id for request in kept} >= {1, 2, 3}
        assert len(kept) == MAX_REQUESTS


# Posts.


@given(st.data(), st.permutations(range(3)), st.sampled_from(SLOTS))
def test_three_states_of_a_post_merge_the_same_in_any_order(data: st.DataObject, moments: list[int], slot: str) -> None:
    """If there is one text for each time, in one comment, and no two were revised at once, as of runs that follow each
    other. Votes are those of any of the states."""
    texts = {at(hour): f"text {hour}" for hour in range(3)}
    drawn = data.draw(st.lists(any_post(slot, comment_id=st.just(5)), min_size=3, max_size=3))
    posts = [
        replace(post, content=texts[post.at], question="", revised_at=at(10 + moment))
        for post, moment in zip(drawn, moments, strict=True)
    ]
    merged = [later_post(one, later_post(two, three)) for one, two, three in permutations(posts)]
    assert len({replace(post, votes=()) for post in merged}) == 1
    assert {post.votes for post in merged} <= {post.votes for post in posts}


ANSWER = Post(1, "said", at(1), comment_id=5, question="q", content="x")
VOTES = (Vote("hubot", True, True), Vote("octocat", False))
COUNTED = replace(ANSWER, votes=VOTES)
REMOVED = replace(ANSWER, state="removed")
PROMISE = replace(ANSWER, state="pending", comment_id=None, trying_since=at(1))
LATER = replace(ANSWER, at=at(2), content="y")
PENDING = replace(LATER, state="pending", comment_id=None)
OLDER = replace(ANSWER, at=at(0.5), content="w")
OTHER = replace(PROMISE, content="y")
RECOUNTED = replace(ANSWER, revised_at=at(4))
HERE_LATER, HERE_COUNTED = replace(LATER, comment_id=None), replace(COUNTED, comment_id=None)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(COUNTED, REMOVED, replace(COUNTED, state="removed"), id="counts read before a deletion"),
        pytest.param(REMOVED, COUNTED, replace(COUNTED, state="removed"), id="a deletion after the counts"),
        pytest.param(COUNTED, PENDING, PENDING, id="counts of an earlier answer"),
        pytest.param(OLDER, COUNTED, COUNTED, id="an older answer"),
        pytest.param(replace(ANSWER, state="pending", trying_since=at(1)), COUNTED, COUNTED, id="its own promise"),
        pytest.param(LATER, COUNTED, replace(LATER, votes=VOTES), id="another text in the same comment"),
        pytest.param(
            replace(LATER, votes=VOTES[:1]), COUNTED, replace(LATER, votes=VOTES[:1]), id="with votes of its own"
        ),
        pytest.param(replace(LATER, comment_id=6), COUNTED, replace(LATER, comment_id=6), id="another comment"),
        pytest.param(HERE_LATER, HERE_COUNTED, HERE_LATER, id="no comment"),
        pytest.param(RECOUNTED, replace(ANSWER, votes=VOTES[:1], revised_at=at(3)), RECOUNTED, id="thumbs taken back"),
        pytest.param(
            replace(PROMISE, trying_since=None), PROMISE, replace(PROMISE, trying_since=None), id="given back"
        ),
        pytest.param(OTHER, ANSWER, OTHER, id="promised again in one moment"),
        pytest.param(replace(ANSWER, state="silent"), PROMISE, replace(ANSWER, state="silent"), id="settled"),
    ],
)
@pytest.mark.parametrize("slot", SLOTS, ids=["comment", "reply", "notice"])
def test_which_of_two_posts_wins(new: Post, old: Post, expected: Post, slot: str) -> None:
    new, old, expected = (replace(post, slot=slot) for post in (new, old, expected))
    assert later_post(new, old) == later_post(old, new) == expected


LINKS = ClusterLinks(7, at(1), (ClusterLink(3, "error", "E42: no such door"), ClusterLink("ABC-1", "said")), at(2))


def test_cluster_links_round_trip_through_their_line() -> None:
    assert parse_cluster_links(line_of(CLUSTERS, LINKS)) == (LINKS, True)
    compared = replace(LINKS, links=())
    assert parse_cluster_links(line_of(CLUSTERS, compared)) == (compared, True)


@pytest.mark.parametrize(
    "wrong",
    [{"to": []}, {"to": -1}, {"sign": 5}, {"sign": "<b>"}, {"sign": "x" * 50}, {"words": {"a": 1}, "sign": None}],
)
def test_a_damaged_cluster_link_costs_no_other_one(wrong: dict[str, object]) -> None:
    line = line_of(CLUSTERS, LINKS)
    first, second = line["links"]
    shard = CLUSTERS.read("clusters/0000.jsonl", json.dumps(line | {"links": [first | wrong, second]}).encode())
    assert shard == ({7: replace(LINKS, links=LINKS.links[1:])}, False)


@pytest.mark.parametrize("links", [None, 5, "text", {"to": 3}])
def test_damaged_cluster_links_cost_no_other_thread(links: object) -> None:
    other = CLUSTERS.line(replace(LINKS, id=8))
    data = f"{json.dumps(line_of(CLUSTERS, LINKS) | {'links': links})}\n{other}\n".encode()
    assert CLUSTERS.read("clusters/0000.jsonl", data) == ({8: replace(LINKS, id=8)}, False)


def test_cluster_links_are_bounded() -> None:
    many = replace(LINKS, links=tuple(ClusterLink(n, "error", "x" * 500) for n in range(1, 100)))
    parsed, _ = parse_cluster_links(line_of(CLUSTERS, many))
    assert len(parsed.links) == MAX_LINKS
    assert {len(link.words) for link in parsed.links} == {MAX_LINK_CHARS}


def test_cluster_links_of_the_later_thread_win_or_the_newest_of_the_same_thread() -> None:
    later, recomputed = replace(LINKS, at=at(2), links=()), replace(LINKS, links=LINKS.links[:1])
    assert later_links(LINKS, later) == later_links(later, LINKS) == later
    recomputed = replace(recomputed, found_at=at(3))
    assert later_links(recomputed, LINKS) == later_links(LINKS, recomputed) == recomputed
    assert later_links(LINKS, None) == LINKS
