"""Finds requests to the bot in a text: commands at the start of a line, and questions about earlier decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bot.domain.hosts import GITHUB_HOSTS
from bot.reading.lookalikes import plain
from bot.reading.markdown import Paragraph, paragraphs, read, readable, statements
from bot.reading.references import find_references
from bot.settings.schema import RECALL_PHRASES

COMMAND_NAMES = (
    "search",
    "context",
    "refresh",
    "wrong",
    "same",
    "different",
    "original",
    "off",
    "on",
    "forget",
    "help",
)
ISSUE_COMMANDS = frozenset({"context", "wrong", "same", "different", "original"})
"""Commands that take issue numbers."""

WHICH = "which"
"""The name of a command about other issues that names none: `Command.words` is the command."""

MAX_COMMANDS = 3
"""Commands obeyed in one comment; the rest are ignored."""

MAX_ARGUMENT_CHARS = 200
MAX_ISSUES = 10
MAX_SENTENCE_CHARS = 500
MAX_SENTENCES = 200
MAX_GAP_WORDS = 4
"""Maximum number of words that a ``*`` in a phrase matches."""

_COMMAND_PREFIX = "/precedent"
_TYPED_COMMAND = re.compile(r"([ \t]*/precedent)(?![\w/.-])([^\n]*)", re.IGNORECASE)
_CODE_INDENT = re.compile(r" {4}| {0,3}\t")
"""What begins a line of code, except where a paragraph goes on."""

_COMMAND_LINE = re.compile(r"/precedent(?:\s+(.*))?\s*\Z", re.IGNORECASE | re.DOTALL)
ZERO_WIDTH_SPACE = "\u200b"
"""Our comments insert it into numbers and names so that GitHub does not link them. Copied text contains it too."""

_OWN_MARKER = "<!-- precedent:"
_MAX_QUESTION_CHARS = 300
"""A longer comment says something besides its question."""

_MAY_ASK = re.compile(
    r"\b(?:decid|decision|discuss|agree|cho[os]|pick|select|settl|conclu|remember|recall|remind|rationale|reason"
    r"|outcome|brought|verdict|talk|conversation|search|summari[sz]|list|show|find|forg[eo]t|c[ao]me up|prior|earlier"
    r"|previous|past|reject|drop|prefer|abandon|switch|go |went|end up|spoke|raised|proposed|reported|suggested|said"
    r"|say|history|move)",
    re.IGNORECASE,
)
"""One of these words is in every question that the default phrases match."""

_NUMBER = r"#?[1-9][0-9]{0,9}(?![\w-]|\.\w)"
_NUMBER_LIST = re.compile(
    rf"{_NUMBER}(?:[ ,;]{{1,3}}{_NUMBER}){{0,99}}\Z"
    rf"|(?:issues? )?{_NUMBER}(?:[ ,;/&(]{{0,3}}(?:[,;/&]|\b(?:and|or)\b) ?{_NUMBER}){{0,99}}",
    re.ASCII | re.IGNORECASE,
)
"""``48``, ``48 52``, ``#48 and 52``, ``issues 48, 52``; a number in a sentence after them does not count."""


@dataclass(frozen=True, slots=True)
class Command:
    """A request to the bot, typed in ``line``.

    ``name`` is one of COMMAND_NAMES, ``words`` is the search text, and ``about`` holds the named issues. A request that
    was not understood becomes a ``help`` that is not ``clear``, or ``which`` if only the number is missing.
    """

    name: str
    words: str = ""
    about: tuple[int, ...] = ()
    clear: bool = True
    line: str = ""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """A question about an earlier discussion. ``asked`` is its sentence; ``decides``: it asks for a decision.

    ``about`` holds the issues that the topic names. A question without ``about`` and ``topic`` is about the thread it
    was asked in ("didn't we discuss this before?").
    """

    asked: str
    topic: str = ""
    about: tuple[int, ...] = ()
    decides: bool = False


def commands(text: str, *, repo: str | None = None, hosts: Sequence[str] = GITHUB_HOSTS) -> tuple[Command, ...]:
    """The commands of a comment in order, at most three, without repetitions.

    A command must start a line, outside code, quotes, hidden comments and emphasis. ``repo`` and ``hosts`` define how
    issues of this repository may be written.
    """
    if _COMMAND_PREFIX not in plain(text).lower():
        return ()
    distinct: dict[Command, Command] = {}
    for line in _command_lines(text):
        command = _command(line.replace(ZERO_WIDTH_SPACE, ""), repo, hosts)
        distinct.setdefault(replace(command, line="") if command.clear else Command("help", clear=False), command)
    return tuple(distinct.values())[:MAX_COMMANDS]


