"""GitHub's limits, each for what it counts: that of GraphQL delays the reading of history and nothing else."""

from __future__ import annotations

import pytest

from bot.github.errors import CORE, GRAPHQL, HISTORY, OF_ALL, OF_HISTORY, SECONDARY
from bot.github.events import Event
from tests.fakes.payloads import EventfulProject
from tests.server.queues import REPOSITORY, Queue, arrival, leased
from tests.server.test_reconcile import half_read, reading
from tests.server.town import Town

pytestmark = pytest.mark.slow
HOUR = 3_600


@pytest.fixture
def graphql(town: Town) -> list[str]:
    """The requests to GraphQL, as they come."""
    found: list[str] = []
    town.asked = lambda request: found.append(request) if "graphql" in request else None
    return found


def two(town: Town) -> tuple[EventfulProject, EventfulProject]:
    """A repository that is known and one that is new, of one installation."""
    known, fresh = town.project("octo-org/app", "PostgreSQL"), town.project("octo-org/web", "Redis")
    town.github.tenants.install("octo-org", ["octo-org/app", "octo-org/web"])
    town.ask(known)
    town.settle()
    return known, fresh


def out_of_points(town: Town) -> None:
    town.github.faults.add("POST /graphql", "limit200", times=None)


def test_a_first_reading_that_runs_out_of_points_holds_up_no_other_repository(town: Town) -> None:
    known, fresh = two(town)
    out_of_points(town)
    town.hear_of(fresh, Event("catch-up"))
    town.settle()
    number = town.ask(known)
    town.pass_time(11)
    town.settle()
    assert len(town.comments(known, number)) == 1
    assert town.row(known, number).state == "done"


def test_a_new_issue_of_the_same_repository_is_remembered_and_graphql_is_not_asked_again(
    town: Town, graphql: list[str]
) -> None:
    _, fresh = two(town)
    out_of_points(town)
    town.ask(fresh)
    town.settle()
    asked = len(graphql)
    assert asked >= 1
    for _ in range(3):
        number = town.ask(fresh)
        town.pass_time(11)
        town.settle()
        assert town.row(fresh, number).state == "done", town.row(fresh, number)
    assert len(graphql) == asked


def test_history_is_read_once_the_limit_is_over_though_nothing_happens(town: Town, graphql: list[str]) -> None:
    _, fresh = two(town)
    out_of_points(town)
    number = town.ask(fresh)
    town.settle()
    town.github.faults.clear()
    before = len(graphql)
    town.pass_time(HOUR + 60)
    town.settle()
    assert len(graphql) > before
    last = town.ask(fresh)
    town.pass_time(11)
    town.settle()
    assert "Redis" in "".join(town.comments(fresh, last)), "it is in the history, which was read"
    assert town.row(fresh, number).state == "done"


def test_runs_while_the_limit_holds_do_not_prolong_it(town: Town) -> None:
    _, fresh = two(town)
    out_of_points(town)
    town.ask(fresh)
    town.settle()
    register, installation = town.here.inbox.installations(), town.repository(fresh).installation
    until = register.paused_until(installation, OF_HISTORY)
    assert until > town.here.clock.now
    town.pass_time((until - town.here.clock.now) / 1000 - 20)
    town.ask(fresh)
    town.settle()
    assert register.paused_until(installation, OF_HISTORY) == until


def test_a_rebuild_goes_on_when_the_limit_is_over(town: Town) -> None:
    known, _ = two(town)
    half_read(town, known)
    out_of_points(town)
    number = town.ask(known)
    town.pass_time(11)
    town.settle()
    assert len(town.comments(known, number)) == 1
    assert reading(town, known) is not None
    town.github.faults.clear()
    town.pass_time(HOUR + 60)
    town.settle()
    assert reading(town, known) is None


def test_a_limit_on_how_fast_is_asked_still_holds_for_all(town: Town) -> None:
    known, fresh = two(town)
    town.github.faults.add("POST /graphql", "secondary200", times=None)
    town.hear_of(fresh, Event("catch-up"))
    town.settle()
    number = town.ask(known)
    town.pass_time(11)
    town.run(town.repository(known))
    assert town.here.inbox.queue.claim("any") is None, "nobody waits with a lease"
    assert town.row(known, number).state == "waiting"
    assert town.comments(known, number) == []


@pytest.mark.parametrize("resource", [CORE, SECONDARY, GRAPHQL, HISTORY, "search", "code_search"])
def test_repositories_rest_for_the_limits_of_all_requests_alone(queue: Queue, resource: str) -> None:
    queue.inbox.put([arrival("a")])
    register = queue.inbox.installations()
    register.pause(REPOSITORY.installation, resource, queue.clock() + 60_000)
    register.pause(REPOSITORY.installation, resource, queue.clock() + 30_000)
    register.pause(8, CORE, queue.clock() + 90_000)
    assert register.paused_until(REPOSITORY.installation, [resource]) > queue.clock() + 50_000
    work = queue.inbox.begin(leased(queue.inbox, REPOSITORY))
    assert (work is None) == (resource in OF_ALL)
    assert queue.keys() == {REPOSITORY.text}
    assert register.count_paused(OF_ALL) == 1 + (resource in OF_ALL)
