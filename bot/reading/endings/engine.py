"""Judges one sentence: which phrases it contains, and whether the words around them take them back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from bot.domain.thread import OutcomeKind, ThreadId
from bot.reading.endings.phrases import Doubt, Foreign, Patterns, Rule, forms, has_phrase, phrase_book
from bot.reading.lookalikes import plain

_MAX_OCCURRENCES = 4
"""Maximum occurrences of a phrase that are judged in a sentence: the words around each are searched again."""

_CLAUSE_BREAK = re.compile(r"[,;:()\u2013\u2014]")
_REPO_PREFIX = re.compile(r"(?:https?://[^/\s]{1,100}/)?(?P<repo>[^/#\s]{1,100}/[^/#\s]{1,100})(?:/|#)", re.ASCII)
_SENTENCE_CLOSERS = " )*_.!~'\"\u201d\u300d\u300f"
_NUMBER = re.compile(r"\d{1,9}\Z", re.ASCII)
_COMMIT_URL = re.compile(r"/commits?/[0-9a-f]+\Z", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The ending that a piece of evidence suggests, with a confidence in 0..1.

    ``sentence`` is the index of the sentence that says so, None for events. ``explicit`` words name another thread or a
    commit, and are trusted however long before the closing they were written. ``claimed`` is a fix that still needs
    proof.
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
    """Where a sentence was written, and by whom: in thread ``own`` of ``repo`` (OWNER/NAME, None if unknown).

    ``at_closing``: the thread was closed with these words; ``near``: it was closed within a day; ``by_author``: the
    thread's author wrote it; ``by_outsider``: somebody without a part in the project did.
    """

    own: ThreadId = 0
    title: str = ""
    repo: str | None = None
    by_author: bool = False
    by_outsider: bool = False
    at_closing: bool = False
    near: bool = False


CLAIM_CONFIDENCE = 0.5
"""Confidence of a claim: lower than that of any event that ends a thread."""

_NO_CONTEXT = SentenceContext()


@dataclass(frozen=True)
class PhraseMatch:
    """A phrase in a sentence, and the parts around it that are searched for doubts."""

    words: str
    sentence: str
    before: str
    context: SentenceContext
    foreign: Foreign
    foreign_doubts: Foreign

    @cached_property
    def rest(self) -> str:
        return self.sentence[len(self.before) + len(self.words) :]

    @cached_property
    def after(self) -> str:
        """The rest, up to an invitation to come back or a mention of the next release: neither is a doubt."""
        rest = self.rest
        for name in ("invitation", "release_to_come"):
            match = phrase_book().sets[name].search(rest, self.foreign)
            rest = rest[: match.start()] if match else rest
        return rest

    @cached_property
    def clause(self) -> str:
        """The part of ``before`` in the phrase's clause."""
        return self._clauses(self.before)[-1]

    @cached_property
    def next_clause(self) -> str:
        """The part of ``after`` in the phrase's clause."""
        return self._clauses(self.after)[0]

    def _clauses(self, text: str) -> list[str]:
        conjunctions = phrase_book().sets["conjunction"]
        return [each for part in _CLAUSE_BREAK.split(text) for each in conjunctions.split(part, self.foreign)]

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
        return self.context.title

    def is_taken_back_by(self, doubts: tuple[Doubt, ...]) -> bool:
        for doubt in doubts:
            if (doubt.needed is None or doubt.needed in self.foreign_doubts) and self._applies(doubt):
                return True
        return False

    def _applies(self, doubt: Doubt) -> bool:
        if doubt.earlier and self.context.at_closing:
            return False
        for look in doubt.looks:
            text = getattr(self, look.place)
            text = doubt.ignoring.regex.sub(" ", text) if doubt.ignoring else text
            if look.phrases.is_in(text) is not look.must_be_there:
                return False
        if doubt.undone_in and not takes_fix_back(getattr(self, doubt.undone_in)):
            return False
        return not doubt.other_product or self._names_other_product(doubt.other_product)

    def _names_other_product(self, products: Patterns) -> bool:
        """Whether the fix is in a product that is not named like this repository."""
        match = products.regex.search(self.onward)
        name = next(filter(None, match.groups()), "").casefold() if match else ""
        repo = (self.context.repo or "").rpartition("/")[2].casefold()
        is_unknown = not repo and match is not None and match.lastgroup == "repo"
        is_ours = name in ("this", "it", "ours") or (bool(repo) and (name.startswith(repo) or repo.startswith(name)))
        is_ours = is_ours or is_unknown
        return bool(name) and not is_ours


def matches(rule: Rule, sentence: str, context: SentenceContext = _NO_CONTEXT) -> Iterator[PhraseMatch]:
    """The phrases of ``rule`` in a sentence that no words around them take back."""
    if not all(getattr(context, condition) for condition in rule.only):
        return
    words, folded = forms(sentence)
    foreign = rule.phrases.index.find(folded)
    for patterns in rule.phrases.find_in(folded, foreign):
        for occurrence in islice(patterns.regex.finditer(words), _MAX_OCCURRENCES):
            doubts = rule.doubt_index.find(folded)
            match = PhraseMatch(occurrence[0], words, words[: occurrence.start()], context, foreign, doubts)
            if not match.is_taken_back_by(rule.unless):
                yield match


