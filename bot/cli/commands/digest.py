"""precedent digest: what maintainers should look at, from a whole memory."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from bot.cli.arguments import number, past_moment
from bot.cli.commands.backtest import write_page
from bot.cli.options import MemoryArguments, file_option, header_option, json_option, option
from bot.cli.output import SCHEMA_VERSION, CommandResult, progress, sections_text, show_notes, warn
from bot.domain.hosts import GITHUB
from bot.domain.thread import RepositoryAddress
from bot.local_cache.draft import comparing_memory
from bot.local_cache.local_memory import LocalMemory, settings_of
from bot.local_cache.location import open_memory
from bot.pipeline.digest import digest_of_memory
from bot.questions.digest import DigestRequest, MaintainerReport
from bot.questions.digest_views import report_items, report_page, report_row, summary_sentence


class DigestArguments(MemoryArguments):
    """Six lists: reports of something that may be back, many reports of one thing, fixes that no release has,
    decisions, answered questions that no page covers, and open duplicates of closed issues. It reads the whole
    memory."""

    since: datetime = option(
        "what happened since 2026-05-03, or in the last 7d, 4w, 6m, 1y (default: the last 30d)",
        type=past_moment,
        default="30d",
        metavar="WHEN",
    )
    limit: int = option("how many in a list, 1 to 100 (default 10)", type=number(1, 100), default=10, metavar="N")
    html: Path | None = file_option("write a page too")
    json: bool = json_option("the digest")
    header: bool = header_option()


def run_digest(args: DigestArguments) -> CommandResult:
    with open_memory(args.memory) as local_memory:
        report = _report(DigestRequest(args.since, datetime.now(UTC), args.limit), local_memory.require())
        show_notes(local_memory)
        home = local_memory.home or (f"{GITHUB}/{local_memory.repo}" if local_memory.repo else "")
    if args.html:
        write_page(args.html, report_page(report, home))
    if args.json:
        shown: object = {"schema": SCHEMA_VERSION, **report_row(report, home)}
    else:
        for note in (summary_sentence(report), *report.notes):
            warn(note)
        shown = sections_text(report_items(report, home), header=args.header)
    return CommandResult(shown, 0)


def _report(request: DigestRequest, local_memory: LocalMemory) -> MaintainerReport:
    settings = settings_of(local_memory)
    server = local_memory.home.removesuffix(f"/{local_memory.repo}") or GITHUB
    with (
        comparing_memory(local_memory, settings) as memory,
        progress("Comparing issues", None) as tick,
    ):
        address = RepositoryAddress.at(server, local_memory.repo or memory.state.repo)
        return digest_of_memory(memory, settings, address, request, tick, time.monotonic)
