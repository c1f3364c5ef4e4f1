"""Trains word vectors on a repository's own threads, so that each title is closest to its own opening text.

Co-occurrence embeddings, as in P. Huang et al., "Learning deep structured semantic models for web search using
clickthrough data", CIKM 2013: title and text are bags of words that share their vectors. In every batch each title
must pick its own text among all texts, and each text its title (cross-entropy over the cosines; the rest of the batch
are the wrong answers). No labels and no download are needed. The vectors start from latent semantic analysis: the
singular vectors of the weighted texts, found with random projections (N. Halko, P. Martinsson, J. Tropp, SIAM
Review 53, 2011, algorithm 4.4).

The file of vectors holds data only, all numbers little-endian:

    magic, words, dimensions, texts it was trained on, size of the words     4 + 4 + 4 + 4 + 4 bytes
    the words, a NUL between them, in UTF-8
    rarity of each word, length of each word's vector                        2 arrays of float32
    directions of the words, the largest component of each being ±127        words x dimensions signed bytes
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 96
"""128 and 256 find no more on 692 queries, 64 finds a little less."""

TRAINING_ROUNDS = 14
BATCH_SIZE = 256
TEMPERATURE = 0.1
LEARNING_RATE = 0.02
"""Adam's initial learning rate; it decays to a tenth."""

WHITENING_POWER = 0.5
"""The initial vectors are divided by this power of the singular values."""

MIN_TEXTS = 50
"""Minimum number of threads to train on."""

MIN_FREQUENCY = 2
MIN_BODY_WORDS = 3
"""Minimum number of known words in an opening text to learn from it."""

_CHUNK_TEXTS = 512
_OVERSAMPLING = 16
_POWER_ITERATIONS = 2
_DECAY, _SQUARE_DECAY, _EPSILON = 0.9, 0.999, 1e-8

Text = tuple[Sequence[str], Sequence[str]]
"""The analysed terms of a title and its text."""


def train_embeddings(
    texts: Sequence[Text], *, seed: int = 0, tick: Callable[[int], None] = lambda _: None
) -> WordVectors | None:
    """Train vectors for the words of these texts; None if there are too few.

    The same texts and seed give the same vectors. ``tick`` is called with 1 after each of TRAINING_ROUNDS. Takes
    about 6 s for 11,000 texts on two cores.
    """
    words, rarity = rarities(((*title, *body) for title, body in texts), MIN_FREQUENCY)
    if len(texts) < MIN_TEXTS or not words:
        return None
    random = np.random.default_rng(seed)
    bags = [bag(text_counts(title, body), words, rarity) for title, body in texts]
    start = _latent(bags, len(words), min(DIMENSIONS, len(words)), random)
    pairs = [(bag(Counter(title), words, rarity), bag(Counter(body), words, rarity)) for title, body in texts]
    trainable = [pair for pair in pairs if len(pair[0][0]) and len(pair[1][0]) >= MIN_BODY_WORDS]
    trainer = _Adam(start)
    for round_number in range(TRAINING_ROUNDS):
        _train_round(trainable, trainer, random, LEARNING_RATE * (1 - 0.9 * round_number / TRAINING_ROUNDS))
        tick(1)
    return WordVectors(words, rarity, trainer.matrix, len(texts))


def dense(bags: Sequence[Bag]) -> tuple[NDArray[np.int32], Floats]:
    """The words in these bags, and the bags as dense rows over these words."""
    words, places = np.unique(np.concatenate([numbers for numbers, _ in bags]), return_inverse=True)
    rows = np.repeat(np.arange(len(bags)), [len(numbers) for numbers, _ in bags])
    matrix = np.zeros((len(bags), len(words)), dtype=np.float32)
    matrix[rows, places] = np.concatenate([weights for _, weights in bags])
    return words, matrix


@dataclass
class _Adam:
    """D. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; only rows that are used move."""

    matrix: Floats

    def __post_init__(self) -> None:
        self._mean, self._square = np.zeros_like(self.matrix), np.zeros_like(self.matrix)
        self._steps = 0

    def begin(self) -> None:
        self._steps += 1

    def move(self, rows: NDArray[np.int32], gradient: Floats, rate: float) -> None:
        mean = _DECAY * self._mean[rows] + (1 - _DECAY) * gradient
        square = _SQUARE_DECAY * self._square[rows] + (1 - _SQUARE_DECAY) * gradient * gradient
        self._mean[rows], self._square[rows] = mean, square
        step = mean / (1 - _DECAY**self._steps)
        self.matrix[rows] -= rate * step / (np.sqrt(square / (1 - _SQUARE_DECAY**self._steps)) + _EPSILON)


