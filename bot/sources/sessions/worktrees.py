"""Tells which folders belong to a checkout: those in it, and those in other worktrees of its repository.

Reads git's files instead of running git, as every search from a shell asks for this.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from bot.sources.sessions.head import note_of

_MAX_WORKTREES = 1_000
_MAX_ADDRESS = 4_096
_GITDIR = "gitdir: "


class Worktrees:
    """The worktrees of the checkout at ``top``: ``paths`` has all that git knows, itself first. The folder of a removed
    one is among them until git prunes its list."""

    def __init__(self, top: str) -> None:
        self._top = os.path.realpath(top)
        self._common = _common_folder(self._top)
        self.paths = tuple(dict.fromkeys([top, self._top, *_listed(self._common)]))

    def owner_of(self, folder: str) -> str:
        """Return the git folder of the innermost checkout around a folder; "" if it is gone, or in none."""
        with suppress(OSError, ValueError):
            if folder and os.path.isdir(folder):  # noqa: PTH112
                for level in _levels(os.path.realpath(folder)):
                    if os.path.lexists(f"{level}/.git"):
                        return _common_folder(level) or f"{level}/.git"
        return ""

    def is_owner(self, name: str) -> bool:
        """Whether this is the git folder of the checkout, or the ``owner/name`` of its remote."""
        return bool(name) and name in (self._common, self.repository)

    def holds(self, folder: str) -> bool:
        """Whether a folder is in the checkout or in another worktree, and not in another checkout inside it.

        A worktree that was removed counts by its path.
        """
        if not folder or "\0" in folder:
            return False
        with suppress(OSError, ValueError):
            for level in _levels(os.path.realpath(folder)):
                if os.path.lexists(f"{level}/.git"):
                    return level == self._top or (bool(self._common) and _common_folder(level) == self._common)
                if level in self.paths:
                    return True
        return False

    @property
    def repository(self) -> str:
        """The ``owner/name`` at the end of the address of ``origin``, in lower case; "" without one."""
        return slug_of(_origin(note_of(f"{self._common}/config"))) if self._common else ""


def _levels(folder: str) -> list[str]:
    return [folder, *map(str, Path(folder).parents)]


def _common_folder(top: str) -> str:
    """The git folder that all worktrees share with the one at ``top``, "" if there is none."""
    git = f"{top}/.git"
    if os.path.isdir(git):  # noqa: PTH112
        return os.path.realpath(git)
    text = note_of(git)
    if not text.startswith(_GITDIR):
        return ""
    own = os.path.realpath(os.path.join(top, text[len(_GITDIR) :].strip()))  # noqa: PTH118
    if os.path.realpath(note_of(f"{own}/gitdir").strip() or "/") != os.path.realpath(git):
        return own  # a submodule, or not confirmed by the other side
    return os.path.realpath(os.path.join(own, note_of(f"{own}/commondir").strip()))  # noqa: PTH118


def _listed(common: str) -> list[str]:
    """The folders of the worktrees that a git folder lists."""
    if not common:
        return []
    main = [os.path.dirname(common)] if os.path.basename(common) == ".git" else []  # noqa: PTH119, PTH120
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(f"{common}/worktrees"))[:_MAX_WORKTREES]  # noqa: PTH208
    files = (note_of(f"{common}/worktrees/{name}/gitdir").strip() for name in names)
    return [*main, *(file.removesuffix("/.git") for file in files if file.startswith("/") and file.endswith("/.git"))]


def _origin(config: str) -> str:
    """The address of ``origin`` in a file of git's settings, "" if there is none."""
    is_origin = False
    for line in map(str.strip, config.split("\n")):
        if line.startswith("["):
            is_origin = line == '[remote "origin"]'
        elif is_origin and line.partition("=")[0].strip() == "url":
            return line.partition("=")[2].strip()
    return ""


def slug_of(address: str) -> str:
    """Return the ``owner/name`` at the end of a remote's address, in lower case; "" without one."""
    match = re.search(r"(?a)(?:^|[/:])([\w.-]{1,100}/[\w.-]{1,100}?)(?:\.git)?/?$", address.strip()[-_MAX_ADDRESS:])
    return match[1].casefold() if match else ""
