"""The messages of a few threads, read from the records on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.domain.changes import Changes
from bot.domain.thread import Thread, Tombstone
from bot.local_cache.local_memory import LocalMemory, MemoryOptions
from bot.local_cache.location import open_memory
from bot.local_cache.messages import LocalMessages
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.paths import record_path
from bot.questions.passages import messages_of
from bot.sources.archive_file import read_archive
from tests.local_cache.conftest import SAMPLE
from tests.recall.samples import at, thread

THREADS = list(read_archive(SAMPLE))
NAMED = thread("docs/a b.md", "A page", "Its text.")
GONE = Tombstone(999, at(1))


@pytest.fixture
def local_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalMemory]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    memory = Memory(FolderStore(tmp_path / "store")).open()
    memory.stage(Changes(records=(*THREADS, NAMED, GONE)))
    memory.commit("sample")
    memory.close()
    with open_memory(MemoryOptions(tmp_path, tmp_path / "store")) as opened:
        yield opened


@pytest.mark.slow
def test_messages_are_those_of_the_records(local_memory: LocalMemory) -> None:
    threads = [record for record in (*THREADS, NAMED) if isinstance(record, Thread)]
    messages = LocalMessages(local_memory)([*(record.id for record in threads), GONE.id, 12_345])
    assert {key: tuple(thread_messages) for key, thread_messages in messages.items()} == {
        record.id: messages_of(record) for record in threads
    }


@pytest.mark.slow
def test_a_damaged_record_and_a_link_are_left_out_and_fields_of_the_wrong_type_are_missing(
    local_memory: LocalMemory, tmp_path: Path
) -> None:
    contents = [
        b"", b"{", b"[]", b"null", b"[" * 50_000, b'{"id": 48}', b'{"id": 48, "created_at": 7}', b"\xff\xfe",
        b'{"id": 48, "created_at": "2024-01-01", "comments": 7}', b'{"id": [], "created_at": "2024-01-01T00:00:00Z"}',
        b'{"id": 48, "created_at": "2024-01-01T00:00:00Z", "comments": [null]}',
    ]  # fmt: skip
    assert local_memory.store
    file = local_memory.store / record_path(48)
    for content in contents:
        file.write_bytes(content)
        assert LocalMessages(local_memory)([48, NAMED.id]).keys() == {NAMED.id}, content[:50]
    fields = {"id": 48, "created_at": "2024-01-01T00:00:00Z", "author": [], "body": 7, "author_association": {}}
    file.write_text(json.dumps(fields))
    (message,) = LocalMessages(local_memory)([48])[48]
    assert (message.author, message.role, message.text, message.comment_id) == ("ghost", "", "", None)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert LocalMessages(local_memory)([48]) == {}
