"""The learned numbers: what is taken from a file, what is written to it, and what a confidence becomes."""

import copy
import json
import math
from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.index.protocol import VECTOR_FIELDS
from bot.ranking.features import CONFIDENCE_FEATURES, ENTRY, ORDER_FEATURES, TERMS, TEXTS, TITLES
from bot.ranking.weights import (
    CONFIDENCE,
    LARGEST,
    MODEL_NAMES,
    ORDER,
    SHOWN_FROM,
    RankingModels,
    RankingWeights,
    parse,
    ranking_fields,
    shipped,
    shipped_elsewhere,
)

WEIGHTS = st.floats(-LARGEST, LARGEST)
MODELS = st.builds(
    RankingWeights,
    order=st.dictionaries(st.sampled_from(ORDER), WEIGHTS),
    confidence=st.dictionaries(st.sampled_from(CONFIDENCE), WEIGHTS),
    intercept=WEIGHTS,
    cut=st.floats(0, 1, exclude_min=True, exclude_max=True),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


SURE = CONFIDENCE[0]
ALSO = CONFIDENCE[1]
"""Features of the confidence, whichever they are."""


def fields() -> dict[str, Any]:
    model = {"order": {"text": 5, "age": -0.25}, "confidence": {SURE: 1.5}, "intercept": -4, "cut": 0.2}
    return {"format": 2, "provenance": {"order": "by hand"}, **{kind: copy.deepcopy(model) for kind in MODEL_NAMES}}


def test_a_ranking_is_read_as_it_is_written_down() -> None:
    found = parse(fields())
    assert found.model(["trained"]) == RankingWeights({"text": 5.0, "age": -0.25}, {SURE: 1.5}, -4.0, 0.2)
    assert found.model(["trained"]) is found.with_vectors
    assert found.model([]) is found.by_words
    assert found.model(VECTOR_FIELDS) is found.model(["semantic", "semantic_title"]) is found.with_text_model
    assert found.provenance == {"order": "by hand"}
    assert parse(ranking_fields(found)) == found


@pytest.mark.parametrize("value", [True, None, "1", nan, inf, -inf, 1000.5, -1001, 10**400, [1], {}])
@pytest.mark.parametrize("place", [("order", "text"), ("confidence", SURE), ("intercept",), ("cut",)])
def test_what_is_no_reasonable_number_is_refused(place: tuple[str, ...], value: object) -> None:
    given_ = fields()
    section = given_["by_words"]
    for name in place[:-1]:
        section = section[name]
    section[place[-1]] = value
    with pytest.raises(ValueError, match=place[-1]):
        parse(given_)


GONE = object()
REFUSED = [
    *(("with_vectors", "cut", cut, "cut") for cut in (0, 1, -0.1, 1.1)),
    *(("with_vectors", part, GONE, part) for part in ("order", "confidence", "intercept", "cut")),
    *(
        ("by_words", part, {name: 1.0}, "no feature")
        for part in ("order", "confidence")
        for name in ("charm", "", "\ud800" * 500)
    ),
    ("by_words", "confidence", {"age": 1.0}, "age"),
]


@pytest.mark.parametrize(("model", "part", "value", "message"), REFUSED)
def test_a_model_with_a_part_that_cannot_be_is_refused(model: str, part: str, value: object, message: str) -> None:
    given_ = fields()
    given_[model] = {name: held for name, held in {**given_[model], part: value}.items() if held is not GONE}
    with pytest.raises(ValueError, match=message) as error:
        parse(given_)
    assert len(str(error.value)) < 120
    str(error.value).encode()


@pytest.mark.parametrize(
    "given_",
    [
        *(None, [], "{}", 1, {}, {**fields(), "format": 3}, {**fields(), "provenance": 7}),
        *({key: value for key, value in fields().items() if key != name} for name in ("format", *MODEL_NAMES)),
    ],
)
def test_what_is_of_another_shape_or_lacks_a_section_is_refused(given_: object) -> None:
    with pytest.raises(ValueError, match=r"format|object"):
        parse(given_)


@given(VALUES)
def test_any_value_is_a_ranking_or_a_value_error(value: object) -> None:
    for given_ in (value, {**fields(), "by_words": value}, {**fields(), "provenance": value}):
        try:
            parse(given_)
        except ValueError:
            continue


@given(MODELS, MODELS, MODELS)
def test_what_is_written_can_be_read_again(
    with_vectors: RankingWeights, by_words: RankingWeights, with_text_model: RankingWeights
) -> None:
    ranking = RankingModels(with_vectors, by_words, with_text_model)
    found = parse(json.loads(json.dumps(ranking_fields(ranking), allow_nan=False)))
    for kind in MODEL_NAMES:
        model, expected = getattr(found, kind), getattr(ranking, kind)
        for weights, wanted in ((model.order, expected.order), (model.confidence, expected.confidence)):
            assert all(abs(weights.get(name, 0.0) - wanted[name]) <= 0.00005001 for name in wanted)
            assert 0.0 not in weights.values()
        assert model.intercept == pytest.approx(expected.intercept, abs=0.00005001)
        assert model.cut == pytest.approx(expected.cut, abs=0.00010001)
    assert parse(ranking_fields(found)) == found


def test_weights_that_ran_away_are_written_as_the_largest() -> None:
    wild = RankingWeights({"text": 1e9, "age": -inf}, {}, 1e6, 0.5)
    found = parse(ranking_fields(RankingModels(wild, wild, wild))).by_words
    assert (found.order, found.intercept) == ({"text": LARGEST, "age": -LARGEST}, LARGEST)


def test_the_shipped_numbers_are_as_described() -> None:
    found = shipped()
    assert parse(ranking_fields(found)) == found
    for model in (found.with_vectors, found.by_words, found.with_text_model):
        assert model.order
        assert model.confidence
    assert not {name for name in found.by_words.order if name.startswith(("trained", "semantic"))}


def test_of_a_ranking_in_the_first_format_the_orders_are_kept() -> None:
    """Its confidence was that people link a hit: what a repository learned of that is no probability of use."""
    old = {
        "format": 1,
        "provenance": {"order": "120 marked duplicates of this repository", "cut": "12.5% of 300"},
        "with_vectors": {"order": {"trained": 7.0}, "confidence": {"likeness": 1.0}, "intercept": -9, "cut": 0.09},
        "by_words": {"order": {"text": 6.0}, "confidence": {"lead": 1.0}, "intercept": -9, "cut": 0.3},
    }
    found, ours = parse(old), shipped()
    assert found.with_vectors == replace(ours.with_vectors, order={"trained": 7.0})
    assert found.by_words == replace(ours.by_words, order={"text": 6.0})
    assert found.with_text_model == replace(ours.with_text_model, order={"trained": 7.0})
    assert found.provenance == {**ours.provenance, "order": "120 marked duplicates of this repository"}
    for broken in ({**old, "by_words": None}, {**old, "with_vectors": {"order": {"charm": 1.0}}}):
        with pytest.raises(ValueError, match=r"object|no feature"):
            parse(broken)


def test_what_a_text_model_says_is_weighed_only_where_there_is_one() -> None:
    found = shipped()
    assert {"semantic", "semantic_title"} <= found.with_text_model.order.keys()
    assert found.with_text_model.confidence["semantic"] > 0
    for model in (found.with_vectors, found.by_words):
        assert not {name for name in (*model.order, *model.confidence) if name.startswith("semantic")}


def test_a_confidence_is_the_logistic_of_its_evidence() -> None:
    model = RankingWeights({}, {SURE: 2.0, ALSO: 1.0}, -2.0, 0.5)
    assert model.probability({SURE: 1.0, "unknown": 9.0}) == 0.5
    assert model.probability({SURE: 1.0, ALSO: 3.0}) == pytest.approx(0.9526, abs=1e-4)
    assert model.probability({SURE: 1e308}) == 1.0
    assert 0 <= model.probability({SURE: -1e308}) < 1e-100


@given(st.floats(0.001, 0.999))
def test_the_similarity_of_the_cut_is_the_same_everywhere(cut: float) -> None:
    model = RankingWeights({}, {}, 0.0, cut)
    assert model.similarity(cut) == pytest.approx(SHOWN_FROM)


@pytest.mark.slow
@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_the_log_odds_of_a_similarity_and_its_confidence_differ_by_a_constant(cut: float, value: float) -> None:
    similarity = RankingWeights({}, {}, 0.0, cut).similarity(value)
    odds = [math.log(share / (1 - share)) for share in (similarity, SHOWN_FROM, value, cut)]
    assert odds[0] - odds[1] == pytest.approx(odds[2] - odds[3], abs=1e-6)


@given(MODELS, st.floats(0, 1), st.floats(0, 1))
def test_similarity_is_a_share_and_keeps_the_order(model: RankingWeights, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= model.similarity(low) <= model.similarity(high) <= 1


@pytest.mark.parametrize(("wanted", "expected"), [(0.3, 0.3), (0.0, 0.001), (1.0, 0.999), (-5, 0.001)])
def test_a_cut_is_held_within_bounds(wanted: float, expected: float) -> None:
    model = shipped().by_words
    assert model.with_cut(wanted).cut == expected
    assert model.with_cut(wanted).order == model.order


def test_the_shipped_numbers_for_other_repositories_need_no_vectors() -> None:
    found = shipped_elsewhere()
    features = {each.name: each.source for each in (*ORDER_FEATURES, *CONFIDENCE_FEATURES)}
    assert {features[name] for name in (*found.order, *found.confidence)} <= {TERMS, ENTRY, TITLES, TEXTS}
    assert found.similarity(found.cut) == pytest.approx(SHOWN_FROM)
