"""Segments in parts: they answer as those in one file, fetch only what is asked for, and believe no byte unchecked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.digest import Hit
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


class Shelf:
    """The parts of an index apart from it, as a store keeps them; ``asked`` is what each exchange brought."""

    def __init__(self, folder: Path) -> None:
        self.files = {path.name: path.read_bytes() for path in (folder / "parts").iterdir()}
        self.asked: list[list[str]] = []
        for path in (folder / "parts").iterdir():
            path.unlink()

    def fetch(self, names: Sequence[str]) -> Mapping[str, bytes]:
        self.asked.append(list(names))
        return {name: self.files[name] for name in names if name in self.files}


def thread(
    key: ThreadId, words: Iterable[str], day: float = 0, vector: bytes = b"", of: int | None = None
) -> IndexDocument:
    words = list(words)
    at = None if of is None else START + timedelta(days=day)
    described = entry(key, day, duplicate_of=of, duplicate_at=at, flips=(START + timedelta(days=day + 1),))
    vectors = {"trained": vector} if vector else {}
    return IndexDocument(described, words[:3], words[2:], {"summary": words[:2]}, vectors)


def many(count: int, seed: int = 1, *, vectors: bool = False) -> list[IndexDocument]:
    chance = Random(seed)
    return [
        thread(
            number,
            chance.choices(WORDS, range(1, 41), k=12),
            number / 10,
            bytes(chance.choices(range(256), k=10)) if vectors else b"",
            number // 2 if number % 7 == 3 else None,
        )
        for number in range(1, count + 1)
    ]


def whole_and_parted(folder: Path, documents: Sequence[IndexDocument]) -> tuple[Index, Index]:
    build_index(folder / "whole", documents)
    build_index(folder / "parted", documents, sizes=SMALL)
    return open_index(folder / "whole"), open_index(folder / "parted", sizes=SMALL)


def answers(index: Index) -> list[object]:
    """All that an index says of some questions."""
    asked = Query({"w3": 1.0, "w39": 2.0, "w20": 0.5, "absent": 1.0}, {TEXT: 1.0, NOTES: 0.3})
    blend = replace(asked, blend={"text": 1.0, "open": 0.5, "age": -0.1, "closed": 0.1, "duplicates": 0.3})
    early = START + timedelta(days=2)
    return [
        *(index.search(asked, limit=20, before=before) for before in (None, early, LATER)),
        *(index.search(blend, limit=20, before=before) for before in (early, LATER)),
        index.search(asked, limit=5, keep=lambda found: int(found.id) % 9 == 0),
        index.rarity(["w1", "w39", "absent"], before=early),
        index.joint_frequency([frozenset({"w1"}), frozenset({"w3", "w20"}), frozenset({"absent"})], before=LATER),
        index.entries([1, 2, 77, 100_000, "1"]),
        len(index),
    ]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    build_index(tmp_path / "index", many(300, vectors=True), sizes=SMALL)
    return Shelf(tmp_path / "index")


@pytest.mark.parametrize("count", [6, 64, 65, 300])
def test_an_index_in_parts_answers_as_one_in_a_single_file(tmp_path: Path, count: int) -> None:
    whole, parted = whole_and_parted(tmp_path, many(count))
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
    whole, parted = whole_and_parted(tmp_path_factory.mktemp("both"), many(first))
    for changes, remove in history:
        documents = [thread(key, words, key / 10) for key, words in changes]
        for index in (whole, parted):
            index.update(documents, remove)
    fresh = open_index(parted._folder, sizes=SMALL)
    assert answers(parted) == answers(fresh) == answers(whole)
    assert {path.name for path in (parted._folder / "parts").glob("*")} == parted.parts()


def test_vectors_in_parts_are_nearly_what_they_were(tmp_path: Path) -> None:
    chance = Random(3)
    documents = [thread(n, ["w1"], vector=bytes(chance.choices(range(256), k=96))) for n in range(1, 700)]
    documents += [thread(n, ["w1"]) for n in range(700, 710)]
    indexes = whole_and_parted(tmp_path, documents)
    asked = Query({"w1": 1.0}, vectors={"trained": bytes(range(96))}, blend={"text": 0.0, "trained": 1.0})
    exact, near = (
        {hit.entry.id: hit.near["trained"] for hit in one.search(asked, limit=900, before=LATER)} for one in indexes
    )
    assert exact.keys() == near.keys()
    assert max(abs(exact[key] - near[key]) for key in exact) < 0.15
    assert [near[key] for key in range(700, 710)] == [0.0] * 10
    assert near != exact


def test_what_an_update_takes_over_from_parts_is_as_near_as_before(tmp_path: Path) -> None:
    build_index(tmp_path / "index", many(40, vectors=True), sizes=SMALL)
    index = open_index(tmp_path / "index", sizes=SMALL)
    asked = Query({}, vectors={"trained": bytes(range(10))}, blend={"text": 0.0, "trained": 1.0})

    def near() -> dict[ThreadId, float]:
        return {hit.entry.id: hit.near["trained"] for hit in index.search(asked, limit=99, before=LATER)}

    before = near()
    index.update([], remove=[40])
    after = near()
    assert after.keys() == before.keys() - {40}
    assert max(abs(after[key] - before[key]) for key in after) < 0.1


def test_a_question_takes_two_exchanges_and_those_after_it_fewer(tmp_path: Path, shelf: Shelf) -> None:
    index = open_index(tmp_path / "index", shelf.fetch, sizes=SMALL)
    assert shelf.asked == []
    query = Query({"w3": 1.0, "w30": 1.0}, vectors={"trained": bytes(range(10))}, blend={"text": 1.0, "trained": 1.0})
    hits = index.search(query, limit=3, before=LATER)
    assert len(shelf.asked) == 2
    index.rarity([*query.terms, "\0"], before=LATER)
    assert index.joint_frequency([frozenset(query.terms)], before=LATER)
    index.entries([hit.entry.duplicate_of for hit in hits if hit.entry.duplicate_of is not None])
    assert len(shelf.asked) == 2
    index.update([thread(1, ["new"])])
    assert index.search(query, limit=3, before=LATER)
    assert len(shelf.asked) == 2


def test_the_originals_of_duplicates_come_along(tmp_path: Path) -> None:
    documents = [thread(number, ["old"], number) for number in range(1, 400)]
    documents += [thread(400, ["new"], 400, of=7), thread(401, ["new"], 401, of=400)]
    build_index(tmp_path / "index", documents, sizes=SMALL)
    shelf = Shelf(tmp_path / "index")
    index = open_index(tmp_path / "index", shelf.fetch)
    hits = index.search(Query({"new": 1.0}))
    asked = len(shelf.asked)
    assert [hit.entry.duplicate_of for hit in hits] == [7, 400]
    assert set(index.entries([7, 400])) == {7, 400}
    assert len(shelf.asked) == asked


def test_only_what_is_asked_for_is_fetched(tmp_path: Path, shelf: Shelf) -> None:
    index = open_index(tmp_path / "index", shelf.fetch)
    assert set(index.entries([5])) == {5}
    assert [len(names) for names in shelf.asked] == [5, 1]  # all numbers, and one block of entries
    index.search(Query({"w3": 1.0}), limit=1)
    fetched = {name for names in shelf.asked for name in names}
    assert len(fetched) < len(index.parts()) - 2  # no vectors, no notes
    assert len(fetched) == sum(map(len, shelf.asked))


@pytest.mark.slow
def test_an_update_of_a_few_keeps_the_parts_as_they_are(tmp_path: Path, shelf: Shelf) -> None:
    index = open_index(tmp_path / "index", shelf.fetch, sizes=Sizes(200))
    before = index.parts()
    for number in range(30):
        index.update([thread(number + 280, ["again"], 99)])
    assert index.parts() == before
    assert len(index) == 309


@pytest.mark.slow
def test_of_an_index_that_grows_little_is_in_whole_files_and_little_is_written_twice(tmp_path: Path) -> None:
    build_index(tmp_path, many(200), sizes=SMALL)
    index, written = open_index(tmp_path, sizes=replace(SMALL, documents=40)), 0
    for start in range(201, 1001, 5):
        before = index.parts()
        index.update(thread(number, ["new", f"w{number % 40}"], number) for number in range(start, start + 5))
        written += sum((tmp_path / "parts" / name).stat().st_size for name in index.parts() - before)
        whole = [record for record in records(tmp_path) if not record.get("parts")]
        assert sum(int(str(record["documents"])) for record in whole) <= 10
        assert len(records(tmp_path)) <= 8 + 1 + 5
    fresh = index_of(tmp_path / "fresh", [*many(200), *(thread(n, ["new", f"w{n % 40}"], n) for n in range(201, 1001))])
    asked = Query({"new": 1.0, "w3": 1.0})
    assert index.search(asked, limit=50) == fresh.search(asked, limit=50)
    assert written < 10 * sum(path.stat().st_size for path in (tmp_path / "parts").iterdir())


def test_the_same_documents_give_the_same_parts_and_none_is_large(tmp_path: Path) -> None:
    for name in "ab":
        build_index(tmp_path / name, many(500, vectors=True), sizes=SMALL)
    one, other = ({path.name for path in (tmp_path / name).rglob("*")} for name in "ab")
    assert one == other
    assert all(path.stat().st_size <= 1 << 20 for path in (tmp_path / "a" / "parts").iterdir())


def test_an_update_that_fails_leaves_the_index_in_parts_as_it_was(tmp_path: Path) -> None:
    def failing() -> Iterable[IndexDocument]:
        yield from many(50)
        raise OSError("the disk is full")

    build_index(tmp_path / "index", many(300), sizes=SMALL)
    index = open_index(tmp_path / "index", sizes=SMALL)
    before = answers(index)
    with pytest.raises(OSError, match="disk"):
        index.update(failing())
    assert answers(open_index(tmp_path / "index", sizes=SMALL)) == before


def test_that_the_store_is_not_reached_is_no_damage(tmp_path: Path, shelf: Shelf) -> None:
    def fail(names: Sequence[str]) -> Mapping[str, bytes]:
        raise StoreError("no network")

    index = open_index(tmp_path / "index", fail)
    for ask in (lambda: index.search(Query({"w3": 1.0})), lambda: index.entries([1]), lambda: index.update(many(1))):
        with pytest.raises(StoreError, match="no network"):
            ask()
    assert open_index(tmp_path / "index", shelf.fetch).entries([1])


def use(index: Index) -> list[Hit]:
    """Everything that reads parts."""
    query = Query(
        dict.fromkeys(WORDS, 1.0),
        {TEXT: 1.0, NOTES: 1.0},
        {"trained": bytes(range(10))},
        {"text": 1.0, "trained": 1.0},
    )
    found = index.search(query, limit=400, before=LATER)
    index.entries(range(301))
    index.update([thread(999, ["w1"])], remove=[1])
    return found


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
def test_every_part_that_is_not_what_its_name_says_is_refused(tmp_path: Path, shelf: Shelf, damage: str) -> None:
    honest = dict(shelf.files)
    for name, data in honest.items():
        spoilt = DAMAGES[damage](data)
        shelf.files = {**honest, name: spoilt} if spoilt is not None else {n: d for n, d in honest.items() if n != name}
        with pytest.raises(IndexCorrupt, match=name):
            use(open_index(tmp_path / "index", shelf.fetch))


def test_a_part_of_any_size_is_checked_before_it_is_kept(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    parts = IndexParts(tmp_path, lambda names: dict.fromkeys(names, bytes(17 << 20)))
    with pytest.raises(IndexCorrupt):
        parts.prefetch(["0" * 32])


@pytest.mark.parametrize("sizes", [SMALL, Sizes()])
def test_a_search_for_pages_looks_at_no_other_thread(tmp_path: Path, sizes: Sizes) -> None:
    page = replace(thread("docs/a", ["w3", "w4"], 5), entry=replace(entry("docs/a", 5), kind=Kind.PAGE))
    build_index(tmp_path / "index", [*many(300), page], sizes=sizes)
    index = open_index(tmp_path / "index")
    query = Query({"w3": 1.0, "w30": 1.0}, kinds=frozenset({Kind.PAGE}))
    for asked in (query, replace(query, blend={"text": 1.0})):
        assert [hit.entry.id for hit in index.search(asked, limit=5, before=LATER)] == ["docs/a"]
    assert index.search(replace(query, kinds=frozenset({Kind.PULL}))) == []
    assert index.search(replace(query, kinds=None)) == index.search(replace(query, kinds=frozenset(Kind)))
