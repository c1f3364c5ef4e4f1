"""The formats of a branch: which of them this version reads, and the one line that it has for any other.

A format is raised only where an earlier version would read what is written wrongly, or lose some of it; what is merely
added is read as absent where it is absent (tests/upgrades holds both).
"""

from __future__ import annotations

from bot.memory.store import StoreError

FORMATS = {1: "records, digests, answers; and wishes, fixes, pages and a layout of the index, where there are any"}
"""Each format that this version reads → what it is. An older one is written as the newest by the write after it."""

FORMAT = max(FORMATS)
"""What this version writes."""

REMEDY = "raise the version in `uses:`, or where it is installed from a checkout, `git pull` there and install it again"
NO_FORMAT = "set the branch back to an older commit, or delete it and run a rebuild"

_LONGEST = 20


class ForeignFormat(StoreError):
    """A memory of a format that this version does not read: nothing of it is used, and nothing is written over it."""

    exit_code = 2


def checked(number: object) -> int:
    """The format that a manifest says it has, where this version reads it. Raises ForeignFormat for any other."""
    if isinstance(number, int) and not isinstance(number, bool):
        if number in FORMATS:
            return number
        if number > FORMAT:
            raise ForeignFormat(_cause(number, "a newer Precedent wrote"), REMEDY)
    raise ForeignFormat(_cause(number, "no Precedent writes"), NO_FORMAT)


def whole_number(digits: str) -> int | float:
    """A whole number of a JSON document; one with more digits than any of ours is infinite, and no reason to fail."""
    return int(digits) if len(digits) <= _LONGEST else float("-inf" if digits.startswith("-") else "inf")


def _cause(number: object, by: str) -> str:
    return f"the memory has format {_short(number)}, which {by}; this one reads up to {FORMAT}"


def _short(number: object) -> str:
    text = f"{number!a}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
