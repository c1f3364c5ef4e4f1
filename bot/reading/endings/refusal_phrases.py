"""What people write when a thread ends without a change: it is not planned, or out of date.

Only what anybody may write on any tracker stands here. Words of one community fit its own threads and no others.
"""

from __future__ import annotations

from bot.reading.endings.phrases import OPENER, PhraseSet

NOT_PLANNED = PhraseSet(
    "not planned",
    (
        r"\bwon'?t ?fix\b",
        (
            r"(?:\bnot|n't|\bno longer) going to (?:do|fix|implement|add|support|change|happen|accept|merge"
            r"|pursue|address|make|work on)\b"
        ),
        (
            r"\b(?:will not|won't) (?:be )?(?:fix|do|implement|add|support|chang|accept|happen(?! again)|pursu"
            r"|merg|address)\w*(?! again)"
        ),
        (
            r"\b(?:decided|agreed|agreement|chose|chosen|consensus|conclusion|conclude[sd]?)(?: is| was)? "
            r"(?:not to|against|to not|to leave|to keep|to do nothing|to reject|that we (?:do not|don't|didn't"
            r"|won't|shouldn't) want|to (?:stay|stick))\b"
        ),
        r"\b(?:agreement|agreed|decided|consensus|decision|conclusion)\b[^.;:]{0,50} (?:to not|not to|against) ",
        (
            r"\b(?:will|we'll|let's|to|decided to) (?:stick with|keep) (?:the|it|this|what)\b(?: \w{1,20}){0,2} "
            r"(?:current|existing|as|same|status|original)\b"
        ),
        r"\b(?:emerging |rough )?consensus (?:is |was |here )?(?:to (?:make no|not|close|leave|keep|reject)|against)\b",
        (
            r"\b(?:(?:is|are|be|seems?|as|considered|feels|and|currently|probably|likely|definitely|clearly|bit"
            r"|this)(?: (?:\w{2,15}ly|also|too|far|way|bit))?"
            r" out[- ]of|outside(?: of)?(?: the)?|beyond(?: the)?|not (?:currently |really )?in|not within"
            r"(?: the)?)[- ]scope\b"
        ),
        r"(?:\bnot? |n't )(?:\w+ )?(?:plan|plans|planning|planned) (?:to|on|for)\b",
        r"\bnot planned\b",
        r"(?:\bnot|n't) (?:doing|adding|implementing|fixing|changing|supporting|pursuing) (?:this|it|that)\b",
        (
            r"\b(?:we|i) (?:do|did)(?: not|n't) (?:(?:want|wish) to (?:do|add|support|change|make th|include"
            r"|implement|fix|pursue|introduce|go|block|define|allow|have)|(?:intend|plan) to)\b"
        ),
        (
            r"(?:\b(?:isn't|not)|n't think (?:this|it|that)(?: is|'s))(?: really| very| all that| particularly)? "
            r"(?:feasible|a good idea|suitable|something we|worth (?:it|the|\w{2,15}ing)|practical|desirable"
            r"|viable)\b"
        ),
        (
            r"\b(?:do not|don't|didn't|not) (?:think|believe|see|feel|see how|convinced)(?: that)? [^.;:]{0,50}\b"
            r"(?:worth|necessary|we need (?:to|this|it|an?|any)|(?:a )?good idea|feasible|desirable|suitable"
            r"|appropriate|valuable|value in|should be (?:added|changed|done|supported))\b"
        ),
        r"\bno need (?:to|for) (?:change|remove|do|add|fix|support|this|it|any)\b",
        (
            r"\b(?:is|are|be|seems) a (?:\w{1,20} )?non-?starter\b|\bi(?:'ll| will|'d like to|'m)? "
            r"(?:withdraw\w{0,3}|retract\w{0,3}) (?:this|my|the)\b"
        ),
        (
            r"\b(?:needs?|requires?|through|writ\w{2,3} up|via|want)(?: \w{1,20}){0,3} (?:formal |full )?(?:RFC"
            r"|proposal process|design proposal)\b"
        ),
        r"\bRFC (?:is |are )?required\b",
        (
            r"\bclos\w{1,3}(?: this| it)?(?: issue)? as (?:wontfix|won't fix|not planned|not actionable|invalid"
            r"|out of scope|declined|rejected|spam)\b"
        ),
        (
            r"\bwith(?:out| no)(?: any| further)? (?:action|changes?)\b(?=[.!,;:)]|$| (?:for|on|is|here|to|as|and"
            r"|in|at|needed|required)\b)"
        ),
        r"\b(?:proposal|request|idea|feature|change|issue|this) (?:is|was|has been) (?:declined|rejected|withdrawn)\b",
        (
            r"(?:\bnot|n't) (?:be )?(?:able to fix|likely to (?:be|get|happen|change|implement|add)|actionable"
            r"|something (?:that )?(?:we|the \w+) (?:can|will|want|should|would))\b"
        ),
        r"\bunable to fix\b",
        (
            r"\b(?:cannot|can't|can not) (?:really )?(?:be (?:fixed|changed|implemented|supported|solved"
            r"|addressed)|fix (?:this|it|that)|support (?:this|it|that)|do (?:this|it|that|anything|much))\b"
        ),
        (
            r"\bnothing (?:here |more |else |really )?(?:that )?(?:we|the \w+|i|anyone)(?: can| could)"
            r"(?: really)? (?:do|act|fix)\b|(?:n't|\bnot)(?: seem like)?(?: there is| there's)? anything "
            r"(?:here )?(?:that )?(?:we|the \w+) can (?:do|act)\b"
        ),
        r"\bwill (?:stay|remain|keep|leave)(?: it| this| that| things)? (?:as is|as it is|as they are|the way)\b",
        (
            r"\b(?:keep|leave|leaving|keeping) (?:it|this|that|things|them) (?:as[- ]is|as it is|as they are"
            r"|the way (?:it|they))\b"
        ),
        (
            r"\b(?:lack of|no(?:t (?:enough|much))?|little|insufficient)(?: \w{1,20})? (?:interest|support|demand"
            r"|consensus|motivation|appetite|traction|enthusiasm|impetus)\b"
            r"(?!.{0,160}\b(?:chosen|chose|picked|went with|instead)\b)"
        ),
        r"(?:\bnot|n't) (?:see|seeing|seen|hear|hearing|heard)(?: \w{1,20})? (?:enthusiasm|interest|support|demand)\b",
        (
            r"\b(?:disagree (?:on|with|about)|against|opposed to|reject\w{0,3}|declin\w{2,3}) (?:adding|doing"
            r"|making|this (?:feature|proposal|change|request|idea)|the (?:proposal|request|idea))\b"
        ),
        (
            r"\b(?:wrong|(?:not|isn't) (?:really )?(?:the|an?) (?:right|correct|appropriate|best|suitable|good"
            r"|support)) (?:place|channel|repo|repository|tracker|project|forum|venue)\b|\bright place (?:to"
            r"|for) (?:ask|report|discuss|this)\b"
        ),
        (
            r"\b(?:belongs?|better suited|more appropriate|best (?:asked|discussed|raised)|(?:should|must"
            r"|needs? to|ought to|can) be (?:filed|reported|raised|discussed|moved|asked|opened|reopened)"
            r"|please (?:re-?file|file|report|raise|open|re-?open|move|ask|discuss|send|post|take|use"
            r"|bring))\b[^.;:]{0,50}"
            r"\b(?:on|in|at|with|to|against|over|for) (?:the |our |a |their )?(?:[\w/-]{1,40} ){0,2}(?:repo|repos"
            r"|repository|tracker|mailing list|forums?|upstream|stack ?overflow|stack ?exchange|discussions?"
            r"|discord|user list)\b"
        ),
        (
            r"\b(?:detected|detection|flagged|marked|closed|closing|looks like|is) ?(?:this |it )?"
            r"(?:\([^()]{1,40}\) ?)?:? ?(?:as |just )?spam\b"
        ),
        r"\bNACK\b",
        (
            rf"{OPENER}(?:rejected|declined)(?=[.,;:!]|$| (?:as|because|since|after|due|by (?:the )?(?:team"
            r"|maintainers?|committee|group))\b)"
        ),
        (
            r"\b(?:i|we) (?:do not|don't) (?:think|believe|feel)(?: that)? (?:we|it|this|that|these)(?: \w{2,15}ly)?"
            r" (?:want|need (?:this|it|that|an?|any)|should (?:do|add|support|change|have|accept|merge|take|include)"
            r"|belongs?|fits?)\b"
        ),
        (
            r"(?:\b(?:would|we'd|i'd)) (?:\w{2,10} )?rather not (?:add|do|have|support|include|change|introduce"
            r"|merge|take|make|go|implement|expose|pursue)\b"
        ),
        r"\b(?:i|we)(?:'d| would) prefer not to\b",
        (
            r"\bbelongs? in (?:an? |its own |your )(?:[\w-]{1,20} )?(?:plug-?in|extension|add-?on|package|crate"
            r"|library|module)\b"
        ),
        r"\b(?:going to|gonna|will|'ll|have to|must|i'd|we'd|i|we) pass on (?:this|it|that)(?: one)?(?=[.,;!]|$)",
        r"\btoo much (?:complexity|work|effort|maintenance|trouble|churn)\b|\btoo little (?:gain|benefit|value)\b",
        (
            r"(?:\bnot|n't|\bno longer) going to be (?:done|fixed|implemented|added|supported|changed|accepted|merged"
            r"|addressed)\b|\b(?:do not|don't) see (?:this|it|that) happening\b"
        ),
        (
            r"\bso (?:we|i) (?:won't|will not|can't|cannot|shouldn't|don't)(?:,? sorry)?[.!]*$|\ba (?:clear |hard "
            r"|firm )?no from\b"
        ),
        r"\btoo (?:niche|invasive|specialised|specialized|risky)\b",
        (
            r"(?:[,;\u2013\u2014-] ?|\b)so,? (?:(?:it's|it is|the answer is|i have to say) )?(?:a )?no[.!]*$"
            r"|\bthe answer is no\b|\bit's a no\b"
        ),
        r"\bwe (?:do not|don't) have (?:the |any |enough )?(?:time|resources|bandwidth|capacity|manpower) (?:to|for)\b",
        (
            r"\b(?:does not|doesn't|do not|don't) (?:really )?belong (?:in|to) (?:the )?(?:core|project|repo"
            r"|here|this (?:project"
            r"|repo\w{0,7}|library|package))\b|\bnot a (?:good |great )?fit for\b"
        ),
        r"\b(?:not|n't|no longer) (?:accept|tak|consider|merg)ing (?:this|it|that|new|any|more|such|pull|feature)\b",
    ),
)

