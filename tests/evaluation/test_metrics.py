"""Figures equal those computed by hand, do not depend on the order of cases, and can be written as JSON."""

from __future__ import annotations

import json
import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.evaluation.metrics import (
    Bin,
    Cut,
    RankMetrics,
    auc,
    average_precision,
    calibration_bins,
    expected_calibration_error,
    percentile,
    precision_coverage,
    rank_differences,
    reciprocal_rank,
    summary,
)
from bot.evaluation.results import Relations
from bot.ranking.fit import mean_interval, paired_interval
from tests.evaluation.samples import backtest, generated, of_every_grade, replayed, shown
from tests.examples import examples

CASES = st.lists(st.tuples(st.booleans(), st.integers(0, 10).map(lambda tenths: tenths / 10)), max_size=40)
RANKS = st.lists(st.none() | st.integers(1, 200), min_size=1, max_size=50)


def columns(cases: list[tuple[bool, float]]) -> tuple[list[bool], list[float]]:
    return [label for label, _ in cases], [score for _, score in cases]


def test_a_reciprocal_rank_is_one_over_the_rank_and_zero_if_nothing_was_found() -> None:
    assert [reciprocal_rank(rank) for rank in (1, 4, None)] == [1.0, 0.25, 0.0]


def test_rank_figures_are_shares_of_all_queries() -> None:
    metrics = RankMetrics.of([1, 2, 5, 6, 20, 21, None, 10])
    values = {name: figure.value for name, figure in metrics.figures.items()}
    assert values == pytest.approx(
        {
            "rr@1": 1 / 8,
            "rr@5": 3 / 8,
            "rr@10": 5 / 8,
            "rr@20": 6 / 8,
            "mrr": (1 + 1 / 2 + 1 / 5 + 1 / 6 + 1 / 20 + 1 / 21 + 1 / 10) / 8,
        }
    )


def test_metrics_of_no_queries_have_all_names_and_no_figures() -> None:
    names = {"rr@1": None, "rr@5": None, "rr@10": None, "rr@20": None, "mrr": None}
    assert RankMetrics.of([]).as_dict() == {"n": 0, **names, "interval": {}}


@settings(max_examples=examples(50))
@given(RANKS)
def test_an_interval_lies_around_its_figure_and_inside_0_to_1(ranks: list[int | None]) -> None:
    for figure in RankMetrics.of(ranks).figures.values():
        assert -1e-9 <= figure.low <= figure.value + 1e-9
        assert figure.value - 1e-9 <= figure.high <= 1 + 1e-9


def test_the_interval_of_a_share_is_as_wide_as_its_standard_error_says() -> None:
    low, high = mean_interval([1.0] * 300 + [0.0] * 700, seed=3)
    error = (0.3 * 0.7 / 1000) ** 0.5
    assert (low, high) == pytest.approx((0.3 - 1.96 * error, 0.3 + 1.96 * error), abs=0.15 * error)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    rng = random.Random(1)
    values = [rng.random() for _ in range(99)]
    assert mean_interval(values, 1) == mean_interval(values, 1) != mean_interval(values, 2)


def test_an_interval_of_many_values_is_drawn_in_parts() -> None:
    low, high = mean_interval([0.0, 1.0] * 5_000, seed=5)
    assert 0.48 < low < 0.5 < high < 0.52


def test_there_is_no_interval_of_nothing() -> None:
    with pytest.raises(ValueError, match="no mean of no values"):
        mean_interval([], 1)


def test_a_paired_interval_is_narrow_where_both_find_the_same_cases_hard() -> None:
    hard = [float(index % 2) for index in range(200)]
    better = [value + 0.01 for value in hard]
    assert paired_interval(better, hard, 1) == pytest.approx((0.01, 0.01, 0.01))
    with pytest.raises(ValueError, match="zip"):
        paired_interval([1.0], [1.0, 0.0], 1)


def test_a_rank_difference_has_the_sign_of_the_first() -> None:
    differences = rank_differences([1, 1, 1, 2], [2, None, 1, 2])
    assert differences["rr@1"].value == pytest.approx(0.5)
    assert differences["mrr"].value == pytest.approx((0.5 + 1) / 4)
    assert differences["rr@20"].value == pytest.approx(0.25)


def test_auc_by_hand() -> None:
    assert auc([True, False], [0.9, 0.1]) == 1.0
    assert auc([True, False], [0.1, 0.9]) == 0.0
    assert auc([True, False, True, False], [0.8, 0.8, 0.6, 0.2]) == pytest.approx((0.5 + 1 + 0 + 1) / 4)
    assert auc([True, True], [0.1, 0.2]) is auc([], []) is None


@settings(max_examples=examples(300))
@given(CASES)
def test_auc_is_the_share_of_pairs_in_the_right_order(cases: list[tuple[bool, float]]) -> None:
    labels, scores = columns(cases)
    true, false = ([score for label, score in cases if label is expected_label] for expected_label in (True, False))
    pairs = [1.0 if high > low else 0.5 if high == low else 0.0 for high, low in product(true, false)]
    expected = pytest.approx(sum(pairs) / len(pairs)) if pairs else None
    assert auc(labels, scores) == expected


