"""Tokens are for one repository, kept for an hour at most, and forgotten when they may be wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from bot.github.app import InstallationToken
from bot.github.errors import NotInstalled
from bot.server.installations import LIFE, SPARE, TokenCache
from bot.server.model import RepositoryKey

NOW = 1_767_614_400_000
REPOSITORY, OTHER, FOREIGN = RepositoryKey(1, 10), RepositoryKey(1, 11), RepositoryKey(2, 10)


class Mint:
    """Gives tokens that count up; repositories may be renamed, or lost. Minting a token does ``meanwhile`` first."""

    def __init__(self, ahead: int = 0) -> None:
        self.asked: list[RepositoryKey] = []
        self.names = {10: "octocat/hello-world", 11: "octocat/other"}
        self.ends = NOW + LIFE + ahead
        self.meanwhile: Callable[[], None] = lambda: None

    def create_token(self, installation: int, repository: int) -> InstallationToken:
        self.asked.append(RepositoryKey(installation, repository))
        name = self.names.get(repository)
        if name is None:
            raise NotInstalled("gone")
        self.meanwhile()
        return InstallationToken(f"token-{len(self.asked)}", self.ends, name, private=False)


def kept(mint: Mint) -> TokenCache:
    return TokenCache(mint)  # type: ignore[arg-type]  # nothing else of an App is asked for


def test_a_token_is_asked_for_once_and_named_after_its_repository() -> None:
    mint = Mint()
    tokens = kept(mint)
    first = tokens.grant(REPOSITORY, NOW)
    assert (first.repository, first.token, first.name, first.private) == (
        REPOSITORY,
        "token-1",
        "octocat/hello-world",
        False,
    )
    assert tokens.grant(REPOSITORY, NOW + LIFE - SPARE) == first
    assert mint.asked == [REPOSITORY]


def test_a_token_is_renewed_while_it_is_still_good_for_a_run() -> None:
    tokens = kept(mint := Mint())
    tokens.grant(REPOSITORY, NOW)
    mint.ends = NOW + 2 * LIFE
    assert tokens.grant(REPOSITORY, NOW + LIFE - SPARE + 1).token == "token-2"


def test_no_repository_gets_the_token_of_another() -> None:
    tokens = kept(Mint())
    found = {tokens.grant(repository, NOW).token for repository in (REPOSITORY, OTHER, FOREIGN, REPOSITORY)}
    assert len(found) == 3


def test_a_clock_that_is_behind_does_not_keep_a_token_for_longer_than_it_lives() -> None:
    tokens = kept(Mint(ahead=10 * LIFE))
    tokens.grant(REPOSITORY, NOW)
    assert tokens.grant(REPOSITORY, NOW + LIFE - SPARE + 1).token == "token-2"


def test_with_a_clock_that_is_ahead_there_is_a_token_all_the_same() -> None:
    tokens = kept(Mint(ahead=-2 * LIFE))
    assert tokens.grant(REPOSITORY, NOW).token == "token-1"
    assert tokens.grant(REPOSITORY, NOW).token == "token-2"


def test_after_a_rename_the_token_is_forgotten_and_the_next_one_names_it_anew() -> None:
    tokens = kept(mint := Mint())
    tokens.grant(REPOSITORY, NOW)
    mint.names[10] = "octocat/renamed"
    assert tokens.grant(REPOSITORY, NOW).name == "octocat/hello-world"
    tokens.forget(REPOSITORY)
    assert tokens.grant(REPOSITORY, NOW).name == "octocat/renamed"


@pytest.mark.parametrize(
    ("repository", "installation", "gone"),
    [
        (REPOSITORY, 0, {REPOSITORY}),
        (None, 1, {REPOSITORY, OTHER}),
        (None, 2, {FOREIGN}),
        (None, 0, {REPOSITORY, OTHER, FOREIGN}),
    ],
)
def test_tokens_are_forgotten_by_repository_by_installation_or_all(
    repository: RepositoryKey | None, installation: int, gone: set[RepositoryKey]
) -> None:
    tokens = kept(mint := Mint())
    for each in (REPOSITORY, OTHER, FOREIGN):
        tokens.grant(each, NOW)
    tokens.forget(repository, installation)
    mint.asked.clear()
    for each in (REPOSITORY, OTHER, FOREIGN):
        tokens.grant(each, NOW)
    assert set(mint.asked) == gone


def test_what_was_asked_for_before_it_was_forgotten_is_not_kept_after() -> None:
    tokens = kept(mint := Mint())
    mint.meanwhile = lambda: tokens.forget(REPOSITORY)
    assert tokens.grant(REPOSITORY, NOW).token == "token-1"
    mint.meanwhile = lambda: None
    assert tokens.grant(REPOSITORY, NOW).token == "token-2"


def test_a_repository_that_is_not_ours_any_more_has_no_token() -> None:
    tokens = kept(mint := Mint())
    tokens.grant(REPOSITORY, NOW)
    tokens.forget(REPOSITORY)
    del mint.names[10]
    with pytest.raises(NotInstalled):
        tokens.grant(REPOSITORY, NOW)


def test_tokens_that_have_ended_are_not_held_on_to() -> None:
    tokens = kept(mint := Mint())
    tokens.grant(REPOSITORY, NOW)
    mint.ends = NOW + 3 * LIFE
    tokens.grant(OTHER, NOW + LIFE)
    assert "token-1" not in str(vars(tokens))
    assert set(tokens._grants) == {OTHER}


def test_many_threads_ask_at_once() -> None:
    tokens = kept(Mint())
    found: list[str] = []

    def ask() -> None:
        for number in range(50):
            repository = RepositoryKey(1, 10 + number % 2)
            found.append(tokens.grant(repository, NOW).name)
            tokens.forget(repository)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200
