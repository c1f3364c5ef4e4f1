"""Pushes to a repository: at most so many in a minute, by all workers together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from bot.memory.store import Edits, Snapshot, Store
from bot.server.model import MINUTE, Instant, Stopping

Wait = Callable[[threading.Event, float], bool]


class RateLimiter:
    """At most ``per_minute`` pushes within any minute. ``wait`` waits so many seconds for an event to be set."""

    def __init__(self, per_minute: int, clock: Callable[[], Instant], wait: Wait = threading.Event.wait) -> None:
        self.per_minute = per_minute
        self.clock = clock
        self.wait = wait

    def ready(self, pushes: Sequence[Instant], stop: threading.Event) -> bool:
        """Wait until the last push is long enough ago for a run to be worth it; False when told to stop meanwhile."""
        last = max(pushes, default=0)
        return not stop.is_set() and self._until(last + MINUTE // self.per_minute, stop)

    def room(self, pushes: Sequence[Instant], stop: threading.Event) -> None:
        """Wait until one more push is within the bounds. Raises Stopping."""
        full = sorted(pushes)[-self.per_minute :]
        if len(full) == self.per_minute and not self._until(full[0] + MINUTE, stop):
            raise Stopping("the server stopped: the next one goes on")

    def store(self, store: Store, pushes: Iterable[Instant], stop: threading.Event) -> PacedStore:
        """``store``, whose writes keep to this; ``pushes`` are earlier ones to the same branch."""
        return PacedStore(store, self, pushes, stop)

    def _until(self, then: Instant, stop: threading.Event) -> bool:
        left = min(then - self.clock(), MINUTE)  # a push from the future is one by a clock that was put back
        return left <= 0 or not self.wait(stop, left / 1000)


class PacedStore:
    """A store whose writes wait until they may be pushed. ``pushes`` are the times of its own."""

    def __init__(self, store: Store, pace: RateLimiter, earlier: Iterable[Instant], stop: threading.Event) -> None:
        self.pushes: list[Instant] = []
        self._store, self._pace, self._stop = store, pace, stop
        self._earlier = tuple(earlier)

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        """As `Store.write`, after a wait where there were enough of late. Raises Stopping."""
        self._pace.room((*self._earlier, *self.pushes), self._stop)
        written = self._store.write(base, edits, message, squash=squash)
        if written is not base:
            self.pushes.append(self._pace.clock())
        return written

    def close(self) -> None:
        self._store.close()
