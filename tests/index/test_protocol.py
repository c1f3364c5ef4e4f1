"""The number of the index's layout is raised with every change of what an index holds."""

from __future__ import annotations

import hashlib

from bot.index.protocol import LAYOUT, VECTOR_FIELDS
from bot.index.whoosh.codec import KINDS, LETTERS, NUMBERS

LAYOUTS = {
    1: "157cce3bc35432f3",
    2: "157cce3bc35432f3",
    3: "157cce3bc35432f3",
    4: "157cce3bc35432f3",
    5: "99ce84edebb8e494",
}
"""Each number that there was, and the fingerprint of its fields. A change of them is a new line here, with a new number
in `bot/index/protocol.py`: a line that is here stands for indexes that lie on branches, and stays as it is. The index
of 2 has the fields of 1; the digests beside it tell endings and summaries otherwise. So has that of 3, beside which
they tell what is only claimed to be a fix. Entries of 4 have a role, which messages use. 5 knows discussions."""


def fingerprint() -> str:
    """Of the names and types of all fields, the order of those in parts, and what letters and kinds stand for."""
    columns = [("entry", "Pieces"), *((name, "Rows") for name in (*NUMBERS, *VECTOR_FIELDS))]
    fields = sorted(
        [
            *((name, "ColumnField", kind) for name, kind in columns),
            *((name, "TermsField", "NoneType") for name in LETTERS),
        ]
    )
    told = (
        fields,
        NUMBERS,
        VECTOR_FIELDS,
        sorted(LETTERS.items()),
        sorted((kind.value, code) for kind, code in KINDS.items()),
    )
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def test_an_index_with_other_fields_has_another_number() -> None:
    assert max(LAYOUTS) == LAYOUT
    assert LAYOUTS[LAYOUT] == fingerprint(), "the fields of the index changed: raise LAYOUT, and add its line here"
