"""The commands that ask the memory: search, smart-search, what and related."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.comment.visible import one_line
from bot.doors import listing
from bot.doors.choosing import Choice, ThreadHits, WordSearch, in_memory, in_sessions
from bot.doors.items import Item, Section
from bot.doors.located import Place, Where
from bot.doors.output import Verdict
from bot.doors.place import opened
from bot.doors.progress import progress
from bot.doors.rows import full, holds, linked, passage, ruled, url_of, work_rows
from bot.errors import UserError

if TYPE_CHECKING:
    from bot.recall.checkout import Checkout
    from bot.recall.smart import Ranked
    from bot.recall.work import Ruled

SCHEMA = 1
"""Of the answers that are objects. Fields are added to it, and none is renamed or taken away."""

NOTHING = "Nothing relevant."


def run_search(given: argparse.Namespace) -> object:
    """The threads that speak of some words."""
    author = (given.author or "").removeprefix("@")
    choice = Choice(given.state, given.kind or "all", frozenset(given.label), author, given.since)
    asked = WordSearch(" ".join(given.words), choice, given.limit, given.expand, tuple(given.logs))
    if asked.is_of_sessions:
        said = in_sessions(asked, Path.cwd(), "--", progress).passages
        heard: object = [passage(one) for one in said] if given.json else listing.passages(said)
        return answered(heard, given, found=bool(said))
    if asked.logs:
        raise UserError("--logs names transcripts: give --kind session with it")
    with opened(where_of(given)) as place:
        hits = in_memory(asked, place.demand().glance)
        tell(place)
        shown: object = _rows(hits, asked, place) if given.json else _hits(hits, asked, place)
    return answered(shown, given, found=bool(hits.found))


def run_smart_search(given: argparse.Namespace) -> object:
    """The threads about some words, or about what is worked on here."""
    from bot.recall.smart import smart

    words = " ".join(given.words)
    with opened(where_of(given)) as place:
        keep = None if given.state == "all" else lambda card: card.state == given.state
        found = smart(words, checkout_of(place), place.glance, now(given), limit=given.limit, keep=keep)
        tell(place, found.unused)
        if given.json:
            hits = [full(one.card, place.home, score=round(one.score, 4), why=list(one.why)) for one in found.hits]
            shown: object = {"schema": SCHEMA, "hits": hits, **_about(place, found.used, found.unused)}
        else:
            shown = listing.listed([_ranked(one, place, words) for one in found.hits])
    return answered(shown, given, found=bool(found.hits), searched=not place.missing)


def run_what(given: argparse.Namespace) -> object:
    """What is related to the branch, decided about its files, still open, and was decided last."""
    from bot.recall.work import what

    with opened(where_of(given)) as place:
        found = what(checkout_of(place), place.glance, now(given))
        tell(place, found.unused)
        if wants_json(given):
            shown: object = {
                "schema": SCHEMA,
                **work_rows(found, place.home, full),
                **_about(place, found.used, found.unused),
            }
        else:
            shown = listing.sections(
                [
                    Section("related", "Related to this branch", [_ranked(one, place) for one in found.related]),
                    Section("decision", "Decided about its files", [_ruled(one, place) for one in found.decisions]),
                    Section("task", "Open tasks", [_ranked(one, place) for one in found.tasks]),
                    Section("recent", "Decided last", [_ruled(one, place) for one in found.recent]),
                ]
            )
    return answered(shown, given, found=found.is_relevant, searched=not place.missing)


def run_related(given: argparse.Namespace) -> object:
    """The threads that name some files, and what was decided in them."""
    from bot.recall.work import related

    with opened(where_of(given)) as place:
        place.demand()
        found = related([_within(place, file) for file in given.files], place.glance, now(given))
        tell(place)
        if given.json:
            shown: object = {
                "schema": SCHEMA,
                "threads": [full(one.card, place.home, why=list(one.why)) for one in found.threads],
                "decisions": [ruled(one, place.home, full) for one in found.decisions],
            }
        else:
            shown = listing.sections(
                [
                    Section("thread", "Threads that name them", [_ranked(one, place) for one in found.threads]),
                    Section("decision", "Decided there", [_ruled(one, place) for one in found.decisions]),
                ]
            )
    return answered(shown, given, found=bool(found.threads))


def where_of(given: argparse.Namespace) -> Where:
    """Where these options say that the memory is."""
    named = given.store, given.repo or "", given.memory_branch or ""
    return Where(Path.cwd(), *named, given.refresh, given.offline, progress)


def checkout_of(place: Place) -> Checkout:
    """What the checkout here tells, as far as there is one."""
    from bot.doors.worktree import look

    return look(place.top or Path.cwd())


def tell(place: Place, more: Iterable[str] = ()) -> None:
    """What somebody should know of the answer, a line for each on stderr."""
    lines = [*place.missing.split("\n"), *place.note.split("\n"), *(f"Not used: {line}." for line in more)]
    for line in filter(None, lines):
        print(one_line(line), file=sys.stderr)


def _about(place: Place, used: Sequence[str], unused: Sequence[str]) -> dict[str, Any]:
    """What an answer says of itself: the signals that counted, those that did not, and what to know of the memory."""
    notes = [one_line(line) for line in (*place.missing.split("\n"), *place.note.split("\n")) if line]
    return {"used": used, "unused": unused, "notes": notes, "searched": place.glance.size}


def answered(shown: object, given: argparse.Namespace, *, found: bool, searched: bool = True) -> Verdict:
    """The answer, and the exit code that it ends with. ``searched``: there is a memory to search."""
    if searched and not found and not wants_json(given):
        print(NOTHING, file=sys.stderr)
    return Verdict(shown, 1 if getattr(given, "exit_code", False) and not found else 0)


def wants_json(given: argparse.Namespace) -> bool:
    """Whether data is asked for: `context --branch` says so by its format."""
    return bool(getattr(given, "json", False)) or getattr(given, "format", "") == "json"


def now(given: argparse.Namespace) -> datetime:
    """The moment that the answer is given for: `context --branch` may name another."""
    return getattr(given, "as_of", None) or datetime.now(UTC)


def _rows(hits: ThreadHits, asked: WordSearch, place: Place) -> list[dict[str, Any]]:
    words = asked.words
    rows = [
        full(one.card, place.home, score=round(one.score, 4), part=round(one.part, 4), why=holds(one.terms, words))
        for one in hits.found
    ]
    if asked.expand:
        near = linked(hits.near, place.home, full)
        for each in rows:
            each["linked"] = [one for one in near if one["of"] == each["id"]]
    return rows


def _hits(hits: ThreadHits, asked: WordSearch, place: Place) -> str:
    found = [Item(one.card, url_of(one.card, place.home), one.score, (), asked.words) for one in hits.found]
    if not asked.expand:
        return listing.listed(found)
    near = [
        Item(hop.card, url_of(hop.card, place.home), None, tuple(each["why"]))
        for hop, each in zip(hits.near, linked(hits.near, place.home), strict=True)
    ]
    return listing.sections([Section("hit", "Found", found), Section("linked", "One link away", near)])


def _ranked(one: Ranked, place: Place, words: str = "") -> Item:
    return Item(one.card, url_of(one.card, place.home), one.score or None, one.why, words)


def _ruled(one: Ruled, place: Place) -> Item:
    card = one.card._replace(decisions=(one.ruling,))
    return Item(card, url_of(card, place.home), why=(one.why,), said=one.ruling.text)


def _within(place: Place, file: str) -> str:
    """The file as the checkout calls it, where it lies in one."""
    file = file.encode("utf-8", "replace").decode()  # a name that is no UTF-8 is in no thread
    if place.top is None:
        return file
    whole = Path(os.path.normpath(Path.cwd() / file))
    return whole.relative_to(place.top).as_posix() if whole.is_relative_to(place.top) and whole.exists() else file
