"""Builds clusters: threads that report one thing, from the signs that were found for each of them.

The result depends on the signs alone, in whatever order they were found. Threads are taken oldest first. One joins the
cluster that holds it: by its anchors, which are the oldest thread and those that people call the same, by two
members that the anchors hold, by any three members, or because a person named it. So no chain of threads, each a little
like the next, becomes a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from bot.domain.card import name_of
from bot.domain.changes import Request
from bot.domain.cluster import Cluster, ClusterLink, ClusterLinks, ClusterMember
from bot.domain.digest import IndexEntry
from bot.domain.thread import ThreadId
from bot.settings.schema import ClusterSettings

DUPLICATE, SAID, HEARD, NAMED, CLAIMED = "duplicate", "said", "heard", "named", "claimed"
ALIKE, NEAR, TEXT, ERROR, NAME, TITLE, SAME_TITLE = "alike", "near", "text", "error", "name", "title", "sametitle"
SAME_DAYS = "samedays"

WEIGHTS = {NAMED: 40, CLAIMED: 40, DUPLICATE: 30, SAID: 20, HEARD: 10, TEXT: 20, ERROR: 10, NAME: 2}
WEIGHTS |= {ALIKE: 10, NEAR: 7, SAME_TITLE: 11, TITLE: 8, SAME_DAYS: 3}
"""How much each sign says. That two texts are nearest to each other (ALIKE), or near (NEAR), is not enough: the first
needs a specific error or a title, the second both, or the same title and a name. The same error in reports of an outage
(SAME_DAYS) is enough for both. What an unknown author claims (CLAIMED) ties the own thread to others, never others to
it. Chosen on the development archive (docs/clusters.md)."""

HOLDS, HELPS = 20, 17
"""Least weight of the signs between two threads that holds them together, and that does so to three threads of one
cluster: of many reports of one error each is near to several, and is the nearest of few."""

PEOPLE = frozenset({NAMED, DUPLICATE, SAID})
"""Signs that come from somebody who read both threads."""

VERDICTS = {"same": True, "original": True, "different": False, "wrong": False}
"""Requests about another thread → whether it reports the same thing."""

MAX_MEMBERS = 40
MAX_STRANGERS = 5
"""Members behind which only an unknown author stands: one for each account, so that none makes a cluster large."""

UNCORRECTED = ClusterSettings()
MAX_WHY = 3
MAX_CHAIN = 10
TWO, THREE = 2, 3

_PHRASES = {
    NAMED: ("named as the same as {}", "{} is named as the same as this"),
    CLAIMED: ("its author calls it the same as {}", "the author of {} calls it the same as this"),
    DUPLICATE: ("marked as a duplicate of {}", "{} is marked as a duplicate of this"),
    SAID: ("said to be the same as {}", "{} is said to be the same as this"),
    HEARD: ("a reporter says that it is the same as {}", "a reporter says that {} is the same as this"),
    TEXT: ("same text as {}", "same text as {}"),
    ERROR: ("same error as {}", "same error as {}"),
    NAME: ("same name as in {}", "same name as in {}"),
    SAME_DAYS: ("of the same days as {}", "of the same days as {}"),
    SAME_TITLE: ("same title as {}", "same title as {}"),
    TITLE: ("title like that of {}", "title like that of {}"),
    ALIKE: ("{} and this are each other's closest match", "{} and this are each other's closest match"),
    NEAR: ("{} and this are among each other's closest matches", "{} and this are among each other's closest matches"),
}


class ClusterMemory(Protocol):
    """What clusters are built from."""

    def cluster_links(self) -> Mapping[ThreadId, ClusterLinks]: ...

    def shown_entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, IndexEntry]: ...

    def every_request(self) -> Sequence[Request]: ...


def clusters_of(
    memory: ClusterMemory, settings: ClusterSettings = UNCORRECTED, quiet: Iterable[str] = ()
) -> tuple[Cluster, ...]:
    """All clusters of this memory, the one with the newest member first. ``settings`` overrule comments.

    No words of the people in ``quiet``, logins in any case, are in the reasons.
    """
    links = memory.cluster_links()
    opinions = Opinions.of(memory.every_request(), settings)
    named = (key for pair in opinions.same for key in pair)
    ids = dict.fromkeys((*links, *(link.to for one in links.values() for link in one.links), *named))
    return build_clusters(links, memory.shown_entries(ids), opinions, frozenset(login.casefold() for login in quiet))


Pair = frozenset[ThreadId]

Word = tuple[ThreadId, str]
"""The thread that something was said on, and who said it; "" for the settings."""


@dataclass(frozen=True, slots=True)
class Opinions:
    """What people said about pairs of threads: which are the same, which are not, and which is an original.

    ``originals`` are in the order of their saying, each after the thread that it was said on, before who said it. Of
    what was said about one pair the last counts; ``same`` holds all who said so since anybody said otherwise.
    """

    same: Mapping[Pair, tuple[Word, ...]] = field(default_factory=dict)
    different: frozenset[Pair] = frozenset()
    originals: tuple[tuple[ThreadId, ThreadId, str], ...] = ()

    @classmethod
    def of(cls, requests: Iterable[Request], settings: ClusterSettings) -> Opinions:
        """The opinions in comments, overruled by those in the settings."""
        said = sorted((r for r in requests if r.name in VERDICTS), key=lambda r: (r.at, r.comment_id, str(r.id)))
        told = [(r.id, key, r.name, r.by) for r in said for key in r.about]
        given = {"different": settings.different, "same": settings.same, "original": settings.original}
        told += [(one, other, name, "") for name, texts in given.items() for one, other in pairs_in(texts)]
        words: dict[Pair, tuple[Word, ...]] = {}
        for on, key, name, by in told:
            if on != key:
                pair = frozenset((on, key))
                words[pair] = (*words.get(pair, ()), (on, by)) if VERDICTS[name] else ()
        same = {pair: each for pair, each in words.items() if each}
        originals = tuple((on, key, by) for on, key, name, by in told if name == "original")
        return cls(same, frozenset(words) - frozenset(same), originals)


def pairs_in(texts: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The pairs of numbers in settings such as ``#12 #7: the same crash``."""
    for text in texts:
        one, other = text.partition(":")[0].split()
        yield int(one.lstrip("#")), int(other.lstrip("#"))


