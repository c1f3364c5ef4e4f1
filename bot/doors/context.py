"""The command that tells an agent what was said lately: on an issue, by a person, in sessions, or around a branch."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from bot.archive import clean, parse_time
from bot.comment.history import FORMS, render
from bot.comment.visible import one_line
from bot.comment.wording import count
from bot.doors.stores import open_store
from bot.errors import UserError
from bot.indexed import FOREVER
from bot.memory.index import Blend, Query
from bot.memory.memory import Memory
from bot.model import Kind, Thread, ThreadId
from bot.recall.conversation import DAYS, MAX_DAYS, of_issue, of_participant, past
from bot.recall.tiers import CHARS, MAX_CHARS, MIN_CHARS, history_of
from bot.settings import Settings

MOST = 10_000
"""Threads of one scope that are read, the newest ones."""

MAX_ZONE = 100
LOCAL = Path("/etc/localtime")
_NEWEST_FIRST = Blend(text=0.0, near={}, age=-1.0)
_LOGIN = re.compile(r"@?([A-Za-z0-9][A-Za-z0-9_-]{0,60}(?:\[bot\])?)", re.ASCII)


def add_context(doors: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The parser of this command."""
    command = doors.add_parser("context", help="what was said in the last days, for an agent's prompt")
    scope = command.add_mutually_exclusive_group(required=True)
    scope.add_argument("--issue", type=_number(1, 999_999_999), metavar="N", help="on this issue or pull request")
    scope.add_argument("--participant", type=_login, metavar="LOGIN", help="in the threads in which this account wrote")
    scope.add_argument("--sessions", type=Path, metavar="DIR", help="in the transcripts of agents in this folder")
    scope.add_argument("--branch", action="store_true", help="what is related to the branch here: precedent what")
    command.add_argument("--store", type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument("--format", choices=tuple(FORMS), default="xml", help="how it is written down (default xml)")
    command.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    command.add_argument(
        "--chars", type=_number(MIN_CHARS, MAX_CHARS), default=CHARS, metavar="N", help="at most so many characters"
    )
    command.add_argument(
        "--days", type=_number(1, MAX_DAYS), default=DAYS, metavar="N", help=f"how far back (default {DAYS})"
    )
    command.add_argument(
        "--me",
        type=_login,
        action="append",
        metavar="LOGIN",
        help="an account of the agent's own; again for more (default: that of the bot)",
    )
    command.add_argument("--timezone", type=_zone, metavar="NAME", help="such as Europe/Berlin (default: that of here)")
    command.add_argument("--as-of", type=_moment, metavar="TIME", help="as if it were then, such as 2026-05-03T09:30Z")


def run_context(given: argparse.Namespace) -> object:
    """What was said in the scope that was asked for; "" for nothing."""
    if given.branch:
        what: Callable[[argparse.Namespace], object] = importlib.import_module("bot.doors.work").run_what
        return what(given)
    zone = given.timezone or local_zone()
    now = (given.as_of or datetime.now(UTC)).astimezone(zone)
    scope = past(threads_of(given, now), given.me or [Settings().comment.author], now, given.days)
    form = FORMS[given.format](zone)
    text = render(history_of(scope, form, given.chars), form)
    if not text:
        print(f"Nothing was said in the last {count(given.days, 'day')}.", file=sys.stderr)
    return text


def threads_of(given: argparse.Namespace, now: datetime) -> list[Thread]:
    """The threads of the scope, which may have more in them than the last days."""
    since = now - timedelta(days=given.days)
    if given.sessions is not None:
        return _sessions(given.sessions, since)
    if given.store is None:
        raise UserError("--store is missing: name the folder of a store")
    with closing(open_store(given.store)) as memory:
        keys = [given.issue] if given.issue else _changed_since(memory, since)
        found = [record for record in memory.records(keys).values() if isinstance(record, Thread)]
    return of_issue(found, given.issue) if given.issue else of_participant(found, given.participant)


def local_zone(environ: Mapping[str, str] = os.environ, place: Path = LOCAL) -> tzinfo:
    """The time zone of this machine with its rules for summer; UTC where it cannot be told."""
    name = environ.get("TZ", "").removeprefix(":")
    if name:
        return zone_named(name) or UTC
    try:
        with place.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC


def zone_named(name: str) -> tzinfo | None:
    """The zone of a name such as ``Europe/Berlin``; None where there is none."""
    try:
        return ZoneInfo(name) if len(name) <= MAX_ZONE else None
    except (KeyError, ValueError, OSError):  # of a folder of zones it is an OSError
        return None


def _changed_since(memory: Memory, since: datetime) -> list[ThreadId]:
    """The threads that changed since then, as the index has it: no record is opened for it."""
    hits = memory.search(
        Query({}, blend=_NEWEST_FIRST),
        limit=MOST,
        before=FOREVER,
        keep=lambda entry: entry.kind is not Kind.PAGE and entry.updated_at >= since,
    )
    return [hit.entry.id for hit in hits]


def _sessions(folder: Path, since: datetime) -> list[Thread]:
    """The sessions in the files of a folder that were written to since then; what cannot be read is told of."""
    from bot.sources.transcripts.files import find
    from bot.sources.transcripts.mapping import issues
    from bot.sources.transcripts.reader import sessions
    from bot.sources.transcripts.threads import thread_of

    if not folder.is_dir():
        raise UserError(f"no folder {folder}: --sessions takes the folder of the transcripts")
    found = find([str(folder)], str(folder))
    notes, threads = list(found.notes), list[Thread]()
    issue_of = issues(found.mappings, found.sessions)
    for file in found.sessions:
        if file.mtime_ns < since.timestamp() * 1e9:
            continue
        try:
            threads += [thread_of(one._replace(issue=issue_of.get(file.path))) for one in sessions(file)]
        except OSError as error:
            notes.append(f"{file.name} cannot be read: {error.strerror}")
    for note in notes:
        print(one_line(note), file=sys.stderr)
    return threads


def _number(low: int, high: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{clean(text)[:40]!r} is not a number from {low:,} to {high:,}")
        return int(text)

    return number


def _login(text: str) -> str:
    found = _LOGIN.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{clean(text)[:100]!r} is not an account's login")
    return found[1]


def _zone(text: str) -> tzinfo:
    zone = zone_named(text)
    if zone is None:
        raise argparse.ArgumentTypeError(f"{clean(text)[:MAX_ZONE]!r} is not a time zone such as Europe/Berlin")
    return zone


def _moment(text: str) -> datetime:
    try:
        return parse_time(text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{clean(text)[:40]!r} is not a time such as 2026-05-03T09:30Z") from error
