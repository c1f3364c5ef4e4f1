"""A small grammar of questions about earlier decisions and discussions.

A question is made of few parts: words before it that change nothing, a form (`_RULES`), the topic, and words of time.
The forms are written with classes of words (`_CLASSES`): ``what * did <we> * <settled-on> <in> {topic}``. The phrases
of the settings are written in the same way, without classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import NamedTuple

from bot.domain.question_phrases import SHIPPED_QUESTIONS, QuestionPhrases

MAX_TOPIC_CHARS = 200
MAX_SENTENCE_CHARS = 500
_MAX_GAPS = 2
MAX_GAP_WORDS = 4
"""Most words that a ``*`` in a phrase stands for; three times as many characters where words have no spaces between."""


class AskedTopic(NamedTuple):
    """What a sentence asks about: the ``topic`` as typed, and ``bare``, without the words around it: "" if the question
    is about the thread it was asked in ("didn't we discuss this before?"). ``decides``: it asks for a decision.
    ``verb`` is what was done, such as "drop", "" if it was only decided or discussed."""

    topic: str
    bare: str
    decides: bool
    verb: str = ""


class _Form(Enum):
    """What a sentence of a form does, which decides how it must end."""

    ASKS = "a question: it does not end like a statement"
    REQUESTS = "a request to whoever can: it may end with a full stop, and gives no advice"
    STATES = "a statement: it asks only if it ends in a question, or is all that a comment says"


# -- the grammar -------------------------------------------------------------------------------------------------------

_CLASSES = {
    "we": "we|you guys|you all|y'all|you folks|the team|our team|your team|the maintainers|the devs|the developers"
    "|the project|the community|the core team|maintainers",
    "who": "<we>|i",
    "say": "decide|deciding|choose|choosing|pick|picking|select|conclude|concluding|say|saying|discuss|discussing|agree"
    "|agreeing|settle",
    "settle-on": "<say>|agree on|agree upon|decide on|deciding on|settle on|settling on|settle for|go with|going with"
    "|go for|going for|land on|end up with|end up using|opt for|standardise on|standardize on",
    "said": "decided|agreed|agreed on|agreed upon|concluded|settled|settled on|chose|chosen|picked|selected|said"
    "|discussed|went with|gone with|rejected",
    "about": "about|on|in|for|regarding|around|concerning|as to|with regard to|in regard to|when it comes to",
    "of": "<about>|of|behind|to",
    "talked": "talked about|talk about|spoke about|speak about|talked on|agreed about|agreed on|agreed to|agreed that"
    "|agree about|agree on|agree to|agree that|settled on|settle on|talk on",
    "decided": "discuss|discussed|decide|decided|<talked>",
    "tried": "consider|considered|try|tried|reject|rejected|rule out|ruled out|turn down|turned down|debate|debated"
    "|evaluate|evaluated",
    "met": "see|seen|hit|had|encountered|run into|come across|met",
    "did": "discussed|decided|chose|picked|talked about|spoke about|agreed on|agreed about|agreed to|settled on|fixed"
    "|solved|resolved|debugged|changed|added|removed|dropped|rejected|reverted|renamed|rewrote|replaced|moved|migrated"
    "|switched|merged|shipped|released|introduced|implemented|deprecated|disabled|enabled|upgraded|downgraded|bumped"
    "|broke|refactored|reported|ran into|hit|saw|tried|considered|abandoned",
    "chose": "decided|decide|chose|choose|chosen|picked|pick|rejected|reject|dropped|drop|abandoned|abandon|selected"
    "|select|preferred|prefer|settled|settle|went|go|gone|moved|move|switched|switch|agreed|agree|opted|opt|removed"
    "|deprecated|stopped|stop",
    "choose": "decide|decided|choose|chosen|pick|picked|reject|rejected|drop|dropped|abandon|abandoned|select|selected"
    "|prefer|stop|stopped|deprecate|deprecated|remove|removed|revert|reverted|keep|kept|replace|replaced|adopt|adopted"
    "|introduce|introduced|rename|renamed|disable|disabled",
    "fixed": "fix|fixed|solve|solved|resolve|resolved|address|addressed|report|reported",
    "decision": "decision|decisions|conclusion|conclusions|verdict|consensus|agreement|ruling|stance",
    "talk": "discussion|discussions|conversation|conversations|thread|threads|issue|debate",
    "reason": "reason|reasons|rationale|reasoning|motivation|justification",
    "old": "past|previous|earlier|prior|old|older|closed|our|your|all past|all previous|all earlier|all prior|all our"
    "|all old|all closed",
    "threads": "conversations|discussions|threads|decisions|issues|tickets|reports|comments|history|messages",
    "find": "find|show|list|give|pull up|dig up|dig out|look up|show me|show us|give me|give us|find me|find us",
    "list": "list|show|show me|show us|give me|give us",
    "search": "search|check|look through|go through|search through",
    "sum-up": "summarize|summarise|recap|sum up",
    "end-up": "end up|wind up",
    "was-decided": "decided|agreed|agreed on|agreed upon|concluded|discussed|settled|settled on|chosen",
    "tell": "show|tell|give|<sum-up>|explain|remind",
    "remember": "remember|recall|forget|forgot|ca remember|cannot remember|ca recall|cannot recall|ca find|cannot find"
    "|do remember|do recall|i forget|i forgot|i ca|i cannot|i do remember|i do recall",
    "again": "before|already|in the past|earlier|previously",
}
"""The classes of words. A contraction has lost its "n't" ("can't": "ca")."""

_VERBS = frozenset({"<choose>", "<chose>", "<did>", "<tried>"})
"""The classes of what was done to a topic. A rule has at most one of them."""

_PLAIN_VERBS = frozenset(
    {"decide", "decided", "choose", "chose", "chosen", "pick", "picked", "select", "selected", "settle", "settled"}
    | {"agree", "agreed", "agreed on", "agreed about", "agreed to", "settled on", "discussed", "talked about", "go"}
    | {"went", "gone", "spoke about", "consider", "considered", "try", "tried"}
)
"""Verbs that say no more than that it was decided or discussed."""

_CLAUSES = (
    "what * <who> * <said> <about> {topic}",
    "what * <who> * <said> {topic}",
    "which {noun} <we> * <said> <about> {topic}",
    "when|where|how|if|whether|that <we> * <did> {topic}",
    "why <we> * <chose> {topic}",
    "the|that|our|a|any|of|about * <decision>|<talk>|<reason> <of> {topic}",
)
"""What people remember, forget, or want to be told."""

_RULES: tuple[tuple[_Form, tuple[str, ...]], ...] = (
    (
        _Form.ASKS,
        (
            "what * did <who> * <say> <about> {topic}",
            "what|which {noun} did <we> * <settle-on> <about> {topic}",
            "what|which {topic} did <we> * <settle-on>",
            "what * did <we> * <settle-on> <about> {topic}",
            "what * have|had <we> * <said> <about> {topic}",
            "what * was|were|is|been|got * <was-decided> <about> {topic}",
            "what * was|been said about|on|regarding {topic}",
            "what * was|were|is|are|being the|our|your * <decision>|outcome <of> {topic}",
            "what * was|were|is|are the|our|your * <reason> for|behind {topic}",
            "what * is|was the * thinking|history behind {topic}",
            "what made <we>|us choose|pick|drop|reject|prefer|switch|abandon|move|go {topic}",
            "why did|have|had <we> * <choose> {topic}",
            "why did <we> * go|settle|agree|move|switch|opt with|for|on|to|from|away {topic}",
            "how did <we> <end-up> choosing|using {topic}",
            "how did <we> * decide|settle on {topic}",
            "where|when did|have|had <we> * <decided> {topic}",
            "where|when was|were {topic} discussed|decided|agreed",
            "where can|could|do i|we|one find * <talk>|<decision> <of> {topic}",
            "where is|was the * <talk>|<decision> <of> {topic}",
            "in which|what issue|thread|discussion did <we> * <decided> {topic}",
            "did <we> * <decided> {topic}",
            "did <we> ever|really|actually|already|once <tried> {thing}",
            "did <we> <tried> {thing}",
            "did|have we already|once|previously <fixed> {topic}",
            "did|have we <fixed> {topic} <again>",
            "has|have|had <we> * discussed|decided|agreed|settled|talked|<talked> {topic}",
            "have|had we ever|already|previously <tried>|<met> {thing}",
            "have|had we <tried> {thing}",
            "have|had we <met> {topic} <again>",
            "has|have|did {topic} come|came up * before|already|past",
            "has anyone|anybody|somebody|someone brought {topic} up",
            "has anyone|anybody|somebody|someone brought up {topic} <again>",
            "has|have {topic} been discussed|decided",
            "has|have {topic} been brought up",
            "has|have {topic} been reported|proposed|suggested|raised before",
            "was|were {topic} discussed|proposed before|already",
            "has|was it * been|ever decided to|that|whether|if {topic}",
            "is|was there * <decision> <of> {topic}",
            "was there * discussion|conversation|debate about|on|regarding {topic}",
            "is|was there * earlier|previous|prior|past <talk> <of> {topic}",
            "do|did we have|reach * <decision> <of> {topic}",
            "any earlier|previous|prior|past <talk>|<decision> <of> {topic}",
            *(f"<remember> * {clause}" for clause in _CLAUSES),
            "remember|recall * <decision>|<talk>|<reason> <of> {topic}",
        ),
    ),
    (
        _Form.REQUESTS,
        (
            "<search> * <old> <threads> for|about|on {topic}",
            "search|look for {topic} in * <old> <threads>",
            "<find> * <old> <threads> <of>|mentioning {topic}",
            "<list> <decision> <of> {topic}",
            "<list> all|any|the <decision> <of> {topic}",
            *(f"<tell> * {clause}" for clause in _CLAUSES[:2] + _CLAUSES[4:5]),
            *(f"remind me|us|everyone * {clause}" for clause in _CLAUSES),
            "<sum-up> * <decision>|<reason> <of>|from {topic}",
            "<sum-up> * our|past|previous|earlier <threads> <of> {topic}",
            "<sum-up> the|our * <talk>|<threads> <of>|from {topic}",
        ),
    ),
    (
        _Form.STATES,
        (
            "we * discussed|decided|chose|<talked> {topic}",
            "we already|previously|once rejected|considered|tried {topic}",
            "we spoke about|on|to|that {topic}",
        ),
    ),
)

_LEAD_WORDS = (
    r"(?:(?:so|and|but|or|ok|okay|hey|hi|hello|also|please|btw|well|hm|hmm|wait|again|sorry|just|now|anyway"
    r"|anyone|anybody|can we|could we|(?:do|does|can|could|would|will) (?:you|anyone|anybody|someone|somebody|the bot)"
    r"|out of curiosity|by the way|quick question|one question"
    r"|help (?:me|us)|pretty sure|(?:i|we) (?:think|thought|believe|guess|swear)|i feel like"
    r"|(?:i'm|i am) (?:pretty |fairly |quite )?sure) )"
    r"{0,4}+"
)
"""Words before a question that do not change it."""

_TIME_WORDS = (
    "before|already|again|earlier|yet|ever|once|somewhere|anywhere|elsewhere|here|previously|recently|please|thanks"
    "|thank you|in the past|ages ago|at some point|by any chance|in the end|back then|so far"
    "|last (?:time|week|month|year|spring|summer|autumn|fall|winter)"
    "|(?:some|a (?:long|short)) time ago|a while (?:ago|back)|by the way|now"
)
_TAG_QUESTIONS = (
    r"(?:right|no|correct|yes|or not|(?:did|have|had) we|did(?:n't| not) we|ha(?:ve|d)(?:n't| not) we"
    r"|or (?:am i|did we|was that|have we)\b[^,]{0,60})"
)
"""Endings that ask whether the statement before is true."""

_CANNOT_FIND = (
    r"\b(?:but|though|and)(?: now)?(?: i)? (?:can(?:not|'t| not)|could(?:n't| not)|do(?:n't| not)) "
    r"(?:find|remember|recall|see)\b.*"
)
_CONFIRMATION_END = re.compile(rf"(?<![\s,])[\s,]++(?:{_TAG_QUESTIONS}\?|{_CANNOT_FIND})\W*+\Z", re.IGNORECASE)

# -- what only sounds like a question ----------------------------------------------------------------------------------

_MAY_ASK = re.compile(
    r"\b(?:decid|decision|discuss|agree|cho[os]|pick|select|settl|conclu|consensus|rul|stance|remember|recall|remind"
    r"|rationale|reason|motivation|justif|outcome|brought|bring|verdict|talk|conversation|debat|search|check|look|summari[sz]"
    r"|recap|sum up|list|show|find|give|pull|dig|tell|explain|forg[eo]t|c[ao]me up|prior|earlier|previous|past|history"
    r"|reject|drop|prefer|abandon|switch|go |going|gone|went|end up|wind up|land|opt|standardi|sp[eo][ao]k|raised"
    r"|proposed|reported|suggested|said|say|move|consider|tr(?:y|ied)|seen|hit|had|encountered|run into|across|met\b"
    r"|rule|turn|evaluat|thinking|stop|deprecat|fix|solve|resolv|address|report|remov|revert|keep|kept|replac|adopt"
    r"|introduc|renam|disabl)",
    re.IGNORECASE,
)
"""One of these words is in every question that the shipped forms match."""

_RHETORICAL = re.compile(
    r"\?!|!\?|\b(?:(?:why|what|how) on earth|the (?:hell|heck|fuck)|wtf|lol|haha|good (?:old )?(?:times|days)"
    r"|(?:why|how) did we ever|did(?:n't)? we all)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"(?<!to )(?<!can i )(?<!may i )\b(?:ask(?:s|ed|ing)?|say(?:s|ing)?|said|wrote|writes?|wonder(?:s|ed|ing)"
    r"|answers?|explains?|titled?|called|faq|section|heading|example|phrases?|if|when|once|unless|users|people|customers)\b",
    re.IGNORECASE,
)
"""Words before a clause that make it somebody else's question, or part of some text."""

