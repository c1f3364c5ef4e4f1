"""Which release has the fix of a closed issue, in the words of a maintainer, whoever closed it, or a release bot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from bot.domain.thread import Message, Thread
from bot.reading.endings.engine import SentenceContext, is_question, matches, undoes
from bot.reading.endings.outcome import SLACK, Closing, closing_of, is_reopened_in_words
from bot.reading.endings.phrases import Rule, phrase_book
from bot.reading.endings.quote import MAX_QUOTE
from bot.reading.markdown import read, statements
from bot.reading.versions import PRE, Version, read_version

_NEAR = timedelta(days=1)
"""How long before the closing the release may be named. Afterwards it may be named at any time."""

_BY_PEOPLE = ("stated_in", "just_out", "planned_in")
_BY_PROGRAMS = ("release_bot",)

_MAY_NAME = re.compile(r"\d\.\d", re.ASCII)
_WRITTEN = re.compile(rf"(?>v?\d{{1,4}}(?:\.\d{{1,5}}){{1,3}}{PRE}?)(?![\w-])", re.ASCII | re.IGNORECASE)
_RELEASE_BOT = "semantic-release-bot"
"""A program that comments as an ordinary account. Anybody may register a name like it: only this one counts."""

_ADDRESS = re.compile(r"(?:https?://|//|www\.)[^/?#\s]*/?(?P<path>[^?#\s]*)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StatedRelease:
    """A release that has the fix or will have it: ``text`` as written, ``quote`` the sentence that says so.

    ``is_trusted``: a maintainer or a release bot says so, not only whoever closed the thread.
    """

    text: str
    version: Version
    at: datetime
    by: str
    quote: str
    is_trusted: bool


def stated_release(thread: Thread, repo: str | None = None) -> StatedRelease | None:
    """The release that people name last as having the fix; None for an open thread, and where they take it back.

    ``repo`` is OWNER/NAME of the thread's repository, which tells its own name from that of another product.
    """
    closing = closing_of(thread)
    if closing is None:
        return None
    found: StatedRelease | None = None
    for message in _by_people_who_know(thread, closing):
        if found or _MAY_NAME.search(message.text):
            near = abs(message.created_at - closing.at) <= _NEAR
            comment = _Comment(message, SentenceContext(thread.id, thread.title, repo, near=near))
            found = comment.changed(found)
    if found and is_reopened_in_words(thread, max(found.at, closing.at + SLACK)):
        return None
    return found


def _by_people_who_know(thread: Thread, closing: Closing) -> Iterator[Message]:
    """The comments that belong to the closing, by maintainers, by whoever closed the thread, and by programs."""
    since = max(closing.at - _NEAR, closing.since or closing.at - _NEAR)
    closer = closing.by or _last_speaker(thread, closing)
    for message in thread.comments:
        if message.created_at >= since and (_is_program(message) or message.by_maintainer or message.author == closer):
            yield message


def _is_program(message: Message) -> bool:
    return message.is_bot or message.author == _RELEASE_BOT


def _last_speaker(thread: Thread, closing: Closing) -> str | None:
    """Who closed the thread where no event tells: whoever wrote in the same moment."""
    said = [each for each in thread.comments if not each.is_bot and abs(each.created_at - closing.at) <= SLACK]
    return said[-1].author if said else None


@dataclass(frozen=True)
class _Comment:
    message: Message
    scene: SentenceContext

    def changed(self, known: StatedRelease | None) -> StatedRelease | None:
        """What is known after this comment: its first statement since it last took one back, or what was known."""
        here: StatedRelease | None = None
        is_program = _is_program(self.message)
        for sentence in statements(self.message.text):
            if is_question(sentence):
                continue
            if not is_program and undoes(sentence):
                known = here = None
            elif here is None:
                here = self._stated(sentence, _BY_PROGRAMS if is_program else _BY_PEOPLE)
        return here or known

    def _stated(self, sentence: str, rules: tuple[str, ...]) -> StatedRelease | None:
        for written in (self._named(phrase_book().rules[name], sentence) for name in rules):
            version = read_version(written)
            if version:
                quote = sentence if len(sentence) <= MAX_QUOTE else f"{sentence[: MAX_QUOTE - 1]}\u2026"
                return StatedRelease(
                    written, version, self.message.created_at, self.message.author, quote, self._is_trusted
                )
        return None

    def _named(self, rule: Rule, sentence: str) -> str:
        """The version that a rule finds in a sentence, as written, "" without one."""
        assert rule.named
        for match in matches(rule, sentence, self.scene):
            version = rule.named.regex.search(match.words)
            written = _WRITTEN.match(sentence, len(match.before) + version.start()) if version else None
            if written and match.words not in self._code and not self._is_elsewhere(written):
                return written[0]
        return ""

    @property
    def _is_trusted(self) -> bool:
        return self.message.by_maintainer or _is_program(self.message)

    def _is_elsewhere(self, written: re.Match[str]) -> bool:
        """Whether the version stands in an address, or in the words of a link, that is not of this repository."""
        word = written.string[: written.start()].rpartition(" ")[2]
        address = _ADDRESS.search(word)
        return _bare(written[0]) in self._elsewhere or bool(address and not self._is_here(word[address.start() :]))

    @cached_property
    def _elsewhere(self) -> frozenset[str]:
        """The versions in the words of links that do not lead to this repository."""
        away = (words for words, target in read(self.message.text).links if not self._is_here(target))
        return frozenset(_bare(found[0]) for words in away for found in _WRITTEN.finditer(words))

    def _is_here(self, target: str) -> bool:
        address = _ADDRESS.match(target)
        here = f"{self.scene.repo}/".casefold()
        return not address or (self.scene.repo is not None and f"{address['path']}/".casefold().startswith(here))

    @cached_property
    def _code(self) -> str:
        """The code spans: words in them are of a program. A span around the version alone is only a way to write it."""
        return "\n".join(" ".join(span.split()) for span in read(self.message.text).inline_code)


def _bare(version: str) -> str:
    return version.lstrip("vV")
