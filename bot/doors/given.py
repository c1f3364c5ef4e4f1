"""What an argument on the command line may be."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

_LOGIN = re.compile(r"@?([A-Za-z0-9][A-Za-z0-9_-]{0,60}(?:\[bot\])?)", re.ASCII)
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}", re.ASCII)


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
