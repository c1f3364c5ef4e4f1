"""Why a fix that a sentence seems to name may be none: denied, undone, hearsay, the cause, partial, or not made here.

Only what anybody may write on any tracker stands here. Words of one community fit its own threads and no others.
"""

from __future__ import annotations

import re

from bot.reading.endings.phrases import COMMIT, CONDITION, REFERENCE, PhraseSet


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_EVEN = r"(?: (?:\w{2,15}ly|later|then|also|just|now|already|been|even|ever|yet|since|again|soon|all)){0,3}"
_IT = r"(?:it|this|that|them|both|the (?:fix|patch|change))"
_WAS = r"(?:was|were|is|are|been|be|got|gets|being|had to be|has to be)"
_FAULT = "bug|regression|issue|problem|crash|error|leak|failure|breakage|fault|typo|mistake|inconsistency|style"
_REFUSED = "rejected|declined|refused|vetoed|abandoned|dropped|withdrawn|superseded|blocked|closed (?:without|unmerged)"
_UNDOING = r"revert(?:ed|ing|s)?|back(?:ed|ing)? out|roll(?:ed|ing)? back|und(?:id|o|one|oing)"
_NOT = r"(?: not|n't)"

_CAME_BACK = (
    r"\b(?:came|has come|have come|comes|is coming) back\b",
    rf"\b(?:{_FAULT})s? (?:is|are) (?:now )?back\b",
    r"(?:^|\b(?:but|and now|yet) )(?:it|this|that)(?:'s| is)(?: now)? back\b(?! (?:to|up|on|online|in)\b)",
    r"\b(?:regressed|resurfaced|re-?appeared|re-?occurr(?:ed|s)|re-?introduced|no longer fixed|unfixed)\b",
    r"\b(?:broke|broken|breaks|fails|failed|crashes|crashed|happens|happened|occurs|occurred|appears|appeared) again\b",
)
_UNDONE = (
    (
        r"\b(?:but|then|however|later|yet),? (?:(?:it|that|this|they|which|we|the (?:fix|patch|change)|unfortunately"
        r"|later|soon|then|also) ){0,3}(?:was|were|had|got|has been|have been|broke|returned|came|went|caused|failed)\b"
        r"(?! (?:now |already |also )?(?:fixed|resolved|solved|merged|addressed|done|closed|easy|trivial|worth))"
    ),
    (
        r"(?:[,;] |\b(?:and|but|then) )(?:now |then )?brok(?:e|en) (?:again|in|by|with)\b|\btaken back\b"
        r"|(?:[,;] |\b(?:and|but|then) )(?:then )?re-?opened\b"
    ),
    (
        r"(?<!workaround )(?<!hack )(?<!workaround was )\b(?:reverted|backed out|rolled back|undone|yanked|unmerged)\b"
        rf"(?! (?:{REFERENCE}|(?:PR|pull request|commit) |{COMMIT}|to\b"
        r"|(?:the|that|a) (?:commit|offending|breaking|bad|broken|faulty|change|PR|pull|culprit)))"
    ),
    r"\b(?:but|then|later|however|again)\b[^.;]{0,40} (?:reverted|revert|back out|roll back|undo)\b",
    rf"(?<!by )\b(?:revert(?:ing|s)?|back(?:ed|ing)?|roll(?:ed|ing)?|undid|undo(?:ing)?) {_IT}\b",
    r"\b(?:taken|pulled|ripped|thrown) (?:back )?out(?: again\b|(?= (?:in|by|because|since|due)\b)|[.!,;]|$)",
    r"\b(?:removed|disabled|dropped|deleted) again\b|\bgot lost\b|\bwithdr(?:ew|awn)\b|\bun-done\b",
    r"\b(?:was|were|got|been) pulled (?:from|back|again|out)\b|[,;] (?:and )?lost (?:again|in|by|with)\b",
    rf"\b(?:take|took|taken|taking) {_IT} (?:back )?out\b|\bbehind (?:an?|the) (?:[\w-]{{1,20}} )?flag\b",
    r"\bfor (?:an?|one|two|some) (?:short )?(?:hour|day|week|month|moment|release)s?\b",
    r"\b(?:put|puts|brought|brings|restor\w{2,3}) (?:the )?(?:old|former|previous|original)\b",
    (
        r"(?:[,;(] ?|\b(?:and|then|but|later|was|got) )(?:then |later )?(?:removed|dropped|pulled|disabled)"
        rf" (?:in|by|with|from) (?:{REFERENCE}|{COMMIT}|v?\d)"
    ),
    r"\b(?:had|have|has|needs?|needed) to (?:be )?(?:revert(?:ed)?|back(?:ed)? out|roll(?:ed)? back|undo(?:ne)?)\b",
)
_MISTAKEN = (
    (
        r"\b(?:turn(?:s|ed)? out|prov(?:es?|ed|en))(?: to be| to have been| that)?(?: (?:it|this|that|they|to))?"
        r"(?: (?:was|is|did|does|were|has|had))?(?: \w{2,15}ly| a| an| only){0,2}(?:n't| (?:wrong|incorrect|false"
        r"|mistaken|incomplete|insufficient|not|unrelated|broken|partial|mistake|something else))\b"
    ),
    r"\b(?:i|we) (?:was|were|am|are) (?:wrong|mistaken|too (?:quick|early|fast|optimistic))\b",
    (
        r"\b(?:which|that|this|it)(?:'s| is| was)(?: \w{2,15}ly)? (?:false|untrue|wrong|incorrect|premature"
        r"|not (?:true|the case|so))\b"
    ),
    r"\b(?:scratch|strike) that\b|\bspoke too (?:soon|early)\b|\bor so (?:i|we) thought\b",
    (
        r"\b(?:edit|update|correction): (?:no|not|nope|wrong|actually|it|this|that)\b[^.;]{0,30}(?:\bnot|n't"
        r"|\bwrong|\bno)\b"
    ),
    (
        r"(?:^|[,;:\u2013\u2014-] ?|\b(?:but|practice|though|yet|no|actually) )(?:it|this|that|which|they|"
        rf"{REFERENCE}) (?:is|was|did|does|has|do|are|were){_NOT}[.!]*$"
    ),
)
_WRONG = (
    *_MISTAKEN,
    rf"^(?:is|was|did|does|has){_NOT}{_EVEN} (?:fix|help|solve|resolve|address)",
    (
        rf"\b(?:it|that|this|which|they|{REFERENCE}|fix|patch|change)(?: \w{{2,15}}ly)? (?:did|does|do|has|was|is)"
        rf"{_NOT}{_EVEN} (?:fix(?:ed)?|solved?|resolved?|help(?:ed)?|addressed?|enough|sufficient|last(?:ed)?)\b"
    ),
    (
        rf"\b(?:but|however|unfortunately|sadly|alas|actually|though|yet)\b[^.;]{{0,40}}(?:\b(?:did|does|do|has|was|is)"
        rf"{_NOT}(?:[.!]*$|{_EVEN} (?:work|fix|help|solve|resolve|address|enough|make it|get in|land)))"
    ),
    rf"\b(?:never|not|n't){_EVEN} (?:merged|accepted)\b",
    rf"\b(?:but|then|later|however)\b[^.;]{{0,40}} (?:{_REFUSED})\b",
)
UNDONE = _any(*_CAME_BACK, *_UNDONE, *_WRONG)
"""What undoes a fix when it comes later in the sentence, or in a later one."""

