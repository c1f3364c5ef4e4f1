"""Finds the issues that a thread refers to, with everything that memory knows about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from bot.domain.answer import EarlierClosing, Mention
from bot.domain.thread import Reference, RepositoryAddress, Thread, ThreadId
from bot.reading.analyzer import terms
from bot.reading.digest import digest as read_digest
from bot.reading.endings.outcome import CLOSING_WINDOW, MISTAKE_WINDOW, outcome
from bot.reading.markdown import without_pasted_lines
from bot.reading.references import find_references, find_title_references
from bot.reading.requests import recall_question, without_commands
from bot.recall.condense import condense
from bot.recall.library import Library, threads

MAX_CHAIN = 10
MAX_LISTED = 10
MAX_ELSEWHERE = 5
SHORT_SUMMARY_CHARS = 240
"""A summary of at most this many characters is shown in full."""

NO_RECORD = "no record of this issue"


def referenced_numbers(thread: Thread, address: RepositoryAddress) -> list[int]:
    """The numbers in this repository that the thread refers to, in order, each once, except its own."""
    local = [r.number for r in _references(thread, address) if r.owner is None and r.number != thread.id]
    return list(dict.fromkeys(local))


def _typed_numbers(thread: Thread, address: RepositoryAddress) -> list[int]:
    """The numbers that people wrote themselves, outside quotations and pasted output."""
    comments = tuple(replace(one, text=without_pasted_lines(one.text)) for one in thread.comments)
    own = replace(
        thread, title=without_pasted_lines(thread.title), body=without_pasted_lines(thread.body), comments=comments
    )
    return referenced_numbers(own, address)


def mentioned_elsewhere(thread: Thread, address: RepositoryAddress) -> tuple[str, ...]:
    """The first threads of other repositories that it refers to, as ``owner/repo#5``, in order, each once.

    Only their names are shown: not everybody who can read this repository can read those.
    """
    names: dict[str, str] = {}
    for reference in _references(thread, address):
        if reference.owner is not None:
            name = f"{reference.owner}/{reference.repo}#{reference.number}"
            names.setdefault(name.lower(), name)
    return tuple(names.values())[:MAX_ELSEWHERE]


def _references(thread: Thread, address: RepositoryAddress) -> list[Reference]:
    """Everything on GitHub that the thread refers to in its title, its text and people's comments.

    References in a comment that asks the bot a question are left out, as the reply shows them.
    """
    number = thread.id if isinstance(thread.id, int) else None
    found = find_title_references(thread.title, repo=address.repo, number=number, hosts=address.hosts)
    found += _references_in(thread.body, address, number)
    for comment in thread.comments:
        in_comment = [] if comment.is_bot else _references_in(comment.text, address, number)
        if in_comment and not (comment.updated_at is None and recall_question(comment.text, address.recall_phrases)):
            found += in_comment
    return [reference for reference in found if reference.kind is None]


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
    """The first references in full and the others by title. ``limits``: how many in full, characters for each.

    Only the first ones are shown as missing, as the others were looked up in memory alone. A number that appears only
    in pasted output is never shown as missing, as it may belong to another repository.
    """
    max_full, chars = limits
    question = Counter(terms(f"{thread.title}\n{thread.body}"))
    full: dict[ThreadId, Mention] = {}
    listed: dict[ThreadId, Mention] = {}
    for position, number in enumerate(referenced_numbers(thread, address)[: max_full + MAX_LISTED]):
        mention = _mention(number, library, before, question, chars, address.repo)
        is_later = isinstance(thread.id, int) and number > thread.id
        if mention.id in (thread.id, *full, *listed):
            continue
        if mention.missing and (is_later or position >= max_full or number not in _typed_numbers(thread, address)):
            continue
        if mention.missing or sum(not m.missing for m in full.values()) < max_full:
            full[mention.id] = mention
        else:
            listed[mention.id] = _title_only(mention)
    return tuple(full.values()), tuple(listed.values())


def _title_only(mention: Mention) -> Mention:
    return Mention(
        id=mention.id,
        title=mention.title,
        state=mention.state,
        kind=mention.kind,
        draft=mention.draft,
        merged_at=mention.merged_at,
        outcome=mention.outcome,
        chain=mention.chain,
    )


def _mention(
    number: ThreadId, library: Library, before: datetime | None, question: Counter[str], chars: int, repo: str | None
) -> Mention:
    chain = canonical_chain(number, library, before, repo)
    thread = threads(library, chain[-1:], before).get(chain[-1])
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
    )


def earlier_ending(thread: Thread, repo: str | None) -> EarlierClosing | None:
    """The ending that was undone when the issue was reopened; None for an issue that is closed or never was.

    Comments long after the closing do not count: they led to the reopening and would refute the ending. An issue that
    was reopened within minutes had not ended.
    """
    flips = thread.flips
    if thread.is_closed or not thread.kind.traits.is_suggested or len(flips) < 2:
        return None
    closed_at, reopened_at = flips[-2:]
    if reopened_at - closed_at <= MISTAKE_WINDOW:
        return None
    return EarlierClosing(closed_at, reopened_at, outcome(thread.as_of(closed_at + CLOSING_WINDOW), repo))


_BUILD_OUTPUT = re.compile(r"\.(?:a|dll|dylib|exe|log|lib|lock|o|obj|pdb|so|sum)(?:\.\d+)*$", re.ASCII | re.IGNORECASE)
_LOCAL_PATH = re.compile(r"(?:[A-Za-z]:)?[\\/]|~[\\/]|\.\.[\\/]", re.ASCII)
_PATH_SEPARATOR = re.compile(r"[\\/]+")


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
    ours, theirs = _folders(path), _folders(other)
    if ours == theirs:
        return False
    shorter, longer = sorted((ours, theirs), key=len)
    if longer[-len(shorter) :] != shorter:
        return False
    if len(shorter) > 1 and _LOCAL_PATH.match(path) and not _LOCAL_PATH.match(other):
        return True
    is_worse_place = len(shorter) > 1 and bool(_LOCAL_PATH.match(other)) and not _LOCAL_PATH.match(path)
    return theirs == longer and not is_worse_place


def _folders(path: str) -> list[str]:
    return [part for part in _PATH_SEPARATOR.split(path) if part not in ("", ".", "..")]
