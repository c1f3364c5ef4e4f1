"""Why a thread is shown as similar, in the words that every door gives."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The reasons for a match; those with a space at their end go on with what both have."""

    TEXT = "same text"
    TITLE = "same title"
    ERROR = "same error "
    FILE = "same file "
    NAMES = "both name "
    PHRASE = "both titles say "
    WORDS = "words in common: "
