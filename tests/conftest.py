"""Fixtures that every room's tests share."""

from pathlib import Path

import pytest

pytest_plugins = ["tests.fakes.fixtures"]

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real archives and reference cases that stands beside the checkout; tests skip without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"the archives are not here: {SHARED / 'data'}")
    return SHARED / "data"
