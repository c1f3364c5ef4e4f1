"""How people say that something is decided: the phrases, who must say them, and what takes them back.

A phrase needs a subject that decides (a group, the speaker) or none at all: what a compiler, a client or a user chose
is no decision. Only what any repository may say stands here.
"""

from __future__ import annotations

from enum import IntEnum

from bot.reading.hedging import EARLIER, any_of, is_taken_back, words


class Standing(IntEnum):
    """Who must have said a phrase, and where, for it to decide; what asks for less counts from the higher, too."""

    ENDING = 1
    """A reason or a ruling: from whoever closes the thread, in the few words with which it ends."""
    MAINTAINER = 2
    """What one person chooses or plans: from those with write access, and from who closes the thread."""
    SPEAKER = 3
    """What somebody says for the project: from those who have had a part in it."""
    GROUP = 4
    """What a group has decided: anybody may report it."""


_OPENERS = words("ok, okay, so, yes, yeah, right, alright, thus, hence, well, also, and, then, now, update, edit")
_START = rf"^(?:{_OPENERS}\b|\W){{0,6}}"
_BODY = words("team, group, wg, committee, maintainers, editors, developers, meeting, council, community")
_GROUP = (
    rf"(?:we(?:'ve|'d)?|(?:the|our|core|working) {_BODY}|team|group|everyone|@[\w-]{{1,39}} and i|i and @[\w-]{{1,39}})"
)
_MEETING = words(
    "meeting, call, interim, session, discussion, discussed, workshop, hackathon, telecon, triage, retreat, week, f2f",
    "irc, today",
)
_WAS = words("was, were, has been, have been, had been")
_SEEMS = words("is, was, seems to be, appears to be")
_RULED = words("accepted, rejected, declined, approved, adopted, vetoed, turned down")
_PROPOSAL = words("proposal, request, idea, suggestion, rfc, pr, pull request, option, design, feature, alternative")
_GENERAL = words("the, our, final, general, rough, overall, current, wg, group")
_WHERE = r"(?: (?:of|from|in|at|on|here|there|then|now|for|among) ?[^.;,]{0,60}?)?"
_OPINION = r"imh?o\b|i (?:think|believe|would)\b"
_LABEL_END = r"[ *_)]{0,4}[:\u2013\u2014-][ *_]{1,4}(?=\W{0,3}\w)"

_GROUP_DECIDED = any_of(
    rf"(?<!\w){_GROUP} {EARLIER}(?:decided|agreed|concluded|resolved|voted|elected)(?: \w+ly)?,? "
    rf"{words('on, upon, to, not, against, that, for, in, at, during, it')}\b",
    rf"(?<!\w){_GROUP} {EARLIER}{words('decided, settled on, settled for, opted, went with, went for, ruled out')}\b",
    rf"(?<!\w){_GROUP} {EARLIER}{words('chose, chosen, picked, selected, adopted, rejected')}\b(?! (?:up|from|by)\b)",
    rf"\b(?:it|this|that|which) {_WAS} (?:\w+ly |then |also )?(?:decided|agreed)\b(?! by)",
    rf"\b{_WAS} (?:\w+ly |then |also )?(?:decided|agreed) (?:on|upon|to|not|against|that|in|at|during)\b",
    rf"\b{_PROPOSAL}s? {_WAS} (?:\w+ly |also )?{_RULED}\b(?! by the)",
    rf"\b{_WAS} (?:chosen|selected|picked|{_RULED})[^.;]{{0,40}} (?:in|at|during) [^.;]{{0,40}}\b{_MEETING}\b",
    rf"\b{_GENERAL} {words('consensus, decision, agreement, verdict, conclusion')}{_WHERE}"
    rf" (?:{_SEEMS}|has been)(?: now| then| made| reached| still)?[ ,:]{{1,2}}(?:that|to|not to|against|for)\b",
    rf"\bconsensus {_SEEMS}[ ,:]{{1,2}}(?:that|to|on|for|against|in favou?r)\b",
    rf"\b(?:there {_SEEMS}|we have|we had|(?:have )?reached) (?:an? )?(?:rough |general |broad |clear |strong |some )?"
    rf"(?:consensus|agreement){_WHERE} (?:that|to|on|for|around|in|about|against)\b",
    rf"\b(?:(?:the|our|final) (?:resolution|outcome)|conclusion){_WHERE} (?:is|was)[ ,:]{{1,2}}(?:that|to|not to)\b",
    rf"\b(?:we|the group|the meeting) {EARLIER}(?:came|come) to (?:the|a) (?:conclusion|decision|agreement)\b",
    rf"{_START}(?:(?:final|rough|meeting|our|wg|group|the|current) ){{0,2}}(?:consensus|decisions?|resolution|verdict)"
    rf"{_LABEL_END}(?![\d ]|n/?a\b|tbd\b|none\b|{_OPINION})",
)

