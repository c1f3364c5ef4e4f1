"""The five entry points at which a question can be asked, on one memory, in this process and without a network."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bot.cli.main import main
from bot.domain.card import CardId
from bot.domain.thread import Message, Thread
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ToolContext
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.commands import plan_search
from bot.pipeline.requests import request_of
from bot.pipeline.tools import Tools
from bot.recall.mentions import canonical_chain
from tests.fakes.github import FakeGitHub
from tests.pipeline.sample_repository import tools_for

REPO = "octo-org/kettle"
ELSEWHERE = 900_000_001
"""An issue that no memory has, on which questions are asked unless the table names another."""

MAX_REPLY = 5
"""Threads in a reply."""


class Found(NamedTuple):
    """The threads that an entry point lists, best first. ``error``: why it lists none."""

    ids: tuple[CardId, ...] = ()
    error: str = ""


Answers = Mapping[str, Found | None]
"""What each entry point lists, by its name; None where it does not take the words for a question."""

TERMINAL = ("text", "json", "mcp")
"""The entry points that list ten threads of any kind."""

REPLIES = ("command", "question")
"""The entry points that reply to a comment, with threads of GitHub only, but never the one that they stand on."""


@dataclass(frozen=True)
class Entrances:
    """The entry points to the memory in the folder ``store``.

    ``kept`` is the same memory, open; ``run`` is what a run of the bot uses.
    """

    store: Path
    kept: Memory
    run: Tools

    def ask(self, query: str, on: int = ELSEWHERE) -> dict[str, Found | None]:
        """Ask at each entry point; the comments stand on the issue ``on``."""
        with contextlib.chdir(self.store):
            return {
                "text": self._command_line(query),
                "json": self._command_line(query, "--json"),
                "mcp": self._tool(query),
                "command": self._reply(f"/precedent search {query}", on),
                "question": self._reply(query, on),
            }

    def reply_can_show(self, key: CardId, on: int) -> bool:
        """Whether a reply on the issue ``on`` may list this thread."""
        record = self.kept.records([key]).get(key)
        return isinstance(record, Thread) and isinstance(key, int) and record.kind.is_on_github and key != on

    def in_reply(self, keys: Iterable[CardId], on: int) -> tuple[CardId, ...]:
        """These threads as a reply on the issue ``on`` lists them: duplicates as their originals, each once."""
        originals = (canonical_chain(key, self.kept, None, REPO)[-1] for key in keys if self.reply_can_show(key, on))
        return tuple(dict.fromkeys(key for key in originals if key != on))

    def _command_line(self, query: str, *options: str) -> Found:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(["search", "--store", str(self.store), *options, "--", query])
            except SystemExit as end:
                code = int(end.code or 0)
        if code > 1:
            return Found(error=err.getvalue().strip())
        if options:
            return Found(tuple(row["id"] for row in json.loads(out.getvalue())))
        return Found(tuple(_key(line.partition("\t")[0]) for line in out.getvalue().splitlines()))

    def _tool(self, query: str) -> Found:
        result = answer(ToolContext(MemoryOptions(self.store, store=self.store)), "search_memories", {"query": query})
        if result.failed:
            return Found(error=result.text)
        hits = result.data["hits"]
        assert isinstance(hits, list)
        return Found(tuple(hit["id"] for hit in hits))

    def _reply(self, text: str, on: int) -> Found | None:
        """The threads of the reply to a comment; None if the comment asks the bot nothing."""
        stored = self.kept.whole_records([on]).get(on)
        thread = (
            stored if isinstance(stored, Thread) else Thread(on, "Zyx", "Wvu tsr qpo.", "octocat", self.run.started)
        )
        comment = Message("octocat", "NONE", self.run.started, text, id=1)
        request = request_of(replace(thread, comments=(*thread.comments, comment)), 1, self.run)
        if request is None:
            return None
        plan = plan_search(request, self.run)
        shown = [mention.id for mention in plan.context.mentioned if not mention.missing]
        for key in shown:
            assert f"/{key})" in plan.text, f"the reply lacks a link to {key}"
        return Found(tuple(shown))


def _key(shown: str) -> CardId:
    return int(shown) if shown.isascii() and shown.isdigit() else shown


@contextlib.contextmanager
def opened(store: Path) -> Iterator[Entrances]:
    """The entry points to a folder with a memory, which `precedent import` has filled."""
    memory = Memory(FolderStore(store)).open()
    try:
        with FakeGitHub(REPO, validate=False) as github:
            yield Entrances(store, memory, tools_for(github, memory, started=datetime.now(UTC)))
    finally:
        memory.close()


def import_archive(archive: Path, store: Path) -> None:
    """Fill a folder with the memory of an archive, as `precedent import` does."""
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["import", str(archive), "--store", str(store), "--repo", REPO, "--no-learn", "--json"]) == 0
