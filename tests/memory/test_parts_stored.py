"""An index in parts on a store: what is fetched, what is written, and what damage is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.domain.changes import Changes
from bot.domain.thread import Tombstone
from bot.index.protocol import Sizes
from bot.memory.memory import Memory
from bot.memory.store import ReadOnlyStore
from tests.memory.samples import Place, at, found, issue, remember, word_of

SMALL = Sizes(documents=5, rows=4, entries=2, bucket=150, heavy=60)
HELD = range(1, 13)


def memory_of(place: Place) -> Memory:
    return Memory(place.store(), sizes=SMALL, sleep=lambda _: None).open()


@pytest.fixture
def full(place: Place) -> Place:
    """A memory of twelve threads, whose index is in parts, and of one that came later."""
    remember(memory_of(place), *(issue(number) for number in HELD))
    remember(memory_of(place), issue(12, 1))
    assert len(parts_of(place)) > 10
    return place


def parts_of(place: Place) -> dict[str, bytes]:
    return place.files("index-parts")


def finds_all(memory: Memory) -> None:
    for number in HELD:
        assert found(memory, word_of(number)) == [number]


@pytest.mark.slow
def test_what_one_run_writes_in_parts_another_one_reads(full: Place) -> None:
    memory = full.memory()
    finds_all(memory)
    assert set(memory.entries(HELD)) == set(HELD)
    assert memory.notes == []
    assert not memory.commit("nothing to write")
    assert {path.count("/") for path in parts_of(full)} == {2}
    assert {path.rpartition(".")[2] for path in full.files("index")} == {"core", "seg", "toc"}


@pytest.mark.slow
def test_an_update_writes_no_part_again(full: Place) -> None:
    before = parts_of(full)
    for revision in range(2, 5):
        memory = Memory(full.store(), sizes=replace(SMALL, documents=40), sleep=lambda _: None).open()
        remember(memory, issue(3, revision))
    assert parts_of(full) == before
    assert memory_of(full).entries([3])[3].updated_at == at(4)


@pytest.mark.slow
def test_nothing_of_a_removed_thread_stays_in_any_part(full: Place) -> None:
    before = parts_of(full)
    assert any(word_of(7).encode() in data for data in before.values())
    remember(memory_of(full), Tombstone(7, at(9)))
    after = parts_of(full)
    assert not any(word_of(7).encode() in data for data in after.values())
    assert len(after) < 2 * len(before)
    memory = memory_of(full)
    assert found(memory, word_of(7)) == []
    assert found(memory, word_of(8)) == [8]
    assert memory.notes == []


@pytest.mark.slow
def test_parts_of_an_index_that_is_gone_go_with_it(full: Place) -> None:
    before = parts_of(full)
    memory = full.memory()
    memory.rebuild_index()
    memory.commit("in one file")
    assert before
    assert parts_of(full) == {}
    finds_all(full.memory())


@pytest.mark.slow
def test_of_two_runs_at_once_both_keep_what_they_remember(full: Place) -> None:
    slow, fast = memory_of(full), memory_of(full)
    slow.stage(Changes(records=(issue(20),)))
    finds_all(slow)
    fast.stage(Changes(records=(issue(21),)))
    fast.rebuild_index()
    assert fast.commit("first")
    assert slow.commit("second")
    memory = memory_of(full)
    finds_all(memory)
    assert set(memory.entries([20, 21])) == {20, 21}
    assert memory.notes == []


@pytest.mark.slow
def test_a_dry_run_reads_parts_and_writes_none(full: Place) -> None:
    before = full.files()
    memory = Memory(ReadOnlyStore(full.store()), sizes=SMALL).open()
    remember(memory, issue(30), *(issue(number, 5) for number in HELD))
    memory.rebuild_index()
    memory.commit("a try")
    finds_all(memory)
    assert found(memory, word_of(30)) == [30]
    assert full.files() == before


# -- damage ----------------------------------------------------------------------------------------------------------


def lose(place: Place) -> None:
    place.put(dict.fromkeys(parts_of(place)))


def empty(place: Place) -> None:
    place.put(dict.fromkeys(parts_of(place), b""))


def flip(place: Place) -> None:
    place.put({path: data[:-1] + bytes([data[-1] ^ 1]) for path, data in parts_of(place).items()})


def swap(place: Place) -> None:
    files = parts_of(place)
    place.put(dict(zip(files, reversed(list(files.values())), strict=True)))


def link(place: Place) -> None:
    for path in parts_of(place):
        place.put({path: None})
        place.link(path, "/etc/passwd")


def swell(place: Place) -> None:
    place.put(dict.fromkeys(parts_of(place), bytes(17 << 20)))


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [lose, empty, flip, swap, link, swell])
def test_parts_that_are_not_what_they_should_be_are_made_anew(full: Place, spoil: Callable[[Place], None]) -> None:
    honest = parts_of(full)
    spoil(full)
    memory = memory_of(full)
    finds_all(memory)
    assert "rebuilt from 12 records" in " ".join(memory.notes)
    assert remember(memory, issue(12, 2))
    assert full.links() == []
    mended = memory_of(full)
    finds_all(mended)
    assert mended.notes == []
    assert set(mended.entries(HELD)) == set(HELD)
    assert len(parts_of(full)) == pytest.approx(len(honest), abs=6)


@pytest.mark.slow
def test_what_strangers_put_beside_the_parts_goes_with_the_next_write(full: Place) -> None:
    full.put({"index-parts/0/deep/er": b"x", "index-parts/stranger": b"x"})
    full.link("index-parts/link", "/etc")
    memory = memory_of(full)
    finds_all(memory)
    assert memory.notes == []
    remember(memory, issue(12, 2))
    assert all(len(path.split("/")) == 3 and len(path) == len("index-parts/0/") + 32 for path in parts_of(full))
    assert full.links() == []
