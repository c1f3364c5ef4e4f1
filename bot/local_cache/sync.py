"""Updates the cache of a memory, reading only what changed; and opens whole memories."""

from __future__ import annotations

import json
import sqlite3
import struct
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from operator import ge
from pathlib import Path
from typing import NamedTuple

from bot.domain.card import Card, CardId, card_of, message_of, name_of, settled_card
from bot.domain.changes import FixInfo
from bot.domain.digest import IndexEntry
from bot.domain.thread import ThreadId
from bot.errors import StoreError, UserError
from bot.files import on_disk
from bot.git.errors import GitError
from bot.git.remote import OwnRemote
from bot.index.protocol import IndexSegment
from bot.index.scoring import LEVELS
from bot.index.segment_file import pack
from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS_SCHEMA, fact, note, open_database, writing
from bot.local_cache.local_memory import CACHE_FILE, FETCHED_FILE, LocalMemory, ProgressBar, no_progress
from bot.memory.branch_store import CachedBranch, lock_folder
from bot.memory.folder_store import FolderStore
from bot.memory.manifest import ForeignFormat
from bot.memory.memory import Memory
from bot.memory.model_store import Embedder
from bot.memory.shards import DIGESTS, FIXES, read_texts


def fill_from_store(
    store: Path, path: Path, stamp: Callable[[], str], progress: ProgressBar = no_progress
) -> LocalCache:
    """Update the cache of a store. Raises UserError if the store is missing or empty."""
    now = stamp()
    with closing(open_store(store)) as memory, lock_folder(path.parent):
        return _fill(path, memory, now, progress)


class Checkout(NamedTuple):
    """A checkout on this machine, and the name of the remote whose branches it has fetched."""

    top: Path
    remote: str


def fill_from_branch(
    url: str, branch: str, cache: Path, progress: ProgressBar = no_progress, checkout: Checkout | None = None
) -> str:
    """Fetch the branch and update the file in ``cache``. Returns a note for the user, or "".

    If the remote cannot be reached, the cache stays as it is, and the note says so. If there is none yet, the branch is
    read from the ``checkout`` of that repository: the user's own fetches may have a password that ours must not use.
    """
    with lock_folder(cache):
        try:
            fetch_note = _fetch(OwnRemote(url), branch, cache, progress)
        except ForeignFormat:
            raise  # the old cache would hide that this version is too old
        except StoreError as error:
            fetch_note = f"Using the memory as last fetched: {error}"
            if not (cache / CACHE_FILE).exists():
                if not isinstance(error, GitError):
                    raise
                if checkout is None or not _fetch_from(checkout, branch, cache, progress):
                    return f"the memory could not be fetched: {error}"
                fetch_note = f"Using the memory as this checkout last fetched it: {error}"
        with on_disk(f"write in {cache}"):
            (cache / FETCHED_FILE).write_text(fetch_note, encoding="utf-8", errors="replace")
        return fetch_note


def _fetch_from(checkout: Checkout, branch: str, cache: Path, progress: ProgressBar) -> bool:
    """Whether the checkout has the branch of its remote, and it could be read."""
    try:
        _fetch(OwnRemote(str(checkout.top)), branch, cache, progress, tracked_by=checkout.remote)
    except (StoreError, UserError):
        return False
    return (cache / CACHE_FILE).exists()


def _fetch(remote: OwnRemote, branch: str, cache: Path, progress: ProgressBar, tracked_by: str = "") -> str:
    with closing(CachedBranch(remote, branch, cache, fetches=True, tracked_by=tracked_by)) as store:
        with progress("Fetching the memory", None):
            snapshot = store.open()
        if not snapshot.revision:
            (cache / CACHE_FILE).unlink(missing_ok=True)
            return (
                f"there is no branch {branch!r} at {remote.url}: the Action creates it on its first run"
                " (docs/getting-started.md); to use a folder instead, give --store"
            )
        database = open_database(cache / CACHE_FILE, CARDS_SCHEMA)
        is_current = fact(database, "stamp") == snapshot.revision
        database.close()
        if not is_current:
            memory = Memory(store).open()
            _fill(cache / CACHE_FILE, memory, snapshot.revision, progress).close()
    with closing(open_database(cache / CACHE_FILE, CARDS_SCHEMA)) as database:
        note(database, "fetched", datetime.now(UTC).isoformat())
    return ""


