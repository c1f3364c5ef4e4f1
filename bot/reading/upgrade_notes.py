"""Finds what the text of a release says about upgrading to it."""

from __future__ import annotations

import re

from bot.reading.pages import first_sentences, sections

_HEADING = re.compile(
    r"\b(?:breaking|incompatible|upgrad(?:e|es|ing)|migrat(?:e|ing|ions?)|update notes?|before you update)\b",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"\W*(?:no\b(?! (?:longer|more)\b)|none\b(?! of\b)|nothing\b|n/?a\b"
    r"|not (?:applicable|needed|necessary|required)\b)",
    re.IGNORECASE,
)
"""The beginning of words that say that there is nothing to do."""


def upgrade_note(release: str) -> str:
    """The first sentences below the first heading about upgrading or breaking changes, "" if there are none or they say
    that there is nothing to do."""
    for section in sections(release):
        heading = section.path[-1] if section.path else ""
        if not _HEADING.search(heading) or _NONE.match(heading):
            continue
        if (told := first_sentences(section)) and not _NONE.match(told):
            return told
    return ""
