"""precedent repos: the repositories that a server handles."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.cli.arguments import name_pattern
from bot.cli.commands.serve import server_flags, server_inbox
from bot.cli.options import ServerArguments, argument, header_option, json_option
from bot.cli.output import table, warn
from bot.domain.name_patterns import fits_any
from bot.server.model import RepositoryScope, moment_text
from bot.server.options import read_options

if TYPE_CHECKING:
    from bot.server.storage.installations import RepositoryStatus

COLUMNS = "repository\tstate\tthreads\tread\tdone at\tlast run\tpaused until\tobserved"


class ReposArguments(ServerArguments):
    patterns: list[str] = argument("PATTERN", "only these, such as 'octo-org/docs-*'", nargs="*", type=name_pattern)
    json: bool = json_option("the answer")
    header: bool = header_option()


def run_repos(args: ReposArguments) -> object:
    options = read_options(os.environ, server_flags(args), required=())
    with server_inbox(options, "repos") as inbox:
        from bot.server.storage.installations import repository_list

        installations = inbox.installations
        rows = [row for row in installations.repositories() if not args.patterns or fits_any(row.name, args.patterns)]
        rows.sort(key=lambda row: row.name.lower())
        statuses = repository_list(rows, installations, inbox.limits, options.scope)
    for pattern in args.patterns:
        if not any(fits_any(row.name, [pattern]) for row in rows):
            warn(f"{pattern}: {_why_unknown(pattern, options.scope)}")
    return _format_statuses(statuses, args)


def _why_unknown(name: str, scope: RepositoryScope) -> str:
    if fits_any(name, scope.exclude):
        return "excluded by PRECEDENT_EXCLUDE"
    return "no such repository is known" if scope.includes(name) else "not in PRECEDENT_INCLUDE"


def _format_statuses(statuses: Sequence[RepositoryStatus], args: ReposArguments) -> object:
    if args.json:
        return [_as_data(status) for status in statuses]
    return table(COLUMNS, map(_cells, statuses), header=args.header)


def _cells(status: RepositoryStatus) -> tuple[str, ...]:
    threads, estimate = status.row.threads, status.estimate
    return (
        status.name,
        status.state,
        str(threads) if threads >= 0 else "",
        f"{estimate.percent} %" if estimate and estimate.percent >= 0 else "",
        moment_text(status.done_at),
        moment_text(status.row.last_run),
        moment_text(status.paused_until),
        "observed" if status.is_observed else "",
    )


def _as_data(status: RepositoryStatus) -> dict[str, object]:
    estimate = status.estimate
    return {
        "repository": status.name,
        "key": status.row.repository.text,
        "state": status.state,
        "observed": status.is_observed,
        "threads": status.row.threads if status.row.threads >= 0 else None,
        "read": estimate.read if estimate else None,
        "left": estimate.left if estimate and estimate.left >= 0 else None,
        "done_at": moment_text(status.done_at) or None,
        "last_run": moment_text(status.row.last_run) or None,
        "paused_until": moment_text(status.paused_until) or None,
    }
