"""Wishes and fixes for the tests of memory, short to write and in any number."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from bot.domain.changes import FixInfo, Request
from bot.domain.thread import ThreadId
from tests.memory.samples import at

NAMES = ("search", "wrong", "off", "on", "help")


def wish(key: ThreadId, comment_id: int, name: str = "search", **rest: Any) -> Request:
    """A wish that octocat had an hour after the comment's number."""
    values: dict[str, Any] = {"by": "octocat", "at": at(comment_id / 100), **rest}
    return Request(key, comment_id, name, **values)


def fix(key: ThreadId, hours: float = 1, **rest: Any) -> FixInfo:
    return FixInfo(key, "#9", at(hours), **rest)


def _any_wish(comment_id: int, state: str, tried: int | None, reply: int | None) -> Request:
    """What a comment says never changes; what became of it does."""
    return wish(
        comment_id % 3 + 1,
        comment_id,
        NAMES[comment_id % 5],
        by=("octocat", "hubot", "Monalisa")[comment_id % 7 % 3],
        at=at(comment_id / 10),
        about=(comment_id,) if comment_id % 5 == 1 else (),
        state=state,
        trying_since=None if tried is None else at(tried),
        reply_id=reply,
    )


ANY_WISH = st.builds(
    _any_wish,
    st.integers(1, 40),
    st.sampled_from(["pending", "done", "refused"]),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(1, 9),
)
ANY_FIX = st.builds(
    lambda key, hours, release: fix(key, hours, release=release),
    st.integers(1, 3),
    st.integers(0, 4),
    st.none() | st.sampled_from(["v1", "v2"]),
)
