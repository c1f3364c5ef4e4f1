"""The phrases that reading goes by, whatever the ending: templates, references, doubt, courtesy, complaints.

Only what any repository may say stands here. Phrases of one community fit the threads they were found in and no others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


REFERENCE = (
    r"(?:(?:\b[\w.-]{1,100}/[\w.-]{1,100})?#\d{1,9}\b|\bGH-\d{1,9}\b"
    r"|https?://[^\s)\]]{1,200}/(?:issues|pull|pulls)/\d{1,9}\b)"
)
"""An issue or pull request: ``#12``, ``GH-12``, ``owner/name#12`` or a link."""

COMMIT = r"(?:\b(?=[a-f]*\d)[0-9a-f]{7,40}\b|https?://[^\s)\]]{1,200}/commits?/(?=[a-f]*\d)[0-9a-f]{7,40}\b)"

HEDGE = _any(
    r"\?",
    r"\b(?:not|never|partially|partly|mostly|sort of|kind of|half|almost|nearly|hopefully|maybe|perhaps|possibly"
    r"|might|unless|until)\b",
    r"\b(?:once|if|when|will|would|going to|let me|needs?|trying|attempting|wants?|wait|waiting|blocked|ish)\b",
    r"\b(?:probably|presumably|next|soon|upcoming|to be|easily)\b",
    (
        r"\b(?:can|could|may|must) (?:\w{1,20} )?be (?:fixed|done|solved|resolved|handled|addressed|added"
        r"|implemented|included|changed)\b"
    ),
    (
        r"\bshould (?:\w{1,20} )?be (?:addressed|done|implemented|added|handled|merged|changed|updated|removed"
        r"|clarified|covered)\b"
    ),
    r"n't\b",
    r"\bre-?opening\b|\bhow (?:this|it|that|they)\b",
    r"'ll\b|@[\w-]{1,39} (?:to|will|should|can) |\bafter (?:the |PR |pull request ){0,2}\S{1,200} is\b",
)
"""What takes the certainty from a sentence that would otherwise say that something was done."""

BUT = _any(r"\b(?:but|however|except|although|though|still|remain\w{0,3}|another|other than)\b")
"""What takes it while the thread goes on; at its closing it only adds to what is said."""

CONDITION = _any(r"\b(?:if|whether|unless|once|until|in case|when(?:ever)?)\b")
"""What makes a supposition of the phrase after it."""

DENIAL = _any(
    r"\b(?:maybe|perhaps|might|may be|could be|should we|can we|not sure|used to|not|never|was it|is it"
    r"|is this)\b|n't\b"
)
"""What makes a doubt or the contrary of the phrase after it in the same clause."""

AFTERWARDS = _any(
    r"\?|\b(?:once|if|when|will|unless|until|after|as soon as|in case|assuming|provid(?:ed|ing) that|pending|awaiting"
    r"|depend(?:s|ing) on|subject to|waits? for|waiting for|(?:may|might) (?:need|have) to)\b|'ll\b"
)
"""What takes it when it follows the words that name what did it."""

INTENT = _any(r"(?:\bi'll|\bwill) (?:try|look|check|test|investigate|see|report|give)\b")
"""What somebody is about to do."""

INVITATION = _any(
    (
        r"(?:[,;:.(\u2013\u2014-] ?)?\b(?:(?:and|so|but) )?(?:please |just |do |kindly )?"
        r"(?:if not,? (?:please |then )?(?=re-?open|let|tell|comment)|if (?:not|i'm|i am|it's|it is"
        r"|it|this|that|you|there|anyone|someone|something)\b[^,;]{0,80}[,;] ?"
        r"|feel free to |(?:please |kindly )(?:do )?(?=re-?open|let|comment|file|open|shout)"
        r"|re-?open (?:if|otherwise|should|when)|let (?:me|us) know)"
    ),
)
"""How an invitation to come back begins. What it supposes takes nothing from what the sentence says before it."""

TO_BE_RELEASED = _any(
    r"(?:[,;(\u2013\u2014-] ?| )(?:(?:and|so|but|which|it|this|that|the fix) ){0,3}(?:will|should|'ll|is going to)"
    r"(?: (?:be|go|come|get|land|ship|appear|make it|also|then|now|probably|likely)){0,4}"
    r" (?:in|into|out|with|part of|released|available|included|shipped|backported)\b"
)
"""How a clause begins that says in which release a fix will be. It takes nothing from what stands before it."""

