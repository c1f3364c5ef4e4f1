"""Finds the issue that the first prompt of an agent's session asks to work on."""

from __future__ import annotations

import re

from bot.domain.hosts import GITHUB_HOSTS
from bot.reading.references import find_references

_LEAD_CHARS = 300
"""The issue must be named within this many characters."""

_MAX_READ_CHARS = 2_000
"""No other issue may be named within this many characters."""

_MAX_HOSTS = 4
_MAY_NAME_ISSUE = re.compile(r"#[0-9]|/issues/[0-9]|/pull/[0-9]")
_HOST = re.compile(r"https?://([A-Za-z0-9.-]{1,253})/")
_MENTION = r"(?:#|/issues/|/pull/){number}(?![0-9])"
_NAMING_WORDS = re.compile(
    r"(?:\S*[/@]\S*|\b(?:the|this|that|our|issue|issues|bug|ticket|pr|pull|request)\b|[\s(\[<\"'`*]+)\Z"
)
_PASSING_WORDS = re.compile(
    r"\b(?:like|like in|as in|as with|similar to|unlike|see|see also|cf\.?|e\.g\.?|since|after|before|until|from|than"
    r"|by|not|introduced in|regression in|regression of|related to|follow-?up to|and|or|in addition to|instead of)\Z",
    re.IGNORECASE,
)


def subject_of(prompt: str) -> str:
    """Return the issue or pull request that a prompt is about, as ``#42`` or ``owner/name#42``; "" without one.

    It must be the only one that the prompt names, and near its beginning. One named in passing ("like in #42", "see
    #42") does not count.
    """
    text = prompt[:_MAX_READ_CHARS]
    if not _MAY_NAME_ISSUE.search(text[:_LEAD_CHARS]):
        return ""
    hosts = tuple(dict.fromkeys(_HOST.findall(text)))[:_MAX_HOSTS]
    references = [each for each in find_references(text, hosts=hosts or GITHUB_HOSTS) if each.kind is None]
    if len(references) != 1:
        return ""
    reference = references[0]
    mention = re.search(_MENTION.format(number=reference.number), text[:_LEAD_CHARS])
    if mention is None or _is_in_passing(text[: mention.start()]):
        return ""
    return f"{reference.owner}/{reference.repo}#{reference.number}" if reference.owner else f"#{reference.number}"


def _is_in_passing(before: str) -> bool:
    line = before.rpartition("\n")[2]
    while match := _NAMING_WORDS.search(line):
        line = line[: match.start()]
    return _PASSING_WORDS.search(line) is not None
