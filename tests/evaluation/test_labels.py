"""Links by people: whose count, which count, since when they were known, and what follows from them."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.changes import Request
from bot.domain.post import Post, Vote
from bot.domain.thread import Message, Thread, ThreadId, TimelineEvent
from bot.evaluation.labels import Feedback, LinkLabels, Mark, feedback_of, first_original, marks
from bot.evaluation.results import Relations
from tests.evaluation.timelines import change_future, generated
from tests.recall.samples import at, closed, duplicate, message, thread

HOUR = 1 / 24


def marked_event(of: int, days: float, name: str = "marked_as_duplicate", **rest: Any) -> TimelineEvent:
    return TimelineEvent(name, at(days), source=of, **rest)


def event_at(name: str, days: float, **rest: Any) -> TimelineEvent:
    return TimelineEvent(name, at(days), **rest)


def with_comments(*comments: Message, **rest: Any) -> Thread:
    return thread(9, comments=comments, **rest)


def targets_of(issue: Thread, repo: str | None = None) -> list[tuple[ThreadId, bool]]:
    return [(mark.target, mark.is_duplicate) for mark in marks(issue, repo)]


def mark(key: int, target: int, days: float, is_duplicate: bool = True) -> Mark:
    return Mark(key, target, at(days), is_duplicate)


def links(*made: Mark, count: int = 12) -> LinkLabels:
    """The links of threads 1 to ``count``, created one a day."""
    return LinkLabels({key: at(key) for key in range(1, count + 1)}, made)


def test_threads_that_others_cite_are_linked_from_the_comment_on() -> None:
    issue = with_comments(message("Looks like #3 and #4.", 11), message("Duplicate of #5.", 12))
    assert marks(issue) == [mark(9, 3, 11, False), mark(9, 4, 11, False), mark(9, 5, 12), mark(9, 5, 12, False)]


OWN, OTHERS = {"author": "monalisa"}, (message("Duplicate of #3.", 11), message("And of #4.", 11))


def test_only_links_that_somebody_had_to_find_are_marks() -> None:
    cases = [
        (with_comments(message("I see the same with #3, see also #4.", 11, **OWN)), []),
        # Authors did not know it when they opened the issue: it would have helped to show it then.
        (with_comments(message("Sorry, duplicate of #3, I should have searched.", 11, **OWN)), [(3, True)]),
        # Nobody had to find a thread that the opening text points at.
        (with_comments(*OTHERS, body="Like #3, but worse."), [(4, False)]),
        (with_comments(*OTHERS, title="Panic (see #3)"), [(4, False)]),
        (with_comments(message("Is this a duplicate of #3?", 11)), [(3, False)]),
        (with_comments(message("This is not a duplicate of #3.", 11)), [(3, False)]),
        (with_comments(message("See octocat/other#3, https://github.com/octocat/other/issues/4 and #9.", 11)), []),
        (with_comments(message("See https://github.com/octocat/linkbarn/issues/4", 11)), [(4, False)]),
    ]
    assert [issue for issue, expected in cases if targets_of(issue, "octocat/linkbarn") != expected] == []


def test_a_quote_names_no_duplicate() -> None:
    assert (3, True) not in targets_of(with_comments(message("> Duplicate of #3.\n\nI do not think so.", 11)))


def test_links_by_bots_do_not_count() -> None:
    robot = {"author": "helper[bot]", "is_bot": True}
    assert targets_of(with_comments(message("Possible duplicate of #3. See #4.", 11, **robot))) == []
    events = (marked_event(3, 10, actor="helper[bot]"), event_at("closed", 10.1))
    issue = closed(9, events=events, after=1.1)
    assert targets_of(issue) == []
    assert targets_of(replace(issue, events=(marked_event(3, 10, actor="hubot"), events[1]))) != []


def test_events_link_and_so_does_closing_in_favour_of_another_thread() -> None:
    assert targets_of(closed(9, events=(marked_event(3, 9.2), event_at("closed", 9.5)), after=0.5))[0] == (3, True)
    assert targets_of(thread(9, events=(marked_event(3, 9.2),))) == [], (
        "what happened to it is not known before it was closed"
    )
    comment = message("Closing in favor of #3.", 9.4, "hubot", "MEMBER")
    issue = closed(9, comments=(comment,), after=0.5)
    assert marks(issue) == [mark(9, 3, 9.4, False), mark(9, 3, 9.5)]
    assert marks(replace(issue, state="open", closed_at=None)) == [mark(9, 3, 9.4, False)]


def test_marks_come_in_the_order_in_which_they_were_made() -> None:
    issue = with_comments(
        *(message("See #5", 14), message("See #4", 12)),
        events=(event_at("closed", 10), event_at("reopened", 11), marked_event(3, 13)),
    )
    assert [mark.target for mark in marks(issue)] == [4, 3, 5]


def test_events_link_threads_with_keys_of_other_trackers() -> None:
    events = (
        TimelineEvent("marked_as_duplicate", at(3), source="AB-1"),
        event_at("closed", 2.5),
        event_at("reopened", 2.6),
    )
    issue = Thread("AB-2", "Odd", "", "octocat", at(2), events=events)
    assert marks(issue) == [Mark("AB-2", "AB-1", at(3), True)]
    history = [Thread("AB-1", "Odd", "", "octocat", at(1)), issue]
    assert LinkLabels.read(history).relations(issue) == Relations(frozenset({"AB-1"}))


def test_the_first_original_is_known_from_the_time_of_closing() -> None:
    assert first_original(duplicate(9, of=3)) == (3, at(9.5))
    assert first_original(closed(9)) is None
    assert first_original(thread(9, comments=(message("Duplicate of #3.", 10),))) is None


def test_a_mark_some_hours_after_the_closing_is_not_known_earlier() -> None:
    thanks = message("Thank you all, we talked about it elsewhere.", 9.4, "hubot", "MEMBER")
    issue = closed(9, comments=(thanks,), events=(event_at("closed", 9.5), marked_event(3, 9.5 + 20 * HOUR)), after=0.5)
    assert first_original(issue) == (3, at(9.5 + 20 * HOUR))
    assert min(mark.at for mark in marks(issue)) == at(9.5 + 20 * HOUR)


def test_a_comment_right_after_the_closing_is_not_known_earlier() -> None:
    late = Message("hubot", "MEMBER", at(9.5) + timedelta(seconds=50), "Duplicate of #3.")
    assert first_original(closed(9, comments=(late,), after=0.5)) == (3, late.created_at)


LATER: Sequence[tuple[str, dict[str, Any]]] = (
    ("nothing", {}),
    ("reopened", {"state": "open", "closed_at": None, "events": (event_at("closed", 9.5), event_at("reopened", 20))}),
    (
        "fixed",
        {
            "closed_at": at(30),
            "state_reason": "completed",
            "comments": (message("Fixed by #8.", 30, "hubot", "MEMBER"),),
            "events": (event_at("closed", 9.5), event_at("reopened", 20), event_at("closed", 30)),
        },
    ),
    ("unmarked", {"events": (event_at("closed", 9.5), marked_event(3, 15, "unmarked_as_duplicate"))}),
    ("discussed", {"comments": (message("Not a duplicate after all, more like #6.", 16),)}),
)


def test_later_events_do_not_change_what_was_known() -> None:
    for name, later in LATER:
        before = duplicate(9, of=3, events=(event_at("closed", 9.5),))
        after = replace(before, **{**later, "comments": (*before.comments, *later.get("comments", ()))})
        assert first_original(after) == first_original(before) == (3, at(9.5)), name
        assert [mark for mark in marks(after) if mark.at < at(12)] == marks(before), name


def test_duplicates_of_one_thread_are_related_to_one_another() -> None:
    labels = links(mark(5, 2, 6), mark(7, 2, 8), mark(9, 7, 10), mark(8, 1, 9, False))
    assert labels.relations(thread(9)) == Relations(frozenset({2, 5, 7}))
    assert labels.relations(thread(7)) == Relations(frozenset({2, 5}))
    assert labels.relations(thread(2)) == Relations()
    assert labels.relations(thread(8)) == Relations(others=frozenset({1}))
    assert labels.relations(thread(3)) == Relations()


def test_the_direction_of_a_link_does_not_matter() -> None:
    assert links(mark(3, 8, 9)).relations(thread(8)) == Relations(frozenset({3}))


def test_only_known_and_older_threads_are_related() -> None:
    labels = links(mark(5, 99, 6), mark(6, 99, 7), mark(5, 8, 9, False), mark(5, 77, 9, False))
    assert labels.relations(thread(6)) == Relations(), "a thread that nobody knows makes no group"
    assert labels.relations(thread(5)) == Relations()


def test_a_duplicate_is_not_also_something_else() -> None:
    labels = links(mark(5, 2, 6), mark(5, 2, 6, False), mark(5, 3, 6, False))
    assert labels.relations(thread(5)) == Relations(frozenset({2}), frozenset({3}))


def test_marked_duplicates_are_those_of_older_threads() -> None:
    labels = links(mark(7, 2, 9), mark(5, 2, 6), mark(3, 8, 9), mark(6, 99, 7), mark(4, 1, 5, False), mark(5, 1, 7))
    assert labels.duplicates() == [5, 7]
    assert labels.first_duplicate_mark(5) == at(6)
    assert labels.first_duplicate_mark(3) is labels.first_duplicate_mark(4) is labels.first_duplicate_mark(12) is None


def test_links_are_known_from_the_moment_after_they_were_made() -> None:
    labels = links(mark(5, 2, 6), mark(7, 5, 8))
    assert labels.known_at(at(6)).duplicates() == []
    assert labels.known_at(at(6) + timedelta(microseconds=1)).duplicates() == [5]
    assert labels.known_at(at(8)).relations(thread(7)) == Relations()
    assert labels.known_at(at(8.1)).relations(thread(7)) == Relations(frozenset({2, 5}))


MARKS = st.lists(st.builds(mark, st.integers(1, 8), st.integers(1, 8), st.integers(1, 20), st.booleans()), max_size=15)


@given(MARKS, st.integers(1, 20))
def test_labels_known_at_a_moment_never_depend_on_later_marks(drawn: list[Mark], days: int) -> None:
    moment: datetime = at(days)
    labels = links(*drawn, count=8).known_at(moment)
    expected = links(*(each for each in drawn if each.at < moment), count=8)
    for key in range(1, 9):
        assert labels.relations(thread(key)) == expected.relations(thread(key))
        assert labels.first_duplicate_mark(key) == expected.first_duplicate_mark(key)
    assert labels.duplicates() == expected.duplicates()


@given(MARKS)
def test_related_threads_are_older_and_the_two_kinds_do_not_overlap(drawn: list[Mark]) -> None:
    labels = links(*drawn, count=8)
    for key in range(1, 9):
        relations = labels.relations(thread(key))
        assert not relations.duplicates & relations.others
        assert all(int(other) < key for other in relations.all)
        for other in relations.duplicates:
            assert labels.relations(thread(int(other))).duplicates <= relations.duplicates | {key}


@pytest.mark.slow
def test_labels_of_a_history_do_not_depend_on_later_events() -> None:
    for seed in range(6):
        timelines = generated(60, random.Random(seed))
        for cut in (20, 45):
            other = change_future(timelines, at(cut), (), seed)
            first, second = (
                LinkLabels.read([life.thread() for life in each]).known_at(at(cut)) for each in (timelines, other)
            )
            assert first.duplicates() == second.duplicates() != [], seed
            for life in timelines[: cut - 1]:
                assert first.relations(life.opening) == second.relations(life.opening), seed
                originals = [first_original(each.thread()) for each in (life, other[timelines.index(life)])]
                before = [original if original and original[1] <= at(cut) else None for original in originals]
                assert before[0] == before[1], seed


# What people think of our matches.


def shown(key: int, *matches: int, ups: int = 0, downs: int = 0, may_write: bool = True) -> Post:
    votes = tuple(Vote(f"reader{turn}", turn < ups, may_write) for turn in range(ups + downs))
    return Post(key, "said", at(key), matches=tuple((match, 0.7) for match in matches), votes=votes)


def wrong(key: int, *about: int, name: str = "wrong", by: str = "octocat") -> Request:
    return Request(key, 5, name, by, at(key), about)


def test_thumbs_count_for_an_answer_with_a_single_match() -> None:
    cases = [
        (shown(9, 3, downs=1), {(9, 3): False}),
        (shown(9, 3, ups=1), {(9, 3): True}),
        (shown(9, 3, ups=2, downs=3), {(9, 3): False}),
        (shown(9, 3, ups=2, downs=2), {}),
        (shown(9, 3), {}),
        (shown(9, 3, 4, downs=5), {}),
        (shown(9, 3, 4, ups=5), {}),
        (shown(9, ups=5), {}),
        (shown(9, 3, downs=5, may_write=False), {}),
    ]
    assert [answer for answer, opinions in cases if feedback_of([answer], []).opinions != opinions] == []


def test_everybodys_votes_are_kept_for_an_answer_with_a_single_match() -> None:
    answer = shown(9, 3, ups=1, downs=5, may_write=False)
    assert feedback_of([answer, shown(8, 3, 4, ups=2), shown(7, 3)], []).votes == {(9, 3): answer.votes}


@pytest.mark.parametrize(
    ("by", "author", "role", "may_write"),
    [
        ("octocat", "octocat", "NONE", False),
        ("octocat", "Octocat", "CONTRIBUTOR", False),
        ("octocat", "octocat", "MEMBER", True),
        ("hubot", "octocat", "NONE", True),
    ],
)
def test_a_match_that_its_author_calls_wrong_is_one_strangers_vote(
    by: str, author: str, role: str, may_write: bool
) -> None:
    issue = thread(9, author=author, role=role)
    votes = (Vote(by, False, may_write),)
    assert feedback_of([], [wrong(9, 3, by=by)], [issue]).votes == {(9, 3): votes, (3, 9): votes}


def test_a_match_called_wrong_is_wrong_in_both_directions_whatever_the_thumbs() -> None:
    feedback = feedback_of([shown(9, 3, ups=5), shown(8, 4, ups=1)], [wrong(9, 3), wrong(8, 4, name="refused")])
    assert feedback.opinions == {(9, 3): False, (3, 9): False, (8, 4): True}


def test_opinions_overrule_links_and_add_to_them() -> None:
    linked_marks = [mark(9, 3, 10), mark(9, 4, 10, False), mark(7, 3, 10)]
    created = {key: at(key) for key in range(1, 13)}
    opinions = {(9, 3): False, (9, 5): True, (9, 11): True, (9, 99): True, (8, 4): True}
    linked = LinkLabels(created, linked_marks, Feedback(opinions))
    assert linked.relations(thread(9)) == Relations(frozenset({7}), frozenset({4, 5}))
    assert linked.relations(thread(8)) == Relations(others=frozenset({4}))
    assert linked.relations(thread(7)) == LinkLabels(created, linked_marks).relations(thread(7))
    for other in (linked.with_marks([]), linked.known_at(at(99))):
        assert other.relations(thread(9)) == linked.relations(thread(9))


def test_links_are_read_with_opinions() -> None:
    threads = [thread(3), with_comments(message("Looks like #3.", 11))]
    assert LinkLabels.read(threads).relations(threads[1]).all == {3}
    assert LinkLabels.read(threads, None, Feedback({(9, 3): False})).relations(threads[1]).all == set()