def without_commands(text: str) -> str:
    """The text without the words after ``/precedent`` in its command lines. Line numbers do not change."""
    if _COMMAND_PREFIX not in plain(text).lower():
        return text
    rows = readable(text).split("\n")
    for part in _plain_paragraphs(rows):
        for index, line in enumerate(part.typed if _paragraph_commands(part) else (), part.first):
            if typed := _TYPED_COMMAND.match(line):
                rows[index] = typed[1]
    return "\n".join(rows)


def without_requests(text: str) -> str:
    """What a comment says to people: without its command lines; "" for a question to the bot, and for its own words.

    Nobody's words to the bot are a summary, a quotation or a search hit.
    """
    if text.lstrip("\ufeff \t\r\n").startswith(_OWN_MARKER):
        return ""
    if _COMMAND_PREFIX in plain(text).lower():
        rows = readable(text).split("\n")
        for part in _plain_paragraphs(rows):
            for index, line in enumerate(part.typed if _paragraph_commands(part) else (), part.first):
                rows[index] = "" if _TYPED_COMMAND.match(line) else rows[index]
        text = "\n".join(rows).strip()
    may_ask = len(text) <= _MAX_QUESTION_CHARS and _MAY_ASK.search(text)
    return "" if may_ask and recall_question(text, RECALL_PHRASES) else text


def _command_lines(text: str) -> Iterator[str]:
    for part in _plain_paragraphs(readable(text).split("\n")):
        yield from _paragraph_commands(part)


def _plain_paragraphs(rows: Sequence[str]) -> Iterator[Paragraph]:
    """The paragraphs as GitHub reads them, for which only ASCII is markup, and then with `plain` characters."""
    for part in paragraphs("\n".join(rows)):
        yield Paragraph(part.first, tuple(map(plain, part.typed)), tuple(map(plain, part.shown)))


def _paragraph_commands(part: Paragraph) -> list[str]:
    """The command lines of a paragraph, except lines that only look like one (typed as ``\\/precedent``)."""
    typed = [match for line in part.typed if (match := _TYPED_COMMAND.match(line))]
    shown = [line.strip() for line in part.shown]
    follows_mark = not _TYPED_COMMAND.match(part.typed[0]) and _COMMAND_PREFIX in part.typed[0].lower()
    lines = (line for line in shown[follows_mark:] if _COMMAND_LINE.match(line))
    return [line for line, match in zip(lines, typed, strict=False) if not _CODE_INDENT.match(match[0])]


def _command(line: str, repo: str | None, hosts: Sequence[str]) -> Command:
    match = _COMMAND_LINE.match(line)
    arguments = " ".join((match[1] or "").split()) if match else ""
    shown = line[: MAX_ARGUMENT_CHARS + len(_COMMAND_PREFIX)]
    name, _, rest = arguments.partition(" ")
    name, rest = name.lower().rstrip(".,:;!"), rest[:MAX_ARGUMENT_CHARS].strip()
    about = _numbers(rest, repo, hosts) if name in ISSUE_COMMANDS else ()
    if name in ISSUE_COMMANDS and name != "context" and not about:
        return Command(WHICH, name, clear=False, line=shown)
    is_incomplete = (name == "search" and not rest) or (name == "context" and not about)
    if (
        name not in COMMAND_NAMES or is_incomplete or (name == "forget" and rest)
    ):  # forget is only for the current issue
        return Command("help", clear=False, line=shown)
    return Command(name, rest if name == "search" else "", about, line=shown)


def _numbers(text: str, repo: str | None, hosts: Sequence[str]) -> tuple[int, ...]:
    """The issues of this repository named by an argument, or a list of numbers."""
    if listed := _NUMBER_LIST.match(text):
        return tuple(int(number.lstrip("#")) for number in re.findall(_NUMBER, listed[0]))[:MAX_ISSUES]
    references = find_references(f"of {text}", repo=repo, hosts=hosts)  # "of" because # at the start may be a heading
    return tuple(r.number for r in references if r.owner is None and r.kind is None)[:MAX_ISSUES]


