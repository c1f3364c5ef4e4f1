"""What the ledger keeps beside deliveries: counters of all processes together, and what each of them said last."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from bot.domain.thread_json import clean
from bot.github.errors import OF_ALL
from bot.github.events import Event
from bot.server import inbox_rules
from bot.server.database import SCHEMA, Database, Row, Transaction, written
from bot.server.health import WORKER
from bot.server.installations import DatabaseInstallations, within
from bot.server.model import (
    COUNTED,
    STATES,
    Arrival,
    Delivery,
    Instant,
    Note,
    PendingWork,
    RepositoryKey,
    Result,
    RunReport,
    RunRow,
    State,
    Tallies,
    Tickets,
)

AT_ONCE = 1_000
"""Rows of what was counted that are added up in one transaction."""

_Totals = Counter[tuple[str, tuple[str, ...]]]


class Counters:
    """Tallies and pulses in a database."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self.database = database
        self.now = now

    def count_up(self, values: Tallies) -> None:
        with self.database.transaction() as counting:
            self.count(counting, values)
        self.add_up()

    def count(self, transaction: Transaction, values: Tallies) -> None:
        """Add to counters, by a row of its own: no turn waits for the counters of another repository's."""
        if values:
            counted = [(name, labels, float(much)) for (name, labels), much in values.items()]
            transaction.change("insert into tallied (counted) values (:counted)", counted=written(counted))

    def add_up(self) -> None:
        """Put what was counted lately into the totals, which nobody waits for."""
        some = "delete from tallied where seq in (select seq from tallied order by seq limit :many) returning counted"
        added = AT_ONCE
        while added == AT_ONCE:
            with self.database.transaction() as adding:
                found = adding.rows(some, many=AT_ONCE)
                _add(adding, _summed(row["counted"] for row in found))
            added = len(found)

    def counters(self) -> Tallies:
        # One statement, so that nothing is missed, or counted twice, which is added up meanwhile.
        both = (
            "select name, labels, much, '[]' as counted from tallies union all select '', '[]', 0, counted from tallied"
        )
        with self.database.transaction() as asking:
            found = asking.rows(both)
        totals = Counter({(row["name"], tuple(json.loads(row["labels"]))): row["much"] for row in found if row["name"]})
        totals.update(_summed(row["counted"] for row in found))
        return totals

    def heartbeat(self, name: str, note: Note) -> None:
        with self.database.transaction() as saying:
            saying.change(
                "insert into pulses (name, said_at, note) values (:name, :now, :note)"
                " on conflict (name) do update set said_at = excluded.said_at, note = excluded.note",
                name=name,
                now=self.now(),
                note=written(dict(note)),
            )

    def heartbeats(self) -> Mapping[str, tuple[Instant, Note]]:
        with self.database.transaction() as asking:
            found = asking.rows("select * from pulses where name <> :schema", schema=SCHEMA)
        return {row["name"]: (row["said_at"], json.loads(row["note"])) for row in found}


def _summed(counted: Iterable[str]) -> _Totals:
    totals = _Totals()
    for one in counted:
        for name, labels, much in json.loads(one):
            totals[name, tuple(labels)] += much
    return totals


def _add(transaction: Transaction, totals: _Totals) -> None:
    """Always in the same order, as two that do so at once would else wait for each other."""
    transaction.change_each(
        "insert into tallies (name, labels, much) values (:name, :labels, :much)"
        " on conflict (name, labels) do update set much = tallies.much + excluded.much",
        [
            {"name": name, "labels": written(labels), "much": float(much)}
            for (name, labels), much in sorted(totals.items())
        ],
    )


# The ledger in a database: what is to be done, in which order, and what became of it.


MANY = 500
"""Values that one statement looks for at once."""

PURGED_AT_ONCE = 5000
"""Rows that are deleted in one transaction, so that nobody waits long for it."""

