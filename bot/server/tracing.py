"""Sends spans to a collector by OTLP over HTTP. The only module that imports OpenTelemetry, for `bot.server.spans`.

The library reads the standard variables: endpoint, headers, timeout, certificate, sampler, batches, resource.
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from bot import __version__

SERVICE = "precedent"
SPAN_KINDS = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}
_PROPAGATOR = TraceContextTextMapPropagator()


class OtlpTracer:
    """Makes and sends spans. Raises ValueError, OSError or RuntimeError for variables that cannot be used.

    A trace context is a text as in `bot.server.spans.TRACEPARENT`, "" for none. Times are in nanoseconds since 1970.
    """

    def __init__(self) -> None:
        # An unreachable collector would cause several lines for each try; this leaves one for each lost batch.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
        resource = Resource.create({SERVICE_NAME: SERVICE, SERVICE_VERSION: __version__})
        self._provider = TracerProvider(
            resource=resource.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(SERVICE, __version__)

    @contextmanager
    def span(
        self, name: str, attributes: Mapping[str, str | int], kind: str, parent: str, links: Sequence[str], began: int
    ) -> Iterator[None]:
        with self._tracer.start_as_current_span(
            name,
            _parent_context(parent),
            SPAN_KINDS[kind],
            attributes,
            _make_links(links),
            began or None,
            record_exception=False,  # its message may have a text of an issue
            set_status_on_exception=False,
        ):
            try:
                yield
            except BaseException as error:
                self.mark_error(type(error).__name__)
                raise

    def past_span(self, name: str, parent: str, links: Sequence[str], began: int, ended: int) -> None:
        span = self._tracer.start_span(name, _parent_context(parent), links=_make_links(links), start_time=began)
        span.end(max(began, ended))

    def annotate(self, attributes: Mapping[str, str | int]) -> None:
        trace.get_current_span().set_attributes(attributes)

    def mark_error(self, kind: str) -> None:
        span = trace.get_current_span()
        span.set_attribute("error.type", kind)
        span.set_status(StatusCode.ERROR)

    def traceparent(self) -> str:
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        return carrier.get("traceparent", "")

    def stop(self, seconds: float) -> None:
        # The library's own limits are longer, or not kept while a request to the collector is under way.
        stopping = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        stopping.start()
        stopping.join(seconds)


def _parent_context(parent: str) -> Context | None:
    """The context that ``parent`` names; None, which stands for the current one, if it names none."""
    context = _PROPAGATOR.extract({"traceparent": parent}, Context())
    return context if trace.get_current_span(context).get_span_context().is_valid else None


def _make_links(links: Sequence[str]) -> list[Link]:
    contexts = filter(None, map(_parent_context, links))
    return [Link(trace.get_current_span(each).get_span_context()) for each in contexts]
