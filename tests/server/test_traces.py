"""Traces of a real server in our own collector: one delivery from end to end, and nothing secret in it."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.spans import TRACE_KEY
from tests.acceptance.stage import DECISION, with_past
from tests.examples import share
from tests.server.client import delivery_headers, issue_event, request_once
from tests.server.collector import Collector, ReceivedSpan
from tests.server.conftest import KINDS
from tests.server.server_process import READY, REPOSITORY, SLUG, ServerStage, until

pytestmark = pytest.mark.slow

KEY = "a-key-of-the-collector"
SERVER, CLIENT = 2, 3
"""Kinds of spans in OTLP."""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the environment names, with a key."""
    receiver = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"x-api-key={KEY}")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    yield receiver
    receiver.stop()


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ServerStage]:
    is_postgres = getattr(request, "param", "sqlite") == "postgres"
    url = request.getfixturevalue("postgres_url") if is_postgres else ""
    server_stage = ServerStage(tmp_path / "server", database=url)
    with_past(server_stage)
    yield server_stage
    server_stage.close()
    assert server_stage.github.violations == []


def open_issue(stage: ServerStage, title: str = "Which database") -> int:
    """Open an issue and deliver the event."""
    number = stage.github.open_issue("monalisa", title, "What database did we choose in #1?")
    assert stage.deliver("issues", "opened", number) == 202
    return number


def guids(stage: ServerStage) -> list[str]:
    return [each.guid.lower() for each in stage.github.hooks.deliveries]


def has_comment(stage: ServerStage, number: int) -> bool:
    return bool(stage.github.comments_by(f"{SLUG}[bot]", number))


def names(spans: list[ReceivedSpan]) -> list[str]:
    return [span.name for span in spans]


@pytest.mark.parametrize("stage", share(KINDS, 2), indirect=True)
def test_one_trace_follows_a_delivery_from_its_receipt_to_the_comment_and_is_in_its_log_lines(
    stage: ServerStage, collector: Collector
) -> None:
    stage.start()
    stage.wait_for_resync()
    until(lambda: all_are_logged(stage))
    lines_before = len(stage.lines())
    stage.github.mark()
    number = open_issue(stage)
    stage.settle(READY)
    assert has_comment(stage, number)
    (guid,) = guids(stage)
    until(lambda: all_are_logged(stage))
    until(lambda: any(span.name == "finish" for span in collector.spans if span.trace == trace_of(stage, guid)))
    stage.stop()

    (receive,) = collector.spans_named("receive")
    (run,) = [span for span in collector.spans_named("run") if span.trace == receive.trace]
    (wait,) = collector.spans_named("wait")
    assert receive.trace == trace_of(stage, guid)
    assert (receive.parent, receive.kind) == ("", SERVER)
    assert receive.attributes == {
        "precedent.delivery": guid,
        "precedent.event": "issues.opened",
        "http.response.status_code": 202,
        "precedent.result": "stored",
    }
    assert sorted(names(collector.children_of(receive))) == ["run", "store", "wait"]
    assert wait.links == (run.context,)
    assert abs(wait.began - receive.began) < 1e9, "by the clocks of the database and of this machine"
    assert wait.began <= wait.ended <= run.ended
    assert receive.resource["service.name"] == run.resource["service.name"] == "precedent"
    assert receive.resource["service.instance.id"] != run.resource["service.instance.id"], "two processes"

    steps = ["claim", "token", "settings", "clone", "look", "remember", "plan", "push", "say"]
    assert names(collector.children_of(run)) == [*steps, "read on", "finish"]
    within = [span for span in collector.spans if span.trace == run.trace and span is not wait]
    assert all(span.began <= span.ended and not span.failed for span in within)
    calls = sorted((span for span in within if span.kind == CLIENT), key=lambda span: span.began)
    requests = [(call.method, call.path, call.status) for call in stage.github.recent]
    assert [request_of(span) for span in calls] == requests
    assert all(0 < span.attributes["precedent.rate_left"] < 5000 for span in calls)
    (say,) = [span for span in within if span.name == "say"]
    assert names(collector.children_of(say)) == ["POST /repos/{owner}/{repo}/issues/{issue_number}/comments"]

    loggers = ("bot.server.receive.endpoint", "bot.server.work.reconcile")
    lines = [line for line in stage.lines()[lines_before:] if line["logger"] in loggers]
    assert [line["message"] for line in lines] == ["202 stored", "a run begins", "done"]
    lines = [line for line in lines if "delivery" in line]
    assert len({line["pid"] for line in lines}) == 2
    assert {(line["delivery"], line["trace"]) for line in lines} == {(guid, receive.trace)}
    assert len({line["request"] for line in lines}) == 1


def all_are_logged(stage: ServerStage) -> bool:
    """Whether each delivery is logged as done, which happens after its result is stored."""
    return stage.log_text().count('"message": "done"') == len(stage.rows())


def request_of(span: ReceivedSpan) -> tuple[str, str, int]:
    attributes = span.attributes
    assert span.name == f"{attributes['http.request.method']} {attributes['url.template']}"
    return attributes["http.request.method"], attributes["url.template"], attributes["http.response.status_code"]


