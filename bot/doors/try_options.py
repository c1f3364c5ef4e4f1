"""The options of the command that tries a repository, and what may be said in the place of OWNER/NAME."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import NamedTuple

from bot.doors.given import address, number

Doors = argparse._SubParsersAction

HISTORY = 3_000
"""Issues that are read where nobody says how many: 120 of the 5,000 points of an hour."""

MOST = 1_000_000

_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]{0,38})/([A-Za-z0-9_.-]{1,100})", re.ASCII)
_URL = re.compile(
    r"(https?://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?)/([^?#]{1,400})(?:[?#].*)?", re.ASCII | re.IGNORECASE
)


class Named(NamedTuple):
    """A repository as somebody names it: OWNER/NAME, and the server where an address of its pages was given."""

    repository: str
    server: str = ""


def named(text: str) -> Named:
    """OWNER/NAME, or the address of any page of the repository."""
    server, path = "", text.strip()
    if found := _URL.fullmatch(path):
        server = found[1].lower().replace("://www.github.com", "://github.com")
        path = "/".join(found[2].split("/")[:2])
    name = _NAME.fullmatch(path.removesuffix("/").removesuffix(".git"))
    if name is None or not name[2].strip("."):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/NAME")
    return Named(name[0], server)


def history(text: str) -> int:
    """How many issues; 0 and ``all`` for all of them."""
    return 0 if text.lower() in ("all", "0") else number(1, MOST)(text)


def add_try(doors: Doors[argparse.ArgumentParser]) -> None:
    """The parser of try."""
    command = doors.add_parser(
        "try",
        help="what would have been said on the newest issues of a repository, as a local page",
        description="Reads the issues of a repository and shows in a local page what Precedent would have said on the "
        "newest ones, each against older ones only. Nothing is written to the repository: a token without any scope "
        "is enough for a public one. It is taken from PRECEDENT_TOKEN, GH_TOKEN or GITHUB_TOKEN in the environment.",
    )
    add = command.add_argument
    add("repository", type=named, metavar="OWNER/NAME", help="the repository, or its address")
    add("--last", type=number(1, MOST), default=50, metavar="N", help="how many issues are shown (default 50)")
    read = f"how many of the issues that changed last are read; all: every one (default {HISTORY:,})"
    add("--history", type=history, default=HISTORY, metavar="N", help=read)
    add("--config", type=Path, metavar="FILE", help="settings to try (default: those of the program)")
    add("--out", type=Path, metavar="FILE", help="the page (default: precedent-OWNER-NAME.html in this folder)")
    add("--open", action="store_true", help="open the page in the browser")
    add("--server", type=address, metavar="URL", help="a server of one's own, to which the token goes")
    again = command.add_mutually_exclusive_group()
    again.add_argument("--fresh", action="store_true", help="forget what was read before")
    again.add_argument("--offline", action="store_true", help="go by what was read before, and ask no server")
    add("--json", action="store_true", help="print figures and the path of the page as JSON")
