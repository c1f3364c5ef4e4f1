"""precedent org rebuild on a server: a new index of all repositories, from their memory branches."""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bot.cli.commands.serve import server_flags, server_inbox
from bot.cli.output import CommandResult, progress, table
from bot.comment.clean_text import one_line
from bot.errors import UserError
from bot.server.options import WORKING, forget_secrets, read_options

if TYPE_CHECKING:
    from bot.server.organisation_rebuild import RebuildResult

COLUMNS = "installation\trepositories\tthreads\tfault"


def rebuild_on_server(given: argparse.Namespace) -> CommandResult:
    """Make a new index of each installation, or of those in ``given.installation``; exit code 1 if a memory could not
    be read. A server may be running meanwhile."""
    options = read_options(os.environ, server_flags(given), WORKING)
    if not options.organisation:
        raise UserError("there is no index of all repositories: give the server's --organisation")
    forget_secrets(os.environ)
    with server_inbox(options, "org") as inbox:
        from bot.server import processes
        from bot.server.organisation_changes import OrganisationChanges
        from bot.server.organisation_rebuild import rebuild_installation

        changes = OrganisationChanges(inbox.database, inbox.queue, inbox.now)
        changes.align(options.organisation, options.scope)
        found: list[RebuildResult] = []
        with processes.rebuilding(options, inbox, threading.Event()) as run:
            for installation in given.installation or changes.installations():
                with progress(f"Reading memories of installation {installation}", None) as tick:
                    found.append(rebuild_installation(installation, run, tick))
    code = int(any(each.unread for each in found))
    if given.json:
        return CommandResult([_as_data(each) for each in found], code)
    return CommandResult(table(COLUMNS, _lines(found), header=given.header), code)


def _lines(found: Iterable[RebuildResult]) -> Iterable[str]:
    for each in found:
        yield f"{each.installation}\t{each.repositories}\t{each.threads}\t"
        yield from (f"{each.installation}\t{one_line(name)}\t\t{one_line(why)}" for name, why in each.unread)


def _as_data(each: RebuildResult) -> dict[str, object]:
    return {
        "installation": each.installation,
        "repositories": each.repositories,
        "threads": each.threads,
        "unread": [{"repository": name, "why": why} for name, why in each.unread],
    }
