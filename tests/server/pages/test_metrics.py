"""Metrics as Prometheus reads them, and whether the server calls itself ready."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bot.server.model import ALL_REPOSITORIES, WORKER_PREFIX
from bot.server.organisation.guard import INDEX_UP
from bot.server.pages.health import MAX_QUEUE_WAIT, CachedChecks, Check, readiness_checks, refusal_reason
from bot.server.pages.metrics import RECEIVE_BUCKETS, ReceiveHistogram, render
from bot.server.storage.counters import BUCKETS, DELIVERIES_METRIC
from bot.server.storage.heartbeats import APP_HEARTBEAT, WORKER_TIMEOUT
from tests.server.sample_inbox import MINUTE, NOW, OPTIONS, SampleInbox, empty_inbox, sample_inbox

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(inbox: SampleInbox, histogram: ReceiveHistogram | None = None) -> Samples:
    page = render(inbox, histogram or ReceiveHistogram(), NOW).decode()
    families = text_string_to_metric_families(page)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_show_the_counts_of_a_day() -> None:
    inbox = sample_inbox()
    inbox.counters.add(
        {(DELIVERIES_METRIC, ("issues", "stored")): 40, (DELIVERIES_METRIC, ("other", "refused 403")): 3}
    )
    metrics = samples(inbox)
    assert metrics[DELIVERIES_METRIC, (("event", "issues"), ("result", "stored"))] == 40
    assert metrics[DELIVERIES_METRIC, (("event", "other"), ("result", "refused 403"))] == 3
    assert metrics["precedent_jobs", (("state", "dead"),)] == 1
    assert metrics["precedent_jobs", (("state", "waiting"),)] == 2
    assert metrics["precedent_oldest_waiting_seconds", ()] == 8
    assert metrics["precedent_workers", ()] == 1
    assert metrics["precedent_pushes_total", ()] == 3
    assert metrics["precedent_runs_total", (("result", "done"),)] == 12


def test_an_installation_is_paused_until_the_last_limit_on_events_ends() -> None:
    inbox = sample_inbox()
    for installation, resource, until in ((1, "core", 1), (1, "secondary", 2), (2, "core", 1), (3, "graphql", 9)):
        inbox.limits.pause(installation, resource, NOW + until)
    assert samples(inbox)["precedent_paused_installations", ()] == 2
    inbox.time = NOW + 1
    assert samples(inbox)["precedent_paused_installations", ()] == 1
    inbox.time = NOW + 2
    assert samples(inbox)["precedent_paused_installations", ()] == 0


def test_buckets_of_stage_durations_are_cumulative() -> None:
    inbox = empty_inbox()
    for seconds, bucket in ((0.05, "0.1"), (0.2, "0.25"), (0.2, "0.25"), (900, "+Inf")):
        inbox.counters.add(
            {
                ("precedent_stage_seconds_bucket", ("push", bucket)): 1,
                ("precedent_stage_seconds_sum", ("push",)): seconds,
                ("precedent_stage_seconds_count", ("push",)): 1,
            }
        )
    metrics = samples(inbox)
    name = "precedent_stage_seconds_bucket"
    counts = [metrics[name, (("le", str(end)), ("stage", "push"))] for end in (*BUCKETS, "+Inf")]
    assert counts == [1, 3, *[3] * (len(BUCKETS) - 2), 4]
    assert metrics["precedent_stage_seconds_sum", (("stage", "push"),)] == pytest.approx(900.45)
    assert metrics["precedent_stage_seconds_count", (("stage", "push"),)] == 4


def test_response_times_of_this_process_are_measured() -> None:
    histogram = ReceiveHistogram()
    for seconds in (0.001, 0.005, 0.07, 60):
        histogram.observe(seconds)
    metrics = samples(empty_inbox(), histogram)
    counts = [metrics["precedent_receive_seconds_bucket", (("le", str(end)),)] for end in (*RECEIVE_BUCKETS, "+Inf")]
    assert counts == [2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4]
    assert metrics["precedent_receive_seconds_count", ()] == 4


def test_one_process_exports_shared_metrics_so_that_sums_count_nothing_twice() -> None:
    inbox, one, other = sample_inbox(), ReceiveHistogram(), ReceiveHistogram()
    one.observe(0.1)
    other.observe(0.1)
    pages = [
        render(inbox, histogram, NOW, for_all=for_all).decode() for histogram, for_all in ((one, True), (other, False))
    ]
    totals: Samples = {}
    for page in pages:
        for family in text_string_to_metric_families(page):
            for each in family.samples:
                key = (each.name, tuple(sorted(each.labels.items())))
                totals[key] = totals.get(key, 0) + each.value
    alone = samples(inbox, one)
    own = {key for key in alone if key[0].startswith("precedent_receive_seconds")}
    assert {key: value for key, value in totals.items() if key not in own} == {
        key: value for key, value in alone.items() if key not in own
    }
    assert totals["precedent_receive_seconds_count", ()] == 2
    assert totals["precedent_tells_for_all", ()] == 1


def test_no_metric_names_a_repository_or_an_account() -> None:
    assert b"octo-org" not in render(sample_inbox(), ReceiveHistogram(), NOW)


def test_counters_without_a_metric_are_left_out() -> None:
    inbox = empty_inbox()
    inbox.counters.add({("something_else", ("a",)): 1, (DELIVERIES_METRIC, ("one label",)): 1})
    assert not [name for name, _ in samples(inbox) if name in ("something_else", DELIVERIES_METRIC)]


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


@pytest.mark.parametrize(
    ("note", "name", "line"),
    [
        ({"ahead": 31}, "clock", "31 s behind GitHub's: correct it"),
        ({"ahead": -95}, "clock", "95 s ahead of GitHub's: correct it"),
    ],
)
def test_a_wrong_clock_makes_the_server_unready(note: dict[str, str | int], name: str, line: str) -> None:
    inbox = sample_inbox()
    inbox.heartbeats.store(APP_HEARTBEAT, {"slug": "precedent", "ahead": 0} | note)
    failed = [check for check in readiness_checks(inbox, OPTIONS, NOW) if not check.ok]
    assert [(check.name, check.line) for check in failed] == [(name, line)]


def test_a_worker_without_a_recent_heartbeat_does_not_count() -> None:
    inbox = sample_inbox()
    assert by_name(readiness_checks(inbox, OPTIONS, NOW + WORKER_TIMEOUT))["workers"].ok
    assert not by_name(readiness_checks(inbox, OPTIONS, NOW + WORKER_TIMEOUT + 1))["workers"].ok
    inbox.heartbeats.store(f"{WORKER_PREFIX}other", {})
    assert by_name(readiness_checks(inbox, OPTIONS, NOW))["workers"].line == "2 running"


def test_a_token_last_requested_hours_ago_makes_the_server_unready() -> None:
    later = NOW + 3 * 60 * MINUTE
    assert "3 hours ago" in by_name(readiness_checks(sample_inbox(), OPTIONS, later))["token"].line
    assert by_name(readiness_checks(sample_inbox(), replace(OPTIONS, sweep_minutes=120), later))["token"].ok


def test_a_delivery_that_is_long_overdue_makes_the_queue_unready() -> None:
    inbox = sample_inbox()
    assert by_name(readiness_checks(inbox, OPTIONS, NOW + MAX_QUEUE_WAIT - 9_000))["queue"].ok
    late = by_name(readiness_checks(inbox, OPTIONS, NOW + MAX_QUEUE_WAIT))["queue"]
    assert (late.ok, "arrived 120 minutes ago" in late.line) == (False, True)


@pytest.mark.slow
def test_a_full_backlog_refuses_new_deliveries(tmp_path: Path) -> None:
    options = replace(OPTIONS, backlog=2, data=tmp_path)
    assert refusal_reason(empty_inbox(), options) == ""
    assert refusal_reason(sample_inbox(), options) == "too many deliveries are waiting"
    assert not by_name(readiness_checks(sample_inbox(), options, NOW))["queue"].ok


def test_a_missing_data_folder_is_reported(tmp_path: Path) -> None:
    disk = by_name(readiness_checks(sample_inbox(), replace(OPTIONS, data=tmp_path / "gone"), NOW))["disk"]
    assert (disk.ok, "is it mounted?" in disk.line) == (False, True)
    assert refusal_reason(sample_inbox(), replace(OPTIONS, data=tmp_path / "gone")).startswith("disk: ")


def test_check_results_are_cached_for_a_moment() -> None:
    times_run: list[int] = []

    def run_checks(now: int) -> list[Check]:
        times_run.append(now)
        return [Check("queue", True, str(now))]

    times = iter((0, 1_000, 2_999, 3_000, 500))
    cache = CachedChecks(run_checks, lambda: next(times), 2_000)
    assert [cache.results()[0].line for _ in range(4)] == ["1000", "1000", "3000", "500"]
    assert times_run == [1_000, 3_000, 500]


def test_the_organisation_index_metrics_show_what_its_workers_report() -> None:
    inbox = sample_inbox()
    assert not [name for name, _ in samples(inbox) if name.startswith("precedent_organisation_")]
    changes = inbox.changes
    changes_noted = changes.align("/srv/index", ALL_REPOSITORIES)
    metrics = samples(inbox)
    assert metrics["precedent_organisation_up", ()] == 1
    assert metrics["precedent_organisation_waiting", ()] == changes_noted > 0
    inbox.time = NOW + MINUTE
    for name, is_up in (("one", 1), ("two", 0)):
        inbox.heartbeats.store(f"{WORKER_PREFIX}{name}", {"pid": 1, INDEX_UP: is_up})
    page = render(inbox, ReceiveHistogram(), NOW + MINUTE).decode()
    assert "precedent_organisation_up 0.0" in page
    assert "precedent_organisation_oldest_seconds 60.0" in page