_T = TypeVar("_T", int, str)
_INSERT = (
    "insert into deliveries (id, lane, event, action, number, is_pull, comment_id, moved_to, name, private,"
    " received_at, next_at, request, extra) values {groups} on conflict (id) do nothing returning seq, id"
)
_SETTLE = (
    "update deliveries set state = :state, reason = :reason, next_at = :next_at, finished_at = :finished_at,"
    " attempts = :attempts, begun = 0, said = :said, url = :url, matches = :matches, nearest = :nearest"
    " where seq = :seq and turn = :turn and state = 'working'"
)


class DatabaseInbox(Counters):
    """`Ledger` in a database. ``worker`` is who begins turns here; ``now`` dates what ends."""

    def __init__(self, database: Database, tickets: Tickets, worker: str, now: Callable[[], Instant]) -> None:
        super().__init__(database, now)
        self.tickets = tickets
        self.worker = worker

    def put(self, arrivals: Sequence[Arrival]) -> list[bool]:
        first: dict[str, Arrival] = {}
        for arrival in arrivals:
            first.setdefault(arrival.id, arrival)
        if not first:
            return []
        with self.database.urgent() as put:
            fresh = _insert(put, [of_arrival(arrival) for arrival in first.values()])
            for name in fresh:
                self.tickets.add(put, name, first[name].lane)
        return [arrival is first[arrival.id] and arrival.id in fresh for arrival in arrivals]

    def begin(self, ticket: str, lane: RepositoryKey, now: Instant) -> PendingWork | None:
        name = uuid.uuid4().hex
        with self.database.transaction() as beginning:
            register = within(beginning, self.now)
            register.turned(lane, name)
            paused = register.paused_until(lane.installation, OF_ALL)
            due = _due(beginning, lane, now) if paused <= now else []
            taken = [
                replace(each, state="working", begun=each.begun + 1, turn=name) for each in inbox_rules.pick_due(due)
            ]
            if not taken:
                self._wake(beginning, lane, ticket, max(now, paused))
                return None
            beginning.change(
                "update deliveries set state = 'working', begun = begun + 1, turn = :turn where seq in :seqs",
                turn=name,
                seqs=[each.seq for each in taken],
            )
            register.named(lane, taken[0].name, private=taken[0].private)
            work = PendingWork(name, ticket, lane, tuple(taken), now)
            _open_turn(beginning, work, self.worker)
        return work

    def put_off(self, ticket: str, lane: RepositoryKey, seconds: float) -> None:
        now = self.now()
        with self.database.transaction() as put_off:
            name = inbox_rules.wake(lane, ticket, now + round(1000 * seconds), now)
            self.tickets.add(put_off, name, lane, seconds)

    def end(self, work: PendingWork, results: Sequence[Result], told: RunReport) -> list[str]:
        now = self.now()
        with self.database.transaction() as ending:
            register = within(ending, self.now)
            if not register.ended(work.lane, work.id):
                return []
            _settle(ending, work, results, now)
            known = inbox_rules.row_after_run(register.lane(work.lane), told, now)
            register.keep(known)
            _close_turn(ending, work, told, now)
            if told.requeue_after:
                _look_again(ending, inbox_rules.follow_up(work, known, now), told.requeue_after)
            self._wake(ending, work.lane, work.ticket, now)
            self.count(ending, inbox_rules.tally_run(results, told))
        return inbox_rules.absorbed(work)

    def register(self) -> DatabaseInstallations:
        return DatabaseInstallations(self.database.transaction, self.now)

    def deliveries(
        self, *, state: State | None = None, lane: RepositoryKey | None = None, before: int = 0, limit: int = 50
    ) -> list[Delivery]:
        asked: dict[str, str | int] = {"state": state or "", "lane": lane.key if lane else "", "before": before}
        wanted = [f"{name} = :{name}" for name in ("state", "lane") if asked[name]]
        wanted += ["seq < :before"] if before else []
        where = f"where {' and '.join(wanted)}" if wanted else ""
        values = {name: value for name, value in asked.items() if value}
        with self.database.transaction() as asking:
            sql = f"select * from deliveries {where} order by seq desc limit :limit"  # noqa: S608 (words of ours)
            return [delivery_row(row) for row in asking.rows(sql, limit=limit, **values)]

    def delivery(self, seq: int) -> tuple[Delivery, RunRow | None] | None:
        with self.database.transaction() as asking:
            row = asking.row("select * from deliveries where seq = :seq", seq=seq)
            if row is None:
                return None
            turn = asking.row("select * from turns where id = :turn", turn=row["turn"])
            return delivery_row(row), run_row(turn) if turn else None

    def known(self, ids: Sequence[str]) -> frozenset[str]:
        found: set[str] = set()
        with self.database.transaction() as asking:
            for some in _parts(ids):
                found |= {row["id"] for row in asking.rows("select id from deliveries where id in :ids", ids=some)}
        return frozenset(found)

    def retry(self, seqs: Sequence[int]) -> int:
        sql = (
            "update deliveries set state = 'waiting', attempts = 0, begun = 0, next_at = :now, finished_at = 0,"
            " reason = '' where state = 'dead' and seq in :seqs returning lane"
        )
        now = self.now()
        with self.database.transaction() as retrying:
            lanes = [row["lane"] for some in _parts(seqs) for row in retrying.rows(sql, now=now, seqs=some)]
            self._call(retrying, lanes, "retry")
            return len(lanes)

    def drop(self, seqs: Sequence[int], why: str) -> int:
        sql = (
            "update deliveries set state = 'dropped', reason = :why, finished_at = :now"
            " where state in ('waiting', 'dead') and seq in :seqs"
        )
        with self.database.transaction() as dropping:
            return sum(dropping.change(sql, why=why, now=self.now(), seqs=some) for some in _parts(seqs))

    def counts(self, most: int = COUNTED, of: Sequence[State] = STATES) -> Mapping[State, int]:
        # One statement, so that a delivery which moves from one state to another meanwhile is counted in one of them.
        each = (
            f"select '{state}' as state, count(*) as many from"  # noqa: S608 (words of ours)
            f" (select 1 from deliveries where state = '{state}' limit :most) as of_{state}"
            for state in of
        )
        with self.database.transaction() as asking:
            found = asking.rows(" union all ".join(each), most=most)
        return {row["state"]: int(row["many"]) for row in found}

    def oldest_waiting(self) -> Instant:
        sql = (
            "select received_at, next_at from deliveries where state = 'waiting' and next_at <= :now"
            " order by seq limit 1"
        )
        with self.database.transaction() as asking:
            row = asking.row(sql, now=self.now())
            return max(int(row["received_at"]), int(row["next_at"])) if row else 0

    def mend(self, live: frozenset[str], before: Instant) -> int:
        sql = "select distinct lane from deliveries where state in ('waiting', 'working') and received_at < :before"
        with self.database.transaction() as mending:
            lanes = [row["lane"] for row in mending.rows(sql, before=before) if row["lane"] not in live]
            self._call(mending, lanes, "mend")
            return len(lanes)

    def purge(self, before: Instant) -> int:
        purged = sum(self._purge(state, before) for state in ("done", "dropped"))
        with self.database.transaction() as purging:
            purging.change("delete from turns where began < :before", before=before)
            workers = "delete from pulses where name like :workers and said_at < :before"
            purging.change(workers, workers=f"{WORKER}%", before=before)
            within(purging, self.now).purge(before)
        self.add_up()
        return purged

    def _purge(self, state: State, before: Instant) -> int:
        """Of what came first only: a look at everything would keep others from writing for too long."""
        sql = (
            "delete from deliveries where seq in (select seq from (select seq, finished_at from deliveries"
            " where state = :state order by seq limit :many) as oldest where finished_at < :before)"
        )
        purged = 0
        while True:
            with self.database.transaction() as purging:
                many = purging.change(sql, state=state, before=before, many=PURGED_AT_ONCE)
            purged += many
            if many < PURGED_AT_ONCE:
                return purged

    def _wake(self, transaction: Transaction, lane: RepositoryKey, ticket: str, at_least: Instant) -> None:
        """The next ticket of the lane, where anything waits in it."""
        sql = "select min(next_at) as next_at from deliveries where lane = :lane and state in ('waiting', 'working')"
        row = transaction.row(sql, lane=lane.key)
        if row is None or row["next_at"] is None:
            return
        until, now = max(at_least, row["next_at"]), self.now()
        name = inbox_rules.wake(lane, ticket, until, now)
        self.tickets.add(transaction, name, lane, inbox_rules.pause(until, now))

    def _call(self, transaction: Transaction, lanes: Sequence[str], purpose: str) -> None:
        for lane in sorted({RepositoryKey.of(key) for key in lanes}):
            self.tickets.add(transaction, inbox_rules.new_item_id(lane, purpose), lane)


