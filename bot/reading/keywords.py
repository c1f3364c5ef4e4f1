"""What a text puts its finger on: quoted words, errors, and the names of files and parts."""

from __future__ import annotations

import re

from bot.reading.signals import find_errors, find_files, find_identifiers, strip_boilerplate, without_addresses

MAX_KEYWORDS = 40
LONGEST = 160

_QUOTED = re.compile(
    r"`([^`\n]{2,160})`|\"([^\"\n]{2,160})\"|\u201c([^\u201d\n]{2,160})\u201d|\u00ab([^\u00bb\n]{2,160})\u00bb"
)
_TROUBLE = re.compile(
    r"\b(?:error|exception|crash(?:e[sd])?|fails? with|says|panic(?:ked)?)\b:? ?([^\n]{3,80})", re.IGNORECASE
)


def quotations(text: str) -> tuple[str, ...]:
    """What stands in quotation marks or as code on one line, in order, each once, at most MAX_KEYWORDS."""
    found = (next(filter(None, match.groups())).strip() for match in _QUOTED.finditer(text))
    return tuple(dict.fromkeys(one for one in found if one))[:MAX_KEYWORDS]


def keywords(text: str) -> tuple[str, ...]:
    """What to look for in place of a whole text: quotations, error messages, words behind "error" or "crash", names of
    files and identifiers; the strongest first, each at most LONGEST characters, at most MAX_KEYWORDS."""
    told = without_addresses(strip_boilerplate(text))
    behind = (match[1].strip() for match in _TROUBLE.finditer(told))
    found = dict.fromkeys((*find_errors(told), *quotations(told), *behind, *find_identifiers(told), *find_files(told)))
    return tuple(one[:LONGEST] for one in found if one)[:MAX_KEYWORDS]
