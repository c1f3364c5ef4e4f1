"""Fitting weights: known ones are found again, priors hold, and nothing runs away."""

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


def rows(count: int, chance: np.random.Generator) -> list[dict[str, float]]:
    return [
        {"near": float(chance.random()), "open": float(chance.integers(2)), "age": float(chance.random() * 5)}
        for _ in range(count)
    ]


def weighed(row: dict[str, float]) -> float:
    return sum(TRUTH[name] * row[name] for name in NAMES)


def choices(count: int, seed: int = 1) -> list[Choice]:
    """Questions with ten candidates each, of which the right one was drawn as the model says."""
    chance = np.random.default_rng(seed)
    found: list[Choice] = []
    for _ in range(count):
        candidates = rows(10, chance)
        powers = np.exp([weighed(row) for row in candidates])
        right = int(chance.choice(10, p=powers / powers.sum()))
        found.append((candidates, [number == right for number in range(10)]))
    return found


def answers(count: int, intercept: float, seed: int = 1) -> tuple[list[dict[str, float]], list[bool]]:
    chance = np.random.default_rng(seed)
    given_ = rows(count, chance)
    return given_, [bool(chance.random() < 1 / (1 + exp(-weighed(row) - intercept))) for row in given_]


def close(found: dict[str, float], expected: dict[str, float], by: float) -> bool:
    return all(abs(found[name] - expected[name]) <= by for name in expected)


@pytest.mark.slow
def test_the_weights_that_made_the_choices_are_found() -> None:
    assert close(fit_order(choices(1500), NAMES, strength=0.01), TRUTH, by=0.35)


def test_the_weights_that_made_the_answers_are_found() -> None:
    found, intercept = fit_probability(*answers(6000, -2.0), NAMES, strength=0.01)
    assert close(found, TRUTH, by=0.35)
    assert intercept == pytest.approx(-2.0, abs=0.3)


LOSSES = st.lists(
    st.tuples(st.lists(st.lists(st.floats(-3, 3), min_size=2, max_size=2), min_size=2, max_size=4), st.integers(1, 3)),
    min_size=1,
    max_size=4,
)


def slopes(loss: fit.Loss, at: np.ndarray, values: Sequence[float]) -> None:
    assert loss[1].tolist() == pytest.approx(values, rel=1e-4, abs=1e-4)
    assert np.linalg.eigvalsh(loss[2]).min() >= -1e-9


@pytest.mark.slow
@settings(deadline=None)
@given(LOSSES, st.lists(st.floats(-20, 20), min_size=2, max_size=2))
def test_slopes_are_those_of_the_losses(questions: list[tuple[list[list[float]], int]], point: list[float]) -> None:
    at, step = np.array(point), 1e-5
    taught = [(np.array(each), np.arange(len(each)) < max(1, right % len(each))) for each, right in questions]
    every = np.concatenate([each for each, _ in taught])
    truth = (np.arange(len(every)) % 2).astype(float)
    for loss in (lambda w: fit._listwise(taught, w), lambda w: fit._logistic(every, truth, w)):
        around = [(loss(at + move)[0] - loss(at - move)[0]) / (2 * step) for move in np.eye(2) * step]
        slopes(loss(at), at, around)


def test_the_loss_of_an_order_is_the_probability_of_any_right_candidate() -> None:
    taught = [(np.array([[2.0], [1.0], [0.0]]), np.array([True, False, True]))]
    value, _, _ = fit._listwise(taught, np.array([1.0]))
    assert value == pytest.approx(-log((exp(2) + 1) / (exp(2) + exp(1) + 1)))


def test_a_hopeless_start_still_knows_the_way() -> None:
    """Where the right candidate's probability is too small for a number its slope must not vanish."""
    taught = [(np.array([[1.0], [0.0]]), np.array([False, True]))]
    value, slope, _ = fit._listwise(taught, np.array([2000.0]))
    assert (value, slope.tolist()) == (pytest.approx(2000), [pytest.approx(1.0)])
    found = fit_order([([{"near": 1}, {"near": 0}], [False, True])] * 50, ("near",), prior={"near": 500}, strength=0.1)
    assert found["near"] < 0


