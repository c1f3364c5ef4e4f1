"""Webhooks of the fake: signed deliveries, lost deliveries, and redeliveries."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.state import World, from_epoch

TIMEOUT = 10
"""Seconds that GitHub waits for an answer."""
KEPT_SECONDS = 3 * 24 * 3600
"""Seconds for which a delivery is listed and can be redelivered."""
Payload = dict[str, Any]


@dataclass
class Delivery:
    id: int
    guid: str
    event: str
    payload: Payload
    at: str
    status: int = 0
    redelivery: bool = False

    def shape(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "guid": self.guid,
            "delivered_at": self.at,
            "redelivery": self.redelivery,
            "duration": 0.27,
            "status": "OK" if 200 <= self.status < 300 else "failed to connect to host",
            "status_code": self.status,
            "event": self.event,
            "action": self.payload.get("action"),
            "installation_id": self.payload.get("installation", {}).get("id"),
            "repository_id": self.payload.get("repository", {}).get("id"),
            "throttled_at": None,
        }


def signed_headers(event: str, guid: str, body: bytes, secret: str, app: int = 0) -> dict[str, str]:
    """The headers of a delivery to an App; the signature is HMAC-SHA256 over the bytes of the body."""
    key = secret.encode()
    return {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/044aadd",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": guid,
        "X-GitHub-Hook-ID": "42",
        "X-GitHub-Hook-Installation-Target-ID": str(app),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
        "X-Hub-Signature": "sha1=" + hmac.new(key, body, hashlib.sha1).hexdigest(),
        "X-Hub-Signature-256": "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest(),
    }


class Hooks:
    """Sends deliveries and records their results."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.url: str | None = None
        self.secret = "It's a Secret to Everybody"
        self.app = 0
        """The id of the App whose webhook it is."""
        self.deliveries: list[Delivery] = []

    def deliver(self, event: str, payload: Payload, lose: bool = False, guid: str | None = None) -> Delivery:
        """Send to `url` and record the status; with ``lose``, nobody answers (status 502)."""
        delivery = Delivery(self.world.next_id(), guid or str(uuid.uuid4()), event, payload, self.world.clock.now)
        delivery.redelivery = guid is not None
        delivery.status = 502 if lose else self._post(delivery)
        self.deliveries.append(delivery)
        return delivery

    def recent(self) -> list[Delivery]:
        """The deliveries that GitHub still lists: those of three days."""
        oldest = from_epoch(self.world.clock.epoch - KEPT_SECONDS)
        return [delivery for delivery in self.deliveries if delivery.at >= oldest]

    def find(self, delivery_id: int) -> Delivery | None:
        return next((delivery for delivery in self.recent() if delivery.id == delivery_id), None)

    def redeliver(self, delivery_id: int) -> bool:
        """Send a delivery again with the same GUID, a moment later; False if it does not exist or is too old."""
        delivery = self.find(delivery_id)
        if delivery is None:
            return False
        arguments = (delivery.event, delivery.payload, False, delivery.guid)
        threading.Thread(target=self.deliver, args=arguments, daemon=True).start()
        return True

    def _post(self, delivery: Delivery) -> int:
        if self.url is None:
            return 502
        body = json.dumps(delivery.payload).encode()
        headers: Mapping[str, str] = signed_headers(delivery.event, delivery.guid, body, self.secret, self.app)
        request = urllib.request.Request(self.url, body, dict(headers), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 504
