"""Repositories in which something happened that we were never told of, and the look that each gets once a day."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.errors import WorldError
from bot.github.errors import ForgeError, NotInstalled, RateLimited, Suspended, Unauthorised, Unreachable
from bot.github.events import Event
from bot.server.nouns import Arrival, Grant, Instant, Lane, LaneRow
from bot.server.ports import Ledger, Tokens

Loses = Callable[[Lane, str], object]

PULSE = "cursors"
"""Where the last lane that was looked at is kept."""

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
QUARTER = 15 * MINUTE
QUARTERS = DAY // QUARTER

LATELY = 7 * DAY
"""Lanes without a turn for so long have nothing that could be missed often."""

SLACK = 5 * MINUTE
"""What is newer than memory's cursor by less is on its way."""

MOST = 100
"""Lanes that one sweep asks GitHub about; those that were not asked about for longest come first."""

WITHIN = 4
"""Quarters of an hour after its own in which a lane's daily look is still begun."""


class Lagging:
    """Compares how far memory has read with what is newest at GitHub, which ``newest`` tells."""

    def __init__(self, ledger: Ledger, tokens: Tokens, newest: Callable[[Grant], Instant], app: int) -> None:
        self._ledger = ledger
        self._tokens = tokens
        self._newest = newest
        self._app = app

    def look(self, now: Instant, loses: Loses) -> int:
        """Have those that lag behind caught up; how many. Raises WorldError where nothing can be asked at all.

        ``loses`` is told of a repository that we may not see any more, and why.
        """
        rows = self._next(self._ours(self._ledger.register().lanes(active_since=now - LATELY)))
        caught_up, limited, last = 0, set[int](), ""
        try:
            for row in rows:
                if row.lane.installation not in limited:
                    caught_up += self._look_at(row, limited, now, loses)
                last = row.lane.key
        finally:
            if last:
                self._ledger.pulse(PULSE, {"lane": last})
        return caught_up

    def remind(self, now: Instant) -> int:
        """The daily look of each lane whose quarter of an hour has come, which its repository's number says; how many.

        Nobody waits for it: feedback is read there, and pages that changed.
        """
        due = []
        for row in self._ours(self._ledger.register().lanes()):
            since = (now // QUARTER - row.lane.repository) % QUARTERS
            if since < WITHIN:
                day = (now // QUARTER - row.lane.repository) // QUARTERS
                due.append(self._arrival(row, f"daily-{row.lane.key}-{day}", Event("schedule"), now))
        known = self._ledger.known([each.id for each in due])
        return sum(sum(self._ledger.put([each])) for each in due if each.id not in known)

    def _ours(self, rows: Sequence[LaneRow]) -> list[LaneRow]:
        """Without those whose installation is suspended or gone."""
        register = self._ledger.register()
        active = {number: register.state(number) == "active" for number in {row.lane.installation for row in rows}}
        return sorted((row for row in rows if active[row.lane.installation]), key=lambda row: row.lane)

    def _next(self, rows: Sequence[LaneRow]) -> list[LaneRow]:
        """Round and round, from after the last one that was looked at."""
        _, note = self._ledger.pulses().get(PULSE, (0, {}))
        try:
            last = Lane.of(str(note.get("lane", "")))
        except ValueError:
            last = Lane(0, 0)
        return [*(row for row in rows if row.lane > last), *(row for row in rows if row.lane <= last)][:MOST]

    def _look_at(self, row: LaneRow, limited: set[int], now: Instant, loses: Loses) -> int:
        """1 when it lags. What is wrong with one repository is no reason not to ask about the next."""
        if not row.cursor or self._is_busy(row.lane):
            return 0
        try:
            newest = self._newest(self._tokens.grant(row.lane, now))
        except NotInstalled as error:
            if not isinstance(error, Suspended):
                loses(row.lane, str(error))
            return 0
        except RateLimited as error:
            until = round(error.until.timestamp() * 1000) if error.until else now + MINUTE
            self._ledger.register().pause(row.lane.installation, error.resource, until)
            limited.add(row.lane.installation)
            return 0
        except Unauthorised:
            self._tokens.forget(row.lane)
            return 0
        except Unreachable as error:
            raise WorldError(f"it was not found out which repositories lag behind: {error}") from error
        except ForgeError:
            return 0
        if newest <= row.cursor + SLACK:
            return 0
        # Named by what is newest and how far memory has read: one that gets on is sent on, one that cannot is not.
        arrival = self._arrival(row, f"catch-up-{row.lane.key}-{newest}-{row.cursor}", Event("catch-up"), now)
        return sum(self._ledger.put([arrival]))

    def _is_busy(self, lane: Lane) -> bool:
        return any(self._ledger.deliveries(state=state, lane=lane, limit=1) for state in ("waiting", "working"))

    def _arrival(self, row: LaneRow, name: str, event: Event, now: Instant) -> Arrival:
        return Arrival(f"{self._app}:{name}", row.lane, event, row.name, row.private, received_at=now)
