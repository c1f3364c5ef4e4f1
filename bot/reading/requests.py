"""Finds requests to the bot in a text: commands at the start of a line, and questions about earlier decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bot.reading.markdown import Paragraph, paragraphs, read, readable, statements
from bot.reading.references import GITHUB, find_references

NAMES = ("search", "context", "refresh", "wrong", "off", "on", "forget", "help")
MAX_COMMANDS = 3
"""Commands that are obeyed in one comment; the rest is ignored."""

MAX_ARGUMENT = 200
MAX_ABOUT = 3
MAX_SENTENCE = 500
MAX_SENTENCES = 200
MAX_GAP = 4
"""Most words that a ``*`` in a phrase stands for."""

_PREFIX = "/precedent"
_TYPED = re.compile(r"([ \t]*/precedent)(?![\w/.-])([^\n]*)", re.IGNORECASE)
_LINE = re.compile(r"/precedent(?:\s+(.*))?\s*\Z", re.IGNORECASE | re.DOTALL)
BREAK = "\u200b"
"""Our comments put it into numbers and names so that GitHub links none. It comes along when somebody copies them."""

_BARE_NUMBER = re.compile(r"([1-9][0-9]{0,9})(?![\w.-])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Command:
    """A request to the bot, typed in ``line``.

    ``name`` is one of NAMES, ``words`` is the search, and ``about`` holds the issues that are named. A request that was
    not understood is a ``help`` that is not ``clear``.
    """

    name: str
    words: str = ""
    about: tuple[int, ...] = ()
    clear: bool = True
    line: str = ""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """A question about something earlier. ``asked`` is its sentence; ``decides``: it asks for a decision.

    ``about`` holds the issues that the topic names. A question without ``about`` and ``topic`` is about the thread that
    it was asked in ("didn't we discuss this before?").
    """

    asked: str
    topic: str = ""
    about: tuple[int, ...] = ()
    decides: bool = False


def commands(text: str, *, repo: str | None = None, hosts: Sequence[str] = GITHUB) -> tuple[Command, ...]:
    """The commands of a comment in order, at most three, each kind of request once.

    They count at the start of a line, outside code, quotes, hidden comments and emphasis. ``repo`` and ``hosts`` tell
    how issues of this repository may be written.
    """
    if _PREFIX not in text.lower():
        return ()
    found: dict[Command, Command] = {}
    for line in _command_lines(text):
        command = _command(line.replace(BREAK, ""), repo, hosts)
        found.setdefault(replace(command, line="") if command.clear else Command("help", clear=False), command)
    return tuple(found.values())[:MAX_COMMANDS]


def without_commands(text: str) -> str:
    """The text without the words that follow ``/precedent`` in its command lines. No line moves."""
    if _PREFIX not in text.lower():
        return text
    rows = readable(text).split("\n")
    for part in paragraphs("\n".join(rows)):
        for place, line in enumerate(part.typed if _obeyed(part) else (), part.first):
            if typed := _TYPED.match(line):
                rows[place] = typed[1]
    return "\n".join(rows)


def _command_lines(text: str) -> Iterator[str]:
    for part in paragraphs(readable(text)):
        yield from _obeyed(part)


def _obeyed(part: Paragraph) -> list[str]:
    """The command lines of a paragraph, without lines that only look like one (typed as ``\\/precedent``)."""
    typed = [bool(_TYPED.match(line)) for line in part.typed]
    shown = [line.strip() for line in part.shown]
    follows_mark = not typed[0] and _PREFIX in part.typed[0].lower()
    found = [line for line in shown[follows_mark:] if _LINE.match(line)]
    return found[: sum(typed)]


def _command(line: str, repo: str | None, hosts: Sequence[str]) -> Command:
    found = _LINE.match(line)
    given = " ".join((found[1] or "").split()) if found else ""
    shown = line[: MAX_ARGUMENT + len(_PREFIX)]
    name, _, rest = given.partition(" ")
    name, rest = name.lower().rstrip(".,:;!"), rest[:MAX_ARGUMENT].strip()
    about = _numbers(rest, repo, hosts) if name in ("context", "wrong") else ()
    lacks = (name == "search" and not rest) or (name in ("context", "wrong") and not about)
    if name not in NAMES or lacks or (name == "forget" and rest):  # which would be another issue than the one here
        return Command("help", clear=False, line=shown)
    return Command(name, rest if name == "search" else "", about, line=shown)


def _numbers(text: str, repo: str | None, hosts: Sequence[str]) -> tuple[int, ...]:
    """The issues of this repository that an argument names, also by a bare number."""
    if bare := _BARE_NUMBER.match(text):
        return (int(bare[1]),)
    found = find_references(f"of {text}", repo=repo, hosts=hosts)  # not at the start, where # may be a heading
    return tuple(r.number for r in found if r.owner is None and r.kind is None)[:MAX_ABOUT]


_TOKEN = re.compile(r"\S+")
_MARKS = "\"'`“”‘’«».,;:!?()[]{}<>*_~…-–—"
_SHORT = (("n't", ""), ("'s", " is"), ("'d", " did"), ("'ve", " have"), ("'re", " are"), ("'ll", " will"))
_WITHOUT_MARK = {"didnt": "did", "dont": "do", "havent": "have", "hasnt": "has", "wasnt": "was", "whats": "what is"}
_CLAUSE_ENDS = (",", ";", ":", "–", "—", "-")
_LEAD = (
    r"(?:(?:so|and|but|or|ok|okay|hey|hi|hello|also|please|btw|well|hm|hmm|wait|again|sorry|just|now|anyway"
    r"|(?:do|does|can|could|would|will) (?:you|we|anyone|anybody|someone|somebody)|out of curiosity) )"
    r"{0,4}+"
)
"""Words before a question that do not change it."""

_FILLER = re.compile(
    r"\A(?:(?:(?:any|all|every|some|the|earlier|previous|past) )?"
    r"(?:mentions?|references?|discussions?|conversations?|talks?|anything|everything|something|what we know) )?"
    r"(?:of|to|about|on|for|in|regarding|related to|concerning) ",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:\s|,)(?:before|already|again|earlier|yet|once|somewhere|here|please|thanks|thank you|in the past|ages ago"
    r"|last (?:time|week|month|year)|(?:some|a (?:long|short)) time ago|a while (?:ago|back)|by the way|now)\Z",
    re.IGNORECASE,
)
_THIS = re.compile(
    r"(?:(?:all|about|exactly|precisely) )?(?:this|that|it|these|those|the same)"
    r"(?: (?:one|issue|bug|problem|thing|topic|question|idea|request|pull request|before|already))?",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    r"\b(?:deci[ds]|cho(?:o|se)|pick|select|agree|settle|conclu|reject|drop|(?:go|went) (?:with|for)|outcome)",
    re.IGNORECASE,
)
_QUOTES = "\"'“”‘’«»`"
_UNQUOTED = str.maketrans("", "", '"“”«»`')
_ENDS = " .,;:!?…"


def recall_question(
    text: str, phrases: Sequence[str], *, repo: str | None = None, hosts: Sequence[str] = GITHUB
) -> RecallQuestion | None:
    """The first question in a text that fits one of the phrases, None if there is none.

    In a phrase ``{topic}`` stands for the topic, ``*`` for up to four words, ``a/b`` for either word. Case, punctuation
    and contractions do not count ("didn't we" is "did we"). The phrase begins a sentence or a clause, outside quotes
    and code; the topic reaches to the end of the sentence.
    """
    patterns, text = _patterns(tuple(phrases)), text.replace(BREAK, "")
    spans = [span for span in read(text).inline_code if " " in span]
    code = [span for span in spans if any(pattern.match(_Words.of(span).text) for pattern in patterns)]
    for sentence in statements(text)[:MAX_SENTENCES]:
        is_code = any(sentence.startswith(span) for span in code)
        found = None if is_code else _asked(sentence[:MAX_SENTENCE], patterns)
        if found is not None:
            return _question(sentence[:MAX_SENTENCE].strip(), found, repo, hosts)
    return None


@dataclass(frozen=True, slots=True)
class _Words:
    """A sentence as plain words, each followed by a space.

    ``ends`` holds the ends of the words in ``text``, ``places`` the spans of the typed words that they come from, and
    ``clauses`` the places where a clause may begin.
    """

    text: str
    ends: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    clauses: tuple[int, ...]

    @classmethod
    def of(cls, sentence: str) -> _Words:
        text, ends, places, clauses = "", [], [], [0]
        for token in _TOKEN.finditer(sentence):
            for word in _plain(token[0]):
                text += f"{word} "
                ends.append(len(text))
                places.append(token.span())
            if token[0].endswith(_CLAUSE_ENDS):
                clauses.append(len(text))
        return cls(text, tuple(ends), tuple(places), tuple(clauses))

    def typed(self, start: int, end: int) -> tuple[int, int]:
        """The span in the sentence of the words between two places of ``text``."""
        inside = [place for stop, place in zip(self.ends, self.places, strict=True) if start < stop <= end]
        return inside[0][0], inside[-1][1]


def _plain(token: str) -> list[str]:
    """A typed word in lower case, without the marks around it and without ``not``; account names give no words."""
    if token.startswith(("@", *_QUOTES)) and not token.strip(_MARKS).startswith("#"):
        token = "" if token.startswith("@") else f"\0{token}"  # what is quoted begins no question
    word = token.strip(_MARKS).casefold().replace("’", "'")
    for end, full in _SHORT:
        word = word.removesuffix(end) + full if word.endswith(end) else word
    return [part for part in _WITHOUT_MARK.get(word, word).split() if part != "not"]


def _asked(sentence: str, patterns: tuple[re.Pattern[str], ...]) -> str | None:
    """The topic as typed, None if no phrase begins a clause."""
    words = _Words.of(sentence)
    for start in words.clauses:
        for pattern in patterns:
            if found := pattern.match(words.text, start):
                begin, end = words.typed(*found.span("topic"))
                return sentence[begin:end]
    return None


def _question(sentence: str, topic: str, repo: str | None, hosts: Sequence[str]) -> RecallQuestion:
    about = tuple(r.number for r in find_references(f"of {topic}", repo=repo, hosts=hosts) if r.owner is None)
    decides = bool(_DECIDES.search(sentence))
    if about:
        return RecallQuestion(sentence, about=about[:MAX_ABOUT], decides=decides)
    bare = topic.translate(_UNQUOTED).strip(_ENDS)
    while (shorter := _TAIL.sub("", bare).rstrip(_ENDS)) != bare:
        bare = shorter
    bare = _FILLER.sub("", bare, count=1)[:MAX_ARGUMENT].strip()
    return RecallQuestion(sentence, "" if _THIS.fullmatch(bare) else bare, decides=decides)


@lru_cache(maxsize=16)
def _patterns(phrases: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(_pattern(phrase) for phrase in phrases)


def _pattern(phrase: str) -> re.Pattern[str]:
    """A phrase as a pattern over plain words, each followed by a space; at most two ``*`` count."""
    parts: list[str] = []
    gaps = 0
    for word in phrase.replace("{topic}", " {topic} ").split():
        if word == "{topic}":
            parts.append(r"(?P<topic>\S.*?)" if "(?P<topic>" not in "".join(parts) else r"\S.*?")
        elif word == "*":
            gaps += 1
            parts.append(rf"(?:\S+ ){{0,{MAX_GAP}}}?" if gaps <= 2 else "")
        else:
            choices = [" ".join(_plain(choice)) for choice in word.split("/")]
            parts.append("".join(("(?:", "|".join(re.escape(f"{c} ") if c else "" for c in choices), ")")))
    return re.compile(f"{_LEAD}{''.join(parts)}\\Z")
