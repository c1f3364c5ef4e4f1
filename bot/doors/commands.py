"""What each command does: arguments → text to print, or data to print as JSON."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from typing import Any

from bot.answer import Answer, Context, Match, Mention, Silent, Speak
from bot.archive import clean, stamp
from bot.comment.links import Links
from bot.comment.render import Renderer
from bot.comment.summary import NEAREST
from bot.comment.visible import cut, one_line
from bot.doors.archives import read_archive
from bot.doors.given import MAX_NAME, issue_named, keys_of
from bot.doors.lesson import taught
from bot.doors.progress import progress
from bot.doors.stores import open_store, text_model
from bot.errors import UserError
from bot.kept import Changes
from bot.learning import EVENT_SECONDS, is_due
from bot.memory.folder import FolderStore
from bot.memory.memory import Memory
from bot.model import Outcome, Reference, Thread
from bot.reading.references import find_references
from bot.recall.answering import decide, recall
from bot.recall.mentioned import Place
from bot.settings import Settings

MAX_STDIN = 1024 * 1024
WIDEST = 200
"""Characters of a line about one of the nearest."""

IMPORTED = 20_000
"""Threads that are written at a time: an archive of any size takes the memory of so many."""


def run_references(given: argparse.Namespace) -> list[dict[str, object]]:
    """The references of the text on stdin."""
    text = sys.stdin.buffer.read(MAX_STDIN).decode("utf-8", "replace")
    repo, number = given.repo, None
    if given.number:
        repo, number = given.repo or given.number.repo or None, given.number.within(given.repo or "")
    found = find_references(text, repo=repo, number=number, autolinks=given.autolink)
    return [_reference(reference) for reference in found]


def run_import(given: argparse.Namespace) -> object:
    """Read archives into a store."""
    started = time.monotonic()
    if given.store.exists() and not given.store.is_dir():
        raise UserError(f"{given.store} is a file: --store takes a folder")
    memory = Memory(FolderStore(given.store), repo=given.repo, embedder=text_model(given.semantic)).open()
    last = {thread.id: place for place, thread in _in_archives(given.files)}  # all is read once before any is written
    comments = 0
    with progress("Reading threads", len(last)) as tick:
        fit = (thread for place, thread in _in_archives(given.files) if last[thread.id] == place)
        while batch := tuple(islice(fit, IMPORTED)):
            memory.stage(Changes(records=batch), tick)
            memory.commit(f"Import {len(batch)} threads")
            comments += sum(len(thread.comments) for thread in batch)
    if memory.lacks_vectors:
        with progress("Reading with the text model", memory.size) as tick:
            memory.rebuild_index(tick)
            memory.commit("Index with a text model")
    counts: dict[str, Any] = {
        "threads": len(last),
        "comments": comments,
        "in_store": memory.size,
        "seconds": round(time.monotonic() - started, 2),
    }
    counts |= {"learned_from": _learned_from(memory, given)}
    has_learned = memory.has_learned
    memory.close()
    if given.json:
        return counts
    told = "{threads:,} threads with {comments:,} comments read in {seconds} s; {in_store:,} in the store\n"
    longer = f"`precedent learn --store {quote(str(given.store))}` has longer for it"
    learned = f"learned from {counts['learned_from']:,} threads; {longer}\n" if has_learned else ""
    return told.format(**counts) + learned


def _learned_from(memory: Memory, given: argparse.Namespace) -> int:
    """From how many threads the store has learned; it learns now where it is time and nobody says not to."""
    if given.learn and is_due(memory, calm=True):
        taught(memory, given.repo or memory.repo, EVENT_SECONDS)
    return memory.learned_from


def _in_archives(files: Iterable[Path]) -> Iterator[tuple[int, Thread]]:
    """The threads of these archives, numbered."""
    return enumerate(chain.from_iterable(map(read_archive, files)))


def run_answer(given: argparse.Namespace) -> object:
    """What would be said on a thread."""
    memory = open_store(given.store, semantic=given.semantic)
    settings, repo = Settings(), given.repo or memory.repo
    thread = _thread(memory, given.id, repo or "")
    started = time.perf_counter()
    before = thread.created_at if given.as_of == "created" else None
    asked = thread.as_of(thread.created_at) if before else thread
    answer = decide(recall(asked, memory, settings, Place(repo), before))
    markdown = ""
    if isinstance(answer, Speak):
        renderer = Renderer(links=Links(repo=repo or ""), commands=False)
        context = answer.context
        markdown = renderer.render(context, thread_id=thread.id, now=asked.revised_at, searched=context.searched).text
    ms = (time.perf_counter() - started) * 1000
    memory.close()
    for note in memory.notes if given.semantic else ():
        print(note, file=sys.stderr)
    if given.json:
        return answer_json(answer, markdown, ms)
    if isinstance(answer, Silent):
        print(f"Silent: {answer.reason}.", file=sys.stderr)
    _tell_nearest(answer)
    return markdown


def _tell_nearest(answer: Answer) -> None:
    """The issues most like it, whether they are shown or not, on stderr: they are no part of the comment."""
    found = answer.nearest if isinstance(answer, Silent) else answer.context.nearest
    if found:
        print(f"{NEAREST}:", file=sys.stderr)
    for match in found:
        about = f"{match.id} ({match.state}): {match.title} · {', '.join(match.why)}"
        print(f"  {match.similarity:.2f}  {cut(one_line(about), WIDEST)}", file=sys.stderr)


def answer_json(answer: Answer, markdown: str, ms: float) -> dict[str, object]:
    """An answer as data: `{spoke, reason, mentioned, seen_before, open_now, pages, nearest, markdown, ms}`."""
    context = answer.context if isinstance(answer, Speak) else Context()
    nearest = answer.nearest if isinstance(answer, Silent) else context.nearest
    return {
        "spoke": isinstance(answer, Speak),
        "reason": answer.reason if isinstance(answer, Silent) else "",
        "mentioned": [_mention(mention) for mention in (*context.mentioned, *context.also_mentioned)],
        "seen_before": [_match(match) for match in context.seen_before],
        "open_now": [_match(match) for match in context.open_now],
        "pages": [{"title": p.title, "url": p.url, "similarity": p.similarity} for p in context.pages],
        "nearest": [_near(match) for match in nearest],
        "markdown": markdown,
        "ms": round(ms, 2),
    }


def _thread(memory: Memory, text: str, repo: str) -> Thread:
    for key in keys_of(text, repo):
        found = memory.records([key]).get(key)
        if isinstance(found, Thread):
            return found
    if named := issue_named(text):
        named.within(repo)
    raise UserError(f"no thread {clean(text)[:MAX_NAME]} in this store")


def _reference(reference: Reference) -> dict[str, object]:
    fields: dict[str, object] = {
        "owner": reference.owner,
        "repo": reference.repo,
        "number": reference.number,
        "action": reference.action,
        "kind": reference.kind,
    }
    return fields | ({"prefix": reference.prefix} if reference.prefix else {})


def _mention(mention: Mention) -> dict[str, object]:
    return {
        "id": mention.id,
        "title": mention.title,
        "similarity": 1.0,
        "state": mention.state,
        "outcome": outcome_json(mention.outcome, mention.closed_at),
        "why": ["mentioned in the text"],
        "missing": bool(mention.missing),
    }


def _near(match: Match) -> dict[str, object]:
    told = _match(match)
    return {name: told[name] for name in ("id", "title", "similarity", "state", "why")}


def _match(match: Match) -> dict[str, object]:
    return {
        "id": match.id,
        "title": match.title,
        "similarity": match.similarity,
        "state": match.state,
        "outcome": outcome_json(match.outcome, match.closed_at),
        "why": list(match.why),
    }


def outcome_json(outcome: Outcome, closed_at: datetime | None) -> dict[str, Any]:
    """How a thread ended, as data."""
    return {
        "kind": outcome.kind.value,
        "comment": outcome.comment,
        "quote": outcome.quote,
        "evidence": list(outcome.evidence),
        "fix_ref": outcome.fix,
        "release": outcome.release,
        "duplicate_of": outcome.duplicate_of,
        "confidence": outcome.confidence,
        "closed_at": stamp(closed_at),
    }
