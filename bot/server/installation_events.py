"""Handles events of installations: the App comes and goes; repositories are added, renamed, moved and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from bot.domain.organisation import Visibility
from bot.github.errors import NotInstalled, NotPermitted, Suspended
from bot.github.events import Event
from bot.server.inbox import Inbox
from bot.server.installations import TokenCache
from bot.server.model import Arrival, Delivery, Instant, PendingWork, Priority, RepositoryKey, RepositoryRow, Result
from bot.server.organisation_register import OrganisationRegister
from bot.server.scope import EVERYTHING, RepositoryScope

UNINSTALLED = "the App is not installed there any more"
SUSPENDED = "the App is suspended there"
REMOVED = "the App may not see this repository any more"
DELETED = "the repository was deleted"
MOVED = "the repository went to another account"

NOTHING = "nothing to do"
ASKED_AGAIN = "what is known of it is asked for again"
OVER = "it is over: GitHub says that the App is at work there"

PLACES = "installations"
"""The heartbeat of the resync of installations; ``day`` is its last day, 0 to request another one."""

ASKED = 3
"""Repositories of an installation that are checked before its suspension is believed."""

_MOST = 1_000
_AT_ONCE = 500
"""Deliveries stored in one transaction."""


def apply_installation_events(
    work: PendingWork,
    inbox: Inbox,
    tokens: TokenCache,
    forget: Callable[[RepositoryKey], None],
    scope: RepositoryScope = EVERYTHING,
) -> list[Result]:
    """Apply the events of an installation; ``forget`` removes the files of a repository.

    Events may be repeated, and late ones take nothing away that GitHub has given back. Raises WorldError without the
    database, or if GitHub is needed and does not answer.
    """
    events = InstallationEvents(inbox, tokens, forget, work.began_at, scope)
    return [Result(each.seq, "done", events.apply(each)) for each in work.deliveries]


@dataclass(frozen=True, slots=True)
class InstallationEvents:
    """Applies events of an installation, as of ``now``. No repository outside the ``scope`` is looked at."""

    inbox: Inbox
    tokens: TokenCache
    forget: Callable[[RepositoryKey], None]
    now: Instant
    scope: RepositoryScope = EVERYTHING

    def apply(self, delivery: Delivery) -> str:
        """Apply an event and return the outcome in one line; unknown actions do nothing."""
        match delivery.event.name:
            case "installation":
                return self._installation(delivery)
            case "installation_repositories":
                return self._selection(delivery)
            case "repository":
                return self._repository(delivery)
        return "not of this repository"

    def _installation(self, delivery: Delivery) -> str:
        installation, extra = delivery.repository.installation, dict(delivery.extra)
        account = extra.get("account", "")
        known = [
            row.repository
            for row in self.inbox.installations().repositories()
            if row.repository.installation == installation
        ]
        match delivery.event.action:
            case "created" | "unsuspend" | "new_permissions_accepted":
                self.receives(installation, account)
                return _looked(self.looks({*known, *_named(delivery, "added")}, f"{_app(delivery)}:{delivery.seq}"))
            case "suspend":
                if not self._rests(known):
                    return OVER
                self._register().installed(installation, account, "suspended")
                self.tokens.forget(installation=installation)
                return _dropped(SUSPENDED, sum(self._rest(repository) for repository in known))
            case "deleted":
                self._register().installed(installation, account, "gone")
                self.tokens.forget(installation=installation)
                return _dropped(UNINSTALLED, sum(self.loses(repository, UNINSTALLED) for repository in known))
        return NOTHING

    def _selection(self, delivery: Delivery) -> str:
        added, removed = _named(delivery, "added"), _named(delivery, "removed")
        if added:
            self.receives(delivery.repository.installation, dict(delivery.extra).get("account", ""))
        dropped = self.leaves(removed, REMOVED)
        looked = self.looks(added, f"{_app(delivery)}:{delivery.seq}")
        told = [*([_looked(looked)] if added else []), *([_dropped(REMOVED, dropped)] if removed else [])]
        return "; ".join(told) or NOTHING

    def _repository(self, delivery: Delivery) -> str:
        about = _named(delivery, "repository")
        if not about:
            return NOTHING
        repository = about[0]
        self.tokens.forget(repository)
        match delivery.event.action:
            case "deleted":
                return _dropped(DELETED, self.leaves([repository], DELETED))
            case "transferred":
                rows = self.inbox.installations().repositories()
                former = [
                    row.repository
                    for row in rows
                    if row.repository.number == repository.number and row.repository != repository
                ]
                dropped = self.leaves(former, MOVED)
                return f"{_dropped(MOVED, dropped)}; {_looked(self.looks(about, f'{_app(delivery)}:{delivery.seq}'))}"
            case "unarchived":
                self._register().unarchived(repository)
        return self._asks_about(repository)

    def _asks_about(self, repository: RepositoryKey) -> str:
        """Store the visibility and name that a known repository has now, whatever the event says: it may be late."""
        known = {row.repository: row for row in self.inbox.installations().repositories()}
        if repository not in known:
            return ASKED_AGAIN
        name, private, visibility = known[repository].name, True, Visibility.PRIVATE
        try:
            grant = self.tokens.grant(repository, self.now)
            name, private, visibility = grant.name, grant.private, grant.visibility
        except Suspended:
            return SUSPENDED
        except NotInstalled:
            return _dropped(REMOVED, self.loses(repository, REMOVED))
        except NotPermitted:  # it may be public or not: it counts as private
            pass
        self._register().saw(repository, name, private=private, visibility=visibility)
        return ASKED_AGAIN

    def _register(self) -> OrganisationRegister:
        return OrganisationRegister(self.inbox)

    def receives(self, installation: int, account: str) -> None:
        """Activate an installation. The next resync lists its repositories, as events may not name all of them."""
        self._register().installed(installation, account, "active")
        self.tokens.forget(installation=installation)
        self.inbox.heartbeat(PLACES, {"day": 0})

    def leaves(self, repositories: Iterable[RepositoryKey], why: str) -> int:
        """Remove those repositories for which GitHub gives no token: events may be late, and lists incomplete.

        Returns the number of dropped deliveries. Raises ForgeError.
        """
        return sum(self.loses(repository, why) for repository in repositories if self._is_gone(repository))

    def _is_gone(self, repository: RepositoryKey) -> bool:
        """Whether it is gone; a suspended installation may come back."""
        refusal = self._refusal(repository)
        return refusal is not None and not isinstance(refusal, Suspended)

    def _rests(self, repositories: Iterable[RepositoryKey]) -> bool:
        """Whether the installation is suspended: not if GitHub gives a token for any of these."""
        return all(self._refusal(repository) for repository in islice(repositories, ASKED))

    def _refusal(self, repository: RepositoryKey) -> NotInstalled | None:
        self.tokens.forget(repository)
        try:
            self.tokens.grant(repository, self.now)
        except NotInstalled as error:
            return error
        except NotPermitted:  # it is installed, but has not accepted new permissions
            return None
        return None

    def loses(self, repository: RepositoryKey, why: str) -> int:
        """Remove a repository; returns the number of dropped deliveries."""
        self.tokens.forget(repository)
        dropped = self._register().lost(repository, why)
        self.forget(repository)
        return dropped

    def looks(self, repositories: Iterable[RepositoryKey], cause: str) -> int:
        """Make these repositories catch up; returns how many were not scheduled already.

        ``cause`` is "APP:CAUSE"; repeating the same cause changes nothing. To catch up in a repository that was never
        read is to read its history, which is the least urgent of all.
        """
        app, _, name = cause.partition(":")
        known = {row.repository: row for row in self.inbox.installations().repositories()}
        rows = [known.get(repository, RepositoryRow(repository)) for repository in sorted(set(repositories))]
        arrivals = [
            Arrival(
                f"{app}:catch-up-{row.repository.text}-{name}",
                row.repository,
                Event("catch-up"),
                received_at=self.now,
                priority=Priority.HISTORY if row.is_unread else Priority.CATCH_UP,
            )
            for row in rows
            if self.scope.includes(row.name)
        ]
        groups = (arrivals[start : start + _AT_ONCE] for start in range(0, len(arrivals), _AT_ONCE))
        return sum(sum(self.inbox.put(group)) for group in groups)

    def _rest(self, repository: RepositoryKey) -> int:
        """Drop the waiting deliveries of a repository that stays known; catching up will find everything."""
        dropped = 0
        while found := self.inbox.deliveries(state="waiting", repository=repository, limit=_MOST):
            count = self.inbox.drop([each.seq for each in found], SUSPENDED)
            dropped += count
            if not count:
                break
        self.forget(repository)
        return dropped


def _named(delivery: Delivery, key: str) -> list[RepositoryKey]:
    numbers = dict(delivery.extra).get(key, "").split(",")
    return [
        RepositoryKey(delivery.repository.installation, int(each))
        for each in numbers
        if each.isascii() and each.isdigit()
    ]


def _app(delivery: Delivery) -> str:
    return delivery.id.partition(":")[0]


def _looked(count: int) -> str:
    return f"the App is at work: repositories to look at: {count}"


def _dropped(why: str, count: int) -> str:
    return f"{why}: deliveries dropped: {count}" if count else why
