"""What happens to the house itself: the App comes and goes, repositories are added, renamed, moved and removed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from bot.github.errors import NotInstalled, NotPermitted, Suspended
from bot.github.events import Event
from bot.server import database
from bot.server.database import Row, Transaction
from bot.server.model import (
    AppApi,
    Arrival,
    Delivery,
    Grant,
    Inbox,
    Instant,
    PendingWork,
    RepositoryKey,
    RepositoryRow,
    Result,
    Tokens,
)

UNINSTALLED = "the App is not installed there any more"
SUSPENDED = "the App is suspended there"
REMOVED = "the App may not see this repository any more"
DELETED = "the repository was deleted"
MOVED = "the repository went to another account"

NOTHING = "nothing to do"
OVER = "it is over: GitHub says that the App is at work there"

PLACES = "installations"
"""The pulse of whoever asked GitHub for all installations; ``day`` is the last one, 0 to have it asked again."""

ASKED = 3
"""Repositories of an installation that are asked about before its suspension is believed."""

_MOST = 1_000
_AT_ONCE = 500
"""Deliveries that are stored in one transaction."""


def apply_installation_events(
    work: PendingWork, ledger: Inbox, tokens: Tokens, forget: Callable[[RepositoryKey], None]
) -> list[Result]:
    """Do what the events of an installation's lane ask for; ``forget`` removes what is on disk of a repository.

    Twice is the same as once, and one that comes late takes nothing away that GitHub has given back. Raises WorldError
    when the database is away, or GitHub has to be asked and cannot be.
    """
    house = InstallationEvents(ledger, tokens, forget, work.began_at)
    return [Result(each.seq, "done", house.hears(each)) for each in work.deliveries]


@dataclass(frozen=True, slots=True)
class InstallationEvents:
    """Where we are at home, as of ``now``."""

    inbox: Inbox
    tokens: Tokens
    forget: Callable[[RepositoryKey], None]
    now: Instant

    def hears(self, delivery: Delivery) -> str:
        """What an event came to, in a line; an action that says nothing to us comes to nothing."""
        told = {"installation": self._installation, "installation_repositories": self._selection,
                "repository": self._repository}.get(delivery.event.name)  # fmt: skip
        return told(delivery) if told else "not of this lane"

    def _installation(self, delivery: Delivery) -> str:
        installation, extra = delivery.lane.installation, dict(delivery.extra)
        account, known = extra.get("account", ""), self._lanes(installation)
        match delivery.event.action:
            case "created" | "unsuspend" | "new_permissions_accepted":
                self.receives(installation, account)
                return _looked(self.looks({*known, *_named(delivery, "added")}, f"{_app(delivery)}:{delivery.seq}"))
            case "suspend":
                if not self._rests(known):
                    return OVER
                self.inbox.register().installed(installation, account, "suspended")
                self.tokens.forget(installation=installation)
                return _dropped(SUSPENDED, sum(self._rest(lane) for lane in known))
            case "deleted":
                self.inbox.register().installed(installation, account, "gone")
                self.tokens.forget(installation=installation)
                return _dropped(UNINSTALLED, sum(self.loses(lane, UNINSTALLED) for lane in known))
        return NOTHING

    def _selection(self, delivery: Delivery) -> str:
        added, removed = _named(delivery, "added"), _named(delivery, "removed")
        if added:
            self.receives(delivery.lane.installation, dict(delivery.extra).get("account", ""))
        dropped = self.leaves(removed, REMOVED)
        looked = self.looks(added, f"{_app(delivery)}:{delivery.seq}")
        told = [*([_looked(looked)] if added else []), *([_dropped(REMOVED, dropped)] if removed else [])]
        return "; ".join(told) or NOTHING

    def _repository(self, delivery: Delivery) -> str:
        about = _named(delivery, "repository")
        if not about:
            return NOTHING
        lane = about[0]
        self.tokens.forget(lane)
        match delivery.event.action:
            case "deleted":
                return _dropped(DELETED, self.leaves([lane], DELETED))
            case "transferred":
                rows = self.inbox.register().lanes()
                former = [row.lane for row in rows if row.lane.repository == lane.repository and row.lane != lane]
                dropped = self.leaves(former, MOVED)
                return f"{_dropped(MOVED, dropped)}; {_looked(self.looks(about, f'{_app(delivery)}:{delivery.seq}'))}"
        return "what is known of it is asked for again"

    def receives(self, installation: int, account: str) -> None:
        """The App may work there; all it may see there is asked for at the next sweep, as an event can name too few."""
        self.inbox.register().installed(installation, account, "active")
        self.tokens.forget(installation=installation)
        self.inbox.heartbeat(PLACES, {"day": 0})

    def leaves(self, lanes: Iterable[RepositoryKey], why: str) -> int:
        """Let go of those that GitHub gives no token for: an event may come late, and a list lack what is there.

        Returns how many of their deliveries were dropped. Raises ForgeError.
        """
        return sum(self.loses(lane, why) for lane in lanes if self._is_gone(lane))

    def _is_gone(self, lane: RepositoryKey) -> bool:
        """A suspended installation rests, and may come back."""
        refusal = self._refusal(lane)
        return refusal is not None and not isinstance(refusal, Suspended)

    def _rests(self, lanes: Iterable[RepositoryKey]) -> bool:
        """Whether the installation of these is suspended: where GitHub gives a token for any, it is not."""
        return all(self._refusal(lane) for lane in islice(lanes, ASKED))

    def _refusal(self, lane: RepositoryKey) -> NotInstalled | None:
        """Why GitHub gives no token for a repository, None where it does."""
        self.tokens.forget(lane)
        try:
            self.tokens.grant(lane, self.now)
        except NotInstalled as error:
            return error
        except NotPermitted:  # it is there, and whoever installed us has something to accept
            return None
        return None

    def loses(self, lane: RepositoryKey, why: str) -> int:
        """A repository is none of ours any more; how many of its deliveries were dropped."""
        self.tokens.forget(lane)
        dropped = self.inbox.register().gone(lane, why)
        self.forget(lane)
        return dropped

    def looks(self, lanes: Iterable[RepositoryKey], cause: str) -> int:
        """Have these repositories looked at from where each was left; how many were not told to already.

        ``cause`` is "APP:CAUSE", the same for the same one, so that twice is once.
        """
        app, _, name = cause.partition(":")
        arrivals = [
            Arrival(f"{app}:catch-up-{lane.key}-{name}", lane, Event("catch-up"), received_at=self.now)
            for lane in sorted(set(lanes))
        ]
        groups = (arrivals[start : start + _AT_ONCE] for start in range(0, len(arrivals), _AT_ONCE))
        return sum(sum(self.inbox.put(group)) for group in groups)

    def _lanes(self, installation: int) -> list[RepositoryKey]:
        """The repositories that are known of an installation."""
        return [row.lane for row in self.inbox.register().lanes() if row.lane.installation == installation]

    def _rest(self, lane: RepositoryKey) -> int:
        """Drop what waits in a lane that stays known, as a later look finds it all."""
        dropped = 0
        while found := self.inbox.deliveries(state="waiting", lane=lane, limit=_MOST):
            count = self.inbox.drop([each.seq for each in found], SUSPENDED)
            dropped += count
            if not count:
                break
        self.forget(lane)
        return dropped


def _named(delivery: Delivery, key: str) -> list[RepositoryKey]:
    """The lanes of the repositories that an event names under a key."""
    numbers = dict(delivery.extra).get(key, "").split(",")
    return [
        RepositoryKey(delivery.lane.installation, int(each)) for each in numbers if each.isascii() and each.isdigit()
    ]


def _app(delivery: Delivery) -> str:
    return delivery.id.partition(":")[0]


def _looked(count: int) -> str:
    return f"the App is at work: repositories to look at: {count}"


def _dropped(why: str, count: int) -> str:
    return f"{why}: deliveries dropped: {count}" if count else why


# Tokens for one repository each: kept in memory, renewed in time, forgotten as soon as they may be wrong.


SPARE = 20 * 60_000
"""Milliseconds that a token is good for at least when it is handed out: longer than `slots.HANGING`."""

LIFE = 60 * 60_000
"""Milliseconds that GitHub's tokens live, whatever our clock makes of the time at which they end."""