def _fill(path: Path, memory: Memory, stamp: str, progress: ProgressBar) -> LocalCache:
    database = open_database(path, CARDS_SCHEMA)
    try:
        with progress("Reading the memory", steps(memory)) as tick:
            fill_cache(database, memory, stamp, tick)
    except BaseException:
        database.close()
        raise
    return LocalCache(database)


@contextmanager
def memory_of(local_memory: LocalMemory, embedder: Embedder | None = None) -> Iterator[Memory]:
    """Open the memory behind the cache, for reading. Nothing is fetched or written.

    ``embedder`` is the text model of a branch; that of a store is unknown here.
    """
    hidden = local_memory.local_cache.hidden
    if local_memory.store:
        with closing(open_store(local_memory.store)) as memory:
            memory.hidden = hidden
            yield memory
        return
    if local_memory.cache is None:
        raise StoreError(local_memory.missing or "there is no memory")
    with (
        lock_folder(local_memory.cache),
        closing(CachedBranch(OwnRemote("/"), "precedent", local_memory.cache, fetches=False)) as store,
    ):
        memory = Memory(store, embedder=embedder, repo=local_memory.repo or None).open()
        memory.hidden = hidden
        yield memory


def text_model(folder: Path | None) -> Embedder | None:
    """Open the text model in a folder, None without a folder. Raises WorldError if it cannot be used."""
    if folder is None:
        return None
    from bot.ranking.embedder import open_embedder  # NumPy takes longer to load than most commands run

    return open_embedder(folder)


def open_store(folder: Path, *, semantic: Path | None = None, repo: str | None = None) -> Memory:
    """Open the memory in a folder. Raises UserError if there is none, or if it is empty.

    ``semantic`` is the folder of a text model. ``repo``: as in `Memory`.
    """
    if not folder.is_dir():
        raise UserError(f"no store at {folder}: make one with 'precedent import FILE --store {folder}'")
    store = FolderStore(folder)
    memory = Memory(store, repo=repo, embedder=text_model(semantic)).open()
    if not memory.state.manifest.threads:
        raise UserError(
            f"the store at {folder} holds no threads: import some with 'precedent import FILE --store {folder}'"
        )
    return memory


Progress = Callable[[int], None]
Fixes = dict[CardId, FixInfo]
"""Thread → the change that its ending names, as last looked up."""

_CACHED_FIELDS = (b"n", b"t")


def fill_cache(database: sqlite3.Connection, memory: Memory, stamp: str, tick: Progress = lambda _: None) -> None:
    """Make the cache equal to ``memory``, whose state ``stamp`` identifies, in one transaction.

    ``tick`` is called for each segment of the index and each shard of digests.
    """
    with writing(database):
        _sync_segments(database, memory.index.segments(), _THREAD_TABLES, tick)
        _sync_segments(database, memory.messages.segments(), _MESSAGE_TABLES, tick)
        hidden = frozenset(memory.state.manifest.hidden_by_github)
        fixes = _fixes_by_shard(memory.state.all_values(FIXES).values())
        _sync_digests(database, memory.state.base.digest_shards(), fixes, hidden, tick)
        note(database, "stamp", stamp)
        note(database, "repo", memory.state.repo or "")
        note(database, "hidden", " ".join(memory.hidden_people.logins))
        note(database, "questions", json.dumps(memory.stored_settings.commands.questions))
        note(database, "notes", "\n".join([*memory.notes, *_gap_notes(database, memory)]))