_NOUN_UNDONE = _any(
    rf"\W{{0,2}}(?: which| that)?(?: {_WAS}| has| have){_EVEN} (?:{_REFUSED}|reverted|backed out)\b",
    r"\W{0,2} (?:is|was|are|were|seems?|looks?|has been|remains?)(?: \w{2,15}ly)? (?:wrong|incorrect|broken|incomplete"
    r"|insufficient|not|buggy|flawed|bad|stuck|pending|under review|still)\b",
    r"\W{0,2} (?:turn(?:s|ed)|prov(?:es?|ed)|sounds?|seems?|was|were|did|had|does) "
    r"(?!(?:just |now |already |also ){0,2}(?:merged|landed|released|applied|accepted|closed|published|shipped)\b)",
    r"\W{0,2} (?:breaks|broke|caused?|causes|introduced?s?|never|did not|didn't|does not|doesn't)\b",
)
"""What follows at once and takes a fix back that is the subject: "the fix in #5 was rejected"."""

_NOUN = re.compile(
    rf"(?:fix(?:es)?|patch|solution|implementation|change|{REFERENCE}|{COMMIT})\b(?! (?:is|was|has been|landed|went) )",
    re.IGNORECASE,
)
_MENTION = re.compile(r"(?:fix(?:es)?|patch|solution|implementation|change) (?:in|at|by|:) ?\S", re.IGNORECASE)
_GOES_ON = _any(
    r"\A\)? (?!(?:has|have|was|is|should|landed|merged|works?|fixe[ds]|solve[ds]|resolve[ds]|now|today|which|by"
    r"|thanks|closing)\b)\w"
)
_SHOWN = _any(
    r"(?:\A|[,;:(\u2013\u2014] ?|\b(?:and|so|see|thanks|thank you|merged|landed|pushed|committed|applied"
    r"|submitted|posted|made"
    r"|here|have|there|with|by|from|for|is|was|contains|includes|got|accepted|tested|confirmed|reviewed|shipped"
    r"|released)"
    r" )(?:(?:for|is|was|'s|the|an?|this|my|our|your|his|her|their|proposed|final|actual|real|proper|relevant"
    r"|corresponding"
    r"|same|simple|small|quick|nice|possible|likely) ){0,4}\Z"
)
"""A fix that is only mentioned stands alone, or is shown or thanked for; what goes on is about something else."""

