"""Fixtures that all tests share."""

import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.agent_folders import AGENT_FOLDERS
from tests.examples import examples

# The tests start hundreds of processes. Without compiled modules on disk, each loads the bot ten times more slowly.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 3_000_000_000
"""Bytes; the tests keep less than half of that at a time."""
KEPT_SECONDS = 86_400
"""So long the files of failed tests are kept."""


def use_memory_for_files() -> None:
    """Tests create and delete thousands of repositories: in memory, if there is room and programs may run there.

    Workers inherit the choice. Whoever sets TMPDIR has chosen.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    place = os.statvfs(MEMORY)
    if place.f_bavail * place.f_frsize > MEMORY_NEEDED and not place.f_flag & os.ST_NOEXEC:
        for folder in MEMORY.glob("precedent-tests-*"):  # of runs that failed or were killed
            if time.time() - folder.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="precedent-tests-", dir=MEMORY)


use_memory_for_files()

# How long an example takes says more about what else runs on this machine than about our code.
settings.register_profile(
    "tests", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fuzz", max_examples=4_000, deadline=None)
settings.load_profile("tests")

pytest_plugins = ["tests.fakes.fixtures", "tests.cli.fixtures", "tests.acceptance.fixtures"]

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_collection() -> None:
    """Thousands of tests live until the end, so the garbage collector need not scan them again and again."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that wait for minutes start first, so that the end of the run does not wait for them."""
    items.sort(key=lambda item: item.get_closest_marker("waits") is None)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Give the memory back; the files of tests that failed stay for whoever looks at them."""
    folder, is_worker = Path(tempfile.gettempdir()), "PYTEST_XDIST_WORKER" in os.environ
    if folder.parent == MEMORY and not is_worker and exitstatus != pytest.ExitCode.TESTS_FAILED:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real archives and reference cases next to the checkout; without it, the test is skipped."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"the archives are not here: {SHARED / 'data'}")
    return SHARED / "data"


@pytest.fixture(scope="session", autouse=True)
def cache_folder() -> Iterator[Path]:
    """The command line's cache, outside of the home folder of whoever runs the tests; their sessions are not read."""
    with tempfile.TemporaryDirectory(prefix="precedent-cache-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", folder)
        for agent in AGENT_FOLDERS:
            patch.setenv(agent, f"{folder}/no-sessions")
        yield Path(folder)
