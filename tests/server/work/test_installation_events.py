"""Events under an installation's own key: the App is installed or removed, and repositories change."""

from __future__ import annotations

import pytest

from bot.errors import WorldError
from bot.github.errors import ForgeError, NotInstalled
from bot.server.model import Priority, RepositoryKey, RunReport
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.work.installation_events import INSTALLATIONS_HEARTBEAT, InstallationEvents
from tests.server.app_environment import APP, HELLO, OTHER, AppEnvironment, receive_sent
from tests.server.queues import keys, lost_inbox, take_lease


def apply_last(env: AppEnvironment) -> list[str]:
    """Receive, store and apply what GitHub sent last; returns the reasons."""
    arrival = receive_sent(env, env.github.hooks.deliveries[-1])
    env.inbox.put([arrival])
    return apply_waiting(env, arrival.repository)


def apply_waiting(env: AppEnvironment, repository: RepositoryKey) -> list[str]:
    pending = env.begin(repository)
    results = env.apply(pending)
    env.inbox.end(pending, results, RunReport())
    assert {result.state for result in results} == {"done"}
    assert [result.seq for result in results] == [each.seq for each in pending.deliveries]
    return [result.reason for result in results]


def repository_of(env: AppEnvironment, installation: int, full_name: str = HELLO) -> RepositoryKey:
    return RepositoryKey(installation, env.github.world.names[full_name])


def test_the_repositories_of_a_new_installation_are_checked(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    assert apply_last(env) == ["the App is active: repositories to check: 2"]
    assert env.waiting(repository_of(env, number)) == env.waiting(repository_of(env, number, OTHER)) == ["catch-up"]
    leases = [env.inbox.queue.claim("worker"), env.inbox.queue.claim("worker"), env.inbox.queue.claim("worker")]
    assert {(lease.key, lease.priority) for lease in leases if lease} == {
        (repository_of(env, number, name).text, Priority.HISTORY) for name in (HELLO, OTHER)
    }
    assert env.installations.state(number) == "active"
    assert env.inbox.heartbeats.all()[INSTALLATIONS_HEARTBEAT][1] == {"day": 0}


def test_an_event_that_arrives_twice_is_applied_once(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO])
    arrival = receive_sent(env, env.github.hooks.deliveries[-1])
    env.inbox.put([arrival])
    pending = env.begin(arrival.repository)
    first = env.apply(pending)
    second = env.apply(pending)
    assert (first[0].reason[-1], second[0].reason[-1]) == ("1", "0")
    assert env.waiting(repository_of(env, number)) == ["catch-up"]


@pytest.mark.usefixtures("queue")
def test_uninstalling_drops_waiting_deliveries_and_removes_everything(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    repository, other, foreign = (
        repository_of(env, number),
        repository_of(env, number, OTHER),
        RepositoryKey(4711, env.github.repo.id),
    )
    env.add_repositories(repository, foreign)
    env.arrive(repository), env.arrive(repository), env.arrive(foreign)
    env.tokens.grant(repository, env.clock.now), env.tokens.grant(other, env.clock.now)
    env.github.tenants.uninstall(number)
    assert apply_last(env) == ["the App is no longer installed there: deliveries dropped: 2"]
    assert [row.reason for row in env.rows(repository)][-2:] == ["the App is no longer installed there"] * 2
    assert env.removed_clones == [repository]
    assert env.waiting(foreign) == ["issues"]
    assert [row.repository for row in env.installations.repositories()] == [foreign]
    assert env.installations.state(number) == "gone"
    assert env.inbox.begin(take_lease(env.inbox, repository)) is None
    assert repository.text not in keys(env.inbox), "it has nothing to do any more"
    assert env.begin(foreign).deliveries
    for each in (repository, other):
        with pytest.raises(NotInstalled):
            env.tokens.grant(each, env.clock.now)


@pytest.mark.usefixtures("queue")
def test_a_suspended_installation_rests_until_it_is_unsuspended(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO])
    repository = repository_of(env, number)
    env.add_repositories(repository)
    for _ in range(3):
        env.arrive(repository)
    env.github.tenants.suspend(number)
    assert apply_last(env) == ["the App is suspended there: deliveries dropped: 3"]
    assert (env.installations.state(number), env.waiting(repository), env.removed_clones) == (
        "suspended",
        [],
        [repository],
    )
    env.github.tenants.unsuspend(number)
    assert apply_last(env) == ["the App is active: repositories to check: 1"]
    assert (env.installations.state(number), env.waiting(repository)) == ("active", ["catch-up"])
    assert env.tokens.grant(repository, env.clock.now).name == HELLO


