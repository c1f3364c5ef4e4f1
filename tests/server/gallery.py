"""A ledger with a day of an organisation in it, as the status page would find it; and ones that are hard to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.github.budget import Rate
from bot.github.errors import CORE, GRAPHQL
from bot.github.events import Event
from bot.server.health import APP
from bot.server.model import WORKER, Arrival, Instant, RepositoryKey, Result, RunReport
from bot.server.options import ServerOptions
from tests.server.queues import FileInbox, leased

NOW = 1_795_350_000_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
NOTHING = "nothing in memory is close enough"
OPTIONS = ServerOptions(data=Path("/"))
STAGES = (("look", 0.412), ("remember", 0.093), ("ask", 0.058), ("plan", 0.004), ("push", 1.31), ("say", 0.702))
REPOSITORIES = ("octo-org/compass", "octo-org/harbour", "octo-org/lighthouse", "octo-org/tide-tables")


@dataclass(frozen=True)
class Past:
    """Something that came: minutes ago, in which repository, and what became of it."""

    minutes: float
    place: int
    event: Event
    said: str = ""
    reason: str = ""
    matches: tuple[tuple[int, float], ...] = ()
    state: str = "done"


def opened(number: int) -> Event:
    return Event("issues", "opened", number)


def commented(number: int) -> Event:
    return Event("issue_comment", "created", number, comment_id=9_000 + number)


FOUND = "memory has something to tell"
AWAY = "GitHub did not answer (502): tried 8 times"
DAY = (
    Past(190, 3, Event("schedule"), "silent", "feedback was read"),
    Past(131, 0, opened(4131), "created", FOUND, ((3870, 0.91), (2204, 0.64))),
    Past(118, 1, opened(877), "silent", NOTHING),
    Past(96, 1, Event("push"), "silent", "the settings were read anew"),
    Past(83, 2, opened(65), "failed", AWAY, state="dead"),
    Past(71, 0, commented(4131), "updated", FOUND, ((3870, 0.93), (4002, 0.71), (2204, 0.61))),
    Past(52, 3, opened(212), "silent", "it is locked"),
    Past(40, 1, commented(877), "replied", "asked to search", ((640, 0.58),)),
    Past(22, 0, Event("issues", "edited", 4129), "unchanged", FOUND, ((1999, 0.77),)),
    Past(13, 2, opened(66), "silent", NOTHING),
    Past(5, 3, commented(212), "silent", "somebody switched it off on this issue"),
    Past(1.2, 1, opened(878), "created", FOUND, ((512, 0.83),)),
)


class Days(FileInbox):
    """A ledger whose clock is set."""

    def __init__(self, time: Instant = NOW) -> None:
        self.time = time
        super().__init__("mill-4711-c0ffee", self.set_time)

    def set_time(self) -> Instant:
        return self.time


def a_day(days: Sequence[Past] = DAY, repositories: Sequence[str] = REPOSITORIES) -> Days:
    """These deliveries, each handled in a run; then two that wait and one at work; all checks are well."""
    ledger = Days()
    for place, past in enumerate(days):
        came = NOW - round(past.minutes * MINUTE)
        _handle(ledger, _arrival(place, past, repositories, came), past)
    ledger.time = NOW
    working = _arrival(900, Past(0, 2, opened(67)), repositories, NOW - 12 * SECOND)
    ledger.put([working])
    ledger.begin(leased(ledger, working.repository))
    for place, seconds in enumerate((8, 3)):
        waiting = Past(0, place, commented(4_131 if place == 0 else 879))
        ledger.put([_arrival(901 + place, waiting, repositories, NOW - seconds * SECOND)])
    ends = datetime.fromtimestamp((NOW + 38 * MINUTE) / 1000, UTC)
    ledger.budgets().store(1, {CORE: Rate(4_739, 5_000, ends), GRAPHQL: Rate(4_992, 5_000, ends)})
    ledger.heartbeat(APP, {"slug": "precedent", "ahead": 0})
    ledger.heartbeat(f"{WORKER}mill-4711-c0ffee", {"state": "working"})
    ledger.count_up({("precedent_answers_total", ("silent", NOTHING)): 212})
    ledger.count_up({("precedent_answers_total", ("silent", "somebody switched it off on this issue")): 17})
    ledger.count_up({("precedent_answers_total", ("created", FOUND)): 31})
    return ledger


def _arrival(place: int, past: Past, repositories: Sequence[str], came: Instant) -> Arrival:
    repository = RepositoryKey(1, 17 + past.place)
    guid = f"{place:08x}-cc78-11e3-81ab-4c9367dc0958"
    name = repositories[past.place % len(repositories)]
    return Arrival(f"7:{guid}", repository, past.event, name, past.place % 2 == 1, came, f"{place:016x}")


def _handle(ledger: Days, arrival: Arrival, past: Past) -> None:
    ledger.put([arrival])
    ledger.time = arrival.received_at + 340
    ledger.installations().store_repository(arrival.repository, arrival.name, private=arrival.private)
    work = ledger.begin(leased(ledger, arrival.repository))
    assert work is not None
    ledger.time += 2_600
    (delivery,) = work.deliveries
    url = f"https://github.com/{arrival.name}/issues/{past.event.number}#issuecomment-1" if past.matches else ""
    result = Result(delivery.seq, "done", past.reason, said=past.said, url=url, matches=past.matches)
    if past.state == "dead":
        result = replace(result, state="dead")
    pushes = (ledger.time,) if past.said in ("created", "updated") else ()
    told = RunReport(STAGES, pushes, 7, 2, ledger.time, ("one page was skipped: it is too large",))
    ledger.end(work, [result], told)


def hostile() -> Days:
    """Names that are long, empty, from right to left, or code; more deliveries than a page holds."""
    word = "x" * 90
    names = (f"{word}/{word}", "", "\u05d0" * 80, "<script>alert(1)</script>/\u202eback")
    long = "y" * 2_000
    days = [Past(600 - n, n % 4, opened(n), "silent", long if n == 3 else "") for n in range(60)]
    ledger = a_day(days, names)
    ledger.heartbeat(APP, {"slug": "precedent", "ahead": 95, "fault": "z" * 300})
    return ledger


def empty() -> Days:
    """Nothing yet."""
    return Days()
