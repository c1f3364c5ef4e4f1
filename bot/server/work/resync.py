"""Finds what was missed: lost deliveries, repositories that lag behind or are new."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from bot.errors import WorldError
from bot.github.app import App, DeliveryInfo
from bot.github.errors import ForgeError, NotInstalled, RateLimited, Suspended, Unauthorised, Unreachable
from bot.github.events import Event
from bot.server.model import (
    ALL_REPOSITORIES,
    DAY,
    MINUTE,
    WORKER_PREFIX,
    Delivery,
    Grant,
    Instant,
    Priority,
    RepositoryKey,
    RepositoryRow,
    RepositoryScope,
    State,
)
from bot.server.options import ServerOptions
from bot.server.organisation.guard import INDEX_UP
from bot.server.receive.webhook import EVENTS, REPOSITORY_EVENTS
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.github_access import NewestChanges, TokenCache, limit_end
from bot.server.storage.heartbeats import WORKER_TIMEOUT
from bot.server.storage.inbox import Inbox
from bot.server.work.installation_events import InstallationEvents, list_installations

REDELIVERY_HEARTBEAT = "lost"
"""The heartbeat that stores which deliveries were requested again."""

GITHUB_RETENTION = 3 * 24 * 60 * MINUTE
"""Milliseconds for which GitHub keeps a delivery.
https://docs.github.com/webhooks/using-webhooks/handling-failed-webhook-deliveries"""

OVERLAP = 10 * MINUTE
"""Deliveries this close before the last one seen are checked again, as they are not listed in strict order."""

MIN_DELIVERY_AGE = MINUTE
"""A younger delivery may be about to be answered."""

REDELIVERY_TIMEOUT = 5 * MINUTE
"""How long a redelivery may take."""

BATCH = 200
"""Deliveries that are requested before what was requested is stored."""

MAX_TRIES = 3
_MAX_REMEMBERED = 2_000

CURSOR_HEARTBEAT = "cursors"
"""The heartbeat that stores the last checked repository."""

QUARTER_HOUR = 15 * MINUTE
QUARTERS_PER_DAY = DAY // QUARTER_HOUR

ACTIVE_PERIOD = 7 * DAY
"""Repositories without a run for this long are not checked: they rarely miss anything."""

ALLOWED_DRIFT = 5 * MINUTE
"""Milliseconds by which changes may be newer than memory's cursor: their deliveries are on their way."""

MAX_CHECKED_REPOSITORIES = 100
"""Most repositories that one resync asks GitHub about; those checked longest ago come first."""

DAILY_WINDOW = 4
"""Quarters of an hour in which a repository's daily look may still begin."""

INDEX_TIMEOUT = 10 * MINUTE
"""The organisation's index is switched off when no worker has reported one for this long; a restart takes less."""

log = logging.getLogger(__name__)

Loses = Callable[[RepositoryKey, str], object]


@dataclass(frozen=True, slots=True)
class PendingRedelivery:
    """A delivery that was requested again: its last attempt, how often and when."""

    attempt: int
    times: int
    asked_at: Instant


@dataclass(frozen=True, slots=True)
class MissedDeliveries:
    """The result of one search. ``repositories`` have answered deliveries that this database lacks: look at each once.

    ``given_up``: the ids of those that were requested three times and never came. ``trouble`` ended the search early.
    """

    asked: int = 0
    repositories: frozenset[RepositoryKey] = frozenset()
    given_up: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(slots=True)
