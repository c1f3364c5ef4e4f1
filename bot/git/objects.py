"""Objects of one repository, through `git cat-file` processes that stay: starting one costs more than its answer."""

from __future__ import annotations

import os
import re
import select
import subprocess
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.errors import StoreError
from bot.git.errors import GitError

LARGEST = 100_000_000
"""Bytes of one object that is read; GitHub takes no larger file."""

LARGEST_COMMIT = 1_000_000
_AT_ONCE = 256
"""Names that are asked for before their answers are read: as many as a pipe is sure to hold."""

_PIECE = 1 << 20
_WRITTEN = re.compile(r"^committer .*> (\d{1,20}) [+-]\d{4}$", re.MULTILINE | re.ASCII)

Start = Callable[[Sequence[str]], "subprocess.Popen[bytes]"]
"""Starts git with these arguments, with pipes to its standard input and from its standard output."""

Failed = Callable[["subprocess.Popen[bytes]", bool], StoreError]
"""What it means that such a process said no more, or (True) that it took too long; it is over after that."""


@dataclass(frozen=True)
class Commit:
    """A commit's id, its tree's id, its message and when it was written: None where no calendar knows that time."""

    oid: str
    tree: str
    message: str
    at: datetime | None = None


class Objects:
    """What lies in the repository. No process is started before something is asked; `close` ends them."""

    def __init__(self, start: Start, failed: Failed, timeout: float) -> None:
        self._sizes = _Asked(("cat-file", "--batch-check=%(objectsize)"), start, failed, timeout)
        self._contents = _Asked(("cat-file", "--batch"), start, failed, timeout)

    def close(self) -> None:
        self._sizes.close()
        self._contents.close()

    def absent(self, oids: Iterable[str]) -> list[str]:
        """Those of ``oids`` that are not in this repository yet."""
        return [oid for oid, row in self._sizes.ask(list(oids)) if row.endswith(b" missing\n")]

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """The size in bytes of each named object that is here, without unpacking it."""
        return {name: int(row) for name, row in self._sizes.ask(list(names)) if row.strip().isdigit()}

    def read(self, names: Iterable[str], limit: int = LARGEST) -> Iterator[tuple[str, bytes]]:
        """(name, content) of each named object that is here, one in memory at a time.

        One of more than ``limit`` bytes counts as absent, and is not unpacked: a thousandth of that may have come.
        """
        small = [name for name, size in self.sizes(names).items() if size <= limit]
        for name, head in self._contents.ask(small):
            if not head.endswith(b" missing\n"):
                content = self._contents.take(int(head.split()[2]) + 1)
                yield name, content[:-1]

    def commit(self, rev: str) -> Commit:
        """The commit that ``rev`` names."""
        if self.sizes([rev]).get(rev, LARGEST) <= LARGEST_COMMIT:
            for _, head in self._contents.ask([rev]):
                oid, kind, size = head.split()
                words = self._contents.take(int(size) + 1).decode("utf-8", "replace")
                if kind == b"commit":
                    about, _, message = words[:-1].partition("\n\n")
                    return Commit(oid.decode(), about[5:45], message, _written(about))
        raise GitError(f"git cat-file: {rev} is not a commit; delete the branch and run `mode: rebuild`")


class _Asked:
    """One process that answers each name with a line, and with content where that was taken up to its end."""

    def __init__(self, args: Sequence[str], start: Start, failed: Failed, timeout: float) -> None:
        self._args, self._start, self._failed, self._timeout = args, start, failed, timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._held = bytearray()
        self._is_asked = False
        self._stop: Callable[[], object] = lambda: None

    def ask(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """(name, line) of each; when the caller does not come to the end, what it left unread ends with the process.

        Nothing else can be asked before that.
        """
        assert not self._is_asked, "an answer is still being read"
        self._is_asked, is_done = True, False
        try:
            for at in range(0, len(names), _AT_ONCE):
                some = names[at : at + _AT_ONCE]
                self._send("".join(f"{name}\n" for name in some).encode())
                for name in some:
                    yield name, self._line()
            is_done = True
        finally:
            self._is_asked = False
            if not is_done:
                self.close()

    def take(self, count: int) -> bytes:
        while len(self._held) < count:
            self._more()
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken

    def close(self) -> None:
        self._process = None
        self._held.clear()
        self._stop()

    def _send(self, words: bytes) -> None:
        if self._process is None:
            self._process = self._start(self._args)
            self._stop = weakref.finalize(self, _stop, self._process)  # also for who forgets to close it
        assert self._process.stdin
        try:
            os.write(self._process.stdin.fileno(), words)
        except BrokenPipeError:
            raise self._end(late=False) from None

    def _line(self) -> bytes:
        while (at := self._held.find(b"\n")) < 0:
            self._more()
        return self.take(at + 1)

    def _more(self) -> None:
        assert self._process
        assert self._process.stdout
        source = self._process.stdout.fileno()
        waiting = select.poll()
        waiting.register(source, select.POLLIN)
        if not waiting.poll(self._timeout * 1000):
            raise self._end(late=True)
        piece = os.read(source, _PIECE)
        if not piece:
            raise self._end(late=False)
        self._held += piece

    def _end(self, *, late: bool) -> StoreError:
        assert self._process
        process, self._process = self._process, None
        return self._failed(process, late)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _written(about: str) -> datetime | None:
    found = _WRITTEN.search(about)
    try:
        return datetime.fromtimestamp(int(found[1]), UTC) if found else None
    except (ValueError, OverflowError, OSError):
        return None
