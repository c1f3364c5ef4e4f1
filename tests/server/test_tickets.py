"""What is particular about tickets in the queue's library: what they hold, and that tables are made by one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bot.errors import WorldError
from bot.server.database import Database
from bot.server.ledger import DatabaseLedger
from bot.server.locks import locks
from bot.server.tickets import DbosTickets, JsonSerializer, prepare
from tests.server.queues import LANE, Clock, arrival


def test_a_ticket_holds_its_name_and_its_lane_and_nothing_that_runs_when_it_is_read(database_url: str) -> None:
    database = Database(database_url)
    DatabaseLedger(database, DbosTickets(database), "one", Clock()).put([arrival("a")])
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
