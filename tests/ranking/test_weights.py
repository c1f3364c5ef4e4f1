"""The learned weights: how they are read and written, and the similarity that a confidence becomes."""

import copy
import json
import math
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.ranking.features import CONFIDENCE_FEATURES, ENTRY, ORDER_FEATURES, TERMS, TEXTS, TITLES
from bot.ranking.weights import (
    CONFIDENCE_NAMES,
    CUT_SIMILARITY,
    MAX_WEIGHT,
    MODEL_NAMES,
    ORDER_NAMES,
    RankingModels,
    RankingWeights,
    parse,
    ranking_fields,
    shipped,
    shipped_elsewhere,
)

WEIGHTS = st.floats(-MAX_WEIGHT, MAX_WEIGHT)
MODELS = st.builds(
    RankingWeights,
    order=st.dictionaries(st.sampled_from(ORDER_NAMES), WEIGHTS),
    confidence=st.dictionaries(st.sampled_from(CONFIDENCE_NAMES), WEIGHTS),
    intercept=WEIGHTS,
    cut=st.floats(0, 1, exclude_min=True, exclude_max=True),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


FIRST_FEATURE = CONFIDENCE_NAMES[0]
SECOND_FEATURE = CONFIDENCE_NAMES[1]
"""Two arbitrary features of the confidence."""


def fields() -> dict[str, Any]:
    model = {"order": {"text": 5, "age": -0.25}, "confidence": {FIRST_FEATURE: 1.5}, "intercept": -4, "cut": 0.2}
    return {"format": 2, "provenance": {"order": "by hand"}, **{kind: copy.deepcopy(model) for kind in MODEL_NAMES}}


def test_a_ranking_is_read_as_it_is_written_down() -> None:
    models = parse(fields())
    assert models.by_words == RankingWeights({"text": 5.0, "age": -0.25}, {FIRST_FEATURE: 1.5}, -4.0, 0.2)
    assert models.model(has_vectors=False) is models.by_words
    assert models.model(has_vectors=True) is models.with_text_model
    assert models.provenance == {"order": "by hand"}
    assert parse(ranking_fields(models)) == models


@pytest.mark.parametrize("value", [True, None, "1", nan, inf, -inf, 1000.5, -1001, 10**400, [1], {}])
@pytest.mark.parametrize("path", [("order", "text"), ("confidence", FIRST_FEATURE), ("intercept",), ("cut",)])
def test_an_unreasonable_number_is_refused(path: tuple[str, ...], value: object) -> None:
    data = fields()
    section = data["by_words"]
    for name in path[:-1]:
        section = section[name]
    section[path[-1]] = value
    with pytest.raises(ValueError, match=path[-1]):
        parse(data)


GONE = object()
REFUSED = [
    *(("with_text_model", "cut", cut, "cut") for cut in (0, 1, -0.1, 1.1)),
    *(("with_text_model", part, GONE, part) for part in ("order", "confidence", "intercept", "cut")),
    *(
        ("by_words", part, {name: 1.0}, "no feature")
        for part in ("order", "confidence")
        for name in ("charm", "", "\ud800" * 500)
    ),
    ("by_words", "confidence", {"age": 1.0}, "age"),
]


@pytest.mark.parametrize(("model", "part", "value", "message"), REFUSED)
def test_a_model_with_an_invalid_part_is_refused(model: str, part: str, value: object, message: str) -> None:
    data = fields()
    data[model] = {name: content for name, content in {**data[model], part: value}.items() if content is not GONE}
    with pytest.raises(ValueError, match=message) as error:
        parse(data)
    assert len(str(error.value)) < 120
    str(error.value).encode()


@pytest.mark.parametrize(
    "data",
    [
        *(None, [], "{}", 1, {}, {**fields(), "format": 1}, {**fields(), "format": 3}, {**fields(), "provenance": 7}),
        *({key: value for key, value in fields().items() if key != name} for name in ("format", *MODEL_NAMES)),
    ],
)
def test_a_ranking_of_another_shape_or_without_a_section_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"format|object"):
        parse(data)


@given(VALUES)
def test_any_value_is_a_ranking_or_a_value_error(value: object) -> None:
    for data in (value, {**fields(), "by_words": value}, {**fields(), "provenance": value}):
        try:
            parse(data)
        except ValueError:
            continue


