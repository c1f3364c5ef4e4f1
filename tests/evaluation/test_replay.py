"""Memory as it was: what its library holds at a given moment."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from bot.domain.thread import Kind, Thread, TimelineEvent
from bot.evaluation.replay import PastLibrary, ReplayHistory, past_library
from bot.ranking.weights import shipped
from bot.recall.library import similar_query
from bot.recall.similar import find_candidates
from tests.recall.samples import at, closed, duplicate, thread

WORDS = ("apricot", "bramble", "cinnamon", "damson", "elder", "fennel", "ginger", "hazel", "iris", "juniper")


def numbered_thread(key: int, *words: str) -> Thread:
    """A thread with two words by its number; threads ten apart share the first one."""
    both = (WORDS[key % 10], WORDS[key // 10 % 10], *words)
    return thread(key, f"{both[0]} fails", " ".join((*both, "on", "startup")), role="MEMBER")


def numbered_threads(count: int) -> list[Thread]:
    return [numbered_thread(key) for key in range(1, count + 1)]


def candidate_ids(past: PastLibrary, query: Thread) -> list[object]:
    return [c.entry.id for c in find_candidates(query, past, query.created_at, ()).candidates]


def test_a_history_is_sorted_by_creation_whatever_the_input_order() -> None:
    ticks: list[int] = []
    history = ReplayHistory.read(reversed(numbered_threads(5)), tick=ticks.append)
    assert [each.id for each in history.threads] == [each.entry.id for each in history.documents] == [1, 2, 3, 4, 5]
    assert ticks == [1] * 5
    assert history.before(at(3)) == 2
    assert history.before(at(3.1)) == 3


def test_an_index_of_all_threads_answers_as_one_of_the_older_threads_would() -> None:
    threads = [*numbered_threads(58), closed(59, "Apricot fails", after=1), duplicate(60, 1, "Apricot fails", after=1)]
    for query in (threads[30], threads[45]):
        answers = []
        for known in (threads, [each for each in threads if each.created_at < query.created_at]):
            with past_library(ReplayHistory.read(known)) as past:
                ranked = find_candidates(query, past, query.created_at, ())
                answers.append([(c.entry.id, c.score, c.features, c.hit) for c in ranked.candidates])
        assert answers[0] == answers[1] != []


def test_a_query_sees_only_older_threads() -> None:
    history = ReplayHistory.read(numbered_threads(60))
    queries = [history.threads[30], history.threads[45]]
    with past_library(history) as past:
        early, late = (candidate_ids(past, each) for each in queries)
        assert set(early) <= set(range(1, 31))
        assert 21 in early
        assert max(map(int, map(str, late))) > 31
        rarities = (
            past.rarity(["apricot"], before=at(31))["apricot"],
            past.rarity(["apricot"], before=at(46))["apricot"],
        )
        assert rarities[0] != rarities[1]


def test_the_first_thread_finds_nothing_in_an_empty_library() -> None:
    history = ReplayHistory.read(numbered_threads(3))
    with past_library(history) as past:
        assert candidate_ids(past, history.threads[0]) == []


def test_a_window_hides_older_threads() -> None:
    history = ReplayHistory.read(numbered_threads(60))
    query = history.threads[55]
    with past_library(history) as past:
        everything = candidate_ids(past, query)
        windowed = past.with_window(timedelta(days=12))
        assert set(candidate_ids(windowed, query)) == {key for key in everything if int(str(key)) >= 44}
        assert 0 < len(candidate_ids(windowed, query)) < len(everything)
        assert candidate_ids(windowed.with_window(None), query) == candidate_ids(past, query) == everything
        assert candidate_ids(past.with_window(timedelta(0)), query) == []
        hits = windowed.search(similar_query(query), before=query.created_at, keep=lambda entry: entry.id == 46)
        assert [hit.entry.id for hit in hits] == [46]


def test_a_library_with_another_ranking_leaves_the_original_unchanged() -> None:
    history = ReplayHistory.read(numbered_threads(55))
    other = replace(shipped(), by_words=replace(shipped().by_words, cut=0.7))
    with past_library(history) as past:
        assert past.with_ranking(other).ranking is other
        assert past.with_ranking(other).with_window(None).ranking is other
        assert past.ranking is shipped()


class Lengths:
    """A downloaded model that knows how long a text is."""

    fingerprint = "lengths"

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes([1, min(127, len(text))]) for text in texts]


def test_a_downloaded_model_gives_vectors() -> None:
    history = ReplayHistory.read(numbered_threads(12), Lengths())
    query = history.threads[11]
    with past_library(history) as past:
        assert past.vector(query) == bytes([1, min(127, len(f"{query.title}\n{query.body}"))])
        first = find_candidates(query, past, query.created_at, ()).candidates[0]
        assert first.features["semantic"] > 0.9


def test_states_and_duplicates_are_those_at_the_time_of_the_query() -> None:
    """Thread 2 is closed as a duplicate of 1 a week after the first query, and reopened after the second."""
    reopened = (TimelineEvent("closed", at(12)), TimelineEvent("reopened", at(40)))
    second = replace(
        duplicate(2, 1, "Apricot fails on startup", after=10), state="open", closed_at=None, events=reopened
    )
    second = replace(second, comments=tuple(replace(comment, created_at=at(12)) for comment in second.comments))
    threads = [thread(1, "Apricot fails on startup"), second]
    threads += [thread(key, "Apricot fails on startup") for key in (5, 20, 50)]
    threads.append(closed(3, "Apricot fails on startup", after=7))
    history = ReplayHistory.read(threads)
    by_id = {each.id: each for each in history.threads}
    with past_library(history) as past:
        early = {c.entry.id: c for c in find_candidates(by_id[5], past, at(5), ()).candidates}
        assert set(early) == {1, 2, 3}
        assert all(c.features["open"] == 1.0 for c in early.values())
        assert early[1].hit.duplicates == 0
        later = {c.entry.id: c for c in find_candidates(by_id[20], past, at(20), ()).candidates}
        assert set(later) == {1, 3, 5}
        assert set(later[1].folded) == {1, 2}
        assert later[3].features["open"] == 0.0
        last = {c.entry.id: c for c in find_candidates(by_id[50], past, at(50), ()).candidates}
        assert set(last[1].folded) == {1, 2}, "what was taken back still counts: that it was is not in an index"


def test_pull_requests_are_no_candidates() -> None:
    history = ReplayHistory.read(
        [replace(numbered_thread(1), kind=Kind.PULL), numbered_thread(11), numbered_thread(21)]
    )
    with past_library(history) as past:
        assert past.issues == 2
        assert candidate_ids(past, history.threads[2]) == [11]


def test_a_library_is_closed_at_the_end() -> None:
    history = ReplayHistory.read(numbered_threads(60))
    with past_library(history) as past:
        assert candidate_ids(past, history.threads[55])
    assert past.entries([1]) == {}
