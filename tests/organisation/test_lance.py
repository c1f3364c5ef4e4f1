"""The engine of an organisation's index on the real LanceDB in a folder."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import lancedb
import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.organisation import OrganisationThread
from bot.domain.thread import Outcome, ThreadId
from bot.domain.thread_json import storable
from bot.errors import UserError
from bot.organisation.lance import LARGE_FILE_ROWS, LanceCandidates, open_candidates
from bot.organisation.rows import row_of, thread_of
from bot.organisation.term_counts import TermCounts
from bot.recall.candidates import OrganisationUnavailable
from tests.examples import THOROUGH, share

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHORT = timedelta(milliseconds=1)


def thread(repository: int, id: ThreadId, terms: str, revision: int = 1, **changes: object) -> OrganisationThread:
    base = OrganisationThread(
        repository=repository,
        id=id,
        revision=revision,
        name=f"octo-org/r{repository}",
        kind=Kind.ISSUE,
        title=f"Title of {id}",
        author="ada",
        created_at=NOON,
        terms=tuple(terms.split(" ")),
        url=f"https://github.com/octo-org/r{repository}/issues/{id}",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def find_ids(
    index: LanceCandidates, terms: str, scope: Iterable[int] = (1, 2, 3), **more: object
) -> list[tuple[int, ThreadId]]:
    hits = index.search(terms.split(), set(scope), **more)  # type: ignore[arg-type]
    return [(hit.thread.repository, hit.thread.id) for hit in hits]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LanceCandidates]:
    with open_candidates(str(tmp_path / "index"), "17") as candidates:
        yield candidates


def test_a_thread_is_found_at_once_and_unchanged(index: LanceCandidates) -> None:
    outcome = Outcome(
        OutcomeKind.FIXED, 0, 7, "Fixed.", "bob", "MEMBER", NOON, "#12", None, "v1.2", "ABC-1", ("a",), 0.5
    )
    complete = thread(
        *(1, 42, "crash when saving crash"),
        closed_at=NOON + timedelta(days=1),
        state_reason="completed",
        errors=("E0277",),
        files=("src/a.py",),
        names=("save_all",),
        outcome=outcome,
    )
    index.upsert([complete, thread(2, "ABC-7", "another crash"), thread(3, 5, "nothing of this")])
    hits = index.search(["crash", "saving"], {1, 2})
    assert [hit.thread for hit in hits] == [complete, thread(2, "ABC-7", "another crash")]
    assert hits[0].score > hits[1].score > 0


def test_a_search_covers_only_its_scope_and_the_threads_before_its_time(index: LanceCandidates) -> None:
    index.upsert([thread(number, 1, "crash", created_at=NOON + timedelta(days=number)) for number in (1, 2, 3)])
    assert find_ids(index, "crash") == [(1, 1), (2, 1), (3, 1)]
    assert find_ids(index, "crash", [2]) == [(2, 1)]
    assert find_ids(index, "crash", []) == []
    assert find_ids(index, "crash", [4]) == []
    assert find_ids(index, "", [1]) == []
    assert find_ids(index, "crash", before=NOON + timedelta(days=2)) == [(1, 1)]
    assert len(find_ids(index, "crash", limit=2)) == 2


def test_the_later_revision_wins_and_a_tombstone_stays(index: LanceCandidates) -> None:
    index.upsert([thread(1, 1, "crash", 5)])
    index.upsert([thread(1, 1, "hang", 4)])
    assert (find_ids(index, "crash"), find_ids(index, "hang")) == ([(1, 1)], [])
    index.upsert([thread(1, 1, "freeze", 7), thread(1, 1, "hang", 6)])
    assert (find_ids(index, "crash"), find_ids(index, "hang"), find_ids(index, "freeze")) == ([], [], [(1, 1)])
    index.upsert([thread(1, 1, "freeze", 8, is_gone=True)])
    index.upsert([thread(1, 1, "freeze", 7)])
    assert find_ids(index, "freeze") == []
    index.upsert([thread(1, 1, "back", 9)])
    assert find_ids(index, "back") == [(1, 1)]


def test_writing_twice_changes_nothing(index: LanceCandidates) -> None:
    for _ in range(3):
        index.upsert([thread(1, number, "crash") for number in range(1, 20)])
    assert sorted(find_ids(index, "crash")) == [(1, number) for number in range(1, 20)]


def test_deleted_threads_are_gone_together_with_their_tombstones(index: LanceCandidates) -> None:
    index.delete(1)
    index.upsert([thread(repository, key, "crash", 5) for repository in (1, 2) for key in (1, 2, "A'B")])
    index.delete(1)
    assert {repository for repository, _ in find_ids(index, "crash")} == {2}
    index.upsert([thread(2, 1, "", 9, is_gone=True)])
    index.delete(2)
    index.upsert([thread(2, 1, "crash", 1)])
    assert find_ids(index, "crash") == [(2, 1)]


def test_a_number_and_a_string_of_the_same_digits_are_different_ids(index: LanceCandidates) -> None:
    index.upsert([thread(1, 7, "crash"), thread(1, "7", "crash"), thread(1, "#7", "crash")])
    assert {key for _, key in find_ids(index, "crash")} == {7, "7", "#7"}
    index.upsert([thread(1, "7", "", 9, is_gone=True)])
    assert {key for _, key in find_ids(index, "crash")} == {7, "#7"}


HOSTILE = ["' OR 1=1 --", '"quoted phrase"', "+must", "-not", "AND", "OR", "a*", "(", "\\"]
HOSTILE += ["\ud800", "\0", "a\u2028b", "é", "E", "%", "x" * 300]


@pytest.mark.slow
def test_terms_and_ids_are_never_read_as_a_query(index: LanceCandidates) -> None:
    index.upsert([thread(9, 1, "secret"), thread(1, 1, "plain AND é")])
    for term in HOSTILE:
        assert {repository for repository, _ in find_ids(index, term, [1])} <= {1}, term
        assert all(repository == 1 for repository, _ in find_ids(index, f"{term} plain secret", [1]))
        index.upsert([thread(1, f"id {term}"[:90], f"{term} plain", title=term)])
        assert list(index.rarity([term])) == [term]
    assert find_ids(index, "secret", [9]) == [(9, 1)]
    assert (1, 1) in find_ids(index, "é", [1])
    assert find_ids(index, "e", [1]) == []
    assert not [key for _, key in find_ids(index, "AND", [1]) if key not in (1, "id AND")]
    assert all(hit.thread.title != "\ud800" for hit in index.search(["plain"], {1}))


def test_scores_are_bm25_even_for_threads_added_after_indexing(index: LanceCandidates) -> None:
    """By Robertson's formula, as in Lucene: k1 1.2, b 0.75."""
    texts = {number: ["crash"] * (number % 4) + ["save"] * (number % 3) + ["w"] * number for number in range(1, 40)}
    index.rebuild([thread(1, number, " ".join(words)) for number, words in texts.items() if number < 30])
    index.compact()
    check_scores(index, {number: words for number, words in texts.items() if number < 30})
    index.upsert([thread(1, number, " ".join(words)) for number, words in texts.items() if number >= 30])
    assert sorted(key for _, key in find_ids(index, "crash save")) == [n for n in texts if n % 4 or n % 3]
    index.compact()
    check_scores(index, texts)