_TRIED = words(
    "try, test, check, look, see, ask, report, write, file, open, post, install, run, re-?run, play, give, learn, dig",
    "investigate, experiment, debug, start, submit, share, split, benchmark, measure, profile, compare, go, spend",
    "reproduce, compile, build, download, upgrade, switch, update, reopen, come, comment, wait and",
    "take (?:a|some|the time), have a, do (?:a|some), (?:make|create) a (?:small|quick|test|new|pr|pull|ticket|issue)",
)
_NO_TRIAL = rf"(?! to (?:\w+ly )?{_TRIED}\b)"
"""What somebody decided to do at home, and came to tell about."""

_JUST_DECIDED = (
    r"(?:decided|agreed|concluded|resolved|opted|settled|elected)(?: \w+ly)?"
    rf"{_NO_TRIAL}(?: (?:not|on (?:using|\w{{3,20}}ing)|against|for)\b"
    r"| to (?!disagree|this|that|it|you|all|both|the|some)"
    rf"|,? (?:in|at|during) [^.;]{{0,30}}\b{_MEETING}\b)"
)
_KEPT = words(
    "use, keep, stick, stay, leave, drop, remove, require, allow, disallow, forbid, permit, ship, defer, postpone",
    "punt, switch, adopt, deprecate, rename, enable, disable, accept, reject, exclude, recommend, retain, ban, default",
    "standardi[sz]e, go (?:with|for|back), move (?:to|away|forward|ahead|this)",
)
_REFUSED = words(
    "add, support, include, merge, fix, do, go, implement, change, pursue, take, guarantee, provide, expose, maintain",
    "introduce, block, define, break, let, put, bother, backport, commit, make, rely, encourage, consider, try to",
    "work on, extend, special.case, reopen, hold, have (?:a|an|any|this|it)",
)
_WE_WILL_NOT = "'ll not|'re not going to| " + words(
    "will not, won'?t, are not going to, aren'?t going to, do not plan to, don'?t plan to, do not intend to",
    "don'?t intend to, have no plans? to, have no intention (?:to|of), did(?: not|n'?t) want to",
    "do(?: not|n'?t) want to",
)
_OTHER_THREAD = r"(?! (?:\w+ ){0,4}(?:issues?|bugs?|tickets?|ones?|prs?|pull requests?|that|those|them)\b)"
_REASON = rf"(?:as|because|since|due to|given|in favou?r of{_OTHER_THREAD})"
_CLOSING = (
    r"clos(?:e|ed|ing)(?: (?:this|it|the|that|issue|bug|pr|ticket|one|out|down|now|for now|here|again|then)\b){0,4}"
)
_GOING_TO = words("so, i.m, i am, i.ll, i will, going to, we.ll, will, and, therefore")
_CLOSER = rf"(?:{_START}|[,;:\u2013\u2014-] |\b{_GOING_TO} )"
_IS_OVER = words(
    "fixed, done, dup(?:e?s?|licates?d?), resolved, completed?, implemented, merged, landed, stale, solved, answered",
    "inactiv\\w+, no longer, (?:separate|another|same) issue, moving to, lack of, works?, working(?! as)",
    "addressed, treated, finished, timed out, outdated, obsolete, abandoned, (?:un)?repro\\w*, subsume\\w*",
    "supersed\\w*, outstanding, cover(?:s|ed), no (?:idea|activity|response|reply|feedback), possible, nothing",
    "part of, tracked, spam, discussed, misunderst\\w+, my (?:fault|mistake|bad|part|error), user error, re-?opened?",
    "removed, already, opened, added, (?:previous|above|earlier) comment",
)
_NO_REASON = (
    rf"(?![^.;]{{0,120}}\b{_IS_OVER}\b|(?:[^.;,]{{0,40}}[ \[])?(?:#\d|https?:)|those\b|of (?:this|that)\b|i understand)"
)
"""Behind "closing as": what only says that it is over, or in which other thread it goes on."""

