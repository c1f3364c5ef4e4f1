"""Text as a reader gets it: nothing hidden in it, no more than can be read, and nobody posing as somebody else."""

from __future__ import annotations

import json
from typing import Any

from bot.comment.pack import visible

MOST = 100_000
"""Characters of an answer, of its data and of its text each."""

INDENT = "    "
"""Before each line that other people wrote: no line that is indented so far is one of ours."""

_LEFT_OUT = "left out, for the answer would be too long: narrow the search, or ask for fewer"


def plain(value: Any) -> Any:
    """The same with every text in it as a person sees it: no comments of HTML, nothing invisible or turned around."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def indented(text: str) -> str:
    """The text with each of its lines indented."""
    lines = (line.rstrip() for line in visible(text).strip().split("\n"))
    return "".join(f"{INDENT}{line}\n" if line else "\n" for line in lines)


def bounded(data: dict[str, Any], most: int = MOST) -> dict[str, Any]:
    """The same within so many characters of JSON: of its longest list the last are left out, which is noted."""
    dropped = 0
    lists = {name: value for name, value in data.items() if isinstance(value, list) and name != "notes"}
    sizes = {name: [_size(each) for each in value] for name, value in lists.items()}
    room = most - _size(data) - len(_LEFT_OUT) - 20
    kept = {name: list(value) for name, value in lists.items()}
    while room < 0 and any(sizes.values()):
        longest = max(sizes, key=lambda name: sum(sizes[name]))
        room += sizes[longest].pop() + 2
        kept[longest].pop()
        dropped += 1
    if not dropped:
        return data
    return data | kept | {"notes": [*data.get("notes", []), f"{dropped} {_LEFT_OUT}"]}


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))
