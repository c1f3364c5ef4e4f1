"""What git knows of a checkout: where it begins, whose it is, its default branch. Nothing is fetched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bot.doors.checkup.place import place_of
from bot.errors import UserError, WorldError

_USUAL = ("main", "master")
_DOCS = ("doc", "documentation", "guides", "manual", "website", "site")
"""Folders in which others keep documentation; `docs` is read anyhow."""


@dataclass(frozen=True, slots=True)
class Place:
    """A checkout that begins at ``top``. ``server`` and ``repository`` are "" where ``origin`` tells neither.

    ``main`` is the default branch, ``is_noted`` whether git knows that, ``current`` the branch that is checked out;
    ``docs`` are folders with Markdown that the settings leave out.
    """

    top: Path
    server: str = ""
    repository: str = ""
    main: str = "main"
    is_noted: bool = False
    current: str = ""
    docs: tuple[str, ...] = ()

    @property
    def hosted(self) -> bool:
        """Whether GitHub's own runners are there: on github.com, and on ghe.com; assumed of a server not known."""
        host = urlsplit(self.server).hostname or ""
        return not self.server or host == "github.com" or host.endswith(".ghe.com")


def look(folder: Path) -> Place:
    """The checkout that ``folder`` is in. UserError where it is in none, or in a bare repository."""
    top = _top(folder)
    origin = place_of(_told(top, "remote", "get-url", "origin")) or ("", "")
    current = _told(top, "symbolic-ref", "--quiet", "--short", "HEAD")
    main, is_noted = _main(top, current)
    return Place(top, *origin, main, is_noted, current, tuple(_docs(top)))


def _top(folder: Path) -> Path:
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: name one in a checkout")
    asked = _git(folder, "rev-parse", "--show-toplevel")
    found = _line(asked.stdout)
    if not asked.returncode and found:
        return Path(found)
    if _told(folder, "rev-parse", "--is-bare-repository") == "true":
        raise UserError(f"{folder} is a bare repository, which has no files: clone it, and go into the clone")
    said = _line(asked.stderr).removeprefix("fatal: ")[:300]
    if "dubious ownership" in said:
        raise UserError(f"{said}: if you trust it, tell git so (safe.directory)")
    raise UserError(f"{folder} is in no git checkout: go into one, or name it: precedent init FOLDER")


def _main(top: Path, current: str) -> tuple[str, bool]:
    """The default branch, and whether the clone noted it; else the usual one that is there, else the current one."""
    noted = _told(top, "symbolic-ref", "--quiet", "refs/remotes/origin/HEAD").removeprefix("refs/remotes/origin/")
    if noted:
        return noted, True
    for name in _USUAL:
        for ref in (f"refs/remotes/origin/{name}", f"refs/heads/{name}"):
            if not _git(top, "rev-parse", "--verify", "--quiet", ref).returncode:
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


def _told(folder: Path, *words: str) -> str:
    """The first line that git prints, "" where it fails."""
    asked = _git(folder, *words)
    return "" if asked.returncode else _line(asked.stdout)


def _line(printed: bytes) -> str:
    return printed.decode("utf-8", "surrogateescape").partition("\n")[0]


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Git as the person would start it there, without what a hook's environment says of another repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"LC_ALL": "C"}
    try:
        return subprocess.run(
            ("git", *words), cwd=folder, env=environment, capture_output=True, timeout=10, check=False
        )
    except FileNotFoundError:
        raise WorldError("git is missing", "install it and put it on PATH") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorldError(f"git could not be asked about {folder}: {error!s:.200}", "try again") from error
