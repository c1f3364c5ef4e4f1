"""precedent answer: the comment that would be written on a thread of a store."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bot.action.report import NEAREST
from bot.comment.clean_text import cut, one_line
from bot.comment.links import CommentLinks
from bot.comment.render import Renderer
from bot.domain.answer import Answer, Context, Match, Mention, Silent, Speak
from bot.domain.thread import Outcome, RepositoryAddress, Thread
from bot.domain.thread_json import clean, stamp
from bot.errors import UserError
from bot.local_cache.sync import open_store
from bot.memory.memory import Memory
from bot.questions.comment import comment_on
from bot.questions.requests import MAX_NAME, issue_named, keys_of
from bot.recall.answer import recall
from bot.settings.schema import Settings

WIDEST = 200
"""Characters of a line about one of the nearest."""


def run_answer(given: argparse.Namespace) -> object:
    memory = open_store(given.store, semantic=given.semantic)
    settings, repo = Settings(), given.repo or memory.state.repo
    thread = _thread(memory, given.id, repo or "")
    started = time.perf_counter()
    before = thread.created_at if given.as_of == "created" else None
    asked = thread.as_of(thread.created_at) if before else thread
    context = recall(asked, memory, settings, RepositoryAddress(repo), before)
    answer, markdown, _ = comment_on(asked, context, Renderer(links=CommentLinks(repo=repo or ""), commands=False))
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
        about = f"{match.id} ({match.state}): {match.title}{' · ' * bool(match.why)}{', '.join(match.why)}"
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


def _mention(mention: Mention) -> dict[str, object]:
    return _shown(mention, 1.0, ("mentioned in the text",)) | {"missing": bool(mention.missing)}


def _match(match: Match) -> dict[str, object]:
    return _shown(match, match.similarity, match.why)


def _near(match: Match) -> dict[str, object]:
    return {name: value for name, value in _match(match).items() if name != "outcome"}


def _shown(one: Mention | Match, similarity: float, why: Sequence[str]) -> dict[str, object]:
    return {
        "id": one.id,
        "title": one.title,
        "similarity": similarity,
        "state": one.state,
        "outcome": outcome_json(one.outcome, one.closed_at),
        "why": list(why),
    }


def outcome_json(outcome: Outcome, closed_at: datetime | None) -> dict[str, Any]:
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
