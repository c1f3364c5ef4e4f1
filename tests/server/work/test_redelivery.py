"""Deliveries that nobody accepted are redelivered; each is requested only a few times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.server.model import RepositoryKey
from bot.server.work.resync import BATCH, MAX_TRIES, MINUTE, ResyncResult
from tests.fakes.state import from_epoch
from tests.server.app_environment import (
    APP,
    HELLO,
    HOUR,
    AppEnvironment,
    DeliveryEndpoint,
    make_environment,
    open_issues,
    run_resync,
)
from tests.server.queues import drop


@pytest.fixture
def endpoint(env: AppEnvironment) -> Iterator[DeliveryEndpoint]:
    server = DeliveryEndpoint(env)
    listener = server.listen()
    yield server
    listener.stop()


@pytest.mark.usefixtures("queue")
def test_failed_deliveries_are_redelivered(env: AppEnvironment, endpoint: DeliveryEndpoint) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    endpoint.error_status = 503
    open_issues(env, 3)
    endpoint.error_status = 0
    assert run_resync(env, 2 * MINUTE).redelivered == 3
    issue_rows = [row for row in env.rows(repository) if row.event.name == "issues"]
    assert sorted(row.event.number or 0 for row in issue_rows) == [1, 2, 3]
    assert run_resync(env, 15 * MINUTE).redelivered == 0


def test_accepted_deliveries_are_not_redelivered(env: AppEnvironment, endpoint: DeliveryEndpoint) -> None:
    env.github.tenants.install("octocat", [HELLO])
    open_issues(env, 2)
    assert run_resync(env, 2 * MINUTE) == ResyncResult(caught_up=1)
    assert len(endpoint.guids) == 3


def test_a_stored_delivery_whose_answer_was_lost_is_not_redelivered(
    env: AppEnvironment, endpoint: DeliveryEndpoint
) -> None:
    env.github.tenants.install("octocat", [HELLO])
    open_issues(env)
    env.github.hooks.deliveries[-1].status = 504
    assert run_resync(env, 2 * MINUTE).redelivered == 0


def test_a_recent_delivery_is_not_redelivered_within_its_first_minute(
    env: AppEnvironment, endpoint: DeliveryEndpoint
) -> None:
    env.github.tenants.install("octocat", [HELLO])
    run_resync(env)
    endpoint.error_status = 503
    open_issues(env)
    assert run_resync(env, MINUTE // 2).redelivered == 0
    assert run_resync(env, MINUTE).redelivered == 1


@pytest.mark.slow
def test_a_delivery_that_never_arrives_is_requested_three_times_and_then_reported(
    env: AppEnvironment, endpoint: DeliveryEndpoint
) -> None:
    env.github.tenants.install("octocat", [HELLO])
    run_resync(env)
    endpoint.error_status = 500
    open_issues(env)
    guid = env.github.hooks.deliveries[-1].guid
    redelivered = [run_resync(env, 15 * MINUTE).redelivered for _ in range(MAX_TRIES)]
    last = run_resync(env, 15 * MINUTE)
    assert (redelivered, last.redelivered) == ([1] * MAX_TRIES, 0)
    assert last.notes == (f"deliveries that were requested again but never arrived: {guid}",)
    assert [run_resync(env, 15 * MINUTE) for _ in range(3)] == [ResyncResult()] * 3


def test_two_resyncs_in_short_succession_request_a_delivery_once(
    env: AppEnvironment, endpoint: DeliveryEndpoint
) -> None:
    env.github.tenants.install("octocat", [HELLO])
    endpoint.error_status = 500
    open_issues(env)
    assert [run_resync(env, 2 * MINUTE).redelivered, run_resync(env, MINUTE).redelivered] == [1, 0]


@pytest.mark.slow
def test_after_a_long_outage_one_resync_requests_all_deliveries(env: AppEnvironment) -> None:
    env.github.validate = False
    env.github.tenants.install("octocat", [HELLO])
    open_issues(env, 2 * BATCH + 10)
    result = run_resync(env, 2 * MINUTE)
    assert (result.redelivered, result.notes) == (2 * BATCH + 11, ())
    all_guids = {each.guid for each in env.github.hooks.deliveries}
    assert {each.guid for each in env.github.hooks.deliveries if each.redelivery} == all_guids


def test_a_rate_limit_postpones_the_remaining_redeliveries(env: AppEnvironment, endpoint: DeliveryEndpoint) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    run_resync(env)
    endpoint.error_status = 503
    open_issues(env, 3)
    endpoint.error_status = 0
    env.github.faults.add("POST /app/hook/deliveries/*", "secondary403", after=1)
    first = run_resync(env, 2 * MINUTE)
    assert first.redelivered == 1
    assert "rate limit" in first.notes[0]
    assert run_resync(env, 15 * MINUTE).redelivered == 2
    assert len([row for row in env.rows(repository) if row.event.name == "issues"]) == 3


def test_a_delivery_that_github_no_longer_has_does_not_hold_up_the_others(
    env: AppEnvironment, endpoint: DeliveryEndpoint
) -> None:
    env.github.tenants.install("octocat", [HELLO])
    run_resync(env)
    endpoint.error_status = 503
    open_issues(env, 2)
    env.github.faults.add("POST /app/hook/deliveries/*", "404")
    assert run_resync(env, 2 * MINUTE).redelivered == 1
    assert len(run_resync(env, 15 * MINUTE).notes) == 1


def test_with_a_new_database_every_active_repository_is_checked(
    env: AppEnvironment, endpoint: DeliveryEndpoint
) -> None:
    number = env.github.tenants.install("octocat", [HELLO])
    open_issues(env, 2)
    fresh = make_environment(env.github)
    env.github.apps.by_id[APP].installations[number] = [env.github.repo.id]
    env.github.apps.by_id[APP].accounts[number] = env.github.repo.owner
    result = run_resync(fresh, 2 * MINUTE)
    assert result.redelivered == 0
    (day,) = {row.id.rpartition("-")[2] for row in fresh.rows(RepositoryKey(number, env.github.repo.id))}
    assert [row.id for row in fresh.rows(RepositoryKey(number, env.github.repo.id))] == [
        f"{APP}:catch-up-{number}-{env.github.repo.id}-{cause}-{day}" for cause in ("first", "found")
    ]
    fresh.api.close()


def test_a_dropped_delivery_is_not_mistaken_for_a_lost_one(env: AppEnvironment, endpoint: DeliveryEndpoint) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    run_resync(env)
    drop(env.inbox, [row.seq for row in env.rows(repository)], "for the test")
    env.github.tenants.deliver(env.github, "push")  # to no branch at all
    assert env.github.hooks.deliveries[-1].status == 202
    assert run_resync(env, 2 * MINUTE) == ResyncResult()
    assert env.waiting(repository) == []


def test_a_delivery_that_github_lists_late_is_found(env: AppEnvironment, endpoint: DeliveryEndpoint) -> None:
    env.github.tenants.install("octocat", [HELLO])
    endpoint.error_status = 503
    open_issues(env)
    late = env.github.hooks.deliveries.pop()
    late.at = from_epoch(env.github.clock.epoch - 5 * 60)
    assert run_resync(env, 2 * MINUTE).redelivered == 0
    env.github.hooks.deliveries.append(late)
    assert run_resync(env, MINUTE).redelivered == 1


def test_postponed_redeliveries_are_requested_however_old_they_are(
    env: AppEnvironment, endpoint: DeliveryEndpoint
) -> None:
    env.github.tenants.install("octocat", [HELLO])
    run_resync(env)
    endpoint.error_status = 503
    open_issues(env)
    env.github.clock.now = from_epoch(env.github.clock.epoch + 3600)
    open_issues(env)
    env.github.faults.add("POST /app/hook/deliveries/*", "secondary403")
    assert [run_resync(env, HOUR + 2 * MINUTE).redelivered, run_resync(env, 15 * MINUTE).redelivered] == [0, 2]
