"""Wake-up calls for lanes, and who answers them: a queue of DBOS, one partition for each lane."""

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
"""DBOS gives work only to who says the same, so this changes only when tickets mean something else."""

UNFINISHED = ("ENQUEUED", "DELAYED", "PENDING")
ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]

POLL = 0.2
"""Seconds between two looks for tickets."""

LOOKING = "queue-worker-"
"""What the names of DBOS's threads that look for tickets begin with."""

WRITTEN = 0.05
"""Seconds between two looks whether the end of what ran is written down."""

PURGED, PAGE = 5000, 500
LOOSE = 30.0
"""Seconds after which a ticket that was begun here and is in nobody's hands is begun anew."""

MIGRATION = 60.0
"""Seconds that a process waits for another one that makes the tables."""


class JsonSerializer(Serializer):
    """What tickets hold, as JSON: the library's own way is pickle, which runs what it reads."""

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
    """Make or bring up to date the tables, DBOS's and ours. Of several processes one does so, the others wait."""
    _log_as_we_do()
    with _alone(database, folder, patience), database.asked():
        DBOS.migrate(database.url)
        database.make_tables()


def _log_as_we_do() -> None:
    """DBOS brings a handler that writes lines of its own form to stderr, unless it finds one; ours hides secrets."""
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
    """Wake-up calls for lanes: workflows of DBOS, in the database of the inbox, which `prepare` has made."""

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
        """Within the caller's transaction. The same id again is nothing. After ``delay`` seconds at the earliest."""
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
        """Those not begun yet are never begun."""
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
                f"select distinct queue_partition_key as lane from {table}"  # noqa: S608 (names of ours)
                " where status in :unfinished and queue_name = :queue",
                unfinished=UNFINISHED,
                queue=QUEUE,
            )
        return frozenset(row["lane"] for row in found)

    def purge(self, before: Instant) -> int:
        """Forget tickets that ended before then, at most 5,000; how many."""
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
    """Runs tickets, one lane one at a time over all workers, by DBOS. A process has one.

    ``worker`` is the name of this start alone.

    Two workers of one name would take each other's tickets. ``held`` are the locks that say who lives. ``at_once``
    counts every ticket in hand, also those of lanes that wait for their time. ``loose``: see `LOOSE`.
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
        """Tickets that this dead worker had begun run again; how many. Idempotent."""
        with self.database.asked():
            recovered = len(DBOS._recover_pending_workflows([worker]))  # private, and the only way
            left = DBOS.list_workflows(executor_id=worker, status="PENDING", load_input=False, load_output=False)
        if left:
            raise WorldError(f"{len(left)} tickets of {worker} could not be taken over yet")
        return recovered

    def wake(self) -> int:
        """Tickets that were begun here, and whose begin or end could not be written down, run again; how many.

        They keep their lanes from everybody else meanwhile, so this is to be asked again and again. DBOS itself tries
        again when a connection broke, but not when a disk was full or a lock not to be had.
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
        """Begin nothing more, wait so long for what runs; whether all ended, and is known to have.

        A ticket has ended when the database knows it: one that it takes for begun keeps its lane from everybody.
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
        """The tickets that were begun here and have not ended, for all that the database knows."""
        with self.database.asked():
            found = DBOS.list_workflows(executor_id=self.worker, status="PENDING", load_input=False, load_output=False)
        return frozenset(each.workflow_id for each in found)

    def close(self) -> None:
        """End what is left of DBOS, so that this process may start it anew; its last words are written first."""
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

        Of two workers that look for tickets in the same millisecond, each may be given one of the same lane, when one
        of these was stored in between and sorts before the other. Who waits keeps his ticket, and so his place.
        """
        name = f"lane-{lane}"
        while not self._taken(name):
            time.sleep(POLL)
        try:
            yield
        finally:
            with suppress(WorldError):  # who has lost the connection has lost the lock with it
                self.held.give(name)

    def _taken(self, name: str) -> bool:
        with suppress(WorldError):
            return self.held.take(name)
        return False
