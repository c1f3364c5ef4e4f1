"""What stored values must look like: whatever has no such form is left out when a memory is read.

A memory is a branch that others may write. Quick to import, as every search from a shell needs it.
"""

from __future__ import annotations

MAX_WORD_CHARS = 120
_ENDS_WORD = frozenset(" \"'`<>|\\")


def one_word(value: object) -> str:
    """A reference, version, SHA or reason as it is; "" for anything else, such as a sentence or hidden characters."""
    is_word = isinstance(value, str) and len(value) <= MAX_WORD_CHARS and value.isprintable()
    return str(value) if is_word and _ENDS_WORD.isdisjoint(str(value)) else ""
