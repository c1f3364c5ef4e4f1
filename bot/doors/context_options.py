"""The options of the command that tells what was said lately."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from bot.comment.visible import clean
from bot.doors.given import issue, login, number
from bot.doors.questions import add_place
from bot.sources.zone import MAX_ZONE, zone_named

FORMATS = ("xml", "markdown", "json")
MIN_CHARS, MAX_CHARS = 1_000, 120_000
DAYS, MAX_DAYS = 7, 30


Doors = argparse._SubParsersAction


def add_context(doors: Doors[argparse.ArgumentParser]) -> None:
    """The parser of this command."""
    command = doors.add_parser("context", help="what was said in the last days, for an agent's prompt")
    scope = command.add_mutually_exclusive_group(required=True)
    scope.add_argument("--issue", type=issue, metavar="N", help="on this issue or pull request")
    scope.add_argument("--participant", type=login, metavar="LOGIN", help="in the threads in which this account wrote")
    scope.add_argument("--sessions", type=Path, metavar="DIR", help="in the transcripts of agents in this folder")
    scope.add_argument("--branch", action="store_true", help="what is related to the branch here: precedent what")
    add_place(command, answers=False)
    command.add_argument("--format", choices=FORMATS, default="xml", help="how it is written down (default xml)")
    command.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    command.add_argument(
        "--chars", type=number(MIN_CHARS, MAX_CHARS), default=MAX_CHARS, metavar="N", help="at most so many characters"
    )
    command.add_argument(
        "--days", type=number(1, MAX_DAYS), default=DAYS, metavar="N", help=f"how far back (default {DAYS})"
    )
    command.add_argument(
        "--me",
        type=login,
        action="append",
        metavar="LOGIN",
        help="an account of the agent's own; again for more (default: that of the bot)",
    )
    command.add_argument("--timezone", type=_zone, metavar="NAME", help="such as Europe/Berlin (default: that of here)")
    command.add_argument("--as-of", type=_moment, metavar="TIME", help="as if it were then, such as 2026-05-03T09:30Z")


def _zone(text: str) -> tzinfo:
    zone = zone_named(text)
    if zone is None:
        raise argparse.ArgumentTypeError(f"{clean(text)[:MAX_ZONE]!r} is not a time zone such as Europe/Berlin")
    return zone


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{clean(text)[:40]!r} is not a time such as 2026-05-03T09:30Z") from error
