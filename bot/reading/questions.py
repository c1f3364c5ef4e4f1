"""Finds questions about earlier decisions and discussions in a text (`bot.reading.question_grammar`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.hosts import GITHUB_HOSTS
from bot.reading.lookalikes import ZERO_WIDTH_SPACE, plain
from bot.reading.markdown import read, statements
from bot.reading.question_grammar import MAX_SENTENCE_CHARS, AskedTopic, asked_topic, is_answer, is_asked_whole, may_ask
from bot.reading.references import find_references

MAX_ISSUES = 10
MAX_SENTENCES = 200

_LAUGHS = re.compile(r"\s*[😀-😆😉😏😜🙃🙄🤣]")
"""A next sentence that shows that no answer is wanted."""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """A question about an earlier discussion. ``asked`` is its sentence; the rest is as in `AskedTopic`.

    ``about`` holds the issues that the topic names. A question without ``about`` and ``topic`` is about the thread it
    was asked in ("didn't we discuss this before?").
    """

    asked: str
    topic: str = ""
    about: tuple[int, ...] = ()
    decides: bool = False
    verb: str = ""


def recall_question(
    text: str,
    phrases: tuple[str, ...] = (),
    *,
    repo: str | None = None,
    hosts: Sequence[str] = GITHUB_HOSTS,
) -> RecallQuestion | None:
    """The first question in a text outside quotes and code about an earlier decision or discussion, None without one.

    Questions that the next sentence answers do not count.
    """
    text = text.replace(ZERO_WIDTH_SPACE, "")
    if not may_ask(text, phrases):
        return None
    code = [span for span in read(plain(text)).inline_code if " " in span and is_asked_whole(span, phrases)]
    sentences = [plain(sentence)[:MAX_SENTENCE_CHARS].strip() for sentence in statements(text)[: MAX_SENTENCES + 1]]
    for sentence, following in zip(sentences[:MAX_SENTENCES], [*sentences[1:], ""], strict=False):
        asked = asked_topic(sentence, phrases, is_alone=len(sentences) == 1)
        if asked and not (_LAUGHS.match(following) or is_answer(following)) and not any(map(sentence.startswith, code)):
            return _question(sentence, asked, repo, hosts)
    return None


def _question(sentence: str, asked: AskedTopic, repo: str | None, hosts: Sequence[str]) -> RecallQuestion:
    about = [r.number for r in find_references(f"of {asked.topic}", repo=repo, hosts=hosts) if r.owner is None]
    return RecallQuestion(sentence, "" if about else asked.bare, tuple(about[:MAX_ISSUES]), asked.decides, asked.verb)
