"""What the bot says about a thread: used for its comments, `precedent answer`, and the check of a draft."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from bot.comment.render import Renderer
from bot.domain.answer import Answer, Context, Silent
from bot.domain.bounds import MAX_TITLE
from bot.domain.thread import Thread, ThreadId
from bot.domain.thread_json import MAX_TEXT, storable
from bot.questions.requests import DraftRequest
from bot.reading.language import language_of, most_frequent
from bot.recall.answer import decide
from bot.recall.library import Library
from bot.settings.schema import ENGLISH, MentionSettings

NEIGHBOURS = 30
"""Threads that tell the usual language of a repository: few enough to be read in one go."""

_HEADING = re.compile(r"\A#{1,6}(?:[ \t]+|\Z)")


class ProposedComment(NamedTuple):
    """The answer about a thread, and its comment: Markdown that begins with the marker, "" for silence.

    ``problem`` is a line about a problem with the repository's templates, if any.
    """

    answer: Answer
    text: str = ""
    problem: str = ""


def comment_on(thread: Thread, context: Context, renderer: Renderer, settings: MentionSettings) -> ProposedComment:
    """Decide whether the context is worth a comment on the thread, and write it."""
    answer = decide(context, settings)
    if isinstance(answer, Silent):
        return ProposedComment(answer)
    rendered = renderer.for_thread(thread).render(
        context, thread_id=thread.id, now=thread.revised_at, searched=context.searched
    )
    return ProposedComment(answer, rendered.text, rendered.problem or "")


def usual_language(library: Library, key: ThreadId) -> str:
    """The most frequent language of the threads before this one; English for a thread without a number."""
    return language_among(library, range(max(key - NEIGHBOURS, 1), key)) if isinstance(key, int) else ENGLISH


def language_among(library: Library, ids: Iterable[ThreadId]) -> str:
    """The most frequent language of these threads."""
    records = library.records(ids).values()
    return most_frequent(language_of(each.title, each.body) for each in records if isinstance(each, Thread))


def split_draft(text: str) -> tuple[str, str]:
    """Title and body of a draft: its first line, without heading marks, and the rest."""
    title, _, body = text.lstrip("\ufeff \t\r\n").partition("\n")
    return _HEADING.sub("", title.strip(), count=1), body.lstrip("\r\n")


def draft_thread(request: DraftRequest) -> Thread:
    """The draft as a newly opened issue, without number and author."""
    title, body = storable(request.title)[:MAX_TITLE], storable(request.body)[:MAX_TEXT]
    return Thread("draft", title, body, "", request.now)
