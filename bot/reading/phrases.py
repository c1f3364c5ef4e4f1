"""The phrases that reading goes by: what issue templates say, and how people end a thread.

Only what any repository may say stands here. Phrases of one community fit the threads they were found in and no others.
"""

from __future__ import annotations

import re


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_PROMISED = (
    "search|existing|already|duplicate|read|agree|follow|latest|guidelines?|docs?|documentation|code of conduct"
    "|template|contribut|willing|aware|checked|confirm|understand|relevant|faq|readme"
)
TEMPLATE_SENTENCE = re.compile(
    r"(?:[-*+] \[[ xX]\] )?(?:"
    r"_?no response_?$|a clear and concise description |if applicable, add |add any other (?:context|information) "
    r"|steps to reproduce the behaviou?r|explain the problem|ex\. i'm always frustrated |describe (?:the|any) \w+ you"
    r"|please (?:read|search|make sure|ensure|check|fill|complete|provide|include|describe|use the|do not|follow) "
    r"|before (?:opening|submitting|filing|posting|creating|you) |for (?:guidance|more information) on "
    r"|thank(?:s| you) for (?:taking|reporting|filing|opening|contributing|your) |by (?:submitting|opening|filing) "
    r"|i(?: have|'ve| am|'m| agree| confirm| acknowledge| understand| searched| checked| read| will)\b"
    rf".{{0,80}}\b(?:{_PROMISED}))",
    re.IGNORECASE,
)
"""How a line begins that a template or form wrote and a reporter left standing. To be matched at a line's start."""

_REFERENCE = (
    r"(?:(?:[\w.-]{1,100}/[\w.-]{1,100})?#\d{1,9}\b|\bGH-\d{1,9}\b|https?://\S{1,200}/(?:issues|pull|pulls)/\d{1,9}\b)"
)
_COMMIT = r"(?:\b(?=[a-f]*\d)[0-9a-f]{7,40}\b|https?://\S{1,200}/commit/[0-9a-f]{7,40}\b)"
_LINK = r"(?:\b(?:PR|pull request|issue|commit|bug|ticket)s? |[(\[` :-]){0,4}"
_DONE = "fixed|closed|solved|resolved|addressed|landed|implemented|merged|completed|done|added|removed|shipped"
_NOW = r"(?: (?:this|it|now|already|upstream|on master|on main)){0,2}"
_BY = "by|in|with|via|as of|through|thanks to|as part of"

