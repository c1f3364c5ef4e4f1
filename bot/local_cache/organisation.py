"""The memories of many repositories on one machine: the list of them, and a search in all of them.

The list is the user's and is never thrown away. Each memory has its own cache, as if it were asked alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.domain.ages import days_ago
from bot.domain.card import CardHit
from bot.errors import PrecedentError, UserError, WorldError
from bot.files import on_disk, read_regular, replace
from bot.local_cache.cache import sum_statistics
from bot.local_cache.local_memory import LocalMemory, MemoryOptions, ProgressBar, no_progress
from bot.local_cache.location import open_memory
from bot.local_cache.messages import LocalMessages
from bot.questions.fields import ORGANISATION_FIELDS, Item, Row, row_of
from bot.questions.organisation import best_of_all, seen_from_outside
from bot.questions.search import search_memory
from bot.questions.views import hit_items
from bot.reading.analyzer import terms

if TYPE_CHECKING:
    from bot.questions.requests import ReadMessages, WordSearch

LIST_FILE = "repositories.json"
FORMAT = 1
MAX_SOURCES = 200
"""All memories are open during a search."""

MAX_TEXT = 4_096
STALE_DAYS = 1
"""Days after which a search says how old a memory is."""


class OrganisationSource(NamedTuple):
    """A repository whose memory is searched.

    ``name`` is "owner/name", or the name of a folder; ``path`` the checkout or store that was added, "" if it was added
    by name; ``branch`` the memory branch, "" for that of the settings.
    """

    name: str
    path: str = ""
    branch: str = ""

    @property
    def is_store(self) -> bool:
        """Whether it is a store, or a checkout of a memory branch: other projects have a manifest.json, too."""
        folder = Path(self.path)
        return bool(self.path) and (folder / "manifest.json").is_file() and (folder / "records").is_dir()

    def options(self, *, refresh: bool = False, progress: ProgressBar = no_progress) -> MemoryOptions:
        """Where its memory is; fetched before it is read, or never."""
        path = Path(self.path) if self.path else None
        store, repo = path if self.is_store else None, "" if path else self.name
        return MemoryOptions(path or Path("/"), store, repo, self.branch, refresh, not refresh, progress)


class SourceState(NamedTuple):
    """A repository with the state of its memory on this machine.

    ``updated`` is the time of the last fetch, None for a store; ``fault`` says why the memory, or the newest state of
    it, could not be read.
    """

    source: OrganisationSource
    threads: int = 0
    updated: datetime | None = None
    fault: str = ""


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


# -- the list ----------------------------------------------------------------------------------------------------------


def read_sources(folder: Path) -> list[OrganisationSource]:
    """The list in this folder, empty if there is none; damaged entries are left out.

    Raises WorldError for a list that cannot be read at all, or was written by a newer version.
    """
    file = folder / LIST_FILE
    data = read_regular(file)
    if data is None:
        return []
    try:
        fields = json.loads(data)
        version, entries = fields["format"], fields["repositories"]
        sources = [source for entry in entries[:MAX_SOURCES] if (source := _source(entry))]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise WorldError(f"{file} is damaged", "delete it and add the repositories again") from error
    if version != FORMAT:
        raise WorldError(f"{file} was written by another version of Precedent", "use the newer one")
    return sources


def require_sources(folder: Path) -> list[OrganisationSource]:
    """Like `read_sources`, but raises UserError for an empty list."""
    if sources := read_sources(folder):
        return sources
    raise UserError(f"{folder} has no repository yet: add one with precedent org add OWNER/NAME")


def add_sources(requested: Sequence[OrganisationSource], folder: Path, progress: ProgressBar) -> list[SourceState]:
    """Add repositories to the list, and read their memories; only their name or path and their branch are used.

    Raises UserError, and adds none, if a memory cannot be read or there are too many repositories.
    """
    with _lock(folder):
        listed = {source.name.casefold(): source for source in read_sources(folder)}
        added = {}
        for wanted in requested:
            with open_memory(wanted.options(refresh=True, progress=progress)) as memory:
                source = wanted._replace(name=_name_of(memory.require(), wanted))
                known = listed.setdefault(source.name.casefold(), source)
                _refuse_another(known, source)
                added[known.name] = _state_of(known, memory)
        if len(listed) > MAX_SOURCES:
            raise UserError(f"one folder holds at most {MAX_SOURCES} repositories: add others to another with --org")
        _write_sources(folder, listed.values())
        return list(added.values())


def remove_sources(names: Sequence[str], folder: Path) -> None:
    """Take the repositories with these names off the list."""
    with _lock(folder):
        _write_sources(folder, [source for source in read_sources(folder) if source.name not in names])


def state_of_source(source: OrganisationSource, *, refresh: bool, progress: ProgressBar) -> SourceState:
    """The state of a memory on this machine, after a fetch if ``refresh``."""
    try:
        with open_memory(source.options(refresh=refresh, progress=progress)) as memory:
            return _state_of(source, memory)
    except PrecedentError as error:
        return SourceState(source, fault=str(error))


def _name_of(memory: LocalMemory, source: OrganisationSource) -> str:
    return memory.repo or memory.local_cache.fact("repo") or Path(source.path).name


def _refuse_another(known: OrganisationSource, source: OrganisationSource) -> None:
    """Raise UserError for a name that is in the list already, with other threads.

    A store may say that it has any name: its threads would be taken for those of the other repository.
    """
    if known.path != source.path and (known.is_store or source.is_store):
        store = source.path if source.is_store else known.path
        raise UserError(
            f"the store {store} says that it is {source.name}, which is in the list once more: remove one of them first"
        )
    if known.branch != source.branch:
        raise UserError(f"{source.name} is in the list with another branch: remove it first")


def _state_of(source: OrganisationSource, memory: LocalMemory) -> SourceState:
    fetched = memory.local_cache.fact("fetched")
    updated = datetime.fromisoformat(fetched) if fetched else None
    fault = (memory.missing or memory.fetch_note).partition("\n")[0]
    return SourceState(source, memory.local_cache.size, updated, fault)


def _source(entry: Any) -> OrganisationSource | None:
    """Parse an entry of the list; None for a damaged one."""
    fields = {name: _text(entry.get(name)) for name in OrganisationSource._fields} if isinstance(entry, Mapping) else {}
    return OrganisationSource(**fields) if fields.get("name") else None


def _text(value: Any) -> str:
    return value[:MAX_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _write_sources(folder: Path, sources: Iterable[OrganisationSource]) -> None:
    fields = {"format": FORMAT, "repositories": [source._asdict() for source in sources]}
    with on_disk(f"write in {folder}"):
        replace(folder / LIST_FILE, f"{json.dumps(fields, ensure_ascii=False, indent=1)}\n".encode("utf-8", "replace"))


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    from bot.memory.branch_store import lock_folder  # a search does not need it

    with on_disk(f"write in {folder}"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock_folder(folder):
        yield


# -- the search --------------------------------------------------------------------------------------------------------


class FoundElsewhere(NamedTuple):
    """A thread that was found, and the address of its repository, "" if unknown."""

    hit: CardHit
    item: Item
    home: str


class FoundInFolder(NamedTuple):
    """The threads found, best first, notes for the user, and what was searched."""

    found: list[FoundElsewhere]
    notes: tuple[str, ...]
    repositories: int
    threads: int
    messages: int

    @property
    def items(self) -> list[Item]:
        return [each.item for each in self.found]

    def rows(self, *, agents: bool = False) -> list[Row]:
        return [row_of(ORGANISATION_FIELDS, each.item, each.home, agents=agents) for each in self.found]

    @property
    def search_scope(self) -> str:
        """What was searched: ``517 threads of 3 repositories searched``."""
        repositories = f"{self.repositories} repositor{'ies' if self.repositories != 1 else 'y'}"
        return f"{self.threads:,} thread{'s' * (self.threads != 1)} of {repositories} searched"


def search_folder(
    folder: Path, request: WordSearch, now: datetime, reader: Callable[[LocalMemory], ReadMessages] = LocalMessages
) -> FoundInFolder:
    """Search the memories of the list in this folder, as they are on this machine; nothing is fetched.

    Terms are as rare as in all memories together. Raises UserError for an empty list and for a search of sessions.
    """
    sources = require_sources(folder)
    if request.is_of_sessions:
        raise UserError("sessions belong to one checkout: search them without the other repositories")
    with ExitStack() as stack:
        memories, notes = _open_all(sources, stack)
        words = terms(request.query.words)
        statistics = [memory.local_cache.statistics(words) for memory in memories.values()]
        common = {tables: sum_statistics([each[tables] for each in statistics]) for tables in (statistics or [{}])[0]}
        found: list[FoundElsewhere] = []
        for name, memory in memories.items():
            cards = memory.local_cache
            cards.common_statistics = common
            hits = search_memory(request, cards, reader(memory))
            items = (seen_from_outside(item, name, memory.home) for item in hit_items(hits, request.words, memory.home))
            found += (FoundElsewhere(hit, item, memory.home) for hit, item in zip(hits.hits, items, strict=True))
        caches = [memory.local_cache for memory in memories.values()]
        notes += [note for note in [_age_note(memories.values(), now)] if note]
        threads, messages = sum(cards.size for cards in caches), sum(cards.messages for cards in caches)
    best = best_of_all(found, request, lambda each: each.hit)
    return FoundInFolder(best, tuple(notes), len(sources), threads, messages)


def _open_all(sources: Sequence[OrganisationSource], stack: ExitStack) -> tuple[dict[str, LocalMemory], list[str]]:
    """The memories that can be read, by the names of their repositories, and a note on each of the others."""
    memories, notes = {}, []
    for source in sources:
        try:
            memories[source.name] = stack.enter_context(open_memory(source.options())).require()
        except PrecedentError as error:
            notes.append(f"{source.name} could not be read: {error}; or run precedent org update")
    return memories, notes


def _age_note(memories: Iterable[LocalMemory], now: datetime) -> str:
    """The age of the memory that was fetched first, "" if all are fresh."""
    fetched = (memory.local_cache.fact("fetched") for memory in memories)
    days = max(((now - datetime.fromisoformat(at)).days for at in fetched if at), default=0)
    return f"updated {days_ago(days)}: run precedent org update" if days >= STALE_DAYS else ""
