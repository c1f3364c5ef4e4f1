"""The open pull requests that may end the open issues in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from bot.domain.answer import Context, open_issues
from bot.domain.changes import OpenPull
from bot.domain.digest import IndexEntry
from bot.domain.thread import Kind, Record, RepositoryAddress, Thread, ThreadId, Tombstone
from bot.index.protocol import Query
from bot.reading.analyzer import terms
from bot.reading.references import find_references
from bot.reading.signals import find_files
from bot.recall.library import Library, threads

MAX_READ = 5
"""Remembered pull requests with its number that are read for one issue."""

_BETWEEN = re.compile(r"[\\/]+")


def with_pulls(context: Context, found: Iterable[OpenPull], thread: Thread) -> Context:
    """The context with one of these pull requests, or of those in it, for each open issue that it shows.

    One that says that it closes the issue comes before one that refers to it, which is shown only if it changes a file
    that the ``thread`` names. The thread itself is left out.
    """
    named = [_folders(path) for path in find_files(f"{thread.title}\n{thread.body}")]
    chosen: dict[int, OpenPull] = {}
    for pull in (*context.pulls, *found):
        told = replace(pull, files=tuple(path for path in pull.files if _is_named(_folders(path), named))[:1])
        if (told.closes or told.files) and told.id != thread.id:
            chosen[pull.about] = min(chosen.get(pull.about, told), told, key=_strongest_first)
    kept = (chosen.get(number) for number in open_issues(context))
    return replace(context, pulls=tuple(pull for pull in kept if pull))


def _strongest_first(pull: OpenPull) -> tuple[bool, bool, bool, bool, int]:
    return not pull.closes, pull.seen_at is not None, not pull.files, pull.draft, -pull.id


def remembered_pulls(numbers: Iterable[int], library: Library, place: RepositoryAddress) -> list[OpenPull]:
    """The open pull requests in memory whose texts say that they close one of these issues."""
    wanted = list(numbers)
    candidates = dict.fromkeys(key for number in wanted for key in _naming(number, library))
    pulls = threads(library, candidates, None) if candidates else {}
    return [
        OpenPull(one.number, key, pull.title, closes=True, draft=pull.draft)
        for key, pull in pulls.items()
        if isinstance(key, int) and not pull.is_closed
        for one in find_references(pull.body, repo=place.repo, number=key, hosts=place.hosts)
        if one.action == "closes" and one.owner is None and one.kind is None and one.number in wanted
    ]


def _naming(number: int, library: Library) -> list[ThreadId]:
    query = Query(dict.fromkeys(terms(str(number)), 1.0), kinds=frozenset({Kind.PULL}))
    return [hit.entry.id for hit in library.search(query, limit=MAX_READ, keep=_is_open)]


def _is_open(entry: IndexEntry) -> bool:
    return entry.state == "open"


def still_open(pulls: Iterable[OpenPull], library: Library) -> list[OpenPull]:
    """Those of these pull requests that memory does not know to be closed or gone, with what it knows of them."""
    asked = list(pulls)
    known = library.records([pull.id for pull in asked]) if asked else {}
    return [now for pull in asked if (now := _as_known(pull, known.get(pull.id)))]


def _as_known(pull: OpenPull, record: Record | None) -> OpenPull | None:
    if isinstance(record, Tombstone) or (isinstance(record, Thread) and record.is_closed):
        return None
    return replace(pull, title=record.title, draft=record.draft) if record else pull


def _is_named(path: list[str], named: Iterable[list[str]]) -> bool:
    """Whether one of the ``named`` paths ends as this one does, or the other way round.

    A folder at least must be the same, as names such as ``config.js`` are in every project.
    """
    for one in named:
        short, long = sorted((path, one), key=len)
        if len(short) > 1 and long[-len(short) :] == short:
            return True
    return False


def _folders(path: str) -> list[str]:
    return [part for part in _BETWEEN.split(path) if part not in ("", ".", "..")]
