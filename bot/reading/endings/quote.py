"""Chooses the one or two sentences of a comment that say most about how a thread ended."""

from __future__ import annotations

import re

from bot.domain.thread import Outcome, OutcomeKind
from bot.reading.endings.engine import is_question
from bot.reading.endings.phrases import has_phrase
from bot.reading.text_edges import cut_at_edge

MAX_QUOTE_CHARS = 300
"""Longest quote, in characters."""

_MIN_WORDS = 3
"""A shorter sentence that names nothing is an aside."""

_MIN_PLAIN_WORDS = 4
"""A sentence of at least this many words says something, even without a known phrase."""

_UNFINISHED_ENDS = (":", ",", ";", "：", " and", " or")
"""Ends of sentences that introduce something else, or are part of a list."""

_COMPLETE_ENDS = (".", "!", ")", "`", "*", '"', "\u2019", "\u201d", "。", "！", "）", "」")
"""Ends of complete sentences, as opposed to a heading or an address on a line of its own."""

_MIN_LATE_SCORE = 3
"""Minimum score of a sentence written some time before the closing: a remedy, or a conclusion with more to it."""

_STATED_BONUS = {False: 4, True: 1}
"""Added to the score of the sentence that states the ending, by whether it is only about the closing."""

_SALUTATION = re.compile(
    r"(?:@[\w-]{1,39}\b(?:,| and)? ?){1,5}(?:[:,;\u2013\u2014-]+ "
    r"|(?<= )(?=[A-Z]|[^\W\x00-\x7f]"
    r"|(?:the|this|that|these|those|it|its|it's|i'm|you|your|you're|we|we're|there|if|yes|no|please)\b))"
)
"""The names that a sentence is addressed to, before a word that no name can be the subject of."""


_TOLD_REFERENCE = re.compile(
    r"(?:(?:as|by|in|of|to|via|with|favou?r|commit|pull request|pr|issue) ){0,3}"
    r"((?:https?://\S{1,200}/)?[#/]?\b[0-9a-f]{1,40}\b)",
    re.ASCII | re.IGNORECASE,
)
"""A number or a commit's id, with the words before it that only lead to it."""

_MIN_SHA_CHARS = 7


def quote_of(sentences: tuple[str, ...], stated: int | None, *, is_late: bool = False) -> str:
    """The remedy if there is one, otherwise the conclusion, with the sentence that belongs to it.

    ``sentences`` are those of the comment, ``stated`` is the index of the one that states the ending. ``is_late``: the
    closing came some time later, so a plain statement may be about anything. Returns one or two whole sentences of at
    most 300 characters, or the beginning of a longer one; "" if none says anything: questions, thanks, asides and bare
    closings are not quoted.
    """
    texts = tuple(
        _without_introduction(_SALUTATION.sub("", sentence, count=1) if sentence.startswith("@") else sentence)
        for sentence in sentences
    )
    scores = [
        _score(sentence) + _STATED_BONUS[_only_closes(sentence)] * (at == stated) for at, sentence in enumerate(texts)
    ]
    if is_late:
        scores = [
            0 if score < _MIN_LATE_SCORE or _lacks_context(texts, scores, at) else score
            for at, score in enumerate(scores)
        ]
    best = max(scores, default=0)
    if best < 1:
        return ""
    at = scores.index(best)
    pair = _with_neighbour(texts, scores, at, is_remedy=at != stated and has_phrase("remedy", texts[at]))
    if stated is None and has_phrase("joining", pair) and not has_phrase("named", pair):
        return ""  # "And …" goes on with something that is not quoted; "It works now." is about the thread
    return cut_at_edge(pair.rstrip("，；、"), MAX_QUOTE_CHARS)


def _without_introduction(sentence: str) -> str:
    """The sentence without a last clause that only introduces what follows: 已修复，例子如下："""
    edge = max(sentence.rfind("，"), sentence.rfind("；"))
    return sentence[:edge] if edge > 0 and has_phrase("introduction", sentence[edge:]) else sentence


