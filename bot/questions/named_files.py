"""Finds the threads that name some files, and weighs how much a file says about such a thread."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bot.domain.card import CardId
from bot.domain.paths import path_parts
from bot.questions.requests import Cards

_COMMON_FILES = frozenset(
    {"__init__.py", "cargo.toml", "changelog.md", "go.mod", "index.html", "index.js", "index.ts", "license", "main.py"}
    | {"makefile", "mod.rs", "package-lock.json", "package.json", "pyproject.toml", "readme.md", "setup.py"}
)
_MAX_THREADS = 5
"""A file named by more threads is not distinctive; in a large memory the limit is a twentieth of all threads."""

_MAX_SHARE = 0.05
_ABSOLUTE_PATH = re.compile(r"/|[A-Za-z]:/")


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


def files_in_folders(folders: Iterable[str], cards: Cards) -> dict[CardId, tuple[NamedFile, ...]]:
    """The threads that name files in some of these folders, each with these files, ordered by path; see `path_in`."""
    wanted = {folder: "".join(path_parts(_normal(folder))[-1:]).casefold() for folder in folders if folder}
    found: dict[CardId, dict[str, NamedFile]] = {}
    for key, spelling in cards.files():
        folded = spelling.casefold()
        for folder, last_part in wanted.items():
            if last_part in folded and (path := path_in(folder, spelling)):  # the first test is quick
                found.setdefault(key, {}).setdefault(path.casefold(), NamedFile(path))
    return {key: tuple(files[name] for name in sorted(files)) for key, files in found.items()}


def path_in(folder: str, spelling: str) -> str:
    """The path of a file that begins with ``folder``, "" if it is not in that folder; case does not matter.

    ``spelling`` is the path as a thread writes it. It may have more folders in front, or fewer: both
    ``/app/linkbarn/auth/cookie.py`` and ``auth/cookie.py`` are in ``linkbarn/auth``. A folder that begins with ``./``
    is at the top of the project, so ``tests/auth/test.py`` is not in ``./auth``, and ``.`` has all relative paths. An
    absolute folder has only absolute paths, and a folder that begins with ``..`` has none.
    """
    spelling = spelling.replace("\\", "/")
    name, is_absolute = _normal(folder), bool(_ABSOLUTE_PATH.match(spelling))
    wanted, parts = path_parts(name), path_parts(spelling)
    if name.startswith("/"):
        is_inside = is_absolute and bool(wanted) and _begins_with(parts[:-1], wanted)
        return "/" + "/".join(parts) if is_inside else ""
    if ".." in name.split("/") or (is_absolute and not wanted):
        return ""
    if not is_absolute and (folder.startswith(("./", ".\\")) or not wanted):
        ends = [len(wanted)] if _begins_with(parts[:-1], wanted) else []
    else:
        before, inside, _ = f"/{'/'.join(parts[:-1])}/".casefold().partition(f"/{'/'.join(wanted)}/".casefold())
        ends = [before.count("/") + len(wanted)] if inside else []
    tails = range(min(len(wanted), len(parts)) - 1, 0, -1) if not is_absolute else ()
    ends += [count for count in tails if _begins_with(parts[:-1], wanted[-count:])]
    return "/".join([*wanted, *parts[ends[0] :]]) if ends else ""


def _normal(folder: str) -> str:
    return posixpath.normpath(folder.replace("\\", "/"))


def _begins_with(parts: list[str], wanted: list[str]) -> bool:
    return [part.casefold() for part in parts[: len(wanted)]] == [part.casefold() for part in wanted]
