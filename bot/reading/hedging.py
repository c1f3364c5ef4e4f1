"""What takes a decision back that a sentence seems to state, and the words that both sides are made of."""

from __future__ import annotations

import re


def words(*lists: str) -> str:
    """A group that matches one of the words or phrases, which commas separate."""
    return f"(?:{'|'.join(word for words in lists for word in words.split(', '))})"


def any_of(*alternatives: str) -> re.Pattern[str]:
    """One of the expressions, in capitals or not."""
    return re.compile("|".join(alternatives), re.IGNORECASE)


_ADVERBS = words("have, has, had, did, all, both, just, now, since, then, also, instead, so far") + r"|\w{3,12}ly"
EARLIER = rf"(?:(?:{_ADVERBS}) ){{0,3}}"
"""What may stand between somebody and what they did: auxiliaries and adverbs."""

_DECIDES = words("decide, agree, settle, choose, conclude, select, opt, resolve")
_AGREEMENT = words("consensus, decision, conclusion, agreement, resolution, verdict")
_OTHERS = words(
    "client, server, compiler, parser, linker, browser, endpoint, peer, sender, receiver, recipient, node, users?",
    "people, kernel, library, implementations?, intermediar(?:y|ies), prox(?:y|ies), host, he, she, they, you, someone",
    "somebody, nobody, applications?, apps?, programs?, tools?",
)
_SUPPOSED = words(
    "if, unless, until, till, whether, when, whenever, before, assuming, suppose, lest, imagine, either, perhaps",
    "maybe, possibly, probably, hopefully, hope, hoping, wish, guess, wonder, wondering, unsure, not sure, unclear",
    "doubt, sounds, feels like, looks like, seems like, i thought, impression, you know, everything, what was, what is",
    "not clear, as soon as, as long as, so long as",
)
_PROPOSED = words("propose, proposing, suggest, suggesting, suggested, recommend, vote, voting, nominate, nominating")
_THINGS = words(
    "that, the, exact, syntax, scope, approach, strategy, design, way, things?, ones?, names?, features?, semantics",
    "rules?, plan, scheme, format, version, text",
)
_HEDGE_BEFORE = any_of(
    rf"\b(?:{_SUPPOSED}|{_PROPOSED})\b",
    rf"\b{words('should, could, would, might, may, must, can, shall')} (?:\w+ )?(?:we|it|they|you|i|have|be)\b",
    rf"\b{words('what, how, where, which, why, whatever')} (?:the |our )?(?:we|i|it|this|team|consensus|decision)\b",
    r"\b(?:what|which|whose) \w+ (?:was|were|is|are)\b",
    r"(?:^|, )once\b|\bonce (?:we|it|this|that|they|the|there)\b|\bthan (?:what )?we\b",
    r"\b(?:i|we)(?:'d| would)\b|\bi (?:think|believe) (?:we|i)(?:'ll| will| can| could)\b|\bwas (?:going|about)\b",
    r"\bor (?:be )?clos(?:e|ed|ing)\b|\b(?:signal|sign|indication) that\b|\bin my (?:own )?\w+\b",
    r"\b(?:that|which|what) we (?:will not|won'?t|do(?: not|n'?t)|are not|aren'?t|did(?: not|n'?t))\b",
    rf"\b{_THINGS} we(?:'ve)? {EARLIER}"
    r"(?:settled|chose|chosen|picked|selected|opted|agreed (?:to|on|at)\W|decided on (?:was|is)|decided\W*$)",
    rf"\b{words('remember, recall, forgot, forget, implies, means?, ensures?, make sure, requires?, assume, allows?')} "
    r"(?:that |what |if |how |when )?(?:we|the|it)\b",
    rf"(?:\b{words('not, never, no, yet, without, lack of')}|n't) (?:\w+ )?(?:been |a |any |clear |really |yet ){{0,3}}"
    rf"(?:{_DECIDES}[ds]?|chosen|{_AGREEMENT})\b",
    rf"\b(?:to|still) (?:be )?(?:{_DECIDES}d?|chosen)\b",
    rf"\b(?:need|want|get|await|seek|reach|build) (?:\w+ ){{0,2}}{_AGREEMENT}\b",
    rf"\b{_OTHERS} (?:\w+ ){{0,3}}(?:decided|agreed|chose|chosen|selected|picked|opted|settled|rejected|accepted"
    r"|concluded|resolved|going with|go with)\b",
)
"""What takes a decision back before it is said: conditions, proposals, denials, and others who decide."""

_HEDGE_AFTER = any_of(
    r"[^.;,]{0,30}:$",
    r"[^.;]{0,80}\b(?:or not|or something|i guess|i suppose|i hope|hopefully|remains to be|not sure|see what)\b",
    r" ?(?:if|unless|until|or|yet)\b",
)
"""What takes it back behind the phrase."""

_QUESTION = any_of(r"\?[\s)\"'*_!:.]*$", r"\?[)\"']? ", r", (?:right|correct|no|yes)[.!?]?$")
_UNFINISHED = any_of(r"(?:that|to|on|in|at|for|not)\W*")
"""The last word of a phrase and what follows, where a line breaks off."""

_ELSEWHERE = any_of(
    r"(?:#|/issues/|/pull/)\d{1,9}\)?,? (?:was|is|has been|got) (?:also |already )?(?:closed|marked|rejected)\b"
    r"|\bdup(?:e|licate)?s? of\b"
)
"""The ending of another thread."""


def is_taken_back(sentence: str, end: int) -> bool:
    """Whether ``sentence``, in which a decision seems to be stated up to ``end``, only asks, supposes or denies it."""
    before, behind = sentence[:end], sentence[end:]
    return bool(
        _HEDGE_BEFORE.search(before)
        or _HEDGE_AFTER.match(behind)
        or _UNFINISHED.fullmatch(before.rsplit(" ", 1)[-1] + behind)
        or _QUESTION.search(sentence)
        or _ELSEWHERE.search(sentence)
    )
