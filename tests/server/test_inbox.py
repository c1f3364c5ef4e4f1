"""The ledger: what a turn gets and may end, when it comes again, what is known of repositories, what is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bot.errors import UserError, WorldError
from bot.github.events import Event
from bot.server.database import VERSION, Database
from bot.server.inbox import Inbox
from bot.server.inbox_rows import MOST_BEGUN, NEVER_ENDED
from bot.server.model import Arrival, PendingWork, RepositoryKey, Result, RunReport
from bot.server.queue import Tickets, prepare
from tests.server.queues import APP, LANE, Clock, Queue, all_done, arrival

OTHER = RepositoryKey(7, 71)


def begun(queue: Queue, ticket: str = "9:a", lane: RepositoryKey = LANE) -> PendingWork:
    work = queue.inbox.begin(ticket, lane, queue.clock())
    assert work is not None
    return work


def test_a_delivery_is_kept_with_where_to_look_and_without_what_anybody_is_called(queue: Queue) -> None:
    event = Event("issue_comment", "created", 5, True, 77, "monalisa", "octo-org/other#9", (("reason", "why"),), (3,))
    extra = (("added", "17,18"), ("account", "octo-org"))
    given = Arrival("9:a", LANE, event, "octo-org/hello-world", False, 12_345_678_901_234, "r1", extra)
    queue.inbox.put([given])
    (row,) = queue.inbox.deliveries()
    assert row.event == Event("issue_comment", "created", 5, True, 77, moved_to="octo-org/other#9")
    assert (row.id, row.lane, row.name, row.private) == ("9:a", LANE, "octo-org/hello-world", False)
    assert (row.state, row.received_at, row.request, row.extra) == ("waiting", 12_345_678_901_234, "r1", extra)


def test_hostile_text_is_kept_as_something_that_can_be_kept(queue: Queue) -> None:
    bad = replace(arrival("a"), name="a\0\ud800/b", event=Event("issues", "x\0\ud800", 2**53 - 1), extra=(("a", "\0"),))
    assert queue.inbox.put([bad, arrival("b")]) == [True, True]
    work = begun(queue)
    first = work.deliveries[0]
    assert first.event.number == 2**53 - 1
    results = [Result(each.seq, "done", "\0\ud800' --", url="\0") for each in work.deliveries]
    assert queue.inbox.end(work, results, RunReport()) == ["9:b"]


def test_nothing_is_put_for_no_deliveries(queue: Queue) -> None:
    assert queue.inbox.put([]) == []


def test_a_turn_gets_what_is_due_oldest_first_and_another_lane_is_not_touched(queue: Queue) -> None:
    queue.inbox.put([arrival("b", number=2), arrival("x", OTHER), arrival("a", number=1)])
    work = begun(queue)
    assert [(each.id, each.state, each.begun, each.turn) for each in work.deliveries] == [
        ("9:b", "working", 1, work.id),
        ("9:a", "working", 1, work.id),
    ]
    assert [row.state for row in queue.inbox.deliveries(lane=OTHER)] == ["waiting"]
    assert [row.state for row in queue.inbox.deliveries(lane=LANE)] == ["working", "working"]
    assert queue.inbox.begin("9:b", RepositoryKey(8, 1), queue.clock()) is None


def test_what_ended_says_so_with_its_turn(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begun(queue)
    url, shown = "https://github.example/c/1", ((4, 0.75), (5, 0.5))
    near = ((4, 0.75, "same error"), (6, 0.31, ""))
    result = Result(work.deliveries[0].seq, "done", "because", said="created", url=url, matches=shown, nearest=near)
    told = RunReport((("look", 0.5), ("push", 1.25)), (111, 222), 7, 3, 4999, 88_000, ("a note",))
    assert queue.inbox.end(work, [result], told) == []
    found = queue.inbox.delivery(1)
    assert found is not None
    row, turn = found
    assert (row.state, row.reason, row.said, row.url, row.matches) == ("done", "because", "created", url, shown)
    assert row.nearest == near
    assert (row.begun, row.next_at, row.attempts, row.turn) == (0, 0, 0, work.id)
    assert turn is not None
    assert (turn.id, turn.ticket, turn.lane, turn.began) == (work.id, "9:a", LANE, work.began_at)
    assert (turn.stages, turn.pushes, turn.notes) == (told.stages, told.pushes, told.notes)
    assert (turn.reads, turn.writes) == (7, 3)
    assert turn.began <= turn.ended == row.finished_at <= queue.clock()


def test_one_that_was_begun_and_never_ended_comes_alone_and_the_younger_after_it(queue: Queue) -> None:
    queue.inbox.put([arrival(name) for name in "abc"])
    assert len(begun(queue).deliveries) == 3
    queue.inbox.put([arrival("d")])
    alone = begun(queue)
    assert [(each.id, each.begun) for each in alone.deliveries] == [("9:a", 2)]
    queue.inbox.end(alone, all_done(alone), RunReport())
    assert [each.id for each in begun(queue).deliveries] == ["9:b"]


def test_one_that_was_begun_too_often_is_dead_and_the_next_goes_on(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    for _ in range(MOST_BEGUN):
        assert begun(queue).deliveries[0].id == "9:a"
    assert begun(queue).deliveries[0].id == "9:b"
    dead = queue.inbox.deliveries(state="dead")
    assert [(row.id, row.reason) for row in dead] == [("9:a", NEVER_ENDED)]
    assert queue.inbox.retry([dead[0].seq]) == 1
    (again,) = queue.inbox.deliveries(state="waiting")
    assert (again.id, again.begun, again.attempts, again.reason, again.finished_at) == ("9:a", 0, 0, "", 0)
    assert queue.inbox.oldest_waiting() >= again.next_at > again.received_at, "it waits since now"


def test_who_lost_the_lane_can_end_nothing(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    lost = begun(queue)
    taken_over = begun(queue)
    assert queue.inbox.end(lost, all_done(lost), RunReport(pushes=(5,))) == []
    assert queue.inbox.counters() == {}
    assert queue.inbox.installations().lane(LANE).pushes == ()
    assert [row.state for row in queue.inbox.deliveries()] == ["waiting", "working"]
    queue.inbox.end(taken_over, all_done(taken_over), RunReport())
    assert [row.state for row in queue.inbox.deliveries()] == ["waiting", "done"]


def test_who_lost_the_lane_to_one_that_found_nothing_due_can_end_nothing_either(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    lost = begun(queue)
    queue.inbox.installations().pause(LANE.installation, "core", queue.clock() + 60_000)
    assert queue.inbox.begin("9:a", LANE, queue.clock()) is None
    assert queue.inbox.end(lost, all_done(lost), RunReport()) == []


def test_a_turn_ends_once(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begun(queue)
    assert queue.inbox.end(work, all_done(work), RunReport()) == ["9:b"]
    assert queue.inbox.end(work, all_done(work), RunReport()) == []
    assert queue.inbox.counters()["precedent_turns_total", ("done",)] == 1


def test_only_tries_that_count_are_counted(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    for counts in (True, False, True):
        work = begun(queue)
        queue.inbox.end(work, [Result(1, "waiting", "the network", counts=counts)], RunReport())
    (row,) = queue.inbox.deliveries()
    assert (row.state, row.attempts, row.begun, row.reason) == ("waiting", 2, 0, "the network")


def test_what_a_turn_said_nothing_of_waits_as_if_its_worker_had_died(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begun(queue)
    queue.inbox.end(work, [Result(work.deliveries[0].seq, "done", "")], RunReport())
    (row,) = queue.inbox.deliveries(state="waiting")
    assert (row.id, row.begun) == ("9:b", 1)
    queue.tickets.cancel(["9:a", "9:b"])
    assert queue.tickets.live() == {LANE.key}


def test_as_long_as_something_waits_the_lane_has_a_ticket_whoever_used_up_his(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    queue.tickets.cancel(["9:a", "9:b"])
    assert queue.tickets.live() == frozenset()
    work = begun(queue)
    later = queue.clock() + 60_000
    queue.inbox.end(work, [Result(each.seq, "waiting", "the network", later) for each in work.deliveries], RunReport())
    assert queue.tickets.live() == {LANE.key}
    queue.tickets.cancel([f"{LANE.key}:at:{later}"])
    assert queue.tickets.live() == frozenset()
    assert queue.inbox.begin(f"{LANE.key}:next:1", LANE, queue.clock()) is None
    assert queue.tickets.live() == {LANE.key}, "one that came too early leaves another"


def test_a_ticket_that_is_put_off_comes_later(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    queue.tickets.cancel(["9:a"])
    queue.inbox.put_off("9:a", LANE, 60)
    assert queue.tickets.live() == {LANE.key}


def test_the_lanes_of_an_installation_that_is_paused_begin_nothing(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b", RepositoryKey(8, 1))])
    register = queue.inbox.installations()
    register.pause(7, "core", queue.clock() + 5000)
    register.pause(7, "secondary", queue.clock() + 1000)
    assert queue.inbox.begin("9:a", LANE, queue.clock() + 4000) is None
    assert begun(queue, "9:b", RepositoryKey(8, 1)).deliveries[0].id == "9:b"
    queue.tickets.cancel(["9:a", "9:b"])
    assert queue.tickets.live() == {LANE.key}
    assert queue.inbox.begin("9:a", LANE, queue.clock() + 6000) is not None


def test_a_lane_is_looked_at_again_when_its_turn_says_so(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begun(queue)
    again = queue.clock() + 60_000
    queue.inbox.end(work, all_done(work), RunReport(requeue_after=again, backoff=60_000))
    (row,) = queue.inbox.deliveries(state="waiting")
    assert (row.id, row.event, row.next_at) == (f"{APP}:again-{LANE.key}-{work.id}", Event("catch-up"), again)
    assert row.name == "octo-org/hello-world"
    assert queue.inbox.installations().lane(LANE).backoff == 60_000
    assert queue.tickets.live() == {LANE.key}


def test_a_lane_is_looked_at_again_once_and_at_the_earliest_time(queue: Queue) -> None:
    soon, late = queue.clock() + 60_000, queue.clock() + 90_000
    for name, at in (("a", late), ("b", soon), ("c", late)):
        queue.inbox.put([arrival(name)])
        work = begun(queue, f"9:{name}")
        queue.inbox.end(work, all_done(work), RunReport(requeue_after=at))
    assert [row.next_at for row in queue.inbox.deliveries(state="waiting")] == [soon]


def test_deliveries_are_listed_latest_first_by_page_state_and_lane(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number), OTHER if number % 2 else LANE) for number in range(6)])
    listed = queue.inbox.deliveries(limit=2)
    assert [row.id for row in listed] == ["9:5", "9:4"]
    assert [row.id for row in queue.inbox.deliveries(limit=2, before=listed[-1].seq)] == ["9:3", "9:2"]
    assert [row.id for row in queue.inbox.deliveries(lane=OTHER)] == ["9:5", "9:3", "9:1"]
    work = begun(queue)
    queue.inbox.end(work, all_done(work), RunReport())
    assert [row.id for row in queue.inbox.deliveries(state="done")] == ["9:4", "9:2", "9:0"]
    assert queue.inbox.deliveries(state="done", lane=OTHER) == []
    assert queue.inbox.delivery(999) is None
    assert queue.inbox.delivery(2) == (queue.inbox.deliveries(lane=OTHER)[-1], None)


def test_what_came_in_is_known(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number)) for number in range(3)])
    asked = [f"9:{number}" for number in range(1200)]
    assert queue.inbox.known(asked) == {"9:0", "9:1", "9:2"}
    assert queue.inbox.known([]) == frozenset()


def test_states_are_counted_and_the_oldest_that_is_due_is_found(queue: Queue) -> None:
    assert queue.inbox.counts() == {"waiting": 0, "working": 0, "done": 0, "dead": 0, "dropped": 0}
    assert queue.inbox.oldest_waiting() == 0
    queue.inbox.put([arrival("a", received_at=500), arrival("b", received_at=700), arrival("c", OTHER)])
    work = begun(queue)
    first, second = (each.seq for each in work.deliveries)
    later = queue.clock() + 60_000
    queue.inbox.end(work, [Result(first, "waiting", "", later), Result(second, "waiting", "")], RunReport())
    begun(queue, "9:c", OTHER)
    assert queue.inbox.counts() == {"waiting": 2, "working": 1, "done": 0, "dead": 0, "dropped": 0}
    assert queue.inbox.oldest_waiting() == 700


def test_so_many_are_counted_and_no_more(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number)) for number in range(7)])
    assert [queue.inbox.counts(most)["waiting"] for most in (5, 7, 100)] == [5, 7, 7]
    assert queue.inbox.counts(5, ["waiting", "dead"]) == {"waiting": 5, "dead": 0}


def test_any_number_can_be_tried_again_or_dropped_at_once(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begun(queue)
    queue.inbox.end(work, [Result(each.seq, "dead", "no permission") for each in work.deliveries], RunReport())
    first, second = (each.seq for each in work.deliveries)
    many = range(second + 1, second + 70_000)
    assert queue.inbox.retry([first, *many]) == 1
    assert queue.inbox.drop([*many, second], "not wanted") == 1
    assert (queue.inbox.retry([]), queue.inbox.drop([], "")) == (0, 0)
    assert [row.state for row in queue.inbox.deliveries()] == ["dropped", "waiting"]


def test_the_first_that_is_due_is_found_behind_those_that_are_not(queue: Queue) -> None:
    queue.inbox.put([arrival("a", received_at=500), arrival("b", OTHER, received_at=700)])
    work = begun(queue)
    queue.inbox.end(work, [Result(work.deliveries[0].seq, "waiting", "", queue.clock() + 60_000)], RunReport())
    assert queue.inbox.oldest_waiting() == 700


def test_what_is_asked_every_few_seconds_goes_through_no_whole_table(tmp_path: Path) -> None:
    """The plan of each statement that is run: one that begins with "SCAN deliveries" grows with the ledger."""
    plans, database = list[str](), Database.within(tmp_path)

    def explain(connection: Any, _cursor: Any, sql: str, values: Any, *_: object) -> None:
        if "deliveries" in sql:
            raw = connection.connection.cursor()
            plans.extend(str(row[3]) for row in raw.execute(f"explain query plan {sql}", values))

    prepare(database, tmp_path)
    ledger = Inbox(database, Tickets(database), "one", Clock())
    ledger.put([arrival("a")])
    sa.event.listen(database.engine, "before_cursor_execute", explain)
    ledger.counts()
    ledger.oldest_waiting()
    ledger.deliveries()
    ledger.deliveries(state="dead")
    ledger.deliveries(state="done", before=9)
    ledger.deliveries(lane=LANE, state="waiting", limit=1)
    ledger.repair(frozenset(), 1)
    ledger.purge(1)
    ledger.begin("9:a", LANE, 1)
    database.close()
    assert len(plans) > 10
    grows = [plan for plan in plans if plan.startswith(("SCAN deliveries", "USE TEMP B-TREE FOR ORDER"))]
    assert grows == ["SCAN deliveries"], "the latest of all, by the key"


def test_what_ended_long_ago_is_forgotten_but_the_dead(queue: Queue) -> None:
    queue.inbox.put([arrival(name, RepositoryKey(7, number)) for number, name in enumerate("abcd", 1)])
    for number, (name, state) in enumerate(zip("abc", ("done", "dead", "dropped"), strict=True), 1):
        work = begun(queue, f"9:{name}", RepositoryKey(7, number))
        queue.inbox.end(work, [Result(work.deliveries[0].seq, state, "")], RunReport())  # type: ignore[arg-type]
    assert queue.inbox.purge(queue.clock() - 60_000) == 0
    assert queue.inbox.purge(queue.clock() + 1) == 2
    assert [row.id for row in queue.inbox.deliveries()] == ["9:d", "9:b"]
    assert queue.inbox.put([arrival("e")]) == [True]
    assert queue.inbox.deliveries()[0].seq == 5


def test_the_pulses_of_workers_that_are_gone_are_forgotten_and_no_others(queue: Queue) -> None:
    for name in ("worker:a-1", "worker_b", "app"):
        queue.inbox.heartbeat(name, {"pid": 7})
    queue.inbox.purge(queue.clock() - 60_000)
    assert queue.inbox.heartbeats().keys() == {"worker:a-1", "worker_b", "app"}
    queue.inbox.purge(queue.clock() + 1)
    assert queue.inbox.heartbeats().keys() == {"worker_b", "app"}


def test_a_database_that_is_away_is_the_worlds_error(tmp_path: Path) -> None:
    database = Database("postgresql://nobody:hush@127.0.0.1:9/none", hurry=True)
    with pytest.raises(WorldError, match="does not answer") as caught, database.transaction():
        pass
    assert "hush" not in str(caught.value)
    with pytest.raises(WorldError, match="does not answer"):
        prepare(Database.within(tmp_path / "nowhere"), tmp_path)


def test_an_address_that_is_none_is_the_users_error() -> None:
    with pytest.raises(UserError, match="postgresql://"):
        Database("mysql://localhost/x")


def test_tables_are_made_once_and_a_newer_release_is_respected(database_url: str, tmp_path: Path) -> None:
    database = Database(database_url)
    prepare(database, tmp_path)
    with database.transaction() as changing:
        changing.change("update pulses set said_at = 99 where name = 'schema'")
    with pytest.raises(UserError, match="newer release"):
        prepare(database, tmp_path)
    database.close()


def test_what_the_first_version_kept_is_brought_over_once(database_url: str, tmp_path: Path) -> None:
    database = Database(database_url)
    with database.transaction() as changing:
        changing.change("drop table pauses")
        changing.change("alter table deliveries drop column nearest")
        changing.change("insert into installations (id, changed, paused_until) values (7, 1, 5000), (8, 1, 0)")
        changing.change("update pulses set said_at = 1 where name = 'schema'")
    for _ in range(2):
        prepare(database, tmp_path)
        with database.transaction() as asking:
            assert asking.rows("select * from pauses") == [{"installation": 7, "resource": "core", "until": 5000}]
            assert asking.row("select said_at from pulses where name = 'schema'") == {"said_at": VERSION}
            assert asking.rows("select nearest from deliveries") == []
    database.close()


def test_deliveries_in_sqlite_survive_power_loss(made_sqlite: Path) -> None:
    database = Database.within(made_sqlite.parent)
    with database.transaction() as asking:
        assert [asking.rows(f"pragma {name}") for name in ("journal_mode", "synchronous")] == [
            [{"journal_mode": "wal"}],
            [{"synchronous": 2}],
        ]
    database.close()


def test_an_urgent_transaction_writes_alone_from_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.server.database.HURRY", 0.2)
    first, second, third = (Database.within(tmp_path, hurry=hurry) for hurry in (True, False, True))
    first.make_tables()
    with first.urgent() as urgent:
        with pytest.raises(WorldError, match="locked"), third.urgent():
            raise AssertionError("two write at once")
        urgent.change("insert into pulses (name, said_at, note) values ('a', 1, '{}')")
    with second.transaction() as after:
        assert after.row("select said_at from pulses where name = 'a'") == {"said_at": 1}
    with first.urgent() as urgent:
        assert urgent.row("pragma busy_timeout") == {"timeout": 200}
    for database in (first, second, third):
        database.close()
