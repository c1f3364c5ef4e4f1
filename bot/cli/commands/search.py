"""precedent search: the threads and sessions with some words."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from bot.cli import output
from bot.cli.arguments import Subparsers, add_place, memory_options, number, since
from bot.cli.output import command_result, progress, show_notes, warn
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.location import open_memory
from bot.questions.search import SearchFilter, ThreadHits, WordSearch, search_memory
from bot.questions.views import Item, ItemSection, full_row, holds, linked_rows, passage_row, url_of


def run_search(given: argparse.Namespace) -> object:
    """The threads that speak of some words."""
    author = (given.author or "").removeprefix("@")
    choice = SearchFilter(given.state, given.kind or "all", frozenset(given.label), author, given.since)
    asked = WordSearch(" ".join(given.words), choice, given.limit, given.expand, tuple(given.logs))
    if asked.is_of_sessions:
        from bot.local_cache.sessions import search_sessions  # it loads what other searches do without

        said = search_sessions(asked, Path.cwd(), "--", progress, warn).passages
        heard: object = [passage_row(one) for one in said] if given.json else output.passages_text(said)
        return command_result(heard, given, found=bool(said))
    if asked.logs:
        raise UserError("--logs names transcripts: give --kind session with it")
    with open_memory(memory_options(given)) as place:
        hits = search_memory(asked, place.demand().local_cache)
        show_notes(place)
        shown: object = _rows(hits, asked, place) if given.json else _hits(hits, asked, place)
    return command_result(shown, given, found=bool(hits.found))


def _rows(hits: ThreadHits, asked: WordSearch, place: LocalMemory) -> list[dict[str, Any]]:
    words = asked.words
    rows = [
        full_row(one.card, place.home, score=round(one.score, 4), part=round(one.part, 4), why=holds(one.terms, words))
        for one in hits.found
    ]
    if asked.expand:
        near = linked_rows(hits.near, place.home, full_row)
        for each in rows:
            each["linked"] = [one for one in near if one["of"] == each["id"]]
    return rows


def _hits(hits: ThreadHits, asked: WordSearch, place: LocalMemory) -> str:
    found = [Item(one.card, url_of(one.card, place.home), one.score, (), asked.words) for one in hits.found]
    if not asked.expand:
        return output.list_text(found)
    near = [
        Item(hop.card, url_of(hop.card, place.home), None, tuple(each["why"]))
        for hop, each in zip(hits.near, linked_rows(hits.near, place.home), strict=True)
    ]
    return output.sections_text([ItemSection("hit", "Found", found), ItemSection("linked", "One link away", near)])


MAX_LIMIT = 1_000


def add_search(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """The parser of search."""
    command = commands.add_parser("search", help="the threads that speak of some words")
    command.add_argument("words", nargs="+", metavar="WORDS", help="what to look for")
    command.add_argument("--state", choices=("open", "closed", "all"), default="all", help="only these (default all)")
    command.add_argument(
        "--kind", choices=("issue", "pull", "page", "session"), help="only these (default: all but sessions)"
    )
    command.add_argument("--label", action="append", default=[], help="only with this label; again: with all of them")
    command.add_argument("--author", metavar="LOGIN", help="only what this account opened")
    command.add_argument(
        "--since", type=since, metavar="WHEN", help="only what changed since 2026-05-03, or in the last 7d, 4w, 6m, 1y"
    )
    command.add_argument(
        "--limit", type=number(1, MAX_LIMIT), default=10, metavar="N", help="how many, 1 to 1000 (default 10)"
    )
    command.add_argument("--expand", action="store_true", help="also what the hits link to, and what links to them")
    command.add_argument(
        "--logs", action="append", default=[], metavar="PATH",
        help="with --kind session: transcripts in this file, folder or glob; again for more",
    )  # fmt: skip
    add_place(command)
