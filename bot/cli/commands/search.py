"""precedent search, smart-search, what and related: finds threads about words, the work at hand, or files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli import output
from bot.cli.arguments import number, one_of, past_moment, worktree_of
from bot.cli.options import (
    QuestionArguments,
    TableArguments,
    argument,
    flag,
    option,
    org_option,
    path_argument,
    state_option,
)
from bot.cli.output import SCHEMA_VERSION, CommandResult, facts_of_answer, progress, show_notes, warn
from bot.domain.card import Worktree
from bot.domain.kinds import Kind
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.location import open_memory
from bot.local_cache.messages import LocalMessages
from bot.local_cache.session_answers import also_at_work, also_in_sessions
from bot.questions.fields import (
    LINKED_FIELDS,
    SEARCH_FIELDS,
    SESSION_PASSAGE_FIELDS,
    Item,
    Row,
    rows_of,
)
from bot.questions.requests import (
    WordSearch,
    WorkRequest,
    asked_by,
    nothing_read,
)
from bot.questions.search import search_memory
from bot.questions.views import (
    ItemSection,
    hit_items,
    linked_items,
    search_scope,
    session_item,
    work_items,
    work_rows,
)
from bot.reading.search_query import given_filters, search_query

if TYPE_CHECKING:
    from bot.domain.card import CardId
    from bot.questions.requests import ReadMessages
    from bot.reading.search_query import SearchQuery


class SearchArguments(TableArguments):
    words: list[str] = argument("WORDS", "the words to look for", nargs="+")
    state: str = state_option()
    kind: str | None = option("only this kind (default: all)", **one_of(*(kind.value for kind in Kind)))
    label: list[str] = option(
        "only threads with this label; if repeated, with all of them", action="append", default=[]
    )
    author: str | None = option("only threads that this account opened", metavar="LOGIN")
    since: datetime | None = option(
        "only threads changed since 2026-05-03, or in the last 7d, 4w, 6m, 1y", type=past_moment, metavar="WHEN"
    )
    limit: int = option("how many, 1 to 1000 (default 10)", type=number(1, 1_000), default=10, metavar="N")
    expand: bool = flag("add threads that link to the hits or are linked from them")
    org: str | None = org_option(
        "search many repositories: those of this folder (`precedent org list`)", nargs="?", const=""
    )
    logs: list[str] = option(
        "also search the transcripts in this file, folder or glob; may be repeated",
        action="append",
        default=[],
        metavar="PATH",
    )


class SmartSearchArguments(TableArguments):
    words: list[str] = argument("WORDS", "the words to look for (none: your current work)", nargs="*")
    state: str = state_option()
    limit: int = option("how many, 1 to 50 (default 20)", type=number(1, 50), default=20, metavar="N")


class WhatArguments(TableArguments):
    pass


class RelatedArguments(TableArguments):
    files: list[str] = path_argument(
        "a file or folder, relative to this folder or as threads write it", nargs="+", type=str
    )


_SINGLE_MEMORY_OPTIONS = ("store", "repo", "memory_branch", "refresh", "offline", "expand", "logs")
"""Options of a search that select a single memory, or that an organisation's index does not support."""


def run_search(args: SearchArguments) -> object:
    author = (args.author or "").removeprefix("@")
    filters = given_filters(args.state, args.kind or "all", args.label, author, args.since)
    words = " ".join(args.words)
    query = search_query(words, datetime.now(UTC), given=filters)
    request = WordSearch(words, query, args.limit, args.expand, tuple(args.logs))
    if args.org is not None:
        from bot.cli.commands.org import search_many  # other searches do not need it

        if wrong := [name for name in _SINGLE_MEMORY_OPTIONS if getattr(args, name)]:
            raise UserError(f"--{wrong[0].replace('_', '-')} is for a search in one repository: leave it or --org out")
        return search_many(args, args.org, request, partial(_message_reader, args, query))
    if request.is_of_sessions:
        from bot.local_cache.sessions import search_sessions  # other searches do not need it

        answer = search_sessions(request, Path.cwd(), "--", progress)
        for note in (*answer.notes, *answer.searched):
            warn(note)
        passages = answer.found[0].passages
        rows: object = rows_of(SESSION_PASSAGE_FIELDS, passages)
        found = rows if args.json else output.passages_text(passages, header=args.header)
        return args.result(found, found=bool(passages))
    if request.logs and not request.takes_sessions:
        raise UserError("--logs names transcripts: leave out the other filters, or give --kind session")
    with open_memory(args.memory) as memory:
        cards = memory.require().local_cache
        request = asked_by(request, memory.questions, datetime.now(UTC))
        hits = search_memory(request, cards, _message_reader(args, request.query, memory))
        sessions = also_in_sessions(request, memory)
        show_notes(memory, request.query.unused, (*sessions.notes, *sessions.searched))
        items, on_sessions = hit_items(hits, words, memory.home), [session_item(hit) for hit in sessions.found]
        linked = linked_items(hits.linked, memory.home)
        if args.json:
            shown: object = _hit_rows([*items, *on_sessions], linked, request, memory.home)
        elif request.expand:
            sections = ItemSection("hit", "Found", items), ItemSection("linked", "One link away", linked)
            said = ItemSection("session", "Said in sessions", on_sessions)
            shown = output.sections_text([*sections, said], header=args.header)
        else:
            shown = output.list_text([*items, *on_sessions], header=args.header)
        coverage = search_scope(cards)
    return args.result(shown, found=bool(hits.hits or sessions.found), coverage=coverage)


