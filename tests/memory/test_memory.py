"""Memory: the newest revision wins, concurrent writers lose nothing, nothing is written twice."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.changes import Changes
from bot.domain.post import Post
from bot.domain.thread import Record, Thread, ThreadId, Tombstone
from bot.errors import StoreError, TextRefused
from bot.memory.folder_store import FolderSnapshot, FolderStore
from bot.memory.memory import Memory
from bot.memory.paths import record_path
from bot.memory.records import encode_record
from bot.memory.shards import DIGESTS, write_shard
from bot.memory.store import Edits, Snapshot, Store
from bot.reading.digest import digest
from tests.examples import examples
from tests.memory.samples import (
    ON_BRANCH_TOO,
    StoredMemory,
    ask,
    at,
    find_threads,
    fix,
    issue,
    query,
    remember,
    word_of,
)


def expected_files(records: Iterable[Record]) -> dict[str, bytes]:
    """The record and digest files of a store with these newest records."""
    all_records = list(records)
    shards: dict[str, dict[ThreadId, str]] = {}
    for record in all_records:
        if isinstance(record, Thread):
            shards.setdefault(DIGESTS.path(record.id), {})[record.id] = DIGESTS.line(digest(record))
    return {record_path(record.id): encode_record(record) for record in all_records} | {
        path: write_shard(lines) for path, lines in shards.items()
    }


def check_stored(stored: StoredMemory, records: Iterable[Record]) -> None:
    """The store, its digests, counts and index hold exactly these records."""
    all_records = list(records)
    files = stored.files()
    manifest = json.loads(files.pop("manifest.json"))
    assert {
        path: data for path, data in files.items() if not path.startswith(("index/", "messages/", "posts/"))
    } == expected_files(all_records)
    threads = [record for record in all_records if isinstance(record, Thread)]
    assert manifest["threads"] == len(threads)
    memory = stored.memory()
    assert memory.notes == []
    for record in all_records:
        is_alive = isinstance(record, Thread)
        assert find_threads(memory, word_of(record.id)) == ([record.id] if is_alive else [])
        assert [entry.updated_at for entry in memory.entries([record.id]).values()] == [record.revised_at] * is_alive
    assert list(memory.state.every_record()) == all_records


def newest(records: Iterable[Record]) -> list[Record]:
    by_id = {record.id: record for record in sorted(records, key=lambda record: record.revised_at)}
    return [by_id[key] for key in sorted(by_id, key=lambda key: (isinstance(key, str), key))]


# -- one writer ------------------------------------------------------------------------------------------------------


@ON_BRANCH_TOO
def test_staged_changes_are_found_before_they_are_written(stored: StoredMemory) -> None:
    memory = stored.memory()
    memory.stage(Changes(records=(issue(1), issue(2))))
    assert find_threads(memory, word_of(2)) == [2]
    assert memory.records([1, 3]) == {1: issue(1)}
    assert memory.state.manifest.threads == 2
    assert stored.files() == {}
    assert memory.commit("first")
    check_stored(stored, [issue(1), issue(2)])


def test_a_repeated_run_writes_nothing(stored: StoredMemory) -> None:
    answer, fixes, pages = Post(1, "said", at(1), content="x"), (fix(1), fix(3)), (("docs", "abc"),)
    changes = Changes(
        (issue(1), Tombstone(2, at(1))), (answer,), (ask(1, 5), ask(3, 6)), fixes, pages=pages, cursor=at(5)
    )
    memory = stored.memory()
    memory.stage(changes)
    assert memory.commit("first")
    before = stored.files()
    for reopened in (memory, stored.memory()):
        reopened.stage(changes)
        reopened.stage(replace(changes, cursor=at(4), fixes=(fix(1, 0.5, release="v0"),)))
        assert not reopened.commit("again")
    assert stored.files() == before


def test_a_later_time_without_new_content_changes_nothing(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(1, 1))
    before = stored.files()
    assert not remember(stored.memory(), replace(issue(1, 1), updated_at=at(9)))
    assert stored.files() == before


def test_a_restored_state_is_not_replaced_by_the_one_in_between(stored: StoredMemory) -> None:
    memory = stored.memory()
    first, between, restored = issue(1, 1), issue(1, 2), replace(issue(1, 1), updated_at=at(3))
    for record in (first, restored, between):
        memory.stage(Changes(records=(record,)))
    assert memory.records([1]) == {1: first}


@pytest.mark.slow
def test_a_thread_revised_after_its_tombstone_comes_back(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(1, 1), issue(2, 1))
    remember(stored.memory(), Tombstone(1, at(2)))
    check_stored(stored, [Tombstone(1, at(2)), issue(2, 1)])
    assert not remember(stored.memory(), issue(1, 1.5))
    remember(stored.memory(), issue(1, 3))
    check_stored(stored, [issue(1, 3), issue(2, 1)])


def test_no_text_of_a_deleted_thread_stays(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(1, body="the secret is xyzzyplugh"), issue(2))
    remember(stored.memory(), Tombstone(1, at(2)))
    stored_files = stored.files()
    assert not [path for path, data in stored_files.items() if b"xyzzy" in data and not path.startswith("index/")]
    assert find_threads(stored.memory(), "xyzzyplugh") == []


def test_the_cursor_never_goes_back(stored: StoredMemory) -> None:
    for hours in (3, 5, 4):
        memory = stored.memory()
        memory.stage(Changes(cursor=at(hours)))
        memory.commit("cursor")
    assert stored.memory().state.manifest.cursor == at(5)


def test_numbers_and_names_live_side_by_side(stored: StoredMemory) -> None:
    keys: list[ThreadId] = [1, 100, 12_345, "ABC-1", "ABC-10", "a/b c"]
    remember(stored.memory(), *(issue(key) for key in keys[:5]), replace(issue("a/b c"), title="slashed key"))
    memory = stored.memory()
    assert set(memory.records(keys)) == set(keys)
    assert [record.id for record in memory.state.every_record()] == keys
    assert find_threads(memory, "slashed") == ["a/b c"]


def test_comments_are_kept_and_an_older_one_does_not_replace_a_newer_one(stored: StoredMemory) -> None:
    memory = stored.memory()
    memory.stage(Changes(posts=(Post(1, "pending", at(1), content="x"), Post(2, "pending", at(1), content="y"))))
    assert memory.state.manifest.pending == (1, 2)
    memory.commit("promised")
    memory = stored.memory()
    memory.stage(Changes(posts=(Post(1, "said", at(2), comment_id=5),)))
    memory.commit("said")
    memory = stored.memory()
    memory.stage(Changes(posts=(Post(1, "pending", at(1), content="x"),)))
    assert not memory.commit("late")
    assert memory.state.comments([1, 2, 3])[1] == Post(1, "said", at(2), comment_id=5)
    assert memory.state.manifest.pending == (2,)


@pytest.mark.slow
def test_a_rebuilt_index_finds_the_same(stored: StoredMemory) -> None:
    for number in (1, 2, 3, 4):
        remember(stored.memory(), issue(number), issue(number + 1, 2))
    memory = stored.memory()
    before = memory.search(query("fails"))
    memory.rebuild_index()
    assert memory.commit("rebuilt")
    assert len([path for path in stored.files("index") if path.endswith(".seg")]) == 1
    assert [hit.entry for hit in stored.memory().search(query("fails"))] == [hit.entry for hit in before]


@ON_BRANCH_TOO
def test_a_dry_run_writes_nothing_and_still_answers(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(1))
    before = stored.files()
    memory = stored.memory()
    memory.is_dry = True
    for number in (2, 3):
        assert remember(memory, issue(number))
        assert find_threads(memory, word_of(number)) == [number]
    assert find_threads(memory, word_of(1)) == [1]
    assert stored.files() == before
    memory.close()


class ProtectedStore(FolderStore):
    """Takes a word for a secret, as push protection does."""

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> FolderSnapshot:
        if refused := [path for path, data in edits.items() if isinstance(data, bytes) and b"xyzzy" in data]:
            raise TextRefused("a secret", "", [(path, 1) for path in refused])
        return super().write(base, edits, message, squash=squash)


def test_the_last_valid_settings_are_kept_unless_there_is_a_secret_in_them(stored: StoredMemory) -> None:
    kept = []
    for number, text in enumerate((b"mode: summary\n", None, b"# xyzzy\n", b""), 1):
        memory = Memory(ProtectedStore(stored.folder)).open()
        memory.settings = text
        assert remember(memory, issue(number))
        kept.append(stored.files().get("settings.yml"))
    assert kept == [b"mode: summary\n"] * 3 + [None]
    assert set(stored.memory().records([1, 2, 3, 4])) == {1, 2, 3, 4}


# -- any order, any number of times ------------------------------------------------------------------------------------

RECORDS = st.builds(
    lambda key, moment, gone: Tombstone(key, at(moment), f"deleted, {moment}") if gone else issue(key, moment),
    st.sampled_from([1, 2, 150, "ABC-1"]),
    st.integers(1, 8),
    st.sampled_from([False, False, True]),
)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(RECORDS, min_size=1, max_size=8, unique_by=lambda r: (r.id, r.revised_at)), st.integers(0, 9**9))
def test_memory_is_the_fold_of_the_newest_revisions(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], seed: int
) -> None:
    stored, rng = StoredMemory(tmp_path_factory.mktemp("place")), Random(seed)
    shuffled = [*records, *rng.choices(records, k=len(records))]
    rng.shuffle(shuffled)
    memory = stored.memory()
    while shuffled:
        size = rng.randint(1, 4)
        batch, shuffled = shuffled[:size], shuffled[size:]
        memory.stage(Changes(records=tuple(batch)))
        if rng.random() < 0.5:
            memory.commit("a batch")
        if rng.random() < 0.3:
            find_threads(memory, "fails")
    memory.commit("the rest")
    check_stored(stored, newest(records))
    stored.close()


# -- several writers ---------------------------------------------------------------------------------------------------


@ON_BRANCH_TOO
def test_two_first_writers_of_an_empty_store_keep_both_changes(stored: StoredMemory) -> None:
    first, second = stored.memory(), stored.memory()
    for memory, key, hours in ((first, 1, 2), (second, 2, 1)):
        answer = Post(key, "pending", at(1), content="x")
        memory.stage(Changes(records=(issue(key),), posts=(answer,), cursor=at(hours)))
    assert first.commit("one")
    assert second.commit("two")
    check_stored(stored, [issue(1), issue(2)])
    state = stored.memory().state
    assert (state.manifest.cursor, state.manifest.pending, {*state.comments([1, 2])}) == (at(2), (1, 2), {1, 2})
    assert state.manifest.promised_within_day(at(1)) == 2


@ON_BRANCH_TOO
def test_the_slower_of_two_writers_does_not_bring_back_an_older_revision(stored: StoredMemory) -> None:
    slow, fast = stored.memory(), stored.memory()
    slow.stage(Changes(records=(issue(1, 1), issue(2, 5))))
    remember(fast, issue(1, 3), issue(2, 2))
    assert slow.commit("slow")
    check_stored(stored, [issue(1, 3), issue(2, 5)])


def test_a_change_that_another_writer_stored_is_not_written_again(stored: StoredMemory) -> None:
    first, second = stored.memory(), stored.memory()
    for memory in (first, second):
        memory.stage(Changes(records=(issue(1),)))
    assert first.commit("one")
    before = stored.files()
    assert not second.commit("two")
    assert stored.files() == before


@ON_BRANCH_TOO
@pytest.mark.slow
def test_a_rebuilt_index_has_what_another_writer_added_meanwhile(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(1))
    remember(stored.memory(), issue(2))
    rebuilding, other = stored.memory(), stored.memory()
    rebuilding.rebuild_index()
    remember(other, issue(3))
    assert rebuilding.commit("rebuilt")
    check_stored(stored, [issue(1), issue(2), issue(3)])
    assert len([path for path in stored.files("index") if path.endswith(".seg")]) == 1


class InterruptedStore:
    """A store where something happens before each write."""

    def __init__(self, store: Store, interrupt: Callable[[], object]) -> None:
        self._store, self._interrupt = store, interrupt
        self.open, self.close = store.open, store.close

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        self._interrupt()
        return self._store.write(base, edits, message, squash=squash)


def write_first(other: Store, times: int) -> Callable[[], object]:
    """Have somebody else write a thread, so many times."""
    numbers = iter(range(times))

    def write() -> None:
        for number in islice(numbers, 1):
            remember(Memory(other).open(), issue(100 + number, number))

    return write


def refuse(error: Exception) -> Callable[[], object]:
    def raise_error() -> None:
        raise error

    return raise_error


@ON_BRANCH_TOO
@pytest.mark.slow
def test_changes_are_applied_again_until_the_write_succeeds(stored: StoredMemory) -> None:
    delays: list[float] = []
    contested = InterruptedStore(stored.store(), write_first(stored.store(), 6))
    memory = Memory(contested, sleep=delays.append).open()
    memory.stage(Changes(records=(issue(1),)))
    memory.stage(Changes(records=(issue(2), issue(1, 1))))
    assert memory.commit("at last")
    check_stored(stored, [issue(1, 1), issue(2), *(issue(100 + conflict, conflict) for conflict in range(6))])
    assert len(delays) == 6
    assert all(0 <= wait <= 0.1 * 2**number for number, wait in enumerate(delays))


def test_a_writer_that_never_wins_reports_it_and_leaves_nothing_half_written(stored: StoredMemory) -> None:
    contested = InterruptedStore(stored.store(), write_first(stored.store(), 9))
    memory = Memory(contested, patience=0.0, sleep=lambda _: None).open()
    memory.stage(Changes(records=(issue(1),)))
    with pytest.raises(StoreError, match="the next run will catch up"):
        memory.commit("never")
    assert set(stored.memory().records([1, *range(100, 109)])) == {100}


def test_a_refused_write_can_be_retried_on_the_same_memory(stored: StoredMemory) -> None:
    memory = Memory(InterruptedStore(stored.store(), refuse(StoreError("the disk is full")))).open()
    memory.stage(Changes(records=(issue(1),)))
    for _ in range(2):
        with pytest.raises(StoreError, match="full"):
            memory.commit("refused")
    assert find_threads(memory, word_of(1)) == [1]


def test_a_memory_that_is_closed_or_dropped_holds_no_file_open(stored: StoredMemory) -> None:
    """Without the garbage collector, which may come hours later."""

    def mapped_files() -> int:
        return Path("/proc/self/maps").read_text(encoding="utf-8").count(".seg")

    before = mapped_files()
    gc.disable()
    try:
        remember(stored.memory(), issue(1), issue(2))
        memory, dropped = stored.memory(), stored.memory()
        for each in (memory, dropped):
            each.search(query(word_of(1)))
            each.search_messages(query(word_of(1)))
        assert mapped_files() == before + 4
        memory.close()
        del each, dropped
        assert mapped_files() == before
    finally:
        gc.enable()
