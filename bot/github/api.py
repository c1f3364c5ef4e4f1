"""The protocol of the forge. `bot.github.client.GitHubClient` implements it; `DryForge` only reads."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple, Protocol

from bot.github.errors import ForgeError
from bot.github.threads import OwnComment

Json = dict[str, Any]
PER_PAGE = 100
"""Most items in one answer to a read."""


def object_in(value: object) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_in(value: object) -> list[dict[str, Any]]:
    """Return the objects in ``value`` if it is a list, else none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


class Rate(NamedTuple):
    """The requests left in this hour, out of ``limit``, and the end of the hour."""

    left: int
    limit: int
    ends: datetime | None


class Reader(Protocol):
    """Reads issues; each call reads one page of a hundred, or as many pages as given."""

    @property
    def rate(self) -> Rate | None:
        """The requests left in this hour according to the newest answer; None if unknown."""

    @property
    def troubles(self) -> tuple[ForgeError, ...]:
        """The reasons why requests, of one kind or all, are no longer sent in this run; empty if none."""

    def apply_limit(self, error: ForgeError) -> None:
        """Take note of a limit or a dead token that another client met in GraphQL: nothing more is sent to it."""

    def issues_since(self, since: datetime | None, pages: int) -> tuple[list[Json], bool]:
        """Return issues and pull requests changed since then, oldest change first, and whether these are all."""

    def comments_since(self, since: datetime, pages: int) -> tuple[list[Json], bool]:
        """Return comments on any issue changed since then, oldest change first, and whether these are all."""

    def issue(self, number: int, *, fresh: bool = False) -> Json:
        """Return one issue or pull request. ``fresh``: it was just opened and may not be visible yet. Raises Gone."""

    def comments(self, number: int) -> list[Json]:
        """Return all comments of an issue, oldest first."""

    def timeline(self, number: int) -> list[Json]:
        """Return everything that happened to an issue, including comments, oldest first."""

    def comment(self, comment_id: int) -> Json:
        """Return one comment on an issue. Raises Gone."""

    def permission(self, login: str) -> str:
        """Return the current permission of an account: ``admin``, ``write``, ``read`` or ``none``."""


class Forge(Reader, Protocol):
    """Reads issues, and makes the few writes."""

    def create_comment(self, number: int, text: str) -> OwnComment:
        """Write a comment. After Unreachable it may exist all the same."""

    def update_comment(self, comment_id: int, text: str) -> OwnComment:
        """Replace the text of a comment. Raises Gone if somebody deleted it."""

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment with its edit history. Raises Gone if it was deleted already."""

    def react(self, comment_id: int, content: str) -> None:
        """Add a reaction such as ``eyes`` to a comment; adding it twice changes nothing."""

    def fold(self, node_id: str, *, folded: bool) -> None:
        """Minimize a comment as outdated, or show it again."""