def _gap_notes(database: sqlite3.Connection, memory: Memory) -> list[str]:
    missing = memory.state.manifest.threads - int(database.execute("SELECT count(*) FROM threads").fetchone()[0])
    notes = [f"{missing:,} threads have no digest and are not found here: run a rebuild."] if missing > 0 else []
    no_messages = "Comments are not searched: this memory has no index of them yet. A rebuild makes one."
    return notes if memory.messages.exists else [*notes, no_messages]


def steps(memory: Memory) -> int:
    """Return the maximum number of times that `fill_cache` calls ``tick``."""
    segments = len(memory.index.segments()) + len(memory.messages.segments())
    return segments + len(memory.state.base.digest_paths())


class IndexTables(NamedTuple):
    """The tables of an index in the cache: segments, posting lists, and documents. ``row`` makes a document's row."""

    segments: str
    postings: str
    documents: str
    row: Callable[[IndexEntry], tuple[object, ...]]


def _message_row(entry: IndexEntry) -> tuple[object, ...]:
    thread, position = message_of(entry.id)
    return name_of(thread), position, entry.author, entry.role, entry.created_at.isoformat()


_THREAD_TABLES = IndexTables("segments", "postings", "documents", lambda entry: (name_of(entry.id),))
_MESSAGE_TABLES = IndexTables("message_segments", "message_postings", "messages", _message_row)


def _sync_segments(
    database: sqlite3.Connection, segments: Mapping[str, IndexSegment], tables: IndexTables, tick: Progress
) -> None:
    numbers = {name: number for number, name in database.execute(f"SELECT number, name FROM {tables.segments}")}  # noqa: S608 - ours
    for name in numbers.keys() - segments.keys():
        for table in (tables.postings, tables.documents):
            database.execute(f"DELETE FROM {table} WHERE segment = ?", (numbers[name],))  # noqa: S608 - ours
        database.execute(f"DELETE FROM {tables.segments} WHERE number = ?", (numbers[name],))  # noqa: S608 - ours
    for name, segment in segments.items():
        deleted = " ".join(map(str, sorted(segment.deleted)))
        if name in numbers:
            database.execute(f"UPDATE {tables.segments} SET deleted = ? WHERE name = ?", (deleted, name))  # noqa: S608 - ours
        else:
            insert = f"INSERT INTO {tables.segments} (name, count, deleted) VALUES (?, ?, ?)"  # noqa: S608 - ours
            number = database.execute(insert, (name, segment.count, deleted)).lastrowid
            _add_segment(database, segment, number or 0, tables)
        tick(1)


def _add_segment(database: sqlite3.Connection, segment: IndexSegment, number: int, tables: IndexTables) -> None:
    try:
        postings = [
            (key, number, _pack_postings(documents, levels))
            for key, documents, levels in segment.items()
            if key[:1] in _CACHED_FIELDS
        ]
        entries = [(number, document, *tables.row(segment.entry(document))) for document in range(segment.count)]
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error) as error:
        raise StoreError(f"the index is damaged ({error!s:.120}); run a rebuild") from error
    database.executemany(f"INSERT OR IGNORE INTO {tables.postings} VALUES (?, ?, ?)", postings)  # noqa: S608 - ours
    if entries:
        marks = ", ".join("?" * len(entries[0]))
        database.executemany(f"INSERT INTO {tables.documents} VALUES ({marks})", entries)  # noqa: S608 - ours


def _pack_postings(documents: list[int], levels: bytes) -> bytes:
    """A posting list in the format of the cache. Raises ValueError for a damaged one."""
    if not levels or max(levels) >= len(LEVELS) or any(map(ge, documents, documents[1:])):
        raise ValueError("a list is damaged")
    return pack(array("I", documents), levels)


def _fixes_by_shard(fixes: Iterable[FixInfo]) -> dict[str, Fixes]:
    by_shard: dict[str, Fixes] = {}
    for fix in fixes:
        if fix.commit or fix.refuted:
            by_shard.setdefault(DIGESTS.path(fix.id), {})[fix.id] = fix
    return by_shard


