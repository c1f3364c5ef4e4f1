"""The language of a search: words, phrases in quotation marks, qualifiers such as ``author:octocat``, and questions.

Unknown qualifiers are plain words, since error messages contain colons. So are qualifiers in quotation marks. A
question ("what did we decide about caching?") is a search for its topic; it and words such as "caching decision" ask
for decisions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeVar

from bot.domain.card import ThreadFacts
from bot.domain.kinds import Kind
from bot.domain.roles import CONTRIBUTOR, MAINTAINER, PARTICIPANT, role_word
from bot.errors import UserError
from bot.reading.analyzer import ALL_STOP_WORDS, terms, unify_forms
from bot.reading.lookalikes import plain

Value = TypeVar("Value")

AGE_PATTERN = re.compile(r"([1-9][0-9]{0,3})([dwmy])", re.ASCII)
_UNIT_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}

MAX_QUALIFIERS = 20
"""Further ones are plain words."""

MAX_PHRASES = 10
"""Further ones are plain words."""

_MAX_SHOWN_WORDS = 5

_MAX_SHOWN_CHARS = 40
_TOKEN = re.compile(
    r'(?P<name>author|role|before|after|is|label):(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))|"(?P<phrase>[^"]*)"|\S+',
    re.ASCII | re.IGNORECASE,
)
_MAY_BE_QUESTION = re.compile(
    r"(?:\A|[,;:\u2013\u2014-]\s{1,9}+|\A@\S{1,99}+\s)[\W_]{0,9}+(?:what|which|why|where|when|how|whether|did|do|does|have|has|had|was|were"
    r"|is|are|any|in|remember|recall|ca|i|remind|search|check|look|go|find|list|show|give|pull|dig|tell|explain"
    r"|summari[sz]e|recap|sum|forg[eo]t|cannot|we|can|could|would|will|so|and|but|or|ok|okay|hey|hi|hello|also|please|btw"
    r"|well|hm+|wait|again|sorry|just|now|anyway|anyone|anybody|out|by|quick|one|help|pretty|they|the|that|our|didn|haven"
    r"|hasn|wasn|weren|don|can|what's|whats|didnt|dont|havent|hasnt|wasnt|cant)\b",
    re.IGNORECASE,
)
"""A first word of an English question, or of a clause that asks. A quick test that saves most searches the grammar,
with the forms of all languages; a question in another language is one only with a question mark or a letter outside
ASCII."""

_DECISION_WORDS = re.compile(
    r"(?:\A\W*(?:decided?|chose)|(?:decided?|chose)(?=\W*\Z)"
    r"|(?:decisions?|conclusions?|verdicts?|rationales?)(?=\W*\Z)"
    r"|(?:decisions?|conclusions?|verdicts?|rationales?) (?:about|on|for|regarding|behind|to)"
    r"|reasons? (?:for|behind|why))\b",
    re.IGNORECASE,
)
"""Words that say that decisions are sought. In the middle of a text they are words of a message, before another noun a
part of a name ("decision tree")."""

_NO_TOPIC = frozenset(
    {"list", "show", "search", "find", "for", "of", "the", "previous", "past", "all", "any", "recent", "latest", "our"}
)
"""Words that name no topic next to "decisions"."""

_PUNCTUATION = re.compile(r"\A[^\w\U0001f000-\U0001faff]+|[^\w\U0001f000-\U0001faff]+\Z")
"""Around a word; not emoji."""

_NUMBER = re.compile(r"[(\[]*#([1-9][0-9]{0,14})[)\].,;:!?]*", re.ASCII)
_CURLY_QUOTES = str.maketrans("“”„", '"""')


