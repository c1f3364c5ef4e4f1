"""What people write when a thread got what it asked for.

Only what anybody may write on any tracker stands here. Words of one community fit its own threads and no others.
"""

from __future__ import annotations

from bot.reading.phrases import COMMIT, REFERENCE
from bot.reading.ways import LINK, OPENER, Ways

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

FIXED_BY = Ways(
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
RELEASED_IN = Ways(
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

FIXED = Ways(
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
CHANGED = Ways(
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
