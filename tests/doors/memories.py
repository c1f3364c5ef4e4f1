"""Builds the memories of the table in folders: the made-up one, and those of real archives."""

from __future__ import annotations

import json
from pathlib import Path

from tests.doors.entrances import import_archive
from tests.doors.history import threads
from tests.doors.table import MADE_UP

ARCHIVES = Path(__file__).resolve().parents[3] / "shared/data"
"""The folder with the archives of real projects, which stands beside the checkout or is missing."""


def build(name: str, folder: Path) -> None:
    """Import the memory of this name into a folder."""
    if name == MADE_UP:
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder.parent / f"{name}.jsonl"
        archive.write_text("".join(f"{json.dumps(thread)}\n" for thread in threads()), encoding="utf-8")
    else:
        archive = archive_of(name)
    import_archive(archive, folder)


def archive_of(name: str) -> Path:
    """The file of a real project."""
    return ARCHIVES / name / "issues.jsonl.gz" if name == "rust_pre2015" else ARCHIVES / f"threads/{name}.jsonl.gz"