_GOVERNED = _any(
    rf"\b(?:reject\w{{0,3}}|declin\w{{2,3}}|refus\w{{1,3}}|{_UNDOING}|withdr[ae]w\w{{0,3}}|abandon\w{{0,3}}"
    r"|drop(?:ped|ping)?|remov(?:ed|ing)|against|without|instead of|rather than|despite|block(?:ed|ing|s)?"
    r"|wrong with|problems? with)(?: (?:the|an?|this|that|our|my|your|any|\w{2,15}(?:ed|al|ous|ing|nd|st))){0,3} ?\Z"
)
"""What stands before a fix and is done to it: "we rejected the fix in #5"."""

_SAID = (
    (
        r"\b(?:i|we|he|she|they|you|people|(?:some|every|no)(?:body|one))(?: \w{2,15}ly| had| have|'d|'ve)?"
        r" (?:thought|said|claim(?:ed)?|assumed|believed|hoped?|wish(?:ed)?|wrote|guessed|expected|(?:was"
        r"|were) told)\b"
    ),
    r"\b(?:was|were|is|been) (?:said|told|thought|believed|assumed|claimed)\b",
    r"\b(?:unclear|uncertain|unsure|doubt\w{0,3}|whether(?! to\b)|contrary to|impression)\b",
)
SAID = _any(*_SAID)
"""What makes the opinion of somebody of the words after it in the clause, or a question."""

MISTAKEN = _any(*_MISTAKEN, r"\bby (?:mistake|accident)\b", r"[,;] re-?opening\b")
"""What comes after words that were wrong."""

