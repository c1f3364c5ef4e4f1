"""`POST /webhook`: check, store, then answer 202."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Mapping
from contextlib import nullcontext

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.errors import WorldError
from bot.server.delivery_context import trace_receipt
from bot.server.log import log_fields
from bot.server.model import Arrival, DroppedDelivery, ReceiveQueueFull, Refused
from bot.server.peers import peer_of
from bot.server.receive.connections import RETRY_AFTER
from bot.server.receive.webhook import EVENTS, MAX_SMALL_BODY, BodyBudget, check_headers, guid, receive
from bot.server.scope import EXCLUDED
from bot.server.spans import annotate, span
from bot.server.storage.counters import DELIVERIES_METRIC
from bot.server.web_context import WebContext

CLOSING_STATUSES = frozenset({408, 411, 413, 503})
"""Answers after which the connection is closed, since the rest of a body may follow."""

log = logging.getLogger(__name__)


class Webhook:
    """`POST /webhook`: check, store, then answer 202. A separate application, so that nothing else reads the body."""

    def __init__(self, door: WebContext) -> None:
        self._door = door
        self._budget = BodyBudget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, since, request = time.perf_counter(), time.time_ns(), uuid.uuid4().hex[:16]
        headers = dict(scope["headers"])
        with log_fields(request=request, delivery=guid(headers)):
            received = await self._receive_delivery(scope, headers, receive, request)
            with trace_receipt(received, since) if isinstance(received, Arrival) else nullcontext(received) as traced:
                status, outcome = await self._store_outcome(traced)
                self._count_request(headers, status, outcome)
                annotate({"http.response.status_code": status, "precedent.result": outcome})
                log.info("%s %s", status, outcome, extra=_arrival_fields(received))
            await _json_response(status, outcome, request)(scope, receive, send)
        self._door.answered.observe(time.perf_counter() - began)

    async def _store_outcome(self, received: Arrival | DroppedDelivery | Refused) -> tuple[int, str]:
        """The status, and the outcome in a few words."""
        if isinstance(received, Refused):
            return received.status, received.why
        if isinstance(received, DroppedDelivery):
            return 202, f"dropped: {received.why}"
        try:
            with span("store"):
                return 202, "stored" if await self._door.writer.store(received) else "repeated"
        except TimeoutError:
            return 503, "it took too long to store"
        except (ReceiveQueueFull, WorldError) as error:
            log.warning("not stored: %s", error)
            return 503, "it cannot be stored now"

    async def _receive_delivery(
        self, scope: Scope, headers: Mapping[bytes, bytes], receive_more: Receive, request: str
    ) -> Arrival | DroppedDelivery | Refused:
        method = scope["method"]
        length = check_headers(method, headers)
        if isinstance(length, Refused):
            return length
        async with self._budget.body(length, peer_of(scope["client"]), receive_more) as body:
            if isinstance(body, Refused):
                return body
            arguments = (method, headers, body, self._door.rules, self._door.clock(), request)
            return await asyncio.to_thread(receive, *arguments) if length > MAX_SMALL_BODY else receive(*arguments)

    def _count_request(self, headers: Mapping[bytes, bytes], status: int, outcome: str) -> None:
        """Count a request by event; an unsigned one cannot choose the label."""
        header = headers.get(b"x-github-event", b"").decode("latin-1")
        event = header if header in EVENTS else "other"
        result = outcome.partition(":")[0] if status == 202 else f"refused {status}"
        result = "excluded" if outcome == f"dropped: {EXCLUDED}" else result
        self._door.writer.count(DELIVERIES_METRIC, (event, result))


def _arrival_fields(received: Arrival | DroppedDelivery | Refused) -> dict[str, str]:
    if not isinstance(received, Arrival):
        return {}
    event = received.event
    return {"repository": received.repository.text, "event": f"{event.name}.{event.action}".rstrip(".")}


def _json_response(status: int, outcome: str, request: str) -> Response:
    headers = {"X-Request-Id": request}
    headers |= {"Connection": "close"} if status in CLOSING_STATUSES else {}
    headers |= {"Retry-After": RETRY_AFTER} if status == 503 else {}
    headers |= {"Allow": "POST"} if status == 405 else {}
    return Response(json.dumps({"said": outcome}) + "\n", status, headers, "application/json")
