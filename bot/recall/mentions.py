"""Finds the issues that a thread refers to, with everything that memory knows about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from bot.domain.answer import EarlierClosing, Mention
from bot.domain.file_path import end_alike, path_parts
from bot.domain.thread import Reference, RepositoryAddress, Thread, ThreadId
from bot.reading.analyzer import terms
from bot.reading.digest import digest as read_digest
from bot.reading.endings.outcome import CLOSING_WINDOW, MISTAKE_WINDOW, outcome
from bot.reading.questions import recall_question
from bot.reading.references import find_references, find_title_references
from bot.reading.requests import without_commands
from bot.recall.condense import condense
from bot.recall.library import Library, threads

MAX_CHAIN = 10
MAX_LISTED = 10
MAX_ELSEWHERE = 5
SHORT_SUMMARY_CHARS = 240
"""A summary of at most this many characters is shown in full."""

NO_RECORD = "no record of this issue"

_TAKING_PART = frozenset({"closed", "reopened", "merged", "assigned"})


class _Written(NamedTuple):
    """A reference, who wrote it, and when; ``asks``: the text asks for an earlier decision or discussion."""

    reference: Reference
    author: str
    at: datetime
    asks: bool = False


def referenced_numbers(thread: Thread, address: RepositoryAddress) -> list[int]:
    """The numbers in this repository that the thread refers to, in order, each once, except its own."""
    return list(_first_writings(thread, address))


def _first_writings(thread: Thread, address: RepositoryAddress) -> dict[int, _Written]:
    """Each number in this repository that the thread refers to, except its own, in order, as it was first written."""
    first: dict[int, _Written] = {}
    for written in _references(thread, address):
        number = written.reference.number
        if written.reference.owner is None and number != thread.id:
            first.setdefault(number, written)
    return first


def mentioned_elsewhere(thread: Thread, address: RepositoryAddress) -> tuple[str, ...]:
    """The first threads of other repositories that it refers to, as ``owner/repo#5``, in order, each once.

    Only their names are shown: not everybody who can read this repository can read those.
    """
    names: dict[str, str] = {}
    for reference, *_ in _references(thread, address):
        if reference.owner is not None:
            name = f"{reference.owner}/{reference.repo}#{reference.number}"
            names.setdefault(name.lower(), name)
    return tuple(names.values())[:MAX_ELSEWHERE]


def _references(thread: Thread, address: RepositoryAddress) -> list[_Written]:
    """Everything on GitHub that the thread refers to in its title, its text and people's comments.

    References in a comment that asks the bot a question are left out, as the reply shows them.
    """
    number = thread.id if isinstance(thread.id, int) else None
    opening = find_title_references(thread.title, repo=address.repo, number=number, hosts=address.hosts)
    opening += _references_in(thread.body, address, number)
    asks = any(opening and recall_question(text, address.questions) for text in (thread.title, thread.body))
    found = [_Written(reference, thread.author, thread.created_at, asks) for reference in opening]
    for comment in thread.comments:
        in_comment = [] if comment.is_bot else _references_in(comment.text, address, number)
        if in_comment and not (comment.updated_at is None and recall_question(comment.text, address.questions)):
            found += [_Written(reference, comment.author, comment.created_at) for reference in in_comment]
    return [written for written in found if written.reference.kind is None]


def _references_in(text: str, address: RepositoryAddress, number: int | None) -> list[Reference]:
    return find_references(without_commands(text), repo=address.repo, number=number, hosts=address.hosts)


def numbers_in(text: str, address: RepositoryAddress) -> tuple[int, ...]:
    """The issues and pull requests of this repository that a text refers to, in order, each once."""
    found = (each.number for each in _references_in(text, address, None) if each.owner is None and each.kind is None)
    return tuple(dict.fromkeys(found))


def canonical_chain(
    start: ThreadId, library: Library, before: datetime | None, repo: str | None = None
) -> list[ThreadId]:
    """The chain of duplicates from ``start`` to their original, ``start`` first.

    It ends before a thread that is already in it, and before one that memory does not hold.
    """
    chain = [start]
    while len(chain) <= MAX_CHAIN:
        thread = threads(library, chain[-1:], before).get(chain[-1])
        target = read_digest(thread, repo=repo).duplicate_of if thread else None
        if target is None or target in chain or not threads(library, [target], before):
            break
        chain.append(target)
    return chain


def find_mentions(
    thread: Thread, address: RepositoryAddress, library: Library, before: datetime | None, limits: tuple[int, int]
) -> tuple[tuple[Mention, ...], tuple[Mention, ...]]:
    """The first references in full and the others in brief. ``limits``: how many in full, characters for each.

    Issues without a record are among the others, and only if they are among the first: the rest was looked up in memory
    alone.
    """
    limit, chars = limits
    question = Counter(terms(f"{thread.title}\n{thread.body}"))
    full: dict[ThreadId, Mention] = {}
    others: dict[ThreadId, Mention] = {}
    for position, (number, written) in enumerate(_first_writings(thread, address).items()):
        if position == limit + MAX_LISTED:
            break
        mention = _mention(written, library, before, question, chars, address.repo)
        is_later = isinstance(thread.id, int) and number > thread.id
        if mention.id in (thread.id, *full, *others) or (mention.missing and (is_later or position >= limit)):
            continue
        if mention.missing or len(full) == limit:
            others[mention.id] = brief(mention)
        else:
            full[mention.id] = mention
    return tuple(full.values()), tuple(others.values())


def brief(mention: Mention) -> Mention:
    """The mention without what was said in its thread."""
    return replace(mention, summary="", decisions=(), files=(), conversation=(), earlier=None)


def _mention(
    written: _Written, library: Library, before: datetime | None, question: Counter[str], chars: int, repo: str | None
) -> Mention:
    number = written.reference.number
    chain = canonical_chain(number, library, before, repo)
    on_the_way = threads(library, chain, before)
    thread = on_the_way.get(chain[-1])
    if thread is None:
        return Mention(id=number, missing=NO_RECORD)
    digest = read_digest(thread, repo=repo)
    summary = digest.summary
    is_all = not thread.comments and len(summary) <= SHORT_SUMMARY_CHARS and thread.body.split() == summary.split()
    return Mention(
        id=thread.id,
        title=thread.title,
        state=thread.state,
        state_reason=thread.state_reason,
        kind=thread.kind,
        draft=thread.draft,
        merged_at=thread.merged_at,
        created_at=thread.created_at,
        closed_at=thread.closed_at,
        outcome=digest.outcome,
        summary=summary,
        decisions=digest.decisions,
        files=telling_files(digest.files),
        conversation=() if is_all else condense(thread, question, chars),
        chain=tuple(chain[:-1]),
        earlier=earlier_ending(thread, repo),
        is_asked=written.asks,
        is_known=any(took_part(written.author, each, written.at) for each in on_the_way.values()),
    )


def took_part(login: str, thread: Thread, until: datetime) -> bool:
    """Whether this person had opened, closed or commented on the thread by then."""
    name = login.casefold()
    acts = [(thread.author, thread.created_at)]
    acts += [(comment.author, comment.created_at) for comment in thread.comments]
    acts += [(event.actor, event.at) for event in thread.events if event.name in _TAKING_PART]
    acts += [(thread.closed_by, thread.closed_at)] if thread.closed_by and thread.closed_at else []
    return any(other.casefold() == name and at <= until for other, at in acts)


def earlier_ending(thread: Thread, repo: str | None) -> EarlierClosing | None:
    """The ending that was undone when the issue was reopened; None for an issue that is closed or never was.

    Comments long after the closing do not count: they led to the reopening and would refute the ending. An issue that
    was reopened within minutes had not ended.
    """
    state_changes = thread.state_changes
    if thread.is_closed or not thread.kind.traits.is_suggested or len(state_changes) < 2:
        return None
    closed_at, reopened_at = state_changes[-2:]
    if reopened_at - closed_at <= MISTAKE_WINDOW:
        return None
    return EarlierClosing(closed_at, reopened_at, outcome(thread.as_of(closed_at + CLOSING_WINDOW), repo))


_BUILD_OUTPUT = re.compile(r"\.(?:a|dll|dylib|exe|log|lib|lock|o|obj|pdb|so|sum)(?:\.\d+)*$", re.ASCII | re.IGNORECASE)
_LOCAL_PATH = re.compile(r"(?:[A-Za-z]:)?[\\/]|~[\\/]|\.\.[\\/]", re.ASCII)


def telling_files(paths: Iterable[str]) -> tuple[str, ...]:
    """The files that somebody may have to open, each once: the repository's first, otherwise in the given order.

    Build products and logs are left out. Of two names for one file (``cookie.py``, ``auth/cookie.py``) the one with
    more folders stays, but a path in the repository wins over one on somebody's machine.
    """
    distinct = [path for path in dict.fromkeys(paths) if not _BUILD_OUTPUT.search(path)]
    kept = [path for path in distinct if not any(_is_better(other, path) for other in distinct)]
    return tuple(sorted(kept, key=lambda path: bool(_LOCAL_PATH.match(path))))


def _is_better(other: str, path: str) -> bool:
    """Whether both may be the same file and ``other`` is the better name."""
    ours, theirs = path_parts(path), path_parts(other)
    if ours == theirs or not end_alike(ours, theirs):
        return False
    has_folder = min(len(ours), len(theirs)) > 1
    if has_folder and _LOCAL_PATH.match(path) and not _LOCAL_PATH.match(other):
        return True
    is_worse_place = has_folder and bool(_LOCAL_PATH.match(other)) and not _LOCAL_PATH.match(path)
    return len(theirs) > len(ours) and not is_worse_place