def _parts(values: Sequence[_T]) -> list[list[_T]]:
    """These, so many at a time as a statement may have."""
    return [list(values[start : start + MANY]) for start in range(0, len(values), MANY)]


def _insert(transaction: Transaction, new: Sequence[Mapping[str, str | int]]) -> list[str]:
    """Keep these; the ids of those that were not known, in the order of arrival."""
    groups, values = numbered(new)
    found = transaction.rows(_INSERT.format(groups=groups), **values)
    return [row["id"] for row in sorted(found, key=lambda row: row["seq"])]


def _due(transaction: Transaction, lane: RepositoryKey, now: Instant) -> list[Delivery]:
    """What waits and is due, with what a dead turn left; what was begun too often is dead."""
    transaction.change(
        "update deliveries set state = 'waiting' where lane = :lane and state = 'working'", lane=lane.key
    )
    transaction.change(
        "update deliveries set state = 'dead', reason = :why, finished_at = :now, begun = 0, next_at = 0"
        " where lane = :lane and state = 'waiting' and begun >= :most",
        why=inbox_rules.NEVER_ENDED,
        now=now,
        lane=lane.key,
        most=inbox_rules.MOST_BEGUN,
    )
    found = transaction.rows(
        "select * from deliveries where lane = :lane and state = 'waiting' and next_at <= :now"
        " order by seq limit :most",
        lane=lane.key,
        now=now,
        most=inbox_rules.MOST_AT_ONCE,
    )
    return [delivery_row(row) for row in found]


