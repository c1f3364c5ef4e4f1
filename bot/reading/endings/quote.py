"""Which one or two sentences of a comment are quoted as the ending of a thread: what helps most whoever reads them."""

from __future__ import annotations

import re

from bot.reading.endings import phrases
from bot.reading.endings.phrases import COMMIT, REFERENCE, VERSION

MAX_QUOTE = 300
"""Longest quote, in characters."""

_LEAST_WORDS = 3
"""A sentence of fewer words that names nothing is an aside."""

_PLAIN_WORDS = 4
"""A sentence of so many words says something, though nobody knows what kind of thing."""


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_DO = (
    "use|using|set|setting|pass|passing|run|running|try|add|adding|remove|removing|delete|deleting|replace|replacing"
    "|switch|switching|upgrade|upgrading|update|updating|downgrade|downgrading|install|installing|reinstall"
    "|reinstalling|enable|enabling|disable|disabling|call|calling|change|changing|specify|specifying|configure"
    "|write|writing|wrap|rename|move|moving|apply|clear|clearing|restart|rebuild|select|click|open|build|compile|download|put|ask|report|file"
    "|turn|turning|make sure|check|define|defining|declare|import|implement|derive|get|do|see"
)
_REMEDY = _any(
    rf"(?:^|[,;:] )(?:(?:please|just|simply|instead|so|then|for now|otherwise|and|but),? ){{0,2}}(?:{_DO})\b(?! to )",
    rf"\b(?:you|one|we|users|people|they)(?: (?:can|could|should|need to|have to|must|may|might|want to|had to))"
    rf"(?: (?:always|also|just|simply|now|still|already|either|then|only)){{0,2}} (?:{_DO})\b",
    rf"\b(?:recommend\w{{0,3}}|suggest\w{{0,3}}|advi[cs]e|solved? (?:it )?by|fixed (?:it )?by|works? (?:if|when|with"
    rf"|after)|by|instead of|try) (?:{_DO})\b",
    r"\bwork-?around\b|\binstead\b|\bthe (?:solution|fix|remedy|trick|right way|correct way|alternative) (?:is|was)\b",
    r"\b(?:you|one|users) can\b|\b(?:available|possible|supported|fixed|included|released|landed) (?:in|since|with|by"
    r"|as of|through|via|from)\b",
)
"""What to do about it, or where it is done."""

_NAMES = _any(REFERENCE, COMMIT, VERSION, r"https?://")
_CONCLUDES = _any(
    r"\b(?:decided|decisions?|agreed|agreement|consensus|conclu\w{2,6}|resolution|settled|chose|picked|rejected"
    r"|accepted|adopted|concur\w{0,3}|verdict)\b",
    r"\b(?:won't|will not|wontfix|not going to|never|cannot|can't|no longer|any ?more|impossible|isn't|aren't|doesn't"
    r"|don't|not (?:a|an|the|be|worth|possible|needed|necessary|supported|planned|feasible|practical|clear|enough"
    r"|really|actually|something)|unnecessary|unneeded|moot|irrelevant)\b",
    r"\b(?:intended|intentional|deliberate|by design|expected|unsupported|duplicate|dupe?|superseded|subsumed|covered"
    r"|obsolete|outdated|stale|out of scope|invalid|inactive|redundant|editorial)\b",
    r"\b(?:works?|working|fixed|solved|resolved|done|implemented|merged|landed|added|removed|changed|addressed|exists?"
    r"|handled|supported|clarified|updated|replaced|renamed|moved|tracked|belongs|split|reverted|gone|incorporated"
    r"|dropped|allows?|allowed|requires?|required|defined|specified|documented|reproduce)\b",
    r"\b(?:because|cause[ds]?|reason|due to|result of|since|so that|therefore|thus|turn(?:s|ed) out|in fact|it was"
    r"|bug in"
    r"|upstream|problem (?:is|was)|issue (?:is|was)|in favou?r of|same (?:issue|bug|problem|as)|closing as)\b",
)
"""What was found, decided or done."""

_PLANS = _any(
    r"\bi(?:'ll| will| am going to|'m going to| would| could| wonder| guess| hope| might| may|'d)\b"
    r"(?! (?:suggest|propose|recommend|expect|prefer|rather|say|close|be closing))",
    r"\b(?:let me|maybe|perhaps|hopefully|not sure|i have no idea|no idea|i don't (?:know|understand)|i bet|glad to"
    r"|^will (?:test|try|check|look|do|see)|not (?:parsing|following)|any news|don't remember|would be (?:nice|good"
    r"|great))\b",
)
"""What somebody means to do, or does not know."""