_ADVICE = re.compile(
    r"\bbefore (?:you|\w{2,15}ing)\b|\b(?:your|yours|yourself|next time|duplicates?|similar|in (?:the )?future)\b"
    r"|\b(?:in|to|into) (?:the|a|this|your) (?:[\w-]{1,20} ){0,2}"
    r"(?:description|docs?|documentation|readme|changelog|notes|comment|message|wiki|code|codebase|source)\b",
    re.IGNORECASE,
)
"""In a request: advice to a person, such as to search before filing an issue, or to write something down."""

_REASON_WORD = re.compile(
    r"\b(?:reasons?|rationale|reasoning|outcome|motivation|justification|verdict|conclusion)\b", re.IGNORECASE
)
_NON_DECISION_TOPIC = re.compile(
    r"\b(?:crash\w*|errors?|fail\w*|exceptions?|bugs?|timeouts?|panics?|segfaults?|faults?|regressions?|slow\w*|warnings?"
    r"|hangs?|leaks?|delays?|responses?|downtime|outage|tests?|runs?|builds?|jobs?|linter|compiler|algorithm|function|(?:close|closing|reopening|this|that|it))\b|\A(?:my|your|his|her|running|calling|trying|testing)\b",
    re.IGNORECASE,
)
"""In a question about a reason: no decision is behind it, or it only makes sense in this thread."""

