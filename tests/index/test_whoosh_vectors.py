"""The index on Whoosh: vectors beside the terms, and what is known of each hit beside its score."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from math import inf, log
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.digest import Hit, IndexEntry
from bot.domain.thread import ThreadId
from bot.index import build_index, open_index
from bot.index.protocol import NOTES, TEXT, VECTOR_FIELDS, Index, IndexCorrupt, IndexDocument, Query
from tests.examples import examples
from tests.index.test_whoosh import START, document, entry, index_of, names
from tests.index.test_whoosh_attacks import parts, records, toc_with


def signed(*numbers: int) -> bytes:
    return bytes(number & 0xFF for number in numbers)


def pointing(
    key: ThreadId, *numbers: int, title: str = "thread", day: float = 0, arm: str = "trained"
) -> IndexDocument:
    return replace(document(key, title, day=day), vectors={arm: signed(*numbers)} if numbers else {})


def towards(*numbers: int, words: str = "", arm: str = "trained", **blend: float) -> Query:
    """What is near counts once, what is in ``words`` not at all unless ``blend`` says so."""
    near = {"text": 0.0, arm: 1.0, **blend}
    return Query(dict.fromkeys(words.split(), 1.0), vectors={arm: signed(*numbers)}, blend=near)


def ids(hits: Iterable[Hit]) -> list[ThreadId]:
    return [hit.entry.id for hit in hits]


COMPASS = [pointing(1, 5, 0), pointing(2, 5, 5), pointing(3, 0, 5), pointing(4, -5, 0), pointing(5, title="crash")]
"""Threads that point east, north-east, north and west, and one that points nowhere."""

LATER = START + timedelta(days=50)


def test_a_blend_finds_what_is_near_though_it_shares_no_term(tmp_path: Path) -> None:
    hits = index_of(tmp_path, COMPASS).search(towards(1, 0, words="crash"), limit=2, before=LATER)
    assert [(hit.entry.id, hit.score, hit.share, hit.terms) for hit in hits] == [(1, 0.0, 0.0, ()), (2, 0.0, 0.0, ())]
    assert [hit.near["trained"] for hit in hits] == [1.0, pytest.approx(0.5**0.5)]


def test_what_shares_terms_stands_before_what_is_only_near(tmp_path: Path) -> None:
    index = index_of(tmp_path, COMPASS)
    hits = index.search(towards(1, 0, words="crash", text=0.9), limit=2, before=LATER)
    assert [(hit.entry.id, hit.terms, hit.near["trained"]) for hit in hits] == [(5, ("crash",), 0.0), (1, (), 1.0)]
    assert ids(index.search(towards(1, 0, words="crash", text=0.7), limit=2, before=LATER)) == [1, 2]


def test_the_score_counts_as_a_share_of_the_best(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "crash"), document(2, "crash", "x " * 300), pointing(3, 1, 0)])
    full, half, _ = (hit.score for hit in index.search(towards(1, 0, words="crash", text=1.0), before=LATER))
    least = full / half
    assert ids(index.search(towards(1, 0, words="crash", text=least * 1.01), limit=2, before=LATER)) == [1, 2]
    assert ids(index.search(towards(1, 0, words="crash", text=least * 0.99), limit=2, before=LATER)) == [1, 3]


def test_without_a_blend_vectors_choose_nothing_and_are_compared(tmp_path: Path) -> None:
    index = index_of(tmp_path, [pointing(1, 5, 0, title="crash"), pointing(2, 5, 1)])
    [hit] = index.search(Query({"crash": 1.0}, vectors={"trained": signed(1, 0)}))
    assert (hit.entry.id, hit.near) == (1, {"trained": 1.0})


def test_a_blend_needs_a_moment(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="moment"):
        index_of(tmp_path, COMPASS).search(towards(1, 0))


def test_each_hit_says_how_close_it_is_for_every_vector_of_the_query(tmp_path: Path) -> None:
    both = replace(pointing(1, 1, 0), vectors={"trained": signed(1, 0), "semantic": signed(0, 0, 3)})
    index = index_of(tmp_path, [both, pointing(2, 3, 0, 0, arm="semantic")])
    vectors = {"trained": signed(-2, 0), "semantic": signed(1, 0, 0), "semantic_title": signed(1)}
    asked = Query({}, vectors=vectors, blend={"text": 0.0})
    assert {hit.entry.id: hit.near for hit in index.search(asked, before=LATER)} == {
        1: {"trained": -1.0, "semantic": 0.0, "semantic_title": 0.0},
        2: {"trained": 0.0, "semantic": 1.0, "semantic_title": 0.0},
    }


def test_of_equal_ones_the_first_by_id_are_chosen(tmp_path: Path) -> None:
    keys: list[ThreadId] = ["B-1", 20, 3, "A-1", 100]
    index = index_of(tmp_path, [*(pointing(key, 1, 1) for key in keys), *COMPASS[:2]])
    found = {limit: ids(index.search(towards(1, 1), limit=limit, before=LATER)) for limit in (0, 3, 5)}
    assert found == {0: [], 3: [2, 3, 20], 5: [2, 3, 20, 100, "A-1"]}


@pytest.mark.parametrize("vector", [(0, 0), (1, 0, 0), (1,), ()])
def test_a_vector_of_nothing_or_of_another_length_is_near_to_nothing(tmp_path: Path, vector: tuple[int, ...]) -> None:
    hits = index_of(tmp_path, COMPASS).search(towards(*vector), before=LATER)
    assert {hit.entry.id: hit.near for hit in hits} == {key: {"trained": 0.0} for key in range(1, 6)}


def test_a_vector_of_an_unknown_kind_is_near_to_nothing(tmp_path: Path) -> None:
    hits = index_of(tmp_path, COMPASS).search(towards(1, 0, arm="nonsense"), before=LATER)
    assert [hit.near for hit in hits] == [{"nonsense": 0.0}] * 5


def described(key: ThreadId, day: float = 0, flips: Iterable[float] = (), length: int = 0) -> IndexDocument:
    return IndexDocument(
        entry(key, day, flips=tuple(START + timedelta(days=at) for at in flips), length=length), ["crash"]
    )


def best(index: Index, day: float, **blend: float) -> ThreadId:
    """The thread that stands highest by this blend alone."""
    [hit] = index.search(Query({}, blend={"text": 0.0, **blend}), limit=1, before=START + timedelta(days=day))
    return hit.entry.id


def test_open_is_what_was_open_at_the_moment(tmp_path: Path) -> None:
    index = index_of(tmp_path, [described(1, flips=(3,)), described(2, flips=(2, 5)), described(3, flips=(1, 4, 8))])
    assert {day: best(index, day, open=1.0) for day in (1, 2.9, 3, 4, 5, 8)} == {1: 1, 2.9: 1, 3: 1, 4: 3, 5: 2, 8: 2}
    assert {day: best(index, day, open=-1.0) for day in (1, 2, 3, 4, 5, 8)} == {1: 3, 2: 2, 3: 1, 4: 1, 5: 1, 8: 1}


def test_what_was_closed_last_counts_by_its_days_and_open_threads_not(tmp_path: Path) -> None:
    index = index_of(tmp_path, [described(1, flips=(2,)), described(2, flips=(1, 4, 6)), described(3)])
    assert best(index, 3, closed=1.0) == 2
    assert best(index, 5, closed=1.0) == best(index, 9, closed=1.0) == 1
    assert best(index, 9, closed=-1.0) == 3


def test_age_and_length_and_duplicates_count(tmp_path: Path) -> None:
    documents = [described(1, 1, length=5), described(2, 2, length=500), described(3, 3), duplicate(4, 3, 4, 1.5)]
    index = index_of(tmp_path, documents)
    assert (best(index, 9, age=1.0), best(index, 9, age=-1.0)) == (1, 3)
    assert (best(index, 9, length=1.0), best(index, 9, length=-1.0)) == (2, 3)
    assert (best(index, 9, duplicates=1.0), best(index, 3.5, duplicates=1.0)) == (3, 1)


def test_the_filter_still_fills_the_limit(tmp_path: Path) -> None:
    index = index_of(tmp_path, [pointing(number, 100, number) for number in range(100)])
    found = index.search(towards(1, 0), limit=3, before=LATER, keep=lambda found: int(found.id) % 40 == 0)
    assert sorted(ids(found), key=int) == [0, 40, 80]
    assert index.search(towards(1, 0), before=LATER, keep=lambda _: False) == []


def test_the_filter_is_asked_once_about_each_thread(tmp_path: Path) -> None:
    asked: list[ThreadId] = []
    index = index_of(tmp_path, [pointing(number, 100, number, title="crash") for number in range(100)])

    def keep(found: IndexEntry) -> bool:
        asked.append(found.id)
        return found.id == 99

    assert ids(index.search(towards(1, 0, words="crash"), limit=5, before=LATER, keep=keep)) == [99]
    assert sorted(asked, key=int) == list(range(100))


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_newer_or_removed_is_not_among_the_closest(tmp_path: Path, order: int) -> None:
    index = index_of(tmp_path, [pointing(number, 100, number, day=number) for number in range(20)][::order])
    index.update([], remove=[1])
    assert ids(index.search(towards(1, 0), limit=3, before=START + timedelta(days=3))) == [0, 2]
    assert ids(index.search(towards(1, 0), limit=3, before=LATER)) == [0, 2, 3]


def test_an_index_without_vectors_has_no_place_for_them(tmp_path: Path) -> None:
    build_index(tmp_path, [document(1, "crash")])
    [segment] = tmp_path.glob("*.seg")
    assert [name for name in parts(segment) if any(arm in name for arm in VECTOR_FIELDS)] == []


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
    assert ids(index.search(towards(1, 0), limit=1, before=LATER)) == [1]
    with pytest.raises(ValueError, match="a vector of"):
        build_index(tmp_path / "other", [*COMPASS, replace(document(10, "new"), vectors=wrong)])
    assert not names(tmp_path / "other")


def test_vectors_may_come_later_and_for_some_threads_only(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(number, "crash") for number in range(1, 5)])
    index.update([pointing(5, 1, 0)])
    index.update([document(6, "crash"), pointing(2, 2, 1)])
    assert ids(index.search(towards(1, 0), limit=2, before=LATER)) == [2, 5]
    with pytest.raises(ValueError, match="where others have 2"):
        index.update([pointing(1, 1, 0, 0)])


def joined(folder: Path, *parts: list[IndexDocument]) -> Path:
    """An index of which each part is a segment of its own, whatever is in it."""
    known: list[dict[str, object]] = []
    for number, documents in enumerate(parts):
        build_index(folder / str(number), documents)
        known += records(folder / str(number))
    target = folder / "0"
    for segment in folder.glob("*/*.seg"):
        segment.replace(target / segment.name)
    toc_with(target, known)
    return target


def test_two_segments_whose_vectors_differ_in_length_are_refused(tmp_path: Path) -> None:
    alike = joined(tmp_path / "alike", COMPASS, [pointing(9, 0, 1)], [pointing(8, 1, 2, 3, arm="semantic")])
    assert len(open_index(alike)) == 7
    with pytest.raises(IndexCorrupt, match="differ in length"):
        open_index(joined(tmp_path / "unlike", COMPASS, [pointing(9, 0, 1, 2)]))


def test_two_segments_may_have_vectors_of_different_kinds(tmp_path: Path) -> None:
    folder = joined(tmp_path, COMPASS, [pointing(8, 1, 2, 3, arm="semantic")], [document(9, "crash")])
    asked = Query({"crash": 1.0}, vectors={"trained": signed(1, 0), "semantic": signed(1, 2, 3)}, blend={"text": 1.0})
    near = {hit.entry.id: hit.near for hit in open_index(folder).search(asked, before=LATER)}
    assert near[1] == {"trained": 1.0, "semantic": 0.0}
    assert near[8] == {"trained": 0.0, "semantic": 1.0}
    assert near[9] == {"trained": 0.0, "semantic": 0.0}


def duplicate(key: ThreadId, of: ThreadId, known: float | None, day: float = 0) -> IndexDocument:
    at = None if known is None else START + timedelta(days=known)
    return IndexDocument(entry(key, day, duplicate_of=of, duplicate_at=at), ["copy"])


def counts(index: Index, day: float | None = None) -> dict[ThreadId, int]:
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


def test_rarity_is_the_same_after_a_search_and_after_an_update(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "crash", keywords="login"), document(2, "crash login", day=5)])
    moment = START + timedelta(days=1)
    alone = [index.rarity(["crash", "login"], before=before) for before in (None, moment)]
    for asked in (None, moment):
        index.search(Query({"crash": 1.0, "login": 2.0}, {NOTES: 1.0, TEXT: 0.5}), before=asked)
        assert [index.rarity(["crash", "login"], before=before) for before in (None, moment)] == alone
    index.update([document(3, "login")])
    assert index.rarity(["login"]) == {"login": log(1 + 1.5 / 2.5)}


def test_how_many_hold_all_of_some_terms_is_counted_at_the_moment(tmp_path: Path) -> None:
    documents = [document(number, "crash", "often" if number % 2 else "rarely", day=number) for number in range(10)]
    index = index_of(tmp_path, [*documents, document(10, "crash", "often", day=10, keywords="noted")])
    index.update([document(11, "often crash", day=11)], remove=[9])
    both, alone, absent, noted = map(frozenset, (["crash", "often"], ["crash"], ["crash", "never"], ["noted"]))
    groups = [both, alone, absent, noted]
    assert index.joint_frequency(groups) == {both: 6, alone: 11, absent: 0, noted: 0}
    moment = START + timedelta(days=4)
    assert index.joint_frequency(groups, before=moment) == {both: 2, alone: 4, absent: 0, noted: 0}
    index.search(Query({"crash": 1.0}), before=moment)
    assert index.joint_frequency(groups, before=moment) == {both: 2, alone: 4, absent: 0, noted: 0}
    assert index.joint_frequency([]) == {}
    assert index_of(tmp_path / "empty", []).joint_frequency([both]) == {both: 0}


TERMS = st.frozensets(st.sampled_from("abcd"), min_size=1)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=st.lists(TERMS, max_size=12), late=st.lists(TERMS, max_size=4), asked=st.lists(TERMS, max_size=6))
def test_who_hold_all_are_those_that_hold_each(
    tmp_path_factory: pytest.TempPathFactory, held: list[frozenset[str]], late: list[frozenset[str]],
    asked: list[frozenset[str]],
) -> None:  # fmt: skip
    index = index_of(
        tmp_path_factory.mktemp("index"), [document(n, "", " ".join(words)) for n, words in enumerate(held)]
    )
    index.update(document(100 + n, "", " ".join(words)) for n, words in enumerate(late))
    assert index.joint_frequency(asked) == {group: sum(group <= words for words in (*held, *late)) for group in asked}


VECTOR = st.one_of(st.none(), st.tuples(st.integers(-3, 3), st.integers(-128, 127)))
CHANGE = st.tuples(st.integers(1, 12), VECTOR, st.one_of(st.none(), st.integers(1, 12)))
HISTORY = st.lists(st.tuples(st.lists(CHANGE, max_size=6), st.lists(st.integers(1, 12), max_size=2)), max_size=8)


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORY)
def test_any_history_of_updates_keeps_vectors_and_duplicates_as_one_build_of_its_result_has_them(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[list[tuple[int, tuple[int, int] | None, int | None]], list[int]]],
) -> None:
    index = index_of(tmp_path_factory.mktemp("history"), [])
    state: dict[int, IndexDocument] = {}
    for changes, remove in history:
        batch = {
            key: IndexDocument(
                entry(key, key, duplicate_of=of, duplicate_at=None if of is None else START + timedelta(days=of)),
                ["crash"],
                vectors={} if vector is None else {"trained": signed(*vector), "semantic_title": signed(*vector, key)},
            )
            for key, vector, of in changes
        }
        index.update(batch.values(), remove)
        state = {key: kept for key, kept in state.items() if key not in remove} | batch
    fresh = index_of(tmp_path_factory.mktemp("fresh"), state.values())
    vectors = {"trained": signed(1, 2), "semantic_title": signed(1, 2, 3)}
    asked = Query({"crash": 1.0}, vectors=vectors)
    blend = replace(asked, blend={"text": 0.5, "trained": 1.0, "semantic_title": -1.0, "duplicates": 0.3})
    moment = START + timedelta(days=6)
    for query, before in ((asked, None), (asked, moment), (blend, moment)):
        found = index.search(query, limit=3, before=before)
        assert found == fresh.search(query, limit=3, before=before)
    reopened = open_index(index._folder)
    assert reopened.search(asked) == fresh.search(asked)


MOMENT = START + timedelta(days=5)
DAY = st.sampled_from([number / 2 for number in range(20)])


@dataclass(frozen=True)
class Life:
    """All that ever happens to a thread; days count from START."""

    words: list[str]
    day: float
    vector: tuple[int, int] | None
    flips: list[float]
    duplicate: tuple[int, float] | None

    def document(self, key: int, until: float) -> IndexDocument:
        """The thread as it was known after so many days."""
        of, known = self.duplicate or (None, inf)
        is_known = self.duplicate is not None and known <= until
        flips = sorted({at for at in self.flips if self.day <= at <= until})
        described = entry(
            key,
            self.day,
            duplicate_of=of if is_known else None,
            duplicate_at=START + timedelta(days=known) if is_known else None,
            flips=tuple(START + timedelta(days=at) for at in flips),
            length=10 * key,
        )
        vectors = {} if self.vector is None else {"trained": signed(*self.vector)}
        return IndexDocument(described, self.words, self.words[:2], vectors=vectors)


LIFE = st.builds(
    Life,
    st.lists(st.sampled_from(["crash", "login", "slow", "odd"]), max_size=4),
    DAY,
    VECTOR,
    st.lists(DAY, max_size=6),
    st.one_of(st.none(), st.tuples(st.integers(0, 9), DAY)),
)
ORDER = {"open": 1.5, "age": -0.3, "closed": -0.2, "length": 0.1, "duplicates": 0.7}
ASKED = Query(
    {"crash": 1.0, "login": 3.0, "odd": 0.5},
    vectors={"trained": signed(1, 2)},
    blend={"text": 5.0, "trained": 4.0, **ORDER},
)


def seen(index: Index, query: Query, limit: int) -> list[object]:
    """All that a search tells of its moment."""
    return [
        (
            replace(hit, entry=replace(hit.entry, flips=(), duplicate_of=None, duplicate_at=None)),
            hit.entry.open_at(MOMENT),
            hit.entry.closed_since(MOMENT),
            hit.entry.duplicate_of_at(MOMENT),
        )
        for hit in index.search(query, limit=limit, before=MOMENT)
    ]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lives=st.lists(LIFE, max_size=10), data=st.data(), limit=st.integers(1, 10))
def test_nothing_that_happens_after_a_moment_changes_what_a_search_before_it_finds(
    tmp_path_factory: pytest.TempPathFactory, lives: list[Life], data: st.DataObject, limit: int
) -> None:
    now = [life.document(key, 5) for key, life in enumerate(lives) if life.day < 5]
    then = index_of(tmp_path_factory.mktemp("then"), now)
    later = index_of(tmp_path_factory.mktemp("later"), now)
    whole = [life.document(key, inf) for key, life in enumerate(lives)]
    order = data.draw(st.permutations(range(len(whole))))
    size = data.draw(st.integers(1, 10))
    gone = data.draw(st.sets(st.sampled_from([*(key for key, life in enumerate(lives) if life.day >= 5), 99])))
    for start in range(0, len(order), size):
        later.update([whole[place] for place in order[start : start + size]])
    later.update([], remove=gone)
    for query in (ASKED, replace(ASKED, blend=None), replace(ASKED, vectors={})):
        assert seen(later, query, limit) == seen(then, query, limit)
    assert later.rarity(["crash", "none"], before=MOMENT) == then.rarity(["crash", "none"], before=MOMENT)
