"""The index of messages: it finds what the records hold, is not touched by an ordinary run, and forgets at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.changes import FORGET, Changes
from bot.domain.thread import Message, Record, Thread, ThreadId, Tombstone
from bot.index.document import message_id, message_of
from bot.memory import message_index
from bot.memory.manifest import MESSAGES, MessageFiles, decode_manifest, encode_manifest
from bot.memory.memory import Memory
from tests.memory.samples import KINDS, WORDS, Place, at, issue, query, remember


@pytest.fixture(params=KINDS)
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place(tmp_path, request.param)
    yield made
    made.close()


def comment(text: str, hours: float = 1, author: str = "hubot") -> Message:
    return Message(author, "MEMBER", at(hours), text)


def talk(key: ThreadId, *texts: str, revision: float = 0) -> Thread:
    return issue(key, revision, comments=tuple(comment(text) for text in texts))


def said(memory: Memory, text: str) -> set[tuple[ThreadId, int]]:
    """The messages that a search finds: their threads and positions."""
    hits = memory.search_messages(query(text))
    found = {message_of(hit.entry.id) for hit in hits}
    assert len(found) == len(hits)
    return found


def message_files(place: Place) -> list[str]:
    return sorted(path for path in place.files() if path.startswith(MESSAGES))


def behind(place: Place) -> dict[ThreadId, int]:
    messages = decode_manifest(place.files()["manifest.json"]).messages
    assert messages is not None
    return messages.behind


@pytest.mark.parametrize("key", [1, 4242, "wiki:Home", "PRJ-7", "a/b"])
def test_a_message_is_named_by_its_thread_and_its_place(key: ThreadId) -> None:
    assert message_of(message_id(key, 3)) == (key, 3)


def test_every_message_is_found_with_who_said_it(place: Place) -> None:
    remember(place.memory(), talk(1, "a quince", "two quinces"), issue("wiki:Home", body="one quince"))
    memory = place.memory()
    assert said(memory, "quince") == {(1, 1), (1, 2), ("wiki:Home", 0)}
    assert said(memory, "bramble") == {(1, 0)}  # the title is part of the opening text
    (hit,) = memory.search_messages(query("two quinces"), limit=1)
    assert (hit.entry.author, hit.entry.role, hit.entry.created_at) == ("hubot", "MEMBER", at(1))


def test_an_ordinary_run_neither_reads_nor_writes_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_index, "MOST_BEHIND", 2)
    remember(place.memory(), *(talk(key, "quince") for key in range(1, 5)))
    before = message_files(place)
    assert before
    memory = place.memory()
    remember(memory, talk(1, "medlar", revision=1))
    assert message_files(place) == before
    assert behind(place) == {1: 2}
    remember(place.memory(), talk(1, revision=2))
    assert behind(place) == {1: 2}  # the most that it had meanwhile
    memory = place.memory()
    assert said(memory, "quince medlar") == {(2, 1), (3, 1), (4, 1)}
    assert memory.commit("searched")
    assert behind(place) == {}
    assert message_files(place) != before


def test_many_changed_threads_are_taken_in(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_index, "MOST_BEHIND", 2)
    for key in (1, 2):
        remember(place.memory(), talk(key, "quince"))
    assert message_files(place) == []
    assert said(place.memory(), "quince") == {(1, 1), (2, 1)}
    remember(place.memory(), talk(3, "quince"))
    assert message_files(place)
    assert behind(place) == {}
    assert said(place.memory(), "quince") == {(1, 1), (2, 1), (3, 1)}


@pytest.mark.parametrize("reason", ["deleted", FORGET])
def test_words_of_a_thread_that_is_gone_leave_with_the_same_write(
    place: Place, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_index, "MOST_BEHIND", 1)
    remember(place.memory(), talk(1, "quince"), talk(2, "medlar"), talk(3, "quince medlar"))
    gone = Tombstone(1, at(5), reason)
    remember(place.memory(), gone)
    files = place.files()
    assert behind(place) == {}
    assert said(place.memory(), "quince") == {(3, 1)}
    assert not any(b"bramble" in data for path, data in files.items() if path.startswith(MESSAGES))


@pytest.mark.parametrize("record", [Tombstone(1, at(5), FORGET), talk(3, "plum")], ids=["forget", "event"])
def test_files_of_which_the_manifest_says_nothing_leave_with_the_next_write(
    place: Place, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version wrote the branch: it forgets a thread, but knows no index of messages."""
    monkeypatch.setattr(message_index, "MOST_BEHIND", 0)
    remember(place.memory(), talk(1, "quince"), talk(2, "medlar"))
    manifest = json.loads(place.files()["manifest.json"])
    del manifest["messages"]
    place.put({"manifest.json": json.dumps(manifest).encode()})
    assert message_files(place)
    remember(place.memory(), record)
    assert message_files(place) == []
    assert said(place.memory(), "medlar") == {(2, 1)}


def test_a_damaged_record_leaves_no_message_behind(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_index, "MOST_BEHIND", 1)
    remember(place.memory(), talk(1, "quince", "medlar"), talk(2, "medlar"))
    place.put({"records/0000/0001.json": None, "records/0000/1.json": b"{"})
    remember(place.memory(), talk(1, "plum", revision=2))
    assert said(place.memory(), "quince medlar plum") == {(1, 1), (2, 1)}


