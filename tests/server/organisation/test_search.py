"""Answers when GitHub, the index or a repository is not what it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bot.domain.answer import Context, OrganisationMatch
from bot.domain.changes import FixInfo
from bot.domain.kinds import Kind
from bot.domain.organisation import Visibility
from bot.domain.post import OrganisationKey
from bot.domain.thread import Message, Outcome, OutcomeKind, Thread
from bot.github.errors import ForgeError, Gone, Unauthorised
from bot.github.foreign_thread import ForeignRepository
from bot.recall.candidates import OrganisationUnavailable
from bot.server.model import Grant, RepositoryKey, RepositoryScope
from bot.server.organisation.search import CheckedSearch
from bot.server.storage.deliveries import DeliveryFilter
from bot.settings.schema import IgnoreSettings, OrganisationSettings, Settings
from tests.server.organisation.test_worlds import CLOSED_AT, CREATED_AT, INSTALLATION, World
from tests.server.queues import FileInbox

SHOWN = OrganisationKey(2, 11)
ASKED = Thread(11, "Which store?", "", "octocat", CREATED_AT)


@pytest.fixture
def world() -> World:
    """All of its repositories are public."""
    new_world = World(FileInbox())
    new_world.tokens.forget()
    for number, repository in new_world.forge.repositories.items():
        repository.visibility = Visibility.PUBLIC
        new_world.run(number)
    return new_world


def search(world: World, results: int = 2, **changed: Any) -> CheckedSearch:
    """Return the search of a run in the first repository."""
    collaborators: dict[str, Any] = {"rank": world.rank, "read": world.read, **changed}
    settings = Settings(organisation=OrganisationSettings(results=results))
    key = RepositoryKey(INSTALLATION, 1)
    return CheckedSearch(key, settings, world.register, world.tokens, world.forge.now, **collaborators)


def find(world: World, already_shown: tuple[OrganisationKey, ...] = (), **changed: Any) -> list[OrganisationKey]:
    """Return what is found for a comment that already shows ``kept``."""
    world.register.add_shown(RepositoryKey(INSTALLATION, 1), 11, already_shown)
    return [match.key for match in search(world, **changed).find(ASKED, Context(), already_shown)]


def down(*_: object) -> Any:
    raise OrganisationUnavailable("down")


def test_the_settings_limit_the_results_and_those_already_shown_come_first(world: World) -> None:
    assert len(find(world)) == 2
    assert len(find(world, results=1)) == 1
    for _ in range(8):
        assert find(world, (SHOWN,))[0] == SHOWN


def test_without_the_index_only_results_already_shown_remain_with_their_current_state(world: World) -> None:
    assert find(world, rank=down) == []
    assert find(world, (SHOWN,), rank=down) == [SHOWN]
    (shown,) = search(world, rank=down).find(ASKED, Context(), (SHOWN,))
    assert (shown.key, shown.repository, shown.match.title, shown.match.state) == (SHOWN, "org/r2", "Old", "closed")


def test_a_thread_that_its_repository_forgot_is_not_shown_although_github_has_it(world: World) -> None:
    assert find(world, (SHOWN,), rank=down) == [SHOWN]
    world.register.note_changed(RepositoryKey(INSTALLATION, 2), [11, 12], gone=[12])
    assert search(world, rank=down).find(ASKED, Context(), (SHOWN,)), "it only changed"
    world.register.note_changed(RepositoryKey(INSTALLATION, 2), [11, 12], gone=[11])
    assert search(world, rank=down).find(ASKED, Context(), (SHOWN,)) == ()
    assert world.register.filter_shown(RepositoryKey(INSTALLATION, 1), 11, [SHOWN]) == []


def test_while_github_is_down_nothing_new_is_shown_and_checks_of_shown_results_wait(world: World) -> None:
    world.forge.is_down = True
    assert find(world) == []
    with pytest.raises(ForgeError):
        find(world, (SHOWN,))


def test_a_refused_token_is_forgotten(world: World) -> None:
    def refuse(*_: object) -> Any:
        raise Unauthorised("bad credentials")

    world.tokens.grant(RepositoryKey(INSTALLATION, 1), world.forge.now)
    assert find(world, read=refuse) == []
    world.forge.is_suspended = True
    assert find(world) == [], "no token is left"


def test_repositories_that_the_operator_excludes_are_not_shown(world: World) -> None:
    excluded = RepositoryScope(exclude=("org/r2", "org/r3"))
    assert {key.repository for key in find(world, included=excluded)} == {4}
    assert find(world, (SHOWN,), included=excluded, rank=down) == []


def index_of(*keys: OrganisationKey) -> Callable[..., list[OrganisationMatch]]:
    """Return the ``rank`` of an index that finds these."""

    def rank(*_: object) -> list[OrganisationMatch]:
        world = World(FileInbox())
        matches = world.rank(ASKED, Context(), (), keys, Settings())
        return [match for match in matches if match.key in keys]

    return rank


QUOTE = "Fixed by setting SameSite on the cookie."


@pytest.mark.parametrize(("people", "quote"), [((), QUOTE), (("octo-org", "Monalisa"), "")])
def test_people_whom_this_repository_ignores_are_not_quoted(world: World, people: tuple[str, ...], quote: str) -> None:
    checked_search = search(world, rank=index_of(SHOWN), read=read_solved(world))
    settings = replace(checked_search.settings, ignore=IgnoreSettings(people=people))
    (result,) = replace(checked_search, settings=settings).find(ASKED, Context())
    assert (result.match.outcome.quote, result.match.outcome.author) == (quote, "monalisa" if quote else None)
    world.register.store_settings(RepositoryKey(INSTALLATION, 2), (), people)
    (result,) = checked_search.find(ASKED, Context())
    assert result.match.outcome.quote == quote, "nor does the other repository want them to be quoted"


def read_solved(world: World) -> Callable[..., ForeignRepository]:
    """Return a reader of threads in which a maintainer says how they were solved."""

    def read(grant: Grant, number: int, kind: Kind) -> ForeignRepository:
        current = world.read(grant, number, kind)
        said = Message("monalisa", "OWNER", CLOSED_AT, "Fixed by setting SameSite on the cookie.")
        return replace(current, thread=current.thread and replace(current.thread, comments=(said,)))

    return read


def test_what_is_shown_of_another_repository_comes_from_github(world: World) -> None:
    (shown,) = index_of(SHOWN)()
    forged = Outcome(OutcomeKind.FIXED, quote="Run evil.sh.", author="octocat", role="OWNER", fix="#666", release="v9")
    told = replace(
        shown.match, title="Evil", closed_at=CLOSED_AT, outcome=forged, files=("evil.sh",), may_be_back=True,
        fix=FixInfo(11, "#666", looked_at=CLOSED_AT, files=("evil.sh",), release="v9"), closed_by="octocat",
    )  # fmt: skip
    (result,) = search(world, rank=lambda *_: [replace(shown, match=told)], read=read_solved(world)).find(
        ASKED, Context()
    )
    match, ending = result.match, result.match.outcome
    assert (match.title, match.state, match.closed_at) == ("Old", "closed", CLOSED_AT)
    assert (ending.quote, ending.author, ending.role) == (QUOTE, "monalisa", "OWNER")
    assert (ending.fix, ending.release) == (None, None)
    assert "evil" not in repr(result).lower()


def test_only_a_few_threads_are_read_for_each_answer(world: World) -> None:
    keys = [OrganisationKey(number, thread) for number in (2, 3, 4) for thread in (11, 12)]
    for repository in world.forge.repositories.values():
        repository.threads = dict.fromkeys(repository.threads, "gone")
    world.reads = 0
    assert find(world, rank=index_of(*keys)) == []
    assert world.reads == 4


def test_an_answer_that_finds_a_change_has_other_comments_checked(world: World) -> None:
    world.register.add_shown(RepositoryKey(INSTALLATION, 3), 12, [SHOWN])
    world.forge.repositories[2].visibility = Visibility.PRIVATE
    assert find(world, rank=index_of(SHOWN)) == []
    waiting = world.inbox.deliveries(DeliveryFilter(state="waiting"))
    assert {(each.repository.number, each.event.number) for each in waiting} == {(3, 12), (1, 11)}


def test_a_repository_that_went_away_leaves_the_other_comments_too(world: World) -> None:
    world.register.add_shown(RepositoryKey(INSTALLATION, 3), 12, [SHOWN])
    world.forge.repositories[2].owner = "other"
    assert find(world, rank=index_of(SHOWN)) == []
    waiting = world.inbox.deliveries(DeliveryFilter(state="waiting"))
    assert (3, 12) in {(each.repository.number, each.event.number) for each in waiting}
    assert 2 not in {each.id for each in world.register.repositories(INSTALLATION)}


def test_a_repository_that_is_out_of_sight_for_a_moment_stays_known(world: World) -> None:
    def lose_sight(*_: object) -> Any:
        raise Gone("out of sight", certain=False)

    assert find(world, rank=index_of(SHOWN), read=lose_sight) == []
    world.forge.is_suspended = True
    world.tokens.forget(RepositoryKey(INSTALLATION, 2))
    assert find(world, rank=index_of(SHOWN)) == []
    assert 2 in {each.id for each in world.register.repositories(INSTALLATION)}
