"""A collector of traces, which decodes what comes to ``/v1/traces`` in protobuf and keeps the spans."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.fakes.httpd import Listener
from tests.fakes.service import Sent


@dataclass(frozen=True)
class Received:
    """A span that came. Ids are in hexadecimal, times in nanoseconds since 1970; ``failed`` is its status."""

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
    """It listens from the start until `stop`. ``raw`` are all bytes that came, ``status`` is its answer."""

    status: int = 200
    spans: list[Received] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = Listener(self._take)
        self.url = self._listener.url
        self.stop = self._listener.stop

    def named(self, name: str) -> list[Received]:
        return [span for span in self.spans if span.name == name]

    def below(self, parent: Received) -> list[Received]:
        """The spans right below it, in the order in which they began."""
        found = [span for span in self.spans if (span.trace, span.parent) == parent.context]
        return sorted(found, key=lambda span: span.began)

    def _take(self, verb: str, path: str, headers: dict[str, str], body: bytes) -> Sent:
        assert (verb, path) == ("POST", "/v1/traces")
        assert headers["Content-Type"] == "application/x-protobuf"
        self.headers.append(headers)
        body = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
        self.raw.append(body)
        if self.status == 200:
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                known = _values(of_resource.resource.attributes)
                for of_scope in of_resource.scope_spans:
                    self.spans += [_received(span, known) for span in of_scope.spans]
        return Sent(self.status, {"Content-Type": "application/x-protobuf"}, b"")


def _received(span: Span, resource: Mapping[str, Any]) -> Received:
    return Received(
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
