"""precedent smart-search: a search by words and by the work at hand."""

from __future__ import annotations

import argparse

from bot.cli import output
from bot.cli.arguments import memory_options, moment_asked_for, worktree_of
from bot.cli.output import SCHEMA, command_result, facts_of_answer, show_notes
from bot.local_cache.location import open_memory
from bot.questions.requests import SearchFilter, SmartSearch
from bot.questions.views import full_row, ranked_item


def run_smart_search(given: argparse.Namespace) -> object:
    """Show the threads about some words, ranked by the work at hand."""
    from bot.questions.smart_search import smart

    words, keep = " ".join(given.words), SearchFilter(given.state).keeps
    with open_memory(memory_options(given)) as place:
        request = SmartSearch(words, worktree_of(place), moment_asked_for(given), given.limit, keep)
        found = smart(request, place.local_cache)
        show_notes(place, found.unused)
        if given.json:
            hits = [full_row(one.card, place.home, score=round(one.score, 4), why=list(one.why)) for one in found.hits]
            shown: object = {"schema": SCHEMA, "hits": hits, **facts_of_answer(place, found.used, found.unused)}
        else:
            shown = output.list_text([ranked_item(one, place.home, words) for one in found.hits], header=given.header)
    return command_result(shown, given, found=bool(found.hits), searched=not place.missing)
