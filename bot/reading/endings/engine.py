"""Judges one sentence: which phrases are in it, and whether the words around them take them back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from bot.domain.thread import OutcomeKind, ThreadId
from bot.reading.endings.phrases import Doubt, PhraseSet, Rule, phrase_book, plain

_MAX_PLACES = 4
"""Places of one phrase in a sentence that are judged: the words around each are read again."""

_CLAUSE = re.compile(r"[,;:()\u2013\u2014]|\b(?:but|so|because|since|and|as(?! (?:if|though)\b))\b", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?://[^/\s]{1,100}/)?(?P<repo>[^/#\s]{1,100}/[^/#\s]{1,100})(?:/|#)", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}\Z", re.ASCII)
_IS_COMMIT = re.compile(r"/commits?/[0-9a-f]+\Z", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The ending that a piece of evidence speaks for, with a confidence in 0..1.

    ``sentence`` is the index of the sentence that says so, None for events. ``explicit`` words name another thread or a
    commit, and are believed however long before the closing they were said. ``claimed`` is a fix that has to be proven
    first.
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
    """Where and by whom something is said: in thread ``own`` of ``repo`` (OWNER/NAME, None when unknown).

    ``at_closing``: the thread was closed with these words; ``near``: it was closed within a day; ``by_author``: the
    author of the thread says it.
    """

    own: ThreadId = 0
    title: str = ""
    repo: str | None = None
    by_author: bool = False
    at_closing: bool = False
    near: bool = False


_ANYWHERE = SentenceContext()


@dataclass(frozen=True)
class PhraseMatch:
    """A phrase in a sentence, and the places around it where doubts are looked for."""

    words: str
    sentence: str
    before: str
    scene: SentenceContext

    @cached_property
    def rest(self) -> str:
        return self.sentence[len(self.before) + len(self.words) :]

    @cached_property
    def after(self) -> str:
        """The rest up to an invitation to come back or a word on the release to come: neither is a doubt."""
        rest = self.rest
        for name in ("invitation", "release_to_come"):
            found = phrase_book().sets[name].regex.search(rest)
            rest = rest[: found.start()] if found else rest
        return rest

    @cached_property
    def clause(self) -> str:
        """The part of ``before`` in the clause of the phrase."""
        return _CLAUSE.split(self.before)[-1]

    @cached_property
    def next_clause(self) -> str:
        """The part of ``after`` in the clause of the phrase."""
        return _CLAUSE.split(self.after)[0]

    @cached_property
    def until(self) -> str:
        return self.before + self.words

    @cached_property
    def onward(self) -> str:
        return self.words + self.after

    @cached_property
    def around(self) -> str:
        return self.until + self.after

    @property
    def title(self) -> str:
        return self.scene.title

    def is_taken_back_by(self, doubts: tuple[Doubt, ...]) -> bool:
        return any(map(self._holds, doubts))

    def _holds(self, doubt: Doubt) -> bool:
        if doubt.earlier and self.scene.at_closing:
            return False
        for look in doubt.looks:
            text = getattr(self, look.place)
            text = doubt.ignoring.regex.sub(" ", text) if doubt.ignoring else text
            if look.phrases.is_in(text) is not look.must_be_there:
                return False
        if doubt.undone_in and not undoes(getattr(self, doubt.undone_in)):
            return False
        return not doubt.other_product or self._names_other_product(doubt.other_product)

    def _names_other_product(self, products: PhraseSet) -> bool:
        """Whether what has the fix has another name than this repository."""
        found = products.regex.search(self.onward)
        name = next(filter(None, found.groups()), "").casefold() if found else ""
        repo = (self.scene.repo or "").rpartition("/")[2].casefold()
        is_ours = name in ("this", "it", "ours") or (bool(repo) and (name.startswith(repo) or repo.startswith(name)))
        return bool(name) and not is_ours


def matches(rule: Rule, sentence: str, scene: SentenceContext = _ANYWHERE) -> Iterator[PhraseMatch]:
    """The places of a sentence where it says what ``rule`` is about, and nothing around them takes it back."""
    if not all(getattr(scene, condition) for condition in rule.only) or not rule.phrases.may_be_in(plain(sentence)):
        return
    for found in islice(rule.phrases.regex.finditer(sentence), _MAX_PLACES):
        match = PhraseMatch(found[0], sentence, sentence[: found.start()], scene)
        if not match.is_taken_back_by(rule.unless):
            yield match


def says(rule: Rule, sentence: str) -> bool:
    """Whether a sentence says what ``rule`` is about, whoever says it."""
    return any(True for _ in matches(rule, sentence))


def undoes(sentence: str) -> bool:
    """Whether a sentence takes back that something was fixed."""
    return not sentence.endswith("?") and says(phrase_book().rules["undone"], sentence)


def is_question(sentence: str) -> bool:
    """Whether a sentence asks, and so states nothing."""
    return sentence.rstrip(" )*_").endswith("?")


def judge(rule: Rule, sentence: str, scene: SentenceContext) -> Judgement | None:
    """The judgement of a sentence by one rule: `NO_FIX` if it takes back the fix that it seems to name."""
    denied = None
    for match in matches(rule, sentence, scene):
        named = _judgement(rule, match)
        if named and not match.is_taken_back_by(rule.denied_by):
            return named
        denied = NO_FIX if named else denied
    return denied


def original_named(sentence: str, own: ThreadId, repo: str | None = None) -> ThreadId | None:
    """The thread that a sentence of thread ``own`` calls the original, whenever somebody says it."""
    if is_question(sentence):
        return None
    found = judge(phrase_book().rules["duplicate_of"], sentence, SentenceContext(own, repo=repo))
    return found.duplicate_of if found else None


def named_same(sentence: str, own: ThreadId, repo: str | None = None) -> ThreadId | None:
    """The thread that a sentence of thread ``own`` calls the same, whenever somebody says it."""
    if "same" not in sentence.lower() or is_question(sentence):
        return None
    found = judge(phrase_book().rules["same_as"], sentence, SentenceContext(own, repo=repo, near=True))
    return found.duplicate_of if found else None


NO_FIX = Judgement(OutcomeKind.UNKNOWN, ("says that it is not fixed here",), 0.8)
"""Outweighs events that make a fix probable: the words know better."""


def _judgement(rule: Rule, match: PhraseMatch) -> Judgement | None:
    """The judgement of a rule, with what the words name; None where they do not name what they should."""
    assert rule.kind
    plainly = Judgement(rule.kind, (rule.evidence,), rule.confidence, explicit=rule.explicit)
    if rule.named is None:
        return plainly
    named = rule.named.regex.search(match.words)
    if named is None:
        return None
    if rule.names == "reference":
        number = _number_here(named[0], match.scene)
        return None if number == match.scene.own else replace(plainly, duplicate_of=number)
    if rule.names == "change":
        fix = _change_named(named[0], match.scene)
        return None if fix == f"#{match.scene.own}" else replace(plainly, fix=fix)
    return replace(plainly, release=named[0])


def _number_here(reference: str, scene: SentenceContext) -> int | None:
    """The number of an issue of this repository, None for one of another."""
    number = _NUMBER.search(reference)
    return int(number[0]) if number and not _elsewhere(reference, scene) else None


def _elsewhere(reference: str, scene: SentenceContext) -> str:
    """The other repository (OWNER/NAME) that a reference names, "" when it is this one.

    ``owner/name#5`` is written to name another repository. A link may be either: where the repository of the thread is
    unknown, the link counts as one of this repository. A repository that changed hands keeps its name.
    """
    address = _ADDRESS.match(reference)
    if not address or not (scene.repo or "://" not in reference):
        return ""
    ours = (scene.repo or "").rpartition("/")[2].casefold()  # a store may have a name without an owner
    return "" if address["repo"].rpartition("/")[2].casefold() == ours else address["repo"]


def _change_named(reference: str, scene: SentenceContext) -> str:
    """A change as a reader would write it: ``#57`` or a SHA; from another repository ``owner/name#57`` or ``…@SHA``."""
    last, elsewhere = re.split(r"[#/-]", reference)[-1], _elsewhere(reference, scene)
    if last == reference or _IS_COMMIT.search(reference):
        return f"{elsewhere}@{last}" if elsewhere else last
    return f"{elsewhere}#{last}"
