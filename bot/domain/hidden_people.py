"""The people whose words and names are left out of everything that is shown.

Quick to import, as every search from a shell needs it.
"""

from __future__ import annotations

from collections.abc import Iterable

GHOST = "ghost"
"""The login that GitHub shows for an account that no longer exists, and we for one that is never named."""


class HiddenPeople:
    """Accounts that are never quoted and never named; their logins may be in upper or lower case."""

    def __init__(self, logins: Iterable[str] = ()) -> None:
        self.logins = tuple(logins)
        self._names = frozenset(map(str.casefold, self.logins))

    def __bool__(self) -> bool:
        return bool(self._names)

    def __contains__(self, login: str | None) -> bool:
        return login is not None and login.casefold() in self._names

    def alias(self, login: str) -> str:
        """The login as it may be shown."""
        return GHOST if login in self else login
