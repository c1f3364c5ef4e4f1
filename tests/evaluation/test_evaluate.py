"""Evaluation: what is masked, which rank counts, which folds train which, and that nothing leaks from the future."""

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from bot.domain.thread import RepositoryAddress, Thread, ThreadId, TimelineEvent
from bot.domain.thread_json import thread_from_archive
from bot.evaluation.evaluate import (
    FIRST_LEARNING_SIZE,
    MAX_EXAMPLES,
    MIN_EXAMPLES,
    RELEARNING_GROWTH,
    EvaluationQuery,
    EvaluationResult,
    Example,
    Trial,
    cross_validate,
    evaluate,
    last_learning,
    mask_citations,
    own_ranking,
)
from bot.evaluation.metrics import RankMetrics
from bot.evaluation.replay import ReplayHistory, past_library
from bot.ranking.weights import RankingModels, RankingWeights, shipped
from bot.recall.mentions import referenced_numbers
from bot.recall.similar import find_candidates, judge_candidates
from tests.evaluation.timelines import ThreadTimeline, change_future, generated
from tests.examples import THOROUGH
from tests.recall.samples import at, closed, duplicate, message, thread

BY_TEXT = RankingWeights({"text": 1.0}, {}, 0.0, 0.5)
TEXT_ONLY = RankingModels(BY_TEXT, BY_TEXT)


def text_only(*queries: EvaluationQuery) -> Trial:
    return Trial({query.id: TEXT_ONLY for query in queries})


# What is masked.


def test_citations_by_number_are_masked() -> None:
    cases = [
        ("Like #12, not #123.", "Like  , not #123."),
        ("gh-12 and GH-12 and GH-121", "  and   and GH-121"),
        ("See https://github.com/octocat/linkbarn/issues/12#note", "See https://github.com/octocat/linkbarn #note"),
        ("octocat/linkbarn#12", "octocat/linkbarn "),
        ("/pull/12 /pull/120", "  /pull/120"),
        ("12 is a number, v1.12 too", "12 is a number, v1.12 too"),
        ("#7 and #70", "  and #70"),
    ]
    for text, expected in cases:
        masked = mask_citations(thread(200, text, text), {12, 7})
        assert (masked.title, masked.body) == (expected, expected), text


def test_citations_by_key_are_masked() -> None:
    cases = [
        ("Like AB-1, not AB-12.", "Like  , not AB-12."),
        ("see https://bugs.example/browse/ab-1?x=1", "see https://bugs.example/browse/ ?x=1"),
        ("XAB-1 and X-AB-1 and AB-1_2", "XAB-1 and X-AB-1 and AB-1_2"),
        ("C+(+ is odd", "  is odd"),
        ("MANY-11 MANY-1", "   "),
    ]
    for text, expected in cases:
        masked = mask_citations(thread("AB-7", text, text, days=3), {"AB-1", "C+(+", "MANY-1", "MANY-11"})
        assert (masked.title, masked.body) == (expected, expected), text


def test_a_query_is_the_thread_as_it_was_opened() -> None:
    at_once = replace(message("Duplicate of #3", author="hubot"), created_at=at(9))
    original = closed(9, comments=(at_once, message("Later", 10)), labels=("bug",))
    masked = mask_citations(original, ())
    assert (masked.state, masked.comments) == ("open", ())


# Which rank counts.


def similar_thread(key: int, **rest: object) -> Thread:
    return thread(key, "Import loses umlauts in tags", "The import of tags loses umlauts", **rest)


def test_the_rank_is_that_of_the_first_relevant_thread() -> None:
    near = thread(1, "Import loses umlauts in tags", "The import of tags loses umlauts")
    far = thread(2, "Export of umlauts", "Umlauts are written twice")
    unlike = thread(3, "Dark theme", "It is too dark")
    history = ReplayHistory.read([near, far, unlike, similar_thread(4)])
    for relevant, rank in (({1}, 1), ({2}, 2), ({1, 2}, 1), ({99}, None), (set(), None)):
        query = EvaluationQuery(4, frozenset(relevant))
        results, examples = evaluate(history, [query], text_only(query))
        assert [(result.id, result.rank) for result in results] == [(4, rank)]
        assert results[0].ms > 0
        assert [example.known_at for example in examples] == ([at(4)] if rank else [])
        assert all(sum(example.right) == len(relevant) for example in examples)