_SPEAKER_DECIDED = any_of(
    r"\bwe(?:'re|'ll| are| will| shall)?(?: just| now| definitely| still)? (?:going|go) (?:with|for|ahead with)\b",
    rf"{_START}(?:going|go|went) with\b",
    rf"{_START}(?:my |final |in )?conclusions?{_LABEL_END}(?!{_OPINION})",
    r"\b(?:i came|have come|i've come) to the conclusion\b",
    rf"{_START}(?:(?:{_MEETING}|talked|reviewed|assessed)\b[^.]{{0,90}}?[,;:\u2013\u2014-] ?(?:and |we )?)?"
    rf"{_JUST_DECIDED}",
    rf"\b(?:but|(?<!i )and|then|ultimately|finally|eventually|we) {_JUST_DECIDED}",
    rf"\bwe(?:{_WE_WILL_NOT}) (?:be )?(?:{_KEPT}|{_REFUSED})",
    rf"\bwe(?: are|'re) (?:not |against ){words('accept, add, support, plann, chang, fix, tak')}ing\b",
    r"(?:\bas|^\W*|[,;:(\u2013\u2014-]|\bthis(?: is)?|\bit'?s|\bis|\bbug) ?(?:an? |the )?\"?won'?t ?-?fix\b",
    rf"{_CLOSER}{_CLOSING},? {_REASON}\s{_NO_REASON}\S",
    rf"\b{_PROPOSAL}s? (?:made |from |in |discussed )[^.;,]{{1,40}} (?:is|are|{_WAS}) (?:now )?"
    rf"(?:integrated|incorporated|{_RULED})\b",
    rf"\b{_WAS} (?:chosen|selected|picked) (?:because|for|over|instead|since|as)\b",
)

_MAINTAINER_DECIDED = any_of(
    rf"\bi(?:'ve|'d)? {EARLIER}(?:decided|chosen|opted|elected|concluded|resolved){_NO_TRIAL} "
    r"(?:to|not|on|against|that|for|in)\b",
    rf"\bi(?:'ve|'d)? {EARLIER}(?:chose|settled on|went with|picked)\b(?! up)",
    r"\b(?:i|let'?s|let us)(?:'ll|'m| am| will| shall)?(?: just| now| definitely| still)? (?:going|go) (?:with|for)\b",
    rf"(?<!so )(?<!and )\bwe(?:'ll| will| shall|'re going to| are going to) (?:just |now |simply |then )?{_KEPT}\b"
    r"(?! (?:#|(?:an eye|in mind|track|you|tests?)\b)|[^.;,]{0,20} open\b)",
    rf"\blet(?:'?s| us) (?:just |please |definitely |simply |then )?(?:{_KEPT}|settle|avoid"
    r"|do (?:this|that|it|option|the)|make (?:it|this|that|the))\b"
    r"(?! (?:track of|in mind|(?:the |this )?discuss\w+)|[^.;,]{0,20} open\b)",
    rf"{_START}(?:the|our) (?:original )?(?:intent|intention) (?:here )?was (?:to|that|not)\b",
)

