"""Builds the memories of the table in folders: the made-up one, and those of real archives."""

from __future__ import annotations

import json
from pathlib import Path

from tests.doors.entrances import import_archive
from tests.doors.history import threads
from tests.doors.table import MADE_UP


def build(name: str, folder: Path, archives: Path | None) -> None:
    """Import the memory of this name. Those of real projects are read from the folder ``archives``."""
    if name == MADE_UP:
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder.parent / f"{name}.jsonl"
        archive.write_text("".join(f"{json.dumps(thread)}\n" for thread in threads()), encoding="utf-8")
    else:
        assert archives is not None, f"{name} needs the archives"
        archive = archive_of(name, archives)
    import_archive(archive, folder)


def archive_of(name: str, archives: Path) -> Path:
    """The file of a real project."""
    return archives / name / "issues.jsonl.gz" if name == "rust_pre2015" else archives / f"threads/{name}.jsonl.gz"
