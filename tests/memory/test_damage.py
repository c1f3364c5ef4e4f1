"""Damage on the branch: it is found, said, mended by the next write, and never costs an answer that could be had."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from bot.domain.changes import AnswerRecord, Changes
from bot.domain.thread import Tombstone
from bot.index.protocol import LAYOUT
from bot.memory.manifest import FORMAT, PARTS, ForeignFormat
from bot.memory.memory import Memory
from bot.memory.places import record_path
from bot.memory.records import encode_record
from bot.memory.shards import DIGESTS, read_lines
from bot.memory.store import ReadOnlyStore
from bot.memory.stored_index import part_path
from bot.reading.digest import digest
from tests.index import hostile_index
from tests.memory.samples import KINDS, Place, at, found, issue, remember, word_of

SCRIPT = Path(hostile_index.__file__)
HELD = range(1, 13)


@pytest.fixture(scope="session", params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A memory of twelve threads and a tombstone, written in several runs."""
    place = Place(tmp_path_factory.mktemp("model"), request.param)
    remember(place.memory(), *(issue(number) for number in range(1, 10)))
    remember(place.memory(), *(issue(number, 1) for number in range(8, 13)), Tombstone(99, at(1)))
    memory = place.memory()
    memory.stage(Changes(answers=(AnswerRecord(3, "said", at(1)), AnswerRecord(4, "silent", at(1))), cursor=at(5)))
    memory.commit("said")
    yield place
    place.close()


@pytest.fixture
def full(model: Place, tmp_path: Path) -> Iterator[Place]:
    """A copy of the model, to be spoiled."""
    copy = Place(tmp_path / "copy", model.kind)
    shutil.copytree(model.folder, copy.folder)
    yield copy
    copy.close()


def manifest_of(place: Place) -> dict[str, object]:
    fields: dict[str, object] = json.loads(place.files()["manifest.json"])
    return fields


def vouch(place: Place) -> None:
    """Write into the manifest the hashes of whatever index is there, as whoever can push is able to."""
    index = {path[6:]: sha256(data).hexdigest() for path, data in place.files("index").items()}
    place.put({"manifest.json": json.dumps(manifest_of(place) | {"index": index}).encode()})


def is_whole(place: Place) -> None:
    """Nothing is wrong any more: an index that its manifest vouches for, all threads found, nothing to say."""
    held = {path[6:]: sha256(data).hexdigest() for path, data in place.files("index").items()}
    assert held == manifest_of(place)["index"]
    assert place.links() == []
    memory = place.memory()
    finds_all(memory)
    assert (memory.notes, memory.state.manifest.threads) == ([], len(HELD))
    assert not memory.commit("nothing to mend")


def finds_all(memory: Memory, left_out: int = 0) -> None:
    for number in HELD:
        assert found(memory, word_of(number)) == ([number] if number != left_out else [])


def answers_and_mends(place: Place, *said: str) -> None:
    """A search works and says what was wrong; the next write puts all of it right."""
    memory = place.memory()
    finds_all(memory)
    assert all(word in " ".join(memory.notes) for word in said)
    assert len(memory.notes) == len(set(memory.notes)) > 0
    assert remember(memory, issue(12, 2))
    is_whole(place)
    assert place.memory().records([12]) == {12: issue(12, 2)}


# -- the index -------------------------------------------------------------------------------------------------------


def largest(place: Place) -> tuple[str, bytes]:
    return max(place.files("index").items(), key=lambda item: len(item[1]))


def lose(place: Place) -> None:
    place.put(dict.fromkeys(place.files("index")))


