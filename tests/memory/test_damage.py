"""Damage on the branch is found, reported and repaired by the next write, and never prevents a possible answer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from bot.domain.changes import Changes
from bot.domain.post import Post
from bot.domain.thread import Tombstone
from bot.index.protocol import LAYOUT_VERSION
from bot.memory.manifest import FORMAT, INDEX_FOLDER, ForeignFormat
from bot.memory.memory import Memory
from bot.memory.paths import record_path
from bot.memory.records import encode_record
from bot.memory.shards import DIGESTS, read_lines
from bot.reading.digest import digest
from tests.memory.samples import StoredMemory, at, find_threads, issue, remember, word_of

THREAD_IDS = range(1, 13)


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory of twelve threads and a tombstone, written in several runs."""
    stored = StoredMemory(tmp_path_factory.mktemp("model"))
    remember(stored.memory(), *(issue(number) for number in range(1, 10)))
    remember(stored.memory(), *(issue(number, 1) for number in range(8, 13)), Tombstone(99, at(1)))
    memory = stored.memory()
    memory.stage(Changes(posts=(Post(3, "said", at(1)), Post(4, "silent", at(1))), cursor=at(5)))
    memory.commit("said")
    stored.close()
    return stored.folder


@pytest.fixture
def full(original: Path, stored: StoredMemory) -> StoredMemory:
    """A copy of the original, for the test to damage."""
    shutil.copytree(original, stored.folder)
    return stored


def manifest_of(stored: StoredMemory) -> dict[str, object]:
    fields: dict[str, object] = json.loads(stored.files()["manifest.json"])
    return fields


def write_matching_hashes(stored: StoredMemory) -> None:
    """Put the hashes of the present index files into the manifest, as anybody with push access can."""
    index = {path[6:]: sha256(data).hexdigest() for path, data in stored.files("index").items()}
    stored.put({"manifest.json": json.dumps(manifest_of(stored) | {"index": index}).encode()})


def check_intact(stored: StoredMemory) -> None:
    """The index matches the manifest, all threads are found, and there are no notes."""
    hashes = {path[6:]: sha256(data).hexdigest() for path, data in stored.files("index").items()}
    assert hashes == manifest_of(stored)["index"]
    assert [path for path in stored.folder.rglob("*") if path.is_symlink()] == []
    memory = stored.memory()
    check_all_found(memory)
    assert (memory.notes, memory.state.manifest.threads) == ([], len(THREAD_IDS))
    assert not memory.commit("nothing to mend")


def check_all_found(memory: Memory, left_out: int = 0) -> None:
    for number in THREAD_IDS:
        assert find_threads(memory, word_of(number)) == ([number] if number != left_out else [])


def check_search_and_repair(stored: StoredMemory, *expected: str) -> None:
    """A search works and notes what was wrong; the next write repairs all of it."""
    memory = stored.memory()
    check_all_found(memory)
    assert all(word in " ".join(memory.notes) for word in expected)
    assert len(memory.notes) == len(set(memory.notes)) > 0
    assert remember(memory, issue(12, 2))
    check_intact(stored)
    assert stored.memory().records([12]) == {12: issue(12, 2)}


# -- the index -------------------------------------------------------------------------------------------------------


def largest(stored: StoredMemory) -> tuple[str, bytes]:
    return max(stored.files("index").items(), key=lambda item: len(item[1]))


def lose(stored: StoredMemory) -> None:
    stored.put(dict.fromkeys(stored.files("index")))