def test_the_original_of_a_relevant_duplicate_counts_as_relevant() -> None:
    history = ReplayHistory.read(
        [
            similar_thread(1),
            duplicate(2, 1, *("Import loses umlauts in tags", "The import loses umlauts")),
            similar_thread(4),
        ]
    )
    query = EvaluationQuery(4, frozenset({2}))
    assert [result.rank for result in evaluate(history, [query], text_only(query))[0]] == [1]


def test_a_masked_citation_does_not_exclude_its_target() -> None:
    citing = replace(similar_thread(4), body="The import of tags loses umlauts, like #1 and #2")
    history = ReplayHistory.read([similar_thread(1), similar_thread(2), citing])
    query = EvaluationQuery(4, frozenset({1}))
    results, (example,) = evaluate(history, [query], text_only(query))
    assert results[0].rank == 1
    assert example.right == (True,), "what else it cites is no candidate"


def test_queries_come_oldest_first_and_unknown_ones_are_left_out() -> None:
    history = ReplayHistory.read([similar_thread(key) for key in range(1, 7)])
    ticks: list[int] = []
    queries = [EvaluationQuery(key, frozenset({1})) for key in (6, 3, 99, 4)]
    assert [result.id for result in evaluate(history, queries, text_only(*queries), ticks.append)[0]] == [3, 4, 6]
    assert ticks == [1, 1, 1]
    assert [result.id for result in cross_validate(history, queries, 2, None)] == [3, 4, 6]
    assert evaluate(history, [], Trial()) == ([], [])
    assert cross_validate(history, [], 5, None) == []


def test_threads_older_than_the_window_are_not_found() -> None:
    history = ReplayHistory.read([similar_thread(1), similar_thread(20), similar_thread(30)])
    query = EvaluationQuery(30, frozenset({1}))
    trial = text_only(query)
    assert evaluate(history, [query], trial)[0][0].rank == 1
    assert evaluate(history, [query], replace(trial, window=timedelta(days=15)))[0][0].rank is None


# Which folds train which.


def pairs(numbers: Sequence[int], by_author: bool, gap: float = 1.0) -> tuple[list[Thread], list[EvaluationQuery]]:
    """Queries with two candidates of equal words, of which the one by the query's author, or the other one, is right.

    The right one is the younger, so it comes second unless something was learned.
    """
    threads, queries = [], []
    for number in numbers:
        title, begin = f"Odd{chr(97 + number)}x thing breaks the wall{chr(97 + number)}x", 10 * number
        first, second = ("hubot", "monalisa") if by_author else ("monalisa", "hubot")
        threads += [
            thread(100 * number + 1, title, title, begin, author=first),
            thread(100 * number + 2, title, title, begin + 0.01, author=second),
            thread(100 * number + 3, title, title, begin + gap, author="monalisa"),
        ]
        queries.append(EvaluationQuery(100 * number + 3, frozenset({100 * number + 2})))
    return threads, queries


def test_a_fold_is_ranked_by_a_model_trained_on_the_others_only() -> None:
    """In the first fold the author's own thread is right, in the second never: each learns the wrong lesson for it."""
    early, early_queries = pairs(range(1, 6), by_author=True)
    late, late_queries = pairs(range(6, 11), by_author=False)
    history = ReplayHistory.read([*early, *late])
    results = cross_validate(history, [*late_queries, *early_queries], 2, None)
    assert [result.rank for result in results] == [2] * 10
    mixed, mixed_queries = pairs(range(1, 11), by_author=True)
    assert [result.rank for result in cross_validate(ReplayHistory.read(mixed), mixed_queries, 2, None)] == [1] * 10


def test_simultaneous_queries_are_in_one_fold() -> None:
    threads, queries = pairs(range(1, 5), by_author=True)
    at_once = [
        replace(each, created_at=at(99)) if each.id in {query.id for query in queries} else each for each in threads
    ]
    results = cross_validate(ReplayHistory.read(at_once), queries, 2, None)
    assert [each.rank for each in results] == [2] * 4, "there is nobody else to learn from"


