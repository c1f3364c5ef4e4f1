"""Conversations → a history for an agent's prompt, as XML, Markdown or JSON: words are data, and no line is forged."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from xml.sax.saxutils import escape

from bot.comment.pack import DATA_NOTICE, FENCE_NOTICE, NO_TEXT, attributes_of, name_of, visible
from bot.comment.visible import account, one_line
from bot.comment.wording import count
from bot.model import Kind
from bot.reading.conversation import Conversation, Form, History, Shown, Turn
from bot.reading.statements import statements

SCHEMA = 1
STATUS = {True: ("CONTINUATION", "do not greet, carry on"), False: ("NEW CONVERSATION", "the last one is over")}
MAX_TITLE, MAX_SENTENCE = 160, 200
"""Characters as they are written down: an escaped ``<`` has four."""

MAX_ID = 100
MAX_FENCE = 64
_SCANNED = 4_000
_INDENT = "    "
"""Before each further line of a message. No line that is indented so far begins a message or ends a fence."""

_FENCES = re.compile("`{3,}")
_NO_ID = re.compile(r"[^\w./#@:+-]")


def render(history: History, form: Form) -> str:
    """The whole history; "" where nothing of it is shown."""
    if not history.shown:
        return ""
    before, after = form.frame(history.is_continuation, history.omitted)
    return before + form.between.join(_rendered(shown, form) for shown in history.shown) + after


def _rendered(shown: Shown, form: Form) -> str:
    before, after = form.edges(shown, shown.omitted)
    return before + form.between.join(form.message(shown.conversation, turn) for turn in shown.turns) + after


@dataclass(frozen=True, slots=True)
class Xml:
    """``<conversation-history>``, well-formed XML 1.0 whatever people write. ``zone`` is that of the clock.

    ``is_part``: it stands in another document, which says that it is data.
    """

    zone: tzinfo = UTC
    is_part: bool = False
    between: str = ""

    def frame(self, is_continuation: bool, omitted: int) -> tuple[str, str]:
        status, meaning = STATUS[is_continuation]
        notice = "" if self.is_part else f"<notice>{escape(DATA_NOTICE)}</notice>\n"
        told = f"<thread-status{attributes_of(meaning=meaning)}>{status}</thread-status>\n"
        opened = f"<conversation-history{attributes_of(omitted=omitted or None)}>\n"
        return f"{opened}{notice}{told}", "</conversation-history>\n"

    def edges(self, shown: Shown, omitted: int) -> tuple[str, str]:
        one = shown.conversation
        known = attributes_of(
            timestamp=_stamp(one.start, self.zone), until=_stamp(one.end, self.zone), relative=shown.relative,
            thread=_key(one), kind=one.kind.value, title=_title(one, lambda text: escape(text, {'"': "&quot;"})),
            summary="true" if shown.is_summary else None, messages=len(one.turns) if shown.is_summary else None,
            omitted=omitted if omitted and not shown.is_summary else None, outcome=one.ending,
        )  # fmt: skip
        inside = "".join(escape(line) for line in _short_lines(one, self.zone)) if shown.is_summary else ""
        return f"<conversation{known}>\n{inside}", "</conversation>\n"

    def message(self, conversation: Conversation, turn: Turn) -> str:
        return escape(_line(conversation, turn, visible(turn.text), self.zone))


@dataclass(frozen=True, slots=True)
class Markdown:
    """Our words as headings and lists, everybody else's inside fences. ``zone`` and ``is_part`` as in `Xml`."""

    zone: tzinfo = UTC
    is_part: bool = False
    between: str = ""

    def frame(self, is_continuation: bool, omitted: int) -> tuple[str, str]:
        status, meaning = STATUS[is_continuation]
        notice = "" if self.is_part else f"\n{DATA_NOTICE} {FENCE_NOTICE}\n"
        left_out = f"- older conversations left out: {omitted}\n" if omitted else ""
        head = f"{chr(10) if self.is_part else ''}{self._heading(1)} What was said lately\n{notice}\n"
        return f"{head}- thread status: {status} ({meaning})\n{left_out}", ""

    def edges(self, shown: Shown, omitted: int) -> tuple[str, str]:
        one = shown.conversation
        facts = [f"from {_stamp(one.start, self.zone)} to {_stamp(one.end, self.zone)}"]
        facts += [f"summary of {count(len(one.turns), 'message')}"] if shown.is_summary else []
        facts += [f"older messages left out: {omitted}"] if omitted and not shown.is_summary else []
        facts += [f"outcome: {one.ending}"] if one.ending else []
        listed = "".join(f"- {fact}\n" for fact in facts)
        fence = _fence(one)
        inside = "".join(_short_lines(one, self.zone)) if shown.is_summary else ""
        name = f"session {_key(one)}" if one.kind is Kind.SESSION else name_of(one.thread, one.kind)
        head = f"\n{self._heading(2)} {name[:MAX_ID]}, {shown.relative}\n\n{listed}\n"
        return f"{head}{fence}text\ntitle: {_title(one, str)}\n{inside}", f"{fence}\n"

    def message(self, conversation: Conversation, turn: Turn) -> str:
        return _line(conversation, turn, visible(turn.text), self.zone)

    def _heading(self, level: int) -> str:
        return "#" * (level + self.is_part)


