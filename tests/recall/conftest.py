"""A library of real parts: a memory in a folder of the test's own."""

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
    """Gives a function that puts records into the memory and returns it, written and opened again."""
    memory = Memory(FolderStore(tmp_path / "store"))

    def put(*records: Record) -> Memory:
        memory.open()
        memory.stage(Changes(records=records))
        memory.commit("Remember")
        return memory.open()

    yield put
    memory.close()