STALE = PhraseSet(
    "stale",
    (
        r"\bobsoleted?\b",
        (
            r"(?:^|\b(?:is|are|was|were|be|been|became|becomes|as|now|this|it)\b.{0,20} )(?:irrelevant|moot"
            r"|outdated|out of date|bit-?rotted"
            r"|over ?taken by|timed out|ancient history|n/a)\b"
        ),
        r"\bno longer (?:happen|occur|reproduc|crash|fail|segfault|trigger|appear|see)\w*\b",
        (
            r"\bcan(?: no longer|not|'t| not) (?:reproduce|repro|see) (?:this |it |that )?(?:any ?more|now"
            r"|any longer)\b|\bno longer (?:be )?(?:able to )?reproduc\w+"
        ),
        (
            r"\bno longer (?:relevant|applicable|applies|apply|needed|necessary|exists?|valid|used|required"
            r"|supported|maintained|present|part of|makes? sense|the case|in use)\b"
        ),
        r"\bnot (?:applicable|relevant)\b(?=[.!,;]|$| (?:any|now|with|since|to|given))",
        r"(?:\bnot|n't)(?: [\w-]{1,20}){1,5} any ?(?:more|longer)\b",
        (
            r"\b(?:no|lack of|due to|without) (?:recent |further |any |more |follow-?up )?"
            r"(?:activity|progress|response|inactivity|feedback|reply|replies|movement|updates|information"
            r"|answers?|news)\b"
        ),
        r"\b(?:is|are|as|went|gone|marked|been) (?:stale|inactive)\b",
        r"^(?:closing[,:]? )?stale(?=[.,;:!]|$)",
        (
            r"\b(?:nobody|no ?one)(?: (?:has|have|had|else|ever)){0,2} (?:replied|responded|answered|followed up"
            r"|commented)\b"
        ),
        (
            r"\b(?:reporter|author|op|user|submitter|you|they|he|she)(?: has| have| had| did)?(?: never| not"
            r"|n't) (?:replied"
            r"|reply|responded|respond|answered|followed up|c[ao]me back|got back|get back|gotten back)\b"
        ),
        r"\b(?:due to|because of|after|given)(?: \w{1,20}){0,4} inactivity\b",
        r"(?:n't|\bnot|\bnever) (?:heard|got|received|had)(?: \w{1,20}){0,2} (?:back|reply|response|feedback)\b",
    ),
)

_REMOVED = (
    r"(?:removed|deleted|nuked|gone(?! (?:awry|away|through|wrong|to|into|on))|dropped|killed|ripped out|retired"
    r"|discontinued|dead)"
)
REMOVED = PhraseSet(
    "removed",
    (
        (
            rf"\b(?:has|have|was|were|is|are|got|been)(?: (?:now|since|all|already|been|just|completely|entirely"
            rf"|also|long)){{0,3}} {_REMOVED}\b"
            r"(?! (?:an?|the|my|your|his|her|their|this|that|some) (?:\w{1,20} )?(?:comments?|labels?|tags?|assignee"
            r"|milestone|posts?|mention|links?|attachments?|logs?|messages?)\b)"
        ),
        r"\b(?:does not|doesn't|do not|don't) exist\b",
        r"\b(?:we|there|it|they) no longer (?:have|has|use|uses|support|supports|ship|ships|do|does)\b",
    ),
)
"""What the thread is about is gone: done where that was asked for, else out of date."""
