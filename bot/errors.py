"""The errors that are expected, the user's and the world's, and the line that reports a bug."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class PrecedentError(Exception):
    """Base of the errors that are expected. The message is one line that names the thing and the remedy.

    ``cause`` is what is so. ``remedy`` is what mends it, or comes of it by itself; some errors tell both in the cause.
    """

    exit_code = 1
    joint = "; "
    """What stands between the two."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}{self.joint}{remedy}" if remedy else cause)
        self.cause, self.remedy = cause, remedy


class UserError(PrecedentError):
    """Something that the user gave is wrong: a setting, an argument, a file. Shown in one line, exit code 2."""

    exit_code = 2


class WorldError(PrecedentError):
    """Something outside failed: the network, GitHub, git, the disk. Reported in one line, exit code 1."""


class StoreError(WorldError):
    """The store could not be read or written; the message says what to do."""


class UnreadableFile(StoreError):
    """There is something else where files of ours belong: a link, a pipe, a file of any size. ``paths`` says where."""

    def __init__(self, cause: str, paths: Iterable[str]) -> None:
        super().__init__(cause)
        self.paths = frozenset(paths)


class PathClash(StoreError):
    """A write would make files that are the folders of others. ``paths`` says which."""

    def __init__(self, cause: str, paths: Iterable[str]) -> None:
        super().__init__(cause)
        self.paths = frozenset(paths)


class TipMoved(Exception):
    """Somebody else wrote first: take the newest snapshot, apply the changes again, and write again."""


def bug(error: BaseException) -> str:
    """An unexpected error as one line for a report: what and where, and none of the values, which may be anybody's."""
    import traceback  # for a bug alone

    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
    return f"this is a bug of Precedent, please report it: {type(error).__name__} at {' > '.join(places[-8:])}"