def truncate(place: Place) -> None:
    path, data = largest(place)
    place.put({path: data[: len(data) // 2]})


def flip(place: Place) -> None:
    path, data = largest(place)
    at_byte = Random(1).randrange(len(data))
    place.put({path: data[:at_byte] + bytes([data[at_byte] ^ 1]) + data[at_byte + 1 :]})


def flip_first(place: Place) -> None:
    """Of all bytes one on which the structure depends; a wrong number in a column only its hash can tell."""
    path, data = largest(place)
    place.put({path: bytes([data[0] ^ 1]) + data[1:]})


def lose_one(place: Place) -> None:
    place.put({largest(place)[0]: None})


def add_one(place: Place) -> None:
    place.put({"index/MAIN_0123456789abcdef.seg": b"a stranger"})


def add_folder(place: Place) -> None:
    place.put({"index/deep/er/MAIN.seg": b"a stranger"})


def add_link(place: Place) -> None:
    place.link("index/MAIN.tmp", "/etc")


def another_analyser(place: Place) -> None:
    place.put({"manifest.json": json.dumps(manifest_of(place) | {"analyser": "another"}).encode()})


def another_layout(place: Place, layout: int | None) -> None:
    """The manifest and an index file as another version may have written them."""
    place.put({largest(place)[0]: None})
    vouch(place)
    fields = {name: value for name, value in manifest_of(place).items() if name != "layout"}
    place.put({"manifest.json": json.dumps(fields | ({} if layout is None else {"layout": layout})).encode()})


def unknown_hashes(place: Place) -> None:
    names = {"../../evil": "x", "a\nb": "y", "": "z", "index": "x" * 10_000}
    place.put({"manifest.json": json.dumps(manifest_of(place) | {"index": names}).encode()})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lose, "damaged"),
        (truncate, "damaged"),
        (flip, "damaged"),
        (lose_one, "damaged"),
        (add_one, "MAIN_0123456789abcdef.seg"),
        (add_folder, "deep/er/MAIN.seg"),
        (add_link, "index/MAIN.tmp"),
        (another_analyser, "another analyser"),
        (unknown_hashes, "damaged"),
    ],
)
def test_an_index_that_is_not_as_it_should_be_is_made_anew(
    full: Place, spoil: Callable[[Place], None], said: str
) -> None:
    spoil(full)
    answers_and_mends(full, said, "rebuilt from 12 records")


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [truncate, flip_first, lose_one, add_one])
def test_an_index_that_its_manifest_vouches_for_is_not_believed_for_it(
    full: Place, spoil: Callable[[Place], None]
) -> None:
    spoil(full)
    vouch(full)
    memory = full.memory()
    finds_all(memory)
    assert "damaged" in memory.notes[0]
    answers_and_mends(full, "damaged")


@pytest.mark.slow
def test_digests_of_another_version_are_made_anew_with_the_index(full: Place) -> None:
    """Those of threads that did not change, too; what is as it should be is not written again."""
    before = full.files("digests")
    lines, _ = read_lines(before["digests/0000.jsonl"])
    old = [json.dumps({**line, "title": "as it was made"} if key == 5 else line) for key, line in lines.items()]
    full.put({"digests/0000.jsonl": "\n".join([*old, '{"id":99,"title":"gone"}', "{"]).encode()})
    memory = full.memory()
    memory.rebuild_index()
    assert memory.commit("anew")
    assert full.files("digests") == before
    assert not any("digests" in path for path in edits_of(full))


def edits_of(place: Place) -> dict[str, object]:
    """What a memory would write that made its index anew."""
    memory = place.memory()
    memory.rebuild_index()
    return dict(memory.edits())


def test_an_index_of_this_version_that_cannot_be_opened_is_damaged_and_nothing_else(full: Place) -> None:
    full.put(dict.fromkeys(full.files("index")) | {"index/MAIN_1.toc": b"of nobody"})
    vouch(full)
    memory = full.memory()
    finds_all(memory)
    assert memory.notes[0].startswith("The index was damaged (")
    assert "version" not in memory.notes[0]
    answers_and_mends(full, "it was rebuilt from 12 records")


@pytest.mark.parametrize(("layout", "maker"), [(None, "an older version"), (LAYOUT + 1, "a newer version")])
def test_an_index_of_another_version_is_made_anew_and_not_called_damaged(
    full: Place, layout: int | None, maker: str
) -> None:
    another_layout(full, layout)
    answers_and_mends(full, f"The index was made by {maker}: it was rebuilt from 12 records.")
    assert manifest_of(full)["layout"] == LAYOUT


