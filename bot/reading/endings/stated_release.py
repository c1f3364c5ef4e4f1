"""Reads in which release the fix of a closed issue comes, according to whoever closed it or a maintainer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from bot.domain.thread import Thread
from bot.reading.versions import Version, read_version

_STATED = re.compile(
    r"\b(?:(?:fixed|released|resolved|available) in|(?:will be|is) (?:part of|in)) (?:version )?(v?\d[\w.-]{0,30}\w)",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StatedRelease:
    """A release that somebody named: its version as written (``text``), and who said it when, in which words."""

    text: str
    version: Version
    at: datetime
    by: str
    quote: str


def stated_release(thread: Thread) -> StatedRelease | None:
    """The release with the fix of a closed thread, according to whoever closed it or a maintainer."""
    if not thread.is_closed:
        return None
    for comment in reversed(thread.comments):
        found = _STATED.search(comment.text) if comment.by_maintainer or comment.author == thread.closed_by else None
        version = read_version(found[1]) if found else None
        if found and version:
            return StatedRelease(found[1], version, comment.created_at, comment.author, found[0])
    return None
