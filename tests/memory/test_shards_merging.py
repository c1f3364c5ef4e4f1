"""Two states become one: in any order, any number of times, and within bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.changes import AnswerRecord, Request
from bot.memory.shards import MAX_REQUESTS, RECENT, bounded, joined, later_answer, later_fix, recent
from tests.memory.samples import at
from tests.memory.wishes import ANY_FIX, ANY_WISH, fix, wish


def folded(batches: list[list[Request]], most: int) -> tuple[Request, ...]:
    """The batches one after the other, each time within bounds."""
    held: tuple[Request, ...] = ()
    for batch in batches:
        held = bounded(joined(held, batch), most)
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
    assert folded(parts, most) == bounded(joined(wishes), most)


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
        assert joined([replace(base, **first)], [replace(base, **second)]) == (replace(base, **stands),)


# Bounds.


def test_of_too_many_wishes_those_that_hold_stay_and_of_the_others_the_newest() -> None:
    held = [wish(1, 1, "off", state="done"), wish(1, 2, "wrong", about=(5,)), wish(1, 3, "on")]
    kept = joined(held, [wish(1, 100 + number) for number in range(500)])
    assert len(kept) == MAX_REQUESTS
    assert kept[:3] == tuple(held)
    assert [one.comment_id for one in kept[3:]] == list(range(403, 600))


@pytest.mark.parametrize("name", ["off", "search"])
def test_nobody_pushes_out_what_others_asked_for(name: str) -> None:
    mine = [wish(1, number, name, by="monalisa") for number in range(1, 4)]
    crowd = [wish(1, 100 + number, name, by="Hubot" if number % 2 else "hubot") for number in range(900)]
    for kept in (joined(mine, crowd), joined(crowd, mine), recent([replace(one, at=at(9)) for one in mine + crowd])):
        assert {one.comment_id for one in kept} >= {1, 2, 3}
        assert len(kept) == MAX_REQUESTS


# What was said.

ANSWER = AnswerRecord(1, "said", at(1), text_hash="x", comment_id=5, question="q")


def test_counts_that_were_read_before_a_comment_was_deleted_do_not_bring_it_back() -> None:
    removed, counted = replace(ANSWER, state="removed"), replace(ANSWER, ups=2, downs=1)
    both = replace(removed, ups=2, downs=1)
    assert later_answer(counted, removed) == later_answer(removed, counted) == both


def test_counts_do_not_undo_a_later_answer_and_an_older_answer_does_not_undo_counts() -> None:
    counted = replace(ANSWER, ups=2)
    later = replace(ANSWER, state="pending", at=at(2), text_hash="y", comment_id=None)
    assert later_answer(counted, later) == later
    older = replace(ANSWER, at=at(0.5), text_hash="w")
    assert later_answer(older, counted) == counted
    promise = replace(ANSWER, state="pending", trying_since=at(1))
    assert later_answer(promise, counted) == counted


def test_the_same_comment_keeps_its_thumbs_when_its_text_changes_and_another_has_its_own() -> None:
    counted = replace(ANSWER, ups=2, downs=1)
    later = replace(ANSWER, at=at(2), text_hash="y")
    assert later_answer(later, counted) == replace(later, ups=2, downs=1)
    assert later_answer(replace(later, downs=3), counted) == replace(later, downs=3)
    assert later_answer(replace(later, comment_id=6), counted) == replace(later, comment_id=6)
    assert later_answer(replace(later, comment_id=None), replace(counted, comment_id=None)).ups == 0


def test_thumbs_that_were_taken_back_are_gone() -> None:
    assert later_answer(ANSWER, replace(ANSWER, downs=1)) == ANSWER


def test_a_promise_can_be_renewed_given_back_and_made_again_in_one_moment() -> None:
    promise = replace(ANSWER, state="pending", comment_id=None, trying_since=at(1))
    assert later_answer(replace(promise, trying_since=None), promise).trying_since is None
    other = replace(promise, text_hash="y")
    assert later_answer(other, ANSWER) == other
    assert later_answer(replace(ANSWER, state="silent"), promise).state == "silent"


def test_fixes_are_compared_by_when_they_were_looked_at() -> None:
    assert later_fix(fix(1, 1, release="v1"), fix(1, 2)) == fix(1, 2)
    assert later_fix(fix(1, 3, release="v1"), fix(1, 2)).release == "v1"
