"""The model of the image is the one that was asked for, or there is none and one line says why."""

import hashlib
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from bot.numeric.embedder import open_embedder
from tests.numeric.tiny_model import Tiny, tokenizer

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: the test's output is read."""


@pytest.fixture
def variables(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables of a build, and a server that has what they name."""
    files = {"onnx/model_quantized.onnx": Tiny().content(), "tokenizer.json": tokenizer()}
    for name, content in files.items():
        path = tmp_path / "served" / COMMIT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    handler = partial(Silent, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        model, words = (hashlib.sha256(content).hexdigest() for content in files.values())
        yield {
            "MODEL_URL": f"http://127.0.0.1:{server.server_port}",
            "MODEL_COMMIT": COMMIT,
            "MODEL_SHA256": model,
            "VOCABULARY_SHA256": words,
        }
        server.shutdown()


def fetch(folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.run(
        [sys.executable, "-I", ROOT / "tools/fetch_model.py", folder],
        env=environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_was_fetched_can_be_opened_and_carries_its_hashes(tmp_path: Path, variables: dict[str, str]) -> None:
    done = fetch(tmp_path / "models", variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [
        "model.onnx",
        "model.sha256",
        "tokenizer.json",
    ]
    assert open_embedder(tmp_path / "models").dimensions == 6


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MODEL_URL", "", "MODEL_URL must be the address"),
        ("MODEL_URL", "file:///etc", "MODEL_URL must be the address"),
        ("MODEL_URL", "http://127.0.0.1:9", "cannot be fetched"),
        ("MODEL_COMMIT", "main", "MODEL_COMMIT must be the commit to take, 40 hexadecimal digits; it is 'main'."),
        ("MODEL_COMMIT", "f" * 40, "cannot be fetched: HTTP Error 404"),
        ("MODEL_SHA256", "", "MODEL_SHA256 must be the SHA-256 of the ONNX model"),
        ("MODEL_SHA256", "0" * 64, "model_quantized.onnx is not the file that was asked for: its SHA-256 is "),
        ("VOCABULARY_SHA256", "0" * 64, "tokenizer.json is not the file that was asked for: its SHA-256 is "),
        ("VOCABULARY_SHA256", "x", "VOCABULARY_SHA256 must be the SHA-256 of tokenizer.json"),
    ],
)
def test_without_the_right_name_and_hash_nothing_is_written(
    tmp_path: Path, variables: dict[str, str], name: str, value: str, expected: str
) -> None:
    done = fetch(tmp_path / "models", variables | {name: value})
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("No model: ")
    assert expected in done.stderr
    assert not (tmp_path / "models").exists()