def _message_reader(args: QuestionArguments, query: SearchQuery, memory: LocalMemory) -> ReadMessages:
    """Reads messages only if they are shown or compared: lines in a pipe have no passages, and are faster without."""
    is_needed = args.json or output.is_terminal() or query.phrases or query.is_question
    return LocalMessages(memory) if is_needed else nothing_read


def _hit_rows(items: Sequence[Item], linked: Sequence[Item], request: WordSearch, home: str) -> list[Row]:
    rows = rows_of(SEARCH_FIELDS, items, home)
    if request.expand:
        links = rows_of(LINKED_FIELDS, linked, home)
        for each in rows:
            each["linked"] = [hit for hit in links if hit["of"] == each["id"]]
    return rows


def run_smart_search(args: SmartSearchArguments) -> CommandResult:
    words, now = " ".join(args.words), args.now

    def ask(memory: LocalMemory) -> WorkRequest:
        query = search_query(words, now, memory.questions, given=given_filters(args.state))
        return WorkRequest(worktree_of(memory), now, words, args.limit, query, is_search=True)

    return _answer_work(args, ask)


def run_what(args: WhatArguments) -> CommandResult:
    return _answer_work(args, lambda memory: WorkRequest(worktree_of(memory), args.now))


def run_related(args: RelatedArguments) -> CommandResult:
    def ask(memory: LocalMemory) -> WorkRequest:
        files = tuple(_path_in_checkout(memory.require(), file) for file in args.files)
        return WorkRequest(Worktree(), args.now, files=files)

    return _answer_work(args, ask)


def _answer_work(args: TableArguments, ask: Callable[[LocalMemory], WorkRequest]) -> CommandResult:
    from bot.questions.work import find_for_work

    with open_memory(args.memory) as memory:
        request, cards = ask(memory), memory.local_cache
        answer = find_for_work(request, cards, _message_reader(args, request.query, memory))
        sessions = also_at_work(request, memory)
        show_notes(memory, answer.unused, (*sessions.notes, *sessions.searched))
        if args.json:
            rows = work_rows(answer, request, sessions.found, memory.home)
            facts = {} if request.files else facts_of_answer(memory, answer.used, answer.unused, sessions.notes)
            shown: object = {"schema": SCHEMA_VERSION, **rows, **facts}
        else:
            shown = _sections_text(work_items(answer, request, sessions.found, memory.home), request, args)
        coverage = search_scope(cards) if request.is_search else ""
    found = answer.is_relevant or bool(sessions.found)
    return args.result(shown, found=found, has_memory=not memory.missing, coverage=coverage)


def _sections_text(sections: Sequence[ItemSection], request: WorkRequest, args: TableArguments) -> str:
    if request.is_search:
        return output.list_text([item for section in sections for item in section.items], header=args.header)
    is_short = output.is_terminal() and not request.files
    return output.sections_text(_each_once(sections) if is_short else sections, header=args.header)


def _each_once(sections: Sequence[ItemSection]) -> list[ItemSection]:
    """The sections with each thread only in its first one, for all the reasons, with its decision."""
    items: dict[CardId, Item] = {}
    for item in (item for section in sections for item in section.items):
        first = items.setdefault(item.card.id, item)
        why = tuple(dict.fromkeys((*first.why, *item.why)))
        items[item.card.id] = first._replace(why=why, decision=first.decision or item.decision)
    return [
        section._replace(items=[items.pop(item.card.id) for item in section.items if item.card.id in items])
        for section in sections
    ]


def _path_in_checkout(memory: LocalMemory, file: str) -> str:
    """The path of a file or folder in the checkout, if it is inside one; a folder as in ``./linkbarn/auth/``."""
    file = file.encode("utf-8", "replace").decode()  # a name that is not UTF-8 is in no thread
    path = Path(os.path.normpath(Path.cwd() / file))
    if memory.top is None or not file or not path.is_relative_to(memory.top) or not path.exists():
        return file
    name = path.relative_to(memory.top).as_posix()
    return f"./{name}/" if path.is_dir() else name