def make_examples(count: int, days: float = 0) -> list[Example]:
    rows = ({"text": 1.0, "open": 0.0}, {"text": 1.0, "open": 1.0})
    return [Example(rows, (True, False), at(days) + timedelta(hours=number)) for number in range(count)]


def test_a_repository_with_enough_marks_gets_its_own_ranking() -> None:
    before = at(0) + timedelta(hours=MIN_EXAMPLES - 1)
    assert own_ranking(make_examples(1000), TEXT_ONLY, before) is TEXT_ONLY
    own = own_ranking(make_examples(1000), TEXT_ONLY, before + timedelta(seconds=1))
    assert own.by_words.order["open"] < 0
    assert own == own_ranking(make_examples(MIN_EXAMPLES), TEXT_ONLY, at(999))


@pytest.mark.slow
def test_only_the_newest_of_many_marks_are_used_for_training() -> None:
    """Even if the queries came in a different order than the marks."""
    reversed_examples = [replace(example, right=(False, True)) for example in make_examples(MAX_EXAMPLES)]
    later = make_examples(MAX_EXAMPLES, 100)
    own = own_ranking([*later, *reversed_examples], TEXT_ONLY, at(999))
    assert own == own_ranking(later, TEXT_ONLY, at(999))
    assert own.provenance["order"] != own_ranking(make_examples(100), TEXT_ONLY, at(999)).provenance["order"]


def test_confidence_and_cut_stay_those_of_the_base_ranking() -> None:
    base = replace(TEXT_ONLY, by_words=RankingWeights({"duplicates": 2.0}, {"score": 3.0}, -1.0, 0.3))
    own = own_ranking(make_examples(MIN_EXAMPLES), base, at(999)).by_words
    assert (own.confidence, own.intercept, own.cut) == ({"score": 3.0}, -1.0, 0.3)
    assert own.order["duplicates"] == 2.0, "nothing was seen of it"


# Nothing leaks from the future.


@dataclass(frozen=True)
class AnswerDetails:
    """Everything that an evaluation yields for one query."""

    rank: int | None
    features: object
    ranked: object
    shown: object


def answer_of(threads: Sequence[Thread], query: EvaluationQuery, trial: Trial) -> AnswerDetails:
    history = ReplayHistory.read(threads)
    (result,), examples = evaluate(history, [query], trial)
    original = next(each for each in history.threads if each.id == query.id)
    opened = mask_citations(original, query.relevant)
    with past_library(history) as past:
        ranked = find_candidates(opened, past, opened.created_at, referenced_numbers(opened, RepositoryAddress()))
        shown = judge_candidates(opened, ranked, past, opened.created_at)
    return AnswerDetails(
        result.rank,
        [(example.features, example.right) for example in examples],
        [(c.entry.id, c.folded, c.score, c.features, c.hit.terms, c.hit.share) for c in ranked.candidates],
        [(example.match(), example.candidate.similarity, example.candidate.evidence) for example in shown],
    )


def threads_of(timelines: Sequence[ThreadTimeline]) -> list[Thread]:
    return [life.thread() for life in timelines]


@pytest.mark.slow
def test_events_after_a_query_do_not_change_its_answer() -> None:
    for key in [40, 57, 72]:
        timelines = generated(80, random.Random(key))
        query = EvaluationQuery(key, frozenset(range(1, key, 3)))
        trial = Trial({query.id: shipped()})
        expected = answer_of(threads_of(timelines), query, trial)
        assert expected.rank is not None, key
        assert expected.ranked, key
        for seed in range(3):
            other = threads_of(change_future(timelines, at(key), [key], seed))
            assert other != threads_of(timelines), key
            assert answer_of(other, query, trial) == expected, key


@pytest.mark.slow
def test_events_before_a_query_do_change_its_answer() -> None:
    """Otherwise the test above would prove nothing."""
    timelines = generated(80, random.Random(57))
    query = EvaluationQuery(57, frozenset(range(1, 57, 3)))
    trial = Trial({query.id: shipped()})
    expected = answer_of(threads_of(timelines), query, trial)
    others = [answer_of(threads_of(change_future(timelines, at(40), [57], seed)), query, trial) for seed in range(2)]
    assert all(other.ranked != expected.ranked for other in others)


