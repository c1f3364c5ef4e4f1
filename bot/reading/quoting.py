"""Which one or two sentences of a comment are quoted as the ending of a thread."""

from __future__ import annotations

from collections.abc import Iterator

from bot.reading import phrases

MAX_QUOTE = 300
"""Longest quote, in characters."""


def quote_of(said: tuple[str, ...], stated: int | None) -> str:
    """The sentence that states the ending (else the one that speaks of closing, else the first) and a neighbour.

    ``said`` are the sentences of the comment, ``stated`` is the place of the one that states it. At most 300
    characters, "" for no sentences.
    """
    if not said:
        return ""
    speaks = next((i for i, sentence in enumerate(said) if phrases.CLOSING.search(sentence)), None)
    at = stated if stated is not None else speaks if speaks is not None else 0
    best = said[at]
    if pair := next((pair for pair in _pairs(said, at) if len(pair) <= MAX_QUOTE), ""):
        return pair
    return best if len(best) <= MAX_QUOTE else best[: MAX_QUOTE - 1].rstrip() + "\u2026"


def _pairs(said: tuple[str, ...], at: int) -> Iterator[str]:
    """The sentence with the one after it or before it. What a colon announces was code or a picture, and is not there.

    What stands before says more than an invitation to come back.
    """
    best, after = said[at], said[at + 1] if at + 1 < len(said) else ""
    before = said[at - 1] if at else ""
    follows = bool(after) and not best.endswith(":") and not after.endswith(":")
    invites = bool(phrases.INVITATION.match(after))
    if follows and not invites:
        yield f"{best} {after}"
    if before and not before.endswith(":"):
        yield f"{before} {best}"
    if follows and invites:
        yield f"{best} {after}"
