"""Where the App is installed: handles the events of installations, and compares what is known with GitHub's list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from bot.domain.organisation import Visibility
from bot.errors import WorldError
from bot.github.app import App, ListedRepository
from bot.github.errors import ForgeError, NotInstalled, NotPermitted, Suspended
from bot.github.events import Event
from bot.server.model import (
    ALL_REPOSITORIES,
    DAY,
    Delivery,
    Instant,
    Note,
    Priority,
    RepositoryKey,
    RepositoryRow,
    RepositoryScope,
)
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.github_access import TokenCache
from bot.server.storage.inbox import Inbox
from bot.server.storage.installations import DELETED, MOVED, REMOVED, SUSPENDED, UNINSTALLED

NOTHING_TO_DO = "nothing to do"
DETAILS_REQUESTED = "its details are requested again"
OUT_OF_DATE = "out of date: GitHub says that the App is active there"
STILL_INSTALLED = "out of date: GitHub says that the App is still installed there"

INSTALLATIONS_HEARTBEAT = "installations"
"""The heartbeat of the resync of installations; ``day`` is its last day, or 0 to request another resync."""

_STORE_BATCH = 500
"""Deliveries stored in one transaction."""


@dataclass(frozen=True, slots=True)
class InstallationEvents:
    """Applies events of an installation, as of ``now``; ``forget`` removes the files of a repository.

    Events may be late or sent again by somebody else, so GitHub is asked before anything is taken away. Repositories
    outside the ``scope`` are never read. Every method raises WorldError without the database, or if GitHub is needed
    and does not answer.
    """

    inbox: Inbox
    tokens: TokenCache
    forget: Callable[[RepositoryKey], None]
    now: Instant
    scope: RepositoryScope = ALL_REPOSITORIES

    def apply(self, delivery: Delivery) -> str:
        """Apply an event and return the outcome in one line; unknown actions do nothing."""
        match delivery.event.name:
            case "installation":
                return self._installation(delivery)
            case "installation_repositories":
                return self._selection(delivery)
            case "repository":
                return self._repository(delivery)
        return "not about this repository"

    def _installation(self, delivery: Delivery) -> str:
        installation, extra = delivery.repository.installation, dict(delivery.extra)
        account = extra.get("account", "")
        repositories = [
            row.repository
            for row in self.inbox.installations.repositories()
            if row.repository.installation == installation
        ]
        match delivery.event.action:
            case "created" | "unsuspend" | "new_permissions_accepted":
                self.activate(installation, account)
                return self._catch_up({*repositories, *_repositories_in(delivery, "added")}, delivery)
            case "suspend":
                if (current := self.tokens.installation(installation)) and not current.suspended:
                    return OUT_OF_DATE
                self.register.store_installation(installation, account, "suspended")
                self.tokens.forget(installation=installation)
                return _drop_outcome(SUSPENDED, sum(self._drop_waiting(repository) for repository in repositories))
            case "deleted":
                if self.tokens.installation(installation):
                    return STILL_INSTALLED
                self.register.store_installation(installation, account, "gone")
                self.tokens.forget(installation=installation)
                return _drop_outcome(
                    UNINSTALLED, sum(self.remove(repository, UNINSTALLED) for repository in repositories)
                )
        return NOTHING_TO_DO

    def _selection(self, delivery: Delivery) -> str:
        added, removed = _repositories_in(delivery, "added"), _repositories_in(delivery, "removed")
        if added:
            self.activate(delivery.repository.installation, dict(delivery.extra).get("account", ""))
        dropped = _drop_outcome(REMOVED, self.remove_gone(removed, REMOVED)) if removed else ""
        scheduled = self._catch_up(added, delivery) if added else ""
        return "; ".join(filter(None, (scheduled, dropped))) or NOTHING_TO_DO

    def _repository(self, delivery: Delivery) -> str:
        repositories = _repositories_in(delivery, "repository")
        if not repositories:
            return NOTHING_TO_DO
        repository = repositories[0]
        self.tokens.forget(repository)
        match delivery.event.action:
            case "deleted":
                return _drop_outcome(DELETED, self.remove_gone([repository], DELETED))
            case "transferred":
                known = (row.repository for row in self.inbox.installations.repositories())
                former = [each for each in known if each.number == repository.number and each != repository]
                dropped = self.remove_gone(former, MOVED)
                return f"{_drop_outcome(MOVED, dropped)}; {self._catch_up(repositories, delivery)}"
            case "unarchived":
                self.register.note_unarchived(repository)
        return self._refresh_repository(repository)

    def _refresh_repository(self, repository: RepositoryKey) -> str:
        """Store the current visibility and name of a known repository. The event may be late, so GitHub is asked."""
        rows = {row.repository: row for row in self.inbox.installations.repositories()}
        if repository not in rows:
            return DETAILS_REQUESTED
        name, visibility = rows[repository].name, Visibility.PRIVATE
        try:
            grant = self.tokens.grant(repository, self.now)
            name, visibility = grant.name, grant.visibility
        except Suspended:
            return SUSPENDED
        except NotInstalled:
            return _drop_outcome(REMOVED, self.remove(repository, REMOVED))
        except NotPermitted:  # its visibility is unknown: it counts as private
            pass
        self.register.store_repository(repository, name, visibility)
        return DETAILS_REQUESTED

    @property
    def register(self) -> OrganisationRegister:
        return OrganisationRegister(self.inbox)

    def activate(self, installation: int, account: str) -> None:
        """Activate an installation. The next resync lists its repositories, since events may not name all of them."""
        self.register.store_installation(installation, account, "active")
        self.tokens.forget(installation=installation)
        self.inbox.heartbeats.store(INSTALLATIONS_HEARTBEAT, {"day": 0})

    def remove_gone(self, repositories: Iterable[RepositoryKey], why: str) -> int:
        """Remove the repositories for which GitHub gives no token: events may be late, and lists incomplete.

        Returns the number of dropped deliveries. Raises ForgeError.
        """
        return sum(self.remove(repository, why) for repository in repositories if self._is_gone(repository))

    def _is_gone(self, repository: RepositoryKey) -> bool:
        """Whether GitHub refuses a token for good; a suspended installation may come back."""
        self.tokens.forget(repository)
        try:
            self.tokens.grant(repository, self.now)
        except (Suspended, NotPermitted):  # it is installed, or has not accepted new permissions
            return False
        except NotInstalled:
            return True
        return False

    def remove(self, repository: RepositoryKey, why: str) -> int:
        """Remove a repository; returns the number of dropped deliveries."""
        self.tokens.forget(repository)
        dropped = self.register.mark_gone(repository, why)
        self.forget(repository)
        return dropped

    def schedule_catch_up(self, repositories: Iterable[RepositoryKey], cause: str) -> int:
        """Make these repositories catch up; returns how many were not scheduled already.

        ``cause`` is "APP:CAUSE"; repeating the same cause changes nothing. A repository that was never read catches up
        by reading its history, which is the least urgent work.
        """
        app, _, name = cause.partition(":")
        existing = {row.repository: row for row in self.inbox.installations.repositories()}
        rows = [existing.get(repository, RepositoryRow(repository)) for repository in sorted(set(repositories))]
        arrivals = [
            Delivery(
                f"{app}:catch-up-{row.repository.text}-{name}",
                row.repository,
                Event("catch-up"),
                received_at=self.now,
                priority=Priority.HISTORY if row.is_unread else Priority.CATCH_UP,
            )
            for row in rows
            if self.scope.includes(row.name)
        ]
        groups = (arrivals[start : start + _STORE_BATCH] for start in range(0, len(arrivals), _STORE_BATCH))
        return sum(sum(self.inbox.put(group)) for group in groups)

    def _catch_up(self, repositories: Iterable[RepositoryKey], cause: Delivery) -> str:
        app = cause.id.partition(":")[0]
        count = self.schedule_catch_up(repositories, f"{app}:{cause.seq}")
        return f"the App is active: repositories to check: {count}"

    def _drop_waiting(self, repository: RepositoryKey) -> int:
        """Drop the waiting deliveries of a repository that stays known; catching up will find everything again."""
        dropped = self.inbox.installations.drop_waiting(repository, SUSPENDED)
        self.forget(repository)
        return dropped


def _repositories_in(delivery: Delivery, key: str) -> list[RepositoryKey]:
    numbers = dict(delivery.extra).get(key, "").split(",")
    return [
        RepositoryKey(delivery.repository.installation, int(number))
        for number in numbers
        if number.isascii() and number.isdigit()
    ]


def _drop_outcome(why: str, count: int) -> str:
    return f"{why}: deliveries dropped: {count}" if count else why


def list_installations(api: App, app: int, events: InstallationEvents) -> int:
    """List all installations, once a day or after a change. Returns how many repositories are new.

    An excluded one stays unknown, so that it is new once it is included. Raises ForgeError, WorldError.
    """
    inbox, register, scope, today = events.inbox, events.register, events.scope, events.now // DAY
    before = inbox.heartbeats.get(INSTALLATIONS_HEARTBEAT)
    listing: Note = {"day": today, "scope": scope.digest}
    if before[1] == listing:
        return 0
    rows = inbox.installations.repositories()
    if before[1].get("scope") != scope.digest:
        register.note_excluded(row.repository for row in rows if not scope.includes(row.name))
    known, listed = {row.repository for row in rows}, set[RepositoryKey]()
    for installation in api.installations():
        state: Literal["suspended", "active"] = "suspended" if installation.suspended else "active"
        register.store_installation(installation.id, installation.account, state)
        if installation.suspended:
            listed |= {repository for repository in known if repository.installation == installation.id}
            continue
        for each in _fetch_repositories(api, installation.id):
            repository = RepositoryKey(installation.id, each.id)
            if repository in known or scope.includes(each.name):
                listed.add(repository)
                register.store_repository(repository, each.name, each.visibility)
    try:
        events.remove_gone(known - listed, UNINSTALLED)
    except ForgeError as error:
        raise WorldError(f"the check of where the App is installed failed: {error}") from error
    found = events.schedule_catch_up(listed - known, f"{app}:found-{today}")
    # Otherwise something changed meanwhile: list again next time.
    if inbox.heartbeats.get(INSTALLATIONS_HEARTBEAT) == before:
        inbox.heartbeats.store(INSTALLATIONS_HEARTBEAT, listing)
    return found


def _fetch_repositories(api: App, installation: int) -> list[ListedRepository]:
    """The repositories of an installation; none if it is gone."""
    try:
        return list(api.repositories(installation))
    except NotInstalled:
        return []
