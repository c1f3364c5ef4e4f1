"""Compares a question with older texts: signals and word sequences that both have and few others do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import NamedTuple

from bot.domain.thread import Thread
from bot.ranking.features import RankingQuery
from bot.reading.analyzer import body_terms, terms, unspaced_pattern
from bot.reading.error_lines import is_line, line_term, raised_message
from bot.reading.signals import without_addresses
from bot.recall.library import Library
from bot.recall.reasons import OpeningSignals, SharedSignals, opening, shared_signals, strip_machine_output

MIN_TITLE_SHARE = 0.6
"""Minimum share of common words in two titles: below it the texts are never the same."""

TITLE_LINE = 0
"""The number of the title's line, which never counts as part of a form."""

MAX_GROUPS = 200
"""Most signals and sequences that are looked up in the index, to count the threads that have them. Any further ones
count as common."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the question shares with an older text, without what many threads share.

    ``errors`` counts the sequences of three words in lines about a failure. ``text`` is the question's text without the
    shared lines that many threads have. ``words`` are the terms of the older text, ``prose_words`` those in its prose
    or code. ``is_same``: both texts are the same, nearly word for word. ``has_other_error``: each states an error in
    words, and no three words of these are the same.
    """

    shared: SharedSignals
    errors: int
    text: str
    words: frozenset[str]
    prose_words: frozenset[str]
    is_same: bool
    has_other_error: bool


MAX_CACHED_TEXTS, MAX_CACHED_CHARS = 64, 16_384
"""How many texts are cached, and the most characters of each: 90 MB at worst. A replay recalls twice for each thread,
and issues near each other have the same candidates."""


class _ReadText(NamedTuple):
    """What is compared: a text's signals, its lines, its terms, the terms of its prose or code, those of its title."""

    opening: OpeningSignals
    lines: TextLines
    words: frozenset[str]
    prose: frozenset[str]
    title: frozenset[str]


def _read_text(title: str, body: str) -> _ReadText:
    return _read_cached(title, body) if len(body) <= MAX_CACHED_CHARS else _read_cached.__wrapped__(title, body)


@lru_cache(MAX_CACHED_TEXTS)
def _read_cached(title: str, body: str) -> _ReadText:
    signals = opening(title, body)
    in_prose = frozenset((*terms(strip_machine_output(title)), *body_terms(strip_machine_output(body))))
    in_title = frozenset(terms(title))
    return _ReadText(signals, read_lines(signals.text), in_title.union(body_terms(body)), in_prose, in_title)


def compare(thread: Thread, others: Sequence[Thread], query: RankingQuery, library: Library) -> Iterator[Comparison]:
    """Compare the question with each of these threads.

    A line, path or name is common if many threads hold all of its words. That separates build logs, forms, licences and
    macros from what two people really ran into, using posting lists that were read for the question anyway.
    """
    ours, theirs = _read_text(thread.title, thread.body), [_read_text(other.title, other.body) for other in others]
    shared = [shared_signals(ours.opening, older.opening) for older in theirs]
    runs = [shared_runs(ours.lines, older.lines) for older in theirs]

    def known_terms(group: frozenset[str]) -> frozenset[str]:
        return group.intersection(query.rarity)

    groups = chain(
        chain.from_iterable(signals.words() for signals in shared),
        (run.terms for text_runs in runs for run in text_runs),
    )
    counted_groups = islice(filter(None, dict.fromkeys(map(known_terms, groups))), MAX_GROUPS)
    joint_frequency = library.joint_frequency(counted_groups, before=query.at)

    def is_specific(group: frozenset[str]) -> bool:
        if is_line(group) and query.has_lines:
            return group <= query.lines
        return joint_frequency.get(known_terms(group), query.few + 1) <= query.few

    messages = _boilerplate_messages(ours.opening, query)
    boilerplate = _lines_with(messages, ours.opening.text)
    title, _, body = ours.opening.text.partition("\n")
    for message in messages:
        title = title.replace(message, " ")
    own_text = f"{title}\n{body}"
    for older, signals, older_runs in zip(theirs, shared, runs, strict=True):
        specific = [run for run in older_runs if run.line.position not in boilerplate and is_specific(run.terms)]
        common = boilerplate.union(run.line.position for run in older_runs if run.is_most and run not in specific)
        text = without_lines(own_text, common - {TITLE_LINE})
        errors = len(trigrams(run for run in specific if run.line.fails))
        yield Comparison(
            signals.only(is_specific).stated_in(text),
            errors,
            text,
            older.words,
            older.prose,
            is_same(ours.lines, older.lines)
            and 2 * len(trigrams(specific)) >= len(ours.lines.any)
            # in two copies of a form only the titles say what each is about
            and len(query.title & older.title) >= MIN_TITLE_SHARE * len(query.title | older.title),
            not (errors or signals.errors) and ours.opening.states_error and older.opening.states_error,
        )


