"""Decides who may see the status page and who may change something there, from the headers of a request.

People prove who they are by basic authentication; there are no cookies. A browser repeats a password by itself, even
for a form on another site, so a change must also come from one of our own pages.
"""

from __future__ import annotations

import hmac
import logging
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bot.server.options import ServerOptions, variable

REALM = 'Basic realm="precedent", charset="UTF-8"'
"""One realm for both roles, so that a browser replaces the password of one with that of the other."""

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
    """Finds the role of a request. ``options`` returns the passwords that are valid now.

    Nobody has to wait after a wrong one: a password cannot be guessed, as it has `options.MIN_PASSWORD_BITS`, and a
    wait would keep out everybody behind the same proxy. Header names are in lower case; ``peer`` is for the log.
    """

    def __init__(self, options: Callable[[], ServerOptions]) -> None:
        self._options = options

    def role(self, headers: Mapping[str, str], peer: str) -> Role | AccessDenied:
        authorization = headers.get("authorization", "")
        if not authorization:
            return AccessDenied(401, "the status page requires a password", {"WWW-Authenticate": REALM})
        if role := role_of(authorization, self._options()):
            return role
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
