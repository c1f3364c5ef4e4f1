"""The log of a real server: which lines are about a delivery, in all its processes."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.client import delivery_headers, issue_event, request_once
from tests.server.server_process import ServerStage, until

pytestmark = pytest.mark.slow


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ServerStage]:
    server_stage = ServerStage(tmp_path / "server")
    yield server_stage
    server_stage.close()
    assert server_stage.github.violations == []


def test_the_lines_of_receiver_and_worker_about_a_delivery_have_its_guid_and_its_request(stage: ServerStage) -> None:
    stage.start()
    stage.wait_for_resync()
    number = stage.github.open_issue("monalisa", "Which database", "What database did we choose?")
    assert stage.deliver("issues", "opened", number) == 202
    (guid,) = [each.guid.lower() for each in stage.github.hooks.deliveries]
    until(lambda: any(line.get("delivery") == guid and line["message"] == "done" for line in stage.lines()))
    stage.stop()
    lines = [line for line in stage.lines() if line.get("delivery") == guid]
    assert [line["message"] for line in lines if line["message"] in ("202 stored", "a run begins", "done")] == [
        *("202 stored", "a run begins", "done")
    ]
    assert len({line["pid"] for line in lines}) == 2
    assert len({line["request"] for line in lines}) == 1


def test_a_refused_delivery_is_logged_with_its_guid(stage: ServerStage) -> None:
    stage.start(workers=0)
    guid, body = str(uuid.uuid4()), json.dumps(issue_event(1)).encode()
    for name in (guid.upper(), "Open, Sesame"):
        headers = delivery_headers(body, guid=name, x_hub_signature_256="sha256=" + "0" * 64)
        assert asyncio.run(request_once(stage.port, headers=headers, body=body)).status == 403
    stage.stop()
    refused = [line for line in stage.lines() if line["message"].startswith("403")]
    assert [line.get("delivery") for line in refused] == [guid, None]
    assert all(line["request"] for line in refused)
