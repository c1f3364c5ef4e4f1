"""What one sentence says about how a thread ended: the rules, and their judgements."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from bot.domain.thread import OutcomeKind, ThreadId
from bot.reading.endings import answer_phrases, doubts, phrases, refusal_phrases
from bot.reading.endings.phrases import PhraseSet

_MAX_PLACES = 4
"""So many places of one sentence are judged: the words around each are read again."""

_REFERENCE = re.compile(phrases.REFERENCE, re.IGNORECASE)
_FIX = re.compile(rf"{phrases.REFERENCE}|{phrases.COMMIT}", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?://[^/\s]{1,100}/)?(?P<repo>[^/#\s]{1,100}/[^/#\s]{1,100})(?:/|#)", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}\Z", re.ASCII)
_VERSION = re.compile(phrases.VERSION, re.IGNORECASE)
_PASSIVELY = re.compile(r"\b(?:was|were|been|is|are|got) (?:\w{1,20} )?\Z", re.IGNORECASE)
_TAKEN_AWAY = ("removed", "deleted", "dropped")
_RELATIVE = re.compile(r"\b(?:that|which|who)\s*\Z", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:()]|\b(?:but|so|because|since|and|as)\b", re.IGNORECASE)
_SEEMING = re.compile(
    r"\b(?:(?:looks?|appears?|seems?|sounds?)(?: like| to be)?|(?:highly |very )?likely(?: to be)?|probably)\b",
    re.IGNORECASE,
)
"""How people call something a duplicate who are polite about it."""

_IS_COMMIT = re.compile(r"/commits?/[0-9a-f]+\Z", re.ASCII | re.IGNORECASE)
_IS_PULL = re.compile(r"\b(?:PR|pull)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a piece of evidence says of an ending, with a confidence in 0..1.

    ``sentence`` is the place of the sentence that says so, None for events. ``explicit`` words point at another thread
    or a commit and are believed however long before the closing they were said. ``claimed`` is a fix that has to be
    proven first.
    """

    kind: OutcomeKind
    evidence: tuple[str, ...]
    confidence: float
    fix: str | None = None
    claimed: str | None = None
    release: str | None = None
    duplicate_of: ThreadId | None = None
    sentence: int | None = None
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class SentenceContext:
    """Who says something where: in thread ``own`` of ``repo`` (OWNER/NAME, None when that is not known).

    ``at_closing`` says that the thread was closed with these words, ``near`` that it was closed within a day.
    """

    own: ThreadId
    title: str = ""
    repo: str | None = None
    by_author: bool = False
    at_closing: bool = False
    near: bool = False


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """A phrase in a sentence, and where they stand."""

    text: str
    sentence: str
    before: str
    scene: SentenceContext

    @property
    def is_conditional(self) -> bool:
        """Whether what stands before the words makes a supposition or a denial of them."""
        return denies(self.before)

    @property
    def after(self) -> str:
        """What follows, without the invitation to come back and the release to come that many end with."""
        rest = self.sentence[len(self.before) + len(self.text) :]
        for end in (phrases.INVITATION, phrases.TO_BE_RELEASED):
            found = end.search(rest)
            rest = rest[: found.start()] if found else rest
        return rest

    @property
    def is_supposed(self) -> bool:
        """Whether doubt before the words or a condition after them make it a mere supposition."""
        return bool(_hedges(self.before + self.text) or phrases.AFTERWARDS.search(self.after))

    @property
    def is_doubted(self) -> bool:
        """Whether it is supposed, or doubted in the same clause; before the closing a "but" counts as doubt."""
        if self.is_supposed or phrases.HEDGE.search(_CLAUSE.split(self.after)[0]):
            return True
        return not self.scene.at_closing and bool(phrases.BUT.search(self.before + self.after))


def _hedges(text: str) -> bool:
    return bool(phrases.HEDGE.search(phrases.CLOSES_NOW.sub(" ", text)))


def denies(before: str) -> bool:
    """Whether words with ``before`` before them are only supposed, doubted or denied."""
    return bool(phrases.CONDITION.search(before) or phrases.DENIAL.search(_CLAUSE.split(before)[-1]))


Judge = Callable[[PhraseMatch], Judgement | None]

NO_FIX = Judgement(OutcomeKind.UNKNOWN, ("says that it is not fixed here",), 0.8)
"""Against events that make a fix probable: the words know better."""


