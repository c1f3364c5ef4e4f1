"""A memory with files that this program never writes is read within bounds of time and memory, or refused."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable

import pytest

from bot.domain.thread import Message, Thread, TimelineEvent
from bot.domain.thread_json import MAX_MESSAGES, MAX_THREAD_CHARS, archive_fields, thread_from_archive
from bot.memory.bounds import (
    MAX_JSON_VALUES,
    MAX_RECORD_BYTES,
    MAX_SHARD_LINES,
    MAX_TWINS,
    MemoryTooLarge,
    ReadingBudget,
    excess,
    load_json,
)
from bot.memory.manifest import Manifest, decode_manifest, encode_manifest
from bot.memory.memory import Memory
from bot.memory.paths import record_path
from bot.memory.records import CorruptRecord, decode_record, encode_record
from bot.memory.shards import DIGESTS, FIXES, POSTS, read_lines, read_texts
from bot.memory.stored_state import MAX_NOTES, MORE_NOTES
from tests.memory.remotes import HostedRepository, open_store
from tests.memory.samples import StoredMemory, at, issue, remember
from tests.threats.git_objects import FILE, blob, commit, tree

TINY = {"created_at": "2020-01-01T00:00:00Z"}


def long_thread(messages: int, text: str = "") -> Thread:
    """A thread with as many comments, and as many events."""
    comments = tuple(Message("octocat", "NONE", at(number / 100), text, number + 1) for number in range(messages))
    events = tuple(TimelineEvent("cross-referenced", at(number / 100), source=number + 1) for number in range(messages))
    closed = TimelineEvent("closed", at(messages))
    return issue(1, state="closed", closed_at=at(messages), comments=comments, events=(*events, closed))


def processor_seconds(action: Callable[[], object]) -> float:
    began = time.thread_time()
    action()
    return time.thread_time() - began


def peak_bytes(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# -- what is written -----------------------------------------------------------------------------------------------


def test_a_thread_keeps_the_beginning_and_the_end_of_its_comments_and_events() -> None:
    fields = archive_fields(long_thread(MAX_MESSAGES + 500))
    thread = thread_from_archive(fields)
    assert len(thread.comments) == len(thread.events) == MAX_MESSAGES
    assert (thread.comments[0].id, thread.comments[-1].id) == (1, MAX_MESSAGES + 500)
    assert thread.events[-1].name == "closed"
    assert thread_from_archive({**fields, "comments": list(fields["comments"])[::-1]}) == thread  # type: ignore[call-overload]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["\x01", "[", "🦀"])
def test_the_longest_thread_can_be_read_again(text: str) -> None:
    """Whatever its texts consist of: some characters take six bytes."""
    size = MAX_THREAD_CHARS // MAX_MESSAGES
    longest = thread_from_archive(archive_fields(long_thread(MAX_MESSAGES + 1, text * size)))
    data = encode_record(longest)
    assert len(data) <= MAX_RECORD_BYTES
    assert decode_record(data, record_path(1)) == longest


# -- what is read --------------------------------------------------------------------------------------------------


def test_a_record_with_hundreds_of_thousands_of_comments_is_damaged_before_they_are_read() -> None:
    def record(comments: int) -> bytes:
        return json.dumps({"id": 1, **TINY, "state": "closed", "comments": [TINY] * comments}).encode()

    bomb, honest = record(400_000), record(MAX_MESSAGES)

    def refuse() -> None:
        with pytest.raises(CorruptRecord, match="more than 10,000 comments"):
            decode_record(bomb, record_path(1))

    assert processor_seconds(refuse) < 10 * processor_seconds(lambda: decode_record(honest, record_path(1)))


def test_a_record_at_the_path_of_another_is_not_read() -> None:
    data = encode_record(long_thread(MAX_MESSAGES // 2))

    def refuse() -> None:
        with pytest.raises(CorruptRecord, match="it claims to be 1"):
            decode_record(data, record_path(2))

    assert processor_seconds(refuse) < processor_seconds(lambda: decode_record(data, record_path(1))) / 2


@pytest.mark.parametrize("values", [b"[],", b"{},", b"1,", b'"",'])
def test_json_with_millions_of_values_takes_no_memory(values: bytes) -> None:
    data = b"[%s0]" % (values * MAX_JSON_VALUES)

    def refuse() -> None:
        with pytest.raises(ValueError, match="more than 1,500,000 values"):
            load_json(data)

    assert peak_bytes(refuse) < 100_000


def test_json_that_is_nested_too_deeply_is_an_ordinary_error() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        load_json(b"[" * 1_000_000)


@pytest.mark.parametrize(
    "data", [b"\n" * 16_000_000, b'{"id":5}\n' * 1_500_000, b'{"id":1,"x":[%s0]}\n' % (b"0," * 2_000_000)]
)
def test_a_shard_with_millions_of_lines_takes_no_memory(data: bytes) -> None:
    assert peak_bytes(lambda: (read_lines(data), read_texts(data), POSTS.read("posts/0000.jsonl", data))) < 100_000
    assert read_lines(data) == ({}, False)


def test_the_largest_shard_is_read() -> None:
    data = b"".join(b'{"id":"docs:%d"}\n' % number for number in range(MAX_SHARD_LINES))
    lines, is_whole = read_lines(data)
    assert (len(lines), is_whole) == (MAX_SHARD_LINES, True)


def test_progress_over_millions_of_threads_is_read_again_from_the_beginning() -> None:
    stored = json.loads(encode_manifest(Manifest()))
    stored["reading"] = {"began": "2020-01-01T00:00:00Z", "seen": "/" * (1 << 19)}
    assert peak_bytes(lambda: decode_manifest(json.dumps(stored).encode())) < 10_000_000
    assert decode_manifest(json.dumps(stored).encode()).reading is None


# -- a whole memory ------------------------------------------------------------------------------------------------


def test_a_record_that_is_too_large_is_left_out_unread(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(1), issue(2))
    stored.put(
        {record_path(2): b'{"id":2,"created_at":"2020-01-01T00:00:00Z","body":"%s"}' % (b"a" * MAX_RECORD_BYTES)}
    )
    memory = stored.memory()
    assert peak_bytes(lambda: memory.records([1, 2])) < 1.5 * MAX_RECORD_BYTES
    assert set(memory.records([1, 2])) == {1}
    assert [record.id for record in memory.state.every_record()] == [1]
    assert any(record_path(2) in note for note in memory.notes)


def test_all_files_of_a_kind_are_read_a_portion_at_a_time(stored: StoredMemory) -> None:
    size, count = 4_000_000, 16
    remember(stored.memory(), issue(1))
    shards = {f"{DIGESTS.folder}/{number:04d}.jsonl": b"%d" % number * size for number in range(count)}
    stored.put({path: data[:size] for path, data in shards.items()})
    memory = stored.memory()
    found = list[str]()
    assert (
        peak_bytes(lambda: found.extend(path for path, _ in memory.state.base.digest_shards())) < count * size * 4 / 5
    )
    assert found == [*shards]


def test_small_files_make_no_room_for_large_ones() -> None:
    """However many threads a memory has, nearly all of them are short."""
    size = excess(record_path(1), MAX_RECORD_BYTES)
    ReadingBudget(100_000).check(10 * size)
    with pytest.raises(MemoryTooLarge):
        ReadingBudget(10_000).check(10 * size)
    assert excess(record_path(1), 60_000) == excess("fixes/0000.jsonl", 250_000) == 0


def test_a_memory_with_more_than_its_threads_can_take_is_refused(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(1))
    text = b"a" * (MAX_RECORD_BYTES - 100)
    stored.put({
        record_path(number): b'{"id":%d,"created_at":"2020-01-01T00:00:00Z","body":"%s"}' % (number, text)
        for number in range(1, 8)
    })  # fmt: skip
    memory = stored.memory()
    with pytest.raises(MemoryTooLarge, match="delete the branch, and run with `rebuild`"):
        list(memory.state.every_record())
    with pytest.raises(MemoryTooLarge):
        memory.records(range(1, 8))


def test_shards_that_take_more_than_their_threads_are_refused(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(1))
    line = b'{"id":1,"x":"%s"}\n' % (b"a" * 15_000_000)
    stored.put({f"{FIXES.folder}/{number:04d}.jsonl": line for number in range(5)})
    with pytest.raises(MemoryTooLarge, match="too many large files, 64 MB and more"):
        stored.memory().state.all_values(FIXES)


def test_comments_without_text_count_as_well() -> None:
    budget, thread = ReadingBudget(0), long_thread(MAX_MESSAGES)
    for _ in range(6):
        budget.keep_record(thread)
    with pytest.raises(MemoryTooLarge, match="too many large files"):
        budget.keep_record(thread)


def test_a_hundred_notes_are_enough(stored: StoredMemory) -> None:
    remember(stored.memory(), *(issue(number) for number in range(1, 4)))
    stored.put({record_path(number): b"{%d" % number for number in range(4, 4 + 2 * MAX_NOTES)})
    memory = stored.memory()
    assert [record.id for record in memory.state.every_record()] == [1, 2, 3]
    assert (len(memory.notes), memory.notes[-1]) == (MAX_NOTES + 1, MORE_NOTES)
    memory.rebuild_index()
    memory.settle_notes()
    assert MORE_NOTES in memory.notes, "they are still damaged"


def twins(hosted: HostedRepository, count: int) -> str:
    """A branch with one record under so many names."""
    repository = hosted.repository
    record = blob(repository, encode_record(issue(1)))
    folders: dict[str, list[tuple[str, str, str]]] = {}
    for number in range(1, count + 1):
        _, folder, name = record_path(number).split("/")
        folders.setdefault(folder, []).append((FILE, name, record))
    records = tree(repository, [("40000", folder, tree(repository, rows)) for folder, rows in folders.items()])
    return tree(repository, [("40000", "records", records)])


@pytest.mark.slow
def test_one_record_under_many_names_is_left_out_unread(hosted: HostedRepository) -> None:
    commit(hosted.repository, twins(hosted, 50), "precedent")
    with open_store(hosted) as store:
        memory = Memory(store).open()
        hosted.mark()
        assert list(memory.state.every_record()) == []
        assert hosted.request_lines == [], "nothing is fetched"
    commit(hosted.repository, twins(hosted, MAX_TWINS + 1), "precedent")
    with open_store(hosted) as store, pytest.raises(MemoryTooLarge, match="records with the content of others"):
        Memory(store).open()