@pytest.mark.usefixtures("queue")
def test_repositories_can_be_added_and_removed(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO])
    repository, other = repository_of(env, number), repository_of(env, number, OTHER)
    env.add_repositories(repository)
    env.arrive(repository)
    env.github.tenants.add(number, [OTHER])
    assert apply_last(env) == ["the App is active: repositories to check: 1"]
    assert env.waiting(other) == ["catch-up"]
    env.github.tenants.remove(number, [HELLO])
    assert apply_last(env) == ["the App can no longer see this repository: deliveries dropped: 1"]
    assert (env.waiting(repository), env.removed_clones) == ([], [repository])
    env.github.tenants.add(number, [HELLO])
    assert apply_last(env) == ["the App is active: repositories to check: 1"]
    assert env.waiting(repository) == ["catch-up"]


def apply_last_first(env: AppEnvironment, before: int = 1) -> list[str]:
    """Apply the last ``before`` deliveries first, and then those before them; returns the reasons."""
    sent = env.github.hooks.deliveries
    reasons = []
    for each in (*sent[-before:], *sent[-2 * before : -before]):
        env.inbox.put([receive_sent(env, each)])
        reasons += apply_waiting(env, RepositoryKey(each.payload["installation"]["id"], 0))
    return reasons


def test_a_late_removal_drops_nothing(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO])
    repository = repository_of(env, number)
    env.add_repositories(repository)
    env.github.tenants.remove(number, [HELLO])
    env.github.tenants.add(number, [HELLO])
    env.arrive(repository)
    assert apply_last_first(env)[-1] == "the App can no longer see this repository"
    assert env.waiting(repository) == ["issues", "catch-up"]
    assert env.removed_clones == []
    assert repository in [row.repository for row in env.installations.repositories()]


def test_a_late_suspension_drops_nothing(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO])
    repository = repository_of(env, number)
    env.add_repositories(repository)
    env.github.tenants.suspend(number)
    env.github.tenants.unsuspend(number)
    env.arrive(repository)
    assert apply_last_first(env)[-1] == "out of date: GitHub says that the App is active there"
    assert env.waiting(repository) == ["issues", "catch-up"]
    assert (env.installations.state(number), env.removed_clones) == ("active", [])


def test_a_deletion_of_a_repository_that_exists_again_drops_nothing(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO])
    repository = repository_of(env, number)
    env.add_repositories(repository)
    env.arrive(repository)
    env.arrive(RepositoryKey(number, 0), "repository", "deleted", repository=str(repository.number))
    assert apply_waiting(env, RepositoryKey(number, 0)) == ["the repository was deleted"]
    assert (env.waiting(repository), env.removed_clones) == (["issues"], [])


@pytest.mark.slow
def test_a_transfer_that_was_undone_meanwhile_drops_nothing(env: AppEnvironment) -> None:
    giver = env.github.tenants.install("octocat", [HELLO])
    taker = env.github.tenants.install("octo-org")
    repository, there = repository_of(env, giver), RepositoryKey(taker, repository_of(env, giver).number)
    env.add_repositories(repository, there)
    env.arrive(repository)
    env.arrive(RepositoryKey(taker, 0), "repository", "transferred", repository=str(repository.number))
    apply_waiting(env, RepositoryKey(taker, 0))
    assert env.waiting(repository) == ["issues"]


def test_a_removal_waits_while_github_does_not_answer(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO])
    repository = repository_of(env, number)
    env.add_repositories(repository)
    env.arrive(repository)
    env.github.faults.add("POST */access_tokens", "500", times=None)
    env.github.tenants.remove(number, [HELLO])
    with pytest.raises(ForgeError):
        apply_last(env)
    assert env.waiting(repository) == ["issues"]