class _RedeliveryState:
    """Attempts up to ``until`` were checked, 0 for none. ``pending`` is by the id that all attempts share."""

    until: Instant = 0
    pending: dict[str, PendingRedelivery] = field(default_factory=dict)

    def give_up(self, now: Instant) -> tuple[str, ...]:
        """The deliveries that were requested often enough and did not come; each is named once."""
        found = [
            guid
            for guid, each in self.pending.items()
            if each.times == MAX_TRIES and now - each.asked_at >= REDELIVERY_TIMEOUT
        ]
        self.pending |= {guid: replace(self.pending[guid], times=MAX_TRIES + 1) for guid in found}
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Redelivery:
    """Searches GitHub's list of deliveries, and requests those again that were never stored, oldest first.

    A delivery that failed for GitHub may have been stored, with only its answer lost: it is left alone. So is one that
    was answered and dropped, which the list shows only as answered.
    """

    api: App
    inbox: Inbox
    app: int

    def request_missing(self, now: Instant) -> MissedDeliveries:
        """Request missing deliveries. Raises ForgeError if there is no list, WorldError without a database."""
        state = self._load()
        is_first, since = not state.until, max(state.until - OVERLAP, now - GITHUB_RETENTION)
        attempts = [each for each in self.api.deliveries(since) if each.event in EVENTS and each.guid]
        stored = self._stored_guids([each.guid for each in attempts])
        self._forget_arrived(state, now)
        latest = {each.guid: each for each in sorted(attempts, key=lambda each: each.id)}
        missing = [each for each in latest.values() if each.guid not in stored]
        result = self._redeliver(state, _failed_deliveries(missing, attempts, now), now)
        seen = [each.delivered_at for each in attempts]
        state.until = (state.until or since) if result.trouble else max(state.until, since, *seen)
        self._save(state)
        return replace(result, repositories=_repositories_of(missing) if is_first else frozenset())

    def _redeliver(self, state: _RedeliveryState, failed: Mapping[str, DeliveryInfo], now: Instant) -> MissedDeliveries:
        """Request the due deliveries, oldest first, and remember them."""
        requested, given_up = 0, state.give_up(now)
        attempts = {guid: each.attempt for guid, each in state.pending.items()}
        attempts |= {guid: each.id for guid, each in failed.items()}
        for guid, attempt in sorted(attempts.items(), key=lambda item: item[1]):
            earlier = state.pending.get(guid, PendingRedelivery(attempt, 0, 0))
            if earlier.times >= MAX_TRIES or now - earlier.asked_at < REDELIVERY_TIMEOUT:
                continue
            if requested and requested % BATCH == 0:
                self._forget_arrived(state, now)
                self._save(state)
            try:
                self.api.redeliver(attempt)
            except (RateLimited, Unreachable, Unauthorised) as error:
                return MissedDeliveries(requested, given_up=given_up, trouble=str(error))
            except ForgeError:  # it is gone for good
                state.pending[guid] = PendingRedelivery(attempt, MAX_TRIES, now)
                continue
            requested += 1
            state.pending[guid] = PendingRedelivery(attempt, earlier.times + 1, now)
        return MissedDeliveries(requested, given_up=given_up)

    def _forget_arrived(self, state: _RedeliveryState, now: Instant) -> None:
        """Forget the requests whose delivery has arrived, or is too old to be repeated."""
        stored = self._stored_guids(state.pending)
        state.pending = {guid: pending for guid, pending in state.pending.items()
                         if guid not in stored and pending.asked_at > now - GITHUB_RETENTION}  # fmt: skip

    def _stored_guids(self, guids: Iterable[str]) -> frozenset[str]:
        prefix = f"{self.app}:"
        return frozenset(
            name.removeprefix(prefix) for name in self.inbox.existing_ids([prefix + guid for guid in guids])
        )

    def _load(self) -> _RedeliveryState:
        _, note = self.inbox.heartbeats.get(REDELIVERY_HEARTBEAT)
        listed = json.loads(str(note.get("owed", "{}")))
        pending = {guid: PendingRedelivery(*each) for guid, each in listed.items()}
        return _RedeliveryState(int(note.get("until", 0)), pending)

    def _save(self, state: _RedeliveryState) -> None:
        """Store the newest requests, as many as there is room for."""
        newest = sorted(state.pending.items(), key=lambda item: item[1].asked_at)[-_MAX_REMEMBERED:]
        pending = json.dumps({guid: [each.attempt, each.times, each.asked_at] for guid, each in newest})
        self.inbox.heartbeats.store(REDELIVERY_HEARTBEAT, {"until": state.until, "owed": pending})