def _believed(judge: Judge, found: PhraseMatch) -> Judgement | None:
    """What a rule says of words, but for those that are somebody's opinion, or are called a mistake."""
    verdict = judge(found)
    if verdict and verdict.kind is not OutcomeKind.UNKNOWN and doubts.is_mistaken(found.before, found.after):
        return NO_FIX if verdict.kind is OutcomeKind.FIXED else None
    return verdict


@dataclass(frozen=True)
class PhraseRule:
    """Ways of saying one thing, and what it says; ``judge`` has the last word on each place where one stands."""

    ways: PhraseSet
    judge: Judge

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Made at its first use: all rules' together take longer than a run has until it asks GitHub."""
        # An alternative with nothing in it would match everywhere; without any the rule never fires.
        return re.compile("|".join(self.ways.phrases) or r"(?!)", re.IGNORECASE)

    def __call__(self, sentence: str, scene: SentenceContext) -> Judgement | None:
        if not self.ways.may_stand_in(sentence):
            return None
        denied: Judgement | None = None
        for found in islice(self.pattern.finditer(sentence), _MAX_PLACES):
            verdict = _believed(self.judge, PhraseMatch(found[0], sentence, sentence[: found.start()], scene))
            if verdict and verdict.kind is not OutcomeKind.UNKNOWN:
                return verdict
            denied = denied or verdict
        return denied

    def without(self, left_out: frozenset[str]) -> PhraseRule:
        """The rule without some of its phrases, for measurements."""
        ways = self.ways
        return PhraseRule(replace(ways, phrases=tuple(way for way in ways.phrases if way not in left_out)), self.judge)


def _duplicate_of(found: PhraseMatch) -> Judgement | None:
    if _IS_PULL.search(found.text) or _hedges(_SEEMING.sub(" ", found.before)):
        return None
    reference = _REFERENCE.search(found.text)
    number = _number_here(reference[0], found.scene) if reference else None
    if number == found.scene.own:
        return None
    return Judgement(OutcomeKind.DUPLICATE, ("names the duplicate",), 0.95, duplicate_of=number, explicit=True)


def _same_as(found: PhraseMatch) -> Judgement | None:
    verdict = _duplicate_of(found) if found.scene.near else None
    return verdict and replace(verdict, confidence=0.85, explicit=False)


def _lasting(judge: Judge) -> Judge:
    """``judge``, and whether the fix that it names is one of ours and was not taken back."""

    def judged(found: PhraseMatch) -> Judgement | None:
        verdict, repo = judge(found), (found.scene.repo or "").rpartition("/")[2]
        if verdict is None or verdict.kind is not OutcomeKind.FIXED:
            return verdict
        return NO_FIX if doubts.is_no_fix(found.before, found.text, found.after, repo) else verdict

    return judged


@_lasting
def _fixed_by(found: PhraseMatch) -> Judgement | None:
    fix = _FIX.search(found.text)
    taken_away = found.text.lower().startswith(_TAKEN_AWAY) and _PASSIVELY.search(found.before)
    if not fix or found.is_supposed or (taken_away and not phrases.REMOVAL.search(found.scene.title)):
        return None
    named = _change_named(fix[0], found.scene)
    if named == f"#{found.scene.own}":
        return None
    return Judgement(OutcomeKind.FIXED, ("names the fix",), 0.95, fix=named, explicit=True)


@_lasting
def _released(found: PhraseMatch) -> Judgement | None:
    version = _VERSION.search(found.text)
    if not version or found.is_doubted:
        return None
    return Judgement(OutcomeKind.FIXED, ("names the release",), 0.9, release=version[0])


@_lasting
def _fixed(found: PhraseMatch) -> Judgement | None:
    return None if found.is_doubted else Judgement(OutcomeKind.FIXED, ("said to be fixed",), 0.85)


@_lasting
def _changed(found: PhraseMatch) -> Judgement | None:
    if not found.scene.at_closing or found.is_doubted:
        return None
    return Judgement(OutcomeKind.FIXED, ("says what was changed",), 0.75)


@_lasting
def _removed(found: PhraseMatch) -> Judgement | None:
    if not found.scene.near or found.is_conditional or _RELATIVE.search(found.before):
        return None
    if phrases.REMOVAL.search(found.scene.title):
        return None if found.is_doubted else Judgement(OutcomeKind.FIXED, ("said to be removed",), 0.75)
    # With a reference, or with no word on what, it may as well be the fault that was removed.
    if _FIX.search(found.sentence) or not found.before.strip():
        return None
    return Judgement(OutcomeKind.STALE, ("what it is about is gone",), 0.75)


def _mistaken(found: PhraseMatch) -> Judgement | None:
    if not (found.scene.by_author and found.scene.near):
        return None
    return _plain(OutcomeKind.ANSWERED, "the reporter's own mistake", 0.75)(found)