DUPLICATE_OF = _any(
    r"(?<!not )(?<!not a )(?<!n't )(?<!n't a )\b"
    r"(?:dup(?:e|licate[sd]?)?(?: issue| bug)? (?:of|with|to)|in favou?r of) ?"
    rf"{_LINK}(?P<of>{_REFERENCE})",
)
DUPLICATE = _any(
    r"\b(?:clos\w{1,3}|mark\w{0,3})(?: this| it)?(?: out)? as (?:an? )?dup(?:e|licate)\b",
    r"^dup(?:e|licate)[.!]*$",
)
FIXED_BY = _any(
    rf"\b(?:{_DONE}){_NOW} (?:{_BY}) ?{_LINK}(?P<by>{_REFERENCE}|{_COMMIT})",
    rf"(?P<this>{_REFERENCE}|{_COMMIT})\)?,? (?:(?:which|has|have|now|just|already|been|is|was|got) ){{0,4}}"
    r"(?:merged|landed|(?:fix|solv|resolv|address|clos)(?:ed|es) (?:this|it|that)\b)",
)
FIXED = _any(
    r"^(?:(?:and|so|yes|yeah|ok|okay|yep|triage|great|update)\b[,:]? )?"
    r"(?:(?:i (?:think|believe|guess) )?(?:this|it|that|all of this)(?: bug| issue)?"
    r"(?:'s| is| was| has been| got| seems to be| looks| should be(?= (?:now )?(?:fix|solv|resolv)))? )?"
    r"(?:(?:all|now|already|since|been) ){0,3}"
    r"(?:fixed|done|implemented|landed|solved|resolved|finished|completed)\b(?! (?:enough|for me|as soon))",
    r"\bclos(?:ing|ed?)(?: this| it)?,? as (?:fixed|done|completed?|resolved|implemented)\b",
)
NOT_PLANNED = _any(
    r"\bwon'?t ?fix\b",
    r"(?:\bnot|n't|\bno longer) going to (?:do|fix|implement|add|support|change|happen|accept|merge|pursue)\b",
    r"\b(?:will not|won't) (?:be )?(?:fix|do|implement|add|support|chang|accept|happen|pursu|merg)\w*",
    r"\bdecided (?:not to|against)\b",
    r"\bout of scope\b",
    r"(?:\bnot? |n't )(?:plan|plans|planning|planned) (?:to|on|for)\b",
    r"\bnot planned\b",
    r"\bwe (?:do|did)(?: not|n't) (?:want|intend|plan) to\b",
    r"\b(?:isn't|not) (?:feasible|a good idea|suitable|something we)\b",
    r"\b(?:needs?|requires?|through|writ\w{2,3} up|via) (?:an? |the )?(?:formal |full )?(?:RFC|proposal process)\b",
    r"\bRFC (?:is |are )?required\b",
    r"\bclos\w{1,3}(?: this| it)? as (?:wontfix|not planned|invalid)\b",
    r"\bwith no action\b",
    r"\b(?:proposal|request|idea|feature|change|issue|this) (?:is|was|has been) (?:declined|rejected)\b",
)
STALE = _any(
    r"\bobsoleted?\b",
    r"\bno longer (?:relevant|applicable|applies|apply|needed|necessary|exists?|valid|used)\b",
    r"(?:\bnot|n't)(?: \w{1,20}){1,3} any ?more\b",
    r"\b(?:no|lack of|due to|without) (?:recent |further |any )?"
    r"(?:activity|progress|response|inactivity|feedback|reply|movement)\b",
    r"\b(?:is|are|as|went|gone|marked) stale\b",
)
_THIS = r"\b(?:this|that|it|which|behaviou?r)"
ANSWERED = _any(
    rf"{_THIS}(?:'s| is| was) (?:the )?(?:expected|intended)(?: behaviou?r)?(?=[.!,;:)]|$| here| and| as)",
    r"\bwork(?:s|ing) as (?:intended|designed)\b",
    rf"{_THIS}(?:'s| is) by design\b",
    r"\b(?:as|is|it's|that's) not[- ]a[- ]bug\b",
    r"\bclos\w{1,3}(?: this| it)? as answered\b",
    r"\b(?:has|have) been answered\b",
    r"\b(?:this|your|the) question (?:is|was) (?:already )?answered\b",
)
WORKAROUND = _any(
    r"\b(?:the|a|one|possible|simple|known|current) work-?around (?:is|was|for this|here)\b",
    r"\bas a work-?around\b",
    r"^work-?around:",
)
HEDGE = _any(
    r"\?",
    r"\b(?:not|never|partially|partly|half|almost|nearly|hopefully|maybe|perhaps|possibly|might|unless|until)\b",
    r"\b(?:once|if|when|will|would|going to|let me|needs?|trying|attempting|wants?|wait|waiting|blocked|ish)\b",
    r"n't\b",
)
"""What takes the certainty from a sentence that would otherwise say that something was done."""

CLOSING = _any(r"\bclos(?:e|ed|ing)\b")

HOUSEKEEPING = _any(
    r"\b(?:spring|house)[- ]?(?:clean|keep)\w{0,4}",
    r"\bclean\w{0,3} up (?:the |our |some )?(?:old|stale|open|backlog|issues?)\b",
)
"""A short comment with it closes many threads at once and says nothing about this one."""

COURTESY = _any(
    r"[\W_]*+(?:(?:ok|okay|great|cool|nice|thanks?|thank you|thx|ty|cheers|perfect|awesome|lgtm)\b[\W_]*+){1,4}",
)
"""The whole of a comment that only thanks."""

COMMAND = _any(
    r"\s*+@[\w-]{1,39}(?:\[bot\])?:? (?:r[+=?-]|try|retry|claim|label|assign|rollup|p=)",
    r"\s*+/[a-z][\w-]{1,30}(?:\s|$)",
    r"\s*+(?:come on )?@?bors\b",
)
"""How a comment begins that speaks to a bot."""
