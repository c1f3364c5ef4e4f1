"""How the server learns who may read a repository: from events in any order, from the repository list, in a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.organisation import Visibility
from bot.domain.post import OrganisationKey
from bot.errors import PrecedentError
from bot.github.errors import NotInstalled, Suspended, Unreachable
from bot.github.events import ORGANISATION_EVENT, Event
from bot.server.log import Bug
from bot.server.model import HOUR, Delivery, Priority, RepositoryKey, RunReport
from bot.server.organisation.register import OrganisationRegister
from bot.server.work.installation_events import INSTALLATIONS_HEARTBEAT
from bot.server.work.policy import judge
from tests.server.app_environment import HELLO, OTHER, AppEnvironment, receive_sent, run_resync


def register_two(env: AppEnvironment) -> tuple[RepositoryKey, RepositoryKey]:
    """Register two repositories of an installation; a comment in the second shows an issue of the first."""
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    first, second = (RepositoryKey(number, env.github.world.names[name]) for name in (HELLO, OTHER))
    register = OrganisationRegister(env.inbox)
    for repository, name in ((first, HELLO), (second, OTHER)):
        register.store_repository(repository, name, Visibility.PUBLIC)
    register.add_shown(second, 5, [OrganisationKey(first.number, 1)])
    return first, second


def visibility(env: AppEnvironment, repository: RepositoryKey) -> str:
    return env.installations.repository(repository).visibility.value


def process_delivery(env: AppEnvironment, position: int = -1) -> None:
    """Receive and process one of the deliveries."""
    arrival = receive_sent(env, env.github.hooks.deliveries[position])
    env.inbox.put([replace(arrival, id=f"{arrival.id}-{next(env.guids)}")])
    work = env.begin(arrival.repository)
    results = env.apply(work)
    env.inbox.end(work, results, RunReport())


@pytest.mark.parametrize("new_visibility", ["private", "internal"])
def test_less_visibility_is_stored_and_comments_elsewhere_are_checked_again(
    env: AppEnvironment, new_visibility: str
) -> None:
    first, second = register_two(env)
    env.github.tenants.set_visibility(env.github, new_visibility)
    process_delivery(env)
    assert visibility(env, first) == new_visibility
    assert env.waiting(second) == [ORGANISATION_EVENT]


def test_comments_are_checked_when_their_repository_is_unarchived(env: AppEnvironment) -> None:
    _, second = register_two(env)
    installation = replace(second, number=0)
    for action, waiting in (("archived", []), ("unarchived", [ORGANISATION_EVENT])):
        env.arrive(installation, "repository", action, repository=str(second.number))
        work = env.begin(installation)
        env.inbox.end(work, env.apply(work), RunReport())
        assert env.waiting(second) == waiting


def test_a_late_event_does_not_override_the_current_visibility(env: AppEnvironment) -> None:
    first, _ = register_two(env)
    env.github.tenants.set_visibility(env.github, "private")
    env.github.tenants.set_visibility(env.github, "public")
    env.github.tenants.set_visibility(env.github, "private")
    for position in (-1, -2, -3):
        process_delivery(env, position)
        assert visibility(env, first) == "private"


def test_an_event_does_not_register_an_unknown_repository(env: AppEnvironment) -> None:
    register_two(env)
    third = env.github.add_project("octocat/third")
    number = env.github.tenants.install("octocat", ["octocat/third"])
    env.github.tenants.set_visibility(third, "private")
    process_delivery(env)
    assert RepositoryKey(number, third.repo.id) not in [row.repository for row in env.installations.repositories()]


def test_events_that_reduce_visibility_are_urgent(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    for change, priority in (
        (lambda: env.github.tenants.set_visibility(env.github, "private"), Priority.URGENT),
        (lambda: env.github.tenants.set_visibility(env.github, "public"), Priority.URGENT),
        (lambda: env.github.tenants.remove(number, [OTHER]), Priority.URGENT),
        (lambda: env.github.tenants.rename(env.github, "renamed"), Priority.CHANGE),
    ):
        change()
        assert receive_sent(env, env.github.hooks.deliveries[-1]).priority is priority


def test_a_resync_finds_a_change_of_visibility_without_an_event(env: AppEnvironment) -> None:
    first, second = register_two(env)
    env.github.tenants.lose = True
    env.github.tenants.set_visibility(env.github, "private")
    env.inbox.heartbeats.store(INSTALLATIONS_HEARTBEAT, {"day": 0})
    run_resync(env)
    assert visibility(env, first) == "private"
    assert ORGANISATION_EVENT in env.waiting(second)


def test_a_grant_has_the_visibility_of_its_repository(env: AppEnvironment) -> None:
    first, _ = register_two(env)
    for expected in Visibility:
        env.github.repo.private, env.github.repo.internal = expected != "public", expected == "internal"
        env.tokens.forget(first)
        grant = env.tokens.grant(first, env.clock.now)
        assert (grant.visibility, grant.asked_at) == (expected, env.clock.now)
    listed = {each.id: each.visibility for each in env.api.repositories(first.installation)}
    assert listed[first.number] is grant.visibility


@pytest.mark.parametrize(
    ("error", "event", "state"),
    [
        (Suspended("suspended"), ORGANISATION_EVENT, "waiting"),
        (Suspended("suspended"), "issues", "dropped"),
        (NotInstalled("gone"), ORGANISATION_EVENT, "dropped"),
        (Unreachable("down"), ORGANISATION_EVENT, "waiting"),
        (Unreachable("down"), "issues", "dead"),
        (Bug("a bug"), ORGANISATION_EVENT, "dead"),
    ],
)
def test_a_delivery_that_withdraws_content_is_never_given_up(error: PrecedentError, event: str, state: str) -> None:
    delivery = Delivery(
        "9:a", RepositoryKey(7, 1), Event(event, number=5), "octocat/hello-world", state="working", attempts=99
    )
    result = judge(error, delivery, 1_000, 8)
    assert result.state == state
    assert result.next_at == (1_000 + HOUR if state == "waiting" else 0)
