"""Reads a bare repository from its files: refs, objects, and the log of a branch's moves.

`Bare.configure` has the server keep every push as loose objects, which need no git process, and log moves.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from bot.errors import StoreError
from bot.files import is_below
from bot.memory.branch_store import Growth
from bot.memory.store import Edits, Snapshot

SETTINGS = """[receive]
	unpackLimit = 100000
	autogc = false
[core]
	logAllRefUpdates = always
	fsync = none
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
[user]
	name = server
	email = server@example.com
"""
NONE = "0" * 40
BRANCH = "refs/heads/precedent"


class Move(NamedTuple):
    """One move of the branch from commit to commit; NONE stands for no commit."""

    old: str
    new: str


@lru_cache(maxsize=50_000)
def _object(path: str, oid: str) -> tuple[str, bytes]:
    """Type and content of an object. Cached, since an object never changes."""
    file = Path(path, "objects", oid[:2], oid[2:])
    if not file.exists():  # it is in a pack
        git = ["git", "-C", path, "cat-file"]
        kind = subprocess.check_output([*git, "-t", oid], text=True).strip()
        return kind, subprocess.check_output([*git, kind, oid])
    data = zlib.decompress(file.read_bytes())
    head, _, body = data.partition(b"\0")
    return head.split()[0].decode(), body


class Bare:
    """One bare repository on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def configure(self) -> None:
        """Have the server keep pushes in a form that is read without git."""
        with (self.path / "config").open("a", encoding="utf-8") as config:
            config.write(SETTINGS)

    def tip(self, ref: str = BRANCH) -> str:
        """The commit at the tip of a branch; empty if there is none."""
        try:
            return (self.path / ref).read_text().strip()
        except FileNotFoundError:
            return ""

    def object(self, oid: str) -> bytes:
        return _object(str(self.path), oid)[1]

    def parents(self, commit: str) -> list[str]:
        head = self.object(commit).partition(b"\n\n")[0].decode("utf-8", "replace")
        return [line[7:] for line in head.splitlines() if line.startswith("parent ")]

    def message(self, commit: str) -> str:
        return self.object(commit).partition(b"\n\n")[2].decode("utf-8", "replace")

    def tree_of(self, commit: str) -> str:
        return self.object(commit)[5:45].decode()

    def is_ancestor(self, old: str, new: str) -> bool:
        waiting, seen = [new], set()
        while waiting:
            commit = waiting.pop()
            if commit == old:
                return True
            if commit not in seen:
                seen.add(commit)
                waiting += self.parents(commit)
        return False

    def files(self, tree: str) -> dict[str, str]:
        """Path → id of every file below a tree."""
        return dict(self._walk(tree, ""))

    def _walk(self, tree: str, prefix: str) -> Iterator[tuple[str, str]]:
        data, at = self.object(tree), 0
        while at < len(data):
            end = data.index(b"\0", at)
            mode, name = data[at:end].split(b" ", 1)
            oid, path = data[end + 1 : end + 21].hex(), prefix + name.decode()
            at = end + 21
            if mode == b"40000":
                yield from self._walk(oid, f"{path}/")
            else:
                yield path, oid

    def lengthen(self, commits: int, ref: str = BRANCH) -> None:
        """Add commits without changes until so many were made since the last squash, as years of runs do."""
        tip = self.tip(ref)
        for number in range(Growth.of(self.message(tip)).commits + 1, commits + 1):
            message = replace(Growth.of(self.message(tip)), commits=number).with_trailers("Remember")
            command = ["git", "-C", str(self.path), "commit-tree", self.tree_of(tip), "-p", tip, "-m", message]
            tip = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["git", "-C", str(self.path), "update-ref", ref, tip], check=True)

    def moves(self) -> list[Move]:
        """The moves of the branch, oldest first."""
        log = self.path / "logs" / BRANCH
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return [Move(*line.split(" ", 2)[:2]) for line in lines]

    def everything(self) -> Iterator[bytes]:
        """The content of each object."""
        for file in (self.path / "objects").glob("??/*"):
            yield self.object(file.parent.name + file.name)

    def snapshot(self) -> BareSnapshot:
        """The branch as a store shows it."""
        return BareSnapshot(self, self.tip())


class BareSnapshot:
    """A `Snapshot` of the tip, to read memory as anybody who clones the branch sees it."""

    def __init__(self, bare: Bare, commit: str) -> None:
        self.revision = commit
        self.folders: list[Path] = []
        self._bare = bare
        self.files = bare.files(bare.tree_of(commit)) if commit else {}

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        return {path: self._bare.object(self.files[path]) for path in paths if path in self.files}

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        return {path: len(data) for path, data in self.read(paths).items()}

    def twins(self, paths: Iterable[str]) -> frozenset[str]:
        return frozenset()

    def paths(self, prefix: str) -> list[str]:
        folder = prefix.strip("/")
        return sorted(path for path in self.files if is_below(path, folder))

    def foreign_files(self, prefix: str) -> list[str]:
        return []

    def checkout(self, prefix: str) -> Path:
        folder = Path(tempfile.mkdtemp())
        self.folders.append(folder)
        for path in self.paths(prefix):
            (folder / path.rpartition("/")[2]).write_bytes(self._bare.object(self.files[path]))
        return folder


class BranchTipStore:
    """A store that only reads the tip of the branch."""

    def __init__(self, path: Path) -> None:
        self.snapshot = Bare(path).snapshot()

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self.snapshot

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        raise StoreError("nothing is written here")

    def close(self) -> None:
        for folder in self.snapshot.folders:
            shutil.rmtree(folder, ignore_errors=True)
