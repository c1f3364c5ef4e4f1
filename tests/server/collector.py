"""A trace collector, which decodes the protobuf that arrives at ``/v1/traces`` and keeps the spans."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.fakes.httpd import Listener
from tests.fakes.service import SentReply


@dataclass(frozen=True)
class ReceivedSpan:
    """A span that arrived. Ids are in hexadecimal, times in nanoseconds since 1970; ``failed`` is its status."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    began: int
    ended: int
    attributes: Mapping[str, Any]
    links: tuple[tuple[str, str], ...]
    failed: bool
    resource: Mapping[str, Any]

    @property
    def context(self) -> tuple[str, str]:
        return self.trace, self.id


@dataclass
class Collector:
    """Listens from creation until `stop`. ``raw`` holds all bodies received; it answers with ``status``."""

    status: int = 200
    spans: list[ReceivedSpan] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = Listener(self._receive)
        self.url = self._listener.url
        self.stop = self._listener.stop

    def spans_named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    def children_of(self, parent: ReceivedSpan) -> list[ReceivedSpan]:
        """The direct children of a span, in the order in which they began."""
        children = [span for span in self.spans if (span.trace, span.parent) == parent.context]
        return sorted(children, key=lambda span: span.began)

    def _receive(self, verb: str, path: str, headers: dict[str, str], body: bytes) -> SentReply:
        assert (verb, path) == ("POST", "/v1/traces")
        assert headers["Content-Type"] == "application/x-protobuf"
        self.headers.append(headers)
        body = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
        self.raw.append(body)
        if self.status == 200:
            for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
                resource = _values(resource_spans.resource.attributes)
                for scope_spans in resource_spans.scope_spans:
                    self.spans += [_received(span, resource) for span in scope_spans.spans]
        return SentReply(self.status, {"Content-Type": "application/x-protobuf"}, b"")


def _received(span: Span, resource: Mapping[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        kind=span.kind,
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        attributes=_values(span.attributes),
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        failed=span.status.code == 2,
        resource=resource,
    )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair) for pair in pairs}


def _value(pair: KeyValue) -> Any:
    kind = pair.value.WhichOneof("value")
    return getattr(pair.value, kind) if kind else None
