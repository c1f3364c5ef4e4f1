"""Answers to people's requests: a search by words, an issue by number, the decisions on a topic; and to agents, what
memory knows of an issue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from bot.comment.prompt import Xml, as_xml, render
from bot.domain.answer import Context, Match, Mention
from bot.domain.card import LEAST_PART, MessageHit, Passage, SaidMessage
from bot.domain.digest import LATE, Hit, IndexEntry
from bot.domain.thread import Decision, RepositoryAddress, Thread, ThreadId
from bot.index.document import message_of
from bot.questions.context import history_of, recent_conversations
from bot.questions.order import ThreadEvidence, merged
from bot.questions.passages import found_in, passages_of, said_in, with_phrases
from bot.questions.requests import MIN_CHARS, IssueRequest
from bot.reading.analyzer import terms
from bot.reading.requests import commands, recall_question
from bot.reading.search_query import SearchQuery, search_query
from bot.reading.signals import strip_boilerplate
from bot.recall.answer import recall, with_fixes
from bot.recall.library import Library, WithoutWords, threads, word_query
from bot.recall.mentions import find_mentions
from bot.settings.schema import Settings

MOST = 5
"""Threads in an answer."""

READ = 25
"""Of the threads that the index finds the best so many are read."""

LEAST_ABOUT = 0.6
"""Least part of a topic that a thread's title, or one of its decisions together with the title, has to name."""

CHARS = 1_500
"""Characters of each conversation in an answer of several threads."""

MAX_TEXT = 100_000
"""Characters of a thread in which the words are looked for."""

HISTORY_SHARE = 0.5
"""Largest share of an agent's answer that recent conversation may fill."""

_REFERENCE = re.compile(r"[#/]|\bgh-", re.IGNORECASE)
_ASKING = "asking"


@dataclass(frozen=True, slots=True)
class QuestionService:
    """Where people ask: the memory, in which those who want it so said nothing, and what an answer depends on.

    ``skip`` names the threads that are never part of an answer, such as the one that is asked on, ``only`` those that
    alone may be, where there are any. ``now`` is when it is asked.
    """

    library: Library
    settings: Settings
    place: RepositoryAddress
    skip: tuple[ThreadId, ...] = ()
    only: frozenset[ThreadId] = frozenset()
    now: datetime = LATE

    @property
    def quiet(self) -> Library:
        people = self.settings.ignore.people
        return WithoutWords(self.library, people) if people else self.library


def search_words(words: str, service: QuestionService, *, is_question: bool = False) -> Context:
    """The threads that speak of these words, the best first, at most five, each with how it ended, what was decided and
    what was said about the words.

    ``words`` may have qualifiers (`bot.reading.search_query`). ``is_question``: without threads that only ask, as those
    answer nothing.
    """
    query = search_query(words, service.now, strict=False)
    found = _candidates(query, service)
    kept = _answering(found.threads, service) if is_question else found.threads
    return _answer(_shown([thread.id for thread in kept][:MOST], query, service, found.said), service)


def about_issue(numbers: Sequence[int], service: QuestionService) -> Context:
    """These issues in full, as if a text had pointed at them; what there is no record of is said to be missing."""
    return _answer(_mentions(numbers, "", service.settings.references.chars, service), service)


def decisions_about(topic: str, service: QuestionService) -> Context:
    """The threads that decide the topic, then those that are about it, at most five; weak hits are left out.

    A thread decides it when one of its decisions, read together with the title, names most of the topic; only such
    decisions are in the answer.
    """
    query = search_query(topic, service.now, strict=False)
    wanted = _weights(query.words, service.library)
    deciding: dict[ThreadId, tuple[Decision, ...]] = {}
    related: list[ThreadId] = []
    found = _candidates(query, service)
    candidates = _answering(found.threads, service)
    known = _shown([thread.id for thread in candidates], query, service, found.said)
    for mention in known:
        named = ((d, _part(wanted, f"{mention.title}\n{d.text}")) for d in mention.decisions)
        telling = tuple(decision for decision, part in named if part >= LEAST_ABOUT)
        if telling:
            deciding[mention.id] = telling
        elif _part(wanted, mention.title) >= LEAST_ABOUT or _says(mention, wanted):
            related.append(mention.id)
    by_id = {mention.id: mention for mention in known}
    best = [replace(by_id[key], decisions=telling, passage=None) for key, telling in deciding.items()]
    return _answer([*best, *(by_id[key] for key in related)][:MOST], service)