def trace_of(stage: ServerStage, guid: str) -> str:
    """Return the trace that is stored with the delivery."""
    (row,) = [each for each in stage.rows() if each.id.endswith(guid)]
    return dict(row.extra)[TRACE_KEY].split("-")[1]


def test_a_refused_delivery_is_logged_with_its_guid_and_makes_no_trace(
    stage: ServerStage, collector: Collector
) -> None:
    stage.start(workers=0)
    guid, body = str(uuid.uuid4()), json.dumps(issue_event(1)).encode()
    headers = delivery_headers(body, guid=guid.upper(), x_hub_signature_256="sha256=" + "0" * 64)
    assert asyncio.run(request_once(stage.port, headers=headers, body=body)).status == 403
    headers = delivery_headers(body, guid="Open, Sesame", x_hub_signature_256="sha256=" + "0" * 64)
    assert asyncio.run(request_once(stage.port, headers=headers, body=body)).status == 403
    stage.stop()
    refused = [line for line in stage.lines() if line["message"].startswith("403")]
    assert [line.get("delivery") for line in refused] == [guid, None]
    assert all(line["request"] and "trace" not in line for line in refused)
    assert collector.spans == []


@pytest.mark.night
def test_a_run_for_several_deliveries_has_a_link_to_each(stage: ServerStage, collector: Collector) -> None:
    stage.start(workers=0)
    numbers = [open_issue(stage, f"Which database, {index}") for index in range(3)]
    stage.stop()
    stage.start()
    stage.wait_for_resync()
    assert all(has_comment(stage, number) for number in numbers)
    receipts = {span.attributes["precedent.delivery"]: span for span in collector.spans_named("receive")}
    assert list(receipts) == guids(stage)
    until(lambda: any(span.links for span in collector.spans_named("run")))
    (run,) = [span for span in collector.spans_named("run") if span.links]
    first, *others = receipts.values()
    assert (run.trace, run.parent) == first.context
    assert set(run.links) == {span.context for span in (first, *others)}
    assert run.attributes["precedent.deliveries"] >= 3, "and a look around of our own"
    waits = collector.spans_named("wait")
    assert {(span.trace, span.parent) for span in waits} == {span.context for span in receipts.values()}
    assert {span.links for span in waits} == {(run.context,)}
    (line,) = [each for each in stage.lines() if each["message"] == "done" and each["delivery"] == guids(stage)[2]]
    assert line["trace"] == run.trace


@pytest.mark.night
def test_no_text_name_or_secret_is_in_a_trace(
    stage: ServerStage, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    stage.start()
    stage.wait_for_resync()
    number = open_issue(stage)
    comment = stage.github.comment(number, "monalisa", "Was that not asked for in #2?")
    assert stage.deliver("issue_comment", "created", number, comment) == 202
    stage.settle(READY)
    stage.stop()
    assert (len(collector.spans_named("receive")), len(collector.spans_named("finish")) >= 2) == (2, True), (
        "sent at the end"
    )
    sent = b"".join(collector.raw).decode("latin-1")
    words = [
        "Which database",
        "What database",
        "Where should sessions",
        "asked for in",
        *re.findall(r"[A-Za-z]{6,}", DECISION),
    ]
    words += [*REPOSITORY.split("/"), SLUG, "monalisa", "octocat", "hubot", str(stage.folder), "per_page", "updatedAt"]
    words += [*stage.github.world.tokens, *stage.secrets.values(), *stage.secrets["private-key"].split()[3:5], KEY]
    assert [word for word in words if word in sent] == []
    assert {headers["X-Api-Key"] for headers in collector.headers} == {KEY}
    assert KEY not in stage.log_text()


@pytest.mark.night
def test_a_collector_that_is_down_delays_nothing(
    stage: ServerStage, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector.status = 503
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
    stage.start()
    stage.wait_for_resync()
    number = open_issue(stage)
    stage.settle(READY)
    assert has_comment(stage, number)
    until(lambda: "Failed to export" in stage.log_text())
    assert stage.stop() == 0
    export_errors = [line for line in stage.lines() if line["logger"].startswith("opentelemetry")]
    assert {line["level"] for line in export_errors} == {"error"}
    assert KEY not in stage.log_text()


@pytest.mark.night
def test_a_missing_library_is_logged_in_one_line_and_the_server_runs(
    stage: ServerStage, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = stage.folder / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry'] = None\n", encoding="ascii")
    monkeypatch.setenv("PYTHONPATH", str(blocked))
    remedy = (
        "traces are not sent: OTEL_EXPORTER_OTLP_ENDPOINT is set, but opentelemetry is missing;"
        " install the packages in requirements-traces.lock, build the image with TRACES=1, or unset it"
    )
    checked = stage.run("serve", "--check")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert f"! traces       {remedy}\n" in checked.stdout
    stage.start()
    stage.wait_for_resync()
    number = open_issue(stage)
    stage.settle(READY)
    assert has_comment(stage, number)
    assert stage.log_text().count("opentelemetry") == 1
    assert json.dumps(f"traces: {remedy}") in stage.log_text()
    assert not any(TRACE_KEY in dict(row.extra) for row in stage.rows())
    assert collector.raw == []
