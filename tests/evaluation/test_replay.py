"""Memory as it was: what an epoch has learned from, and what its library holds at which moment."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from bot.domain.thread import Kind, Thread, TimelineEvent
from bot.evaluation.replay import FIRST, GROWTH, Epoch, PastLibrary, ReplayHistory, epochs, past_libraries
from bot.memory.model_store import LearnedModel
from bot.ranking.weights import shipped
from bot.ranking.word_vectors import train_embeddings
from bot.recall.library import similar_query
from bot.recall.similar import find_candidates
from tests.recall.samples import at, closed, duplicate, thread

WORDS = ("apricot", "bramble", "cinnamon", "damson", "elder", "fennel", "ginger", "hazel", "iris", "juniper")


def one(key: int, *words: str) -> Thread:
    """A thread with words of its own: of two that are ten apart two are the same."""
    own = (WORDS[key % 10], WORDS[key // 10 % 10], *words)
    return thread(key, f"{own[0]} fails", " ".join((*own, "on", "startup")), role="MEMBER")


def many(count: int) -> list[Thread]:
    return [one(key) for key in range(1, count + 1)]


def past_of(history: ReplayHistory, asked: Thread) -> PastLibrary:
    """The library that a thread is asked against; it is closed, so only its memory of threads may be used."""
    return next(past for _, past in past_libraries(history, epochs(history, [asked])))


def found(past: PastLibrary, asked: Thread) -> list[object]:
    return [c.entry.id for c in find_candidates(asked, past, asked.created_at, ()).candidates]


def test_a_history_is_in_the_order_of_creation_whatever_order_it_comes_in() -> None:
    ticks: list[int] = []
    history = ReplayHistory.read(reversed(many(5)), tick=ticks.append)
    assert [each.id for each in history.threads] == [each.entry.id for each in history.documents] == [1, 2, 3, 4, 5]
    assert ticks == [1] * 5
    assert history.before(at(3)) == 2
    assert history.before(at(3.1)) == 3


def test_epochs_begin_whenever_the_history_has_grown() -> None:
    history = ReplayHistory.read(many(120))
    starts = [0, FIRST, int(FIRST * GROWTH), int(FIRST * GROWTH**2), int(FIRST * GROWTH**3)]
    by_start = {epoch.trained_on: [each.id for each in epoch.threads] for epoch in epochs(history, history.threads)}
    assert list(by_start) == starts
    borders = [*starts, 120]
    for start, end in pairwise(borders):
        assert by_start[start] == list(range(start + 1, end + 1))


def test_an_epoch_has_learned_from_older_threads_only_also_where_many_came_at_once() -> None:
    threads = [replace(each, created_at=at(int(each.id) // 40)) for each in many(160) if isinstance(each.id, int)]
    history = ReplayHistory.read(threads)
    for epoch in epochs(history, history.threads):
        assert all(epoch.trained_on <= history.before(each.created_at) for each in epoch.threads)
    assert epochs(history, []) == []


def test_what_is_asked_comes_oldest_first_and_in_its_own_epoch_only() -> None:
    history = ReplayHistory.read(many(80))
    asked = [history.threads[70], history.threads[3], history.threads[60]]
    assert epochs(history, asked) == [
        Epoch(0, (history.threads[3],)),
        Epoch(FIRST, (history.threads[60],)),
        Epoch(int(FIRST * GROWTH), (history.threads[70],)),
    ]


def test_a_library_holds_older_threads_only() -> None:
    history = ReplayHistory.read(many(60))
    asked = [history.threads[30], history.threads[45]]
    ((_, past),) = [(epoch, past) for epoch, past in past_libraries(history, epochs(history, asked))]
    assert past.issues == 45
    assert set(past.records(range(1, 61))) == set(range(1, 46))


def test_whoever_asks_sees_only_what_is_older_than_the_question() -> None:
    history = ReplayHistory.read(many(60))
    asked = [history.threads[30], history.threads[45]]
    for _, past in past_libraries(history, epochs(history, asked)):
        early, late = (found(past, each) for each in asked)
        assert set(early) <= set(range(1, 31))
        assert 21 in early
        assert max(map(int, map(str, late))) > 31
        rare = past.rarity(["apricot"], before=at(31))["apricot"], past.rarity(["apricot"], before=at(46))["apricot"]
        assert rare[0] != rare[1]


def test_the_first_thread_finds_nothing_in_an_empty_library() -> None:
    history = ReplayHistory.read(many(3))
    for _, past in past_libraries(history, epochs(history, history.threads[:1])):
        assert past.issues == 0
        assert found(past, history.threads[0]) == []


def test_a_window_hides_what_is_older() -> None:
    history = ReplayHistory.read(many(60))
    asked = history.threads[55]
    for _, past in past_libraries(history, epochs(history, [asked])):
        everything = found(past, asked)
        lately = past.with_window(timedelta(days=12))
        assert found(lately, asked) == [key for key in everything if int(str(key)) >= 44]
        assert 0 < len(found(lately, asked)) < len(everything)
        assert found(lately.with_window(None), asked) == found(past, asked) == everything
        assert found(past.with_window(timedelta(0)), asked) == []
        kept = lately.search(similar_query(asked), before=asked.created_at, keep=lambda entry: entry.id == 46)
        assert [hit.entry.id for hit in kept] == [46]


def test_another_ranking_changes_the_same_library_for_nobody_else() -> None:
    history = ReplayHistory.read(many(55))
    turned = replace(shipped(), by_words=replace(shipped().by_words, cut=0.7))
    past = past_of(history, history.threads[40])
    assert past.with_ranking(turned).ranking is turned
    assert past.with_ranking(turned).with_window(None).ranking is turned
    assert past.ranking is shipped()


def test_vectors_are_those_of_the_threads_before_the_epoch() -> None:
    history = ReplayHistory.read([*many(60), one(61, "zucchini"), one(62, "zucchini"), one(63, "zucchini")])
    asked = history.threads[62]
    past = past_of(history, asked)
    words = train_embeddings([(each.title, each.body) for each in history.documents[:FIRST]])
    assert past.vectors(asked) == LearnedModel(shipped(), words).vectors(asked) != {}
    assert past.vectors(thread(99, "zucchini", "zucchini")) == {}, "a word that nobody had written then"


def test_before_the_first_training_and_on_request_there_are_no_vectors() -> None:
    history = ReplayHistory.read(many(60))
    assert past_of(history, history.threads[FIRST - 1]).vectors(history.threads[0]) == {}
    parts = epochs(history, [history.threads[55]])
    assert [past.vectors(history.threads[0]) for _, past in past_libraries(history, parts, trains=False)] == [{}]
    assert [past.vectors(history.threads[0]) == {} for _, past in past_libraries(history, parts)] == [False]


class Lengths:
    """A downloaded model that knows how long a text is."""

    fingerprint = "lengths"

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes([1, min(127, len(text))]) for text in texts]


def test_a_downloaded_model_gives_vectors_from_the_beginning() -> None:
    history = ReplayHistory.read(many(12), Lengths())
    asked = history.threads[11]
    for _, past in past_libraries(history, epochs(history, [asked])):
        assert set(past.vectors(asked)) == {"semantic", "semantic_title"}
        first = find_candidates(asked, past, asked.created_at, ()).candidates[0]
        assert first.features["semantic"] > 0.9


def test_states_and_duplicates_are_those_of_the_moment() -> None:
    """Thread 2 is called a duplicate of 1 a week after the first question, and reopened after the second."""
    reopened = (TimelineEvent("closed", at(12)), TimelineEvent("reopened", at(40)))
    again = replace(
        duplicate(2, 1, "Apricot fails on startup", after=10), state="open", closed_at=None, events=reopened
    )
    again = replace(again, comments=tuple(replace(comment, created_at=at(12)) for comment in again.comments))
    threads = [thread(1, "Apricot fails on startup"), again]
    threads += [thread(key, "Apricot fails on startup") for key in (5, 20, 50)]
    threads.append(closed(3, "Apricot fails on startup", after=7))
    history = ReplayHistory.read(threads)
    asked = {each.id: each for each in history.threads}
    for _, past in past_libraries(history, epochs(history, history.threads)):
        early = {c.entry.id: c for c in find_candidates(asked[5], past, at(5), ()).candidates}
        assert set(early) == {1, 2, 3}
        assert all(c.features["open"] == 1.0 for c in early.values())
        assert early[1].hit.duplicates == 0
        later = {c.entry.id: c for c in find_candidates(asked[20], past, at(20), ()).candidates}
        assert set(later) == {1, 3, 5}
        assert set(later[1].folded) == {1, 2}
        assert later[3].features["open"] == 0.0
        last = {c.entry.id: c for c in find_candidates(asked[50], past, at(50), ()).candidates}
        assert set(last[1].folded) == {1, 2}, "what was taken back still counts: that it was is not in an index"


def test_pull_requests_teach_words_and_are_no_candidates() -> None:
    history = ReplayHistory.read([replace(one(1), kind=Kind.PULL), one(11), one(21)])
    for _, past in past_libraries(history, epochs(history, history.threads[2:])):
        assert past.issues == 1
        assert found(past, history.threads[2]) == [11]


def test_libraries_are_given_up_when_the_next_one_is_taken() -> None:
    history = ReplayHistory.read(many(60))
    asked = [history.threads[20], history.threads[55]]
    seen = [
        (past, found(past, each))
        for each, (_, past) in zip(asked, past_libraries(history, epochs(history, asked)), strict=True)
    ]
    assert all(hits for _, hits in seen)
    assert all(past.entries([1]) == {} for past, _ in seen)
