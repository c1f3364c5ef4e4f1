"""The fake GitHub and the git server behind a gate that counts each request and can hold it for a kill."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.git_handler import WRITE_SERVICE, GitHandler
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.fakes.service import SentReply

ARRIVES, ANSWERED = "arrives", "answered"


@dataclass(slots=True)
class Step:
    """One request of a run. ``done``: it was served, whether or not the client got the answer."""

    name: str
    done: bool = False

    @property
    def is_push(self) -> bool:
        return self.name.startswith("POST") and self.name.endswith(WRITE_SERVICE)

    @property
    def is_comment(self) -> bool:
        method, _, path = self.name.partition(" ")
        writes = (method == "POST" and path.endswith("/comments")) or (method == "PATCH" and "/comments/" in path)
        return writes and "/issues/" in path


@dataclass
class Gate:
    """Counts the requests to both servers in the order of their arrival, from 1.

    When request ``number`` ``arrives`` (and is not carried out) or was ``answered`` (and the answer is lost), the
    server calls ``kill_run`` and holds its reply meanwhile. ``after_request`` is called after each request to GitHub.
    """

    steps: list[Step] = field(default_factory=list)
    number: int = 0
    moment: str = ""
    kill_run: Callable[[], None] = lambda: None
    after_request: Callable[[], None] = lambda: None
    served_at: dict[int, float] = field(default_factory=dict)
    _serving: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def begin(self, number: int = 0, moment: str = "", kill_run: Callable[[], None] = lambda: None) -> None:
        """Start counting the requests of a new run."""
        with self._changed:
            self.steps, self.served_at = [], {}
            self.number, self.moment, self.kill_run = number, moment, kill_run

    @contextmanager
    def serving(self, name: str) -> Iterator[tuple[int, Step]]:
        step = Step(name)
        with self._changed:
            self._serving += 1
            steps = self.steps
            steps.append(step)
            index = len(steps)
        try:
            yield index, step
        finally:
            with self._changed:
                self._serving -= 1
                if steps is self.steps:
                    self.served_at[index] = time.monotonic()
                self._changed.notify_all()

    def kill_if_due(self, index: int, moment: str) -> bool:
        """Call ``kill_run`` if this is the moment; returns whether it is."""
        if (index, moment) != (self.number, self.moment):
            return False
        self.number = 0
        self.kill_run()
        return True

    def wait_for(self, index: int, until: Callable[[], bool], seconds: float) -> bool:
        """Wait until this request was answered; False if ``until`` returns true before, or after so many seconds."""
        end = time.monotonic() + seconds
        with self._changed:
            while index not in self.served_at and not until() and time.monotonic() < end:
                self._changed.wait(0.02)
            return index in self.served_at

    def wait_until_idle(self, seconds: float = 20.0) -> bool:
        """Wait until no request is being served; False if that takes too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._serving, seconds)


class WatchedGitHub(FakeGitHub):
    """The fake GitHub behind a gate."""

    def __init__(self, full_name: str, now: str, *, gate: Gate, **options: Any) -> None:
        self.gate = gate
        super().__init__(full_name, now, **options)

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> SentReply:
        with self.gate.serving(f"{method} {target.partition('?')[0]}") as (index, step):
            if self.gate.kill_if_due(index, ARRIVES):
                return SentReply(502, {}, b"")  # the client is dead
            sent = super()._answer(method, target, headers, body)
            step.done = True
            self.gate.after_request()
            self.gate.kill_if_due(index, ANSWERED)
            return sent


class _Handler(GitHandler):
    """Serves one request through the gate of its server."""

    server: WatchedGit
    _current: tuple[int, Step] | None = None

    def _serve_behind_gate(self) -> None:
        path, _, query = self.path.partition("?")
        with self.server.gate.serving(f"{self.command} {path}{f' ({query})' if query else ''}") as (index, step):
            if self.server.gate.kill_if_due(index, ARRIVES):
                self.close_connection = True
                return
            self._current = index, step
            super()._serve()
            step.done = True
            self.server.gate.kill_if_due(index, ANSWERED)

    do_GET = do_POST = _serve_behind_gate  # noqa: N815 - the names that http.server calls

    def _run(self, path: str, query: str, lose: bool) -> None:
        gate, index = self.server.gate, self._current[0] if self._current else 0
        super()._run(path, query, lose or (index, ANSWERED) == (gate.number, gate.moment))

    def _break_connection(self) -> None:
        if self._current:
            index, self._current[1].done = self._current[0], True
            self.server.gate.kill_if_due(index, ANSWERED)
        self.close_connection = True
        with suppress(OSError):  # the client is dead
            super()._break_connection()


class WatchedGit(GitServer):
    """The git server behind a gate."""

    def __init__(self, folder: Path, gate: Gate) -> None:
        self.gate = gate
        super().__init__(folder)
        self.RequestHandlerClass = _Handler