def check_scores(index: LanceCandidates, texts: dict[int, list[str]]) -> None:
    mean = sum(map(len, texts.values())) / len(texts)
    expected = dict.fromkeys(texts, 0.0)
    for term in ("crash", "save"):
        document_frequency = sum(term in words for words in texts.values())
        weight = math.log(1 + (len(texts) - document_frequency + 0.5) / (document_frequency + 0.5))
        for number, words in texts.items():
            count = words.count(term)
            expected[number] += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(words) / mean))
    scores = {hit.thread.id: hit.score for hit in index.search(["crash", "save"], {1})}
    assert scores == pytest.approx({number: score for number, score in expected.items() if score}, rel=0.05)


def test_rarity_is_measured_over_the_whole_organisation(index: LanceCandidates) -> None:
    assert index.rarity([]) == {}
    assert set(index.rarity(["a"])) == {"a"}
    index.rebuild([thread(number % 3, number, "common" + " rare" * (number < 3)) for number in range(1, 101)])
    rarity = index.rarity(["common", "rare", "unknown", "it's"])
    assert rarity["common"] == pytest.approx(math.log(1 + 0.5 / 100.5))
    assert rarity["rare"] == pytest.approx(math.log(1 + 98.5 / 2.5))
    assert rarity["unknown"] == rarity["it's"] > rarity["rare"]


