"""How the server hears who may read a repository: by events in any order, by the list of repositories, by a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.answer import OrganisationKey
from bot.domain.organisation import Visibility
from bot.errors import PrecedentError
from bot.github.errors import NotInstalled, Suspended, Unreachable
from bot.github.events import ORGANISATION, Event
from bot.server.installation_events import PLACES, apply_installation_events
from bot.server.log import Bug
from bot.server.model import HOUR, Delivery, Priority, RepositoryKey, RunReport
from bot.server.organisation_register import OrganisationRegister
from bot.server.retry_policy import judge
from tests.server.places import Places, heard, sweep

HELLO, OTHER = "octocat/hello-world", "octocat/other"


def known(here: Places) -> tuple[RepositoryKey, RepositoryKey]:
    """The two repositories of an installation; a comment in the second shows an issue of the first."""
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    first, second = (RepositoryKey(number, here.github.world.names[name]) for name in (HELLO, OTHER))
    register = OrganisationRegister(here.inbox)
    for repository, name in ((first, HELLO), (second, OTHER)):
        register.store_repository(repository, name, private=False, visibility=Visibility.PUBLIC)
    register.add_shown(second, 5, [OrganisationKey(first.number, 1)])
    return first, second


def visibility(here: Places, repository: RepositoryKey) -> str:
    return here.register.repository(repository).visibility.value


def hear(here: Places, place: int = -1) -> None:
    """One of the deliveries arrives and is worked on."""
    arrival = heard(here, here.github.hooks.deliveries[place])
    here.inbox.put([replace(arrival, id=f"{arrival.id}-{next(here.guids)}")])
    work = here.begin(arrival.repository)
    results = apply_installation_events(work, here.inbox, here.tokens, here.forgotten.append)
    here.inbox.end(work, results, RunReport())


@pytest.mark.parametrize("named", ["private", "internal"])
def test_a_repository_that_became_narrower_is_known_to_be_and_comments_are_worked_out_again(
    here: Places, named: str
) -> None:
    first, second = known(here)
    here.github.tenants.set_visibility(here.github, named)
    hear(here)
    assert visibility(here, first) == named
    assert here.waiting(second) == [ORGANISATION]


def test_comments_that_could_not_be_changed_while_it_was_archived_are_checked(here: Places) -> None:
    _, second = known(here)
    place = replace(second, number=0)
    for action, waiting in (("archived", []), ("unarchived", [ORGANISATION])):
        here.arrive(place, "repository", action, repository=str(second.number))
        work = here.begin(place)
        here.inbox.end(
            work, apply_installation_events(work, here.inbox, here.tokens, here.forgotten.append), RunReport()
        )
        assert here.waiting(second) == waiting


def test_an_event_is_not_believed_when_it_comes_late(here: Places) -> None:
    first, _ = known(here)
    here.github.tenants.set_visibility(here.github, "private")
    here.github.tenants.set_visibility(here.github, "public")
    here.github.tenants.set_visibility(here.github, "private")
    for place in (-1, -2, -3):
        hear(here, place)
        assert visibility(here, first) == "private"


def test_an_event_of_a_repository_that_is_not_known_makes_it_no_known_one(here: Places) -> None:
    known(here)
    third = here.github.add_project("octocat/third")
    number = here.github.tenants.install("octocat", ["octocat/third"])
    here.github.tenants.set_visibility(third, "private")
    hear(here)
    assert RepositoryKey(number, third.repo.id) not in [row.repository for row in here.register.repositories()]


def test_events_that_narrow_come_before_other_work(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    for verb, priority in (
        (lambda: here.github.tenants.set_visibility(here.github, "private"), Priority.URGENT),
        (lambda: here.github.tenants.set_visibility(here.github, "public"), Priority.URGENT),
        (lambda: here.github.tenants.remove(number, [OTHER]), Priority.URGENT),
        (lambda: here.github.tenants.rename(here.github, "renamed"), Priority.CHANGE),
    ):
        verb()
        assert heard(here, here.github.hooks.deliveries[-1]).priority is priority


def test_the_list_of_repositories_finds_what_no_event_told(here: Places) -> None:
    first, second = known(here)
    here.github.tenants.lose = True
    here.github.tenants.set_visibility(here.github, "private")
    here.inbox.heartbeat(PLACES, {"day": 0})
    sweep(here)
    assert visibility(here, first) == "private"
    assert ORGANISATION in here.waiting(second)


def test_a_token_says_who_may_read_its_repository(here: Places) -> None:
    first, _ = known(here)
    for named in Visibility:
        here.github.repo.private, here.github.repo.internal = named != "public", named == "internal"
        here.tokens.forget(first)
        grant = here.tokens.grant(first, here.clock.now)
        assert (grant.visibility, grant.asked_at) == (named, here.clock.now)
    listed = {each.id: each.visibility for each in here.api.repositories(first.installation)}
    assert listed[first.number] is grant.visibility


@pytest.mark.parametrize(
    ("error", "event", "state"),
    [
        (Suspended("suspended"), ORGANISATION, "waiting"),
        (Suspended("suspended"), "issues", "dropped"),
        (NotInstalled("gone"), ORGANISATION, "dropped"),
        (Unreachable("down"), ORGANISATION, "waiting"),
        (Unreachable("down"), "issues", "dead"),
        (Bug("a bug"), ORGANISATION, "dead"),
    ],
)
def test_what_has_to_be_taken_back_is_not_given_up(error: PrecedentError, event: str, state: str) -> None:
    delivery = Delivery(
        1, "9:a", RepositoryKey(7, 1), Event(event, number=5), "octocat/hello-world", False, "working", 0, attempts=99
    )
    result = judge(error, delivery, 1_000, 8)
    assert result.state == state
    assert result.next_at == (1_000 + HOUR if state == "waiting" else 0)
