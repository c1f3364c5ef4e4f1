"""Finds the threads that name some files, and weighs how much a file says about such a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bot.domain.card import CardId
from bot.questions.requests import Cards

_COMMON_FILES = frozenset(
    {"__init__.py", "cargo.toml", "changelog.md", "go.mod", "index.html", "index.js", "index.ts", "license", "main.py"}
    | {"makefile", "mod.rs", "package-lock.json", "package.json", "pyproject.toml", "readme.md", "setup.py"}
)
_MAX_THREADS = 5
"""A file named by more threads is not distinctive; in a large memory the limit is a twentieth of all threads."""

_MAX_SHARE = 0.05


class NamedFile(NamedTuple):
    """A file that a thread names.

    ``weight`` is how much the file counts in the question, in 0..1. ``telling`` says how much it sets the thread apart:
    1 if few threads name it, less the more do, and 0 for a common name without a folder, which may be another file.
    ``is_exact``: the thread writes it with a folder, or it has none.
    """

    path: str
    weight: float = 1.0
    telling: float = 1.0
    is_exact: bool = True

    @property
    def is_distinctive(self) -> bool:
        return self.telling == 1

    @property
    def name(self) -> str:
        """Its last part."""
        return self.path.rpartition("/")[2]


def named_files(files: Mapping[str, float], cards: Cards) -> dict[CardId, tuple[NamedFile, ...]]:
    """The threads that name some of these files, given with their weights, each with those that it names."""
    found: dict[CardId, tuple[NamedFile, ...]] = {}
    size = cards.size
    for path, weight in files.items():
        mentions = cards.file_mentions(path)
        for key, spellings in mentions.items():
            is_exact = "/" not in path or any("/" in spelling.replace("\\", "/").strip("/") for spelling in spellings)
            telling = _telling(path, len(mentions), size, is_exact=is_exact)
            found[key] = (*found.get(key, ()), NamedFile(path, weight, telling, is_exact))
    return found


def _telling(path: str, count: int, size: int, *, is_exact: bool) -> float:
    if path.rpartition("/")[2].casefold() in _COMMON_FILES and not (is_exact and "/" in path):
        return 0.0
    return min(1.0, max(_MAX_THREADS, size * _MAX_SHARE) / count)