_TOKEN = re.compile(r"\S+")
_PUNCTUATION = "\"'`“”‘’«».,;:!?()[]{}<>*_~…-–—"
_CONTRACTIONS = (("n't", ""), ("'s", " is"), ("'d", " did"), ("'ve", " have"), ("'re", " are"), ("'ll", " will"))
_BARE_CONTRACTIONS = {
    "didnt": "did",
    "dont": "do",
    "havent": "have",
    "hasnt": "has",
    "wasnt": "was",
    "whats": "what is",
}
_CLAUSE_ENDS = (",", ";", ":", "–", "—", "-")
_LEAD_WORDS = (
    r"(?:(?:so|and|but|or|ok|okay|hey|hi|hello|also|please|btw|well|hm|hmm|wait|again|sorry|just|now|anyway"
    r"|anyone|anybody|can we|could we|(?:do|does|can|could|would|will) (?:you|anyone|anybody|someone|somebody|the bot)"
    r"|out of curiosity"
    r"|help (?:me|us)|pretty sure|(?:i|we) (?:think|thought|believe|guess|swear)|i feel like"
    r"|(?:i'm|i am) (?:pretty |fairly |quite )?sure) )"
    r"{0,4}+"
)
"""Words before a question that do not change it."""

_REQUEST_VERBS = frozenset({"search", "find", "show", "list", "summarize", "summarise", "remind", "tell"})
"""Phrases that begin with these ask even if they end in a full stop."""

_TIME_WORDS = (
    "before|already|again|earlier|yet|ever|once|somewhere|anywhere|elsewhere|here|previously|recently|please|thanks"
    "|thank you|in the past|ages ago|at some point|by any chance|last (?:time|week|month|year)"
    "|(?:some|a (?:long|short)) time ago|a while (?:ago|back)|by the way|now"
)
_TAG_QUESTIONS = (
    r"(?:right|no|correct|yes|or not|(?:did|have|had) we|did(?:n't| not) we|ha(?:ve|d)(?:n't| not) we"
    r"|or (?:am i|did we|was that|have we)\b[^,]{0,60})"
)
"""Endings that ask whether the statement before is true."""