def _not_fixed(found: PhraseMatch) -> Judgement | None:
    return None if phrases.CONDITION.search(found.before) else NO_FIX


def _plain(kind: OutcomeKind, evidence: str, confidence: float) -> Judge:
    def judge(found: PhraseMatch) -> Judgement | None:
        if found.is_conditional:
            return None
        return Judgement(kind, (evidence,), confidence)

    return judge


def _number_here(reference: str, scene: SentenceContext) -> int | None:
    """The number of an issue of this repository, None for one of another."""
    number = _NUMBER.search(reference)
    return int(number[0]) if number and not _elsewhere(reference, scene) else None


def _elsewhere(reference: str, scene: SentenceContext) -> str:
    """The repository, as OWNER/NAME, that a reference names when it is another than this one, else "".

    ``owner/name#5`` is written to name another repository. A link may be either; without knowing where the thread is
    from it counts as one of this repository. A repository that changed hands keeps its name.
    """
    address = _ADDRESS.match(reference)
    if not address or not (scene.repo or "://" not in reference):
        return ""
    ours = (scene.repo or "/").rsplit("/", 1)[1].casefold()
    return "" if address["repo"].rsplit("/", 1)[1].casefold() == ours else address["repo"]


def _change_named(reference: str, scene: SentenceContext) -> str:
    """A change as a reader would write it: ``#57``, a SHA, and of another repository ``owner/name#57``, ``…@SHA``."""
    last, elsewhere = re.split(r"[#/-]", reference)[-1], _elsewhere(reference, scene)
    if last == reference or _IS_COMMIT.search(reference):
        return f"{elsewhere}@{last}" if elsewhere else last
    return f"{elsewhere}#{last}"


@dataclass(frozen=True)
class PhraseRules:
    """The rules that sentences are read by, the surest first.

    ``released`` is the one of them that reads versions; ``thanked`` reads what a reporter says of an answer.
    """

    stating: tuple[PhraseRule, ...]
    released: PhraseRule
    thanked: PhraseRule

    def without(self, left_out: frozenset[str]) -> PhraseRules:
        """The rules without some of their phrases, for measurements."""
        stating = tuple(rule.without(left_out) for rule in self.stating)
        return PhraseRules(stating, self.released.without(left_out), self.thanked.without(left_out))


_RELEASED = PhraseRule(phrases.RELEASED_IN, _released)
RULES = PhraseRules(
    (
        PhraseRule(answer_phrases.DUPLICATE_OF, _duplicate_of),
        PhraseRule(answer_phrases.SAME_AS, _same_as),
        PhraseRule(answer_phrases.DUPLICATE, _plain(OutcomeKind.DUPLICATE, "called a duplicate", 0.85)),
        PhraseRule(phrases.FIXED_BY, _fixed_by),
        _RELEASED,
        PhraseRule(refusal_phrases.NOT_PLANNED, _plain(OutcomeKind.NOT_PLANNED, "said not to be planned", 0.85)),
        PhraseRule(refusal_phrases.STALE, _plain(OutcomeKind.STALE, "said to be out of date", 0.85)),
        PhraseRule(answer_phrases.ANSWERED, _plain(OutcomeKind.ANSWERED, "said to be as intended", 0.8)),
        PhraseRule(answer_phrases.MISTAKEN, _mistaken),
        PhraseRule(answer_phrases.WORKAROUND, _plain(OutcomeKind.WORKAROUND, "gives a workaround", 0.75)),
        PhraseRule(phrases.FIXED, _fixed),
        PhraseRule(phrases.CHANGED, _changed),
        PhraseRule(refusal_phrases.REMOVED, _removed),
        PhraseRule(doubts.NOT_FIXED, _not_fixed),
    ),
    released=_RELEASED,
    thanked=PhraseRule(answer_phrases.THANKED, _plain(OutcomeKind.ANSWERED, "the reporter thanks for it", 0.75)),
)


def judge_sentence(sentence: str, own: ThreadId) -> list[Judgement | None]:
    """What ``sentence`` says by itself of each kind of ending, whenever somebody says it in thread ``own``.

    One for each rule, the surest first, None where it says nothing; questions say nothing.
    """
    scene = SentenceContext(own)
    return [None if is_question(sentence) else rule(sentence, scene) for rule in RULES.stating]


def is_question(sentence: str) -> bool:
    """Whether a sentence asks, and so states nothing."""
    return sentence.rstrip(" )*_").endswith("?")
