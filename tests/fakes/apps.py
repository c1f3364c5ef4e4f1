"""GitHub Apps: who they are, where they are installed, and the tokens that they ask for."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import jwt

from tests.fakes.exchange import Refusal
from tests.fakes.state import Token, World, from_epoch

TOKEN_LIFE = 3600
JWT_LIFE = 600
"""Seconds; GitHub allows a minute of clock drift on top."""
DRIFT = 60


@dataclass
class App:
    """``installations``: id → ids of the repositories it may see. Without ``public_key`` signatures are not checked."""

    id: int
    slug: str
    permissions: dict[str, str]
    public_key: str | None = None
    installations: dict[int, list[int]] = field(default_factory=dict)


class Apps:
    """The apps of one fake."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.known: dict[int, App] = {}

    def authenticate(self, credential: str) -> App | None:
        """The app that this JSON web token speaks for, None when it is no such token; Refusal when it is a bad one.

        Its times are real ones, whatever the fake's clock says, because the client takes them from its own clock.
        """
        if credential.count(".") != 2 or credential.startswith("gh"):
            return None
        try:
            claims = jwt.decode(credential, options={"verify_signature": False})
            app = self.known[int(claims["iss"])]
            if app.public_key:
                jwt.decode(credential, app.public_key, algorithms=["RS256"], options={"verify_iat": False})
        except (jwt.PyJWTError, KeyError, ValueError):
            raise Refusal(401, "A JSON web token could not be decoded") from None
        self._check_times(claims)
        return app

    def _check_times(self, claims: dict[str, Any]) -> None:
        now = time.time()
        if claims.get("exp", 0) < now:
            raise Refusal(401, "'Expiration time' claim ('exp') must be a numeric value representing the future time")
        if claims["exp"] > now + JWT_LIFE + DRIFT:
            raise Refusal(401, "'Expiration time' claim ('exp') is too far in the future")

    def installation(self, app: App, number: int) -> list[int]:
        if number not in app.installations:
            raise Refusal(404, "Not Found")
        return app.installations[number]

    def mint(self, app: App, installation: int, permissions: dict[str, str] | None) -> Token:
        """A token of an hour. GitHub's are about 520 characters long, and so are these."""
        text = f"ghs_{app.id}_{secrets.token_hex(250)}"
        account = self.world.existing(f"{app.slug}[bot]")
        expires = from_epoch(self.world.clock.epoch + TOKEN_LIFE)
        allowed = permissions if permissions is not None else dict(app.permissions)
        return self.world.add_token(Token(text, account, allowed, app.slug, installation, expires))