@dataclass(slots=True)
class _Group:
    """A cluster while it is built: its oldest thread, those that stand for it, those that they hold, and the others."""

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
    quiet: frozenset[str] = frozenset(),
) -> tuple[Cluster, ...]:
    """The clusters that these signs and opinions make of the threads in ``entries``. ``quiet``: whose words are cut."""
    bonds = _bonds(links, entries, opinions, quiet)
    order = sorted(bonds, key=lambda key: _age(entries[key]))
    builder = _Builder(bonds, entries, opinions)
    for key in order:
        builder.place(key)
    for key in order:
        builder.place_late(key)
    found = [_cluster(group, bonds, entries, opinions) for group in builder.groups if len(group.members) >= TWO]
    return tuple(sorted(found, key=lambda one: (one.last, one.first, one.id), reverse=True))


def _age(entry: IndexEntry) -> tuple[datetime, int, str]:
    return entry.created_at, entry.id if isinstance(entry.id, int) else 0, str(entry.id)


def _bonds(
    links: Mapping[ThreadId, ClusterLinks],
    entries: Mapping[ThreadId, IndexEntry],
    opinions: Opinions,
    quiet: frozenset[str],
) -> Bonds:
    found: Bonds = {}

    def add(one: ThreadId, link: ClusterLink) -> None:
        is_known = one in entries and link.to in entries and one != link.to and link.sign in WEIGHTS
        if is_known and entries[one].kind.traits.is_listed and entries[link.to].kind.traits.is_listed:
            if link.words and not quiet.isdisjoint(entries[key].author.casefold() for key in (one, link.to)):
                link = replace(link, words="")
            found.setdefault(one, {}).setdefault(link.to, []).append((one, link))
            found.setdefault(link.to, {}).setdefault(one, []).append((one, link))

    for key, one in links.items():
        for link in one.links:
            add(key, link)
            if link.sign == DUPLICATE and (original := _original(link.to, links)) not in (link.to, key):
                add(key, ClusterLink(original, DUPLICATE))
    for pair, words in opinions.same.items():
        younger, older = sorted(pair, key=lambda key: _age(entries[key]) if key in entries else (), reverse=True)
        if all(_is_claim(on, by, entries) for on, by in words):
            for on in dict.fromkeys(on for on, _ in words):
                add(on, ClusterLink(older if on == younger else younger, CLAIMED))
        else:
            add(younger, ClusterLink(older, NAMED))
    return found


