"""SHA-256 of files, by which damage is noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path


def bytes_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_hashes(folder: Path, known: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of the files in ``folder`` by name; a name stands for one content, so ``known`` ones are not read."""
    names = sorted(path.name for path in folder.iterdir() if not path.is_dir())
    return {name: known.get(name) or file_hash(folder / name) for name in names}


def damaged_files(hashes: Mapping[str, str], folder: Path) -> list[str]:
    """The files that are missing, unknown, or differ from these hashes."""
    present = {path.name for path in folder.iterdir()}
    wrong = present.symmetric_difference(hashes)
    return sorted(wrong | {name for name in present - wrong if file_hash(folder / name) != hashes[name]})