def truncate(stored: StoredMemory) -> None:
    path, data = largest(stored)
    stored.put({path: data[: len(data) // 2]})


def flip(stored: StoredMemory) -> None:
    path, data = largest(stored)
    position = Random(1).randrange(len(data))
    stored.put({path: data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]})


def flip_first(stored: StoredMemory) -> None:
    """Flip a bit in a byte that the structure depends on. A wrong number in a column shows only in the hash."""
    path, data = largest(stored)
    stored.put({path: bytes([data[0] ^ 1]) + data[1:]})


def lose_one(stored: StoredMemory) -> None:
    stored.put({largest(stored)[0]: None})


def add_one(stored: StoredMemory) -> None:
    stored.put({"index/MAIN_0123456789abcdef.seg": b"a stranger"})


def add_folder(stored: StoredMemory) -> None:
    stored.put({"index/deep/er/MAIN.seg": b"a stranger"})


def add_link(stored: StoredMemory) -> None:
    (stored.folder / "index/MAIN.tmp").symlink_to("/etc")


def change_analyser(stored: StoredMemory) -> None:
    stored.put({"manifest.json": json.dumps(manifest_of(stored) | {"analyser": "another"}).encode()})


def change_layout(stored: StoredMemory, layout: int | None) -> None:
    """Store a manifest and an index as another version may have written them."""
    stored.put({largest(stored)[0]: None})
    write_matching_hashes(stored)
    fields = {name: value for name, value in manifest_of(stored).items() if name != "layout"}
    stored.put({"manifest.json": json.dumps(fields | ({} if layout is None else {"layout": layout})).encode()})


def write_unknown_hashes(stored: StoredMemory) -> None:
    names = {"../../evil": "x", "a\nb": "y", "": "z", "index": "x" * 10_000}
    stored.put({"manifest.json": json.dumps(manifest_of(stored) | {"index": names}).encode()})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "expected_note"),
    [
        (lose, "damaged"),
        (truncate, "damaged"),
        (flip, "damaged"),
        (lose_one, "damaged"),
        (add_one, "MAIN_0123456789abcdef.seg"),
        (add_folder, "deep/er/MAIN.seg"),
        (add_link, "index/MAIN.tmp"),
        (change_analyser, "another analyser"),
        (write_unknown_hashes, "damaged"),
    ],
)
def test_a_damaged_index_is_rebuilt(
    full: StoredMemory, spoil: Callable[[StoredMemory], None], expected_note: str
) -> None:
    spoil(full)
    check_search_and_repair(full, expected_note, "rebuilt from 12 records")


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [truncate, flip_first, lose_one, add_one])
def test_a_damaged_index_is_detected_even_if_the_manifest_has_its_hashes(
    full: StoredMemory, spoil: Callable[[StoredMemory], None]
) -> None:
    spoil(full)
    write_matching_hashes(full)
    memory = full.memory()
    check_all_found(memory)
    assert "damaged" in memory.notes[0]
    check_search_and_repair(full, "damaged")


@pytest.mark.slow
def test_digests_of_another_version_are_rebuilt_with_the_index(full: StoredMemory) -> None:
    """Even those of unchanged threads; correct ones are not written again."""
    before = full.files("digests")
    lines, _ = read_lines(before["digests/0000.jsonl"])
    old = [json.dumps({**line, "title": "as it was made"} if key == 5 else line) for key, line in lines.items()]
    full.put({"digests/0000.jsonl": "\n".join([*old, '{"id":99,"title":"gone"}', "{"]).encode()})
    memory = full.memory()
    memory.rebuild_index()
    assert memory.commit("anew")
    assert full.files("digests") == before
    memory = full.memory()
    memory.rebuild_index()
    assert not any("digests" in path for path in memory.edits())


def test_an_index_of_this_version_that_cannot_be_opened_is_reported_as_damaged(full: StoredMemory) -> None:
    full.put(dict.fromkeys(full.files("index")) | {"index/MAIN_1.toc": b"of nobody"})
    write_matching_hashes(full)
    memory = full.memory()
    check_all_found(memory)
    assert memory.notes[0].startswith("The index was damaged (")
    assert "version" not in memory.notes[0]
    check_search_and_repair(full, "it was rebuilt from 12 records")


@pytest.mark.parametrize(("layout", "maker"), [(None, "an older version"), (LAYOUT_VERSION + 1, "a newer version")])
def test_an_index_of_another_version_is_rebuilt_and_not_called_damaged(
    full: StoredMemory, layout: int | None, maker: str
) -> None:
    change_layout(full, layout)
    check_search_and_repair(full, f"The index was made by {maker}: it was rebuilt from 12 records.")
    assert manifest_of(full)["layout"] == LAYOUT_VERSION


@pytest.mark.parametrize("spoil", [truncate, add_link, change_analyser])
def test_a_dry_run_answers_despite_damage_and_repairs_nothing(
    full: StoredMemory, spoil: Callable[[StoredMemory], None]
) -> None:
    spoil(full)
    before = full.files()
    dry = full.memory()
    dry.is_dry = True
    assert remember(dry, issue(12, 3))
    check_all_found(dry)
    assert full.files() == before


def test_a_write_without_a_search_repairs_the_index_too(full: StoredMemory) -> None:
    truncate(full)
    memory = full.memory()
    assert remember(memory, issue(12, 2))
    assert "rebuilt from 12 records" in memory.notes[0]
    check_intact(full)


@pytest.mark.slow
def test_a_repaired_index_of_one_segment_keeps_its_file_names(stored: StoredMemory) -> None:
    remember(stored.memory(), *(issue(number) for number in THREAD_IDS))
    before = stored.files("index")
    flip(stored)
    assert stored.files("index").keys() == before.keys()
    check_all_found(stored.memory())
    assert remember(stored.memory(), issue(12, 1))
    check_intact(stored)
    for _ in range(2):
        flip(stored)
        memory = stored.memory()
        check_all_found(memory)
        assert memory.commit("mended by a run that had nothing else to write")
        check_intact(stored)


