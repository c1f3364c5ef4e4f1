"""Evaluation: what is masked, which rank counts, who teaches whom, and that nobody knows the future."""

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bot.domain.thread import RepositoryAddress, Thread, ThreadId, TimelineEvent
from bot.domain.thread_json import thread_from_archive
from bot.evaluation.evaluate import (
    LEAST_EXAMPLES,
    MOST_EXAMPLES,
    EvaluationQuery,
    EvaluationResult,
    Example,
    Trial,
    cross_validate,
    evaluate,
    mask_citations,
    own_ranking,
)
from bot.evaluation.metrics import RankMetrics
from bot.evaluation.replay import ReplayHistory, epochs, past_libraries
from bot.ranking.weights import RankingModels, RankingWeights, shipped
from bot.recall.mentions import referenced_numbers
from bot.recall.similar import find_candidates, judge_candidates
from tests.evaluation.timelines import Life, generated, otherwise
from tests.examples import THOROUGH
from tests.recall.samples import at, closed, duplicate, said, thread

BY_TEXT = RankingWeights({"text": 1.0}, {}, 0.0, 0.5)
TEXT_ONLY = RankingModels(BY_TEXT, BY_TEXT, BY_TEXT)


def text_only(*queries: EvaluationQuery) -> Trial:
    return Trial({query.id: TEXT_ONLY for query in queries})


# What is masked.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Like #12, not #123.", "Like  , not #123."),
        ("gh-12 and GH-12 and GH-121", "  and   and GH-121"),
        ("See https://github.com/octocat/linkbarn/issues/12#note", "See https://github.com/octocat/linkbarn #note"),
        ("octocat/linkbarn#12", "octocat/linkbarn "),
        ("/pull/12 /pull/120", "  /pull/120"),
        ("12 is a number, v1.12 too", "12 is a number, v1.12 too"),
        ("#7 and #70", "  and #70"),
    ],
)
def test_citations_by_number_are_masked(text: str, expected: str) -> None:
    found = mask_citations(thread(200, text, text), {12, 7})
    assert (found.title, found.body) == (expected, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Like AB-1, not AB-12.", "Like  , not AB-12."),
        ("see https://bugs.example/browse/ab-1?x=1", "see https://bugs.example/browse/ ?x=1"),
        ("XAB-1 and X-AB-1 and AB-1_2", "XAB-1 and X-AB-1 and AB-1_2"),
        ("C+(+ is odd", "  is odd"),
        ("MANY-11 MANY-1", "   "),
    ],
)
def test_citations_by_key_are_masked(text: str, expected: str) -> None:
    found = mask_citations(thread("AB-7", text, text, days=3), {"AB-1", "C+(+", "MANY-1", "MANY-11"})
    assert (found.title, found.body) == (expected, expected)


def test_a_question_is_the_thread_as_it_was_opened() -> None:
    at_once = replace(said("Duplicate of #3", author="hubot"), created_at=at(9))
    one = closed(9, comments=(at_once, said("Later", 10)), reactions=(("+1", 3),), labels=("bug",))
    found = mask_citations(one, ())
    assert (found.state, found.comments, found.reactions) == ("open", (), ())


# Which rank counts.


def same(key: int, **rest: object) -> Thread:
    return thread(key, "Import loses umlauts in tags", "The import of tags loses umlauts", **rest)


def test_the_rank_is_that_of_the_first_relevant_thread() -> None:
    near = thread(1, "Import loses umlauts in tags", "The import of tags loses umlauts")
    far = thread(2, "Export of umlauts", "Umlauts are written twice")
    unlike = thread(3, "Dark theme", "It is too dark")
    history = ReplayHistory.read([near, far, unlike, same(4)])
    for relevant, rank in (({1}, 1), ({2}, 2), ({1, 2}, 1), ({99}, None), (set(), None)):
        query = EvaluationQuery(4, frozenset(relevant))
        found, examples = evaluate(history, [query], text_only(query))
        assert [(one.id, one.rank) for one in found] == [(4, rank)]
        assert found[0].ms > 0
        assert [one.known_at for one in examples] == ([at(4)] if rank else [])
        assert all(sum(one.right) == len(relevant) for one in examples)


def test_a_thread_that_a_relevant_one_was_folded_into_is_as_good() -> None:
    history = ReplayHistory.read(
        [same(1), duplicate(2, 1, *("Import loses umlauts in tags", "The import loses umlauts")), same(4)]
    )
    query = EvaluationQuery(4, frozenset({2}))
    assert [one.rank for one in evaluate(history, [query], text_only(query))[0]] == [1]


