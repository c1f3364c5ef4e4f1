"""How an index is laid out: what has to be known of it before any of it is read."""

from __future__ import annotations

from dataclasses import dataclass

LAYOUT = 3
"""The layout of an index and of the digests beside it: one more with each change after which what was written before
it cannot be read, or says something else than this version would. The manifest has it, 0 where it was written before
there was such a number."""

PARTS_FOLDER = "parts"
"""Where in the folder of an index the parts lie that are here."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a segment in one file and a part become.

    ``documents``: a segment of more is written in parts; above that, most of what an event fetched it would not read.
    ``rows`` and ``entries``: documents whose numbers and codes, and whose entries, are in one part: the candidates of a
    question are scattered over all of history. ``bucket``: bytes that the lists in one bucket have together, about.
    ``heavy``: bytes of a list from which it lies alone: who wants another one of its bucket is not to fetch it.
    """

    documents: int = 16_384
    rows: int = 8_192
    entries: int = 64
    bucket: int = 24_000
    heavy: int = 8_000


USUAL = Sizes()