@dataclass(frozen=True, slots=True)
class Json:
    """An object with a ``schema`` number, which changes when the meaning of a field does."""

    zone: tzinfo = UTC
    between: str = ",\n"

    def frame(self, is_continuation: bool, omitted: int) -> tuple[str, str]:
        status, meaning = STATUS[is_continuation]
        known = {"schema": SCHEMA, "notice": DATA_NOTICE, "status": status, "meaning": meaning, "omitted": omitted}
        return f'{_dumped(known)[:-1]}, "conversations": [\n', "]}\n"

    def edges(self, shown: Shown, omitted: int) -> tuple[str, str]:
        one = shown.conversation
        known = {
            "timestamp": _stamp(one.start, self.zone), "until": _stamp(one.end, self.zone),
            "relative": shown.relative, "thread": one.thread if isinstance(one.thread, int) else _key(one),
            "kind": one.kind.value, "title": _title(one, _dumped), "outcome": one.ending, "summary": shown.is_summary,
            "count": len(one.turns), "omitted": 0 if shown.is_summary else omitted,
        }  # fmt: skip
        short = [self._said(turn, _first_sentence(turn.text[:_SCANNED])) for turn in _telling(one)]
        inside = self.between.join(short) if shown.is_summary else ""
        return f'{_dumped(known)[:-1]}, "messages": [\n{inside}', "]}"

    def message(self, _: Conversation, turn: Turn) -> str:
        return self._said(turn, visible(turn.text).strip())

    def _said(self, turn: Turn, text: str) -> str:
        at = _stamp(turn.at, self.zone)
        return _dumped({"speaker": turn.speaker, "name": account(turn.name), "at": at, "text": text})


FORMS: dict[str, Callable[[tzinfo], Form]] = {"xml": Xml, "markdown": Markdown, "json": Json}
"""How a history may be written down."""


def _line(conversation: Conversation, turn: Turn, text: str, zone: tzinfo) -> str:
    """``[human 10:02] monalisa: …`` or ``[you 10:04] …``; further lines are indented. In a session one person talks."""
    is_named = turn.speaker == "human" and conversation.kind is not Kind.SESSION
    name = f"{account(turn.name)}: " if is_named else ""
    first, *rest = [line.rstrip() for line in (text.strip() or NO_TEXT).split("\n")]
    further = "".join(f"{_INDENT}{line}\n" if line else "\n" for line in rest)
    return f"[{turn.speaker} {turn.at.astimezone(zone):%H:%M}] {name}{first}\n{further}"


def _short_lines(conversation: Conversation, zone: tzinfo) -> list[str]:
    """A summary: the first sentences of what a person and the agent said last."""
    return [_line(conversation, turn, _first_sentence(turn.text[:_SCANNED]), zone) for turn in _telling(conversation)]


def _telling(conversation: Conversation) -> list[Turn]:
    """The last message of each side, in order of time."""
    last = {turn.speaker: place for place, turn in enumerate(conversation.turns)}
    return [conversation.turns[place] for place in sorted(last.values())]


@lru_cache(maxsize=2_000)
def _first_sentence(text: str) -> str:
    """The first sentence of its author's own; the beginning where there is none, as in a text of code alone."""
    shown = visible(text)
    return _cut(one_line(next(iter(statements(shown)), "") or shown), MAX_SENTENCE)


def _title(conversation: Conversation, escaped: Callable[[str], str]) -> str:
    """The title, so short that it has at most MAX_TITLE characters once it is escaped."""
    title = one_line(visible(conversation.title))
    limit = MAX_TITLE
    while len(escaped(_cut(title, limit))) > MAX_TITLE + 2:  # JSON has quotation marks around it
        limit -= 8
    return _cut(title, limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: max(0, limit - 1)].rstrip()}…"


def _key(conversation: Conversation) -> str:
    return _NO_ID.sub("", visible(str(conversation.thread)))[:MAX_ID]


@lru_cache(maxsize=64)
def _fence(conversation: Conversation) -> str:
    """Longer than any in the conversation, up to a length from which on indentation alone keeps it whole."""
    runs = (len(run) for turn in conversation.turns for run in _FENCES.findall(visible(turn.text)))
    return "`" * min(MAX_FENCE, max([3, *(run + 1 for run in runs)]))


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _stamp(moment: datetime, zone: tzinfo) -> str:
    return moment.astimezone(zone).isoformat(timespec="minutes")