def _failed_deliveries(
    missing: Iterable[DeliveryInfo], attempts: Iterable[DeliveryInfo], now: Instant
) -> dict[str, DeliveryInfo]:
    """The missing deliveries that were never answered with success and are not under way."""
    answered = {each.guid for each in attempts if _is_answered(each)}
    return {
        each.guid: each for each in missing if each.guid not in answered and each.delivered_at < now - MIN_DELIVERY_AGE
    }


def _repositories_of(missing: Iterable[DeliveryInfo]) -> frozenset[RepositoryKey]:
    return frozenset(
        RepositoryKey(each.installation_id, each.repository_id)
        for each in missing
        if _is_answered(each) and each.event in REPOSITORY_EVENTS and each.installation_id and each.repository_id
    )


def _is_answered(attempt: DeliveryInfo) -> bool:
    return 200 <= attempt.status_code < 300


@dataclass(frozen=True, slots=True)
class DriftCheck:
    """Compares how far memory has read with the newest change on GitHub, which ``newest`` returns."""

    inbox: Inbox
    tokens: TokenCache
    newest: Callable[[Grant], Instant]
    app: int
    scope: RepositoryScope = ALL_REPOSITORIES
    most: int = MAX_CHECKED_REPOSITORIES

    def check(self, now: Instant, loses: Loses) -> int:
        """Let the repositories that lag behind catch up. Returns how many. Raises WorldError if GitHub cannot be asked.

        ``loses`` is called for a repository that we may no longer see, with the reason.
        """
        rows = self.inbox.installations.repositories(active_since=now - ACTIVE_PERIOD)
        caught_up, limited, last = 0, set[int](), ""
        try:
            for row in self._next_rows(self._active_rows(rows)):
                if row.repository.installation not in limited:
                    caught_up += self._check_repository(row, limited, now, loses)
                last = row.repository.text
        finally:
            if last:
                self.inbox.heartbeats.store(CURSOR_HEARTBEAT, {"repository": last})
        return caught_up

    def start_daily_looks(self, now: Instant) -> int:
        """Begin the daily look of each repository in its quarter of an hour, given by its number. Returns how many.

        The daily look reads feedback and changed pages; nobody waits for it.
        """
        due = []
        for row in self._active_rows(self.inbox.installations.repositories()):
            since = (now // QUARTER_HOUR - row.repository.number) % QUARTERS_PER_DAY
            if since < DAILY_WINDOW:
                day = (now // QUARTER_HOUR - row.repository.number) // QUARTERS_PER_DAY
                due.append(self._make_arrival(row, f"daily-{row.repository.text}-{day}", Event("schedule"), now))
        known = self.inbox.existing_ids([each.id for each in due])
        return sum(sum(self.inbox.put([each])) for each in due if each.id not in known)

    def _active_rows(self, rows: Sequence[RepositoryRow]) -> list[RepositoryRow]:
        """The rows within the scope whose installation is neither suspended nor gone."""
        states = self.inbox.installations.states()
        active = (row for row in rows if states.get(row.repository.installation, "active") == "active")
        return sorted((row for row in active if self.scope.includes(row.name)), key=lambda row: row.repository)

    def _next_rows(self, rows: Sequence[RepositoryRow]) -> list[RepositoryRow]:
        """The next repositories in turn, after the last checked one."""
        _, note = self.inbox.heartbeats.get(CURSOR_HEARTBEAT)
        last = RepositoryKey.of(str(note.get("repository", "0-0")))
        later = [row for row in rows if row.repository > last]
        return [*later, *(row for row in rows if row.repository <= last)][: self.most]

    def _check_repository(self, row: RepositoryRow, limited: set[int], now: Instant, loses: Loses) -> int:
        """1 if it lags behind. Errors of one repository do not keep the next one from being checked."""
        states: tuple[State, ...] = ("waiting", "working")
        if not row.cursor or any(self.inbox.deliveries(DeliveryFilter(each, row.repository), 1) for each in states):
            return 0
        try:
            newest = self.newest(self.tokens.grant(row.repository, now))
        except NotInstalled as error:
            if not isinstance(error, Suspended):
                loses(row.repository, str(error))
            return 0
        except RateLimited as error:
            self.inbox.limits.pause(row.repository.installation, error.resource, limit_end(error, now))
            limited.add(row.repository.installation)
            return 0
        except Unauthorised:
            self.tokens.forget(row.repository)
            return 0
        except Unreachable as error:
            raise WorldError(f"the check for repositories that lag behind failed: {error}") from error
        except ForgeError:
            return 0
        if newest <= row.cursor + ALLOWED_DRIFT:
            return 0
        # The id has the newest change and memory's cursor: a repository is queued again only while it makes progress.
        arrival = self._make_arrival(
            row, f"catch-up-{row.repository.text}-{newest}-{row.cursor}", Event("catch-up"), now
        )
        return sum(self.inbox.put([arrival]))

    def _make_arrival(self, row: RepositoryRow, name: str, event: Event, now: Instant) -> Delivery:
        key, priority = row.repository, Priority.CATCH_UP
        return Delivery(f"{self.app}:{name}", key, event, row.name, received_at=now, priority=priority)


@dataclass(frozen=True, slots=True)
class ResyncResult:
    """The counts of one resync; ``notes`` say what it could not do. ``reminded``: daily looks begun."""

    redelivered: int = 0
    caught_up: int = 0
    reminded: int = 0
    purged: int = 0
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Resync:
    """A regular task of one worker. Its state is in heartbeats of the inbox, so that any worker can continue.

    ``tokens`` are shared with the worker, to request fewer; ``forget`` removes a repository's files.
    """

    api: App
    inbox: Inbox
    options: ServerOptions
    tokens: TokenCache
    forget: Callable[[RepositoryKey], None]
    drift: DriftCheck = field(init=False)

    def __post_init__(self) -> None:
        newest, app = NewestChanges(self.options.api_url), self.options.app_id
        self.drift = DriftCheck(self.inbox, self.tokens, newest, app, self.options.scope)

    def run(self, now: Instant) -> ResyncResult:
        """Run each part even if another one fails. Parts that do not need GitHub come first."""
        notes: list[str] = []

        def part(call: Callable[[Instant], int]) -> int:
            try:
                return call(now)
            except WorldError as error:
                notes.append(str(error))
                return 0

        purged = part(lambda at: self.inbox.purge(at - self.options.keep_days * DAY))
        part(self._align)
        part(lambda _: self.inbox.heartbeats.refresh_app(self.api).id)
        redelivered = part(lambda at: self._redeliver(at, notes))
        events = self._events(now)
        caught_up = part(lambda _: list_installations(self.api, self.options.app_id, events))
        caught_up += part(lambda at: self.drift.check(at, events.remove))
        result = ResyncResult(redelivered, caught_up, part(self.drift.start_daily_looks), purged, tuple(notes))
        for note in notes:
            log.warning("resync: %s", note)
        log.info("resync done", extra={name: value for name, value in asdict(result).items() if name != "notes"})
        return result

    def _align(self, now: Instant) -> int:
        """Note what the organisation's index lacks or should not have; if no worker has one, forget all notes."""
        changes = self.inbox.changes
        if self.options.organisation:
            return changes.align(self.options.organisation, self.options.scope)
        heartbeats = self.inbox.heartbeats.all()
        times = [at for name, (at, note) in heartbeats.items() if name.startswith(WORKER_PREFIX) and INDEX_UP in note]
        silent = now - max(times, default=0)
        if silent > INDEX_TIMEOUT:
            changes.switch_off()
        elif silent <= WORKER_TIMEOUT:
            log.warning(
                "another worker has an organisation index and this one has none: set the same --organisation for all"
            )
        return 0

    def _redeliver(self, now: Instant, notes: list[str]) -> int:
        missed = Redelivery(self.api, self.inbox, self.options.app_id).request_missing(now)
        if missed.trouble:
            notes.append(f"not all missed deliveries were requested again: {missed.trouble}")
        if missed.given_up:
            notes.append(f"deliveries that were requested again but never arrived: {', '.join(missed.given_up)}")
        self._events(now).schedule_catch_up(missed.repositories, f"{self.options.app_id}:first-{now // DAY}")
        return missed.asked

    def _events(self, now: Instant) -> InstallationEvents:
        return InstallationEvents(self.inbox, self.tokens, self.forget, now, self.options.scope)
