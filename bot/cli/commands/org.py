"""precedent org and precedent search --org: the memories of many repositories in one index on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
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
from bot.errors import UserError
from bot.local_cache.organisation import (
    OrganisationSource,
    SourceUpdate,
    organisation_folder,
    read_sources,
    require_sources,
    search_folder,
)
from bot.questions.fields import ORGANISATION_FIELDS, Row, rows_of
from bot.questions.requests import SLUG, WordSearch

COLUMNS = "repository\tthreads\tchanged\tupdated\tpath\tfault"
_REPOSITORY_NAME = re.compile(SLUG, re.ASCII)


class OrgArguments(ServerArguments):
    """Exit code 1: a repository could not be read, and stays as it was."""

    action: str = argument(
        "ACTION",
        "add repositories, list them, update (read what changed), remove some, or rebuild the index of all",
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
    """Change or list the repositories of an organisation's folder."""
    if args.action in ("add", "remove") and not args.repositories:
        raise UserError(f"name the repositories to {args.action}: OWNER/NAME, or the path of a checkout")
    if args.action in ("list", "rebuild") and args.repositories:
        raise UserError(f"{args.action} takes no repository: it is for all of them")
    if args.memory_branch and args.action != "add":
        raise UserError("--memory-branch is for add")
    if (
        args.action == "rebuild"
        and args.org is None
        and (_names_server(args) or os.environ.get("PRECEDENT_ORGANISATION"))
    ):
        from bot.cli.commands.org_server import rebuild_on_server

        return rebuild_on_server(args, args.installation, as_json=args.json, header=args.header)
    if _names_server(args):
        options = "--data, --database-url, --organisation and --installation"
        raise UserError(f"{options} are for a rebuild on a server: leave them or --org out")
    folder = organisation_folder(args.org)
    updates = _run_action(args, folder)
    rows = [_row(source, changed) for source, changed in updates]
    faults = [source for source, _ in updates if source.fault]
    for source in faults:
        warn(f"{source.name} could not be read: {source.fault}")
    if args.json:
        shown: object = {"schema": SCHEMA_VERSION, "folder": str(folder), "repositories": rows}
    else:
        shown = table(COLUMNS, (row.values() for row in rows), header=args.header)
    return CommandResult(shown, 1 if faults and args.action != "list" else 0)


def _names_server(args: OrgArguments) -> bool:
    """Whether an option refers to a server's index."""
    return any((args.data, args.database_url, args.organisation, args.installation))


def _run_action(args: OrgArguments, folder: Path) -> Sequence[SourceUpdate]:
    """Run the action. Returns its sources, each with the number of changed threads."""
    if args.action == "list":
        return [SourceUpdate(source) for source in read_sources(folder).sources]
    from bot.local_cache import organisation_update as work

    update = work.OrganisationUpdate(folder, progress)
    if args.action == "add":
        return work.add_sources([_parse_source(text, args.memory_branch or "") for text in args.repositories], update)
    if args.action == "rebuild":
        return work.rebuild_index(update)
    sources = _select_sources(args.repositories, require_sources(folder).sources)
    numbers = [source.number for source in sources]
    if args.action == "update":
        return work.update_sources(numbers, update)
    work.remove_sources(numbers, update)
    return [SourceUpdate(source, source.threads) for source in sources]


def _parse_source(text: str, branch: str) -> OrganisationSource:
    """The named repository: the path of an existing folder, else OWNER/NAME."""
    path = Path(text)
    if path.is_dir():
        return OrganisationSource(0, "", str(path.resolve()), branch)
    if not _REPOSITORY_NAME.fullmatch(text):
        raise UserError(f"{text[:100]!r} is neither a folder nor OWNER/NAME")
    return OrganisationSource(0, text, branch=branch)


def _select_sources(names: Iterable[str], sources: Sequence[OrganisationSource]) -> list[OrganisationSource]:
    """The sources with these names or paths; all if none are given."""
    if not names:
        return list(sources)
    selected: dict[int, OrganisationSource] = {}
    for name in names:
        path = str(Path(name).resolve())
        matches = [one for one in sources if name.casefold() == one.name.casefold() or path == one.path]
        if not matches:
            raise UserError(f"{name[:100]!r} is not in the list: see precedent org list")
        selected |= {one.number: one for one in matches}
    return list(selected.values())


def _row(source: OrganisationSource, changed: int) -> Row:
    return {
        "repository": source.name,
        "threads": source.threads,
        "changed": changed,
        "updated_at": source.updated,
        "path": source.path,
        "fault": source.fault,
    }


def search_many(args: TableArguments, place: str, request: WordSearch) -> CommandResult:
    """Search the threads of many repositories, those of the folder ``place``."""
    folder = organisation_folder(place)
    if place and not folder.is_dir():
        raise UserError(f"{place[:100]!r} is not a folder: put --org after the words, or name its folder")
    found = search_folder(folder, request, args.now)
    for note in found.notes:
        warn(note)
    shown: object = (
        rows_of(ORGANISATION_FIELDS, found.items) if args.json else list_text(found.items, header=args.header)
    )
    return args.result(shown, found=bool(found.items), coverage=found.searched.search_scope)
