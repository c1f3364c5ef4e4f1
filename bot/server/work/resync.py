"""Finds what was missed: lost deliveries, repositories that lag behind or are new."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field

from bot.errors import WorldError
from bot.github.app import App, ListedRepository
from bot.github.errors import ForgeError, NotInstalled
from bot.server.model import (
    DAY,
    MINUTE,
    WORKER_PREFIX,
    Instant,
    Note,
    RepositoryKey,
)
from bot.server.options import ServerOptions
from bot.server.organisation.changes import OrganisationChanges
from bot.server.organisation.guard import INDEX_UP
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.heartbeats import WORKER_TIMEOUT, Heartbeats
from bot.server.storage.inbox import Inbox
from bot.server.storage.installations import UNINSTALLED, Installations
from bot.server.storage.retention import purge
from bot.server.storage.tokens import TokenCache
from bot.server.work.drift import DriftCheck, NewestChanges
from bot.server.work.installation_events import INSTALLATIONS_HEARTBEAT, InstallationEvents
from bot.server.work.redelivery import Redelivery

INDEX_TIMEOUT = 10 * MINUTE
"""The organisation's index is switched off when no worker has reported one for this long; a restart takes less."""

log = logging.getLogger(__name__)


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

        purged = part(lambda at: purge(self.inbox.database, self.inbox.now, at - self.options.keep_days * DAY))
        part(self._align)
        part(lambda _: Heartbeats(self.inbox.database, self.inbox.now).refresh_app(self.api).id)
        redelivered = part(lambda at: self._redeliver(at, notes))
        caught_up = part(self._list_repositories) + part(lambda at: self.drift.check(at, self._events(at).remove))
        result = ResyncResult(redelivered, caught_up, part(self.drift.start_daily_looks), purged, tuple(notes))
        for note in notes:
            log.warning("resync: %s", note)
        log.info("resync done", extra={name: value for name, value in asdict(result).items() if name != "notes"})
        return result

    def _align(self, now: Instant) -> int:
        """Note what the organisation's index lacks or should not have; if no worker has one, forget all notes."""
        changes = OrganisationChanges(self.inbox.database, self.inbox.queue, self.inbox.now)
        if self.options.organisation:
            return changes.align(self.options.organisation, self.options.scope)
        heartbeats = Heartbeats(self.inbox.database, self.inbox.now).all()
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

    def _list_repositories(self, now: Instant) -> int:
        """List all installations, once a day or after a change. Returns how many repositories are new.

        An excluded one stays unknown, so that it is new once it is included.
        """
        today, organisation = now // DAY, OrganisationRegister(self.inbox)
        before = Heartbeats(self.inbox.database, self.inbox.now).all().get(INSTALLATIONS_HEARTBEAT)
        listing: Note = {"day": today, "scope": self.options.scope.digest}
        if before and before[1] == listing:
            return 0
        rows = Installations(self.inbox.database, self.inbox.now).repositories()
        if before is None or before[1].get("scope") != self.options.scope.digest:
            organisation.note_excluded(row.repository for row in rows if not self.options.scope.includes(row.name))
        known_repositories = {row.repository for row in rows}
        listed: set[RepositoryKey] = set()
        for installation in self.api.installations():
            organisation.store_installation(
                installation.id, installation.account, "suspended" if installation.suspended else "active"
            )
            listed |= {
                repository
                for repository in known_repositories
                if installation.suspended and repository.installation == installation.id
            }
            for listed_repository in () if installation.suspended else self._fetch_repositories(installation.id):
                repository = RepositoryKey(installation.id, listed_repository.id)
                if repository in known_repositories or self.options.scope.includes(listed_repository.name):
                    listed.add(repository)
                    organisation.store_repository(
                        repository,
                        listed_repository.name,
                        private=listed_repository.private,
                        visibility=listed_repository.visibility,
                    )
        self._drop_unlisted(known_repositories - listed, now)
        found = self._events(now).schedule_catch_up(
            listed - known_repositories, f"{self.options.app_id}:found-{now // DAY}"
        )
        # Otherwise something changed meanwhile: list again next time.
        if Heartbeats(self.inbox.database, self.inbox.now).all().get(INSTALLATIONS_HEARTBEAT) == before:
            Heartbeats(self.inbox.database, self.inbox.now).store(INSTALLATIONS_HEARTBEAT, listing)
        return found

    def _fetch_repositories(self, installation: int) -> list[ListedRepository]:
        """The repositories of an installation; none if it is gone."""
        try:
            return list(self.api.repositories(installation))
        except NotInstalled:
            return []

    def _drop_unlisted(self, unlisted: Collection[RepositoryKey], now: Instant) -> None:
        """Give up a repository that GitHub does not list, if a token for it is refused as well."""
        try:
            self._events(now).remove_gone(unlisted, UNINSTALLED)
        except ForgeError as error:
            raise WorldError(f"the check of where the App is installed failed: {error}") from error

    def _events(self, now: Instant) -> InstallationEvents:
        return InstallationEvents(self.inbox, self.tokens, self.forget, now, self.options.scope)
