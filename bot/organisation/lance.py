"""The index of an organisation in LanceDB: a database for each tenant, in a folder or an object store.

Each generation has a table of threads and one of term counts. The schema of the catalogue names the current generation,
so that one atomic write replaces it. Every change is a new version of a table; of two writers at once, Lance makes one
try again.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import islice
from pathlib import Path
from time import time, time_ns
from typing import Any, Self, TypeVar

import lancedb
import pyarrow as pa
from lancedb.db import AsyncConnection
from lancedb.index import FTS, BTree
from lancedb.query import MatchQuery
from lancedb.table import AsyncTable

from bot.domain.organisation import FoundThread, OrganisationThread
from bot.domain.post import OrganisationKey
from bot.errors import UserError
from bot.index.scoring import MAX_QUERY_TERMS
from bot.organisation.rows import ThreadRow, literal, milliseconds, plain_terms, row_of, thread_of
from bot.organisation.term_counts import TermCounts
from bot.ranking.rarity import idf
from bot.recall.candidates import OrganisationUnavailable

LAYOUT_VERSION = 1
CATALOGUE, THREADS_PREFIX, COUNTS_PREFIX = "catalogue", "threads-", "counts-"
REBUILD_REMEDY = "run: precedent org rebuild"

SEARCH_SECONDS = 2.0
WRITE_SECONDS = 60.0
"""Timeout for one batch."""

BUILD_SECONDS = 3_600.0
"""Timeout for building an index."""

COMPACT_SECONDS = 600.0
"""Timeout for compaction: shorter than the time after which a run of the server counts as hanging."""

SMALL_BATCH, LARGE_BATCH = 500, 10_000
MAX_TRIES = 10
FILE_RETENTION = timedelta(minutes=10)
"""How long replaced files stay, since a search may still read them."""

LARGE_FILE_ROWS = 1 << 20
"""A file with this many rows is no longer merged with others by Lance."""

RECOUNT_RATIO = 1.2
"""Terms are counted again once there are this many times as many threads, or as many times fewer."""

INDEX_CACHE_BYTES, METADATA_CACHE_BYTES = 512 << 20, 64 << 20
"""Bytes, for all tenants of this process."""

INDEX_MEGABYTES = 1_024
"""Memory for building an index."""

_THREADS_SCHEMA = pa.schema(
    [
        # Lance compares the keys that two writers insert at once only in a column marked so.
        pa.field("key", pa.string(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"}),
        pa.field("repository", pa.int64()),
        pa.field("revision", pa.int64()),
        pa.field("created", pa.int64()),
        pa.field("terms", pa.string()),
        pa.field("document", pa.string()),
    ]
)
_COUNTS_SCHEMA = pa.schema([pa.field("term", pa.string()), pa.field("threads", pa.int64())])
_TOTAL_TERM = ""
"""The term under which the counts store the number of all threads."""

_INDEX_CONFIG = FTS(
    base_tokenizer="whitespace",
    with_position=False,
    lower_case=False,
    stem=False,
    remove_stop_words=False,
    ascii_folding=False,
    max_token_length=None,
    memory_limit=INDEX_MEGABYTES,
)
_OBJECT_STORES = ("s3://", "gs://", "az://")
_TENANT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BUSY = re.compile("conflict|concurrent|contention", re.IGNORECASE)
_NOT_FOUND, _EXISTS = "was not found", "already exists"

_ENGINE_ERRORS = (RuntimeError, ValueError, OSError)
"""What the engine raises, except for panics."""

MAX_TABLES = 1_000

T = TypeVar("T")


def open_candidates(
    uri: str, tenant: str, retention: timedelta = FILE_RETENTION, *, large_file_rows: int = LARGE_FILE_ROWS
) -> LanceCandidates:
    """The index of one tenant in a folder or below ``s3://``, ``gs://`` or ``az://``; empty if there is none yet.

    Credentials of object stores come from their usual environment variables. Raises UserError for an address of
    another kind, OrganisationUnavailable if the place cannot be used.
    """
    if not _TENANT.fullmatch(tenant):
        raise ValueError(f"not a tenant: {tenant[:80]!r}")
    if "://" in uri and not uri.startswith(_OBJECT_STORES):
        raise UserError(f"not a place for an index: {uri}", "give a folder, s3://…, gs://… or az://…")
    if not uri.startswith(_OBJECT_STORES):
        uri = str(Path(uri).expanduser().absolute())
        try:
            Path(uri).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise OrganisationUnavailable(f"the index of the organisation: {error}") from error
    return LanceCandidates(f"{uri.rstrip('/')}/{tenant}", retention, large_file_rows)


class LanceCandidates:
    """`Candidates` in LanceDB. Safe for several threads and processes at once."""

    def __init__(
        self, address: str, retention: timedelta = FILE_RETENTION, large_file_rows: int = LARGE_FILE_ROWS
    ) -> None:
        self._retention, self._large_file_rows = retention, large_file_rows
        connecting = lancedb.connect_async(address, read_consistency_interval=timedelta(0), session=_session())
        self._database: AsyncConnection = self._wait(connecting, WRITE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def exists(self) -> bool:
        return bool(self._wait(self._current_generation(), SEARCH_SECONDS))

    def search(
        self, terms: Sequence[str], scope: Collection[int], *, before: datetime | None = None, limit: int = 200
    ) -> list[FoundThread]:
        words = plain_terms(terms)[:MAX_QUERY_TERMS]
        if not words or not scope or limit < 1:
            return []
        condition = f"repository IN ({', '.join(str(int(number)) for number in sorted(scope))})"
        if before is not None:
            condition += f" AND created < {milliseconds(before)}"
        rows = self._wait(self._find_rows(" ".join(words), condition, limit), SEARCH_SECONDS)
        best: dict[OrganisationKey, FoundThread] = {}
        for row in rows:
            thread = thread_of(row)
            if thread is None or thread.repository not in scope or row["_score"] <= 0:
                continue
            best_so_far = best.get(thread.key)
            if best_so_far is None or best_so_far.thread.revision < thread.revision:
                best[thread.key] = FoundThread(thread, row["_score"])
        return sorted(best.values(), key=lambda found: (-found.score, found.thread.repository, str(found.thread.id)))

    def rarity(self, terms: Iterable[str]) -> Mapping[str, float]:
        """As of the last rebuild, or the last compaction after which the number of threads has changed much."""
        unique = list(dict.fromkeys(islice(terms, MAX_QUERY_TERMS)))
        counts = self._wait(self._read_counts([_TOTAL_TERM, *map(literal, unique)]), SEARCH_SECONDS) if unique else {}
        total = max(1, counts.get(_TOTAL_TERM, 1))
        return {term: idf(min(total, counts.get(literal(term), 1)), total) for term in unique}

    def upsert(self, threads: Sequence[OrganisationThread]) -> None:
        latest: dict[str, ThreadRow] = {}
        for row in map(row_of, threads):
            if row["key"] not in latest or latest[row["key"]]["revision"] <= row["revision"]:
                latest[row["key"]] = row
        for rows in _batches(latest.values(), SMALL_BATCH):
            self._wait(self._write(partial(_merge, rows)), WRITE_SECONDS)

    def delete(self, repository: int) -> None:
        self._wait(self._erase(f"repository = {int(repository)}"), WRITE_SECONDS)

    def rebuild(self, threads: Iterable[OrganisationThread]) -> None:
        """As `Candidates.rebuild`. Of two at once, the one that began later stays."""
        generation = self._wait(self._next_generation(), WRITE_SECONDS)
        table = self._wait(
            self._database.create_table(THREADS_PREFIX + generation, schema=_THREADS_SCHEMA), WRITE_SECONDS
        )
        counts = TermCounts()
        for rows in _batches(map(row_of, threads), LARGE_BATCH):
            for row in rows:
                counts.add(row["terms"].split())
            self._wait(table.add(pa.Table.from_pylist(rows, schema=_THREADS_SCHEMA)), WRITE_SECONDS)
        self._wait(table.optimize(), BUILD_SECONDS)
        self._wait(_create_indexes(table), BUILD_SECONDS)
        self._store_counts(generation, counts)
        self._wait(self._swap(generation), WRITE_SECONDS)
        self._wait(self._drop_old_generations(), WRITE_SECONDS)

    def compact(self, *, purges: bool = False) -> None:
        generation = self._wait(self._current_generation(), WRITE_SECONDS)
        if not generation:
            return
        table = self._wait(self._database.open_table(THREADS_PREFIX + generation), WRITE_SECONDS)
        try:
            self._wait(self._optimize(generation, table, purges=purges), COMPACT_SECONDS)
        except OrganisationUnavailable as error:
            if purges or not _BUSY.search(str(error)):
                raise  # else other writers are busy: the next compaction catches up
        if purges or self._wait(self._is_miscounted(generation, table), WRITE_SECONDS):
            self._store_counts(generation, self._count_terms(table))
        self._wait(self._drop_old_generations(), WRITE_SECONDS)

    async def _optimize(self, generation: str, table: AsyncTable, *, purges: bool) -> None:
        """Optimises twice, as Lance merges no file that is in the index with one that is not yet.

        It writes a file again, without the rows that were erased, if it finds another to merge it with, or more than a
        tenth of its rows is erased. A placeholder row gives it a second file to merge with. A large file is never
        merged, so a ninth of its rows is written elsewhere: other rows each time, as those of the last time are
        together in one file.
        """
        if purges and await table.count_rows() >= self._large_file_rows:
            ninth = f"md5(key || '{random.getrandbits(32):x}') < '1d'"  # of 256 beginnings the first 29
            await _retry_when_busy(partial(table.update, where=ninth, updates_sql={"revision": "revision"}))
        if purges:
            row = ThreadRow(key="", repository=0, revision=int(time() * 1000), created=0, terms="", document="")
            await _retry_when_busy(partial(_merge, [row], table))
        for _ in range(2):
            await table.optimize(cleanup_older_than=self._retention)
        if counts := await self._counts_table(generation):
            await counts.optimize(cleanup_older_than=self._retention)

    def _count_terms(self, table: AsyncTable) -> TermCounts:
        """Count in the caller's thread, as the loop serves everybody's searches."""
        counts = TermCounts()
        batches = self._wait(_stream_terms(table), WRITE_SECONDS)
        while (batch := self._wait(anext(batches, None), WRITE_SECONDS)) is not None:
            for text in batch.column("terms").to_pylist():
                counts.add(text.split())
        return counts

    def _store_counts(self, generation: str, counts: TermCounts) -> None:
        rows = {_TOTAL_TERM: counts.threads} | {literal(term): count for term, count in counts.frequent.items()}
        content = pa.table([list(rows), list(rows.values())], schema=_COUNTS_SCHEMA)
        self._wait(self._write_counts(COUNTS_PREFIX + generation, content), BUILD_SECONDS)

    async def _write_counts(self, name: str, content: pa.Table) -> None:
        try:
            table = await self._database.create_table(name, content)
        except ValueError as error:
            if _EXISTS not in str(error):
                raise
            table = await self._database.create_table(name, content, mode="overwrite")
        await table.create_index("term", config=BTree())

    async def _is_miscounted(self, generation: str, table: AsyncTable) -> bool:
        stored, actual = (
            (await self._counts_in(generation, [_TOTAL_TERM])).get(_TOTAL_TERM, 0),
            await table.count_rows(),
        )
        return bool(actual > RECOUNT_RATIO * stored or stored > RECOUNT_RATIO * actual)

    async def _find_rows(self, words: str, condition: str, limit: int) -> list[dict[str, Any]]:
        async def find(generation: str) -> list[dict[str, Any]]:
            table = await self._database.open_table(THREADS_PREFIX + generation)
            query = table.query().nearest_to_text(MatchQuery(words, "terms")).where(condition).limit(limit)
            columns = query.select(["repository", "revision", "terms", "document", "_score"])
            rows: list[dict[str, Any]] = (await columns.to_arrow()).to_pylist()
            return rows

        return await self._read(find, [])

    async def _read_counts(self, terms: Sequence[str]) -> dict[str, int]:
        return await self._read(lambda generation: self._counts_in(generation, terms), {})

    async def _counts_in(self, generation: str, terms: Sequence[str]) -> dict[str, int]:
        """Empty if nothing was counted yet."""
        table = await self._counts_table(generation)
        if table is None:
            return {}
        rows = (await table.query().where(f"term IN ({_quoted_list(terms)})").limit(len(terms)).to_arrow()).to_pylist()
        return {row["term"]: row["threads"] for row in rows}

    async def _counts_table(self, generation: str) -> AsyncTable | None:
        try:
            return await self._database.open_table(COUNTS_PREFIX + generation)
        except ValueError as error:
            if _NOT_FOUND in str(error):
                return None
            raise

    async def _read(self, read: Callable[[str], Awaitable[T]], nothing: T) -> T:
        """What ``read`` finds in the current generation; it is called again if another one came meanwhile."""
        generation = await self._current_generation()
        while generation:
            try:
                return await _translate_errors(read(generation))
            except OrganisationUnavailable:
                latest = await self._current_generation()
                if latest == generation:
                    raise
                generation = latest
        return nothing

    async def _write(self, change: Callable[[AsyncTable], Awaitable[object]]) -> None:
        """Make a change in the current generation, and in the next one as well if that came meanwhile."""
        generation = await self._current_generation() or await self._create_first_generation()
        while True:
            table = await self._database.open_table(THREADS_PREFIX + generation)
            await _retry_when_busy(partial(change, table))
            latest = await self._current_generation()
            if latest == generation:
                return
            generation = latest

    async def _erase(self, condition: str) -> None:
        if await self._current_generation():
            await self._write(lambda table: table.delete(condition))

    async def _current_generation(self) -> str:
        """The current generation, "" before the first."""
        try:
            catalogue = await self._database.open_table(CATALOGUE)
            metadata = (await catalogue.schema()).metadata or {}
        except ValueError as error:
            if _NOT_FOUND in str(error):
                return ""
            raise
        layout, generation = (_metadata_text(metadata, name) for name in (b"layout", b"generation"))
        if layout != str(LAYOUT_VERSION) or not _TENANT.fullmatch(generation):
            raise OrganisationUnavailable(
                f"the index of the organisation has another layout: {layout[:20]}", REBUILD_REMEDY
            )
        return generation

    async def _next_generation(self) -> str:
        """A name that sorts after that of the current generation, whatever the clocks of other machines say, and after
        one that began in the same millisecond."""
        start = max(time_ns() // 1000, _start_time(await self._current_if_readable()) + 1)
        return f"{start:018d}-{random.getrandbits(32):08x}"

    async def _current_if_readable(self) -> str:
        """The current generation, "" if it cannot be read."""
        try:
            return await _translate_errors(self._current_generation())
        except OrganisationUnavailable:
            return ""

    async def _create_first_generation(self) -> str:
        """Make the first generation, unless another process is faster, and return the current one."""
        generation = await self._next_generation()
        await _create_indexes(await self._database.create_table(THREADS_PREFIX + generation, schema=_THREADS_SCHEMA))
        try:
            await self._database.create_table(CATALOGUE, schema=_catalogue_schema(generation))
        except _ENGINE_ERRORS as error:
            if _EXISTS not in str(error) and not _BUSY.search(str(error)):
                raise
        current = await self._current_generation()
        if current != generation:
            await self._database.drop_table(THREADS_PREFIX + generation, ignore_missing=True)
        return current

    async def _swap(self, generation: str) -> None:
        """Make this the current generation, unless a later one is."""
        if await self._current_if_readable() > generation:
            return
        schema = _catalogue_schema(generation)
        try:
            create = partial(self._database.create_table, CATALOGUE, schema=schema, mode="overwrite")
            await _translate_errors(_retry_when_busy(create))
        except OrganisationUnavailable:  # too damaged to be replaced
            await self._database.drop_table(CATALOGUE, ignore_missing=True)
            await self._database.create_table(CATALOGUE, schema=schema)

    async def _drop_old_generations(self) -> None:
        """Drop the generations before the current one, once no search reads them any more.

        An earlier rebuild that is still at work fails: it has read an older state.
        """
        catalogue = await self._database.open_table(CATALOGUE)
        metadata = (await catalogue.schema()).metadata or {}
        current, since = _metadata_text(metadata, b"generation"), int(_metadata_text(metadata, b"since") or 0)
        if time() - since < self._retention.total_seconds():
            return
        for name in (await self._database.list_tables(limit=MAX_TABLES)).tables:
            kind, _, generation = name.partition("-")
            if f"{kind}-" in (THREADS_PREFIX, COUNTS_PREFIX) and generation < current:
                await self._database.drop_table(name, ignore_missing=True)

    def _wait(self, work: Awaitable[T], seconds: float) -> T:
        """The result of ``work``, which is given up after ``seconds``."""
        future = asyncio.run_coroutine_threadsafe(_translate_errors(work), _loop())
        try:
            return future.result(seconds)
        except TimeoutError as error:
            future.cancel()
            message = f"the index of the organisation did not answer within {seconds:g} s"
            raise OrganisationUnavailable(message) from error
        except BaseException:
            future.cancel()
            raise


@cache
def _session() -> lancedb.Session:
    return lancedb.Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Runs the engine for all threads of this process, so that waiting for it can be given up."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="organisation", daemon=True).start()
    return loop


async def _translate_errors(work: Awaitable[T]) -> T:
    """The result of ``work``; whatever the engine raises, a panic of Rust too, is OrganisationUnavailable."""
    try:
        return await work
    except OrganisationUnavailable:
        raise
    except Exception as error:
        message = f"the index of the organisation failed: {_first_line(error)}"
        raise OrganisationUnavailable(message, f"if this persists, {REBUILD_REMEDY}") from error


async def _merge(rows: Sequence[ThreadRow], table: AsyncTable) -> None:
    """Without an index of the keys: with one, Lance would let two writers insert the same key."""
    merge = table.merge_insert("key").when_matched_update_all(where="target.revision <= source.revision")
    await (
        merge.when_not_matched_insert_all().use_index(False).execute(pa.Table.from_pylist(rows, schema=_THREADS_SCHEMA))
    )


async def _create_indexes(table: AsyncTable) -> None:
    await table.create_index("terms", config=_INDEX_CONFIG)
    await table.create_index("repository", config=BTree())


async def _stream_terms(table: AsyncTable) -> Any:
    return await table.query().select(["terms"]).to_batches()


async def _retry_when_busy(work: Callable[[], Awaitable[object]]) -> None:
    """Retry work that lost to other writers, after a random delay."""
    for attempt in range(MAX_TRIES):
        try:
            await work()
            return
        except _ENGINE_ERRORS as error:
            if attempt == MAX_TRIES - 1 or not _BUSY.search(str(error)):
                raise
        await asyncio.sleep(random.uniform(0, min(2.0, 0.05 * 2**attempt)))


def _catalogue_schema(generation: str) -> pa.Schema:
    metadata = {"layout": str(LAYOUT_VERSION), "generation": generation, "since": str(int(time()))}
    return pa.schema([pa.field("nothing", pa.int8())], metadata=metadata)


def _metadata_text(metadata: Mapping[bytes, bytes], name: bytes) -> str:
    return metadata.get(name, b"").decode(errors="replace")


def _start_time(generation: str) -> int:
    return int(generation.partition("-")[0] or 0)


def _quoted_list(texts: Iterable[str]) -> str:
    """For a condition; each is a `literal`, or a key made of such."""
    return ", ".join(f"'{text}'" for text in texts)


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def _first_line(error: BaseException) -> str:
    lines = str(error).split("\n")
    return f"{type(error).__name__}: {lines[0][:300]}"
