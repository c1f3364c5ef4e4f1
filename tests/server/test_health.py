"""What is not well is told, and in one line of the log why. The server is ready as long as it can store."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import sqlalchemy as sa
from starlette.requests import Request

from bot.errors import WorldError
from bot.server.database import SCHEMA, Database
from bot.server.database import machine_clock as clock
from bot.server.health import APP, CachedChecks, readiness_checks
from bot.server.inbox import Inbox
from bot.server.model import COUNTED, STATES, WORKER
from bot.server.options import ServerOptions
from bot.server.web import StatusRoutes, WebContext
from bot.server.webhook import WebhookRules
from bot.server.writer import GroupCommitWriter
from tests.server.queues import FileInbox, arrival

FAULT = "GitHub does not know the key of App 7: give PRECEDENT_PRIVATE_KEY the one of its page"
SOUND = {"slug": "precedent", "ahead": 0, "fault": ""}


def well(folder: Path) -> tuple[FileInbox, ServerOptions]:
    """A ledger of a server with nothing wrong."""
    ledger = FileInbox()
    ledger.heartbeat(APP, SOUND)
    ledger.heartbeat(f"{WORKER}a", {"pid": 7})
    return ledger, ServerOptions(data=folder, app_id=7)


def asked(ledger: Inbox, options: ServerOptions, page: str = "state") -> tuple[int, dict[str, bool]]:
    """What `/status.json` answers, or ``readyz``."""
    door = WebContext(WebhookRules(7, (b"x" * 16,), ""), GroupCommitWriter(ledger), ledger, options, clock)
    answer = getattr(StatusRoutes(door), page)(cast("Request", None))
    return answer.status_code, json.loads(bytes(answer.body))


def test_a_server_with_nothing_wrong_is_well_and_ready(tmp_path: Path) -> None:
    status, body = asked(*well(tmp_path))
    assert (status, set(body.values())) == (200, {True})
    assert asked(*well(tmp_path), "readyz") == (200, {"ready": True, "queue": True, "disk": True})


def test_what_keeps_work_from_being_done_does_not_keep_deliveries_away(tmp_path: Path) -> None:
    ledger, options = well(tmp_path)
    with ledger.database.transaction() as forgetting:
        forgetting.change("delete from heartbeats where name <> :schema", schema=SCHEMA)
    ledger.put([arrival("a", received_at=clock() - 3 * 3_600_000)])
    status, body = asked(ledger, options)
    assert (status, [name for name, ok in body.items() if not ok]) == (503, ["well", "queue", "token", "workers"])
    assert asked(ledger, options, "readyz") == (200, {"ready": True, "queue": True, "disk": True})


def test_a_disk_without_room_is_not_ready(tmp_path: Path) -> None:
    ledger, options = well(tmp_path)
    gone = replace(options, data=tmp_path / "gone")
    assert asked(ledger, gone, "readyz") == (503, {"ready": False, "queue": True, "disk": False})


def test_a_database_that_can_only_be_read_is_not_ready(database_url: str, tmp_path: Path) -> None:
    _, options = well(tmp_path)
    made = Database(database_url, hurry=True)
    ledger = Inbox(made, "web", clock)
    assert asked(ledger, options, "readyz")[0] == 200
    _make_read_only(made)
    assert asked(ledger, options, "readyz") == (503, {"ready": False, "queue": False, "disk": True})
    made.close()


def _make_read_only(database: Database) -> None:
    if not database.is_postgres:
        database.close()
        sa.event.listen(database.engine, "connect", lambda connection, _: connection.execute("pragma query_only = on"))
        return
    with database.transaction() as changing:
        name = database.engine.url.database
        changing.change(f'alter database "{name}" set default_transaction_read_only = on')
    database.close()


def test_a_fault_of_the_app_makes_it_not_ready_and_is_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger, options = well(tmp_path)
    ledger.heartbeat(APP, {**SOUND, "fault": FAULT})
    status, body = asked(ledger, options)
    assert (status, [name for name, ok in body.items() if not ok]) == (503, ["well", "token"])
    assert caplog.messages == [f"check failed: token: {FAULT}"]
    assert FAULT not in json.dumps(body), "whoever asks is not always the operator"
    ledger.heartbeat(APP, SOUND)
    assert asked(ledger, options)[0] == 200


def test_the_log_says_it_once_and_that_it_is_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ledger, options = well(tmp_path)
    caplog.set_level(logging.WARNING)
    now = [clock()]
    glance = CachedChecks(lambda at: readiness_checks(ledger, options, at), lambda: now[0], max_age=10)
    for fault in (FAULT, FAULT, "", ""):
        ledger.heartbeat(APP, {**SOUND, "fault": fault})
        now[0] += 100
        glance.results()
    assert caplog.messages == [f"check failed: token: {FAULT}", "check passes again: token"]


def test_a_database_that_is_away_is_told_without_an_error(tmp_path: Path) -> None:
    class Away(FileInbox):
        def counts(self, most=COUNTED, of=STATES):  # type: ignore[no-untyped-def]
            raise WorldError("the connection was refused")

        def heartbeats(self):  # type: ignore[no-untyped-def]
            raise WorldError("the connection was refused")

    _, options = well(tmp_path)
    found = {check.name: check for check in readiness_checks(Away(), options, clock())}
    assert [name for name, check in found.items() if check.ok] == ["disk"]
    assert found["queue"].line == "the database does not answer: the connection was refused"


@pytest.mark.parametrize("page", ["state", "readyz"])
@pytest.mark.parametrize(("many", "ready"), [(2, True), (3, False)])
def test_a_full_queue_is_not_ready(tmp_path: Path, many: int, ready: bool, page: str) -> None:
    ledger, options = well(tmp_path)
    now = time.time_ns() // 1_000_000
    ledger.put([arrival(str(number), received_at=now) for number in range(many)])
    status, body = asked(ledger, replace(options, backlog=3), page)
    assert (status == 200, body["queue"]) == (ready, ready)


def test_what_waits_for_hours_is_not_well(tmp_path: Path) -> None:
    ledger, options = well(tmp_path)
    ledger.put([arrival("a", received_at=clock() - 3 * 3_600_000)])
    assert asked(ledger, options)[0] == 503