class RelatedThread(NamedTuple):
    """A thread that an answer names; ``how``: mentioned, seen before, or open now."""

    how: str
    one: Mention | Match
    similarity: float
    why: tuple[str, ...]


class IssueAnswer(NamedTuple):
    """What memory knows of an issue, as parts and ``quoted`` as XML; ``omitted`` parts were left out for want of
    room."""

    context: Context
    quoted: str
    omitted: int

    @property
    def related(self) -> list[RelatedThread]:
        return related_threads(self.context)


def related_threads(known: Context) -> list[RelatedThread]:
    """The threads that an answer names, those that the text mentions first."""
    told = ("mentioned in the text",)
    mentions = (one for one in (*known.mentioned, *known.also_mentioned) if not one.missing)
    return [
        *(RelatedThread("mentioned", one, 1.0, told) for one in mentions),
        *(RelatedThread("seen before", one, one.similarity, one.why) for one in known.seen_before),
        *(RelatedThread("open now", one, one.similarity, one.why) for one in known.open_now),
    ]


def issue_context(
    request: IssueRequest, thread: Thread, sessions: Sequence[Thread], service: QuestionService
) -> IssueAnswer:
    """Tell what the bot would say about the issue of this ``thread``, and what was said on it, and in the ``sessions``
    that worked on it, in the last days."""
    found = recall(thread, service.library, _within(request.chars, service.settings), service.place)
    history = _history(request, [thread, *sessions], service.settings)
    context, omitted = _fitted(found, request.chars - len(history))
    return IssueAnswer(context, as_xml(context, history), omitted)


def _within(chars: int, known: Settings) -> Settings:
    """The settings with budgets of at most a third of these characters."""
    most = chars // 3
    references = replace(known.references, chars=min(known.references.chars, most))
    budget = min(known.troubleshooting.total_budget_chars, most)
    return replace(
        known, references=references, troubleshooting=replace(known.troubleshooting, total_budget_chars=budget)
    )


def _history(request: IssueRequest, talk: Sequence[Thread], settings: Settings) -> str:
    """What was said on the issue in the last days, as XML; "" if that is only its opening text."""
    room = int(request.chars * HISTORY_SHARE)
    said = recent_conversations(talk, request.me or (settings.comment.author,), request.now)
    if room < MIN_CHARS or sum(len(one.turns) for one in said.conversations) < 2:
        return ""
    form = Xml(is_part=True)
    return render(history_of(said, form, room), form)


def _fitted(context: Context, room: int) -> tuple[Context, int]:
    """The context without what does not fit, the least important left out first; and how many that is."""
    omitted = 0
    for name in ("pages", "open_now", "also_mentioned", "seen_before", "mentioned"):
        while getattr(context, name) and len(as_xml(context)) > room:
            context = replace(context, **{name: getattr(context, name)[:-1]})
            omitted += 1
    return context, omitted


def _answering(candidates: Iterable[Thread], service: QuestionService) -> list[Thread]:
    return [thread for thread in candidates if _has_answers(thread) or not _asks(thread, service)]


def _has_answers(thread: Thread) -> bool:
    return any(not comment.is_bot and comment.author != thread.author for comment in thread.comments)


def _asks(thread: Thread, service: QuestionService) -> bool:
    texts = (strip_boilerplate(thread.body), thread.title)
    return any(recall_question(text, service.settings.recall_phrases) for text in texts)


def _answer(shown: Iterable[Mention], service: QuestionService) -> Context:
    return with_fixes(Context(mentioned=tuple(shown), searched=service.library.issues), service.library, None)


def _weights(words: str, library: Library) -> Mapping[str, float]:
    return library.rarity(dict.fromkeys(terms(words)))


def _part(wanted: Mapping[str, float], text: str) -> float:
    """The part of the words that a text holds, weighed by their rarity, in 0..1."""
    return _share(wanted, set(terms(text)))


class _Candidates(NamedTuple):
    """Threads, best first, and what was said about the words in them."""

    threads: list[Thread]
    said: Mapping[ThreadId, Passage]