class TokenCache:
    """`Tokens` that asks for each once an hour. Safe to use by several threads.

    What a repository is called comes with its token, from GitHub; so after a rename or a transfer the token has to be
    forgotten, and one that was asked for before `forget` is not kept after it.
    """

    def __init__(self, api: AppApi) -> None:
        self._api = api
        self._kept: dict[RepositoryKey, Grant] = {}
        self._forgotten = 0
        self._lock = threading.Lock()

    def grant(self, lane: RepositoryKey, now: Instant) -> Grant:
        """A token good for twenty minutes, and the repository's present name. Raises NotInstalled, ForgeError."""
        with self._lock:
            kept, forgotten = self._kept.get(lane), self._forgotten
        if kept is not None and now + SPARE <= kept.expires_at:
            return kept
        minted = self._api.create_token(lane.installation, lane.repository)
        ends = min(minted.expires_at, now + LIFE)
        fresh = Grant(lane, minted.token, minted.full_name, private=minted.private, expires_at=ends)
        with self._lock:
            self._kept = {each: grant for each, grant in self._kept.items() if grant.expires_at > now}
            if forgotten == self._forgotten:
                self._kept[lane] = fresh
        return fresh

    def forget(self, lane: RepositoryKey | None = None, installation: int = 0) -> None:
        """Those of a lane, of an installation, or all where neither is given."""
        with self._lock:
            self._forgotten += 1
            for each in list(self._kept):
                is_meant = each == lane or each.installation == installation
                if is_meant or (lane is None and not installation):
                    del self._kept[each]


