"""Where a text in a script without spaces may be cut: after its punctuation, as other texts are cut after a space."""

from __future__ import annotations

import re

EDGES = "，。；：！？、…」』）》】"
"""Full-width punctuation after which a text may be cut."""

MAX_BACKTRACK = 40
"""Most characters that are given up for a better place to cut."""

_UNFINISHED = " ，、；：（「『《【"
"""What says nothing before an ellipsis."""

_CUT_INSIDE_RUN = re.compile(r"[^\x00-\u2fff]{2}")


def nearest_edge(text: str, end: int) -> int:
    """The last place near ``end``, and not after it, that follows full-width punctuation; ``end`` if there is none, or
    if no run of characters without spaces would be cut there."""
    if not _CUT_INSIDE_RUN.match(text, max(end - 1, 0)):
        return end
    edge = max(text.rfind(mark, max(0, end - MAX_BACKTRACK), end) for mark in EDGES) + 1
    return edge or end


def cut_at_edge(text: str, limit: int) -> str:
    """At most ``limit`` characters, with an ellipsis for what is missing."""
    if len(text) <= limit:
        return text
    end = nearest_edge(text, limit - 1)
    kept = text[:end].rstrip()
    return (kept.rstrip(_UNFINISHED) if end < limit - 1 else kept) + "…"
