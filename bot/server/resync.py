"""Finds what was missed: lost deliveries, repositories that lag behind or are new, lanes without a ticket."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from bot.errors import WorldError
from bot.github.app import App
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, NotInstalled, RateLimited, Suspended, Unauthorised, Unreachable
from bot.github.events import Event
from bot.server.health import ask_who_we_are
from bot.server.inbox import Inbox
from bot.server.installation_events import PLACES, UNINSTALLED, InstallationEvents
from bot.server.installations import TokenCache
from bot.server.model import DAY, MINUTE, Arrival, Grant, Instant, RepositoryKey, RepositoryRow
from bot.server.options import ServerOptions
from bot.server.redelivery import Redelivery

Loses = Callable[[RepositoryKey, str], object]

HEARTBEAT = "cursors"
"""The heartbeat that stores the last checked lane."""

QUARTER = 15 * MINUTE
QUARTERS = DAY // QUARTER

LATELY = 7 * DAY
"""Lanes without a run for this long are not checked: they rarely miss anything."""

SLACK = 5 * MINUTE
"""Changes newer than memory's cursor by less than this are on their way."""

MOST = 100
"""Lanes that one resync asks GitHub about; those not asked about for the longest time come first."""

WITHIN = 4
"""Quarters of an hour in which a lane's daily look may still begin."""


