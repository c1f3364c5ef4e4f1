"""The phrases that reading goes by, whatever the ending: templates, references, doubt, courtesy, complaints.

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
    (
        r"(?:[-*+] \[[ xX]\] )?(?:"
        r"_?no response_?$|a clear and concise description |if applicable, add |add any other (?:context"
        r"|information) "
        r"|steps to reproduce the behaviou?r|explain the problem|ex\. i'm always frustrated |describe (?:the"
        r"|any) \w+ you"
        r"|please (?:read|search|make sure|ensure|check|fill|complete|provide|include|describe|use the|do not"
        r"|follow) "
        r"|before (?:opening|submitting|filing|posting|creating|you) |for (?:guidance|more information) on "
        r"|thank(?:s| you) for (?:taking|reporting|filing|opening|contributing|your) |by (?:submitting|opening"
        r"|filing) "
        r"|i(?: have|'ve| am|'m| agree| confirm| acknowledge| understand| searched| checked| read| will)\b"
        rf".{{0,80}}\b(?:{_PROMISED}))"
    ),
    re.IGNORECASE,
)
"""How a line begins that a template or form wrote and a reporter left standing. To be matched at a line's start."""

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