# -- the topic ---------------------------------------------------------------------------------------------------------

_NO_TOPIC = re.compile(r"(?:on |about )?(?:any|some|no|every)thing\W*", re.IGNORECASE)
_GENERIC_NOUNS = frozenset(
    {"one", "ones", "option", "options", "approach", "approaches", "solution", "solutions", "way", "ways", "strategy"}
    | {"choice", "kind", "sort", "type", "thing", "things", "name", "else", "exactly", "variant", "alternative"}
)
"""Nouns after *which* that say nothing about the topic ("which approach did we choose for caching?")."""

_FILLER = re.compile(
    r"\A(?:(?:(?:any|all|every|some|the|earlier|previous|past) )?"
    r"(?:mentions?|references?|discussions?|conversations?|talks?|anything|everything|something|what we know) )?"
    r"(?:of|to|about|on|for|in|regarding|related to|concerning) ",
    re.IGNORECASE,
)
_TRAILING_TIME = re.compile(rf"(?:\s|,)(?:{_TIME_WORDS})\Z", re.IGNORECASE)
_THIS_TOPIC = re.compile(
    r"(?:(?:all|about|exactly|precisely) )?(?:this|that|it|these|those|the same)(?: (?:exact|same|very))?"
    r"(?: (?:one|issue|bug|problem|thing|topic|question|idea|request|pull request|approach|change|feature|proposal"
    r"|option|subject|suggestion|behaviou?r|error|exception|crash|failure|message|before|already))?",
    re.IGNORECASE,
)
_DECISION_WORD = re.compile(
    r"\b(?:deci[ds]|cho(?:o|se)|pick|select|agree|settle|conclu|reject|drop|(?:go|went|going|gone) (?:with|for)|outcome"
    r"|verdict|consensus|ruled? out|stance|opt(?:ed)? for|land(?:ed)? on|end(?:ed)? up)",
    re.IGNORECASE,
)
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, kana and Han. Each character is a word."""

_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_PUNCTUATION = "\"'`“”‘’«».,;:!?¿¡()[]{}<>*_~…-–—「」『』《》【】・"
_CONTRACTIONS = (("n't", ""), ("'s", " is"), ("'d", " did"), ("'ve", " have"), ("'re", " are"), ("'ll", " will"))
_BARE_CONTRACTIONS = {
    "didnt": "did",
    "dont": "do",
    "havent": "have",
    "hasnt": "has",
    "wasnt": "was",
    "whats": "what is",
    "cant": "ca",
}
_CLAUSE_ENDS = (",", ";", ":", "–", "—", "-")
_REQUEST_VERBS = frozenset({"search", "find", "show", "list", "summarize", "summarise", "remind", "tell"})
"""A phrase of the settings that begins with one of these is a request."""

_QUOTES = "\"'“”‘’«»`"
_DOUBLE_QUOTES = '"“”«»'
_QUOTE_REMOVAL = str.maketrans("", "", '"“”«»`')
_SENTENCE_EDGES = " .,;:!?…¿"


def may_ask(text: str, phrases: QuestionPhrases = SHIPPED_QUESTIONS) -> bool:
    """Whether a text has a word of some question. A quick test that saves the rules for few texts."""
    return bool(_grammar(phrases).may_ask.search(text))


def asked_topic(
    sentence: str, phrases: QuestionPhrases = SHIPPED_QUESTIONS, *, is_alone: bool = True
) -> AskedTopic | None:
    """What a sentence asks about, None if it asks for no earlier decision or discussion. ``is_alone``: nothing else is
    said.

    In a phrase of the settings ``{topic}`` stands for the topic, ``*`` for up to four words, ``a/b`` for either word.
    Case, punctuation and contractions are ignored ("didn't we" is "did we"), as are words of time at the end ("before",
    "already"). The question must begin the sentence or a clause, and reach the end of the sentence. Questions that are
    rhetorical or somebody else's do not count, nor do those that end like a statement.
    """
    sentence, grammar = sentence[:MAX_SENTENCE_CHARS], _grammar(phrases)
    if not grammar.may_ask.search(sentence) or _RHETORICAL.search(sentence):
        return None
    found = _find_topic(sentence, grammar, is_alone=is_alone)
    if found is None:
        return None
    topic, verb = found
    bare = _FILLER.sub("", _trim_topic(topic), count=1)[:MAX_TOPIC_CHARS].strip()
    bare = "" if _THIS_TOPIC.fullmatch(bare) else bare
    return AskedTopic(topic, bare, bool(_DECISION_WORD.search(sentence)), "" if verb in _PLAIN_VERBS else verb)


def is_about_software(sentence: str, topic: str) -> bool:
    """Whether a sentence asks for the reason of a fault ("the reason for the crash"), behind which is no decision."""
    return bool(_REASON_WORD.search(sentence) and _NON_DECISION_TOPIC.search(topic))


def is_asked_whole(text: str, phrases: QuestionPhrases = SHIPPED_QUESTIONS) -> bool:
    """Whether these words are one question from beginning to end, however they end."""
    words = _Words.of(text).text
    return any(rule.match(words) for rule in _grammar(phrases).rules)


@dataclass(frozen=True, slots=True)
class _Words:
    """A sentence as plain words, each followed by a space.

    ``ends`` holds the ends of the words in ``text``, ``places`` the spans of the typed words they come from, and
    ``clauses`` the positions where a clause may begin.
    """

    text: str
    ends: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    clauses: tuple[int, ...]

    @classmethod
    def of(cls, sentence: str) -> _Words:
        text, ends, places, clauses, marks = "", [], [], [0], 0
        for token in _TOKEN.finditer(sentence):
            marks += sum(map(token[0].count, _DOUBLE_QUOTES))
            for word in _plain_words(token[0]):
                text += f"{word} "
                ends.append(len(text))
                places.append(token.span())
            if token[0].endswith(_CLAUSE_ENDS) and marks % 2 == 0:  # a clause inside a quotation is no question
                clauses.append(len(text))
        return cls(text, tuple(ends), tuple(places), tuple(clauses))

    def typed(self, start: int, end: int) -> tuple[int, int]:
        """The span in the sentence of the words between two positions of ``text``."""
        spans = [place for stop, place in zip(self.ends, self.places, strict=True) if start < stop <= end]
        return spans[0][0], spans[-1][1]


def _plain_words(token: str) -> list[str]:
    """A typed word in lower case, without punctuation around it and without ``not``; nothing for account names."""
    if token.startswith(("@", *_QUOTES)) and not token.strip(_PUNCTUATION).startswith("#"):
        token = "" if token.startswith("@") else f"\0{token}"  # a quotation begins no question
    word = token.strip(_PUNCTUATION).casefold()
    for end, full in _CONTRACTIONS:
        word = word.removesuffix(end) + full if word.endswith(end) else word
    return [part for part in _BARE_CONTRACTIONS.get(word, word).split() if part != "not"]


def _find_topic(sentence: str, grammar: _Grammar, *, is_alone: bool) -> tuple[str, str] | None:
    """The topic as typed and the verb, None if no clause asks. ``is_alone``: it is the only sentence."""
    words = _Words.of(sentence)
    for start in words.clauses:
        if start and _REPORTED.search(sentence[: words.typed(0, start)[1]]):
            break
        for rule in grammar.rules if grammar.opening.match(words.text, start) else ():
            if match := rule.match(words.text, start):
                topic = _typed_topic(sentence, words, match)
                if (result := _topic_if_asked(rule.form, sentence, topic, is_alone=is_alone)) is not None:
                    return result, (match.groupdict().get("verb") or "").strip()
    return None


def _typed_topic(sentence: str, words: _Words, match: re.Match[str]) -> str:
    """The topic as typed, after the noun that it belongs to ("which *database* did we pick for *orders*?")."""
    begin, end = words.typed(*match.span("topic"))
    topic = sentence[begin:end]
    noun = match.groupdict().get("noun") or ""
    if not noun or set(noun.split()) & _GENERIC_NOUNS:
        return "" if topic.strip(_SENTENCE_EDGES).casefold() in _GENERIC_NOUNS else topic
    begin, end = words.typed(*match.span("noun"))
    return f"{sentence[begin:end]} {topic}"


def _topic_if_asked(form: _Form, sentence: str, topic: str, *, is_alone: bool) -> str | None:
    """The topic of a sentence of this form, None if the sentence does not ask."""
    if form is _Form.REQUESTS:
        return None if _ADVICE.search(sentence) else topic
    if form is _Form.STATES:
        return _topic_if_confirming(sentence, topic, is_alone=is_alone)
    is_none = is_about_software(sentence, topic) or _NO_TOPIC.fullmatch(topic)
    return None if sentence.endswith((".", "!", ":")) or is_none else topic


def _topic_if_confirming(sentence: str, topic: str, *, is_alone: bool) -> str | None:
    """The topic of a statement that asks for confirmation ("…, right?") or is the whole comment, None otherwise."""
    bare = _trim_topic(_CONFIRMATION_END.sub("", topic))
    if _CONFIRMATION_END.search(topic) or _CONFIRMATION_END.search(sentence):
        return bare
    from bot.reading.references import find_references  # slow to load, and few sentences state

    if find_references(f"of {sentence}"):  # it says where
        return None
    is_about_here = bool(_THIS_TOPIC.fullmatch(bare)) and bare != topic.rstrip(_SENTENCE_EDGES)
    return bare if is_about_here and (is_alone or sentence.endswith("?")) else None


def _trim_topic(topic: str) -> str:
    """The topic without quotation marks and trailing words of time."""
    bare = topic.translate(_QUOTE_REMOVAL).strip(_SENTENCE_EDGES)
    while (shorter := _TRAILING_TIME.sub("", bare).rstrip(_SENTENCE_EDGES)) != bare:
        bare = shorter
    return bare


# -- compiling ---------------------------------------------------------------------------------------------------------


class _Rule:
    """A phrase as a rule over plain words, each followed by a space. Its pattern is made when a text begins as it does:
    all of them take as long as a search."""

    def __init__(self, form: _Form, phrase: str) -> None:
        self.form, self._words = form, phrase.replace("{topic}", " {topic} ").split()

    @cached_property
    def opening(self) -> str:
        """The pattern of its first word."""
        return _part(self._words[0]).replace("?P<topic>", "?:")

    @cached_property
    def _begins(self) -> re.Pattern[str]:
        return re.compile(f"{_LEAD_WORDS}{self.opening}")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """At most two ``*`` are used."""
        gap_words = MAX_GAP_WORDS * (3 if re.search(f"[{_UNSPACED}]", "".join(self._words)) else 1)
        parts: list[str] = []
        has_topic, gaps = False, 0
        for word in self._words:
            part = _part(word)
            if word == "{topic}":
                part = part.replace("?P<topic>", "?:") if has_topic else part
                has_topic = True
            elif word == "*":
                gaps += 1
                part = rf"(?:\S+ ){{0,{gap_words}}}?" if gaps <= _MAX_GAPS else ""
            parts.append(part)
        later = "" if parts[-1].startswith("(?P<topic>") else rf"(?:(?:{_TIME_WORDS}) ){{0,3}}"
        return re.compile(f"{_LEAD_WORDS}{''.join(parts)}{later}\\Z")

    def match(self, words: str, start: int = 0) -> re.Match[str] | None:
        return self._pattern.match(words, start) if self._begins.match(words, start) else None


class _Grammar(NamedTuple):
    """``may_ask`` finds a word of some question in a text, ``opening`` the first word of one: quick tests that save the
    rules for few sentences."""

    rules: tuple[_Rule, ...]
    may_ask: re.Pattern[str]
    opening: re.Pattern[str]


@lru_cache(maxsize=16)
def _grammar(phrases: QuestionPhrases) -> _Grammar:
    rules = [_Rule(_form_of(phrase), phrase.replace("/", "|")) for phrase in phrases.added]
    if not phrases.only:
        rules += [_Rule(form, phrase) for form, forms in _RULES for phrase in forms]
    openings = "|".join(dict.fromkeys(rule.opening for rule in rules)) or r"(?!)"
    may_ask = _MAY_ASK if not phrases.added else re.compile(r"")
    return _Grammar(tuple(rules), may_ask, re.compile(f"{_LEAD_WORDS}(?:{openings})"))


def _form_of(phrase: str) -> _Form:
    first = phrase.split(None, 1)[0].casefold().split("/")[0]
    return _Form.REQUESTS if first in _REQUEST_VERBS else _Form.STATES if first == "we" else _Form.ASKS


def _part(word: str) -> str:
    """The pattern of one word of a phrase; a ``*`` is a gap of some length."""
    match word:
        case "{thing}":
            return r"(?!to |that )(?P<topic>(?:\S+ )+?)"
        case "{topic}":
            return r"(?P<topic>(?:\S+ )+?)"
        case "{noun}":
            return rf"(?P<noun>(?:\S+ ){{0,{MAX_GAP_WORDS}}}?)"
    name = "?P<verb>" if word in _VERBS else "?:"
    return "" if word == "*" else f"({name}{'|'.join(_alternatives(word))})"


def _alternatives(word: str) -> Iterator[str]:
    """The patterns of the words separated by ``|``; the longest of a class come first."""
    for choice in word.split("|"):
        if choice.startswith("<") and choice.endswith(">"):
            yield _class_pattern(choice[1:-1])
        else:
            words = [part for token in _TOKEN.findall(choice) for part in _plain_words(token)]
            yield "".join(f"{re.escape(part)} " for part in words)


@lru_cache(maxsize=64)
def _class_pattern(name: str) -> str:
    patterns = (
        _class_pattern(choice[1:-1]) if choice.startswith("<") else "".join(f"{re.escape(w)} " for w in choice.split())
        for choice in _CLASSES[name].split("|")
    )
    return f"(?:{'|'.join(sorted(patterns, key=len, reverse=True))})"