@pytest.mark.parametrize("spoil", [truncate, add_link, another_analyser])
def test_a_dry_run_answers_in_spite_of_damage_and_leaves_it_there(full: Place, spoil: Callable[[Place], None]) -> None:
    spoil(full)
    before = full.files()
    dry = Memory(ReadOnlyStore(full.store())).open()
    assert remember(dry, issue(12, 3))
    finds_all(dry)
    assert full.files() == before


def test_a_write_without_a_search_mends_the_index_too(full: Place) -> None:
    truncate(full)
    memory = full.memory()
    assert remember(memory, issue(12, 2))
    assert "rebuilt from 12 records" in memory.notes[0]
    is_whole(full)


@pytest.mark.slow
def test_an_index_of_one_segment_is_put_back_under_the_very_same_names(place: Place) -> None:
    remember(place.memory(), *(issue(number) for number in HELD))
    before = place.files("index")
    flip(place)
    assert place.files("index").keys() == before.keys()
    finds_all(place.memory())
    assert remember(place.memory(), issue(12, 1))
    is_whole(place)
    for _ in range(2):
        flip(place)
        memory = place.memory()
        finds_all(memory)
        assert memory.commit("mended by a run that had nothing else to write")
        is_whole(place)


# -- the ten attacks -------------------------------------------------------------------------------------------------


