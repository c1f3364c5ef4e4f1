"""Failed checks are reported, each with one log line. The server is ready as long as it can store deliveries."""

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

from bot.server.log import DATABASE_OUTAGE
from bot.server.model import WORKER_PREFIX
from bot.server.options import ServerOptions
from bot.server.pages.health import CachedChecks, Check, readiness_checks
from bot.server.receive.webhook import WebhookRules
from bot.server.receive.writer import GroupCommitWriter
from bot.server.storage.database import SCHEMA_HEARTBEAT, Database
from bot.server.storage.database import machine_clock as clock
from bot.server.storage.heartbeats import APP_HEARTBEAT, WORKER_TIMEOUT
from bot.server.storage.inbox import Inbox
from bot.server.web import StatusRoutes, WebContext
from tests.server.queues import FileInbox, arrival, lost_inbox

FAULT = "GitHub does not know the key of App 7: give PRECEDENT_PRIVATE_KEY the one of its page"
SOUND = {"slug": "precedent", "ahead": 0, "fault": ""}


def healthy_server(folder: Path) -> tuple[FileInbox, ServerOptions]:
    """The inbox and options of a server with nothing wrong."""
    inbox = FileInbox()
    inbox.heartbeats.store(APP_HEARTBEAT, SOUND)
    inbox.heartbeats.store(f"{WORKER_PREFIX}a", {"pid": 7})
    return inbox, ServerOptions(data=folder, app_id=7)


def get_status(inbox: Inbox, options: ServerOptions, page: str = "state") -> tuple[int, dict[str, bool]]:
    """The status and body of `/status.json`, or of ``readyz``."""
    context = WebContext(WebhookRules(7, (b"x" * 16,), ""), GroupCommitWriter(inbox), inbox, options)
    answer = getattr(StatusRoutes(context), page)(cast("Request", None))
    return answer.status_code, json.loads(bytes(answer.body))


def test_a_server_with_nothing_wrong_is_healthy_and_ready(tmp_path: Path) -> None:
    status, body = get_status(*healthy_server(tmp_path))
    assert (status, set(body.values())) == (200, {True})
    assert get_status(*healthy_server(tmp_path), "readyz") == (200, {"ready": True, "queue": True, "disk": True})


def test_a_server_that_cannot_work_is_unhealthy_but_still_takes_deliveries(tmp_path: Path) -> None:
    inbox, options = healthy_server(tmp_path)
    inbox.database.change("delete from heartbeats where name <> :schema", schema=SCHEMA_HEARTBEAT)
    inbox.put([arrival("a", received_at=clock() - 3 * 3_600_000)])
    status, body = get_status(inbox, options)
    assert (status, [name for name, ok in body.items() if not ok]) == (503, ["well", "queue", "token", "workers"])
    assert get_status(inbox, options, "readyz") == (200, {"ready": True, "queue": True, "disk": True})


def test_a_server_with_a_read_only_database_is_not_ready(database_url: str, tmp_path: Path) -> None:
    _, options = healthy_server(tmp_path)
    database = Database(database_url, hurry=True)
    inbox = Inbox(database, "web", clock)
    assert get_status(inbox, options, "readyz")[0] == 200
    _make_read_only(database)
    assert get_status(inbox, options, "readyz") == (503, {"ready": False, "queue": False, "disk": True})
    database.close()


def _make_read_only(database: Database) -> None:
    if not database.is_postgres:
        database.close()
        sa.event.listen(database.engine, "connect", lambda connection, _: connection.execute("pragma query_only = on"))
        return
    with database.transaction() as changing:
        name = database.engine.url.database
        changing.change(f'alter database "{name}" set default_transaction_read_only = on')
    database.close()


def test_a_fault_of_the_app_is_unhealthy_and_logged_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inbox, options = healthy_server(tmp_path)
    inbox.heartbeats.store(APP_HEARTBEAT, {**SOUND, "fault": FAULT})
    status, body = get_status(inbox, options)
    assert (status, [name for name, ok in body.items() if not ok]) == (503, ["well", "token"])
    assert caplog.messages == [f"check failed: token: {FAULT}"]
    assert FAULT not in json.dumps(body), "whoever asks is not always the operator"
    inbox.heartbeats.store(APP_HEARTBEAT, SOUND)
    assert get_status(inbox, options)[0] == 200


def test_a_fault_is_logged_once_and_so_is_its_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    inbox, options = healthy_server(tmp_path)
    caplog.set_level(logging.INFO)
    now = [clock()]
    cached_checks = CachedChecks(lambda at: readiness_checks(inbox, options, at), lambda: now[0], max_age=10)
    for fault in (FAULT, FAULT, "", ""):
        inbox.heartbeats.store(APP_HEARTBEAT, {**SOUND, "fault": fault})
        now[0] += 100
        cached_checks.results()
    assert caplog.messages == [f"check failed: token: {FAULT}", "check passes again: token"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_missing_workers_are_reported_once_they_had_time_to_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad, now = Check("workers", False, "none is running"), [clock()]
    cached_checks = CachedChecks(lambda _: [bad], lambda: now[0])
    assert not cached_checks.results()[0].ok
    assert caplog.messages == []
    now[0] += WORKER_TIMEOUT
    cached_checks.results()
    assert caplog.messages == ["check failed: workers: none is running"]


def test_an_unreachable_database_fails_its_checks_without_an_exception(tmp_path: Path) -> None:
    _, options = healthy_server(tmp_path)
    checks = {check.name: check for check in readiness_checks(lost_inbox(), options, clock())}
    assert [name for name, check in checks.items() if check.ok] == ["disk"]
    assert checks["queue"].line.startswith(f"{DATABASE_OUTAGE} (")


@pytest.mark.parametrize("page", ["state", "readyz"])
@pytest.mark.parametrize(("count", "ready"), [(2, True), (3, False)])
def test_a_server_with_a_full_queue_is_not_ready(tmp_path: Path, count: int, ready: bool, page: str) -> None:
    inbox, options = healthy_server(tmp_path)
    now = time.time_ns() // 1_000_000
    inbox.put([arrival(str(number), received_at=now) for number in range(count)])
    status, body = get_status(inbox, replace(options, backlog=3), page)
    assert (status == 200, body["queue"]) == (ready, ready)
