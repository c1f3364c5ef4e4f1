"""Memory on every store: the newest revision wins, nothing is lost to another writer, nothing is written twice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.changes import AnswerRecord, Changes
from bot.domain.thread import Record, Thread, ThreadId, Tombstone
from bot.errors import StoreError, TipMoved
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.places import record_path
from bot.memory.records import encode_record
from bot.memory.shards import DIGESTS, read_lines, write_shard
from bot.memory.store import Edits, ReadOnlyStore, Snapshot, Store
from bot.reading.digest import digest
from tests.examples import examples
from tests.memory.samples import Place, at, found, issue, query, remember, store_in, word_of


def expected_files(records: Iterable[Record]) -> dict[str, bytes]:
    """Records and digests as a store holds them when these are the newest."""
    held = list(records)
    shards: dict[str, dict[ThreadId, str]] = {}
    for record in held:
        if isinstance(record, Thread):
            shards.setdefault(DIGESTS.path(record.id), {})[record.id] = DIGESTS.line(digest(record))
    return {record_path(record.id): encode_record(record) for record in held} | {
        path: write_shard(lines) for path, lines in shards.items()
    }


def check(place: Place, records: Iterable[Record]) -> None:
    """The store holds these records and no others, and so do digests, counts and index."""
    held = list(records)
    files = place.files()
    manifest = json.loads(files.pop("manifest.json"))
    assert {
        path: data for path, data in files.items() if not path.startswith(("index/", "messages/", "answers/"))
    } == expected_files(held)
    threads = [record for record in held if isinstance(record, Thread)]
    assert (manifest["threads"], manifest["tombstones"]) == (len(threads), len(held) - len(threads))
    memory = place.memory()
    assert memory.notes == []
    for record in held:
        alive = isinstance(record, Thread)
        assert found(memory, word_of(record.id)) == ([record.id] if alive else [])
        assert [entry.updated_at for entry in memory.entries([record.id]).values()] == [record.revised_at] * alive
    assert list(memory.state.every_record()) == held


def newest(records: Iterable[Record]) -> list[Record]:
    fold = {record.id: record for record in sorted(records, key=lambda record: record.revised_at)}
    return [fold[key] for key in sorted(fold, key=lambda key: (isinstance(key, str), key))]


# -- one writer ------------------------------------------------------------------------------------------------------


def test_what_is_staged_is_found_before_it_is_written(place: Place) -> None:
    memory = place.memory()
    memory.stage(Changes(records=(issue(1), issue(2))))
    assert found(memory, word_of(2)) == [2]
    assert memory.records([1, 3]) == {1: issue(1)}
    assert memory.state.manifest.threads == 2
    assert place.files() == {}
    assert memory.commit("first")
    check(place, [issue(1), issue(2)])


def test_a_repeated_run_writes_nothing(place: Place) -> None:
    changes = Changes((issue(1), Tombstone(2, at(1))), (AnswerRecord(1, "said", at(1), text_hash="x"),), cursor=at(5))
    memory = place.memory()
    memory.stage(changes)
    assert memory.commit("first")
    before = place.files()
    for again in (memory, place.memory()):
        again.stage(changes)
        again.stage(replace(changes, cursor=at(4)))
        assert not again.commit("again")
    assert place.files() == before


def test_a_later_time_without_other_content_changes_no_byte(place: Place) -> None:
    remember(place.memory(), issue(1, 1))
    before = place.files()
    assert not remember(place.memory(), replace(issue(1, 1), updated_at=at(9)))
    assert place.files() == before


def test_a_state_that_came_back_is_not_replaced_by_the_one_in_between() -> None:
    store = FolderStore(Path("/nonexistent/nothing/is/written"))
    memory = Memory(store).open()
    first, between, back = issue(1, 1), issue(1, 2), replace(issue(1, 1), updated_at=at(3))
    for record in (first, back, between):
        memory.stage(Changes(records=(record,)))
    assert memory.records([1]) == {1: first}


@pytest.mark.slow
def test_a_thread_that_is_revised_after_its_tombstone_comes_back(place: Place) -> None:
    remember(place.memory(), issue(1, 1), issue(2, 1))
    remember(place.memory(), Tombstone(1, at(2)))
    check(place, [Tombstone(1, at(2)), issue(2, 1)])
    assert not remember(place.memory(), issue(1, 1.5))
    remember(place.memory(), issue(1, 3))
    check(place, [issue(1, 3), issue(2, 1)])


def test_nothing_of_a_deleted_threads_text_stays(place: Place) -> None:
    remember(place.memory(), issue(1, body="the secret is xyzzyplugh"), issue(2))
    remember(place.memory(), Tombstone(1, at(2)))
    held = place.files()
    assert not [path for path, data in held.items() if b"xyzzy" in data and not path.startswith("index/")]
    assert found(place.memory(), "xyzzyplugh") == []


def test_the_cursor_never_goes_back(place: Place) -> None:
    for hours in (3, 5, 4):
        memory = place.memory()
        memory.stage(Changes(cursor=at(hours)))
        memory.commit("cursor")
    assert place.memory().state.manifest.cursor == at(5)


def test_numbers_and_names_live_side_by_side(place: Place) -> None:
    keys: list[ThreadId] = [1, 100, 12_345, "ABC-1", "ABC-10", "a/b c"]
    remember(place.memory(), *(issue(key) for key in keys[:5]), replace(issue("a/b c"), title="slashed key"))
    memory = place.memory()
    assert set(memory.records(keys)) == set(keys)
    assert [record.id for record in memory.state.every_record()] == keys
    assert found(memory, "slashed") == ["a/b c"]


def test_what_was_said_is_kept_and_an_older_word_does_not_replace_it(place: Place) -> None:
    memory = place.memory()
    memory.stage(
        Changes(
            answers=(AnswerRecord(1, "pending", at(1), text_hash="x"), AnswerRecord(2, "pending", at(1), text_hash="y"))
        )
    )
    assert memory.state.manifest.pending == (1, 2)
    memory.commit("promised")
    memory = place.memory()
    memory.stage(Changes(answers=(AnswerRecord(1, "said", at(2), comment_id=5),)))
    memory.commit("said")
    memory = place.memory()
    memory.stage(Changes(answers=(AnswerRecord(1, "pending", at(1), text_hash="x"),)))
    assert not memory.commit("late")
    assert memory.state.answers([1, 2, 3])[1] == AnswerRecord(1, "said", at(2), comment_id=5)
    assert memory.state.manifest.pending == (2,)


@pytest.mark.slow
def test_an_index_is_made_anew_on_request_and_answers_the_same(place: Place) -> None:
    for number in (1, 2, 3, 4):
        remember(place.memory(), issue(number), issue(number + 1, 2))
    memory = place.memory()
    before = memory.search(query("fails"))
    memory.rebuild_index()
    assert memory.commit("rebuilt")
    assert len([path for path in place.files("index") if path.endswith(".seg")]) == 1
    assert [hit.entry for hit in place.memory().search(query("fails"))] == [hit.entry for hit in before]


def test_a_dry_run_writes_nothing_and_still_answers(place: Place) -> None:
    remember(place.memory(), issue(1))
    before = place.files()
    memory = Memory(ReadOnlyStore(place.store())).open([2])
    assert remember(memory, issue(2))
    assert found(memory, word_of(1)) == [1]
    assert place.files() == before
    memory.close()


# -- any order, any number of times ------------------------------------------------------------------------------------

RECORDS = st.builds(
    lambda key, moment, gone: Tombstone(key, at(moment), f"deleted, {moment}") if gone else issue(key, moment),
    st.sampled_from([1, 2, 150, "ABC-1"]),
    st.integers(1, 8),
    st.sampled_from([False, False, True]),
)


@pytest.mark.parametrize("kind", ["folder", pytest.param("branch", marks=pytest.mark.slow)])
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(RECORDS, min_size=1, max_size=8, unique_by=lambda r: (r.id, r.revised_at)), st.integers(0, 9**9))
def test_memory_is_the_fold_of_the_newest_revisions(
    kind: str, tmp_path_factory: pytest.TempPathFactory, records: list[Record], seed: int
) -> None:
    place, chance = Place(tmp_path_factory.mktemp("place"), kind), Random(seed)
    shuffled = [*records, *chance.choices(records, k=len(records))]
    chance.shuffle(shuffled)
    memory = place.memory()
    while shuffled:
        size = chance.randint(1, 4)
        batch, shuffled = shuffled[:size], shuffled[size:]
        memory.stage(Changes(records=tuple(batch)))
        if chance.random() < 0.5:
            memory.commit("a batch")
        if chance.random() < 0.3:
            found(memory, "fails")
    memory.commit("the rest")
    check(place, newest(records))
    place.close()


# -- several writers ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_memories_keep_both_changes(place: Place) -> None:
    remember(place.memory(), issue(1))
    one, two = place.memory(), place.memory()
    one.stage(
        Changes(
            records=(issue(2), issue(1, 1)), answers=(AnswerRecord(2, "pending", at(1), text_hash="x"),), cursor=at(2)
        )
    )
    two.stage(Changes(records=(issue(3),), answers=(AnswerRecord(3, "pending", at(1), text_hash="y"),), cursor=at(1)))
    assert one.commit("one")
    assert two.commit("two")
    check(place, [issue(1, 1), issue(2), issue(3)])
    memory = place.memory()
    assert (memory.state.manifest.cursor, set(memory.state.manifest.pending), set(memory.state.answers([1, 2, 3]))) == (
        at(2),
        {2, 3},
        {2, 3},
    )
    assert memory.state.manifest.promised_within_day(at(1)) == 2


def test_two_first_writers_of_an_empty_store_keep_both_changes(place: Place) -> None:
    one, two = place.memory(), place.memory()
    assert remember(one, issue(1))
    assert remember(two, issue(2))
    check(place, [issue(1), issue(2)])


def test_the_slower_of_two_writers_does_not_bring_back_an_older_revision(place: Place) -> None:
    slow, fast = place.memory(), place.memory()
    slow.stage(Changes(records=(issue(1, 1), issue(2, 5))))
    remember(fast, issue(1, 3), issue(2, 2))
    assert slow.commit("slow")
    check(place, [issue(1, 3), issue(2, 5)])


def test_a_change_that_another_writer_brought_already_is_not_written_again(place: Place) -> None:
    one, two = place.memory(), place.memory()
    for memory in (one, two):
        memory.stage(Changes(records=(issue(1),)))
    assert one.commit("one")
    before = place.files()
    assert not two.commit("two")
    assert place.files() == before


@pytest.mark.slow
def test_a_rebuilt_index_holds_what_another_writer_brought_meanwhile(place: Place) -> None:
    remember(place.memory(), issue(1))
    remember(place.memory(), issue(2))
    rebuilding, other = place.memory(), place.memory()
    rebuilding.rebuild_index()
    remember(other, issue(3))
    assert rebuilding.commit("rebuilt")
    check(place, [issue(1), issue(2), issue(3)])
    assert len([path for path in place.files("index") if path.endswith(".seg")]) == 1


class Contested:
    """A store where somebody else is first, a number of times."""

    def __init__(self, store: Store, other: Store, times: int) -> None:
        self._store, self._other, self.left = store, other, times

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        if self.left:
            self.left -= 1
            remember(Memory(self._other).open(), issue(100 + self.left, self.left))
        return self._store.write(base, edits, message, squash=squash)

    def close(self) -> None:
        self._store.close()


@pytest.mark.slow
def test_changes_are_applied_again_until_they_land(place: Place) -> None:
    waits: list[float] = []
    contested = Contested(place.store(), place.store(), 6)
    memory = Memory(contested, sleep=waits.append).open()
    memory.stage(Changes(records=(issue(1),)))
    memory.stage(Changes(records=(issue(2), issue(1, 1))))
    assert memory.commit("at last")
    check(place, [issue(1, 1), issue(2), *(issue(100 + left, left) for left in range(6))])
    assert len(waits) == 6
    assert all(0 <= wait <= 0.1 * 2**number for number, wait in enumerate(waits))


def test_a_writer_who_is_never_first_says_so_and_nothing_half_written_stays(tmp_path: Path) -> None:
    store, other = store_in(tmp_path, "folder"), store_in(tmp_path, "folder")
    memory = Memory(Contested(store, other, 10**6), patience=0.0, sleep=lambda _: None).open()
    memory.stage(Changes(records=(issue(1),)))
    with pytest.raises(StoreError, match="the next run will catch up"):
        memory.commit("never")
    assert set(Memory(other).open().records([1, 999_999, 100 + 10**6 - 1])) == {100 + 10**6 - 1}


class Full:
    """A store that refuses every write."""

    def __init__(self, store: Store, error: Exception) -> None:
        self._store, self._error = store, error

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        raise self._error

    def close(self) -> None:
        self._store.close()


def test_a_refused_write_can_be_tried_again_on_the_same_memory(place: Place) -> None:
    store = Full(place.store(), StoreError("the disk is full"))
    memory = Memory(store).open()
    memory.stage(Changes(records=(issue(1),)))
    for _ in range(2):
        with pytest.raises(StoreError, match="full"):
            memory.commit("refused")
    assert found(memory, word_of(1)) == [1]


def test_moved_is_the_only_thing_that_is_tried_again(tmp_path: Path) -> None:
    memory = Memory(Full(store_in(tmp_path, "folder"), TipMoved("always")), patience=0.0, sleep=lambda _: None).open()
    memory.stage(Changes(cursor=at(1)))
    with pytest.raises(StoreError, match="others keep writing"):
        memory.commit("never")


def test_answers_of_a_hundred_neighbours_share_one_file(place: Place) -> None:
    memory = place.memory()
    memory.stage(
        Changes(answers=tuple(AnswerRecord(key, "silent", at(1), "nothing similar") for key in (5, 7, 99, 100)))
    )
    memory.commit("said")
    files = place.files("answers")
    assert {path: list(read_lines(data)[0]) for path, data in files.items()} == {
        "answers/0000.jsonl": [5, 7, 99],
        "answers/0001.jsonl": [100],
    }
