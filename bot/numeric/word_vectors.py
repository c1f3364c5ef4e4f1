"""Word vectors: a text becomes the direction of its words, so that texts are near which share no word.

The file of vectors holds data only, all numbers little-endian:

    magic, number of words, dimensions, number of texts it was trained on        4 + 4 + 4 + 4 bytes
    size of the words in bytes                                                   4 bytes
    the words, a NUL between them, in UTF-8
    rarity of each word, length of each word's vector                            2 arrays of float32
    directions of the words, the largest part of each being ±127                 words x dimensions signed bytes
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

MAX_WORDS = 20_000
MAX_DIMENSIONS = 1_024
MAX_TERMS = 150
"""Distinct terms of a text that count, the heaviest first."""

TITLE_WEIGHT = 2
"""How often a title is counted with its text."""

_MAGIC = b"PWV1"
_HEADER = struct.Struct("<4sIIII")
_LARGEST = 1e6
Floats = NDArray[np.float32]
Bag = tuple[NDArray[np.int32], Floats]
"""The words of a text by number, and their weights: (1 + ln frequency) x rarity, scaled to unit length."""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """``rarity`` (float32, one for each word) is its inverse document frequency, ``matrix`` (float32) has its vectors
    as rows. ``trained_on`` is the number of texts that it was made from."""

    words: Mapping[str, int]
    rarity: Floats
    matrix: Floats
    trained_on: int

    @property
    def dimensions(self) -> int:
        return int(self.matrix.shape[1])

    def text(self, title: Sequence[str], body: Sequence[str]) -> bytes:
        """The direction of a text from its analysed terms, as signed bytes; empty where no word is known."""
        return self._direction(text_counts(title, body))

    def title(self, title: Sequence[str]) -> bytes:
        """The direction of a title alone."""
        return self._direction(Counter(title))

    def _direction(self, counts: Counter[str]) -> bytes:
        words, weights = bag(counts, self.words, self.rarity)
        return quantise(weights @ self.matrix[words]) if len(words) else b""


def text_counts(title: Sequence[str], body: Sequence[str]) -> Counter[str]:
    """How often each term counts in a text."""
    counts = Counter(body)
    for term in title:
        counts[term] += TITLE_WEIGHT
    return counts


def bag(counts: Mapping[str, int], words: Mapping[str, int], rarity: Floats) -> Bag:
    """The known words of a text, the heaviest MAX_TERMS of them."""
    known = [(words[term], count) for term, count in counts.items() if term in words]
    numbers = np.array([number for number, _ in known], dtype=np.int32)
    weights = (1 + np.log(np.array([count for _, count in known], dtype=np.float32))) * rarity[numbers]
    if len(numbers) > MAX_TERMS:
        best = np.sort(np.argsort(-weights, kind="stable")[:MAX_TERMS])
        numbers, weights = numbers[best], weights[best]
    return numbers, weights / max(float(np.linalg.norm(weights)), 1e-9)


def quantise(vector: Floats) -> bytes:
    """The direction of a vector as signed bytes, the largest part ±127; its length is dropped."""
    largest = float(np.abs(vector).max(initial=0.0))
    return np.rint(vector / largest * 127).astype(np.int8).tobytes() if largest > 0 else b""


def rarities(texts: Iterable[Iterable[str]], least: int) -> tuple[dict[str, int], Floats]:
    """The words that stand in at least ``least`` texts, the most frequent first, and their rarity."""
    frequency: Counter[str] = Counter()
    total = 0
    for text in texts:
        frequency.update(set(text))
        total += 1
    common = sorted(((-count, word) for word, count in frequency.items() if count >= least))[:MAX_WORDS]
    rarity = [log(1 + (total + count + 0.5) / (-count + 0.5)) for count, _ in common]
    return {word: number for number, (_, word) in enumerate(common)}, np.array(rarity, dtype=np.float32)


def encode(vectors: WordVectors) -> bytes:
    """The bytes of a file of vectors; what `decode` gives back differs from it by rounding only."""
    lengths = np.abs(vectors.matrix).max(axis=1, initial=0.0).astype("<f4")
    directions = np.rint(vectors.matrix * (127 / np.maximum(lengths, 1e-30))[:, None]).astype(np.int8)
    words = "\0".join(vectors.words).encode("utf-8", "surrogatepass")
    header = _HEADER.pack(_MAGIC, len(vectors.words), vectors.dimensions, vectors.trained_on, len(words))
    return b"".join((header, words, vectors.rarity.astype("<f4").tobytes(), lengths.tobytes(), directions.tobytes()))


def decode(data: bytes) -> WordVectors:
    """The vectors of these bytes. Raises ValueError for any that `encode` does not write."""
    if len(data) < _HEADER.size:
        raise ValueError("the file of word vectors is cut off")
    magic, count, dimensions, trained_on, size = _HEADER.unpack_from(data)
    if magic != _MAGIC or not 0 < count <= MAX_WORDS or not 0 < dimensions <= MAX_DIMENSIONS:
        raise ValueError("not a file of word vectors")
    at = _HEADER.size + size
    if len(data) != at + 8 * count + count * dimensions:
        raise ValueError("the file of word vectors has another size than it says")
    if data.count(b"\0", _HEADER.size, at) != count - 1:  # looked at first: a split makes an object of every NUL
        raise ValueError("the file of word vectors has other words than it says")
    words = str(data[_HEADER.size : at], "utf-8", "surrogatepass").split("\0")
    numbers = np.frombuffer(data, dtype="<f4", count=2 * count, offset=at).astype(np.float32)
    directions = np.frombuffer(data, dtype=np.int8, offset=at + 8 * count).reshape(count, dimensions)
    if len(set(words)) != count or not ((numbers >= 0) & (numbers <= _LARGEST)).all():  # nor any NaN
        raise ValueError("the file of word vectors is damaged")
    matrix = directions.astype(np.float32) * (numbers[count:, None] / np.float32(127))
    return WordVectors({word: number for number, word in enumerate(words)}, numbers[:count], matrix, trained_on)