CLOSING = _any(r"\bclos(?:e|ed|ing)\b")

BARE_CLOSING = _any(
    (
        r"\W*+(?:(?:so|ok|okay|then|thus|i'm|i am|i'll|i will|i|we|let's|lets|going to|gonna|will) ?,? ?){0,4}"
        r"clos(?:e|ed|ing)(?: (?:this|that|it|the|issue|ticket|bug|here|out|now|then|for now|again))*+\W*"
    ),
)
"""The whole of a sentence that says no more than that the thread is closed."""

CLOSES_NOW = _any(
    r"\b(?:(?:i'm|i am|we're|we are|i'll|i will|we'll|we will|let's|let us|let me|going to|gonna|will|so|therefore"
    r"|just|now) ){1,4}clos(?:e|ing)\b"
)
"""Announces the closing that it comes with: no doubt, though it speaks of the future."""

CLOSABLE = _any(
    r"\b(?:can|could|should|may|will) (?:now |probably |safely |then )?be (?:safely )?closed\b",
    (
        r"\b(?:ok|okay|fine|safe|ready|happy|good|inclined|propose|proposal|suggest\w{0,3}|agree\w{0,2}|let's"
        r"|lets|please"
        r"|going|gonna)(?: to| with| for)?(?: we| you)? clos(?:e|ing)\b"
    ),
    r"\bclos(?:e|ing) (?:this|it|issue)\b",
)
"""Words that leave nothing but the closing to do."""

DECIDES = _any(
    r"\b(?:decision|resolution|conclusion|consensus|agreement)(?: (?:in|at|from|on|here|is|was|to)\b|:)",
    (
        r"\b(?:we|was|were|it|team|group|meeting|everyone) (?:have |has |had )?"
        r"(?:decided|concluded|agreed|settled|resolved|picked|chose)\b"
    ),
)
"""Words that settle what a thread is about."""

ASSENT = _any(
    (
        r"(?:@[\w-]{1,39}[,:]? )?(?:(?:yes|yeah|yep|ok|okay|sure|agreed|agree|right|indeed|sounds good|sgtm|lgtm"
        r"|fair enough|makes sense|no objections?"
        r"|great|thanks|thank you|done|fine|cool|good|i agree|i think so|works for me|that's fine)\b.{0,40}"
        r"|.{0,20}\bclos(?:e|ed|ing)\b.{0,30}|https?://\S{1,500})"
    ),
)
"""The whole of a sentence that only agrees to what was said before, or closes."""

HOUSEKEEPING = _any(
    r"\b(?:spring|house)[- ]?(?:clean|keep)\w{0,4}",
    r"\bclean\w{0,3} (?:up )?(?:the |our |some )?(?:old|stale|open|backlog|issues?|tracker)\b",
)
"""A short comment with it closes many threads at once and says nothing about this one."""

COURTESY = _any(
    (
        r"[\W_]*+(?:(?:ok|okay|great|cool|nice|thanks?|thank you|thx|ty|cheers|perfect|awesome|lgtm"
        r"|(?<=, )@[\w-]{1,39}"
        r"|so much|very much|a lot|all|again|everyone|guys|for (?:the|your) (?:report|fix|quick fix|patch"
        r"|work))\b[\W_]*+){1,6}"
    ),
)
"""The whole of a comment that only thanks."""

COMMAND = _any(
    r"\s*+@[\w-]{1,39}(?:\[bot\])?:? (?:r[+=?-]|try|retry|claim|label|assign|rollup|p=)",
    r"\s*+/[a-z][\w-]{1,30}(?:\s|$)",
    r"\s*+(?:come on )?@?bors\b",
)
"""How a comment begins that speaks to a bot."""

MERGE_BOT = re.compile(r"(?:bors|homu|mergify|merge-?queue|github-merge-queue)(?:\[bot\]|-?bot)?\Z", re.IGNORECASE)
"""The login of a program that closes threads by merging what fixes them."""

REMOVAL = _any(
    r"\b(?:remov|delet|drop|get(?:ting)? rid|eliminat|deprecat|kill|strip|unused|retire|discontinu|purg|clean)"
)
"""The title of a thread that asks to take something away."""

