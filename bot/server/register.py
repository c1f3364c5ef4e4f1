"""Where the App is installed and what is known of each repository, in the database of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

from bot.server import rows
from bot.server.database import Transaction
from bot.server.nouns import Instant, Lane, LaneRow


class DatabaseRegister:
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

    def seen(self, lane: Lane, name: str, *, private: bool) -> None:
        with self._opened() as keeping:
            keeping.change(
                "insert into repositories (lane, name, private) values (:lane, :name, :private) on conflict (lane)"
                " do update set name = excluded.name, private = excluded.private, state = 'active'",
                lane=lane.key,
                name=name,
                private=int(private),
            )

    def gone(self, lane: Lane, why: str) -> int:
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

    def lane(self, lane: Lane) -> LaneRow:
        with self._opened() as asking:
            row = asking.row("select * from repositories where lane = :lane", lane=lane.key)
        return rows.repository(row) if row else LaneRow(lane)

    def lanes(self, *, active_since: Instant = 0) -> list[LaneRow]:
        """Repositories only: an installation's own lane is none."""
        sql = "select * from repositories where state <> 'gone' and last_turn >= :since"
        with self._opened() as asking:
            found = [rows.repository(row) for row in asking.rows(sql, since=active_since)]
        return sorted((row for row in found if row.lane.repository), key=lambda row: row.lane)

    def turned(self, lane: Lane, turn: str) -> None:
        """A turn begins in the lane: whoever began before it cannot end any more."""
        with self._opened() as beginning:
            beginning.change(
                "insert into repositories (lane, turn) values (:lane, :turn)"
                " on conflict (lane) do update set turn = excluded.turn",
                lane=lane.key,
                turn=turn,
            )

    def ended(self, lane: Lane, turn: str) -> bool:
        """Whether this turn is the last one that began in the lane, and nobody ended it yet."""
        with self._opened() as ending:
            return bool(
                ending.change(
                    "update repositories set turn = '' where lane = :lane and turn = :turn", lane=lane.key, turn=turn
                )
            )

    def named(self, lane: Lane, name: str, *, private: bool) -> None:
        """What a payload calls the repository, where nothing better is known."""
        with self._opened() as keeping:
            keeping.change(
                "update repositories set name = :name, private = :private where lane = :lane and name = ''",
                lane=lane.key,
                name=name,
                private=int(private),
            )

    def keep(self, row: LaneRow) -> None:
        """What a turn left."""
        with self._opened() as keeping:
            keeping.change(
                "update repositories set cursor = :cursor, pushes = :pushes, last_turn = :last_turn,"
                " rate_left = :rate_left, backoff = :backoff where lane = :lane",
                lane=row.lane.key,
                cursor=row.cursor,
                pushes=rows.written(row.pushes),
                last_turn=row.last_turn,
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


def within(transaction: Transaction, now: Callable[[], Instant]) -> DatabaseRegister:
    """The register as a part of this transaction."""
    return DatabaseRegister(lambda: nullcontext(transaction), now)