def _is_claim(on: ThreadId, by: str, entries: Mapping[ThreadId, IndexEntry]) -> bool:
    """Whether it is the word of an unknown author on the own thread, for which nobody vouches."""
    entry = entries.get(on)
    return entry is not None and entry.is_unvouched_at(None) and entry.author.casefold() == by.casefold()


def _original(key: ThreadId, links: Mapping[ThreadId, ClusterLinks]) -> ThreadId:
    """The end of the chain of duplicates that begins with this thread."""
    walked = [key]
    while len(walked) <= MAX_CHAIN and walked[-1] in links:
        marked = next((link.to for link in links[walked[-1]].links if link.sign == DUPLICATE), None)
        if marked is None or marked in walked:
            break
        walked.append(marked)
    return walked[-1]


class _Builder:
    """Puts threads into clusters, one after the other."""

    def __init__(self, bonds: Bonds, entries: Mapping[ThreadId, IndexEntry], opinions: Opinions) -> None:
        self.groups: list[_Group] = []
        self._bonds, self._entries = bonds, entries
        self._of: dict[ThreadId, _Group] = {}
        self._apart: dict[ThreadId, set[ThreadId]] = {}
        for one, other in map(tuple, opinions.different):
            self._apart.setdefault(one, set()).add(other)
            self._apart.setdefault(other, set()).add(one)

    def place(self, key: ThreadId) -> None:
        """Put a thread into the cluster of older threads that holds it, or begin one with an older thread."""
        near = {other: weight for other, weight in self._near(key).items() if self._is_older(other, key)}
        if self._join(key, near):
            return
        free = [other for other, weight in near.items() if weight >= HOLDS and other not in self._of]
        for other in sorted(free, key=lambda one: (-near[one], _age(self._entries[one]))):
            group = _Group(other, {other}, {other}, [other])
            if self._entries[other].is_unvouched_at(None):
                group.strangers.add(self._entries[other].author.casefold())
            if self._may_join(key, group):
                self._of[other] = group
                self.groups.append(group)
                self._add(key, group)
                return

    def place_late(self, key: ThreadId) -> None:
        """Put a thread that belongs nowhere yet into a cluster that holds it by now."""
        if key not in self._of:
            self._join(key, self._near(key))

    def _near(self, key: ThreadId) -> dict[ThreadId, int]:
        """The threads that enough signs tie to this one, with their weight."""
        weights = {other: weight_of(_heard(key, found)) for other, found in self._bonds[key].items()}
        return {other: weight for other, weight in weights.items() if weight >= HELPS}

    def _is_older(self, one: ThreadId, other: ThreadId) -> bool:
        return _age(self._entries[one]) < _age(self._entries[other])

    def _join(self, key: ThreadId, near: Mapping[ThreadId, int]) -> bool:
        weights: dict[ThreadId, int] = {}
        for other, weight in near.items():
            if other in self._of:
                seed = self._of[other].seed
                weights[seed] = weights.get(seed, 0) + weight
        for seed in sorted(weights, key=lambda one: (-weights[one], _age(self._entries[one]))):
            group = self._of[seed]
            if self._is_held(key, group, near) and self._may_join(key, group):
                self._add(key, group)
                return True
        return False

    def _is_held(self, key: ThreadId, group: _Group, near: Mapping[ThreadId, int]) -> bool:
        """Whether an anchor ties the thread to the cluster, or two members that anchors hold, any three members, or a
        person. Strangers hold nothing."""
        inside = [other for other in near if self._of.get(other) is group]
        known = sum(not self._entries[other].is_unvouched_at(None) for other in inside)
        held_by = {other for other in inside if near[other] >= HOLDS} & group.core
        return bool(held_by & group.anchors) or len(held_by) >= TWO or known >= THREE or self._is_named(key, group)

    def _is_named(self, key: ThreadId, group: _Group) -> bool:
        """Whether somebody named it the same as a member."""
        inside = (found for other, found in self._bonds[key].items() if self._of.get(other) is group)
        return any(link.sign in (NAMED, CLAIMED) for found in inside for link in _heard(key, found))

    def _may_join(self, key: ThreadId, group: _Group) -> bool:
        entry = self._entries[key]
        if any(self._of.get(other) is group or other == group.seed for other in self._apart.get(key, ())):
            return False
        if not entry.is_unvouched_at(None):
            return True
        return len(group.strangers) < MAX_STRANGERS and entry.author.casefold() not in group.strangers

    def _add(self, key: ThreadId, group: _Group) -> None:
        self._of[key] = group
        group.members.append(key)
        if self._entries[key].is_unvouched_at(None):
            group.strangers.add(self._entries[key].author.casefold())
            return
        said = {link.sign for _, link in self._bonds[key].get(group.seed, ())}
        if PEOPLE & said or self._is_named(key, group):
            group.anchors.add(key)
        if key in group.anchors or any(self._near(key).get(other, 0) >= HOLDS for other in group.anchors):
            group.core.add(key)


