"""Finds the decisions of a thread that a later statement in it takes back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from bot.reading.analyzer import terms
from bot.reading.endings.engine import is_question, matches
from bot.reading.endings.phrases import Rule, fold_for_stems, phrase_book
from bot.reading.markdown import statements

_RULE_NAMES = ("superseded", "reverted", "changed_mind", "given_up", "scrapped")
_MAX_SENTENCE_CHARS = 300
_NUMBER = re.compile(r"(?:#|GH-)(\d{1,9})\b", re.ASCII | re.IGNORECASE)
_NEGATIVE_WORD = re.compile(
    r"\b(?:not|no|never|without|against|drop\w*|remov\w*|reject\w*|declin\w*|stop\w*|disallow\w*|forbid\w*|instead"
    r"|deprecat\w*|rather)\b|n't\b",
    re.IGNORECASE,
)
_TOPICLESS_WORDS = (
    "decision consensus resolution agreement conclusion plan mind changed superseded superseding overruled"
    " overturned reverted reversed revoked withdrew withdrawn undone closing closed longer going using used"
    " support supporting planning switch chosen instead rather earlier previous above original old first last"
    " hold stand apply holds stands applies team group issue pull request ticket bug commit thing way idea approach"
    " scrap scratch strike second thoughts ok okay yes yeah right alright update edit"
)
"""Words that do not name a topic."""


@dataclass(frozen=True, slots=True)
class Takeback:
    """A statement that an earlier decision no longer holds.

    ``rule`` is the name of its rule in ``rules.toml``, ``thread`` the number of the thread that replaces the
    decision, and ``about`` the terms of the topic it names, if any.
    """

    rule: str
    thread: int | None
    about: frozenset[str]

    def targets(self, standing: Sequence[str], title: str, *, is_pull: bool) -> Iterator[int]:
        """The indices of the decisions it takes back, among the texts of those in force so far."""
        is_only = len(set(standing)) == 1
        for index, text in enumerate(standing):
            if self.about:
                is_named = self._is_about(text) or (is_only and self._is_about(title))
                is_target = is_named and not (self.rule == "given_up" and _NEGATIVE_WORD.search(text))
            else:
                # In a pull request it only says that another one has the change.
                is_sweeping = self.rule == "superseded" and not is_pull
                is_target = is_sweeping or (is_only and self.rule not in ("superseded", "given_up"))
            if is_target:
                yield index

    def _is_about(self, text: str) -> bool:
        return self.about.issubset(terms(text))


def may_take_back(text: str) -> bool:
    """Whether ``text`` is worth searching for a takeback: a fast test that most texts fail."""
    words = fold_for_stems(" ".join(text.split()))
    return any(rule.phrases.may_be_in(words) for rule in _rules())


def takebacks(text: str, own: object, *, decides: bool) -> Iterator[Takeback]:
    """What a message of thread ``own`` takes back; ``decides``: the message also states a decision."""
    if not may_take_back(text):
        return
    for sentence in statements(text):
        if len(sentence) <= _MAX_SENTENCE_CHARS and not is_question(sentence):
            yield from _sentence_takebacks(sentence, own, decides=decides)


def _sentence_takebacks(sentence: str, own: object, *, decides: bool) -> Iterator[Takeback]:
    for name, rule in zip(_RULE_NAMES, _rules(), strict=True):
        if name == "scrapped" and not decides:
            continue
        for match in matches(rule, sentence):
            named = _NUMBER.search(match.words) if rule.names else None
            thread = int(named[1]) if named else None
            if rule.names and thread in (None, 0, own):
                continue
            yield Takeback(name, thread, _topic(_NUMBER.sub(" ", match.words)))


def _topic(words: str) -> frozenset[str]:
    return frozenset(terms(words)) - _topicless_terms()


@cache
def _topicless_terms() -> frozenset[str]:
    return frozenset(terms(_TOPICLESS_WORDS))


def _rules() -> Iterable[Rule]:
    book = phrase_book()
    return (book.rules[name] for name in _RULE_NAMES)
