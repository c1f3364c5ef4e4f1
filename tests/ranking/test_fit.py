"""Fitting weights: known ones are recovered, priors hold, and nothing diverges."""

from collections.abc import Sequence
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.ranking import fit
from bot.ranking.fit import Choice, fit_order, fit_probability

NAMES = ("near", "open", "age")
TRUTH = {"near": 4.0, "open": 1.0, "age": -0.5}


def rows(count: int, rng: np.random.Generator) -> list[dict[str, float]]:
    return [
        {"near": float(rng.random()), "open": float(rng.integers(2)), "age": float(rng.random() * 5)}
        for _ in range(count)
    ]


def score_of(row: dict[str, float]) -> float:
    return sum(TRUTH[name] * row[name] for name in NAMES)


def choices(count: int, seed: int = 1) -> list[Choice]:
    """Questions with ten candidates each; the right one is drawn by the model's probabilities."""
    rng = np.random.default_rng(seed)
    questions: list[Choice] = []
    for _ in range(count):
        candidates = rows(10, rng)
        powers = np.exp([score_of(row) for row in candidates])
        right = int(rng.choice(10, p=powers / powers.sum()))
        questions.append((candidates, [number == right for number in range(10)]))
    return questions


def answers(count: int, intercept: float, seed: int = 1) -> tuple[list[dict[str, float]], list[bool]]:
    rng = np.random.default_rng(seed)
    samples = rows(count, rng)
    return samples, [bool(rng.random() < 1 / (1 + exp(-score_of(row) - intercept))) for row in samples]


def is_close(weights: dict[str, float], expected: dict[str, float], by: float) -> bool:
    return all(abs(weights[name] - expected[name]) <= by for name in expected)


@pytest.mark.slow
def test_the_weights_behind_the_choices_are_recovered() -> None:
    assert is_close(fit_order(choices(1500), NAMES, strength=0.01), TRUTH, by=0.35)


def test_the_weights_behind_the_answers_are_recovered() -> None:
    fitted, intercept = fit_probability(*answers(6000, -2.0), NAMES, strength=0.01)
    assert is_close(fitted, TRUTH, by=0.35)
    assert intercept == pytest.approx(-2.0, abs=0.3)


LOSSES = st.lists(
    st.tuples(st.lists(st.lists(st.floats(-3, 3), min_size=2, max_size=2), min_size=2, max_size=4), st.integers(1, 3)),
    min_size=1,
    max_size=4,
)


def check_slope(loss: fit.Loss, values: Sequence[float]) -> None:
    assert loss[1].tolist() == pytest.approx(values, rel=1e-4, abs=1e-4)
    assert np.linalg.eigvalsh(loss[2]).min() >= -1e-9


@pytest.mark.slow
@settings(deadline=None)
@given(LOSSES, st.lists(st.floats(-20, 20), min_size=2, max_size=2))
def test_slopes_match_the_losses(questions: list[tuple[list[list[float]], int]], point: list[float]) -> None:
    at, step = np.array(point), 1e-5
    examples = [(np.array(each), np.arange(len(each)) < max(1, right % len(each))) for each, right in questions]
    every = np.concatenate([each for each, _ in examples])
    truth = (np.arange(len(every)) % 2).astype(float)
    for loss in (lambda w: fit._listwise(examples, w), lambda w: fit._logistic(every, truth, w)):
        differences = [(loss(at + move)[0] - loss(at - move)[0]) / (2 * step) for move in np.eye(2) * step]
        check_slope(loss(at), differences)


def test_the_loss_of_an_order_is_minus_the_log_probability_of_any_right_candidate() -> None:
    examples = [(np.array([[2.0], [1.0], [0.0]]), np.array([True, False, True]))]
    value, _, _ = fit._listwise(examples, np.array([1.0]))
    assert value == pytest.approx(-log((exp(2) + 1) / (exp(2) + exp(1) + 1)))


def test_a_hopeless_start_still_has_a_slope() -> None:
    """Even if the right candidate's probability is too small for a float, the slope must not vanish."""
    examples = [(np.array([[1.0], [0.0]]), np.array([False, True]))]
    value, slope, _ = fit._listwise(examples, np.array([2000.0]))
    assert (value, slope.tolist()) == (pytest.approx(2000), [pytest.approx(1.0)])
    fitted = fit_order([([{"near": 1}, {"near": 0}], [False, True])] * 50, ("near",), prior={"near": 500}, strength=0.1)
    assert fitted["near"] < 0


