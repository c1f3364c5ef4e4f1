"""The committed index: anybody may have written its bytes."""

from __future__ import annotations

import base64
import random
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from bot.domain.digest import IndexEntry
from bot.domain.thread import Kind
from bot.index import build_index, open_index
from bot.index.protocol import IndexCorrupt, IndexDocument, Query
from tests.fuzz.target import Target, require

START = datetime(2020, 1, 1, tzinfo=UTC)
LATER = START + timedelta(days=30)
QUERY = Query(
    {"crash": 1.0, "login": 2.0, "absent": 1.0},
    vectors={"trained": b"\1\1\1"},
    blend={"text": 2.0, "trained": 1.0, "open": 1.0, "age": -0.3, "closed": -0.2, "length": 0.1, "duplicates": 0.7},
)


def _document(number: int) -> IndexDocument:
    at = START + timedelta(days=number)
    closed = at if number % 3 else None
    entry = IndexEntry(number, Kind.ISSUE, f"Title {number}", "octocat", "closed" if closed else "open", at, at, closed)
    words = ["crash", "login", *(["cookie"] if number % 2 else ["proxy", "proxy"])]
    return IndexDocument(entry, words, ["body"] * number, {"files": ["a.py"]}, {"trained": bytes([number, 1, 255])})


@cache
def honest() -> dict[str, str]:
    """A small index of two segments, with a deleted document: name → base64."""
    with tempfile.TemporaryDirectory() as folder:
        index_folder = Path(folder) / "index"
        build_index(index_folder, [_document(number) for number in range(1, 13)])
        open_index(index_folder).update([_document(3), _document(20)])
        return {path.name: base64.b64encode(path.read_bytes()).decode() for path in sorted(index_folder.iterdir())}


def mutate(files: Mapping[str, str], mutate_bytes: Any, rng: random.Random) -> dict[str, str]:
    """The files with one of them changed, or now and then missing or renamed."""
    name = rng.choice(sorted(files))
    rest = {key: value for key, value in files.items() if key != name}
    if rng.random() < 0.03:
        return rest or dict(files)
    new = rng.choice([name.replace("0", "1"), f"{name}x"]) if rng.random() < 0.03 else name
    return rest | {new: base64.b64encode(mutate_bytes(base64.b64decode(files[name]))).decode()}


def _use(files: Mapping[str, str]) -> None:
    """Every kind of read: opening, searching, entries, rarities, and an update that merges segments."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for name, data in files.items():
            (path / name).write_bytes(base64.b64decode(data))
        index = open_index(path)
        try:
            for before in (START + timedelta(days=6), LATER):
                hits = index.search(QUERY, before=before)
                require(len({hit.entry.id for hit in hits}) == len(hits) or files != honest(), "a thread twice")
                index.rarity(["crash", "absent"], before=before)
            index.search(Query({"crash": 1.0}))
            index.entries(range(1, 25))
            len(index)
            index.update([_document(5)], remove=[7])
        finally:
            index.close()


TARGETS = (Target("index", "files", lambda: [honest()], _use, (IndexCorrupt,)),)
