"""A glance of the sample's history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.doors.archives import read_archive
from bot.glance.file import made
from bot.glance.fill import fill
from bot.glance.glance import Glance
from bot.kept import Changes
from bot.memory.folder import FolderStore
from bot.memory.memory import Memory

SAMPLE = Path(__file__).resolve().parents[2] / "sample/history.jsonl"


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """The sample's history as a memory."""
    memory = Memory(FolderStore(tmp_path_factory.mktemp("sample") / "store"), repo="octo-org/linkbarn").open()
    memory.stage(Changes(records=tuple(read_archive(SAMPLE))))
    memory.commit("sample")
    yield memory
    memory.close()


@pytest.fixture(scope="session")
def glance(memory: Memory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Glance]:
    """The same as a glance."""
    database = made(tmp_path_factory.mktemp("glance") / "glance.db")
    fill(database, memory, "1")
    glance = Glance(database)
    yield glance
    glance.close()
