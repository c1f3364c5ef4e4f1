"""Wake-up calls for lanes and the workers that answer them: a DBOS queue, with one partition for each lane."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSClient, EnqueueOptions, Serializer

from bot.errors import WorldError
from bot.server.database import Database, Transaction
from bot.server.leases import Locks, locks
from bot.server.model import Instant, RepositoryKey

NAME = "precedent"
QUEUE, TURN = "events", "turn"

RELEASE = "1"
"""DBOS gives work only to processes with the same value, so change it only when tickets change their meaning."""

UNFINISHED = ("ENQUEUED", "DELAYED", "PENDING")
ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]

POLL = 0.2
"""Seconds between two looks for tickets."""

LOOKING = "queue-worker-"
"""Prefix of the names of DBOS's threads that look for tickets."""

WRITTEN = 0.05
"""Seconds between two checks whether the end of the running tickets is stored."""

PURGED, PAGE = 5000, 500
LOOSE = 30.0
"""Seconds after which a ticket that was begun here, and that nobody works on, is begun again."""

MIGRATION = 60.0
"""Seconds to wait for another process that makes the tables."""


class JsonSerializer(Serializer):
    """Stores the contents of tickets as JSON. The library's default is pickle, which runs code that it reads."""

    def serialize(self, data: Any) -> str:
        if isinstance(data, BaseException):
            data = {"error": type(data).__name__, "text": str(data)[:500]}
        return json.dumps(data, separators=(",", ":"))

    def deserialize(self, serialized_data: str) -> Any:
        data = json.loads(serialized_data)
        is_error = isinstance(data, dict) and data.keys() == {"error", "text"}
        return RuntimeError(f"{data['error']}: {data['text']}") if is_error else data

    def name(self) -> str:
        return "precedent-json"


def prepare(database: Database, folder: Path, patience: float = MIGRATION) -> None:
    """Make or upgrade the tables of DBOS and ours. One of several processes does so while the others wait."""
    _log_as_we_do()
    with _alone(database, folder, patience), database.asked():
        DBOS.migrate(database.url)
        database.make_tables()


def _log_as_we_do() -> None:
    """DBOS adds a handler with a format of its own unless there is one; ours hides secrets."""
    logger = logging.getLogger("dbos")
    logger.handlers[:] = [logging.NullHandler()]
    logger.propagate = True


@contextmanager
def _alone(database: Database, folder: Path, patience: float) -> Iterator[None]:
    held, end = locks(database, folder), time.monotonic() + patience
    while not held.take("migrate"):
        if time.monotonic() > end:
            raise WorldError(
                f"another process has been making the queue's tables for {patience:g} s: see what it waits for"
            )
        time.sleep(0.1)
    try:
        yield
    finally:
        held.close()


class Tickets:
    """Wake-up calls for lanes: DBOS workflows in the database of the inbox, which `prepare` has made."""

    def __init__(self, database: Database) -> None:
        self.database = database
        _log_as_we_do()
        with database.asked():
            self._client = DBOSClient(
                system_database_url=database.url,
                system_database_engine=database.engine,
                serializer=JsonSerializer(),
                application_name=NAME,
                use_listen_notify=False,
                retry_connection_errors=False,
                lazy=True,
            )

    def add(self, transaction: Transaction, ticket: str, lane: RepositoryKey, delay: float = 0.0) -> None:
        """Add a ticket in the caller's transaction, to be begun after ``delay`` seconds. A known id changes nothing."""
        options: EnqueueOptions = {
            "workflow_name": TURN,
            "queue_name": QUEUE,
            "workflow_id": ticket,
            "queue_partition_key": lane.key,
            "app_version": RELEASE,
        }
        if delay > 0:
            options["delay_seconds"] = delay
        self._client.enqueue_in_transaction(transaction.connection, options, ticket, lane.key)

    def cancel(self, tickets: Sequence[str]) -> None:
        """Cancel the tickets that were not begun yet."""
        with self.database.asked():
            for start in range(0, len(tickets), PAGE):
                some = self._client.list_workflows(
                    workflow_ids=list(tickets[start : start + PAGE]),
                    status=["ENQUEUED", "DELAYED"],
                    load_input=False,
                    load_output=False,
                )
                if some:
                    self._client.cancel_workflows([each.workflow_id for each in some])

    def live(self) -> frozenset[str]:
        """The keys of lanes with a ticket that waits, is delayed or is being worked on."""
        table = "dbos.workflow_status" if self.database.is_postgres else "workflow_status"
        with self.database.transaction() as asking:
            found = asking.rows(
                f"select distinct queue_partition_key as lane from {table}"  # noqa: S608 (our own names)
                " where status in :unfinished and queue_name = :queue",
                unfinished=UNFINISHED,
                queue=QUEUE,
            )
        return frozenset(row["lane"] for row in found)

    def purge(self, before: Instant) -> int:
        """Delete at most 5,000 tickets that ended before then. Returns how many."""
        limit, purged = datetime.fromtimestamp(before / 1000, UTC).isoformat(), 0
        with self.database.asked():
            while purged < PURGED:
                old = self._client.list_workflows(
                    status=ENDED, completed_before=limit, limit=PAGE, load_input=False, load_output=False
                )
                if old:
                    self._client.delete_workflows([each.workflow_id for each in old])
                purged += len(old)
                if len(old) < PAGE:
                    break
        return purged


