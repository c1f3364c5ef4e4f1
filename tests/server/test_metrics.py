"""Metrics as Prometheus reads them, and whether the server calls itself ready."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bot.errors import WorldError
from bot.github.budget import Rate
from bot.github.errors import CORE
from bot.server.health import ALIVE, APP, LATE, WORKER, CachedChecks, Check, readiness_checks, refusal_reason
from bot.server.inbox_rows import BUCKETS
from bot.server.metrics import DELIVERIES, QUICK, ReceiveHistogram, render
from bot.server.organisation_changes import OrganisationChanges
from bot.server.organisation_guard import INDEX_UP
from bot.server.scope import EVERYTHING
from tests.server.gallery import MINUTE, NOW, OPTIONS, Days, a_day, empty

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(ledger: Days, answered: ReceiveHistogram | None = None) -> Samples:
    page = render(ledger, answered or ReceiveHistogram(), NOW).decode()
    families = text_string_to_metric_families(page)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for each in families for one in each.samples}


def test_a_day_is_counted() -> None:
    ledger = a_day()
    ledger.count_up({(DELIVERIES, ("issues", "stored")): 40, (DELIVERIES, ("other", "refused 403")): 3})
    found = samples(ledger)
    assert found[DELIVERIES, (("event", "issues"), ("result", "stored"))] == 40
    assert found[DELIVERIES, (("event", "other"), ("result", "refused 403"))] == 3
    assert found["precedent_jobs", (("state", "dead"),)] == 1
    assert found["precedent_jobs", (("state", "waiting"),)] == 2
    assert found["precedent_oldest_waiting_seconds", ()] == 8
    assert found["precedent_workers", ()] == 1
    assert found["precedent_pushes_total", ()] == 3
    assert found["precedent_runs_total", (("result", "done"),)] == 12


def test_the_fewest_requests_left_of_this_hour_are_told() -> None:
    ledger, ends = a_day(), datetime.fromtimestamp(NOW / 1000, UTC) + timedelta(minutes=9)
    ledger.budgets().store(2, {CORE: Rate(12_000, 12_500, ends)})
    assert samples(ledger)["precedent_api_requests_left", (("resource", "core"),)] == 4_739
    assert samples(ledger)["precedent_api_requests_left", (("resource", "graphql"),)] == 4_992
    assert not [name for name, _ in samples(empty()) if name == "precedent_api_requests_left"]


def test_an_installation_is_paused_until_the_last_limit_on_events_ends() -> None:
    ledger = a_day()
    register = ledger.installations()
    for installation, resource, until in ((1, "core", 1), (1, "secondary", 2), (2, "core", 1), (3, "graphql", 9)):
        register.pause(installation, resource, NOW + until)
    assert samples(ledger)["precedent_paused_installations", ()] == 2
    ledger.time = NOW + 1
    assert samples(ledger)["precedent_paused_installations", ()] == 1
    ledger.time = NOW + 2
    assert samples(ledger)["precedent_paused_installations", ()] == 0


def test_buckets_of_stages_hold_those_before_them() -> None:
    ledger = empty()
    for seconds, bucket in ((0.05, "0.1"), (0.2, "0.25"), (0.2, "0.25"), (900, "+Inf")):
        ledger.count_up(
            {
                ("precedent_stage_seconds_bucket", ("push", bucket)): 1,
                ("precedent_stage_seconds_sum", ("push",)): seconds,
                ("precedent_stage_seconds_count", ("push",)): 1,
            }
        )
    found = samples(ledger)
    name = "precedent_stage_seconds_bucket"
    counts = [found[name, (("le", str(end)), ("stage", "push"))] for end in (*BUCKETS, "+Inf")]
    assert counts == [1, 3, *[3] * (len(BUCKETS) - 2), 4]
    assert found["precedent_stage_seconds_sum", (("stage", "push"),)] == pytest.approx(900.45)
    assert found["precedent_stage_seconds_count", (("stage", "push"),)] == 4


def test_answers_of_this_process_are_timed() -> None:
    answered = ReceiveHistogram()
    for seconds in (0.001, 0.005, 0.07, 60):
        answered.observe(seconds)
    found = samples(empty(), answered)
    counts = [found["precedent_receive_seconds_bucket", (("le", str(end)),)] for end in (*QUICK, "+Inf")]
    assert counts == [2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4]
    assert found["precedent_receive_seconds_count", ()] == 4


def test_what_is_of_all_processes_is_told_by_one_so_that_sums_count_nothing_twice() -> None:
    ledger, one, other = a_day(), ReceiveHistogram(), ReceiveHistogram()
    one.observe(0.1)
    other.observe(0.1)
    pages = [
        render(ledger, answered, NOW, for_all=for_all).decode() for answered, for_all in ((one, True), (other, False))
    ]
    summed: Samples = {}
    for page in pages:
        for family in text_string_to_metric_families(page):
            for each in family.samples:
                key = (each.name, tuple(sorted(each.labels.items())))
                summed[key] = summed.get(key, 0) + each.value
    alone = samples(ledger, one)
    own = {key for key in alone if key[0].startswith("precedent_receive_seconds")}
    assert {key: value for key, value in summed.items() if key not in own} == {
        key: value for key, value in alone.items() if key not in own
    }
    assert summed["precedent_receive_seconds_count", ()] == 2
    assert summed["precedent_tells_for_all", ()] == 1


def test_no_metric_names_a_repository_or_an_account() -> None:
    assert b"octo-org" not in render(a_day(), ReceiveHistogram(), NOW)


def test_tallies_that_no_metric_knows_are_left_out() -> None:
    ledger = empty()
    ledger.count_up({("something_else", ("a",)): 1, (DELIVERIES, ("one label",)): 1})
    assert not [name for name, _ in samples(ledger) if name in ("something_else", DELIVERIES)]


def named(found: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in found}


def test_a_server_at_work_is_ready() -> None:
    found = readiness_checks(a_day(), OPTIONS, NOW)
    assert [check.name for check in found] == ["queue", "disk", "clock", "token", "workers"]
    assert [check for check in found if not check.ok] == []


def test_a_new_server_waits_for_its_token_and_its_workers() -> None:
    assert [check.name for check in readiness_checks(empty(), OPTIONS, NOW) if not check.ok] == ["token", "workers"]


@pytest.mark.parametrize(
    ("note", "name", "line"),
    [
        ({"ahead": 31}, "clock", "31 s behind GitHub's: correct it"),
        ({"ahead": -95}, "clock", "95 s ahead of GitHub's: correct it"),
        ({"fault": "the private key is not that of the App"}, "token", "the private key is not that of the App"),
    ],
)
def test_what_github_told_of_us_is_looked_at(note: dict[str, str | int], name: str, line: str) -> None:
    ledger = a_day()
    ledger.heartbeat(APP, {"slug": "precedent", "ahead": 0} | note)
    found = [check for check in readiness_checks(ledger, OPTIONS, NOW) if not check.ok]
    assert [(check.name, check.line) for check in found] == [(name, line)]


def test_a_worker_that_fell_silent_is_none() -> None:
    ledger = a_day()
    assert named(readiness_checks(ledger, OPTIONS, NOW + ALIVE))["workers"].ok
    assert not named(readiness_checks(ledger, OPTIONS, NOW + ALIVE + 1))["workers"].ok
    ledger.heartbeat(f"{WORKER}other", {})
    assert named(readiness_checks(ledger, OPTIONS, NOW))["workers"].line == "2 running"


def test_a_token_that_nobody_asked_for_in_hours_is_none() -> None:
    later = NOW + 3 * 60 * MINUTE
    assert "3 hours ago" in named(readiness_checks(a_day(), OPTIONS, later))["token"].line
    assert named(readiness_checks(a_day(), replace(OPTIONS, sweep_minutes=120), later))["token"].ok


def test_a_delivery_that_is_due_for_long_makes_the_queue_unwell() -> None:
    ledger = a_day()
    assert named(readiness_checks(ledger, OPTIONS, NOW + LATE - 9_000))["queue"].ok
    late = named(readiness_checks(ledger, OPTIONS, NOW + LATE))["queue"]
    assert (late.ok, "arrived 120 minutes ago" in late.line) == (False, True)


def test_a_full_backlog_shuts_the_door(tmp_path: Path) -> None:
    options = replace(OPTIONS, backlog=2, data=tmp_path)
    assert refusal_reason(empty(), options) == ""
    assert refusal_reason(a_day(), options) == "too many deliveries are waiting"
    assert not named(readiness_checks(a_day(), options, NOW))["queue"].ok


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    found = named(readiness_checks(a_day(), replace(OPTIONS, data=tmp_path / "gone"), NOW))["disk"]
    assert (found.ok, "is it mounted?" in found.line) == (False, True)
    assert refusal_reason(a_day(), replace(OPTIONS, data=tmp_path / "gone")).startswith("disk: ")


class Lost(Days):
    """A ledger whose database is away."""

    def counts(self, *_):  # type: ignore[no-untyped-def]
        raise WorldError("connection refused")

    def heartbeats(self):  # type: ignore[no-untyped-def]
        raise WorldError("connection refused")


def test_while_the_database_is_away_only_the_disk_is_known() -> None:
    found = readiness_checks(Lost(), OPTIONS, NOW)
    assert [check.name for check in found if check.ok] == ["disk"]
    assert found[0].line == "the database does not answer: connection refused"


def test_a_glance_is_kept_for_a_moment() -> None:
    looked: list[int] = []

    def look(now: int) -> list[Check]:
        looked.append(now)
        return [Check("queue", True, str(now))]

    times = iter((1_000, 2_999, 3_000, 500))
    glance = CachedChecks(look, lambda: next(times), 2_000)
    assert [glance.results()[0].line for _ in range(4)] == ["1000", "1000", "3000", "500"]
    assert looked == [1_000, 3_000, 500]


def test_the_index_of_all_repositories_is_as_its_workers_see_it() -> None:
    ledger = a_day()
    assert not [name for name, _ in samples(ledger) if name.startswith("precedent_organisation_")]
    changes = OrganisationChanges(ledger.database, ledger.queue, ledger.now)
    noted = changes.align("/srv/index", EVERYTHING)
    found = samples(ledger)
    assert found["precedent_organisation_up", ()] == 1
    assert found["precedent_organisation_waiting", ()] == noted > 0
    ledger.time = NOW + MINUTE
    for name, is_up in (("one", 1), ("two", 0)):
        ledger.heartbeat(f"{WORKER}{name}", {"pid": 1, INDEX_UP: is_up})
    page = render(ledger, ReceiveHistogram(), NOW + MINUTE).decode()
    assert "precedent_organisation_up 0.0" in page
    assert "precedent_organisation_oldest_seconds 60.0" in page