def says_something(quote: str, told: tuple[str, ...] = ()) -> bool:
    """Whether a quote says more than "closed" or "done", which the outcome shown next to it already says.

    ``told``: references (``#12``, a commit's id) that are shown there too, so that "fixed by #12" is no news.
    """
    rest = _TOLD_REFERENCE.sub(lambda found: " " if _is_told(found[1], told) else found[0], quote) if told else quote
    return bool(rest.strip()) and not (has_phrase("bare_closing", rest) or has_phrase("only_done", rest))


def is_unanswered(outcome: Outcome) -> bool:
    """Whether a thread was closed as stale, with no other reason than that nobody answered."""
    return outcome.kind is OutcomeKind.STALE and (not outcome.quote or has_phrase("inactive", outcome.quote))


def _is_told(reference: str, told: tuple[str, ...]) -> bool:
    name = reference.rpartition("/")[2].lstrip("#").lower()
    return any(name == known.lstrip("#") or (len(name) >= _MIN_SHA_CHARS and known.startswith(name)) for known in told)


def _lacks_context(sentences: tuple[str, ...], scores: list[int], at: int) -> bool:
    """Whether a sentence depends on a previous one that cannot be quoted with it."""
    return (
        has_phrase("leaning", sentences[at]) and not has_phrase("named", sentences[at]) and not (at and scores[at - 1])
    )


def _only_closes(sentence: str) -> bool:
    return has_phrase("closing_talk", sentence) and not has_phrase("named", sentence)


def _score(sentence: str) -> int:
    """How much a sentence tells somebody who reads only it, 0 for nothing."""
    names = has_phrase("named", sentence)
    if _is_aside(sentence) or not (names or _has_words(sentence, _MIN_WORDS)):
        return 0
    score = 3 * has_phrase("remedy", sentence) + 2 * has_phrase("conclusion", sentence) + names
    score += _has_words(sentence, _MIN_PLAIN_WORDS)
    if len(sentence) > MAX_QUOTE_CHARS or sentence.startswith("("):
        score = min(score, 1)
    return max(score - 2 * has_phrase("plan", sentence), 0)


def _has_words(sentence: str, least: int) -> bool:
    """Whether a sentence has at least this many words; without spaces, two characters count as a word."""
    return len(sentence.split()) >= least or (not sentence.isascii() and len(sentence) >= 2 * least)


def _is_aside(sentence: str) -> bool:
    """Whether a sentence asks, thanks, introduces what follows, invites, or only closes."""
    if is_question(sentence) or sentence.endswith(_UNFINISHED_ENDS) or has_phrase("courtesy", sentence):
        return True
    if has_phrase("aside", sentence) and not has_phrase("named", sentence):
        return True
    if has_phrase("invitation_alone", sentence) or has_phrase("housekeeping", sentence):
        return True
    if has_phrase("reason_given", sentence) or has_phrase("conclusion", sentence) or not in_latin_script(sentence):
        return False
    return has_phrase("closing_talk", sentence) or has_phrase("assent", sentence)


def in_latin_script(text: str) -> bool:
    """Whether most of a text is in the letters of English: only there are the phrases for small talk known."""
    return text.isascii() or 3 * sum(map(str.isascii, text)) >= 2 * len(text)


def _with_neighbour(sentences: tuple[str, ...], scores: list[int], at: int, *, is_remedy: bool) -> str:
    """The sentence with the previous one if it depends on that or is its remedy; otherwise with the next one."""
    best, before, after = (
        sentences[at],
        sentences[at - 1] if at else "",
        sentences[at + 1] if at + 1 < len(sentences) else "",
    )
    needs_previous = bool(before) and (has_phrase("leaning", best) or bool(is_remedy and scores[at - 1]))
    can_precede = (
        before.endswith(_COMPLETE_ENDS) and not _is_aside(before) and (needs_previous or _stands_alone(before))
    )
    can_follow = bool(after) and not best.endswith(":") and not _is_aside(after)
    pairs = [f"{before} {best}"] * can_precede + [f"{best} {after}"] * can_follow
    fitting = [pair for pair in (pairs if needs_previous else reversed(pairs)) if len(pair) <= MAX_QUOTE_CHARS]
    return fitting[0] if fitting else best


def _stands_alone(sentence: str) -> bool:
    """Whether a sentence makes sense by itself: "Appears fixed." does, a heading or an address does not."""
    return not has_phrase("plan", sentence) and (_has_words(sentence, _MIN_WORDS) or has_phrase("conclusion", sentence))
