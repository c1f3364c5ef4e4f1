"""Which of the files that a thread names are worth a reader's look."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BUILT = re.compile(r"\.(?:a|dll|dylib|exe|log|lib|lock|o|obj|pdb|so|sum)(?:\.\d+)*$", re.ASCII | re.IGNORECASE)
_ON_A_MACHINE = re.compile(r"(?:[A-Za-z]:)?[\\/]|~[\\/]|\.\.[\\/]", re.ASCII)
_BETWEEN = re.compile(r"[\\/]+")


def telling_files(paths: Iterable[str]) -> tuple[str, ...]:
    """The files that somebody may have to open, each once, those of the repository first, else in the order given.

    What a build or a run leaves behind is left out. Of two names for one file (``cookie.py``, ``auth/cookie.py``) the
    one with more folders stays, but a path of the repository rather than one on somebody's machine.
    """
    written = [path for path in dict.fromkeys(paths) if not _BUILT.search(path)]
    kept = [path for path in written if not any(_is_better(other, path) for other in written)]
    return tuple(sorted(kept, key=lambda path: bool(_ON_A_MACHINE.match(path))))


def _is_better(other: str, path: str) -> bool:
    """Whether both may be the same file and ``other`` is the name to show."""
    ours, theirs = _folders(path), _folders(other)
    if ours == theirs:
        return False
    shorter, longer = sorted((ours, theirs), key=len)
    if longer[-len(shorter) :] != shorter:
        return False
    if len(shorter) > 1 and _ON_A_MACHINE.match(path) and not _ON_A_MACHINE.match(other):
        return True
    is_worse_place = len(shorter) > 1 and bool(_ON_A_MACHINE.match(other)) and not _ON_A_MACHINE.match(path)
    return theirs == longer and not is_worse_place


def _folders(path: str) -> list[str]:
    return [part for part in _BETWEEN.split(path) if part not in ("", ".", "..")]