STILL = _any(
    r"\b(?:this|it|that|bug|issue|problem|crash|error)(?: \w{1,20})? (?:is|'s|came|has come|seems) (?:to be )?back\b",
    r"\bit's back\b",
    (
        r"\b(?:still|again) (?:happen\w{0,3}|occur\w{0,4}|broken|fail\w{0,3}|crash\w{0,3}|see|seeing|get|getting"
        r"|have|having|hit"
        r"|hitting|reproduc\w{2,5}|experienc\w{2,3}|an issue|a problem|present|exists?|not (?:fixed|working"
        r"|resolved|work))\b"
    ),
    r"\b(?:happen|occur|appear|reproduc|fail|crash|break)\w{0,4} again\b",
    (
        r"\b(?:is|was|isn't|not|hasn't been|does not seem|doesn't seem)(?: \w{1,20})? (?:not |really |actually "
        r"|to be ){0,3}(?:fixed|resolved|solved)(?: for me| here| yet| in \S{1,20})?[.!]*$"
    ),
    r"\b(?:regressed|regression)\b",
    r"\b(?:can|should|could|please)(?: \w{1,10}){0,2} re-?open\w{0,3}\b",
)
"""Words after the closing that take it back."""

RETRACTS = _any(
    (
        r"\b(?:never ?mind|nvm|my (?:mistake|bad|fault|error)|false alarm|scratch that|sorry for the noise"
        r"|ignore (?:me|that|this))\b"
    ),
    r"\b(?:works|working|fixed|solved|resolved|gone)(?: for me| fine)? (?:now|again)\b",
    r"\b(?:user error|different (?:issue|bug|problem)|unrelated|separate issue)\b",
)
"""Words that take such a complaint back."""


_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class PhraseSet:
    """Ways of saying one thing, as regular expressions for re.IGNORECASE.

    With ``numbered`` every sentence that one of them fits holds a digit: others are passed over by that quick test.
    """

    name: str
    phrases: tuple[str, ...]
    numbered: bool = False

    def may_stand_in(self, sentence: str) -> bool:
        """Whether it is worth looking for them."""
        return not self.numbered or bool(_DIGIT.search(sentence))


LINK = r"(?:\b(?:PR|pull request|pull|issue|commit|bug|ticket|patch)s? |(?:the|this|that) |[(\[` :-]){0,4}"
ISSUE_LINK = r"(?:\b(?:issue|bug|ticket)s? |(?:the|this|that) |[(\[` :-]){0,4}"
OPENER = (
    r"^(?:(?:and|so|yes|yeah|yep|ok|okay|triage|great|update|indeed|ah|oh|hi|hey|thanks|thank you|closing|cool"
    r"|well)"
    r"\b[,:!.;-]? ?){0,3}"
)


_DONE = (
    "fixed|closed|solved|resolved|addressed|landed|implemented|merged(?! with #)|completed|done|added|removed|shipped"
    "|released"
    "|incorporated|integrated|included|corrected|clarified|updated|changed|committed|pushed|backported"
    "|applied|patched|rewritten|renamed|reworded|deleted|dropped|replaced|handled|taken care of"
    "|dealt with"
)
_SETTLED = "fixed|solved|resolved|addressed|implemented|landed|merged|completed?|done|finished|corrected|incorporated"
_NOW = r"(?: (?:this|it|now|already|upstream|on master|on main)){0,2}"
_BY = "by|in|with|via|as of|through|thanks to|as part of|from|since"
_IT = r"\b(?:this|it|that|these|those|which|everything|(?:issue|bug|problem|crash|error|request|feature|test)s?)"
_EVEN = (
    r"(?: (?:now|already|also|since|indeed|all|just|been|finally|recently|actually|mostly|both|long|(?:in|as) fact"
    r"|then|thus|\w{2,15}ly)){0,3}"
)

