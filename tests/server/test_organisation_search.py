"""What an answer does where GitHub, the index or a repository is not what it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bot.domain.answer import Context, OrganisationKey, OrganisationMatch
from bot.domain.kinds import Kind
from bot.domain.organisation import Visibility
from bot.domain.thread import Outcome, OutcomeKind, Thread
from bot.github.errors import ForgeError, Unauthorised
from bot.recall.candidates import OrganisationUnavailable
from bot.server.model import RepositoryKey
from bot.server.organisation_search import CheckedSearch
from bot.server.scope import RepositoryScope
from bot.settings.schema import IgnoreSettings, OrganisationSettings, Settings
from tests.organisation_worlds import BEGAN, ENDED, INSTALLATION, World
from tests.server.queues import FileInbox

SHOWN = OrganisationKey(2, 11)
ASKED = Thread(11, Kind.ISSUE, "Which store?", "", "octocat", BEGAN, BEGAN)


@pytest.fixture
def world() -> World:
    """All of its repositories are public."""
    made = World(FileInbox())
    made.tokens.forget()
    for number, repository in made.forge.repositories.items():
        repository.visibility = Visibility.PUBLIC
        made.run(number)
    return made


def search(world: World, results: int = 2, **changed: Any) -> CheckedSearch:
    """The search of a run in the first repository."""
    given: dict[str, Any] = {"rank": world.rank, "read": world.read, **changed}
    settings = Settings(organisation=OrganisationSettings(results=results))
    key = RepositoryKey(INSTALLATION, 1)
    return CheckedSearch(key, settings, world.register, world.tokens, world.forge.now, **given)


def found(world: World, kept: tuple[OrganisationKey, ...] = (), **changed: Any) -> list[OrganisationKey]:
    """What is found where ``kept`` stands in the comment."""
    world.register.add_shown(RepositoryKey(INSTALLATION, 1), 11, kept)
    return [one.key for one in search(world, **changed).find(ASKED, Context(), kept)]


def down(*_: object) -> Any:
    raise OrganisationUnavailable("down")


def test_as_many_are_shown_as_the_settings_say_and_those_that_stand_there_first(world: World) -> None:
    assert len(found(world)) == 2
    assert len(found(world, results=1)) == 1
    for _ in range(8):
        assert found(world, (SHOWN,))[0] == SHOWN


def test_without_the_index_only_what_stands_there_is_shown_as_github_has_it(world: World) -> None:
    assert found(world, rank=down) == []
    assert found(world, (SHOWN,), rank=down) == [SHOWN]
    (one,) = search(world, rank=down).find(ASKED, Context(), (SHOWN,))
    assert (one.key, one.repository, one.match.title, one.match.state) == (SHOWN, "org/r2", "Old", "closed")


def test_what_its_repository_forgot_is_not_shown_though_github_has_it(world: World) -> None:
    assert found(world, (SHOWN,), rank=down) == [SHOWN]
    world.register.note_changed(RepositoryKey(INSTALLATION, 2), [11, 12], gone=[12])
    assert search(world, rank=down).find(ASKED, Context(), (SHOWN,)), "it only changed"
    world.register.note_changed(RepositoryKey(INSTALLATION, 2), [11, 12], gone=[11])
    assert search(world, rank=down).find(ASKED, Context(), (SHOWN,)) == ()
    assert world.register.filter_shown(RepositoryKey(INSTALLATION, 1), 11, [SHOWN]) == []


def test_while_github_is_down_nothing_new_is_shown_and_what_stands_there_waits(world: World) -> None:
    world.forge.is_down = True
    assert found(world) == []
    with pytest.raises(ForgeError):
        found(world, (SHOWN,))


def test_a_token_that_is_refused_is_asked_for_again(world: World) -> None:
    def refuse(*_: object) -> Any:
        raise Unauthorised("bad credentials")

    world.tokens.grant(RepositoryKey(INSTALLATION, 1), world.forge.now)
    assert found(world, read=refuse) == []
    world.forge.is_suspended = True
    assert found(world) == [], "no token is left"


def test_what_the_operator_excludes_is_not_shown(world: World) -> None:
    excluded = RepositoryScope(exclude=("org/r2", "org/r3"))
    assert {key.repository for key in found(world, included=excluded)} == {4}
    assert found(world, (SHOWN,), included=excluded, rank=down) == []


def of(*keys: OrganisationKey) -> Callable[..., list[OrganisationMatch]]:
    """An index that finds these."""

    def rank(*_: object) -> list[OrganisationMatch]:
        world = World(FileInbox())
        every = world.rank(ASKED, Context(), (), keys, Settings())
        return [one for one in every if one.key in keys]

    return rank


@pytest.mark.parametrize(("people", "quote"), [((), "Set SameSite."), (("octo-org", "Monalisa"), "")])
def test_those_whom_this_repository_does_not_quote_are_not_quoted(
    world: World, people: tuple[str, ...], quote: str
) -> None:
    (known,) = of(SHOWN)()
    ending = Outcome(OutcomeKind.FIXED, quote="Set SameSite.", author="monalisa", fix="#57")
    match = replace(known.match, closed_at=ENDED, outcome=ending)
    asked = search(world, rank=lambda *_: [replace(known, match=match)])
    settings = replace(asked.settings, ignore=IgnoreSettings(people=people))
    (one,) = replace(asked, settings=settings).find(ASKED, Context())
    told = one.match.outcome
    assert (told.quote, told.author, told.fix) == (quote, "monalisa" if quote else None, "#57")


def test_three_threads_are_read_at_most(world: World) -> None:
    keys = [OrganisationKey(number, thread) for number in (2, 3, 4) for thread in (11, 12)]
    for repository in world.forge.repositories.values():
        repository.threads = dict.fromkeys(repository.threads, "gone")
    world.reads = 0
    assert found(world, rank=of(*keys)) == []
    assert world.reads == 4


def test_an_answer_that_finds_a_change_tells_other_comments_of_it(world: World) -> None:
    world.register.add_shown(RepositoryKey(INSTALLATION, 3), 12, [SHOWN])
    world.forge.repositories[2].visibility = Visibility.PRIVATE
    assert found(world, rank=of(SHOWN)) == []
    waiting = world.inbox.deliveries(state="waiting")
    assert {(each.repository.number, each.event.number) for each in waiting} == {(3, 12), (1, 11)}
