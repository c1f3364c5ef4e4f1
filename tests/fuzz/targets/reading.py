"""Text → meaning: any text can be read without an exception."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from bot.domain.thread import Thread
from bot.domain.thread_json import thread_from_archive
from bot.memory.shards import DIGESTS
from bot.reading.analyzer import body_terms, terms, tokens
from bot.reading.digest import digest
from bot.reading.endings.decisions import decisions
from bot.reading.endings.outcome import outcome
from bot.reading.markdown import first_paragraph, heading_lines, paragraphs, read, readable, sentences, statements
from bot.reading.pages import anchor_of, first_sentences, page_title, sections
from bot.reading.references import MAX_NUMBER, find_references, find_title_references
from bot.reading.requests import MAX_COMMANDS, commands, recall_question, without_commands
from bot.reading.signals import (
    find_errors,
    find_files,
    find_identifiers,
    find_versions,
    keywords,
    normalise_error,
    quotations,
    read_signals,
    strip_boilerplate,
    without_addresses,
)
from bot.reading.versions import compare_versions, read_day, read_version, reported_version
from bot.settings.schema import Settings
from tests.fuzz import seeds
from tests.fuzz.target import MAX_CHARS, Target, require

REPO = "octo-org/linkbarn"
INTENT = ("/precedent ", "what did we decide about ", "#7", "`", "> ")
PHRASES = Settings().recall_phrases


def _references(text: str) -> None:
    references = [*find_references(text, repo=REPO, number=7, autolinks=("JIRA-",))]
    references += find_title_references(text[:1_024], repo=REPO, number=7)
    for reference in references:
        require(0 < reference.number <= MAX_NUMBER, f"the number {reference.number!r:.40}")
        require(reference.kind or reference.owner or reference.number != 7, "a reference to the very issue")


def _markdown(text: str) -> None:
    document = read(text)
    parts = (document.prose, document.code, document.quotes, document.inline_code)
    shown = sum(len(piece) for part in parts for piece in part)
    require(shown <= 8 * len(text) + 100, f"{shown} characters were read out of {len(text)}")
    _ = document.runs
    for paragraph in document.prose[:20]:
        sentences(paragraph)


def _paragraphs(text: str) -> None:
    plain = readable(text)
    require("\0" not in plain and "\r" not in plain, "readable text holds a NUL or a carriage return")
    rows = plain.count("\n") + 1
    require(all(0 <= p.first < rows for p in paragraphs(plain)), "a paragraph outside the text")


def _headings(text: str) -> None:
    plain = readable(text)
    rows = plain.count("\n") + 1
    require(all(0 <= h.first < h.after <= rows for h in heading_lines(plain)), "a heading outside the text")


def _signals(text: str) -> None:
    read_signals(text)
    normalise_error(text[:1_000])


def _without(text: str) -> None:
    without_addresses(text)
    strip_boilerplate(text)


def _keywords(text: str) -> None:
    keywords(text)
    quotations(text)


def _finds_texts(find: Callable[[str], tuple[str, ...]]) -> Callable[[str], None]:
    def run(text: str) -> None:
        require(all(isinstance(item, str) and item for item in find(text)), f"{find.__name__} finds an empty text")

    return run


def _commands(text: str) -> None:
    require(len(commands(text, repo=REPO)) <= MAX_COMMANDS, "too many commands")


def _question(text: str) -> None:
    recall_question(text, PHRASES, repo=REPO)


def _sections(text: str) -> None:
    parts = sections(text)
    require(all(section.text or section.path for section in parts), "an empty section")
    for section in parts[:20]:
        require(len(first_sentences(section)) <= 2_000, "an excerpt that is too long")
        anchor_of(" ".join(section.path))


def _words(text: str) -> None:
    require(all(terms(text)), "an empty term")


def _terms(text: str) -> None:
    all_terms = [*body_terms(text), *tokens(text)]
    require(all(all_terms) and all(term.strip() == term for term in all_terms), "an empty term")


def _versions(text: str) -> None:
    words = text[:2_000].split()[:40]
    for word, next_word in pairwise([text[:200], *words]):
        first, second = read_version(word), read_version(next_word)
        read_day(word)
        if first and second:
            compare_versions(word, next_word)


def _of_thread(check: Callable[[Thread], object]) -> Callable[[Any], None]:
    """Read a thread from an archive's fields and check it; fields that are no thread are skipped."""

    def run(fields: Any) -> None:
        try:
            thread = thread_from_archive(fields)
        except (KeyError, TypeError, ValueError):
            return
        check(thread)

    return run


def _digest(thread: Thread) -> None:
    thread_digest = digest(thread, repo=REPO)
    line = DIGESTS.line(thread_digest)
    require(line is not None and "\n" not in line, "a digest is not one line")
    require(len((line or "").encode()) <= 24_000, f"a digest of {len(line or '')} characters")


def _decisions(thread: Thread) -> None:
    for decision in decisions(thread):
        require(decision.text.strip(), "an empty decision")


def _outcome(thread: Thread) -> None:
    thread_outcome = outcome(thread, REPO)
    require(len(thread_outcome.quote or "") <= 300, "a quote that is too long")
    reported_version(thread, REPO)


def _conversations() -> list[Any]:
    """Threads of the sample, and one made only of hostile texts."""
    attacks = [text for text in seeds.texts() if len(text) < 200][:20]
    comments = [{"author": "hubot", "association": "MEMBER", "created_at": seeds.AT, "body": text} for text in attacks]
    hostile = {"id": 7, "title": "x", "created_at": seeds.AT, "state": "closed", "closed_at": seeds.LATER}
    return [*seeds.threads(), hostile | {"author": "octocat", "body": "a" * (MAX_CHARS // 100), "comments": comments}]


_FINDERS = tuple(map(_finds_texts, (find_errors, find_files, find_versions, find_identifiers)))

TARGETS = (
    Target("references", "text", seeds.texts, _references),
    Target("markdown", "text", seeds.texts, _markdown, more=(_paragraphs, _headings, first_paragraph, sentences)),
    Target("signals", "text", seeds.texts, _signals, more=(_without, _keywords, *_FINDERS)),
    Target("intent", "text", seeds.texts, _commands, tokens=INTENT, more=(without_commands, _question, statements)),
    Target("sections", "text", seeds.texts, _sections, tokens=("# ", "---\n", "title: ", "|"), more=(page_title,)),
    Target(
        "words", "text", seeds.texts, _words, tokens=("İ", "ﬁ", "日本語", "Straße", "camelCase", "ы"), more=(_terms,)
    ),
    Target("versions", "text", seeds.texts, _versions, tokens=("1.", ".0", "-rc", "2026", "v", "nightly ", "+", "٣")),
    Target("digest", "json", _conversations, _of_thread(_digest)),
    Target("decisions", "json", _conversations, _of_thread(_decisions)),
    Target("outcome", "json", _conversations, _of_thread(_outcome)),
)
