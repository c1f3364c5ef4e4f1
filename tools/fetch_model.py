"""Fetches the text model of semantic search into a folder, by commit and SHA-256: in the image's build, or by hand."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

MAX_BYTES = 512 * 1024 * 1024
TIMEOUT = 60
DEFAULTS = {"MODEL_FILE": "onnx/model_quantized.onnx"}
FORMS = {
    "MODEL_URL": (r"https?://[!-~]+", "the address below which the commits of the model's repository are, http(s)://…"),
    "MODEL_COMMIT": (r"[0-9a-f]{40}", "the commit to take, 40 hexadecimal digits"),
    "MODEL_FILE": (r"[A-Za-z0-9._/-]+\.onnx", "the path of the ONNX model in the repository"),
    "MODEL_SHA256": (r"[0-9a-f]{64}", "the SHA-256 of the ONNX model, 64 hexadecimal digits"),
    "VOCABULARY_SHA256": (r"[0-9a-f]{64}", "the SHA-256 of tokenizer.json, 64 hexadecimal digits"),
}
"""Each variable: what it must look like, and what it is."""


class NotFetched(Exception):
    """One line that says why there is no model."""


class File(NamedTuple):
    """What is fetched from ``url`` and kept as ``name`` if it hashes to ``sha256``."""

    name: str
    url: str
    sha256: str


def asked(environ: Mapping[str, str]) -> list[File]:
    """The files that the variables name; raises NotFetched for those that are missing or malformed."""
    given = {name: environ.get(name, "").strip() or DEFAULTS.get(name, "") for name in FORMS}
    for name, (form, meaning) in FORMS.items():
        if not re.fullmatch(form, given[name], re.ASCII):
            raise NotFetched(f"{name} must be {meaning}; it is {given[name][:80]!a}. docs/semantic.md tells more")
    base = f"{given['MODEL_URL'].rstrip('/')}/{given['MODEL_COMMIT']}"
    return [
        File("model.onnx", f"{base}/{given['MODEL_FILE']}", given["MODEL_SHA256"]),
        File("tokenizer.json", f"{base}/tokenizer.json", given["VOCABULARY_SHA256"]),
    ]


def fetch(file: File) -> bytes:
    """Its content; raises NotFetched if it cannot be had or is not what the hash says."""
    try:
        with urllib.request.urlopen(file.url, timeout=TIMEOUT) as response:
            content: bytes = response.read(MAX_BYTES + 1)
    except (OSError, HTTPException, ValueError) as error:
        raise NotFetched(f"{file.url} cannot be fetched: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise NotFetched(f"{file.url} is not the file that was asked for: its SHA-256 is {found}, not {file.sha256}")
    return content


def write(folder: Path, contents: Mapping[str, bytes]) -> None:
    """The files, and beside them the hashes that are compared whenever the model is opened."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    hashes = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items())
    (folder / "model.sha256").write_text(hashes, encoding="ascii")


def main(arguments: list[str]) -> int:
    """Fetch into the folder that is the only argument; if that fails, write only a line on stderr and return 1."""
    if len(arguments) != 1:
        print("usage: fetch_model.py FOLDER, with the variables " + ", ".join(FORMS), file=sys.stderr)
        return 2
    try:
        write(Path(arguments[0]), {file.name: fetch(file) for file in asked(os.environ)})
    except (NotFetched, OSError) as error:
        print(f"No model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