_HEARSAY = _any(
    *_SAID,
    r"\b(?:claim(?:s|ed|ing)|suppos(?:ed|edly)|alleged(?:ly)?|meant|intended|expected|hop(?:e|ing)|plan(?:s|ned)?) ",
    r"\b(?:hear|heard|comment(?:s|ed)|mention(?:s|ed)|report(?:s|ed)|suggests)(?: (?:here|there|elsewhere))? that\b",
    r"\bi (?:hear|heard)\b",
    r"\b(?:according to|rumou?r\w{0,3}|apparently|reportedly|thinks|believes|says|reckons|assures|tells|guess(?:es)?"
    r"|(?:told|assured|informed) (?:me|us)|(?:they|you|people|users|some|others) (?:say|think|believe|claim|report"
    r"|tell))\b",
    r"\bun-\Z|\b(?:nobody|no one|none|far from|hardly|barely|anything but)\b|\b(?:said|claims|stated|promised"
    r"|announced)\b|\b(?:no idea|as if|as though|assuming|used to)\b|\baim(?:s"
    r"|ed|ing)?\b",
    r"(?:\b(?:would|want)|'d) (?:like |love |prefer )?(?:to )?(?:get|have|see) (?:this|it|that|them|these)\b",
    r"\b(?:cannot|can ?not|unable to|fail(?:s|ed)? to|attempt(?:s|ed)? to|tr(?:y|ies|ied) to|aims? to|neither|nor)\b",
    r"\bwork (?:on (?:\w{1,20} )?)?(?:(?:is|was|has been) ?)?\Z|\b(?:being|currently|gets?) ?\Z",
    r"(?:^|[,;] ?)(?:had|were|should) \Z|\b(?:could|would|might|may) have\b|\bno (?:\w{1,20} ){0,2}\Z"
    r"|\bnothing (?:\w{1,20} ){0,2}\Z",
)
"""What makes a supposition of somebody, or a wish, of the words after it in the clause."""

_PARTLY_BEFORE = _any(
    r"\b(?:only|(?:first|second|other|last|next|one|a) (?:part|half|step|bit|piece)s?)"
    r"(?: of (?:this|it|that|the \w{1,20}))?(?: (?:is|was|are|were|has|have|been|now|got)){0,3} ?\Z",
)
_PARTLY = _any(
    r"^[^,;:]{0,80}\b(?:only (?:covers?|for|on|handles?|fix(?:es)?|partly|partially|half|part|address(?:es)?|works?)"
    r"|for (?:[\w-]{1,20} ){1,3}only|for (?:some|most|many|certain|a few|half)(?: of)?"
    r" (?:the )?(?:users?|people|platforms?|systems?|cases?|browsers?|versions?|configurations?|inputs?|targets?))\b",
    r"\b(?:but|though|although) only\b",
    r"\bthe rest (?:is|was|stays|remains|will|of (?:it|this) (?:is|will|stays|remains))\b",
    r"\bstill (?:broken|open|fail\w{0,3}|crash\w{0,3}|happens?|happening|occurs?|affected|missing|unsolved|unresolved"
    r"|unfixed|not|present|reproduc\w{2,5}|an issue|a problem|exists)\b",
    rf"\b(?:{_FAULT})s? (?:itself )?(?:still )?(?:remains?|persists?|stays?)\b(?! (?:closed|fixed|solved|resolved))",
)

_BACK_AFTER = re.compile(rf"(?:{'|'.join(_CAME_BACK)})[^;]{{0,60}}\bafter\b[^;,]{{0,40}}\Z", re.IGNORECASE)
"""What stands before a fix that did not last: "this broke again after it was fixed in 1.2"."""

_OTHER = "similar|related|different|separate|unrelated|other|another|second"
_DID = r"\b(?:done|\w{2,15}ed)"
_BESIDES = _any(
    rf"{_DID} (?:an? |the |some )?(?:\w{{2,15}}ly )?(?:{_OTHER}) (?:{_FAULT}|thing|one|case|place)s?\b",
    rf"{_DID} (?:for (?:today|the day|this week)|differently|(?:only )?in (?:theory|principle)"
    r"|theoretically|on paper)\b",
    (
        rf"{_DID} as (?:invalid|not\b|unreproducible|incomplete|can(?:no|')t|works|expected|designed|spam"
        r"|off[- ]topic)"
    ),
    r"\b(?:in|on|by) (?:an?|my|your|his|her|their|our|the|some|\w{1,39}'s) (?:[\w'-]{1,20} )?fork\b"
    r"|\bnot (?:here|by us|(?:in|on) (?:this|our|ours)\b)"
    r"|\b(?:internal|private|custom|patched) (?:build|version|branch|copy|fork|repo(?:sitory)?)s?\b"
    r"|\bin the (?:old|other|previous|former|separate|new) (?:repo(?:sitory)?|tracker)\b"
    r"|\b(?:done|finished) \w{2,15}ing\b",
)
"""Words of a fix that was none of this fault: of another one, of a tracker's field, or in somebody's fork."""

