"""Caches the tokens for repositories, so that each is requested once an hour."""

from __future__ import annotations

import threading

from bot.github.app import App, InstallationInfo
from bot.github.errors import NotInstalled
from bot.server.model import Grant, Instant, RepositoryKey

MIN_TOKEN_VALIDITY = 20 * 60_000
"""Milliseconds for which a token that is handed out is valid at least: longer than a run may hang."""

TOKEN_LIFETIME = 60 * 60_000
"""Milliseconds that GitHub's tokens live, even if our own clock is off."""


class TokenCache:
    """Requests each token once an hour. Thread-safe.

    The name of a repository comes with its token, so the token has to be forgotten after a rename or a transfer. A
    token that was requested before `forget` is not cached after it.
    """

    def __init__(self, api: App) -> None:
        self._api = api
        self._grants: dict[RepositoryKey, Grant] = {}
        self._forget_count = 0
        self._lock = threading.Lock()

    def grant(self, repository: RepositoryKey, now: Instant) -> Grant:
        """Return a token valid for 20 minutes, and the repository's current name. Raises NotInstalled, ForgeError."""
        with self._lock:
            cached, forget_count = self._grants.get(repository), self._forget_count
        if cached is not None and now + MIN_TOKEN_VALIDITY <= cached.expires_at:
            return cached
        token = self._api.create_token(repository.installation, repository.number)
        expires_at = min(token.expires_at, now + TOKEN_LIFETIME)
        new_grant = Grant(
            repository,
            token.token,
            token.full_name,
            private=token.private,
            expires_at=expires_at,
            visibility=token.visibility,
            asked_at=now,
        )
        with self._lock:
            self._grants = {each: grant for each, grant in self._grants.items() if grant.expires_at > now}
            if forget_count == self._forget_count:
                self._grants[repository] = new_grant
        return new_grant

    def installation(self, number: int) -> InstallationInfo | None:
        """Return an installation as GitHub has it now, None if it is gone. Raises ForgeError."""
        try:
            return self._api.installation(number)
        except NotInstalled:
            return None

    def forget(self, repository: RepositoryKey | None = None, installation: int = 0) -> None:
        """Forget the tokens of a repository or an installation, or all tokens."""
        with self._lock:
            self._forget_count += 1
            for each in list(self._grants):
                is_match = each == repository or each.installation == installation
                if is_match or (repository is None and not installation):
                    del self._grants[each]
