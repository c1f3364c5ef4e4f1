"""Fixtures that every room's tests share."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # some tests load onnxruntime themselves

pytest_plugins = ["tests.fakes.fixtures", "tests.cli.fixtures"]

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real archives and reference cases that stands beside the checkout; tests skip without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"the archives are not here: {SHARED / 'data'}")
    return SHARED / "data"


@pytest.fixture(scope="session", autouse=True)
def cache_folder() -> Iterator[Path]:
    """Where the command line keeps what it can make anew, instead of the home folder of whoever runs the tests."""
    with tempfile.TemporaryDirectory(prefix="precedent-cache-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", folder)
        yield Path(folder)
