"""What an argument on the command line may be."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from bot.errors import UserError

if TYPE_CHECKING:
    from bot.model import ThreadId

MAX_NAME = 200
_LOGIN = re.compile(r"@?([A-Za-z0-9][A-Za-z0-9_-]{0,60}(?:\[bot\])?)", re.ASCII)
_SLUG = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}"
_REPOSITORY = re.compile(_SLUG, re.ASCII)
_ISSUE = re.compile(rf"(?P<repo>{_SLUG})?#(?P<number>[1-9][0-9]{{0,14}})|(?P<digits>[1-9][0-9]{{0,14}})", re.ASCII)
_ADDRESS = re.compile(
    rf"(?:https?://[A-Za-z0-9.:-]{{1,260}}|[A-Za-z0-9-]{{1,63}}\.[A-Za-z0-9.:-]{{1,200}})/(?P<repo>{_SLUG})/(?:-/)?(?:issues|pull|merge_requests)/"
    r"(?P<number>[1-9][0-9]{0,14})(?:[/?#]\S*)?",
    re.ASCII | re.IGNORECASE,
)


class Issue(NamedTuple):
    """An issue or pull request as somebody names it; ``repo`` is OWNER/NAME, "" where they do not say."""

    number: int
    repo: str = ""

    def is_of(self, repo: str) -> bool:
        """Whether it may be one of the repository ``repo``, "" where nobody knows which that is."""
        return not self.repo or not repo or self.repo.casefold() == repo.casefold()

    def within(self, repo: str) -> int:
        """Its number in this repository. UserError where it is named as one of another."""
        if self.is_of(repo):
            return self.number
        raise UserError(f"{self.repo}#{self.number} is no issue of {repo}: name its repository with --repo {self.repo}")


def issue_named(text: str) -> Issue | None:
    """The issue that ``42``, ``#42``, ``OWNER/NAME#42`` or the address of its page names; None for anything else."""
    text = text.strip()
    if found := _ADDRESS.fullmatch(text):
        return Issue(int(found["number"]), found["repo"])
    found = _ISSUE.fullmatch(text)
    return Issue(int(found["number"] or found["digits"]), found["repo"] or "") if found else None


def keys_of(text: str, repo: str = "") -> list[ThreadId]:
    """What may be meant by this name of a thread in the memory of ``repo``, what goes before first.

    A number goes before a name of the same digits, and a name that looks like an issue elsewhere before its number.
    """
    from bot.archive import clean  # a search has no use for it

    name = clean(text)[:MAX_NAME].strip()
    names = list(dict.fromkeys((name.removeprefix("#"), name)))
    named = issue_named(name)
    if named is None or not named.is_of(repo):
        return [*names]
    return [*names, named.number] if named.repo else [named.number, *names]


def issue(text: str) -> Issue:
    """An issue in any of the ways that people write one down."""
    named = issue_named(text)
    if named is None:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not an issue such as 42, #42, OWNER/NAME#42 or its address")
    return named


def repository(text: str) -> str:
    """OWNER/NAME."""
    if not _REPOSITORY.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/NAME")
    return text


def login(text: str) -> str:
    """An account's login, with or without an @ before it."""
    found = _LOGIN.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not an account's login")
    return found[1]


def number(low: int, high: int) -> Callable[[str], int]:
    """A whole number from ``low`` to ``high``."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from {low:,} to {high:,}")
        return int(text)

    return read


def share(text: str) -> float:
    """A number above 0, at most 1."""
    if not re.fullmatch(r"[01]?\.?[0-9]{1,9}", text) or not 0 < float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number above 0, at most 1")
    return float(text)


def address(text: str) -> str:
    """The address of a server, without a slash at its end."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or not re.fullmatch(r"[\x21-\x3e\x41-\x7e]{1,300}", text):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not an address such as https://git.example.com")
    return text.rstrip("/")
