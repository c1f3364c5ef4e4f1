"""An inbox with a day of an organisation in it, as the status page would find it; and inboxes that are hard to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.domain.organisation import Visibility
from bot.github.budget import Rate
from bot.github.errors import CORE, GRAPHQL
from bot.github.events import Event
from bot.server.model import WORKER_PREFIX, Delivery, Instant, RepositoryKey, Result, RunReport
from bot.server.options import ServerOptions
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.heartbeats import APP_HEARTBEAT
from tests.server.queues import FileInbox, begin_work, take_lease

NOW = 1_795_350_000_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
NOTHING = "nothing in memory is close enough"
OPTIONS = ServerOptions(data=Path("/"))
STAGES = (("look", 0.412), ("remember", 0.093), ("plan", 0.062), ("push", 1.31), ("say", 0.702))
REPOSITORIES = ("octo-org/compass", "octo-org/harbour", "octo-org/lighthouse", "octo-org/tide-tables")


@dataclass(frozen=True)
class PastDelivery:
    """A delivery: how many minutes ago it arrived, in which repository, and its outcome."""

    minutes: float
    repository_index: int
    event: Event
    said: str = ""
    reason: str = ""
    matches: tuple[tuple[int, float], ...] = ()
    state: str = "done"


def issue_opened(number: int) -> Event:
    return Event("issues", "opened", number)


def issue_commented(number: int) -> Event:
    return Event("issue_comment", "created", number, comment_id=9_000 + number)


FOUND = "memory has something to show"
AWAY = "GitHub did not answer (502): tried 8 times"
DAY = (
    PastDelivery(190, 3, Event("schedule"), "silent", "feedback was read"),
    PastDelivery(131, 0, issue_opened(4131), "created", FOUND, ((3870, 0.91), (2204, 0.64))),
    PastDelivery(118, 1, issue_opened(877), "silent", NOTHING),
    PastDelivery(96, 1, Event("push"), "silent", "the settings were read anew"),
    PastDelivery(83, 2, issue_opened(65), "failed", AWAY, state="dead"),
    PastDelivery(71, 0, issue_commented(4131), "updated", FOUND, ((3870, 0.93), (4002, 0.71), (2204, 0.61))),
    PastDelivery(52, 3, issue_opened(212), "silent", "it is locked"),
    PastDelivery(40, 1, issue_commented(877), "replied", "asked to search", ((640, 0.58),)),
    PastDelivery(22, 0, Event("issues", "edited", 4129), "unchanged", FOUND, ((1999, 0.77),)),
    PastDelivery(13, 2, issue_opened(66), "silent", NOTHING),
    PastDelivery(5, 3, issue_commented(212), "silent", "somebody switched it off on this issue"),
    PastDelivery(1.2, 1, issue_opened(878), "created", FOUND, ((512, 0.83),)),
)


class SampleInbox(FileInbox):
    """An inbox whose clock is set by the test."""

    def __init__(self, time: Instant = NOW) -> None:
        self.time = time
        super().__init__("mill-4711-c0ffee", self.current_time)

    def current_time(self) -> Instant:
        return self.time


def sample_inbox(
    past_deliveries: Sequence[PastDelivery] = DAY, repositories: Sequence[str] = REPOSITORIES
) -> SampleInbox:
    """These deliveries, each handled in its own run; then two that wait and one in progress. All checks pass."""
    inbox = SampleInbox()
    for index, delivery in enumerate(past_deliveries):
        received_at = NOW - round(delivery.minutes * MINUTE)
        _handle(inbox, _arrival(index, delivery, repositories, received_at), delivery)
    inbox.time = NOW
    in_progress = _arrival(900, PastDelivery(0, 2, issue_opened(67)), repositories, NOW - 12 * SECOND)
    inbox.put([in_progress])
    inbox.begin(take_lease(inbox, in_progress.repository))
    for index, seconds in enumerate((8, 3)):
        waiting = PastDelivery(0, index, issue_commented(4_131 if index == 0 else 879))
        inbox.put([_arrival(901 + index, waiting, repositories, NOW - seconds * SECOND)])
    ends = datetime.fromtimestamp((NOW + 38 * MINUTE) / 1000, UTC)
    inbox.limits.store(1, {CORE: Rate(4_739, 5_000, ends), GRAPHQL: Rate(4_992, 5_000, ends)})
    inbox.heartbeats.store(APP_HEARTBEAT, {"slug": "precedent", "ahead": 0})
    inbox.heartbeats.store(f"{WORKER_PREFIX}mill-4711-c0ffee", {"state": "working"})
    inbox.counters.add({("precedent_answers_total", ("silent", NOTHING)): 212})
    inbox.counters.add({("precedent_answers_total", ("silent", "somebody switched it off on this issue")): 17})
    inbox.counters.add({("precedent_answers_total", ("created", FOUND)): 31})
    return inbox


def _arrival(number: int, past: PastDelivery, repositories: Sequence[str], received_at: Instant) -> Delivery:
    repository = RepositoryKey(1, 17 + past.repository_index)
    guid = f"{number:08x}-cc78-11e3-81ab-4c9367dc0958"
    name = repositories[past.repository_index % len(repositories)]
    return Delivery(f"7:{guid}", repository, past.event, name, received_at, f"{number:016x}")


def _handle(inbox: SampleInbox, arrival: Delivery, past: PastDelivery) -> None:
    visibility = Visibility.PUBLIC if past.repository_index % 2 == 0 else Visibility.PRIVATE
    inbox.put([arrival])
    inbox.time = arrival.received_at + 340
    OrganisationRegister(inbox).store_repository(arrival.repository, arrival.name, visibility)
    work = begin_work(inbox, arrival.repository)
    inbox.time += 2_600
    (delivery,) = work.deliveries
    url = f"https://github.com/{arrival.name}/issues/{past.event.number}#issuecomment-1" if past.matches else ""
    result = Result(delivery.seq, "done", past.reason, said=past.said, url=url, matches=past.matches)
    if past.state == "dead":
        result = replace(result, state="dead")
    pushes = (inbox.time,) if past.said in ("created", "updated") else ()
    report = RunReport(STAGES, pushes, 7, 2, inbox.time, ("one page was skipped: it is too large",))
    inbox.end(work, [result], report)


def hostile_inbox() -> SampleInbox:
    """Names that are long, empty, right-to-left or code, and more deliveries than a page holds."""
    word = "x" * 90
    names = (f"{word}/{word}", "", "\u05d0" * 80, "<script>alert(1)</script>/\u202eback")
    long = "y" * 2_000
    deliveries = [PastDelivery(600 - n, n % 4, issue_opened(n), "silent", long if n == 3 else "") for n in range(60)]
    inbox = sample_inbox(deliveries, names)
    inbox.heartbeats.store(APP_HEARTBEAT, {"slug": "precedent", "ahead": 95, "fault": "z" * 300})
    return inbox


def empty_inbox() -> SampleInbox:
    """An inbox without deliveries."""
    return SampleInbox()