_BOOKKEEPING = _any(
    rf"{_DID} (?:you|him|her|them|me|us)\b",
    (
        rf"{_DID}(?: (?:in|into|to|with|from))? (?:an?|the|this|my|your|our|some) (?:\w{{1,20}} ){{0,3}}"
        r"(?:assignees?|assignment|reviewers?|surveys?|polls?|statement|announcement|blog"
        r"|(?:title|heading|labels?|topic|thread|discussion|conversation|meeting)(?:[.!,;]|$| at\b))"
    ),
)
"""What was done to the thread and not to the code."""

_ADDED = "added|introduced|included|merged|landed|committed|changed|pushed|shipped|released|updated"
_BLAME = _any(
    rf"\b(?:{_FAULT}|behaviou?r)s?(?! (?:tests?|fix|report|handl))(?: [\w'-]{{1,20}}){{0,3}} (?:was|were|is|are"
    rf"|got|been|i|we|you)(?: \w{{2,15}}ly)?"
    rf" (?:{_ADDED})\b",
    r"\b(?:broke|broken|breaks|breaking|fails?|failed|failing|start(?:s|ed)|stopped|regress\w{2,4}|caused)\b"
    r"[^.;]{0,40} (?:since|after|when|because|by|with|as|in|from)(?: (?:the|PR|commit|change|pull|request|in"
    r"|of)){0,3} ?"
    rf"(?:{REFERENCE}|{COMMIT}) ",
)
"""What makes a change the cause: "the bug was added in #5", "it fails since #5 was merged"."""

_CLOSING = _any(r"\bclos")
_MISTAKE = _any(r"\bby (?:mistake|accident)\b|\bin error\b|\bunrelated\b")
_BLAMING = _any(rf"\b(?:{_ADDED})\b")
_FIX_OF = _any(
    r"\b(?:fix(?:es)?|patch|PR|change|solution|tests?|work-?around|docs?|check|support) (?:for|to|of|against)\b"
)
_SINCE = _any(r"\b(?:since|after|as of)(?: (?:the|PR|commit|change|pull|request)){0,3} ?\Z")
_GOOD = _any(
    r"\b(?:clos(?:e|ed|ing)|fixed|done|works?|working|resolved|solved|complete|gone|obsolete|moot|can|should|safe"
    r"|no longer|not needed|unnecessary|implemented|supported|possible|available|passes|thanks)\b"
)
"""What a change makes of a thread that it ends: "closing since #5 was merged"."""

_MINE = r"(?:my|your|his|her|their|(?:the )?(?:reporter|user|author|customer|client|op)'?s)(?: own)?"
_PERSONAL = _any(
    rf"\b(?:on|at|in|from|for|with|to) {_MINE}(?: [\w-]{{1,20}}){{0,2}} (?:side|end|fork|machine|computer|laptop|system"
    r"|setup|environment|env|config\w{0,10}|install\w{0,6}|server|network|project|apps?|application|code|case|workspace"
    r"|profile|settings|router|account|branch|copy|clone|checkout)\b",
    r"\b(?:on|at|from) our (?:own )?(?:side|end)\b|\bin our (?:own )?(?:fork|deployment|instance|installation"
    r"|production)\b"
    r"|\b(?:fixed|solved|resolved|handled|addressed|done) (?:it |this )?(?:internally|in-?house)\b|\blocally\b"
    r"|\bmyself\b",
)
"""Where only the one who says it has it fixed."""

