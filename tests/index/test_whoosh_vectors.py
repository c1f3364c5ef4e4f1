"""The index on Whoosh: vectors beside the terms, and the facts about each hit beside its score."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from math import log
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.thread import ThreadId
from bot.index import build_index, open_index
from bot.index.protocol import NOTES, TEXT, Index, IndexCorrupt, IndexDocument, Query
from bot.index.whoosh.codec import VECTOR_COLUMN
from tests.examples import examples
from tests.index.test_whoosh import START, document, entry, index_of, names
from tests.index.test_whoosh_attacks import parts, records, write_toc


def signed(*numbers: int) -> bytes:
    return bytes(number & 0xFF for number in numbers)


def with_vector(key: ThreadId, *numbers: int, title: str = "thread", day: float = 0) -> IndexDocument:
    return replace(document(key, title, day=day), vector=signed(*numbers) if numbers else None)


def near_query(*numbers: int, words: str = "", **blend: float) -> Query:
    """A query in which nearness has weight 1 and ``words`` have none, unless ``blend`` gives others."""
    near = {"text": 0.0, "semantic": 1.0, **blend}
    return Query(dict.fromkeys(words.split(), 1.0), vector=signed(*numbers), blend=near)


def ids(hits: Iterable[IndexHit]) -> list[ThreadId]:
    return [hit.entry.id for hit in hits]


COMPASS = [
    with_vector(1, 5, 0),
    with_vector(2, 5, 5),
    with_vector(3, 0, 5),
    with_vector(4, -5, 0),
    with_vector(5, -5, 1, title="crash"),
]
"""Threads that point east, north-east, north and west, and one that points west and shares a word."""

LATER = START + timedelta(days=50)


def test_a_blend_finds_a_near_thread_that_shares_no_term(tmp_path: Path) -> None:
    hits = index_of(tmp_path, COMPASS).search(near_query(1, 0, words="crash"), limit=2, before=LATER)
    assert [(hit.entry.id, hit.score, hit.share, hit.terms) for hit in hits] == [(1, 0.0, 0.0, ()), (2, 0.0, 0.0, ())]
    assert [hit.cosine for hit in hits] == [1.0, pytest.approx(0.5**0.5)]


def test_a_thread_that_shares_terms_can_rank_above_one_that_is_only_near(tmp_path: Path) -> None:
    index = index_of(tmp_path, COMPASS)
    hits = index.search(near_query(1, 0, words="crash", text=1.8), limit=2, before=LATER)
    assert [(hit.entry.id, hit.terms) for hit in hits] == [(5, ("crash",)), (1, ())]
    assert ids(index.search(near_query(1, 0, words="crash", text=1.6), limit=2, before=LATER)) == [1, 2]


def test_the_score_counts_as_a_share_of_the_best(tmp_path: Path) -> None:
    crashes = [document(1, "crash"), document(2, "crash", "x " * 300)]
    index = index_of(tmp_path, [*(replace(one, vector=signed(1, -127)) for one in crashes), with_vector(3, 1, 0)])
    full, half, _ = (hit.score for hit in index.search(near_query(1, 0, words="crash", text=1.0), before=LATER))
    ratio = full / half
    assert ids(index.search(near_query(1, 0, words="crash", text=ratio * 1.01), limit=2, before=LATER)) == [1, 2]
    assert ids(index.search(near_query(1, 0, words="crash", text=ratio * 0.99), limit=2, before=LATER)) == [1, 3]


def test_without_a_blend_vectors_are_compared_but_select_nothing(tmp_path: Path) -> None:
    index = index_of(tmp_path, [with_vector(1, 5, 0, title="crash"), with_vector(2, 5, 1)])
    [hit] = index.search(Query({"crash": 1.0}, vector=signed(1, 0)))
    assert (hit.entry.id, hit.cosine) == (1, 1.0)


def test_a_blend_needs_a_moment(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="moment"):
        index_of(tmp_path, COMPASS).search(near_query(1, 0))


def test_a_hit_has_a_cosine_if_the_query_has_a_vector_and_it_is_0_if_the_thread_has_none(tmp_path: Path) -> None:
    unknown_language = replace(document(4, "thread"), vector=b"")
    index = index_of(tmp_path, [with_vector(1, 1, 0), with_vector(2, 0, 1), with_vector(3), unknown_language])
    query = Query({}, vector=signed(-2, 0), blend={"text": 0.0})
    assert {hit.entry.id: hit.cosine for hit in index.search(query, before=LATER)} == {1: -1.0, 2: 0.0, 3: 0.0, 4: 0.0}
    assert [hit.cosine for hit in index.search(replace(query, vector=b""), before=LATER)] == [None] * 4


def test_in_an_index_without_vectors_all_cosines_are_0(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "crash"), replace(document(2, "crash"), vector=b"")])
    assert [hit.cosine for hit in index.search(near_query(1, 0), before=LATER)] == [0.0, 0.0]
    assert (index.vectors(), index.unread()) == ({2: b""}, [1])


def test_among_equals_the_first_by_id_are_chosen(tmp_path: Path) -> None:
    keys: list[ThreadId] = ["B-1", 20, 3, "A-1", 100]
    index = index_of(tmp_path, [*(with_vector(key, 1, 1) for key in keys), *COMPASS[:2]])
    ids_by_limit = {limit: ids(index.search(near_query(1, 1), limit=limit, before=LATER)) for limit in (0, 3, 5)}
    assert ids_by_limit == {0: [], 3: [2, 3, 20], 5: [2, 3, 20, 100, "A-1"]}


@pytest.mark.parametrize("vector", [(0, 0), (1, 0, 0), (1,)])
def test_a_zero_vector_or_one_of_another_length_is_near_to_nothing(tmp_path: Path, vector: tuple[int, ...]) -> None:
    hits = index_of(tmp_path, COMPASS).search(near_query(*vector), before=LATER)
    assert {hit.entry.id: hit.cosine for hit in hits} == dict.fromkeys(range(1, 6), 0.0)


def plain_document(
    key: ThreadId, day: float = 0, state_changes: Iterable[float] = (), length: int = 0
) -> IndexDocument:
    return IndexDocument(
        entry(key, day, state_changes=tuple(START + timedelta(days=at) for at in state_changes), length=length),
        ["crash"],
    )


def best_id(index: Index, day: float, **blend: float) -> ThreadId:
    """The thread that ranks highest by this blend alone."""
    [hit] = index.search(Query({}, blend={"text": 0.0, **blend}), limit=1, before=START + timedelta(days=day))
    return hit.entry.id


def test_open_means_open_at_the_moment(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        [
            plain_document(1, state_changes=(3,)),
            plain_document(2, state_changes=(2, 5)),
            plain_document(3, state_changes=(1, 4, 8)),
        ],
    )
    assert {day: best_id(index, day, open=1.0) for day in (1, 2.9, 3, 4, 5, 8)} == {
        1: 1,
        2.9: 1,
        3: 1,
        4: 3,
        5: 2,
        8: 2,
    }
    assert {day: best_id(index, day, open=-1.0) for day in (1, 2, 3, 4, 5, 8)} == {1: 3, 2: 2, 3: 1, 4: 1, 5: 1, 8: 1}


def test_the_days_since_the_last_closing_count_and_open_threads_have_none(tmp_path: Path) -> None:
    index = index_of(
        tmp_path, [plain_document(1, state_changes=(2,)), plain_document(2, state_changes=(1, 4, 6)), plain_document(3)]
    )
    assert best_id(index, 3, closed=1.0) == 2
    assert best_id(index, 5, closed=1.0) == best_id(index, 9, closed=1.0) == 1
    assert best_id(index, 9, closed=-1.0) == 3


def test_a_thread_may_be_closed_any_number_of_times(tmp_path: Path) -> None:
    for count in range(1, 12):
        documents = [plain_document(1, state_changes=range(count)), plain_document(2, state_changes=(15,))]
        index = index_of(tmp_path / str(count), documents)
        for then in range(count):  # as if what came later had not happened yet
            assert best_id(index, then + 0.5, open=1.0) == (1 if then % 2 else 2)
        assert best_id(index, 20, closed=1.0) == (1 if count % 2 else 2)


def test_age_and_length_and_duplicates_count(tmp_path: Path) -> None:
    documents = [
        plain_document(1, 1, length=5),
        plain_document(2, 2, length=500),
        plain_document(3, 3),
        duplicate(4, 3, 4, 1.5),
    ]
    index = index_of(tmp_path, documents)
    assert (best_id(index, 9, age=1.0), best_id(index, 9, age=-1.0)) == (1, 3)
    assert (best_id(index, 9, length=1.0), best_id(index, 9, length=-1.0)) == (2, 3)
    assert (best_id(index, 9, duplicates=1.0), best_id(index, 3.5, duplicates=1.0)) == (3, 1)


def test_the_filter_still_fills_the_limit(tmp_path: Path) -> None:
    index = index_of(tmp_path, [with_vector(number, 100, number) for number in range(100)])
    hits = index.search(near_query(1, 0), limit=3, before=LATER, keep=lambda candidate: int(candidate.id) % 40 == 0)
    assert sorted(ids(hits), key=int) == [0, 40, 80]
    assert index.search(near_query(1, 0), before=LATER, keep=lambda _: False) == []


def test_the_filter_is_called_once_for_each_thread(tmp_path: Path) -> None:
    called_with: list[ThreadId] = []
    index = index_of(tmp_path, [with_vector(number, 100, number, title="crash") for number in range(100)])

    def keep(candidate: IndexEntry) -> bool:
        called_with.append(candidate.id)
        return candidate.id == 99

    assert ids(index.search(near_query(1, 0, words="crash"), limit=5, before=LATER, keep=keep)) == [99]
    assert sorted(called_with, key=int) == list(range(100))


@pytest.mark.parametrize("order", [1, -1])
def test_newer_and_removed_threads_are_not_among_the_closest(tmp_path: Path, order: int) -> None:
    index = index_of(tmp_path, [with_vector(number, 100, number, day=number) for number in range(20)][::order])
    index.update([], remove=[1])
    assert ids(index.search(near_query(1, 0), limit=3, before=START + timedelta(days=3))) == [0, 2]
    assert ids(index.search(near_query(1, 0), limit=3, before=LATER)) == [0, 2, 3]


def test_an_index_without_vectors_has_no_column_for_them(tmp_path: Path) -> None:
    build_index(tmp_path, [document(1, "crash"), replace(document(2, "crash"), vector=b"")])
    [segment] = tmp_path.glob("*.seg")
    assert not [name for name in parts(segment) if VECTOR_COLUMN in name]


@pytest.mark.parametrize("length", [1, 3, 1025])
def test_a_vector_that_does_not_fit_the_others_is_refused_before_any_write(tmp_path: Path, length: int) -> None:
    index = index_of(tmp_path / "index", COMPASS)
    before = {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()}
    with pytest.raises((ValueError, IndexCorrupt), match=r"a vector of 1025|another length"):
        index.update([document(9, "new"), replace(document(10, "new"), vector=bytes(length))])
    assert {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()} == before
    assert ids(index.search(near_query(1, 0), limit=1, before=LATER)) == [1]
    with pytest.raises(ValueError, match="a vector of"):
        build_index(tmp_path / "other", [*COMPASS, replace(document(10, "new"), vector=bytes(length))])
    assert not names(tmp_path / "other")


def test_a_vector_has_at_most_1024_numbers(tmp_path: Path) -> None:
    build_index(tmp_path / "most", [with_vector(1, *[1] * 1024)])
    with pytest.raises(ValueError, match="a vector of 1025"):
        build_index(tmp_path / "more", [with_vector(1, *[1] * 1025)])


def test_vectors_can_be_added_later_and_for_some_threads_only(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(number, "crash") for number in range(1, 5)])
    index.update([with_vector(5, 1, 0)])
    index.update([document(6, "crash"), with_vector(2, 2, 1)])
    assert ids(index.search(near_query(1, 0), limit=2, before=LATER)) == [2, 5]
    with pytest.raises(IndexCorrupt, match="another length"):
        index.update([with_vector(1, 1, 0, 0)])
    with pytest.raises(ValueError, match="a vector of 3 numbers among vectors of 2"):
        index.update([with_vector(3, 1, 0), with_vector(1, 1, 0, 0)])


def join_indexes(folder: Path, *parts: list[IndexDocument]) -> Path:
    """An index in which each part is a separate segment, whatever it holds."""
    segment_records: list[dict[str, object]] = []
    for number, documents in enumerate(parts):
        build_index(folder / str(number), documents)
        segment_records += records(folder / str(number))
    target = folder / "0"
    for segment in folder.glob("*/*.seg"):
        segment.replace(target / segment.name)
    write_toc(target, segment_records)
    return target


def test_two_segments_whose_vectors_differ_in_length_are_refused(tmp_path: Path) -> None:
    alike = join_indexes(tmp_path / "alike", COMPASS, [with_vector(9, 0, 1)], [document(8, "crash")])
    assert len(open_index(alike)) == 7
    with pytest.raises(IndexCorrupt, match="differ in length"):
        open_index(join_indexes(tmp_path / "unlike", COMPASS, [with_vector(9, 0, 1, 2)]))


def test_a_segment_may_lack_the_vectors_that_another_has(tmp_path: Path) -> None:
    index = open_index(join_indexes(tmp_path, COMPASS[:1], [document(9, "crash")], [with_vector(8, 0, 3)]))
    hits = index.search(near_query(1, 0), before=LATER)
    assert {hit.entry.id: hit.cosine for hit in hits} == {1: 1.0, 8: 0.0, 9: 0.0}
    assert index.vectors() == {1: signed(5, 0), 8: signed(0, 3)}


def duplicate(key: ThreadId, of: ThreadId, known_day: float | None, day: float = 0) -> IndexDocument:
    at = None if known_day is None else START + timedelta(days=known_day)
    return IndexDocument(entry(key, day, duplicate_of=of, duplicate_at=at), ["copy"])


def duplicate_counts(index: Index, day: float | None = None) -> dict[ThreadId, int]:
    before = None if day is None else START + timedelta(days=day)
    return {hit.entry.id: hit.duplicates for hit in index.search(Query({"crash": 1.0}), before=before)}


def test_only_duplicates_known_at_the_moment_are_counted(tmp_path: Path) -> None:
    duplicates = [duplicate(11, 1, 5, 1), duplicate(12, 1, 9, 8), duplicate(13, "1", 5), duplicate(14, 1, None)]
    index = index_of(tmp_path, [document(1, "crash"), document("1", "crash"), document(2, "crash"), *duplicates])
    assert duplicate_counts(index) == {1: 3, "1": 1, 2: 0}
    assert duplicate_counts(index, 4) == {1: 0, "1": 0, 2: 0}
    assert duplicate_counts(index, 5) == {1: 1, "1": 1, 2: 0}
    assert duplicate_counts(index, 10) == {1: 2, "1": 1, 2: 0}


def test_duplicates_that_are_gone_or_point_elsewhere_now_are_not_counted(tmp_path: Path) -> None:
    index = index_of(
        tmp_path, [document(1, "crash"), document(2, "crash"), *(duplicate(n, 1, 1) for n in (11, 12, 13))]
    )
    index.update([duplicate(12, 2, 1)], remove=[11])
    assert duplicate_counts(index) == {1: 1, 2: 1}


def test_rarity_counts_titles_and_opening_texts_at_the_moment(tmp_path: Path) -> None:
    documents = [document(number, "crash", "often", day=number, keywords="noted") for number in range(10)]
    index = index_of(tmp_path, [*documents, document(10, "other", "often", day=10)])
    index.update([], remove=[9])
    rarities = index.rarity(["crash", "often", "noted"])
    assert rarities == {"crash": log(1 + 1.5 / 9.5), "often": log(1 + 0.5 / 10.5), "noted": log(1 + 10.5 / 0.5)}
    assert index.rarity(["crash", "new"], before=START + timedelta(days=2)) == {
        "crash": log(1 + 0.5 / 2.5),
        "new": log(1 + 2.5 / 0.5),
    }
    assert index_of(tmp_path / "empty", []).rarity(["crash"]) == {"crash": log(2)}


def test_rarity_is_the_same_after_a_search_and_after_an_update(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "crash", keywords="login"), document(2, "crash login", day=5)])
    moment = START + timedelta(days=1)
    expected = [index.rarity(["crash", "login"], before=before) for before in (None, moment)]
    for searched_before in (None, moment):
        index.search(Query({"crash": 1.0, "login": 2.0}, {NOTES: 1.0, TEXT: 0.5}), before=searched_before)
        assert [index.rarity(["crash", "login"], before=before) for before in (None, moment)] == expected
    index.update([document(3, "login")])
    assert index.rarity(["login"]) == {"login": log(1 + 1.5 / 2.5)}


def test_joint_frequency_counts_the_threads_with_all_terms_at_the_moment(tmp_path: Path) -> None:
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
@given(
    first_texts=st.lists(TERMS, max_size=12),
    later_texts=st.lists(TERMS, max_size=4),
    groups=st.lists(TERMS, max_size=6),
)
def test_joint_frequency_is_the_number_of_threads_that_hold_every_term(
    tmp_path_factory: pytest.TempPathFactory, first_texts: list[frozenset[str]], later_texts: list[frozenset[str]],
    groups: list[frozenset[str]],
) -> None:  # fmt: skip
    index = index_of(
        tmp_path_factory.mktemp("index"), [document(n, "", " ".join(words)) for n, words in enumerate(first_texts)]
    )
    index.update(document(100 + n, "", " ".join(words)) for n, words in enumerate(later_texts))
    assert index.joint_frequency(groups) == {
        group: sum(group <= words for words in (*first_texts, *later_texts)) for group in groups
    }


WORDS = st.lists(st.sampled_from([f"w{number}" for number in range(12)]), max_size=5)
VECTOR = st.one_of(st.none(), st.tuples(st.integers(-3, 3), st.integers(-128, 127)))
CHANGE = st.tuples(st.integers(1, 12), WORDS, WORDS, VECTOR, st.one_of(st.none(), st.integers(1, 12)))
HISTORY = st.lists(st.tuples(st.lists(CHANGE, max_size=6), st.lists(st.integers(1, 12), max_size=2)), max_size=8)
Change = tuple[int, list[str], list[str], tuple[int, int] | None, int | None]


def changed_document(change: Change) -> IndexDocument:
    key, title, body, vector, of = change
    at = None if of is None else START + timedelta(days=of)
    packed = b"" if vector is None else signed(*vector)
    return IndexDocument(entry(key, key, duplicate_of=of, duplicate_at=at), title, body, vector=packed)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORY, words=WORDS)
def test_any_history_of_updates_equals_one_build_of_its_result(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[list[Change], list[int]]], words: list[str]
) -> None:
    index = index_of(tmp_path_factory.mktemp("history"), [])
    state: dict[int, IndexDocument] = {}
    for changes, remove in history:
        documents = [changed_document(change) for change in changes]
        index.update(documents, remove)
        state = {key: old for key, old in state.items() if key not in remove}
        state |= {change[0]: latest for change, latest in zip(changes, documents, strict=True)}
    fresh = index_of(tmp_path_factory.mktemp("fresh"), state.values())
    plain = Query(dict.fromkeys(words, 1.0), vector=signed(1, 2))
    blend = replace(plain, blend={"text": 0.5, "semantic": 1.0, "duplicates": 0.3})
    moment = START + timedelta(days=6)
    for query, before in ((plain, None), (plain, moment), (blend, moment)):
        assert index.search(query, limit=3, before=before) == fresh.search(query, limit=3, before=before)
    assert open_index(index._folder).search(plain) == fresh.search(plain)
    assert index.entries(range(1, 13)) == {key: latest.entry for key, latest in state.items()}


def test_a_thread_without_a_vector_counts_as_near_as_threads_with_its_score_are_on_average(tmp_path: Path) -> None:
    near, far, unread = with_vector(1, 9, 4), with_vector(2, -1, 9), with_vector(3)
    index = index_of(tmp_path, [near, far, unread])
    assert ids_by_rank(index.search(near_query(1, 0), limit=3, before=LATER), index) == [1, 3, 2]


def ids_by_rank(hits: Iterable[IndexHit], index: Index) -> list[ThreadId]:
    """The threads in the order of the blend that `near_query` gives, which a search with a lower limit tells."""
    found = [
        set(ids(index.search(near_query(1, 0), limit=limit, before=LATER))) for limit in range(len(list(hits)) + 1)
    ]
    return [key for less, more in pairwise(found) for key in more - less]


def test_an_index_tells_what_a_text_model_has_read_and_gives_its_vectors(tmp_path: Path) -> None:
    unknown_language = replace(with_vector(2, day=1), vector=b"")
    index = index_of(tmp_path, [with_vector(1, 5, -3), unknown_language, with_vector(3, day=2), with_vector(4, day=3)])
    assert index.vectors() == {1: signed(5, -3), 2: b""}
    assert index.unread() == [4, 3]
    index.update([with_vector(3, 1, 1, day=2), with_vector(1)])
    assert (index.vectors(), index.unread()) == ({2: b"", 3: signed(1, 1)}, [4, 1])
