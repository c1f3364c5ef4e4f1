"""What a memory has learned: the vectors of a thread, and model files that somebody else wrote."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.thread import Thread
from bot.errors import WorldError
from bot.memory.model_store import (
    BACKTEST_PATH,
    MAX_EMBEDDED_CHARS,
    RANKING_PATH,
    CachingEmbedder,
    Embedder,
    Encoder,
    ModelUpdate,
    embed,
    read_ranking,
)
from bot.ranking.weights import RankingModels, ranking_fields, shipped


def thread(title: str = "Disk", body: str = "It is full") -> Thread:
    return Thread(1, title, body, "octocat", datetime(2024, 1, 1, tzinfo=UTC))


class LengthEmbedder:
    """A downloaded model whose vector of a text is the text's length."""

    fingerprint = "counting"

    def __init__(self) -> None:
        self.encoded_texts: list[Sequence[str]] = []

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        self.encoded_texts.append(texts)
        return [bytes([min(127, len(text))]) for text in texts]


class OddEmbedder:
    """A downloaded model whose native code raises, or returns too few vectors."""

    fingerprint = "odd"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        if self.error:
            raise self.error
        return []


def test_a_text_model_gives_the_vector_of_a_text() -> None:
    model = LengthEmbedder()
    assert Encoder(model, print).vector(thread()) == bytes([15])
    assert model.encoded_texts == [["Disk\nIt is full"]]


def test_there_is_no_vector_without_a_model() -> None:
    assert Encoder(None, print).vector(thread()) is None


class StrangerEmbedder:
    """A text model that knows no word of any text."""

    fingerprint = "stranger"

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes(3) for _ in texts]


def test_a_text_in_an_unknown_language_has_no_vector() -> None:
    assert embed(thread(), StrangerEmbedder()) == b""
    assert Encoder(StrangerEmbedder(), print).vector(thread()) == b""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("It `fails`:\n\n```\nerror: 7\n```\n\n> quoted\n\nwhen *full*.", "It fails:\nwhen full."),
        ("    error: 7\n    at line 8", "    error: 7\n    at line 8"),
        ("<!-- Thank you for the report -->\nIt is full", "It is full"),
        ("", ""),
    ],
    ids=["prose", "only code", "template", "nothing"],
)
def test_only_the_prose_of_a_text_is_embedded(body: str, expected: str) -> None:
    model = LengthEmbedder()
    embed(thread(body=body), model)
    assert model.encoded_texts == [[f"Disk\n{expected}"]]


def test_only_the_beginning_of_a_long_text_is_embedded() -> None:
    model = LengthEmbedder()
    embed(thread(body="x" * 100_000), model)
    assert len(model.encoded_texts[0][0]) == len("Disk\n") + MAX_EMBEDDED_CHARS


@pytest.mark.parametrize("model", [OddEmbedder(RuntimeError("a secret")), OddEmbedder(MemoryError()), OddEmbedder()])
def test_any_error_of_a_model_is_reported_in_one_line(model: Embedder) -> None:
    with pytest.raises(WorldError, match="uses words alone") as error:
        embed(thread(), model)
    assert "secret" not in str(error.value)


def test_a_remedy_named_by_the_model_is_passed_on() -> None:
    with pytest.raises(WorldError, match="download it again"):
        embed(thread(), OddEmbedder(WorldError("the model is damaged: download it again")))


def test_a_failing_model_is_dropped_and_reported_once() -> None:
    notes: list[str] = []
    encoder = Encoder(OddEmbedder(WorldError("no file")), notes.append)
    assert encoder.vector(thread()) is encoder.vector(thread("Full")) is None
    assert len(notes) == 1
    assert "no file" in notes[0]


def test_a_model_update_round_trips_through_its_files() -> None:
    files = ModelUpdate(shipped(), 60, {"n": 3}).files()
    assert set(files) == {RANKING_PATH, BACKTEST_PATH}
    assert read_ranking(files[RANKING_PATH]) == shipped()
    assert json.loads(files[BACKTEST_PATH]) == {"n": 3}


def test_the_bytes_of_a_ranking_depend_only_on_its_numbers() -> None:
    def backwards(ranking: RankingModels) -> RankingModels:
        reversed_order = replace(ranking.by_words, order=dict(reversed(list(ranking.by_words.order.items()))))
        return replace(ranking, by_words=reversed_order)

    assert ModelUpdate(shipped(), 0).files()[RANKING_PATH] == ModelUpdate(backwards(shipped()), 0).files()[RANKING_PATH]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe\xfa",
        b"[]",
        b"[" * 200_000,
        b"{" + b'"a":{' * 100_000,
        b"1" * 100_000,
        json.dumps(ranking_fields(shipped())).replace('"cut": 0', '"cut": 1').encode(),
        json.dumps(ranking_fields(shipped())).encode()[:-1],
        json.dumps({**ranking_fields(shipped()), "format": float("nan")}).encode(),
    ],
    ids=["nothing", "no text", "a list", "deep", "deeper", "a long number", "out of bounds", "cut off", "no format"],
)
def test_a_malformed_ranking_raises_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_ranking(data)


@given(st.binary(max_size=40))
def test_foreign_bytes_raise_nothing_but_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_ranking(data)


def test_each_text_is_embedded_once() -> None:
    model = LengthEmbedder()
    embedder = CachingEmbedder(model)
    assert embedder.encode(["a", "bb", "a"]) == [b"\x01", b"\x02", b"\x01"]
    assert embedder.encode(["bb", "ccc"]) == [b"\x02", b"\x03"]
    assert ([*map(list, model.encoded_texts)], embedder.fingerprint) == ([["a", "bb"], ["ccc"]], "counting")
