"""A local cache of the sample's history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS_SCHEMA, open_database
from bot.local_cache.sync import fill_cache
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory

SAMPLE = Path(__file__).resolve().parents[2] / "sample/history.jsonl"


@pytest.fixture(scope="session")
def memory(sample_store: Path) -> Iterator[Memory]:
    """The sample's history as a memory."""
    with closing(Memory(FolderStore(sample_store)).open()) as memory:
        yield memory


@pytest.fixture(scope="session")
def local_cache(memory: Memory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCache]:
    """The same history as a local cache."""
    database = open_database(tmp_path_factory.mktemp("glance") / "glance.db", CARDS_SCHEMA)
    fill_cache(database, memory, "1")
    local_cache = LocalCache(database)
    yield local_cache
    local_cache.close()