# Where the App is installed and what is known of each repository, in the database of the ledger.


class DatabaseInstallations:
    """`Register` in a database, each method within a transaction from ``opened``."""

    def __init__(self, opened: Callable[[], AbstractContextManager[Transaction]], now: Callable[[], Instant]) -> None:
        self._opened = opened
        self._now = now

    def installed(self, installation: int, account: str, state: Literal["active", "suspended", "gone"]) -> None:
        with self._opened() as keeping:
            keeping.change(
                "insert into installations (id, account, state, changed) values (:id, :account, :state, :now)"
                " on conflict (id) do update set state = excluded.state, changed = excluded.changed,"
                " account = case when excluded.account = '' then installations.account else excluded.account end",
                id=installation,
                account=account,
                state=state,
                now=self._now(),
            )

    def state(self, installation: int) -> str:
        with self._opened() as asking:
            row = asking.row("select state from installations where id = :id", id=installation)
        return row["state"] if row else "active"

    def pause(self, installation: int, resource: str, until: Instant) -> None:
        with self._opened() as keeping:
            keeping.change(
                "insert into pauses (installation, resource, until) values (:id, :resource, :until)"
                " on conflict (installation, resource) do update set until = case"
                " when excluded.until > pauses.until then excluded.until else pauses.until end",
                id=installation,
                resource=resource,
                until=until,
            )

    def paused_until(self, installation: int, resources: Sequence[str]) -> Instant:
        sql = "select max(until) as until from pauses where installation = :id and resource in :resources"
        with self._opened() as asking:
            row = asking.row(sql, id=installation, resources=list(resources))
        return int(row["until"] or 0) if row else 0

    def seen(self, lane: RepositoryKey, name: str, *, private: bool) -> None:
        with self._opened() as keeping:
            keeping.change(
                "insert into repositories (lane, name, private) values (:lane, :name, :private) on conflict (lane)"
                " do update set name = excluded.name, private = excluded.private, state = 'active'",
                lane=lane.key,
                name=name,
                private=int(private),
            )

    def gone(self, lane: RepositoryKey, why: str) -> int:
        now = self._now()
        with self._opened() as losing:
            losing.change(
                "insert into repositories (lane, state, changed) values (:lane, 'gone', :now)"
                " on conflict (lane) do update set state = 'gone', changed = excluded.changed",
                lane=lane.key,
                now=now,
            )
            return losing.change(
                "update deliveries set state = 'dropped', reason = :why, finished_at = :now"
                " where lane = :lane and state = 'waiting'",
                why=why,
                now=now,
                lane=lane.key,
            )

    def lane(self, lane: RepositoryKey) -> RepositoryRow:
        with self._opened() as asking:
            row = asking.row("select * from repositories where lane = :lane", lane=lane.key)
        return repository_row(row) if row else RepositoryRow(lane)

    def lanes(self, *, active_since: Instant = 0) -> list[RepositoryRow]:
        """Repositories only: an installation's own lane is none."""
        sql = "select * from repositories where state <> 'gone' and last_turn >= :since"
        with self._opened() as asking:
            found = [repository_row(row) for row in asking.rows(sql, since=active_since)]
        return sorted((row for row in found if row.lane.repository), key=lambda row: row.lane)

    def turned(self, lane: RepositoryKey, turn: str) -> None:
        """A turn begins in the lane: whoever began before it cannot end any more."""
        with self._opened() as beginning:
            beginning.change(
                "insert into repositories (lane, turn) values (:lane, :turn)"
                " on conflict (lane) do update set turn = excluded.turn",
                lane=lane.key,
                turn=turn,
            )

    def ended(self, lane: RepositoryKey, turn: str) -> bool:
        """Whether this turn is the last one that began in the lane, and nobody ended it yet."""
        with self._opened() as ending:
            return bool(
                ending.change(
                    "update repositories set turn = '' where lane = :lane and turn = :turn", lane=lane.key, turn=turn
                )
            )

    def named(self, lane: RepositoryKey, name: str, *, private: bool) -> None:
        """What a payload calls the repository, where nothing better is known."""
        with self._opened() as keeping:
            keeping.change(
                "update repositories set name = :name, private = :private where lane = :lane and name = ''",
                lane=lane.key,
                name=name,
                private=int(private),
            )

    def keep(self, row: RepositoryRow) -> None:
        """What a turn left."""
        with self._opened() as keeping:
            keeping.change(
                "update repositories set cursor = :cursor, pushes = :pushes, last_turn = :last_turn,"
                " rate_left = :rate_left, backoff = :backoff where lane = :lane",
                lane=row.lane.key,
                cursor=row.cursor,
                pushes=database.written(row.pushes),
                last_turn=row.last_run,
                rate_left=row.rate_left,
                backoff=row.backoff,
            )

    def purge(self, before: Instant) -> None:
        """Forget what is gone since before then."""
        with self._opened() as purging:
            for table in ("repositories", "installations"):
                purging.change(
                    f"delete from {table} where state = 'gone' and changed < :before",  # noqa: S608 (names of ours)
                    before=before,
                )
            purging.change("delete from pauses where until < :before", before=before)


def within(transaction: Transaction, now: Callable[[], Instant]) -> DatabaseInstallations:
    """The register as a part of this transaction."""
    return DatabaseInstallations(lambda: nullcontext(transaction), now)


def repository_row(row: Row) -> RepositoryRow:
    """A row of ``repositories``."""
    return RepositoryRow(
        lane=RepositoryKey.of(row["lane"]),
        name=row["name"],
        private=bool(row["private"]),
        cursor=row["cursor"],
        pushes=tuple(json.loads(row["pushes"])),
        last_run=row["last_turn"],
        rate_left=row["rate_left"],
        backoff=row["backoff"],
    )
