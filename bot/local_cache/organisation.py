"""The folder of an organisation's memory on one machine: the list of its repositories, and the index of their threads.

The list is the user's and is never thrown away; the index is made from the memories that it names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.domain.ages import days_ago
from bot.errors import UserError, WorldError, require_libraries
from bot.files import on_disk, read_regular, replace

if TYPE_CHECKING:
    from bot.questions.fields import Item
    from bot.questions.requests import WordSearch
    from bot.recall.candidates import Candidates

INSTALL_HINT = "its engine is not installed: in the checkout that Precedent is installed from, run pip install '.[org]'"
LIBRARIES = frozenset({"lancedb", "pyarrow"})
LIST_FILE, INDEX_FOLDER = "repositories.json", "index"
FORMAT = 1
TENANT = "here"
MAX_SOURCES = 1_000
MAX_TEXT = 4_096
STALE_DAYS = 1
"""Days after which a search says how old the index is."""


class OrganisationSource(NamedTuple):
    """A repository whose memory is searched. ``number`` identifies it in the index and is never reused.

    ``name`` is "owner/name", or the name of a folder; ``path`` the checkout or store that was added, "" if it was added
    by name; ``branch`` the memory branch, "" for that of the settings. ``key`` is unique. ``tip`` is the indexed state
    of the memory, as of ``updated`` (ISO 8601); ``threads`` is the number of threads. ``fault`` says why the last
    update could not read it.
    """

    number: int
    name: str
    path: str = ""
    branch: str = ""
    key: str = ""
    tip: str = ""
    updated: str = ""
    threads: int = 0
    fault: str = ""

    @property
    def updated_at(self) -> datetime | None:
        try:
            moment = datetime.fromisoformat(self.updated)
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class SourceUpdate(NamedTuple):
    """A source after an update, and how many of its threads were written to the index or removed."""

    source: OrganisationSource
    changed: int = 0


class SourceList(NamedTuple):
    """The repositories, the next free number, and the revision of the last write."""

    sources: tuple[OrganisationSource, ...] = ()
    next: int = 1
    revision: int = 0

    @property
    def names(self) -> dict[int, str]:
        return {one.number: one.name for one in self.sources}

    @property
    def search_scope(self) -> str:
        """What a search covers: ``517 threads of 3 repositories searched``."""
        threads, count = sum(source.threads for source in self.sources), len(self.sources)
        repositories = f"{count} repositor{'ies' if count != 1 else 'y'}"
        return f"{threads:,} thread{'s' * (threads != 1)} of {repositories} searched"

    def with_source(self, changed: OrganisationSource) -> SourceList:
        """The list with this source in place of the one with its number."""
        sources = {one.number: one for one in self.sources} | {changed.number: changed}
        return self._replace(sources=tuple(sources.values()), next=max(self.next, changed.number + 1))

    def age_note(self, now: datetime) -> str:
        """The age of the oldest memory in the index, "" if all are fresh."""
        days = max(((now - at).days for one in self.sources if (at := one.updated_at)), default=0)
        if days < STALE_DAYS:
            return ""
        return f"updated {days_ago(days)}: run precedent org update"


def organisation_folder(folder: Path | str | None) -> Path:
    """The given folder, else that of PRECEDENT_ORG, else the default one.

    https://specifications.freedesktop.org/basedir-spec/latest/
    """
    if folder := folder or os.environ.get("PRECEDENT_ORG", ""):
        return Path(folder).absolute()
    data = os.environ.get("XDG_DATA_HOME", "")
    try:
        return (Path(data) if data.startswith("/") else Path.home() / ".local/share") / "precedent" / "organisation"
    except RuntimeError as error:
        raise WorldError("this account has no home folder", "set PRECEDENT_ORG to a folder") from error


def read_sources(folder: Path) -> SourceList:
    """The list in this folder, empty if there is none; damaged entries are left out.

    Raises WorldError for a list that cannot be read at all, or was written by a newer version.
    """
    file = folder / LIST_FILE
    data = read_regular(file)
    if data is None:
        return SourceList()
    try:
        fields = json.loads(data)
        version, entries = fields["format"], fields["repositories"]
        sources = {source.number: source for entry in entries[:MAX_SOURCES] if (source := _source(entry))}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise WorldError(f"{file} is damaged", "delete it and add the repositories again") from error
    if version != FORMAT:
        raise WorldError(f"{file} was written by another version of Precedent", "use the newer one")
    next_number = max((number + 1 for number in sources), default=1)
    return SourceList(
        tuple(sources.values()), max(next_number, _count(fields.get("next"))), _count(fields.get("revision"))
    )


def write_sources(folder: Path, source_list: SourceList) -> None:
    """Replace the list atomically. Callers hold `bot.memory.branch_store.lock_folder`."""
    entries = [source._asdict() for source in source_list.sources]
    fields = {"format": FORMAT, "next": source_list.next, "revision": source_list.revision, "repositories": entries}
    with on_disk(f"write in {folder}"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace(folder / LIST_FILE, f"{json.dumps(fields, ensure_ascii=False, indent=1)}\n".encode("utf-8", "replace"))


def require_sources(folder: Path) -> SourceList:
    """Like `read_sources`, but raises UserError for an empty list."""
    source_list = read_sources(folder)
    if not source_list.sources:
        raise UserError(f"{folder} has no repository yet: add one with precedent org add OWNER/NAME")
    return source_list


@contextmanager
def open_index(folder: Path, retention: timedelta | None = None) -> Iterator[Candidates]:
    """Open the index in this folder, whose replaced files stay for ``retention``, by default for as long as the engine
    suggests. Raises UserError if its engine is not installed."""
    with require_libraries(LIBRARIES, INSTALL_HINT):
        from bot.organisation.lance import FILE_RETENTION, open_candidates
    if (folder / INDEX_FOLDER).is_symlink():
        raise UserError(f"{folder / INDEX_FOLDER} is a link: put a real folder in its place")
    with closing(open_candidates(str(folder / INDEX_FOLDER), TENANT, retention=retention or FILE_RETENTION)) as index:
        yield index


class FoundInFolder(NamedTuple):
    """The threads that a search found in the repositories ``searched``, best first, and notes on it."""

    items: list[Item]
    notes: tuple[str, ...]
    searched: SourceList


def search_folder(folder: Path, request: WordSearch, now: datetime) -> FoundInFolder:
    """Search the index in this folder. Raises UserError for an empty list, and as `open_index` and
    `bot.questions.organisation.search_organisation`."""
    from bot.questions.organisation import organisation_items, search_organisation

    searched = require_sources(folder)
    with open_index(folder) as index:
        hits = search_organisation(request, index, searched.names)
    notes = tuple(filter(None, (*hits.notes, searched.age_note(now))))
    return FoundInFolder(organisation_items(hits.found, request.words), notes, searched)


def _source(entry: Any) -> OrganisationSource | None:
    """Parse an entry of the list; None for a damaged one."""
    if not isinstance(entry, Mapping) or not (number := _count(entry.get("number"))) or not _text(entry.get("name")):
        return None
    names = ("name", "path", "branch", "key", "tip", "updated", "fault")
    texts = {name: _text(entry.get(name)) for name in names}
    return OrganisationSource(number, **texts, threads=_count(entry.get("threads")))


def _text(value: Any) -> str:
    return value[:MAX_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0
