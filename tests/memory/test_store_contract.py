"""What every store promises, checked on each of them."""

from __future__ import annotations

import random
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.errors import StoreError, TipMoved
from bot.memory.branch_store import BranchStore
from bot.memory.folder_store import FolderStore
from bot.memory.store import Store
from tests.examples import examples
from tests.memory.remotes import HostedRepository, bare_repository

OpenStore = Callable[[], Store]
KINDS = ("folder", "branch by path", "branch over HTTP")


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens another store on the same folder or branch, as another process would."""
    stores: list[Store] = []

    def open_another() -> Store:
        store: Store
        if request.param == "folder":
            store = FolderStore(tmp_path / "folder")
        elif request.param == "branch by path":
            store = BranchStore(str(bare_repository(tmp_path / "remote.git")), "precedent", None)
        else:
            hosted = request.getfixturevalue("hosted")
            assert isinstance(hosted, HostedRepository)
            store = BranchStore(hosted.url, "precedent", hosted.token)
        stores.append(store)
        return store

    yield open_another
    for store in stores:
        store.close()


def contents(store: Store) -> dict[str, bytes]:
    """All that the newest state holds."""
    snapshot = store.open([""])
    return snapshot.read(snapshot.paths(""))


def test_a_new_store_is_empty_and_has_no_revision(open_store: OpenStore) -> None:
    snapshot = open_store().open(["index", "manifest.json"])
    assert snapshot.revision == ""
    assert snapshot.paths("") == []
    assert snapshot.read(["manifest.json", "records/0000/42.json"]) == {}
    assert list(snapshot.checkout("index").iterdir()) == []


def test_what_one_store_writes_another_reads(open_store: OpenStore) -> None:
    writer, reader = open_store(), open_store()
    written = writer.write(writer.open(), {"records/0000/42.json": b"{}", "manifest.json": b"\x00\xff\n\r\n"}, "first")
    snapshot = reader.open(["manifest.json"])
    assert snapshot.revision == written.revision != ""
    assert snapshot.paths("") == ["manifest.json", "records/0000/42.json"]
    assert snapshot.paths("records") == snapshot.paths("records/") == ["records/0000/42.json"]
    assert snapshot.paths("rec") == snapshot.paths("manifest.json") == []
    assert snapshot.read(["manifest.json", "absent", "records"]) == {"manifest.json": b"\x00\xff\n\r\n"}
    assert written.read(["records/0000/42.json"]) == {"records/0000/42.json": b"{}"}


def test_sizes_and_twins_are_known_without_reading(open_store: OpenStore) -> None:
    writer, reader = open_store(), open_store()
    writer.write(writer.open(), {"a": b"same", "b": b"same", "c": b"other", "d": b""}, "first")
    snapshot = reader.open()
    assert snapshot.sizes(["a", "c", "d", "absent"]) == {"a": 4, "c": 5, "d": 0}
    assert snapshot.twins(["a", "b", "c"]) in (frozenset({"a", "b"}), frozenset()), "a folder would have to read them"
    assert snapshot.twins(["a", "c"]) == frozenset()


def test_a_snapshot_never_sees_later_writes(open_store: OpenStore) -> None:
    store = open_store()
    first = store.write(store.open(), {"a/kept": b"1", "a/changed": b"1", "a/deleted": b"1"}, "first")
    second = store.write(first, {"a/changed": b"2", "a/deleted": None, "a/added": b"2"}, "second")
    third = store.write(second, {"a/changed": b"3", "a/kept": None, "a/deleted": b"3"}, "third")
    for snapshot, expected in (
        (first, {"a/kept": b"1", "a/changed": b"1", "a/deleted": b"1"}),
        (second, {"a/kept": b"1", "a/changed": b"2", "a/added": b"2"}),
        (third, {"a/changed": b"3", "a/deleted": b"3", "a/added": b"2"}),
    ):
        assert snapshot.paths("") == sorted(expected)
        assert snapshot.read(["a/kept", "a/changed", "a/deleted", "a/added"]) == expected
        copied = {f"a/{file.name}": file.read_bytes() for file in snapshot.checkout("a").iterdir()}
        assert copied == expected


@pytest.mark.slow
def test_writing_to_an_old_state_raises_tip_moved_and_changes_nothing(open_store: OpenStore) -> None:
    slow, fast = open_store(), open_store()
    old = slow.open()
    fast.write(fast.open(), {"manifest.json": b"fast"}, "fast")
    with pytest.raises(TipMoved):
        slow.write(old, {"manifest.json": b"slow", "records/0000/1.json": b"slow"}, "slow")
    assert contents(open_store()) == {"manifest.json": b"fast"}
    slow.write(slow.open(), {"records/0000/1.json": b"slow"}, "slow")
    assert contents(fast) == {"manifest.json": b"fast", "records/0000/1.json": b"slow"}


def test_a_write_may_build_on_the_previous_one_without_opening_again(open_store: OpenStore) -> None:
    store = open_store()
    snapshot = store.open()
    for turn in range(3):
        snapshot = store.write(snapshot, {f"records/{turn}.json": b"%d" % turn}, "on top")
    assert store.open().revision == snapshot.revision
    assert contents(open_store()) == {f"records/{turn}.json": b"%d" % turn for turn in range(3)}


def test_a_write_that_changes_nothing_creates_no_new_state(open_store: OpenStore) -> None:
    store = open_store()
    base = store.write(store.open(), {"a": b"1", "b": b"2"}, "first")
    no_changes: list[dict[str, bytes | None]] = [{}, {"a": b"1"}, {"a": b"1", "gone": None}, {"folder/none": None}]
    for edits in no_changes:
        assert store.write(base, edits, "the same").revision == base.revision
    assert open_store().open().revision == base.revision


def test_all_files_can_be_deleted(open_store: OpenStore) -> None:
    store = open_store()
    full = store.write(store.open(), {"a/b/c": b"1", "d": b"2"}, "full")
    empty = store.write(full, {"a/b/c": None, "d": None}, "empty")
    assert empty.paths("") == []
    assert empty.revision not in {"", full.revision}
    assert contents(open_store()) == {}


@pytest.mark.slow
def test_content_may_come_from_a_file(open_store: OpenStore, tmp_path: Path) -> None:
    large = random.Random(1).randbytes(3_000_000)
    (tmp_path / "large").write_bytes(large)
    (tmp_path / "empty").touch()
    store = open_store()
    store.write(store.open(), {"index/large": tmp_path / "large", "index/empty": tmp_path / "empty"}, "files")
    assert contents(open_store()) == {"index/large": large, "index/empty": b""}


@pytest.mark.parametrize("kind", ["absent", "folder", "symlink"])
def test_content_may_come_only_from_a_regular_file(open_store: OpenStore, tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source"
    if kind == "folder":
        source.mkdir()
    elif kind == "symlink":
        source.symlink_to(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").write_bytes(b"secret")
    store = open_store()
    with pytest.raises(StoreError):
        store.write(store.open(), {"index/x": source}, "no file")
    assert open_store().open().revision == ""


def test_names_with_spaces_quotes_and_any_script_survive(open_store: OpenStore) -> None:
    names = ['say "hi".json', "ein Wort.json", "日本/語.json", "-n", "a'b", "émoji 🎉.json", "x" * 200, ":(glob)*"]
    names += ["%s{}$HOME"]
    store = open_store()
    store.write(store.open(), {name: name.encode() for name in names}, 'a "message"\nwith\n\ndata 3\nlines')
    assert contents(open_store()) == {name: name.encode() for name in names}


UNSAFE_PATHS = ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a/.", ".git/config", "a/.GIT/hooks/x"]
UNSAFE_PATHS += [".store/revision", "a\x00b", "a\nb", "a\\b", "\ud800", "x" * 2000]


def test_a_path_that_leaves_the_store_is_refused(open_store: OpenStore) -> None:
    store = open_store()
    snapshot = store.write(store.open(), {"a/b": b"1"}, "first")
    for path in UNSAFE_PATHS:
        with pytest.raises(StoreError, match="not a path"):
            store.write(snapshot, {"fine": b"2", path: b"2"}, "unfit")
        with pytest.raises(StoreError, match="not a path"):
            snapshot.read([path])
    assert contents(store) == {"a/b": b"1"}


@pytest.mark.parametrize("edits", [{"a/b/c": b"2"}, {"a": b"2"}, {"x": b"2", "x/y": b"2"}])
def test_a_name_cannot_be_a_file_and_a_folder(open_store: OpenStore, edits: dict[str, bytes]) -> None:
    store = open_store()
    base = store.write(store.open(), {"a/b": b"1"}, "first")
    with pytest.raises(StoreError, match="file and a folder"):
        store.write(base, edits, "clash")
    assert contents(store) == {"a/b": b"1"}


def test_a_folder_may_become_a_file_and_back_in_one_write(open_store: OpenStore) -> None:
    store = open_store()
    folder = store.write(store.open(), {"a/b": b"1", "a/c": b"1"}, "folder")
    file = store.write(folder, {"a": b"2", "a/b": None, "a/c": None}, "file")
    assert contents(open_store()) == {"a": b"2"}
    store.write(file, {"a/b": b"3", "a": None}, "folder again")
    assert contents(open_store()) == {"a/b": b"3"}


def test_a_checkout_can_be_written_without_changing_the_store(open_store: OpenStore) -> None:
    store = open_store()
    snapshot = store.write(store.open(), {"index/toc": b"1", "index/seg": b"2", "other": b"3"}, "index")
    folder = snapshot.checkout("index")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"toc": b"1", "seg": b"2"}
    assert all(stat.S_ISREG(file.lstat().st_mode) and not file.stat().st_mode & 0o111 for file in folder.iterdir())
    with (folder / "toc").open("ab") as file:
        file.write(b"more")
    (folder / "seg").unlink()
    (folder / "new").write_bytes(b"4")
    assert contents(open_store()) == {"index/toc": b"1", "index/seg": b"2", "other": b"3"}
    assert {file.name for file in snapshot.checkout("index/").iterdir()} == {"toc", "seg"}
    store.write(snapshot, {"index/new": folder / "new", "index/toc": folder / "toc", "index/seg": None}, "back")
    assert contents(open_store()) == {"index/toc": b"1more", "index/new": b"4", "other": b"3"}


def test_a_checkout_refuses_a_sub_folder(open_store: OpenStore) -> None:
    store = open_store()
    snapshot = store.write(store.open(), {"index/seg": b"1", "index/deep/seg": b"2"}, "nested")
    with pytest.raises(StoreError, match="sub-folder"):
        snapshot.checkout("index")


def test_closing_removes_the_working_copies(open_store: OpenStore) -> None:
    store = open_store()
    folder = store.write(store.open(), {"index/seg": b"1"}, "index").checkout("index")
    assert folder.is_dir()
    store.close()
    assert not folder.exists()


NAMES = st.sampled_from(["a", "b/c", "b/d", "e/f/g", "e/f/h"])
WRITES = st.lists(st.dictionaries(NAMES, st.none() | st.binary(max_size=4), max_size=3), max_size=6)


@pytest.mark.slow
@settings(
    max_examples=examples(4),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(writes=WRITES)
def test_any_sequence_of_writes_ends_like_a_dictionary(
    open_store: OpenStore, writes: list[dict[str, bytes | None]]
) -> None:
    store = open_store()
    snapshot = store.open()
    expected = snapshot.read(snapshot.paths(""))  # what the example before this one left there
    for edits in writes:
        snapshot = store.write(snapshot, edits, "a step")
        expected |= {path: content for path, content in edits.items() if content is not None}
        expected = {path: content for path, content in expected.items() if edits.get(path, b"") is not None}
        assert snapshot.read(snapshot.paths("")) == expected
    assert contents(open_store()) == expected
    store.close()
