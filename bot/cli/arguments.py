"""Types of arguments on the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.comment.clean_text import visible_text
from bot.errors import UserError

if TYPE_CHECKING:
    from bot.domain.card import Worktree
    from bot.local_cache.local_memory import LocalMemory
    from bot.questions.requests import Issue


# Patterns are compiled on use, so that a search, which needs none, starts faster.
_LOGIN = r"@?([A-Za-z0-9][A-Za-z0-9_-]{0,60}(?:\[bot\])?)"
_URL = r"(https?://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?)/([^?#]{1,400})(?:[?#].*)?"
_ACTION = (
    r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}@(?![./])[A-Za-z0-9._/-]{1,200}"
    r"|docker://(?:[A-Za-z0-9][A-Za-z0-9._-]{0,100}(?::[0-9]{1,5})?/){1,4}precedent"
    r"(?:@sha256:[0-9a-f]{64}|:[A-Za-z0-9._-]{1,100})"
)
"""A repository at a commit, tag or branch, or an image; only characters that are not special in YAML."""


def one_of(*choices: str) -> dict[str, Any]:
    """Settings of an argument with these choices: suggests the closest one for a misspelt word."""

    def check(text: str) -> str:
        if text in choices:
            return text
        close = closest(text, choices)
        hint = f"; did you mean {close!r}?" if close else f" (choose from {', '.join(choices)})"
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r}{hint}")

    return {"choices": choices, "type": check}


def closest(word: str, choices: Iterable[str]) -> str:
    """The most similar of the choices, "" if none is similar."""
    from difflib import get_close_matches  # loaded for a mistake only

    return next(iter(get_close_matches(word, choices, n=1)), "")


def is_action(text: str) -> bool:
    """Whether a step can use this Action."""
    return re.fullmatch(_ACTION, text, re.ASCII) is not None


def action_name(text: str) -> str:
    if not is_action(text):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/NAME@COMMIT (or a tag)")
    return text


def issue(text: str) -> Issue:
    """An issue in any common notation."""
    from bot.questions.requests import parse_issue

    named = parse_issue(text)
    if named is None:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not an issue such as 42, #42, OWNER/NAME#42 or its address")
    return named


def repository(text: str) -> str:
    from bot.domain.hosts import SLUG

    if not re.fullmatch(SLUG, text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/NAME")
    return text


def login(text: str) -> str:
    """An account's login, with or without an @ before it."""
    match = re.fullmatch(_LOGIN, text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not an account's login")
    return match[1]


def number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from {low:,} to {high:,}")
        return int(text)

    return parse


def history_size(text: str) -> int:
    """How many issues; 0 and ``all`` for all of them."""
    return 0 if text.lower() in ("all", "0") else number(1, 1_000_000)(text)


def non_empty(text: str) -> str:
    """A text that is not empty: with an unset variable, a filter would select, and could drop, everything."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def delivery_name(text: str) -> int | str:
    """The number of a delivery, or GitHub's GUID of it in lower case; an App's id may stand before it."""
    if match := re.fullmatch(r"(?:[0-9]{1,19}:)?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})", text):
        return match[1].lower()
    try:
        return positive(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is neither a delivery's number nor a GUID") from error


def positive(text: str) -> int:
    """A positive integer of up to 15 digits."""
    if not re.fullmatch(r"[1-9][0-9]{0,14}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a positive whole number")
    return int(text)


def name_pattern(text: str) -> str:
    """A pattern of "owner/name", as `bot.server.scope` reads it."""
    if not re.fullmatch(r"[^/\s]{1,100}/[^/\s]{1,100}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a pattern such as octo-org/docs-*")
    return text


def fraction(text: str) -> float:
    """A number above 0, at most 1."""
    if not re.fullmatch(r"[01]?\.?[0-9]{1,9}", text) or not 0 < float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number above 0 and at most 1")
    return float(text)


def address(text: str) -> str:
    """The address of a server, without a trailing slash."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or not re.fullmatch(r"[\x21-\x3e\x41-\x7e]{1,300}", text):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not an address such as https://git.example.com")
    return text.rstrip("/")


def past_moment(text: str) -> datetime:
    """A moment as `bot.reading.search_query.moment_of` reads it."""
    from bot.reading.search_query import moment_of

    try:
        return moment_of(text, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is neither a day such as 2026-05-03 nor an age such as 7d"
        ) from None


def zone(text: str) -> tzinfo:
    from bot.sources.sessions.times import MAX_ZONE_CHARS, zone_named  # other commands do not need it

    zone = zone_named(text)
    if zone is None:
        raise argparse.ArgumentTypeError(
            f"{visible_text(text)[:MAX_ZONE_CHARS]!r} is not a time zone such as Europe/Berlin"
        )
    return zone


def moment(text: str) -> datetime:
    """An ISO 8601 time; UTC unless it names a zone."""
    try:
        parsed = datetime.fromisoformat(text)
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(
            f"{visible_text(text)[:40]!r} is not a time such as 2026-05-03T09:30Z"
        ) from error


TOKEN_VARIABLES = ("PRECEDENT_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
"""Variables that may hold a token: first our own, then those of GitHub's command line in its order
(``gh help environment``)."""


class NamedRepository(NamedTuple):
    """A repository: OWNER/NAME, and its server if a URL was given."""

    repository: str
    server: str = ""


def named_repository(text: str) -> NamedRepository:
    """OWNER/NAME, or the address of any page of the repository."""
    from bot.domain.hosts import SLUG

    server, path = "", text.strip()
    if match := re.fullmatch(_URL, path, re.ASCII | re.IGNORECASE):
        server = match[1].lower().replace("://www.github.com", "://github.com")
        path = "/".join(match[2].split("/")[:2])
    name = re.fullmatch(SLUG, path.removesuffix("/").removesuffix(".git"), re.ASCII)
    if name is None or not name[0].partition("/")[2].strip("."):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/NAME")
    return NamedRepository(name[0], server)


class Token(NamedTuple):
    """A token and the variable that held it, both "" if there is none."""

    variable: str = ""
    text: str = ""


def token_of(environ: Mapping[str, str]) -> Token:
    """The first token in ``environ``. UserError if it has characters that no token has."""
    name = next((name for name in TOKEN_VARIABLES if environ.get(name, "").strip()), "")
    text = environ.get(name, "").strip()
    if not re.fullmatch(r"[\x21-\x7e]*", text):
        raise UserError(f"{name} contains characters that no token has: copy it again")
    return Token(name, text)


def worktree_of(memory: LocalMemory) -> Worktree:
    """The state of the current checkout, empty if there is none."""
    from bot.git.checkout import read_worktree

    return read_worktree(memory.top or Path.cwd())
