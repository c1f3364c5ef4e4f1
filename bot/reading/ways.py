"""Ways of saying one thing: the phrases of a rule, and the quick test that spares most sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Ways:
    """Ways of saying one thing, as regular expressions for re.IGNORECASE.

    With ``numbered`` every sentence that one of them fits holds a digit: others are passed over by that quick test.
    """

    name: str
    phrases: tuple[str, ...]
    numbered: bool = False

    def may_stand_in(self, sentence: str) -> bool:
        """Whether it is worth looking for them."""
        return not self.numbered or bool(_DIGIT.search(sentence))


LINK = r"(?:\b(?:PR|pull request|pull|issue|commit|bug|ticket|patch)s? |(?:the|this|that) |[(\[` :-]){0,4}"
ISSUE_LINK = r"(?:\b(?:issue|bug|ticket)s? |(?:the|this|that) |[(\[` :-]){0,4}"
OPENER = (
    r"^(?:(?:and|so|yes|yeah|yep|ok|okay|triage|great|update|indeed|ah|oh|hi|hey|thanks|thank you|closing|cool"
    r"|well)"
    r"\b[,:!.;-]? ?){0,3}"
)
