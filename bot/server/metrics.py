"""The counters of all processes as Prometheus reads them; no label names a repository. Only it imports its client."""

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

from bot.server.health import alive
from bot.server.inbox import Inbox
from bot.server.inbox_rows import BUCKETS
from bot.server.model import HOUR, Instant, Tallies

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
DELIVERIES = "precedent_deliveries_total"
"""Labels: event, and what became of it: stored, repeated, dropped, or refused with a status."""

COUNTERS = {
    DELIVERIES: (("event", "result"), "Deliveries by how they were answered"),
    "precedent_runs_total": (("result",), "Runs, each for the deliveries of one repository"),
    "precedent_turns_total": (("result",), "The former name of precedent_runs_total"),
    "precedent_answers_total": (("action", "reason"), "What was done about deliveries, and why"),
    "precedent_pushes_total": ((), "Pushes of memory branches"),
}
"""Name → its labels and what it counts."""

FORMER = {"precedent_runs_total": "precedent_turns_total"}
"""A counter → the name that it is stored under, under which it is shown too for one release."""

STAGES = "precedent_stage_seconds"
RECEIVED = "precedent_receive_seconds"
QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0)
"""Upper ends in seconds of the histogram of answers to deliveries."""


disable_created_metrics()  # type: ignore[no-untyped-call]


class Answered(Histogram):
    """How long answers to deliveries took, in this process."""

    def __init__(self) -> None:
        super().__init__(RECEIVED, "Time until a delivery was answered", buckets=QUICK, registry=None)


def text(inbox: Inbox, answered: Answered, now: Instant, *, for_all: bool = True) -> bytes:
    """The page of metrics: of this process, and ``for_all`` processes together. Raises WorldError when the database is
    away.

    One process of those that share a database tells for all, so that sums over processes count nothing twice.
    """
    registry = CollectorRegistry(auto_describe=False)
    tells = _gauge("tells_for_all", "1 if this process reports for all processes, else 0", int(for_all))
    registry.register(_Page([*(_families(inbox, now) if for_all else ()), tells, *answered.collect()]))
    return generate_latest(registry)


class _Page(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def _families(inbox: Inbox, now: Instant) -> Iterator[Metric]:
    tallies = inbox.counters()
    yield from (_counter(name, tallies) for name in COUNTERS)
    yield _stages(tallies)
    jobs = GaugeMetricFamily("precedent_jobs", "Deliveries in each state, counted up to 100,000", labels=["state"])
    for state, count in inbox.counts().items():
        jobs.add_metric([state], count)
    yield jobs
    oldest = inbox.oldest_waiting()
    yield _gauge(
        "oldest_waiting_seconds", "Age of the oldest delivery that is due", (now - oldest) / 1000 if oldest else 0
    )
    yield _gauge("workers", "Workers that are running", len(alive(inbox.heartbeats(), now)))
    left = [
        lane.rate_left for lane in inbox.installations().lanes(active_since=max(1, now - HOUR)) if lane.rate_left >= 0
    ]
    if left:
        yield _gauge(
            "api_requests_left", "Requests to GitHub left, the fewest of any repository of the last hour", min(left)
        )


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"precedent_{name}", about, value=value)


def _counter(name: str, tallies: Tallies) -> Metric:
    labels, about = COUNTERS[name]
    found = CounterMetricFamily(name, about, labels=labels)
    for (key, values), much in sorted(tallies.items()):
        if key == FORMER.get(name, name) and len(values) == len(labels):
            found.add_metric(values, much)
    return found


def _stages(tallies: Tallies) -> Metric:
    found = HistogramMetricFamily(STAGES, "Time that the stages of runs took", labels=["stage"])
    sums = {values[0]: much for (key, values), much in tallies.items() if key == f"{STAGES}_sum" and len(values) == 1}
    for stage, seconds in sorted(sums.items()):
        counts = {
            values[1]: int(much)
            for (key, values), much in tallies.items()
            if key == f"{STAGES}_bucket" and len(values) == 2 and values[0] == stage
        }
        found.add_metric([stage], _summed(counts, counts.get("+Inf", 0), BUCKETS), seconds)
    return found


def _summed(counts: Mapping[str, int], above: int, ends: Sequence[float]) -> list[tuple[str, float]]:
    """Buckets that each hold the ones before them, as Prometheus wants them, of counts of each alone."""
    alone = [*(counts.get(str(end), 0) for end in ends), above]
    return list(zip([*map(str, ends), "+Inf"], map(float, accumulate(alone)), strict=True))
