"""Finds what the text of a release says about upgrading to it."""

from __future__ import annotations

import re

from bot.reading.pages import first_sentences, sections

_HEADING = re.compile(
    r"\b(?:breaking|incompatible|upgrad(?:e|es|ing)|migrat(?:e|ing|ions?)|update notes?|before you update)\b",
    re.IGNORECASE,
)


def upgrade_note(release: str) -> str:
    """The first sentences below the first heading about upgrading or breaking changes, "" if there are none."""
    for section in sections(release):
        if section.path and _HEADING.search(section.path[-1]) and (told := first_sentences(section)):
            return told
    return ""
