"""precedent digest: what maintainers should look at, from a whole memory."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from bot.cli.arguments import memory_options
from bot.cli.commands.backtest import write_page
from bot.cli.output import SCHEMA, CommandResult, command_result, progress, sections_text, show_notes, warn
from bot.comment.links import GITHUB
from bot.domain.thread import RepositoryAddress
from bot.local_cache.draft import embedder_of
from bot.local_cache.local_memory import LocalMemory, settings_of
from bot.local_cache.location import open_memory
from bot.local_cache.sync import memory_of
from bot.pipeline.digest import digest_of_memory
from bot.questions.digest import DigestRequest, MaintainerReport
from bot.questions.digest_views import report_items, report_row, summary_sentence


def run_digest(given: argparse.Namespace) -> CommandResult:
    with open_memory(memory_options(given)) as place:
        report = _report(DigestRequest(given.since, datetime.now(UTC), given.limit), place.demand())
        show_notes(place)
        home = place.home or (f"{GITHUB}/{place.repo}" if place.repo else "")
    if given.html:
        from bot.evaluation.digest_page import render_digest

        write_page(given.html, render_digest(report, home))
    if given.json:
        shown: object = {"schema": SCHEMA, **report_row(report, home)}
    else:
        for note in (summary_sentence(report), *report.notes):
            warn(note)
        shown = sections_text(report_items(report, home), header=given.header)
    return command_result(shown, given, found=True)


def _report(asked: DigestRequest, place: LocalMemory) -> MaintainerReport:
    settings = settings_of(place)
    server = place.home.removesuffix(f"/{place.repo}") or GITHUB
    with memory_of(place, embedder_of(settings, place)) as memory, progress("Comparing issues", None) as tick:
        address = RepositoryAddress.at(server, place.repo or memory.state.repo)
        report = digest_of_memory(memory, settings, address, asked, tick, time.monotonic)
        for note in memory.notes:
            if note not in place.note:
                place.warn(note)
    return report