def test_a_compaction_recounts_terms_after_growth(index: LanceCandidates) -> None:
    index.upsert([thread(1, number, "common") for number in range(1, 11)])
    index.compact()
    assert index.rarity(["common"])["common"] == pytest.approx(math.log(1 + 0.5 / 10.5))
    index.upsert([thread(1, number, "other") for number in range(11, 41)])
    index.compact()
    assert index.rarity(["common"])["common"] == pytest.approx(math.log(1 + 30.5 / 10.5))


ERASE: dict[str, Callable[[LanceCandidates], object]] = {
    "one is gone": lambda index: index.upsert([thread(2, 5, "", revision=2, is_gone=True)]),
    "all are erased": lambda index: index.delete(2),
    "nothing": lambda index: None,
}


FILE_KINDS = {"added": LARGE_FILE_ROWS, "rebuilt": LARGE_FILE_ROWS, "rebuilt, large": 1}


@pytest.mark.slow
@pytest.mark.parametrize(("erasure", "file_kind"), share(product(ERASE, FILE_KINDS)))
def test_forgotten_text_is_purged_from_the_files(tmp_path: Path, erasure: str, file_kind: str) -> None:
    """This includes the words in the packed file of the index: it is as large as if they had never been there."""
    words = [f"{random.Random(number).getrandbits(64):x}" for number in range(2_000)]
    secret = "zqxjkvbp"
    rest = [thread(1, number, " ".join(words[number : number + 9])) for number in range(1, 30)]
    forgotten = [
        thread(2, number, " ".join(words[30:]), title=secret * 25) for number in (5, 6)[: 1 + (erasure[0] == "a")]
    ]
    sizes = []
    for name, threads in (("with", [*rest, *forgotten]), ("without", rest)):
        folder = tmp_path / name
        with open_candidates(str(folder), "17", retention=SHORT, large_file_rows=FILE_KINDS[file_kind]) as index:
            (index.upsert if file_kind == "added" else index.rebuild)(threads)
            index.compact()
            assert erasure == "nothing" or (secret.encode() in folder_content(folder)) is (name == "with")
            ERASE[erasure](index)
            index.compact(purges=True)
            time.sleep(0.01)
            index.compact(purges=True)
            assert (secret.encode() in folder_content(folder)) is (erasure == "nothing" and name == "with")
            assert len(find_ids(index, words[5])) == 5
            sizes.append(sum(file.stat().st_size for file in folder.rglob("*tokens.lance")))
    assert (sizes[0] > sizes[1] + 10_000) is (erasure == "nothing")


@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="two million rows: every night")
def test_text_forgotten_later_is_purged_from_a_large_file_too(tmp_path: Path) -> None:
    """The first purge moves rows of each file; the next one has to move others."""
    secret, row_count, forgotten = "zqxjkvbp", LARGE_FILE_ROWS + 1_000_000, 700_001
    with open_candidates(str(tmp_path), "17", retention=SHORT) as index:
        index.rebuild([])
        database = lancedb.connect(str(tmp_path / "17"))
        (name,) = (name for name in database.list_tables().tables if name.startswith("threads-"))
        table, numbers = database.open_table(name), pa.array(range(row_count), pa.int64())
        rows = {
            "key": [f"1/%23{number}" for number in range(row_count)],
            "repository": [1] * row_count,
            "revision": [1] * row_count,
            "created": pa.compute.multiply(numbers, 1000),
            "terms": [""] * row_count,
            "document": [secret if number == forgotten else "" for number in range(row_count)],
        }
        table.add(pa.table(rows, schema=table.schema))
        index.compact(purges=True)
        index.upsert([thread(1, forgotten, "", 9, is_gone=True)])
        assert secret.encode() in folder_content(tmp_path)
        for _ in range(2):
            index.compact(purges=True)
        assert secret.encode() not in folder_content(tmp_path)