FIXED_BY = PhraseSet(
    "names the fix",
    (
        rf"\b(?:{_DONE}){_NOW} (?:{_BY}) ?{LINK}(?:{REFERENCE}|{COMMIT})",
        rf"\b(?:{_DONE})\b[^.;:#]{{1,60}} (?:in|by|via|with|as) {LINK}{COMMIT}",
        rf"\b(?:taken|applied|accepted|merged|committed|pushed) as {LINK}{COMMIT}",
        (
            r"\b(?:(?:back)?ported|cherry-?picked|applied|landed|merged|pushed|committed)(?: this| it)? (?:to"
            r"|on|onto|into)"
            rf" [\w./-]{{1,40}}(?: branch)?,? (?:in|by|via|with|as) {LINK}(?:{REFERENCE}|{COMMIT})"
        ),
        rf"\b(?:{_DONE})\b[^.;:#]{{1,60}} (?:in|into|by|via|with|as) (?:PR|pull request|pull) {REFERENCE}",
        (
            rf"(?:{REFERENCE}|{COMMIT})\)?,? (?:(?:which|has|have|now|just|already|been|is|was|got|also"
            rf"|it) ){{0,4}}(?:merged|landed)\b"
        ),
        (
            rf"(?:{REFERENCE}|{COMMIT})\)?,? (?:(?:which|has|have|now|just|already|also|it|actually) ){{0,4}}"
            r"(?:fix|solv|resolv|address|clos|implement)(?:ed|es)(?= (?:this|it|that|the)\b|[.!]*$)"
        ),
        (
            rf"\bclos(?:ing|es)(?: this| it| out)?,? (?:by|via|with|in|thanks to|due to|per) {LINK}(?:{REFERENCE}"
            rf"|{COMMIT})"
        ),
        (
            rf"\b(?:fix|fixes|fixed|patch|solution|implementation|change)(?: is| was| landed| went| merged)*"
            rf"(?: in| at| by|:| is) {LINK}(?:{REFERENCE}|{COMMIT})"
        ),
        rf"^(?:see |in |via |commit |now )?{COMMIT}[.!]?$",
    ),
    numbered=True,
)

VERSION = r"[vV]?\d{1,4}(?:\.\d{1,5}){1,3}(?:-?(?:alpha|beta|rc|pre|dev)[.-]?\d{0,4})?\b(?!\.\d)"
_RELEASE = (
    r"(?:(?!(?:section|sec|chapter|paragraph|table|figure|step|appendix|rfc|page|line|draft|after|before|until"
    r"|than)s?\b)"
    r"[a-z][\w-]{0,20} ){0,2}"
    r"(?:releases? |versions? )?"
)
RELEASED_IN = PhraseSet(
    "names the release",
    (
        (
            r"\b(?:fixed|included|shipped|ships|released|available|resolved|implemented|landed|solved|added|corrected"
            r"|addressed|part of|went out|(?:is|are) out|comes?)(?: (?:now|already|today|yesterday|just now))?"
            rf" (?:in|with|as of|since|from|as) {_RELEASE}{VERSION}"
        ),
        rf"\b(?:released|shipped) (?:releases? |versions? )?{VERSION}",
        rf"(?:\b(?:is|are)|\b(?:it|this|that)'s) (?:now |already )?(?:in|part of|included in) {_RELEASE}{VERSION}",
        (
            rf"{VERSION},? (?:(?:which|has|have|is|was|now|been|just|already) ){{0,4}}"
            r"(?:out|released|published|available|(?:fixes|contains|includes|has) (?:this|it|that|the (?:fix"
            r"|change)))\b"
        ),
    ),
    numbered=True,
)
"""Names the version that has the fix."""

