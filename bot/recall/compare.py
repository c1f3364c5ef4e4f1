"""A question beside older texts: what they share, and what of it few other threads have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from bot.model import Thread
from bot.reading.words import body_terms, terms
from bot.recall.features import Question
from bot.recall.library import Library
from bot.recall.lines import is_same, read_lines, shared_runs, threes, without_lines
from bot.recall.said import said
from bot.recall.why import Shared, opening, shared_signals

ALIKE = 0.6
"""The share of the words of two titles that both have, from which on the texts below them may be the same."""

TITLE = 0
"""The line of an opening text that is never taken for a form."""

MAX_GROUPS = 200
"""Of so many signals and runs of words the index is asked how many threads hold them; what comes after is common."""


@dataclass(frozen=True, slots=True)
class Both:
    """What the question shares with an older text, without what many threads have.

    ``errors`` counts the words by three that stand side by side in lines about a failure. ``text`` is the question's,
    without the lines that many threads have as the older one does. ``words`` are the terms of the older text, ``said``
    those that its prose or code has. ``is_same``: both texts are the same, nearly word for word.
    """

    shared: Shared
    errors: int
    text: str
    words: frozenset[str]
    said: frozenset[str]
    is_same: bool


def _is_alike(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether two titles hardly differ: of two copies of a form the title alone tells what each is about."""
    return len(ours & theirs) >= ALIKE * len(ours | theirs)


def compared(thread: Thread, others: Sequence[Thread], asked: Question, library: Library) -> Iterator[Both]:
    """The question beside each of these threads.

    A line, a path or a name is in many threads where many hold all of its words: so build logs, forms, licences and
    macros are told from what two people really met, by lists that were read for the question anyway.
    """
    ours = opening(thread)
    our_lines, theirs = read_lines(ours.text), [opening(other) for other in others]
    their_lines = [read_lines(one.text) for one in theirs]
    shared = [shared_signals(ours, one) for one in theirs]
    runs = [shared_runs(our_lines, lines) for lines in their_lines]

    def known(group: frozenset[str]) -> frozenset[str]:
        return group.intersection(asked.rarity)

    groups = chain(chain.from_iterable(one.words() for one in shared), (run.terms for one in runs for run in one))
    wanted = islice(filter(None, dict.fromkeys(map(known, groups))), MAX_GROUPS)
    held_by = library.held_by(wanted, before=asked.at)

    def is_specific(group: frozenset[str]) -> bool:
        return held_by.get(known(group), asked.few + 1) <= asked.few

    for other, both, lines, alike in zip(others, shared, their_lines, runs, strict=True):
        specific = [run for run in alike if is_specific(run.terms)]
        common = {run.line.place for run in alike if run.is_most and run not in specific}
        yield Both(
            both.only(is_specific),
            len(threes(run for run in specific if run.line.fails)),
            without_lines(ours.text, common - {TITLE}),
            frozenset((*terms(other.title), *body_terms(other.body))),
            frozenset((*terms(said(other.title)), *body_terms(said(other.body)))),
            is_same(our_lines, lines)
            and 2 * len(threes(specific)) >= len(our_lines.any)
            and _is_alike(asked.title, frozenset(terms(other.title))),
        )
