"""What people linked: who counts, what counts, since when it was known, and what follows from it."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.changes import AnswerRecord, Request
from bot.domain.thread import Message, Thread, ThreadId, TimelineEvent
from bot.evaluation.labels import LinkLabels, Mark, feedback_of, first_original, marks
from bot.evaluation.results import Relations
from tests.evaluation.timelines import generated, otherwise
from tests.recall.samples import at, closed, duplicate, said, thread

HOUR = 1 / 24


def marked(of: int, days: float, name: str = "marked_as_duplicate", **rest: Any) -> TimelineEvent:
    return TimelineEvent(name, at(days), source=of, **rest)


def turned(name: str, days: float, **rest: Any) -> TimelineEvent:
    return TimelineEvent(name, at(days), **rest)


def with_comments(*comments: Message, **rest: Any) -> Thread:
    return thread(9, comments=comments, **rest)


def found(one: Thread, repo: str | None = None) -> list[tuple[ThreadId, bool]]:
    return [(mark.target, mark.is_duplicate) for mark in marks(one, repo)]


def mark(key: int, target: int, days: float, is_duplicate: bool = True) -> Mark:
    return Mark(key, target, at(days), is_duplicate)


def links(*found_: Mark, count: int = 12) -> LinkLabels:
    """The links of threads 1 to ``count``, one of which was created each day."""
    return LinkLabels({key: at(key) for key in range(1, count + 1)}, found_)


def test_what_others_point_at_is_linked_since_they_said_so() -> None:
    one = with_comments(said("Looks like #3 and #4.", 11), said("Duplicate of #5.", 12))
    assert marks(one) == [mark(9, 3, 11, False), mark(9, 4, 11, False), mark(9, 5, 12), mark(9, 5, 12, False)]


OWN, OTHERS = {"author": "monalisa"}, (said("Duplicate of #3.", 11), said("And of #4.", 11))


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (with_comments(said("I see the same with #3, see also #4.", 11, **OWN)), []),
        # Authors did not know it when they opened it: to show it then would have helped.
        (with_comments(said("Sorry, duplicate of #3, I should have searched.", 11, **OWN)), [(3, True)]),
        # Nobody had to find a thread that the opening text points at.
        (with_comments(*OTHERS, body="Like #3, but worse."), [(4, False)]),
        (with_comments(*OTHERS, title="Panic (see #3)"), [(4, False)]),
        (with_comments(said("Is this a duplicate of #3?", 11)), [(3, False)]),
        (with_comments(said("This is not a duplicate of #3.", 11)), [(3, False)]),
        (with_comments(said("See octocat/other#3, https://github.com/octocat/other/issues/4 and #9.", 11)), []),
        (with_comments(said("See https://github.com/octocat/linkbarn/issues/4", 11)), [(4, False)]),
    ],
)
def test_the_marks_of_a_thread_are_those_that_somebody_had_to_find(
    one: Thread, expected: list[tuple[ThreadId, bool]]
) -> None:
    assert found(one, "octocat/linkbarn") == expected


def test_a_quote_names_no_duplicate() -> None:
    assert (3, True) not in found(with_comments(said("> Duplicate of #3.\n\nI do not think so.", 11)))


def test_bots_count_for_nothing() -> None:
    robot = {"author": "helper[bot]", "is_bot": True}
    assert found(with_comments(said("Possible duplicate of #3. See #4.", 11, **robot))) == []
    events = (marked(3, 10, actor="helper[bot]"), turned("closed", 10.1))
    one = closed(9, events=events, after=1.1)
    assert found(one) == []
    assert found(replace(one, events=(marked(3, 10, actor="hubot"), events[1]))) != []


def test_an_event_links_and_so_does_a_closing_in_favour_of_another() -> None:
    assert found(closed(9, events=(marked(3, 9.2), turned("closed", 9.5)), after=0.5))[0] == (3, True)
    assert found(thread(9, events=(marked(3, 9.2),))) == [], "what happened to it is not known before it was closed"
    word = said("Closing in favor of #3.", 9.4, "hubot", "MEMBER")
    one = closed(9, comments=(word,), after=0.5)
    assert marks(one) == [mark(9, 3, 9.4, False), mark(9, 3, 9.5)]
    assert marks(replace(one, state="open", closed_at=None)) == [mark(9, 3, 9.4, False)]


def test_marks_come_in_the_order_in_which_they_were_made() -> None:
    one = with_comments(
        *(said("See #5", 14), said("See #4", 12)),
        events=(turned("closed", 10), turned("reopened", 11), marked(3, 13)),
    )
    assert [mark.target for mark in marks(one)] == [4, 3, 5]


def test_names_of_other_trackers_are_linked_by_events() -> None:
    events = (
        TimelineEvent("marked_as_duplicate", at(3), source="AB-1"),
        turned("closed", 2.5),
        turned("reopened", 2.6),
    )
    one = Thread("AB-2", "Odd", "", "octocat", at(2), events=events)
    assert marks(one) == [Mark("AB-2", "AB-1", at(3), True)]
    history = [Thread("AB-1", "Odd", "", "octocat", at(1)), one]
    assert LinkLabels.read(history).relations(one) == Relations(frozenset({"AB-1"}))


def test_the_first_original_is_known_since_the_closing() -> None:
    assert first_original(duplicate(9, of=3)) == (3, at(9.5))
    assert first_original(closed(9)) is None
    assert first_original(thread(9, comments=(said("Duplicate of #3.", 10),))) is None


def test_a_mark_some_hours_after_the_closing_is_not_known_before() -> None:
    thanks = said("Thank you all, we talked about it elsewhere.", 9.4, "hubot", "MEMBER")
    one = closed(9, comments=(thanks,), events=(turned("closed", 9.5), marked(3, 9.5 + 20 * HOUR)), after=0.5)
    assert first_original(one) == (3, at(9.5 + 20 * HOUR))
    assert min(mark.at for mark in marks(one)) == at(9.5 + 20 * HOUR)


def test_a_word_right_after_the_closing_is_not_known_before() -> None:
    late = Message("hubot", "MEMBER", at(9.5) + timedelta(seconds=50), "Duplicate of #3.")
    assert first_original(closed(9, comments=(late,), after=0.5)) == (3, late.created_at)


LATER: Sequence[tuple[str, dict[str, Any]]] = (
    ("nothing", {}),
    ("reopened", {"state": "open", "closed_at": None, "events": (turned("closed", 9.5), turned("reopened", 20))}),
    (
        "fixed",
        {
            "closed_at": at(30),
            "state_reason": "completed",
            "comments": (said("Fixed by #8.", 30, "hubot", "MEMBER"),),
            "events": (turned("closed", 9.5), turned("reopened", 20), turned("closed", 30)),
        },
    ),
    ("unmarked", {"events": (turned("closed", 9.5), marked(3, 15, "unmarked_as_duplicate"))}),
    ("discussed", {"comments": (said("Not a duplicate after all, more like #6.", 16),)}),
)


@pytest.mark.parametrize(("name", "later"), LATER)
def test_whatever_happens_later_does_not_change_what_was_known(name: str, later: dict[str, Any]) -> None:
    before = duplicate(9, of=3, events=(turned("closed", 9.5),))
    after = replace(before, **{**later, "comments": (*before.comments, *later.get("comments", ()))})
    assert first_original(after) == first_original(before) == (3, at(9.5))
    assert [mark for mark in marks(after) if mark.at < at(12)] == marks(before)


def test_duplicates_of_one_thread_are_related_to_one_another() -> None:
    known = links(mark(5, 2, 6), mark(7, 2, 8), mark(9, 7, 10), mark(8, 1, 9, False))
    assert known.relations(thread(9)) == Relations(frozenset({2, 5, 7}))
    assert known.relations(thread(7)) == Relations(frozenset({2, 5}))
    assert known.relations(thread(2)) == Relations()
    assert known.relations(thread(8)) == Relations(others=frozenset({1}))
    assert known.relations(thread(3)) == Relations()


def test_the_direction_of_a_link_does_not_matter() -> None:
    assert links(mark(3, 8, 9)).relations(thread(8)) == Relations(frozenset({3}))


def test_only_known_and_older_threads_are_related() -> None:
    known = links(mark(5, 99, 6), mark(6, 99, 7), mark(5, 8, 9, False), mark(5, 77, 9, False))
    assert known.relations(thread(6)) == Relations(), "a thread that nobody knows makes no group"
    assert known.relations(thread(5)) == Relations()


def test_a_duplicate_is_not_also_something_else() -> None:
    known = links(mark(5, 2, 6), mark(5, 2, 6, False), mark(5, 3, 6, False))
    assert known.relations(thread(5)) == Relations(frozenset({2}), frozenset({3}))


def test_marked_duplicates_are_those_of_older_threads() -> None:
    known = links(mark(7, 2, 9), mark(5, 2, 6), mark(3, 8, 9), mark(6, 99, 7), mark(4, 1, 5, False), mark(5, 1, 7))
    assert known.duplicates() == [5, 7]
    assert known.first_duplicate_mark(5) == at(6)
    assert known.first_duplicate_mark(3) is known.first_duplicate_mark(4) is known.first_duplicate_mark(12) is None


def test_links_are_known_from_the_moment_after_they_were_made() -> None:
    known = links(mark(5, 2, 6), mark(7, 5, 8))
    assert known.known_at(at(6)).duplicates() == []
    assert known.known_at(at(6) + timedelta(microseconds=1)).duplicates() == [5]
    assert known.known_at(at(8)).relations(thread(7)) == Relations()
    assert known.known_at(at(8.1)).relations(thread(7)) == Relations(frozenset({2, 5}))


MARKS = st.lists(st.builds(mark, st.integers(1, 8), st.integers(1, 8), st.integers(1, 20), st.booleans()), max_size=15)


@given(MARKS, st.integers(1, 20))
def test_what_is_known_at_a_moment_never_depends_on_later_marks(given_: list[Mark], days: int) -> None:
    moment: datetime = at(days)
    known = links(*given_, count=8).known_at(moment)
    expected = links(*(one for one in given_ if one.at < moment), count=8)
    for key in range(1, 9):
        assert known.relations(thread(key)) == expected.relations(thread(key))
        assert known.first_duplicate_mark(key) == expected.first_duplicate_mark(key)
    assert known.duplicates() == expected.duplicates()


@given(MARKS)
def test_relations_are_older_and_the_two_kinds_do_not_overlap(given_: list[Mark]) -> None:
    known = links(*given_, count=8)
    for key in range(1, 9):
        relations = known.relations(thread(key))
        assert not relations.duplicates & relations.others
        assert all(int(other) < key for other in relations.all)
        for other in relations.duplicates:
            assert known.relations(thread(int(other))).duplicates <= relations.duplicates | {key}


@pytest.mark.parametrize("seed", range(6))
def test_what_was_known_of_a_history_does_not_depend_on_what_happened_later(seed: int) -> None:
    lives = generated(60, random.Random(seed))
    for cut in (20, 45):
        other = otherwise(lives, at(cut), (), seed)
        first, second = (LinkLabels.read([life.thread() for life in each]).known_at(at(cut)) for each in (lives, other))
        assert first.duplicates() == second.duplicates() != []
        for life in lives[: cut - 1]:
            assert first.relations(life.opening) == second.relations(life.opening)
            known = [first_original(each.thread()) for each in (life, other[lives.index(life)])]
            before = [one if one and one[1] <= at(cut) else None for one in known]
            assert before[0] == before[1]


# What people think of our matches.


def shown(key: int, *matches: int, ups: int = 0, downs: int = 0) -> AnswerRecord:
    return AnswerRecord(key, "said", at(key), matches=tuple((match, 0.7) for match in matches), ups=ups, downs=downs)


def wrong(key: int, *about: int, name: str = "wrong") -> Request:
    return Request(key, 5, name, "octocat", at(key), about)


@pytest.mark.parametrize(
    ("said", "opinion"),
    [
        (shown(9, 3, downs=1), {(9, 3): False}),
        (shown(9, 3, ups=1), {(9, 3): True}),
        (shown(9, 3, ups=2, downs=3), {(9, 3): False}),
        (shown(9, 3, ups=2, downs=2), {}),
        (shown(9, 3), {}),
        (shown(9, 3, 4, downs=5), {}),
        (shown(9, 3, 4, ups=5), {}),
        (shown(9, ups=5), {}),
    ],
)
def test_thumbs_are_a_word_on_the_only_match(said: AnswerRecord, opinion: dict[tuple[int, int], bool]) -> None:
    assert feedback_of([said], []) == opinion


def test_what_was_called_wrong_is_wrong_in_both_directions_whatever_the_thumbs() -> None:
    found = feedback_of([shown(9, 3, ups=5), shown(8, 4, ups=1)], [wrong(9, 3), wrong(8, 4, name="refused")])
    assert found == {(9, 3): False, (3, 9): False, (8, 4): True}


def test_opinions_overrule_links_and_add_to_them() -> None:
    made = [mark(9, 3, 10), mark(9, 4, 10, False), mark(7, 3, 10)]
    created = {key: at(key) for key in range(1, 13)}
    opinions = {(9, 3): False, (9, 5): True, (9, 11): True, (9, 99): True, (8, 4): True}
    linked = LinkLabels(created, made, opinions)
    assert linked.relations(thread(9)) == Relations(frozenset({7}), frozenset({4, 5}))
    assert linked.relations(thread(8)) == Relations(others=frozenset({4}))
    assert linked.relations(thread(7)) == LinkLabels(created, made).relations(thread(7))
    for other in (linked.with_marks([]), linked.known_at(at(99))):
        assert other.relations(thread(9)) == linked.relations(thread(9))


def test_links_are_read_with_opinions() -> None:
    threads = [thread(3), with_comments(said("Looks like #3.", 11))]
    assert LinkLabels.read(threads).relations(threads[1]).all == {3}
    assert LinkLabels.read(threads, None, {(9, 3): False}).relations(threads[1]).all == set()