@given(MODELS, MODELS)
def test_written_weights_can_be_read_again(by_words: RankingWeights, with_text_model: RankingWeights) -> None:
    ranking = RankingModels(by_words, with_text_model)
    models = parse(json.loads(json.dumps(ranking_fields(ranking), allow_nan=False)))
    for kind in MODEL_NAMES:
        model, expected = getattr(models, kind), getattr(ranking, kind)
        for weights, original in ((model.order, expected.order), (model.confidence, expected.confidence)):
            assert all(abs(weights.get(name, 0.0) - original[name]) <= 0.00005001 for name in original)
            assert 0.0 not in weights.values()
        assert model.intercept == pytest.approx(expected.intercept, abs=0.00005001)
        assert model.cut == pytest.approx(expected.cut, abs=0.00010001)
    assert parse(ranking_fields(models)) == models


def test_diverged_weights_are_written_as_the_largest_that_are_allowed() -> None:
    wild = RankingWeights({"text": 1e9, "age": -inf}, {}, 1e6, 0.5)
    weights = parse(ranking_fields(RankingModels(wild, wild))).by_words
    assert (weights.order, weights.intercept) == ({"text": MAX_WEIGHT, "age": -MAX_WEIGHT}, MAX_WEIGHT)


def test_the_shipped_numbers_are_as_described() -> None:
    models = shipped()
    assert parse(ranking_fields(models)) == models
    for model in (models.by_words, models.with_text_model):
        assert model.order
        assert model.confidence


def test_features_of_a_text_model_are_weighed_only_with_a_text_model() -> None:
    models = shipped()
    assert {"semantic"} <= models.with_text_model.order.keys()
    assert models.with_text_model.confidence["semantic"] > 0
    names = (*models.by_words.order, *models.by_words.confidence)
    assert not {name for name in names if name.startswith("semantic")}


def test_a_confidence_is_the_logistic_of_its_evidence() -> None:
    model = RankingWeights({}, {FIRST_FEATURE: 2.0, SECOND_FEATURE: 1.0}, -2.0, 0.5)
    assert model.probability({FIRST_FEATURE: 1.0, "unknown": 9.0}) == 0.5
    assert model.probability({FIRST_FEATURE: 1.0, SECOND_FEATURE: 3.0}) == pytest.approx(0.9526, abs=1e-4)
    assert model.probability({FIRST_FEATURE: 1e308}) == 1.0
    assert 0 <= model.probability({FIRST_FEATURE: -1e308}) < 1e-100


@given(st.floats(0.001, 0.999))
def test_the_similarity_of_the_cut_is_the_same_everywhere(cut: float) -> None:
    model = RankingWeights({}, {}, 0.0, cut)
    assert model.similarity(cut) == pytest.approx(CUT_SIMILARITY)


@pytest.mark.slow
@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_the_log_odds_of_a_similarity_and_its_confidence_differ_by_a_constant(cut: float, value: float) -> None:
    similarity = RankingWeights({}, {}, 0.0, cut).similarity(value)
    odds = [math.log(share / (1 - share)) for share in (similarity, CUT_SIMILARITY, value, cut)]
    assert odds[0] - odds[1] == pytest.approx(odds[2] - odds[3], abs=1e-6)


@given(MODELS, st.floats(0, 1), st.floats(0, 1))
def test_similarity_is_a_share_and_keeps_the_order(model: RankingWeights, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= model.similarity(low) <= model.similarity(high) <= 1


@pytest.mark.parametrize(("requested", "expected"), [(0.3, 0.3), (0.0, 0.001), (1.0, 0.999), (-5, 0.001)])
def test_a_cut_is_clamped_to_its_bounds(requested: float, expected: float) -> None:
    model = shipped().by_words
    assert model.with_cut(requested).cut == expected
    assert model.with_cut(requested).order == model.order


def test_the_shipped_numbers_for_other_repositories_need_no_vectors() -> None:
    weights = shipped_elsewhere().by_words
    assert shipped_elsewhere().with_text_model == weights
    features = {each.name: each.source for each in (*ORDER_FEATURES, *CONFIDENCE_FEATURES)}
    assert {features[name] for name in (*weights.order, *weights.confidence)} <= {TERMS, ENTRY, TITLES, TEXTS}
    assert weights.similarity(weights.cut) == pytest.approx(CUT_SIMILARITY)
