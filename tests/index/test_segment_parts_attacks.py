"""A hostile index in parts, which may name any part: whatever its bytes, it is refused or answers."""

import hashlib
import json
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import pytest

from bot.index import build_index, open_index, vectors
from bot.index.protocol import IndexCorrupt
from bot.index.whoosh.segment_parts import Core, PostingLayout, decode_core, encode_core
from tests.index.test_segment_parts import SMALL, many_threads, use
from tests.index.test_whoosh_attacks import records, write_toc

pytestmark = pytest.mark.slow

COUNT = 60


@pytest.fixture
def honest(tmp_path: Path) -> Path:
    build_index(tmp_path / "index", many_threads(COUNT, vectors=True), sizes=SMALL)
    return tmp_path / "index"


def core_of(folder: Path) -> Core:
    return decode_core(core_bytes(folder), COUNT)


def core_bytes(folder: Path) -> bytes:
    [path] = folder.glob("*.core")
    return path.read_bytes()


def replace_core(folder: Path, data: bytes) -> None:
    """Give the index another core, and name it in its table of contents."""
    [path] = folder.glob("*.core")
    path.unlink()
    name = hashlib.sha256(data).hexdigest()[:16]
    (folder / f"MAIN_{name}.core").write_bytes(data)
    write_toc(folder, [record | {"id": name} for record in records(folder)])


def replace_part(folder: Path, name: str, data: bytes) -> None:
    """Give a part other content, and its new name to the core."""
    digest = hashlib.sha256(data).digest()[:16]
    (folder / "parts" / digest.hex()).write_bytes(data)
    replace_core(folder, core_bytes(folder).replace(bytes.fromhex(name), digest))