def says(rule: Rule, sentence: str) -> bool:
    """Whether a sentence matches ``rule``, whoever wrote it."""
    return any(True for _ in matches(rule, sentence))


def takes_fix_back(sentence: str) -> bool:
    """Whether a sentence takes back a claimed fix."""
    return not is_question(sentence) and says(phrase_book().rules["undone"], sentence)


def is_question(sentence: str) -> bool:
    """Whether a sentence is a question, and so states nothing."""
    words = plain(sentence).rstrip(_SENTENCE_CLOSERS)
    return words.endswith("?") or has_phrase("question", words)


def judge(rule: Rule, sentence: str, context: SentenceContext) -> Judgement | None:
    """Judges a sentence by one rule: `NO_FIX` if it takes back the fix it seems to name, a claim if it is unsure."""
    weaker = None
    for match in matches(rule, sentence, context):
        named = _judgement(rule, match)
        if named and match.is_taken_back_by(rule.denied_by):
            weaker = NO_FIX
        elif named and match.is_taken_back_by(rule.doubted_by):
            weaker = weaker or as_claim(named, "said with a doubt")
        elif named:
            return named
    return weaker


def as_claim(fixed: Judgement, evidence: str) -> Judgement:
    """A fix that still needs proof: it is quoted, and the change that it names may be looked up."""
    return Judgement(
        OutcomeKind.UNKNOWN, (evidence,), CLAIM_CONFIDENCE, claimed=fixed.fix, sentence=fixed.sentence,
        explicit=fixed.explicit,
    )  # fmt: skip


def is_vague(stated: Judgement) -> bool:
    """Whether words claim a fix without naming the change."""
    return not stated.kind.is_known and stated.claimed is None and stated.evidence != NO_FIX.evidence


def find_original(sentence: str, own: ThreadId, repo: str | None = None) -> ThreadId | None:
    """The thread that a sentence of thread ``own`` calls the original, whenever it was written."""
    if is_question(sentence):
        return None
    judgement = judge(phrase_book().rules["duplicate_of"], sentence, SentenceContext(own, repo=repo))
    return judgement.duplicate_of if judgement else None


def find_same(sentence: str, own: ThreadId, repo: str | None = None) -> ThreadId | None:
    """The thread that a sentence of thread ``own`` calls the same, whenever it was written."""
    if "same" not in sentence.lower() or is_question(sentence):
        return None
    judgement = judge(phrase_book().rules["same_as"], sentence, SentenceContext(own, repo=repo, near=True))
    return judgement.duplicate_of if judgement else None


NO_FIX = Judgement(OutcomeKind.UNKNOWN, ("says that it is not fixed here",), 0.8)
"""Outweighs events that make a fix probable: words are better evidence."""


def _judgement(rule: Rule, match: PhraseMatch) -> Judgement | None:
    """The judgement of a rule, with what the words name; None if they do not name what the rule requires."""
    assert rule.kind
    base = Judgement(rule.kind, (rule.evidence,), rule.confidence, explicit=rule.explicit)
    if rule.named is None:
        return base
    named = rule.named.regex.search(match.words)
    if named is None:
        return None
    if rule.names == "reference":
        number = _own_number(named[0], match.context)
        return None if number == match.context.own else replace(base, duplicate_of=number)
    if rule.names == "change":
        fix = _format_change(named[0], match.context)
        return None if fix == f"#{match.context.own}" else replace(base, fix=fix)
    return replace(base, release=named[0])


def _own_number(reference: str, context: SentenceContext) -> int | None:
    """The number of an issue of this repository, None for another repository's."""
    number = _NUMBER.search(reference)
    return int(number[0]) if number and not _other_repository(reference, context) else None


def _other_repository(reference: str, context: SentenceContext) -> str:
    """The other repository (OWNER/NAME) that a reference names, "" if it is this one.

    People write ``owner/name#5`` to name another repository. A link may be to either: if the thread's repository is
    unknown, the link counts as one to this repository. A repository that changed owners keeps its name.
    """
    address = _REPO_PREFIX.match(reference)
    if not address or not (context.repo or "://" not in reference):
        return ""
    ours = (context.repo or "").rpartition("/")[2].casefold()  # a store may know the name without the owner
    return "" if address["repo"].rpartition("/")[2].casefold() == ours else address["repo"]


def _format_change(reference: str, context: SentenceContext) -> str:
    """A change as readers write it: ``#57`` or a SHA; ``owner/name#57`` or ``owner/name@SHA`` in another repository."""
    last, other = re.split(r"[#/-]", reference)[-1], _other_repository(reference, context)
    if last == reference or _COMMIT_URL.search(reference):
        return f"{other}@{last}" if other else last
    return f"{other}#{last}"
