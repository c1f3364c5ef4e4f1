"""The plain folder: crashes at every step, odd entries, old states, many writers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.errors import StoreError, TipMoved
from bot.memory.folder_store import FolderStore

OLD = {"a/kept": b"old", "a/changed": b"old", "b/deleted": b"old"}
NEW = {"a/kept": b"old", "a/changed": b"new", "c/added": b"new"}
ROOT = Path(__file__).resolve().parents[2]

_CRASHES = """
import os, sys
from pathlib import Path
from bot.memory.folder_store import FolderStore

TOUCHING = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "shutil.copyfile", "fcntl.flock"}
left = None

def crash(event, args):
    global left
    if left is not None and event in TOUCHING:
        left -= 1
        if left < 0:
            os._exit(9)

sys.addaudithook(crash)
for step in range(100):
    store = FolderStore(Path(sys.argv[1], str(step)))
    old = store.write(store.open(), {"a/kept": b"old", "a/changed": b"old", "b/deleted": b"old"}, "old")
    child = os.fork()
    if not child:
        left = step
        store.write(old, {"a/changed": b"new", "b/deleted": None, "c/added": b"new"}, "new")
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
print(step)
"""


def contents(store: FolderStore) -> dict[str, bytes]:
    snapshot = store.open()
    return snapshot.read(snapshot.paths(""))


@pytest.mark.slow
def test_a_writer_that_dies_at_any_step_leaves_the_old_or_the_new_state(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _CRASHES, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    steps = int(done.stdout)
    seen = []
    for step in range(steps + 1):
        store = FolderStore(tmp_path / str(step))
        snapshot = store.open()
        state = snapshot.read(snapshot.paths(""))
        assert state in (OLD, NEW), f"after {step} steps"
        seen.append(state == NEW)
        try:
            after = store.write(snapshot, {"d": b"after"}, "after")
        except TipMoved:  # the dead writer's change counted, and is finished by now
            assert contents(store) == NEW
            after = store.write(store.open(), {"d": b"after"}, "after")
        assert after.read(after.paths("")) in (OLD | {"d": b"after"}, NEW | {"d": b"after"})
        assert snapshot.read(snapshot.paths("")) == state
    assert 10 < steps < 99
    assert seen == sorted(seen)
    assert seen[-1]


def test_files_are_plain_and_a_foreign_folder_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "42.json").write_bytes(b"{}")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(b"")
    store = FolderStore(tmp_path)
    snapshot = store.open()
    assert snapshot.revision == "0"
    assert snapshot.paths("") == ["records/42.json"]
    store.write(snapshot, {"records/42.json": b"[]", "manifest.json": b"{}"}, "first")
    assert (tmp_path / "records" / "42.json").read_bytes() == b"[]"
    assert (tmp_path / "manifest.json").read_bytes() == b"{}"


def test_reading_an_absent_folder_makes_none(tmp_path: Path) -> None:
    assert FolderStore(tmp_path / "none").open().revision == ""
    assert not (tmp_path / "none").exists()


def test_a_symlinked_file_is_neither_read_nor_listed_nor_checked_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    store = FolderStore(tmp_path / "store")
    snapshot = store.write(store.open(), {"index/toc": b"1"}, "first")
    (tmp_path / "store" / "index" / "link").symlink_to(tmp_path / "secret")
    assert snapshot.paths("index") == ["index/toc"]
    with pytest.raises(StoreError, match="must be a regular file"):
        snapshot.read(["index/link"])
    with pytest.raises(StoreError, match="not a regular file"):
        snapshot.checkout("index")
    store.write(snapshot, {"index/link": b"2"}, "put a file in its place")
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert contents(store) == {"index/toc": b"1", "index/link": b"2"}


def test_nothing_is_read_or_written_through_a_symlinked_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"secret")
    store = FolderStore(tmp_path / "store")
    snapshot = store.write(store.open(), {"a": b"1"}, "first")
    (tmp_path / "store" / "door").symlink_to(outside)
    assert snapshot.paths("") == ["a"]
    for attempt in (
        lambda: snapshot.read(["door/file"]),
        lambda: snapshot.checkout("door"),
        lambda: store.write(snapshot, {"door/file": b"2"}, "x"),
        lambda: store.write(snapshot, {"door/file": None}, "x"),
    ):
        with pytest.raises(StoreError, match="symlink"):
            attempt()
    assert (outside / "file").read_bytes() == b"secret"


def test_a_device_or_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    snapshot = store.write(store.open(), {"index/toc": b"1"}, "first")
    os.mkfifo(tmp_path / "index" / "pipe")
    with pytest.raises(StoreError, match="not a regular file"):
        snapshot.read(["index/pipe"])
    with pytest.raises(StoreError, match="not a regular file"):
        snapshot.checkout("index")


def test_a_state_from_long_ago_says_that_it_moved(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    first = last = store.write(store.open(), {"a": b"0"}, "first")
    for turn in range(32):
        last = store.write(last, {"a": b"%d" % (turn + 1)}, "next")
    assert first.read(["a"]) == {"a": b"0"}
    last = store.write(last, {"a": b"one more"}, "last")
    with pytest.raises(TipMoved):
        first.read(["a"])
    assert last.read(["a"]) == {"a": b"one more"}
    assert len(list((tmp_path / ".store" / "changes").iterdir())) == 32


@pytest.mark.parametrize("root", ["/proc/none/store", "file/store"])
def test_a_place_that_cannot_be_written_says_so(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = FolderStore(tmp_path / root)
    with pytest.raises(StoreError, match=r"cannot write in .*; free some space"):
        store.write(store.open(), {"a": b"1"}, "x")


def test_a_damaged_revision_is_reported(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.write(store.open(), {"a": b"1"}, "first")
    (tmp_path / ".store" / "revision").write_bytes(b"\xff\x00")
    with pytest.raises(StoreError, match="revision"):
        store.open()


_WRITER = """
import sys
from pathlib import Path
from bot.memory.folder_store import FolderStore
from bot.errors import TipMoved

store = FolderStore(Path(sys.argv[1]))
for turn in range(10):
    while True:
        snapshot = store.open()
        count = int(snapshot.read(["count"]).get("count", b"0"))
        try:
            store.write(snapshot, {f"records/{sys.argv[2]}-{turn}": b"x", "count": b"%d" % (count + 1)}, "x")
            break
        except TipMoved:
            pass
"""


@pytest.mark.slow
def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), str(number)], cwd=ROOT) for number in range(4)
    ]
    assert [process.wait(60) for process in processes] == [0] * 4
    final = contents(FolderStore(tmp_path))
    assert final.pop("count") == b"40"
    assert set(final) == {f"records/{number}-{turn}" for number in range(4) for turn in range(10)}