class DriftCheck:
    """Compares how far memory has read with the newest change on GitHub, which ``newest`` returns."""

    def __init__(self, inbox: Inbox, tokens: TokenCache, newest: Callable[[Grant], Instant], app: int) -> None:
        self._inbox = inbox
        self._tokens = tokens
        self._newest = newest
        self._app = app

    def look(self, now: Instant, loses: Loses) -> int:
        """Let the lanes that lag behind catch up. Returns how many. Raises WorldError if GitHub cannot be asked at all.

        ``loses`` is called for a repository that we may not see any more, with the reason.
        """
        rows = self._next(self._ours(self._inbox.installations().lanes(active_since=now - LATELY)))
        caught_up, limited, last = 0, set[int](), ""
        try:
            for row in rows:
                if row.lane.installation not in limited:
                    caught_up += self._look_at(row, limited, now, loses)
                last = row.lane.key
        finally:
            if last:
                self._inbox.heartbeat(HEARTBEAT, {"lane": last})
        return caught_up

    def remind(self, now: Instant) -> int:
        """Begin the daily look of each lane in its quarter of an hour, given by the repository's number. Returns how
        many.

        The daily look reads feedback and changed pages; nobody waits for it.
        """
        due = []
        for row in self._ours(self._inbox.installations().lanes()):
            since = (now // QUARTER - row.lane.repository) % QUARTERS
            if since < WITHIN:
                day = (now // QUARTER - row.lane.repository) // QUARTERS
                due.append(self._arrival(row, f"daily-{row.lane.key}-{day}", Event("schedule"), now))
        known = self._inbox.known([each.id for each in due])
        return sum(sum(self._inbox.put([each])) for each in due if each.id not in known)

    def _ours(self, rows: Sequence[RepositoryRow]) -> list[RepositoryRow]:
        """The rows whose installation is neither suspended nor gone."""
        register = self._inbox.installations()
        active = {number: register.state(number) == "active" for number in {row.lane.installation for row in rows}}
        return sorted((row for row in rows if active[row.lane.installation]), key=lambda row: row.lane)

    def _next(self, rows: Sequence[RepositoryRow]) -> list[RepositoryRow]:
        """The next lanes in turn, after the last checked one."""
        _, note = self._inbox.heartbeats().get(HEARTBEAT, (0, {}))
        try:
            last = RepositoryKey.of(str(note.get("lane", "")))
        except ValueError:
            last = RepositoryKey(0, 0)
        return [*(row for row in rows if row.lane > last), *(row for row in rows if row.lane <= last)][:MOST]

    def _look_at(self, row: RepositoryRow, limited: set[int], now: Instant, loses: Loses) -> int:
        """1 if it lags behind. Errors of one repository do not keep the next one from being checked."""
        busy = (self._inbox.deliveries(state=state, lane=row.lane, limit=1) for state in ("waiting", "working"))
        if not row.cursor or any(busy):
            return 0
        try:
            newest = self._newest(self._tokens.grant(row.lane, now))
        except NotInstalled as error:
            if not isinstance(error, Suspended):
                loses(row.lane, str(error))
            return 0
        except RateLimited as error:
            until = round(error.until.timestamp() * 1000) if error.until else now + MINUTE
            self._inbox.installations().pause(row.lane.installation, error.resource, until)
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
        # The name has the newest change and memory's cursor: a lane is sent on only while it makes progress.
        arrival = self._arrival(row, f"catch-up-{row.lane.key}-{newest}-{row.cursor}", Event("catch-up"), now)
        return sum(self._inbox.put([arrival]))

    def _arrival(self, row: RepositoryRow, name: str, event: Event, now: Instant) -> Arrival:
        return Arrival(f"{self._app}:{name}", row.lane, event, row.name, row.private, received_at=now)


LONE = MINUTE
"""A younger delivery may not have its ticket yet."""

TICKETS_KEPT = 7 * DAY

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResyncResult:
    """The counts of one resync; ``notes`` say what it could not do. ``reminded``: daily looks begun."""

    redelivered: int = 0
    caught_up: int = 0
    reminded: int = 0
    repaired: int = 0
    purged: int = 0
    notes: tuple[str, ...] = ()


class Resync:
    """The leader's regular task. Its state is in heartbeats of the inbox, so that any worker can go on."""

    def __init__(
        self,
        api: App,
        inbox: Inbox,
        options: ServerOptions,
        tokens: TokenCache,
        forget: Callable[[RepositoryKey], None],
    ) -> None:
        """``tokens`` are shared with the worker, to request fewer; ``forget`` removes a lane's files."""
        self._api = api
        self._inbox = inbox
        self._options = options
        self._tokens = tokens
        self._forget = forget
        self._redelivery = Redelivery(api, inbox, options.app_id)
        self._drift = DriftCheck(inbox, self._tokens, newest_change(options.api_url), options.app_id)

    def once(self, now: Instant) -> ResyncResult:
        """Does each part even if another one fails. Parts that do not need GitHub come first."""
        notes: list[str] = []

        def part(call: Callable[[Instant], int]) -> int:
            try:
                return call(now)
            except WorldError as error:
                notes.append(str(error))
                return 0

        repaired, purged = part(lambda at: self._inbox.repair(self._inbox.tickets.live(), at - LONE)), part(self._purge)
        part(lambda _: ask_who_we_are(self._api, self._inbox).id)
        redelivered = part(lambda at: self._redeliver(at, notes))
        caught_up = part(self._list_repositories) + part(lambda at: self._drift.look(at, self._events(at).loses))
        swept = ResyncResult(redelivered, caught_up, part(self._drift.remind), repaired, purged, tuple(notes))
        for note in notes:
            log.warning("resync: %s", note)
        log.info("resync done", extra={name: value for name, value in asdict(swept).items() if name != "notes"})
        return swept

    def _purge(self, now: Instant) -> int:
        purged = self._inbox.purge(now - self._options.keep_days * DAY)
        return purged + self._inbox.tickets.purge(now - TICKETS_KEPT)

    def _redeliver(self, now: Instant, notes: list[str]) -> int:
        found = self._redelivery.ask(now)
        if found.trouble:
            notes.append(f"not all missed deliveries were asked for: {found.trouble}")
        if found.given_up:
            notes.append(f"deliveries that were asked for and never came: {', '.join(found.given_up)}")
        self._events(now).looks(found.lanes, f"{self._options.app_id}:first-{now // DAY}")
        return found.asked

    def _list_repositories(self, now: Instant) -> int:
        """List all installations, once a day or after a change. Returns how many repositories are new."""
        today, register = now // DAY, self._inbox.installations()
        before = self._inbox.heartbeats().get(PLACES)
        if before and before[1].get("day") == today:
            return 0
        known = {row.lane for row in register.lanes()}
        listed: set[RepositoryKey] = set()
        for place in self._api.installations():
            register.installed(place.id, place.account, "suspended" if place.suspended else "active")
            listed |= {lane for lane in known if place.suspended and lane.installation == place.id}
            for number, name, private in () if place.suspended else self._seen(place.id):
                listed.add(RepositoryKey(place.id, number))
                register.seen(RepositoryKey(place.id, number), name, private=private)
        self._leave(known - listed, now)
        found = self._events(now).looks(listed - known, f"{self._options.app_id}:found-{now // DAY}")
        if self._inbox.heartbeats().get(PLACES) == before:  # else something changed meanwhile: list again next time
            self._inbox.heartbeat(PLACES, {"day": today})
        return found

    def _seen(self, installation: int) -> list[tuple[int, str, bool]]:
        """The repositories of an installation; none if it is gone."""
        try:
            return list(self._api.repositories(installation))
        except NotInstalled:
            return []

    def _leave(self, unlisted: Collection[RepositoryKey], now: Instant) -> None:
        """Give up a lane that GitHub does not list, if a token for it is refused as well."""
        try:
            self._events(now).leaves(unlisted, UNINSTALLED)
        except ForgeError as error:
            raise WorldError(f"it was not found out where the App is installed: {error}") from error

    def _events(self, now: Instant) -> InstallationEvents:
        return InstallationEvents(self._inbox, self._tokens, self._forget, now)


def newest_change(api_url: str) -> Callable[[Grant], Instant]:
    """Returns a function that asks when an issue of a repository last changed, 0 for none; it raises ForgeError."""

    def ask(grant: Grant) -> Instant:
        query = {"state": "all", "sort": "updated", "direction": "desc", "per_page": 1}
        shown, _ = GitHubClient(api_url, grant.token, grant.name).pages(f"/repos/{grant.name}/issues", query, 1)
        try:
            return max((_instant(each.get("updated_at")) for each in shown), default=0)
        except (ValueError, TypeError) as error:
            raise ForgeError("GitHub's answer was not what was asked for: it is asked again later") from error

    return ask


def _instant(stamp: object) -> Instant:
    return round(datetime.fromisoformat(str(stamp)).timestamp() * 1000)
