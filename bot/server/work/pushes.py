"""Limits the pushes to the memory branch of a repository per minute, and notes what they changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from bot.errors import StoreError
from bot.memory.store import Edits, Snapshot, Store
from bot.server.model import MINUTE, Instant, ServerStopping
from bot.server.organisation.changed_threads import changed_threads

Wait = Callable[[threading.Event, float], bool]


class RateLimiter:
    """Allows ``per_minute`` pushes within any minute. ``wait`` waits some seconds for an event to be set."""

    def __init__(self, per_minute: int, clock: Callable[[], Instant], wait: Wait = threading.Event.wait) -> None:
        self.per_minute = per_minute
        self.clock = clock
        self.wait = wait

    def earliest(self, pushes: Sequence[Instant]) -> Instant:
        """When the next run of a repository may begin, so that its two pushes need not wait; 0 for at once."""
        if not pushes:
            return 0
        ordered = sorted(pushes)
        recent = ordered[-self.per_minute + 1 :] if self.per_minute > 1 else ordered[-1:]
        start = max(
            ordered[-1] + MINUTE // self.per_minute, recent[0] + MINUTE if len(recent) == self.per_minute - 1 else 0
        )
        return start if start - self.clock() <= MINUTE else 0  # a push in the future: the clock was set back

    def wait_for_room(self, pushes: Sequence[Instant], stop: threading.Event) -> None:
        """Wait until one more push is allowed. Raises ServerStopping."""
        recent = sorted(pushes)[-self.per_minute :]
        if len(recent) == self.per_minute and not self._wait_until(recent[0] + MINUTE, stop):
            raise ServerStopping("the server stopped: the next one continues")

    def _wait_until(self, moment: Instant, stop: threading.Event) -> bool:
        left = min(moment - self.clock(), MINUTE)  # a push in the future: the clock was set back
        return left <= 0 or not self.wait(stop, left / 1000)


class PacedStore:
    """A store whose writes wait for the limit; there were ``earlier`` pushes to its branch.

    ``pushes`` are the times of its own, ``changed`` the threads in them.
    """

    def __init__(self, store: Store, pace: RateLimiter, earlier: Iterable[Instant], stop: threading.Event) -> None:
        self.pushes: list[Instant] = []
        self.changed: set[int] = set()
        self._store, self._pace, self._stop = store, pace, stop
        self._earlier = tuple(earlier)

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        """See `Store.write`. Waits for the limit first. Raises ServerStopping."""
        self._pace.wait_for_room((*self._earlier, *self.pushes), self._stop)
        try:
            written = self._store.write(base, edits, message, squash=squash)
        except StoreError:
            self.pushes.append(self._pace.clock())
            self.changed |= changed_threads(base, edits)  # it may have arrived, with only its answer lost
            raise
        if written is not base:
            self.pushes.append(self._pace.clock())
            self.changed |= changed_threads(base, edits)
        return written

    def close(self) -> None:
        self._store.close()
