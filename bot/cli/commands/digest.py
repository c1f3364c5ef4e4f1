"""precedent digest: what maintainers should look at, from a whole memory."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from bot.cli.arguments import memory_options
from bot.cli.commands.backtest import write_page
from bot.cli.output import SCHEMA_VERSION, CommandResult, command_result, progress, sections_text, show_notes, warn
from bot.domain.hosts import GITHUB
from bot.domain.thread import RepositoryAddress
from bot.local_cache.draft import comparing_memory
from bot.local_cache.local_memory import LocalMemory, settings_of
from bot.local_cache.location import open_memory
from bot.pipeline.digest import digest_of_memory
from bot.questions.digest import DigestRequest, MaintainerReport
from bot.questions.digest_views import report_items, report_row, summary_sentence


def run_digest(args: argparse.Namespace) -> CommandResult:
    with open_memory(memory_options(args)) as local_memory:
        report = _report(DigestRequest(args.since, datetime.now(UTC), args.limit), local_memory.require())
        show_notes(local_memory)
        home = local_memory.home or (f"{GITHUB}/{local_memory.repo}" if local_memory.repo else "")
    if args.html:
        from bot.evaluation.digest_page import render_digest

        write_page(args.html, render_digest(report, home))
    if args.json:
        shown: object = {"schema": SCHEMA_VERSION, **report_row(report, home)}
    else:
        for note in (summary_sentence(report), *report.notes):
            warn(note)
        shown = sections_text(report_items(report, home), header=args.header)
    return command_result(shown, args, found=True)


def _report(request: DigestRequest, local_memory: LocalMemory) -> MaintainerReport:
    settings = settings_of(local_memory)
    server = local_memory.home.removesuffix(f"/{local_memory.repo}") or GITHUB
    with (
        comparing_memory(local_memory, settings) as memory,
        progress("Comparing issues", None) as tick,
    ):
        address = RepositoryAddress.at(server, local_memory.repo or memory.state.repo)
        return digest_of_memory(memory, settings, address, request, tick, time.monotonic)
