"""The issues that a thread points at, with what memory knows of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime

from bot.answer import Mention
from bot.model import Reference, Thread, ThreadId
from bot.reading.digest import digest as read_digest
from bot.reading.intent import recall_question, without_commands
from bot.reading.pasted import without_pasted
from bot.reading.references import find_references, find_title_references
from bot.reading.words import terms
from bot.recall.condense import condense
from bot.recall.files import telling_files
from bot.recall.library import Library, threads
from bot.recall.reopened import earlier_ending

MAX_CHAIN = 10
MAX_LISTED = 10
MAX_ELSEWHERE = 5
SHORT = 240
"""Characters of a summary that are shown in full, whatever stands in it."""

NO_RECORD = "no record of this issue"


@dataclass(frozen=True, slots=True)
class Place:
    """Where references are read: the repository's full name, the hosts whose links count, and its server's address.

    ``recall_phrases`` are those of the settings: a comment that asks so is answered by a reply of its own.
    """

    repo: str | None = None
    hosts: tuple[str, ...] = ("github.com",)
    server: str = "https://github.com"
    recall_phrases: tuple[str, ...] = ()


def referenced(thread: Thread, place: Place) -> list[int]:
    """Numbers of this repository that the thread points at, in order of mention, each once, itself left out."""
    local = [r.number for r in _pointed_at(thread, place) if r.owner is None and r.number != thread.id]
    return list(dict.fromkeys(local))


def _written(thread: Thread, place: Place) -> list[int]:
    """The numbers that people wrote themselves: those beside quotations and pasted output."""
    comments = tuple(replace(one, text=without_pasted(one.text)) for one in thread.comments)
    own = replace(thread, title=without_pasted(thread.title), body=without_pasted(thread.body), comments=comments)
    return referenced(own, place)


def elsewhere(thread: Thread, place: Place) -> tuple[str, ...]:
    """The first threads of other repositories that it points at, ``owner/repo#5``, in order of mention, each once.

    Nothing but their names is known: what stands there is not for everybody who reads here.
    """
    names: dict[str, str] = {}
    for reference in _pointed_at(thread, place):
        if reference.owner is not None:
            name = f"{reference.owner}/{reference.repo}#{reference.number}"
            names.setdefault(name.lower(), name)
    return tuple(names.values())[:MAX_ELSEWHERE]


def _pointed_at(thread: Thread, place: Place) -> list[Reference]:
    """Everything on GitHub that the thread points at: in its title, its text, and what people said, but not to us.

    What a comment with a question to us points at is told in the reply to it, and in no other comment of ours.
    """
    number = thread.id if isinstance(thread.id, int) else None
    found = find_title_references(thread.title, repo=place.repo, number=number, hosts=place.hosts)
    found += _in_text(thread.body, place, number)
    for comment in thread.comments:
        pointed_at = [] if comment.is_bot else _in_text(comment.text, place, number)
        if pointed_at and not (comment.updated_at is None and recall_question(comment.text, place.recall_phrases)):
            found += pointed_at
    return [reference for reference in found if reference.kind is None]


def _in_text(text: str, place: Place, number: int | None) -> list[Reference]:
    return find_references(without_commands(text), repo=place.repo, number=number, hosts=place.hosts)


def numbers_in(text: str, place: Place) -> tuple[int, ...]:
    """The issues and pull requests of this repository that a text points at, in order of mention, each once."""
    found = (each.number for each in _in_text(text, place, None) if each.owner is None and each.kind is None)
    return tuple(dict.fromkeys(found))


def canonical_chain(
    start: ThreadId, library: Library, before: datetime | None, repo: str | None = None
) -> list[ThreadId]:
    """The duplicates from ``start`` to the thread that they are duplicates of, ``start`` first.

    A cycle ends the walk at the last thread that was new; so does a thread that memory does not hold.
    """
    chain = [start]
    while len(chain) <= MAX_CHAIN:
        thread = threads(library, chain[-1:], before).get(chain[-1])
        target = read_digest(thread, repo=repo).duplicate_of if thread else None
        if target is None or target in chain or not threads(library, [target], before):
            break
        chain.append(target)
    return chain


def mentions(
    thread: Thread, place: Place, library: Library, before: datetime | None, limits: tuple[int, int]
) -> tuple[tuple[Mention, ...], tuple[Mention, ...]]:
    """The first references in full and the others by title. ``limits``: how many in full, characters for each.

    That there is no record is said of the first ones only: for the others nobody looked outside memory. Nor is it said
    of a number that stands in pasted output alone, as it may be one of another repository.
    """
    most, chars = limits
    question = Counter(terms(f"{thread.title}\n{thread.body}"))
    full: dict[ThreadId, Mention] = {}
    listed: dict[ThreadId, Mention] = {}
    for place_in_text, number in enumerate(referenced(thread, place)[: most + MAX_LISTED]):
        mention = _mention(number, library, before, question, chars, place.repo)
        is_later = isinstance(thread.id, int) and number > thread.id
        if mention.id in (thread.id, *full, *listed):
            continue
        if mention.missing and (is_later or place_in_text >= most or number not in _written(thread, place)):
            continue
        if mention.missing or sum(not m.missing for m in full.values()) < most:
            full[mention.id] = mention
        else:
            listed[mention.id] = _by_title(mention)
    return tuple(full.values()), tuple(listed.values())


def _by_title(m: Mention) -> Mention:
    return Mention(
        id=m.id,
        title=m.title,
        state=m.state,
        kind=m.kind,
        draft=m.draft,
        merged_at=m.merged_at,
        outcome=m.outcome,
        chain=m.chain,
    )


def _mention(
    number: ThreadId,
    library: Library,
    before: datetime | None,
    question: Counter[str],
    chars: int,
    repo: str | None,
) -> Mention:
    chain = canonical_chain(number, library, before, repo)
    thread = threads(library, chain[-1:], before).get(chain[-1])
    if thread is None:
        return Mention(id=number, missing=NO_RECORD)
    digest = read_digest(thread, repo=repo)
    summary = digest.summary
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
        conversation=() if _tells_all(summary, thread) else condense(thread, question, chars),
        chain=tuple(chain[:-1]),
        earlier=earlier_ending(thread, repo),
    )


def _tells_all(summary: str, thread: Thread) -> bool:
    """Whether the conversation has nothing beyond the summary, which is shown anyway."""
    return not thread.comments and len(summary) <= SHORT and " ".join(thread.body.split()) == " ".join(summary.split())
