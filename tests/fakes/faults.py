"""Faults to inject into the fakes of GitHub and git, each for chosen requests and a chosen number of times."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field

KINDS = (
    "secondary403", "primary403", "429", "limit200", "secondary200",
    "401", "permission", "locked", "archived", "limited", "cap",
    "404", "410", "issues-off", "301", "422", "500", "5xx", "503", "504",
    "drop", "dup", "slow", "html", "cut", "empty",
)  # fmt: skip

TAKE_EFFECT = frozenset({"dup", "slow", "cut"})
"""Faults after which the request has taken effect all the same."""

HOURLY = frozenset({"primary403", "limit200"})
STOP_FAULTS = HOURLY | {"401", "secondary403", "429", "secondary200"}
"""Faults after which a client should send no more requests, of that kind or at all."""


@dataclass
class Fault:
    """``after`` matching requests pass, then ``times`` of them fail (None: all). ``seconds`` is the delay of ``slow``
    and the ``Retry-After`` of the limits (0: no such header). ``to`` is where ``301`` leads: ``owner/name#N``, or
    nothing for the same repository by its number."""

    match: str
    kind: str
    times: int | None = 1
    after: int = 0
    seconds: float = 1.0
    to: str = ""
    seen: int = 0

    def applies_to(self, request: str) -> bool:
        if not fnmatch.fnmatchcase(request, self.match):
            return False
        self.seen += 1
        return self.seen > self.after and (self.times is None or self.seen <= self.after + self.times)


@dataclass
class FaultPlan:
    """What will go wrong. A request is ``"POST /repos/octocat/hello/issues/1/comments"``; a ``*`` matches slashes too.

    ``drop`` closes the connection before anything happens; ``dup`` carries out the request and loses the reply;
    ``slow`` answers correctly after ``seconds``; ``cut`` breaks off in the middle of the correct answer's JSON;
    ``html`` is the page of a proxy with status 200; ``empty`` is a GraphQL list without its issues. The messages and
    headers of the others are in `fault_replies`.
    """

    faults: list[Fault] = field(default_factory=list)
    injected: list[tuple[str, str]] = field(default_factory=list)
    """Every fault that struck: (kind, request)."""

    def add(
        self, match: str, kind: str, times: int | None = 1, after: int = 0, seconds: float = 1.0, to: str = ""
    ) -> Fault:
        if kind not in KINDS:
            raise ValueError(f"unknown fault {kind!r}: one of {', '.join(KINDS)}")
        fault = Fault(match, kind, times, after, seconds, to)
        self.faults.append(fault)
        return fault

    def clear(self) -> None:
        self.faults.clear()

    def strike(self, request: str) -> Fault | None:
        """The fault that strikes this request, if any. Every matching fault counts the request; the first one wins."""
        matching = [fault for fault in self.faults if fault.applies_to(request)]
        if not matching:
            return None
        self.injected.append((matching[0].kind, request))
        return matching[0]
