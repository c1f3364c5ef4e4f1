"""An index in parts on a store: what is fetched, what is written, and how damage is repaired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.changes import Changes
from bot.domain.thread import Tombstone
from bot.index.protocol import Sizes
from bot.memory.memory import Memory
from tests.memory.samples import StoredMemory, at, find_threads, issue, remember, word_of

pytestmark = pytest.mark.slow

SMALL = Sizes(documents=5, rows=4, entries=2, bucket=150, heavy=60)
THREAD_IDS = range(1, 13)


def open_memory(stored: StoredMemory) -> Memory:
    return Memory(stored.store(), sizes=SMALL, sleep=lambda _: None).open()


@pytest.fixture
def full(stored: StoredMemory) -> StoredMemory:
    """A memory of twelve threads whose index is in parts; the last thread was changed later."""
    remember(open_memory(stored), *(issue(number) for number in THREAD_IDS))
    remember(open_memory(stored), issue(12, 1))
    assert len(part_files(stored)) > 10
    return stored


def part_files(stored: StoredMemory) -> dict[str, bytes]:
    return stored.files("index-parts")


def links(stored: StoredMemory) -> list[Path]:
    return [path for path in stored.folder.rglob("*") if path.is_symlink()]


def check_all_found(memory: Memory) -> None:
    for number in THREAD_IDS:
        assert find_threads(memory, word_of(number)) == [number]


def test_parts_written_by_one_run_are_read_by_the_next(full: StoredMemory) -> None:
    memory = full.memory()
    check_all_found(memory)
    assert set(memory.entries(THREAD_IDS)) == set(THREAD_IDS)
    assert memory.notes == []
    assert not memory.commit("nothing to write")
    assert {path.count("/") for path in part_files(full)} == {2}
    assert {path.rpartition(".")[2] for path in full.files("index")} == {"core", "seg", "toc"}


def test_an_update_rewrites_no_part(full: StoredMemory) -> None:
    before = part_files(full)
    for revision in range(2, 5):
        memory = Memory(full.store(), sizes=replace(SMALL, documents=40), sleep=lambda _: None).open()
        remember(memory, issue(3, revision))
    assert part_files(full) == before
    assert open_memory(full).entries([3])[3].updated_at == at(4)


def test_no_part_keeps_words_of_a_deleted_thread(full: StoredMemory) -> None:
    before = part_files(full)
    assert any(word_of(7).encode() in data for data in before.values())
    remember(open_memory(full), Tombstone(7, at(9)))
    after = part_files(full)
    assert not any(word_of(7).encode() in data for data in after.values())
    assert len(after) < 2 * len(before)
    memory = open_memory(full)
    assert find_threads(memory, word_of(7)) == []
    assert find_threads(memory, word_of(8)) == [8]
    assert memory.notes == []


def test_parts_are_removed_together_with_their_index(full: StoredMemory) -> None:
    before = part_files(full)
    memory = full.memory()
    memory.rebuild_index()
    memory.commit("in one file")
    assert before
    assert part_files(full) == {}
    check_all_found(full.memory())


def test_two_concurrent_runs_both_keep_what_they_remember(full: StoredMemory) -> None:
    slow, fast = open_memory(full), open_memory(full)
    slow.stage(Changes(records=(issue(20),)))
    check_all_found(slow)
    fast.stage(Changes(records=(issue(21),)))
    fast.rebuild_index()
    assert fast.commit("first")
    assert slow.commit("second")
    memory = open_memory(full)
    check_all_found(memory)
    assert set(memory.entries([20, 21])) == {20, 21}
    assert memory.notes == []


# -- damage ----------------------------------------------------------------------------------------------------------


def lose(stored: StoredMemory) -> None:
    stored.put(dict.fromkeys(part_files(stored)))


def empty(stored: StoredMemory) -> None:
    stored.put(dict.fromkeys(part_files(stored), b""))


def flip(stored: StoredMemory) -> None:
    stored.put({path: data[:-1] + bytes([data[-1] ^ 1]) for path, data in part_files(stored).items()})


def swap(stored: StoredMemory) -> None:
    files = part_files(stored)
    stored.put(dict(zip(files, reversed(list(files.values())), strict=True)))


def link(stored: StoredMemory) -> None:
    for path in part_files(stored):
        stored.put({path: None})
        (stored.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (stored.folder / path).symlink_to("/etc/passwd")


def enlarge(stored: StoredMemory) -> None:
    stored.put(dict.fromkeys(part_files(stored), bytes(17 << 20)))


@pytest.mark.parametrize("spoil", [lose, empty, flip, swap, link, enlarge])
def test_damaged_parts_are_rebuilt(full: StoredMemory, spoil: Callable[[StoredMemory], None]) -> None:
    intact = part_files(full)
    spoil(full)
    memory = open_memory(full)
    check_all_found(memory)
    assert "rebuilt from 12 records" in " ".join(memory.notes)
    assert remember(memory, issue(12, 2))
    assert links(full) == []
    repaired = open_memory(full)
    check_all_found(repaired)
    assert repaired.notes == []
    assert set(repaired.entries(THREAD_IDS)) == set(THREAD_IDS)
    assert len(part_files(full)) == pytest.approx(len(intact), abs=6)


def test_foreign_files_among_the_parts_are_removed_by_the_next_write(full: StoredMemory) -> None:
    full.put({"index-parts/0/deep/er": b"x", "index-parts/stranger": b"x"})
    (full.folder / "index-parts/link").symlink_to("/etc")
    memory = open_memory(full)
    check_all_found(memory)
    assert memory.notes == []
    remember(memory, issue(12, 2))
    assert all(len(path.split("/")) == 3 and len(path) == len("index-parts/0/") + 32 for path in part_files(full))
    assert links(full) == []