FIXED = PhraseSet(
    "said to be fixed",
    (
        (
            rf"{OPENER}(?:(?:i|we) (?:think|believe|guess|assume) )?"
            r"(?:(?:this|it|that|all of this)(?: bug| issue)?"
            r"(?:'s| is| was| has been| got| (?:seems|appears) to (?:be|have been)| looks)? )?"
            rf"(?:(?:was|were|is|has been|have been|got) )?(?:(?:all|now|already|since|been|indeed"
            rf"|actually) ){{0,3}}(?:{_SETTLED})\b"
            r"(?! (?:for me|as soon|in favor|in favour|into|with))"
        ),
        (
            r"\bshould (?:now |all |already |also |hopefully ){0,2}be (?:now |all |already ){0,2}(?:fixed"
            r"|resolved|solved)\b(?! (?:for me|as soon|when|once|after|together))"
        ),
        r"\bshould (?:now |all )?(?:be (?:good|fine|okay|ok|working)|work)(?: fine)? now\b",
        (
            rf"{_IT}(?:'s| is| are) now (?:in|part of|on)(?! (?:the )?(?:scope|progress|review|queue|work|works"
            rf"|hands|process|hold|top|my|your)\b) [\w-]"
        ),
        (
            rf"{_IT}(?:'s| is| was| are| were| got| has| have| (?:seems|appears) to (?:be|have been)){_EVEN} "
            rf"(?:{_SETTLED}|added|included|clarified|integrated|updated)\b(?! (?:for me|with))"
        ),
        (
            rf"\b(?:has|have){_EVEN} been{_EVEN} (?:{_SETTLED}|added|integrated|clarified|updated|released"
            rf"|rewritten|reworked|simplified|improved|handled)\b"
        ),
        rf"\b(?:is|are|was|were) (?:now|already|all|finally) (?:{_SETTLED}|available|supported)[.!]*$",
        rf"\b(?:is|are) (?:{_SETTLED}|available|supported) (?:now|already)[.!]*$",
        r"\b(?:is|are|was|were) (?:solved|resolved|implemented|landed|merged|done|finished|addressed)[.!]*$",
        r"\bclos(?:ing|ed?)(?: this| it)?(?: issue)?,? as (?:fixed|done|completed?|resolved|implemented|solved)\b",
        (
            r"\b(?:consider(?:ed|ing)?|call(?:ing)?|declar(?:e|ing))(?: (?:this|it))?(?: to be| as)? (?:fixed"
            r"|done|resolved|complete|solved|closed)\b"
        ),
        (
            r"\b(?:fix|patch|change|PR|pull request|implementation)(?: for (?:this|it))?(?:'s| is| was| has| have"
            r"| are)"
            r"(?: now| been| already| just){0,2} (?:merged|landed|in|applied|accepted|committed|pushed|released"
            r"|live|deployed|out|available|upstream)\b"
        ),
        rf"{_IT}(?:'s| is| are) (?:now |already |also )?covered (?:in|by|with) (?!{LINK}{REFERENCE})",
        r"^(?:the )?(?:fix|patch|PR) (?:merged|landed|pushed|released|committed|applied)\b",
        r"\bclosed by \w{2,15}ing\b",
        r"\b(?:fix|patch) is (?:now )?(?:in|on) [\w.-]{1,40}[.!]*$",
        (
            r"\b(?:this|that|which|commit|change|PR|patch|it) (?:should|seems to|appears to)?(?: have| has)? ?"
            r"(?:fix|solve|resolve|address)(?:e?s|e?d)? (?:this|the|that) (?:issue|bug|problem|crash|error|report"
            r"|comment)\b"
        ),
        rf"\b(?:{_IT[2:]}|they) (?:now )?exists?(?: now)?[.!,]",
        r"\b(?:works|working) for me now\b|\bnow works for me\b",
        r"\baddressed (?:by|in|with) (?:the )?(?:recent|latest|new|current)\b",
    ),
)
"""A doubt or a condition in the sentence undoes these."""

_CHANGED = (
    "added|fixed|implemented|updated|removed|changed|merged(?! with)|pushed|committed|landed|renamed|clarified|reworded"
    "|rewrote"
    "|rewritten|corrected|replaced|incorporated|integrated|addressed|backported"
    "|reverted(?= (?:#\\d|[0-9a-f]{7}|commit|PR|the (?!fix|patch)|(?:this|that) (?:commit|change|PR)))"
    "|deleted|dropped|tweaked|adjusted"
    "|simplified|enabled|disabled|applied|expanded|checked in|reworked|refactored|adopted|released|shipped"
    "|introduced(?! (?:in|by|with))"
    "|included|documented|switched|converted|upgraded|bumped|extended|improved|cleaned up"
)
_NO_CHANGE = (
    r"(?! (?:[\w'/-]{1,20} ){0,4}(?:comments?|notes?|labels?|tags?|milestones?|agenda|list|title|description|todo"
    r"|summary"
    r"|link|OP|topic|question|status|opinion|mind|wiki|to #\d{1,9})\b)(?! (?:in|by) (?:the )?(?:past|next|future"
    r"|way))(?! (?:it|this) by\b)(?! for me\b)"
)
CHANGED = PhraseSet(
    "says what was changed",
    (
        (
            rf"{OPENER}(?:i|we)(?: have|'ve)?(?: now| just| also| already| since| finally"
            rf"| went ahead and){{0,2}} (?:{_CHANGED})\b{_NO_CHANGE}"
        ),
        rf"{OPENER}(?:now |just |has been |was |text |tests? |test ?case )?(?:{_CHANGED})\b{_NO_CHANGE}",
    ),
)
"""What somebody did, said by whoever closes the thread while closing it."""
