"""A memory that somebody asks, and how they said where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from bot.errors import UserError
from bot.glance.file import FORMAT
from bot.glance.glance import Glance
from bot.reading.words import ANALYSER_VERSION

_OURS = f"{FORMAT}-{ANALYSER_VERSION}"
GLANCE, FETCHED = f"glance-{_OURS}.db", f"fetched-{_OURS}"
"""Names in the folder of a memory: its glance, and what was to be said of the last fetch, a file as old as that. Those
of a version that reads other glances have other names: two versions on one machine leave each other's alone."""


Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Shows how far some work is: takes its label and its number of steps (None: unknown), gives a function that takes the
number of steps done since the last call."""


@contextmanager
def no_progress(_label: str, _total: int | None) -> Iterator[Callable[[int], None]]:
    """Shows nothing."""
    yield lambda _: None


class Where(NamedTuple):
    """Where to look, as the command line has it: a ``store``, else ``repo`` (OWNER/NAME), else the checkout of
    ``folder``. ``refresh`` fetches whatever is here, ``offline`` fetches nothing."""

    folder: Path
    store: Path | None = None
    repo: str = ""
    branch: str = ""
    refresh: bool = False
    offline: bool = False
    progress: Progress = no_progress


class Place(NamedTuple):
    """A memory that can be asked. ``repo`` is OWNER/NAME and ``home`` its address for people, "" where nobody knows.

    ``top`` is the topmost folder of the checkout, None outside of any. ``note`` says what somebody should know of it;
    ``missing`` why there is none, and what mends it: its glance is empty then. ``cache`` is a folder for what belongs
    to it on this machine, ``store`` the folder that it was read from, None where that is a branch.
    ``is_of_checkout``: it is the memory of the repository that was cloned to ``top``.
    """

    glance: Glance
    repo: str = ""
    home: str = ""
    top: Path | None = None
    note: str = ""
    missing: str = ""
    cache: Path | None = None
    store: Path | None = None
    is_of_checkout: bool = False
    progress: Progress = no_progress

    def demand(self) -> Place:
        """Itself; UserError where there is no memory."""
        if self.missing:
            raise UserError(self.missing)
        return self