def _sync_digests(
    database: sqlite3.Connection,
    shards: Iterable[tuple[str, bytes]],
    fixes: Mapping[str, Fixes],
    hidden: frozenset[ThreadId],
    tick: Progress,
) -> None:
    """``hidden`` are the threads that GitHub does not show now."""
    marks = dict(database.execute("SELECT path, mark FROM shards"))
    for path, data in shards:
        shard_fixes = fixes.get(path, {})
        left_out = {key for key in hidden if DIGESTS.path(key) == path}
        facts = sorted((str(key), *_fix_facts(fix)) for key, fix in shard_fixes.items()), sorted(map(str, left_out))
        mark = blake2b(b"\0".join((data, repr(facts).encode("utf-8", "replace"))), digest_size=16).hexdigest()
        if marks.pop(path, "") != mark:
            _forget(database, path)
            _add_shard(database, path, data, shard_fixes, left_out)
            database.execute("INSERT OR REPLACE INTO shards VALUES (?, ?)", (path, mark))
        tick(1)
    for path in marks:
        _forget(database, path)
        database.execute("DELETE FROM shards WHERE path = ?", (path,))


def _forget(database: sqlite3.Connection, shard: str) -> None:
    threads = "(SELECT id FROM threads WHERE shard = ?)"
    database.execute(f"DELETE FROM files WHERE thread IN {threads}", (shard,))  # noqa: S608 - ours
    database.execute(f"DELETE FROM links WHERE source IN {threads}", (shard,))  # noqa: S608
    database.execute("DELETE FROM threads WHERE shard = ?", (shard,))


def _add_shard(
    database: sqlite3.Connection, path: str, data: bytes, fixes: Fixes, left_out: Container[ThreadId]
) -> None:
    for key, line in read_texts(data):
        card = None if key in left_out else card_of(line)
        if card is None or name_of(card.id) != name_of(key) or DIGESTS.path(key) != path:
            continue
        digest = _with_fix(line, card, fixes.get(card.id))
        name = name_of(key)
        for table, column in (("files", "thread"), ("links", "source")):  # rows of another line for the same thread
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))  # noqa: S608 - ours
        decided = max((ruling.at.isoformat() for ruling in card.decisions if ruling.at), default="")
        row = (name, path, digest, card.updated_at.isoformat(), decided)
        database.execute("INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?)", row)
        files = {(file.replace("\\", "/").casefold().rpartition("/")[2], name, file) for file in card.files}
        database.executemany("INSERT OR IGNORE INTO files VALUES (?, ?, ?)", files)
        database.executemany("INSERT OR IGNORE INTO links VALUES (?, ?, ?)", _links(card_of(digest) or card))


def _fix_facts(fix: FixInfo) -> tuple[str, str, str, bool]:
    return fix.ref, fix.closed_by, fix.release or "", fix.refuted


def _with_fix(line: str, card: Card, fix: FixInfo | None) -> str:
    """The digest, updated with what was looked up about its fix."""
    named = card.ending.change
    if fix is None or named is None or fix.ref != named.ref:
        return line
    ending = settled_card(card, None, fix).ending
    release = ending.release or (fix.release or "" if ending.fix else "")
    outcome = {"kind": ending.kind, "fix": ending.fix, "claimed": ending.claimed, "release": release}
    fields = json.loads(line)
    return json.dumps(fields | {"outcome": fields["outcome"] | outcome}, ensure_ascii=False)


def _links(card: Card) -> set[tuple[str, str, str]]:
    """The links of a thread; of several to one thread, only the strongest kind."""
    kinds = {name_of(number): "reference" for number in card.references}
    if card.ending.fix.startswith("#") and card.ending.fix[1:].isdecimal():
        kinds[f"#{int(card.ending.fix[1:])}"] = "fix"
    if card.duplicate_of is not None:
        kinds[name_of(card.duplicate_of)] = "duplicate"
    own = name_of(card.id)
    return {(own, target, kind) for target, kind in kinds.items() if target != own}