def folder_content(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_rare_terms_are_dropped_before_memory_is_full() -> None:
    counts = TermCounts(most=100)
    for number in range(5_000):
        counts.add(["common", f"once-{number}", *(["often"] if number % 5 == 0 else [])])
    assert counts.threads == 5_000
    assert counts.frequent["common"] == 5_000
    assert counts.frequent["often"] >= 900
    assert len(counts.frequent) <= 100


def test_a_rebuild_replaces_everything_at_once_for_all_readers(index: LanceCandidates, tmp_path: Path) -> None:
    index.upsert([thread(1, 1, "old crash")])
    with open_candidates(str(tmp_path / "index"), "17") as other:
        assert find_ids(other, "crash") == [(1, 1)]

        def new_threads() -> Iterator[OrganisationThread]:
            yield thread(2, 1, "new crash")
            assert find_ids(other, "crash") == [(1, 1)]
            yield thread(2, 2, "new crash")

        index.rebuild(new_threads())
        assert sorted(find_ids(other, "crash")) == sorted(find_ids(index, "crash")) == [(2, 1), (2, 2)]
        other.upsert([thread(2, 3, "crash")])
        assert (2, 3) in find_ids(index, "crash")


def test_a_failed_rebuild_leaves_the_old_index(index: LanceCandidates) -> None:
    index.upsert([thread(1, 1, "crash")])

    def failing_threads() -> Iterator[OrganisationThread]:
        yield thread(2, 1, "crash")
        raise KeyError("the branch is damaged")

    with pytest.raises(KeyError):
        index.rebuild(failing_threads())
    assert find_ids(index, "crash") == [(1, 1)]


def test_of_two_rebuilds_the_one_that_began_later_wins(index: LanceCandidates) -> None:
    def early_threads() -> Iterator[OrganisationThread]:
        yield thread(1, 1, "early crash")
        index.rebuild([thread(2, 2, "late crash")])

    index.rebuild(early_threads())
    assert find_ids(index, "crash") == [(2, 2)]


def test_a_rebuild_from_nothing_makes_an_empty_index(index: LanceCandidates) -> None:
    index.upsert([thread(1, 1, "crash")])
    index.rebuild([])
    assert find_ids(index, "crash") == []
    index.upsert([thread(1, 2, "crash")])
    index.compact()
    assert find_ids(index, "crash") == [(1, 2)]


def test_tenants_never_share_a_table(tmp_path: Path) -> None:
    location = str(tmp_path / "index")
    with open_candidates(location, "17") as one, open_candidates(location, "18") as two:
        one.upsert([thread(1, 1, "crash")])
        assert find_ids(two, "crash") == []
        two.delete(1)
        assert find_ids(one, "crash") == [(1, 1)]
    for name in ("", "../17", "a/b", "17\n"):
        with pytest.raises(ValueError, match="tenant"):
            open_candidates(location, name)


def test_an_impossible_location_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"give a folder, s3://…"):
        open_candidates("ftp://example.com/index", "17")
    (tmp_path / "file").write_text("")
    with pytest.raises(OrganisationUnavailable, match="the index of the organisation"):
        open_candidates(str(tmp_path / "file"), "17")


def test_only_the_owner_may_read_a_new_folder(tmp_path: Path) -> None:
    open_candidates(str(tmp_path / "index"), "17").close()
    assert (tmp_path / "index").stat().st_mode & 0o777 == 0o700


def test_another_layout_is_reported_and_a_rebuild_repairs_it(index: LanceCandidates, tmp_path: Path) -> None:
    index.upsert([thread(1, 1, "crash")])
    schema = pa.schema([pa.field("nothing", pa.int8())], metadata={"layout": "99", "generation": "x"})
    lancedb.connect(tmp_path / "index/17").create_table("catalogue", schema=schema, mode="overwrite")
    for use in (lambda: index.search(["crash"], {1}), lambda: index.upsert([thread(1, 2, "crash")]), index.compact):
        with pytest.raises(OrganisationUnavailable, match="another layout: 99; run: precedent org rebuild"):
            use()
    index.rebuild([thread(1, 1, "crash")])
    assert find_ids(index, "crash") == [(1, 1)]


DAMAGES = {
    "the catalogue's version": "catalogue.lance/_versions/*",
    "the threads' versions": "threads-*.lance/_versions/*",
    "their data": "threads-*.lance/data/*",
    "their indexes": "threads-*.lance/_indices/*/*",
    "the counts": "counts-*.lance/data/*",
}


