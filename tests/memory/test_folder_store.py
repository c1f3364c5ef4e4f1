"""The plain folder: crashes at every step, odd entries, old states, many writers, a hostile journal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path

import pytest

from bot.errors import StoreError, TipMoved
from bot.files import MAX_FILE_BYTES
from bot.memory.folder_store import FolderStore
from tests.memory.remotes import bare_repository, commit, git

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
    process = subprocess.run([sys.executable, "-c", _CRASHES, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    steps = int(process.stdout)
    is_new = []
    for step in range(steps + 1):
        store = FolderStore(tmp_path / str(step))
        snapshot = store.open()
        state = snapshot.read(snapshot.paths(""))
        assert state in (OLD, NEW), f"after {step} steps"
        is_new.append(state == NEW)
        try:
            after = store.write(snapshot, {"d": b"after"}, "after")
        except TipMoved:  # the dead writer's change was journaled and is finished by now
            assert contents(store) == NEW
            after = store.write(store.open(), {"d": b"after"}, "after")
        assert after.read(after.paths("")) in (OLD | {"d": b"after"}, NEW | {"d": b"after"})
        assert snapshot.read(snapshot.paths("")) == state
    assert 10 < steps < 99
    assert is_new == sorted(is_new)
    assert is_new[-1]


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


def test_reading_an_absent_folder_does_not_create_it(tmp_path: Path) -> None:
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


def test_reading_a_state_from_long_ago_raises_tip_moved(tmp_path: Path) -> None:
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
def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = FolderStore(tmp_path / root)
    with pytest.raises(StoreError, match=r"cannot write in .*; free some space"):
        store.write(store.open(), {"a": b"1"}, "x")


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
def test_concurrent_writers_lose_nothing(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), str(number)], cwd=ROOT) for number in range(4)
    ]
    assert [process.wait(60) for process in processes] == [0] * 4
    final = contents(FolderStore(tmp_path))
    assert final.pop("count") == b"40"
    assert set(final) == {f"records/{number}-{turn}" for number in range(4) for turn in range(10)}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the store, with a file that must not change."""
    (tmp_path / "outside/new").mkdir(parents=True)
    (tmp_path / "outside/secret").write_bytes(b"secret")
    return tmp_path / "outside"


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    """A store whose journal has an unapplied change, as a dying writer leaves it."""
    store = FolderStore(tmp_path / "store")
    store.write(store.open(), {"a": b"1", "records/0000/1.json": b"1"}, "first")
    change = tmp_path / "store/.store/changes/2"
    (change / "new").mkdir(parents=True)
    (change / "old").mkdir()
    (change / "new/0").write_bytes(b"theirs")
    write_plan(tmp_path / "store", [["a", True]])
    return tmp_path / "store"


def write_plan(root: Path, steps: object) -> None:
    (root / ".store/changes/2/plan.json").write_text(json.dumps(steps), "utf-8")


@contextmanager
def little_memory() -> Iterator[None]:
    """Asserts that nothing larger than a store accepts is read within the block."""
    tracemalloc.start()
    yield
    assert tracemalloc.get_traced_memory()[1] < 3 * MAX_FILE_BYTES
    tracemalloc.stop()


def refusal(root: Path) -> str:
    """The error of a write: one line that names the folder to remove."""
    store = FolderStore(root)
    with pytest.raises(StoreError) as error:
        store.write(store.open(), {"b": b"2"}, "next")
    message = str(error.value)
    assert "\n" not in message
    assert f"remove {root / '.store'}" in message
    return message


def test_a_change_that_was_not_applied_is_applied_by_the_next_writer(root: Path) -> None:
    store = FolderStore(root)
    before = store.open()
    with pytest.raises(TipMoved, match="is at revision '2'"):
        store.write(before, {"b": b"2"}, "next")
    assert (root / "a").read_bytes() == b"theirs"
    assert before.read(["a"]) == {"a": b"1"}


@pytest.mark.parametrize(
    "path",
    [
        *("../outside/secret", "/etc/precedent", "a/../../outside/secret", "a//b", "./a", "a/", "", ".", ".."),
        *(".store/revision", ".store/changes/1/plan.json", "x/.git/config", ".GIT/hooks/post-checkout", ".Store/x"),
        *("a\0b", "a\nb", "a\\b", "\ud800", "x" * 300, "/".join("x" * 600), 7, None, ["a"], {"a": 1}),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(root: Path, outside: Path, path: object) -> None:
    for is_write in (True, False):
        write_plan(root, [[path, is_write]])
        assert "plan.json is damaged" in refusal(root)
    assert (outside / "secret").read_bytes() == b"secret"
    assert {entry.name for entry in root.parent.iterdir()} == {"store", "outside"}


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "7", '"ab"', "[7]", '[["a"]]', '[["a", true, 1]]', "[" * 100_000, '[["a", true], ["a", false]]'],
)
def test_a_malformed_plan_is_refused(root: Path, text: str) -> None:
    (root / ".store/changes/2/plan.json").write_text(text, "ascii")
    assert "plan.json is damaged" in refusal(root)


