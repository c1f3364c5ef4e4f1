"""Deliveries are due by the database's clock, whatever the machines' clocks say."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import WorldError
from bot.server.model import Result, RunReport
from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from bot.server.storage.database import Database, DatabaseClock, machine_clock
from tests.server import postgres
from tests.server.queues import REPOSITORY, arrival, begin_work, until

HOUR = 3_600_000
REAL = time.time_ns


@pytest.mark.postgres
@pytest.mark.parametrize("offset", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_a_machine_with_a_wrong_clock_begins_deliveries_when_they_are_due(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    options = replace(ServerOptions(), data=tmp_path, database_url=postgres_url)
    with open_inbox(options, "right") as accurate:
        accurate.put([arrival("now"), arrival("later")])
        work = begin_work(accurate, REPOSITORY)
        now, later = work.deliveries
        results = [
            Result(now.seq, "waiting", "", accurate.now() - 5_000),
            Result(later.seq, "waiting", "", accurate.now() + HOUR // 2),
        ]
        accurate.end(work, results, RunReport())
    monkeypatch.setattr(time, "time_ns", lambda: REAL() + offset * 1_000_000)
    with open_inbox(options, "off") as other:
        work = begin_work(other, REPOSITORY)
        assert [each.id for each in work.deliveries] == ["9:now"]
        assert abs(other.now() - REAL() // 1_000_000) < 2_000


def test_sqlite_uses_the_clock_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = DatabaseClock(Database.in_folder(tmp_path))
    with clock.keep_current():
        assert abs(clock() - machine_clock()) < 1_000
        monkeypatch.setattr(time, "time_ns", lambda: REAL() + HOUR * 1_000_000)
        assert abs(clock() - machine_clock()) < 1_000


@pytest.mark.postgres
def test_the_clock_keeps_running_while_the_database_is_unreachable(tmp_path: Path) -> None:
    server = postgres.start()
    with server.database() as url:
        database = Database(url)
        clock = DatabaseClock(database)
        with clock.keep_current(0.05):
            before = clock()
            server.halt()
            until(lambda: clock() > before + 300, 10)
            assert abs(clock() - machine_clock()) < 2_000
            with pytest.raises(WorldError):
                clock.sync()
        database.close()
        server.start()
    server.stop()
