"""Training word vectors: on sample threads whose titles and texts call the same things by different words."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bot.ranking import word_vectors
from bot.ranking.word_vectors import (
    DIMENSIONS,
    MIN_TEXTS,
    TRAINING_ROUNDS,
    Text,
    WordVectors,
    bag,
    encode_words,
    text_counts,
    train_embeddings,
)

THINGS = 30
"""Things that can break. Titles use one word for each, texts another: users say screen, logs say display."""

FILLER = [f"usual{number}" for number in range(40)]


def corpus(count: int, seed: int = 5) -> tuple[list[Text], list[frozenset[int]]]:
    """Threads, each about three things, and the things of each."""
    rng = random.Random(seed)
    texts: list[Text] = []
    about = []
    for _ in range(count):
        things = rng.sample(range(THINGS), 3)
        title = [f"title{thing}" for thing in things]
        body = [f"body{thing}" for thing in things for _ in range(2)] + rng.sample(FILLER, 6)
        texts.append((title, body))
        about.append(frozenset(things))
    return texts, about


@pytest.fixture(scope="module")
def trained() -> WordVectors:
    vectors = train_embeddings(corpus(400)[0])
    assert vectors is not None
    return vectors


def directions(packed: Sequence[bytes]) -> np.ndarray:
    rows = np.array([np.frombuffer(vector, np.int8) for vector in packed], float)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_same_texts_and_seed_give_the_same_vectors() -> None:
    texts = corpus(60)[0]
    first, again, other = (
        train_embeddings(texts, seed=3),
        train_embeddings(texts, seed=3),
        train_embeddings(texts, seed=4),
    )
    assert first
    assert again
    assert other
    assert encode_words(first) == encode_words(again) != encode_words(other)


def test_a_new_title_is_nearest_to_its_own_text_though_they_share_no_word(trained: WordVectors) -> None:
    texts, about = corpus(100, seed=77)
    titles = directions([trained.title(title) for title, _ in texts])
    bodies = directions([trained.text([], body) for _, body in texts])
    nearest = (titles @ bodies.T).argmax(axis=1)
    assert sum(about[number] == about[found] for number, found in enumerate(nearest.tolist())) >= 95


def test_two_words_for_one_thing_are_near(trained: WordVectors) -> None:
    words = directions([trained.title([f"title{thing}"]) for thing in range(THINGS)])
    others = directions([trained.title([f"body{thing}"]) for thing in range(THINGS)])
    assert ((words @ others.T).argmax(axis=1) == np.arange(THINGS)).mean() >= 0.95


def test_training_improves_on_the_initial_vectors(trained: WordVectors) -> None:
    def gap(vectors: WordVectors) -> float:
        titles = directions([vectors.title(title) for title, _ in texts])
        near = titles @ directions([vectors.text([], body) for _, body in texts]).T
        return float(np.diag(near).mean() - near.mean())

    texts = corpus(100, seed=78)[0]
    bags = [bag(text_counts(title, body), trained.words, trained.rarity) for title, body in corpus(400)[0]]
    latent = word_vectors._latent(bags, len(trained.words), DIMENSIONS, np.random.default_rng(0))
    assert gap(trained) > gap(replace(trained, matrix=latent)) + 0.1


def test_every_round_is_reported() -> None:
    ticks: list[int] = []
    assert train_embeddings(corpus(MIN_TEXTS)[0], tick=ticks.append)
    assert ticks == [1] * TRAINING_ROUNDS


def test_vectors_say_how_many_texts_they_were_trained_on(trained: WordVectors) -> None:
    assert (trained.trained_on, trained.dimensions) == (400, DIMENSIONS)


def test_too_few_texts_teach_nothing() -> None:
    texts = corpus(MIN_TEXTS)[0]
    assert train_embeddings([]) is None
    assert train_embeddings(texts[:-1]) is None
    assert train_embeddings(texts) is not None


def test_words_that_never_repeat_teach_nothing() -> None:
    texts: list[Text] = [([f"a{number}"], [f"b{number}", f"c{number}"]) for number in range(80)]
    assert train_embeddings(texts) is None
    assert train_embeddings([((), ())] * 80) is None


@pytest.mark.parametrize(
    "texts",
    [
        [(["same"], [])] * 60,
        [(["same"], ["same"] * 5)] * 60,
        [(["a"], ["b", "c", "d"]), *[([], [])] * 60, (["a"], ["b", "c", "d"])],
        [([f"w{number}"], []) for number in range(30)] * 2,
    ],
    ids=["one word", "nothing to tell apart", "two pairs", "titles only"],
)
def test_poor_texts_give_finite_vectors(texts: list[Text]) -> None:
    vectors = train_embeddings(texts)
    assert vectors is not None
    assert np.isfinite(vectors.matrix).all()
    assert vectors.dimensions <= len(vectors.words)


def test_the_slope_of_a_batch_matches_its_loss() -> None:
    random_ = np.random.default_rng(2)
    matrix = random_.standard_normal((6, 4)).astype(np.float32)
    bags = [
        ((np.array(title, np.int32), np.ones(len(title), np.float32)), (np.array(body, np.int32), np.ones(2, "f4")))
        for title, body in (([0], [3, 4]), ([1, 2], [4, 5]), ([2], [3, 5]))
    ]

    def loss(rows: np.ndarray) -> float:
        def unit(row: np.ndarray) -> np.ndarray:
            return row / np.linalg.norm(row)

        left = [unit(rows[numbers].sum(axis=0)) for (numbers, _), _ in bags]
        right = [unit(rows[numbers].sum(axis=0)) for _, (numbers, _) in bags]
        near = np.array(left) @ np.array(right).T / word_vectors.TEMPERATURE
        both = np.log(np.exp(near).sum(axis=0)) + np.log(np.exp(near).sum(axis=1))
        return float((both / 2 - np.diag(near)).mean())

    class SlopeRecorder:
        def __init__(self) -> None:
            self.matrix, self.slope = matrix, np.zeros_like(matrix)

        def begin(self) -> None:
            pass

        def move(self, rows: np.ndarray, slope: np.ndarray, rate: float) -> None:
            self.slope[rows] += slope

    recorder = SlopeRecorder()
    word_vectors._train_batch(bags, recorder, 0.01)  # type: ignore[arg-type]
    steps = np.eye(24).reshape(24, 6, 4) * 1e-5
    wide = matrix.astype(float)
    expected = [(loss(wide + step) - loss(wide - step)) / 2e-5 for step in steps]
    assert recorder.slope.ravel().tolist() == pytest.approx(expected, rel=1e-3, abs=1e-4)
