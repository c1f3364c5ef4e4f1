"""Every sentence that ``phrases.toml`` gives as an example is read as it says there."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from bot.domain.thread import Message, OutcomeKind, Thread
from bot.reading.endings.decisions import DecisionAuthority, authority_of, may_decide
from bot.reading.endings.engine import SentenceContext, judge, matches
from bot.reading.endings.outcome import outcome
from bot.reading.endings.phrases import FOREIGN, PHRASES_FILE, PhraseSet, Rule, fold_for_stems, phrase_book, read_book
from bot.reading.endings.stems import stems
from tests.examples import examples
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


def rows(key: str) -> list[tuple[str, str, str]]:
    """The examples of all rows of phrases: the set, the pattern and a sentence."""
    return [
        (name, pattern, text)
        for name, phrases in BOOK.sets.items()
        for row, pattern in zip(TOML[name], phrases.patterns, strict=True)
        for text in row.get(key, ())
    ]


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


def test_a_sentence_under_yes_is_matched_by_its_phrase() -> None:
    assert [row for row in rows("yes") if not is_read(*row)] == []


def test_a_sentence_under_no_is_matched_by_no_phrase_of_its_set() -> None:
    assert [
        (n, text) for n, _, text in rows("no") if any(is_read(n, each, text) for each in BOOK.sets[n].patterns)
    ] == []


def is_taken_back(name: str, rules: Mapping[str, Rule], text: str) -> bool:
    """Whether a rule that uses doubts of this name believes the text without them, and not with those of ``rules``."""
    using = [
        rule
        for rule, table in TOML["rule"].items()
        if name in (FOREIGN, *(each for key in ("unless", "denied_by", "doubted_by") for each in table.get(key, ())))
    ]
    return any(
        any(matches(replace(BOOK.rules[rule], unless=(), denied_by=()), text, context))
        and not any(matches(replace(BOOK.rules[rule], unless=doubted, denied_by=()), text, context))
        for rule in using
        for context in CONTEXTS
        for doubted in [rules[rule].unless + rules[rule].denied_by + rules[rule].doubted_by]
    )


def test_a_sentence_under_takes_back_is_doubted_by_its_row() -> None:
    for name, doubt_rows in TOML["doubt"].items():
        for row in doubt_rows:
            rules = read_book({**TOML, "doubt": {**dict.fromkeys(TOML["doubt"], ()), name: [row]}}).rules
            assert [text for text in row["takes_back"] if not is_taken_back(name, rules, text)] == [], name


def test_every_row_has_examples() -> None:
    incomplete = [(name, row) for name in BOOK.sets for row in TOML[name] if not (row.get("yes") and row.get("no"))]
    incomplete += [
        (name, row) for name, doubt_rows in TOML["doubt"].items() for row in doubt_rows if not row["takes_back"]
    ]
    assert incomplete == []


def test_the_stems_of_a_set_miss_nothing_that_it_matches() -> None:
    for name, phrases in BOOK.sets.items():
        patterns = (re.compile(pattern, re.IGNORECASE) for pattern in phrases.patterns)
        texts = [text for pattern in patterns for text in generate_matches(pattern, tries=examples(200))]
        assert texts, name
        assert [text for text in texts if not phrases.may_be_in(fold_for_stems(text))] == [], name


def test_stems_are_the_plain_words_that_a_match_needs() -> None:
    expected = {
        r"won'?t fix": ("won't fix", "wont fix"),
        r"\bclos(?:e|ing) as (?:\w+ )?(?:stale|old)\b": ("close as ", "closing as "),
        r"(?:please )?(?!not)never\w": ("never",),
        r"[Aa]bc+": ("b",),
        r"\w+|fixed": ("",),
        r"x{0,2}y*": ("",),
        r"#\d{1,9}": ("0",),
        "\\u2013 FIXED": ("\u2013 fixed",),
    }
    assert {pattern: stems([pattern]) for pattern in expected} == expected


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


def test_inactivity_is_stale() -> None:
    texts = ["Closing after a year of inactivity.", "Closed given the long inactivity."]
    assert [text for text in texts if outcome(thread(text)).kind is not OutcomeKind.STALE] == []


def test_a_decision_without_its_apostrophe_is_found() -> None:
    texts = ["This wont happen.", "We dont want this.", "That is a won't -fix."]
    assert [text for text in texts if authority_of(text, DecisionAuthority.RULING) is None] == []


def test_the_quick_test_for_decisions_sees_through_markup() -> None:
    texts = ["We will _not_ support it.", "We will\nnot support it.", "We **will not** support it."]
    assert [text for text in texts if not may_decide(text, DecisionAuthority.SPEAKER)] == []
