"""precedent repos: the repositories that a server works on."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.cli.commands.serve import server_flags, server_inbox
from bot.cli.output import table
from bot.comment.clean_text import one_line
from bot.domain.name_patterns import fits_any
from bot.server.model import moment_text
from bot.server.options import read_options

if TYPE_CHECKING:
    from bot.server.repository_list import RepositoryStatus

COLUMNS = "repository\tstate\tthreads\tread\tdone at\tlast run\tpaused until\tobserved"


def run_repos(given: argparse.Namespace) -> object:
    options = read_options(os.environ, server_flags(given), required=())
    with server_inbox(options, "repos") as inbox:
        from bot.server.repository_list import repository_list

        known = inbox.installations()
        rows = [row for row in known.repositories() if not given.patterns or fits_any(row.name, given.patterns)]
        found = repository_list(sorted(rows, key=lambda row: row.name.lower()), known, options.scope, inbox.now())
    return _shown(found, given)


def _shown(found: Sequence[RepositoryStatus], given: argparse.Namespace) -> object:
    if given.json:
        return [_as_data(each) for each in found]
    return table(COLUMNS, ("\t".join(_cells(each)) for each in found), header=given.header)


def _cells(each: RepositoryStatus) -> tuple[str, ...]:
    threads, estimate = each.row.threads, each.estimate
    return (
        one_line(each.name),
        each.state,
        str(threads) if threads >= 0 else "",
        f"{estimate.percent} %" if estimate and estimate.percent >= 0 else "",
        moment_text(each.done_at),
        moment_text(each.row.last_run),
        moment_text(each.paused_until),
        "observed" if each.is_observed else "",
    )


def _as_data(each: RepositoryStatus) -> dict[str, object]:
    estimate = each.estimate
    return {
        "repository": each.name,
        "key": each.row.repository.text,
        "state": each.state,
        "observed": each.is_observed,
        "threads": each.row.threads if each.row.threads >= 0 else None,
        "read": estimate.read if estimate else None,
        "left": estimate.left if estimate and estimate.left >= 0 else None,
        "done_at": moment_text(each.done_at) or None,
        "last_run": moment_text(each.row.last_run) or None,
        "paused_until": moment_text(each.paused_until) or None,
    }
