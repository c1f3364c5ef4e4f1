"""Which repository somebody works in, by what git knows of its remotes; git is asked, and nothing is fetched."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from bot.errors import UserError, WorldError

_CONFIG = Path(".github/precedent.yml")
_FIRST = ("upstream", "origin")
"""Remotes in the order in which they are taken: a fork has the issues of what it was forked from."""

_REMOTE = re.compile(r"remote\.(.+)\.url")
_OWNER_NAME = re.compile(r"(?:^|[/:])([^/:\s]{1,100}/[^/:\s]{1,100}?)(?:\.git)?/?$")
_SSH = re.compile(r"(?:[^@/\s]+@)?([A-Za-z0-9_.-]+):(?!//)")
_DEFAULT_BRANCH = "precedent"


class Remote(NamedTuple):
    """Where a repository is: its address for git; OWNER/NAME and its address for people, "" where that is no site."""

    url: str
    repo: str = ""
    home: str = ""


def of_repository(repo: str) -> Remote:
    """The repository of this name on GitHub, or on the server that GITHUB_SERVER_URL names."""
    server = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/") or "https://github.com"
    return Remote(f"{server}/{repo}", repo, f"{server}/{repo}")


def of_checkout(top: Path | None) -> Remote | str:
    """The repository that this checkout was cloned from, or why nobody knows it, and what to do."""
    if top is None:
        return "this is no git checkout: go into one, or name a repository (--repo OWNER/NAME) or folder (--store DIR)"
    remotes = _remotes(top)
    named = next((name for name in (*_FIRST, *sorted(remotes)) if name in remotes), None)
    if named is None:
        return f"{top} has no remote: name a repository (--repo OWNER/NAME) or a folder (--store DIR)"
    return _remote(remotes[named], top)


def branch_of(top: Path | None) -> str:
    """The branch of the memory, as the settings in this checkout have it."""
    file = top / _CONFIG if top else None
    if file is None or not file.is_file():
        return _DEFAULT_BRANCH
    from bot.config import MAX_BYTES, load_settings

    with file.open("rb") as opened:
        return load_settings(opened.read(MAX_BYTES + 1), str(_CONFIG)).branch


def _remotes(top: Path) -> dict[str, str]:
    """Name → address of the remotes, as this checkout has them."""
    asked = ("git", "config", "--null", "--get-regexp", r"^remote\..*\.url$")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        told = subprocess.run(asked, cwd=top, env=environment, capture_output=True, timeout=10, check=False).stdout
    except FileNotFoundError:
        raise WorldError("git is missing", "install it and put it on PATH") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorldError(f"git could not be asked about {top}: {error!s:.200}") from error
    found: dict[str, str] = {}
    for entry in told.decode("utf-8", "replace").split("\0"):
        key, _, address = entry.partition("\n")
        named = _REMOTE.fullmatch(key)
        if named and address:
            found.setdefault(named[1], address)
    return found


def _remote(address: str, top: Path) -> Remote:
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|/", address) and not _SSH.match(address):
        address = str((top / address).resolve())  # a path, as git takes it: from the checkout
    owner_name = _OWNER_NAME.search(address)
    host = _SSH.match(address)
    name = host[1] if host and "://" not in address else _host(address)
    repo = owner_name[1] if owner_name and name else ""
    return Remote(_without_user(address), repo, f"https://{name}/{repo}" if repo else "")


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        raise UserError(f"the remote {address[:100]!r} is no address") from None


def _without_user(address: str) -> str:
    """The address without a password that somebody wrote into it; git's own credentials are asked instead."""
    return re.sub(r"^(https?://)[^/@\s]+@", r"\1", address)
