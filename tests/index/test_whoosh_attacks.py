"""A hostile index: whatever its bytes, it is refused or answers, and runs nothing."""

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random

import pytest

from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.thread import Kind
from bot.index import build_index, open_index
from bot.index.posting_lists import TermFile
from bot.index.protocol import IndexCorrupt, IndexDocument, Query
from bot.index.whoosh.codec import FLIP_COLUMNS, NUMBER_COLUMNS
from bot.index.whoosh.index import MAX_SEGMENTS
from tests.index import hostile_index

pytestmark = pytest.mark.slow

NOW = datetime(2020, 1, 1, tzinfo=UTC)
LATER = datetime(2020, 1, 9, tzinfo=UTC)
QUERY = Query(
    {"crash": 1.0, "login": 2.0, "absent": 1.0},
    vector=b"\1\1\1",
    blend={"text": 2.0, "semantic": 1.0, "open": 1.0, "age": -0.3, "closed": -0.2, "length": 0.1, "duplicates": 0.7},
)
SCRIPT = Path(hostile_index.__file__)


def document(number: int, words: str = "crash login") -> IndexDocument:
    entry = IndexEntry(number, Kind.ISSUE, "A title", "octocat", "open", NOW, NOW)
    return IndexDocument(entry, words.split(), ["body"] * number, vector=bytes([number, 1, 255]))


@pytest.fixture
def honest(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    build_index(folder, [document(number) for number in range(1, 40)])
    open_index(folder).update([document(3), document(99)])
    return folder


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False)


def write_poisoned(place: str, folder: Path, canary: Path) -> Path:
    """Write an index with plain Whoosh, poisoned at one place."""
    folder.mkdir(exist_ok=True)
    process = run(place, folder, canary)
    assert (process.returncode, process.stderr) == (0, "")
    assert not canary.exists()
    return folder


def largest(folder: Path) -> Path:
    """The largest segment."""
    return max(folder.glob("*.seg"), key=lambda path: path.stat().st_size)


def use(folder: Path) -> None:
    """Every kind of read: opening, searching, entries, and an update that merges every segment."""
    index = open_index(folder)
    for query, before in ((replace(QUERY, blend=None), None), (QUERY, NOW), (QUERY, LATER)):
        index.search(query, before=before)
        index.rarity(["crash", "absent"], before=before)
        index.joint_frequency([frozenset({"crash", "absent"})], before=before)
    index.entries(range(1, 50))
    for number in range(6):
        index.update([document(number)])
    index.update([], remove=range(40))
    index.close()


def parts(segment: Path) -> dict[str, bytes]:
    """The files within a segment."""
    data = segment.read_bytes()
    at = int.from_bytes(data[:8], "big")
    directory = json.loads(data[at + 4 : at + 4 + int.from_bytes(data[at : at + 4], "big")])
    return {name: data[extent["offset"] : extent["offset"] + extent["length"]] for name, extent in directory.items()}


def write_segment(segment: Path, files: dict[str, bytes], directory: object = None) -> None:
    """Write a segment with these files, with an honest directory unless another is given."""
    body, extents = bytearray(12), {}
    for name, data in files.items():
        extents[name] = {"offset": len(body), "length": len(data), "modified": 0}
        body += data
    at = len(body)
    for record in (extents if directory is None else directory, {}):
        text = record if isinstance(record, bytes) else json.dumps(record).encode()
        body += len(text).to_bytes(4, "big") + text
    body[:12] = at.to_bytes(8, "big") + (len(body) - at).to_bytes(4, "big")
    segment.write_bytes(body)


def write_toc(folder: Path, records: object) -> None:
    """Replace the records of segments in the table of contents."""
    [toc] = folder.glob("*.toc")
    data = toc.read_bytes()
    head = data[: data.index(b'[{"id"') - 4]
    text = records if isinstance(records, bytes) else json.dumps(records).encode()
    toc.write_bytes(head + len(text).to_bytes(4, "big") + text)


def column(name: str) -> str:
    return f"MAIN_0000000000000000.{name}.col"


def pieces(packed: bytes, count: int) -> bytes:
    """A column with the same bytes for every document."""
    return packed * count + struct.pack("<I", len(packed)) * count


def records(folder: Path) -> list[dict[str, object]]:
    [toc] = folder.glob("*.toc")
    data = toc.read_bytes()
    parsed: list[dict[str, object]] = json.loads(data[data.index(b'[{"id"') :])
    return parsed