def test_a_renamed_repository_gets_its_new_name_at_once(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO])
    repository = repository_of(env, number)
    assert env.tokens.grant(repository, env.clock.now).name == HELLO
    env.github.tenants.rename(env.github, "renamed")
    env.github.add_project(HELLO)
    assert apply_last(env) == ["its details are requested again"]
    assert env.tokens.grant(repository, env.clock.now).name == "octocat/renamed"
    assert env.removed_clones == []


def test_a_transferred_repository_moves_to_its_new_installation(env: AppEnvironment) -> None:
    giver = env.github.tenants.install("octocat", [HELLO, OTHER])
    taker = env.github.tenants.install("octo-org")
    old, stays = repository_of(env, giver), repository_of(env, giver, OTHER)
    env.add_repositories(old, stays, RepositoryKey(taker, old.number))
    env.arrive(old), env.arrive(stays)
    env.github.tenants.transfer(env.github, "octo-org", taker)
    assert apply_last(env) == [
        "the repository went to another account: deliveries dropped: 1; the App is active: repositories to check: 1"
    ]
    fresh = RepositoryKey(taker, old.number)
    assert (env.waiting(old), env.waiting(fresh), env.waiting(stays)) == ([], ["catch-up"], ["issues"])
    assert env.removed_clones == [old]
    assert fresh in [row.repository for row in env.installations.repositories()]
    assert env.tokens.grant(fresh, env.clock.now).name == "octo-org/hello-world"


def test_a_deleted_repository_is_removed(env: AppEnvironment) -> None:
    repository = RepositoryKey(5, 50)
    env.add_repositories(repository)
    env.arrive(repository)
    env.arrive(RepositoryKey(5, 0), "repository", "deleted", repository="50")
    assert apply_waiting(env, RepositoryKey(5, 0)) == ["the repository was deleted: deliveries dropped: 1"]
    assert (env.installations.repositories(), env.removed_clones) == ([], [repository])


@pytest.mark.parametrize(
    ("event", "action", "extra", "reason"),
    [
        ("installation", "dreamt", {"account": "octocat"}, "nothing to do"),
        ("repository", "renamed", {"account": "octocat"}, "nothing to do"),
        ("repository", "starred", {"repository": "50"}, "its details are requested again"),
        ("installation_repositories", "added", {"added": "x,,-1,²"}, "nothing to do"),
        ("github_app_authorization", "revoked", {"account": "octocat"}, "not about this repository"),
    ],
)
def test_an_irrelevant_event_is_done_without_an_effect(
    env: AppEnvironment, event: str, action: str, extra: dict[str, str], reason: str
) -> None:
    env.arrive(RepositoryKey(5, 0), event, action, **extra)
    assert apply_waiting(env, RepositoryKey(5, 0)) == [reason]


def test_an_event_affects_only_the_repositories_that_it_names(env: AppEnvironment) -> None:
    env.arrive(RepositoryKey(5, 0), "installation", "created", account="octocat", added="50,51,50")
    assert apply_waiting(env, RepositoryKey(5, 0)) == ["the App is active: repositories to check: 2"]
    assert {row.repository for row in env.inbox.deliveries(DeliveryFilter(state="waiting"))} == {
        RepositoryKey(5, 50),
        RepositoryKey(5, 51),
    }


def test_an_event_is_not_marked_done_while_the_database_is_unreachable(env: AppEnvironment) -> None:
    env.arrive(RepositoryKey(5, 0), "installation", "deleted", account="octocat")
    with pytest.raises(WorldError):
        env.apply(env.begin(RepositoryKey(5, 0)), inbox=lost_inbox())


@pytest.mark.slow
@pytest.mark.usefixtures("queue")
def test_all_repositories_of_a_very_large_account_are_scheduled_once(env: AppEnvironment) -> None:
    repositories = [RepositoryKey(5, number) for number in range(1, 2_502)]
    events = InstallationEvents(env.inbox, env.tokens, env.removed_clones.append, env.clock.now)
    assert events.schedule_catch_up(repositories, f"{APP}:found-1") == len(repositories)
    assert events.schedule_catch_up(repositories, f"{APP}:found-1") == 0