def _train_round(pairs: Sequence[tuple[Bag, Bag]], trainer: _Adam, random: np.random.Generator, rate: float) -> None:
    order = random.permutation(len(pairs))
    for part in np.array_split(order, max(1, round(len(pairs) / BATCH_SIZE))):
        if len(part) > 1:
            _train_batch([pairs[number] for number in part], trainer, rate)


def _train_batch(pairs: Sequence[tuple[Bag, Bag]], trainer: _Adam, rate: float) -> None:
    title_words, titles = dense([title for title, _ in pairs])
    body_words, bodies = dense([body for _, body in pairs])
    left, left_length = _normalise_rows(titles @ trainer.matrix[title_words])
    right, right_length = _normalise_rows(bodies @ trainer.matrix[body_words])
    similarities = left @ right.T / TEMPERATURE
    gradient = (_softmax(similarities, 1) + _softmax(similarities, 0)) / 2
    gradient[np.diag_indices(len(pairs))] -= 1
    gradient /= len(pairs) * TEMPERATURE
    left_gradient: Floats = np.matmul(gradient, right)
    right_gradient: Floats = np.matmul(gradient.T, left)
    trainer.begin()
    trainer.move(title_words, titles.T @ _unnormalised_gradient(left_gradient, left, left_length), rate)
    trainer.move(body_words, bodies.T @ _unnormalised_gradient(right_gradient, right, right_length), rate)


def _normalise_rows(rows: Floats) -> tuple[Floats, Floats]:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return rows / lengths, lengths


def _unnormalised_gradient(gradient: Floats, unit: Floats, length: Floats) -> Floats:
    """The gradient with respect to the rows before they were scaled to unit length."""
    result: Floats = (gradient - unit * (gradient * unit).sum(axis=1, keepdims=True)) / length
    return result


def _softmax(values: Floats, axis: int) -> Floats:
    powers = np.exp(values - values.max(axis=axis, keepdims=True))
    result: Floats = powers / powers.sum(axis=axis, keepdims=True)
    return result


def _latent(bags: Sequence[Bag], words: int, dimensions: int, random: np.random.Generator) -> Floats:
    """Word vectors by latent semantic analysis (words x dimensions), scaled to a mean length of 1."""
    width = min(words, dimensions + _OVERSAMPLING)
    basis = random.standard_normal((words, width)).astype(np.float32)
    for _ in range(_POWER_ITERATIONS + 1):
        spread = np.zeros((words, width), dtype=np.float32)
        for numbers, rows in _chunks(bags):
            spread[numbers] += rows.T @ (rows @ basis[numbers])
        basis = np.linalg.qr(spread)[0]
    gram = np.zeros((width, width))
    for numbers, rows in _chunks(bags):
        projected = rows @ basis[numbers]
        gram += projected.T @ projected
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    best = np.argsort(-eigenvalues)[:dimensions]
    scale = np.maximum(eigenvalues[best], 1e-12) ** (-WHITENING_POWER / 2)
    vectors: Floats = (basis @ eigenvectors[:, best] * scale).astype(np.float32)
    vectors /= max(float(np.linalg.norm(vectors, axis=1).mean()), 1e-9)
    return vectors


def _chunks(bags: Sequence[Bag]) -> Iterator[tuple[NDArray[np.int32], Floats]]:
    """Dense chunks, one at a time: all together would take gigabytes."""
    parts = (bags[start : start + _CHUNK_TEXTS] for start in range(0, len(bags), _CHUNK_TEXTS))
    return (dense(part) for part in parts)


# -- vectors and their file --------------------------------------------------------------------------------------------

MAX_WORDS = 20_000
MAX_DIMENSIONS = 1_024
MAX_TERMS = 150
"""Maximum number of distinct terms that count in a text, heaviest first."""

TITLE_WEIGHT = 2
"""A term in a title counts this many times."""

