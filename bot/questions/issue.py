"""Answers people's requests: a search by words, an issue by number, the decisions on a topic; and tells agents what
memory knows about an issue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from bot.comment.prompt import Xml, as_xml, render
from bot.domain.answer import Context, Match, Mention
from bot.domain.card import MIN_QUERY_SHARE, MessageHit, Passage, ThreadMessage
from bot.domain.digest import FAR_FUTURE, Hit, IndexEntry
from bot.domain.thread import Decision, RepositoryAddress, Thread, ThreadId
from bot.index.document import message_of
from bot.questions.context import history_of, recent_conversations
from bot.questions.evidence import ThreadEvidence, rank_by_evidence
from bot.questions.passages import filter_by_phrases, find_message, messages_of, passages_of
from bot.questions.requests import MIN_CHARS, IssueRequest
from bot.reading.analyzer import terms
from bot.reading.questions import recall_question
from bot.reading.requests import commands
from bot.reading.search_query import SearchQuery, search_query
from bot.reading.signals import strip_boilerplate
from bot.recall.answer import recall, with_fixes
from bot.recall.library import Library, threads, word_query
from bot.recall.mentions import find_mentions
from bot.settings.schema import Settings

MAX_THREADS = 5
"""Threads in an answer."""

MAX_READ = 25
"""Threads that are read, of those that the index finds."""

MIN_TOPIC_SHARE = 0.6
"""Minimum part of a topic that a thread's title, or one of its decisions together with the title, must name."""

CONVERSATION_CHARS = 1_500
"""Characters of each conversation in an answer of several threads."""

MAX_SEARCHED_CHARS = 100_000
"""Characters of a thread that are searched for the words."""

MAX_HISTORY_SHARE = 0.5
"""Largest share of an agent's answer that recent conversation may fill."""

_REFERENCE_MARK = re.compile(r"[#/]|\bgh-", re.IGNORECASE)
_QUERY_NAME = "asking"


@dataclass(frozen=True, slots=True)
class QuestionService:
    """What an answer depends on: the memory, the settings, and the repository.

    ``skip`` are threads that are never part of an answer, such as the one with the question; if ``only`` is not empty,
    no other threads are. ``now`` is the time of the question.
    """

    library: Library
    settings: Settings
    place: RepositoryAddress
    skip: tuple[ThreadId, ...] = ()
    only: frozenset[ThreadId] = frozenset()
    now: datetime = FAR_FUTURE


def search_words(words: str, service: QuestionService, *, is_question: bool = False) -> Context:
    """The threads about these words, the best first, at most five, each with how it ended, what was decided and what
    was said about the words.

    ``words`` may have qualifiers (`bot.reading.search_query`). ``is_question`` leaves out threads that only ask: they
    answer nothing.
    """
    query = search_query(words, service.now, strict=False)
    candidates = _find_candidates(query, service)
    answers = _without_questions(candidates.threads, service) if is_question else candidates.threads
    return _context_of(
        _cited_mentions([thread.id for thread in answers][:MAX_THREADS], query, service, candidates.passages), service
    )


def about_issue(numbers: Sequence[int], service: QuestionService) -> Context:
    """These issues in full, as if a text had mentioned them; those without a record are marked as missing."""
    return _context_of(_find_mentions(numbers, "", service.settings.references.chars, service), service)


def decisions_about(topic: str, service: QuestionService) -> Context:
    """The threads that decide the topic, then those about it, at most five; weak hits are left out.

    A thread decides it if one of its decisions, together with the title, names most of the topic; only such decisions
    are in the answer.
    """
    query = search_query(topic, service.now, strict=False)
    weights = _weights(query.words, service.library)
    deciding: dict[ThreadId, tuple[Decision, ...]] = {}
    related: list[ThreadId] = []
    candidates = _find_candidates(query, service)
    threads_with_answers = _without_questions(candidates.threads, service)
    mentions = _cited_mentions([thread.id for thread in threads_with_answers], query, service, candidates.passages)
    for mention in mentions:
        shares = (
            (decision, _text_share(weights, f"{mention.title}\n{decision.text}")) for decision in mention.decisions
        )
        decisions_on_topic = tuple(decision for decision, part in shares if part >= MIN_TOPIC_SHARE)
        if decisions_on_topic:
            deciding[mention.id] = decisions_on_topic
        elif _text_share(weights, mention.title) >= MIN_TOPIC_SHARE or _is_about(mention, weights):
            related.append(mention.id)
    by_id = {mention.id: mention for mention in mentions}
    best = [
        replace(by_id[key], decisions=decisions_on_topic, passage=None) for key, decisions_on_topic in deciding.items()
    ]
    return _context_of([*best, *(by_id[key] for key in related)][:MAX_THREADS], service)


