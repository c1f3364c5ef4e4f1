"""precedent smart-search: a search by words and by the work at hand."""

from __future__ import annotations

import argparse

from bot.cli import output
from bot.cli.arguments import Subparsers, add_place, memory_options, moment_asked_for, number, worktree_of
from bot.cli.output import SCHEMA, command_result, facts_of_answer, ranked_item, show_notes
from bot.local_cache.location import open_memory
from bot.questions.views import full_row


def run_smart_search(given: argparse.Namespace) -> object:
    from bot.questions.smart_search import smart

    words = " ".join(given.words)
    with open_memory(memory_options(given)) as place:
        keep = None if given.state == "all" else lambda card: card.state == given.state
        found = smart(
            words, worktree_of(place), place.local_cache, moment_asked_for(given), limit=given.limit, keep=keep
        )
        show_notes(place, found.unused)
        if given.json:
            hits = [full_row(one.card, place.home, score=round(one.score, 4), why=list(one.why)) for one in found.hits]
            shown: object = {"schema": SCHEMA, "hits": hits, **facts_of_answer(place, found.used, found.unused)}
        else:
            shown = output.list_text([ranked_item(one, place, words) for one in found.hits])
    return command_result(shown, given, found=bool(found.hits), searched=not place.missing)


def add_smart_search(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "smart-search",
        aliases=["ss"],
        help="the threads about some words, ranked by what is worked on here; without words, by that alone",
    )
    command.add_argument("words", nargs="*", metavar="WORDS", help="what to look for")
    command.add_argument("--state", choices=("open", "closed", "all"), default="all", help="only these (default all)")
    command.add_argument("--limit", type=number(1, 50), default=20, metavar="N", help="how many, 1 to 50 (default 20)")
    add_place(command)
