"""Reads objects of a repository through long-lived `git cat-file` processes: starting one costs more than a read."""

from __future__ import annotations

import os
import re
import select
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.errors import StoreError
from bot.git.errors import GitError
from bot.git.process import GitProcess, finish, kill

MAX_OBJECT_BYTES = 100_000_000
"""Bytes of the largest object that is read; GitHub accepts no larger files."""

MAX_COMMIT_BYTES = 1_000_000
_BATCH_SIZE = 256
"""Names that are sent before the answers are read: as many as certainly fit into a pipe."""

_CHUNK_BYTES = 1 << 20
_TREE_LINE = re.compile(r"tree ([0-9a-f]{40})$", re.MULTILINE | re.ASCII)
_COMMITTER_TIME = re.compile(r"^committer .*> (\d{1,20}) [+-]\d{4}$", re.MULTILINE | re.ASCII)

Start = Callable[[Sequence[str]], GitProcess]
"""Starts git with these arguments, and with a pipe to its standard input."""

Explain = Callable[[Sequence[str], bytes | None], StoreError]
"""The error for git with these arguments, which ended with these remarks or (None) did not answer in time."""


@dataclass(frozen=True)
class Commit:
    """A commit's id, its tree's id, its message and its time: None if that is no valid date."""

    oid: str
    tree: str
    message: str
    at: datetime | None = None


class Objects:
    """The objects of a repository. Its processes start when first needed; `close` ends them."""

    def __init__(self, start: Start, explain: Explain, timeout: float) -> None:
        self._sizes = _BatchProcess(("cat-file", "--batch-check=%(objectsize)"), start, explain, timeout)
        self._contents = _BatchProcess(("cat-file", "--batch"), start, explain, timeout)

    def close(self) -> None:
        self._sizes.close()
        self._contents.close()

    def absent(self, oids: Iterable[str]) -> list[str]:
        """Return those ``oids`` that are not in this repository yet."""
        return [oid for oid, row in self._sizes.ask(list(oids)) if row.endswith(b" missing\n")]

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """Return the size in bytes of each named object that is here, without unpacking it."""
        return {name: int(row) for name, row in self._sizes.ask(list(names)) if row.strip().isdigit()}

    def read(self, names: Iterable[str], limit: int = MAX_OBJECT_BYTES) -> Iterator[tuple[str, bytes]]:
        """Yield (name, content) of each named object that is here, one in memory at a time.

        An object of more than ``limit`` bytes counts as absent and is not unpacked, as it may be tiny when compressed.
        """
        small = [name for name, size in self.sizes(names).items() if size <= limit]
        for name, head in self._contents.ask(small):
            if not head.endswith(b" missing\n"):
                content = self._contents.take(int(head.split()[2]))
                self._contents.take(1)  # the end of the line
                yield name, content

    def commit(self, rev: str) -> Commit:
        is_small = self.sizes([rev]).get(rev, MAX_OBJECT_BYTES) <= MAX_COMMIT_BYTES
        for _, head in self._contents.ask([rev] if is_small else []):  # to the end, as stopping early ends the process
            oid, kind, size = head.split()
            text = self._contents.take(int(size) + 1).decode("utf-8", "replace")
        headers, _, message = text[:-1].partition("\n\n") if is_small else ("", "", "")
        tree = _TREE_LINE.match(headers)
        if tree is None or kind != b"commit":
            raise GitError(f"git cat-file: {rev} is not a commit; delete the branch and start `run: rebuild`")
        return Commit(oid.decode(), tree[1], message, _commit_time(headers))


class _BatchProcess:
    """One process that answers each name with a line, which may be followed by content."""

    def __init__(self, args: Sequence[str], start: Start, explain: Explain, timeout: float) -> None:
        self._args, self._start, self._explain, self._timeout = args, start, explain, timeout
        self._process: GitProcess | None = None
        self._buffer = bytearray()
        self._is_busy = False
        self._stop: Callable[[], object] = lambda: None

    def ask(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield (name, line) for each name. If the caller stops early, the process is ended with its unread answers.

        Nothing else can be asked meanwhile.
        """
        assert not self._is_busy, "an answer is still being read"
        self._is_busy, is_done = True, False
        try:
            for at in range(0, len(names), _BATCH_SIZE):
                batch = names[at : at + _BATCH_SIZE]
                self._send("".join(f"{name}\n" for name in batch).encode())
                for name in batch:
                    yield name, self._read_line()
            is_done = True
        finally:
            self._is_busy = False
            if not is_done:
                self.close()

    def take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._read_more()
        with memoryview(self._buffer) as view:
            taken = bytes(view[:count])
        del self._buffer[:count]
        return taken

    def close(self) -> None:
        self._process = None
        self._buffer.clear()
        self._stop()

    def _send(self, request: bytes) -> None:
        if self._process is None:
            self._process = self._start(self._args)
            self._stop = weakref.finalize(self, kill, self._process)  # if the caller forgets to close it
        assert self._process.stdin
        try:
            os.write(self._process.stdin.fileno(), request)
        except BrokenPipeError:
            raise self._end_with_error(late=False) from None

    def _read_line(self) -> bytes:
        while (at := self._buffer.find(b"\n")) < 0:
            self._read_more()
        return self.take(at + 1)

    def _read_more(self) -> None:
        assert self._process
        assert self._process.stdout
        source = self._process.stdout.fileno()
        waiting = select.poll()
        waiting.register(source, select.POLLIN)
        if not waiting.poll(self._timeout * 1000):
            raise self._end_with_error(late=True)
        piece = os.read(source, _CHUNK_BYTES)
        if not piece:
            raise self._end_with_error(late=False)
        self._buffer += piece

    def _end_with_error(self, *, late: bool) -> StoreError:
        assert self._process
        process, self._process = self._process, None
        remarks = None
        with suppress(TimeoutError):
            remarks = None if late else finish(process, self._timeout).stderr
        self._stop()
        return self._explain(self._args, remarks)


def _commit_time(headers: str) -> datetime | None:
    match = _COMMITTER_TIME.search(headers)
    try:
        return datetime.fromtimestamp(int(match[1]), UTC) if match else None
    except (ValueError, OverflowError, OSError):
        return None