def test_a_duplicate_mark_taken_back_after_the_query_still_counts() -> None:
    """Closed as a duplicate before the query; reopened and fixed after it."""
    marked = duplicate(2, 1, "Import loses umlauts in tags", "The import loses umlauts")
    events = (TimelineEvent("closed", at(2.5)), TimelineEvent("reopened", at(20)), TimelineEvent("closed", at(30)))
    fixed = (*marked.comments, message("Fixed by abc1234.", 30, "hubot", "MEMBER"))
    taken_back = replace(marked, closed_at=at(30), comments=fixed, events=events)
    query = EvaluationQuery(9, frozenset({1}))
    first, second = (
        answer_of([similar_thread(1), each, similar_thread(9)], query, text_only(query))
        for each in (marked, taken_back)
    )
    assert first.ranked == second.ranked
    assert first.rank == 1


@pytest.mark.night
@pytest.mark.slow
def test_a_repositorys_own_ranking_does_not_know_the_future() -> None:
    """Many of the 330 threads are marked: their marks train later queries, never earlier ones."""
    timelines = generated(330, random.Random(5))
    keys = range(270, 328, 6)
    queries = [EvaluationQuery(key, frozenset(range(1, key, 5))) for key in keys]
    history = ReplayHistory.read(threads_of(timelines))
    results = evaluate(history, queries, Trial())
    by_shipped = evaluate(history, queries, Trial({key: shipped() for key in keys}))
    assert results[1] != by_shipped[1], "nothing was learned"
    for seed, cut in enumerate((288, 318)):
        other = ReplayHistory.read(threads_of(change_future(timelines, at(cut), keys, seed)))
        check_same_until(results, evaluate(other, queries, Trial()), history, at(cut))


def test_a_repository_learns_again_whenever_it_has_grown_enough() -> None:
    threads = [thread(key, "Title") for key in range(1, 121)]
    history = ReplayHistory(threads, ())
    starts = [0, *(int(FIRST_LEARNING_SIZE * RELEARNING_GROWTH**times) for times in range(4))]
    assert starts == [0, 50, 65, 84, 109]
    for start, end in pairwise([*starts, 120]):
        assert {last_learning(history, each) for each in threads[start:end]} == {threads[start].created_at}


