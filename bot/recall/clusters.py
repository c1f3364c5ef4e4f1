"""Builds clusters of threads that report one thing, from the signs that were found for each of them.

The result depends on the signs alone, not on the order in which they were found. Threads are placed oldest first. One
joins a cluster if enough signs tie it to an anchor (the oldest thread, and those that people call the same), to two
members that are tied to an anchor, or to any three members, or if a person named it. So a chain of threads, each a
little like the next, never becomes a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.domain.card import name_of
from bot.domain.changes import Request
from bot.domain.cluster import Cluster, ClusterLink, ClusterLinks, ClusterMember
from bot.domain.digest import IndexEntry
from bot.domain.duplicates import duplicate_chain
from bot.domain.thread import ThreadId

DUPLICATE, STATED, STATED_BY_REPORTER, NAMED, CLAIMED = "duplicate", "said", "heard", "named", "claimed"
MUTUAL_NEAREST, MUTUAL_NEAR, SAME_TEXT, SAME_ERROR, SAME_NAME, SIMILAR_TITLE, SAME_TITLE = (
    "alike", "near", "text", "error", "name", "title", "sametitle"
)  # fmt: skip
SAME_DAYS = "samedays"

WEIGHTS = {
    NAMED: 40,
    CLAIMED: 40,
    DUPLICATE: 30,
    STATED: 20,
    STATED_BY_REPORTER: 10,
    SAME_TEXT: 20,
    SAME_ERROR: 10,
    SAME_NAME: 2,
}
WEIGHTS |= {MUTUAL_NEAREST: 10, MUTUAL_NEAR: 7, SAME_TITLE: 11, SIMILAR_TITLE: 8, SAME_DAYS: 3}
"""How much each sign counts. That two texts are nearest to each other (MUTUAL_NEAREST), or near (MUTUAL_NEAR), is not
enough: the first needs a specific error or a title, the second both, or the same title and a name. The same error in
reports of an outage (SAME_DAYS) is enough for both. What an unknown author claims (CLAIMED) ties their own thread to
others, never others to it. Chosen on the development archive (docs/digest.md#clusters)."""

MIN_STRONG_TIE, MIN_WEAK_TIE = 20, 17
"""Minimum weight of the signs that tie two threads together, and minimum weight for each tie to three threads of one
cluster: of many reports of one error, each is near to several but the nearest of few."""

PERSONAL_SIGNS = frozenset({NAMED, DUPLICATE, STATED})
"""Signs from somebody who read both threads."""

VERDICTS = {"same": True, "original": True, "different": False, "wrong": False}
"""Requests about another thread → whether it reports the same thing."""

MAX_MEMBERS = 40
MAX_UNVOUCHED = 5
"""Most members vouched for only by an unknown author: one per account, so that nobody can inflate a cluster."""

MAX_REASONS = 3
TWO, THREE = 2, 3

_PHRASES = {
    NAMED: ("named as the same as {}", "{} is named as the same as this"),
    CLAIMED: ("its author calls it the same as {}", "the author of {} calls it the same as this"),
    DUPLICATE: ("marked as a duplicate of {}", "{} is marked as a duplicate of this"),
    STATED: ("said to be the same as {}", "{} is said to be the same as this"),
    STATED_BY_REPORTER: ("a reporter says that it is the same as {}", "a reporter says that {} is the same as this"),
    SAME_TEXT: ("same text as {}", "same text as {}"),
    SAME_ERROR: ("same error as {}", "same error as {}"),
    SAME_NAME: ("same name as in {}", "same name as in {}"),
    SAME_DAYS: ("of the same days as {}", "of the same days as {}"),
    SAME_TITLE: ("same title as {}", "same title as {}"),
    SIMILAR_TITLE: ("title like that of {}", "title like that of {}"),
    MUTUAL_NEAREST: ("{} and this are each other's closest match", "{} and this are each other's closest match"),
    MUTUAL_NEAR: (
        "{} and this are among each other's closest matches",
        "{} and this are among each other's closest matches",
    ),
}


class ClusterMemory(Protocol):
    """What clusters are built from."""

    def cluster_links(self) -> Mapping[ThreadId, ClusterLinks]: ...

    def shown_entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, IndexEntry]: ...

    def every_request(self) -> Sequence[Request]: ...


