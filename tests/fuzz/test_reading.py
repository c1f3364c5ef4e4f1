"""Text → meaning: any text can be read without an exception."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import reject

from bot.domain.thread import Thread
from bot.domain.thread_json import thread_from_archive
from bot.memory.shards import DIGESTS
from bot.reading.analyzer import body_terms, terms, tokens
from bot.reading.digest import digest
from bot.reading.endings.decisions import decisions
from bot.reading.endings.outcome import outcome
from bot.reading.markdown import first_paragraph, heading_lines, paragraphs, read, readable, sentences, statements
from bot.reading.pages import anchor_of, first_sentences, page_title, sections
from bot.reading.questions import recall_question
from bot.reading.references import MAX_NUMBER, find_references, find_title_references
from bot.reading.requests import MAX_COMMANDS, commands, without_commands
from bot.reading.signals import (
    find_errors,
    find_files,
    find_identifiers,
    keywords,
    normalise_error,
    quotations,
    strip_boilerplate,
    without_addresses,
)
from bot.reading.versions import compare_versions, read_day, read_version, reported_version
from tests.fuzz import inputs, seeds
from tests.fuzz.inputs import MAX_CHARS
from tests.fuzz.properties import fuzz

REPO = "octo-org/linkbarn"

TEXTS = inputs.texts(seeds.texts)
REQUESTS = inputs.texts(seeds.texts, ("/precedent ", "what did we decide about ", "#7", "`", "> "))
PAGES = inputs.texts(seeds.texts, ("# ", "---\n", "title: ", "|"))
WORDS = inputs.texts(seeds.texts, ("İ", "ﬁ", "日本語", "Straße", "camelCase", "ы"))
VERSIONS = inputs.texts(seeds.texts, ("1.", ".0", "-rc", "2026", "v", "nightly ", "+", "٣"))


@fuzz(TEXTS)
def test_a_reference_has_a_number_in_range_and_is_not_to_the_very_issue(text: str) -> None:
    references = [*find_references(text, repo=REPO, number=7, autolinks=("JIRA-",))]
    references += find_title_references(text[:1_024], repo=REPO, number=7)
    for reference in references:
        assert 0 < reference.number <= MAX_NUMBER
        assert reference.kind or reference.owner or reference.number != 7


@fuzz(TEXTS)
def test_a_document_is_not_much_longer_than_its_text(text: str) -> None:
    document = read(text)
    parts = (document.prose, document.code, document.quotes, document.inline_code)
    assert sum(len(piece) for part in parts for piece in part) <= 8 * len(text) + 100
    _ = document.runs
    for paragraph in document.prose[:20]:
        sentences(paragraph)


@fuzz(TEXTS)
def test_paragraphs_lie_within_readable_text(text: str) -> None:
    plain = readable(text)
    assert "\0" not in plain
    assert "\r" not in plain
    assert all(0 <= p.first <= plain.count("\n") for p in paragraphs(plain))


@fuzz(TEXTS)
def test_headings_lie_within_readable_text(text: str) -> None:
    plain = readable(text)
    assert all(0 <= h.first < h.after <= plain.count("\n") + 1 for h in heading_lines(plain, len(plain)))


@pytest.mark.parametrize(
    "reader",
    [
        *(first_paragraph, sentences, statements, page_title, without_commands),
        *(find_errors, find_files, without_addresses, strip_boilerplate, keywords, quotations),
        lambda text: normalise_error(text[:1_000]),
        lambda text: recall_question(text, repo=REPO),
    ],
)
@fuzz(REQUESTS | PAGES)
def test_any_text_can_be_read(reader: Callable[[str], object], text: str) -> None:
    reader(text)


@pytest.mark.parametrize("find", [find_errors, find_files, find_identifiers])
@fuzz(TEXTS)
def test_no_empty_text_is_found(find: Callable[[str], tuple[str, ...]], text: str) -> None:
    assert all(isinstance(item, str) and item for item in find(text))


@fuzz(REQUESTS)
def test_a_text_has_a_bounded_number_of_commands(text: str) -> None:
    assert len(commands(text, repo=REPO)) <= MAX_COMMANDS


@fuzz(PAGES)
def test_no_section_is_empty_and_no_excerpt_too_long(text: str) -> None:
    parts = sections(text)
    assert all(section.text or section.path for section in parts)
    for section in parts[:20]:
        assert len(first_sentences(section)) <= 2_000
        anchor_of(" ".join(section.path))


@fuzz(WORDS)
def test_no_term_is_empty_or_has_white_space_around(text: str) -> None:
    assert all(terms(text))
    all_terms = [*body_terms(text), *tokens(text)]
    assert all(all_terms)
    assert all(term.strip() == term for term in all_terms)


@fuzz(VERSIONS)
def test_any_two_versions_can_be_compared(text: str) -> None:
    for word, next_word in pairwise([text[:200], *text[:2_000].split()[:40]]):
        read_day(word)
        if read_version(word) and read_version(next_word):
            compare_versions(word, next_word)


def conversations() -> list[Any]:
    """Threads of the sample, and one made only of hostile texts."""
    attacks = [text for text in seeds.texts() if len(text) < 200][:20]
    comments = [{"author": "hubot", "association": "MEMBER", "created_at": seeds.AT, "body": text} for text in attacks]
    hostile = {"id": 7, "title": "x", "created_at": seeds.AT, "state": "closed", "closed_at": seeds.LATER}
    return [*seeds.threads(), hostile | {"author": "octocat", "body": "a" * (MAX_CHARS // 100), "comments": comments}]


def thread_of(fields: Any) -> Thread:
    """The thread of an archive's fields; fields that are no thread do not count as an input."""
    try:
        return thread_from_archive(fields)
    except (KeyError, TypeError, ValueError):
        reject()


@fuzz(inputs.structures(conversations))
def test_a_digest_is_one_line_of_bounded_length(fields: Any) -> None:
    line = DIGESTS.line(digest(thread_of(fields), repo=REPO))
    assert line
    assert "\n" not in line
    assert len(line.encode()) <= 24_000


@fuzz(inputs.structures(conversations))
def test_no_decision_is_empty(fields: Any) -> None:
    assert all(decision.text.strip() for decision in decisions(thread_of(fields)))


@fuzz(inputs.structures(conversations))
def test_the_quote_of_an_outcome_is_short(fields: Any) -> None:
    thread = thread_of(fields)
    assert len(outcome(thread, REPO).quote or "") <= 300
    reported_version(thread, REPO)