def _settle(transaction: Transaction, work: PendingWork, results: Sequence[Result], now: Instant) -> None:
    """Write what became of each; what nobody spoke of waits as if its worker had died with it."""
    had = {each.seq: each for each in work.deliveries}
    after = [inbox_rules.settled_delivery(had[result.seq], result, now) for result in results if result.seq in had]
    transaction.change_each(_SETTLE, [of_settled(each) for each in after])
    transaction.change("update deliveries set state = 'waiting' where turn = :turn and state = 'working'", turn=work.id)


def _open_turn(transaction: Transaction, work: PendingWork, worker: str) -> None:
    transaction.change(
        "insert into turns (id, ticket, lane, worker, began) values (:id, :ticket, :lane, :worker, :began)",
        id=work.id,
        ticket=work.ticket,
        lane=work.lane.key,
        worker=worker,
        began=work.began_at,
    )


def _close_turn(transaction: Transaction, work: PendingWork, told: RunReport, now: Instant) -> None:
    transaction.change(
        "update turns set ended = :now, stages = :stages, pushes = :pushes, reads = :reads, writes = :writes,"
        " notes = :notes where id = :id",
        now=now,
        stages=written(told.stages),
        pushes=written(told.pushes),
        reads=told.reads,
        writes=told.writes,
        notes=written(told.notes),
        id=work.id,
    )