def test_average_precision_by_hand() -> None:
    assert average_precision([True, False, True], [0.9, 0.8, 0.7]) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision([True, False], [0.5, 0.5]) == pytest.approx(0.5)
    assert average_precision([False], [0.5]) is None


@settings(max_examples=examples(300))
@given(CASES, st.randoms(use_true_random=False))
def test_no_figure_depends_on_the_order_of_cases(cases: list[tuple[bool, float]], rng: random.Random) -> None:
    shuffled = rng.sample(cases, len(cases))
    (labels, scores), (mixed_labels, mixed_scores) = columns(cases), columns(shuffled)
    assert auc(labels, scores) == auc(mixed_labels, mixed_scores)
    assert average_precision(labels, scores) == average_precision(mixed_labels, mixed_scores)
    assert calibration_bins(scores, labels) == calibration_bins(mixed_scores, mixed_labels)


def test_bins_hold_about_the_same_number_of_cases() -> None:
    confidences = [index / 100 for index in range(100)]
    bins = calibration_bins(confidences, [value >= 0.5 for value in confidences])
    assert [group.count for group in bins] == [10] * 10
    assert bins[0] == Bin(pytest.approx(0.045), 0.0, 10)
    assert bins[9] == Bin(pytest.approx(0.945), 1.0, 10)


@settings(max_examples=examples(300))
@given(CASES, st.integers(1, 12))
def test_bins_hold_every_case_once_in_ascending_order(cases: list[tuple[bool, float]], bins: int) -> None:
    labels, scores = columns(cases)
    groups = calibration_bins(scores, labels, bins)
    assert len(groups) <= bins
    assert sum(group.count for group in groups) == len(cases)
    assert sum(group.share * group.count for group in groups) == pytest.approx(sum(labels))
    assert sum(group.confidence * group.count for group in groups) == pytest.approx(sum(scores))
    assert [group.confidence for group in groups] == sorted(group.confidence for group in groups)


def test_calibration_error_by_hand() -> None:
    assert expected_calibration_error([Bin(0.2, 0.1, 30), Bin(0.7, 0.9, 10)]) == pytest.approx(0.1 * 0.75 + 0.2 * 0.25)
    assert expected_calibration_error([]) is None


def test_a_threshold_counts_threads_and_not_hits() -> None:
    threads = (
        replayed(1, shown(11, 0.9), shown(12, 0.8, True)),
        replayed(2, shown(13, 0.7)),
        replayed(3, shown(14, 0.5, True)),
        replayed(4),
    )
    assert precision_coverage(threads) == (
        Cut(0.9, 1 / 4, 0.0),
        Cut(0.8, 1 / 4, 1.0),
        Cut(0.7, 2 / 4, 1 / 2),
        Cut(0.5, 3 / 4, 2 / 3),
    )
    assert precision_coverage([]) == precision_coverage([replayed(4)]) == ()


def test_the_cut_at_the_threshold_matches_the_summary() -> None:
    sample = generated(400)
    cut = [cut for cut in precision_coverage(sample.replayed) if cut.threshold >= sample.threshold][-1]
    figures = summary(sample)
    assert (figures["commented_share"], figures["precision"]) == (round(cut.coverage, 4), round(cut.precision, 4))


def test_a_percentile_is_one_of_the_measured_values() -> None:
    assert [percentile([30, 10, 20, 40], share) for share in (0, 0.25, 0.5, 0.51, 1)] == [10, 10, 20, 30, 40]
    assert percentile([], 0.5) is None


def test_the_summary_of_one_thread_of_each_grade() -> None:
    figures = summary(of_every_grade())
    assert figures["grades"] == {"success": 1, "assist": 1, "noise": 1, "missed": 1, "quiet": 1}
    assert (figures["n"], figures["commented"], figures["commented_share"]) == (5, 3, 0.6)
    assert (figures["precision"], figures["hit_precision"]) == (0.6667, 0.5)
    assert (figures["with_relations"], figures["rr@1"], figures["rr@5"], figures["rr@10"]) == (3, 0.3333, 0.6667, 1.0)
    assert figures["mrr"] == round((1 + 1 / 2 + 1 / 7) / 3, 4)
    assert figures["auc"] == 1.0
    assert figures["hit_auc"] == (4 + 3) / 8
    assert (figures["ms_p50"], figures["ms_p95"], figures["threads"], figures["wanted"]) == (10.0, 10.0, 1000, 5)


def test_a_thread_without_hits_counts_with_confidence_zero() -> None:
    figures = summary(backtest(replayed(1, shown(11, 0.9, True)), replayed(2)))
    assert figures["auc"] == 1.0
    assert figures["hit_auc"] is None


def test_a_rank_without_relations_is_not_counted() -> None:
    figures = summary(backtest(replayed(1, rank=1), replayed(2, rank=None, relations=Relations(frozenset({1})))))
    assert (figures["with_relations"], figures["mrr"]) == (1, 0.0)


def test_every_summary_has_the_same_names_and_is_json() -> None:
    for sample in [backtest(), of_every_grade(), generated(40)]:
        figures = summary(sample)
        assert json.loads(json.dumps(figures, allow_nan=False)) == figures, sample
        assert list(figures) == list(summary(of_every_grade())), sample