class SearchQuery(NamedTuple):
    """A parsed search. All conditions must hold; of several authors, roles, states or kinds, one must match.

    Threads are ranked by ``words``, which include those of the phrases. ``phrases``, ``authors`` and ``labels`` are
    folded (`fold`). ``roles`` are words of `bot.domain.roles`. A message is ``after`` a moment if written then or
    later, and ``before`` it if written earlier. ``numbers`` are the threads named in the search (``#48``).
    ``decides``: decisions are sought; ``is_question``: it was asked as a question, and the words are its topic, none if
    it names threads. ``verb`` is what a question says was done ("drop"). ``questions`` are the phrases by which the
    repository's people ask. A thread is ``opened_by`` an account (folded), and was ``changed_since`` a moment.
    """

    words: str = ""
    phrases: tuple[str, ...] = ()
    authors: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    after: datetime | None = None
    before: datetime | None = None
    numbers: tuple[int, ...] = ()
    is_question: bool = False
    decides: bool = False
    verb: str = ""
    questions: tuple[str, ...] = ()
    opened_by: str = ""
    changed_since: datetime | None = None

    @property
    def filters(self) -> SearchQuery:
        """The same conditions without the words."""
        return self._replace(words="", phrases=(), numbers=(), is_question=False, decides=False, verb="", questions=())

    @property
    def has_filters(self) -> bool:
        """Whether the search has more than words."""
        return self.has_thread_filters or self.has_message_filters or bool(self.phrases)

    @property
    def has_thread_filters(self) -> bool:
        """Whether the search says what a thread is like."""
        return bool(self.states or self.kinds or self.labels or self.opened_by or self.changed_since)

    @property
    def has_message_filters(self) -> bool:
        """Whether the search says who wrote a message, or when."""
        return bool(self.authors or self.roles or self.after or self.before)

    def asking(self, topic: str, *, decides: bool, verb: str) -> SearchQuery:
        """The query as a question about this topic. Of its phrases, those in the topic count."""
        inside = self.phrases_in(topic)
        phrases = tuple(phrase for phrase in self.phrases if phrase in inside)
        return self._replace(words=topic, phrases=phrases, is_question=True, decides=decides, verb=verb)

    @property
    def unused(self) -> tuple[str, ...]:
        """A note on words that are left out if there are others, as the index has no terms for them (``R``, ``🚀``).

        Empty if there are none.
        """
        found = [word for word in self.words.split() if not terms(word)] if terms(self.words) else []
        bare = (_PUNCTUATION.sub("", word) for word in found)
        # A word of one small letter, such as "a" or "y", is as common as other stop words.
        words = [word for word in bare if fold(word) not in ALL_STOP_WORDS and (len(word) > 1 or not word.islower())]
        words = [word for word in words if word and "'" not in plain(word)]
        shown = ", ".join(word[:_MAX_SHOWN_CHARS] for word in words[:_MAX_SHOWN_WORDS])
        return (f"{shown}: not in the index, as it is too short or no word",) if words else ()

    def matches_thread(self, thread: ThreadFacts) -> bool:
        """Whether a thread has the right state, kind, labels and author, and changed recently enough."""
        return (
            (not self.states or (thread.kind.is_on_github and thread.state in self.states))
            and (not self.kinds or thread.kind in self.kinds)
            and self.labels <= {label.casefold() for label in (thread.labels if self.labels else ())}
            and self.opened_by in ("", thread.author.casefold())
            and (self.changed_since is None or thread.updated_at >= self.changed_since)
        )

    def matches_message(self, author: str, role: str | None, at: datetime | None) -> bool:
        """Whether a message has the right author, role and time. A role of None is unknown and matches no role."""
        return (
            (not self.authors or author.casefold() in self.authors)
            and (not self.roles or (role is not None and role_word(role) in self.roles))
            and (self.after is None or (at is not None and at >= self.after))
            and (self.before is None or (at is not None and at < self.before))
        )

    def phrases_in(self, text: str) -> frozenset[str]:
        """The phrases that occur in a text."""
        folded = fold(text) if self.phrases else ""
        return frozenset(phrase for phrase in self.phrases if phrase in folded)


def fold(text: str) -> str:
    """The text in lower case with single spaces and unified forms, for comparison. Linear."""
    return " ".join(unify_forms(plain(text)).casefold().split())


def given_filters(
    state: str = "all",
    kind: str = "all",
    labels: Iterable[str] = (),
    opened_by: str = "",
    changed_since: datetime | None = None,
) -> SearchQuery:
    """The filters that options give; ``all`` and "" are none."""
    return SearchQuery(
        states=frozenset({state} - {"all"}),
        kinds=frozenset({kind} - {"all"}),
        labels=frozenset(label.casefold() for label in labels),
        opened_by=opened_by.casefold(),
        changed_since=changed_since,
    )


def search_query(
    text: str,
    now: datetime,
    questions: tuple[str, ...] = (),
    *,
    strict: bool = True,
    given: SearchQuery = SearchQuery(),  # noqa: B008 - a constant
) -> SearchQuery:
    """Parse a search. Linear in its length. The filters ``given`` hold like those in the text.

    Raises UserError for a known qualifier with a wrong value; without ``strict`` it becomes plain words.
    """
    words: list[str] = []
    spoken: list[str] = []
    phrases: list[str] = []
    query, count = given.filters, 0
    for token in _TOKEN.finditer(text.translate(_CURLY_QUOTES)):
        if token["name"] and count < MAX_QUALIFIERS:
            filtered = _add_filter(query, token, now, strict=strict)
            if filtered is not None:
                query, count = filtered, count + 1
                continue
        if token["phrase"] and len(phrases) < MAX_PHRASES and (phrase := fold(token["phrase"])):
            phrases.append(phrase)
        words.append(token["phrase"] if token["phrase"] is not None else token[0])
        spoken.append(token[0])
    query = query._replace(words=" ".join(words), phrases=tuple(phrases), questions=questions)
    query = _as_question(query, " ".join(spoken))
    numbers = tuple(dict.fromkeys(int(match[1]) for word in query.words.split() if (match := _NUMBER.fullmatch(word))))
    return query._replace(words="" if numbers and query.is_question else query.words, numbers=numbers)


