"""The fixtures of the fakes, and plain clients."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import jwt
import pytest

from tests.fakes.fixtures import git_server, github
from tests.fakes.github import FakeGitHub
from tests.github.keys import key_pair

__all__ = ["git_server", "github"]


@pytest.fixture
def http(github: FakeGitHub) -> Iterator[httpx.Client]:
    """Plain requests with the workflow's token; `github.url` is the base URL."""
    with httpx.Client(base_url=github.url, headers=bearer(github.token)) as client:
        yield client


@pytest.fixture
def app(github: FakeGitHub) -> Iterator[httpx.Client]:
    """Plain requests as App 77, which is installed nowhere yet."""
    github.add_app(77, "precedent", public_key=key_pair("first")[1]).installations.clear()
    with httpx.Client(base_url=github.url, headers=bearer(app_token())) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def app_token(key: str = "first", **claims: Any) -> str:
    """What App 77 signs with this key."""
    now = int(time.time())
    return jwt.encode({"iat": now - 60, "exp": now + 540, "iss": "77", **claims}, key_pair(key)[0], "RS256")
