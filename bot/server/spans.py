"""Follows a delivery through receiver and worker: its GUID on each log line, and its spans in one trace.

Spans are empty blocks, unless the standard variables of OpenTelemetry name a collector; `bot.server.tracing` and its
library are imported only then. A span has names, numbers and states of our own: never a text of an issue, a name of a
person or of a repository, or a token. Receiver and worker share only the database, so the trace context is stored there
with the delivery, in its ``extra``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from bot.errors import UserError
from bot.github.events import Event
from bot.github.observer import TellAnswer, observed_by, route_of
from bot.server.log import log_fields
from bot.server.model import Arrival, Delivery

if TYPE_CHECKING:
    from bot.server.tracing import OtlpTracer

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
"""https://opentelemetry.io/docs/specs/otel/protocol/exporter"""

OPTIONAL_LIBRARIES = ("opentelemetry", "google")
FLUSH_TIMEOUT = 1.0
"""Seconds to send the last spans when a process ends; it has ten for everything."""

TRACEPARENT = re.compile("00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
"""A trace context: version, trace, span and flags. https://www.w3.org/TR/trace-context/#traceparent-header"""

TRACE_KEY = "trace"
"""The key of the trace context in ``extra``."""

_WORD = re.compile(r"[a-z_]{1,64}")

Kind = Literal["internal", "server", "client"]
Attributes = Mapping[str, str | int]
Block = AbstractContextManager[None]


_no_span = nullcontext()
_tracer: OtlpTracer | None = None


def start_tracing(environ: Mapping[str, str]) -> None:
    """Send spans from now on, if these variables ask for it. If they cannot be sent, see `tracing_problem`."""
    global _tracer  # noqa: PLW0603 - as with logging, there is one for the process
    if is_tracing_wanted(environ):
        with suppress(UserError):
            _tracer = _open_tracer(environ)


def stop_tracing(seconds: float = FLUSH_TIMEOUT) -> None:
    """Send the spans that are left, for at most ``seconds``, and make no more."""
    global _tracer
    stopping, _tracer = _tracer, None
    if stopping:
        stopping.stop(seconds)


def tracing_problem(environ: Mapping[str, str]) -> str:
    """Return why the traces that these variables ask for cannot be sent, with the remedy; "" if they can."""
    try:
        if is_tracing_wanted(environ):
            _open_tracer(environ).stop(0.0)
    except UserError as error:
        return str(error)
    return ""


def is_tracing_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the variables name a collector, and none of them switches traces off."""
    is_off = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return (
        not is_off
        and environ.get("OTEL_TRACES_EXPORTER", "") != "none"
        and bool(_first_set(environ, ENDPOINT_VARIABLES))
    )


def is_tracing() -> bool:
    return _tracer is not None


def span(
    name: str,
    attributes: Attributes | None = None,
    kind: Kind = "internal",
    parent: str = "",
    links: Sequence[str] = (),
    began: int = 0,
) -> Block:
    """Open a span below ``parent``, or below the current one without it. ``began`` 0 is now.

    It is marked as failed by an exception, of which only the class is kept.
    """
    return _tracer.span(name, attributes or {}, kind, parent, links, began) if _tracer else _no_span


def past_span(name: str, began: int, ended: int, parent: str = "", links: Sequence[str] = ()) -> None:
    """Add a span that is over."""
    if _tracer:
        _tracer.past_span(name, parent, links, began, ended)


def annotate(attributes: Attributes) -> None:
    if _tracer:
        _tracer.annotate(attributes)


def mark_error(error: BaseException) -> None:
    """Mark the current span as failed, by the class of the error."""
    if _tracer:
        _tracer.mark_error(type(error).__name__)


def traceparent() -> str:
    """Return the context of the current span, "" without one."""
    return _tracer.traceparent() if _tracer else ""


def trace_id() -> str:
    """Return the id of the current trace, "" without one."""
    return traceparent()[3:35]


def _first_set(environ: Mapping[str, str], names: Sequence[str]) -> str:
    """The name of the first variable with a value; the one for traces alone comes first."""
    return next((name for name in names if environ.get(name, "").strip()), "")


def _open_tracer(environ: Mapping[str, str]) -> OtlpTracer:
    """Raises UserError with the remedy."""
    name, protocol = _first_set(environ, ENDPOINT_VARIABLES), _first_set(environ, PROTOCOL_VARIABLES)
    if protocol and environ[protocol].strip() != PROTOCOL:
        raise UserError(f"traces are not sent: {protocol} must be {PROTOCOL}")
    if not _is_address(environ[name].strip()):
        raise UserError(f"traces are not sent: {name} must be an address such as http://localhost:4318")
    try:
        from bot.server.tracing import OtlpTracer

        return OtlpTracer()
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in OPTIONAL_LIBRARIES:
            raise
        remedy = "install the packages in requirements-traces.lock, build the image with TRACES=1, or unset it"
        raise UserError(f"traces are not sent: {name} is set, but {library} is missing", remedy) from error
    except (ValueError, OSError, RuntimeError) as error:
        message = f"traces are not sent: an OpenTelemetry variable has an invalid value ({error})"
        raise UserError(message, "see its documentation") from error


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


@contextmanager
def trace_receipt(arrival: Arrival, began: int) -> Iterator[Arrival]:
    """Begin the trace of a delivery, as of ``began`` (nanoseconds since 1970). Gives the delivery with its context."""
    attributes = {"precedent.delivery": guid_of(arrival), "precedent.event": _kind_of(arrival.event)}
    with span("receive", attributes, "server", began=began), log_fields(trace=trace_id()):
        context = traceparent()
        yield replace(arrival, extra=(*arrival.extra, (TRACE_KEY, context))) if context else arrival


@contextmanager
def trace_run(run: str, deliveries: Sequence[Delivery], began: int) -> Iterator[None]:
    """Trace the run with this id, whose claim began at ``began`` (nanoseconds since 1970).

    The run belongs to the trace of its oldest delivery. If it handles several, it links to each.
    """
    claimed = time.time_ns()
    contexts = {each.seq: context for each in deliveries if (context := _context_of(each))}
    links = tuple(contexts.values()) if len(deliveries) > 1 else ()
    attributes: dict[str, str | int] = {"precedent.run": run, "precedent.deliveries": len(deliveries)}
    with ExitStack() as open_blocks:
        open_blocks.enter_context(log_fields(repository=deliveries[0].repository.text, run=run))
        open_blocks.enter_context(log_fields(**delivery_fields(deliveries)))
        if is_tracing():
            first = next(iter(contexts.values()), "")
            open_blocks.enter_context(span("run", attributes, parent=first, links=links, began=began))
            open_blocks.enter_context(log_fields(trace=trace_id()))
            open_blocks.enter_context(observed_by(_trace_request))
            past_span("claim", began, claimed)
            for each in deliveries:
                if each.seq in contexts:
                    due = max(each.received_at, each.next_at) * 1_000_000
                    past_span("wait", min(due, claimed), claimed, contexts[each.seq], (traceparent(),))
        yield


def delivery_fields(deliveries: Sequence[Arrival | Delivery]) -> dict[str, str]:
    """The log fields for these deliveries: their requests, and GitHub's GUIDs or our own names for them."""
    requests = dict.fromkeys(each.request for each in deliveries if each.request)
    return {"request": " ".join(requests), "delivery": " ".join(map(guid_of, deliveries))}


def guid_of(delivery: Arrival | Delivery) -> str:
    """GitHub's GUID of a delivery, as shown on the App's page; our own name for one that we made."""
    return delivery.id.partition(":")[2]


def _context_of(delivery: Delivery) -> str:
    context = dict(delivery.extra).get(TRACE_KEY, "")
    return context if TRACEPARENT.fullmatch(context) else ""


def _kind_of(event: Event) -> str:
    parts = (event.name, event.action) if event.action else (event.name,)
    return ".".join(part if _WORD.fullmatch(part) else "other" for part in parts)


@contextmanager
def _trace_request(verb: str, path: str) -> Iterator[TellAnswer]:
    """A span for a request to GitHub. https://opentelemetry.io/docs/specs/semconv/http/http-spans"""
    route = route_of(path)
    with span(f"{verb} {route}", {"http.request.method": verb, "url.template": route}, "client"):
        yield _annotate_span


def _annotate_span(status: int, headers: Mapping[str, str]) -> None:
    left = headers.get("x-ratelimit-remaining", "")
    attributes: dict[str, str | int] = {"http.response.status_code": status}
    attributes |= {"precedent.rate_left": int(left)} if re.fullmatch("[0-9]{1,9}", left) else {}
    annotate(attributes | ({"error.type": str(status)} if status >= 400 else {}))
