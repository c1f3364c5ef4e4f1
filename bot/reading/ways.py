"""Ways of saying one thing: the phrases of a rule, and the quick test that spares most sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIGIT = re.compile("[0-9]")


@dataclass(frozen=True)
class Ways:
    """Ways of saying one thing, as regular expressions for re.IGNORECASE.

    Every sentence that one of them fits holds one of ``stems`` (in lower case; none are for no test) and, with
    ``numbered``, a digit: most sentences are passed over by that quick test.
    """

    name: str
    stems: tuple[str, ...]
    phrases: tuple[str, ...]
    numbered: bool = False

    def may_stand_in(self, sentence: str) -> bool:
        """Whether it is worth looking for them."""
        if self.numbered and not _DIGIT.search(sentence):
            return False
        lowered = sentence.lower()
        return not self.stems or any(stem in lowered for stem in self.stems)


LINK = r"(?:\b(?:PR|pull request|pull|issue|commit|bug|ticket|patch)s? |(?:the|this|that) |[(\[` :-]){0,4}"
ISSUE_LINK = r"(?:\b(?:issue|bug|ticket)s? |(?:the|this|that) |[(\[` :-]){0,4}"
OPENER = (
    r"^(?:(?:and|so|yes|yeah|yep|ok|okay|triage|great|update|indeed|ah|oh|hi|hey|thanks|thank you|closing|cool"
    r"|well)"
    r"\b[,:!.;-]? ?){0,3}"
)
