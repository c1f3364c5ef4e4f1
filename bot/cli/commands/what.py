"""precedent what: the threads that matter for the branch and files at hand."""

from __future__ import annotations

import argparse

from bot.cli import output
from bot.cli.arguments import memory_options, moment_asked_for, worktree_of
from bot.cli.output import SCHEMA, command_result, facts_of_answer, show_notes, wants_json
from bot.local_cache.location import open_memory
from bot.questions.requests import WorkRequest
from bot.questions.views import full_row, work_items, work_rows


def run_what(given: argparse.Namespace) -> object:
    """Show what is related to the branch, decided about its files, still open, and was decided last."""
    from bot.questions.what import find_what

    with open_memory(memory_options(given)) as place:
        found = find_what(WorkRequest(worktree_of(place), moment_asked_for(given)), place.local_cache)
        show_notes(place, found.unused)
        if wants_json(given):
            rows = work_rows(found, place.home, full_row)
            shown: object = {"schema": SCHEMA, **rows, **facts_of_answer(place, found.used, found.unused)}
        else:
            shown = output.sections_text(work_items(found, place.home), header=given.header)
    return command_result(shown, given, found=found.is_relevant, searched=not place.missing)
