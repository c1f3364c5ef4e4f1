"""Faults to inject into the fake GitHub, each for chosen requests and a chosen number of times."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field

KINDS = ("secondary403", "primary403", "429", "5xx", "drop", "dup", "slow", "401")


@dataclass
class Fault:
    """``after`` matching requests pass, then ``times`` of them fail (None: all). ``seconds`` is the delay of ``slow``
    and the ``Retry-After`` of ``secondary403`` and ``429`` (0: no such header)."""

    match: str
    kind: str
    times: int | None = 1
    after: int = 0
    seconds: float = 1.0
    seen: int = 0

    def takes(self, request: str) -> bool:
        if not fnmatch.fnmatchcase(request, self.match):
            return False
        self.seen += 1
        return self.seen > self.after and (self.times is None or self.seen <= self.after + self.times)


@dataclass
class FaultPlan:
    """What will go wrong. A request is ``"POST /repos/octocat/hello/issues/1/comments"``; a ``*`` spans slashes.

    ``drop`` closes the connection before anything happens; ``dup`` does what was asked and loses the reply;
    ``5xx`` is a 502 as its load balancer sends it; ``secondary403``, ``primary403`` and ``429`` are GitHub's three ways
    to say "slow down"; ``401`` is a token that has just died; ``slow`` answers rightly after ``seconds``.
    """

    faults: list[Fault] = field(default_factory=list)
    injected: list[tuple[str, str]] = field(default_factory=list)
    """Every fault that has struck: (kind, request)."""

    def add(self, match: str, kind: str, times: int | None = 1, after: int = 0, seconds: float = 1.0) -> Fault:
        if kind not in KINDS:
            raise ValueError(f"unknown fault {kind!r}: one of {', '.join(KINDS)}")
        fault = Fault(match, kind, times, after, seconds)
        self.faults.append(fault)
        return fault

    def clear(self) -> None:
        self.faults.clear()

    def strike(self, request: str) -> Fault | None:
        """The fault that this request meets, if any. Every matching fault counts the request; the first one wins."""
        struck = [fault for fault in self.faults if fault.takes(request)]
        if not struck:
            return None
        self.injected.append((struck[0].kind, request))
        return struck[0]