@pytest.mark.slow
def test_no_point_is_better_than_the_one_that_is_found() -> None:
    questions = choices(80, seed=3)
    fitted = fit_order(questions, NAMES, strength=1.0)
    matrices = [(fit._matrix(each, NAMES), np.array(right)) for each, right in questions]
    spread = np.concatenate([matrix for matrix, _ in matrices]).std(axis=0)

    def loss(point: np.ndarray) -> float:
        return fit._listwise(matrices, point)[0] + float(((point * spread) ** 2).sum()) / 2

    best = np.array([fitted[name] for name in NAMES])
    rng = np.random.default_rng(4)
    assert all(loss(best) <= loss(best + rng.normal(0, 0.05, 3)) for _ in range(200))


def test_without_data_the_prior_stays() -> None:
    prior = {"near": 2.0, "unknown": 9.0}
    expected = {"near": 2.0, "open": 0.0, "age": 0.0}
    nobody_right: Choice = ([{"near": 1.0}, {"near": 0.0}], [False, False])
    assert fit_order([], NAMES, prior=prior) == fit_order([nobody_right], NAMES, prior=prior) == expected
    assert fit_probability([], [], NAMES) == (dict.fromkeys(NAMES, 0.0), 0.0)
    assert fit_order([], NAMES) == dict.fromkeys(NAMES, 0.0)


def test_a_strong_prior_holds_its_weights_and_a_weak_one_does_not() -> None:
    prior = {"near": -1.0, "open": 0.5, "age": 0.25}
    fitted = fit_order(choices(100), NAMES, prior=prior, strength=1e6)
    assert is_close(fitted, prior, by=0.01)
    fitted, intercept = fit_probability(*answers(300, -2.0), NAMES, strength=1e6)
    assert is_close(fitted, dict.fromkeys(NAMES, 0.0), by=0.01)
    assert intercept < -0.3, "the intercept is free"
    assert fit_order(choices(100), NAMES, prior=prior, strength=0.1)["near"] > 1


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_data_that_one_feature_separates_gives_finite_weights(strength: float) -> None:
    apart: list[Choice] = [([{"near": 1.0}, {"near": 0.0}], [True, False])] * 100
    fitted = fit_order(apart, ("near",), strength=strength)
    assert 1 < fitted["near"] < 100
    samples = [row for candidates, _ in apart for row in candidates]
    weights, intercept = fit_probability(samples, [True, False] * 100, ("near",), strength=strength)
    assert 1 < weights["near"] < 200
    assert abs(intercept) < 100
    assert fit_probability(samples, [True] * 200, ("near",))[1] < 100


def test_a_feature_that_is_constant_or_the_same_for_all_candidates_gets_no_weight() -> None:
    questions = [
        ([{**row, "flat": 7.0, "words": float(number)} for row in candidates], right)
        for number, (candidates, right) in enumerate(choices(60))
    ]
    weights = fit_order(questions, (*NAMES, "flat", "words"))
    assert (weights["flat"], weights["words"]) == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-6))
    samples, labels = answers(300, -2.0)
    weights, _ = fit_probability([{**row, "flat": 7.0} for row in samples], labels, (*NAMES, "flat"))
    assert weights["flat"] == pytest.approx(0, abs=1e-3)


def test_a_missing_feature_counts_as_zero() -> None:
    questions = [([{"near": 1.0}, {}], [True, False]), ([{"near": 1.0}, {"near": 0.0}], [True, False])]
    assert fit_order(questions, ("near",)) == fit_order([questions[1]] * 2, ("near",))


def test_the_mean_probability_is_the_share_of_true_answers() -> None:
    samples, labels = answers(800, -3.0)
    weights, intercept = fit_probability(samples, labels, NAMES, strength=50)
    probabilities = [1 / (1 + exp(-intercept - sum(weights[name] * row[name] for name in NAMES))) for row in samples]
    assert np.mean(probabilities) == pytest.approx(np.mean(labels), abs=1e-6)
    nothing_known = fit_probability([{}] * 10, [True] * 2 + [False] * 8, ())
    assert nothing_known == ({}, pytest.approx(log(0.25), abs=1e-4))
