"""The message index finds what the records hold, is untouched by ordinary runs, and forgets at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.card import message_id, message_of
from bot.domain.changes import FORGET, Changes
from bot.domain.thread import Message, Record, Thread, ThreadId, Tombstone
from bot.index.protocol import LAYOUT_VERSION
from bot.memory.manifest import MESSAGE_FOLDER, MessageFiles, decode_manifest, encode_manifest
from bot.memory.memory import Memory
from tests.memory.samples import ON_BRANCH_TOO, WORDS, StoredMemory, at, issue, query, remember


def comment(text: str, hours: float = 1, author: str = "hubot") -> Message:
    return Message(author, "MEMBER", at(hours), text)


def talk(key: ThreadId, *texts: str, revision: float = 0) -> Thread:
    return issue(key, revision, comments=tuple(comment(text) for text in texts))


def find_messages(memory: Memory, text: str) -> set[tuple[ThreadId, int]]:
    """The thread and position of each message that a search finds."""
    hits = memory.search_messages(query(text))
    messages = {message_of(hit.entry.id) for hit in hits}
    assert len(messages) == len(hits)
    return messages


def message_files(stored: StoredMemory) -> list[str]:
    return sorted(path for path in stored.files() if path.startswith(MESSAGE_FOLDER))


def threads_behind(stored: StoredMemory) -> tuple[ThreadId, ...]:
    messages = decode_manifest(stored.files()["manifest.json"]).messages
    assert messages is not None
    return messages.behind


@pytest.mark.parametrize("key", [1, 4242, "wiki:Home", "PRJ-7", "a/b"])
def test_a_message_id_names_the_thread_and_the_position(key: ThreadId) -> None:
    assert message_of(message_id(key, 3)) == (key, 3)


def test_every_message_is_found_with_its_author(stored: StoredMemory) -> None:
    remember(stored.memory(), talk(1, "a quince", "two quinces"), issue("wiki:Home", body="one quince"))
    memory = stored.memory()
    assert find_messages(memory, "quince") == {(1, 1), (1, 2), ("wiki:Home", 0)}
    assert find_messages(memory, "bramble") == {(1, 0)}  # the title is part of the opening text
    (hit,) = memory.search_messages(query("two quinces"), limit=1)
    assert (hit.entry.author, hit.entry.role, hit.entry.created_at) == ("hubot", "MEMBER", at(1))


def test_an_ordinary_run_neither_reads_nor_writes_the_message_index(stored: StoredMemory) -> None:
    stored.threads_behind = 2
    remember(stored.memory(), *(talk(key, "quince") for key in range(1, 5)))
    before = message_files(stored)
    assert before
    memory = stored.memory()
    remember(memory, talk(1, "medlar", revision=1))
    assert message_files(stored) == before
    assert threads_behind(stored) == (1,)
    remember(stored.memory(), talk(1, revision=2))
    assert threads_behind(stored) == (1,)
    memory = stored.memory()
    assert find_messages(memory, "quince medlar") == {(2, 1), (3, 1), (4, 1)}
    assert memory.commit("searched")
    assert threads_behind(stored) == ()
    assert message_files(stored) != before


def test_the_message_index_is_updated_once_enough_threads_changed(stored: StoredMemory) -> None:
    stored.threads_behind = 2
    for key in (1, 2):
        remember(stored.memory(), talk(key, "quince"))
    assert message_files(stored) == []
    assert find_messages(stored.memory(), "quince") == {(1, 1), (2, 1)}
    remember(stored.memory(), talk(3, "quince"))
    assert message_files(stored)
    assert threads_behind(stored) == ()
    assert find_messages(stored.memory(), "quince") == {(1, 1), (2, 1), (3, 1)}


@pytest.mark.parametrize("reason", ["deleted", FORGET])
def test_words_of_a_deleted_thread_are_removed_by_the_same_write(stored: StoredMemory, reason: str) -> None:
    stored.threads_behind = 1
    remember(stored.memory(), talk(1, "quince"), talk(2, "medlar"), talk(3, "quince medlar"))
    tombstone = Tombstone(1, at(5), reason)
    remember(stored.memory(), tombstone)
    files = stored.files()
    assert threads_behind(stored) == ()
    assert find_messages(stored.memory(), "quince") == {(3, 1)}
    assert not any(b"bramble" in data for path, data in files.items() if path.startswith(MESSAGE_FOLDER))


def lose_entry(stored: StoredMemory, **fields: object) -> None:
    """Take the index of messages out of the manifest."""
    manifest = json.loads(stored.files()["manifest.json"]) | fields
    del manifest["messages"]
    stored.put({"manifest.json": json.dumps(manifest).encode()})


@pytest.mark.parametrize("record", [Tombstone(1, at(5), FORGET), talk(3, "plum")], ids=["forget", "event"])
def test_message_files_missing_in_the_manifest_are_removed_by_the_next_write(
    stored: StoredMemory, record: Record
) -> None:
    stored.threads_behind = 0
    remember(stored.memory(), talk(1, "quince"), talk(2, "medlar"))
    lose_entry(stored)
    assert message_files(stored)
    remember(stored.memory(), record)
    assert message_files(stored) == []
    assert find_messages(stored.memory(), "medlar") == {(2, 1)}


def test_a_damaged_record_leaves_no_outdated_message(stored: StoredMemory) -> None:
    stored.threads_behind = 1
    remember(stored.memory(), talk(1, "quince", "medlar"), talk(2, "medlar"))
    stored.put({"records/0000/0001.json": None, "records/0000/1.json": b"{"})
    remember(stored.memory(), talk(1, "plum", revision=2))
    assert find_messages(stored.memory(), "quince medlar plum") == {(1, 1), (2, 1)}


@pytest.mark.parametrize("spoil", ["content", "missing", "strange", "layout", "analyser"])
def test_a_damaged_or_foreign_message_index_is_rebuilt(stored: StoredMemory, spoil: str) -> None:
    stored.threads_behind = 0
    remember(stored.memory(), talk(1, "quince"))
    segment = next(path for path in message_files(stored) if not path.endswith(".toc"))
    manifest = json.loads(stored.files()["manifest.json"])
    damages: dict[str, dict[str, bytes | None]] = {
        "content": {segment: b"not a segment"},
        "missing": {segment: None},
        "strange": {f"{MESSAGE_FOLDER}/stranger": b"hello"},
    }
    edits = damages.get(spoil, {})
    if not edits:
        manifest["messages"][spoil] = 2 if spoil == "layout" else "another"
        edits = {"manifest.json": json.dumps(manifest).encode()}
    stored.put(edits)
    memory = stored.memory()
    assert find_messages(memory, "quince") == {(1, 1)}
    assert [note for note in memory.notes if "rebuilt from the records" in note]
    memory.commit("repaired")
    reopened = stored.memory()
    assert find_messages(reopened, "quince") == {(1, 1)}
    assert reopened.notes == []


@pytest.mark.parametrize("is_by_hand", [True, False], ids=["by hand", "with the index of threads"])
def test_a_memory_whose_message_index_is_not_known_gets_one_with_a_rebuild(
    stored: StoredMemory, is_by_hand: bool
) -> None:
    remember(stored.memory(), talk(1, "quince"))
    lose_entry(stored, layout=LAYOUT_VERSION if is_by_hand else 2)
    memory = stored.memory()
    assert (memory.messages.exists, memory.messages.segments()) == (False, {})
    if is_by_hand:
        memory.rebuild_index()
    remember(memory, talk(2, "quince"))
    assert stored.memory().messages.exists
    assert find_messages(stored.memory(), "quince") == {(1, 1), (2, 1)}


@pytest.mark.parametrize(
    "value", [None, [], "x", {"files": 1}, {"files": {}, "layout": -1, "analyser": "", "behind": []},
              {"files": {}, "layout": 1, "analyser": "", "behind": [[1]]}]
)  # fmt: skip
def test_malformed_message_files_in_a_manifest_count_as_no_index(value: object) -> None:
    fields = json.loads(encode_manifest(replace(decode_manifest(b'{"format": 2}'), messages=MessageFiles())))
    assert decode_manifest(json.dumps(fields).encode()).messages == MessageFiles()
    assert decode_manifest(json.dumps(fields | {"messages": value}).encode()).messages is None


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
versions = st.tuples(st.integers(1, 4), st.lists(texts, max_size=3), st.sampled_from(["talk", "talk", "gone"]))


@pytest.mark.slow
@settings(deadline=None)
@given(runs=st.lists(st.lists(versions, min_size=1, max_size=3), min_size=1, max_size=4), most_behind=st.integers(0, 3))
def test_searches_find_exactly_the_messages_of_the_records(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[tuple[int, list[str], str]]], most_behind: int
) -> None:
    stored = StoredMemory(tmp_path_factory.mktemp("memory"), threads_behind=most_behind)
    revision = 0
    for changed in runs:
        records: list[Record] = []
        for key, comments, fate in changed:
            revision += 1
            record = talk(key, *comments, revision=revision)
            records.append(record if fate == "talk" else Tombstone(key, at(revision), "deleted"))
        remember(stored.memory(), *records)
    memory = stored.memory()
    threads = [thread for thread in memory.state.every_record() if isinstance(thread, Thread)]
    for word in WORDS:
        expected = {
            (thread.id, position)
            for thread in threads
            for position, text in enumerate([f"{thread.title}\n{thread.body}", *(c.text for c in thread.comments)])
            if word in text.split()
        }
        assert find_messages(memory, word) == expected
    stored.close()


@ON_BRANCH_TOO
def test_two_writers_lose_no_message(stored: StoredMemory) -> None:
    stored.threads_behind = 1
    remember(stored.memory(), talk(1, "quince"), talk(2, "quince"))
    first, second = stored.memory(), stored.memory()
    first.stage(Changes(records=(talk(3, "quince"), talk(4, "quince"), talk(1, revision=1))))
    second.stage(Changes(records=(talk(5, "quince"), talk(2, "medlar", revision=1))))
    assert first.commit("first")
    assert second.commit("second")
    assert find_messages(stored.memory(), "quince medlar") == {(2, 1), (3, 1), (4, 1), (5, 1)}


def test_the_same_threads_make_the_same_files_in_any_order(tmp_path: Path) -> None:
    files_by_order = []
    for name, keys in (("one", (1, 2, 3)), ("other", (3, 1, 2))):
        stored = StoredMemory(tmp_path / name, threads_behind=1)
        memory = stored.memory()
        for key in keys:
            memory.stage(Changes(records=(talk(key, "quince"),)))
        assert memory.commit("records")
        files_by_order.append({path: stored.files()[path] for path in message_files(stored)})
        stored.close()
    assert files_by_order[0] == files_by_order[1] != {}
