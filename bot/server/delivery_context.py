"""Follows a delivery through receiver and worker: its GUID on each log line, and its spans in one trace.

Receiver and worker share only the database, so the trace context is stored there with the delivery, in its ``extra``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from bot.github.events import Event
from bot.github.observer import TellAnswer, observed_by, route_of
from bot.server.log import log_fields
from bot.server.model import Arrival, Delivery
from bot.server.spans import TRACEPARENT, annotate, is_tracing, past_span, span, trace_id, traceparent

TRACE_KEY = "trace"
"""The key in ``extra``."""

_WORD = re.compile(r"[a-z_]{1,64}")


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
