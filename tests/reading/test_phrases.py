"""Every sentence that ``phrases.toml`` gives as an example is read as it says there."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from bot.domain.thread import Message, OutcomeKind, Thread
from bot.reading.endings.decisions import DecisionAuthority, authority_of, may_decide
from bot.reading.endings.engine import SentenceContext, judge, matches
from bot.reading.endings.outcome import outcome
from bot.reading.endings.phrases import PHRASES_FILE, PhraseSet, Rule, fold_for_stems, phrase_book, read_book
from bot.reading.endings.stems import stems
from tests.reading.regex_samples import generate_matches

CLOSED = datetime(2024, 5, 3, 12, 0, tzinfo=UTC)
TOML: dict[str, Any] = tomllib.loads(PHRASES_FILE.read_text(encoding="utf-8"))
BOOK = phrase_book()
CONTEXTS = [
    SentenceContext(42, title, by_author=True, at_closing=at_closing, near=True)
    for title in ("Login loops", "Remove it")
    for at_closing in (True, False)
]
RULES = {
    name: [rule for rule, table in TOML["rule"].items() if name in table.get("phrases", [rule])] for name in BOOK.sets
}


def rows(key: str) -> Iterator[Any]:
    """The examples of all rows of phrases: the set, the pattern and a sentence."""
    for name, phrases in BOOK.sets.items():
        for row, pattern in zip(TOML[name], phrases.patterns, strict=True):
            yield from (pytest.param(name, pattern, text, id=f"{name}: {text}") for text in row.get(key, ()))


def doubts() -> Iterator[Any]:
    for name, doubt_rows in TOML["doubt"].items():
        for row in doubt_rows:
            yield from (pytest.param(name, row, text, id=f"{name}: {text}") for text in row["takes_back"])


def is_stated(rule: Rule, text: str) -> bool:
    if rule.kind is None:
        return any(any(matches(rule, text, context)) for context in CONTEXTS)
    judgements = [judge(rule, text, context) for context in CONTEXTS]
    return any(each and each.kind is rule.kind for each in judgements)


@cache
def phrase_set(pattern: str) -> PhraseSet:
    """Cached, since each pattern is tried on hundreds of sentences."""
    return PhraseSet((pattern,))


def is_read(name: str, pattern: str, text: str) -> bool:
    """Whether the pattern alone makes a rule of its set believe the text or, without a rule, matches it."""
    if not RULES[name]:
        return phrase_set(pattern).is_in(text)
    return any(is_stated(replace(BOOK.rules[rule], phrases=phrase_set(pattern)), text) for rule in RULES[name])


@pytest.mark.parametrize(("name", "pattern", "text"), list(rows("yes")))
def test_a_sentence_under_yes_is_matched_by_its_phrase(name: str, pattern: str, text: str) -> None:
    assert is_read(name, pattern, text)


@pytest.mark.parametrize(("name", "pattern", "text"), list(rows("no")))
def test_a_sentence_under_no_is_matched_by_no_phrase_of_its_set(name: str, pattern: str, text: str) -> None:
    assert not any(is_read(name, each, text) for each in BOOK.sets[name].patterns)


@pytest.mark.parametrize(("name", "row", "text"), list(doubts()))
def test_a_sentence_under_takes_back_is_doubted_by_its_row(name: str, row: dict[str, Any], text: str) -> None:
    rules = read_book({**TOML, "doubt": {**dict.fromkeys(TOML["doubt"], ()), name: [row]}}).rules
    using = [
        rule for rule, table in TOML["rule"].items() if name in table.get("unless", []) + table.get("denied_by", [])
    ]
    assert any(
        any(matches(replace(BOOK.rules[rule], unless=(), denied_by=()), text, context))
        and not any(matches(replace(BOOK.rules[rule], unless=doubted, denied_by=()), text, context))
        for rule in using
        for context in CONTEXTS
        for doubted in [rules[rule].unless + rules[rule].denied_by]
    )


def test_every_row_has_examples() -> None:
    incomplete = [(name, row) for name in BOOK.sets for row in TOML[name] if not (row.get("yes") and row.get("no"))]
    incomplete += [
        (name, row) for name, doubt_rows in TOML["doubt"].items() for row in doubt_rows if not row["takes_back"]
    ]
    assert incomplete == []


@pytest.mark.parametrize("name", BOOK.sets)
def test_the_stems_of_a_set_miss_nothing_that_it_matches(name: str) -> None:
    patterns = (re.compile(pattern, re.IGNORECASE) for pattern in BOOK.sets[name].patterns)
    texts = [text for pattern in patterns for text in generate_matches(pattern, tries=200)]
    assert texts
    assert [text for text in texts if not BOOK.sets[name].may_be_in(fold_for_stems(text))] == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"won'?t fix", ("won't fix", "wont fix")),
        (r"\bclos(?:e|ing) as (?:\w+ )?(?:stale|old)\b", ("close as ", "closing as ")),
        (r"(?:please )?(?!not)never\w", ("never",)),
        (r"[Aa]bc+", ("b",)),
        (r"\w+|fixed", ("",)),
        (r"x{0,2}y*", ("",)),
        (r"#\d{1,9}", ("0",)),
        ("\\u2013 FIXED", ("\u2013 fixed",)),
    ],
)
def test_stems_are_the_plain_words_that_a_match_needs(pattern: str, expected: tuple[str, ...]) -> None:
    assert stems([pattern]) == expected


def thread(text: str) -> Thread:
    return Thread(
        id=42, title="Login loops", body="It loops.", author="octocat", created_at=CLOSED - timedelta(days=90),
        state="closed", closed_at=CLOSED, closed_by="monalisa", comments=(Message("monalisa", "MEMBER", CLOSED, text),),
    )  # fmt: skip


def test_a_new_row_is_all_that_a_new_phrase_needs() -> None:
    hard = {**TOML, "not_planned": [*TOML["not_planned"], {"phrase": "hard pass"}]}
    assert outcome(thread("Hard pass, sorry.")).kind is OutcomeKind.UNKNOWN
    assert outcome(thread("Hard pass, sorry."), book=read_book(hard)).kind is OutcomeKind.NOT_PLANNED
    assert outcome(thread("A hard passage."), book=read_book(hard)).kind is OutcomeKind.UNKNOWN


@pytest.mark.parametrize("text", ["Closing after a year of inactivity.", "Closed given the long inactivity."])
def test_inactivity_is_stale(text: str) -> None:
    assert outcome(thread(text)).kind is OutcomeKind.STALE


@pytest.mark.parametrize("text", ["This wont happen.", "We dont want this.", "That is a won't -fix."])
def test_a_decision_without_its_apostrophe_is_found(text: str) -> None:
    assert authority_of(text, DecisionAuthority.RULING) is not None


@pytest.mark.parametrize(
    "text", ["We will _not_ support it.", "We will\nnot support it.", "We **will not** support it."]
)
def test_the_quick_test_for_decisions_sees_through_markup(text: str) -> None:
    assert may_decide(text, DecisionAuthority.SPEAKER)
