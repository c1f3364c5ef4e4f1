"""precedent related: the threads that name some files."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bot.cli import output
from bot.cli.arguments import Subparsers, add_place, memory_options, moment_asked_for
from bot.cli.output import SCHEMA, command_result, decision_item, ranked_item, show_notes
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.location import open_memory
from bot.questions.views import ItemSection, decision_row, full_row


def run_related(given: argparse.Namespace) -> object:
    from bot.questions.related import find_related

    with open_memory(memory_options(given)) as place:
        place.demand()
        found = find_related([_within(place, file) for file in given.files], place.local_cache, moment_asked_for(given))
        show_notes(place)
        if given.json:
            shown: object = {
                "schema": SCHEMA,
                "threads": [full_row(one.card, place.home, why=list(one.why)) for one in found.threads],
                "decisions": [decision_row(one, place.home, full_row) for one in found.decisions],
            }
        else:
            shown = output.sections_text(
                [
                    ItemSection("thread", "Threads that name them", [ranked_item(one, place) for one in found.threads]),
                    ItemSection("decision", "Decided there", [decision_item(one, place) for one in found.decisions]),
                ]
            )
    return command_result(shown, given, found=bool(found.threads))


def _within(place: LocalMemory, file: str) -> str:
    """The file as the checkout calls it, where it lies in one."""
    file = file.encode("utf-8", "replace").decode()  # a name that is no UTF-8 is in no thread
    if place.top is None:
        return file
    whole = Path(os.path.normpath(Path.cwd() / file))
    return whole.relative_to(place.top).as_posix() if whole.is_relative_to(place.top) and whole.exists() else file


def add_related(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("related", help="the threads that name some files, and what was decided in them")
    command.add_argument("files", nargs="+", metavar="FILE", help="a file, as it is called from here or in a thread")
    add_place(command)
