"""Decides who may see the status page and who may change something there, from the headers of a request.

People prove who they are by basic authentication; there are no cookies. A browser repeats a password by itself, even
for a form on another site, so a change must also come from one of our own pages.
"""

from __future__ import annotations

import hmac
import logging
import math
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock

from bot.server.options import ServerOptions, variable

REALM = 'Basic realm="precedent", charset="UTF-8"'
"""One realm for both roles, so that a browser replaces the password of one with that of the other."""

FREE_TRIES = 5
"""Wrong passwords in a row without a wait."""

MAX_WAIT = 300.0
"""Longest wait in seconds; the first is one second, and each further one doubles."""

FORGET_AFTER = 3_600.0
"""Seconds after its last wrong password until a peer is forgotten."""

SHARED_TRIES, REFILL_SECONDS = 50, 10.0
"""Wrong passwords allowed to all peers together, and the seconds until one more is."""

MAX_PEERS = 1_000
"""Most peers remembered for wrong passwords."""

log = logging.getLogger(__name__)


class Role(StrEnum):
    """What a request may do. ``OPERATE`` includes ``VIEW``."""

    VIEW = "look"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True)
class AccessDenied:
    """The answer to a request that is not allowed."""

    status: int
    why: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Access:
    """Finds the role of a request. Thread-safe; ``options`` returns the passwords that are valid now.

    Header names are in lower case; ``peer`` is who sent the request, see `bot.server.receive.connections.peer_of`.
    """

    def __init__(self, options: Callable[[], ServerOptions]) -> None:
        self._options = options
        self._limiter = PasswordLimiter()

    def role(self, headers: Mapping[str, str], peer: str) -> Role | AccessDenied:
        authorization = headers.get("authorization", "")
        if not authorization:
            return AccessDenied(401, "the status page requires a password", {"WWW-Authenticate": REALM})
        if role := role_of(authorization, self._options()):
            self._limiter.note_right(peer)
            return role
        if wait := self._limiter.note_wrong(peer):
            why = f"that is not the password; there were too many wrong ones: wait {wait} s"
            return AccessDenied(429, why, {"Retry-After": str(wait), "Connection": "close"})
        log.warning("a wrong password for the status page", extra={"peer": peer})
        return AccessDenied(401, "that is not the password", {"WWW-Authenticate": REALM})

    def require_operator(self, headers: Mapping[str, str], peer: str) -> Role | AccessDenied:
        """Return ``Role.OPERATE``, or the answer that makes a browser ask for the operator's password."""
        role = self.role(headers, peer)
        if role is not Role.VIEW:
            return role
        if not self._options().operator_password:
            return AccessDenied(403, f"changes are disabled: {variable('operator_password')} is not set")
        return AccessDenied(401, "this needs the operator's password", {"WWW-Authenticate": REALM})

    def authorize_change(self, method: str, headers: Mapping[str, str], peer: str) -> Role | AccessDenied:
        """Return ``Role.OPERATE`` if this request may change something: a POST by an operator from our own page."""
        if method != "POST":
            return AccessDenied(405, "changes require POST", {"Allow": "POST"})
        role = self.require_operator(headers, peer)
        if role is Role.OPERATE and not is_from_own_page(headers):
            log.warning("refused a change requested by another site", extra={"peer": peer})
            return AccessDenied(403, "changes are made on the status page itself, not from another site")
        return role


def role_of(authorization: str, options: ServerOptions) -> Role | None:
    """Return the role that these credentials give. If both passwords are the same, nobody can operate."""
    is_viewer = has_credentials(authorization, options.status_user, options.status_password)
    is_operator = has_credentials(authorization, options.status_user, options.operator_password)
    return Role.VIEW if is_viewer else Role.OPERATE if is_operator else None


def has_credentials(authorization: str, user: str, password: str) -> bool:
    """Whether this header holds these credentials (basic authentication), in constant time for wrong ones.

    An empty password is never right.
    """
    scheme, _, encoded = authorization.partition(" ")
    try:
        credentials = b64decode(encoded, validate=True) if scheme.lower() == "basic" else b""
    except ValueError:
        credentials = b""
    return hmac.compare_digest(credentials, f"{user}:{password}".encode()) and bool(password)


def is_from_own_page(headers: Mapping[str, str]) -> bool:
    """Whether the browser says that one of our own pages made this request; other pages cannot forge that.

    ``Sec-Fetch-Site`` alone decides. Where browsers do not send it, as to an address without HTTPS, ``Origin`` must be
    the requested host. https://www.w3.org/TR/fetch-metadata/
    """
    if site := headers.get("sec-fetch-site", ""):
        return site == "same-origin"
    origin = headers.get("origin", "").partition("://")[2]
    return bool(origin) and origin.lower() == headers.get("host", "").lower()


@dataclass(slots=True)
class _WrongPasswords:
    times: int = 0
    last: float = 0.0
    until: float = 0.0


class PasswordLimiter:
    """Says how long whoever gave a wrong password has to wait. Safe for several threads; ``clock`` is in seconds.

    A right password is never refused, or a stranger could lock out everybody who has the same address, as all have
    behind a proxy. So no wait keeps a guess from being right. That is up to the password,
    which has at least `options.MIN_PASSWORD_BITS`. A wait costs a guesser a connection for each further guess, and
    keeps them out of the log.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._wrong: OrderedDict[str, _WrongPasswords] = OrderedDict()
        self._allowance = float(SHARED_TRIES)
        self._refilled_at = clock()

    def note_wrong(self, peer: str) -> int:
        """Note a wrong password; returns the seconds that the peer still has to wait, or 0. One during a wait does not
        prolong it."""
        with self._lock:
            now = self._clock()
            self._refill(now)
            wait = math.ceil(self._remaining_wait(peer, now))
            if not wait:
                self._count(peer, now)
            return wait

    def note_right(self, peer: str) -> None:
        """Note a right password: the next wrong one of this peer is its first."""
        with self._lock:
            self._wrong.pop(peer, None)

    def _refill(self, now: float) -> None:
        self._allowance = min(SHARED_TRIES, self._allowance + max(0.0, now - self._refilled_at) / REFILL_SECONDS)
        self._refilled_at = now
        while self._wrong and now - next(iter(self._wrong.values())).last > FORGET_AFTER:
            self._wrong.popitem(last=False)

    def _remaining_wait(self, peer: str, now: float) -> float:
        own_wait = self._wrong[peer].until - now if peer in self._wrong else 0.0
        return max(0.0, own_wait, (1 - self._allowance) * REFILL_SECONDS)

    def _count(self, peer: str, now: float) -> None:
        self._allowance = max(0.0, self._allowance - 1)
        attempts = self._wrong.setdefault(peer, _WrongPasswords())
        attempts.times, attempts.last = attempts.times + 1, now
        if attempts.times >= FREE_TRIES:
            attempts.until = now + min(MAX_WAIT, 2.0 ** min(attempts.times - FREE_TRIES, 20))
        self._wrong.move_to_end(peer)
        if len(self._wrong) > MAX_PEERS:
            self._wrong.popitem(last=False)
