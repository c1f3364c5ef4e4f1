"""Finds the release with a closed issue's fix, as stated by a maintainer, whoever closed it, or a release bot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from bot.domain.thread import Message, Thread
from bot.reading.endings.engine import SentenceContext, is_question, matches, takes_fix_back
from bot.reading.endings.linked_versions import VERSION, is_foreign
from bot.reading.endings.outcome import CLOSING_WINDOW, Closing, closing_of, is_reopened_in_words
from bot.reading.endings.phrases import Rule, phrase_book
from bot.reading.endings.quote import MAX_QUOTE_CHARS
from bot.reading.markdown import read, statements
from bot.reading.text_edges import cut_at_edge
from bot.reading.versions import Version, read_version

_NEAR_GAP = timedelta(days=1)
"""How long before the closing the release may be named. Afterwards there is no limit."""

_PEOPLE_RULES = ("stated_in", "just_out", "planned_in")
_PROGRAM_RULES = ("release_bot",)

_MAY_NAME_VERSION = re.compile(r"\d\.\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class StatedRelease:
    """A release that has or will have the fix: ``text`` is its name as written, ``quote`` the sentence that says so.

    ``is_trusted``: a maintainer or a release bot says so, not just the person who closed the thread.
    """

    text: str
    version: Version
    at: datetime
    by: str
    quote: str
    is_trusted: bool


def stated_release(thread: Thread, repo: str | None = None) -> StatedRelease | None:
    """The last release named as having the fix; None for an open thread, or if the fix was taken back.

    ``repo`` is OWNER/NAME of the thread's repository, to tell its name from those of other products.
    """
    closing = closing_of(thread)
    if closing is None:
        return None
    release: StatedRelease | None = None
    for message in _relevant_comments(thread, closing):
        if release or _MAY_NAME_VERSION.search(message.text):
            near = abs(message.created_at - closing.at) <= _NEAR_GAP
            context = SentenceContext(thread.id, thread.title, repo, near=near)
            comment = _Comment(message, context, message.is_bot or thread.is_release_bot(message.author))
            release = comment.update(release)
    if release and is_reopened_in_words(thread, max(release.at, closing.at + CLOSING_WINDOW)):
        return None
    return release


def _relevant_comments(thread: Thread, closing: Closing) -> Iterator[Message]:
    """The comments that belong to the closing, by maintainers, by people who closed the thread, and by release bots.

    Other programs are not believed, as they may repeat what a stranger wrote.
    """
    since = max(closing.at - _NEAR_GAP, closing.since or closing.at - _NEAR_GAP)
    closer = closing.by or _guess_closer(thread, closing)
    for message in thread.comments:
        is_closer = message.author == closer and not message.is_bot
        is_believed = message.by_maintainer or is_closer or thread.is_release_bot(message.author)
        if message.created_at >= since and is_believed:
            yield message


def _guess_closer(thread: Thread, closing: Closing) -> str | None:
    """Who closed the thread, if no event says: the last person who commented at about the same time."""
    comments = [
        each for each in thread.comments if not each.is_bot and abs(each.created_at - closing.at) <= CLOSING_WINDOW
    ]
    return comments[-1].author if comments else None


@dataclass(frozen=True)
class _Comment:
    message: Message
    context: SentenceContext
    is_program: bool

    def update(self, previous: StatedRelease | None) -> StatedRelease | None:
        """The release known after this comment: the first stated since the last takeback, or else ``previous``."""
        stated: StatedRelease | None = None
        for sentence in statements(self.message.text):
            if is_question(sentence):
                continue
            if not self.is_program and takes_fix_back(sentence):
                previous = stated = None
            elif stated is None:
                stated = self._find_release(sentence, _PROGRAM_RULES if self.is_program else _PEOPLE_RULES)
        return stated or previous

    def _find_release(self, sentence: str, rules: tuple[str, ...]) -> StatedRelease | None:
        for written in (self._find_version(phrase_book().rules[name], sentence) for name in rules):
            version = read_version(written)
            if version:
                quote = cut_at_edge(sentence, MAX_QUOTE_CHARS)
                return StatedRelease(
                    written, version, self.message.created_at, self.message.author, quote, self._is_trusted
                )
        return None

    def _find_version(self, rule: Rule, sentence: str) -> str:
        """The version that a rule finds in a sentence, as written, "" if none."""
        assert rule.named
        for match in matches(rule, sentence, self.context):
            version = rule.named.regex.search(match.words)
            written = VERSION.match(sentence, len(match.before) + version.start()) if version else None
            is_ours = written and not is_foreign(written, self.message.text, self.context.repo)
            if written and is_ours and match.words not in self._code:
                return written[0]
        return ""

    @property
    def _is_trusted(self) -> bool:
        return self.message.by_maintainer or self.is_program

    @cached_property
    def _code(self) -> str:
        """The code spans: their words are a program's. A span around the version alone is just formatting."""
        return "\n".join(" ".join(span.split()) for span in read(self.message.text).inline_code)