class Dispatch:
    """Runs tickets with DBOS, each lane one at a time over all workers. A process has one dispatch.

    ``worker`` is unique to this start of the process: two workers of one name would take each other's tickets. ``held``
    are the locks that show who is alive. ``at_once`` counts every ticket in hand, including those that wait for their
    lane. ``loose``: see `LOOSE`.
    """

    def __init__(self, database: Database, worker: str, held: Locks, at_once: int, loose: float = LOOSE) -> None:
        self.database = database
        self.worker = worker
        self.held = held
        self.at_once = at_once
        self.loose = loose
        self._changed = threading.Condition()
        self._in_hand: list[str] = []
        self._seen_loose: dict[str, float] = {}
        self._dbos: DBOS | None = None

    def start(self, run: Callable[[str, RepositoryKey], None]) -> None:
        """Hand each ticket, with its lane, to ``run``, which never raises."""
        with self.database.asked():
            self._dbos = DBOS(
                config={
                    "name": NAME,
                    "system_database_url": self.database.url,
                    "system_database_engine": self.database.engine,
                    "application_version": RELEASE,
                    "executor_id": self.worker,
                    "serializer": JsonSerializer(),
                    "log_level": "ERROR",
                    "enable_otlp": False,
                    "use_listen_notify": False,
                    "max_executor_threads": max(64, 2 * self.at_once),
                }
            )

            @DBOS.workflow(name=TURN, max_recovery_attempts=1000)
            def turn(ticket: str, lane: str) -> None:
                self._run(run, ticket, lane)

            DBOS.launch()
            DBOS.register_queue(
                QUEUE, partition_concurrency=1, worker_concurrency=self.at_once, polling_interval_sec=POLL
            )

    def recover(self, worker: str) -> int:
        """Run the tickets again that this dead worker had begun. Returns how many. Idempotent."""
        with self.database.asked():
            recovered = len(DBOS._recover_pending_workflows([worker]))  # private, and the only way
            left = DBOS.list_workflows(executor_id=worker, status="PENDING", load_input=False, load_output=False)
        if left:
            raise WorldError(f"{len(left)} tickets of {worker} could not be taken over yet")
        return recovered

    def wake(self) -> int:
        """Run the tickets again whose begin or end in this process could not be stored. Returns how many.

        They block their lanes meanwhile, so call this again and again. DBOS itself retries after a broken connection,
        but not after a full disk or a lock that it did not get.
        """
        assert self._dbos is not None, "it was started"
        now, roused = time.monotonic(), 0
        begun = self._begun()
        with self.database.asked():
            with self._changed:
                loose = begun - set(self._in_hand)
            self._seen_loose = {ticket: self._seen_loose.get(ticket, now) for ticket in loose}
            for ticket, since in self._seen_loose.items():
                if now - since >= self.loose:  # private, as there is nothing public for one ticket alone
                    roused += self._dbos._sys_db.reenqueue_for_recovery(ticket, [self.worker], QUEUE)
        return roused

    def stop(self, seconds: float) -> bool:
        """Begin nothing more and wait for the running tickets. Returns whether all ended and the database knows it.

        A ticket that counts as begun in the database blocks its lane for everybody.
        """
        if self._dbos is None:
            return True
        until = time.monotonic() + seconds
        for event in self._dbos.background_thread_stop_events:
            event.set()
        for thread in threading.enumerate():
            if thread.name.startswith(LOOKING):
                thread.join(max(0.0, until - time.monotonic()))
                if thread.is_alive():
                    return False
        with self._changed:
            ended = self._changed.wait_for(lambda: not self._in_hand, max(0.0, until - time.monotonic()))
        with suppress(WorldError):
            while ended and self._begun():
                if time.monotonic() > until:
                    return False
                time.sleep(WRITTEN)
            return ended
        return False

    def _begun(self) -> frozenset[str]:
        """The tickets that were begun here and have not ended, according to the database."""
        with self.database.asked():
            found = DBOS.list_workflows(executor_id=self.worker, status="PENDING", load_input=False, load_output=False)
        return frozenset(each.workflow_id for each in found)

    def close(self) -> None:
        """Shut DBOS down, so that this process may start it again; its last writes are finished first."""
        DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=5)
        self._dbos = None

    def _run(self, run: Callable[[str, RepositoryKey], None], ticket: str, lane: str) -> None:
        with self._changed:
            self._in_hand.append(ticket)
        try:
            with self._lane_of_our_own(lane):
                run(ticket, RepositoryKey.of(lane))
        finally:
            with self._changed:
                self._in_hand.remove(ticket)
                self._changed.notify_all()

    @contextmanager
    def _lane_of_our_own(self, lane: str) -> Iterator[None]:
        """Wait until nobody else works in the lane.

        Two workers that look for tickets in the same millisecond may each get one of the same lane, if one of these was
        stored in between and sorts before the other. A worker that waits keeps its ticket, and so its place.
        """
        name = f"lane-{lane}"
        while not self._taken(name):
            time.sleep(POLL)
        try:
            yield
        finally:
            with suppress(WorldError):  # a lost connection has lost the lock too
                self.held.give(name)

    def _taken(self, name: str) -> bool:
        with suppress(WorldError):
            return self.held.take(name)
        return False