def change_description(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change the description in the core of the index."""
    data = core_bytes(folder)
    magic, documents, size = struct.unpack_from("<4sII", data)
    description = json.loads(data[12 : 12 + size])
    change(description)
    text = json.dumps(description).encode()
    replace_core(folder, struct.pack("<4sII", magic, documents, len(text)) + text + data[12 + size :])


def is_refused(folder: Path) -> bool:
    """Whether the index is refused; it must either be refused or answer."""
    try:
        use(open_index(folder, sizes=SMALL))
    except IndexCorrupt:
        return True
    return False


def test_an_honest_index_is_not_refused(honest: Path) -> None:
    assert not is_refused(honest)


def test_any_flipped_byte_of_the_core_is_refused_or_does_no_harm(honest: Path, tmp_path: Path) -> None:
    data, refused = core_bytes(honest), 0
    positions = [*range(0, 250, 3), *range(250, len(data), 97)]
    for at in positions:
        copy = shutil.copytree(honest, tmp_path / f"flipped {at}")
        replace_core(copy, data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
        refused += is_refused(copy)
        shutil.rmtree(copy)
    assert refused > 0.8 * len(positions)


@pytest.mark.parametrize("cut", [0, 3, 11, 12, 40, -17, -16, -1])
def test_a_truncated_core_is_refused(honest: Path, cut: int) -> None:
    replace_core(honest, core_bytes(honest)[:cut])
    with pytest.raises(IndexCorrupt):
        open_index(honest)


SIZES = [0, -1, 1, 7, 1 << 17, 1 << 70, True, 2.0, "8", None, []]
WIDTHS = [0, -3, 1025, 13, True, 10.0, "10", {}, [], None]
LISTS = [[0, []], [-1, []], [1 << 40, []], [True, []], [1, ["t"] * 2], [1, [None]], [1, ["\u1234"]], [1, [["t"]]], [1]]
DESCRIPTIONS = [
    *product(["rows", "block"], SIZES),
    *product(["width"], WIDTHS),
    *(("lists", {"t": each, "n": each}) for each in [*LISTS, [], {}, None]),
]


@pytest.mark.parametrize(("key", "value"), DESCRIPTIONS)
def test_blocks_vectors_and_lists_of_another_size_or_shape_are_refused(honest: Path, key: str, value: object) -> None:
    change_description(honest, lambda description: description.update({key: value}))
    assert is_refused(honest)


@pytest.mark.parametrize("width", [-3, 1025, True, 10.0])
def test_vectors_of_an_impossible_length_are_refused_before_they_are_read(honest: Path, width: int) -> None:
    with pytest.raises(ValueError, match="damaged"):
        decode_core(encode_core(replace(core_of(honest), width=width)), COUNT)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{}", b"[]", b"NaN", b'{"width":0}', b"\xff", b""])
def test_descriptions_of_another_shape_are_refused(honest: Path, content: bytes) -> None:
    data = core_bytes(honest)
    magic, documents, size = struct.unpack_from("<4sII", data)
    replace_core(honest, struct.pack("<4sII", magic, documents, len(content)) + content + data[12 + size :])
    with pytest.raises(IndexCorrupt):
        open_index(honest)


@pytest.mark.parametrize("documents", [COUNT - 1, COUNT + 1, 1 << 20])
def test_another_number_of_documents_is_refused(honest: Path, documents: int) -> None:
    data = core_bytes(honest)
    replace_core(honest, data[:4] + struct.pack("<I", documents) + data[8:])
    write_toc(honest, [record | {"documents": documents} for record in records(honest)])
    assert is_refused(honest)


def test_one_part_repeated_for_all_takes_no_more_memory_than_its_documents(honest: Path) -> None:
    core, large = core_of(honest), 1 << 18
    claimed = Core(large, core.width, 1 << 16, 1 << 16, dict.fromkeys("tn", PostingLayout(1, ())), [])
    names = [core.numbers()[0]] * sum(claimed.sizes().values())
    replace_core(honest, encode_core(replace(claimed, names=names)))
    write_toc(honest, [record | {"documents": large} for record in records(honest)])
    tracemalloc.start()
    assert is_refused(honest)
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("flag", [1, "yes", None, []])
def test_a_record_with_an_odd_parts_flag_is_refused(honest: Path, flag: object) -> None:
    write_toc(honest, [record | {"parts": flag} for record in records(honest)])
    assert is_refused(honest)


def test_a_core_where_a_segment_should_be_is_refused(honest: Path) -> None:
    [path] = honest.glob("*.core")
    path.rename(path.with_suffix(".seg"))
    with pytest.raises(IndexCorrupt):
        open_index(honest)
    write_toc(honest, [record | {"parts": False} for record in records(honest)])
    with pytest.raises(IndexCorrupt):
        open_index(honest)


def sections(core: Core) -> dict[str, str]:
    """A part of each kind."""
    return {
        "numbers": core.numbers()[0],
        "book": core.vectors()[0],
        "codes": core.vectors()[1],
        "entries": core.entries()[0],
        "list": core.list_of(b"tw1"),
        "notes": core.list_of(b"nw1"),
    }


@pytest.mark.night
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["numbers", "book", "codes", "entries", "list", "notes"])
def test_random_parts_under_valid_names_are_refused_or_do_no_harm(honest: Path, tmp_path: Path, kind: str) -> None:
    name = sections(core_of(honest))[kind]
    data, rng = (honest / "parts" / name).read_bytes(), Random(5)
    contents = [b"", data[:-1], data + b"\0", data[: len(data) // 2], bytes(len(data)), b"\xff" * len(data)]
    contents += [rng.randbytes(len(data)) for _ in range(3)]
    for _ in range(25):
        at = rng.randrange(len(data))
        contents.append(data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])
    for number, content in enumerate(contents):
        copy = shutil.copytree(honest, tmp_path / f"{kind} {number}")
        replace_part(copy, name, content)
        refused = is_refused(copy)
        assert refused or len(content) >= len(data)
        shutil.rmtree(copy)


def test_random_codes_give_cosines_within_bounds(honest: Path) -> None:
    book = Random(1).randbytes(4 * vectors.BOOK_SIZE * vectors.GROUP_WIDTH * 2)
    replace_part(honest, core_of(honest).vectors()[0], book)
    for hit in use(open_index(honest, sizes=SMALL)):
        assert -1 <= hit.cosine <= 1


@pytest.mark.parametrize("name", ["x", "0" * 31, "0" * 33, "A" * 32, "0" * 31 + "\n"])
def test_other_files_among_the_parts_are_refused(honest: Path, name: str) -> None:
    (honest / "parts" / name).write_bytes(b"")
    with pytest.raises(IndexCorrupt, match="unexpected file"):
        open_index(honest)


@pytest.mark.parametrize("is_all", [True, False])
def test_links_and_folders_in_place_of_parts_are_refused(honest: Path, tmp_path: Path, is_all: bool) -> None:
    part = honest / "parts" if is_all else honest / "parts" / core_of(honest).numbers()[0]
    part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IndexCorrupt, match="unexpected file"):
        open_index(honest)
    part.unlink()
    part.mkdir()
    with pytest.raises(IndexCorrupt, match=None if is_all else "unexpected file"):
        use(open_index(honest, sizes=SMALL))


def test_an_oversized_part_is_refused_without_reading_it(honest: Path) -> None:
    with (honest / "parts" / core_of(honest).numbers()[0]).open("r+b") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(IndexCorrupt, match="bytes"):
        open_index(honest)