def test_a_masked_citation_does_not_take_its_target_out() -> None:
    citing = replace(same(4), body="The import of tags loses umlauts, like #1 and #2")
    history = ReplayHistory.read([same(1), same(2), citing])
    query = EvaluationQuery(4, frozenset({1}))
    found, (taught,) = evaluate(history, [query], text_only(query))
    assert found[0].rank == 1
    assert taught.right == (True,), "what else it cites is no candidate"


def test_questions_come_oldest_first_and_those_of_nobody_are_left_out() -> None:
    history = ReplayHistory.read([same(key) for key in range(1, 7)])
    ticks: list[int] = []
    queries = [EvaluationQuery(key, frozenset({1})) for key in (6, 3, 99, 4)]
    assert [one.id for one in evaluate(history, queries, text_only(*queries), ticks.append)[0]] == [3, 4, 6]
    assert ticks == [1, 1, 1]
    assert [one.id for one in cross_validate(history, queries, 2, None)] == [3, 4, 6]
    assert evaluate(history, [], Trial()) == ([], [])
    assert cross_validate(history, [], 5, None) == []


def test_a_window_makes_what_is_older_unfindable() -> None:
    history = ReplayHistory.read([same(1), same(20), same(30)])
    query = EvaluationQuery(30, frozenset({1}))
    trial = text_only(query)
    assert evaluate(history, [query], trial)[0][0].rank == 1
    assert evaluate(history, [query], replace(trial, window=timedelta(days=15)))[0][0].rank is None


# Who teaches whom.