@pytest.mark.night
@pytest.mark.parametrize("place", hostile_index.PLACES)
def test_a_poisoned_index_runs_code_in_plain_whoosh_and_is_refused_here(
    place: str, tmp_path: Path, canary: Path
) -> None:
    folder = write_poisoned(place, tmp_path / "index", canary)
    with pytest.raises(IndexCorrupt):
        open_index(folder)
    assert not canary.exists()
    run("read", folder)
    assert canary.exists(), "the control: the attack is real"


def test_a_link_in_place_of_the_temporary_folder_is_refused(honest: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("kept")
    plain_folder = write_poisoned("nowhere", tmp_path / "plain", tmp_path / "unused")
    for folder in (honest, plain_folder):
        (folder / "MAIN.tmp").symlink_to(victim)
    with pytest.raises(IndexCorrupt, match="unexpected file"):
        open_index(honest)
    assert (victim / "precious").exists()
    run("read", plain_folder)
    assert not (victim / "precious").exists(), "the control: the attack is real"


def test_a_link_that_appears_while_the_index_is_open_is_refused(honest: Path, tmp_path: Path) -> None:
    index = open_index(honest)
    (honest / "MAIN.tmp").symlink_to(tmp_path)
    with pytest.raises(IndexCorrupt, match="unexpected file"):
        index.update([document(1)])


def test_links_in_place_of_the_files_or_the_folder_are_refused(honest: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(honest)
    with pytest.raises(IndexCorrupt, match="link"):
        open_index(tmp_path / "linked")
    segment = next(honest.glob("*.seg"))
    segment.rename(tmp_path / "elsewhere")
    segment.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IndexCorrupt, match="unexpected file"):
        open_index(honest)


@pytest.mark.night
@pytest.mark.parametrize("place", hostile_index.PLACES)
def test_parts_of_a_poisoned_index_inside_an_honest_one_run_nothing(
    place: str, honest: Path, tmp_path: Path, canary: Path
) -> None:
    poison = pickle.dumps(hostile_index.Poison(str(canary)))
    hostile = write_poisoned(place, tmp_path / "hostile", canary)
    [toc], [hostile_toc] = honest.glob("*.toc"), hostile.glob("*.toc")
    victim = largest(honest)
    if place in ("schema", "legacy schema"):
        toc.write_bytes(hostile_toc.read_bytes())
    elif place == "segments":
        write_toc(honest, poison)
    elif place == "directory":
        write_segment(victim, parts(victim), poison)
    else:
        files = parts(victim)
        packed = zlib.compress(poison)
        stored = packed * 39 + bytes([len(packed)] * 39) + b"B"
        files |= {column("_stored"): stored, "MAIN_0000000000000000.trm": poison * 9}
        write_segment(
            victim, {name: data for name, data in files.items() if place != "stored fields" or ".trm" not in name}
        )
    with pytest.raises(IndexCorrupt):
        use(honest)
    assert not canary.exists()


def test_poisoned_stored_fields_are_never_read(honest: Path, canary: Path) -> None:
    victim = largest(honest)
    packed = zlib.compress(pickle.dumps(hostile_index.Poison(str(canary))))
    files = parts(victim)
    files[column("_stored")] = packed * 39 + bytes([len(packed)] * 39) + b"B"
    write_segment(victim, files)
    use(honest)
    assert not canary.exists()


def test_an_honest_index_is_read_without_loading_a_single_name_from_a_pickle(tmp_path: Path) -> None:
    program = """
import sys
loaded = []
sys.addaudithook(lambda event, args: loaded.append(args) if event == "pickle.find_class" else None)
from pathlib import Path
from tests.index.test_whoosh_attacks import build_index, document, use
build_index(Path(sys.argv[1]), [document(number) for number in range(1, 40)])
use(Path(sys.argv[1]))
print(len(loaded))
import pickle
pickle.loads(pickle.dumps(Path("x")))
print(len(loaded) > 0)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "index")]
    process = subprocess.run(command, capture_output=True, text=True, check=True, cwd=SCRIPT.parents[2])
    assert process.stdout.split() == ["0", "True"]


def mutations(folder: Path) -> Iterator[tuple[str, bytes]]:
    rng = Random(1)
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        yield path.name, b""
        for _ in range(25):
            at = rng.randrange(len(data))
            flipped = bytearray(data)
            flipped[at] ^= 1 << rng.randrange(8)
            yield path.name, bytes(flipped)
            yield path.name, data[:at]
            yield path.name, data[:at] + bytes(min(64, len(data) - at)) + data[at + 64 :]
            yield path.name, data[:at] + rng.randbytes(16) + data[at + 16 :]


def test_damage_of_any_kind_is_refused_or_does_no_harm(honest: Path, tmp_path: Path) -> None:
    refused = 0
    for number, (name, data) in enumerate(mutations(honest)):
        folder = tmp_path / f"damaged {number}"
        shutil.copytree(honest, folder)
        (folder / name).write_bytes(data)
        try:
            use(folder)
        except IndexCorrupt:
            refused += 1
        shutil.rmtree(folder)
    assert refused > 100


RECORD_CHANGES: dict[str, list[object]] = {
    "documents": [1 << 40, 0, -1, True, 41, 1_000_000],
    "deleted": [[40], [-1], ["0"], None],
    "id": ["../../../../etc", "0123456789abcdef", "", None],
}


@pytest.mark.parametrize(("key", "value"), [(key, each) for key, values in RECORD_CHANGES.items() for each in values])
def test_impossible_segment_records_are_refused(honest: Path, key: str, value: object) -> None:
    write_toc(honest, [record | {key: value} for record in records(honest)])
    with pytest.raises(IndexCorrupt):
        use(honest)


def write_endless_numbers(folder: Path) -> None:
    [toc] = folder.glob("*.toc")
    toc.write_bytes(b"\xff" * (8 << 20))


ODD_FOLDERS: dict[str, Callable[[Path], object]] = {
    **{name: lambda folder, name=name: (folder / name).touch() for name in ("MAIN_WRITELOCK", "MAIN_0000.seg")},
    **{name: lambda folder, name=name: (folder / name).touch() for name in ("_MAIN_2.toc", ".git", "x\n.seg")},
    "a missing file": lambda folder: largest(folder).unlink(),
    "an oversized file": lambda folder: os.truncate(largest(folder), (512 << 20) + 1),
    "too many segments": lambda folder: write_toc(folder, records(folder) * MAX_SEGMENTS),
    "endless numbers": write_endless_numbers,
}


@pytest.mark.parametrize("oddity", ODD_FOLDERS)
def test_missing_other_and_oversized_files_are_refused(honest: Path, oddity: str) -> None:
    ODD_FOLDERS[oddity](honest)
    with pytest.raises(IndexCorrupt):
        open_index(honest)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{}", b'"x"', b"[[]]", b"NaN", b"[1e999]"])
def test_records_of_another_shape_are_refused(honest: Path, content: bytes) -> None:
    write_toc(honest, content)
    with pytest.raises(IndexCorrupt):
        open_index(honest)


@pytest.mark.night
def test_a_bomb_is_not_unpacked(honest: Path) -> None:
    bomb = zlib.compress(bytes(200 << 20), 9)
    for name in ("_stored.col", "entry.col", "created.col", "target.col", "flip4.col", "vector.col", "trm"):
        folder = honest.with_name(name)
        shutil.copytree(honest, folder)
        victim = largest(folder)
        files = parts(victim)
        write_segment(victim, files | {f"MAIN_0000000000000000.{name}": bomb + b"B"})
        tracemalloc.start()
        with suppress(IndexCorrupt):
            use(folder)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
        tracemalloc.stop()


@pytest.mark.parametrize("counts", [(0xFFFFFFFF, 0), (1 << 20, 0xFFFFFFFF), (0, 0), (3, 2)])
def test_a_file_of_terms_with_absurd_counts_is_refused(counts: tuple[int, int]) -> None:
    with pytest.raises((ValueError, IndexError, struct.error)):
        TermFile(memoryview(struct.pack("<4sII", b"PTF1", *counts) + bytes(64)), 10)


ENTRY = [1, "issue", "A title", "octocat", "open", 1, 1, None, None, [], 1, 0, None, None, [], None, ""]
ODD_ENTRIES = [
    *((position, {"a": [1e300]}) for position in range(len(ENTRY))),
    *((position, number) for position in (10, 11) for number in (-1, 1 << 53, 10**400)),
    *(
        (position, [item])
        for position in (9, 14)
        for item in (None, True, 1 if position == 9 else "1", [], {}, 1e300, float("nan"), 10**400)
    ),
]


@pytest.mark.night
@pytest.mark.parametrize(("position", "value"), ODD_ENTRIES)
def test_entries_of_another_shape_with_absurd_counts_or_odd_lists_are_refused(
    honest: Path, position: int, value: object
) -> None:
    victim = largest(honest)
    for entry in (ENTRY, [*ENTRY[:position], value, *ENTRY[position + 1 :]]):
        write_segment(victim, parts(victim) | {column("entry"): pieces(json.dumps(entry).encode(), 39)})
        with nullcontext() if entry is ENTRY else pytest.raises(IndexCorrupt):
            assert open_index(honest).search(Query({"crash": 1.0}))


def with_column(folder: Path, name: str, data: bytes | None) -> None:
    """Replace a column of the larger segment; None removes it."""
    victim = largest(folder)
    files = parts(victim)
    assert files.pop(column(name))
    write_segment(victim, files if data is None else files | {column(name): data})


def rows(width: int, count: int) -> bytes:
    return struct.pack("<I", width) + bytes(width) * count


WRONG_NUMBERS = [None, b"", b"\0\0\0", rows(8, 38), rows(8, 40), rows(4, 78), rows(4, 39), rows(0, 0), b"\xff" * 316]
WRONG_VECTORS = [b"", b"\3\0\0", rows(3, 38), rows(3, 40), rows(3, 39)[:-1], rows(0, 39), rows(1025, 39), rows(2, 39)]
WRONG_VECTORS += [struct.pack("<I", 0xFFFFFFFF) + bytes(117)]
WRONG_LENGTHS = [[0] * 39, [1 << 31] * 39, [0xFFFFFFFF] * 39, [100] * 38, [100] * 40, []]
WRONG_COLUMNS = [
    *product(NUMBER_COLUMNS, WRONG_NUMBERS),
    *product(["vector"], WRONG_VECTORS),
    *(("entry", b"x" * 3900 + struct.pack(f"<{len(lengths)}I", *lengths)) for lengths in WRONG_LENGTHS),
]


@pytest.mark.night
@pytest.mark.parametrize(("name", "data"), WRONG_COLUMNS)
def test_columns_of_another_size_are_refused(honest: Path, name: str, data: bytes | None) -> None:
    with_column(honest, name, data)
    with pytest.raises(IndexCorrupt):
        open_index(honest)


def numbers(values: Sequence[int]) -> bytes:
    return struct.pack("<I", 8) + struct.pack(f"<{len(values)}q", *values)


def search_all(folder: Path) -> list[IndexHit]:
    """The hits of a search that leaves nothing out."""
    index = open_index(folder)
    hits = index.search(QUERY, limit=1000, before=LATER)
    index.close()
    return hits


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [-(1 << 63), -1, 0, 1, (1 << 63) - 1])
@pytest.mark.parametrize("name", NUMBER_COLUMNS)
def test_impossible_numbers_do_no_harm(honest: Path, name: str, number: int) -> None:
    before = [hit.entry.id for hit in search_all(honest)]
    with_column(honest, name, numbers([number] * 39))
    after = [hit.entry.id for hit in search_all(honest)]
    is_hidden = name in ("created", "alone") and number > LATER.timestamp()
    assert after == ([3, 99] if is_hidden else before)  # from the other segment, which is unchanged
    use(honest)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(20))
def test_columns_of_random_numbers_do_no_harm(honest: Path, seed: int) -> None:
    rng = Random(seed)
    likely = int(NOW.timestamp())
    usual = (0, 1, -1, likely, likely + 86_400, -(1 << 63), (1 << 63) - 1)
    for name in (name for name in NUMBER_COLUMNS[1:] if name != "alone"):  # which hides documents
        with_column(honest, name, numbers([rng.choice((*usual, rng.getrandbits(62))) for _ in range(39)]))
    hits = search_all(honest)
    assert sorted(int(hit.entry.id) for hit in hits) == [*range(1, 40), 99]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.duplicates >= 0 and abs(hit.cosine) <= 1 + 1e-15 for hit in hits)
    use(honest)


@pytest.mark.filterwarnings("error")
def test_unsorted_flips_give_the_same_answer_each_time(honest: Path) -> None:
    at = int(NOW.timestamp())
    for name, moment in zip(FLIP_COLUMNS, (at + 300, at + 100, 0, at + 200), strict=True):
        with_column(honest, name, numbers([moment] * 39))
    first = search_all(honest)
    assert len(first) == 40
    assert search_all(honest) == first


@pytest.mark.parametrize(
    "packed",
    [b"\1" + bytes(22), b"\1\x0a\1", b"\3" + bytes(8), b"\0\1", b"\xff" * 9, b"\2\0\0", b"\4" + bytes(7), b"\1"],
)
def test_a_posting_list_that_is_malformed_or_too_long_for_the_segment_is_refused(packed: bytes) -> None:
    head = struct.pack("<4sII", b"PTF1", 1, 3) + struct.pack("<III", 0, 0, len(packed))
    terms = TermFile(memoryview(head + b"\0k\0" + packed), 10)
    for read in (lambda: terms.get(b"k"), lambda: list(terms.items())):
        with pytest.raises((ValueError, KeyError, IndexError)):
            read()
