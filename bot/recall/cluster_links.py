"""Finds the signs that a thread reports the same thing as another one: what people say, and what both texts share.

What it finds depends on the thread and on older threads, never on later ones: signs that were found when a thread was
new are the same as those of a rebuild.
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
from bot.ranking.features import RankingQuery, question, title_terms
from bot.ranking.order import OUTAGE, near_duplicates
from bot.reading.analyzer import terms
from bot.reading.endings.engine import named_same, original_named
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
"""Older threads that a thread is compared with, and among which it has to be found from there."""

REPORTS = 40
"""Most similar threads among which reports of one outage are counted."""

ALMOST = 0.8
"""A thread with this part of the best score is as near as the best: many reports of one thing are equally near."""

FEW_ERRORS, FEW_NAMES = 8, 16
"""Threads that may hold an error, or a name or file, that two of them share: more common ones say nothing. Open reports
of the last two days that are as similar do not count (`near_duplicates`)."""

LEAST_WORDS = 3
"""Words of an error: a constant alone is no error."""

LEAST_ERROR = 10
"""Three-word sequences in lines about a failure, such as twelve words in a row, that two threads share where their
titles are not alike: shorter messages have many causes. During an outage any rare error counts."""

ALIKE_TITLES, SAME_TITLES, LEAST_TITLE, TELLING = 0.6, 0.75, 3, 1.2
"""Least share of common words in two titles that are alike, or the same, least number of these words, and least rarity
of them together, in that of a word that nobody else uses."""

LATELY = timedelta(days=7)
GONE = frozenset({OutcomeKind.FIXED, OutcomeKind.DUPLICATE, OutcomeKind.UNKNOWN})
"""How a thread ended whose text ties nothing to it after LATELY: what looks like it then has another cause, or is back.
A question that was answered is asked again."""

LEAST_SIGNS = 8
"""Least weight of other signs for which it is worth looking whether two threads are near to each other."""

MAX_SAID = 10
_POINTS = re.compile(r"#\d|\bGH-\d|/(?:issues|pull)/\d", re.ASCII | re.IGNORECASE)
_MOMENT = timedelta(microseconds=1)
_UNKNOWN_REPO = "/"
"""Stands for a repository that is not known, so that a link counts as one of another repository."""


def find_links(thread: Thread, library: Library, repo: str | None = None) -> ClusterLinks:
    """The signs of a thread, those of people first. Only issues have any."""
    if not thread.kind.traits.is_listed or thread.is_bot:
        return ClusterLinks(thread.id, thread.revised_at)
    said = list(dict.fromkeys(_said(thread, repo or _UNKNOWN_REPO)))[:MAX_SAID]
    return ClusterLinks(thread.id, thread.revised_at, (*said, *_shared(thread, library, repo))[:MAX_LINKS])


def _said(thread: Thread, repo: str) -> Iterator[ClusterLink]:
    """What people said, each thread once with the strongest sign."""
    marked = _marked(thread, repo)
    found = dict.fromkeys(marked, DUPLICATE)
    texts = [(thread.role, thread.body), *((one.role, one.text) for one in thread.comments if not one.is_bot)]
    for role, text in texts:
        is_known = not role or role in KNOWN_ROLES
        for target in _called_same(text, thread.id, repo):
            if target not in found or (found[target] == HEARD and is_known):
                found[target] = SAID if is_known else HEARD
    return (ClusterLink(key, sign) for key, sign in found.items() if key != thread.id)


def _marked(thread: Thread, repo: str) -> list[ThreadId]:
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


def _called_same(text: str, own: ThreadId, repo: str) -> Iterator[ThreadId]:
    if not _POINTS.search(text):
        return
    for sentence in statements(text):
        original = original_named(sentence, own, repo) or named_same(sentence, own, repo)
        if original is not None:
            yield original


def _shared(thread: Thread, library: Library, repo: str | None) -> Iterator[ClusterLink]:
    """What the thread shares with the older ones that are most like it, if each is among the nearest of the other."""
    if not terms(thread.title):
        return
    moment = thread.created_at
    query = similar_query(thread)
    hits = library.search(query, limit=REPORTS, before=moment, keep=lambda entry: _is_fit(entry, thread))
    rarity = library.rarity([*query.terms, NOWHERE], before=moment)
    asked = question(thread, rarity, rarity.get(NOWHERE, 0.0))
    asked = replace(asked, repeats=max(0, len(near_duplicates(hits, asked)) - 1))
    texts = threads(library, [hit.entry.id for hit in hits[:NEAREST]], moment)
    near = [texts[hit.entry.id] for hit in hits[:NEAREST] if hit.entry.id in texts]
    for place, (other, both) in enumerate(zip(near, compare(thread, near, asked, library), strict=True)):
        signs = list(_signs(thread, other, both, library, asked))
        if weight_of(signs) < LEAST_SIGNS or _is_over(other, moment, repo):
            continue
        if found := _nearness(thread, other, library, is_nearest=place == 0):
            yield from (ClusterLink(other.id, found), *signs)


def _is_fit(entry: IndexEntry, thread: Thread) -> bool:
    is_other = entry.id != thread.id and entry.kind.traits.is_listed
    return is_other and entry.author.casefold() != thread.author.casefold() and not is_next_in_series(thread, entry)


def _is_over(thread: Thread, moment: datetime, repo: str | None) -> bool:
    """Whether what the thread reports was over for some time at that moment."""
    is_old = thread.closed_at is not None and moment - thread.closed_at > LATELY
    return is_old and outcome(thread, repo).kind in GONE


def _nearness(thread: Thread, other: Thread, library: Library, *, is_nearest: bool) -> str:
    """ALIKE where each thread is the nearest of the other one, NEAR where it is among the nearest, else "".

    Asked from the other thread as of the moment at which this one was opened. ``is_nearest``: seen from this one.
    """
    hits = library.search(
        similar_query(other),
        limit=2 * NEAREST,
        before=thread.created_at + _MOMENT,
        keep=lambda entry: _is_fit(entry, other),
    )
    place = next((place for place, hit in enumerate(hits) if hit.entry.id == thread.id), None)
    if place is None:
        return ""
    if place == 0 and is_nearest:
        return ALIKE
    return NEAR if place < NEAREST or hits[place].score >= ALMOST * hits[0].score else ""


def _signs(
    thread: Thread, other: Thread, both: Comparison, library: Library, asked: RankingQuery
) -> Iterator[ClusterLink]:
    """What two texts share that few others have, besides the repeats of these days. Several of one kind say no more
    than one."""
    if both.is_same:
        yield ClusterLink(other.id, TEXT)
    ours, theirs = title_terms(thread.title), title_terms(other.title)
    common, every, repeats = ours & theirs, ours | theirs, asked.repeats
    is_telling = sum(asked.rarity.get(term, 0.0) for term in common) >= TELLING * asked.rarest
    share = len(common) / len(every) if len(common) >= LEAST_TITLE and is_telling else 0.0
    if share >= ALIKE_TITLES:
        yield ClusterLink(other.id, SAME_TITLE if share >= SAME_TITLES else TITLE)
    shared = both.shared
    terms_of = dict(zip((*shared.errors, *shared.files, *shared.names), shared.words(), strict=True))
    held_by = library.held_by(filter(None, terms_of.values()), before=thread.created_at)
    is_specific = share >= ALIKE_TITLES or both.errors >= LEAST_ERROR or repeats
    errors = [line for line in shared.errors if is_specific and len(_quoted(line, shared).split()) >= LEAST_WORDS]
    for sign, values, few in ((ERROR, errors, FEW_ERRORS), (NAME, (*shared.files, *shared.names), FEW_NAMES)):
        rare = [value for value in values if held_by.get(terms_of[value], few + repeats + 1) <= few + repeats]
        if rare:
            yield ClusterLink(other.id, sign, _shown(_quoted(rare[0], shared)))
            if sign == ERROR and repeats and thread.created_at - other.created_at <= OUTAGE:
                yield ClusterLink(other.id, SAME_DAYS)


def _quoted(value: str, shared: SharedSignals) -> str:
    return shared.quoted.get(value, value)


def _shown(words: str) -> str:
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"
