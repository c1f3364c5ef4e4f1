"""Traces of a real server by a collector of our own: one delivery from end to end, and nothing secret in it."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.delivery_context import TRACE
from tests.server.client import delivered, issue_event, once
from tests.server.collector import Collector, Received
from tests.server.conftest import KINDS
from tests.server.stage import READY, REPOSITORY, SLUG, ServerStage, until
from tests.server.test_story import DECISION, told_before

pytestmark = pytest.mark.slow

KEY = "a-key-of-the-collector"
SERVER, CLIENT = 2, 3
"""Kinds of spans in OTLP."""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the environment names, with a key."""
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"x-api-key={KEY}")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    yield made
    made.stop()


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ServerStage]:
    is_postgres = getattr(request, "param", "sqlite") == "postgres"
    url = request.getfixturevalue("postgres_url") if is_postgres else ""
    made = ServerStage(tmp_path / "server", database=url)
    told_before(made.github)
    yield made
    made.close()
    assert made.github.violations == []


def opened(stage: ServerStage, title: str = "Which database") -> int:
    """Somebody opens an issue, and GitHub tells of it."""
    number = stage.github.open_issue("monalisa", title, "What database did we choose in #1?")
    assert stage.deliver("issues", "opened", number) == 202
    return number


def guids(stage: ServerStage) -> list[str]:
    return [each.guid.lower() for each in stage.github.hooks.deliveries]


def commented(stage: ServerStage, number: int) -> bool:
    return bool(stage.github.comments_by(f"{SLUG}[bot]", number))


def names(spans: list[Received]) -> list[str]:
    return [span.name for span in spans]


@pytest.mark.parametrize("stage", KINDS, indirect=True)
def test_one_trace_follows_a_delivery_from_its_receipt_to_the_comment(stage: ServerStage, collector: Collector) -> None:
    stage.start()
    stage.rest()
    stage.github.mark()
    number = opened(stage)
    stage.settle(READY)
    assert commented(stage, number)
    (guid,) = guids(stage)
    until(lambda: any(span.name == "finish" for span in collector.spans if span.trace == trace_of(stage, guid)))
    stage.stop()

    (receive,) = collector.named("receive")
    (run,) = [span for span in collector.named("run") if span.trace == receive.trace]
    (wait,) = collector.named("wait")
    assert receive.trace == trace_of(stage, guid)
    assert (receive.parent, receive.kind) == ("", SERVER)
    assert receive.attributes == {
        "precedent.delivery": guid,
        "precedent.event": "issues.opened",
        "http.response.status_code": 202,
        "precedent.result": "stored",
    }
    assert sorted(names(collector.below(receive))) == ["run", "store", "wait"]
    assert wait.links == (run.context,)
    assert abs(wait.began - receive.began) < 1e9, "by the clocks of the database and of this machine"
    assert wait.began <= wait.ended <= run.ended
    assert receive.resource["service.name"] == run.resource["service.name"] == "precedent"
    assert receive.resource["service.instance.id"] != run.resource["service.instance.id"], "two processes"

    steps = ["claim", "token", "settings", "clone", "look", "remember", "ask", "plan", "push", "say", "reply"]
    assert names(collector.below(run)) == [*steps, "read on", "finish"]
    within = [span for span in collector.spans if span.trace == run.trace and span is not wait]
    assert all(span.began <= span.ended and not span.failed for span in within)
    calls = sorted((span for span in within if span.kind == CLIENT), key=lambda span: span.began)
    asked = [(call.method, call.path, call.status) for call in stage.github.recent]
    assert [told(span) for span in calls] == asked
    assert all(0 < span.attributes["precedent.rate_left"] < 5000 for span in calls)
    (say,) = [span for span in within if span.name == "say"]
    assert names(collector.below(say)) == ["POST /repos/{owner}/{repo}/issues/{issue_number}/comments"]


def told(span: Received) -> tuple[str, str, int]:
    found = span.attributes
    assert span.name == f"{found['http.request.method']} {found['url.template']}"
    return found["http.request.method"], found["url.template"], found["http.response.status_code"]


def trace_of(stage: ServerStage, guid: str) -> str:
    """The trace that waits with the delivery in the database."""
    (row,) = [each for each in stage.rows() if each.id.endswith(guid)]
    return dict(row.extra)[TRACE].split("-")[1]


def all_are_logged(stage: ServerStage) -> bool:
    """Whether each delivery is logged as done, which happens after its result is stored."""
    return stage.told().count('"message": "done"') == len(stage.rows())


