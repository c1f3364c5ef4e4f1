"""Real GitHub clients connected to the fake, without their own pauses and retries."""

from __future__ import annotations

from github import Auth, Github
from githubkit import GitHub, TokenAuthStrategy

from tests.fakes.github import FakeGitHub


def connect_pygithub(fake: FakeGitHub, token: str | None = None, base_url: str | None = None) -> Github:
    return Github(
        base_url=base_url or fake.url,
        auth=Auth.Token(token or fake.token),
        seconds_between_requests=0,
        seconds_between_writes=0,
        retry=None,
        per_page=100,
    )


def connect_githubkit(fake: FakeGitHub, token: str | None = None) -> GitHub[TokenAuthStrategy]:
    """Use it as a context manager, so that its connections are closed."""
    auth = TokenAuthStrategy(token or fake.token)
    return GitHub(auth, base_url=fake.url, auto_retry=False, http_cache=False)
