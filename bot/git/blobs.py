"""Reads a few files out of a repository on this machine, quickly: one process, and nothing slow to load."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.git.process import PIPE, QUIET, finish, inherited, start

MOST = 500
"""Files that are read at once: their names fit into a pipe."""

_PATIENCE = 5.0


def read_blobs(repository: Path, names: Sequence[str]) -> Iterator[bytes]:
    """Yield the contents of those objects (``COMMIT:path``) that are there; of the first `MOST` alone.

    Objects that cannot be read are left out, and so are those after the first 16 MB. Nothing is fetched.
    """
    environment = inherited(("PATH",)) | QUIET | {"GIT_NO_LAZY_FETCH": "1", "GIT_DIR": str(repository)}
    try:
        process = start(("cat-file", "--batch"), repository, environment, PIPE)
        assert process.stdin
        os.write(process.stdin.fileno(), "".join(f"{name}\n" for name in names[:MOST]).encode())
        output = finish(process, _PATIENCE).stdout
    except (OSError, ValueError):  # TimeoutError is one too
        return
    yield from _contents(output)


def _contents(output: bytes) -> Iterator[bytes]:
    at = 0
    while (end := output.find(b"\n", at)) >= 0:
        words = output[at:end].split()
        at = end + 1
        if len(words) == 3 and words[1] == b"blob":
            size = int(words[2])
            if len(output) < at + size:
                return
            yield output[at : at + size]
            at += size + 1