class RelatedThread(NamedTuple):
    """A thread that an answer names; ``how``: mentioned, seen before, or open now."""

    how: str
    match: Mention | Match
    similarity: float
    why: tuple[str, ...]


class IssueAnswer(NamedTuple):
    """What memory knows about an issue, in parts and, as ``quoted``, in XML; ``omitted`` parts did not fit."""

    context: Context
    quoted: str
    omitted: int

    @property
    def related(self) -> list[RelatedThread]:
        return related_threads(self.context)


def related_threads(context: Context) -> list[RelatedThread]:
    """The threads that an answer names, those that the text mentions first."""
    reason = ("mentioned in the text",)
    mentions = (thread for thread in (*context.mentioned, *context.also_mentioned) if not thread.missing)
    return [
        *(RelatedThread("mentioned", thread, 1.0, reason) for thread in mentions),
        *(RelatedThread("seen before", thread, thread.similarity, thread.why) for thread in context.seen_before),
        *(RelatedThread("open now", thread, thread.similarity, thread.why) for thread in context.open_now),
    ]


def issue_context(
    request: IssueRequest, thread: Thread, sessions: Sequence[Thread], service: QuestionService
) -> IssueAnswer:
    """Collect what the bot would say about the issue of this ``thread``, and what was said in the last days on it and
    in the ``sessions`` that worked on it."""
    recalled = recall(thread, service.library, _limit_budgets(request.chars, service.settings), service.place)
    history = _history(request, [thread, *sessions], service.settings)
    context, omitted = _fit(recalled, request.chars - len(history))
    return IssueAnswer(context, as_xml(context, history), omitted)


def _limit_budgets(chars: int, settings: Settings) -> Settings:
    """The settings with budgets of at most a third of these characters."""
    limit = chars // 3
    references = replace(settings.references, chars=min(settings.references.chars, limit))
    budget = min(settings.troubleshooting.total_budget_chars, limit)
    return replace(
        settings, references=references, troubleshooting=replace(settings.troubleshooting, total_budget_chars=budget)
    )


def _history(request: IssueRequest, conversation_threads: Sequence[Thread], settings: Settings) -> str:
    """What was said on the issue in the last days, as XML; "" if that is only its opening text."""
    room = int(request.chars * MAX_HISTORY_SHARE)
    recent = recent_conversations(conversation_threads, request.me or (settings.comment.author,), request.now)
    if room < MIN_CHARS or sum(len(one.turns) for one in recent.conversations) < 2:
        return ""
    markup = Xml(is_part=True)
    return render(history_of(recent, markup, room), markup)


def _fit(context: Context, chars: int) -> tuple[Context, int]:
    """The context cut to fit, the least important parts first; and how many were cut."""
    omitted = 0
    for name in ("pages", "open_now", "also_mentioned", "seen_before", "mentioned"):
        while getattr(context, name) and len(as_xml(context)) > chars:
            context = replace(context, **{name: getattr(context, name)[:-1]})
            omitted += 1
    return context, omitted


def _without_questions(candidates: Iterable[Thread], service: QuestionService) -> list[Thread]:
    return [thread for thread in candidates if _has_answers(thread) or not _is_question(thread, service)]


def _has_answers(thread: Thread) -> bool:
    return any(not comment.is_bot and comment.author != thread.author for comment in thread.comments)


def _is_question(thread: Thread, service: QuestionService) -> bool:
    texts = (strip_boilerplate(thread.body), thread.title)
    return any(recall_question(text, service.settings.question_phrases) for text in texts)


def _context_of(mentions: Iterable[Mention], service: QuestionService) -> Context:
    context = Context(mentioned=tuple(mentions), searched=service.library.issues)
    return with_fixes(context, service.library, None, service.place.repo)


def _weights(words: str, library: Library) -> Mapping[str, float]:
    return library.rarity(dict.fromkeys(terms(words)))


def _text_share(weights: Mapping[str, float], text: str) -> float:
    """The part of the words that a text holds, weighted by their rarity, in 0..1."""
    return _matched_share(weights, set(terms(text)))


class _Candidates(NamedTuple):
    """Threads, best first, and what was said about the words in them."""

    threads: list[Thread]
    passages: Mapping[ThreadId, Passage]


