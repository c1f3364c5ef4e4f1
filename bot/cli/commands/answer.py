"""precedent answer: the comment that a thread of a store would get."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from bot.action.report import NEAREST_HEADING
from bot.cli.arguments import one_of
from bot.cli.options import Arguments, argument, json_option, option, repo_option, semantic_option, store_option
from bot.cli.output import warn
from bot.comment.clean_text import one_line, truncate
from bot.comment.links import CommentLinks
from bot.comment.render import Renderer
from bot.domain.answer import Answer, Context, Match, Mention, Silent, Speak
from bot.domain.thread import Outcome, RepositoryAddress, Thread
from bot.domain.thread_json import stamp, storable
from bot.errors import UserError
from bot.local_cache.sync import open_store
from bot.local_cache.threads import record_named
from bot.memory.memory import Memory
from bot.questions.comment import comment_on, usual_language
from bot.questions.requests import MAX_NAME, parse_issue
from bot.recall.answer import recall
from bot.settings.schema import Settings

MAX_LINE_CHARS = 200
"""Maximum characters of a line about a similar issue."""


class AnswerArguments(Arguments):
    id: str = argument("ID", "an issue (42, #42, OWNER/NAME#42 or its URL), or a thread id such as ABC-123")
    store: Path = store_option()
    as_of: str = option(
        "created: use nothing newer than the thread (default now)", **one_of("created", "now"), default="now"
    )
    repo: str | None = repo_option()
    semantic: Path | None = semantic_option()
    json: bool = json_option("the whole answer")


def run_answer(args: AnswerArguments) -> object:
    memory = open_store(args.store, semantic=args.semantic)
    settings, repo = Settings(), args.repo or memory.state.repo
    thread = _find_thread(memory, args.id, repo or "")
    started = time.perf_counter()
    before = thread.created_at if args.as_of == "created" else None
    snapshot = thread.as_of(thread.created_at) if before else thread
    context = recall(snapshot, memory, settings, RepositoryAddress(repo), before)
    renderer = Renderer(links=CommentLinks(repo=repo or ""), commands=False)
    renderer.usual_language = partial(usual_language, memory)
    answer, markdown, _ = comment_on(snapshot, context, renderer, settings.mentions)
    ms = (time.perf_counter() - started) * 1000
    memory.close()
    for note in memory.notes if args.semantic else ():
        warn(note)
    if args.json:
        return answer_json(answer, markdown, ms)
    if isinstance(answer, Silent):
        warn(f"Silent: {answer.reason}.")
    _print_nearest(answer)
    return markdown


def _print_nearest(answer: Answer) -> None:
    """Print the most similar issues to stderr, shown or not; they are not part of the comment."""
    matches = answer.nearest if isinstance(answer, Silent) else answer.context.nearest
    if matches:
        warn(f"{NEAREST_HEADING}:")
    for match in matches:
        about = f"{match.id} ({match.state}): {match.title}{' · ' * bool(match.why)}{', '.join(match.why)}"
        warn(f"{match.similarity:.2f}  {truncate(one_line(about), MAX_LINE_CHARS)}")


def answer_json(answer: Answer, markdown: str, ms: float) -> dict[str, object]:
    """An answer as data: `{spoke, reason, mentioned, seen_before, open_now, pages, nearest, markdown, ms}`."""
    context = answer.context if isinstance(answer, Speak) else Context()
    nearest = answer.nearest if isinstance(answer, Silent) else context.nearest
    return {
        "spoke": isinstance(answer, Speak),
        "reason": answer.reason if isinstance(answer, Silent) else "",
        "mentioned": [_mention_data(mention) for mention in (*context.mentioned, *context.also_mentioned)],
        "seen_before": [_match_data(match) for match in context.seen_before],
        "open_now": [_match_data(match) for match in context.open_now],
        "pages": [{"title": p.title, "url": p.url, "similarity": p.similarity} for p in context.pages],
        "nearest": [_near_data(match) for match in nearest],
        "markdown": markdown,
        "ms": round(ms, 2),
    }


def _find_thread(memory: Memory, text: str, repo: str) -> Thread:
    if thread := record_named(memory, text, repo):
        return thread
    if named := parse_issue(text):
        named.within(repo)
    raise UserError(f"no thread {storable(text)[:MAX_NAME]} in this store")


def _mention_data(mention: Mention) -> dict[str, object]:
    return _hit_data(mention, 1.0, ("mentioned in the text",)) | {"missing": bool(mention.missing)}


def _match_data(match: Match) -> dict[str, object]:
    return _hit_data(match, match.similarity, match.why)


def _near_data(match: Match) -> dict[str, object]:
    return {name: value for name, value in _match_data(match).items() if name != "outcome"}


def _hit_data(hit: Mention | Match, similarity: float, why: Sequence[str]) -> dict[str, object]:
    return {
        "id": hit.id,
        "title": hit.title,
        "similarity": similarity,
        "state": hit.state,
        "outcome": outcome_json(hit.outcome, hit.closed_at),
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
