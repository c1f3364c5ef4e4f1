"""What one sentence says about how a thread ended, and the reasons of such verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bot.model import OutcomeKind, ThreadId
from bot.reading import phrases

_NUMBER = re.compile(r"\d{1,9}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a piece of evidence says of an ending, with a confidence in 0..1.

    ``sentence`` is the place of the sentence that says so, None for events. ``explicit`` words point at another thread
    or a commit and are believed however long before the closing they were said.
    """

    kind: OutcomeKind
    evidence: tuple[str, ...]
    confidence: float
    fix: str | None = None
    duplicate_of: ThreadId | None = None
    sentence: int | None = None
    explicit: bool = False


def verdicts(sentence: str, own: ThreadId) -> list[Verdict | None]:
    """What ``sentence`` of thread ``own`` says of each kind of ending, None where nothing; the surest kind first.

    Questions, wishes and denials say nothing.
    """
    if sentence.rstrip(" )*_").endswith("?"):
        return [None] * len(_RULES)
    return [rule(sentence, own) for rule in _RULES]


def short_reference(reference: str) -> str:
    """A reference as a reader would write it: of a link only the number or the SHA."""
    if "://" not in reference:
        return reference
    last = reference.rsplit("/", 1)[1]
    return last if "/commit/" in reference else f"#{last}"


def _duplicate_of(sentence: str, own: ThreadId) -> Verdict | None:
    found = phrases.DUPLICATE_OF.search(sentence)
    number = _NUMBER.search(found["of"]) if found else None
    if not found or not number or int(number[0]) == own or phrases.HEDGE.search(sentence[: found.start()]):
        return None
    kind = OutcomeKind.DUPLICATE
    return Verdict(kind, ("names the duplicate",), 0.95, duplicate_of=int(number[0]), explicit=True)


def _fixed_by(sentence: str, own: ThreadId) -> Verdict | None:
    found = phrases.FIXED_BY.search(sentence)
    if not found or phrases.HEDGE.search(sentence):
        return None
    fix = short_reference(found["by"] or found["this"])
    return None if fix == f"#{own}" else Verdict(OutcomeKind.FIXED, ("names the fix",), 0.95, fix=fix, explicit=True)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule that goes by a phrase alone; ``certain`` says that a hedge anywhere in the sentence undoes it."""

    kind: OutcomeKind
    pattern: re.Pattern[str]
    evidence: str
    confidence: float
    certain: bool = False

    def __call__(self, sentence: str, _: ThreadId) -> Verdict | None:
        if not self.pattern.search(sentence) or (self.certain and phrases.HEDGE.search(sentence)):
            return None
        return Verdict(self.kind, (self.evidence,), self.confidence)


_RULES: tuple[Callable[[str, ThreadId], Verdict | None], ...] = (
    _duplicate_of,
    _Rule(OutcomeKind.DUPLICATE, phrases.DUPLICATE, "called a duplicate", 0.85, certain=True),
    _fixed_by,
    _Rule(OutcomeKind.NOT_PLANNED, phrases.NOT_PLANNED, "said not to be planned", 0.85),
    _Rule(OutcomeKind.STALE, phrases.STALE, "said to be out of date", 0.85),
    _Rule(OutcomeKind.ANSWERED, phrases.ANSWERED, "said to be as intended", 0.8),
    _Rule(OutcomeKind.WORKAROUND, phrases.WORKAROUND, "gives a workaround", 0.75),
    _Rule(OutcomeKind.FIXED, phrases.FIXED, "said to be fixed", 0.85, certain=True),
)
