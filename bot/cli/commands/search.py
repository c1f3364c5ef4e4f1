"""precedent search, smart-search, what and related: the threads about some words, the work at hand, or files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli import output
from bot.cli.arguments import memory_options, moment_asked_for, worktree_of
from bot.cli.output import SCHEMA, command_result, facts_of_answer, progress, show_notes, wants_json, warn
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.location import open_memory
from bot.local_cache.messages import LocalMessages
from bot.local_cache.session_answers import also_in_sessions, sessions_about_work
from bot.questions.requests import (
    FilesRequest,
    SearchFilter,
    SmartSearch,
    WordSearch,
    WorkRequest,
    nothing_read,
)
from bot.questions.search import ThreadHits, search_memory
from bot.questions.views import (
    ItemSection,
    Row,
    full_row,
    hit_items,
    holds,
    linked_rows,
    passage_row,
    ranked_item,
    related_items,
    related_rows,
    said_rows,
    searched,
    session_hit_row,
    session_item,
    work_items,
    work_rows,
)
from bot.reading.search_query import search_query

if TYPE_CHECKING:
    from bot.domain.card import SessionHit
    from bot.questions.requests import ReadMessages
    from bot.questions.smart_search import SmartSearchAnswer
    from bot.reading.search_query import SearchQuery


def run_search(given: argparse.Namespace) -> object:
    if given.org is not None:
        from bot.cli.commands.org import search_folder  # other searches do without it

        return search_folder(given)
    author = (given.author or "").removeprefix("@")
    choice = SearchFilter(given.state, given.kind or "all", frozenset(given.label), author, given.since)
    words = " ".join(given.words)
    query = search_query(words, datetime.now(UTC))
    asked = WordSearch(words, choice, given.limit, given.expand, tuple(given.logs), query)
    if asked.is_of_sessions:
        from bot.local_cache.sessions import search_sessions  # other searches do without it

        said = search_sessions(asked, Path.cwd(), "--", progress, warn).passages
        heard: object = [passage_row(one) for one in said]
        return command_result(
            heard if given.json else output.passages_text(said, header=given.header), given, found=bool(said)
        )
    if asked.logs and not asked.takes_sessions:
        raise UserError("--logs names transcripts: leave out the other filters, or give --kind session")
    with open_memory(memory_options(given)) as place:
        cards = place.demand().local_cache
        hits = search_memory(asked, cards, _messages(given, query, place))
        sessions = also_in_sessions(asked, place)
        show_notes(place)
        if given.json:
            empty: Row = {"linked": []} if asked.expand else {}
            shown: object = [*_rows(hits, asked, place.home), *(session_hit_row(one) | empty for one in sessions)]
        else:
            shown = _lines(hits, sessions, asked, place.home, given.header)
        looked = searched(cards)
    return command_result(shown, given, found=bool(hits.found or sessions), looked=looked)


def _messages(given: argparse.Namespace, query: SearchQuery, place: LocalMemory) -> ReadMessages:
    """Reads messages where they are shown or compared: lines in a pipe have no passages, and are quicker without."""
    return LocalMessages(place) if given.json or output.is_seen() or query.phrases else nothing_read


def _rows(hits: ThreadHits, asked: WordSearch, home: str) -> list[Row]:
    words = asked.words
    rows = [
        full_row(
            one.card,
            home,
            score=round(one.score, 4),
            part=round(one.part, 4),
            why=holds(one.terms, words),
            passages=said_rows(hits.passages.get(one.card.id), home),
        )
        for one in hits.found
    ]
    if asked.expand:
        near = linked_rows(hits.near, home, full_row)
        for each in rows:
            each["linked"] = [one for one in near if one["of"] == each["id"]]
    return rows


def _lines(hits: ThreadHits, sessions: Sequence[SessionHit], asked: WordSearch, home: str, header: bool) -> str:
    sections = hit_items(hits, asked.words, home)
    said = [session_item(one) for one in sessions]
    if asked.expand:
        return output.sections_text([*sections, ItemSection("session", "Said in sessions", said)], header=header)
    return output.list_text([*sections[0].items, *said], header=header)


def run_smart_search(given: argparse.Namespace) -> object:
    from bot.questions.smart_search import smart

    words, keep = " ".join(given.words), SearchFilter(given.state).keeps
    with open_memory(memory_options(given)) as place:
        now = moment_asked_for(given)
        query = search_query(words, now)
        request = SmartSearch(words, worktree_of(place), now, given.limit, keep, query)
        found = smart(request, place.local_cache, _messages(given, query, place))
        show_notes(place, found.unused)
        if given.json:
            shown: object = {
                "schema": SCHEMA,
                "hits": _ranked_rows(found, place.home),
                **facts_of_answer(place, found.used, found.unused),
            }
        else:
            items = [ranked_item(one, place.home, words, found.passages.get(one.card.id)) for one in found.hits]
            shown = output.list_text(items, header=given.header)
        looked = searched(place.local_cache)
    return command_result(shown, given, found=bool(found.hits), searched=not place.missing, looked=looked)


def _ranked_rows(found: SmartSearchAnswer, home: str) -> list[Row]:
    return [
        full_row(
            one.card,
            home,
            score=round(one.score, 4),
            why=list(one.why),
            passages=said_rows(found.passages.get(one.card.id), home),
        )
        for one in found.hits
    ]


def run_what(given: argparse.Namespace) -> object:
    from bot.questions.what import find_what

    with open_memory(memory_options(given)) as place:
        worktree = worktree_of(place)
        sessions = sessions_about_work(place, worktree)
        found = find_what(WorkRequest(worktree, moment_asked_for(given)), place.local_cache, sessions)
        show_notes(place, found.unused)
        if wants_json(given):
            rows = work_rows(found, place.home, full_row)
            shown: object = {"schema": SCHEMA, **rows, **facts_of_answer(place, found.used, found.unused)}
        else:
            shown = output.sections_text(work_items(found, place.home), header=given.header)
    return command_result(shown, given, found=found.is_relevant, searched=not place.missing)


def run_related(given: argparse.Namespace) -> object:
    from bot.questions.related import find_related

    with open_memory(memory_options(given)) as place:
        place.demand()
        files = tuple(_within(place, file) for file in given.files)
        found = find_related(FilesRequest(files, moment_asked_for(given)), place.local_cache)
        show_notes(place)
        if given.json:
            shown: object = {"schema": SCHEMA, **related_rows(found, place.home)}
        else:
            shown = output.sections_text(related_items(found, place.home), header=given.header)
    return command_result(shown, given, found=bool(found.threads))


def _within(place: LocalMemory, file: str) -> str:
    """The file's path in the checkout, if it lies in one."""
    file = file.encode("utf-8", "replace").decode()  # a name that is not UTF-8 is in no thread
    if place.top is None:
        return file
    whole = Path(os.path.normpath(Path.cwd() / file))
    return whole.relative_to(place.top).as_posix() if whole.is_relative_to(place.top) and whole.exists() else file