def clusters_of(memory: ClusterMemory) -> tuple[Cluster, ...]:
    """All clusters of this memory, the one with the newest member first."""
    links = memory.cluster_links()
    opinions = Opinions.of(memory.every_request())
    named = (key for pair in opinions.same for key in pair)
    ids = dict.fromkeys((*links, *(link.to for one in links.values() for link in one.links), *named))
    return build_clusters(links, memory.shown_entries(ids), opinions)


Pair = frozenset[ThreadId]

Word = tuple[ThreadId, str]
"""The thread that an opinion was given on, and who gave it."""


@dataclass(frozen=True, slots=True)
class Opinions:
    """What people said about pairs of threads: which are the same, which are not, and which is an original.

    ``originals`` are in the order they were named: the thread it was said on, the original, and who said it. For each
    pair the last opinion counts; ``same`` holds everybody who has said so since anybody disagreed.
    """

    same: Mapping[Pair, tuple[Word, ...]] = field(default_factory=dict)
    different: frozenset[Pair] = frozenset()
    originals: tuple[tuple[ThreadId, ThreadId, str], ...] = ()

    @classmethod
    def of(cls, requests: Iterable[Request]) -> Opinions:
        """The opinions in comments."""
        verdicts = sorted((r for r in requests if r.name in VERDICTS), key=lambda r: (r.at, r.comment_id, str(r.id)))
        statements = [(r.id, key, r.name, r.by) for r in verdicts for key in r.about]
        words: dict[Pair, tuple[Word, ...]] = {}
        for thread, key, name, author in statements:
            if thread != key:
                pair = frozenset((thread, key))
                words[pair] = (*words.get(pair, ()), (thread, author)) if VERDICTS[name] else ()
        same = {pair: each for pair, each in words.items() if each}
        originals = tuple((thread, key, author) for thread, key, name, author in statements if name == "original")
        return cls(same, frozenset(words) - frozenset(same), originals)


@dataclass(slots=True)
class _Group:
    """A cluster being built: its oldest thread, its anchors, the members tied to an anchor, and all members."""

    seed: ThreadId
    anchors: set[ThreadId]
    core: set[ThreadId]
    members: list[ThreadId]
    strangers: set[str] = field(default_factory=set)


Bonds = dict[ThreadId, dict[ThreadId, list[tuple[ThreadId, ClusterLink]]]]
"""Thread → thread → the signs between both, each with the thread that it was found for."""


def build_clusters(
    links: Mapping[ThreadId, ClusterLinks],
    entries: Mapping[ThreadId, IndexEntry],
    opinions: Opinions,
) -> tuple[Cluster, ...]:
    """The clusters that these signs and opinions form from ``entries``."""
    bonds = _bonds(links, entries, opinions)
    order = sorted(bonds, key=lambda key: _age(entries[key]))
    builder = _Builder(bonds, entries, opinions)
    for key in order:
        builder.place(key)
    for key in order:
        builder.place_late(key)
    found = [_cluster(group, bonds, entries, opinions) for group in builder.groups if len(group.members) >= TWO]
    return tuple(sorted(found, key=lambda cluster: (cluster.last, cluster.first, cluster.id), reverse=True))


def _age(entry: IndexEntry) -> tuple[datetime, int, str]:
    return entry.created_at, entry.id if isinstance(entry.id, int) else 0, str(entry.id)


def _bonds(
    links: Mapping[ThreadId, ClusterLinks],
    entries: Mapping[ThreadId, IndexEntry],
    opinions: Opinions,
) -> Bonds:
    found: Bonds = {}

    def add(source: ThreadId, link: ClusterLink) -> None:
        is_known = source in entries and link.to in entries and source != link.to and link.sign in WEIGHTS
        if is_known and entries[source].kind.traits.is_listed and entries[link.to].kind.traits.is_listed:
            found.setdefault(source, {}).setdefault(link.to, []).append((source, link))
            found.setdefault(link.to, {}).setdefault(source, []).append((source, link))

    for key, thread_links in links.items():
        for link in thread_links.links:
            add(key, link)
            if link.sign == DUPLICATE and (original := _original(link.to, links)) not in (link.to, key):
                add(key, ClusterLink(original, DUPLICATE))
    for pair, words in opinions.same.items():
        younger, older = sorted(pair, key=lambda key: _age(entries[key]) if key in entries else (), reverse=True)
        if all(_is_claim(thread, author, entries) for thread, author in words):
            for thread in dict.fromkeys(thread for thread, _ in words):
                add(thread, ClusterLink(older if thread == younger else younger, CLAIMED))
        else:
            add(younger, ClusterLink(older, NAMED))
    return found


