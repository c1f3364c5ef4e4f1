"""What people write when a thread ends with an answer, a mistake cleared up, or a way around.

Only what anybody may write on any tracker stands here. Words of one community fit its own threads and no others.
"""

from __future__ import annotations

from bot.reading.endings.phrases import ISSUE_LINK, LINK, OPENER, REFERENCE, PhraseSet

_THIS = r"\b(?:this|that|it|which|behaviou?r|here|they|these)"
_FURTHER = r"(?!.{0,100}\b(?:work-?around|for now|meantime|until|next|instead)\b)"
ANSWERED = PhraseSet(
    "answered",
    (
        (
            rf"{_THIS}(?:'s| is| was| are)(?: (?!not\b|un)\w{{1,20}})? (?:the )?(?:expected|intended|intentional"
            rf"|deliberate|correct behaviou?r)(?: behaviou?r)?"
            r"(?=[.!,;:()-]|$| here| and| as| because| since| by| behaviou?r|\u2013|\u2014)"
        ),
        r"\b(?:expected|intended|correct) behaviou?r\b(?=[.!,;)]|$)",
        (
            r"\b(?:working|behaving|behaves) as (?:intended|designed|expected|specified)\b|\bworks as (?:intended"
            r"|designed)\b"
        ),
        (
            r"(?:\b(?:is|was|are|were)|(?:it|that|this|here|they)'(?:s|re))(?: (?!not\b|un)\w{1,20}){0,2}"
            r" (?:intentional"
            r"|deliberate|by design|on purpose)\b"
        ),
        (
            r"\bnot[- ](?:really |actually |quite )?an?[- ](?:real )?bug\b(?! (?:in|report|fix|that))|(?:\bisn't"
            r"|n't think (?:this|it|that)(?: is|'s))(?: really| actually| necessarily)? an?"
            r"(?: \w{1,20})? bug\b(?! (?:in|report|fix|that))"
        ),
        (
            r"\b(?:possible|supported|doable) already\b|\balready works (?:with|if|when|by|via|using)\b"
            r"|\bworks already (?:with|if|when|by|via|using)\b|\balready (?:be )?(?:possible|doable"
            r"|configurable|built[- ]in|(?:done|achieved|supported|available) (?:by"
            r" (?:using|passing|setting)|with|via|using|through))\b"
        ),
        (
            r"\b(?:is|was|are|were|it's|that's) (?:meant|supposed|intended|designed) to (?:work|behave|be|do|look)"
            r" (?:like (?:this|that)|this way|that way|so)\b"
        ),
        (
            rf"{OPENER}you (?:need|have) to (?:pass|use|set|specify|enable|call|give|configure) (?!(?:the"
            rf"|a) work){_FURTHER}"
        ),
        (
            rf"{OPENER}you can (?:just |simply |also |always )?(?:pass|use|set|specify|enable) [^\s#]{{1,60}}"
            rf" (?:for|to) {_FURTHER}"
        ),
        (
            r"\b(?:this|it|that)(?:'s| is) (?:already |all |also )?(?:documented|described|explained)"
            r" (?:in|at|on|under) (?:the|our) (?:\w{1,20} ){0,2}(?:manual|docs?|documentation|guide|faq|readme"
            r"|wiki|book"
            r"|handbook|reference|tutorial)\b"
        ),
        (
            rf"{OPENER}(?:just |please |simply )?(?:use|try|pass|set|specify) [^\s#]{{1,60}}(?: (?:for|to) |,"
            rf" (?:that|it|this|which) )"
            rf"(?:this|that|it|do|does|get|what)\b{_FURTHER}"
        ),
        (
            r"\b(?:this|that|it)(?:'s| is) (?:exactly |precisely )?what (?:the )?\S{1,60}(?: \S{1,40})? (?:is"
            r"|are) for\b"
            r"|\bdoes (?:exactly|precisely) this\b"
        ),
        r"\bthe answer(?: to (?:this|that|your question))? (?:is|can be found) (?:in|on|at|here|above)\b",
        r"\b(?:works?|working|behaves?) (?:exactly |just )?as it should\b",
        rf"{OPENER}answered (?:above|here|there|in|by|on|elsewhere|already)\b",
        (
            r"\b(?:option|flag|setting|command|feature|method|function|parameter|api|switch)s? (?:already exists?"
            r"|exists? already)\b"
        ),
        (
            r"\b(?:you|one|users) can already\b|\bcan already be (?:done|achieved|configured|disabled|enabled|set"
            r"|changed)\b"
        ),
        (
            r"\b(?:there(?:'s| is| are)|we have|it has) already (?:an?|the|two|some)"
            r" (?:[\w-]{1,20} )?(?:options?|flags?"
            r"|settings?|commands?|methods?|functions?|ways?|parameters?|switch|api|hook|argument|property)\b"
        ),
        (
            r"\bturn(?:s|ed) out (?:to be|that|it was|this was)\b[^.;]{0,60}\b(?:user error|mis-?config\w{0,8}"
            r"|on (?:my|your|their|his|her|the \w{1,20}'s) (?:side|end))\b"
        ),
        r"(?:^|[:,] |\b(?:was|is|as|be|just|simply) )(?:an? )?user error(?=[.,;:!)]|$)",
        (
            r"\b(?:that's|that is|this is|it's|it is) (?:how|the way) (?:it|this|that|they|things)(?: is|'s| are)?"
            r" (?:supposed|meant|designed|intended) to\b"
        ),
        r"\b(?:is|was) (?:an? )?(?:explicit|deliberate|conscious|intentional) (?:design )?(?:decision|choice)\b",
        r"\bclos\w{1,3}(?: this| it)? as answered\b",
        r"\b(?:has|have) been answered\b",
        r"\b(?:this|your|the|my) question(?: \w{1,20})? (?:is|was|has been)(?: already| now)? answered\b",
        r"\b(?:answers|answered) (?:your|the|my|this) question\b",
        r"\bhope (?:this|that|it) (?:helps|answers|clarifies|explains|clears)\b",
    ),
)
"""Said by anybody at the closing."""

