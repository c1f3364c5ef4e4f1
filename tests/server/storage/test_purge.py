"""Deliveries that ended long ago are deleted in many short transactions."""

from __future__ import annotations

from contextlib import closing

from bench.bench_purge import fill
from bot.server.storage.database import Database
from bot.server.storage.database import machine_clock as clock
from bot.server.storage.deliveries import PURGE_BATCH_ROWS
from bot.server.storage.inbox import Inbox

ROWS = 3 * PURGE_BATCH_ROWS


def test_recently_ended_deliveries_stay_and_all_older_ones_are_deleted(database_url: str) -> None:
    now = clock()
    with closing(Database(database_url)) as database:
        fill(database, ROWS)
        database.change("update deliveries set finished_at = :now where number in (1, 2, 700)", now=now)
        inbox = Inbox(database, "here", clock)
        assert inbox.purge(now - 1000) == ROWS - 3
        assert sorted(row.event.number or 0 for row in inbox.deliveries()) == [1, 2, 700]
        assert database.row("select count(*) as many from runs") == {"many": 0}, "their runs are gone too"
        assert inbox.purge(now - 1000) == 0
