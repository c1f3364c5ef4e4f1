"""Finds questions about earlier decisions and discussions in a sentence, in any language that has forms for them.

A question is made of few parts: words before it that change nothing, a form, the topic, and words of time
(`bot.reading.question_forms`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from bot.reading.question_forms import TOKEN, Form, FormRule, QuestionForms, forms_of, plain_words, shipped_forms

MAX_TOPIC_CHARS = 200
MAX_SENTENCE_CHARS = 500
_MAX_CLAUSES = 20
"""Clauses of a sentence that are tried."""

_CLAUSE_ENDS = (",", ";", ":", "–", "—", "-")
_DOUBLE_QUOTES = '"“”«»'
_QUOTE_REMOVAL = str.maketrans("", "", '"“”«»`')
_SENTENCE_EDGES = " .,;:!?…¿"
_RHETORICAL = re.compile(r"\?!|!\?")


class AskedTopic(NamedTuple):
    """What a sentence asks about: the ``topic`` as typed, and ``bare``, without the words around it: "" if the question
    is about the thread it was asked in ("didn't we discuss this before?"). ``decides``: it asks for a decision.
    ``verb`` is what was done, such as "drop", "" if it was only decided or discussed."""

    topic: str
    bare: str
    decides: bool
    verb: str = ""


def may_ask(text: str, phrases: tuple[str, ...] = ()) -> bool:
    """Whether a text has a word of some question. A quick test that saves the rules for few texts."""
    return any(language.may_be_in(text) for language in forms_of(phrases))


def asked_topic(sentence: str, phrases: tuple[str, ...] = (), *, is_alone: bool = True) -> AskedTopic | None:
    """What a sentence asks about, None if it asks for no earlier decision or discussion. ``is_alone``: nothing else is
    said.

    In a phrase of the settings ``{topic}`` stands for the topic, ``*`` for up to four words, ``a/b`` for either word.
    Case, punctuation and contractions are ignored ("didn't we" is "did we"), as are words of time at the end ("before",
    "already"). The question must begin the sentence or a clause, and reach the end of the sentence. Questions that are
    rhetorical or somebody else's do not count, nor do those that end like a statement.
    """
    sentence = sentence[:MAX_SENTENCE_CHARS]
    languages = [each for each in forms_of(phrases) if each.may_be_in(sentence)]
    if not languages or _RHETORICAL.search(sentence):
        return None
    words = _Words.of(sentence)
    for language in languages:
        if asked := _asked_in(language, sentence, words, is_alone=is_alone):
            return asked
    return None


def _asked_in(language: QuestionForms, sentence: str, words: _Words, *, is_alone: bool) -> AskedTopic | None:
    if language.pattern("rhetorical").search(sentence):
        return None
    found = _find_topic(language, sentence, words, is_alone=is_alone)
    if found is None:
        return None
    topic, verb = found
    bare = language.pattern("filler").sub("", _trim_topic(language, topic), count=1)[:MAX_TOPIC_CHARS].strip()
    bare = "" if language.pattern("this").fullmatch(bare) else bare
    decides = bool(language.pattern("decides").search(sentence))
    return AskedTopic(topic, bare, decides, "" if verb in language.plain_verbs else verb)


def is_about_software(sentence: str, topic: str) -> bool:
    """Whether a sentence asks for the reason of a fault ("the reason for the crash"), behind which is no decision."""
    return any(
        language.pattern("reason").search(sentence) and language.pattern("fault").search(topic)
        for language in shipped_forms()
    )


def is_answer(sentence: str) -> bool:
    """Whether the sentence after a question begins with the answer, or shows that none is wanted."""
    return any(language.pattern("answered").match(sentence) for language in shipped_forms())


def is_asked_whole(text: str, phrases: tuple[str, ...] = ()) -> bool:
    """Whether these words are one question from beginning to end, however they end."""
    words = _Words.of(text).text
    return any(rule.match(words) for language in forms_of(phrases) for rule in language.rules)


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
        for token in TOKEN.finditer(sentence):
            marks += sum(map(token[0].count, _DOUBLE_QUOTES))
            for word in plain_words(token[0]):
                text += f"{word} "
                ends.append(len(text))
                places.append(token.span())
            if token[0].endswith(_CLAUSE_ENDS) and marks % 2 == 0:  # a clause inside a quotation is no question
                clauses.append(len(text))
        return cls(text, tuple(ends), tuple(places), tuple(clauses[:_MAX_CLAUSES]))

    def typed(self, start: int, end: int) -> tuple[int, int]:
        """The span in the sentence of the words between two positions of ``text``."""
        spans = [place for stop, place in zip(self.ends, self.places, strict=True) if start < stop <= end]
        return spans[0][0], spans[-1][1]

    def has_clause_inside(self, start: int, end: int) -> bool:
        """Whether a clause begins between two positions of ``text``."""
        return any(start < clause < end for clause in self.clauses)


def _find_topic(language: QuestionForms, sentence: str, words: _Words, *, is_alone: bool) -> tuple[str, str] | None:
    """The topic as typed and the verb, None if no clause asks. ``is_alone``: it is the only sentence."""
    for start in words.clauses:
        if start and language.pattern("reported").search(sentence[: words.typed(0, start)[1]]):
            break
        for rule in language.rules if language.opening.match(words.text, start) else ():
            match = rule.match(words.text, start)
            if match and not (rule.begins_with_topic and words.has_clause_inside(*match.span("topic"))):
                topic = _typed_topic(language, sentence, words, match)
                result = _topic_if_asked(language, rule, sentence, topic, is_alone=is_alone)
                if result is not None:
                    return result, _typed_verb(sentence, words, match)
    return None


def _typed_verb(sentence: str, words: _Words, match: re.Match[str]) -> str:
    if not match.groupdict().get("verb"):
        return ""
    begin, end = words.typed(*match.span("verb"))
    return " ".join(sentence[begin:end].casefold().split())


def _typed_topic(language: QuestionForms, sentence: str, words: _Words, match: re.Match[str]) -> str:
    """The topic as typed, after the noun that it belongs to ("which *database* did we pick for *orders*?")."""
    begin, end = words.typed(*match.span("topic"))
    topic = sentence[begin:end]
    noun = match.groupdict().get("noun") or ""
    if not noun or set(noun.split()) & language.generic:
        return "" if topic.strip(_SENTENCE_EDGES).casefold() in language.generic else topic
    begin, end = words.typed(*match.span("noun"))
    return f"{sentence[begin:end]} {topic}"


def _topic_if_asked(
    language: QuestionForms, rule: FormRule, sentence: str, topic: str, *, is_alone: bool
) -> str | None:
    """The topic of a sentence of this form, None if the sentence does not ask."""
    if rule.form is Form.REQUESTS:
        return None if language.pattern("advice").search(sentence) else topic
    if rule.form is Form.STATES:
        return _topic_if_confirming(language, sentence, topic, is_alone=is_alone)
    if rule.form is Form.MARKED and not sentence.endswith("?"):
        return None
    states = sentence.endswith(("!", ":")) or (sentence.endswith(".") and not language.may_end_with_stop)
    is_none = is_about_software(sentence, topic) or language.pattern("no_topic").fullmatch(topic)
    return None if states or is_none else topic


def _topic_if_confirming(language: QuestionForms, sentence: str, topic: str, *, is_alone: bool) -> str | None:
    """The topic of a statement that asks for confirmation ("…, right?") or is the whole comment, None otherwise."""
    confirmation = language.confirmation_end
    bare = _trim_topic(language, confirmation.sub("", topic))
    if confirmation.search(topic) or confirmation.search(sentence):
        return bare
    from bot.reading.references import find_references  # slow to load, and few sentences state

    if find_references(f"of {sentence}"):  # it says where
        return None
    is_about_here = bool(language.pattern("this").fullmatch(bare)) and bare != topic.rstrip(_SENTENCE_EDGES)
    return bare if is_about_here and (is_alone or sentence.endswith("?")) else None


def _trim_topic(language: QuestionForms, topic: str) -> str:
    """The topic without quotation marks and trailing words of time."""
    bare = topic.translate(_QUOTE_REMOVAL).strip(_SENTENCE_EDGES)
    while (shorter := language.trailing_time.sub("", bare).rstrip(_SENTENCE_EDGES)) != bare:
        bare = shorter
    return bare