def test_an_oversized_plan_is_refused_without_reading_it(root: Path) -> None:
    with (root / ".store/changes/2/plan.json").open("ab") as file:
        file.truncate(3 << 30)
    with little_memory():
        assert "plan.json is damaged" in refusal(root)


def test_nothing_is_written_through_a_symlinked_folder(root: Path, outside: Path) -> None:
    (root / "door").symlink_to(outside)
    for path, is_write in (("door/new/file", True), ("door/file", True), ("door/secret", False)):
        write_plan(root, [[path, is_write]])
        store = FolderStore(root)
        with pytest.raises(StoreError, match=r"door is a symlink; put a real folder in its place"):
            store.write(store.open(), {"b": b"2"}, "next")
    assert sorted(path.name for path in outside.rglob("*")) == ["new", "secret"]


SpoilJournal = Callable[[Path, Path], object]


def link_into(name: str, target: str) -> SpoilJournal:
    """Replace a part of the journal with a link."""

    def spoil(journal: Path, outside: Path) -> None:
        part = journal / name
        if part.exists():
            part.rename(outside / "moved")
        part.parent.mkdir(parents=True, exist_ok=True)
        part.symlink_to(outside / target)

    return spoil


def pipe_at(name: str) -> SpoilJournal:
    def spoil(journal: Path, _: Path) -> None:
        (journal / name).unlink(missing_ok=True)
        os.mkfifo(journal / name)

    return spoil


LINKS = [("changes", "new"), ("changes", "moved"), ("changes/2", "moved"), ("changes/2/new", "moved"), ("", "moved")]
LINKS += [("changes/2/old", "new"), ("changes/2/new/0", "secret"), ("changes/2/old/0", "secret")]
LINKS += [("changes/2/new/0", "new"), ("changes/2/plan.json", "moved")]
LINKS += [("revision", "secret"), ("lock", "secret"), ("lock", "absent")]
PIPES = ("changes/2/new/0", "changes/2/old/0", "changes/2/plan.json", "revision", "lock")


@pytest.mark.parametrize("spoil", [*starmap(link_into, LINKS), *map(pipe_at, PIPES)])
def test_a_part_of_the_journal_that_is_a_link_or_a_pipe_is_refused(
    root: Path, outside: Path, spoil: SpoilJournal
) -> None:
    spoil(root / ".store", outside)
    before = sorted(path.name for path in outside.rglob("*"))
    refusal(root)
    assert (outside / "secret").read_bytes() == b"secret"
    assert sorted(path.name for path in outside.rglob("*")) == before
    assert (root / "a").read_bytes() == b"1"


@pytest.mark.parametrize("name", ["a", ".store/.revision.new"])
def test_a_target_that_is_a_link_is_replaced_and_not_followed(root: Path, outside: Path, name: str) -> None:
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(outside / "secret")
    store = FolderStore(root)
    with pytest.raises(TipMoved, match="is at revision"):
        store.write(store.open(), {"b": b"2"}, "next")
    assert (outside / "secret").read_bytes() == b"secret"
    assert not (root / name).is_symlink()


@pytest.mark.parametrize("has_change", [False, True])
def test_a_huge_revision_is_followed_by_the_next(root: Path, has_change: bool) -> None:
    revision = 10**12 - 1
    if has_change:
        (root / f".store/changes/{revision}").mkdir()
    (root / ".store/revision").write_text(str(revision), "ascii")
    store = FolderStore(root)
    snapshot = store.open()
    assert snapshot.read(["a"]) == {"a": b"1"}
    assert store.write(snapshot, {"b": b"2"}, "next").revision == str(revision + 1)


@pytest.mark.parametrize("name", ["٣", "²", "03", "-1"])
def test_a_change_whose_name_is_no_number_of_ours_is_left_alone(root: Path, name: str) -> None:
    (root / ".store/changes" / name).mkdir()
    assert FolderStore(root).open().read(["a"]) == {"a": b"1"}
    store = FolderStore(root)
    with pytest.raises(TipMoved, match="is at revision '2'"):  # the only change that was not applied is our own
        store.write(store.open(), {"b": b"2"}, "next")
    assert (root / ".store/changes" / name).is_dir()


