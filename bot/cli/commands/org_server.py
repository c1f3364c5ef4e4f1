"""precedent org rebuild on a server: a new index of all repositories, from their memory branches."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bot.cli.commands.serve import server_flags, server_inbox
from bot.cli.options import ServerArguments
from bot.cli.output import CommandResult, progress, table
from bot.errors import UserError
from bot.server.options import WORKER_REQUIRED, forget_secrets, read_options

if TYPE_CHECKING:
    from bot.server.organisation.indexer import RebuildResult

COLUMNS = "installation\trepositories\tthreads\tfault"


def rebuild_on_server(
    args: ServerArguments, installations: Sequence[int], *, as_json: bool, header: bool
) -> CommandResult:
    """Build a new index of these installations, or of all; exit code 1 if a memory could not be read. The server may
    keep running."""
    options = read_options(os.environ, server_flags(args), WORKER_REQUIRED)
    if not options.organisation:
        raise UserError("there is no index of all repositories: give the server's --organisation")
    forget_secrets(os.environ)
    with server_inbox(options, "org") as inbox:
        from bot.server import processes
        from bot.server.organisation.indexer import rebuild_installation

        changes = inbox.changes
        changes.align(options.organisation, options.scope)
        results: list[RebuildResult] = []
        with processes.rebuild_dependencies(options, inbox, threading.Event()) as run:
            for installation in installations or changes.installations():
                with progress(f"Reading memories of installation {installation}", None) as tick:
                    results.append(rebuild_installation(installation, run, tick))
    code = int(any(result.unread for result in results))
    if as_json:
        return CommandResult([_as_data(result) for result in results], code)
    return CommandResult(table(COLUMNS, _rows(results), header=header), code)


def _rows(results: Iterable[RebuildResult]) -> Iterable[tuple[object, ...]]:
    for result in results:
        yield result.installation, result.repositories, result.threads, ""
        yield from ((result.installation, name, "", why) for name, why in result.unread)


def _as_data(result: RebuildResult) -> dict[str, object]:
    return {
        "installation": result.installation,
        "repositories": result.repositories,
        "threads": result.threads,
        "unread": [{"repository": name, "why": why} for name, why in result.unread],
    }
