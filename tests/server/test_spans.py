"""Spans in this process: what switches them on, what they contain, and that they cost nothing while off."""

from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bot.github.client import GitHubClient
from bot.github.errors import Gone
from bot.github.events import Event
from bot.github.observer import observe_request
from bot.server import spans
from bot.server.model import Arrival, Delivery, RepositoryKey
from bot.server.spans import (
    TRACE_KEY,
    delivery_fields,
    is_tracing_wanted,
    span,
    start_tracing,
    stop_tracing,
    trace_id,
    trace_receipt,
    trace_run,
    traceparent,
    tracing_problem,
)
from tests.fakes.fixtures import github
from tests.fakes.github import FakeGitHub
from tests.server.collector import Collector
from tests.server.server_process import ROOT, until

__all__ = ["github"]

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
REPOSITORY = RepositoryKey(1, 17)
OTHER = f"00-{7:032x}-{8:016x}-01"
NANO = 1_000_000


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector to which this process sends its spans."""
    receiver = Collector()
    monkeypatch.setenv(ENDPOINT, receiver.url)
    start_tracing({ENDPOINT: receiver.url})
    yield receiver
    stop_tracing(20)
    receiver.stop()


def flush(collector: Collector) -> Collector:
    """Return the collector with all spans, after the last one."""
    stop_tracing(20)
    return collector


def arrival(name: str = "guid-1", action: str = "opened") -> Arrival:
    return Arrival(f"7:{name}", REPOSITORY, Event("issues", action, 1), received_at=1_000, request="r1")


def delivery(seq: int, context: str = "", **changed: int) -> Delivery:
    extra = ((TRACE_KEY, context),) if context else ()
    sample = Delivery(seq, f"7:guid-{seq}", REPOSITORY, Event("issues", "opened", seq), "o/r", True, "working", 1_000)
    return replace(sample, extra=extra, request=f"r{seq}", **changed)


# -- on and off ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, False),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://localhost:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://localhost:4318"}, False),
        ({ENDPOINT: "http://localhost:4318", "OTEL_SDK_DISABLED": "True"}, False),
        ({ENDPOINT: "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_switch_traces_on_and_off(environ: dict[str, str], expected: bool) -> None:
    assert is_tracing_wanted(environ) is expected


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({}, ""),
        ({ENDPOINT: "https://collector.example.com"}, ""),
        ({ENDPOINT: "localhost:4318"}, f"{ENDPOINT} must be an address such as http://localhost:4318"),
        ({ENDPOINT: "http://localhost:x"}, f"{ENDPOINT} must be an address such as http://localhost:4318"),
        (
            {ENDPOINT: "http://localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf",
        ),
        (
            {ENDPOINT: "http://localhost:4318", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"},
            (
                "an OpenTelemetry variable has an invalid value"
                " (max_queue_size must be a positive integer.); see its documentation"
            ),
        ),
    ],
)
def test_invalid_variables_are_reported_with_the_remedy(
    environ: dict[str, str], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert tracing_problem(environ) == (f"traces are not sent: {fault}" if fault else "")
    start_tracing(environ)
    assert spans.is_tracing() is (bool(environ) and not fault)
    stop_tracing(0)


@pytest.mark.slow
def test_nothing_is_imported_while_traces_are_off() -> None:
    code = (
        "import os, sys\n"
        "from bot.server import processes, startup_check\n"
        "from bot.server.work import reconcile\n"
        "processes.start_tracing(os.environ)\n"
        "assert startup_check.tracing_problem(os.environ) == ''\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'google', 'bot.server.tracing'))])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={}, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_a_span_costs_no_memory_while_traces_are_off() -> None:
    assert span("store") is span("run", kind="server", began=1)
    assert (traceparent(), trace_id()) == ("", "")
    tracemalloc.start()
    try:
        for _ in range(10_000):
            with span("store"):
                pass
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000, f"{held} bytes are left"


# -- the content of spans ------------------------------------------------------------------------------------------


def test_the_trace_context_of_a_receipt_is_stored_with_the_delivery(collector: Collector) -> None:
    with trace_receipt(arrival(), 1_000 * NANO) as stored:
        assert dict(stored.extra)[TRACE_KEY] == traceparent()
        assert len(traceparent()) == 55
        assert traceparent().split("-")[1] == trace_id()
    (receive,) = flush(collector).spans_named("receive")
    assert dict(stored.extra)[TRACE_KEY].startswith(f"00-{receive.trace}-{receive.id}-")
    assert receive.began == 1_000 * NANO


def test_a_delivery_is_unchanged_while_traces_are_off() -> None:
    with trace_receipt(arrival(), 1) as stored:
        assert stored == arrival()
    with trace_run("a-run", [delivery(1, OTHER)], 1):
        assert observe_request("GET", "/app") is observe_request("GET", "/app")


def test_an_action_that_is_not_a_word_is_not_exported(collector: Collector) -> None:
    with trace_receipt(arrival(action="Open, Sesame"), 1):
        pass
    (receive,) = flush(collector).spans_named("receive")
    assert receive.attributes["precedent.event"] == "issues.other"


@pytest.mark.parametrize(
    "context",
    [
        "",
        OTHER.upper().replace("00-", "0A-", 1),
        f"01-{7:032x}-{8:016x}-01",
        f"00-{0:032x}-{8:016x}-01",
        f"00-{7:032x}-{0:016x}-01",
        f"00-{7:031x}-{8:016x}-01",
        f"00-{7:032x}-{8:015x}-01",
        f"{OTHER}\n",
        f"{OTHER}-more",
        "Open, Sesame",
    ],
)
def test_an_invalid_context_is_ignored(context: str, collector: Collector) -> None:
    with trace_run("a-run", [delivery(1, context), delivery(2, OTHER)], 4_000 * NANO):
        pass
    (run,) = flush(collector).spans_named("run")
    assert (run.trace, run.parent) == (f"{7:032x}", f"{8:016x}")
    assert run.links == ((run.trace, run.parent),)
    assert [span.trace for span in collector.spans_named("wait")] == [run.trace]


def test_the_wait_span_lasts_from_the_due_time_until_the_claim(collector: Collector) -> None:
    with trace_run("a-run", [delivery(1, OTHER, attempts=1, next_at=3_000)], 4_000 * NANO):
        pass
    (wait,) = flush(collector).spans_named("wait")
    (claim,), (run,) = collector.spans_named("claim"), collector.spans_named("run")
    assert wait.began == 3_000 * NANO
    assert claim.began == run.began == 4_000 * NANO
    assert wait.ended == claim.ended
    assert run.links == (), "it belongs to the trace"


def test_a_run_without_traced_deliveries_begins_a_trace(collector: Collector) -> None:
    with trace_run("a-run", [delivery(1)], 4_000 * NANO):
        pass
    (run,) = flush(collector).spans_named("run")
    assert (run.parent, run.links) == ("", ())
    assert collector.spans_named("wait") == []


def test_only_the_class_of_an_error_is_exported(collector: Collector) -> None:
    with pytest.raises(ValueError, match="Sesame"), span("look"):
        raise ValueError("Sesame is the word of a stranger")
    (look,) = flush(collector).spans_named("look")
    assert (look.failed, look.attributes) == (True, {"error.type": "ValueError"})
    assert not any(b"Sesame" in raw for raw in collector.raw)


def test_a_request_in_a_run_is_exported_with_its_route(collector: Collector, github: FakeGitHub) -> None:
    client = GitHubClient(github.url, github.token, "octocat/hello-world", write_gap=0)
    with trace_run("a-run", [delivery(1)], 1), pytest.raises(Gone):
        client.issue(99)
    with pytest.raises(Gone):
        client.issue(98)
    (call,) = [span for span in flush(collector).spans if span.kind == 3]
    assert call.name == "GET /repos/{owner}/{repo}/issues/{issue_number}"
    assert call.attributes == {
        "http.request.method": "GET",
        "url.template": "/repos/{owner}/{repo}/issues/{issue_number}",
        "http.response.status_code": 404,
        "precedent.rate_left": 999,
        "error.type": "404",
    }
    assert not any(b"hello-world" in raw for raw in collector.raw)


def test_a_collector_that_does_not_answer_does_not_delay_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "6")  # for so long it would be tried again
    start_tracing({ENDPOINT: "http://127.0.0.1:9"})
    with span("run"):
        pass
    stopping = threading.Thread(target=stop_tracing, args=(0.2,), daemon=True)
    stopping.start()
    until(lambda: not stopping.is_alive())
    trying = [thread for thread in threading.enumerate() if thread.name == "traces"]
    assert trying, "the end waited for the collector"
    for thread in trying:  # other tests of this process must not see it
        thread.join(30)


def test_log_fields_for_several_deliveries_list_them_all() -> None:
    fields = delivery_fields([delivery(1), delivery(2)])
    assert fields == {"request": "r1 r2", "delivery": "guid-1 guid-2"}
    assert delivery_fields([arrival()]) == {"request": "r1", "delivery": "guid-1"}
