"""Tokens for one repository each: kept in memory, renewed in time, forgotten as soon as they may be wrong."""

from __future__ import annotations

import threading

from bot.github.app import App
from bot.server.model import Grant, Instant, RepositoryKey

SPARE = 20 * 60_000
"""Milliseconds that a token is good for at least when it is handed out: longer than `bot.server.worker.HANGING`."""

LIFE = 60 * 60_000
"""Milliseconds that GitHub's tokens live, whatever our clock makes of the time at which they end."""


class TokenCache:
    """Asks GitHub for each token once an hour. Safe to use by several threads.

    What a repository is called comes with its token, from GitHub; so after a rename or a transfer the token has to be
    forgotten, and one that was asked for before `forget` is not kept after it.
    """

    def __init__(self, api: App) -> None:
        self._api = api
        self._kept: dict[RepositoryKey, Grant] = {}
        self._forgotten = 0
        self._lock = threading.Lock()

    def grant(self, lane: RepositoryKey, now: Instant) -> Grant:
        """A token good for twenty minutes, and the repository's present name. Raises NotInstalled, ForgeError."""
        with self._lock:
            kept, forgotten = self._kept.get(lane), self._forgotten
        if kept is not None and now + SPARE <= kept.expires_at:
            return kept
        minted = self._api.create_token(lane.installation, lane.repository)
        ends = min(minted.expires_at, now + LIFE)
        fresh = Grant(lane, minted.token, minted.full_name, private=minted.private, expires_at=ends)
        with self._lock:
            self._kept = {each: grant for each, grant in self._kept.items() if grant.expires_at > now}
            if forgotten == self._forgotten:
                self._kept[lane] = fresh
        return fresh

    def forget(self, lane: RepositoryKey | None = None, installation: int = 0) -> None:
        """Those of a lane, of an installation, or all where neither is given."""
        with self._lock:
            self._forgotten += 1
            for each in list(self._kept):
                is_meant = each == lane or each.installation == installation
                if is_meant or (lane is None and not installation):
                    del self._kept[each]
