"""Chooses the one or two sentences of a comment that tell the reader most about how a thread ended."""

from __future__ import annotations

import re

from bot.reading.endings.phrases import is_said

MAX_QUOTE = 300
"""Longest quote, in characters."""

_LEAST_WORDS = 3
"""A sentence of fewer words that names nothing is an aside."""

_PLAIN_WORDS = 4
"""A sentence of at least this many words says something, even if no phrase is known in it."""

_UNFINISHED = (":", ",", ";", " and", " or")
"""Ends of sentences that announce something else, or are part of a list."""

_ENDS = (".", "!", ")", "`", "*", '"', "\u2019", "\u201d", "\u3002")
"""Ends of whole sentences, as opposed to a heading or an address on a line of its own."""

_LATE = 3
"""The least worth of a sentence from some time before the closing: a remedy, or a conclusion with more to it."""

_BY_STATING = {False: 4, True: 1}
"""Added to the worth of the sentence that states the ending, by whether it speaks only of the closing."""

_ADDRESS = re.compile(r"(?:@[\w-]{1,39}\b(?:,| and)? ?){1,5}(?:[:,;\u2013\u2014-]+ |(?<= )(?=[A-Z]))")


def quote_of(said: tuple[str, ...], stated: int | None, *, is_late: bool = False) -> str:
    """The remedy if there is one, otherwise the conclusion, with the sentence that belongs to it.

    ``said`` are the sentences of the comment, ``stated`` is the index of the one that states the ending. ``is_late``:
    the closing came some time later, so a plain statement may be about anything. Returns one or two whole sentences of
    at most 300 characters, or the beginning of a longer one; "" if none of them says anything: questions, thanks,
    asides and bare closings are not quoted.
    """
    bare = tuple(_ADDRESS.sub("", sentence, count=1) if sentence.startswith("@") else sentence for sentence in said)
    worth = [
        _worth(sentence) + _BY_STATING[_only_closes(sentence)] * (at == stated) for at, sentence in enumerate(bare)
    ]
    if is_late:
        worth = [0 if one < _LATE or _hangs(bare, worth, at) else one for at, one in enumerate(worth)]
    best = max(worth, default=0)
    if best < 1:
        return ""
    at = worth.index(best)
    pair = _with_neighbour(bare, worth, at, is_remedy=at != stated and is_said("remedy", bare[at]))
    return pair if len(pair) <= MAX_QUOTE else pair[: MAX_QUOTE - 1].rstrip() + "\u2026"


def says_something(quote: str) -> bool:
    """Whether a quote says more than that the thread is closed or done, which the kind next to it says already."""
    return bool(quote) and not (is_said("bare_closing", quote) or is_said("only_done", quote))


def _hangs(said: tuple[str, ...], worth: list[int], at: int) -> bool:
    """Whether a sentence refers to one before it that cannot be quoted with it."""
    return is_said("leaning", said[at]) and not is_said("named", said[at]) and not (at and worth[at - 1])


def _only_closes(sentence: str) -> bool:
    return is_said("closing_talk", sentence) and not is_said("named", sentence)


def _worth(sentence: str) -> int:
    """How much a sentence tells whoever reads it alone, 0 for nothing."""
    names = is_said("named", sentence)
    if _is_aside(sentence) or not (names or _has_words(sentence, _LEAST_WORDS)):
        return 0
    worth = 3 * is_said("remedy", sentence) + 2 * is_said("conclusion", sentence) + names
    worth += _has_words(sentence, _PLAIN_WORDS)
    if len(sentence) > MAX_QUOTE or sentence.startswith("("):
        worth = min(worth, 1)
    return max(worth - 2 * is_said("plan", sentence), 0)


def _has_words(sentence: str, least: int) -> bool:
    """Whether a sentence has this many words; in a script without spaces three characters count as one."""
    return len(sentence.split()) >= least or (not sentence.isascii() and len(sentence) >= 3 * least)


def _is_aside(sentence: str) -> bool:
    """Whether a sentence asks, thanks, announces something that follows, invites, or only closes."""
    if sentence.rstrip(" )*_.!").endswith("?") or sentence.endswith(_UNFINISHED) or is_said("courtesy", sentence):
        return True
    if is_said("aside", sentence) and not is_said("named", sentence):
        return True
    if is_said("invitation_alone", sentence) or is_said("housekeeping", sentence):
        return True
    if is_said("reason_given", sentence) or is_said("conclusion", sentence):
        return False
    return is_said("closing_talk", sentence) or is_said("assent", sentence)


def _with_neighbour(said: tuple[str, ...], worth: list[int], at: int, *, is_remedy: bool) -> str:
    """The sentence with the one before it, if it leans on that or is the remedy for it; otherwise with the next one."""
    best, before, after = said[at], said[at - 1] if at else "", said[at + 1] if at + 1 < len(said) else ""
    leans = bool(before) and (is_said("leaning", best) or bool(is_remedy and worth[at - 1]))
    tells = before.endswith(_ENDS) and not _is_aside(before) and (leans or _stands_alone(before))
    goes_on = bool(after) and not best.endswith(":") and not _is_aside(after)
    pairs = [f"{before} {best}"] * tells + [f"{best} {after}"] * goes_on
    fitting = [pair for pair in (pairs if leans else reversed(pairs)) if len(pair) <= MAX_QUOTE]
    return fitting[0] if fitting else best


def _stands_alone(sentence: str) -> bool:
    """Whether a sentence says something by itself: "Appears fixed." does, a heading or an address does not."""
    return not is_said("plan", sentence) and (_has_words(sentence, _LEAST_WORDS) or is_said("conclusion", sentence))
