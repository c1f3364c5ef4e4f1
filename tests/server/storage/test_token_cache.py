"""Tokens are for one repository, cached for an hour at most, and forgotten when they may be wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from bot.domain.organisation import Visibility
from bot.github.app import InstallationToken
from bot.github.errors import NotInstalled
from bot.server.model import RepositoryKey
from bot.server.storage.github_access import MIN_TOKEN_VALIDITY, TOKEN_LIFETIME, TokenCache

NOW = 1_767_614_400_000
REPOSITORY, OTHER, FOREIGN = RepositoryKey(1, 10), RepositoryKey(1, 11), RepositoryKey(2, 10)


class FakeTokenApi:
    """Issues numbered tokens; repositories may be renamed or lost. Calls ``before_token`` before it returns one."""

    def __init__(self, ahead: int = 0) -> None:
        self.requests: list[RepositoryKey] = []
        self.names = {10: "octocat/hello-world", 11: "octocat/other"}
        self.ends = NOW + TOKEN_LIFETIME + ahead
        self.before_token: Callable[[], None] = lambda: None

    def create_token(self, installation: int, repository: int) -> InstallationToken:
        self.requests.append(RepositoryKey(installation, repository))
        name = self.names.get(repository)
        if name is None:
            raise NotInstalled("gone")
        self.before_token()
        return InstallationToken(f"token-{len(self.requests)}", self.ends, name, Visibility.PUBLIC)


def token_cache(api: FakeTokenApi) -> TokenCache:
    return TokenCache(api)  # type: ignore[arg-type]  # nothing else of an App is used


def test_a_token_is_requested_once_and_carries_the_name_of_its_repository() -> None:
    api = FakeTokenApi()
    tokens = token_cache(api)
    first = tokens.grant(REPOSITORY, NOW)
    assert (first.repository, first.token, first.name, first.visibility) == (
        REPOSITORY,
        "token-1",
        "octocat/hello-world",
        Visibility.PUBLIC,
    )
    assert tokens.grant(REPOSITORY, NOW + TOKEN_LIFETIME - MIN_TOKEN_VALIDITY) == first
    assert api.requests == [REPOSITORY]


def test_a_token_is_renewed_before_it_is_too_old_for_a_run() -> None:
    tokens = token_cache(api := FakeTokenApi())
    tokens.grant(REPOSITORY, NOW)
    api.ends = NOW + 2 * TOKEN_LIFETIME
    assert tokens.grant(REPOSITORY, NOW + TOKEN_LIFETIME - MIN_TOKEN_VALIDITY + 1).token == "token-2"


def test_no_repository_gets_the_token_of_another() -> None:
    tokens = token_cache(FakeTokenApi())
    texts = {tokens.grant(repository, NOW).token for repository in (REPOSITORY, OTHER, FOREIGN, REPOSITORY)}
    assert len(texts) == 3


def test_a_slow_clock_does_not_keep_a_token_beyond_its_lifetime() -> None:
    tokens = token_cache(FakeTokenApi(ahead=10 * TOKEN_LIFETIME))
    tokens.grant(REPOSITORY, NOW)
    assert tokens.grant(REPOSITORY, NOW + TOKEN_LIFETIME - MIN_TOKEN_VALIDITY + 1).token == "token-2"


def test_a_fast_clock_still_gets_a_token() -> None:
    tokens = token_cache(FakeTokenApi(ahead=-2 * TOKEN_LIFETIME))
    assert tokens.grant(REPOSITORY, NOW).token == "token-1"
    assert tokens.grant(REPOSITORY, NOW).token == "token-2"


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
    tokens = token_cache(api := FakeTokenApi())
    for each in (REPOSITORY, OTHER, FOREIGN):
        tokens.grant(each, NOW)
    tokens.forget(repository, installation)
    api.requests.clear()
    for each in (REPOSITORY, OTHER, FOREIGN):
        tokens.grant(each, NOW)
    assert set(api.requests) == gone


def test_a_token_requested_before_it_was_forgotten_is_not_cached() -> None:
    tokens = token_cache(api := FakeTokenApi())
    api.before_token = lambda: tokens.forget(REPOSITORY)
    assert tokens.grant(REPOSITORY, NOW).token == "token-1"
    api.before_token = lambda: None
    assert tokens.grant(REPOSITORY, NOW).token == "token-2"


def test_expired_tokens_are_not_kept() -> None:
    tokens = token_cache(api := FakeTokenApi())
    tokens.grant(REPOSITORY, NOW)
    api.ends = NOW + 3 * TOKEN_LIFETIME
    tokens.grant(OTHER, NOW + TOKEN_LIFETIME)
    assert "token-1" not in str(vars(tokens))
    assert set(tokens._grants) == {OTHER}


def test_many_threads_can_request_tokens_at_once() -> None:
    tokens = token_cache(FakeTokenApi())
    names: list[str] = []

    def request_tokens() -> None:
        for number in range(50):
            repository = RepositoryKey(1, 10 + number % 2)
            names.append(tokens.grant(repository, NOW).name)
            tokens.forget(repository)

    threads = [threading.Thread(target=request_tokens) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 200
