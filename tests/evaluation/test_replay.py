"""Memory as it was: which threads an epoch has learned from, and what its library holds at a given moment."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from bot.domain.thread import Kind, Thread, TimelineEvent
from bot.evaluation.replay import (
    FIRST_TRAINING_SIZE,
    RETRAINING_GROWTH,
    Epoch,
    PastLibrary,
    ReplayHistory,
    epochs,
    past_libraries,
)
from bot.memory.model_store import LearnedModel
from bot.ranking.weights import shipped
from bot.ranking.word_vectors import train_embeddings
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


def past_of(history: ReplayHistory, query: Thread) -> PastLibrary:
    """The library that a thread is compared with; it is closed, so only its memory of threads may be used."""
    return next(past for _, past in past_libraries(history, epochs(history, [query])))


def candidate_ids(past: PastLibrary, query: Thread) -> list[object]:
    return [c.entry.id for c in find_candidates(query, past, query.created_at, ()).candidates]


def test_a_history_is_sorted_by_creation_whatever_the_input_order() -> None:
    ticks: list[int] = []
    history = ReplayHistory.read(reversed(numbered_threads(5)), tick=ticks.append)
    assert [each.id for each in history.threads] == [each.entry.id for each in history.documents] == [1, 2, 3, 4, 5]
    assert ticks == [1] * 5
    assert history.before(at(3)) == 2
    assert history.before(at(3.1)) == 3


def test_epochs_begin_whenever_the_history_has_grown_enough() -> None:
    history = ReplayHistory.read(numbered_threads(120))
    starts = [
        0,
        FIRST_TRAINING_SIZE,
        int(FIRST_TRAINING_SIZE * RETRAINING_GROWTH),
        int(FIRST_TRAINING_SIZE * RETRAINING_GROWTH**2),
        int(FIRST_TRAINING_SIZE * RETRAINING_GROWTH**3),
    ]
    by_start = {epoch.trained_on: [each.id for each in epoch.threads] for epoch in epochs(history, history.threads)}
    assert list(by_start) == starts
    borders = [*starts, 120]
    for start, end in pairwise(borders):
        assert by_start[start] == list(range(start + 1, end + 1))


def test_an_epoch_learns_only_from_older_threads_even_if_many_came_at_once() -> None:
    threads = [
        replace(each, created_at=at(int(each.id) // 40)) for each in numbered_threads(160) if isinstance(each.id, int)
    ]
    history = ReplayHistory.read(threads)
    for epoch in epochs(history, history.threads):
        assert all(epoch.trained_on <= history.before(each.created_at) for each in epoch.threads)
    assert epochs(history, []) == []


def test_queries_come_oldest_first_each_in_its_own_epoch() -> None:
    history = ReplayHistory.read(numbered_threads(80))
    queries = [history.threads[70], history.threads[3], history.threads[60]]
    assert epochs(history, queries) == [
        Epoch(0, (history.threads[3],)),
        Epoch(FIRST_TRAINING_SIZE, (history.threads[60],)),
        Epoch(int(FIRST_TRAINING_SIZE * RETRAINING_GROWTH), (history.threads[70],)),
    ]


def test_a_library_holds_older_threads_only() -> None:
    history = ReplayHistory.read(numbered_threads(60))
    queries = [history.threads[30], history.threads[45]]
    ((_, past),) = [(epoch, past) for epoch, past in past_libraries(history, epochs(history, queries))]
    assert past.issues == 45
    assert set(past.records(range(1, 61))) == set(range(1, 46))


def test_a_query_sees_only_older_threads() -> None:
    history = ReplayHistory.read(numbered_threads(60))
    queries = [history.threads[30], history.threads[45]]
    for _, past in past_libraries(history, epochs(history, queries)):
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
    for _, past in past_libraries(history, epochs(history, history.threads[:1])):
        assert past.issues == 0
        assert candidate_ids(past, history.threads[0]) == []


def test_a_window_hides_older_threads() -> None:
    history = ReplayHistory.read(numbered_threads(60))
    query = history.threads[55]
    for _, past in past_libraries(history, epochs(history, [query])):
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
    past = past_of(history, history.threads[40])
    assert past.with_ranking(other).ranking is other
    assert past.with_ranking(other).with_window(None).ranking is other
    assert past.ranking is shipped()


def test_vectors_are_those_of_the_threads_before_the_epoch() -> None:
    history = ReplayHistory.read(
        [
            *numbered_threads(60),
            numbered_thread(61, "zucchini"),
            numbered_thread(62, "zucchini"),
            numbered_thread(63, "zucchini"),
        ]
    )
    query = history.threads[62]
    past = past_of(history, query)
    words = train_embeddings([(each.title, each.body) for each in history.documents[:FIRST_TRAINING_SIZE]])
    assert past.vectors(query) == LearnedModel(shipped(), words).vectors(query) != {}
    assert past.vectors(thread(99, "zucchini", "zucchini")) == {}, "a word that nobody had written then"


def test_there_are_no_vectors_before_the_first_training_or_without_training() -> None:
    history = ReplayHistory.read(numbered_threads(60))
    assert past_of(history, history.threads[FIRST_TRAINING_SIZE - 1]).vectors(history.threads[0]) == {}
    parts = epochs(history, [history.threads[55]])
    assert [past.vectors(history.threads[0]) for _, past in past_libraries(history, parts, trains=False)] == [{}]
    assert [past.vectors(history.threads[0]) == {} for _, past in past_libraries(history, parts)] == [False]


class Lengths:
    """A downloaded model that knows how long a text is."""

    fingerprint = "lengths"

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes([1, min(127, len(text))]) for text in texts]


def test_a_downloaded_model_gives_vectors_from_the_beginning() -> None:
    history = ReplayHistory.read(numbered_threads(12), Lengths())
    query = history.threads[11]
    for _, past in past_libraries(history, epochs(history, [query])):
        assert set(past.vectors(query)) == {"semantic", "semantic_title"}
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
    for _, past in past_libraries(history, epochs(history, history.threads)):
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


def test_pull_requests_train_words_but_are_no_candidates() -> None:
    history = ReplayHistory.read(
        [replace(numbered_thread(1), kind=Kind.PULL), numbered_thread(11), numbered_thread(21)]
    )
    for _, past in past_libraries(history, epochs(history, history.threads[2:])):
        assert past.issues == 1
        assert candidate_ids(past, history.threads[2]) == [11]


def test_a_library_is_closed_when_the_next_one_is_taken() -> None:
    history = ReplayHistory.read(numbered_threads(60))
    queries = [history.threads[20], history.threads[55]]
    results = [
        (past, candidate_ids(past, each))
        for each, (_, past) in zip(queries, past_libraries(history, epochs(history, queries)), strict=True)
    ]
    assert all(hits for _, hits in results)
    assert all(past.entries([1]) == {} for past, _ in results)
