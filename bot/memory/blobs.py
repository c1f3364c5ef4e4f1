"""Edits as git takes them: the id of each new content, and the one stream that makes a commit of them."""

from __future__ import annotations

import hashlib
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bot.memory.git import FILE_MODE, NEXT, Entry
from bot.memory.store import StoreError

AUTHOR = "precedent <precedent@users.noreply.github.com>"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Blob:
    """New content of a file: where it is taken from, its size in bytes, and the id that git gives it."""

    source: bytes | Path
    size: int
    oid: str

    @classmethod
    def of(cls, source: bytes | Path) -> Blob:
        """Measure ``source``; a path must be a regular file, else StoreError."""
        size = len(source) if isinstance(source, bytes) else _file_size(source)
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        for chunk in _chunks(source):
            digest.update(chunk)
        return cls(source, size, digest.hexdigest())

    def packed(self) -> int:
        """Bytes it takes when deflated alone: what a push sends of it at most (a delta may be far smaller)."""
        deflate = zlib.compressobj(1)
        return sum(len(deflate.compress(chunk)) for chunk in _chunks(self.source)) + len(deflate.flush())

    def write(self, out: IO[bytes]) -> None:
        """Append the content; StoreError when the file is not the size any more that it was measured at."""
        if sum(out.write(chunk) for chunk in _chunks(self.source)) != self.size:
            raise StoreError(f"{self.source!s} changed while it was stored; write it before handing it over")


Changes = Mapping[str, Blob | None]
"""Path → new content, None to delete it."""


@dataclass(frozen=True)
class Draft:
    """A commit to be made on ``parent``, or, without one, from ``tree`` ("": empty); ``time`` in seconds since 1970."""

    parent: str
    tree: str
    message: str
    time: int


def import_stream(draft: Draft, changes: Changes, folder: Path) -> IO[bytes]:
    """The `git fast-import` stream of this commit, in a file in ``folder`` that vanishes when closed.

    One process reads it and loads only the trees on the way to a changed file. It prints the ids of commit and tree.
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
    for path in (path for path, blob in changes.items() if blob is None):  # first: a folder may make room for a file
        out.write(b"D %s\n" % _quoted(path))
    for path, blob in changes.items():
        if blob is not None:
            out.write(b"M %s inline %s\ndata %d\n" % (FILE_MODE.encode(), _quoted(path), blob.size))
            blob.write(out)
            out.write(b"\n")
    out.write(b'\nget-mark :1\nls :1 ""\ndone\n')
    return out


def differing(files: Mapping[str, Entry], changes: Changes) -> Changes:
    """``changes`` without those that ``files`` already show."""
    return {
        path: blob
        for path, blob in changes.items()
        if files.get(path) != (None if blob is None else Entry(FILE_MODE, blob.oid))
    }


def changed(files: Mapping[str, Entry], changes: Changes) -> dict[str, Entry]:
    """``files`` after ``changes``."""
    kept = {path: entry for path, entry in files.items() if path not in changes}
    return kept | {path: Entry(FILE_MODE, blob.oid) for path, blob in changes.items() if blob is not None}


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
