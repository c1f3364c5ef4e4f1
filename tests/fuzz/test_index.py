"""The committed index, whose bytes anybody may have written: read and updated, or refused as corrupt."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from bot.index import build_index, open_index
from bot.index.protocol import IndexCorrupt
from tests.fuzz import inputs
from tests.fuzz.properties import fuzz
from tests.index.test_whoosh_attacks import document, use


@cache
def honest() -> dict[str, bytes]:
    """A small index of two segments, with a deleted document."""
    with tempfile.TemporaryDirectory() as folder:
        index_folder = Path(folder) / "index"
        build_index(index_folder, [document(number) for number in range(1, 13)])
        open_index(index_folder).update([document(3), document(20)])
        return {path.name: path.read_bytes() for path in index_folder.iterdir()}


@fuzz(inputs.files(honest), IndexCorrupt)
def test_a_damaged_index_can_be_used_or_is_corrupt(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / name).write_bytes(data)
        use(Path(folder))
