"""The command that tells an agent what was said lately: on an issue, by a person, in sessions, or around a branch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.comment.history import FORMS, render
from bot.comment.visible import one_line
from bot.comment.wording import count
from bot.doors.asking import NOTHING, checkout_of, run_what, tell, where_of
from bot.doors.asking import now as now_of
from bot.doors.branch import branch_text
from bot.doors.own_settings import settings_of
from bot.doors.place import opened, whole
from bot.doors.rows import work_rows
from bot.doors.transcripts import sessions_of_issue
from bot.errors import UserError
from bot.model import Kind, Thread, ThreadId
from bot.recall.conversation import of_issue, of_participant, past
from bot.recall.library import WithoutWords
from bot.recall.tiers import history_of
from bot.recall.work import what
from bot.settings import Settings
from bot.sources.zone import local_zone

MOST = 10_000
"""Threads of one scope that are read, the newest ones."""


def run_context(given: argparse.Namespace) -> object:
    """What was said in the scope that was asked for; "" for nothing."""
    if given.branch:
        return run_what(given) if given.format == "json" else _branch(given)
    zone = given.timezone or local_zone()
    now = (given.as_of or datetime.now(UTC)).astimezone(zone)
    threads, own = _scope(given, now)
    scope = past(threads, given.me or [own], now, given.days)
    form = FORMS[given.format](zone)
    text = render(history_of(scope, form, given.chars), form)
    if not text:
        print(f"Nothing was said in the last {count(given.days, 'day')}.", file=sys.stderr)
    return text


def _branch(given: argparse.Namespace) -> str:
    """What is known of the branch here, as text."""
    with opened(where_of(given)) as place:
        found = what(checkout_of(place), place.glance, now_of(given))
        tell(place, found.unused)
        text = branch_text(work_rows(found, place.home), given.format, given.chars)
    if not found.is_relevant and not place.missing:
        print(NOTHING, file=sys.stderr)
    return text


def _scope(given: argparse.Namespace, now: datetime) -> tuple[list[Thread], str]:
    """The threads of the scope, which may have more in them than the last days, and the account of the bot there."""
    since = now - timedelta(days=given.days)
    if given.sessions is not None:
        return _sessions(given.sessions, since), Settings().comment.author
    with opened(where_of(given)) as place:
        settings = settings_of(place.demand())
        with whole(place) as memory:
            library = WithoutWords(memory, settings.ignore.people)
            if given.issue:
                number = given.issue.within(place.repo)
                told = [*_threads(library, [number]), *sessions_of_issue(place, number)]
                if not told:  # it may be newer than the memory: no error
                    print(f"No thread #{number} in this memory.", file=sys.stderr)
                found = of_issue(told, number)
            else:
                changed = [card.id for card in place.glance.updated_since(since) if card.kind != Kind.PAGE][:MOST]
                found = of_participant(_threads(library, changed), given.participant)
    return found, settings.comment.author


def _threads(library: WithoutWords, keys: Sequence[ThreadId]) -> list[Thread]:
    return [record for record in library.records(keys).values() if isinstance(record, Thread)]


def _sessions(folder: Path, since: datetime) -> list[Thread]:
    """The sessions in the files of a folder that were written to since then; what cannot be read is told of."""
    from bot.sources.transcripts.files import find
    from bot.sources.transcripts.mapping import issues
    from bot.sources.transcripts.reader import sessions
    from bot.sources.transcripts.threads import thread_of

    if not folder.is_dir():
        raise UserError(f"no folder {folder}: --sessions takes the folder of the transcripts")
    found = find(["."], str(folder))
    notes, threads = list(found.notes), list[Thread]()
    zone = local_zone()
    issue_of = issues(found.mappings, found.sessions)
    for file in found.sessions:
        if file.mtime_ns < since.timestamp() * 1e9:
            continue
        try:
            threads += [thread_of(one._replace(issue=issue_of.get(file.path))) for one in sessions(file, zone)]
        except OSError as error:
            notes.append(f"{file.name} cannot be read: {error.strerror}")
    for note in notes:
        print(one_line(note), file=sys.stderr)
    return threads
