"""Finds the signs that a thread reports the same thing as another one: what people say, and what both texts share.

What it finds depends on the thread and on older threads, never on later ones: a rebuild finds the same signs as were
found when the thread was new.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.cluster import MAX_LINK_CHARS, MAX_LINKS, ClusterLink, ClusterLinks
from bot.domain.digest import IndexEntry
from bot.domain.kinds import OutcomeKind
from bot.domain.thread import KNOWN_ROLES, Thread, ThreadId
from bot.ranking.features import RankingQuery, query_for, title_terms
from bot.ranking.order import OUTAGE_PERIOD, near_duplicates
from bot.reading.analyzer import terms
from bot.reading.endings.engine import find_original, find_same
from bot.reading.endings.outcome import outcome
from bot.reading.markdown import statements
from bot.reading.text_edges import cut_at_edge
from bot.recall.clusters import (
    DUPLICATE,
    MUTUAL_NEAR,
    MUTUAL_NEAREST,
    SAME_DAYS,
    SAME_ERROR,
    SAME_NAME,
    SAME_TEXT,
    SAME_TITLE,
    SIMILAR_TITLE,
    STATED,
    STATED_BY_REPORTER,
    weight_of,
)
from bot.recall.comparison import Comparison, compare
from bot.recall.library import Library, similar_query, threads
from bot.recall.reasons import SharedSignals
from bot.recall.similar import ABSENT_TERM, is_next_in_series

MAX_NEAREST = 5
"""How many older threads a thread is compared with, and how near it must be to each of them in return."""

MAX_CANDIDATES = 40
"""How many of the most similar threads are searched for reports of the same outage."""

MIN_SCORE_SHARE = 0.8
"""A thread with this share of the best score is as near as the best: many reports of one thing are equally near."""

MAX_ERROR_THREADS, MAX_NAME_THREADS = 8, 16
"""How many threads may hold an error, or a name or file, that two of them share: more common ones say nothing. Equally
similar open reports of the last two days do not count (`near_duplicates`)."""

MIN_ERROR_WORDS = 3
"""Minimum words of an error: a constant alone is not an error."""

MIN_ERROR_TRIGRAMS = 10
"""Minimum number of three-word sequences, such as twelve words in a row, in lines about a failure that two threads
with unlike titles must share: shorter messages have many causes. During an outage any rare error counts."""

SIMILAR_TITLE_SHARE, SAME_TITLE_SHARE, MIN_TITLE_WORDS, MIN_TITLE_RARITY = 0.6, 0.75, 3, 1.2
"""Minimum share of common words in two titles that are alike, or the same; minimum number of these words; and their
minimum total rarity, relative to that of a word that nobody else uses."""

RECENT_PERIOD = timedelta(days=7)
RESOLVED_KINDS = frozenset({OutcomeKind.FIXED, OutcomeKind.DUPLICATE, OutcomeKind.UNKNOWN})
"""A thread with such an ending attracts no more links by its text after RECENT_PERIOD: a similar report then has
another cause, or the problem is back. A question that was answered is asked again."""

MIN_SIGN_WEIGHT = 8
"""Minimum weight of the other signs before checking whether two threads are near to each other."""

MAX_STATED_LINKS = 10
_REFERENCE_HINT = re.compile(r"#\d|\bGH-\d|/(?:issues|pull)/\d", re.ASCII | re.IGNORECASE)
_MICROSECOND = timedelta(microseconds=1)
_UNKNOWN_REPO = "/"
"""Stands for an unknown repository, so that a link counts as pointing to another repository."""


def find_links(thread: Thread, library: Library, repo: str | None = None) -> ClusterLinks:
    """The signs of a thread, those from people first. Only issues have any."""
    if not thread.kind.traits.is_listed or thread.is_bot:
        return ClusterLinks(thread.id, thread.revised_at)
    stated = list(dict.fromkeys(_links_from_people(thread, repo or _UNKNOWN_REPO)))[:MAX_STATED_LINKS]
    return ClusterLinks(thread.id, thread.revised_at, (*stated, *_links_from_texts(thread, library, repo))[:MAX_LINKS])


def _links_from_people(thread: Thread, repo: str) -> Iterator[ClusterLink]:
    """What people said: each thread once, with the strongest sign."""
    originals = _marked_originals(thread, repo)
    signs = dict.fromkeys(originals, DUPLICATE)
    texts = [(thread.role, thread.body), *((one.role, one.text) for one in thread.comments if not one.is_bot)]
    for role, text in texts:
        is_known = not role or role in KNOWN_ROLES
        for target in _threads_called_same(text, thread.id, repo):
            if target not in signs or (signs[target] == STATED_BY_REPORTER and is_known):
                signs[target] = STATED if is_known else STATED_BY_REPORTER
    return (ClusterLink(key, sign) for key, sign in signs.items() if key != thread.id)


def _marked_originals(thread: Thread, repo: str) -> list[ThreadId]:
    """The threads that this one is marked as a duplicate of, by a person."""
    marks: dict[ThreadId, bool] = {}
    for event in sorted(thread.events, key=lambda event: event.at):
        if (
            event.source is not None
            and event.name.endswith("marked_as_duplicate")
            and not event.actor.endswith("[bot]")
        ):
            marks[event.source] = event.name == "marked_as_duplicate"
    stated = outcome(thread, repo).duplicate_of
    return list(dict.fromkeys([*([] if stated is None else [stated]), *(key for key, is_on in marks.items() if is_on)]))


def _threads_called_same(text: str, own_id: ThreadId, repo: str) -> Iterator[ThreadId]:
    if not _REFERENCE_HINT.search(text):
        return
    for sentence in statements(text):
        original = find_original(sentence, own_id, repo) or find_same(sentence, own_id, repo)
        if original is not None:
            yield original


def _links_from_texts(thread: Thread, library: Library, repo: str | None) -> Iterator[ClusterLink]:
    """What the thread shares with the most similar older ones, provided each is among the other's nearest."""
    if not terms(thread.title):
        return
    moment = thread.created_at
    query = similar_query(thread)
    hits = library.search(query, limit=MAX_CANDIDATES, before=moment, keep=lambda entry: _is_candidate(entry, thread))
    rarity = library.rarity([*query.terms, ABSENT_TERM], before=moment)
    ranking_query = query_for(thread, rarity, rarity.get(ABSENT_TERM, 0.0))
    ranking_query = replace(ranking_query, repeats=max(0, len(near_duplicates(hits, ranking_query)) - 1))
    texts = threads(library, [hit.entry.id for hit in hits[:MAX_NEAREST]], moment)
    near = [texts[hit.entry.id] for hit in hits[:MAX_NEAREST] if hit.entry.id in texts]
    for rank, (other, comparison) in enumerate(zip(near, compare(thread, near, ranking_query, library), strict=True)):
        signs = list(_signs(thread, other, comparison, library, ranking_query))
        if weight_of(signs) < MIN_SIGN_WEIGHT or _is_over(other, moment, repo):
            continue
        if nearness := _nearness(thread, other, library, is_nearest=rank == 0):
            yield from (ClusterLink(other.id, nearness), *signs)


