"""The sentences of a thread that state what was decided, by the phrases that people decide with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.model import MAINTAINER_ROLES, Decision, Message, Thread
from bot.reading.statements import statements

_MAX_DECISIONS = 3
_MAX_DECISION = 240


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_WHO = "we|they|team|group|meeting|it was|was|been|have|has"
_DECIDED = "decided|agreed|concluded|chosen|chose|picked|selected|opted|resolved|settled"
DECISION = _any(
    rf"\b(?:{_WHO}) (?:(?:have|has|had|all|just|now|finally|recently) )?(?:{_DECIDED}) "
    r"(?:on|to|not|against|that|for|in)\b",
    r"\b(?<!\bi )decided (?:to|not|on|against|that)\b",
    r"\bagreed (?:on|to|that)\b",
    r"\b(?:settled on|opted for|going with)\b",
    r"\b(?:the|our|my|final) (?:conclusion|consensus|decision|resolution|agreement|verdict) (?:is|was|here|of)\b",
    r"\b(?:conclusion|consensus|decision|resolution)\s?:",
    r"\bconsensus (?:is|was|to|that|on|for|around)\b",
    r"\b(?:we|we're|we are|we'll|we will|i'll|i'm|let's|lets|let us) (?:go|going) (?:with|for|ahead with)\b",
    r"\b(?:we|i) (?:chose|selected|picked|went with|adopted|rejected)\b",
    r"\bwe (?:will not|won't|are not going to|aren't going to)\b(?! (?:be able|know|get|see)\b)",
    r"\bwe don't (?:plan|want|intend) to\b",
    r"\bwon'?t ?fix\b",
    r"\b(?:was|were|been) (?:decided|agreed|rejected|approved|accepted|chosen|selected)\b",
)
"""What a sentence holds that states a decision."""

QUESTION = _any(r"\?[\s)\"']*$")

HEDGE = _any(
    r"^if\b",
    r"\b(?:if|unless|until|before|once|whether|should|could|would|might|may) (?:we|it|they|you|the team|i)\b",
    r"\b(?:probably|possibly|perhaps|maybe|not sure|would be|sounds)\b",
    r"\b(?:not|never|yet to|haven't|hasn't|no) (?:yet )?(?:been )?(?:decided|agreed|settled|chosen|concluded)\b",
    r"\bno (?:clear )?(?:consensus|decision|conclusion|agreement)\b",
)
"""What a sentence holds, up to the decision phrase, that only speaks of a decision."""

_DECISION_STEMS = (
    *("decided", "decision", "agreed", "agreement", "conclu", "consensus", "chose", "picked", "selected", "opted"),
    *("resolved", "resolution", "settled", "verdict", "go with", "going with", "go ahead", "going ahead", "went with"),
    *("go for", "going for", "adopted", "rejected", "approved", "accepted"),
    *("we will not", "we won't", "wontfix", "wont fix", "won't fix", "won'tfix"),
    *("we don't plan", "we don't want", "we don't intend", "we are not going", "we aren't going"),
)


def may_decide(text: str) -> bool:
    """Whether it is worth looking for a decision in ``text``: a fast test that most texts fail."""
    lowered = text.lower()
    return any(stem in lowered for stem in _DECISION_STEMS) and bool(DECISION.search(text))


def decisions(thread: Thread) -> tuple[Decision, ...]:
    """At most three, in order of time: where there are more, maintainers' before others' and later before earlier."""
    opening = Message(thread.author, thread.role, thread.created_at, thread.body, is_bot=thread.is_bot)
    found = [d for index, said in enumerate((opening, *thread.comments), -1) for d in _decided(said, index)]
    if len(found) > _MAX_DECISIONS:
        ranked = sorted(range(len(found)), key=lambda i: (found[i].role in MAINTAINER_ROLES, i), reverse=True)
        found = [found[i] for i in sorted(ranked[:_MAX_DECISIONS])]
    return tuple(found)


def _decided(said: Message, index: int) -> Iterator[Decision]:
    """The decisions in one message, which stands at ``index`` of the comments, -1 for the opening text."""
    if said.is_bot or not may_decide(said.text):
        return
    place = None if index < 0 else index
    for sentence in statements(said.text):
        if _states_decision(sentence):
            text = sentence if len(sentence) <= _MAX_DECISION else sentence[: _MAX_DECISION - 1] + "…"
            yield Decision(text, said.author, said.role, said.created_at, place, said.id)


def _states_decision(sentence: str) -> bool:
    """A decision phrase that nothing before it takes back; what follows it may be reasons."""
    found = DECISION.search(sentence)
    if found is None or QUESTION.search(sentence):
        return False
    return not HEDGE.search(sentence[: found.end()])
