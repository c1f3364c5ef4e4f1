"""Where a checkout was cloned from, as its remotes say. Nothing is fetched."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from bot.errors import UserError
from bot.git.checkout import CheckoutGit

_OWNER_NAME = re.compile(r"(?:^|[/:])([^/:\s]{1,100}/[^/:\s]{1,100}?)(?:\.git)?/?$")
_SSH = re.compile(r"(?:[^@/\s]+@)?([A-Za-z0-9_.-]+):(?!//)")
_USER = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/:@\s]*)(?::[^/\s]*)?@")
_NAME = re.compile(r"[A-Za-z0-9.-]{1,39}", re.ASCII)
"""A name that somebody has on a server: a token is longer, or has other characters in it."""

_SITES = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}


class RemoteRepository(NamedTuple):
    """Where a repository is: its address for git; OWNER/NAME and its address for people, "" where that is no site.

    ``name`` is what the checkout calls the remote, "" where it was named otherwise.
    """

    url: str
    repo: str = ""
    home: str = ""
    name: str = ""


def remote_of_repository(repo: str) -> RemoteRepository:
    """The repository of this name on GitHub, or on the server that GITHUB_SERVER_URL names."""
    server = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/") or "https://github.com"
    return RemoteRepository(f"{server}/{repo}", repo, f"{server}/{repo}")


def remote_of_checkout(top: Path | None) -> RemoteRepository | str:
    """The repository that this checkout was cloned from, or why nobody knows it, and what to do."""
    if top is None:
        return "this is no git checkout: go into one, or name a repository (--repo OWNER/NAME) or folder (--store DIR)"
    git = CheckoutGit(top)
    for name, address in git.remotes.items():
        return _at_address(address, top)._replace(name=name)
    return git.refusal() or f"{top} has no remote: name a repository (--repo OWNER/NAME) or a folder (--store DIR)"


def tracked_files(top: Path, paths: Iterable[str]) -> set[str]:
    """Those of these files that are part of the checkout, and not only lie in its folder."""
    git = CheckoutGit(top)
    asked = {path: git.run("ls-files", "-z", "--", path) for path in paths}
    return {path for path, told in asked.items() if told.stdout or told.returncode}  # what git will not say is not ours


def _at_address(address: str, top: Path) -> RemoteRepository:
    """What a remote of the checkout at ``top`` means, in any of git's forms, without a secret in it."""
    scp = None if "://" in address else _SSH.match(address)
    if not scp and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|/", address):
        address = str((top / address).resolve())  # a path, as git takes it: from the checkout
    address = without_secret(address)
    site = _site(scp[1] if scp else "", address)
    owner_name = _OWNER_NAME.search(address) if site else None
    if not owner_name:
        return RemoteRepository(address)
    return RemoteRepository(address, owner_name[1], f"{site}/{owner_name[1]}")


def _site(host: str, address: str) -> str:
    try:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https"):
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        host = host or (parts.hostname or "" if parts.scheme == "ssh" else "")
    except ValueError:
        raise UserError("the address of the remote is no address: look at `git remote --verbose`") from None
    host = _SITES.get(host, host)
    return f"https://{host}" if "." in host else ""


def without_secret(address: str) -> str:
    """The address without what may be a password or a token: git's own credentials are asked instead."""
    found = _USER.match(address)
    if not found:
        return address
    user = found["user"] if _NAME.fullmatch(found["user"]) else ""
    return f"{found['scheme']}{user}{'@' if user else ''}{address[found.end() :]}"
