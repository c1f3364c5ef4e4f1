"""The index on Whoosh: vectors beside the terms, and what is known of each hit beside its score."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from math import log
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.indexed import Hit
from bot.memory.index import ARMS, Document, Query
from bot.memory.whoosh import WhooshIndex, build, open_index
from bot.model import ThreadId
from tests.examples import examples
from tests.memory.test_whoosh import START, document, entry, index_of, names
from tests.memory.test_whoosh_attacks import parts


def signed(*numbers: int) -> bytes:
    return bytes(number & 0xFF for number in numbers)


def pointing(key: ThreadId, *numbers: int, title: str = "thread", day: float = 0, arm: str = "trained") -> Document:
    return replace(document(key, title, day=day), vectors={arm: signed(*numbers)} if numbers else {})


def towards(*numbers: int, words: str = "", arm: str = "trained") -> Query:
    return Query(dict.fromkeys(words.split(), 1.0), vectors={arm: signed(*numbers)})


def ids(hits: Iterable[Hit]) -> list[ThreadId]:
    return [hit.entry.id for hit in hits]


COMPASS = [pointing(1, 5, 0), pointing(2, 5, 5), pointing(3, 0, 5), pointing(4, -5, 0), pointing(5, title="crash")]
"""Threads that point east, north-east, north and west, and one that points nowhere."""


def test_the_closest_threads_come_beside_those_that_share_a_term(tmp_path: Path) -> None:
    shared, *others = index_of(tmp_path, COMPASS).search(towards(1, 0, words="crash"), near=2)
    assert (shared.entry.id, shared.terms, shared.near) == (5, ("crash",), {"trained": 0.0})
    assert [(hit.entry.id, hit.score, hit.share, hit.terms) for hit in others] == [(1, 0.0, 0.0, ()), (2, 0.0, 0.0, ())]
    assert [hit.near["trained"] for hit in others] == [1.0, pytest.approx(0.5**0.5)]


def test_what_shares_terms_and_is_close_comes_once_with_both(tmp_path: Path) -> None:
    index = index_of(tmp_path, [pointing(1, 5, 0, title="crash"), pointing(2, 5, 1)])
    hits = index.search(towards(1, 0, words="crash"))
    assert ids(hits) == [1, 2]
    assert hits[0].score > 0
    assert hits[0].near == {"trained": 1.0}


def test_each_hit_says_how_close_it_is_for_every_vector_of_the_query(tmp_path: Path) -> None:
    both = replace(pointing(1, 1, 0), vectors={"trained": signed(1, 0), "semantic": signed(0, 0, 3)})
    index = index_of(tmp_path, [both, pointing(2, 3, 0, 0, arm="semantic")])
    asked = Query({}, vectors={"trained": signed(-2, 0), "semantic": signed(1, 0, 0), "semantic_title": signed(1)})
    assert {hit.entry.id: hit.near for hit in index.search(asked)} == {
        1: {"trained": -1.0, "semantic": 0.0, "semantic_title": 0.0},
        2: {"trained": 0.0, "semantic": 1.0, "semantic_title": 0.0},
    }


def test_so_many_come_for_each_vector_and_equal_ones_by_id(tmp_path: Path) -> None:
    keys: list[ThreadId] = ["B-1", 20, 3, "A-1", 100]
    index = index_of(tmp_path, [*(pointing(key, 1, 1) for key in keys), *COMPASS[:2]])
    assert ids(index.search(towards(1, 1), near=3)) == [2, 3, 20]
    assert ids(index.search(towards(1, 1), near=5)) == [2, 3, 20, 100, "A-1"]
    assert ids(index.search(towards(1, 1), near=0)) == []


@pytest.mark.parametrize("vector", [(0, 0), (1, 0, 0), (1,), ()])
def test_a_vector_of_nothing_or_of_another_length_finds_nothing(tmp_path: Path, vector: tuple[int, ...]) -> None:
    index = index_of(tmp_path, COMPASS)
    assert index.search(towards(*vector)) == []
    assert [hit.near for hit in index.search(towards(*vector, words="crash"))] == [{"trained": 0.0}]
    assert index.search(towards(1, 0, arm="nonsense")) == []


def test_the_filter_holds_for_the_closest_too_and_still_fills_their_number(tmp_path: Path) -> None:
    index = index_of(tmp_path, [pointing(number, 100, number) for number in range(100)])
    assert ids(index.search(towards(1, 0), near=3, keep=lambda found: int(found.id) % 40 == 0)) == [0, 40, 80]
    assert index.search(towards(1, 0), keep=lambda _: False) == []


def test_the_filter_is_asked_once_about_each_thread(tmp_path: Path) -> None:
    asked: list[ThreadId] = []
    index = index_of(tmp_path, [pointing(number, 100, number, title="crash") for number in range(100)])
    index.search(
        towards(1, 0, words="crash"), limit=5, keep=lambda found: not asked.append(found.id) and found.id == 99
    )
    assert sorted(asked, key=int) == list(range(100))


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_newer_or_removed_is_not_among_the_closest(tmp_path: Path, order: int) -> None:
    index = index_of(tmp_path, [pointing(number, 100, number, day=number) for number in range(20)][::order])
    index.update([], remove=[1])
    assert ids(index.search(towards(1, 0), near=3, before=START + timedelta(days=3))) == [0, 2]
    assert ids(index.search(towards(1, 0), near=3)) == [0, 2, 3]


def test_an_index_without_vectors_has_no_place_for_them(tmp_path: Path) -> None:
    build(tmp_path, [document(1, "crash")])
    [segment] = tmp_path.glob("*.seg")
    assert [name for name in parts(segment) if any(arm in name for arm in ARMS)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"trained": signed(1, 2, 3)},
        {"trained": b""},
        {"semantic": bytes(1025)},
        {"created": bytes(8)},
        {"nonsense": signed(1, 2)},
    ],
)
def test_a_vector_that_is_not_like_the_others_is_refused_before_anything_is_written(
    tmp_path: Path, wrong: dict[str, bytes]
) -> None:
    index = index_of(tmp_path / "index", COMPASS)
    before = {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()}
    with pytest.raises(ValueError, match="a vector of"):
        index.update([document(9, "new"), replace(document(10, "new"), vectors=wrong)])
    assert {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()} == before
    assert ids(index.search(towards(1, 0), near=1)) == [1]
    with pytest.raises(ValueError, match="a vector of"):
        build(tmp_path / "other", [*COMPASS, replace(document(10, "new"), vectors=wrong)])
    assert not names(tmp_path / "other")


def test_vectors_may_come_later_and_for_some_threads_only(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(number, "crash") for number in range(1, 5)])
    index.update([pointing(5, 1, 0)])
    index.update([document(6, "crash"), pointing(2, 2, 1)])
    assert ids(index.search(towards(1, 0))) == [2, 5]
    with pytest.raises(ValueError, match="where others have 2"):
        index.update([pointing(1, 1, 0, 0)])


def duplicate(key: ThreadId, of: ThreadId, known: float | None, day: float = 0) -> Document:
    at = None if known is None else START + timedelta(days=known)
    return Document(entry(key, day, duplicate_of=of, duplicate_at=at), ["copy"])


def counts(index: WhooshIndex, day: float | None = None) -> dict[ThreadId, int]:
    before = None if day is None else START + timedelta(days=day)
    return {hit.entry.id: hit.duplicates for hit in index.search(Query({"crash": 1.0}), before=before)}


def test_duplicates_are_counted_that_were_known_at_the_moment(tmp_path: Path) -> None:
    known = [duplicate(11, 1, 5, 1), duplicate(12, 1, 9, 8), duplicate(13, "1", 5), duplicate(14, 1, None)]
    index = index_of(tmp_path, [document(1, "crash"), document("1", "crash"), document(2, "crash"), *known])
    assert counts(index) == {1: 3, "1": 1, 2: 0}
    assert counts(index, 4) == {1: 0, "1": 0, 2: 0}
    assert counts(index, 5) == {1: 1, "1": 1, 2: 0}
    assert counts(index, 10) == {1: 2, "1": 1, 2: 0}


def test_duplicates_that_are_gone_or_point_elsewhere_now_are_not_counted(tmp_path: Path) -> None:
    index = index_of(
        tmp_path, [document(1, "crash"), document(2, "crash"), *(duplicate(n, 1, 1) for n in (11, 12, 13))]
    )
    index.update([duplicate(12, 2, 1)], remove=[11])
    assert counts(index) == {1: 1, 2: 1}


def test_rarity_is_that_of_titles_and_opening_texts_at_the_moment(tmp_path: Path) -> None:
    documents = [document(number, "crash", "often", day=number, keywords="noted") for number in range(10)]
    index = index_of(tmp_path, [*documents, document(10, "other", "often", day=10)])
    index.update([], remove=[9])
    found = index.rarity(["crash", "often", "noted"])
    assert found == {"crash": log(1 + 1.5 / 9.5), "often": log(1 + 0.5 / 10.5), "noted": log(1 + 10.5 / 0.5)}
    assert index.rarity(["crash", "new"], before=START + timedelta(days=2)) == {
        "crash": log(1 + 0.5 / 2.5),
        "new": log(1 + 2.5 / 0.5),
    }
    assert index_of(tmp_path / "empty", []).rarity(["crash"]) == {"crash": log(2)}


VECTOR = st.one_of(st.none(), st.tuples(st.integers(-3, 3), st.integers(-128, 127)))
CHANGE = st.tuples(st.integers(1, 12), VECTOR, st.one_of(st.none(), st.integers(1, 12)))
HISTORY = st.lists(st.tuples(st.lists(CHANGE, max_size=6), st.lists(st.integers(1, 12), max_size=2)), max_size=8)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORY)
def test_any_history_of_updates_keeps_vectors_and_duplicates_as_one_build_of_its_result_has_them(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[list[tuple[int, tuple[int, int] | None, int | None]], list[int]]],
) -> None:
    index = index_of(tmp_path_factory.mktemp("history"), [])
    state: dict[int, Document] = {}
    for changes, remove in history:
        batch = {
            key: Document(
                entry(key, key, duplicate_of=of, duplicate_at=None if of is None else START + timedelta(days=of)),
                ["crash"],
                vectors={} if vector is None else {"trained": signed(*vector), "semantic_title": signed(*vector, key)},
            )
            for key, vector, of in changes
        }
        index.update(batch.values(), remove)
        state = {key: kept for key, kept in state.items() if key not in remove} | batch
    fresh = index_of(tmp_path_factory.mktemp("fresh"), state.values())
    asked = Query({"crash": 1.0}, vectors={"trained": signed(1, 2), "semantic_title": signed(1, 2, 3)})
    for before in (None, START + timedelta(days=6)):
        found = index.search(asked, limit=2, near=3, before=before)
        assert found == fresh.search(asked, limit=2, near=3, before=before)
    reopened = open_index(index._folder)
    assert reopened.search(asked) == fresh.search(asked)