_VALUED = words(
    "needed, necessary, required, worth, feasible, viable, appropriate, suitable, desirable, a good, something we"
)
_DONE_AWAY = words("fixed, solved, added, changed, accepted, supported, implemented")
_RULING = any_of(
    r"\bout(?:side)?(?: of)?(?: the)? scope\b",
    r"\bnot plann(?:ing|ed)\b|\bno plans? (?:to|for|on)\b|\b(?:is|by|was) (?:now )?(?:actually )?by design\b",
    rf"\b{words('is, it.s, that.s, was, are, works?, working, behaves?, behaving')} (?:\w+ )?"
    r"(?:by design|as (?:intended|designed)|intentional|deliberate|(?:the )?(?:intended|expected) behaviou?r)\b",
    r"\b(?:is|are|it.s|that.s|was|seems) (?:\w+ly )?"
    rf"(?:not (?:\w+ly )?{_VALUED}|unnecessary|undesirable)\b",
    rf"\b(?:isn'?t|aren'?t|don'?t think (?:it|this|that)(?:'s| is)) (?:\w+ly )?{_VALUED}\b",
    rf"(?:\bnot|n't|\bno longer) going to (?:happen|{_REFUSED}|accept|be {_DONE_AWAY})\b",
    rf"\b(?:this|it|that|these) (?:will not|won'?t) (?:happen|be {_DONE_AWAY})\b",
    r"\b(?:i|we) (?:do not|don'?t) (?:think|believe) (?:that )?(?:we|this|it|that) (?:\w+ly )?"
    rf"(?:should|belongs|is {_VALUED}|(?:need|want)(?! (?:another|more|tests?|a test)))\b",
    r"\b(?:(?<!we )(?<!i )needs?|requires?|should|must|have to|has to|through)\b[^.;]{0,30}"
    r"\b(?:an?|the|formal|detailed) (?:\w+ )?(?:RFC|design document|enhancement proposal|proposal process)\b"
    r"|\bRFC is (?:required|needed)\b",
    r"\b(?:they|it|this|these) (?:must|has to|have to)(?: not)? "
    r"(?:be(?! (?:fixed|done))|include|keep|remain|use|require)\b",
    r"\b(?:i|we) now (?:support|prefer|favou?r)\b|\bwe(?:'re| are) not (?:changing|adding|fixing|doing|supporting)\b",
    r"\bno (?:need|reason) (?:to|for)\b|\bno (?:change|action) (?:is )?(?:needed|required|necessary)\b",
    r"\bwe (?:do not|don'?t) (?:want|need) (?:this|that|it|an?|any|another|these)\b|^not worth\b",
)

_DECIDED_STEMS = (
    *(
        "decid",
        "decision",
        "agreed",
        "agreement",
        "conclu",
        "consensus",
        "chose",
        "picked",
        "selected",
        "opted",
        "resol",
    ),
    *("settled", "verdict", "voted", "elected", "adopted", "rejected", "accepted", "declined", "approved", "vetoed"),
    *("went with", "went for", "ruled out", "turned down", "outcome"),
)
_SPOKEN_STEMS = (
    *_DECIDED_STEMS,
    *("go with", "going with", "go for", "going for", "ahead with", "we'll", "we will", "we shall", "we won", "we are"),
    *("we're", "we aren", "we do", "we did", "we have no", "let's", "lets ", "let us"),
    *("n't fix", "nt fix", "ntfix", "'tfix", "t-fix", "t -fix", "clos", "intent", "integrated", "incorporated"),
)
_RULING_STEMS = (
    *("scope", "plan", "design", "inten", "delibera", "expected", "need", "necess", "required", "requires", "worth"),
    *(
        "feasible",
        "viable",
        "suitable",
        "appropriate",
        "desirable",
        "good",
        "something",
        "going to",
        "will not",
        "won't",
        "wont ",
    ),
    *(
        "n't think",
        "dont think",
        "n't believe",
        "dont believe",
        "not believe",
        "must",
        "has to",
        "have to",
        "now ",
        "not ",
        "no change",
    ),
    *("no action", "no reason", "n't want", "dont want", "rfc", "proposal"),
)
_SORTS = (
    (Standing.GROUP, _DECIDED_STEMS, _GROUP_DECIDED),
    (Standing.SPEAKER, _SPOKEN_STEMS, _SPEAKER_DECIDED),
    (Standing.MAINTAINER, _SPOKEN_STEMS, _MAINTAINER_DECIDED),
    (Standing.ENDING, _RULING_STEMS, _RULING),
)


def may_decide(text: str, needed: Standing) -> bool:
    """Whether it is worth looking for a decision in ``text``: a fast test that most texts fail."""
    lowered = text.lower()
    return any(stem in lowered for sort, stems, _ in _SORTS if sort >= needed for stem in stems)


def standing_of(sentence: str, needed: Standing) -> Standing | None:
    """The sort of phrase by which ``sentence`` states a decision, ``needed`` or higher; None where it states none.

    Questions, conditions, proposals, denials, and what others decide state none.
    """
    lowered = sentence.lower()
    for sort, stems, phrase in _SORTS:
        if sort >= needed and any(stem in lowered for stem in stems):
            found = phrase.search(sentence)
            if found and not is_taken_back(sentence, found.end()):
                return sort
    return None
