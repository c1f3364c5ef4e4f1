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
from bot.domain.card import CardId, Passage
from bot.domain.thread import RepositoryAddress, Thread, ThreadId
from bot.index.scoring import least
from bot.questions.context import history_of, recent_conversations
from bot.questions.deciding import MIN_TOPIC_SHARE, topic_share, topic_shares
from bot.questions.requests import MIN_CHARS, CardSearch, IssueRequest, ReadMessages, WordSearch
from bot.questions.search import find_words
from bot.reading.search_query import SearchQuery
from bot.recall.answer import recall, with_fixes
from bot.recall.library import Library
from bot.recall.mentions import MENTION_CHARS, find_mentions
from bot.settings.schema import Settings

MAX_THREADS = 5
"""Threads in an answer."""

CONVERSATION_CHARS = 1_500
"""Characters of each conversation in an answer of several threads."""

MAX_HISTORY_SHARE = 0.5
"""Largest share of an agent's answer that recent conversation may fill."""

_REFERENCE_MARK = re.compile(r"[#/]|\bgh-", re.IGNORECASE)
_QUERY_NAME = "asking"


@dataclass(frozen=True, slots=True)
class QuestionService:
    """What an answer depends on: the memory, the settings, and the repository.

    ``skip`` are threads that are never part of an answer, such as the one with the question.
    """

    library: Library
    settings: Settings
    place: RepositoryAddress
    skip: tuple[ThreadId, ...] = ()


def about_words(query: SearchQuery, cards: CardSearch, read: ReadMessages, service: QuestionService) -> Context:
    """The threads that a search finds, the best first, at most five, each with how it ended, what was decided and what
    was said about the words. A duplicate is shown as its original. If decisions are sought, only those on the topic are
    in the answer."""
    found = find_words(WordSearch(query.words, query, 2 * MAX_THREADS), cards, read)
    mentions = _find_mentions([hit.card.id for hit in found.hits], query.words, CONVERSATION_CHARS, service)
    mentions = [replace(each, passage=_passage(each, found.passages)) for each in mentions[:MAX_THREADS]]
    if query.decides and query.words:
        shares = topic_shares(query, cards)
        mentions = [_decided(mention, shares) for mention in mentions]
    return _context_of(mentions, service)


def about_issue(numbers: Sequence[int], service: QuestionService) -> Context:
    """These issues in full, as if a text had mentioned them; those without a record are marked as missing."""
    return _context_of(
        _find_mentions(numbers, "", min(MENTION_CHARS, service.settings.comment.chars), service), service
    )


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
    """Collect what the bot would say about the issue of this ``thread``, and what was said in the last days, or at
    last, on it and in the ``sessions`` that worked on it."""
    recalled = recall(thread, service.library, _limit_budgets(request.chars, service.settings), service.place)
    history = _history(request, thread, sessions, service.settings)
    context, omitted = _fit(recalled, request.chars - len(history))
    return IssueAnswer(context, as_xml(context, history), omitted)


def _limit_budgets(chars: int, settings: Settings) -> Settings:
    """The settings with conversations of at most a third of these characters."""
    return replace(settings, comment=replace(settings.comment, chars=min(settings.comment.chars, chars // 3)))


def _history(request: IssueRequest, thread: Thread, sessions: Sequence[Thread], settings: Settings) -> str:
    """What was said on the issue in the last days, or at last, as XML; "" if that is only its opening text."""
    room = int(request.chars * MAX_HISTORY_SHARE)
    me = request.me or (settings.comment.author,)
    recent = recent_conversations([thread, *sessions], me, request.now, keeps_newest=True)
    said = [(one.thread, turn.at) for one in recent.conversations for turn in one.turns]
    if room < MIN_CHARS or said in ([], [(thread.id, thread.created_at)]):
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


def _context_of(mentions: Iterable[Mention], service: QuestionService) -> Context:
    context = Context(mentioned=tuple(mentions), searched=service.library.issues)
    return with_fixes(context, service.library, None, service.place.repo)


def _passage(mention: Mention, passages: Mapping[CardId, Passage]) -> Passage | None:
    """What was said in the thread, or in the duplicate by which it was found."""
    return next((passages[key] for key in (mention.id, *mention.chain) if key in passages), None)


def _decided(mention: Mention, shares: Mapping[str, float]) -> Mention:
    """The mention with only those of its decisions that name most of the topic, if any does."""
    decisions = tuple(
        decision
        for decision in mention.decisions
        if topic_share(f"{mention.title}\n{decision.text}", shares) >= least(MIN_TOPIC_SHARE)
    )
    return replace(mention, decisions=decisions, passage=None) if decisions else mention


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
