"""Records: their paths, which of two wins, and equal bytes for equal records."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.card import id_order
from bot.domain.thread import Record, Tombstone
from bot.files import is_safe_path
from bot.memory.paths import folder_of, record_path
from bot.memory.records import (
    CorruptRecord,
    decode_record,
    encode_record,
    sorted_record_paths,
    wins,
)
from tests.memory.samples import at, issue

KEYS = st.integers(1, 2**53 - 1) | st.text(st.characters(codec=None, exclude_categories=[]), min_size=1, max_size=200)


@pytest.mark.parametrize(
    ("key", "path"), [(1, "0000/1"), (99, "0000/99"), (4242, "0042/4242"), (1_234_567, "12345/1234567")]
)
def test_a_hundred_neighbours_share_a_folder(key: int, path: str) -> None:
    assert record_path(key) == f"records/{path}.json"


def test_a_key_that_can_be_a_file_name_is_used_as_it_is() -> None:
    assert record_path("ABC-123").endswith("/ABC-123.json")
    for name in ("a/b", "..", ".hidden", "a b", "a" * 100, "日本", "x\n", "", "CON\x00", "\ud800"):
        assert is_safe_path(record_path(name))
        assert name not in record_path(name) or not name


def test_a_number_and_a_string_of_the_same_digits_are_two_threads() -> None:
    assert record_path(123) != record_path("123")


def test_no_key_shares_a_path_with_the_hash_of_another_one() -> None:
    file_hash = record_path("a b").rpartition("/")[2].removesuffix(".json")
    assert len(file_hash) == 64
    assert record_path(file_hash).rpartition("/")[2] != f"{file_hash}.json"


@given(st.lists(KEYS, unique=True, min_size=2, max_size=12))
def test_every_key_has_its_own_path_that_a_store_accepts(keys: list[int | str]) -> None:
    paths = [record_path(key) for key in keys if isinstance(key, int) or key.isprintable()]
    assert len(set(paths)) == len(paths)
    assert all(map(is_safe_path, paths))
    assert all(f"/{folder_of(key)}/" in record_path(key) for key in keys)
    assert sorted(paths) == sorted(sorted_record_paths(paths))


def test_paths_sort_like_their_thread_ids() -> None:
    keys = [1, 2, 10, 99, 100, 101, 999, 1000, 12_345, 1_234_567, "ABC-1", "ABC-10", "abc", "b"]
    paths = [record_path(key) for key in keys]
    assert sorted_record_paths(reversed(paths)) == paths
    assert sorted(keys, key=id_order) == keys


def test_files_that_are_not_records_are_skipped() -> None:
    foreign = [
        "records/readme.md",
        "records/0000/1.txt",
        "records/a/1.json",
        "records/0000/a\\b.json",
        "records/0000/.json",
    ]
    foreign += ["records/0000/deep/1.json", "records/0000/1.json\n", "digests/0000.jsonl", "records/0000/.1.json.swp"]
    assert sorted_record_paths([*foreign, "records/0000/1.json"]) == ["records/0000/1.json"]


def test_a_record_round_trips_through_its_bytes() -> None:
    thread = issue(7, 3, "A body\u2028with\x85separators 🎉", labels=("bug",), state="closed", closed_at=at(2))
    tombstone = Tombstone("ABC-1", at(5), "transferred", "octocat/other#5")
    for record in (thread, tombstone, Tombstone(7, at(5), "")):
        assert decode_record(encode_record(record)) == record
        assert encode_record(decode_record(encode_record(record))) == encode_record(record)


def test_a_record_is_readable_in_a_diff() -> None:
    assert encode_record(Tombstone(7, at(0))).decode() == (
        '{\n "id": 7,\n "tombstone": {\n  "at": "2020-01-01T00:00:00Z",\n  "reason": "deleted"\n }\n}\n'
    )


@pytest.mark.parametrize(
    "data",
    [
        b"", b"null", b"[]", b"5", b'"text"', b"{}", b"\xff\xfe", b"\x00", b'{"id": 7}',
        b"<<<<<<< HEAD\n{}", b"[" * 100_000,
        b'{"a":' * 100_000, b'{"id": 7, "tombstone": []}', b'{"id": 7, "tombstone": {"at": "2020-01-01"}}',
        b'{"id": 7, "tombstone": {"at": 5, "reason": "x"}}', b'{"id": 1e999, "title": "", "created_at": "2020-01-01"}',
        b'{"id": 7, "title": {}, "created_at": "2020-01-01"}', b'{"id": 7, "created_at": "0001-01-01T00:00:00+14:00"}',
        b'{"id": 7, "created_at": "2020-01-01", "comments": 5}',
    ],
)  # fmt: skip
def test_bytes_that_are_not_a_record_raise_a_one_line_error(data: bytes) -> None:
    with pytest.raises(CorruptRecord) as caught:
        decode_record(data)
    assert len(str(caught.value)) <= 120


@given(st.binary(max_size=40), st.integers(0, 400), st.integers(0, 20))
def test_a_damaged_record_is_refused_or_read_as_another_record(junk: bytes, start: int, cut: int) -> None:
    data = encode_record(issue(7, 3, "body", comments=()))
    try:
        record = decode_record(data[:start] + junk + data[start + cut :])
    except CorruptRecord:
        return
    assert decode_record(encode_record(record)) == record


def test_a_record_has_the_same_shape_as_in_an_archive() -> None:
    fields = json.loads(encode_record(issue(7, 3)))
    assert (fields["id"], fields["updated_at"], fields["state"]) == (7, "2020-01-01T03:00:00Z", "open")


# -- which of two records wins ---------------------------------------------------------------------------------------

OLD, NEW = issue(7, 1), issue(7, 2)
EARLY, LATE = Tombstone(7, at(0.5)), Tombstone(7, at(5))
MOVED = replace(LATE, reason="transferred", moved_to="octocat/other#7")
EDITED = replace(OLD, title="Edited within the same second")
SAME = replace(OLD, updated_at=LATE.at)


@pytest.mark.parametrize(
    ("new", "old", "does_win"),
    [
        pytest.param(NEW, OLD, True, id="a later revision"),
        pytest.param(OLD, NEW, False, id="an older revision"),
        pytest.param(OLD, None, True, id="the first one"),
        pytest.param(OLD, OLD, False, id="itself"),
        pytest.param(replace(OLD, updated_at=at(9)), OLD, False, id="equal content later"),
        pytest.param(LATE, EARLY, False, id="an equal tombstone later"),
        pytest.param(MOVED, EARLY, True, id="a tombstone that says more"),
        pytest.param(EDITED, OLD, True, id="another version of the same moment"),
        pytest.param(OLD, EDITED, True, id="the one that comes later of the same moment"),
        pytest.param(LATE, NEW, True, id="a tombstone over an earlier revision"),
        pytest.param(EARLY, NEW, False, id="a tombstone over a later revision"),
        pytest.param(OLD, LATE, False, id="an earlier revision over a tombstone"),
        pytest.param(replace(NEW, updated_at=at(6)), LATE, True, id="a later revision over a tombstone"),
        pytest.param(LATE, SAME, True, id="a tombstone over a thread of the same moment"),
        pytest.param(SAME, LATE, False, id="a thread over a tombstone of the same moment"),
    ],
)
def test_which_of_two_records_wins(new: Record, old: Record | None, does_win: bool) -> None:
    assert wins(new, old) is does_win