def hostile_files(where: str, tmp_path: Path) -> dict[str, bytes]:
    """An index by plain Whoosh that runs code when it is read: it makes the folder ``canary``."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    command = [sys.executable, SCRIPT, where, str(folder), str(tmp_path / "canary")]
    subprocess.run(command, check=True, capture_output=True)
    return {f"index/{file.name}": file.read_bytes() for file in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("where", hostile_index.PLACES)
def test_a_hostile_index_that_its_manifest_vouches_for_is_refused_and_replaced(
    full: Place, where: str, tmp_path: Path
) -> None:
    hostile = hostile_files(where, tmp_path)
    full.put(dict.fromkeys(full.files("index")) | hostile)
    vouch(full)
    answers_and_mends(full, "damaged")
    assert not hostile.keys() & full.files("index").keys()
    assert not (tmp_path / "canary").exists()


def test_a_link_to_somebodys_files_is_refused_and_removed(full: Place, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("kept")
    full.link("index/MAIN.tmp", str(victim))
    answers_and_mends(full, "MAIN.tmp")
    assert [file.name for file in victim.iterdir()] == ["precious"]


# -- the manifest ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xff", b'{"format": 1, "threads": -1}', b'{"format": 1, "threads": "many"}', None]
)
def test_without_its_manifest_memory_is_read_counted_and_caught_up_with(full: Place, data: bytes | None) -> None:
    full.put({"manifest.json": data})
    memory = full.memory()
    assert memory.state.manifest.cursor is None
    finds_all(memory)
    assert "The manifest was" in memory.notes[0]
    assert (memory.state.manifest.threads, memory.state.manifest.tombstones) == (len(HELD), 1)
    assert remember(full.memory(), issue(1, 5))
    assert manifest_of(full)["threads"] == len(HELD)
    assert manifest_of(full)["tombstones"] == 1
    is_whole(full)


def test_what_a_newer_version_wrote_is_neither_read_nor_written_over(full: Place) -> None:
    later = {"format": FORMAT + 1, "index": {"of": "another shape"}, "threads": ["x"], "new": "field"}
    full.put({"manifest.json": json.dumps(later).encode(), "index/new.bin": b"another index"})
    before = full.files()
    with pytest.raises(ForeignFormat, match="newer Precedent"):
        full.memory()
    assert full.files() == before


def test_who_meets_a_newer_format_while_it_writes_writes_nothing(full: Place) -> None:
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
def test_a_damaged_record_is_left_out_and_comes_back_when_it_is_read_again(full: Place, data: bytes) -> None:
    path = record_path(5)
    full.put({path: data})
    memory = full.memory()
    assert memory.records([5, 6]) == {6: issue(6)}
    assert [path in note for note in memory.notes] == [True]
    finds_all(memory)
    memory.rebuild_index()
    finds_all(memory, left_out=5)
    assert len(list(memory.state.every_record())) == len(HELD)
    assert len(memory.notes) == 1
    assert memory.commit("rebuilt without it")
    remember(full.memory(), issue(5, 2))
    assert manifest_of(full)["threads"] == len(HELD)
    is_whole(full)


def test_a_memory_of_which_only_parts_of_its_index_are_left_is_begun_anew(place: Place) -> None:
    place.put({part_path(PARTS, "0123456789abcdef"): b"a part"})
    memory = place.memory()
    assert memory.state.manifest.cursor is None
    assert remember(memory, issue(1))
    assert [path for path in place.files() if path.startswith(PARTS)] == []


def test_files_among_the_records_that_are_none_do_no_harm(full: Place) -> None:
    full.put({"records/README.md": b"# Records", "records/0000/notes.txt": b"x", "records/0000/deep/1.json": b"{}"})
    full.put({"records/0000/1000.json": encode_record(issue(1))})
    memory = full.memory()
    memory.rebuild_index()
    finds_all(memory)
    assert [record.id for record in memory.state.every_record()] == [*HELD, 99]


def test_a_damaged_line_of_digests_is_made_anew_from_its_record(full: Place) -> None:
    path = "digests/0000.jsonl"
    lines = full.files()[path].split(b"\n")
    full.put({path: b"\n".join([*lines[:4], lines[4][:-9], *lines[5:]])})
    memory = full.memory()
    remember(memory, issue(12, 2))
    assert [path in note for note in memory.notes] == [True]
    shard = full.files()[path]
    assert list(read_lines(shard)[0]) == list(HELD)
    assert shard.split(b"\n")[4] == DIGESTS.line(digest(issue(5))).encode() == lines[4]
    is_whole(full)


def test_a_damaged_line_of_answers_costs_only_that_answer(full: Place) -> None:
    path = "answers/0000.jsonl"
    first, second, rest = full.files()[path].split(b"\n")
    full.put({path: b"\n".join([first[:-3], second, rest])})
    memory = full.memory()
    assert set(memory.state.answers([3, 4])) == {4}
    assert [path in note for note in memory.notes] == [True]
    memory.stage(Changes(answers=(AnswerRecord(3, "said", at(2)),)))
    assert memory.commit("said again")
    assert set(full.memory().state.answers([3, 4])) == {3, 4}
    assert is_quiet(full)


def is_quiet(place: Place) -> bool:
    memory = place.memory()
    return bool(memory.state.answers([3, 4])) and memory.notes == []


@pytest.mark.parametrize(
    "line", [b'{"id": 3, "state": "shouted"}', b'{"id": 3, "state": "said", "at": 5}', b'{"id": 3}']
)
def test_an_answer_of_another_shape_is_as_if_nothing_was_said(full: Place, line: bytes) -> None:
    full.put({"answers/0000.jsonl": line + b"\n"})
    assert full.memory().state.answers([3, 4]) == {}


# -- all at once -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_byte_in_every_file_costs_no_run(full: Place, seed: int) -> None:
    chance = Random(seed)
    flipped = {path: bytearray(data) for path, data in full.files().items()}
    for data in flipped.values():
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(7)
    full.put({path: bytes(data) for path, data in flipped.items()})
    memory = full.memory()
    found(memory, "fails")
    memory.state.answers(HELD)
    healed = [issue(number, 50) for number in HELD]
    assert remember(memory, *healed)
    again = full.memory()
    assert again.records(HELD) == {thread.id: thread for thread in healed}
    assert set(found(again, "fails")) >= set(HELD)