_OTHERS = (
    "plug-?ins?|extensions?|add-?ons?|driver|kernel|firmware|browser|distro|distribution|vendor|toolchain|dependency"
    "|fork|os|operating system|compiler|third[- ]part(?:y|ies)"
)
_ELSEWHERE = _any(
    rf"\b(?:by|with|in|through|via|as|from|using|on) (?:an?|the|your|some|another"
    rf"|\w{{1,20}}'s)(?: [\w.+-]{{1,20}}){{0,2}} "
    rf"(?:{_OTHERS})\b",
    r"\b(?:by|in|with|from|to|of) (?:an?other|a different|a separate|the other|their|your)(?: [\w.+-]{1,20})?"
    r" (?:repo|repository"
    r"|project|library|package|tool|module|product|component|program|tracker)\b",
    r"\bon the (?:server|client|backend|back-end|cluster|host|hosting|router|device|infrastructure|cdn|ci)(?: side)?\b",
    r"\bnothing (?:to (?:do|fix|change)|for us|we (?:need|have) to|left to do) ?(?:here|in this|on (?:our|this)"
    r"|in our)\b",
    r"\boff-?line\b|\b(?:by|via|over|on|in) (?:private )?(?:e-?mail|slack|discord|irc|gitter|chat|matrix|telegram)\b",
    r"\bstack ?overflow\b|\bitself\b|\bon its own\b|\bby the (?:reporter|user|author|op|customer)\b",
    r"\b(?:versions?|releases?|builds?) of (?!v?\d|(?:this|our|the (?:app|project|library|package|spec|draft"
    r"|docs?))\b)\w",
    r"\bin user[- ]?(?:land|space)\b",
    (
        r"\b(?:by|with|via|using) (?:an?|the) (?:[\w-]{1,20} ){0,2}(?:package|library|crate|gem|wrapper)"
        r"(?=[.,;)]|$| (?:called|named|by|from)\b| [\w]{1,20}-\w)"
    ),
    r"\bupstream\b|\bdownstream\b|\bthird[- ]party\b|\b(?:bug|problem|issue|error) (?:was|is|lies|lay) in the "
    rf"(?:{_OTHERS})\b",
)
_PRODUCT = _any(
    r"\b(?:in|with|as of|since|by)(?: the)? "
    r"(?!(?:the|an?|our|this|that|all|both|and|latest|current|new|newest|next|upcoming|recent|stable|beta|alpha|nightly"
    r"|patch|minor|major|point|bug-?fix|maintenance|builds?|update|branch|milestone|master|main|trunk|releases?"
    r"|versions?"
    r"|today|yesterday|tomorrow|just|tag|dev|rc|version|commit|now|already|for|to|since|from|as|v|sections?"
    r"|steps?|parts?"
    r"|pr|pull|issues?|bugs?|tickets?|rev|revision|phase|draft|chapter|appendix|table|figure|line|page|about|around"
    r"|under|over|at|on|of|by|only"
    r"|between)\b|(?:v|r|m|rc|pr|alpha|beta|build)\d)"
    r"(?P<product>[a-z][a-z+_-][a-z0-9+_-]{0,29})(?: [a-z][\w+-]{0,20})? v?\d{1,4}\b(?![:/-])",
    r"\d of (?:the |an? |its? )?(?P<of>[a-z][\w+-]{1,30})",
)
"""The product behind "fixed in", with a version of its own."""

