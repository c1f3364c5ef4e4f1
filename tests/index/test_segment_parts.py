"""Segments in parts answer like those in one file, fetch only what is needed, and check every byte."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.digest import IndexHit
from bot.domain.thread import Kind, ThreadId
from bot.errors import StoreError
from bot.index import build_index, open_index
from bot.index.protocol import NOTES, TEXT, Index, IndexCorrupt, IndexDocument, Query, Sizes
from bot.index.whoosh.segment_parts import IndexParts
from tests.examples import examples
from tests.index.test_whoosh import START, entry, index_of
from tests.index.test_whoosh_attacks import records

LATER = START + timedelta(days=10_000)
SMALL = Sizes(documents=5, rows=70, entries=8, bucket=300, heavy=120)
WORDS = [f"w{number}" for number in range(40)]


class PartStore:
    """The parts of an index, kept apart as in a store; ``fetches`` lists the names of each request."""

    def __init__(self, folder: Path) -> None:
        self.files = {path.name: path.read_bytes() for path in (folder / "parts").iterdir()}
        self.fetches: list[list[str]] = []
        for path in (folder / "parts").iterdir():
            path.unlink()

    def fetch(self, names: Sequence[str]) -> Mapping[str, bytes]:
        self.fetches.append(list(names))
        return {name: self.files[name] for name in names if name in self.files}


def thread(
    key: ThreadId, words: Iterable[str], day: float = 0, vector: bytes = b"", of: int | None = None
) -> IndexDocument:
    words = list(words)
    at = None if of is None else START + timedelta(days=day)
    index_entry = entry(key, day, duplicate_of=of, duplicate_at=at, state_changes=(START + timedelta(days=day + 1),))
    return IndexDocument(index_entry, words[:3], words[2:], {"summary": words[:2]}, vector)


def many_threads(count: int, seed: int = 1, *, vectors: bool = False) -> list[IndexDocument]:
    rng = Random(seed)
    return [
        thread(
            number,
            rng.choices(WORDS, range(1, 41), k=12),
            number / 10,
            bytes(rng.choices(range(256), k=10)) if vectors else b"",
            number // 2 if number % 7 == 3 else None,
        )
        for number in range(1, count + 1)
    ]


def build_both(folder: Path, documents: Sequence[IndexDocument]) -> tuple[Index, Index]:
    build_index(folder / "whole", documents)
    build_index(folder / "parted", documents, sizes=SMALL)
    return open_index(folder / "whole"), open_index(folder / "parted", sizes=SMALL)


def answers(index: Index) -> list[object]:
    """All answers of an index to some queries."""
    query = Query({"w3": 1.0, "w39": 2.0, "w20": 0.5, "absent": 1.0}, {TEXT: 1.0, NOTES: 0.3})
    blend = replace(query, blend={"text": 1.0, "open": 0.5, "age": -0.1, "closed": 0.1, "duplicates": 0.3})
    early = START + timedelta(days=2)
    return [
        *(index.search(query, limit=20, before=before) for before in (None, early, LATER)),
        *(index.search(blend, limit=20, before=before) for before in (early, LATER)),
        index.search(query, limit=5, keep=lambda candidate: int(candidate.id) % 9 == 0),
        index.rarity(["w1", "w39", "absent"], before=early),
        index.joint_frequency([frozenset({"w1"}), frozenset({"w3", "w20"}), frozenset({"absent"})], before=LATER),
        index.entries([1, 2, 77, 100_000, "1"]),
        len(index),
    ]


@pytest.fixture
def store(tmp_path: Path) -> PartStore:
    build_index(tmp_path / "index", many_threads(300, vectors=True), sizes=SMALL)
    return PartStore(tmp_path / "index")


@pytest.mark.parametrize("count", [6, 64, 65, 300])
def test_an_index_in_parts_answers_as_one_in_a_single_file(tmp_path: Path, count: int) -> None:
    whole, parted = build_both(tmp_path, many_threads(count))
    assert len(parted.parts()) >= 4
    assert not whole.parts()
    assert answers(parted) == answers(whole)


CHANGES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(1, 40), st.lists(st.sampled_from(WORDS), max_size=6)), max_size=9),
        st.lists(st.integers(1, 40), max_size=3),
    ),
    max_size=7,
)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=CHANGES, first=st.integers(0, 40))
def test_any_history_of_updates_and_merges_leaves_both_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[list[tuple[int, list[str]]], list[int]]],
    first: int,
) -> None:
    whole, parted = build_both(tmp_path_factory.mktemp("both"), many_threads(first))
    for changes, remove in history:
        documents = [thread(key, words, key / 10) for key, words in changes]
        for index in (whole, parted):
            index.update(documents, remove)
    fresh = open_index(parted._folder, sizes=SMALL)
    assert answers(parted) == answers(fresh) == answers(whole)
    assert {path.name for path in (parted._folder / "parts").glob("*")} == parted.parts()


def test_vectors_in_parts_stay_close_to_the_originals(tmp_path: Path) -> None:
    rng = Random(3)
    documents = [thread(n, ["w1"], vector=bytes(rng.choices(range(256), k=96))) for n in range(1, 700)]
    documents += [thread(n, ["w1"]) for n in range(700, 710)]
    indexes = build_both(tmp_path, documents)
    query = Query({"w1": 1.0}, vector=bytes(range(96)), blend={"text": 0.0, "semantic": 1.0})
    exact, near = (
        {hit.entry.id: hit.cosine for hit in index.search(query, limit=900, before=LATER)} for index in indexes
    )
    assert exact.keys() == near.keys()
    assert max(abs(exact[key] - near[key]) for key in exact) < 0.15
    assert [near[key] for key in range(700, 710)] == [0.0] * 10
    assert near != exact


def test_an_update_hardly_changes_the_cosines_of_vectors_in_parts(tmp_path: Path) -> None:
    build_index(tmp_path / "index", many_threads(40, vectors=True), sizes=SMALL)
    index = open_index(tmp_path / "index", sizes=SMALL)
    query = Query({}, vector=bytes(range(10)), blend={"text": 0.0, "semantic": 1.0})

    def near() -> dict[ThreadId, float]:
        return {hit.entry.id: hit.cosine for hit in index.search(query, limit=99, before=LATER)}

    before = near()
    index.update([], remove=[40])
    after = near()
    assert after.keys() == before.keys() - {40}
    assert max(abs(after[key] - before[key]) for key in after) < 0.1


def test_a_query_takes_two_fetches_and_later_reads_take_none(tmp_path: Path, store: PartStore) -> None:
    index = open_index(tmp_path / "index", store.fetch, sizes=SMALL)
    assert store.fetches == []
    query = Query({"w3": 1.0, "w30": 1.0}, vector=bytes(range(10)), blend={"text": 1.0, "semantic": 1.0})
    hits = index.search(query, limit=3, before=LATER)
    assert len(store.fetches) == 2
    index.rarity([*query.terms, "\0"], before=LATER)
    assert index.joint_frequency([frozenset(query.terms)], before=LATER)
    index.entries([hit.entry.duplicate_of for hit in hits if hit.entry.duplicate_of is not None])
    assert len(store.fetches) == 2
    index.update([thread(1, ["new"])])
    assert index.search(query, limit=3, before=LATER)
    assert len(store.fetches) == 2


def test_the_originals_of_duplicates_are_fetched_along_with_them(tmp_path: Path) -> None:
    documents = [thread(number, ["old"], number) for number in range(1, 400)]
    documents += [thread(400, ["new"], 400, of=7), thread(401, ["new"], 401, of=400)]
    build_index(tmp_path / "index", documents, sizes=SMALL)
    store = PartStore(tmp_path / "index")
    index = open_index(tmp_path / "index", store.fetch)
    hits = index.search(Query({"new": 1.0}))
    fetch_count = len(store.fetches)
    assert [hit.entry.duplicate_of for hit in hits] == [7, 400]
    assert set(index.entries([7, 400])) == {7, 400}
    assert len(store.fetches) == fetch_count


def test_only_the_needed_parts_are_fetched(tmp_path: Path, store: PartStore) -> None:
    index = open_index(tmp_path / "index", store.fetch)
    assert set(index.entries([5])) == {5}
    assert [len(names) for names in store.fetches] == [5, 1]  # all numbers, and one block of entries
    index.search(Query({"w3": 1.0}), limit=1)
    fetched = {name for names in store.fetches for name in names}
    assert len(fetched) < len(index.parts()) - 2  # no vectors, no notes
    assert len(fetched) == sum(map(len, store.fetches))


@pytest.mark.slow
def test_a_small_update_leaves_the_parts_unchanged(tmp_path: Path, store: PartStore) -> None:
    index = open_index(tmp_path / "index", store.fetch, sizes=Sizes(200))
    before = index.parts()
    for number in range(30):
        index.update([thread(number + 280, ["again"], 99)])
    assert index.parts() == before
    assert len(index) == 309


@pytest.mark.slow
def test_a_growing_index_keeps_little_in_whole_files_and_rewrites_little(tmp_path: Path) -> None:
    build_index(tmp_path, many_threads(200), sizes=SMALL)
    index, written = open_index(tmp_path, sizes=replace(SMALL, documents=40)), 0
    for start in range(201, 1001, 5):
        before = index.parts()
        index.update(thread(number, ["new", f"w{number % 40}"], number) for number in range(start, start + 5))
        written += sum((tmp_path / "parts" / name).stat().st_size for name in index.parts() - before)
        whole_segments = [record for record in records(tmp_path) if not record.get("parts")]
        assert sum(int(str(record["documents"])) for record in whole_segments) <= 10
        assert len(records(tmp_path)) <= 8 + 1 + 5
    fresh = index_of(
        tmp_path / "fresh", [*many_threads(200), *(thread(n, ["new", f"w{n % 40}"], n) for n in range(201, 1001))]
    )
    query = Query({"new": 1.0, "w3": 1.0})
    assert index.search(query, limit=50) == fresh.search(query, limit=50)
    assert written < 10 * sum(path.stat().st_size for path in (tmp_path / "parts").iterdir())


@pytest.mark.slow
def test_the_same_documents_give_the_same_parts_and_none_is_large(tmp_path: Path) -> None:
    for name in "ab":
        build_index(tmp_path / name, many_threads(500, vectors=True), sizes=SMALL)
    first_names, second_names = ({path.name for path in (tmp_path / name).rglob("*")} for name in "ab")
    assert first_names == second_names
    assert all(path.stat().st_size <= 1 << 20 for path in (tmp_path / "a" / "parts").iterdir())


def test_an_update_that_fails_leaves_the_index_in_parts_as_it_was(tmp_path: Path) -> None:
    def failing() -> Iterable[IndexDocument]:
        yield from many_threads(50)
        raise OSError("the disk is full")

    build_index(tmp_path / "index", many_threads(300), sizes=SMALL)
    index = open_index(tmp_path / "index", sizes=SMALL)
    before = answers(index)
    with pytest.raises(OSError, match="disk"):
        index.update(failing())
    assert answers(open_index(tmp_path / "index", sizes=SMALL)) == before


def test_an_unreachable_store_is_not_taken_for_damage(tmp_path: Path, store: PartStore) -> None:
    def fail(names: Sequence[str]) -> Mapping[str, bytes]:
        raise StoreError("no network")

    index = open_index(tmp_path / "index", fail)
    for read in (
        lambda: index.search(Query({"w3": 1.0})),
        lambda: index.entries([1]),
        lambda: index.update(many_threads(1)),
    ):
        with pytest.raises(StoreError, match="no network"):
            read()
    assert open_index(tmp_path / "index", store.fetch).entries([1])


def use(index: Index) -> list[IndexHit]:
    """Read parts in every way."""
    query = Query(
        dict.fromkeys(WORDS, 1.0),
        {TEXT: 1.0, NOTES: 1.0},
        bytes(range(10)),
        {"text": 1.0, "semantic": 1.0},
    )
    hits = index.search(query, limit=400, before=LATER)
    index.entries(range(301))
    index.update([thread(999, ["w1"])], remove=[1])
    return hits


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda _: None,
    "empty": lambda _: b"",
    "cut": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "first bit": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "last bit": lambda data: data[:-1] + bytes([data[-1] ^ 128]),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_part_that_does_not_match_its_name_is_refused(tmp_path: Path, store: PartStore, damage: str) -> None:
    honest = dict(store.files)
    for name, data in honest.items():
        damaged = DAMAGES[damage](data)
        store.files = (
            {**honest, name: damaged} if damaged is not None else {n: d for n, d in honest.items() if n != name}
        )
        with pytest.raises(IndexCorrupt, match=name):
            use(open_index(tmp_path / "index", store.fetch))


def test_an_oversized_part_is_refused_before_it_is_kept(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    parts = IndexParts(tmp_path, lambda names: dict.fromkeys(names, bytes(17 << 20)))
    with pytest.raises(IndexCorrupt):
        parts.prefetch(["0" * 32])


@pytest.mark.parametrize("sizes", [SMALL, Sizes()])
def test_a_search_for_pages_finds_no_other_thread(tmp_path: Path, sizes: Sizes) -> None:
    page = replace(thread("docs/a", ["w3", "w4"], 5), entry=replace(entry("docs/a", 5), kind=Kind.PAGE))
    build_index(tmp_path / "index", [*many_threads(300), page], sizes=sizes)
    index = open_index(tmp_path / "index")
    query = Query({"w3": 1.0, "w30": 1.0}, kinds=frozenset({Kind.PAGE}))
    for page_query in (query, replace(query, blend={"text": 1.0})):
        assert [hit.entry.id for hit in index.search(page_query, limit=5, before=LATER)] == ["docs/a"]
    assert index.search(replace(query, kinds=frozenset({Kind.PULL}))) == []
    assert index.search(replace(query, kinds=None)) == index.search(replace(query, kinds=frozenset(Kind)))
