"""What the rest asks of the forge; `bot.github.client.GitHubClient` answers, `DryForge` reads only."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple, Protocol

from bot.github.errors import ForgeError
from bot.github.threads import OwnComment

Json = dict[str, Any]
PER_PAGE = 100
"""What GitHub gives at most in one answer to a read."""


def object_in(value: object) -> dict[str, Any]:
    """``value`` where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_in(value: object) -> list[dict[str, Any]]:
    """The objects in ``value`` where it is a list, else none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


class Rate(NamedTuple):
    """How many of this hour's requests are left, of how many, and when the hour is over."""

    left: int
    limit: int
    anew: datetime | None


class Reader(Protocol):
    """Reading issues, each call one page of a hundred or as many as asked for."""

    @property
    def rate(self) -> Rate | None:
        """What is left of this hour's requests, by the newest answer; None where nothing is known of it."""

    @property
    def troubles(self) -> tuple[ForgeError, ...]:
        """Why nothing more is to be asked for in this run, of one kind or at all; empty while all can be."""

    def apply_limit(self, error: ForgeError) -> None:
        """Take in what somebody else was told by GraphQL: after a limit, or with a dead token, it is asked no more."""

    def issues_since(self, since: datetime | None, pages: int) -> tuple[list[Json], bool]:
        """Issues and pull requests changed since then, oldest change first, and whether these are all."""

    def comments_since(self, since: datetime, pages: int) -> tuple[list[Json], bool]:
        """Comments on any issue changed since then, oldest change first, and whether these are all."""

    def issue(self, number: int, *, fresh: bool = False) -> Json:
        """One issue or pull request; raises Gone. ``fresh``: opened a moment ago, it may not be shown yet."""

    def comments(self, number: int) -> list[Json]:
        """All comments of an issue, oldest first."""

    def timeline(self, number: int) -> list[Json]:
        """Everything that happened to an issue, its comments among it, oldest first."""

    def comment(self, comment_id: int) -> Json:
        """One comment on an issue; raises Gone."""

    def permission(self, login: str) -> str:
        """``admin``, ``write``, ``read`` or ``none``, as the API says at this moment."""


class Forge(Reader, Protocol):
    """Reading, and the few writes."""

    def create_comment(self, number: int, text: str) -> OwnComment:
        """Write a comment; after Unreachable it may stand all the same."""

    def update_comment(self, comment_id: int, text: str) -> OwnComment:
        """Replace the text of a comment; raises Gone when a person deleted it."""

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment, with all that it said before it was edited; raises Gone when somebody was first."""

    def react(self, comment_id: int, content: str) -> None:
        """Put a reaction on a comment, such as ``eyes``; the same one twice is one."""

    def fold(self, node_id: str, *, folded: bool) -> None:
        """Fold a comment as outdated, or unfold it."""
