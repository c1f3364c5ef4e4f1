"""Whatever a stranger writes, and wherever it appears, what we publish keeps its shape and notifies nobody."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.comment.render import MAX_BYTES, MAX_CHARS
from bot.domain.answer import Context
from bot.domain.bounds import MAX_NAME
from bot.domain.thread import OutcomeKind
from bot.domain.thread_json import MAX_TEXT
from tests.comment.contexts import closed_match, quoted_outcome
from tests.comment.detector import report
from tests.examples import examples, share
from tests.threats.corpus import CORPUS, DEFINITIONS, RUNS, UNSEEN, repeat
from tests.threats.published_places import (
    ALLOWED,
    HARMLESS,
    PLACES,
    REPO,
    TRANSCRIPTS,
    comment,
    conversation_by,
    find_escapes,
    problems_in,
    structure,
)

SHARE = 47
"""The quick test tries one in so many texts in each place, and every text in some place."""

ACTS = re.compile(
    r"(?:duplicate\s+of|close[sd]?|fix(?:e[sd])?|resolve[sd]?)[:\s]+(?:#[0-9]|gh-[0-9]|https?://|[\w.-]+/[\w.-]+#[0-9])",
    re.IGNORECASE,
)
"""What GitHub acts upon at the beginning of a line."""

INVISIBLE = re.compile(
    "[\0-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\ufe00-\ufe0e"
    "\U000e0000-\U000e0fff]"
)
"""All but the space that we ourselves put into mentions and references."""

HOSTILE = st.lists(st.sampled_from([*CORPUS, "\n", "\n\n", " ", "a"]), max_size=6).map("".join)

BOUNDS = {
    "release of the forge": MAX_NAME,
    "file of the fix": 240,
    "other repository": 200,
    "conversation of a match": 1_000,
}
"""Longer text never reaches these places: names are cut where they are read, transcripts have a budget."""

QUICK = [name for name in PLACES if "template" not in name]
"""Templates are compiled for each text."""


def escapes_of(name: str, texts: list[str]) -> dict[str, list[str]]:
    return {text: escapes for text in texts if (escapes := find_escapes(name, text))}


def turn_of(name: str) -> int:
    """Which of the texts this place begins with."""
    return [*PLACES].index(name)


@pytest.mark.parametrize("name", QUICK)
def test_some_of_the_corpus_changes_nothing_but_words(name: str) -> None:
    """Definitions of footnotes and links, which once escaped, are tried more often."""
    texts = [*CORPUS[turn_of(name) % SHARE :: SHARE], *DEFINITIONS[turn_of(name) % 9 :: 9]]
    assert escapes_of(name, texts) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_the_whole_corpus_changes_nothing_but_words(name: str) -> None:
    assert escapes_of(name, [*DEFINITIONS, *share(CORPUS, first=turn_of(name))]) == {}


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_the_longest_run_of_anything_changes_nothing_but_words(name: str) -> None:
    longest = BOUNDS.get(name, MAX_TEXT)
    assert escapes_of(name, [repeat(piece, longest) for piece in share(RUNS, first=turn_of(name))]) == {}


@pytest.mark.slow
@settings(max_examples=examples(1500), deadline=None)
@given(st.sampled_from([*PLACES]), HOSTILE)
def test_no_mixture_of_the_corpus_changes_more_than_words(name: str, text: str) -> None:
    assert find_escapes(name, text) == []


def test_a_long_comment_that_had_to_be_cut_is_still_harmless() -> None:
    assert_cut_and_harmless("\n\n".join(CORPUS[::3]))


@pytest.mark.slow
@pytest.mark.parametrize("piece", share([*RUNS, *CORPUS[::5]], 3), ids=ascii)
def test_a_comment_that_is_cut_inside_any_text_is_still_harmless(piece: str) -> None:
    assert_cut_and_harmless(repeat(piece or " ", 30_000))


def assert_cut_and_harmless(text: str) -> None:
    hits = tuple(
        closed_match(quoted_outcome(OutcomeKind.ANSWERED, text), id=n, title=text, conversation=conversation_by(text))
        for n in range(1, 9)
    )
    shown = comment(Context(seen_before=hits))
    assert len(shown) <= MAX_CHARS
    assert len(shown.encode()) <= MAX_BYTES
    findings = report(shown)
    assert problems_in(findings) == []
    items = [tag for tag in findings.tags if tag in ("ul/li", "ul/li/details", "p/sub")]
    with_details = items.count("ul/li/details")
    assert items == ["ul/li", "ul/li/details"] * with_details + ["ul/li"] * (8 - with_details) + ["p/sub"]


def test_a_template_in_a_strangers_words_is_shown_as_it_was_written() -> None:
    shows = [name for name in QUICK if HARMLESS[0] in words_shown(name, HARMLESS[0]) and "refused" not in name]
    assert len(shows) > len(PLACES) / 2
    for name in shows:
        assert "{{7*7}} {% x %}" in words_shown(name, "{{7*7}} {% x %}"), name
        assert "{% if" in words_shown(name, "{% if {text} {what}"), name


def test_no_invisible_character_of_a_stranger_is_published() -> None:
    for name in QUICK:
        assert not INVISIBLE.search(PLACES[name](f"a{''.join(UNSEEN)}b")), name
        assert not INVISIBLE.search(PLACES[name](f"`a{''.join(UNSEEN)}b`")), name


ACTING = [
    text.format(phrase)
    for phrase in ("Duplicate of #3", "duplicate of octo/hub#3", "closes: GH-3")
    for text in ("{}", "\n\n{}\n", "```\n{}\n```", "`{}`", "x\u2028{}")
]


def test_no_quoted_line_acts_as_duplicate_of_or_as_a_closing_keyword() -> None:
    for name in QUICK:
        for text in share(ACTING, 4, first=turn_of(name)):
            lines = [line.strip(' \t*_~“"') for line in PLACES[name](text).splitlines()]
            assert not [line for line in lines if ACTS.match(line)], (name, text)


def words_shown(name: str, text: str) -> str:
    return structure(name, text)[1].text.replace("\u200b", "")


def test_the_detector_sees_what_a_careless_comment_would_do() -> None:
    findings = report("@octocat #1 ![](i) [x](https://evil.example) <h1>")
    assert findings.mentions
    assert findings.references
    assert findings.images
    assert not ALLOWED.fullmatch("https://evil.example")
    assert not ALLOWED.fullmatch(f"https://github.com/{REPO}/issues/1")
    assert not ALLOWED.fullmatch(f"https://redirect.github.com/{REPO}/issues/1?x")
    assert set(TRANSCRIPTS) < set(PLACES)