_CANNOT_FIND = (
    r"\b(?:but|though|and)(?: now)?(?: i)? (?:can(?:not|'t| not)|could(?:n't| not)|do(?:n't| not)) "
    r"(?:find|remember|recall|see)\b.*"
)
_CONFIRMATION_END = re.compile(rf"(?<![\s,])[\s,]++(?:{_TAG_QUESTIONS}\?|{_CANNOT_FIND})\W*+\Z", re.IGNORECASE)
_RHETORICAL = re.compile(
    r"\?!|!\?|\b(?:(?:why|what|how) on earth|the (?:hell|heck|fuck)|wtf|lol|haha|good (?:old )?(?:times|days)"
    r"|(?:why|how) did we ever|did(?:n't)? we all)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"(?<!to )(?<!can i )(?<!may i )\b(?:ask(?:s|ed|ing)?|say(?:s|ing)?|said|wrote|writes?|wonder(?:s|ed|ing)"
    r"|answers?|explains?|titled?|called|faq|section|heading|example|phrases?|if|when|once|unless|users|people|customers)\b",
    re.IGNORECASE,
)
"""Words before a clause that make it somebody else's question, or part of some text."""

_ANSWERED = re.compile(
    r"\s*[😀-😆😉😏😜🙃🙄🤣]"
    r"|\W*(?:see\b(?! if)|yes|yep|yeah|no,|nope|because|turns out|it (?:turn|was)|that was|i found|found it"
    r"|nvm|never ?mind|answer|(?:good|fun|simpler) (?:old )?times|those were|me neither|exactly|apparently"
    r"|well,|edit:|lol|haha)",
    re.IGNORECASE,
)
"""Beginnings of a next sentence that gives the answer, or shows that none is wanted."""

_ADVICE = re.compile(
    r"\bbefore (?:you|\w{2,15}ing)\b|\b(?:your|yours|yourself|next time|duplicates?|in (?:the )?future)\b"
    r"|\b(?:in|to|into) (?:the|a|this|your) (?:[\w-]{1,20} ){0,2}"
    r"(?:description|docs?|documentation|readme|changelog|notes|comment|message|wiki|code|codebase|source)\b",
    re.IGNORECASE,
)
"""In a request: advice to a person, such as to search before filing an issue, or to write something down."""

_REASON_WORD = re.compile(r"\b(?:reasons?|rationale|reasoning|outcome)\b", re.IGNORECASE)
_NON_DECISION_TOPIC = re.compile(
    r"\b(?:crash\w*|errors?|fail\w*|exceptions?|bugs?|timeouts?|panics?|segfaults?|faults?|regressions?|slow\w*|warnings?"
    r"|hangs?|leaks?|delays?|responses?|downtime|outage|(?:close|closing|reopening|this|that|it))\b|\A(?:my|your|his|her|running|calling|trying|testing)\b",
    re.IGNORECASE,
)
"""In a question about a reason: no decision is behind it, or it only makes sense in this thread."""

_FILLER = re.compile(
    r"\A(?:(?:(?:any|all|every|some|the|earlier|previous|past) )?"
    r"(?:mentions?|references?|discussions?|conversations?|talks?|anything|everything|something|what we know) )?"
    r"(?:of|to|about|on|for|in|regarding|related to|concerning) ",
    re.IGNORECASE,
)
_TRAILING_TIME = re.compile(rf"(?:\s|,)(?:{_TIME_WORDS})\Z", re.IGNORECASE)
_THIS_TOPIC = re.compile(
    r"(?:(?:all|about|exactly|precisely) )?(?:this|that|it|these|those|the same)"
    r"(?: (?:one|issue|bug|problem|thing|topic|question|idea|request|pull request|approach|change|feature|proposal"
    r"|option|subject|suggestion|behaviou?r|before|already))?",
    re.IGNORECASE,
)
_DECISION_WORD = re.compile(
    r"\b(?:deci[ds]|cho(?:o|se)|pick|select|agree|settle|conclu|reject|drop|(?:go|went) (?:with|for)|outcome)",
    re.IGNORECASE,
)
_QUOTES = "\"'“”‘’«»`"
_DOUBLE_QUOTES = '"“”«»'
_QUOTE_REMOVAL = str.maketrans("", "", '"“”«»`')
_SENTENCE_EDGES = " .,;:!?…"


def recall_question(
    text: str, phrases: Sequence[str], *, repo: str | None = None, hosts: Sequence[str] = GITHUB_HOSTS
) -> RecallQuestion | None:
    """The first question in a text that matches one of the phrases, None without one.

    In a phrase ``{topic}`` stands for the topic, ``*`` for up to four words, ``a/b`` for either word. Case, punctuation
    and contractions are ignored ("didn't we" is "did we"), as are words of time at the end ("before", "already"). The
    phrase must begin a sentence or clause outside quotes and code, and extend to the end of the sentence. Questions
    that are rhetorical, somebody else's, or answered at once do not count; nor do those that end like a statement.
    """
    patterns, text = _patterns(tuple(phrases)), plain(text.replace(ZERO_WIDTH_SPACE, ""))
    spans = {span: _Words.of(span).text for span in read(text).inline_code if " " in span}
    code = [span for span, words in spans.items() if any(pattern.match(words) for pattern in patterns)]
    sentences = [sentence[:MAX_SENTENCE_CHARS].strip() for sentence in statements(text)[: MAX_SENTENCES + 1]]
    for sentence, following in zip(sentences[:MAX_SENTENCES], [*sentences[1:], ""], strict=False):
        if _ANSWERED.match(following) or _RHETORICAL.search(sentence) or any(map(sentence.startswith, code)):
            continue
        topic = _find_topic(sentence, patterns, is_alone=len(sentences) == 1)
        if topic is not None:
            return _build_question(sentence, topic, repo, hosts)
    return None


@dataclass(frozen=True, slots=True)
class _Words:
    """A sentence as plain words, each followed by a space.

    ``ends`` holds the ends of the words in ``text``, ``places`` the spans of the typed words they come from, and
    ``clauses`` the positions where a clause may begin.
    """

    text: str
    ends: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    clauses: tuple[int, ...]

    @classmethod
    def of(cls, sentence: str) -> _Words:
        text, ends, places, clauses, marks = "", [], [], [0], 0
        for token in _TOKEN.finditer(sentence):
            marks += sum(map(token[0].count, _DOUBLE_QUOTES))
            for word in _plain_words(token[0]):
                text += f"{word} "
                ends.append(len(text))
                places.append(token.span())
            if token[0].endswith(_CLAUSE_ENDS) and marks % 2 == 0:  # a clause inside a quotation is no question
                clauses.append(len(text))
        return cls(text, tuple(ends), tuple(places), tuple(clauses))

    def typed(self, start: int, end: int) -> tuple[int, int]:
        """The span in the sentence of the words between two positions of ``text``."""
        spans = [place for stop, place in zip(self.ends, self.places, strict=True) if start < stop <= end]
        return spans[0][0], spans[-1][1]


def _plain_words(token: str) -> list[str]:
    """A typed word in lower case, without punctuation around it and without ``not``; nothing for account names."""
    if token.startswith(("@", *_QUOTES)) and not token.strip(_PUNCTUATION).startswith("#"):
        token = "" if token.startswith("@") else f"\0{token}"  # a quotation begins no question
    word = token.strip(_PUNCTUATION).casefold()
    for end, full in _CONTRACTIONS:
        word = word.removesuffix(end) + full if word.endswith(end) else word
    return [part for part in _BARE_CONTRACTIONS.get(word, word).split() if part != "not"]


def _find_topic(sentence: str, patterns: tuple[re.Pattern[str], ...], *, is_alone: bool) -> str | None:
    """The topic as typed, None if no clause asks with one of the phrases. ``is_alone``: it is the only sentence."""
    words = _Words.of(sentence)
    for start in words.clauses:
        if start and _REPORTED.search(sentence[: words.typed(0, start)[1]]):
            break
        for pattern in patterns:
            if match := pattern.match(words.text, start):
                begin, end = words.typed(*match.span("topic"))
                topic = sentence[begin:end]
                if (result := _topic_if_asked(match["first"].strip(), sentence, topic, is_alone=is_alone)) is not None:
                    return result
    return None


def _topic_if_asked(first: str, sentence: str, topic: str, *, is_alone: bool) -> str | None:
    """The topic of a sentence that matches a phrase beginning with ``first``, None if the sentence does not ask."""
    if first in _REQUEST_VERBS:
        return None if _ADVICE.search(sentence) else topic
    if first == "we":
        return None if find_references(f"of {sentence}") else _topic_if_confirming(sentence, topic, is_alone=is_alone)
    if sentence.endswith((".", "!", ":")) or (_REASON_WORD.search(sentence) and _NON_DECISION_TOPIC.search(topic)):
        return None
    return topic


def _topic_if_confirming(sentence: str, topic: str, *, is_alone: bool) -> str | None:
    """The topic of a statement that asks for confirmation ("…, right?") or is the whole comment, None otherwise."""
    bare = _trim_topic(_CONFIRMATION_END.sub("", topic))
    if _CONFIRMATION_END.search(topic) or _CONFIRMATION_END.search(sentence):
        return bare
    is_about_here = bool(_THIS_TOPIC.fullmatch(bare)) and bare != topic.rstrip(_SENTENCE_EDGES)
    return bare if is_about_here and (is_alone or sentence.endswith("?")) else None


def _trim_topic(topic: str) -> str:
    """The topic without quotation marks and trailing words of time."""
    bare = topic.translate(_QUOTE_REMOVAL).strip(_SENTENCE_EDGES)
    while (shorter := _TRAILING_TIME.sub("", bare).rstrip(_SENTENCE_EDGES)) != bare:
        bare = shorter
    return bare


def _build_question(sentence: str, topic: str, repo: str | None, hosts: Sequence[str]) -> RecallQuestion:
    about = tuple(r.number for r in find_references(f"of {topic}", repo=repo, hosts=hosts) if r.owner is None)
    decides = bool(_DECISION_WORD.search(sentence))
    if about:
        return RecallQuestion(sentence, about=about[:MAX_ISSUES], decides=decides)
    bare = _FILLER.sub("", _trim_topic(topic), count=1)[:MAX_ARGUMENT_CHARS].strip()
    return RecallQuestion(sentence, "" if _THIS_TOPIC.fullmatch(bare) else bare, decides=decides)


@lru_cache(maxsize=16)
def _patterns(phrases: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(_pattern(phrase) for phrase in phrases)


def _pattern(phrase: str) -> re.Pattern[str]:
    """A phrase as a pattern over plain words, each followed by a space. At most two ``*`` are used."""
    parts: list[str] = []
    gaps = 0
    for word in phrase.replace("{topic}", " {topic} ").split():
        if word == "{topic}":
            parts.append(r"(?P<topic>(?:\S+ )+?)" if "(?P<topic>" not in "".join(parts) else r"(?:\S+ )+?")
        elif word == "*":
            gaps += 1
            parts.append(rf"(?:\S+ ){{0,{MAX_GAP_WORDS}}}?" if gaps <= 2 else "")
        else:
            choices = [" ".join(_plain_words(choice)) for choice in word.split("/")]
            parts.append("".join(("(?:", "|".join(re.escape(f"{c} ") if c else "" for c in choices), ")")))
    later = "" if parts[-1].startswith("(?P<topic>") else rf"(?:(?:{_TIME_WORDS}) ){{0,3}}"
    return re.compile(f"{_LEAD_WORDS}(?P<first>{parts[0]}){''.join(parts[1:])}{later}\\Z")
