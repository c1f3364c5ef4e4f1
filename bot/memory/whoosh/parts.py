"""The parts of large segments: files named by their content, brought when needed and checked when they come."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bot.memory.index import IndexCorrupt
from bot.memory.layout import PARTS_FOLDER

PART = re.compile(r"[0-9a-f]{32}", re.ASCII)
DIGEST_BYTES = 16
MAX_PART_BYTES = 16 << 20
"""Ours have at most a sixteenth of that."""

Fetch = Callable[[Sequence[str]], Mapping[str, bytes]]
"""Names of parts → those of them that are there, all in one exchange."""


class Parts:
    """The parts of an index: those written here lie in its folder, others are fetched, each once.

    A name is half of the SHA-256 of the content, so what came under it is what its segment means, or IndexCorrupt.
    """

    def __init__(self, folder: Path, fetch: Fetch | None = None) -> None:
        self._folder = folder / PARTS_FOLDER
        self._fetch = fetch
        self._held: dict[str, bytes] = {}

    def bring(self, names: Iterable[str]) -> None:
        """Have these parts here, with one exchange for all that are not."""
        missing = [name for name in dict.fromkeys(names) if name not in self._held]
        there = {path.name for path in self._folder.iterdir()} if missing and self._folder.is_dir() else set()
        for name in missing:
            if name in there:
                self._hold(name, (self._folder / name).read_bytes())
        absent = [name for name in missing if name not in there]
        found = self._fetch(absent) if absent and self._fetch else {}
        for name in absent:
            if name not in found:
                raise IndexCorrupt(f"its part {name} is missing")
            self._hold(name, found[name])

    def __getitem__(self, name: str) -> bytes:
        """The content of a part, brought if it is not here."""
        if name not in self._held:
            self.bring([name])
        return self._held[name]

    def save(self, data: bytes) -> str:
        """Write a part into the folder; its name."""
        name = _name(data)
        self._folder.mkdir(exist_ok=True)
        (self._folder / name).write_bytes(data)
        return name

    def drop(self, keep: Iterable[str]) -> None:
        """Forget all parts but these."""
        kept = set(keep)
        self._held = {name: data for name, data in self._held.items() if name in kept}
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path.name not in kept:
                path.unlink()

    def _hold(self, name: str, data: bytes) -> None:
        if len(data) > MAX_PART_BYTES or _name(data) != name:
            raise IndexCorrupt(f"its part {name} is not what its name says")
        self._held[name] = data


def _name(data: bytes) -> str:
    return hashlib.sha256(data).digest()[:DIGEST_BYTES].hex()