def _is_claim(thread: ThreadId, author: str, entries: Mapping[ThreadId, IndexEntry]) -> bool:
    """Whether an unknown author, whom nobody vouches for, said it on their own thread."""
    entry = entries.get(thread)
    return entry is not None and entry.is_unvouched_at(None) and entry.author.casefold() == author.casefold()


def _original(key: ThreadId, links: Mapping[ThreadId, ClusterLinks]) -> ThreadId:
    """The end of the chain of duplicates that begins with this thread."""

    def original_of(duplicate: ThreadId) -> ThreadId | None:
        stated = links[duplicate].links if duplicate in links else ()
        return next((link.to for link in stated if link.sign == DUPLICATE), None)

    return duplicate_chain(key, original_of)[-1]


class _Builder:
    """Puts threads into clusters, one after the other."""

    def __init__(self, bonds: Bonds, entries: Mapping[ThreadId, IndexEntry], opinions: Opinions) -> None:
        self.groups: list[_Group] = []
        self._bonds, self._entries = bonds, entries
        self._group_of: dict[ThreadId, _Group] = {}
        self._different: dict[ThreadId, set[ThreadId]] = {}
        for one, other in map(tuple, opinions.different):
            self._different.setdefault(one, set()).add(other)
            self._different.setdefault(other, set()).add(one)

    def place(self, key: ThreadId) -> None:
        """Put a thread into a cluster of older threads that accepts it, or begin one with an older thread."""
        near = {other: weight for other, weight in self._neighbours(key).items() if self._is_older(other, key)}
        if self._join(key, near):
            return
        free = [other for other, weight in near.items() if weight >= MIN_STRONG_TIE and other not in self._group_of]
        for other in sorted(free, key=lambda neighbour: (-near[neighbour], _age(self._entries[neighbour]))):
            group = _Group(other, {other}, {other}, [other])
            if self._entries[other].is_unvouched_at(None):
                group.strangers.add(self._entries[other].author.casefold())
            if self._may_join(key, group):
                self._group_of[other] = group
                self.groups.append(group)
                self._add(key, group, near)
                return

    def place_late(self, key: ThreadId) -> None:
        """Put a thread that belongs nowhere yet into a cluster that accepts it by now."""
        if key not in self._group_of:
            self._join(key, self._neighbours(key))

    def _neighbours(self, key: ThreadId) -> dict[ThreadId, int]:
        """The threads that enough signs tie to this one, with their weight."""
        weights = {other: weight_of(_counted_links(key, found)) for other, found in self._bonds[key].items()}
        return {other: weight for other, weight in weights.items() if weight >= MIN_WEAK_TIE}

    def _is_older(self, one: ThreadId, other: ThreadId) -> bool:
        return _age(self._entries[one]) < _age(self._entries[other])

    def _join(self, key: ThreadId, near: Mapping[ThreadId, int]) -> bool:
        weights: dict[ThreadId, int] = {}
        for other, weight in near.items():
            if other in self._group_of:
                seed = self._group_of[other].seed
                weights[seed] = weights.get(seed, 0) + weight
        for seed in sorted(weights, key=lambda each_seed: (-weights[each_seed], _age(self._entries[each_seed]))):
            group = self._group_of[seed]
            if self._belongs(key, group, near) and self._may_join(key, group):
                self._add(key, group, near)
                return True
        return False

    def _belongs(self, key: ThreadId, group: _Group, near: Mapping[ThreadId, int]) -> bool:
        """Whether the thread is tied to an anchor, to two members that are tied to anchors, or to any three members, or
        was named by a person. Strangers do not count."""
        inside = [other for other in near if self._group_of.get(other) is group]
        vouched = sum(not self._entries[other].is_unvouched_at(None) for other in inside)
        holders = {other for other in inside if near[other] >= MIN_STRONG_TIE} & group.core
        return bool(holders & group.anchors) or len(holders) >= TWO or vouched >= THREE or self._is_named(key, group)

    def _is_named(self, key: ThreadId, group: _Group) -> bool:
        """Whether somebody named it the same as a member."""
        inside = (found for other, found in self._bonds[key].items() if self._group_of.get(other) is group)
        return any(link.sign in (NAMED, CLAIMED) for found in inside for link in _counted_links(key, found))

    def _may_join(self, key: ThreadId, group: _Group) -> bool:
        entry = self._entries[key]
        if any(self._group_of.get(other) is group or other == group.seed for other in self._different.get(key, ())):
            return False
        if not entry.is_unvouched_at(None):
            return True
        return len(group.strangers) < MAX_UNVOUCHED and entry.author.casefold() not in group.strangers

    def _add(self, key: ThreadId, group: _Group, near: Mapping[ThreadId, int]) -> None:
        self._group_of[key] = group
        group.members.append(key)
        if self._entries[key].is_unvouched_at(None):
            group.strangers.add(self._entries[key].author.casefold())
            return
        signs = {link.sign for _, link in self._bonds[key].get(group.seed, ())}
        if PERSONAL_SIGNS & signs or self._is_named(key, group):
            group.anchors.add(key)
        if key in group.anchors or any(near[other] >= MIN_STRONG_TIE for other in near.keys() & group.anchors):
            group.core.add(key)


