"""A memory gains the vectors of a text model step by step, and a search uses what is there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from bot.domain.changes import Changes
from bot.errors import WorldError
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.model_store import Embedder
from tests.memory.samples import at, issue

THREADS = tuple(issue(number, created_at=at(number)) for number in range(1, 7))


class WordCounter:
    """A text model whose vectors count words. It knows no text with a Chinese character, and stops after a while."""

    def __init__(self, fingerprint: str = "counter", patience: float = math.inf) -> None:
        self.fingerprint, self.patience = fingerprint, patience
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        self.texts += texts
        return [bytes(3) if "中" in text else bytes([1, len(text.split()), 3]) for text in texts]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with six threads, read without a model."""
    with closing(Memory(FolderStore(tmp_path / "store")).open()) as memory:
        memory.stage(Changes(records=THREADS))
        memory.commit("Import")
    return tmp_path / "store"


def opened(folder: Path, embedder: Embedder | None) -> Memory:
    return Memory(FolderStore(folder), embedder=embedder).open()


def read_for(folder: Path, embedder: Embedder, seconds: float) -> tuple[int, int]:
    with closing(opened(folder, embedder)) as memory:
        result = memory.read_with_model(monotonic() + seconds)
        memory.commit("Read")
        return result


def test_what_was_read_without_the_model_gains_vectors_in_time(folder: Path) -> None:
    assert read_for(folder, WordCounter(), -1) == (0, 6)
    assert read_for(folder, WordCounter(), 60) == (6, 0)
    again = WordCounter()
    assert read_for(folder, again, 60) == (0, 0)
    assert again.texts == []
    with closing(opened(folder, again)) as memory:
        assert memory.index.stored_vectors().keys() == {thread.id for thread in THREADS}
        assert memory.state.manifest.embedder == "counter"


def test_the_newest_are_read_first_and_the_rest_later(folder: Path) -> None:
    with closing(opened(folder, WordCounter())) as memory:
        unread = memory.index.unread()
        assert unread == [6, 5, 4, 3, 2, 1]
        assert memory.index.read_with_model(unread[:2], math.inf) == unread[:2]
        memory.commit("Two")
    with closing(opened(folder, WordCounter())) as memory:
        assert memory.index.stored_vectors().keys() == set(unread[:2])
        assert memory.index.unread() == unread[2:]


def test_a_new_thread_is_read_at_once_and_the_old_ones_are_not(folder: Path) -> None:
    model = WordCounter()
    with closing(opened(folder, model)) as memory:
        memory.stage(Changes(records=[issue(9)]))
        memory.commit("One more")
        assert memory.index.stored_vectors().keys() == {9}
    assert {text.splitlines()[0] for text in model.texts} == {issue(9).title}


def test_a_thread_in_a_language_that_the_model_does_not_know_is_read_once(folder: Path) -> None:
    with closing(opened(folder, WordCounter())) as memory:
        memory.stage(Changes(records=[issue(9, body="中文")]))
        memory.commit("Chinese")
        assert memory.index.stored_vectors() == {9: b""}
        assert 9 not in memory.index.unread()


def test_vectors_of_another_model_are_not_used_and_replaced_in_time(folder: Path) -> None:
    read_for(folder, WordCounter(), 60)
    other = WordCounter("other")
    with closing(opened(folder, other)) as memory:
        assert memory.vector(THREADS[0]) == b""
        memory.stage(Changes(records=[issue(9)]))
        memory.commit("One more")
        assert (other.texts, memory.state.manifest.embedder) == ([], "counter")
    assert read_for(folder, other, 60) == (7, 0)
    with closing(opened(folder, other)) as memory:
        assert memory.state.manifest.embedder == "other"
        assert len(memory.index.stored_vectors()) == 7


def test_a_writer_without_the_model_leaves_what_it_changes_for_later(folder: Path) -> None:
    read_for(folder, WordCounter(), 60)
    with closing(opened(folder, None)) as memory:
        memory.stage(Changes(records=[issue(3, revision=5)]))
        memory.commit("Changed")
        assert memory.state.manifest.embedder == "counter"
    assert read_for(folder, WordCounter(), 60) == (1, 0)


def test_a_damaged_index_is_rebuilt_without_reading_everything_with_the_model(folder: Path) -> None:
    read_for(folder, WordCounter(), 60)
    for path in (folder / "index").iterdir():
        path.write_bytes(b"damaged") if path.is_file() else None
    model = WordCounter()
    with closing(opened(folder, model)) as memory:
        assert memory.issues == 6
        assert (model.texts, len(memory.index.unread())) == ([], 6)


def test_another_writer_in_between_costs_no_second_reading(folder: Path) -> None:
    model = WordCounter()
    with closing(opened(folder, model)) as memory:
        assert memory.read_with_model(math.inf) == (6, 0)
        with closing(opened(folder, None)) as other:
            other.stage(Changes(records=[issue(9)]))
            other.commit("Meanwhile")
        read = len(model.texts)
        memory.commit("Read")
        assert (len(model.texts), memory.index.unread()) == (read, [9])


def test_a_rebuild_keeps_its_vectors_when_another_writer_was_faster(folder: Path) -> None:
    model = WordCounter()
    with closing(opened(folder, model)) as memory:
        memory.rebuild_index(until=math.inf)
        with closing(opened(folder, None)) as other:
            other.stage(Changes(records=[issue(9)]))
            other.commit("Meanwhile")
        read = len(model.texts)
        memory.commit("Rebuild")
        assert (len(model.texts), memory.index.unread()) == (read, [9])
        assert memory.state.manifest.embedder == "counter"


class BrokenModel(WordCounter):
    """A text model that fails on every text."""

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        raise WorldError("damaged: fetch it again")


def test_a_new_model_that_fails_costs_no_vectors(folder: Path) -> None:
    read_for(folder, WordCounter(), 60)
    with closing(opened(folder, BrokenModel("new"))) as memory:
        assert memory.read_with_model(math.inf) == (0, 0)
        memory.commit("Nothing")
        assert any("fetch it again" in note for note in memory.notes)
    with closing(opened(folder, WordCounter())) as memory:
        assert len(memory.index.stored_vectors()) == 6


class WideModel(WordCounter):
    """A text model with longer vectors."""

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        return [vector + b"\1" for vector in super().encode(texts)]


def test_vectors_of_another_length_than_the_manifest_says_are_repaired(folder: Path) -> None:
    read_for(folder, WordCounter("wide"), 60)
    with closing(opened(folder, WideModel("wide"))) as memory:
        memory.stage(Changes(records=[issue(9)]))
        memory.commit("One more")
        assert (memory.issues, memory.index.stored_vectors(), len(memory.index.unread())) == (7, {}, 7)


def test_the_manifest_names_the_model_after_a_repair_while_it_reads(folder: Path) -> None:
    read_for(folder, WordCounter(), -1)
    for path in (folder / "index").iterdir():
        path.write_bytes(b"damaged") if path.is_file() else None
    assert read_for(folder, WordCounter(), 60) == (6, 0)
    with closing(opened(folder, WordCounter("other"))) as memory:
        assert (memory.state.manifest.embedder, memory.index.has_foreign_vectors) == ("counter", True)
