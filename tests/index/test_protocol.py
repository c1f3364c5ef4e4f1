"""The number of the index's layout is raised with every change to the contents of an index."""

from __future__ import annotations

import hashlib

from bot.index.protocol import LAYOUT_VERSION, VECTOR_FIELDS
from bot.index.whoosh.codec import FIELD_LETTERS, KIND_NUMBERS, NUMBER_COLUMNS

LAYOUTS = {
    1: "157cce3bc35432f3",
    2: "157cce3bc35432f3",
    3: "157cce3bc35432f3",
    4: "157cce3bc35432f3",
    5: "99ce84edebb8e494",
    6: "99ce84edebb8e494",
}
"""Every layout number so far, with the fingerprint of its fields. Changed fields need a new line here and a new
number in `bot/index/protocol.py`; old lines stand for indexes on existing branches and never change. 2 has the fields
of 1, but its digests have other outcomes and summaries. 3 has them too, but its digests mark fixes that are only
claimed. Entries of 4 have a role, which messages use. 5 supports discussions. Digests of 6 keep errors that
begin with ``Error:``."""


def fingerprint() -> str:
    """A hash of the names and types of all fields, their order in parts, and the meaning of letters and kinds."""
    columns = [("entry", "Pieces"), *((name, "Rows") for name in (*NUMBER_COLUMNS, *VECTOR_FIELDS))]
    fields = sorted(
        [
            *((name, "ColumnField", kind) for name, kind in columns),
            *((name, "TermsField", "NoneType") for name in FIELD_LETTERS),
        ]
    )
    layout = (
        fields,
        NUMBER_COLUMNS,
        VECTOR_FIELDS,
        sorted(FIELD_LETTERS.items()),
        sorted((kind.value, code) for kind, code in KIND_NUMBERS.items()),
    )
    return hashlib.sha256(repr(layout).encode()).hexdigest()[:16]


def test_an_index_with_other_fields_has_another_number() -> None:
    assert max(LAYOUTS) == LAYOUT_VERSION
    assert LAYOUTS[LAYOUT_VERSION] == fingerprint(), (
        "the fields of the index changed: raise LAYOUT_VERSION, and add its line here"
    )
