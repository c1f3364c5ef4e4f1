"""The expected errors, the user's and the world's, and the line that reports a bug."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class PrecedentError(Exception):
    """Base of the expected errors. The message is one line with the cause and the remedy.

    ``remedy`` is what to do, or what happens next by itself; some errors have both in the ``cause``.
    """

    exit_code = 1
    joint = "; "
    """Separates the two."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}{self.joint}{remedy}" if remedy else cause)
        self.cause, self.remedy = cause, remedy


class UserError(PrecedentError):
    """The user gave something wrong: a setting, an argument, a file. Shown in one line, exit code 2."""

    exit_code = 2


class WorldError(PrecedentError):
    """Something outside failed: the network, GitHub, git, the disk. Reported in one line, exit code 1."""


class StoreError(WorldError):
    """The store could not be read or written."""


class UnreadableFile(StoreError):
    """One of our files is not readable: it is a link, a pipe or too large. ``paths`` says which."""

    def __init__(self, cause: str, paths: Iterable[str]) -> None:
        super().__init__(cause)
        self.paths = frozenset(paths)


class TextRefused(StoreError):
    """The server takes a text in each of these ``places``, paths and numbers of lines, for a secret."""

    def __init__(self, cause: str, remedy: str, places: Iterable[tuple[str, int]]) -> None:
        super().__init__(cause, remedy)
        self.places = frozenset(places)


class PathClash(StoreError):
    """A write would need one path as a file and as a folder. ``paths`` says which."""

    def __init__(self, cause: str, paths: Iterable[str]) -> None:
        super().__init__(cause)
        self.paths = frozenset(paths)


class TipMoved(Exception):
    """Another writer was faster: take the newest snapshot, apply the changes to it, and write again."""


@contextmanager
def require_libraries(libraries: Collection[str], message: str) -> Iterator[None]:
    """A block for imports that not every installation has.

    Raises UserError if one of these libraries is missing: with ``message``, in which ``{name}`` is the module.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in libraries:
            raise
        raise UserError(message.format(name=error.name)) from error


OUT_OF_MEMORY = "there is not enough memory for this repository: delete its memory branch, and run with `rebuild`"


def bug_report(error: BaseException) -> str:
    """An unexpected error as one line: its type and its place in the code, without values, which may be private."""
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    import traceback  # only needed for a bug

    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
    return f"this is a bug of Precedent, please report it: {type(error).__name__} at {' > '.join(places[-8:])}"