def _heard(key: ThreadId, found: Iterable[tuple[ThreadId, ClusterLink]]) -> Iterator[ClusterLink]:
    """The signs that count for this thread: a claim counts only for the thread whose author makes it."""
    return (link for source, link in found if link.sign != CLAIMED or source == key)


def weight_of(links: Iterable[ClusterLink]) -> int:
    """How much these signs between two threads say together; a sign that is there twice counts once."""
    return sum(WEIGHTS[sign] for sign in {link.sign for link in links})


def _cluster(group: _Group, bonds: Bonds, entries: Mapping[ThreadId, IndexEntry], opinions: Opinions) -> Cluster:
    canonical = _canonical(group, bonds, entries, opinions)
    every = sorted(group.members, key=lambda key: _age(entries[key]))
    newest = {canonical, *[key for key in every if key != canonical][1 - MAX_MEMBERS :]}
    kept = [key for key in every if key in newest]
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
        people=len({entries[key].author.casefold() for key in every}),
        times=tuple(entries[key].created_at for key in every),
        name=entries[canonical].title,
    )


def _canonical(group: _Group, bonds: Bonds, entries: Mapping[ThreadId, IndexEntry], opinions: Opinions) -> ThreadId:
    """The thread that was named last, else the one that most others are marked as duplicates of, else the oldest.

    An unknown author whom nobody vouches for names none, also not by joining with an older thread.
    """
    inside = set(group.members)
    for on, original, by in reversed(opinions.originals):
        if on in inside and original in inside and not _is_claim(on, by, entries):
            return original
    marked = Counter(
        link.to
        for key in group.members
        for other, found in bonds[key].items()
        for source, link in found
        if link.sign == DUPLICATE and source == key and other in inside
    )
    late_strangers = {key for key in group.members if key != group.seed and entries[key].is_unvouched_at(None)}
    return min(group.members, key=lambda key: (-marked[key], key in late_strangers, _age(entries[key])))


def _why(key: ThreadId, members: Iterable[ThreadId], bonds: Bonds) -> tuple[str, ...]:
    """The strongest signs that tie a thread to other members, in words."""
    inside = set(members)
    found = [(other, source, link) for other, each in bonds[key].items() if other in inside for source, link in each]
    found.sort(key=lambda one: (-WEIGHTS[one[2].sign], one[2].sign, *map(name_of, one[:2]), one[2].words))
    return tuple(dict.fromkeys(_reason(key, other, source, link) for other, source, link in found))[:MAX_WHY]


def _reason(key: ThreadId, other: ThreadId, source: ThreadId, link: ClusterLink) -> str:
    phrase = _PHRASES[link.sign][source != key].replace("{}", name_of(other))
    return f"{phrase}: {link.words}" if link.words else phrase
