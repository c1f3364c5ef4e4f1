"""A library of real parts: a memory in a temporary folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.domain.changes import Changes
from bot.domain.thread import Record
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory

Remember = Callable[..., Memory]


@pytest.fixture
def remember(tmp_path: Path) -> Iterator[Remember]:
    """A function that stores records in the memory and returns it, committed and reopened."""
    memory = Memory(FolderStore(tmp_path / "store"))

    def store(*records: Record) -> Memory:
        memory.open()
        memory.stage(Changes(records=records))
        memory.commit("Remember")
        return memory.open()

    yield store
    memory.close()