def _look_again(transaction: Transaction, again: Arrival, at: Instant) -> None:
    """The lane is looked at again then: by what waits for that already, or else by this."""
    waits = transaction.change(
        "update deliveries set next_at = case when next_at < :at then next_at else :at end"
        " where lane = :lane and state = 'waiting' and event = :event",
        at=at,
        lane=again.lane.key,
        event=again.event.name,
    )
    if not waits:
        _insert(transaction, [of_arrival(again, at)])


# Rows of the database as nouns, and back.


def of_arrival(arrival: Arrival, next_at: Instant = 0) -> dict[str, str | int]:
    """The row of a delivery that nobody has begun; numbers that it has not are 0."""
    event = inbox_rules.stored_event(arrival.event)
    return {
        "id": arrival.id,
        "lane": arrival.lane.key,
        "event": event.name,
        "action": event.action,
        "number": event.number or 0,
        "is_pull": int(event.is_pull),
        "comment_id": event.comment_id or 0,
        "moved_to": event.moved_to or "",
        "name": clean(arrival.name),
        "private": int(arrival.private),
        "received_at": arrival.received_at,
        "next_at": next_at,
        "request": arrival.request,
        "extra": written([(name, clean(value)) for name, value in arrival.extra]),
    }


def of_settled(delivery: Delivery) -> dict[str, str | int]:
    """What a turn writes of a delivery."""
    return {
        "seq": delivery.seq,
        "turn": delivery.turn,
        "state": delivery.state,
        "reason": clean(delivery.reason),
        "next_at": delivery.next_at,
        "finished_at": delivery.finished_at,
        "attempts": delivery.attempts,
        "said": delivery.said,
        "url": clean(delivery.url),
        "matches": written(delivery.matches),
        "nearest": written(delivery.nearest),
    }


def delivery_row(row: Row) -> Delivery:
    """A row of ``deliveries``."""
    return Delivery(
        seq=row["seq"],
        id=row["id"],
        lane=RepositoryKey.of(row["lane"]),
        event=_event(row),
        name=row["name"],
        private=bool(row["private"]),
        state=row["state"],
        received_at=row["received_at"],
        attempts=row["attempts"],
        begun=row["begun"],
        next_at=row["next_at"],
        finished_at=row["finished_at"],
        turn=row["turn"],
        reason=row["reason"],
        said=row["said"],
        url=row["url"],
        matches=tuple((number, similarity) for number, similarity in json.loads(row["matches"])),
        nearest=tuple((number, similarity, why) for number, similarity, why in json.loads(row["nearest"])),
        request=row["request"],
        extra=tuple((name, value) for name, value in json.loads(row["extra"])),
    )


def _event(row: Row) -> Event:
    return Event(
        name=row["event"],
        action=row["action"],
        number=row["number"] or None,
        is_pull=bool(row["is_pull"]),
        comment_id=row["comment_id"] or None,
        moved_to=row["moved_to"] or None,
    )


def run_row(row: Row) -> RunRow:
    """A row of ``turns``."""
    return RunRow(
        id=row["id"],
        ticket=row["ticket"],
        lane=RepositoryKey.of(row["lane"]),
        worker=row["worker"],
        began=row["began"],
        ended=row["ended"],
        stages=tuple((stage, seconds) for stage, seconds in json.loads(row["stages"])),
        pushes=tuple(json.loads(row["pushes"])),
        reads=row["reads"],
        writes=row["writes"],
        notes=tuple(json.loads(row["notes"])),
    )


def numbered(values: Sequence[Mapping[str, str | int]]) -> tuple[str, dict[str, str | int]]:
    """``(:id_0, …), (:id_1, …)`` for an insert of several rows of one shape, and its values by these names."""
    names = list(values[0])
    groups = ", ".join("(" + ", ".join(f":{name}_{place}" for name in names) + ")" for place in range(len(values)))
    return groups, {f"{name}_{place}": row[name] for place, row in enumerate(values) for name in names}