_REMEDY = _any(
    r"\A(?: (?:it|this|that))? (?:by|with|through|via|using) (?:an?|the|our|my|your|some) "
    r"(?![^.;]{0,60}\b(?:use|work|commits?|PR|pull|patch|chang\w{1,4}|merge|releases?|versions?|refactor\w{0,4}"
    r"|rewrite|redesign"
    r"|fix|fixes|revision|rework|clean-?up|branch|updates?|upgrade|new|latest|recent|current|move|switch|removal"
    r"|addition|v?\d)\b)\w",
    r"\A(?: (?:it|this|that))? (?:by hand|manually)\b",
    r"\A(?: (?:it|this|that))? (?:by|after|with|through|via)(?: (?:an?|the|my|your|some|simple|clean|fresh|full"
    r"|new|quick"
    r"|complete)){0,3} (?:reboot|restart|re-?install(?:ation)?|install(?:ation)?|rebuild|upgrade|downgrade"
    r"|rollback|reset"
    r"|wipe|refresh|power cycle|work-?around|hack|script|config\w{0,10}|setting|proxy|vpn)\b",
    r"\A(?: (?:it|this|that|(?:the|my) (?:problem|issue|error|bug)))?(?: (?:for|on|at) \w{1,10}(?: side| end)?)?,?"
    r" (?:by|after|with|through|via) (?:simply |just |manually |completely |\w{2,15}ly )?"
    r"(?!not\b|(?:add|includ|implement|rewrit|rework|refactor|handl|check|revert|merg|mak|return|ignor|introduc"
    r"|support|validat"
    r"|escap|quot|guard|catch|wrapp|skipp|correct|patch|land|fix|extend|allow|avoid|splitt|convert|pars|comput|treat"
    r"|document|clarify|reword|mark|emitt|generat|normali[sz]|saniti[sz]|lock|synchroni[sz]|initiali[sz]|expos)ing\b)"
    r"\w{2,20}ing\b",
)
"""What people do to their own machine; whatever may be a change of code has a reference, or stands in the list."""

_MY_FAULT = _any(
    r"\b(?:user error|operator error|pebkac|mis-?config\w{0,8}|firewall|anti-?virus|wrong (?:version|password"
    r"|directory))\b",
    r"\bmy (?:own )?(?:mistake|fault|bad|error|misunderstanding|config\w{0,8}|setup|machine|side|end|code|typo|router"
    r"|network|proxy|server|system|computer|laptop|browser|account|settings?|isp|provider)\b",
    r"\bin (?:my|your|their) (?:own )?(?:config\w{0,8}|setup|code|settings|environment)\b",
    r"\bi (?:had|was|used|missed|needed|forgot) (?!to (?:close|say|mention|push))",
)
_OTHER_CAUSE = _any(
    r"\A ?: (?!https?:)\w",
    r"\A ?[,:;!\u2013\u2014-]{1,3} ?(?:it|i|we|my|the|there|this|that|an?|our|some)\b[^.;]{0,60}\b(?:was|were"
    r"|had|turned out)\b",
)
"""Why nothing had to be mended."""

_LISTS = (
    "backlog|road-?map|milestones?|boards?|tracker|queue|list|wish-?list|projects?|agenda|to-?do|faq|wiki|docket|plans?"
    "|sprint|epic|icebox|labels?|known (?:issues|limitations|problems|bugs)|troubleshooting|ideas|tickets?|survey|poll"
)
_PLACED = _any(
    rf"\A(?: (?:this|it|that|an? \w{{1,20}}))? (?:to|into|onto|in|on|under|as)(?: [\w.'/-]{{1,20}}){{0,4}}"
    rf" (?:{_LISTS})\b",
    r"\A or not\b|\A (?:the|an?) wrong\b|\A[^.;,]{0,20} without (?:the|this|that|it|any)\b",
)
"""Behind "added": where it waits."""

_TOLD = _any(r"\b(?:documented|described|explained|clarified|mentioned|noted|added|updated|listed)\b")
_LIMITATION = _any(
    r"\A[^.;]{0,60} (?:(?:as|that|why)\b[^.;]{0,60}(?:\b(?:known|unsupported|not|impossible|intended|expected"
    r"|won't|unfixable)\b|n't\b)"
    r"|(?:as|this|the|a|known|of|on)\b[^.;]{0,30}\b(?:limitations?|restrictions?|caveats?|gotchas?|unsupported)\b)"
)
"""Behind "documented": what stays as it is."""

_CLAUSE = re.compile(r"[,;:()\u2013\u2014]|\b(?:but|so|because|since|and)\b", re.IGNORECASE)
_REFERS = re.compile(rf"{REFERENCE}|{COMMIT}", re.IGNORECASE)
_SHORT = 200
"""So much before and after the words of a fix says what kind of fix it is."""