_ASIDE = _any(
    r"\W*(?:cc|/cc|ping|fyi|edit|update|ps|p\.s\.|sorry|apologies|oops|btw|by the way|nit|note to self"
    r"|hi|hello|hey|cheers|haha|lol|wow|interesting|nice catch|good (?:catch|point|question|idea)|\+1|-1"
    r"|\^+)\b[^.;]{0,40}"
    r"\W*",
    r"\W*(?:this was |we )?(?:discussed|talked about)(?: this| it)? (?:on|in|at|during|with)\b[^.;:,]{1,40}\W*",
    r"\W*(?:thanks?|thank you|thx|ty|many thanks)\b[^;]{0,200}",
    r"[^;]{0,60}\b(?:hope (?:this|that|it) helps|much appreciated|good luck|happy to|welcome to|look(?:ing)? forward)\b"
    r"[^;]{0,80}",
)
"""The whole of a sentence that is beside the matter."""

_INVITES = _any(
    r"\W*(?:(?:and|so|but|please|just|kindly|do|then|or),? ){0,3}(?:(?:if|should|when|unless)\b[^,;]{0,120}[,;] ?"
    r"(?:(?:please|then|just|kindly|do|you can|we can) ){0,3})?(?:re-?open|feel free|let (?:me|us)|comment\b|shout|ping"
    r"|(?:open|file|create|submit|raise) (?:an?|the)? ?(?:new|another|separate|follow-?up|different|fresh|bug|issue"
    r"|ticket|PR|pull)\b)"
)
"""How a sentence begins that invites to come back."""

_FILLERS = (
    "so|ok|okay|yes|yeah|then|i|we|i'm|i'll|we'll|let's|lets|let|me|am|are|is|will|would|can|could|should|may|be|going|to"
    "|gonna|think|guess|say|propose|suggest|agree|vote|happy|willing|ready|safe|fine|good|feel|free|please|now|just|and"
    "|thus|therefore|anyway|well|probably|safely|this|that|it|the|issue|bug|ticket|both|for"
)
_CLOSING_TALK = _any(
    rf"\W*(?:(?:{_FILLERS}),? ){{0,8}}(?:clos(?:e|ed|ing)|re-?open(?:ed|ing)?)\b(?: \w{{1,12}}){{0,6}}\W*",
    r"\W*(?:so|then|ok|okay|and|but|well|anyway|therefore|either way|in any case)?,? ?(?:i|we)(?:'m|'ll| am| are| will"
    r"| think| guess)[^.;:]{0,40}\bclos(?:e|ing)\b[^.;:#]{0,40}",
)
"""The whole of a sentence that says that it is closed, and not why."""

_WHY = _any(
    r"\b(?:as|because|since|due|in favou?r|by|via|until|with|without|per|per the|after|for lack|given|in #|wontfix"
    r"|invalid|duplicate|dupe?|obsolete|stale|fixed|done|completed?|resolved|implemented|inactiv\w{2,4}|not|n't"
    r"|superseded|replaced|already|works?|working|when|unless|can't|cannot|than|so|problem|belongs?|ha(?:s"
    r"|ve) been)\b|n't\b|#\d|://"
)
_ONLY_DONE = _any(
    r"\W*(?:(?:this|that|it|is|was|has|have|been|should|must|be|all|now|already|just|yes|ok|okay|bug|issue|and|clos(?:ed"
    r"|ing)|as|so|i|we|believe|think|guess|looks?|appears|seems|to|like|by|since|meanwhile)\W+){0,9}"
    r"(?:fixed|done|added|closed|completed?|resolved|solved|implemented|merged|landed|updated|finished|duplicate|wont-?fix"
    r"|won't fix|invalid|closing|no (?:more|further|other) (?:input|comments?|feedback),? closing)"
    r"(?: (?:now|already|too|as well|again|since|meanwhile|in the meantime|this|it|issue|bug|ticket)){0,3}\W*",
    r"\W*(?:hearing|having|with|given|got|seeing|receiving) no (?:more |further |other )?(?:input|comments?|feedback"
    r"|objections?|repl(?:y|ies)|responses?)\b[^.;#]{0,60}\W*",
)
"""The whole of a quote that says no more than the kind beside it does."""

_LEANS = _any(
    r"\W*(?:that|this|it|they|these|those|so|but|otherwise|either way|thus|therefore|hence|of course|however|then|also"
    r"|and|or|which|given that|in that case|both|the same|he|she|instead|nope|no|yes|the former|the latter|such)\b"
)
"""How a sentence begins that is not understood without the one before it."""

_UNFINISHED = (":", ",", ";", " and", " or")
"""What a sentence ends with that announces something else, or is one of a list."""

_ENDS = (".", "!", ")", "`", "*", '"', "\u2019", "\u201d", "\u3002")
"""How a whole sentence ends; a heading or an address before one has no such end."""

_LATE = 3
"""So much helps what was said some time before the closing, at least: a remedy, or a conclusion that says more."""

_BY_STATING = {False: 4, True: 1}
"""How much more a sentence helps that states how it ended, by whether it speaks of nothing but the closing."""

_ADDRESS = re.compile(r"(?:@[\w-]{1,39}\b(?:,| and)? ?){1,5}(?:[:,;\u2013\u2014-]+ |(?<= )(?=[A-Z]))")


