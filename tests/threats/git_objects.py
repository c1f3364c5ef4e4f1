"""Git objects that git itself would not make, written straight into a bare repository."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from itertools import chain, repeat
from pathlib import Path

FILE, FOLDER, LINK, SUBMODULE = "100644", "40000", "120000", "160000"
AUTHOR = b"octocat <octocat@users.noreply.github.com> 1767614400 +0000"


def write_object(repository: Path, kind: str, content: bytes) -> str:
    """Store an object as it is and return its id."""
    return _write(repository, b"%s %d\0" % (kind.encode(), len(content)), [content])


def blob(repository: Path, content: bytes) -> str:
    return write_object(repository, "blob", content)


def zeros(repository: Path, size: int) -> str:
    """A blob of ``size`` zero bytes, packed to a thousandth and never whole in memory."""
    chunks, rest = divmod(size, 1 << 20)
    return _write(repository, b"blob %d\0" % size, chain(repeat(bytes(1 << 20), chunks), [bytes(rest)]))


def _write(repository: Path, head: bytes, parts: Iterable[bytes]) -> str:
    digest, deflate, packed = hashlib.sha1(usedforsecurity=False), zlib.compressobj(1), []
    for part in chain([head], parts):
        digest.update(part)
        packed.append(deflate.compress(part))
    object_path = repository / "objects" / digest.hexdigest()[:2] / digest.hexdigest()[2:]
    object_path.parent.mkdir(exist_ok=True)
    object_path.write_bytes(b"".join([*packed, deflate.flush()]))
    return digest.hexdigest()


def tree(repository: Path, entries: Iterable[tuple[str, str | bytes, str]]) -> str:
    """A tree of (mode, name, id), in git's order."""
    rows = [(mode.encode(), name.encode() if isinstance(name, str) else name, oid) for mode, name, oid in entries]
    rows.sort(key=lambda row: row[1] + b"/" * (row[0] == FOLDER.encode()))
    return write_object(
        repository, "tree", b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(oid)) for mode, name, oid in rows)
    )


def commit(repository: Path, root: str, branch: str, message: bytes = b"by hand\n") -> str:
    """A commit without parents, with the tree ``root``, as the tip of ``branch``."""
    oid = write_object(
        repository, "commit", b"tree %s\nauthor %s\ncommitter %s\n\n%s" % (root.encode(), AUTHOR, AUTHOR, message)
    )
    ref = repository / "refs" / "heads" / branch
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(f"{oid}\n", encoding="utf-8")
    return oid


def nested(repository: Path, path: str, mode: str, oid: str) -> str:
    """A tree that holds only ``path``."""
    for name in reversed(path.split("/")):
        oid, mode = tree(repository, [(mode, name, oid)]), FOLDER
    return oid


def tree_bomb(repository: Path, levels: int = 3, width: int = 1000) -> str:
    """A tree of width ** levels files, made of only ``levels`` small objects."""
    oid, mode = blob(repository, b"{}"), FILE
    for _ in range(levels):
        oid, mode = tree(repository, [(mode, f"{at:04d}", oid) for at in range(width)]), FOLDER
    return oid
