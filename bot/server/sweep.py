"""What was missed is found again: lost deliveries, repositories that lag behind or are new, lanes without a ticket."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Protocol

from bot.errors import WorldError
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, NotInstalled, Unauthorised
from bot.server.health import APP
from bot.server.house import PLACES, UNINSTALLED, House
from bot.server.identity import KeptTokens
from bot.server.lagging import DAY, MINUTE, Lagging
from bot.server.lost import Lost
from bot.server.nouns import Grant, Instant, Lane
from bot.server.ports import AppApi, Ledger, Tickets, Tokens

LONE = MINUTE
"""A delivery that is younger may not have its ticket yet."""

TICKETS_KEPT = 7 * DAY

log = logging.getLogger(__name__)


class Options(Protocol):
    """What a sweep needs of `bot.server.options.Options`."""

    @property
    def app_id(self) -> int: ...
    @property
    def api_url(self) -> str: ...
    @property
    def keep_days(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did; ``notes`` are lines about what it could not do. ``reminded``: daily looks that were begun."""

    redelivered: int = 0
    caught_up: int = 0
    reminded: int = 0
    mended: int = 0
    purged: int = 0
    notes: tuple[str, ...] = ()


class Sweep:
    """Run by the worker that leads. All it remembers is in the ledger's pulses, so that anybody can go on."""

    def __init__(
        self,
        api: AppApi,
        ledger: Ledger,
        tickets: Tickets,
        options: Options,
        tokens: Tokens | None = None,
        forget: Callable[[Lane], None] = lambda _: None,
    ) -> None:
        """``tokens``: those of the worker, to ask for fewer; ``forget`` removes what is on disk of a lane."""
        self._api = api
        self._ledger = ledger
        self._tickets = tickets
        self._options = options
        self._tokens = tokens or KeptTokens(api)
        self._forget = forget
        self._lost = Lost(api, ledger, options.app_id)
        self._lagging = Lagging(ledger, self._tokens, newest_change(options.api_url), options.app_id)

    def once(self, now: Instant) -> Swept:
        """Each part is done though another one cannot be. What needs no GitHub comes first."""
        notes: list[str] = []

        def part(call: Callable[[Instant], int]) -> int:
            try:
                return call(now)
            except WorldError as error:
                notes.append(str(error))
                return 0

        mended, purged = part(self._mend), part(self._purge)
        part(self._greet)
        redelivered = part(lambda at: self._redeliver(at, notes))
        caught_up = part(self._visit) + part(lambda at: self._lagging.look(at, self._house(at).loses))
        swept = Swept(redelivered, caught_up, part(self._lagging.remind), mended, purged, tuple(notes))
        for note in notes:
            log.warning("sweep: %s", note)
        log.info("swept", extra={name: value for name, value in asdict(swept).items() if name != "notes"})
        return swept

    def _mend(self, now: Instant) -> int:
        return self._ledger.mend(self._tickets.live(), now - LONE)

    def _purge(self, now: Instant) -> int:
        purged = self._ledger.purge(now - self._options.keep_days * DAY)
        return purged + self._tickets.purge(now - TICKETS_KEPT)

    def _greet(self, _: Instant) -> int:
        """Ask who we are, which tells whether the key is right, and the clock."""
        try:
            about = self._api.about()
        except Unauthorised as error:
            known = self._ledger.pulses().get(APP, (0, {}))[1]
            self._ledger.pulse(APP, {**known, "fault": str(error)})
            raise
        self._ledger.pulse(APP, {"slug": about.slug, "ahead": round(about.ahead), "fault": ""})
        return 1

    def _redeliver(self, now: Instant, notes: list[str]) -> int:
        found = self._lost.ask(now)
        if found.trouble:
            notes.append(f"not all lost deliveries were asked for: {found.trouble}")
        if found.given_up:
            notes.append(f"deliveries that were asked for and never came: {', '.join(found.given_up)}")
        self._house(now).looks(found.lanes, f"{self._options.app_id}:first-{now // DAY}")
        return found.asked

    def _visit(self, now: Instant) -> int:
        """Once a day, or when something changed: all installations; how many repositories there are new to us."""
        today, register = now // DAY, self._ledger.register()
        before = self._ledger.pulses().get(PLACES)
        if before and before[1].get("day") == today:
            return 0
        known = {row.lane for row in register.lanes()}
        listed: set[Lane] = set()
        for place in self._api.installations():
            register.installed(place.id, place.account, "suspended" if place.suspended else "active")
            listed |= {lane for lane in known if place.suspended and lane.installation == place.id}
            for number, name, private in () if place.suspended else self._seen(place.id):
                listed.add(Lane(place.id, number))
                register.seen(Lane(place.id, number), name, private=private)
        self._leave(known - listed, now)
        found = self._house(now).looks(listed - known, f"{self._options.app_id}:found-{now // DAY}")
        if self._ledger.pulses().get(PLACES) == before:  # else something changed meanwhile, and is looked at next
            self._ledger.pulse(PLACES, {"day": today})
        return found

    def _seen(self, installation: int) -> list[tuple[int, str, bool]]:
        """What an installation may see; nothing where it has just gone."""
        try:
            return list(self._api.repositories(installation))
        except NotInstalled:
            return []

    def _leave(self, unlisted: Collection[Lane], now: Instant) -> None:
        """A lane that GitHub does not list is ours no more, if a token for it is refused as well."""
        try:
            self._house(now).leaves(unlisted, UNINSTALLED)
        except ForgeError as error:
            raise WorldError(f"it was not found out where the App is installed: {error}") from error

    def _house(self, now: Instant) -> House:
        return House(self._ledger, self._tokens, self._forget, now)


def newest_change(api_url: str) -> Callable[[Grant], Instant]:
    """Asks when an issue of a repository changed last, 0 where there is none. What it returns raises ForgeError."""

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
