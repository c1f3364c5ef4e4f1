"""The open pull requests that may end the open issues in an answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot.domain.answer import Context, open_issues
from bot.domain.digest import IndexEntry
from bot.domain.file_path import end_alike, path_parts
from bot.domain.post import OpenPull
from bot.domain.thread import Kind, Record, RepositoryAddress, Thread, ThreadId, Tombstone
from bot.index.protocol import Query
from bot.reading.analyzer import terms
from bot.reading.references import find_references
from bot.reading.signals import find_files
from bot.recall.library import Library, threads

MAX_READ = 5
"""Most remembered pull requests that are read for one issue because they contain its number."""


def with_pulls(context: Context, found: Iterable[OpenPull], thread: Thread) -> Context:
    """The context with at most one pull request, from ``found`` or its own, for each open issue that it shows.

    One that says it closes the issue comes before one that only refers to it, which is shown only if it changes a file
    that the ``thread`` names. The thread itself is left out.
    """
    named_paths = [path_parts(path) for path in find_files(f"{thread.title}\n{thread.body}")]
    chosen: dict[int, OpenPull] = {}
    for pull in (*context.pulls, *found):
        candidate = replace(
            pull, files=tuple(path for path in pull.files if _is_named(path_parts(path), named_paths))[:1]
        )
        if (candidate.closes or candidate.files) and candidate.id != thread.id:
            chosen[pull.about] = min(chosen.get(pull.about, candidate), candidate, key=_strongest_first)
    pulls = (chosen.get(number) for number in open_issues(context))
    return replace(context, pulls=tuple(pull for pull in pulls if pull))


def _strongest_first(pull: OpenPull) -> tuple[bool, bool, bool, bool, int]:
    return not pull.closes, pull.seen_at is not None, not pull.files, pull.draft, -pull.id


def remembered_pulls(numbers: Iterable[int], library: Library, address: RepositoryAddress) -> list[OpenPull]:
    """The open pull requests in memory whose texts say that they close one of these issues."""
    issues = list(numbers)
    candidates = dict.fromkeys(key for number in issues for key in _find_pulls_naming(number, library))
    pulls = threads(library, candidates, None) if candidates else {}
    return [
        OpenPull(reference.number, key, pull.title, closes=True, draft=pull.draft)
        for key, pull in pulls.items()
        if isinstance(key, int) and not pull.is_closed
        for reference in find_references(pull.body, repo=address.repo, number=key, hosts=address.hosts)
        if reference.action == "closes"
        and reference.owner is None
        and reference.kind is None
        and reference.number in issues
    ]


def _find_pulls_naming(number: int, library: Library) -> list[ThreadId]:
    query = Query(dict.fromkeys(terms(str(number)), 1.0), kinds=frozenset({Kind.PULL}))
    return [hit.entry.id for hit in library.search(query, limit=MAX_READ, keep=_is_open)]


def _is_open(entry: IndexEntry) -> bool:
    return entry.state == "open"


def still_open(pulls: Iterable[OpenPull], library: Library) -> list[OpenPull]:
    """The pull requests that memory does not know to be closed or gone, updated from memory."""
    candidates = list(pulls)
    records = library.records([pull.id for pull in candidates]) if candidates else {}
    return [refreshed for pull in candidates if (refreshed := _refresh(pull, records.get(pull.id)))]


def _refresh(pull: OpenPull, record: Record | None) -> OpenPull | None:
    if isinstance(record, Tombstone) or (isinstance(record, Thread) and record.is_closed):
        return None
    return replace(pull, title=record.title, draft=record.draft) if record else pull


def _is_named(path: list[str], others: Iterable[list[str]]) -> bool:
    """Whether the path and one of ``others`` end alike: one is the end of the other.

    At least one folder must match too, as every project has files such as ``config.js``.
    """
    return any(min(len(path), len(other)) > 1 and end_alike(path, other) for other in others)
