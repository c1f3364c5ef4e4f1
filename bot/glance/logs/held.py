"""Whether the logs are behind their files: asked before every search, so nothing is read for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Container

from bot.glance.file import fact
from bot.sources.transcripts.files import Files


def is_behind(database: sqlite3.Connection, files: Files, failed: Container[str] = ()) -> bool:
    """Whether a file is new, has changed or is gone; one that ``failed`` is as it can be."""
    known = dict(database.execute("SELECT path, mark FROM files"))
    paths = {file.path for file in files.sessions}
    changed = any(known.get(file.path) != file.mark and file.path not in failed for file in files.sessions)
    return changed or not known.keys() <= paths


def is_unmapped(database: sqlite3.Connection, files: Files) -> bool:
    """Whether an issue may belong to another session than is noted."""
    return fact(database, "mapping") != stamp_of(files)


def stamp_of(files: Files) -> str:
    """Another one as soon as a mapping file has changed, or the files that it may name."""
    if not files.mappings:
        return ""
    from hashlib import sha256  # most have no mapping files, and begin without it

    marks = [f"{file.path}\0{file.mark}" for file in files.mappings]
    return sha256("\0".join([*marks, *sorted(file.path for file in files.sessions)]).encode()).hexdigest()