def quote_of(said: tuple[str, ...], stated: int | None, *, is_late: bool = False) -> str:
    """The sentence that helps most: the remedy where there is one, else the conclusion; and what belongs to it.

    ``said`` are the sentences of the comment, ``stated`` is the place of the one that states the ending; ``is_late``
    says that the closing came some time later, so that a plain statement may be about anything. One or two
    whole sentences of at most 300 characters, the beginning of one that is longer; "" where none of them says
    anything: questions, thanks, asides and the mere closing are not quoted.
    """
    bare = tuple(_ADDRESS.sub("", sentence, count=1) if sentence.startswith("@") else sentence for sentence in said)
    worth = [_worth(sentence) + _BY_STATING[_closes(sentence)] * (at == stated) for at, sentence in enumerate(bare)]
    if is_late:
        worth = [0 if one < _LATE or _hangs(bare, worth, at) else one for at, one in enumerate(worth)]
    best = max(worth, default=0)
    if best < 1:
        return ""
    at = worth.index(best)
    pair = _with_neighbour(bare, worth, at, is_remedy=at != stated and bool(_REMEDY.search(bare[at])))
    return pair if len(pair) <= MAX_QUOTE else pair[: MAX_QUOTE - 1].rstrip() + "\u2026"


def _hangs(said: tuple[str, ...], worth: list[int], at: int) -> bool:
    """Whether a sentence refers to one before it that is not there to be quoted."""
    return bool(_LEANS.match(said[at])) and not _NAMES.search(said[at]) and not (at and worth[at - 1])


def _closes(sentence: str) -> bool:
    """Whether a sentence speaks of the closing alone, as "Closing with no action" does: the kind says as much."""
    return bool(_CLOSING_TALK.fullmatch(sentence)) and not _NAMES.search(sentence)


def says_something(quote: str) -> bool:
    """Whether a quote says more than that the thread is closed or done, which is told beside it anyway."""
    return bool(quote) and not (phrases.BARE_CLOSING.fullmatch(quote) or _ONLY_DONE.fullmatch(quote))


def _worth(sentence: str) -> int:
    """How much a sentence helps whoever reads it alone: 0 for nothing at all."""
    names = bool(_NAMES.search(sentence))
    if _is_aside(sentence) or not (names or _has_words(sentence, _LEAST_WORDS)):
        return 0
    does, concludes = bool(_REMEDY.search(sentence)), bool(_CONCLUDES.search(sentence))
    worth = 3 * does + 2 * concludes + names + _has_words(sentence, _PLAIN_WORDS)
    worth = worth if len(sentence) <= MAX_QUOTE else min(worth, 1)
    worth = min(worth, 1) if sentence.startswith("(") else worth
    return max(worth - 2 * bool(_PLANS.search(sentence)), 0)


def _has_words(sentence: str, least: int) -> bool:
    """Whether a sentence has so many words; in a script without spaces three characters count as one."""
    return len(sentence.split()) >= least or (not sentence.isascii() and len(sentence) >= 3 * least)


def _is_aside(sentence: str) -> bool:
    """Whether a sentence asks, thanks, announces what is not there, invites, or only closes."""
    if (
        sentence.rstrip(" )*_.!").endswith("?")
        or sentence.endswith(_UNFINISHED)
        or phrases.COURTESY.fullmatch(sentence)
    ):
        return True
    if (
        (_ASIDE.fullmatch(sentence) and not _NAMES.search(sentence))
        or _INVITES.match(sentence)
        or phrases.HOUSEKEEPING.search(sentence)
    ):
        return True
    if _WHY.search(sentence) or _CONCLUDES.search(sentence):
        return False
    return bool(_CLOSING_TALK.fullmatch(sentence) or phrases.ASSENT.fullmatch(sentence))


def _with_neighbour(said: tuple[str, ...], worth: list[int], at: int, *, is_remedy: bool) -> str:
    """The sentence with the one before it, where it leans on that or is what to do about it; else with the next one."""
    best, before, after = said[at], said[at - 1] if at else "", said[at + 1] if at + 1 < len(said) else ""
    leans = bool(before) and bool(_LEANS.match(best) or (is_remedy and worth[at - 1]))
    tells = before.endswith(_ENDS) and not _is_aside(before) and (leans or _goes_before(before))
    goes_on = bool(after) and not best.endswith(":") and not _is_aside(after)
    pairs = [f"{before} {best}"] * tells + [f"{best} {after}"] * goes_on
    fitting = [pair for pair in (pairs if leans else reversed(pairs)) if len(pair) <= MAX_QUOTE]
    return fitting[0] if fitting else best


def _goes_before(sentence: str) -> bool:
    """Whether a sentence says something of its own: a heading or a mere address does not, "Appears fixed." does."""
    return not _PLANS.search(sentence) and (_has_words(sentence, _LEAST_WORDS) or bool(_CONCLUDES.search(sentence)))
