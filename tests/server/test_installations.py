"""What happens under an installation's own key: the App comes and goes, and repositories change."""

from __future__ import annotations

import pytest

from bot.errors import WorldError
from bot.github.errors import ForgeError, NotInstalled
from bot.server.installation_events import PLACES, apply_installation_events
from bot.server.model import Priority, RepositoryKey, RunReport
from tests.server.places import Places, heard
from tests.server.queues import keys, leased

HELLO, OTHER = "octocat/hello-world", "octocat/other"


def hear(here: Places) -> list[str]:
    """What GitHub sent last is received, stored and worked on; the reasons."""
    arrival = heard(here, here.github.hooks.deliveries[-1])
    here.inbox.put([arrival])
    return work(here, arrival.repository)


def work(here: Places, repository: RepositoryKey) -> list[str]:
    found = here.begin(repository)
    results = apply_installation_events(found, here.inbox, here.tokens, here.forgotten.append)
    here.inbox.end(found, results, RunReport())
    assert {result.state for result in results} == {"done"}
    assert [result.seq for result in results] == [each.seq for each in found.deliveries]
    return [result.reason for result in results]


def repository_of(here: Places, installation: int, full_name: str = HELLO) -> RepositoryKey:
    return RepositoryKey(installation, here.github.world.names[full_name])


def test_a_new_installation_has_its_repositories_looked_at(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    assert hear(here) == ["the App is active: repositories to check: 2"]
    assert here.waiting(repository_of(here, number)) == here.waiting(repository_of(here, number, OTHER)) == ["catch-up"]
    found = [here.inbox.queue.claim("worker"), here.inbox.queue.claim("worker"), here.inbox.queue.claim("worker")]
    assert {(lease.key, lease.priority) for lease in found if lease} == {
        (repository_of(here, number, name).text, Priority.HISTORY) for name in (HELLO, OTHER)
    }
    assert here.register.state(number) == "active"
    assert here.inbox.heartbeats()[PLACES][1] == {"day": 0}


def test_what_comes_twice_is_done_once(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO])
    arrival = heard(here, here.github.hooks.deliveries[-1])
    here.inbox.put([arrival])
    begun = here.begin(arrival.repository)
    first = apply_installation_events(begun, here.inbox, here.tokens, here.forgotten.append)
    second = apply_installation_events(begun, here.inbox, here.tokens, here.forgotten.append)
    assert (first[0].reason[-1], second[0].reason[-1]) == ("1", "0")
    assert here.waiting(repository_of(here, number)) == ["catch-up"]


def test_uninstalling_drops_what_waits_and_keeps_nothing(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    repository, other, foreign = (
        repository_of(here, number),
        repository_of(here, number, OTHER),
        RepositoryKey(4711, here.github.repo.id),
    )
    here.know(repository, foreign)
    here.arrive(repository), here.arrive(repository), here.arrive(foreign)
    here.tokens.grant(repository, here.clock.now), here.tokens.grant(other, here.clock.now)
    here.github.tenants.uninstall(number)
    assert hear(here) == ["the App is not installed there any more: deliveries dropped: 2"]
    assert [row.reason for row in here.rows(repository)][-2:] == ["the App is not installed there any more"] * 2
    assert here.forgotten == [repository]
    assert here.waiting(foreign) == ["issues"]
    assert [row.repository for row in here.register.repositories()] == [foreign]
    assert here.register.state(number) == "gone"
    assert here.inbox.begin(leased(here.inbox, repository)) is None
    assert repository.text not in keys(here.inbox), "it has nothing to do any more"
    assert here.begin(foreign).deliveries
    for each in (repository, other):
        with pytest.raises(NotInstalled):
            here.tokens.grant(each, here.clock.now)


def test_a_suspended_installation_rests_until_it_is_looked_at_again(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO])
    repository = repository_of(here, number)
    here.know(repository)
    for _ in range(3):
        here.arrive(repository)
    here.github.tenants.suspend(number)
    assert hear(here) == ["the App is suspended there: deliveries dropped: 3"]
    assert (here.register.state(number), here.waiting(repository), here.forgotten) == ("suspended", [], [repository])
    here.github.tenants.unsuspend(number)
    assert hear(here) == ["the App is active: repositories to check: 1"]
    assert (here.register.state(number), here.waiting(repository)) == ("active", ["catch-up"])
    assert here.tokens.grant(repository, here.clock.now).name == HELLO


def test_repositories_are_added_and_taken_away(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO])
    repository, other = repository_of(here, number), repository_of(here, number, OTHER)
    here.know(repository)
    here.arrive(repository)
    here.github.tenants.add(number, [OTHER])
    assert hear(here) == ["the App is active: repositories to check: 1"]
    assert here.waiting(other) == ["catch-up"]
    here.github.tenants.remove(number, [HELLO])
    assert hear(here) == ["the App may not see this repository any more: deliveries dropped: 1"]
    assert (here.waiting(repository), here.forgotten) == ([], [repository])
    here.github.tenants.add(number, [HELLO])
    assert hear(here) == ["the App is active: repositories to check: 1"]
    assert here.waiting(repository) == ["catch-up"]


def late(here: Places, before: int = 1) -> list[str]:
    """The last deliveries are heard, and those of before them after these."""
    sent = here.github.hooks.deliveries
    told = []
    for each in (*sent[-before:], *sent[-2 * before : -before]):
        here.inbox.put([heard(here, each)])
        told += work(here, RepositoryKey(each.payload["installation"]["id"], 0))
    return told


