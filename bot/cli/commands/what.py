"""precedent what: what memory knows of the branch and files at hand."""

from __future__ import annotations

import argparse

from bot.cli import output
from bot.cli.arguments import Subparsers, add_place, memory_options, moment_asked_for, worktree_of
from bot.cli.output import SCHEMA, command_result, decision_item, facts_of_answer, ranked_item, show_notes, wants_json
from bot.local_cache.location import open_memory
from bot.questions.views import ItemSection, full_row, work_rows


def run_what(given: argparse.Namespace) -> object:
    """What is related to the branch, decided about its files, still open, and was decided last."""
    from bot.questions.what import find_what

    with open_memory(memory_options(given)) as place:
        found = find_what(worktree_of(place), place.local_cache, moment_asked_for(given))
        show_notes(place, found.unused)
        if wants_json(given):
            shown: object = {
                "schema": SCHEMA,
                **work_rows(found, place.home, full_row),
                **facts_of_answer(place, found.used, found.unused),
            }
        else:
            shown = output.sections_text(
                [
                    ItemSection(
                        "related", "Related to this branch", [ranked_item(one, place) for one in found.related]
                    ),
                    ItemSection(
                        "decision", "Decided about its files", [decision_item(one, place) for one in found.decisions]
                    ),
                    ItemSection("task", "Open tasks", [ranked_item(one, place) for one in found.tasks]),
                    ItemSection("recent", "Decided last", [decision_item(one, place) for one in found.recent]),
                ]
            )
    return command_result(shown, given, found=found.is_relevant, searched=not place.missing)


def add_what(commands: Subparsers[argparse.ArgumentParser]) -> None:
    add_place(commands.add_parser("what", help="what there is to know of the branch and files that are worked on here"))
