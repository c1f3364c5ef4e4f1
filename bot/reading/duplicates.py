"""What people write when a thread ends as a duplicate of another.

Only what anybody may write on any tracker stands here. Words of one community fit its own threads and no others.
"""

from __future__ import annotations

from bot.reading.phrases import REFERENCE
from bot.reading.ways import ISSUE_LINK, LINK, Ways

DUPLICATE_OF = Ways(
    "names the duplicate",
    (
        (
            rf"\bdup(?:e|licate[sd]?)?(?: issue| bug)?(?:\(\?\))? (?:of|with|to)"
            rf"(?: [\w-]{{1,20}}){{0,3}} ?{LINK}{REFERENCE}"
        ),
        rf"\bdup(?:e|licates?|licating)?:? {ISSUE_LINK}{REFERENCE}",
        rf"\bin favou?r of(?: [\w-]{{1,20}}){{0,4}} ?{ISSUE_LINK}{REFERENCE}",
        rf"\b(?:super[sc]eded|subsumed|obsoleted) by {ISSUE_LINK}{REFERENCE}",
        rf"{REFERENCE}\)?,? (?:also |already |now |has |have )?(?:supersed|subsum|duplicat)(?:es?|ed)(?: this| it)?\b",
        (
            rf"{REFERENCE} (?:is|looks like|seems to be) (?:a |an |the )?(?:exact )?(?:dup(?:e|licate)?|same "
            rf"(?:issue|bug|problem))\b"
        ),
    ),
    numbered=True,
)
"""To be believed however long before the closing it was said."""

SAME_AS = Ways(
    "same as another",
    (
        (
            rf"\bsame(?: (?:exact|underlying|basic|root|general))?(?: (?:issue|bug|problem|thing|cause|error"
            rf"|report|request|crash|question|one|ICE))?"
            rf" as(?: in)? {ISSUE_LINK}{REFERENCE}"
        ),
        (
            rf"\b(?:tracked|tracking|continued|continuing|continues?|followed up)(?: (?:this|it|here|now|already"
            rf"|separately)){{0,2}}"
            rf" (?:by|in|at|under|with|on|over at|over in) {ISSUE_LINK}{REFERENCE}"
        ),
        (
            rf"\b(?:merged|merging|folded|folding|rolled|consolidat\w{{2,3}}|fold)(?: (?:this"
            rf"|it)){{0,2}} (?:into|with) (?:the (?:discussion|conversation|thread) (?:at|in|on) )?"
            rf"{ISSUE_LINK}{REFERENCE}"
        ),
        (
            rf"{REFERENCE},? (?:which |that )?(?:already |now )?(?:covers|tracks|captures|is tracking"
            rf"|is already tracking) (?:this|it|that|the same)\b"
        ),
        rf"^(?:this|it|that)(?: is|'s) (?:just |really |basically |indeed )?{REFERENCE}[.!]*$",
        rf"{REFERENCE} (?:for|has|describes|reports|is about) (?:the same|an identical)\b",
        rf"\bnow (?:in|under|by) issues? {REFERENCE}",
        (
            r"\b(?:this|it|that)(?:'s| is| should be| seems to be| was)(?: \w{2,15}ly| already| also"
            r"| now)? covered (?:in|under|by)"
            rf" {ISSUE_LINK}{REFERENCE}"
        ),
        (
            r"\balready (?:been )?(?:reported|filed|known|raised|discussed|requested|mentioned|open)(?: \w{1,20})?"
            rf" (?:in|as|at|under|by|with) {ISSUE_LINK}{REFERENCE}"
        ),
        (
            r"\b(?:let's|let us|please|will|we'll|can|should)(?: \w{1,20}){0,2} (?:discuss|discussions?"
            r"|conversation|track|continue"
            rf"|follow)\w{{0,3}}(?: \w{{1,20}}){{0,3}} (?:in|on|at|under|over at|to) {ISSUE_LINK}{REFERENCE}"
        ),
        rf"(?<!as )\b(?:part|subset|special case|instance|symptom|continuation) of {ISSUE_LINK}{REFERENCE}",
        (
            rf"\b(?:moved|moving|transferred|migrated|refiled|re-filed|filed)(?: (?:this|it|here|now)){{0,2}} "
            rf"(?:to|as"
            rf"|into)(?: [\w-]{{1,20}}){{0,4}}:? ?{ISSUE_LINK}{REFERENCE}"
        ),
    ),
    numbered=True,
)
"""Said at the closing only: earlier it is a remark."""

DUPLICATE = Ways(
    "called a duplicate",
    (
        (
            r"\b(?:clos\w{1,3}|mark\w{0,3})(?: this| it)?(?: one)?(?: out)? (?:as|since)(?: it's| it is"
            r"| this is)? (?:an? )?(?:\w{1,20} )?dup(?:e|licate)?\b"
        ),
        r"^dup(?:e|licate)?[.!]*$",
        r"\bsorry (?:for|about) the (?:dup(?:e|licate)?|double)\b",
        (
            r"\b(?:this|it|that)(?:'s| is| was| looks like)(?: indeed| just| actually| clearly| really)? (?:an? )"
            r"(?:exact |accidental |known )?dup(?:e|licate)\b(?! (?:in|entr|key|defin|symbol|name|code))"
        ),
        r"\bin favou?r of (?:that|those|this|another|an?|the)(?: \w{1,20}){0,2} (?:issue|ticket|bug|one|report)s?\b",
        r"\b(?:an|another) (?:open |existing )?(?:issue|ticket|bug) (?:open )?(?:for|about) (?:this|that|it) already\b",
        r"\balready (?:an|another|have an|have another)(?: open| existing)? (?:issue|ticket|bug)\b(?! (?:with|in)\b)",
    ),
)