_MAGIC = b"PWV1"
_HEADER = struct.Struct("<4sIIII")
_MAX_NUMBER = 1e6
Floats = NDArray[np.float32]
Bag = tuple[NDArray[np.int32], Floats]
"""The numbers of a text's words, and their weights: (1 + ln frequency) x rarity, scaled to unit length."""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The vectors of words, as rows of ``matrix`` (float32). ``rarity`` (float32) is the inverse document frequency of
    each word, ``trained_on`` the number of training texts."""

    words: Mapping[str, int]
    rarity: Floats
    matrix: Floats
    trained_on: int

    @property
    def dimensions(self) -> int:
        return int(self.matrix.shape[1])

    def text(self, title: Sequence[str], body: Sequence[str]) -> bytes:
        """The direction of a text from its analysed terms, as signed bytes; empty if no word is known."""
        return self._direction(text_counts(title, body))

    def title(self, title: Sequence[str]) -> bytes:
        return self._direction(Counter(title))

    def _direction(self, counts: Counter[str]) -> bytes:
        words, weights = bag(counts, self.words, self.rarity)
        return quantise(weights @ self.matrix[words]) if len(words) else b""


def text_counts(title: Sequence[str], body: Sequence[str]) -> Counter[str]:
    """How many times each term counts in a text."""
    counts = Counter(body)
    for term in title:
        counts[term] += TITLE_WEIGHT
    return counts


def bag(counts: Mapping[str, int], words: Mapping[str, int], rarity: Floats) -> Bag:
    """The known words of a text, at most the heaviest MAX_TERMS."""
    known = [(words[term], count) for term, count in counts.items() if term in words]
    numbers = np.array([number for number, _ in known], dtype=np.int32)
    weights = (1 + np.log(np.array([count for _, count in known], dtype=np.float32))) * rarity[numbers]
    if len(numbers) > MAX_TERMS:
        best = np.sort(np.argsort(-weights, kind="stable")[:MAX_TERMS])
        numbers, weights = numbers[best], weights[best]
    return numbers, weights / max(float(np.linalg.norm(weights)), 1e-9)


def quantise(vector: Floats) -> bytes:
    """The direction of a vector as signed bytes, the largest component ±127; its length is dropped."""
    largest = float(np.abs(vector).max(initial=0.0))
    return np.rint(vector / largest * 127).astype(np.int8).tobytes() if largest > 0 else b""


def rarities(texts: Iterable[Iterable[str]], least: int) -> tuple[dict[str, int], Floats]:
    """The words that occur in at least ``least`` texts, most frequent first, and their rarity."""
    frequency: Counter[str] = Counter()
    total = 0
    for text in texts:
        frequency.update(set(text))
        total += 1
    common = sorted(((-count, word) for word, count in frequency.items() if count >= least))[:MAX_WORDS]
    rarity = [log(1 + (total + count + 0.5) / (-count + 0.5)) for count, _ in common]
    return {word: number for number, (_, word) in enumerate(common)}, np.array(rarity, dtype=np.float32)


_SHORTEST = 1e-30
"""Shorter vectors are zero."""


def encode_words(vectors: WordVectors) -> bytes:
    """The bytes of a file of vectors; `decode_words` restores the vectors, except for rounding."""
    lengths = np.abs(vectors.matrix).max(axis=1, initial=0.0).astype("<f4")
    lengths[lengths < _SHORTEST] = 0.0
    directions = np.rint(vectors.matrix * (127 / np.maximum(lengths, _SHORTEST))[:, None]).astype(np.int8)
    words = "\0".join(vectors.words).encode("utf-8", "surrogatepass")
    header = _HEADER.pack(_MAGIC, len(vectors.words), vectors.dimensions, vectors.trained_on, len(words))
    return b"".join((header, words, vectors.rarity.astype("<f4").tobytes(), lengths.tobytes(), directions.tobytes()))


def decode_words(data: bytes) -> WordVectors:
    """The vectors in these bytes. Raises ValueError for bytes that `encode_words` does not write."""
    if len(data) < _HEADER.size:
        raise ValueError("the file of word vectors is cut off")
    magic, count, dimensions, trained_on, size = _HEADER.unpack_from(data)
    if magic != _MAGIC or not 0 < count <= MAX_WORDS or not 0 < dimensions <= MAX_DIMENSIONS:
        raise ValueError("not a file of word vectors")
    at = _HEADER.size + size
    if len(data) != at + 8 * count + count * dimensions:
        raise ValueError("the file of word vectors does not have the size that it states")
    if (
        data.count(b"\0", _HEADER.size, at) != count - 1
    ):  # checked before splitting, which makes an object for every NUL
        raise ValueError("the file of word vectors does not have the number of words that it states")
    words = str(data[_HEADER.size : at], "utf-8", "surrogatepass").split("\0")
    numbers = np.frombuffer(data, dtype="<f4", count=2 * count, offset=at).astype(np.float32)
    directions = np.frombuffer(data, dtype=np.int8, offset=at + 8 * count).reshape(count, dimensions)
    if len(set(words)) != count or not ((numbers >= 0) & (numbers <= _MAX_NUMBER)).all():  # nor any NaN
        raise ValueError("the file of word vectors is damaged")
    matrix = directions.astype(np.float32) * (numbers[count:, None] / np.float32(127))
    return WordVectors({word: number for number, word in enumerate(words)}, numbers[:count], matrix, trained_on)
