"""Each of GitHub's limits affects only what it counts: the GraphQL limit delays nothing but reading history."""

from __future__ import annotations

import pytest

from bot.github.errors import CORE, EVENT_LIMITS, GRAPHQL, HISTORY, HISTORY_LIMITS, SECONDARY
from bot.github.events import Event
from tests.fakes.payloads import EventfulProject
from tests.server.harness import ServerHarness
from tests.server.queues import REPOSITORY, Queue, arrival, take_lease
from tests.server.work.test_reconcile import reading_progress, store_half_rebuild

pytestmark = pytest.mark.slow
HOUR = 3_600


@pytest.fixture
def graphql_requests(harness: ServerHarness) -> list[str]:
    """The GraphQL requests so far."""
    requests: list[str] = []
    harness.on_request = lambda request: requests.append(request) if "graphql" in request else None
    return requests


def known_and_new(harness: ServerHarness) -> tuple[EventfulProject, EventfulProject]:
    """A known and a new repository of one installation."""
    known_project, new_project = harness.project("octo-org/app", "PostgreSQL"), harness.project("octo-org/web", "Redis")
    harness.github.tenants.install("octo-org", ["octo-org/app", "octo-org/web"])
    harness.ask(known_project)
    harness.settle()
    return known_project, new_project


def exhaust_graphql(harness: ServerHarness) -> None:
    harness.github.faults.add("POST /graphql", "limit200", times=None)


def test_a_first_read_that_runs_out_of_points_delays_no_other_repository(harness: ServerHarness) -> None:
    known_project, new_project = known_and_new(harness)
    exhaust_graphql(harness)
    harness.deliver_events(new_project, Event("catch-up"))
    harness.settle()
    number = harness.ask(known_project)
    harness.pass_time(11)
    harness.settle()
    assert len(harness.comments(known_project, number)) == 1
    assert harness.row(known_project, number).state == "done"


def test_a_new_issue_is_stored_without_another_graphql_request_while_the_limit_holds(
    harness: ServerHarness, graphql_requests: list[str]
) -> None:
    _, new_project = known_and_new(harness)
    exhaust_graphql(harness)
    harness.ask(new_project)
    harness.settle()
    count = len(graphql_requests)
    assert count >= 1
    for _ in range(3):
        number = harness.ask(new_project)
        harness.pass_time(11)
        harness.settle()
        assert harness.row(new_project, number).state == "done", harness.row(new_project, number)
    assert len(graphql_requests) == count


def test_history_is_read_after_the_limit_ends_even_if_nothing_happens(
    harness: ServerHarness, graphql_requests: list[str]
) -> None:
    _, new_project = known_and_new(harness)
    exhaust_graphql(harness)
    number = harness.ask(new_project)
    harness.settle()
    harness.github.faults.clear()
    before = len(graphql_requests)
    harness.pass_time(HOUR + 60)
    harness.settle()
    assert len(graphql_requests) > before
    last = harness.ask(new_project)
    harness.pass_time(11)
    harness.settle()
    assert "Redis" in "".join(harness.comments(new_project, last)), "it is in the history, which was read"
    assert harness.row(new_project, number).state == "done"


def test_runs_while_the_limit_holds_do_not_prolong_it(harness: ServerHarness) -> None:
    _, new_project = known_and_new(harness)
    exhaust_graphql(harness)
    harness.ask(new_project)
    harness.settle()
    limits, installation = harness.env.inbox.limits, harness.repository(new_project).installation
    until = limits.paused_until(installation, HISTORY_LIMITS)
    assert until > harness.env.clock.now
    harness.pass_time((until - harness.env.clock.now) / 1000 - 20)
    harness.ask(new_project)
    harness.settle()
    assert limits.paused_until(installation, HISTORY_LIMITS) == until


def test_a_rebuild_continues_when_the_limit_ends(harness: ServerHarness) -> None:
    known_project, _ = known_and_new(harness)
    store_half_rebuild(harness, known_project)
    exhaust_graphql(harness)
    number = harness.ask(known_project)
    harness.pass_time(11)
    harness.settle()
    assert len(harness.comments(known_project, number)) == 1
    assert reading_progress(harness, known_project) is not None
    harness.github.faults.clear()
    harness.pass_time(HOUR + 60)
    harness.settle()
    assert reading_progress(harness, known_project) is None


@pytest.mark.parametrize("resource", [CORE, SECONDARY, GRAPHQL, HISTORY, "search", "code_search"])
def test_only_limits_on_all_requests_pause_a_repository(queue: Queue, resource: str) -> None:
    queue.inbox.put([arrival("a")])
    limits = queue.inbox.limits
    limits.pause(REPOSITORY.installation, resource, queue.clock() + 60_000)
    limits.pause(REPOSITORY.installation, resource, queue.clock() + 30_000)
    limits.pause(8, CORE, queue.clock() + 90_000)
    assert limits.paused_until(REPOSITORY.installation, [resource]) > queue.clock() + 50_000
    work = queue.inbox.begin(take_lease(queue.inbox, REPOSITORY))
    assert (work is None) == (resource in EVENT_LIMITS)
    assert queue.keys() == {REPOSITORY.text}
    assert len(limits.pauses(EVENT_LIMITS)) == 1 + (resource in EVENT_LIMITS)
