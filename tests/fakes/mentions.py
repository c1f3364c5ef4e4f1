"""What a text of an issue or comment refers to, in so far as GitHub makes events of it."""

from __future__ import annotations

import re

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
NUMBER = re.compile(r"(?<![\w/#])#(\d{1,9})\b", re.ASCII)
URL = re.compile(r"https://(?:www\.)?github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d{1,9})\b", re.ASCII)
"""Other hosts make no backlink, ``redirect.github.com`` least of all."""
DUPLICATE = re.compile(r"^Duplicate of #(\d{1,9})\b", re.ASCII | re.IGNORECASE | re.MULTILINE)


def mentioned(text: str, full_name: str) -> list[int]:
    """The numbers of this repository's issues that the text links to, outside of code."""
    plain = CODE.sub("", text)
    here = [int(number) for number in NUMBER.findall(plain)]
    return here + [int(number) for name, number in URL.findall(plain) if name.lower() == full_name.lower()]


def duplicate_of(text: str) -> int | None:
    """The issue that a comment names as the one it duplicates, with the phrase at the start of a line."""
    found = DUPLICATE.search(text)
    return int(found[1]) if found else None
