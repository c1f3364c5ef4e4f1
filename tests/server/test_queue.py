"""What is particular about tickets in the queue's library: what they hold, and that tables are made by one."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.errors import WorldError
from bot.server.database import Database
from bot.server.inbox import Inbox
from bot.server.leases import locks
from bot.server.model import RepositoryKey
from bot.server.queue import Dispatch, JsonSerializer, Tickets, prepare
from tests.server.queues import LANE, Clock, arrival, copied, until

PATIENCE = 120.0


def test_a_ticket_holds_its_name_and_its_lane_and_nothing_that_runs_when_it_is_read(database_url: str) -> None:
    database = Database(database_url)
    Inbox(database, Tickets(database), "one", Clock()).put([arrival("a")])
    schema = "dbos." if database.is_postgres else ""
    with database.transaction() as asking:
        (held,) = asking.rows(f"select inputs from {schema}workflow_input")
        (status,) = asking.rows(f"select serialization, error, output from {schema}workflow_status")
    assert json.loads(held["inputs"])["args"] == ["9:a", LANE.key]
    assert status == {"serialization": "precedent-json", "error": None, "output": None}
    database.close()


def test_an_error_is_kept_in_words() -> None:
    serializer = JsonSerializer()
    kept = serializer.serialize(ValueError("x" * 1000))
    assert json.loads(kept) == {"error": "ValueError", "text": "x" * 500}
    assert str(serializer.deserialize(kept)) == "ValueError: " + "x" * 500
    assert serializer.deserialize(serializer.serialize({"a": [1, None]})) == {"a": [1, None]}


def test_several_processes_that_start_at_once_make_the_tables_once(tmp_path: Path) -> None:
    def start(_: int) -> None:
        database = Database.within(tmp_path)
        prepare(database, tmp_path / "workers")
        database.close()

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(start, range(3))) == [None] * 3


def test_who_waits_for_the_tables_gives_up_at_some_time(database_url: str, tmp_path: Path) -> None:
    database = Database(database_url)
    other = locks(database, tmp_path)
    assert other.take("migrate")
    with pytest.raises(WorldError, match="has been making"):
        prepare(database, tmp_path, patience=0.2)
    other.close()
    prepare(database, tmp_path)
    database.close()


@contextmanager
def no_end_is_written(database: Database) -> Iterator[None]:
    """The database takes everything but the end of a ticket, for a reason that DBOS does not try again for."""
    body = "select raise(abort, 'disk I/O error')"
    with database.transaction() as making:
        if database.is_postgres:
            body = "execute function refused()"
            making.change(
                "create function refused() returns trigger language plpgsql as"
                " $$ begin raise exception 'no lock' using errcode = '55P03'; end $$"
            )
            making.change(
                "create trigger refusing before update on dbos.workflow_status for each row"
                f" when (new.status in ('SUCCESS', 'ERROR')) {body}"
            )
        else:
            making.change(
                "create trigger refusing before update on workflow_status for each row"
                f" when new.status in ('SUCCESS', 'ERROR') begin {body}; end"
            )
    yield
    with database.transaction() as ending:
        ending.change(f"drop trigger refusing{' on dbos.workflow_status' if database.is_postgres else ''}")


@pytest.mark.slow
def test_a_ticket_whose_end_could_not_be_written_down_gives_its_lane_back(database_url: str, tmp_path: Path) -> None:
    database, came = Database(database_url), list[str]()
    ledger = Inbox(database, Tickets(database), "one", Clock())
    held = locks(database, tmp_path / "workers")
    dispatch = Dispatch(database, "one", held, 8, loose=1.0)
    try:
        with no_end_is_written(database):
            ledger.put([arrival("a")])
            dispatch.start(lambda ticket, lane: came.append(ticket))
            until(lambda: came == ["9:a"], PATIENCE)
            ledger.put([arrival("b")])
            assert dispatch.wake() == 0, "its end may be on its way"
            until(lambda: dispatch.wake() or len(came) > 1, PATIENCE)
            until(lambda: came == ["9:a", "9:a"], PATIENCE)
        until(lambda: dispatch.wake() >= 0 and came[-1] == "9:b", PATIENCE)
        assert set(came[:-1]) == {"9:a"}
        until(lambda: not ledger.tickets.live(), PATIENCE)
    finally:
        dispatch.stop(5)
        dispatch.close()
        held.close()
        database.close()


@pytest.mark.slow
def test_a_ticket_that_is_in_hand_is_left_there(database_url: str, tmp_path: Path) -> None:
    database, came, go_on = Database(database_url), list[str](), threading.Event()
    ledger = Inbox(database, Tickets(database), "one", Clock())
    held = locks(database, tmp_path / "workers")
    dispatch = Dispatch(database, "one", held, 8, loose=0.0)

    def run(ticket: str, lane: RepositoryKey) -> None:
        came.append(ticket)
        go_on.wait(PATIENCE)

    try:
        ledger.put([arrival("a")])
        dispatch.start(run)
        until(lambda: came, PATIENCE)
        assert [dispatch.wake(), dispatch.wake(), came] == [0, 0, ["9:a"]]
    finally:
        go_on.set()
        dispatch.stop(5)
        dispatch.close()
        held.close()
        database.close()


@pytest.mark.slow
def test_a_worker_has_not_ended_before_the_end_of_its_tickets_is_written_down(
    database_url: str, tmp_path: Path
) -> None:
    database, elsewhere = Database(database_url), Database(database_url)
    came, go_on = list[str](), threading.Event()
    ledger = Inbox(database, Tickets(database), "one", Clock())
    held = locks(database, tmp_path / "workers")
    dispatch = Dispatch(database, "one", held, 8)

    def run(ticket: str, lane: RepositoryKey) -> None:
        came.append(ticket)
        go_on.wait(PATIENCE)

    try:
        ledger.put([arrival("a")])
        dispatch.start(run)
        until(lambda: came, PATIENCE)
        with elsewhere.transaction() as busy:
            if database.is_postgres:
                busy.rows("select 1 from dbos.workflow_status for update")
            else:
                busy.change("update pulses set said_at = said_at")
            go_on.set()
            assert dispatch.stop(2) is False, "nobody knows that it ended, and nobody else may begin in its lane"
        assert dispatch.stop(PATIENCE) is True
        assert ledger.tickets.live() == frozenset()
    finally:
        go_on.set()
        dispatch.stop(5)
        dispatch.close()
        held.close()
        database.close()
        elsewhere.close()


@pytest.mark.slow
def test_what_the_library_logs_goes_where_everything_goes(
    made_sqlite: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(copied(made_sqlite, tmp_path))
    held = locks(database, tmp_path / "workers")
    Tickets(database)
    dispatch = Dispatch(database, "one", held, 8)
    dispatch.start(lambda ticket, lane: None)
    logger = logging.getLogger("dbos")
    logger.error("trouble")
    dispatch.stop(5)
    dispatch.close()
    held.close()
    database.close()
    assert "trouble" in caplog.messages
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
