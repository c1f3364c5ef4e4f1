"""The options of the commands that ask the memory."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from bot.doors.choosing import moment_of
from bot.doors.given import number, repository

MAX_LIMIT = 1_000
MAX_CHARS = 1_000_000
Doors = argparse._SubParsersAction


def add_smart_search(doors: Doors[argparse.ArgumentParser]) -> None:
    """The parser of smart-search."""
    command = doors.add_parser(
        "smart-search",
        aliases=["ss"],
        help="the threads about some words, ranked by what is worked on here; without words, by that alone",
    )
    command.add_argument("words", nargs="*", metavar="WORDS", help="what to look for")
    command.add_argument("--state", choices=("open", "closed", "all"), default="all", help="only these (default all)")
    command.add_argument("--limit", type=number(1, 50), default=20, metavar="N", help="how many, 1 to 50 (default 20)")
    add_place(command)


def add_what(doors: Doors[argparse.ArgumentParser]) -> None:
    """The parser of what."""
    add_place(doors.add_parser("what", help="what there is to know of the branch and files that are worked on here"))


def add_related(doors: Doors[argparse.ArgumentParser]) -> None:
    """The parser of related."""
    command = doors.add_parser("related", help="the threads that name some files, and what was decided in them")
    command.add_argument("files", nargs="+", metavar="FILE", help="a file, as it is called from here or in a thread")
    add_place(command)


def add_show(doors: Doors[argparse.ArgumentParser]) -> None:
    """The parser of show."""
    command = doors.add_parser(
        "show", help="one thread: how it ended, what was decided, what it links to, what was said"
    )
    command.add_argument(
        "id", metavar="ID", help="an issue (42, #42, OWNER/NAME#42 or its address), or the id of a page or session"
    )
    length = command.add_mutually_exclusive_group()
    length.add_argument(
        "--chars", type=number(1_000, MAX_CHARS), default=12_000, metavar="N",
        help="characters of the conversation at most (default 12,000)",
    )  # fmt: skip
    length.add_argument("--full", action="store_true", help="the whole conversation")
    add_place(command)


def add_search(doors: Doors[argparse.ArgumentParser]) -> None:
    """The parser of search."""
    command = doors.add_parser("search", help="the threads that speak of some words")
    command.add_argument("words", nargs="+", metavar="WORDS", help="what to look for")
    command.add_argument("--state", choices=("open", "closed", "all"), default="all", help="only these (default all)")
    command.add_argument(
        "--kind", choices=("issue", "pull", "page", "session"), help="only these (default: all but sessions)"
    )
    command.add_argument("--label", action="append", default=[], help="only with this label; again: with all of them")
    command.add_argument("--author", metavar="LOGIN", help="only what this account opened")
    command.add_argument(
        "--since", type=since, metavar="WHEN", help="only what changed since 2026-05-03, or in the last 7d, 4w, 6m, 1y"
    )
    command.add_argument(
        "--limit", type=number(1, MAX_LIMIT), default=10, metavar="N", help="how many, 1 to 1000 (default 10)"
    )
    command.add_argument("--expand", action="store_true", help="also what the hits link to, and what links to them")
    command.add_argument(
        "--logs", action="append", default=[], metavar="PATH",
        help="with --kind session: transcripts in this file, folder or glob; again for more",
    )  # fmt: skip
    add_place(command)


def add_place(command: argparse.ArgumentParser, *, answers: bool = True) -> None:
    """Where the memory is, and for what ``answers`` how the answer is given."""
    where = command.add_mutually_exclusive_group()
    where.add_argument("--store", type=Path, metavar="DIR", help="the folder of a store, or a checkout of the branch")
    where.add_argument(
        "--repo", type=repository, metavar="OWNER/NAME", help="a repository (default: that of the checkout here)"
    )
    command.add_argument(
        "--memory-branch", metavar="NAME", help="the branch of the memory (default: as in the settings)"
    )
    fetching = command.add_mutually_exclusive_group()
    fetching.add_argument("--refresh", action="store_true", help="fetch the branch even if that was just done")
    fetching.add_argument("--offline", action="store_true", help="fetch nothing: the memory as it is here")
    if answers:
        command.add_argument("--json", action="store_true", help="print the answer as JSON (docs/asking.md)")
        command.add_argument("--exit-code", action="store_true", help="exit code 1 when nothing is relevant")


def since(text: str) -> datetime:
    """A moment as `bot.doors.choosing.moment_of` reads it."""
    try:
        return moment_of(text, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is neither a day such as 2026-05-03 nor an age as 7d"
        ) from None