def _counted_links(key: ThreadId, links: Iterable[tuple[ThreadId, ClusterLink]]) -> Iterator[ClusterLink]:
    """The signs that count for this thread: a claim counts only for the thread whose author makes it."""
    return (link for source, link in links if link.sign != CLAIMED or source == key)


def weight_of(links: Iterable[ClusterLink]) -> int:
    """The total weight of these signs between two threads; a repeated sign counts once."""
    return sum(WEIGHTS[sign] for sign in {link.sign for link in links})


def _cluster(group: _Group, bonds: Bonds, entries: Mapping[ThreadId, IndexEntry], opinions: Opinions) -> Cluster:
    canonical = _canonical(group, bonds, entries, opinions)
    by_age = sorted(group.members, key=lambda key: _age(entries[key]))
    newest = {canonical, *[key for key in by_age if key != canonical][1 - MAX_MEMBERS :]}
    kept = [key for key in by_age if key in newest]
    members = tuple(
        ClusterMember(
            key, () if key == canonical else _why(key, kept, bonds), entries[key].created_at, entries[key].author
        )
        for key in kept
    )
    return Cluster(
        id=f"c{group.seed}",
        canonical=canonical,
        members=members,
        people=len({entries[key].author.casefold() for key in by_age}),
        times=tuple(entries[key].created_at for key in by_age),
        name=entries[canonical].title,
    )


def _canonical(group: _Group, bonds: Bonds, entries: Mapping[ThreadId, IndexEntry], opinions: Opinions) -> ThreadId:
    """The thread that was last named as the original, else the one with the most marked duplicates, else the oldest.

    An unknown author whom nobody vouches for cannot decide this, not even by joining with an older thread.
    """
    inside = set(group.members)
    for thread, original, author in reversed(opinions.originals):
        if thread in inside and original in inside and not _is_claim(thread, author, entries):
            return original
    duplicate_counts = Counter(
        link.to
        for key in group.members
        for other, found in bonds[key].items()
        for source, link in found
        if link.sign == DUPLICATE and source == key and other in inside
    )
    late_strangers = {key for key in group.members if key != group.seed and entries[key].is_unvouched_at(None)}
    return min(group.members, key=lambda key: (-duplicate_counts[key], key in late_strangers, _age(entries[key])))


def _why(key: ThreadId, members: Iterable[ThreadId], bonds: Bonds) -> tuple[str, ...]:
    """The strongest signs that tie a thread to other members, in words."""
    inside = set(members)
    found = [(other, source, link) for other, each in bonds[key].items() if other in inside for source, link in each]
    found.sort(key=lambda sign: (-WEIGHTS[sign[2].sign], sign[2].sign, *map(name_of, sign[:2]), sign[2].words))
    return tuple(dict.fromkeys(_reason(key, other, source, link) for other, source, link in found))[:MAX_REASONS]


def _reason(key: ThreadId, other: ThreadId, source: ThreadId, link: ClusterLink) -> str:
    phrase = _PHRASES[link.sign][source != key].replace("{}", name_of(other))
    return f"{phrase}: {link.words}" if link.words else phrase