def _boilerplate_messages(question: OpeningSignals, query: RankingQuery) -> list[str]:
    """The question's errors that many threads state, each of which was closed for its own reason."""
    if not query.has_lines:
        return []
    errors = [line for key, line in question.errors.items() if " " in key and line_term(key) not in query.lines]
    return [*errors, *(message for line in errors if (message := raised_message(line)))]


def _lines_with(messages: Sequence[str], text: str) -> frozenset[int]:
    return frozenset(
        place for place, line in enumerate(text.split("\n")) if any(message in line for message in messages)
    )


MIN_RUN_WORDS = 3
"""Minimum words in a shared sequence: any two texts share sequences of two."""

MIN_SAME_SHARE, MIN_SAME_TRIGRAMS = 0.8, 12
"""Two texts are the same if they share at least this fraction, and this number, of their three-word sequences."""

MAX_LINE = 300
"""Characters of a line that are compared."""

_WORD = re.compile(r"[^\W\d]+")
_NUMBER = re.compile(r"0x[0-9a-f]+", re.ASCII)
_FAILURE = re.compile(
    r"error|exception|fail|panic|fatal|abort|assert|segfault|segmentation|denied|refused|invalid|mismatch|undefined"
    r"|unresolved|unexpected|cannot|can't|could not|not found|no such|traceback|warning"
)

Words = tuple[str, ...]


class TextLine(NamedTuple):
    """The words of a line in lower case, without numbers and addresses; ``position`` is its number in the text.

    ``fails``: it is about a failure.
    """

    position: int
    words: Words
    fails: bool


class SharedRun(NamedTuple):
    """At least three words of one of our lines that a line of the other text contains in the same order.

    ``terms`` are their terms in the index.
    """

    line: TextLine
    words: Words
    terms: frozenset[str]

    @property
    def is_most(self) -> bool:
        """Whether they make up most of the line."""
        return 2 * len(self.words) >= len(self.line.words)


@dataclass(frozen=True)
class TextLines:
    """The lines of a text, and their three-word sequences: those in lines about a failure, and all."""

    lines: Sequence[TextLine]
    failing: frozenset[Words] = field(repr=False)
    any: frozenset[Words] = field(repr=False)


def read_lines(text: str) -> TextLines:
    """The lines of a text that have at least three words. Linear in its length."""
    lines = list(_lines(text.lower()))
    failing = frozenset(trigram for line in lines if line.fails for trigram in _trigrams(line.words))
    return TextLines(lines, failing, failing.union(trigram for line in lines for trigram in _trigrams(line.words)))


def shared_runs(ours: TextLines, theirs: TextLines) -> list[SharedRun]:
    """The sequences that our lines share with theirs; lines about a failure only with lines about a failure."""
    return [run for line in ours.lines for run in _runs(line, theirs.failing if line.fails else theirs.any)]


def is_same(ours: TextLines, theirs: TextLines) -> bool:
    """Whether two texts are the same, nearly word for word, and long enough to tell."""
    both = ours.any & theirs.any
    return len(both) >= max(MIN_SAME_TRIGRAMS, MIN_SAME_SHARE * len(ours.any | theirs.any))


def trigrams(runs: Iterable[SharedRun]) -> set[Words]:
    """All three-word sequences in these runs."""
    return {trigram for run in runs for trigram in _trigrams(run.words)}


def without_lines(text: str, places: Collection[int]) -> str:
    """The text without the lines at these places."""
    if not places:
        return text
    return "\n".join(line for place, line in enumerate(text.split("\n")) if place not in places)


def _lines(lowered: str) -> Iterator[TextLine]:
    for place, line in enumerate(lowered.split("\n")):
        text = _NUMBER.sub(" ", without_addresses(line[:MAX_LINE]))
        words = tuple(chain.from_iterable(map(_words, _WORD.findall(text))))
        if len(words) >= MIN_RUN_WORDS:
            yield TextLine(place, words, bool(_FAILURE.search(text)))


def _words(run: str) -> Sequence[str]:
    """The words of a run of letters: all pairs of neighbours in a script without spaces."""
    if run.isascii():
        return (run,) if len(run) > 1 else ()
    parts = [part for part in unspaced_pattern().split(run) if len(part) > 1]
    return [
        word for part in parts for word in (map("".join, pairwise(part)) if unspaced_pattern().match(part) else (part,))
    ]


def _trigrams(words: Words) -> Iterator[Words]:
    return zip(words, words[1:], words[2:], strict=False)


def _runs(line: TextLine, theirs: frozenset[Words]) -> Iterator[SharedRun]:
    """The longest sequences of a line that the other text has too."""
    breaks = [
        -1,
        *(at for at, trigram in enumerate(_trigrams(line.words)) if trigram not in theirs),
        len(line.words) - 2,
    ]
    for before, after in pairwise(breaks):
        if after - before > 1:
            words = line.words[before + 1 : after + MIN_RUN_WORDS - 1]
            yield SharedRun(line, words, frozenset(terms(" ".join(words))))