def pairs(numbers: Sequence[int], by_author: bool, gap: float = 1.0) -> tuple[list[Thread], list[EvaluationQuery]]:
    """Questions with two candidates of the same words each, of which that by the same author is right, or the other.

    The right one is the younger: where nothing was learned it comes second.
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


def test_a_fold_is_ranked_by_what_the_others_teach_and_never_by_its_own() -> None:
    """In the first fold authors find their own threads, in the second never: each learns what is wrong for it."""
    early, asked_early = pairs(range(1, 6), by_author=True)
    late, asked_late = pairs(range(6, 11), by_author=False)
    history = ReplayHistory.read([*early, *late])
    found = cross_validate(history, [*asked_late, *asked_early], 2, None)
    assert [one.rank for one in found] == [2] * 10
    mixed, asked = pairs(range(1, 11), by_author=True)
    assert [one.rank for one in cross_validate(ReplayHistory.read(mixed), asked, 2, None)] == [1] * 10


def test_questions_of_one_moment_are_in_one_fold() -> None:
    threads, queries = pairs(range(1, 5), by_author=True)
    at_once = [replace(one, created_at=at(99)) if one.id in {query.id for query in queries} else one for one in threads]
    found = cross_validate(ReplayHistory.read(at_once), queries, 2, None)
    assert [one.rank for one in found] == [2] * 4, "there is nobody else to learn from"


def lessons(count: int, days: float = 0) -> list[Example]:
    rows = ({"text": 1.0, "open": 0.0}, {"text": 1.0, "open": 1.0})
    return [Example(rows, (True, False), at(days) + timedelta(hours=number)) for number in range(count)]


def test_a_repository_has_a_ranking_of_its_own_from_so_many_marks_on() -> None:
    before = at(0) + timedelta(hours=LEAST_EXAMPLES - 1)
    assert own_ranking(lessons(1000), TEXT_ONLY, before) is TEXT_ONLY
    own = own_ranking(lessons(1000), TEXT_ONLY, before + timedelta(seconds=1))
    assert own.by_words.order["open"] < 0
    assert own == own_ranking(lessons(LEAST_EXAMPLES), TEXT_ONLY, at(999))


@pytest.mark.slow
def test_of_many_marks_the_newest_teach() -> None:
    """Also where the questions were asked in another order than the answers came."""
    turned = [replace(one, right=(False, True)) for one in lessons(MOST_EXAMPLES)]
    later = lessons(MOST_EXAMPLES, 100)
    own = own_ranking([*later, *turned], TEXT_ONLY, at(999))
    assert own == own_ranking(later, TEXT_ONLY, at(999))
    assert own.provenance["order"] != own_ranking(lessons(100), TEXT_ONLY, at(999)).provenance["order"]


def test_confidence_and_cut_stay_those_of_the_base() -> None:
    base = replace(TEXT_ONLY, by_words=RankingWeights({"duplicates": 2.0}, {"score": 3.0}, -1.0, 0.3))
    own = own_ranking(lessons(LEAST_EXAMPLES), base, at(999)).by_words
    assert (own.confidence, own.intercept, own.cut) == ({"score": 3.0}, -1.0, 0.3)
    assert own.order["duplicates"] == 2.0, "nothing was seen of it"


# Nobody knows the future.


@dataclass(frozen=True)
class ReceiveHistogram:
    """All that is told of one question."""

    rank: int | None
    features: object
    ranked: object
    shown: object


def answered(threads: Sequence[Thread], query: EvaluationQuery, trial: Trial) -> ReceiveHistogram:
    history = ReplayHistory.read(threads)
    (found,), examples = evaluate(history, [query], trial)
    asked = next(each for each in history.threads if each.id == query.id)
    opened = mask_citations(asked, query.relevant)
    for _, past in past_libraries(history, epochs(history, [asked])):
        ranked = find_candidates(opened, past, opened.created_at, referenced_numbers(opened, RepositoryAddress()))
        near = judge_candidates(opened, ranked, past, opened.created_at)
    return ReceiveHistogram(
        found.rank,
        [(one.features, one.right) for one in examples],
        [(c.entry.id, c.folded, c.score, c.features, c.hit.terms, c.hit.share) for c in ranked.candidates],
        [(one.match(), one.candidate.similarity, one.candidate.evidence) for one in near],
    )


def told(lives: Sequence[Life]) -> list[Thread]:
    return [life.thread() for life in lives]


@pytest.mark.parametrize("key", [40, 57, 72])
def test_what_happened_after_a_question_changes_nothing_of_its_answer(key: int) -> None:
    lives = generated(80, random.Random(key))
    query = EvaluationQuery(key, frozenset(range(1, key, 3)))
    trial = Trial({query.id: shipped()})
    expected = answered(told(lives), query, trial)
    assert expected.rank is not None
    assert expected.ranked
    for seed in range(3):
        other = told(otherwise(lives, at(key), [key], seed))
        assert other != told(lives)
        assert answered(other, query, trial) == expected


def test_what_happened_before_a_question_does_change_its_answer() -> None:
    """Else the test above would show nothing."""
    lives = generated(80, random.Random(57))
    query = EvaluationQuery(57, frozenset(range(1, 57, 3)))
    trial = Trial({query.id: shipped()})
    expected = answered(told(lives), query, trial)
    others = [answered(told(otherwise(lives, at(40), [57], seed)), query, trial) for seed in range(2)]
    assert all(other.ranked != expected.ranked for other in others)


def test_a_duplicate_that_was_taken_back_later_still_counts() -> None:
    """Closed as a duplicate before the question, after it reopened and fixed."""
    known = duplicate(2, 1, "Import loses umlauts in tags", "The import loses umlauts")
    turns = (TimelineEvent("closed", at(2.5)), TimelineEvent("reopened", at(20)), TimelineEvent("closed", at(30)))
    fixed = (*known.comments, said("Fixed by abc1234.", 30, "hubot", "MEMBER"))
    taken_back = replace(known, closed_at=at(30), comments=fixed, events=turns)
    query = EvaluationQuery(9, frozenset({1}))
    first, second = (answered([same(1), one, same(9)], query, text_only(query)) for one in (known, taken_back))
    assert first.ranked == second.ranked
    assert first.rank == 1


@pytest.mark.slow
def test_what_a_repository_learned_of_itself_does_not_know_the_future() -> None:
    """Of 330 threads many are marked: their marks teach what is asked later, and later marks must not."""
    lives = generated(330, random.Random(5))
    asked = range(270, 328, 6)
    queries = [EvaluationQuery(key, frozenset(range(1, key, 5))) for key in asked]
    history = ReplayHistory.read(told(lives))
    found = evaluate(history, queries, Trial())
    by_shipped = evaluate(history, queries, Trial({key: shipped() for key in asked}))
    assert found[1] != by_shipped[1], "nothing was learned"
    for seed, cut in enumerate((288, 318)):
        other = ReplayHistory.read(told(otherwise(lives, at(cut), asked, seed)))
        agree(found, evaluate(other, queries, Trial()), history, at(cut))


# The same on real threads.

LIMIT = 5_600
LEARNING_LIMIT = 6_400
"""Threads of the archive that are used: enough for 30 questions of one epoch, and for 100 marks before that began."""


@pytest.fixture(scope="module")
def real(shared: Path) -> list[Thread]:
    with gzip.open(shared / "rust_pre2015" / "issues.jsonl.gz", "rt", encoding="utf-8") as lines:
        threads = [thread_from_archive(json.loads(line)) for line in lines]
    return sorted(threads, key=lambda each: each.created_at)


def of_last_epoch(shared: Path, threads: Sequence[Thread]) -> list[EvaluationQuery]:
    """The first 30 known questions of the last epoch."""
    history = ReplayHistory(threads, ())
    lines = (shared / "rust_pre2015" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    known = {one["id"]: EvaluationQuery(one["id"], frozenset(one["relevant"])) for one in map(json.loads, lines)}
    last = epochs(history, [each for each in threads if each.id in known])[-1]
    assert last.trained_on == max(epoch.trained_on for epoch in epochs(history, threads))
    return [known[each.id] for each in last.threads[:30]]


def after(threads: Sequence[Thread], moment: datetime, kept: frozenset[ThreadId], seed: int) -> list[Thread]:
    """Real threads to which something else happened after a moment, as far as an archive without events can tell."""
    chance = random.Random(seed)
    words = [comment for each in threads for comment in each.comments if comment.created_at > moment]
    chance.shuffle(words)
    later = [each for each in threads if each.created_at > moment and each.id not in kept]
    texts = dict(zip((each.id for each in later), chance.sample(later, len(later)), strict=True))
    found = []
    for each in threads:
        if each.id in texts and chance.random() < 0.2:
            continue
        text = texts.get(each.id, each)
        begin = max(moment, each.created_at)
        said_ = [comment for comment in each.comments if comment.created_at <= moment]
        for _ in range(chance.randrange(4)):
            word = words.pop() if words else said("Duplicate of #1.", author="hubot")
            said_.append(replace(word, created_at=begin + timedelta(days=chance.expovariate(1 / 30), seconds=1)))
        opened = replace(each, title=text.title, body=text.body, author=text.author, labels=("other",))
        found.append(_ended(replace(opened, comments=tuple(said_)), begin, moment, chance))
    return found


def _ended(one: Thread, begin: datetime, moment: datetime, chance: random.Random) -> Thread:
    if one.closed_at and one.closed_at <= moment:
        return one
    if chance.random() < 0.3:
        return replace(one, state="open", closed_at=None, closed_by=None, state_reason=None)
    closed_at = begin + timedelta(days=chance.expovariate(1 / 60), seconds=1)
    return replace(one, state="closed", closed_at=closed_at, closed_by="hubot", state_reason="completed")


def agree(
    found: tuple[list[EvaluationResult], list[Example]],
    other: tuple[list[EvaluationResult], list[Example]],
    history: ReplayHistory,
    until: datetime,
) -> None:
    """Of all questions up to a moment the ranks are the same, and the features of all candidates."""
    created = {each.id: each.created_at for each in history.threads}
    ranks = [[(each.id, each.rank) for each in places if created[each.id] <= until] for places, _ in (found, other)]
    assert ranks[0] == ranks[1] != []
    taught = [[each for each in examples if each.known_at <= until] for _, examples in (found, other)]
    assert taught[0] == taught[1] != []


def undisturbed(real: Sequence[Thread], shared: Path, cuts: Sequence[int], learns: bool) -> None:
    threads = real[: LEARNING_LIMIT if learns else LIMIT]
    queries = of_last_epoch(shared, threads)
    assert len(queries) == 30
    by_shipped = Trial({query.id: shipped() for query in queries})
    history = ReplayHistory.read(threads)
    tried = Trial() if learns else by_shipped
    found = evaluate(history, queries, tried)
    assert not learns or found[1] != evaluate(history, queries, by_shipped)[1], "nothing was learned"
    created = {each.id: each.created_at for each in threads}
    for seed, cut in enumerate(cuts):
        moment = created[queries[cut].id]
        other = after(threads, moment, frozenset(query.id for query in queries), seed)
        assert len(other) < len(threads)
        agree(found, evaluate(ReplayHistory.read(other), queries, tried), history, moment)


@pytest.mark.shared
@pytest.mark.slow
def test_real_questions_are_answered_without_knowing_the_future(real: list[Thread], shared: Path) -> None:
    undisturbed(real, shared, (0, 14, 29) if THOROUGH else (14,), learns=False)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="hundreds of real lessons, twice: in `.ci/run --whole`")
def test_real_marks_teach_nobody_before_they_were_made(real: list[Thread], shared: Path) -> None:
    undisturbed(real, shared, (20,), learns=True)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="a large archive, read twice: in `.ci/run --whole`")
def test_as_much_is_found_where_nobody_told_a_role(real: list[Thread], shared: Path) -> None:
    lines = (shared / "rust_pre2015" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    known = [EvaluationQuery(one["id"], frozenset(one["relevant"])) for one in map(json.loads, lines)]
    history = ReplayHistory.read(real)
    last = {each.id for each in epochs(history, real)[-1].threads}
    queries = [query for query in known if query.id in last]
    assert len(queries) > 100
    untold = [replace(each, role="", comments=tuple(replace(c, role="") for c in each.comments)) for each in real]
    by_shipped = Trial({query.id: shipped() for query in queries})
    found = [evaluate(threads, queries, by_shipped)[0] for threads in (history, ReplayHistory.read(untold))]
    told, without = (RankMetrics.of([one.rank for one in each]).figures["rr@10"].value for each in found)
    assert told > 0.7
    assert abs(told - without) <= 0.01
