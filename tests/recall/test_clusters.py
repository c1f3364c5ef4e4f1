"""Clusters: what holds a thread in one, what does not, and what people say about it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.changes import Request
from bot.domain.cluster import Cluster, ClusterLink, ClusterLinks
from bot.domain.digest import FOREVER, IndexEntry
from bot.domain.thread import Kind, ThreadId
from bot.recall.clusters import MAX_MEMBERS, MAX_UNVOUCHED, WEIGHTS, Opinions, build_clusters, weight_of
from tests.examples import examples
from tests.reading.linear_time import too_slow
from tests.recall.samples import at

NO_OPINIONS = Opinions()
ALIKE = ("alike", "error")


def entry(key: ThreadId, author: str = "", *, unvouched: bool = False, kind: Kind = Kind.ISSUE) -> IndexEntry:
    moment = at(key if isinstance(key, int) else 0)
    until = FOREVER if unvouched else None
    return IndexEntry(key, kind, f"Title {key}", author or f"user-{key}", "open", moment, moment, unvouched_until=until)


def entries(*keys: int) -> dict[ThreadId, IndexEntry]:
    return {key: entry(key) for key in keys}


def links(*triples: tuple[int, int, tuple[str, ...]]) -> dict[ThreadId, ClusterLinks]:
    """(thread, other, signs) → the signs by thread."""
    by_thread: dict[ThreadId, list[ClusterLink]] = {}
    for key, to, signs in triples:
        by_thread.setdefault(key, []).extend(ClusterLink(to, sign) for sign in signs)
    return {key: ClusterLinks(key, at(100), tuple(each)) for key, each in by_thread.items()}


def members(clusters: tuple[Cluster, ...]) -> list[list[ThreadId]]:
    return [[member.id for member in cluster.members] for cluster in clusters]


def request(name: str, on: int, *about: int, day: float = 200, by: str = "hubot") -> Request:
    return Request(on, int(day * 1000) + on, name, by, at(day), about, "done")


def test_a_cluster_lists_its_reporters_its_dates_and_a_reason_for_each_report() -> None:
    signs = {2: ClusterLinks(2, at(9), (ClusterLink(1, "alike"), ClusterLink(1, "error", "E42: no such door")))}
    signs |= links((3, 1, ("duplicate",)))
    all_entries = entries(1, 2, 3) | {3: entry(3, "USER-1")}
    (cluster,) = build_clusters(signs, all_entries, NO_OPINIONS)
    assert (cluster.id, cluster.canonical, cluster.name, cluster.people) == ("c1", 1, "Title 1", 2)
    assert (cluster.first, cluster.last) == (at(1), at(3))
    assert [member.why for member in cluster.members] == [
        (),
        ("#1 and this are each other's closest match", "same error as #1: E42: no such door"),
        ("marked as a duplicate of #1",),
    ]
    assert [member.author for member in cluster.members] == ["user-1", "user-2", "USER-1"]


def test_a_weak_sign_alone_makes_no_cluster() -> None:
    cases = [("alike",), ("error",), ("file", "name"), ("heard",), ("title",)]
    assert [signs for signs in cases if build_clusters(links((2, 1, signs)), entries(1, 2), NO_OPINIONS) != ()] == []


def test_the_same_sign_twice_counts_once() -> None:
    assert weight_of([ClusterLink(1, "error", "a"), ClusterLink(1, "error", "b")]) == WEIGHTS["error"]


def test_a_chain_of_similar_threads_is_no_cluster() -> None:
    chain = links(*((n + 1, n, ALIKE) for n in range(1, 30)))
    groups = members(build_clusters(chain, entries(*range(1, 31)), NO_OPINIONS))
    assert max(map(len, groups)) == 2


def test_two_members_linked_with_the_oldest_hold_a_third() -> None:
    signs = links((2, 1, ALIKE), (3, 1, ALIKE), (4, 2, ALIKE), (4, 3, ALIKE), (5, 4, ALIKE), (5, 3, ALIKE))
    # 4 is held by 2 and 3; 5 only by 3, as 4 is not held by the oldest itself
    assert members(build_clusters(signs, entries(1, 2, 3, 4, 5), NO_OPINIONS)) == [[1, 2, 3, 4]]


def test_a_thread_like_a_marked_duplicate_belongs_to_its_cluster() -> None:
    signs = links((2, 1, ("duplicate",)), (3, 2, ALIKE))
    assert members(build_clusters(signs, entries(1, 2, 3), NO_OPINIONS)) == [[1, 2, 3]]


def test_a_duplicate_of_a_duplicate_belongs_to_the_original() -> None:
    signs = links((1, 2, ("duplicate",)), (2, 3, ("duplicate",)), (3, 1, ("duplicate",)), (4, 1, ("duplicate",)))
    assert members(build_clusters(signs, entries(1, 2, 3, 4), NO_OPINIONS)) == [[1, 2, 3, 4]]


def test_a_duplicate_of_a_strangers_duplicate_belongs_to_the_original() -> None:
    signs = links((2, 1, ("duplicate",)), (3, 2, ("duplicate",)))
    assert members(build_clusters(signs, entries(1, 3) | {2: entry(2, unvouched=True)}, NO_OPINIONS)) == [[1, 2, 3]]


def test_the_most_marked_original_gives_the_name_and_the_oldest_thread_the_id() -> None:
    signs = links((1, 5, ("duplicate",)), (6, 5, ("duplicate",)))
    (cluster,) = build_clusters(signs, entries(1, 5, 6), NO_OPINIONS)
    assert (cluster.id, cluster.canonical, cluster.name) == ("c1", 5, "Title 5")
    assert cluster.members[0].why == ("marked as a duplicate of #5",)


def test_a_thread_that_a_later_one_links_with_the_cluster_belongs_to_it() -> None:
    signs = links((2, 1, ALIKE), (3, 2, ALIKE), (4, 1, ALIKE), (4, 3, ALIKE))
    assert members(build_clusters(signs, entries(1, 2, 3, 4), NO_OPINIONS)) == [[1, 2, 3, 4]]


def test_a_cluster_shows_the_original_and_the_newest_of_many() -> None:
    count = MAX_MEMBERS + 10
    signs = links(*((n, 1, ("duplicate",)) for n in range(2, count + 1)))
    (cluster,) = build_clusters(signs, entries(*range(1, count + 1)), NO_OPINIONS)
    assert [member.id for member in cluster.members] == [1, *range(count - MAX_MEMBERS + 2, count + 1)]
    assert (cluster.total, cluster.people, cluster.first, cluster.last) == (count, count, at(1), at(count))


def test_the_oldest_thread_counts_even_if_it_is_not_listed() -> None:
    count = MAX_MEMBERS + 10
    signs = links(*((n, 9, ("duplicate",)) for n in range(1, count + 1) if n != 9))
    (cluster,) = build_clusters(signs, entries(*range(1, count + 1)), NO_OPINIONS)
    assert (cluster.members[0].id, cluster.first, cluster.total) == (9, at(1), count)


def test_strangers_alone_do_not_make_a_cluster_large() -> None:
    keys = range(2, 20)
    signs = links(*((n, 1, ("said",)) for n in keys))
    all_entries = entries(1) | {n: entry(n, f"sock-{n}", unvouched=True) for n in keys}
    (cluster,) = build_clusters(signs, all_entries, NO_OPINIONS)
    assert len(cluster.members) == 1 + MAX_UNVOUCHED
    of_one = entries(1) | {n: entry(n, "Sock" if n % 2 else "sock", unvouched=True) for n in keys}
    assert members(build_clusters(signs, of_one, NO_OPINIONS)) == [[1, 2]]


def test_strangers_hold_no_thread_in_a_cluster() -> None:
    signs = links((2, 1, ALIKE), (3, 1, ALIKE), (4, 2, ALIKE), (4, 3, ALIKE))
    all_entries = entries(1, 4) | {n: entry(n, unvouched=True) for n in (2, 3)}
    assert members(build_clusters(signs, all_entries, NO_OPINIONS)) == [[1, 2, 3]]


def test_only_issues_that_still_exist_take_part() -> None:
    for kind in [Kind.PULL, Kind.DISCUSSION]:
        signs = links((2, 1, ("duplicate",)), (3, 1, ("duplicate",)))
        assert build_clusters(signs, entries(1) | {2: entry(2, kind=kind)}, NO_OPINIONS) == (), kind


def test_people_can_separate_threads_join_them_and_name_the_original() -> None:
    signs = links((2, 1, ("duplicate",)), (3, 1, ALIKE))
    all_entries = entries(1, 2, 3, 4)

    def built(*requests: Request) -> tuple[Cluster, ...]:
        return build_clusters(signs, all_entries, Opinions.of(requests))

    assert members(built(request("different", 3, 1))) == [[1, 2]]
    assert members(built(request("wrong", 1, 3))) == [[1, 2]]
    assert members(built(request("different", 3, 1), request("same", 1, 3, day=201))) == [[1, 2, 3]]
    assert members(built(request("same", 1, 3), request("wrong", 3, 1, day=201))) == [[1, 2]]
    assert members(built(request("same", 4, 2))) == [[1, 2, 3, 4]]
    assert built(request("same", 4, 1))[0].members[-1].why == ("named as the same as #1",)
    (cluster,) = built(request("original", 4, 3))
    assert (cluster.canonical, [member.id for member in cluster.members]) == (3, [1, 2, 3, 4])


def test_an_unknown_author_names_no_original() -> None:
    signs = links((2, 1, ("duplicate",)), (3, 1, ("duplicate",)))
    all_entries = entries(1, 2) | {3: entry(3, "sock", unvouched=True)}
    for by, canonical in (("sock", 1), ("hubot", 2)):
        opinions = Opinions.of([request("original", 3, 2, by=by)])
        assert build_clusters(signs, all_entries, opinions)[0].canonical == canonical


@pytest.mark.parametrize("own", [3, 100], ids=["older", "younger"])
def test_an_unknown_author_merges_no_threads_of_others(own: int) -> None:
    signs = links((6, 5, ("duplicate",)))
    all_entries = entries(5, 6, 7, 9) | {own: entry(own, "sock", unvouched=True)}

    def built(*requests: Request) -> list[list[ThreadId]]:
        return members(build_clusters(signs, all_entries, Opinions.of(requests)))

    claim = request("same", own, 5, 7, 9, by="Sock")
    assert built(claim) == [sorted([own, 5, 6])]  # only its own thread joins
    (cluster,) = build_clusters(signs, all_entries, Opinions.of([claim]))
    assert (cluster.canonical, cluster.name) == (5, "Title 5")
    assert {member.id: member.why for member in cluster.members}[own] == ("its author calls it the same as #5",)
    merged = [sorted([own, 5, 6, 7, 9])]
    assert built(request("same", own, 5, 7, 9)) == merged
    assert built(request("same", own, 5, 7, 9, day=199), claim) == merged  # a writer said so too


SIGNS = st.sampled_from(sorted(WEIGHTS))
TRIPLES = st.lists(st.tuples(st.integers(1, 25), st.integers(1, 25), SIGNS), max_size=60)


@settings(max_examples=examples(200))
@given(TRIPLES, st.sets(st.integers(1, 25)), st.randoms(use_true_random=False))
def test_clusters_do_not_depend_on_the_order_of_the_links(
    triples: list[tuple[int, int, str]], strangers: set[int], rng: Random
) -> None:
    signs = links(*((key, to, (sign,)) for key, to, sign in triples))
    all_entries = {key: entry(key, unvouched=key in strangers) for key in range(1, 26)}
    first = build_clusters(signs, all_entries, NO_OPINIONS)
    assert first == build_clusters(_shuffled(signs, rng), _shuffled(all_entries, rng), NO_OPINIONS)
    member_ids = [member.id for cluster in first for member in cluster.members]
    assert len(member_ids) == len(set(member_ids))
    for cluster in first:
        assert 2 <= len(cluster.members) <= MAX_MEMBERS
        assert cluster.canonical in {member.id for member in cluster.members}
        assert all(member.why for member in cluster.members if member.id != cluster.canonical)
        assert all(member.at <= other.at for member, other in pairwise(cluster.members))
        assert sum(member.id in strangers for member in cluster.members) <= MAX_UNVOUCHED
    assert [cluster.last for cluster in first] == sorted((cluster.last for cluster in first), reverse=True)
    assert all(cluster.last - cluster.first >= timedelta(days=1) for cluster in first)


def _shuffled(values: Mapping[ThreadId, object], rng: Random) -> dict[ThreadId, object]:
    keys = list(values)
    rng.shuffle(keys)
    return {key: values[key] for key in keys}


def test_an_unknown_sign_of_another_version_is_ignored() -> None:
    assert build_clusters(links((2, 1, ("smell", "alike", "error"))), entries(1, 2), NO_OPINIONS) != ()
    assert build_clusters(links((2, 1, ("smell",))), entries(1, 2), NO_OPINIONS) == ()


NEAR = ("near", "error")


def test_three_members_hold_a_thread_that_is_near_to_each_of_them() -> None:
    near_to_three = links((2, 1, ALIKE), (3, 1, ALIKE), (4, 1, NEAR), (4, 2, NEAR), (4, 3, NEAR))
    assert members(build_clusters(near_to_three, entries(1, 2, 3, 4), NO_OPINIONS)) == [[1, 2, 3, 4]]
    near_to_two = links((2, 1, ALIKE), (3, 1, ALIKE), (4, 1, NEAR), (4, 2, NEAR))
    assert members(build_clusters(near_to_two, entries(1, 2, 3, 4), NO_OPINIONS)) == [[1, 2, 3]]
    strangers = entries(1, 4) | {n: entry(n, unvouched=True) for n in (2, 3)}
    assert members(build_clusters(near_to_three, strangers, NO_OPINIONS)) == [[1, 2, 3]]


def test_a_cluster_of_many_threads_takes_linear_time() -> None:
    """Half of them are marked as duplicates of the first one, and the others are near to three of those."""

    def build(threads: str) -> None:
        half = len(threads) // 2
        signs = links(*((n, 1, ("duplicate",)) for n in range(2, half)))
        signs |= links(*((n, n - half + back, NEAR) for n in range(half + 3, 2 * half) for back in range(3)))
        (cluster,) = build_clusters(signs, entries(*range(1, 2 * half)), NO_OPINIONS)
        assert cluster.total > len(threads) * 0.9

    assert not too_slow(build, "x".__mul__, (100, 800))