@pytest.mark.parametrize("revision", ["", "٣", "²", "03", "-1", "9" * 16, "\x00"])
def test_a_revision_that_is_no_number_of_ours_is_refused(root: Path, revision: str) -> None:
    (root / ".store/revision").write_text(revision, "utf-8")
    with pytest.raises(StoreError, match=r"cannot tell the revision of|has more than 15 bytes"):
        FolderStore(root).open()
    assert (root / "a").read_bytes() == b"1"


def test_leftovers_of_a_killed_writer_are_removed_whatever_they_are(root: Path, outside: Path) -> None:
    (root / ".store/changes/.3").symlink_to(outside)
    (root / ".store/changes/.4").write_bytes(b"")
    store = FolderStore(root)
    with pytest.raises(TipMoved, match="is at revision"):
        store.write(store.open(), {"b": b"2"}, "next")
    assert list((root / ".store/changes").glob(".*")) == []
    assert (outside / "secret").exists()


def test_a_journal_that_came_with_a_checkout_is_refused(root: Path, tmp_path: Path) -> None:
    remote = bare_repository(tmp_path / "remote.git")
    files = {
        path.relative_to(root).as_posix(): ("100644", path.read_bytes()) for path in root.rglob("*") if path.is_file()
    }
    commit(remote, files, "refs/heads/main")
    git(tmp_path, "clone", "--quiet", str(remote), "clone")
    (tmp_path / "clone/.store/changes/2/old").mkdir()
    assert "is tracked by git" in refusal(tmp_path / "clone")
    assert (tmp_path / "clone/a").read_bytes() == b"1"


def test_a_journal_of_our_own_in_a_checkout_is_used(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    for turn in (b"1", b"2"):
        store = FolderStore(tmp_path)
        store.write(store.open(), {"a": turn}, "next")
    assert (tmp_path / "a").read_bytes() == b"2"


# What a store may contain


def test_an_oversized_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    snapshot = store.write(store.open(), {"manifest.json": b"{}"}, "first")
    with (tmp_path / "manifest.json").open("ab") as file:
        file.truncate(3 << 30)
    message = f"manifest.json has more than {MAX_FILE_BYTES:,} bytes; remove it from the store"
    with little_memory():
        with pytest.raises(StoreError, match=message):
            snapshot.read(["manifest.json"])
        store.write(snapshot, {"manifest.json": b"{ }"}, "in its place")
    assert (tmp_path / "manifest.json").read_bytes() == b"{ }"


def test_a_working_copy_leaves_out_what_does_not_fit(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    snapshot = store.write(store.open(), {"index/a": b"1", "index/c": b"12"}, "first")
    with (tmp_path / "index/b").open("ab") as file:
        file.truncate(3 << 30)
    folder = snapshot.checkout("index")
    assert {file.name: file.stat().st_size for file in folder.iterdir()} == {"a": 1, "c": 2}
    store.close()


def test_a_device_or_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    snapshot = store.write(store.open(), {"records/0000/1.json": b"1", "index/toc": b"1"}, "first")
    root = tmp_path / "store"
    for path in ("records/0000/2.json", "manifest.json", "index/pipe"):
        os.mkfifo(root / path)
    (root / "digests").symlink_to(tmp_path)
    assert snapshot.paths("") == ["index/toc", "records/0000/1.json"]
    assert (snapshot.paths("digests"), snapshot.foreign_files("digests")) == ([], ["digests"])
    assert "manifest.json" in snapshot.foreign_files("")
    for attempt in (lambda: snapshot.read(["manifest.json"]), lambda: snapshot.checkout("index")):
        with pytest.raises(StoreError, match="not a regular file"):
            attempt()
    written = store.write(snapshot, {"manifest.json": b"{}"}, "in its place")
    assert written.read(["manifest.json"]) == {"manifest.json": b"{}"}


def test_too_deeply_nested_folders_are_left_out(tmp_path: Path) -> None:
    deep = tmp_path / "/".join("d" * 60)
    deep.mkdir(parents=True)
    (deep / "x").write_bytes(b"1")
    (tmp_path / "a").write_bytes(b"1")
    snapshot = FolderStore(tmp_path).open()
    assert snapshot.paths("") == ["a"]
    assert snapshot.foreign_files("") == []
