"""References in the text of an issue or comment from which GitHub makes events."""

from __future__ import annotations

import re

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
NUMBER = re.compile(r"(?<![\w/#])#(\d{1,9})\b", re.ASCII)
URL = re.compile(r"https://(?:www\.)?github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d{1,9})\b", re.ASCII)
"""Links to other hosts, such as ``redirect.github.com``, make no backlink."""
DUPLICATE = re.compile(r"^Duplicate of #(\d{1,9})\b", re.ASCII | re.IGNORECASE | re.MULTILINE)


def find_mentions(text: str, full_name: str) -> list[int]:
    """The numbers of this repository's issues to which the text links, outside of code."""
    plain = CODE.sub("", text)
    here = [int(number) for number in NUMBER.findall(plain)]
    return here + [int(number) for name, number in URL.findall(plain) if name.lower() == full_name.lower()]


def duplicate_of(text: str) -> int | None:
    """The issue that a comment names in "Duplicate of #N" at the start of a line."""
    match = DUPLICATE.search(text)
    return int(match[1]) if match else None
