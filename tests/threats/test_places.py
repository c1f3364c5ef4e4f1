"""Whatever a stranger writes, and wherever it comes to stand, what we publish keeps its shape and reaches nobody."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.comment.render import MAX_BYTES, MAX_CHARS
from bot.domain.answer import Context
from bot.domain.thread import OutcomeKind
from bot.domain.thread_json import MAX_NAME, MAX_TEXT
from tests.comment.contexts import ended, quoted
from tests.comment.detector import report
from tests.examples import examples, share
from tests.threats.corpus import CORPUS, DEFINITIONS, RUNS, UNSEEN, run_of
from tests.threats.places import ALLOWED, HARMLESS, PLACES, REPO, TRANSCRIPTS, comment, faults, said_by, skeleton

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
"""All but the space that we put into mentions and references ourselves."""

HOSTILE = st.lists(st.sampled_from([*CORPUS, "\n", "\n\n", " ", "a"]), max_size=6).map("".join)

BOUNDS = {
    "release of the forge": MAX_NAME,
    "file of the fix": 240,
    "other repository": 200,
    "conversation of a match": 1_000,
}
"""What is longer never comes to these places: names are cut where they are read, transcripts have a budget."""

QUICK = [name for name in PLACES if "template" not in name]
"""Templates are compiled for each text."""


def wrong(name: str, texts: list[str]) -> dict[str, list[str]]:
    return {text: found for text in texts if (found := faults(name, text))}


@pytest.mark.parametrize("name", QUICK)
def test_some_of_the_corpus_changes_nothing_but_words(name: str) -> None:
    assert wrong(name, CORPUS[[*PLACES].index(name) % SHARE :: SHARE]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_the_whole_corpus_changes_nothing_but_words(name: str) -> None:
    assert wrong(name, share(CORPUS, first=[*PLACES].index(name))) == {}


@pytest.mark.parametrize("text", DEFINITIONS, ids=ascii)
def test_no_text_defines_a_footnote_or_a_link(text: str) -> None:
    assert [(name, faults(name, text)) for name in PLACES if faults(name, text)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_the_longest_run_of_anything_changes_nothing_but_words(name: str) -> None:
    assert (
        wrong(name, [run_of(piece, BOUNDS.get(name, MAX_TEXT)) for piece in share(RUNS, first=[*PLACES].index(name))])
        == {}
    )


@pytest.mark.slow
@settings(max_examples=examples(1500), deadline=None)
@given(st.sampled_from([*PLACES]), HOSTILE)
def test_no_mixture_of_the_corpus_changes_more_than_words(name: str, text: str) -> None:
    assert faults(name, text) == []


def test_a_long_comment_that_had_to_be_cut_is_as_harmless() -> None:
    assert_cut_and_harmless("\n\n".join(CORPUS[::3]))


@pytest.mark.slow
@pytest.mark.parametrize("piece", share([*RUNS, *CORPUS[::5]], 3), ids=ascii)
def test_whatever_it_was_cut_in_the_comment_is_as_harmless(piece: str) -> None:
    assert_cut_and_harmless(run_of(piece or " ", 30_000))


def assert_cut_and_harmless(text: str) -> None:
    hits = tuple(
        ended(quoted(OutcomeKind.ANSWERED, text), id=n, title=text, conversation=said_by(text)) for n in range(1, 9)
    )
    shown = comment(Context(seen_before=hits))
    assert len(shown) <= MAX_CHARS
    assert len(shown.encode()) <= MAX_BYTES
    found = report(shown)
    assert (found.mentions, found.references, found.images, found.formulas, found.shortcodes) == ([], [], [], [], [])
    assert all(ALLOWED.fullmatch(link) for link in found.links)
    items = [tag for tag in found.tags if tag in ("ul/li", "ul/li/details", "p/sub")]
    told = items.count("ul/li/details")
    assert items == ["ul/li", "ul/li/details"] * told + ["ul/li"] * (8 - told) + ["p/sub"]


def test_a_template_in_a_strangers_words_is_shown_as_it_was_written() -> None:
    shows = [name for name in QUICK if HARMLESS[0] in words_shown(name, HARMLESS[0]) and "refused" not in name]
    assert len(shows) > len(PLACES) / 2
    for name in shows:
        assert "{{7*7}} {% x %}" in words_shown(name, "{{7*7}} {% x %}"), name
        assert "{% if" in words_shown(name, "{% if {text} {what}"), name


def test_nothing_invisible_of_a_stranger_is_published() -> None:
    for name in QUICK:
        assert not INVISIBLE.search(PLACES[name](f"a{''.join(UNSEEN)}b")), name
        assert not INVISIBLE.search(PLACES[name](f"`a{''.join(UNSEEN)}b`")), name


@pytest.mark.parametrize("phrase", ["Duplicate of #3", "duplicate of octo/hub#3", "closes: GH-3"])
def test_no_line_says_for_a_person_that_it_is_a_duplicate_or_closes_anything(phrase: str) -> None:
    for name in QUICK:
        for text in (phrase, f"\n\n{phrase}\n", f"```\n{phrase}\n```", f"`{phrase}`", f"x\u2028{phrase}"):
            lines = [line.strip(' \t*_~“"') for line in PLACES[name](text).splitlines()]
            assert not [line for line in lines if ACTS.match(line)], name


def words_shown(name: str, text: str) -> str:
    return skeleton(name, text)[1].text.replace("\u200b", "")


def test_the_property_sees_what_a_comment_without_care_would_do() -> None:
    found = report("@octocat #1 ![](i) [x](https://evil.example) <h1>")
    assert found.mentions
    assert found.references
    assert found.images
    assert not ALLOWED.fullmatch("https://evil.example")
    assert not ALLOWED.fullmatch(f"https://github.com/{REPO}/issues/1")
    assert not ALLOWED.fullmatch(f"https://redirect.github.com/{REPO}/issues/1?x")
    assert set(TRANSCRIPTS) < set(PLACES)
