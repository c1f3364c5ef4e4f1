"""Every sentence that the files of phrases give as an example is read as it says there."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from bot.domain.thread import Message, OutcomeKind, Thread
from bot.reading.endings.decisions import DecisionAuthority, authority_of, may_decide
from bot.reading.endings.engine import SentenceContext, judge, matches
from bot.reading.endings.outcome import outcome
from bot.reading.endings.phrases import (
    ANY,
    ENGLISH,
    RULES_FILE,
    PhraseIndex,
    PhraseSet,
    Rule,
    fold_for_stems,
    phrase_book,
    read_book,
    read_languages,
)
from bot.reading.endings.stems import stems
from bot.reading.lookalikes import plain
from tests.examples import examples
from tests.reading.regex_samples import generate_matches

CLOSED = datetime(2024, 5, 3, 12, 0, tzinfo=UTC)
RULES_TOML: dict[str, Any] = tomllib.loads(RULES_FILE.read_text(encoding="utf-8"))
LANGUAGES = read_languages()
ENGLISH_TOML = LANGUAGES[ENGLISH]
BOOK = phrase_book()
CONTEXTS = [
    SentenceContext(42, title, by_author=True, by_outsider=True, at_closing=at_closing, near=True)
    for title in ("Login loops", "Remove it")
    for at_closing in (True, False)
]
RULES = {
    name: [rule for rule, table in RULES_TOML["rule"].items() if name in table.get("phrases", [rule])]
    for name in BOOK.sets
}


class Example(NamedTuple):
    """A sentence of a row of phrases: of which language and set, and the row's pattern."""

    language: str
    name: str
    pattern: str
    text: str


def examples_of(key: str) -> list[Example]:
    return [
        Example(language, name, pattern, text)
        for name, phrases in BOOK.sets.items()
        for language, patterns in phrases.by_language.items()
        for row, pattern in zip(LANGUAGES[language].get(name, ()), patterns.texts, strict=True)
        for text in row.get(key, ())
    ]


def doubt_rows() -> list[tuple[str, str, dict[str, Any]]]:
    """The language, the name and the row of every doubt."""
    return [
        (language, name, row)
        for language, toml in LANGUAGES.items()
        for name, rows in toml.get("doubt", {}).items()
        for row in rows
    ]


def is_stated(rule: Rule, text: str) -> bool:
    if rule.kind is None:
        return any(any(matches(rule, text, context)) for context in CONTEXTS)
    judgements = [judge(rule, text, context) for context in CONTEXTS]
    return any(each and each.kind is rule.kind for each in judgements)


@cache
def phrase_set(language: str, pattern: str) -> PhraseSet:
    """Cached, since each pattern is tried on hundreds of sentences."""
    patterns = BOOK.sets["courtesy"].by_language[language]
    return PhraseSet({language: replace(patterns, texts=(pattern,))}, PhraseIndex())


def is_read(language: str, name: str, pattern: str, text: str) -> bool:
    """Whether the pattern alone makes a rule of its set believe the text or, without a rule, matches it."""
    phrases = phrase_set(language, pattern)
    if not RULES[name]:
        return phrases.is_in(plain(text))
    return any(is_stated(replace(BOOK.rules[rule], phrases=phrases), text) for rule in RULES[name])


def test_a_sentence_under_yes_is_matched_by_its_phrase() -> None:
    assert [example for example in examples_of("yes") if not is_read(*example)] == []


def test_a_sentence_under_no_is_matched_by_no_phrase_of_its_set() -> None:
    read = [
        (example.name, example.text)
        for example in examples_of("no")
        for language, patterns in BOOK.sets[example.name].by_language.items()
        if any(is_read(language, example.name, each, example.text) for each in patterns.texts)
    ]
    assert read == []


def is_taken_back(name: str, rules: Mapping[str, Rule], text: str) -> bool:
    """Whether a rule that uses doubts of this name believes the text without them, and not with those of ``rules``."""
    using = [
        rule
        for rule, table in RULES_TOML["rule"].items()
        if name in (ANY, *(each for key in ("unless", "denied_by", "doubted_by") for each in table.get(key, ())))
    ]
    return any(
        any(matches(replace(BOOK.rules[rule], unless=(), denied_by=()), text, context))
        and not any(matches(replace(rules[rule], unless=doubted, denied_by=()), text, context))
        for rule in using
        for context in CONTEXTS
        for doubted in [rules[rule].unless + rules[rule].denied_by + rules[rule].doubted_by]
    )


def test_a_sentence_under_takes_back_is_doubted_by_its_row() -> None:
    for language, name, row in doubt_rows():
        alone = {code: {**toml, "doubt": {name: [row]} if code == language else {}} for code, toml in LANGUAGES.items()}
        rules = read_book(RULES_TOML, alone).rules
        assert [text for text in row["takes_back"] if not is_taken_back(name, rules, text)] == [], (language, name)