@pytest.mark.parametrize("spoil", ["content", "missing", "strange", "layout", "analyser"])
def test_a_damaged_or_foreign_index_is_built_again(place: Place, spoil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_index, "MOST_BEHIND", 0)
    remember(place.memory(), talk(1, "quince"))
    segment = next(path for path in message_files(place) if not path.endswith(".toc"))
    manifest = json.loads(place.files()["manifest.json"])
    damages: dict[str, dict[str, bytes | None]] = {
        "content": {segment: b"not a segment"},
        "missing": {segment: None},
        "strange": {f"{MESSAGES}/stranger": b"hello"},
    }
    edits = damages.get(spoil, {})
    if not edits:
        manifest["messages"][spoil] = 2 if spoil == "layout" else "another"
        edits = {"manifest.json": json.dumps(manifest).encode()}
    place.put(edits)
    memory = place.memory()
    assert said(memory, "quince") == {(1, 1)}
    assert [note for note in memory.notes if "rebuilt from the records" in note]
    memory.commit("repaired")
    again = place.memory()
    assert said(again, "quince") == {(1, 1)}
    assert again.notes == []


def test_a_memory_of_an_earlier_version_gets_one_with_a_rebuild_or_a_search(place: Place) -> None:
    remember(place.memory(), talk(1, "quince"))
    manifest = json.loads(place.files()["manifest.json"])
    del manifest["messages"]
    place.put({"manifest.json": json.dumps(manifest).encode()})
    remember(place.memory(), talk(2, "quince"))
    memory = place.memory()
    assert not memory.messages.exists
    assert memory.messages.segments() == {}
    memory.rebuild_index()
    memory.commit("rebuilt")
    assert message_files(place)
    assert said(place.memory(), "quince") == {(1, 1), (2, 1)}


@pytest.mark.parametrize(
    "value", [None, [], "x", {"files": 1}, {"files": {}, "layout": -1, "analyser": "", "behind": []},
              {"files": {}, "layout": 1, "analyser": "", "behind": [[1]]},
              {"files": {}, "layout": 1, "analyser": "", "behind": [[1, 10**6], [2, 1]]},
              {"files": {}, "layout": 1, "behind": []}]
)  # fmt: skip
def test_what_cannot_be_read_of_it_in_a_manifest_is_no_index(value: object) -> None:
    fields = json.loads(encode_manifest(replace(decode_manifest(b'{"format": 1}'), messages=MessageFiles())))
    assert decode_manifest(json.dumps(fields).encode()).messages == MessageFiles()
    assert decode_manifest(json.dumps(fields | {"messages": value}).encode()).messages is None


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
versions = st.tuples(st.integers(1, 4), st.lists(texts, max_size=3), st.sampled_from(["talk", "talk", "gone"]))


@settings(deadline=None)
@given(runs=st.lists(st.lists(versions, min_size=1, max_size=3), min_size=1, max_size=4), most=st.integers(0, 3))
def test_it_finds_exactly_the_messages_that_the_records_hold(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[tuple[int, list[str], str]]], most: int
) -> None:
    place = Place(tmp_path_factory.mktemp("memory"), "folder")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_index, "MOST_BEHIND", most)
        revision = 0
        for changed in runs:
            records: list[Record] = []
            for key, comments, what in changed:
                revision += 1
                new = talk(key, *comments, revision=revision)
                records.append(new if what == "talk" else Tombstone(key, at(revision), "deleted"))
            remember(place.memory(), *records)
        memory = place.memory()
        held = [one for one in memory.state.every_record() if isinstance(one, Thread)]
        for word in WORDS:
            wanted = {
                (one.id, position)
                for one in held
                for position, text in enumerate([f"{one.title}\n{one.body}", *(c.text for c in one.comments)])
                if word in text.split()
            }
            assert said(memory, word) == wanted
    place.close()


def test_two_writers_lose_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_index, "MOST_BEHIND", 1)
    place = Place(tmp_path, "branch")
    remember(place.memory(), talk(1, "quince"), talk(2, "quince"))
    first, second = place.memory(), place.memory()
    first.stage(Changes(records=(talk(3, "quince"), talk(4, "quince"), talk(1, revision=1))))
    second.stage(Changes(records=(talk(5, "quince"), talk(2, "medlar", revision=1))))
    assert first.commit("first")
    assert second.commit("second")
    assert said(place.memory(), "quince medlar") == {(2, 1), (3, 1), (4, 1), (5, 1)}
    place.close()


def test_an_upgrade_that_reads_all_records_makes_one(place: Place) -> None:
    remember(place.memory(), talk(1, "quince"))
    manifest = json.loads(place.files()["manifest.json"])
    del manifest["messages"]
    place.put({"manifest.json": json.dumps(manifest | {"layout": 2}).encode()})
    memory = place.memory()
    remember(memory, talk(2, "quince"))
    assert place.memory().messages.exists
    assert said(place.memory(), "quince") == {(1, 1), (2, 1)}


def test_the_same_threads_make_the_same_files_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_index, "MOST_BEHIND", 1)
    found = []
    for name, keys in (("one", (1, 2, 3)), ("other", (3, 1, 2))):
        place = Place(tmp_path / name, "folder")
        memory = place.memory()
        for key in keys:
            memory.stage(Changes(records=(talk(key, "quince"),)))
        assert memory.commit("records")
        found.append({path: data for path, data in place.files().items() if path.startswith(MESSAGES)})
        place.close()
    assert found[0] == found[1] != {}
