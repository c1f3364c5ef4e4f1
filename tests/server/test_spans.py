"""Spans in this process: what switches them on, what they hold, and that they cost nothing while they are off."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.client import GitHubClient
from bot.github.errors import Gone
from bot.github.events import Event
from bot.github.observer import observe_request
from bot.server import spans
from bot.server.delivery_context import TRACE, delivery_fields, trace_receipt, trace_run
from bot.server.model import Arrival, Delivery, RepositoryKey
from bot.server.spans import (
    TRACEPARENT,
    is_tracing_wanted,
    span,
    start_tracing,
    stop_tracing,
    trace_id,
    traceparent,
    tracing_problem,
)
from tests.fakes.fixtures import github
from tests.fakes.github import FakeGitHub
from tests.server.collector import Collector
from tests.server.stage import ROOT

__all__ = ["github"]

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
REPOSITORY = RepositoryKey(1, 17)
OTHER = f"00-{7:032x}-{8:016x}-01"
NANO = 1_000_000


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector to which this process sends its spans."""
    made = Collector()
    monkeypatch.setenv(ENDPOINT, made.url)
    start_tracing({ENDPOINT: made.url})
    yield made
    stop_tracing(20)
    made.stop()


def sent(collector: Collector) -> Collector:
    """With all that came, after the last span."""
    stop_tracing(20)
    return collector


def arrival(name: str = "guid-1", action: str = "opened") -> Arrival:
    return Arrival(f"7:{name}", REPOSITORY, Event("issues", action, 1), received_at=1_000, request="r1")


def delivery(seq: int, context: str = "", **changed: int) -> Delivery:
    extra = ((TRACE, context),) if context else ()
    made = Delivery(seq, f"7:guid-{seq}", REPOSITORY, Event("issues", "opened", seq), "o/r", True, "working", 1_000)
    return replace(made, extra=extra, request=f"r{seq}", **changed)


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
    ("environ", "said"),
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
def test_what_cannot_be_used_is_told_with_the_remedy(
    environ: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert tracing_problem(environ) == (f"traces are not sent: {said}" if said else "")
    start_tracing(environ)
    assert spans.is_tracing() is (bool(environ) and not said)
    stop_tracing(0)


def test_nothing_is_imported_for_traces_that_nobody_asks_for() -> None:
    code = (
        "import os, sys\n"
        "from bot.server import processes, reconcile, startup_check\n"
        "processes.start_tracing(os.environ)\n"
        "assert startup_check.tracing_problem(os.environ) == ''\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'google', 'bot.server.tracing'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={}, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_span_that_nobody_asks_for_makes_nothing() -> None:
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


# -- what they hold ------------------------------------------------------------------------------------------------


def test_the_context_of_a_receipt_waits_with_the_delivery(collector: Collector) -> None:
    with trace_receipt(arrival(), 1_000 * NANO) as taken:
        assert dict(taken.extra)[TRACE] == traceparent()
        assert len(traceparent()) == 55
        assert traceparent().split("-")[1] == trace_id()
    (receive,) = sent(collector).named("receive")
    assert dict(taken.extra)[TRACE].startswith(f"00-{receive.trace}-{receive.id}-")
    assert receive.began == 1_000 * NANO


def test_without_traces_a_delivery_stays_as_it_came() -> None:
    with trace_receipt(arrival(), 1) as taken:
        assert taken == arrival()
    with trace_run("a-run", [delivery(1, OTHER)], 1):
        assert observe_request("GET", "/app") is observe_request("GET", "/app")


def test_an_action_that_is_no_word_is_not_told(collector: Collector) -> None:
    with trace_receipt(arrival(action="Open, Sesame"), 1):
        pass
    (receive,) = sent(collector).named("receive")
    assert receive.attributes["precedent.event"] == "issues.other"


@pytest.mark.parametrize(
    "context",
    [
        "",
        OTHER.upper().replace("00-", "0A-", 1),
        f"01-{7:032x}-{8:016x}-01",
        f"00-{0:032x}-{8:016x}-01",
        f"00-{7:032x}-{0:016x}-01",
        f"{OTHER}\n",
        f"{OTHER}-more",
        "Open, Sesame",
    ],
)
def test_an_invalid_context_is_left_alone(context: str, collector: Collector) -> None:
    with trace_run("a-run", [delivery(1, context), delivery(2, OTHER)], 4_000 * NANO):
        pass
    (run,) = sent(collector).named("run")
    assert (run.trace, run.parent) == (f"{7:032x}", f"{8:016x}")
    assert run.links == ((run.trace, run.parent),)
    assert [span.trace for span in collector.named("wait")] == [run.trace]


@given(st.text(max_size=60) | st.from_regex(TRACEPARENT, fullmatch=True))
def test_a_context_has_55_characters_and_names_something(text: str) -> None:
    if TRACEPARENT.fullmatch(text):
        _, trace, one, _ = text.split("-")
        assert (len(text), bool(int(trace, 16)), bool(int(one, 16))) == (55, True, True)


def test_a_delivery_waits_from_when_it_was_due_until_it_was_claimed(collector: Collector) -> None:
    with trace_run("a-run", [delivery(1, OTHER, attempts=1, next_at=3_000)], 4_000 * NANO):
        pass
    (wait,) = sent(collector).named("wait")
    (claim,), (run,) = collector.named("claim"), collector.named("run")
    assert wait.began == 3_000 * NANO
    assert claim.began == run.began == 4_000 * NANO
    assert wait.ended == claim.ended
    assert run.links == (), "it belongs to the trace"


def test_a_run_for_nothing_that_has_a_trace_begins_one(collector: Collector) -> None:
    with trace_run("a-run", [delivery(1)], 4_000 * NANO):
        pass
    (run,) = sent(collector).named("run")
    assert (run.parent, run.links) == ("", ())
    assert collector.named("wait") == []


def test_of_an_error_the_class_alone_is_told(collector: Collector) -> None:
    with pytest.raises(ValueError, match="Sesame"), span("look"):
        raise ValueError("Sesame is the word of a stranger")
    (look,) = sent(collector).named("look")
    assert (look.failed, look.attributes) == (True, {"error.type": "ValueError"})
    assert not any(b"Sesame" in raw for raw in collector.raw)


def test_a_request_in_a_run_is_told_by_its_route(collector: Collector, github: FakeGitHub) -> None:
    client = GitHubClient(github.url, github.token, "octocat/hello-world", write_gap=0)
    with trace_run("a-run", [delivery(1)], 1), pytest.raises(Gone):
        client.issue(99)
    with pytest.raises(Gone):
        client.issue(98)
    (call,) = [span for span in sent(collector).spans if span.kind == 3]
    assert call.name == "GET /repos/{owner}/{repo}/issues/{issue_number}"
    assert call.attributes == {
        "http.request.method": "GET",
        "url.template": "/repos/{owner}/{repo}/issues/{issue_number}",
        "http.response.status_code": 404,
        "precedent.rate_left": 999,
        "error.type": "404",
    }
    assert not any(b"hello-world" in raw for raw in collector.raw)


def test_a_collector_that_does_not_answer_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    start_tracing({ENDPOINT: "http://127.0.0.1:9"})
    with span("run"):
        pass
    began = time.monotonic()
    stop_tracing(0.2)
    assert time.monotonic() - began < 2


def test_lines_about_several_deliveries_name_all() -> None:
    two = delivery_fields([delivery(1), delivery(2)])
    assert two == {"request": "r1 r2", "delivery": "guid-1 guid-2"}
    assert delivery_fields([arrival()]) == {"request": "r1", "delivery": "guid-1"}
