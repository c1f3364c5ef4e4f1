"""A memory whose messages can be searched: the same index, made of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from bot.domain.thread import Thread
from bot.index import build_index, open_index
from bot.index.document import entry_of
from bot.index.protocol import IndexDocument
from bot.questions.passages import said_in
from bot.reading.analyzer import terms
from bot.reading.endings.outcome import outcome
from bot.recall.library import Library, WithoutWords


class Talking(WithoutWords):
    """A library with an index of the messages of ``threads`` in ``folder``."""

    def __init__(self, library: Library, threads: Iterable[Thread], folder: Path) -> None:
        super().__init__(library, ())
        folder.mkdir()
        build_index(folder, (one for thread in threads for one in _messages(thread)))
        self.search_messages = open_index(folder).search


def _messages(thread: Thread) -> Iterator[IndexDocument]:
    entry = entry_of(thread, outcome(thread))
    for place, one in enumerate(said_in(thread)):
        about = replace(entry, id=f"{thread.id}/{place}", author=one.author, created_at=one.at or entry.created_at)
        yield IndexDocument(about, terms(thread.title) if place == 0 else (), terms(one.text), has_role=False)
