"""The index on Whoosh: which threads it finds, in which order and as of which moment, and what is on disk."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log
from pathlib import Path
from random import Random

import pytest
from whoosh.index import TOC

from bot.domain.digest import IndexEntry
from bot.domain.thread import Kind, ThreadId
from bot.index import bm25f, build_index, open_index
from bot.index.protocol import NOTES, TEXT, Index, IndexDocument, Query
from bot.index.scoring import MIN_RELIABLE_DOCUMENTS
from bot.index.whoosh.codec import INDEX_NAME, Storage
from bot.index.whoosh.writer import SCHEMA, IndexWriter, write_index
from tests.index.word_query import word_query

START = datetime(2020, 1, 1, tzinfo=UTC)
ONE = {TEXT: 1.0}


def entry(key: ThreadId, day: float = 0, **fields: object) -> IndexEntry:
    at = START + timedelta(days=day)
    return IndexEntry(key, Kind.ISSUE, f"Thread {key}", "octocat", "open", at, at, **fields)  # type: ignore[arg-type]


def document(key: ThreadId, title: str, body: str = "", day: float = 0, **notes: str) -> IndexDocument:
    return IndexDocument(
        entry(key, day), title.split(), body.split(), {name: text.split() for name, text in notes.items()}
    )


def index_of(folder: Path, documents: Iterable[IndexDocument]) -> Index:
    build_index(folder, documents)
    return open_index(folder)


def search_ids(index: Index, words: str, **options: object) -> list[ThreadId]:
    hits = index.search(Query(dict.fromkeys(words.split(), 1.0)), **options)  # type: ignore[arg-type]
    return [hit.entry.id for hit in hits]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_thread_is_found_by_any_of_its_terms(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "crash login"), document(2, "slow", "crash"), document(3, "other")])
    assert search_ids(index, "crash login") == [1, 2]
    assert search_ids(index, "absent") == []
    assert len(index) == 3


def test_the_score_is_bm25f_with_fixed_averages(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "crash", "crash crash boom"), document(2, "other"), document(3, "third")])
    [hit] = index.search(Query({"crash": 2.0}))
    title = 8 * 1 / (0.5 + 0.5 * 1 / bm25f.TITLE.average)
    body = 2 / (0.1 + 0.9 * 3 / bm25f.BODY.average)
    idf = log(1 + (MIN_RELIABLE_DOCUMENTS - 1 + 0.5) / (1 + 0.5))
    exact = 2.0 * idf * (title + body) * 6 / (5 + title + body)
    assert hit.score == pytest.approx(exact, rel=0.07)  # levels differ by 14 %
    assert hit.share == pytest.approx(hit.score / (2.0 * idf * 6))


def test_a_term_that_no_thread_holds_lowers_the_share_and_not_the_score(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "crash"), document(2, "other")])
    [alone], [beside] = index.search(Query({"crash": 1.0})), index.search(Query({"crash": 1.0, "absent": 1.0}))
    assert alone.score == beside.score
    assert 0 < beside.share < alone.share / 2


def test_equal_scores_are_ordered_by_id_numbers_first(tmp_path: Path) -> None:
    keys: list[ThreadId] = ["B-1", 20, 3, "A-1", 100]
    index = index_of(tmp_path, [document(key, "same words") for key in keys])
    assert search_ids(index, "same") == [3, 20, 100, "A-1", "B-1"]
    assert search_ids(index, "same", limit=2) == [3, 20]


def test_hits_list_the_shared_terms_strongest_first(tmp_path: Path) -> None:
    others = [document(number, "common", "frequent") for number in range(2, 30)]
    index = index_of(tmp_path, [document(1, "rare common", "frequent"), *others])
    assert index.search(Query({"frequent": 1.0, "common": 1.0, "rare": 1.0}))[0].terms == ("rare", "common", "frequent")


def test_at_most_eight_terms_are_named(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(20))
    [hit] = index_of(tmp_path, [document(1, words)]).search(Query(dict.fromkeys(words.split(), 1.0)))
    assert len(hit.terms) == 8


def test_notes_are_searched_only_when_asked_for(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "title", decisions="postgres"), document(2, "title", summary="postgres")])
    assert index.search(Query({"postgres": 1.0})) == []
    hits = index.search(Query({"postgres": 1.0}, {TEXT: 1.0, NOTES: 0.5}))
    assert [hit.entry.id for hit in hits] == [1, 2]
    assert hits[0].score > hits[1].score


def test_zero_weights_find_nothing(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "crash")])
    assert index.search(Query({"crash": 0.0})) == []
    assert index.search(Query({"crash": 1.0}, {TEXT: 0.0})) == []
    assert index.search(Query({})) == []


@pytest.mark.parametrize("order", ["chronological", "shuffled"])
def test_before_a_moment_later_threads_are_neither_found_nor_counted(tmp_path: Path, order: str) -> None:
    documents = [document(number, f"crash word{number % 3}", "x " * number, day=number) for number in range(1, 40)]
    if order == "shuffled":
        Random(7).shuffle(documents)
    moment = START + timedelta(days=20)
    earlier = [candidate for candidate in documents if candidate.entry.created_at < moment]
    query = Query({"crash": 1.0, "word1": 3.0, "x": 1.0})
    full_index, partial_index = index_of(tmp_path / "whole", documents), index_of(tmp_path / "part", earlier)
    assert full_index.search(query, before=moment) == partial_index.search(query)
    assert len(partial_index) == 19


def test_before_excludes_the_moment_itself(tmp_path: Path) -> None:
    index = index_of(
        tmp_path, [document(1, "crash", day=1), document(2, "crash", day=2), document(3, "crash", day=2.00001)]
    )
    assert search_ids(index, "crash", before=START + timedelta(days=2)) == [1]


def test_a_filter_leaves_hits_out_and_still_fills_the_limit(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(number, "crash", "x " * number) for number in range(1, 200)])
    assert search_ids(index, "crash", limit=3, keep=lambda candidate: int(candidate.id) % 50 == 0) == [50, 100, 150]
    assert search_ids(index, "crash", limit=5, keep=lambda candidate: candidate.id == 199) == [199]
    assert search_ids(index, "crash", keep=lambda _: False) == []


def test_an_error_of_the_filter_is_not_taken_for_damage(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "crash")])
    with pytest.raises(ZeroDivisionError):
        index.search(Query({"crash": 1.0}), keep=lambda candidate: bool(1 / 0))


def test_an_update_replaces_the_old_document(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "old"), document(2, "other")])
    index.update([document(1, "new"), document(3, "new other")])
    for opened in (index, open_index(tmp_path)):
        assert search_ids(opened, "old") == []
        assert search_ids(opened, "new") == [1, 3]
        assert len(opened) == 3


def test_removed_threads_are_gone_and_not_counted(tmp_path: Path) -> None:
    remaining = [document(number, "crash" if number % 2 else "other") for number in range(1, 20)]
    index = index_of(tmp_path / "index", [*remaining, *(document(number, "crash") for number in range(100, 120))])
    index.update([], remove=[*range(100, 120), 4711])
    fresh = index_of(tmp_path / "fresh", remaining)
    assert index.search(Query({"crash": 1.0})) == fresh.search(Query({"crash": 1.0}))
    assert len(index) == 19


def test_the_later_of_two_documents_with_one_id_wins(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(1, "first"), document(2, "other"), document(1, "second")])
    assert (len(index), search_ids(index, "first"), search_ids(index, "second")) == (2, [], [1])
    index.update([document(2, "third"), document(2, "fourth"), document(3, "x")], remove=[3])
    assert (len(index), search_ids(index, "other third"), search_ids(index, "fourth"), search_ids(index, "x")) == (
        3,
        [],
        [2],
        [3],
    )


def test_numbers_and_strings_are_different_ids(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(7, "crash"), document("7", "crash"), document("#7", "crash")])
    index.update([], remove=["7"])
    assert search_ids(index, "crash") == [7, "#7"]


def test_entries_survive_the_round_trip_through_the_index(tmp_path: Path) -> None:
    full = entry(
        "ABC-1",
        labels=("bug", "日本語"),
        length=1234,
        state_changes=(START + timedelta(days=3, milliseconds=250),),
        duplicate_of=5,
    )
    odd = IndexEntry(9, Kind.PAGE, "nul \0 lone \udc80 \u202e", "", "closed", START, START, duplicate_of="Z-1")
    index = index_of(tmp_path, [IndexDocument(full, ["crash"]), IndexDocument(odd, [])])
    assert index.entries([9, "ABC-1", 10]) == {9: odd, "ABC-1": full}
    assert index.search(Query({"crash": 1.0}))[0].entry == full


@pytest.mark.parametrize("term", ["\0", "a\0b", "\udc80", "a\\0b", "日本", "x" * 10_000])
def test_any_string_can_be_a_term(tmp_path: Path, term: str) -> None:
    index = index_of(tmp_path, [IndexDocument(entry(1), [term]), IndexDocument(entry(2), ["a", "b"])])
    assert [hit.entry.id for hit in index.search(Query({term: 1.0}))] == [1]


def test_an_empty_index_answers(tmp_path: Path) -> None:
    index = index_of(tmp_path, [])
    assert (len(index), search_ids(index, "crash"), index.entries([1])) == (0, [], {})
    index.update([document(1, "crash")])
    assert search_ids(index, "crash") == [1]
    index.update([], remove=[1])
    assert (len(open_index(tmp_path)), search_ids(index, "crash")) == (0, [])


def test_only_the_most_frequent_terms_of_a_very_long_body_are_kept(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(1000))
    index = index_of(tmp_path, [document(1, "title", "often often " + words), document(2, "other")])
    assert search_ids(index, "often") == [1]
    assert search_ids(index, "word10") == [1]
    assert search_ids(index, "word999") == []


def test_the_folder_holds_segments_and_a_table_of_contents_only(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(number, "crash") for number in range(50)])
    for number in range(30):
        index.update([document(number, f"again {number}")])
        suffixes = sorted(path.suffix for path in tmp_path.iterdir())
        assert suffixes == [".seg"] * (len(suffixes) - 1) + [".toc"]
        assert len(suffixes) <= 10


def test_segments_that_are_mostly_deleted_are_rewritten(tmp_path: Path) -> None:
    index = index_of(tmp_path, [document(number, f"word{number}", "long " * 50) for number in range(300)])
    [first_segment] = names(tmp_path) - {path.name for path in tmp_path.glob("*.toc")}
    for start in range(0, 300, 50):
        index.update([document(number, f"word{number} again") for number in range(start, start + 50)])
    assert first_segment not in names(tmp_path)
    assert len(index) == 300
    assert sorted(int(key) for key in search_ids(index, "again", limit=1000)) == list(range(300))
    assert search_ids(index, "long") == []


def test_the_same_documents_give_the_same_files(tmp_path: Path) -> None:
    def write_index(folder: Path) -> dict[str, bytes]:
        index = index_of(folder, [document(number, f"crash word{number}", day=number) for number in range(60)])
        for number in range(12):
            index.update([document(number, "again", day=number)], remove=[number + 20])
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert write_index(tmp_path / "one") == write_index(tmp_path / "two")


def test_a_file_name_never_stands_for_two_contents(tmp_path: Path) -> None:
    contents: dict[str, bytes] = {}
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        index = index_of(folder, [document(number, f"crash {attempt} {number}") for number in range(5)])
        for number in range(6):
            index.update([document(number, f"again {attempt}")])
            for path in folder.iterdir():
                assert contents.setdefault(path.name, path.read_bytes()) == path.read_bytes()


def test_an_update_that_fails_changes_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    def failing() -> Iterable[IndexDocument]:
        yield document(1, "new")
        raise OSError("the disk is full")

    index = index_of(tmp_path / "index", [document(1, "old")])
    before = {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()}
    with pytest.raises(OSError, match="disk"):
        index.update(failing())
    with pytest.raises(OSError, match="disk"):
        build_index(tmp_path / "other", failing())
    assert {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()} == before
    assert not names(tmp_path / "other")
    index.update([document(1, "new")])
    assert search_ids(index, "new") == [1]


def test_an_update_sees_what_another_run_wrote_to_the_folder(tmp_path: Path) -> None:
    first = index_of(tmp_path, [document(1, "old"), document(2, "other"), document(3, "third")])
    second = open_index(tmp_path)
    second.update([document(1, "new")])
    first.update([document(1, "newest")])
    assert (len(first), search_ids(first, "old new"), search_ids(first, "newest")) == (3, [], [1])


def test_an_index_of_several_full_segments_answers_like_one(tmp_path: Path) -> None:
    documents = [document(key % 9, f"w{key % 4} common", day=key) for key in range(20)]
    build_index(tmp_path / "one", documents)
    write_index(tmp_path / "several", documents, full=6)
    one, several = open_index(tmp_path / "one"), open_index(tmp_path / "several")
    assert (len(one.segments()), [segment.count for segment in several.segments().values()]) == (1, [6, 6, 6, 2])
    assert len(several) == len(one) == 9
    for words in ("common", "w1", "w2 w3 common"):
        assert several.search(word_query(words)) == one.search(word_query(words))


def test_full_segments_stay_as_they_are_while_small_ones_are_merged(tmp_path: Path) -> None:
    write_index(tmp_path, [document(key, "common") for key in range(12)], full=6)
    first = set(open_index(tmp_path).segments())
    for key in range(100, 120):
        toc = TOC.read(Storage(str(tmp_path)), INDEX_NAME, schema=SCHEMA)
        with IndexWriter(tmp_path, toc, full=6) as writer:
            writer.add(document(key, "common"))
    index = open_index(tmp_path)
    assert first < set(index.segments())
    assert len(index.segments()) < 10
    assert len(index.search(word_query("common"))) == 32


def test_a_search_for_pages_finds_no_other_thread(tmp_path: Path) -> None:
    page = document("docs/a", "crash login", day=5)
    threads = [document(number, "crash login" if number % 3 else "crash", day=1) for number in range(1, 60)]
    index = index_of(tmp_path, [*threads, replace(page, entry=replace(page.entry, kind=Kind.PAGE))])
    query, later = Query({"crash": 1.0, "login": 1.0}, kinds=frozenset({Kind.PAGE})), START + timedelta(days=9)
    for page_query in (query, replace(query, blend={"text": 1.0})):
        assert [hit.entry.id for hit in index.search(page_query, limit=5, before=later)] == ["docs/a"]
    assert index.search(replace(query, kinds=frozenset({Kind.PULL}))) == []
    assert index.search(replace(query, kinds=None)) == index.search(replace(query, kinds=frozenset(Kind)))
