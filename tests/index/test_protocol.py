"""The number of the index's layout is raised with every change to the contents of an index."""

from __future__ import annotations

import hashlib

from bot.index.protocol import LAYOUT_VERSION
from bot.index.whoosh.codec import FIELD_LETTERS, KIND_NUMBERS, NUMBER_COLUMNS, VECTOR_COLUMN

FINGERPRINT = (12, "d9b6a7d22a66401d")
"""The number of the layout, and the fingerprint of its fields."""


def fingerprint() -> str:
    """A hash of the names and types of all fields, their order in parts, and the meaning of letters and kinds."""
    columns = [("entry", "Pieces"), *((name, "Rows") for name in (*NUMBER_COLUMNS, VECTOR_COLUMN))]
    fields = [*((name, "ColumnField", kind) for name, kind in columns)]
    fields += [(name, "TermsField", "NoneType") for name in FIELD_LETTERS]
    kinds = sorted((kind.value, code) for kind, code in KIND_NUMBERS.items())
    layout = (sorted(fields), NUMBER_COLUMNS, VECTOR_COLUMN, sorted(FIELD_LETTERS.items()), kinds)
    return hashlib.sha256(repr(layout).encode()).hexdigest()[:16]


def test_an_index_with_other_fields_has_another_number() -> None:
    assert (LAYOUT_VERSION, fingerprint()) == FINGERPRINT, (
        "the fields changed: raise LAYOUT_VERSION, and note both here"
    )