def test_a_removal_that_comes_late_drops_nothing(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO])
    repository = repository_of(here, number)
    here.know(repository)
    here.github.tenants.remove(number, [HELLO])
    here.github.tenants.add(number, [HELLO])
    here.arrive(repository)
    assert late(here)[-1] == "the App may not see this repository any more"
    assert here.waiting(repository) == ["issues", "catch-up"]
    assert here.forgotten == []
    assert repository in [row.repository for row in here.register.repositories()]


def test_a_suspension_that_comes_late_drops_nothing(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO])
    repository = repository_of(here, number)
    here.know(repository)
    here.github.tenants.suspend(number)
    here.github.tenants.unsuspend(number)
    here.arrive(repository)
    assert late(here)[-1] == "out of date: GitHub says that the App is active there"
    assert here.waiting(repository) == ["issues", "catch-up"]
    assert (here.register.state(number), here.forgotten) == ("active", [])


def test_a_deletion_of_a_repository_that_is_there_again_drops_nothing(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO])
    repository = repository_of(here, number)
    here.know(repository)
    here.arrive(repository)
    here.arrive(RepositoryKey(number, 0), "repository", "deleted", repository=str(repository.number))
    assert work(here, RepositoryKey(number, 0)) == ["the repository was deleted"]
    assert (here.waiting(repository), here.forgotten) == (["issues"], [])


def test_a_transfer_that_came_back_meanwhile_drops_nothing(here: Places) -> None:
    giver = here.github.tenants.install("octocat", [HELLO])
    taker = here.github.tenants.install("octo-org")
    repository, there = repository_of(here, giver), RepositoryKey(taker, repository_of(here, giver).number)
    here.know(repository, there)
    here.arrive(repository)
    here.arrive(RepositoryKey(taker, 0), "repository", "transferred", repository=str(repository.number))
    work(here, RepositoryKey(taker, 0))
    assert here.waiting(repository) == ["issues"]


def test_a_removal_waits_where_github_cannot_be_asked(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO])
    repository = repository_of(here, number)
    here.know(repository)
    here.arrive(repository)
    here.github.faults.add("POST */access_tokens", "500", times=None)
    here.github.tenants.remove(number, [HELLO])
    with pytest.raises(ForgeError):
        hear(here)
    assert here.waiting(repository) == ["issues"]


def test_a_renamed_repository_is_called_by_its_new_name_at_once(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO])
    repository = repository_of(here, number)
    assert here.tokens.grant(repository, here.clock.now).name == HELLO
    here.github.tenants.rename(here.github, "renamed")
    here.github.add_project(HELLO)
    assert hear(here) == ["its details are requested again"]
    assert here.tokens.grant(repository, here.clock.now).name == "octocat/renamed"
    assert here.forgotten == []


def test_a_transferred_repository_leaves_its_old_repository(here: Places) -> None:
    giver = here.github.tenants.install("octocat", [HELLO, OTHER])
    taker = here.github.tenants.install("octo-org")
    old, stays = repository_of(here, giver), repository_of(here, giver, OTHER)
    here.know(old, stays, RepositoryKey(taker, old.number))
    here.arrive(old), here.arrive(stays)
    here.github.tenants.transfer(here.github, "octo-org", taker)
    assert hear(here) == [
        "the repository went to another account: deliveries dropped: 1; the App is active: repositories to check: 1"
    ]
    fresh = RepositoryKey(taker, old.number)
    assert (here.waiting(old), here.waiting(fresh), here.waiting(stays)) == ([], ["catch-up"], ["issues"])
    assert here.forgotten == [old]
    assert fresh in [row.repository for row in here.register.repositories()]
    assert here.tokens.grant(fresh, here.clock.now).name == "octo-org/hello-world"


def test_a_deleted_repository_is_forgotten(here: Places) -> None:
    repository = RepositoryKey(5, 50)
    here.know(repository)
    here.arrive(repository)
    here.arrive(RepositoryKey(5, 0), "repository", "deleted", repository="50")
    assert work(here, RepositoryKey(5, 0)) == ["the repository was deleted: deliveries dropped: 1"]
    assert (here.register.repositories(), here.forgotten) == ([], [repository])


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
def test_what_says_nothing_to_us_is_done_with(
    here: Places, event: str, action: str, extra: dict[str, str], reason: str
) -> None:
    here.arrive(RepositoryKey(5, 0), event, action, **extra)
    assert work(here, RepositoryKey(5, 0)) == [reason]


def test_an_event_names_its_repositories_and_no_others(here: Places) -> None:
    here.arrive(RepositoryKey(5, 0), "installation", "created", account="octocat", added="50,51,50")
    assert work(here, RepositoryKey(5, 0)) == ["the App is active: repositories to check: 2"]
    assert {row.repository for row in here.inbox.deliveries(state="waiting")} == {
        RepositoryKey(5, 50),
        RepositoryKey(5, 51),
    }


def test_without_the_database_the_event_is_not_done_with(here: Places) -> None:
    class Away:
        def installations(self) -> object:
            raise WorldError("the database is away")

    here.arrive(RepositoryKey(5, 0), "installation", "deleted", account="octocat")
    with pytest.raises(WorldError):
        apply_installation_events(here.begin(RepositoryKey(5, 0)), Away(), here.tokens, here.forgotten.append)  # type: ignore[arg-type]
