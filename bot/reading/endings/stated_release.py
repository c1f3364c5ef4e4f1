"""Which release has the fix of a closed issue, in the words of a maintainer, whoever closed it, or a release bot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.thread import Message, Thread
from bot.reading.endings.engine import SentenceContext, is_question, matches, undoes
from bot.reading.endings.outcome import SLACK, Closing, closing_of, is_reopened_in_words
from bot.reading.endings.phrases import Rule, is_said, phrase_book
from bot.reading.endings.quote import MAX_QUOTE
from bot.reading.markdown import read, statements
from bot.reading.versions import PRE, Version, read_version

_NEAR = timedelta(days=1)
"""How long before the closing the release may be named. Afterwards it may be named at any time."""

_RULES = ("stated_in", "just_out", "planned_in")

_MAY_NAME = re.compile(r"\d\.\d", re.ASCII)
_WRITTEN = re.compile(rf"v?\d{{1,4}}(?:\.\d{{1,5}}){{1,3}}{PRE}?(?![\w-]|\.[\w*])", re.ASCII | re.IGNORECASE)
_RELEASE_BOT = re.compile(r"semantic-release(?:-?bot)?\Z", re.ASCII | re.IGNORECASE)
"""Programs that comment as ordinary accounts."""

_BY_DOTS = 2
"""A version of fewer numbers may be that of anything."""


@dataclass(frozen=True, slots=True)
class StatedRelease:
    """A release that has the fix or will have it: ``text`` as written, ``quote`` the sentence that says so."""

    text: str
    version: Version
    at: datetime
    by: str
    quote: str


def stated_release(thread: Thread, repo: str | None = None) -> StatedRelease | None:
    """The release that people name last as having the fix; None for an open thread, and where they take it back.

    ``repo`` is OWNER/NAME of the thread's repository, which tells its own name from that of another product.
    """
    closing = closing_of(thread)
    if closing is None:
        return None
    found: StatedRelease | None = None
    for message in _said_by_those_who_know(thread, closing):
        if found or _MAY_NAME.search(message.text):
            found = _after(found, message, thread, repo)
    if found and is_reopened_in_words(thread, max(found.at, closing.at + SLACK)):
        return None
    return found


def _said_by_those_who_know(thread: Thread, closing: Closing) -> Iterator[Message]:
    """The comments of this ending by maintainers, whoever closed the thread, and programs."""
    since = max(closing.at - _NEAR, closing.since or closing.at - _NEAR)
    closer = closing.by or _last_speaker(thread, closing)
    for message in thread.comments:
        if message.created_at >= since and (
            message.is_bot or message.by_maintainer or message.author == closer or _RELEASE_BOT.match(message.author)
        ):
            yield message


def _last_speaker(thread: Thread, closing: Closing) -> str | None:
    """Who closed the thread where no event tells: whoever wrote in the same moment."""
    said = [each for each in thread.comments if not each.is_bot and abs(each.created_at - closing.at) <= SLACK]
    return said[-1].author if said else None


def _after(found: StatedRelease | None, message: Message, thread: Thread, repo: str | None) -> StatedRelease | None:
    """What is known after one more comment: its first statement since it last took one back."""
    is_program = message.is_bot or _RELEASE_BOT.match(message.author)
    here: StatedRelease | None = None
    near = abs(message.created_at - (thread.closed_at or message.created_at)) <= _NEAR
    scene = SentenceContext(thread.id, thread.title, repo, near=near)
    for sentence in statements(message.text):
        if is_question(sentence) or (is_program and not is_said("release_bot", sentence)):
            continue
        if undoes(sentence):
            found = here = None
        elif here is None:
            here = _stated(sentence, message, scene)
    return here or found


def _stated(sentence: str, message: Message, scene: SentenceContext) -> StatedRelease | None:
    for rule in (phrase_book().rules[name] for name in _RULES):
        written = _named(rule, sentence, message.text, scene)
        version = read_version(written)
        if version and version.written >= _BY_DOTS:
            quote = sentence if len(sentence) <= MAX_QUOTE else f"{sentence[: MAX_QUOTE - 1]}\u2026"
            return StatedRelease(written, version, message.created_at, message.author, quote)
    return None


def _named(rule: Rule, sentence: str, text: str, scene: SentenceContext) -> str:
    """The version that a rule finds in a sentence, as written, "" without one."""
    assert rule.named
    for match in matches(rule, sentence, scene):
        version = rule.named.regex.search(match.words)
        written = _WRITTEN.match(sentence, len(match.before) + version.start()) if version else None
        if written and not _is_code(match.words, text):
            return written[0]
    return ""


def _is_code(words: str, text: str) -> bool:
    """Whether the words stand in a code span; a span around the version alone is only a way to write it."""
    return any(words in " ".join(span.split()) for span in read(text).inline_code)
