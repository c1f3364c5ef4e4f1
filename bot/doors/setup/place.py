"""What git knows of a checkout: where it begins, whose it is, its default branch. Nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bot.doors.checkup.place import place_of
from bot.errors import UserError
from bot.memory.checkout_git import FIRST, CheckoutGit, is_bare, top_of

_USUAL = ("main", "master")
_DOCS = ("doc", "documentation", "guides", "manual", "website", "site")
"""Folders in which others keep documentation; `docs` is read anyhow."""


@dataclass(frozen=True, slots=True)
class Place:
    """A checkout that begins at ``top``. ``server`` and ``repository`` are "" where ``remote``, the one that counts,
    tells neither; it is "" where there is none.

    ``main`` is the default branch, ``is_noted`` whether git knows that, ``current`` the branch that is checked out;
    ``docs`` are folders with Markdown that the settings leave out.
    """

    top: Path
    server: str = ""
    repository: str = ""
    remote: str = ""
    main: str = "main"
    is_noted: bool = False
    current: str = ""
    docs: tuple[str, ...] = ()

    @property
    def is_fork(self) -> bool:
        """Whether the repository that counts is not the one that a push goes to."""
        return self.remote == "upstream"

    @property
    def hosted(self) -> bool:
        """Whether GitHub's own runners are there: on github.com, and on ghe.com; assumed of a server not known."""
        host = urlsplit(self.server).hostname or ""
        return not self.server or host == "github.com" or host.endswith(".ghe.com")


def look(folder: Path) -> Place:
    """The checkout that ``folder`` is in. UserError where it is in none, or in a bare repository."""
    top = _top(folder)
    git = CheckoutGit(top)
    if refused := git.refusal():
        raise UserError(f"git does not look into {top}: {refused}")
    remote = next(iter(git.remotes), "")
    known = place_of(git.line("remote", "get-url", "--", remote)) if remote else None
    current = git.line("symbolic-ref", "--quiet", "--short", "HEAD")
    main, is_noted = _main(git, current)
    return Place(top, *(known or ("", "")), remote, main, is_noted, current, tuple(_docs(top)))


def _top(folder: Path) -> Path:
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: name one in a checkout")
    top = top_of(folder)
    if top is None and is_bare(folder) and folder.name != ".git":
        raise UserError(f"{folder} is a bare repository, which has no files: clone it, and go into the clone")
    if top is None:
        raise UserError(f"{folder} is in no git checkout: go into one, or name it: precedent init FOLDER")
    return top


def _main(git: CheckoutGit, current: str) -> tuple[str, bool]:
    """The default branch, and whether the clone noted it; else the usual one that is there, else the current one."""
    if noted := git.noted_main():
        return noted, True
    for name in _USUAL:
        for ref in (*(f"refs/remotes/{remote}/{name}" for remote in FIRST), f"refs/heads/{name}"):
            if not git.run("rev-parse", "--verify", "--quiet", ref).returncode:
                return name, False
    return current or _USUAL[0], False


def _docs(top: Path) -> Iterator[str]:
    for name in _DOCS:
        folder = top / name
        if (
            folder.is_dir()
            and not folder.is_symlink()
            and any(next(folder.glob(way), None) for way in ("*.md", "*/*.md"))
        ):
            yield name
