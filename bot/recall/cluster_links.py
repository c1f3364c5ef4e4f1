"""Finds the signs that a thread reports the same thing as another one: what people say, and what both texts share.

What it finds depends on the thread and on older threads, never on later ones: a rebuild finds the same signs as were
found when the thread was new.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.cluster import MAX_LINKS, MAX_WORDS, ClusterLink, ClusterLinks
from bot.domain.digest import IndexEntry
from bot.domain.kinds import OutcomeKind
from bot.domain.thread import KNOWN_ROLES, Thread, ThreadId
from bot.ranking.features import RankingQuery, query_for, title_terms
from bot.ranking.order import OUTAGE, near_duplicates
from bot.reading.analyzer import terms
from bot.reading.endings.engine import find_original, find_same
from bot.reading.endings.outcome import outcome
from bot.reading.markdown import statements
from bot.recall.clusters import (
    ALIKE,
    DUPLICATE,
    ERROR,
    HEARD,
    NAME,
    NEAR,
    SAID,
    SAME_DAYS,
    SAME_TITLE,
    TEXT,
    TITLE,
    weight_of,
)
from bot.recall.comparison import Comparison, compare
from bot.recall.library import Library, similar_query, threads
from bot.recall.reasons import SharedSignals
from bot.recall.similar import NOWHERE, is_next_in_series

NEAREST = 5
"""How many older threads a thread is compared with, and how near it must be to each of them in return."""

REPORTS = 40
"""How many of the most similar threads are searched for reports of the same outage."""

ALMOST = 0.8
"""A thread with this share of the best score is as near as the best: many reports of one thing are equally near."""

FEW_ERRORS, FEW_NAMES = 8, 16
"""How many threads may hold an error, or a name or file, that two of them share: more common ones say nothing. Equally
similar open reports of the last two days do not count (`near_duplicates`)."""

LEAST_WORDS = 3
"""Minimum words of an error: a constant alone is not an error."""

LEAST_ERROR = 10
"""Minimum number of three-word sequences, such as twelve words in a row, in lines about a failure that two threads
with unlike titles must share: shorter messages have many causes. During an outage any rare error counts."""

ALIKE_TITLES, SAME_TITLES, LEAST_TITLE, TELLING = 0.6, 0.75, 3, 1.2
"""Minimum share of common words in two titles that are alike, or the same; minimum number of these words; and their
minimum total rarity, relative to that of a word that nobody else uses."""

LATELY = timedelta(days=7)
GONE = frozenset({OutcomeKind.FIXED, OutcomeKind.DUPLICATE, OutcomeKind.UNKNOWN})
"""A thread with such an ending attracts no more links by its text after LATELY: a similar report then has another
cause, or the problem is back. A question that was answered is asked again."""

LEAST_SIGNS = 8
"""Minimum weight of the other signs before checking whether two threads are near to each other."""

MAX_SAID = 10
_POINTS = re.compile(r"#\d|\bGH-\d|/(?:issues|pull)/\d", re.ASCII | re.IGNORECASE)
_MOMENT = timedelta(microseconds=1)
_UNKNOWN_REPO = "/"
"""Stands for an unknown repository, so that a link counts as pointing to another repository."""


def find_links(thread: Thread, library: Library, repo: str | None = None) -> ClusterLinks:
    """The signs of a thread, those from people first. Only issues have any."""
    if not thread.kind.traits.is_listed or thread.is_bot:
        return ClusterLinks(thread.id, thread.revised_at)
    stated = list(dict.fromkeys(_links_from_people(thread, repo or _UNKNOWN_REPO)))[:MAX_SAID]
    return ClusterLinks(thread.id, thread.revised_at, (*stated, *_links_from_texts(thread, library, repo))[:MAX_LINKS])


def _links_from_people(thread: Thread, repo: str) -> Iterator[ClusterLink]:
    """What people said: each thread once, with the strongest sign."""
    originals = _marked_originals(thread, repo)
    signs = dict.fromkeys(originals, DUPLICATE)
    texts = [(thread.role, thread.body), *((one.role, one.text) for one in thread.comments if not one.is_bot)]
    for role, text in texts:
        is_known = not role or role in KNOWN_ROLES
        for target in _threads_called_same(text, thread.id, repo):
            if target not in signs or (signs[target] == HEARD and is_known):
                signs[target] = SAID if is_known else HEARD
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
    if not _POINTS.search(text):
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
    hits = library.search(query, limit=REPORTS, before=moment, keep=lambda entry: _is_candidate(entry, thread))
    rarity = library.rarity([*query.terms, NOWHERE], before=moment)
    ranking_query = query_for(thread, rarity, rarity.get(NOWHERE, 0.0))
    ranking_query = replace(ranking_query, repeats=max(0, len(near_duplicates(hits, ranking_query)) - 1))
    texts = threads(library, [hit.entry.id for hit in hits[:NEAREST]], moment)
    near = [texts[hit.entry.id] for hit in hits[:NEAREST] if hit.entry.id in texts]
    for rank, (other, comparison) in enumerate(zip(near, compare(thread, near, ranking_query, library), strict=True)):
        signs = list(_signs(thread, other, comparison, library, ranking_query))
        if weight_of(signs) < LEAST_SIGNS or _is_over(other, moment, repo):
            continue
        if nearness := _nearness(thread, other, library, is_nearest=rank == 0):
            yield from (ClusterLink(other.id, nearness), *signs)


def _is_candidate(entry: IndexEntry, thread: Thread) -> bool:
    is_other = entry.id != thread.id and entry.kind.traits.is_listed
    return is_other and entry.author.casefold() != thread.author.casefold() and not is_next_in_series(thread, entry)


def _is_over(thread: Thread, moment: datetime, repo: str | None) -> bool:
    """Whether the reported problem had been over for some time at that moment."""
    is_old = thread.closed_at is not None and moment - thread.closed_at > LATELY
    return is_old and outcome(thread, repo).kind in GONE


def _nearness(thread: Thread, other: Thread, library: Library, *, is_nearest: bool) -> str:
    """ALIKE if each thread is the other's nearest, NEAR if it is among the nearest, else "".

    Searches from the other thread, as of the moment this one was opened. ``is_nearest``: as seen from this one.
    """
    hits = library.search(
        similar_query(other),
        limit=2 * NEAREST,
        before=thread.created_at + _MOMENT,
        keep=lambda entry: _is_candidate(entry, other),
    )
    rank = next((rank for rank, hit in enumerate(hits) if hit.entry.id == thread.id), None)
    if rank is None:
        return ""
    if rank == 0 and is_nearest:
        return ALIKE
    return NEAR if rank < NEAREST or hits[rank].score >= ALMOST * hits[0].score else ""


def _signs(
    thread: Thread, other: Thread, comparison: Comparison, library: Library, ranking_query: RankingQuery
) -> Iterator[ClusterLink]:
    """What two texts share that few others have, not counting recent repeats. Several signs of one kind say no more
    than one."""
    if comparison.is_same:
        yield ClusterLink(other.id, TEXT)
    ours, theirs = title_terms(thread.title), title_terms(other.title)
    common, either, repeats = ours & theirs, ours | theirs, ranking_query.repeats
    is_telling = sum(ranking_query.rarity.get(term, 0.0) for term in common) >= TELLING * ranking_query.rarest
    share = len(common) / len(either) if len(common) >= LEAST_TITLE and is_telling else 0.0
    if share >= ALIKE_TITLES:
        yield ClusterLink(other.id, SAME_TITLE if share >= SAME_TITLES else TITLE)
    shared = comparison.shared
    terms_of = dict(zip((*shared.errors, *shared.files, *shared.names), shared.words(), strict=True))
    joint_frequency = library.joint_frequency(filter(None, terms_of.values()), before=thread.created_at)
    is_specific = share >= ALIKE_TITLES or comparison.errors >= LEAST_ERROR or repeats
    errors = [line for line in shared.errors if is_specific and len(_quotation(line, shared).split()) >= LEAST_WORDS]
    for sign, values, few in ((ERROR, errors, FEW_ERRORS), (NAME, (*shared.files, *shared.names), FEW_NAMES)):
        rare = [value for value in values if joint_frequency.get(terms_of[value], few + repeats + 1) <= few + repeats]
        if rare:
            yield ClusterLink(other.id, sign, _shorten(_quotation(rare[0], shared)))
            if sign == ERROR and repeats and thread.created_at - other.created_at <= OUTAGE:
                yield ClusterLink(other.id, SAME_DAYS)


def _quotation(value: str, shared: SharedSignals) -> str:
    return shared.quoted.get(value, value)


def _shorten(words: str) -> str:
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"
