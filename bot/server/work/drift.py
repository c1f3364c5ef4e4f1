"""Finds the repositories whose memory lags behind, and begins the daily look of each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.errors import WorldError
from bot.github.client import GitHubClient, NewestChange
from bot.github.errors import ForgeError, NotInstalled, RateLimited, Suspended, Unauthorised, Unreachable
from bot.github.events import Event
from bot.server.model import (
    DAY,
    MINUTE,
    Arrival,
    Grant,
    Instant,
    Priority,
    RepositoryKey,
    RepositoryRow,
)
from bot.server.scope import ALL_REPOSITORIES, RepositoryScope
from bot.server.storage.heartbeats import Heartbeats
from bot.server.storage.inbox import Inbox
from bot.server.storage.installations import Installations
from bot.server.storage.tokens import TokenCache

Loses = Callable[[RepositoryKey, str], object]

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
        rows = self._next_rows(
            self._active_rows(
                Installations(self.inbox.database, self.inbox.now).repositories(active_since=now - ACTIVE_PERIOD)
            )
        )
        caught_up, limited, last = 0, set[int](), ""
        try:
            for row in rows:
                if row.repository.installation not in limited:
                    caught_up += self._check_repository(row, limited, now, loses)
                last = row.repository.text
        finally:
            if last:
                Heartbeats(self.inbox.database, self.inbox.now).store(CURSOR_HEARTBEAT, {"repository": last})
        return caught_up

    def start_daily_looks(self, now: Instant) -> int:
        """Begin the daily look of each repository in its quarter of an hour, given by its number. Returns how many.

        The daily look reads feedback and changed pages; nobody waits for it.
        """
        due = []
        for row in self._active_rows(Installations(self.inbox.database, self.inbox.now).repositories()):
            since = (now // QUARTER_HOUR - row.repository.number) % QUARTERS_PER_DAY
            if since < DAILY_WINDOW:
                day = (now // QUARTER_HOUR - row.repository.number) // QUARTERS_PER_DAY
                due.append(self._make_arrival(row, f"daily-{row.repository.text}-{day}", Event("schedule"), now))
        known = self.inbox.existing_ids([each.id for each in due])
        return sum(sum(self.inbox.put([each])) for each in due if each.id not in known)

    def _active_rows(self, rows: Sequence[RepositoryRow]) -> list[RepositoryRow]:
        """The rows within the scope whose installation is neither suspended nor gone."""
        register = Installations(self.inbox.database, self.inbox.now)
        rows = [row for row in rows if self.scope.includes(row.name)]
        active = {
            number: register.state(number) == "active" for number in {row.repository.installation for row in rows}
        }
        return sorted((row for row in rows if active[row.repository.installation]), key=lambda row: row.repository)

    def _next_rows(self, rows: Sequence[RepositoryRow]) -> list[RepositoryRow]:
        """The next repositories in turn, after the last checked one."""
        _, note = Heartbeats(self.inbox.database, self.inbox.now).all().get(CURSOR_HEARTBEAT, (0, {}))
        try:
            last = RepositoryKey.of(str(note.get("repository", "")))
        except ValueError:
            last = RepositoryKey(0, 0)
        return [*(row for row in rows if row.repository > last), *(row for row in rows if row.repository <= last)][
            : self.most
        ]

    def _check_repository(self, row: RepositoryRow, limited: set[int], now: Instant, loses: Loses) -> int:
        """1 if it lags behind. Errors of one repository do not keep the next one from being checked."""
        busy = (
            self.inbox.deliveries(state=state, repository=row.repository, limit=1) for state in ("waiting", "working")
        )
        if not row.cursor or any(busy):
            return 0
        try:
            newest = self.newest(self.tokens.grant(row.repository, now))
        except NotInstalled as error:
            if not isinstance(error, Suspended):
                loses(row.repository, str(error))
            return 0
        except RateLimited as error:
            until = round(error.until.timestamp() * 1000) if error.until else now + MINUTE
            Installations(self.inbox.database, self.inbox.now).pause(row.repository.installation, error.resource, until)
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

    def _make_arrival(self, row: RepositoryRow, name: str, event: Event, now: Instant) -> Arrival:
        return Arrival(
            f"{self.app}:{name}",
            row.repository,
            event,
            row.name,
            row.private,
            received_at=now,
            priority=Priority.CATCH_UP,
        )


MAX_ETAGS = 1_000
"""Most repositories whose last answer is remembered."""


class NewestChanges:
    """Asks when an issue of a repository last changed, with the ETag of the last answer: if nothing changed since, that
    does not count against the limit.

    GitHub's ETags hold for one token only, and tokens stay in the process that asked for them. So do ETags, each with
    the time of the change and nothing else of the answer. For one thread.
    """

    def __init__(self, api_url: str, most: int = MAX_ETAGS) -> None:
        self._api_url = api_url
        self._most = most
        self._last: OrderedDict[RepositoryKey, NewestChange] = OrderedDict()

    def __call__(self, grant: Grant) -> Instant:
        """Return the time of the newest change, 0 for none. Raises ForgeError."""
        last = self._last.pop(grant.repository, NewestChange(None, ""))
        newest = GitHubClient(self._api_url, grant.token, grant.name).newest_change(last.etag) or last
        self._last[grant.repository] = newest
        if len(self._last) > self._most:
            self._last.popitem(last=False)
        return round(1000 * newest.at.timestamp()) if newest.at else 0