def _as_question(query: SearchQuery, spoken: str) -> SearchQuery:
    """The query with the topic of the question as its words, if it is one."""
    if query.questions or "?" in spoken or not spoken.isascii() or _MAY_BE_QUESTION.search(spoken):
        from bot.reading.question_grammar import asked_topic  # few searches are questions

        if (asked := asked_topic(plain(spoken).rstrip(" ."), query.questions)) and terms(asked.bare):
            return query.asking(asked.bare, decides=asked.decides, verb=asked.verb)
    topic, count = _DECISION_WORDS.subn(" ", query.words)
    if not count or query.phrases or set(topic.lower().split()) <= _NO_TOPIC or not terms(topic):
        return query
    from bot.reading.question_grammar import is_about_software

    if is_about_software(query.words, topic):
        return query
    return query._replace(words=" ".join(topic.split()), decides=True)


def moment_of(text: str, now: datetime) -> datetime:
    """Parse a day (``2026-05-03``), or an age in days, weeks, months of 30 days or years of 365 days (``7d``).

    Raises ValueError or OverflowError for anything else.
    """
    ago = AGE_PATTERN.fullmatch(text)
    if ago:
        return now - timedelta(days=int(ago[1]) * _UNIT_DAYS[ago[2]])
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _add_filter(query: SearchQuery, token: re.Match[str], now: datetime, *, strict: bool) -> SearchQuery | None:
    """The query with this qualifier added; None if its value is wrong."""
    name, value = token["name"].lower(), (token["quoted"] if token["quoted"] is not None else token["bare"]).strip()
    try:
        return _QUALIFIER_PARSERS[name](query, value, now)
    except (ValueError, OverflowError) as error:
        if strict:
            shown = f"{name}:{value}"[:_MAX_SHOWN_CHARS]
            raise UserError(
                f'{shown!r}: {_VALUE_HINTS[name]}; to search for it as words, put it in quotation marks ("{name}:…")'
            ) from error
    return None


def _author(query: SearchQuery, value: str, _: datetime) -> SearchQuery:
    return query._replace(authors=query.authors | {_require_text(value.removeprefix("@"))})


def _label(query: SearchQuery, value: str, _: datetime) -> SearchQuery:
    return query._replace(labels=query.labels | {_require_text(value)})


def _role(query: SearchQuery, value: str, _: datetime) -> SearchQuery:
    return query._replace(roles=query.roles | {_look_up(_ROLES, value)})


def _is(query: SearchQuery, value: str, _: datetime) -> SearchQuery:
    field, choice = _look_up(_IS_VALUES, value)
    return query._replace(**{field: getattr(query, field) | {choice}})


def _after(query: SearchQuery, value: str, now: datetime) -> SearchQuery:
    return query._replace(after=_moment(value, now, query.after, max))


def _before(query: SearchQuery, value: str, now: datetime) -> SearchQuery:
    return query._replace(before=_moment(value, now, query.before, min))


def _moment(
    value: str, now: datetime, current: datetime | None, pick: Callable[[Iterable[datetime]], datetime]
) -> datetime:
    return pick(moment for moment in (current, moment_of(value, now)) if moment)


def _require_text(value: str) -> str:
    if not value:
        raise ValueError("empty")
    return value.casefold()


def _look_up(table: dict[str, Value], value: str) -> Value:
    if value.casefold() not in table:
        raise ValueError("unknown")
    return table[value.casefold()]


_ROLES = {
    MAINTAINER: MAINTAINER,
    CONTRIBUTOR: CONTRIBUTOR,
    PARTICIPANT: PARTICIPANT,
    "owner": MAINTAINER,
    "member": MAINTAINER,
    "collaborator": MAINTAINER,
}
_IS_VALUES = {
    "open": ("states", "open"),
    "closed": ("states", "closed"),
    **{word: ("kinds", kind) for kind in Kind for word in kind.traits.qualifiers},
}
_QUALIFIER_PARSERS: dict[str, Callable[[SearchQuery, str, datetime], SearchQuery]] = {
    "author": _author,
    "role": _role,
    "before": _before,
    "after": _after,
    "is": _is,
    "label": _label,
}
_KIND_NAMES = [kind.traits.qualifiers[0] for kind in Kind]
_DATE_HINT = "takes a day such as 2026-05-03, or an age such as 7d, 4w, 6m or 1y"
_VALUE_HINTS = {
    "author": "takes the login of an account",
    "role": f"takes {MAINTAINER}, {CONTRIBUTOR} or {PARTICIPANT}",
    "before": _DATE_HINT,
    "after": _DATE_HINT,
    "is": f"takes open, closed, {', '.join(_KIND_NAMES[:-1])} or {_KIND_NAMES[-1]}",
    "label": 'takes a label; put several words in quotation marks, as in label:"good first issue"',
}
