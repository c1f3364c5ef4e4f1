"""Scripts without spaces, and where a text in one may be cut: after its punctuation, as others are after a space."""

from __future__ import annotations

import re

UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts that put no spaces between words, for a class of a regular expression: Thai, Lao, Burmese, Khmer, kana and
Han."""

HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
"""Korean has spaces, but endings and particles cling to its words."""

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
