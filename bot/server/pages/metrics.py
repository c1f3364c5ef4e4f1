"""Exports the counters of all processes for Prometheus. No label names a repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from bot.github.errors import EVENT_LIMITS
from bot.server.model import Counters, Instant
from bot.server.organisation.guard import INDEX_UP, SEARCHES_METRIC
from bot.server.pages.health import obstacles
from bot.server.storage.counters import BUCKETS, DELIVERIES_METRIC
from bot.server.storage.heartbeats import live_workers
from bot.server.storage.inbox import Inbox

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
COUNTERS = {
    DELIVERIES_METRIC: (("event", "result"), "Deliveries by result"),
    "precedent_runs_total": (("result",), "Runs, each for the deliveries of one repository"),
    "precedent_answers_total": (("action", "reason"), "Actions taken for deliveries, and the reasons"),
    "precedent_pushes_total": ((), "Pushes of memory branches"),
    SEARCHES_METRIC: (("result",), "Searches of the organisation's index by result"),
}
"""Name → its labels and help text."""

STAGES_METRIC = "precedent_stage_seconds"
RECEIVE_METRIC = "precedent_receive_seconds"
RECEIVE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds, in seconds, of the histogram of answers to deliveries."""


disable_created_metrics()  # type: ignore[no-untyped-call]


class ReceiveHistogram(Histogram):
    """How long this process took to answer deliveries."""

    def __init__(self) -> None:
        super().__init__(RECEIVE_METRIC, "Time until a delivery was answered", buckets=RECEIVE_BUCKETS, registry=None)


def render(inbox: Inbox, answered: ReceiveHistogram, now: Instant, *, for_all: bool = True) -> bytes:
    """Render the metrics of this process and, with ``for_all``, of all. Raises WorldError without the database.

    Only one process per database exports those of all, so that sums over processes count nothing twice.
    """
    registry = CollectorRegistry(auto_describe=False)
    leader_gauge = _gauge(
        "tells_for_all", "1 if this process exports the metrics of all processes, else 0", int(for_all)
    )
    registry.register(_Page([*(_families(inbox, now) if for_all else ()), leader_gauge, *answered.collect()]))
    return generate_latest(registry)


class _Page(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def _families(inbox: Inbox, now: Instant) -> Iterator[Metric]:
    totals = inbox.counters.read()
    yield from (_counter(name, totals) for name in COUNTERS)
    yield _stage_histogram(totals)
    jobs = GaugeMetricFamily("precedent_jobs", "Deliveries in each state, counted up to 100,000", labels=["state"])
    for state, count in inbox.counts().items():
        jobs.add_metric([state], count)
    yield jobs
    oldest = inbox.oldest_waiting()
    yield _gauge("oldest_waiting_seconds", "Age of the oldest due delivery", (now - oldest) / 1000 if oldest else 0)
    heartbeats = inbox.heartbeats.all()
    yield _gauge("workers", "Running workers", len(live_workers(heartbeats, now)))
    yield _gauge(
        "blocked_workers", "Running workers that begin no runs for want of disk", len(obstacles(heartbeats, now))
    )
    yield _gauge(
        "paused_installations",
        "Installations that wait for a rate limit to end",
        len(inbox.limits.pauses(EVENT_LIMITS)),
    )
    left = GaugeMetricFamily(
        "precedent_api_requests_left",
        "Fewest requests (core) or points (graphql) of GitHub's API left in this hour for any installation",
        labels=["resource"],
    )
    for scarcest in inbox.limits.scarcest():
        left.add_metric([scarcest.resource], scarcest.left)
    yield left
    yield from _organisation_gauges(inbox, now)


def _organisation_gauges(inbox: Inbox, now: Instant) -> Iterator[Metric]:
    """The organisation's index as its workers see it; nothing without one."""
    backlog = inbox.changes.backlog()
    if backlog is None:
        return
    count, oldest = backlog
    heartbeats = inbox.heartbeats.all()
    states = [int(note.get(INDEX_UP, 1)) for note in live_workers(heartbeats, now)]
    yield _gauge("organisation_up", "1 if the organisation's index answers all workers, else 0", min(states, default=1))
    yield _gauge("organisation_waiting", "Changes waiting to be applied to the organisation's index", count)
    seconds = (now - oldest) / 1000 if oldest else 0
    yield _gauge("organisation_oldest_seconds", "Age of the oldest change waiting for it", seconds)


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"precedent_{name}", about, value=value)


def _counter(name: str, totals: Counters) -> Metric:
    labels, about = COUNTERS[name]
    family = CounterMetricFamily(name, about, labels=labels)
    for (key, values), amount in sorted(totals.items()):
        if key == name and len(values) == len(labels):
            family.add_metric(values, amount)
    return family


def _stage_histogram(totals: Counters) -> Metric:
    family = HistogramMetricFamily(STAGES_METRIC, "Duration of the stages of runs", labels=["stage"])
    sums = {
        values[0]: amount
        for (key, values), amount in totals.items()
        if key == f"{STAGES_METRIC}_sum" and len(values) == 1
    }
    for stage, seconds in sorted(sums.items()):
        counts = {
            values[1]: int(amount)
            for (key, values), amount in totals.items()
            if key == f"{STAGES_METRIC}_bucket" and len(values) == 2 and values[0] == stage
        }
        family.add_metric([stage], _cumulative_buckets(counts, counts.get("+Inf", 0), BUCKETS), seconds)
    return family


def _cumulative_buckets(counts: Mapping[str, int], overflow: int, bounds: Sequence[float]) -> list[tuple[str, float]]:
    """Cumulative buckets, as Prometheus expects them, from separate counts."""
    separate = [*(counts.get(str(end), 0) for end in bounds), overflow]
    return list(zip([*map(str, bounds), "+Inf"], map(float, accumulate(separate)), strict=True))
