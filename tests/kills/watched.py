"""The fake GitHub and the git server, with a gate at which each request is counted and may be held for a kill."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.git_handler import WRITE_SERVICE, GitHandler
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.fakes.service import Sent

ARRIVES, ANSWERED = "arrives", "answered"


@dataclass(slots=True)
class Step:
    """One request of a run. ``done``: it was served, whether or not anybody heard the answer."""

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

    At request ``number``, when it ``arrives`` (it is not carried out then) or was ``answered`` (nobody hears it), the
    server calls ``strike`` and holds its reply meanwhile. ``look`` is called after each request to GitHub.
    """

    steps: list[Step] = field(default_factory=list)
    number: int = 0
    moment: str = ""
    strike: Callable[[], None] = lambda: None
    look: Callable[[], None] = lambda: None
    passed: dict[int, float] = field(default_factory=dict)
    _serving: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def begin(self, number: int = 0, moment: str = "", strike: Callable[[], None] = lambda: None) -> None:
        """A new run: nothing has arrived."""
        with self._changed:
            self.steps, self.passed = [], {}
            self.number, self.moment, self.strike = number, moment, strike

    @contextmanager
    def serving(self, name: str) -> Iterator[tuple[int, Step]]:
        step = Step(name)
        with self._changed:
            self._serving += 1
            steps = self.steps
            steps.append(step)
            place = len(steps)
        try:
            yield place, step
        finally:
            with self._changed:
                self._serving -= 1
                if steps is self.steps:
                    self.passed[place] = time.monotonic()
                self._changed.notify_all()

    def strikes(self, place: int, moment: str) -> bool:
        """Whether this is the moment; if so, ``strike`` was called."""
        if (place, moment) != (self.number, self.moment):
            return False
        self.number = 0
        self.strike()
        return True

    def wait_for(self, place: int, until: Callable[[], bool], seconds: float) -> bool:
        """Wait until this request was answered; False when ``until`` says that it will not be, or time is over."""
        end = time.monotonic() + seconds
        with self._changed:
            while place not in self.passed and not until() and time.monotonic() < end:
                self._changed.wait(0.02)
            return place in self.passed

    def rest(self, seconds: float = 20.0) -> bool:
        """Wait until nothing is being served; False when that takes too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._serving, seconds)


class WatchedGitHub(FakeGitHub):
    """The fake GitHub behind a gate."""

    def __init__(self, full_name: str, now: str, site: str, gate: Gate) -> None:
        self.gate = gate
        super().__init__(full_name, now, validate=False, site=site)

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Sent:
        with self.gate.serving(f"{method} {target.partition('?')[0]}") as (place, step):
            if self.gate.strikes(place, ARRIVES):
                return Sent(502, {}, b"")  # nobody is there to hear it
            sent = super()._answer(method, target, headers, body)
            step.done = True
            self.gate.look()
            self.gate.strikes(place, ANSWERED)
            return sent


class _Handler(GitHandler):
    """Serves one request behind the gate of its server."""

    server: WatchedGit
    _held: tuple[int, Step] | None = None

    def _watch(self) -> None:
        path, _, query = self.path.partition("?")
        with self.server.gate.serving(f"{self.command} {path}{f' ({query})' if query else ''}") as (place, step):
            if self.server.gate.strikes(place, ARRIVES):
                self.close_connection = True
                return
            self._held = place, step
            super()._serve()
            step.done = True
            self.server.gate.strikes(place, ANSWERED)

    do_GET = do_POST = _watch  # noqa: N815 - the names that http.server calls

    def _run(self, path: str, query: str, lose: bool) -> None:
        gate, place = self.server.gate, self._held[0] if self._held else 0
        super()._run(path, query, lose or (place, ANSWERED) == (gate.number, gate.moment))

    def _break_off(self) -> None:
        if self._held:
            place, self._held[1].done = self._held[0], True
            self.server.gate.strikes(place, ANSWERED)
        self.close_connection = True
        with suppress(OSError):  # the client is dead
            super()._break_off()


class WatchedGit(GitServer):
    """The git server behind a gate."""

    def __init__(self, folder: Path, gate: Gate) -> None:
        self.gate = gate
        super().__init__(folder)
        self.RequestHandlerClass = _Handler
