"""Reads which issue the first prompt of an agent's session asks to work on."""

from __future__ import annotations

import re

from bot.reading.references import GITHUB, find_references

_LEAD = 300
"""Characters of a prompt in which its issue has to stand."""

_READ = 2_000
"""Characters in which no other issue may stand."""

_MAX_HOSTS = 4
_WORTH = re.compile(r"#[0-9]|/issues/[0-9]|/pull/[0-9]")
_HOST = re.compile(r"https?://([A-Za-z0-9.-]{1,253})/")
_PLACE = r"(?:#|/issues/|/pull/){number}(?![0-9])"
_NAME = re.compile(r"(?:\S*[/@]\S*|\b(?:the|this|that|our|issue|issues|bug|ticket|pr|pull|request)\b|[\s(\[<\"'`*]+)\Z")
_PASSING = re.compile(
    r"\b(?:like|like in|as in|as with|similar to|unlike|see|see also|cf\.?|e\.g\.?|since|after|before|until|from|than"
    r"|by|not|introduced in|regression in|regression of|related to|follow-?up to|and|or|in addition to|instead of)\Z",
    re.IGNORECASE,
)


def subject_of(prompt: str) -> str:
    """Return the issue or pull request that a prompt is about, as ``#42`` or ``owner/name#42``; "" without one.

    It is the only one that the prompt names, and stands near its beginning. One that is named in passing ("like in
    #42", "see #42") is none.
    """
    text = prompt[:_READ]
    if not _WORTH.search(text[:_LEAD]):
        return ""
    hosts = tuple(dict.fromkeys(_HOST.findall(text)))[:_MAX_HOSTS]
    found = [each for each in find_references(text, hosts=hosts or GITHUB) if each.kind is None]
    if len(found) != 1:
        return ""
    one = found[0]
    place = re.search(_PLACE.format(number=one.number), text[:_LEAD])
    if place is None or _is_in_passing(text[: place.start()]):
        return ""
    return f"{one.owner}/{one.repo}#{one.number}" if one.owner else f"#{one.number}"


def _is_in_passing(before: str) -> bool:
    line = before.rpartition("\n")[2]
    while cut := _NAME.search(line):
        line = line[: cut.start()]
    return _PASSING.search(line) is not None
