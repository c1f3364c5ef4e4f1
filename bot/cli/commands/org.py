"""precedent org and precedent search --org: the memories of many repositories on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bot.cli.arguments import one_of, positive
from bot.cli.options import (
    ServerArguments,
    TableArguments,
    argument,
    branch_option,
    header_option,
    json_option,
    option,
    org_option,
    organisation_option,
)
from bot.cli.output import SCHEMA_VERSION, CommandResult, list_text, progress, table, warn
from bot.domain.hosts import SLUG
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.organisation import (
    OrganisationSource,
    SourceState,
    add_sources,
    organisation_folder,
    read_sources,
    remove_sources,
    require_sources,
    search_folder,
    state_of_source,
)
from bot.questions.fields import Row, row_stamp
from bot.questions.requests import ReadMessages, WordSearch

COLUMNS = "repository\tthreads\tupdated\tpath\tfault"
_REPOSITORY_NAME = re.compile(SLUG, re.ASCII)


class OrgArguments(ServerArguments):
    """Exit code 1: a repository could not be read, and stays as it was."""

    action: str = argument(
        "ACTION",
        "add repositories, list them, update (fetch their memories), remove some; rebuild a server's index of all",
        **one_of("add", "list", "update", "remove", "rebuild"),
    )
    repositories: list[str] = argument(
        "REPOSITORY", "OWNER/NAME, or the path of a checkout or store; update without one: all", nargs="*", default=[]
    )
    org: str | None = org_option("the folder (default: that in PRECEDENT_ORG, else one in your home folder)")
    memory_branch: str | None = branch_option()
    organisation: str | None = organisation_option()
    installation: list[int] = option(
        "rebuild on a server: only this installation; may be repeated",
        type=positive,
        action="append",
        default=[],
        metavar="NUMBER",
    )
    json: bool = json_option("the repositories")
    header: bool = header_option()


def run_org(args: OrgArguments) -> CommandResult:
    """Change or list the repositories of an organisation's folder, or rebuild a server's index of all."""
    if args.action in ("add", "remove") and not args.repositories:
        raise UserError(f"name the repositories to {args.action}: OWNER/NAME, or the path of a checkout")
    if args.action in ("list", "rebuild") and args.repositories:
        raise UserError(f"{args.action} takes no repository: it is for all of them")
    if args.memory_branch and args.action != "add":
        raise UserError("--memory-branch is for add")
    if args.action == "rebuild":
        if args.org or not (_names_server(args) or os.environ.get("PRECEDENT_ORGANISATION")):
            raise UserError("rebuild is for the index of a server, which --organisation names: a folder has none")
        from bot.cli.commands.org_server import rebuild_on_server

        return rebuild_on_server(args, args.installation, as_json=args.json, header=args.header)
    if _names_server(args):
        raise UserError("--data, --database-url, --organisation and --installation are for a rebuild on a server")
    folder = organisation_folder(args.org)
    states = _run_action(args, folder)
    for state in states:
        if state.fault:
            warn(f"{state.source.name} could not be read: {state.fault}")
    rows = [_row(state) for state in states]
    if args.json:
        shown: object = {"schema": SCHEMA_VERSION, "folder": str(folder), "repositories": rows}
    else:
        shown = table(COLUMNS, (row.values() for row in rows), header=args.header)
    has_failed = args.action != "list" and any(state.fault for state in states)
    return CommandResult(shown, 1 if has_failed else 0)


def _names_server(args: OrgArguments) -> bool:
    """Whether an option refers to a server's index."""
    return any((args.data, args.database_url, args.organisation, args.installation))


def _run_action(args: OrgArguments, folder: Path) -> list[SourceState]:
    """Run the action. Returns the state of its repositories."""
    if args.action == "add":
        return add_sources(
            [_parse_source(text, args.memory_branch or "") for text in args.repositories], folder, progress
        )
    listed = read_sources(folder) if args.action == "list" else require_sources(folder)
    selected = _select_sources(args.repositories, listed)
    if args.action == "remove":
        remove_sources([source.name for source in selected], folder)
    return [state_of_source(source, refresh=args.action == "update", progress=progress) for source in selected]


def _parse_source(text: str, branch: str) -> OrganisationSource:
    """The named repository: the path of an existing folder, else OWNER/NAME."""
    path = Path(text)
    if path.is_dir():
        return OrganisationSource("", str(path.resolve()), branch)
    if not _REPOSITORY_NAME.fullmatch(text):
        raise UserError(f"{text[:100]!r} is neither a folder nor OWNER/NAME")
    return OrganisationSource(text, branch=branch)


def _select_sources(names: Iterable[str], sources: Sequence[OrganisationSource]) -> list[OrganisationSource]:
    """The sources with these names or paths; all if none are given."""
    if not names:
        return list(sources)
    selected: dict[str, OrganisationSource] = {}
    for name in names:
        path = str(Path(name).resolve())
        matches = [one for one in sources if name.casefold() == one.name.casefold() or path == one.path]
        if not matches:
            raise UserError(f"{name[:100]!r} is not in the list: see precedent org list")
        selected |= {one.name: one for one in matches}
    return list(selected.values())


def _row(state: SourceState) -> Row:
    return {
        "repository": state.source.name,
        "threads": state.threads,
        "updated_at": row_stamp(state.updated),
        "path": state.source.path,
        "fault": state.fault,
    }


def search_many(
    args: TableArguments, place: str, request: WordSearch, reader: Callable[[LocalMemory], ReadMessages]
) -> CommandResult:
    """Search the threads of many repositories, those of the folder ``place``."""
    folder = organisation_folder(place)
    if place and not folder.is_dir():
        raise UserError(f"{place[:100]!r} is not a folder: put --org after the words, or name its folder")
    result = search_folder(folder, request, args.now, reader)
    for note in result.notes:
        warn(note)
    shown: object = result.rows() if args.json else list_text(result.items, header=args.header)
    return args.result(shown, found=bool(result.found), coverage=result.search_scope)
