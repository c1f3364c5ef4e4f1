"""precedent related: the threads that name some files."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bot.cli import output
from bot.cli.arguments import memory_options, moment_asked_for
from bot.cli.output import SCHEMA, command_result, show_notes
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.location import open_memory
from bot.questions.requests import FilesRequest
from bot.questions.views import related_items, related_rows


def run_related(given: argparse.Namespace) -> object:
    """Show the threads that name some files, and what was decided in them."""
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