def _is_candidate(entry: IndexEntry, thread: Thread) -> bool:
    is_other = entry.id != thread.id and entry.kind.traits.is_listed
    return is_other and entry.author.casefold() != thread.author.casefold() and not is_next_in_series(thread, entry)


def _is_over(thread: Thread, moment: datetime, repo: str | None) -> bool:
    """Whether the reported problem had been over for some time at that moment."""
    is_old = thread.closed_at is not None and moment - thread.closed_at > RECENT_PERIOD
    return is_old and outcome(thread, repo).kind in RESOLVED_KINDS


def _nearness(thread: Thread, other: Thread, library: Library, *, is_nearest: bool) -> str:
    """MUTUAL_NEAREST if each thread is the other's nearest, MUTUAL_NEAR if it is among the nearest, else "".

    Searches from the other thread, as of the moment this one was opened. ``is_nearest``: as seen from this one.
    """
    hits = library.search(
        similar_query(other),
        limit=2 * MAX_NEAREST,
        before=thread.created_at + _MICROSECOND,
        keep=lambda entry: _is_candidate(entry, other),
    )
    rank = next((rank for rank, hit in enumerate(hits) if hit.entry.id == thread.id), None)
    if rank is None:
        return ""
    if rank == 0 and is_nearest:
        return MUTUAL_NEAREST
    return MUTUAL_NEAR if rank < MAX_NEAREST or hits[rank].score >= MIN_SCORE_SHARE * hits[0].score else ""


def _signs(
    thread: Thread, other: Thread, comparison: Comparison, library: Library, ranking_query: RankingQuery
) -> Iterator[ClusterLink]:
    """What two texts share that few others have, not counting recent repeats. Several signs of one kind say no more
    than one."""
    if comparison.is_same:
        yield ClusterLink(other.id, SAME_TEXT)
    ours, theirs = title_terms(thread.title), title_terms(other.title)
    common, either, repeats = ours & theirs, ours | theirs, ranking_query.repeats
    is_telling = sum(ranking_query.rarity.get(term, 0.0) for term in common) >= MIN_TITLE_RARITY * ranking_query.rarest
    share = len(common) / len(either) if len(common) >= MIN_TITLE_WORDS and is_telling else 0.0
    if share >= SIMILAR_TITLE_SHARE:
        yield ClusterLink(other.id, SAME_TITLE if share >= SAME_TITLE_SHARE else SIMILAR_TITLE)
    shared = comparison.shared
    terms_of = dict(zip((*shared.errors, *shared.files, *shared.names), shared.words(), strict=True))
    joint_frequency = library.joint_frequency(filter(None, terms_of.values()), before=thread.created_at)
    is_specific = share >= SIMILAR_TITLE_SHARE or comparison.errors >= MIN_ERROR_TRIGRAMS or repeats
    errors = [
        line for line in shared.errors if is_specific and len(_quotation(line, shared).split()) >= MIN_ERROR_WORDS
    ]
    for sign, values, few in (
        (SAME_ERROR, errors, MAX_ERROR_THREADS),
        (SAME_NAME, (*shared.files, *shared.names), MAX_NAME_THREADS),
    ):
        rare = [value for value in values if joint_frequency.get(terms_of[value], few + repeats + 1) <= few + repeats]
        if rare:
            yield ClusterLink(other.id, sign, cut_at_edge(_quotation(rare[0], shared), MAX_LINK_CHARS))
            if sign == SAME_ERROR and repeats and thread.created_at - other.created_at <= OUTAGE_PERIOD:
                yield ClusterLink(other.id, SAME_DAYS)


def _quotation(value: str, shared: SharedSignals) -> str:
    return shared.quoted.get(value, value)
