"""How people say that something is decided: the phrases, who must say them, and what takes them back.

A phrase needs a subject that decides (a group, the speaker) or none at all: what a compiler, a client or a user chose
is no decision. Only what any repository may say stands here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from itertools import takewhile

from bot.domain.thread import MAINTAINER_ROLES, Decision, Message, Thread
from bot.reading.markdown import statements


def one_of(*lists: str) -> str:
    """A group that matches one of the words or phrases, which commas separate."""
    return f"(?:{'|'.join(word for words in lists for word in words.split(', '))})"


def any_of(*alternatives: str) -> re.Pattern[str]:
    """One of the expressions, in capitals or not."""
    return re.compile("|".join(alternatives), re.IGNORECASE)


_ADVERBS = one_of("have, has, had, did, all, both, just, now, since, then, also, instead, so far") + r"|\w{3,12}ly"
EARLIER = rf"(?:(?:{_ADVERBS}) ){{0,3}}"
"""What may stand between somebody and what they did: auxiliaries and adverbs."""

_DECIDES = one_of("decide, agree, settle, choose, conclude, select, opt, resolve")
_AGREEMENT = one_of("consensus, decision, conclusion, agreement, resolution, verdict")
_OTHERS = one_of(
    "client, server, compiler, parser, linker, browser, endpoint, peer, sender, receiver, recipient, node, users?",
    "people, kernel, library, implementations?, intermediar(?:y|ies), prox(?:y|ies), host, he, she, they, you, someone",
    "somebody, nobody, applications?, apps?, programs?, tools?",
)
_SUPPOSED = one_of(
    "if, unless, until, till, whether, when, whenever, before, assuming, suppose, lest, imagine, either, perhaps",
    "maybe, possibly, probably, hopefully, hope, hoping, wish, guess, wonder, wondering, unsure, not sure, unclear",
    "doubt, sounds, feels like, looks like, seems like, i thought, impression, you know, everything, what was, what is",
    "not clear, as soon as, as long as, so long as",
)
_PROPOSED = one_of("propose, proposing, suggest, suggesting, suggested, recommend, vote, voting, nominate, nominating")
_THINGS = one_of(
    "that, the, exact, syntax, scope, approach, strategy, design, way, things?, ones?, names?, features?, semantics",
    "rules?, plan, scheme, format, version, text",
)
_HEDGE_BEFORE = any_of(
    rf"\b(?:{_SUPPOSED}|{_PROPOSED})\b",
    rf"\b{one_of('should, could, would, might, may, must, can, shall')} (?:\w+ )?(?:we|it|they|you|i|have|be)\b",
    rf"\b{one_of('what, how, where, which, why, whatever')} (?:the |our )?(?:we|i|it|this|team|consensus|decision)\b",
    r"\b(?:what|which|whose) \w+ (?:was|were|is|are)\b",
    r"(?:^|, )once\b|\bonce (?:we|it|this|that|they|the|there)\b|\bthan (?:what )?we\b",
    r"\b(?:i|we)(?:'d| would)\b|\bi (?:think|believe) (?:we|i)(?:'ll| will| can| could)\b|\bwas (?:going|about)\b",
    r"\bor (?:be )?clos(?:e|ed|ing)\b|\b(?:signal|sign|indication) that\b|\bin my (?:own )?\w+\b",
    r"\b(?:that|which|what) we (?:will not|won'?t|do(?: not|n'?t)|are not|aren'?t|did(?: not|n'?t))\b",
    rf"\b{_THINGS} we(?:'ve)? {EARLIER}"
    r"(?:settled|chose|chosen|picked|selected|opted|agreed (?:to|on|at)\W|decided on (?:was|is)|decided\W*$)",
    rf"\b{one_of('remember, recall, forgot, forget, implies, means?, ensures?, make sure, requires?, assume, allows?')}"
    r" (?:that |what |if |how |when )?(?:we|the|it)\b",
    rf"(?:\b{one_of('not, never, no, yet, without, lack of')}|n't) (?:\w+ )?(?:been |a |any |clear |really |yet )"
    rf"{{0,3}}(?:{_DECIDES}[ds]?|chosen|{_AGREEMENT})\b",
    rf"\b(?:to|still) (?:be )?(?:{_DECIDES}d?|chosen)\b",
    rf"\b(?:need|want|get|await|seek|reach|build) (?:\w+ ){{0,2}}{_AGREEMENT}\b",
    rf"\b{_OTHERS} (?:\w+ ){{0,3}}(?:decided|agreed|chose|chosen|selected|picked|opted|settled|rejected|accepted"
    r"|concluded|resolved|going with|go with)\b",
)
"""What takes a decision back before it is said: conditions, proposals, denials, and others who decide."""

_HEDGE_AFTER = any_of(
    r"[^.;,]{0,30}:$",
    r"[^.;]{0,80}\b(?:or not|or something|i guess|i suppose|i hope|hopefully|remains to be|not sure|see what)\b",
    r" ?(?:if|unless|until|or|yet)\b",
)
"""What takes it back behind the phrase."""

_QUESTION = any_of(r"\?[\s)\"'*_!:.]*$", r"\?[)\"']? ", r", (?:right|correct|no|yes)[.!?]?$")
_UNFINISHED = any_of(r"(?:that|to|on|in|at|for|not)\W*")
"""The last word of a phrase and what follows, where a line breaks off."""

_ELSEWHERE = any_of(
    r"(?:#|/issues/|/pull/)\d{1,9}\)?,? (?:was|is|has been|got) (?:also |already )?(?:closed|marked|rejected)\b"
    r"|\bdup(?:e|licate)?s? of\b"
)
"""The ending of another thread."""


def is_taken_back(sentence: str, end: int) -> bool:
    """Whether ``sentence``, in which a decision seems to be stated up to ``end``, only asks, supposes or denies it."""
    before, behind = sentence[:end], sentence[end:]
    return bool(
        _HEDGE_BEFORE.search(before)
        or _HEDGE_AFTER.match(behind)
        or _UNFINISHED.fullmatch(before.rsplit(" ", 1)[-1] + behind)
        or _QUESTION.search(sentence)
        or _ELSEWHERE.search(sentence)
    )


class DecisionAuthority(IntEnum):
    """Who must have said a phrase, and where, for it to decide; what asks for less counts from the higher, too."""

    ENDING = 1
    """A reason or a ruling: from whoever closes the thread, in the few words with which it ends."""
    MAINTAINER = 2
    """What one person chooses or plans: from those with write access, and from who closes the thread."""
    SPEAKER = 3
    """What somebody says for the project: from those who have had a part in it."""
    GROUP = 4
    """What a group has decided: anybody may report it."""


_OPENERS = one_of("ok, okay, so, yes, yeah, right, alright, thus, hence, well, also, and, then, now, update, edit")
_START = rf"^(?:{_OPENERS}\b|\W){{0,6}}"
_BODY = one_of("team, group, wg, committee, maintainers, editors, developers, meeting, council, community")
_GROUP = (
    rf"(?:we(?:'ve|'d)?|(?:the|our|core|working) {_BODY}|team|group|everyone|@[\w-]{{1,39}} and i|i and @[\w-]{{1,39}})"
)
_MEETING = one_of(
    "meeting, call, interim, session, discussion, discussed, workshop, hackathon, telecon, triage, retreat, week, f2f",
    "irc, today",
)
_WAS = one_of("was, were, has been, have been, had been")
_SEEMS = one_of("is, was, seems to be, appears to be")
_RULED = one_of("accepted, rejected, declined, approved, adopted, vetoed, turned down")
_PROPOSAL = one_of("proposal, request, idea, suggestion, rfc, pr, pull request, option, design, feature, alternative")
_GENERAL = one_of("the, our, final, general, rough, overall, current, wg, group")
_WHERE = r"(?: (?:of|from|in|at|on|here|there|then|now|for|among) ?[^.;,]{0,60}?)?"
_OPINION = r"imh?o\b|i (?:think|believe|would)\b"
_LABEL_END = r"[ *_)]{0,4}[:\u2013\u2014-][ *_]{1,4}(?=\W{0,3}\w)"

_GROUP_DECIDED = any_of(
    rf"(?<!\w){_GROUP} {EARLIER}(?:decided|agreed|concluded|resolved|voted|elected)(?: \w+ly)?,? "
    rf"{one_of('on, upon, to, not, against, that, for, in, at, during, it')}\b",
    rf"(?<!\w){_GROUP} {EARLIER}{one_of('decided, settled on, settled for, opted, went with, went for, ruled out')}\b",
    rf"(?<!\w){_GROUP} {EARLIER}{one_of('chose, chosen, picked, selected, adopted, rejected')}\b(?! (?:up|from|by)\b)",
    rf"\b(?:it|this|that|which) {_WAS} (?:\w+ly |then |also )?(?:decided|agreed)\b(?! by)",
    rf"\b{_WAS} (?:\w+ly |then |also )?(?:decided|agreed) (?:on|upon|to|not|against|that|in|at|during)\b",
    rf"\b{_PROPOSAL}s? {_WAS} (?:\w+ly |also )?{_RULED}\b(?! by the)",
    rf"\b{_WAS} (?:chosen|selected|picked|{_RULED})[^.;]{{0,40}} (?:in|at|during) [^.;]{{0,40}}\b{_MEETING}\b",
    rf"\b{_GENERAL} {one_of('consensus, decision, agreement, verdict, conclusion')}{_WHERE}"
    rf" (?:{_SEEMS}|has been)(?: now| then| made| reached| still)?[ ,:]{{1,2}}(?:that|to|not to|against|for)\b",
    rf"\bconsensus {_SEEMS}[ ,:]{{1,2}}(?:that|to|on|for|against|in favou?r)\b",
    rf"\b(?:there {_SEEMS}|we have|we had|(?:have )?reached) (?:an? )?(?:rough |general |broad |clear |strong |some )?"
    rf"(?:consensus|agreement){_WHERE} (?:that|to|on|for|around|in|about|against)\b",
    rf"\b(?:(?:the|our|final) (?:resolution|outcome)|conclusion){_WHERE} (?:is|was)[ ,:]{{1,2}}(?:that|to|not to)\b",
    rf"\b(?:we|the group|the meeting) {EARLIER}(?:came|come) to (?:the|a) (?:conclusion|decision|agreement)\b",
    rf"{_START}(?:(?:final|rough|meeting|our|wg|group|the|current) ){{0,2}}(?:consensus|decisions?|resolution|verdict)"
    rf"{_LABEL_END}(?![\d ]|n/?a\b|tbd\b|none\b|{_OPINION})",
)

_TRIED = one_of(
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
_KEPT = one_of(
    "use, keep, stick, stay, leave, drop, remove, require, allow, disallow, forbid, permit, ship, defer, postpone",
    "punt, switch, adopt, deprecate, rename, enable, disable, accept, reject, exclude, recommend, retain, ban, default",
    "standardi[sz]e, go (?:with|for|back), move (?:to|away|forward|ahead|this)",
)
_REFUSED = one_of(
    "add, support, include, merge, fix, do, go, implement, change, pursue, take, guarantee, provide, expose, maintain",
    "introduce, block, define, break, let, put, bother, backport, commit, make, rely, encourage, consider, try to",
    "work on, extend, special.case, reopen, hold, have (?:a|an|any|this|it)",
)
_WE_WILL_NOT = "'ll not|'re not going to| " + one_of(
    "will not, won'?t, are not going to, aren'?t going to, do not plan to, don'?t plan to, do not intend to",
    "don'?t intend to, have no plans? to, have no intention (?:to|of), did(?: not|n'?t) want to",
    "do(?: not|n'?t) want to",
)
_OTHER_THREAD = r"(?! (?:\w+ ){0,4}(?:issues?|bugs?|tickets?|ones?|prs?|pull requests?|that|those|them)\b)"
_REASON = rf"(?:as|because|since|due to|given|in favou?r of{_OTHER_THREAD})"
_CLOSING = (
    r"clos(?:e|ed|ing)(?: (?:this|it|the|that|issue|bug|pr|ticket|one|out|down|now|for now|here|again|then)\b){0,4}"
)
_GOING_TO = one_of("so, i.m, i am, i.ll, i will, going to, we.ll, will, and, therefore")
_CLOSER = rf"(?:{_START}|[,;:\u2013\u2014-] |\b{_GOING_TO} )"
_IS_OVER = one_of(
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
    rf"\bwe(?: are|'re) (?:not |against ){one_of('accept, add, support, plann, chang, fix, tak')}ing\b",
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

_VALUED = one_of(
    "needed, necessary, required, worth, feasible, viable, appropriate, suitable, desirable, a good, something we"
)
_DONE_AWAY = one_of("fixed, solved, added, changed, accepted, supported, implemented")
_RULING = any_of(
    r"\bout(?:side)?(?: of)?(?: the)? scope\b",
    r"\bnot plann(?:ing|ed)\b|\bno plans? (?:to|for|on)\b|\b(?:is|by|was) (?:now )?(?:actually )?by design\b",
    rf"\b{one_of('is, it.s, that.s, was, are, works?, working, behaves?, behaving')} (?:\w+ )?"
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

_DECIDED = (
    "decid|decision|agreed|agreement|conclu|consensus|chose|picked|selected|opted|resol|settled|verdict|voted|"
    "elected|adopted|rejected|accepted|declined|approved|vetoed|went with|went for|ruled out|turned down|outcome"
)
_SPOKEN = (
    "go with|going with|go for|going for|ahead with|we'll|we will|we shall|we won|we are|we're|we aren|we do|we did|"
    "we have no|let's|lets |let us|n't fix|nt fix|ntfix|'tfix|t-fix|t -fix|clos|intent|integrated|incorporated"
)
_RULED_ON = (
    "scope|plan|design|inten|delibera|expected|need|necess|required|requires|worth|feasible|viable|suitable|"
    "appropriate|desirable|good|something|going to|will not|won't|wont |n't think|dont think|n't believe|"
    "dont believe|not believe|must|has to|have to|now |not |no change|no action|no reason|n't want|dont want|rfc|"
    "proposal"
)
_DECIDED_STEMS, _RULING_STEMS = tuple(_DECIDED.split("|")), tuple(_RULED_ON.split("|"))
_SPOKEN_STEMS = (*_DECIDED_STEMS, *_SPOKEN.split("|"))
_SORTS = (
    (DecisionAuthority.GROUP, _DECIDED_STEMS, _GROUP_DECIDED),
    (DecisionAuthority.SPEAKER, _SPOKEN_STEMS, _SPEAKER_DECIDED),
    (DecisionAuthority.MAINTAINER, _SPOKEN_STEMS, _MAINTAINER_DECIDED),
    (DecisionAuthority.ENDING, _RULING_STEMS, _RULING),
)


def may_decide(text: str, needed: DecisionAuthority) -> bool:
    """Whether it is worth looking for a decision in ``text``: a fast test that most texts fail."""
    lowered = text.lower()
    return any(stem in lowered for sort, stems, _ in _SORTS if sort >= needed for stem in stems)


def standing_of(sentence: str, needed: DecisionAuthority) -> DecisionAuthority | None:
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


_MAX_DECISIONS = 3
_MAX_DECISION = 240
_LONGEST = 600
"""What is longer is a list, a log or a specification, whatever phrase it holds."""

_BRIEF = 4
"""Sentences of a comment that gives a ruling; a longer one explains."""

_TOLD_AFTER = timedelta(minutes=2)
_TOLD_BEFORE = timedelta(days=1)
"""How far from the closing the comment stands that ends a thread."""

_HAS_SAY = MAINTAINER_ROLES | {"CONTRIBUTOR"}


@dataclass(frozen=True, slots=True)
class _Found:
    decision: Decision
    standing: DecisionAuthority
    rank: int
    is_ending: bool


def decisions(thread: Thread) -> tuple[Decision, ...]:
    """At most three sentences as they were written, in order of time.

    Where there are more: decisions before rulings, those of maintainers and closers before others', those with which
    the thread ends, what a group decided before what one person says, later before earlier.
    """
    ending = _ending(thread)
    opening = Message(thread.author, thread.role, thread.created_at, thread.body, is_bot=thread.is_bot)
    said = ((index, message) for index, message in enumerate((opening, *thread.comments), -1) if not message.is_bot)
    distinct: dict[str, _Found] = {}
    for each in (each for index, message in said for each in _decided(thread, message, index, ending)):
        distinct.setdefault(each.decision.text, each)
    found = list(distinct.values())
    if len(found) > _MAX_DECISIONS:
        ranked = sorted(range(len(found)), key=lambda i: (_weight(found[i]), i), reverse=True)
        found = [found[i] for i in sorted(ranked[:_MAX_DECISIONS])]
    return tuple(each.decision for each in found)


def _weight(found: _Found) -> tuple[int, ...]:
    return (found.standing > DecisionAuthority.ENDING, found.rank, found.is_ending, found.standing)


def _ending(thread: Thread) -> frozenset[int]:
    """The comments that close the thread: what its closer said last, if that was not long before."""
    if not thread.closed_at:
        return frozenset()
    since, until = thread.closed_at - _TOLD_BEFORE, thread.closed_at + _TOLD_AFTER
    said = [(i, c) for i, c in enumerate(thread.comments) if not c.is_bot and since <= c.created_at <= until]
    closer = thread.closed_by or (said[-1][1].author if said else None)
    return frozenset(i for i, _ in takewhile(lambda each: each[1].author == closer, reversed(said)))


def _rank(thread: Thread, message: Message) -> int:
    """2 for those who decide, 1 for those who may speak for them, 0 for everybody else."""
    if message.by_maintainer or (message.author == thread.closed_by and message.author != thread.author):
        return 2
    return int(message.role in _HAS_SAY)


def _decided(thread: Thread, message: Message, index: int, ending: frozenset[int]) -> Iterator[_Found]:
    """The decisions in one message, which stands at ``index`` of the comments, -1 for the opening text."""
    rank = _rank(thread, message)
    place = None if index < 0 else index
    needed = _needed(rank, place, is_ending=place in ending)
    if not may_decide(message.text, needed):
        return
    sentences = statements(message.text)
    if needed is DecisionAuthority.ENDING and len(sentences) > _BRIEF:
        needed = DecisionAuthority.MAINTAINER
    for sentence in sentences:
        standing = standing_of(sentence, needed) if len(sentence) <= _LONGEST else None
        if standing is not None:
            text = sentence if len(sentence) <= _MAX_DECISION else sentence[: _MAX_DECISION - 1] + "…"
            decision = Decision(text, message.author, message.role, message.created_at, place, message.id)
            yield _Found(decision, standing, rank, place in ending)


def _needed(rank: int, place: int | None, *, is_ending: bool) -> DecisionAuthority:
    """The weakest sort of phrase that counts here: who opens a thread wants something, and may only report."""
    if place is None:
        return DecisionAuthority.SPEAKER if rank == 2 else DecisionAuthority.GROUP
    if is_ending and rank:
        return DecisionAuthority.ENDING
    return (DecisionAuthority.GROUP, DecisionAuthority.SPEAKER, DecisionAuthority.MAINTAINER)[rank]
