"""The text model computes the same to the last bit, whichever library adds up and in whatever order."""

import hashlib
import os
import subprocess
import sys
from math import erf
from pathlib import Path

import numpy as np
import pytest

from bot.ranking import bert
from bot.ranking.bert import Bert
from tools import minilm

ROOT = Path(__file__).resolve().parents[2]
SIZE, WIDE, WORDS = 384, 1536, 50
TOKENS = list(range(WORDS))
EXPECTED = "cf8cae6c00d9bc1871bada189bb497327bfa0fd4796efcff2182d6ac7193d0f1"
"""SHA-256 of the mean, everywhere."""


def integers(*shape: int, seed: int) -> np.ndarray:
    """Random weights; drawn as integers, since random floats are not the same on every processor."""
    return (np.random.default_rng(seed).integers(-127, 128, shape) / 1024).astype(np.float32)


def model() -> bytes:
    """A model of one layer as large as a real one."""
    dense = {"attention.output": (SIZE, SIZE), "intermediate": (WIDE, SIZE), "output": (SIZE, WIDE)}
    shapes: dict[str, tuple[int, ...]] = {f"encoder.layer.0.{part}.dense": shape for part, shape in dense.items()}
    shapes |= {f"encoder.layer.0.attention.self.{part}": (SIZE, SIZE) for part in ("query", "key", "value")}
    norms = ("embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output")
    shapes |= {f"{part}.LayerNorm": (SIZE,) for part in norms}
    tensors = {f"{name}.weight": integers(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}
    tensors |= {f"{name}.bias": integers(shape[0], seed=99 + seed) for seed, (name, shape) in enumerate(shapes.items())}
    rows = {"word": WORDS, "position": 128, "token_type": 2}
    tensors |= {f"embeddings.{name}_embeddings.weight": integers(n, SIZE, seed=n) for name, n in rows.items()}
    return minilm.bert(tensors)


def digest() -> str:
    return hashlib.sha256(Bert.read(model()).mean(TOKENS).astype("<f4").tobytes()).hexdigest()


def test_the_result_is_the_same_everywhere() -> None:
    assert digest() == EXPECTED


@pytest.mark.parametrize(
    "environment",
    [
        {"OPENBLAS_NUM_THREADS": "2"},
        {"OPENBLAS_CORETYPE": "Prescott"},
        {"OPENBLAS_CORETYPE": "Haswell"},
        {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
    ],
    ids=str,
)
def test_the_result_does_not_depend_on_how_the_library_adds(environment: dict[str, str]) -> None:
    script = "from tests.ranking.test_bert import digest; print(digest())"
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, env=os.environ | environment, cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == EXPECTED


def test_every_sum_in_a_layer_is_one_that_float32_holds_exactly() -> None:
    layer = Bert.read(model()).layers[0]
    for dense in (layer.joined, layer.output, layer.wide, layer.narrow):
        assert 300 < dense.limit * np.abs(dense.weight).sum(axis=0).max() / dense.weight.shape[0] < 2**24
        assert dense.limit * np.abs(dense.weight.astype(np.float64)).sum(axis=0).max() < 2**24
    assert bert.MAX_TOKENS * bert._SHARE * bert._CONTENT < 2**24


def test_functions_without_library_are_close_to_the_real_ones() -> None:
    x = np.linspace(-15, 15, 2001, dtype=np.float32)
    real = np.array([each / 2 * (1 + erf(each / 2**0.5)) for each in x.astype(float)])
    assert bert._gelu(x) == pytest.approx(real, abs=5e-6)
    below = np.minimum(x, 0)
    assert bert._exp(below) == pytest.approx(np.exp(below.astype(float)), rel=5e-5, abs=1e-9)


@pytest.mark.parametrize("tokens", [[WORDS], [0] * 129])
def test_what_the_model_cannot_read_is_an_error(tokens: list[int]) -> None:
    with pytest.raises((IndexError, ValueError)):
        Bert.read(model()).mean(tokens)