@pytest.mark.parametrize(("what", "how"), share(product(DAMAGES, ["cut", "noise", "empty", "gone"]), 3))
def test_damage_is_harmless_or_reported_and_a_rebuild_repairs_it(what: str, how: str, tmp_path: Path) -> None:
    threads = [thread(1, number, f"crash w{number}") for number in range(1, 50)]
    with open_candidates(str(tmp_path / "index"), "17") as index:
        index.rebuild(threads)
    for path in (tmp_path / "index/17").glob(DAMAGES[what]):
        content = path.read_bytes()
        damaged = {"cut": content[: len(content) // 2], "noise": content[::-1], "empty": b"", "gone": b""}[how]
        path.unlink() if how == "gone" else path.write_bytes(damaged)
    with open_candidates(str(tmp_path / "index"), "17") as index:
        for use in (lambda: index.search(["crash"], {1}), lambda: index.rarity(["crash"]), index.compact):
            with suppress(OrganisationUnavailable):  # reported, and nothing else
                use()
        index.rebuild(threads)
        assert len(find_ids(index, "crash")) == 49
        index.upsert([thread(1, 50, "crash")])
        index.compact()
        assert len(find_ids(index, "crash")) == 50


@pytest.mark.slow
def test_searches_and_writes_of_several_threads_do_not_conflict(index: LanceCandidates) -> None:
    index.upsert([thread(1, 1, "crash")])
    failures: list[BaseException] = []

    def write(start: int) -> None:
        try:
            for number in range(start, start + 8):
                index.upsert([thread(1, number, "crash"), thread(1, 1, "crash", number)])
        except OrganisationUnavailable as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(start,)) for start in (2, 6, 10)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert find_ids(index, "crash")
    assert failures == []
    assert sorted(find_ids(index, "crash")) == [(1, number) for number in range(1, 18)]


WORDS = st.text(st.characters(codec=None), max_size=12)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.lists(WORDS, max_size=8), WORDS, st.one_of(st.integers(1, 2**53 - 1), st.text(min_size=1, max_size=30)), WORDS
)
def test_a_row_can_be_read_back_whatever_its_thread_contains(
    terms: list[str], title: str, id: ThreadId, quote: str
) -> None:
    written = replace(thread(1, id, ""), title=title, terms=tuple(terms), outcome=Outcome(quote=quote))
    row = row_of(written)
    row["terms"].encode()
    row["document"].encode("ascii")
    assert row["key"].isascii()
    assert not {"'", '"', "\\", " "} & set(row["key"])
    read = thread_of(row)
    assert read is not None
    assert (str(read.id), read.title, read.outcome.quote) == tuple(map(storable, (str(id), title, quote)))
    assert read.created_at == written.created_at
    assert set(read.terms) <= set(written.terms)


DAMAGED_ROWS = ["", "{", "[]", "null", "{}", '{"id":0}', '{"id":1,"kind":"x"}', "[" * 100_000]


@pytest.mark.parametrize("document", [*DAMAGED_ROWS, '{"id":1,"kind":"issue","outcome":[1]}'])
def test_a_damaged_row_is_skipped(document: str) -> None:
    row = row_of(thread(1, 1, "crash"))
    assert thread_of({**row, "document": document}) is None


def test_a_panic_of_the_engine_is_reported_and_a_rebuild_repairs_it(index: LanceCandidates, tmp_path: Path) -> None:
    """The length in a manifest points beyond its end: Lance 13 panics."""
    index.upsert([thread(1, 1, "crash")])
    (path,) = (tmp_path / "index/17/catalogue.lance/_versions").glob("*.manifest")
    content = bytearray(path.read_bytes())
    begin = int.from_bytes(content[-16:-8], "little")
    content[begin : begin + 4] = (13_656_601).to_bytes(4, "little")
    path.write_bytes(content)
    with open_candidates(str(tmp_path / "index"), "17") as other:
        with pytest.raises(OrganisationUnavailable, match="if this persists, run: precedent org rebuild") as caught:
            other.search(["crash"], {1})
        assert type(caught.value.__cause__).__name__ == "RustPanic"
        other.rebuild([thread(1, 2, "crash")])
        assert find_ids(other, "crash") == [(1, 2)]