def _candidates(query: SearchQuery, service: QuestionService) -> _Candidates:
    """The threads with enough of the words, in the order of `bot.questions.order`."""
    wanted = _weights(query.words, service.library)
    about, messages = _about(query, wanted, service), _said(query, wanted, service)
    found = threads(service.quiet, dict.fromkeys((*about, *(hit.thread for hit in messages))), None)
    said = {key: said_in(thread) for key, thread in found.items()}
    ranked = merged(about, (hit for hit in messages if not _is_request(hit, said.get(hit.thread, ()), service)))
    if query.phrases:
        ranked = with_phrases(ranked, query, {key: one.title for key, one in found.items()}, lambda _: said)
    kept = [
        (found[key], one)
        for key, one in ranked
        if key in found
        and query.keeps_thread(found[key])
        and max(one.part, _part(wanted, _text(found[key]))) >= LEAST_PART
    ]
    passages = passages_of(((thread.id, thread.kind, one.message) for thread, one in kept), query, lambda _: said)
    return _Candidates([thread for thread, _ in kept], passages)


def _is_request(hit: MessageHit, said: Sequence[SaidMessage], service: QuestionService) -> bool:
    """Whether a comment only asks the bot, which says nothing about the words."""
    one = found_in(hit, said) if hit.position else None
    return bool(one and (commands(one.text) or recall_question(one.text, service.settings.recall_phrases)))


def _about(query: SearchQuery, wanted: Mapping[str, float], service: QuestionService) -> dict[ThreadId, ThreadEvidence]:
    """The threads with the best titles, opening texts and digests."""

    def keep(entry: IndexEntry) -> bool:
        is_opened = query.keeps_message(entry.author, None, entry.created_at)
        return is_opened and _may_be_told(entry, entry.id, query, service)

    hits = service.library.search(word_query(query.words), limit=READ, keep=keep)
    return {hit.entry.id: ThreadEvidence(hit.score, _share(wanted, hit.terms), hit.terms) for hit in hits}


def _said(query: SearchQuery, wanted: Mapping[str, float], service: QuestionService) -> list[MessageHit]:
    """The best messages. Their entries have no labels: those are compared when the threads are read."""

    def keep(entry: IndexEntry) -> bool:
        is_wanted = query.keeps_message(entry.author, entry.role, entry.created_at)
        return is_wanted and _may_be_told(entry, message_of(entry.id)[0], query._replace(labels=frozenset()), service)

    hits = service.quiet.search_messages(word_query(query.words), limit=READ, keep=keep)
    return [_message_hit(hit, _share(wanted, hit.terms)) for hit in hits]


def _message_hit(hit: Hit, part: float) -> MessageHit:
    one, place = hit.entry, message_of(hit.entry.id)
    return MessageHit(*place, one.author, one.role, one.created_at, hit.score, part, hit.terms)


def _may_be_told(entry: IndexEntry, key: ThreadId, query: SearchQuery, service: QuestionService) -> bool:
    is_issue = entry.kind.is_on_github and isinstance(key, int)
    is_told = key not in service.skip and (not service.only or key in service.only)
    return is_issue and is_told and query.keeps_thread(entry)


def _share(wanted: Mapping[str, float], held: Iterable[str]) -> float:
    whole = sum(wanted.values())
    return sum(wanted.get(term, 0.0) for term in held) / whole if whole else 0.0


def _text(thread: Thread) -> str:
    said = "\n".join([thread.title, thread.body, *(c.text for c in thread.comments if not c.is_bot)])
    return said[:MAX_TEXT]


def _says(mention: Mention, wanted: Mapping[str, float]) -> bool:
    """Whether a passage and the title name most of the topic."""
    said = mention.passage
    return said is not None and _part(wanted, f"{mention.title}\n{said.text}") >= LEAST_ABOUT


def _shown(
    numbers: Iterable[ThreadId], query: SearchQuery, service: QuestionService, said: Mapping[ThreadId, Passage]
) -> list[Mention]:
    """Each of these issues, or the one that it is a duplicate of, once, with what was said about the words."""
    found = _mentions(numbers, query.words, CHARS, service)
    by_original = {key: said[one] for mention in found for one in mention.chain if one in said for key in [mention.id]}
    return [replace(one, passage=said.get(one.id) or by_original.get(one.id)) for one in found]


def _mentions(numbers: Iterable[ThreadId], words: str, chars: int, service: QuestionService) -> list[Mention]:
    """Each of these issues, or the one that it is a duplicate of, once; conversations near to the words."""
    wanted = list(numbers)
    asking = Thread(
        _ASKING,
        _REFERENCE.sub(" ", words),
        " ".join(f"#{number}" for number in wanted),
        _ASKING,
        datetime.max.replace(tzinfo=UTC),
    )
    full, _ = find_mentions(asking, service.place, service.quiet, None, (len(wanted), chars))
    return [mention for mention in full if mention.id not in service.skip]