def _find_candidates(query: SearchQuery, service: QuestionService) -> _Candidates:
    """The threads with enough of the words, in the order of `bot.questions.evidence`."""
    weights = _weights(query.words, service.library)
    thread_hits, message_hits = _search_threads(query, weights, service), _search_messages(query, weights, service)
    records = threads(service.library, dict.fromkeys((*thread_hits, *(hit.thread for hit in message_hits))), None)
    messages_by_thread = {key: messages_of(thread) for key, thread in records.items()}
    ranked = rank_by_evidence(
        thread_hits,
        (hit for hit in message_hits if not _is_request(hit, messages_by_thread.get(hit.thread, ()), service)),
    )
    if query.phrases:
        ranked = filter_by_phrases(
            ranked, query, {key: thread.title for key, thread in records.items()}, lambda _: messages_by_thread
        )
    matches = [
        (records[key], evidence)
        for key, evidence in ranked
        if key in records
        and query.matches_thread(records[key])
        and max(evidence.part, _text_share(weights, _thread_text(records[key]))) >= MIN_QUERY_SHARE
    ]
    quotes = passages_of(
        ((thread.id, thread.kind, evidence.message) for thread, evidence in matches),
        query,
        lambda _: messages_by_thread,
    )
    return _Candidates([thread for thread, _ in matches], quotes)


def _is_request(hit: MessageHit, messages: Sequence[ThreadMessage], service: QuestionService) -> bool:
    """Whether a comment is only a request to the bot, and so says nothing about the words."""
    message = find_message(hit, messages) if hit.position else None
    return bool(
        message and (commands(message.text) or recall_question(message.text, service.settings.question_phrases))
    )


def _search_threads(
    query: SearchQuery, weights: Mapping[str, float], service: QuestionService
) -> dict[ThreadId, ThreadEvidence]:
    """The threads whose titles, opening texts and digests match best."""

    def keep(entry: IndexEntry) -> bool:
        is_wanted = query.matches_message(entry.author, None, entry.created_at)
        return is_wanted and _may_be_shown(entry, entry.id, query, service)

    hits = service.library.search(word_query(query.words), limit=MAX_READ, keep=keep)
    return {hit.entry.id: ThreadEvidence(hit.score, _matched_share(weights, hit.terms), hit.terms) for hit in hits}


def _search_messages(query: SearchQuery, weights: Mapping[str, float], service: QuestionService) -> list[MessageHit]:
    """The best messages. Their entries have no labels: these are checked when the threads are read."""

    def keep(entry: IndexEntry) -> bool:
        is_wanted = query.matches_message(entry.author, entry.role, entry.created_at)
        return is_wanted and _may_be_shown(entry, message_of(entry.id)[0], query._replace(labels=frozenset()), service)

    hits = service.library.search_messages(word_query(query.words), limit=MAX_READ, keep=keep)
    return [_message_hit(hit, _matched_share(weights, hit.terms)) for hit in hits]


def _message_hit(hit: Hit, part: float) -> MessageHit:
    entry, key_and_position = hit.entry, message_of(hit.entry.id)
    return MessageHit(*key_and_position, entry.author, entry.role, entry.created_at, hit.score, part, hit.terms)


def _may_be_shown(entry: IndexEntry, key: ThreadId, query: SearchQuery, service: QuestionService) -> bool:
    is_issue = entry.kind.is_on_github and isinstance(key, int)
    is_allowed = key not in service.skip and (not service.only or key in service.only)
    return is_issue and is_allowed and query.matches_thread(entry)


def _matched_share(weights: Mapping[str, float], matched_terms: Iterable[str]) -> float:
    total = sum(weights.values())
    return sum(weights.get(term, 0.0) for term in matched_terms) / total if total else 0.0


def _thread_text(thread: Thread) -> str:
    text = "\n".join([thread.title, thread.body, *(comment.text for comment in thread.comments if not comment.is_bot)])
    return text[:MAX_SEARCHED_CHARS]


def _is_about(mention: Mention, weights: Mapping[str, float]) -> bool:
    """Whether a passage and the title name most of the topic."""
    quote = mention.passage
    return quote is not None and _text_share(weights, f"{mention.title}\n{quote.text}") >= MIN_TOPIC_SHARE


def _cited_mentions(
    numbers: Iterable[ThreadId], query: SearchQuery, service: QuestionService, passages: Mapping[ThreadId, Passage]
) -> list[Mention]:
    """Each of these issues or its original, once, with what was said about the words."""
    mentions = _find_mentions(numbers, query.words, CONVERSATION_CHARS, service)
    by_original = {
        key: passages[one] for mention in mentions for one in mention.chain if one in passages for key in [mention.id]
    }
    return [replace(one, passage=passages.get(one.id) or by_original.get(one.id)) for one in mentions]


def _find_mentions(numbers: Iterable[ThreadId], words: str, chars: int, service: QuestionService) -> list[Mention]:
    """Each of these issues or its original, once, with conversations close to the words."""
    ids = list(numbers)
    query_thread = Thread(
        _QUERY_NAME,
        _REFERENCE_MARK.sub(" ", words),
        " ".join(f"#{number}" for number in ids),
        _QUERY_NAME,
        datetime.max.replace(tzinfo=UTC),
    )
    mentions, missing = find_mentions(query_thread, service.place, service.library, None, (len(ids), chars))
    return [mention for mention in (*mentions, *missing) if mention.id not in service.skip]