@pytest.mark.slow
def test_the_best_point_is_found_and_no_other_is_better() -> None:
    given_ = choices(80, seed=3)
    found = fit_order(given_, NAMES, strength=1.0)
    matrices = [(fit._matrix(each, NAMES), np.array(right)) for each, right in given_]
    spread = np.concatenate([matrix for matrix, _ in matrices]).std(axis=0)

    def loss(point: np.ndarray) -> float:
        return fit._listwise(matrices, point)[0] + float(((point * spread) ** 2).sum()) / 2

    best = np.array([found[name] for name in NAMES])
    chance = np.random.default_rng(4)
    assert all(loss(best) <= loss(best + chance.normal(0, 0.05, 3)) for _ in range(200))


def test_without_anything_to_learn_the_prior_stays() -> None:
    prior = {"near": 2.0, "unknown": 9.0}
    expected = {"near": 2.0, "open": 0.0, "age": 0.0}
    nobody_right: Choice = ([{"near": 1.0}, {"near": 0.0}], [False, False])
    assert fit_order([], NAMES, prior=prior) == fit_order([nobody_right], NAMES, prior=prior) == expected
    assert fit_probability([], [], NAMES, prior=(prior, -1.5)) == (expected, -1.5)
    assert fit_order([], NAMES) == dict.fromkeys(NAMES, 0.0)


def test_a_strong_prior_holds_its_weights_and_a_weak_one_does_not() -> None:
    prior = {"near": -1.0, "open": 0.5, "age": 0.25}
    held = fit_order(choices(100), NAMES, prior=prior, strength=1e6)
    assert close(held, prior, by=0.01)
    held, intercept = fit_probability(*answers(300, -2.0), NAMES, prior=(prior, 5.0), strength=1e6)
    assert close(held, prior, by=0.01)
    assert intercept < 2, "the intercept is free"
    assert fit_order(choices(100), NAMES, prior=prior, strength=0.1)["near"] > 1


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_data_that_one_feature_tells_apart_gives_finite_weights(strength: float) -> None:
    apart: list[Choice] = [([{"near": 1.0}, {"near": 0.0}], [True, False])] * 100
    found = fit_order(apart, ("near",), strength=strength)
    assert 1 < found["near"] < 100
    told = [row for candidates, _ in apart for row in candidates]
    weights, intercept = fit_probability(told, [True, False] * 100, ("near",), strength=strength)
    assert 1 < weights["near"] < 200
    assert abs(intercept) < 100
    assert fit_probability(told, [True] * 200, ("near",))[1] < 100


def test_what_is_always_the_same_gets_no_weight() -> None:
    given_ = [([{**row, "flat": 7.0} for row in candidates], right) for candidates, right in choices(60)]
    assert fit_order(given_, (*NAMES, "flat"))["flat"] == pytest.approx(0, abs=1e-9)
    told, labels = answers(300, -2.0)
    weights, _ = fit_probability([{**row, "flat": 7.0} for row in told], labels, (*NAMES, "flat"))
    assert weights["flat"] == pytest.approx(0, abs=1e-3)


def test_what_is_the_same_for_all_candidates_of_a_question_gets_no_weight() -> None:
    given_ = [
        ([{**row, "words": float(number)} for row in candidates], right)
        for number, (candidates, right) in enumerate(choices(60))
    ]
    assert fit_order(given_, (*NAMES, "words"))["words"] == pytest.approx(0, abs=1e-6)


def test_a_missing_feature_counts_as_zero() -> None:
    given_ = [([{"near": 1.0}, {}], [True, False]), ([{"near": 1.0}, {"near": 0.0}], [True, False])]
    assert fit_order(given_, ("near",)) == fit_order([given_[1]] * 2, ("near",))


def test_the_mean_probability_is_the_share_of_what_is_true() -> None:
    told, labels = answers(800, -3.0)
    weights, intercept = fit_probability(told, labels, NAMES, strength=50)
    found = [1 / (1 + exp(-intercept - sum(weights[name] * row[name] for name in NAMES))) for row in told]
    assert np.mean(found) == pytest.approx(np.mean(labels), abs=1e-6)
    nothing_known = fit_probability([{}] * 10, [True] * 2 + [False] * 8, ())
    assert nothing_known == ({}, pytest.approx(log(0.25), abs=1e-4))