def test_every_row_has_examples() -> None:
    rows = [
        (language, name, row)
        for language, toml in LANGUAGES.items()
        for name in BOOK.sets
        for row in toml.get(name, ())
    ]
    incomplete = [each for each in rows if not (each[2].get("yes") and each[2].get("no"))]
    incomplete += [each for each in doubt_rows() if not each[2]["takes_back"]]
    assert incomplete == []


def test_every_name_in_the_languages_is_used() -> None:
    for language, toml in LANGUAGES.items():
        known = {"word_letters", "script", "words", "doubt", "recall", *ENGLISH_TOML, *RULES_TOML["rule"], "question"}
        assert toml.keys() <= known, language
        assert toml.get("doubt", {}).keys() <= {ANY, *ENGLISH_TOML["doubt"]}, language


def test_a_phrase_of_another_language_is_known_by_more_than_a_few_ascii_letters() -> None:
    unknown = [
        (language, text, stem)
        for phrases in BOOK.sets.values()
        for language, patterns in phrases.by_language.items()
        for text in patterns.texts
        for stem in replace(patterns, texts=(text,)).stems
        if language != ENGLISH and (len(stem) < 4 if stem.isascii() else not stem)
    ]
    assert unknown == [], "most English sentences have these letters, too"


def test_a_phrase_or_doubt_of_a_language_with_a_script_contains_it() -> None:
    sets = [patterns for phrases in BOOK.sets.values() for patterns in phrases.by_language.values()]
    doubts = {id(doubt): doubt for rule in BOOK.rules.values() for doubt in rule.unless + rule.doubted_by}.values()
    sets += [look.phrases for doubt in doubts for look in doubt.looks if doubt.needed and look.must_be_there]
    without_script = [
        (text, example)
        for patterns in sets
        if patterns.script
        for text in patterns.texts
        for example in generate_matches(replace(patterns, texts=(text,)).regex, tries=examples(60))
        if not re.search(patterns.script, example)
    ]
    assert without_script == []


def test_the_stems_of_a_set_miss_nothing_that_it_matches() -> None:
    for name, phrases in BOOK.sets.items():
        alone = [
            replace(patterns, texts=(text,)).regex
            for patterns in phrases.by_language.values()
            for text in patterns.texts
        ]
        texts = [text for pattern in alone for text in generate_matches(pattern, tries=examples(200))]
        assert texts, name
        assert [text for text in texts if not phrases.may_be_in(fold_for_stems(text))] == [], name


def test_stems_are_the_plain_words_that_a_match_needs() -> None:
    expected = {
        r"won'?t fix": ("won't fix", "wont fix"),
        r"\bclos(?:e|ing) as (?:\w+ )?(?:stale|old)\b": ("clos",),
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
    hard = {**ENGLISH_TOML, "not_planned": [*ENGLISH_TOML["not_planned"], {"phrase": "hard pass"}]}
    book = read_book(RULES_TOML, {**LANGUAGES, ENGLISH: hard})
    assert outcome(thread("Hard pass, sorry.")).kind is OutcomeKind.UNKNOWN
    assert outcome(thread("Hard pass, sorry."), book=book).kind is OutcomeKind.NOT_PLANNED
    assert outcome(thread("A hard passage."), book=book).kind is OutcomeKind.UNKNOWN


def test_a_new_file_is_all_that_a_new_language_needs() -> None:
    swedish = {"word_letters": "all", "fixed": [{"phrase": "åtgärdat"}], "doubt": {"any": [{"clause": r"\binte\b"}]}}
    book = read_book(RULES_TOML, {**LANGUAGES, "sv": swedish})
    assert outcome(thread("Felet är åtgärdat.")).kind is OutcomeKind.UNKNOWN
    assert outcome(thread("Felet är åtgärdat."), book=book).kind is OutcomeKind.FIXED
    assert outcome(thread("Felet är inte åtgärdat."), book=book).kind is OutcomeKind.UNKNOWN


def test_inactivity_is_stale() -> None:
    texts = ["Closing after a year of inactivity.", "Closed given the long inactivity."]
    assert [text for text in texts if outcome(thread(text)).kind is not OutcomeKind.STALE] == []


def test_a_decision_without_its_apostrophe_is_found() -> None:
    texts = ["This wont happen.", "We dont want this.", "That is a won't -fix."]
    assert [text for text in texts if authority_of(text, DecisionAuthority.RULING) is None] == []


def test_the_quick_test_for_decisions_sees_through_markup() -> None:
    texts = ["We will _not_ support it.", "We will\nnot support it.", "We **will not** support it."]
    assert [text for text in texts if not may_decide(text, DecisionAuthority.SPEAKER)] == []