NOT_FIXED = PhraseSet(
    "takes a fix back",
    (
        *_CAME_BACK,
        *_UNDONE,
        *_WRONG,
        r"\b(?:not|never|n't|neither|nor)(?: [\w'-]{1,20}){0,3} (?:fixed|solved|resolved)\b",
        (
            rf"\b(?:reject\w{{0,3}}|declin\w{{2,3}}|{_UNDOING}|withdr[ae]w\w{{0,3}}|abandon\w{{0,3}}|against)"
            r"(?: [\w'-]{1,20}){0,3} (?:fix|patch|change|PR|pull request|approach)\b"
        ),
        rf"\b(?:fix|patch|change|PR|pull request)\b[^.;,]{{0,60}} {_WAS}{_EVEN} (?:{_REFUSED})\b",
    ),
)
"""Whatever was fixed is not, as far as the sentence says."""


def undoes(sentence: str) -> bool:
    """Whether a sentence takes back that something was fixed."""
    found = UNDONE.search(sentence)
    return bool(found and not sentence.endswith("?") and not CONDITION.search(sentence[: found.start()]))


def is_mistaken(before: str, after: str) -> bool:
    """Whether what stands around some words makes them an opinion that nobody holds any more, or a question."""
    return bool(SAID.search(_CLAUSE.split(before[-_SHORT:])[-1]) or MISTAKEN.search(after[:_SHORT]))


def excuses(sentence: str) -> bool:
    """Whether a sentence behind a fix that nothing names says that the fault was on the writer's side."""
    return bool(_MY_FAULT.search(sentence))


def is_no_fix(before: str, words: str, after: str, repo: str = "") -> bool:
    """Whether what stands around ``words``, which seem to name a fix, says that it is none or not one of ours.

    ``repo`` is the name of the repository, without its owner.
    """
    clause, rest = _CLAUSE.split(before[-_SHORT:])[-1], after[:_SHORT]
    if undoes(after) or _NOUN_UNDONE.match(after) or _HEARSAY.search(clause):
        return True
    if _BACK_AFTER.search(before[-_SHORT:]) or _BESIDES.search(words + rest):
        return True
    if _NOUN.match(words) and (_GOVERNED.search(clause) or (_MENTION.match(words) and _is_mention(before, after))):
        return True
    if _PARTLY_BEFORE.search(before) or _PARTLY.search(rest) or _is_cause(before, words, after):
        return True
    if _PLACED.search(rest) or (_TOLD.search(words) and _LIMITATION.search(rest)):
        return True
    if _REFERS.search(words + after):
        return False
    return bool(_BOOKKEEPING.search(words + rest)) or _is_elsewhere(before, words, rest, repo)


def _is_mention(before: str, after: str) -> bool:
    return bool(_GOES_ON.match(after)) or not _SHOWN.search(before) or undoes(before)


def _is_cause(before: str, words: str, after: str) -> bool:
    """Whether the change is what broke it, or what closed it by mistake."""
    if _CLOSING.search(words) and _MISTAKE.search(after):
        return True
    if not _BLAMING.search(words) or _FIX_OF.search(before):
        return False
    since = _SINCE.search(before)
    is_blamed = since and not _GOOD.search(before[: since.start()].strip() or after)
    return bool(is_blamed or _BLAME.search(before + words))


def _is_elsewhere(before: str, words: str, after: str, repo: str) -> bool:
    """Whether it was mended on somebody's machine or in another product, or nothing was wrong."""
    around = f"{before[-_SHORT:]}{words}{after}"
    if _PERSONAL.search(around) or _ELSEWHERE.search(around) or _REMEDY.search(after):
        return True
    if _MY_FAULT.search(after) or _OTHER_CAUSE.search(after):
        return True
    product = _PRODUCT.search(words + after)
    name = (product["product"] or product["of"]).casefold() if product else ""
    return bool(name) and not _is_ours(name, repo.casefold())


def _is_ours(name: str, repo: str) -> bool:
    return name in ("this", "it", "ours") or (bool(repo) and (name.startswith(repo) or repo.startswith(name)))
