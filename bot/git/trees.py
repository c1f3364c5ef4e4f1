"""Writes changes as a stream that makes a commit, and lists the names in a tree, within bounds.

A small tree may unfold into billions of files.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO

from bot.errors import StoreError
from bot.files import LONGEST, MAX_DEPTH, MAX_FILES
from bot.git.repository import FILE_MODE, NEXT, Git, TreeEntry

AUTHOR = "precedent <precedent@users.noreply.github.com>"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Blob:
    """The new content of a file: its source, its size in bytes, and the id that git gives it."""

    source: bytes | Path
    size: int
    oid: str

    @classmethod
    def of(cls, source: bytes | Path) -> Blob:
        """Measure ``source``. Raises StoreError for a path that is not a regular file."""
        size = len(source) if isinstance(source, bytes) else _file_size(source)
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        for chunk in _chunks(source):
            digest.update(chunk)
        return cls(source, size, digest.hexdigest())

    def packed(self) -> int:
        """Return its deflated size in bytes, the most that a push sends (a delta may be far smaller)."""
        deflate = zlib.compressobj(1)
        return sum(len(deflate.compress(chunk)) for chunk in _chunks(self.source)) + len(deflate.flush())

    def write(self, out: IO[bytes]) -> None:
        """Append the content. Raises StoreError if the size has changed since it was measured."""
        if sum(out.write(chunk) for chunk in _chunks(self.source)) != self.size:
            raise StoreError(f"{self.source!s} changed while it was stored; write it before handing it over")


Changes = Mapping[str, Blob | None]
"""Path → new content, None to delete it."""


@dataclass(frozen=True)
class CommitDraft:
    """A commit to make on ``parent`` or, without one, from ``tree`` ("": empty); ``time`` in seconds since 1970."""

    parent: str
    tree: str
    message: str
    time: int


def import_stream(draft: CommitDraft, changes: Changes, folder: Path) -> IO[bytes]:
    """Write the `git fast-import` stream of this commit, to a file in ``folder`` that vanishes when closed.

    Git loads only the trees on the way to a changed file, and prints the ids of commit and tree.
    """
    out = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    text = draft.message.encode("utf-8", "replace")
    out.write(
        b"commit %s\nmark :1\ncommitter %s %d +0000\ndata %d\n%s\n"
        % (NEXT.encode(), AUTHOR.encode(), draft.time, len(text), text)
    )
    if draft.parent:
        out.write(b"from %s\n" % draft.parent.encode())
    elif draft.tree:
        out.write(b'M 040000 %s ""\n' % draft.tree.encode())
    for path in (path for path, blob in changes.items() if blob is None):  # first, since a file may replace a folder
        out.write(b"D %s\n" % _quoted(path))
    for path, blob in changes.items():
        if blob is not None:
            out.write(b"M %s inline %s\ndata %d\n" % (FILE_MODE.encode(), _quoted(path), blob.size))
            blob.write(out)
            out.write(b"\n")
    out.write(b'\nget-mark :1\nls :1 ""\ndone\n')
    return out


def differing(files: Mapping[str, TreeEntry], changes: Changes) -> Changes:
    return {
        path: blob
        for path, blob in changes.items()
        if files.get(path) != (None if blob is None else TreeEntry(FILE_MODE, blob.oid))
    }


def changed(files: Mapping[str, TreeEntry], changes: Changes) -> dict[str, TreeEntry]:
    kept = {path: entry for path, entry in files.items() if path not in changes}
    return kept | {path: TreeEntry(FILE_MODE, blob.oid) for path, blob in changes.items() if blob is not None}


def _quoted(path: str) -> bytes:
    return b'"%s"' % path.replace('"', '\\"').encode()


def _file_size(path: Path) -> int:
    if path.is_symlink() or not path.is_file():
        raise StoreError(f"{path} is not a regular file; hand over its content or a file")
    return path.stat().st_size


def _chunks(source: bytes | Path) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    try:
        with source.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise StoreError(f"cannot read {source}: {error.strerror}") from error


LARGEST_TREE = 16_000_000
"""Bytes of one folder's list of names, about 400,000 names."""

FOLDER = "040000"
SUBMODULE = "160000"
_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)


class TooMany(StoreError):
    """A tree has too many names to look through."""


def walk(git: Git, tree: str, leads: Callable[[str], bool], most: int) -> Iterator[tuple[str, TreeEntry]]:
    """Yield path and entry of everything in ``tree``. Raises TooMany after ``most`` entries or for a huge folder.

    ``leads`` decides which folders to look into; those with an overlong path are left out. One list of names is in
    memory at a time, and a name longer than any of our paths counts as several.
    """
    level, count = {tree: [""]}, 0
    for _ in range(MAX_DEPTH):
        below: dict[str, list[str]] = {}
        for oid, data in git.objects.read(level, LARGEST_TREE):
            folders = level.pop(oid)
            for found in _ENTRY.finditer(data):
                bits, name, raw = found.groups()
                count += len(folders) * (1 + len(name) // LONGEST)
                if count > most:
                    raise TooMany(f"there are more than {most:,} files")
                entry = TreeEntry(_kind(bits), raw.hex())
                for folder in folders:
                    path = folder + name.decode("utf-8", "surrogateescape")
                    yield path, entry
                    if entry.mode == FOLDER and len(path) < LONGEST and leads(path):
                        below.setdefault(entry.oid, []).append(f"{path}/")
        for folder in chain.from_iterable(level.values()):
            raise TooMany(f"the folder {folder[:80]!r} is not there, or too large to be looked through")
        level = below


def all_files(git: Git, tree: str) -> dict[str, TreeEntry]:
    """Return path → entry of all files, symlinks and submodules in ``tree``. Raises StoreError beyond MAX_FILES."""
    try:
        entries = walk(git, tree, lambda _: True, MAX_FILES)
        return {path: entry for path, entry in entries if entry.mode != FOLDER}
    except TooMany as error:
        raise TooMany(f"{error}: this program never wrote that branch; delete it, and run with `rebuild`") from None


@cache
def _kind(mode: bytes) -> str:
    """The mode as git sees it: for a regular file only whether its owner may run it counts."""
    number = int(mode, 8)
    match number & 0o170000:
        case 0o100000:
            return "100755" if number & 0o100 else FILE_MODE
        case 0o040000:
            return FOLDER
        case 0o120000:
            return "120000"
    return SUBMODULE
