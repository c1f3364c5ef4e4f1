"""precedent org: the memories of many repositories in one index on this machine, and precedent search --org."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bot.cli.output import SCHEMA, CommandResult, command_result, list_text, progress, table, warn
from bot.comment.clean_text import one_line
from bot.errors import UserError
from bot.local_cache.organisation import (
    OrganisationSource,
    SourceUpdate,
    listed_sources,
    open_index,
    organisation_folder,
    read_sources,
)
from bot.questions.requests import SLUG, OrganisationRequest, SearchFilter
from bot.questions.views import Row
from bot.reading.search_query import search_query

COLUMNS = "repository\tthreads\tchanged\tupdated\tpath\tfault"
_NAME = re.compile(SLUG, re.ASCII)
_ALONE = ("store", "repo", "memory_branch", "refresh", "offline", "expand", "logs")
"""Options of a search that say where one memory is, or that an organisation's index cannot answer."""


def run_org(given: argparse.Namespace) -> CommandResult:
    """Change or list the repositories of an organisation's folder."""
    if given.action in ("add", "remove") and not given.repositories:
        raise UserError(f"name the repositories to {given.action}: OWNER/NAME, or the path of a checkout")
    if given.action in ("list", "rebuild") and given.repositories:
        raise UserError(f"{given.action} takes no repository: it is for all of them")
    if given.memory_branch and given.action != "add":
        raise UserError("--memory-branch is for add")
    if (
        given.action == "rebuild"
        and given.org is None
        and (_names_server(given) or os.environ.get("PRECEDENT_ORGANISATION"))
    ):
        from bot.cli.commands.org_server import rebuild_on_server

        return rebuild_on_server(given)
    if _names_server(given):
        options = "--data, --database-url, --organisation and --installation"
        raise UserError(f"{options} are for a rebuild on a server: leave them or --org out")
    folder = organisation_folder(given.org)
    done = _done(given, folder)
    rows = [_row(source, changed) for source, changed in done]
    faults = [source for source, _ in done if source.fault]
    for source in faults:
        warn(f"{source.name} could not be read: {source.fault}")
    if given.json:
        shown: object = {"schema": SCHEMA, "folder": str(folder), "repositories": rows}
    else:
        lines = ("\t".join(one_line(str(cell)) for cell in row.values()) for row in rows)
        shown = table(COLUMNS, lines, header=given.header)
    return CommandResult(shown, 1 if faults and given.action != "list" else 0)


def _names_server(given: argparse.Namespace) -> bool:
    """Whether an option says that the index of a server is meant."""
    return any((given.data, given.database_url, given.organisation, given.installation))


def _done(given: argparse.Namespace, folder: Path) -> Sequence[SourceUpdate]:
    """Do what was asked for; gives the sources that it was about, with the number of threads that changed in each."""
    if given.action == "list":
        return [SourceUpdate(one) for one in read_sources(folder).sources]
    from bot.local_cache import organisation_update as work

    doing = work.OrganisationUpdate(folder, progress)
    if given.action == "add":
        return work.add_sources([_named(text, given.memory_branch or "") for text in given.repositories], doing)
    if given.action == "rebuild":
        return work.rebuild_index(doing)
    sources = _wanted(given.repositories, listed_sources(folder).sources)
    numbers = [one.number for one in sources]
    if given.action == "update":
        return work.update_sources(numbers, doing)
    work.remove_sources(numbers, folder)
    return [SourceUpdate(one, one.threads) for one in sources]


def _named(text: str, branch: str) -> OrganisationSource:
    """The repository that somebody names: by the path of a folder that is there, else by OWNER/NAME."""
    path = Path(text)
    if path.is_dir():
        return OrganisationSource(0, "", str(path.resolve()), branch)
    if not _NAME.fullmatch(text):
        raise UserError(f"{text[:100]!r} is neither a folder nor OWNER/NAME")
    return OrganisationSource(0, text, branch=branch)


def _wanted(names: Iterable[str], known: Sequence[OrganisationSource]) -> list[OrganisationSource]:
    """The sources of these names or paths; all without any."""
    if not names:
        return list(known)
    found: dict[int, OrganisationSource] = {}
    for name in names:
        path = str(Path(name).resolve())
        fits = [one for one in known if name.casefold() == one.name.casefold() or path == one.path]
        if not fits:
            raise UserError(f"{name[:100]!r} is not in the list: precedent org list")
        found |= {one.number: one for one in fits}
    return list(found.values())


def _row(source: OrganisationSource, changed: int) -> Row:
    return {
        "repository": source.name,
        "threads": source.threads,
        "changed": changed,
        "updated_at": source.updated,
        "path": source.path,
        "fault": source.fault,
    }


def search_folder(given: argparse.Namespace) -> CommandResult:
    """Show the threads of many repositories that hold some words."""
    from bot.questions.organisation import organisation_items, organisation_row, search_organisation

    folder, now = organisation_folder(given.org), datetime.now(UTC)
    if given.org and not folder.is_dir():
        raise UserError(f"{given.org[:100]!r} is no folder: put --org behind the words, or name its folder")
    if wrong := [name for name in _ALONE if getattr(given, name)]:
        raise UserError(f"--{wrong[0].replace('_', '-')} is for a search in one repository: leave it or --org out")
    words = " ".join(given.words)
    author = (given.author or "").removeprefix("@")
    choice = SearchFilter(given.state, given.kind or "all", frozenset(given.label), author, given.since)
    asked = OrganisationRequest(words, choice, given.limit, search_query(words, now))
    listed = listed_sources(folder)
    with open_index(folder) as index:
        hits = search_organisation(asked, index, listed.names)
    for note in filter(None, (*hits.notes, listed.age_note(now))):
        warn(note)
    if given.json:
        shown: object = [
            organisation_row(one, words, score=round(one.score, 4), part=round(one.part, 4)) for one in hits.found
        ]
    else:
        shown = list_text(organisation_items(hits.found, words), header=given.header)
    return command_result(shown, given, found=bool(hits.found), looked=listed.searched)
