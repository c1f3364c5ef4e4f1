"""BERT in NumPy, with the same result to the last bit on every processor (https://arxiv.org/abs/1810.04805).

A floating-point sum depends on its order, which differs from processor to processor. So everything that is summed is
rounded to integers first, few and small enough that every partial sum is exact: below 2**24 in float32, below 2**53 in
float64. All the rest is single operations (+, -, *, /, square root, comparison, rounding), which IEEE 754 defines to
the last bit. That rules out NumPy's `exp` and `mean`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = Mapping[str, NDArray[Any]]

MAX_TOKENS = 128
"""The length that all-MiniLM-L6-v2 was trained on. Twice as many take more than twice the time and find no more."""

MAX_HEADER_BYTES = 1024 * 1024
"""The header of all-MiniLM-L6-v2 has 10 KB."""

_DTYPES = {"F32": "<f4", "I8": "i1"}
_EXACT = 2**24 - 1
"""The largest sum of integers in float32."""
_SHARE, _CONTENT = 1023, 127
"""The largest integers for a share of attention and for what is shared: 128 of their products can be added."""
_FIXED = np.float32(2**16)
_TINY = np.float32(1e-30)  # in place of a zero divisor
_ERF = [np.float32(x) for x in (4.30638e-5, 2.765672e-4, 1.520143e-4, 0.0092705272, 0.0422820123, 0.0705230784, 1)]
"""Abramowitz and Stegun, 7.1.28: erf(x) is 1 - p(x)**-16, within 3e-7."""
_EXP = [np.float32(x) for x in (1 / 120, 1 / 24, 1 / 6, 1 / 2, 1, 1)]


class NotAModel(ValueError):
    """The content of a file is not a model that `Bert` can run; the message says why."""


@dataclass(frozen=True, slots=True)
class DenseLayer:
    """A linear layer. ``weight`` (inputs x outputs) has integers, which ``scale`` turns into the weights' values.

    The inputs are rounded to integers up to ``limit``, by row, so that no sum exceeds 2**24.
    """

    weight: Floats
    scale: Floats
    bias: Floats
    limit: np.float32

    @classmethod
    def read(cls, tensors: Tensors, name: str) -> DenseLayer:
        weight = tensors[f"{name}.weight"].astype(np.float32)
        largest = max(1, int(np.abs(weight).sum(axis=0).max()))
        return cls(weight, tensors[f"{name}.scale"], tensors[f"{name}.bias"], np.float32(_EXACT // largest))

    def __call__(self, rows: Floats) -> Floats:
        step = (np.abs(rows).max(axis=1, keepdims=True) + _TINY) / self.limit
        # The quotient may exceed the limit by a rounding error, which `rint` removes.
        product: Floats = np.rint(rows / step) @ self.weight
        product *= step
        product *= self.scale
        product += self.bias
        return product


@dataclass(frozen=True, slots=True)
class RowNorm:
    """Gives each row the mean 0 and the variance 1, then applies ``weight`` and ``bias``."""

    weight: Floats
    bias: Floats

    @classmethod
    def read(cls, tensors: Tensors, name: str) -> RowNorm:
        return cls(tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def __call__(self, rows: Floats) -> Floats:
        size = rows.shape[1]
        fixed = np.rint(rows * _FIXED).astype(np.float64)
        fixed -= np.rint(fixed.sum(axis=1, keepdims=True) / size)
        coarse = np.rint(fixed / 16)
        variance = (coarse * coarse).sum(axis=1, keepdims=True) / size
        normal: Floats = (fixed / (np.sqrt(variance + 1) * 16)).astype(np.float32)
        normal *= self.weight
        normal += self.bias
        return normal


@dataclass(frozen=True, slots=True)
class EncoderLayer:
    """Attention and the feed-forward part, each added to its input."""

    joined: DenseLayer
    """Query, key and value side by side."""
    output: DenseLayer
    output_norm: RowNorm
    wide: DenseLayer
    narrow: DenseLayer
    narrow_norm: RowNorm

    @classmethod
    def read(cls, tensors: Tensors, name: str) -> EncoderLayer:
        joined, output, wide, narrow = (
            DenseLayer.read(tensors, f"{name}.{part}") for part in ("joined", "output", "wide", "narrow")
        )
        output_norm, narrow_norm = (RowNorm.read(tensors, f"{name}.{part}_norm") for part in ("output", "narrow"))
        return cls(joined, output, output_norm, wide, narrow, narrow_norm)

    def __call__(self, rows: Floats, heads: int) -> Floats:
        attended = self.output_norm(self.output(_attention(self.joined(rows), heads)) + rows)
        return self.narrow_norm(self.narrow(_gelu(self.wide(attended))) + attended)


@dataclass(frozen=True, slots=True)
class Bert:
    """A model in memory. ``words`` (integers, with a scale for each word) and ``positions`` have ``size`` columns."""

    words: NDArray[np.int8]
    word_scales: Floats
    positions: Floats
    norm: RowNorm
    layers: Sequence[EncoderLayer]
    heads: int

    @classmethod
    def read(cls, content: bytes) -> Bert:
        """The model in a file that `tools/minilm.py` wrote. Raises NotAModel."""
        try:
            tensors, metadata = _read_tensors(content)
            layers = [EncoderLayer.read(tensors, f"layer.{number}") for number in range(int(metadata["layers"]))]
            words, scales, positions = (tensors[name] for name in ("words", "words.scale", "positions"))
            heads = int(metadata["heads"])
            if words.ndim != 2 or not 0 < heads <= words.shape[1] or words.shape[1] != positions.shape[-1]:
                raise NotAModel("its tables do not fit together")
            return cls(words, scales, positions, RowNorm.read(tensors, "norm"), layers, heads)
        except KeyError as error:
            raise NotAModel(f"it lacks {error}") from error
        except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
            raise NotAModel(str(error)) from error

    @property
    def size(self) -> int:
        """Numbers in a vector."""
        return int(self.words.shape[1])

    def mean(self, tokens: Sequence[int]) -> Floats:
        """The mean of the vectors of at least one and at most `MAX_TOKENS` tokens: ``size`` numbers.

        Raises IndexError for a token that the model does not have and ValueError if its parts do not fit together.
        """
        ids = np.asarray(tokens)
        # On some processors a matrix product raises the flags of overflow although all its numbers are in range.
        with np.errstate(all="ignore"):
            rows = self.words[ids] * self.word_scales[ids][:, None] + self.positions[: len(ids)]
            rows = self.norm(rows)
            for layer in self.layers:
                rows = layer(rows, self.heads)
            total = np.rint(rows * _FIXED).sum(axis=0, dtype=np.float64)
            mean: Floats = (total / (len(ids) * float(_FIXED))).astype(np.float32)
        return mean


def _read_tensors(content: bytes) -> tuple[Tensors, Mapping[str, str]]:
    """The tensors and the metadata of a file in the format of safetensors (its header's length, header, values)."""
    start = 8 + int.from_bytes(content[:8], "little")
    if start > min(len(content), MAX_HEADER_BYTES):
        raise NotAModel("it is cut off or no safetensors file")
    header = json.loads(content[8:start])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(content[start + begin : start + end], _DTYPES[entry["dtype"]])
        tensors[name] = tensors[name].reshape(entry["shape"])
    return tensors, metadata


def _attention(joined: Floats, heads: int) -> Floats:
    """Each row's mix of all rows' values, by head; ``joined`` has query, key and value side by side."""
    count, size = joined.shape[0], joined.shape[1] // 3
    parts = joined.reshape(count, 3, heads, size // heads).transpose(1, 2, 0, 3)
    most = isqrt(_EXACT // (size // heads))  # a query times a key, added up over a head's columns
    limits = np.array([most, most, _CONTENT], dtype=np.float32).reshape(3, 1, 1, 1)
    steps = (np.abs(parts).max(axis=(2, 3), keepdims=True) + _TINY) / limits
    query, key, content = np.rint(parts / steps)
    scores: Floats = query @ key.transpose(0, 2, 1)
    scores -= scores.max(axis=2, keepdims=True)
    scores *= steps[0] * steps[1] / np.sqrt(np.float32(size // heads))
    shares = np.rint(_exp(scores) * np.float32(_SHARE))
    mixed: Floats = shares @ content
    mixed *= steps[2] / shares.sum(axis=2, keepdims=True)
    return mixed.transpose(1, 0, 2).reshape(count, size)


def _gelu(x: Floats) -> Floats:
    """The Gaussian error linear unit: x times the normal distribution function of x."""
    power = _polynomial(_ERF, np.minimum(np.abs(x) * np.float32(0.5**0.5), np.float32(6)))
    for _ in range(4):
        power *= power
    rest = np.float32(0.5) / power
    rest *= np.abs(x)
    result: Floats = np.maximum(x, np.float32(0)) - rest
    return result


def _exp(x: Floats) -> Floats:
    """The exponential of numbers up to 0, within 3e-5 of their value; below -20, that of -20."""
    power = _polynomial(_EXP, np.maximum(x, np.float32(-20)) * np.float32(1 / 64))
    for _ in range(6):
        power *= power
    return power


def _polynomial(coefficients: Sequence[np.float32], x: Floats) -> Floats:
    """The one with these coefficients, that of the highest power first (Horner's method)."""
    total = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        total += coefficient
        total *= x
    total += coefficients[-1]
    return total
