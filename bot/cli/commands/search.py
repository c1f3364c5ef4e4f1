"""precedent search: the threads and sessions with some words."""

from __future__ import annotations

import argparse
from pathlib import Path

from bot.cli import output
from bot.cli.arguments import memory_options
from bot.cli.output import command_result, progress, show_notes, warn
from bot.errors import UserError
from bot.local_cache.location import open_memory
from bot.questions.requests import SearchFilter, WordSearch
from bot.questions.search import ThreadHits, search_memory
from bot.questions.views import Row, full_row, hit_items, holds, linked_rows, passage_row


def run_search(given: argparse.Namespace) -> object:
    """Show the threads, or the messages of sessions, that hold some words."""
    author = (given.author or "").removeprefix("@")
    choice = SearchFilter(given.state, given.kind or "all", frozenset(given.label), author, given.since)
    asked = WordSearch(" ".join(given.words), choice, given.limit, given.expand, tuple(given.logs))
    if asked.is_of_sessions:
        from bot.local_cache.sessions import search_sessions  # other searches do without it

        said = search_sessions(asked, Path.cwd(), "--", progress, warn).passages
        heard: object = [passage_row(one) for one in said]
        return command_result(
            heard if given.json else output.passages_text(said, header=given.header), given, found=bool(said)
        )
    if asked.logs:
        raise UserError("--logs names transcripts: give --kind session with it")
    with open_memory(memory_options(given)) as place:
        hits = search_memory(asked, place.demand().local_cache)
        show_notes(place)
        shown: object = _rows(hits, asked, place.home) if given.json else _lines(hits, asked, place.home, given.header)
    return command_result(shown, given, found=bool(hits.found))


def _rows(hits: ThreadHits, asked: WordSearch, home: str) -> list[Row]:
    words = asked.words
    rows = [
        full_row(one.card, home, score=round(one.score, 4), part=round(one.part, 4), why=holds(one.terms, words))
        for one in hits.found
    ]
    if asked.expand:
        near = linked_rows(hits.near, home, full_row)
        for each in rows:
            each["linked"] = [one for one in near if one["of"] == each["id"]]
    return rows


def _lines(hits: ThreadHits, asked: WordSearch, home: str, header: bool) -> str:
    sections = hit_items(hits, asked.words, home)
    if asked.expand:
        return output.sections_text(sections, header=header)
    return output.list_text(sections[0].items, header=header)
