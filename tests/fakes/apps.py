"""GitHub Apps: their identity, their installations, and the tokens that they request."""

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

    ``accounts``: installation → its account, if that is not the owner of its first repository.
    """

    id: int
    slug: str
    permissions: dict[str, str]
    public_key: str | None = None
    installations: dict[int, list[int]] = field(default_factory=dict)
    accounts: dict[int, Account] = field(default_factory=dict)
    suspended: dict[int, str] = field(default_factory=dict)
    """Installation → when it was suspended."""
    events: tuple[str, ...] = EVENTS


class Apps:
    """The apps of one fake. ``token_repositories``: token → its repositories, if it is not for all.

    ``reached``: every (token, repository) that was requested and not refused, in the order of the requests.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.by_id: dict[int, App] = {}
        self.token_repositories: dict[str, frozenset[int]] = {}
        self.reached: list[tuple[str, int]] = []

    def authenticate(self, credential: str) -> App | None:
        """The app of this JSON web token; None if it is no such token. Refusal if it is a bad one.

        Its times are checked against the real clock, not the fake's, because the client uses the real one.
        """
        if credential.count(".") != 2 or credential.startswith("gh"):
            return None
        try:
            claims = jwt.decode(credential, options={"verify_signature": False})
            app = self.by_id[int(claims["iss"])]
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
        """The app as the holder of a token, since it has its own hourly allowance."""
        return Token(f"app {app.id}", self.world.ensure_account(f"{app.slug}[bot]"), app=app.slug) if app else None

    def installation(self, app: App, number: int) -> list[int]:
        if number not in app.installations:
            raise Refusal(404, "Not Found")
        return app.installations[number]

    def of(self, installation: int | None) -> App | None:
        """The app of this installation."""
        return next((app for app in self.by_id.values() if installation in app.installations), None)

    def account(self, app: App, number: int) -> Account:
        """The account of an installation."""
        return app.accounts.get(number) or self.world.repositories[app.installations[number][0]].owner

    def where(self, repository: int) -> tuple[App, int] | None:
        """The app that sees this repository, and its installation."""
        matches = ((app, number) for app in self.by_id.values() for number, repositories in app.installations.items()
                 if repository in repositories)  # fmt: skip
        return next(matches, None)

    def create_token(
        self, app: App, installation: int, permissions: dict[str, str] | None, only: Iterable[int] | None = None
    ) -> Token:
        """A token for one hour and for ``only`` these repositories, with at most the app's permissions.

        GitHub's tokens are about 520 characters long, and so are these.
        """
        if installation in app.suspended:
            raise Refusal(403, SUSPENDED)
        requested = permissions if permissions is not None else dict(app.permissions)
        if any(
            RANKS.index(level) > RANKS.index(app.permissions.get(name, "none")) for name, level in requested.items()
        ):
            raise Refusal(422, "The permissions requested are not granted to this installation.")
        value = f"ghs_{app.id}_{secrets.token_hex(250)}"
        account = self.world.ensure_account(f"{app.slug}[bot]")
        expires = from_epoch(self.world.clock.epoch + TOKEN_LIFE)
        if only is not None:
            self.token_repositories[value] = frozenset(only)
        return self.world.add_token(Token(value, account, requested, app.slug, installation, expires))

    def visible(self, token: Token) -> list[int]:
        """The repositories of an installation token that the installation still sees."""
        app = self.of(token.installation)
        repositories = app.installations[token.installation] if app and token.installation else []
        return [number for number in repositories if number in self.token_repositories.get(token.value, {number})]

    def check(self, token: Token | None) -> None:
        """Refuse a token whose installation is suspended."""
        app = self.of(token.installation) if token and token.installation else None
        if token and app and token.installation in app.suspended:
            raise Refusal(403, SUSPENDED)

    def note(self, token: Token | None, repository: int) -> None:
        """Note that an installation token reached a repository."""
        if token and token.installation:
            self.reached.append((token.value, repository))

    def revoke(self, installation: int) -> None:
        """Revoke the tokens of an installation."""
        for value in [value for value, token in self.world.tokens.items() if token.installation == installation]:
            del self.world.tokens[value]