def test_a_repository_learns_from_older_threads_only_even_if_many_came_at_once() -> None:
    threads = [replace(thread(key, "Title"), created_at=at(key // 40)) for key in range(1, 161)]
    history = ReplayHistory(threads, ())
    assert all(last_learning(history, each) <= each.created_at for each in threads)
    assert last_learning(history, threads[158]) == at(2), "of the threads of its day, it learned from none"


# The same on real threads.

LIMIT = 5_600
LEARNING_LIMIT = 6_400
"""Threads of the archive to use: enough for 30 queries after a learning, and for 100 marks before it."""


@pytest.fixture(scope="module")
def real(shared: Path) -> list[Thread]:
    with gzip.open(shared / "rust_pre2015" / "issues.jsonl.gz", "rt", encoding="utf-8") as lines:
        threads = [thread_from_archive(json.loads(line)) for line in lines]
    return sorted(threads, key=lambda each: each.created_at)


def after_last_learning(shared: Path, threads: Sequence[Thread]) -> list[EvaluationQuery]:
    """The first 30 known queries after the last learning from these threads."""
    history = ReplayHistory(threads, ())
    lines = (shared / "rust_pre2015" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = {line["id"]: EvaluationQuery(line["id"], frozenset(line["relevant"])) for line in map(json.loads, lines)}
    return [queries[each.id] for each in since_last_learning(history) if each.id in queries][:30]


def since_last_learning(history: ReplayHistory) -> list[Thread]:
    last = last_learning(history, history.threads[-1])
    return [each for each in history.threads if last_learning(history, each) == last]


def change_real_future(
    threads: Sequence[Thread], moment: datetime, fixed_ids: frozenset[ThreadId], seed: int
) -> list[Thread]:
    """Real threads with a different future after a moment, as far as an archive without events can tell."""
    rng = random.Random(seed)
    later_comments = [earlier for each in threads for earlier in each.comments if earlier.created_at > moment]
    rng.shuffle(later_comments)
    later = [each for each in threads if each.created_at > moment and each.id not in fixed_ids]
    texts = dict(zip((each.id for each in later), rng.sample(later, len(later)), strict=True))
    changed = []
    for each in threads:
        if each.id in texts and rng.random() < 0.2:
            continue
        text = texts.get(each.id, each)
        begin = max(moment, each.created_at)
        comments = [earlier for earlier in each.comments if earlier.created_at <= moment]
        for _ in range(rng.randrange(4)):
            comment = later_comments.pop() if later_comments else message("Duplicate of #1.", author="hubot")
            comments.append(replace(comment, created_at=begin + timedelta(days=rng.expovariate(1 / 30), seconds=1)))
        opened = replace(each, title=text.title, body=text.body, author=text.author, labels=("other",))
        changed.append(_ended(replace(opened, comments=tuple(comments)), begin, moment, rng))
    return changed


def _ended(opened: Thread, begin: datetime, moment: datetime, rng: random.Random) -> Thread:
    if opened.closed_at and opened.closed_at <= moment:
        return opened
    if rng.random() < 0.3:
        return replace(opened, state="open", closed_at=None, closed_by=None, state_reason=None)
    closed_at = begin + timedelta(days=rng.expovariate(1 / 60), seconds=1)
    return replace(opened, state="closed", closed_at=closed_at, closed_by="hubot", state_reason="completed")


def check_same_until(
    first: tuple[list[EvaluationResult], list[Example]],
    other: tuple[list[EvaluationResult], list[Example]],
    history: ReplayHistory,
    until: datetime,
) -> None:
    """Up to a moment, all queries have the same ranks and all candidates the same features."""
    created = {each.id: each.created_at for each in history.threads}
    ranks = [[(each.id, each.rank) for each in results if created[each.id] <= until] for results, _ in (first, other)]
    assert ranks[0] == ranks[1] != []
    known_examples = [[each for each in examples if each.known_at <= until] for _, examples in (first, other)]
    assert known_examples[0] == known_examples[1] != []


def check_real_future(real: Sequence[Thread], shared: Path, cuts: Sequence[int], learns: bool) -> None:
    threads = real[: LEARNING_LIMIT if learns else LIMIT]
    queries = after_last_learning(shared, threads)
    assert len(queries) == 30
    by_shipped = Trial({query.id: shipped() for query in queries})
    history = ReplayHistory.read(threads)
    trial = Trial() if learns else by_shipped
    results = evaluate(history, queries, trial)
    assert not learns or results[1] != evaluate(history, queries, by_shipped)[1], "nothing was learned"
    created = {each.id: each.created_at for each in threads}
    for seed, cut in enumerate(cuts):
        moment = created[queries[cut].id]
        changed = change_real_future(threads, moment, frozenset(query.id for query in queries), seed)
        assert len(changed) < len(threads)
        check_same_until(results, evaluate(ReplayHistory.read(changed), queries, trial), history, moment)


@pytest.mark.shared
@pytest.mark.night
@pytest.mark.slow
def test_real_queries_are_answered_without_knowing_the_future(real: list[Thread], shared: Path) -> None:
    check_real_future(real, shared, (0, 14, 29) if THOROUGH else (14,), learns=False)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="hundreds of real lessons, twice: in `.ci/run --whole`")
def test_real_marks_train_no_query_before_they_were_made(real: list[Thread], shared: Path) -> None:
    check_real_future(real, shared, (20,), learns=True)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="a large archive, read twice: in `.ci/run --whole`")
def test_results_are_as_good_without_the_roles_of_authors(real: list[Thread], shared: Path) -> None:
    lines = (shared / "rust_pre2015" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    all_queries = [EvaluationQuery(line["id"], frozenset(line["relevant"])) for line in map(json.loads, lines)]
    history = ReplayHistory.read(real)
    last = {each.id for each in since_last_learning(history)}
    queries = [query for query in all_queries if query.id in last]
    assert len(queries) > 100
    roleless = [replace(each, role="", comments=tuple(replace(c, role="") for c in each.comments)) for each in real]
    by_shipped = Trial({query.id: shipped() for query in queries})
    results = [evaluate(threads, queries, by_shipped)[0] for threads in (history, ReplayHistory.read(roleless))]
    with_roles, without_roles = (
        RankMetrics.of([line.rank for line in each]).figures["rr@10"].value for each in results
    )
    assert with_roles > 0.7
    assert abs(with_roles - without_roles) <= 0.01
