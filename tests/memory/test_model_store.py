"""What a memory has learned: the vectors that it gives a thread, and its files from a stranger's hand."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.thread import Thread
from bot.errors import WorldError
from bot.memory.model_store import (
    BACKTEST,
    MAX_EMBEDDED,
    RANKING,
    WORDS,
    CachingEmbedder,
    Embedder,
    Encoder,
    LearnedModel,
    ModelUpdate,
    embed,
    read_ranking,
    read_words,
)
from bot.ranking.weights import RankingModels, ranking_fields, shipped
from bot.ranking.word_vectors import WordVectors, encode_words

WORDS_OF_TWO = WordVectors({"disk": 0, "full": 1}, np.ones(2, np.float32), np.eye(2, dtype=np.float32), 60)


def thread(title: str = "Disk", body: str = "It is full") -> Thread:
    return Thread(1, title, body, "octocat", datetime(2024, 1, 1, tzinfo=UTC))


class Counting:
    """A downloaded model that says how long each text is."""

    fingerprint = "counting"

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        self.asked.append(texts)
        return [bytes([min(127, len(text))]) for text in texts]


class Failing:
    """A downloaded model whose native code raises."""

    fingerprint = "failing"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        raise self.error


class Mute:
    """A downloaded model that gives too few vectors."""

    fingerprint = "mute"

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        return []


def test_a_memory_that_learned_nothing_goes_by_what_is_shipped() -> None:
    assert LearnedModel(shipped()).ranking is shipped()
    assert LearnedModel(shipped()).vectors(thread()) == {}


def test_a_thread_has_a_vector_of_its_text_and_one_of_its_title() -> None:
    learned = replace(LearnedModel(shipped()), words=WORDS_OF_TWO)
    found = {arm: np.frombuffer(vector, np.int8).tolist() for arm, vector in learned.vectors(thread()).items()}
    assert found["trained_title"] == [127, 0]
    assert 0 < found["trained"][1] < found["trained"][0] == 127
    assert learned.vectors(thread()) == learned.term_vectors(["disk"], ["full"])


def test_vectors_without_a_direction_are_left_out() -> None:
    learned = replace(LearnedModel(shipped()), words=WORDS_OF_TWO)
    assert learned.vectors(thread("Something odd", "else")) == {}
    assert set(learned.vectors(thread("Something odd", "The disk"))) == {"trained"}


def test_a_downloaded_model_adds_its_own_of_text_and_title() -> None:
    model = Counting()
    found = LearnedModel(shipped(), WORDS_OF_TWO, model).vectors(thread())
    assert set(found) == {"trained", "trained_title", "semantic", "semantic_title"}
    assert (found["semantic"], found["semantic_title"]) == (bytes([15]), bytes([4]))
    assert model.asked == [["Disk\nIt is full", "Disk"]]


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
def test_a_text_is_embedded_by_its_prose(body: str, expected: str) -> None:
    model = Counting()
    embed(thread(body=body), model)
    assert model.asked == [[f"Disk\n{expected}", "Disk"]]


def test_a_long_text_is_embedded_by_its_beginning() -> None:
    model = Counting()
    embed(thread(body="x" * 100_000), model)
    assert len(model.asked[0][0]) == len("Disk\n") + MAX_EMBEDDED


@pytest.mark.parametrize("model", [Failing(RuntimeError("a secret")), Failing(MemoryError()), Mute()])
def test_whatever_a_model_raises_is_told_in_one_line(model: Embedder) -> None:
    with pytest.raises(WorldError, match="uses words alone") as error:
        embed(thread(), model)
    assert "secret" not in str(error.value)


def test_a_remedy_that_the_model_knows_is_passed_on() -> None:
    with pytest.raises(WorldError, match="download it again"):
        embed(thread(), Failing(WorldError("the model is damaged: download it again")))


def test_a_model_that_fails_is_not_asked_again_and_that_is_told_once() -> None:
    notes: list[str] = []
    encoder = Encoder(LearnedModel(shipped(), WORDS_OF_TWO, Failing(WorldError("no file"))), notes.append)
    assert set(encoder.vectors(thread())) == set(encoder.vectors(thread("Full"))) == {"trained", "trained_title"}
    assert len(notes) == 1
    assert "no file" in notes[0]
    assert encoder.learned.embedder is None


def test_a_lesson_is_kept_in_files_that_are_read_again() -> None:
    files = ModelUpdate(encode_words(WORDS_OF_TWO), shipped(), 60, {"n": 3}).files()
    assert set(files) == {WORDS, RANKING, BACKTEST}
    assert read_words(files[WORDS]).words == WORDS_OF_TWO.words
    assert read_ranking(files[RANKING]) == shipped()
    assert json.loads(files[BACKTEST]) == {"n": 3}


def test_what_is_written_of_a_ranking_depends_on_its_numbers_only() -> None:
    def backwards(ranking: RankingModels) -> RankingModels:
        turned = replace(ranking.by_words, order=dict(reversed(list(ranking.by_words.order.items()))))
        return replace(ranking, by_words=turned)

    assert ModelUpdate(b"", shipped(), 0).files()[RANKING] == ModelUpdate(b"", backwards(shipped()), 0).files()[RANKING]


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
def test_a_ranking_that_is_none_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_ranking(data)


@given(st.binary(max_size=40))
def test_bytes_of_a_stranger_raise_nothing_but_a_value_error(data: bytes) -> None:
    for read in (read_words, read_ranking):
        with pytest.raises(ValueError, match=r".+"):
            read(data)


class Reader:
    """An embedder that says how many texts it read; a vector is the text's length."""

    fingerprint = "reader"
    read = 0

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        self.read += len(texts)
        return [bytes([len(text)]) for text in texts]


def test_each_text_is_embedded_once() -> None:
    reader = Reader()
    remembering = CachingEmbedder(reader)
    assert remembering.encode(["a", "bb", "a"]) == [b"\x01", b"\x02", b"\x01"]
    assert remembering.encode(["bb", "ccc"]) == [b"\x02", b"\x03"]
    assert (reader.read, remembering.fingerprint) == (3, "reader")
