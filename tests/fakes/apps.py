"""GitHub Apps: who they are, where they are installed, and the tokens that they ask for."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import jwt

from tests.fakes.exchange import Refusal
from tests.fakes.state import Account, Token, World, from_epoch

TOKEN_LIFE = 3600
JWT_LIFE = 600
"""Seconds; GitHub allows a minute of clock drift on top."""
DRIFT = 60
RANKS = ("none", "read", "write", "admin")
EVENTS = ("issues", "issue_comment", "push", "gollum", "release", "repository")
SUSPENDED = "This installation has been suspended"


@dataclass
class App:
    """``installations``: id → ids of the repositories it may see. Without ``public_key`` signatures are not checked.

    ``accounts``: installation → whom it is for, where that is not the owner of its first repository.
    """

    id: int
    slug: str
    permissions: dict[str, str]
    public_key: str | None = None
    installations: dict[int, list[int]] = field(default_factory=dict)
    accounts: dict[int, Account] = field(default_factory=dict)
    suspended: dict[int, str] = field(default_factory=dict)
    """Installation → since when."""
    events: tuple[str, ...] = EVENTS


class Apps:
    """The apps of one fake. ``reach``: token → the only repositories that it is for, where it is not for all.

    ``used``: every (token, repository) that was asked for and not refused, in the order of the requests.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.known: dict[int, App] = {}
        self.reach: dict[str, frozenset[int]] = {}
        self.used: list[tuple[str, int]] = []

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

    def as_token(self, app: App | None) -> Token | None:
        """An app as one that asks: it has an hourly allowance of its own."""
        return Token(f"app {app.id}", self.world.existing(f"{app.slug}[bot]"), app=app.slug) if app else None

    def installation(self, app: App, number: int) -> list[int]:
        if number not in app.installations:
            raise Refusal(404, "Not Found")
        return app.installations[number]

    def of(self, installation: int | None) -> App | None:
        """The app that this installation is one of."""
        return next((app for app in self.known.values() if installation in app.installations), None)

    def account(self, app: App, number: int) -> Account:
        """Whom an installation is for."""
        return app.accounts.get(number) or self.world.repositories[app.installations[number][0]].owner

    def where(self, repository: int) -> tuple[App, int] | None:
        """The app that sees this repository, and by which installation."""
        found = ((app, number) for app in self.known.values() for number, seen in app.installations.items()
                 if repository in seen)  # fmt: skip
        return next(found, None)

    def create_token(
        self, app: App, installation: int, permissions: dict[str, str] | None, only: Iterable[int] | None = None
    ) -> Token:
        """A token of an hour, for ``only`` these repositories; it may ask for less than the app was given.

        GitHub's are about 520 characters long, and so are these.
        """
        if installation in app.suspended:
            raise Refusal(403, SUSPENDED)
        asked = permissions if permissions is not None else dict(app.permissions)
        if any(RANKS.index(level) > RANKS.index(app.permissions.get(name, "none")) for name, level in asked.items()):
            raise Refusal(422, "The permissions requested are not granted to this installation.")
        text = f"ghs_{app.id}_{secrets.token_hex(250)}"
        account = self.world.existing(f"{app.slug}[bot]")
        expires = from_epoch(self.world.clock.epoch + TOKEN_LIFE)
        if only is not None:
            self.reach[text] = frozenset(only)
        return self.world.add_token(Token(text, account, asked, app.slug, installation, expires))

    def visible(self, token: Token) -> list[int]:
        """The repositories that a token of an installation is for, as far as the installation still sees them."""
        app = self.of(token.installation)
        seen = app.installations[token.installation] if app and token.installation else []
        return [number for number in seen if number in self.reach.get(token.value, {number})]

    def check(self, token: Token | None) -> None:
        """Refuse a token whose installation is suspended."""
        app = self.of(token.installation) if token and token.installation else None
        if token and app and token.installation in app.suspended:
            raise Refusal(403, SUSPENDED)

    def note(self, token: Token | None, repository: int) -> None:
        """A token of an installation reached a repository."""
        if token and token.installation:
            self.used.append((token.value, repository))

    def revoke(self, installation: int) -> None:
        """Its tokens are worth nothing any more."""
        for value in [value for value, token in self.world.tokens.items() if token.installation == installation]:
            del self.world.tokens[value]
