"""`POST /webhook`: check, read the body within bounds, store, then answer 202."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.errors import WorldError
from bot.server.log import log_fields
from bot.server.model import EXCLUDED, HOUR, Delivery, DroppedDelivery, Instant, ReceiveQueueFull, Refused
from bot.server.receive.webhook import EVENTS, WebhookRules, check_headers, guid, receive
from bot.server.receive.writer import GroupCommitWriter
from bot.server.storage.counters import DELIVERIES_METRIC

CLOSING_STATUSES = frozenset({408, 411, 413, 503})
"""Answers after which the connection is closed, since the rest of a body may follow."""

BODY_TIMEOUT = 10.0
"""Seconds for a body; GitHub gives up a delivery after ten seconds."""

MAX_SMALL_BODY = 1_000_000
"""Bytes. Larger bodies are parsed in a thread and have a budget of their own."""

SMALL_BUDGET, LARGE_BUDGET = 64_000_000, 100_000_000
"""Bytes of all small, and of all large bodies in memory at once."""

RETRY_AFTER = "60"
"""Value of Retry-After, in seconds. GitHub does not retry, but our resync does."""

log = logging.getLogger(__name__)


class BodyBudget:
    """Limits the bytes of bodies in memory to ``most``. For one event loop."""

    def __init__(self, most: int) -> None:
        self._left = most

    @asynccontextmanager
    async def body(
        self, length: int, receive: Receive, seconds: float = BODY_TIMEOUT
    ) -> AsyncIterator[bytes | Refused]:
        """Read a body of the declared ``length``, or give why not. What has arrived of it counts within the block."""
        body = bytearray()
        try:
            yield await self._read(length, receive, seconds, body) or bytes(body)
        finally:
            self._left += len(body)

    async def _read(self, length: int, receive: Receive, seconds: float, body: bytearray) -> Refused | None:
        """Add the parts to ``body`` as they arrive. Returns why the rest is not read."""
        is_last = False
        try:
            async with asyncio.timeout(seconds):
                while not is_last:
                    message = await receive()
                    if message["type"] != "http.request":
                        return Refused(400, "the connection ended before the body did")
                    part, is_last = message.get("body", b""), not message.get("more_body")
                    body += part
                    self._left -= len(part)
                    if len(body) > length:
                        return Refused(413, "the body is longer than its Content-Length")
                    if self._left < 0:
                        return Refused(503, "too many deliveries at once")
        except TimeoutError:
            return Refused(408, "the body took too long")
        return None


class RecentRefusals:
    """What this process refused in the last hour. Only requests with a GUID count: scanners send none."""

    def __init__(self) -> None:
        self._refusals = deque[tuple[Instant, int]](maxlen=10_000)

    def add(self, at: Instant, status: int) -> None:
        self._refusals.append((at, status))

    def by_status(self, now: Instant) -> Mapping[int, int]:
        return Counter(status for at, status in self._refusals.copy() if now - at <= HOUR)


class Webhook:
    """`POST /webhook`: check, store, then answer 202. A separate application, so that nothing else reads the body."""

    def __init__(
        self,
        rules: Callable[[], WebhookRules],
        writer: GroupCommitWriter,
        clock: Callable[[], Instant],
        observe: Callable[[float], object],
        refusals: RecentRefusals,
    ) -> None:
        """``rules`` returns those that hold now. ``observe`` is called with the seconds that an answer took."""
        self._rules, self._writer, self._clock, self._observe = rules, writer, clock, observe
        self._refusals = refusals
        self._small, self._large = BodyBudget(SMALL_BUDGET), BodyBudget(LARGE_BUDGET)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, request = time.perf_counter(), uuid.uuid4().hex[:16]
        headers = dict(scope["headers"])
        with log_fields(request=request, delivery=guid(headers)):
            received = await self._receive_delivery(scope, headers, receive, request)
            status, outcome = await self._store_outcome(received)
            self._count_request(headers, status, outcome)
            log.info("%s %s", status, outcome, extra=_arrival_fields(received))
            await _json_response(status, outcome, request)(scope, receive, send)
        self._observe(time.perf_counter() - began)

    async def _store_outcome(self, received: Delivery | DroppedDelivery | Refused) -> tuple[int, str]:
        """The status, and the outcome in a few words."""
        if isinstance(received, Refused):
            return received.status, received.why
        if isinstance(received, DroppedDelivery):
            return 202, f"dropped: {received.why}"
        try:
            return 202, "stored" if await self._writer.store(received) else "repeated"
        except TimeoutError:
            return 503, "it took too long to store"
        except (ReceiveQueueFull, WorldError) as error:
            log.warning("not stored: %s", error)
            return 503, "it cannot be stored now"

    async def _receive_delivery(
        self, scope: Scope, headers: Mapping[bytes, bytes], receive_more: Receive, request: str
    ) -> Delivery | DroppedDelivery | Refused:
        method = scope["method"]
        length = check_headers(method, headers)
        if isinstance(length, Refused):
            return length
        budget = self._large if length > MAX_SMALL_BODY else self._small
        async with budget.body(length, receive_more) as body:
            if isinstance(body, Refused):
                return body
            arguments = (method, headers, body, self._rules(), self._clock(), request)
            return await asyncio.to_thread(receive, *arguments) if length > MAX_SMALL_BODY else receive(*arguments)

    def _count_request(self, headers: Mapping[bytes, bytes], status: int, outcome: str) -> None:
        """Count a request by event; an unsigned one cannot choose the label."""
        header = headers.get(b"x-github-event", b"").decode("latin-1")
        event = header if header in EVENTS else "other"
        result = outcome.partition(":")[0] if status == 202 else f"refused {status}"
        result = "excluded" if outcome == f"dropped: {EXCLUDED}" else result
        self._writer.count(DELIVERIES_METRIC, (event, result))
        if status != 202 and guid(headers):
            self._refusals.add(self._clock(), status)


def _arrival_fields(received: Delivery | DroppedDelivery | Refused) -> dict[str, str]:
    if not isinstance(received, Delivery):
        return {}
    event = received.event
    return {"repository": received.repository.text, "event": f"{event.name}.{event.action}".rstrip(".")}


def _json_response(status: int, outcome: str, request: str) -> Response:
    headers = {"X-Request-Id": request}
    headers |= {"Connection": "close"} if status in CLOSING_STATUSES else {}
    headers |= {"Retry-After": RETRY_AFTER} if status == 503 else {}
    headers |= {"Allow": "POST"} if status == 405 else {}
    return Response(json.dumps({"said": outcome}) + "\n", status, headers, "application/json")