MISTAKEN = PhraseSet(
    "own mistake",
    (
        r"\bmy (?:own )?(?:mistake|bad|fault|error|misunderstanding|misreading)\b|\bmistake on my (?:part|side|end)\b",
        r"\buser error\b|\bpebkac\b|\bfalse alarm\b",
        (
            r"\bi(?:'ve| have| had)? (?:simply |just |totally |completely )?(?:misread|misunderst\w{3,5}"
            r"|misinterpreted|overlooked|missed that|was (?:wrong|mistaken|confused|being (?:stupid|dumb"
            r"|silly)))\b"
        ),
        rf"{OPENER}(?:never ?mind|nvm)\b|\bsorry (?:for|about) the noise\b|\bfound it myself\b",
        (
            r"\b(?:i|i've|and|just)(?: have| just)? (?:realized|realised|noticed|discovered|found out|figured out"
            r"|found) (?:that )?(?:it's |it is |it was |i |this is )?(?:was |had |forgot|because of |due to )?"
            r"(?:my |on my |i )"
        ),
        (
            r"\b(?:problem|issue|mistake|error|bug) (?:was|is) (?:on|in|with) my (?:side|end|part|code|config\w*"
            r"|setup|machine|own)\b"
        ),
    ),
)
"""Said by the reporter: there was nothing to mend."""

THANKED = PhraseSet(
    "thanked",
    (
        (
            r"\b(?:thanks?|thank you|thx|ty)\b[^.;:]{0,40}? for (?:\w{1,20} ){0,3}(?:clarif|expla|answer|help"
            r"|info|pointer|hint|tip\b|respon|repl|detail|guidance|advice|insight)\w{0,12}"
        ),
        (
            r"\b(?:that|this|it|which)(?: (?:totally|completely|indeed|perfectly|really|all|definitely|just|has"
            r"|have|did|seems to have)){0,2}"
            r" (?:worked|did it|did the trick|does the trick|solve[sd] (?:it|my|the|this)|help(?:s|ed)|fixe[sd] "
            r"(?:it|my)|clears|cleared|clarifies|answers)\b(?! (?:on|in|if|when))"
        ),
        r"\b(?:got it|i see|makes sense|understood)[.!, ]+(?:now[.!, ]+)?(?:thanks|thank you|thx)\b",
        r"\b(?:thanks?|thank you|thx)\b[^.;:]{0,30}(?:makes sense|i understand)\b",
        (
            r"\b(?:perfect|great|excellent|good|best|helpful) (?:answer|explanation)\b|\bwhat i "
            r"(?:was looking for|needed|wanted)\b"
        ),
        r"\bi should(?: have|'ve) (?:seen|read|known|looked|noticed|checked|thought)\b",
        r"\b(?:works|worked|working) (?:like a charm|perfectly|great|on the first try|flawlessly)\b",
    ),
)
"""Said by the reporter about an answer."""

WORKAROUND = PhraseSet(
    "workaround",
    (
        (
            r"\b(?:the|a|one|possible|simple|known|current|temporary|easy) work-?around (?:is|was|here"
            r"|would be)\b(?! (?:\w{2,15}ly )?(?:removed|reverted|dropped|gone|wrong|bad|not\b|no longer))"
            r"|\bwork-?around for (?:now|this):"
        ),
        r"\bas a (?:\w{1,20} )?work-?around\b",
        r"^work-?around:",
        r"\b(?:can|could) (?:be )?work(?:ed)? ?around (?:this |it |that |the \w{1,20} )?(?:by|with|using|via)\b",
        r"\b(?:use|using|apply|try) (?:the|this|that|following) (?:\w{1,20} )?work-?around\b",
    ),
)


DUPLICATE_OF = PhraseSet(
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

SAME_AS = PhraseSet(
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

DUPLICATE = PhraseSet(
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