def test_a_link_to_foreign_files_is_refused_and_removed(full: StoredMemory, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("kept")
    (full.folder / "index/MAIN.tmp").symlink_to(victim)
    check_search_and_repair(full, "MAIN.tmp")
    assert [file.name for file in victim.iterdir()] == ["precious"]


# -- the manifest ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xff", b'{"format": 2, "threads": -1}', b'{"format": 2, "threads": "many"}', None]
)
def test_memory_without_a_manifest_is_read_and_counted_again(full: StoredMemory, data: bytes | None) -> None:
    full.put({"manifest.json": data})
    memory = full.memory()
    assert memory.state.manifest.cursor is None
    check_all_found(memory)
    assert "The manifest was" in memory.notes[0]
    assert memory.state.manifest.threads == len(THREAD_IDS)
    assert remember(full.memory(), issue(1, 5))
    assert manifest_of(full)["threads"] == len(THREAD_IDS)
    check_intact(full)


def test_a_memory_of_a_newer_version_is_neither_read_nor_overwritten(full: StoredMemory) -> None:
    later = {"format": FORMAT + 1, "index": {"of": "another shape"}, "threads": ["x"], "new": "field"}
    full.put({"manifest.json": json.dumps(later).encode(), "index/new.bin": b"another index"})
    before = full.files()
    with pytest.raises(ForeignFormat, match="newer Precedent"):
        full.memory()
    assert full.files() == before


def test_a_run_that_meets_a_newer_format_while_writing_writes_nothing(full: StoredMemory) -> None:
    memory = full.memory()
    memory.stage(Changes(records=(issue(50),)))
    full.put({"manifest.json": json.dumps({"format": FORMAT + 1}).encode()})
    before = full.files()
    with pytest.raises(ForeignFormat, match="newer Precedent"):
        memory.commit("Remember")
    assert full.files() == before


# -- records and shards ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("data", [b"", b"{", b"[" * 50_000, b"\xff", encode_record(issue(6)), b"<<<<<<< HEAD\n{}"])
def test_a_damaged_record_is_left_out_until_the_thread_is_read_again(full: StoredMemory, data: bytes) -> None:
    path = record_path(5)
    full.put({path: data})
    memory = full.memory()
    assert memory.records([5, 6]) == {6: issue(6)}
    assert [path in note for note in memory.notes] == [True]
    check_all_found(memory)
    memory.rebuild_index()
    check_all_found(memory, left_out=5)
    assert len(list(memory.state.every_record())) == len(THREAD_IDS)
    assert len(memory.notes) == 1
    assert memory.commit("rebuilt without it")
    remember(full.memory(), issue(5, 2))
    assert manifest_of(full)["threads"] == len(THREAD_IDS)
    check_intact(full)


def test_a_memory_with_nothing_left_but_an_index_file_starts_again(stored: StoredMemory) -> None:
    stored.put({f"{INDEX_FOLDER}/MAIN_0123456789abcdef.seg": b"a segment"})
    memory = stored.memory()
    assert memory.state.manifest.cursor is None
    assert remember(memory, issue(1))
    assert f"{INDEX_FOLDER}/MAIN_0123456789abcdef.seg" not in stored.files()


def test_foreign_files_among_the_records_are_ignored(full: StoredMemory) -> None:
    full.put({"records/README.md": b"# Records", "records/0000/notes.txt": b"x", "records/0000/deep/1.json": b"{}"})
    full.put({"records/0000/1000.json": encode_record(issue(1))})
    memory = full.memory()
    memory.rebuild_index()
    check_all_found(memory)
    assert [record.id for record in memory.state.every_record()] == [*THREAD_IDS, 99]


def test_a_damaged_digest_line_is_rebuilt_from_its_record(full: StoredMemory) -> None:
    path = "digests/0000.jsonl"
    lines = full.files()[path].split(b"\n")
    full.put({path: b"\n".join([*lines[:4], lines[4][:-9], *lines[5:]])})
    memory = full.memory()
    remember(memory, issue(12, 2))
    assert [path in note for note in memory.notes] == [True]
    shard = full.files()[path]
    assert list(read_lines(shard)[0]) == list(THREAD_IDS)
    assert shard.split(b"\n")[4] == DIGESTS.line(digest(issue(5))).encode() == lines[4]
    check_intact(full)


# -- all at once -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_byte_in_every_file_fails_no_run(full: StoredMemory, seed: int) -> None:
    rng = Random(seed)
    flipped = {path: bytearray(data) for path, data in full.files().items()}
    for data in flipped.values():
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(7)
    full.put({path: bytes(data) for path, data in flipped.items()})
    memory = full.memory()
    find_threads(memory, "fails")
    memory.state.comments(THREAD_IDS)
    threads = [issue(number, 400_000) for number in THREAD_IDS]  # later than any time with another day or month
    assert remember(memory, *threads)
    reopened = full.memory()
    assert reopened.records(THREAD_IDS) == {thread.id: thread for thread in threads}
    assert set(find_threads(reopened, "fails")) >= set(THREAD_IDS)