def test_each_line_about_a_delivery_names_its_guid_and_its_trace(stage: ServerStage, collector: Collector) -> None:
    stage.start()
    stage.rest()
    until(lambda: all_are_logged(stage))
    before = len(stage.lines())
    number = opened(stage)
    stage.settle(READY)
    until(lambda: all_are_logged(stage))
    assert commented(stage, number)
    (guid,) = guids(stage)
    lines = [line for line in stage.lines()[before:] if line["logger"] in ("bot.server.web", "bot.server.reconcile")]
    assert [line["message"] for line in lines] == ["202 stored", "done"]
    assert len({line["pid"] for line in lines}) == 2
    assert {(line["delivery"], line["trace"]) for line in lines} == {(guid, trace_of(stage, guid))}
    assert len({line["request"] for line in lines}) == 1


def test_a_refused_delivery_is_found_by_its_guid_in_the_log_and_makes_no_trace(
    stage: ServerStage, collector: Collector
) -> None:
    stage.start(workers=0)
    guid, body = str(uuid.uuid4()), json.dumps(issue_event(1)).encode()
    headers = delivered(body, guid=guid.upper(), x_hub_signature_256="sha256=" + "0" * 64)
    assert asyncio.run(once(stage.port, headers=headers, body=body)).status == 403
    headers = delivered(body, guid="Open, Sesame", x_hub_signature_256="sha256=" + "0" * 64)
    assert asyncio.run(once(stage.port, headers=headers, body=body)).status == 403
    stage.stop()
    refused = [line for line in stage.lines() if line["message"].startswith("403")]
    assert [line.get("delivery") for line in refused] == [guid, None]
    assert all(line["request"] and "trace" not in line for line in refused)
    assert collector.spans == []


def test_a_run_for_several_deliveries_has_a_link_to_each(stage: ServerStage, collector: Collector) -> None:
    stage.start(workers=0)
    numbers = [opened(stage, f"Which database, {place}") for place in range(3)]
    stage.stop()
    stage.start()
    stage.rest()
    assert all(commented(stage, number) for number in numbers)
    receipts = {span.attributes["precedent.delivery"]: span for span in collector.named("receive")}
    assert list(receipts) == guids(stage)
    until(lambda: any(span.links for span in collector.named("run")))
    (run,) = [span for span in collector.named("run") if span.links]
    first, *others = receipts.values()
    assert (run.trace, run.parent) == first.context
    assert set(run.links) == {span.context for span in (first, *others)}
    assert run.attributes["precedent.deliveries"] >= 3, "and a look around of our own"
    waits = collector.named("wait")
    assert {(span.trace, span.parent) for span in waits} == {span.context for span in receipts.values()}
    assert {span.links for span in waits} == {(run.context,)}
    (line,) = [each for each in stage.lines() if each["message"] == "done" and each["delivery"] == guids(stage)[2]]
    assert line["trace"] == run.trace


def test_nothing_of_people_issues_and_secrets_is_in_a_trace(
    stage: ServerStage, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    stage.start()
    stage.rest()
    number = opened(stage)
    comment = stage.github.comment(number, "hubot", "Was that not asked for in #2?")
    assert stage.deliver("issue_comment", "created", number, comment) == 202
    stage.settle(READY)
    stage.stop()
    assert (len(collector.named("receive")), len(collector.named("finish")) >= 2) == (2, True), "sent at the end"
    sent = b"".join(collector.raw).decode("latin-1")
    words = ["Which database", "What database", "Session store", "asked for in", *re.findall(r"[A-Za-z]{6,}", DECISION)]
    words += [*REPOSITORY.split("/"), SLUG, "monalisa", "octocat", "hubot", str(stage.folder), "per_page", "updatedAt"]
    words += [*stage.github.world.tokens, *stage.secrets.values(), *stage.secrets["private-key"].split()[3:5], KEY]
    assert [word for word in words if word in sent] == []
    assert {headers["X-Api-Key"] for headers in collector.headers} == {KEY}
    assert KEY not in stage.told()


def test_a_collector_that_is_away_holds_nobody_up(
    stage: ServerStage, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector.status = 503
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
    stage.start()
    stage.rest()
    number = opened(stage)
    stage.settle(READY)
    assert commented(stage, number)
    until(lambda: "Failed to export" in stage.told())
    code, seconds = stage.stop()
    assert (code, seconds < 10) == (0, True)
    found = [line for line in stage.lines() if line["logger"].startswith("opentelemetry")]
    assert {line["level"] for line in found} == {"error"}
    assert KEY not in stage.told()


def test_a_missing_library_is_told_in_one_line_and_the_server_runs(
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
    done = stage.run("serve", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"! traces       {remedy}\n" in done.stdout
    stage.start()
    stage.rest()
    number = opened(stage)
    stage.settle(READY)
    assert commented(stage, number)
    assert stage.told().count("opentelemetry") == 1
    assert json.dumps(f"traces: {remedy}") in stage.told()
    assert not any(TRACE in dict(row.extra) for row in stage.rows())
    assert collector.raw == []
