"""Eight times the text takes each of our readers about eight times as long, whatever a stranger fills it with.

All texts are tried with all readers every night; a change is checked with a sixteenth of them, another one for each
reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from bot.comment import defang
from bot.comment.clean_text import log_line
from bot.comment.marker import read_seal
from bot.comment.prompt import as_markdown, as_xml, visible
from bot.comment.shown import shown_html
from bot.domain.answer import CondensedTurn, Context, Mention
from bot.domain.thread import Message, Thread
from bot.reading.analyzer import body_terms, terms
from bot.reading.digest import digest
from bot.reading.endings.decisions import decisions
from bot.reading.endings.outcome import outcome
from bot.reading.html import pieces
from bot.reading.markdown import first_paragraph, read, readable, sentences, statements
from bot.reading.pages import first_sentences, page_title, sections
from bot.reading.questions import recall_question
from bot.reading.references import find_references, find_title_references
from bot.reading.requests import commands, without_commands
from bot.reading.search_query import search_query
from bot.reading.signals import find_errors, find_files, keywords, strip_boilerplate
from bot.reading.versions import read_version, reported_version
from bot.recall.comparison import read_lines, shared_runs, without_lines
from bot.recall.condense import condense, condense_body
from bot.recall.library import similar_query
from bot.recall.reasons import opening, reasons, shared_signals
from tests.examples import share
from tests.index.word_query import word_query
from tests.reading.linear_time import too_slow
from tests.threats.corpus import PIECES, repeat

BEYOND = 262_144
LENGTHS = {"as long as GitHub accepts": (8_192, 65_536), "four times as long": (65_536, BEYOND)}
FLOOR = 0.1
"""Seconds for the longer text below which a measurement means nothing."""

DAY = datetime(2025, 6, 1, tzinfo=UTC)


def thread(text: str) -> Thread:
    """A closed thread in which the reporter, a maintainer and a bystander all write the same."""
    messages = [Message(login, role, DAY + timedelta(days=n), text) for n, (login, role) in enumerate(
        (("octocat", "NONE"), ("monalisa", "OWNER"), ("hubot", "CONTRIBUTOR")))]  # fmt: skip
    closed = DAY + timedelta(days=3)
    return Thread(1, text[:256], text, "octocat", DAY, state="closed", closed_at=closed, closed_by="monalisa",
                  comments=tuple(messages))  # fmt: skip


def opened(text: str) -> Thread:
    return Thread(2, text[:256], text, "octocat", DAY)


def on_thread(reader: Callable[[Thread], object]) -> Callable[[str], object]:
    return lambda text: reader(thread(text))


def explain_match(text: str) -> object:
    question, match = opened(text), thread(text)
    question_opening = opening(question.title, question.body)
    strongest = dict.fromkeys(terms(text[:4_000])[:8], True)
    return reasons(question_opening.text, shared_signals(question_opening, opening(match.title, match.body)), strongest)


def drop_shared_lines(text: str) -> object:
    parsed = read_lines(text)
    return without_lines(text, {run.line.position for run in shared_runs(parsed, parsed)})


def context_files(text: str) -> object:
    context = Context(mentioned=(Mention(1, text, "open", conversation=(CondensedTurn(text, text, DAY, text),)),))
    return as_xml(context), as_markdown(context)


TEXTS: dict[str, Callable[[str], object]] = {
    "markdown": lambda text: (read.__wrapped__(text), readable(text), first_paragraph(text)),  # type: ignore[attr-defined]
    "tags": lambda text: list(pieces(text)),
    "sentences": sentences,
    "statements": statements,
    "references": lambda text: find_references(text, repo="octo-org/hello-world"),
    "references of a title": find_title_references,
    "signals": lambda text: (find_errors(text), find_files(text), strip_boilerplate(text)),
    "words": body_terms,
    "keywords": keywords,
    "versions": read_version,
    "commands": lambda text: (commands(f"/precedent off\n\n{text}"), commands(f"/precedent search {text}")),
    "text without commands": lambda text: without_commands(f"/precedent off\n\n{text}"),
    "questions": lambda text: recall_question(f"what did we decide about {text}"),
    "questions in Chinese": lambda text: recall_question(f"关于{text}我们决定了什么"),
    "sections": lambda text: (page_title(text), [first_sentences(part) for part in sections(text)]),
    "condensed body": condense_body,
    "shared lines": drop_shared_lines,
    "search": lambda text: search_query(f"what, {text}", DAY, strict=False).unused,
    "query": lambda text: (similar_query(opened(text)), word_query(text)),
    "defanged line": lambda text: defang.inline(text, BEYOND),
    "defanged quote": lambda text: defang.prose(text, BEYOND),
    "defanged code": lambda text: defang.code_span(text, BEYOND),
    "defanged conversation": lambda text: defang.block(text, BEYOND),
    "defanged link": lambda text: defang.link(text, f"https://github.com/{text}", BEYOND),
    "comment on a page": shown_html,
    "hidden text": visible,
    "context files": context_files,
    "log line": log_line,
    "seal": read_seal,
}

THREADS: dict[str, Callable[[str], object]] = {
    "asked version": lambda text: reported_version(opened(text), "octo-org/hello-world"),
    "decisions": on_thread(decisions),
    "outcome": on_thread(outcome),
    "digest": on_thread(digest),
    "condensed": on_thread(lambda issue: condense(issue, Counter({"word": 1}), 5000)),
    "why": explain_match,
}

READERS = {**TEXTS, **THREADS}

NESTED = {
    "lists in lists": lambda length: "".join(f"{'  ' * depth}- a\n" for depth in range(int(length**0.5))),
    "quotes in quotes": lambda length: "".join(f"{'>' * depth} a\n" for depth in range(int((2 * length) ** 0.5))),
    "brackets around": lambda length: "[" * (length // 2) + "]" * (length // 2),
    "links around": lambda length: "[" * (length // 5) + "](a)" * (length // 5),
    "stars around": lambda length: "*a " * (length // 6) + " a*" * (length // 6),
    "ticks of all lengths": lambda length: "".join("`" * n + " " for n in range(1, int((2 * length) ** 0.5))),
    "fences of all lengths": lambda length: "".join("`" * n + "\n" for n in range(3, int((2 * length) ** 0.5))),
    "one long line": lambda length: "word " * (length // 5),
    "definitions and uses": lambda length: (
        "".join(f"[a{n}]: b\n" for n in range(length // 20)) + "[a1] " * (length // 10)
    ),
    "elements around": lambda length: "<b>" * (length // 7) + "</b>" * (length // 7),
    "tables": lambda length: "|a" * (length // 8) + "\n" + "|-" * (length // 8) + "\n" + "|b" * (length // 8),
    "tables of short rows": lambda length: (
        ("|a" * 256 + "\n" + "|-" * 256 + "\n" + "b\n" * 256 + "\n") * (length // 1538)
    ),
    "one table of short rows": lambda length: "|a" * 256 + "\n" + "|-" * 256 + "\n" + "b\n" * (length // 2),
    "a command in a wide table": lambda length: (
        "a|" * (length // 6) + "\n" + "-|" * (length // 6) + "\n/precedent search a" + "|b" * (length // 6)
    ),
    "different definitions": lambda length: "".join(f"[a{n}]: /b{n} 'c'\n" for n in range(length // 22)),
    "stars of all lengths": lambda length: "".join("*" * (n % 3 + 1) + "a " * (n % 2) for n in range(length // 3)),
    "different words": lambda length: " ".join(f"word{n}x" for n in range(length // 10)),
    "different numbers": lambda length: " ".join(f"#{n}" for n in range(1, length // 7)),
    "different errors": lambda length: "".join(f"E{n}Error: word{n} failed\n" for n in range(length // 28)),
    "different versions": lambda length: " ".join(f"1.{n}.0" for n in range(length // 9)),
    "different mentions": lambda length: " ".join(f"@user{n}" for n in range(length // 10)),
}


def text_of(piece: str, length: int) -> str:
    return NESTED[piece](length)[:length] if piece in NESTED else repeat(piece, length)


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [next(iter(LENGTHS)), pytest.param("four times as long", marks=pytest.mark.night)])
@pytest.mark.parametrize("name", READERS)
def test_no_reader_takes_more_than_linear_time(name: str, lengths: str) -> None:
    is_short = lengths == "as long as GitHub accepts"
    pieces = share([*(PIECES if is_short else PIECES[::6]), *NESTED], 32, [*READERS].index(name))
    slow = {piece: too_slow(READERS[name], partial(text_of, piece), LENGTHS[lengths], FLOOR) for piece in pieces}
    assert {piece: measurement for piece, measurement in slow.items() if measurement} == {}
