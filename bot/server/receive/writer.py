"""The one thread that stores arrivals in groups: each is durable before it is answered, and many share one sync."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.errors import WorldError
from bot.server.log import catch_error, log_fields, run_guarded
from bot.server.model import Delivery, ReceiveQueueFull, delivery_fields
from bot.server.storage.inbox import Inbox

MAX_GROUP = 32
"""Most arrivals in one transaction: it stores three times as many per second as one by one."""

MAX_WAITING = 500
"""Most arrivals that wait to be stored."""

STORE_TIMEOUT = 8.0
"""Seconds that storing an arrival may take; GitHub waits ten seconds for an answer."""

CHECK_INTERVAL = 5.0
"""Seconds between two checks whether more may be stored, and between two writes of the counters."""


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiting:
    arrival: Delivery
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[bool]


class GroupCommitWriter:
    """Stores arrivals in a thread of its own.

    ``closing_reason`` returns why nothing more may be stored, or "". Another thread calls it every ``look`` seconds,
    and writes the counters. At most ``most`` arrivals wait, each for at most ``patience`` seconds.
    """

    def __init__(
        self,
        inbox: Inbox,
        closing_reason: Callable[[], str] = str,
        most: int = MAX_WAITING,
        patience: float = STORE_TIMEOUT,
        look: float = CHECK_INTERVAL,
    ) -> None:
        self._inbox = inbox
        self._closing_reason = closing_reason
        self._patience = patience
        self._every = look
        self._queue: queue.Queue[_Waiting | None] = queue.Queue(most)
        self._pending_counts: dict[tuple[str, tuple[str, ...]], float] = {}
        self._lock = threading.Lock()
        self._closed = ""
        self._stops = threading.Event()
        self._store_thread = threading.Thread(target=self._store_all, name="writer", daemon=True)
        self._check_thread = threading.Thread(target=self._watch, name="doorkeeper", daemon=True)

    def start(self) -> None:
        self._check()
        self._store_thread.start()
        self._check_thread.start()

    async def store(self, arrival: Delivery) -> bool:
        """Store an arrival; returns once it is durable, False for a known one.

        Raises ReceiveQueueFull, WorldError and TimeoutError. An arrival that took too long may still be stored. That
        does no harm: its id is known when it comes again.
        """
        if self._stops.is_set() or self._closed:
            raise ReceiveQueueFull(self._closed or "the server is stopping")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(arrival, loop, loop.create_future())
        try:
            self._queue.put_nowait(waiting)
        except queue.Full:
            raise ReceiveQueueFull("too many deliveries are waiting to be stored") from None
        async with asyncio.timeout(self._patience):
            return await waiting.done

    def count(self, name: str, labels: tuple[str, ...], much: float = 1) -> None:
        """Add to a counter of the inbox. It is written within seconds."""
        with self._lock:
            self._pending_counts[name, labels] = self._pending_counts.get((name, labels), 0) + much

    def stop(self, seconds: float) -> bool:
        """Store the waiting arrivals and end. Returns whether all of them were stored in time."""
        self._stops.set()
        until = time.monotonic() + seconds
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=seconds)
        for thread in (self._store_thread, self._check_thread):
            thread.join(max(0.0, until - time.monotonic()))
        return not self._store_thread.is_alive()

    def _store_all(self) -> None:
        """Runs until a None comes, which is the last item."""
        while group := self._next_group():
            self._store(group)

    def _next_group(self) -> list[_Waiting]:
        """Waits for an arrival and returns all that wait, at most ``MAX_GROUP``; nothing at the end."""
        group: list[_Waiting] = []
        item = self._queue.get()
        with contextlib.suppress(queue.Empty):
            while item is not None:
                group.append(item)
                if len(group) == MAX_GROUP:
                    return group
                item = self._queue.get_nowait()
            if group:
                self._queue.put_nowait(None)  # read again once these are stored
        return group

    def _store(self, group: Sequence[_Waiting]) -> None:
        new: list[bool] = []
        arrivals = [item.arrival for item in group]
        with log_fields(**delivery_fields(arrivals)):
            error = catch_error(lambda: new.extend(self._inbox.put(arrivals)))
        if error is None or isinstance(error, WorldError):
            _resolve(group, new, error)
        elif len(group) > 1:  # one of them may be the cause
            for item in group:
                self._store([item])
        else:
            _resolve(group, new, WorldError(str(error)))

    def _watch(self) -> None:
        while not self._stops.wait(self._every):
            self._check()
        self._store_thread.join()
        run_guarded(self._write_counts)

    def _check(self) -> None:
        run_guarded(self._check_closed)
        run_guarded(self._write_counts)

    def _check_closed(self) -> None:
        try:
            closed = self._closing_reason()
        except WorldError:
            closed = ""  # the next store will show it
        if closed != self._closed:
            log.warning("deliveries are refused: %s" if closed else "deliveries are accepted again%s", closed)
        self._closed = closed

    def _write_counts(self) -> None:
        with self._lock:
            counts, self._pending_counts = self._pending_counts, {}
        try:
            if counts:
                self._inbox.counters.add(counts)
        except WorldError:
            for (name, labels), much in counts.items():
                self.count(name, labels, much)


def _resolve(group: Sequence[_Waiting], new: Sequence[bool], error: WorldError | None) -> None:
    """Wake up all waiting requests by one call into their loop; those that gave up have cancelled."""

    def wake() -> None:
        for index, item in enumerate(group):
            if item.done.done():
                continue
            if error:
                item.done.set_exception(error)
            else:
                item.done.set_result(new[index])

    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
        group[0].loop.call_soon_threadsafe(wake)
