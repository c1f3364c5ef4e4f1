"""The App at the API: tokens for one repository, when they are refused, and listing and resending deliveries."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, tzinfo

import httpx
import pytest

from bot.errors import UserError
from bot.github.app import EVENTS, PERMISSIONS, PERMISSIONS_TTL, App, seconds_ahead
from bot.github.errors import ForgeError, NotInstalled, NotPermitted, RateLimited, Unauthorised, Unreachable
from tests.fakes.github import FakeGitHub
from tests.github.keys import key_pair

HELLO, OTHER = "octocat/hello-world", "octocat/other"


@pytest.fixture
def forge(github: FakeGitHub) -> FakeGitHub:
    """GitHub at the real time, with App 77, which is not installed anywhere yet."""
    github.clock.now = None
    github.add_app(77, "precedent", public_key=key_pair()[1]).installations.clear()
    return github


@pytest.fixture
def app(forge: FakeGitHub) -> Iterator[App]:
    with App(77, key_pair()[0], forge.url) as client:
        yield client


def status(forge: FakeGitHub, token: str, full_name: str) -> int:
    return httpx.get(f"{forge.url}/repos/{full_name}", headers={"Authorization": f"Bearer {token}"}).status_code


def test_the_app_knows_its_identity_permissions_and_events(forge: FakeGitHub, app: App) -> None:
    about = app.about()
    assert (about.id, about.slug, about.login) == (77, "precedent", "precedent[bot]")
    assert about.permissions == PERMISSIONS
    assert set(EVENTS) <= set(about.events)


def test_a_new_key_is_used_from_the_next_request(forge: FakeGitHub, app: App) -> None:
    private, public = key_pair("another")
    app.about()
    with pytest.raises(UserError, match="not an RSA key in PEM format"):
        app.use_key(private[:200])
    assert app.about().id == 77
    app.use_key(private)
    with pytest.raises(Unauthorised):
        app.about()
    forge.apps.by_id[77].public_key = public
    assert app.about().id == 77


class SlowClock(datetime):
    """A clock that is an hour behind."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) - timedelta(hours=1)


def test_a_signature_from_before_the_clock_was_corrected_is_made_again(
    forge: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as wrong:
        wrong.setattr("githubkit.auth.app.datetime", SlowClock)
        app = App(77, key_pair()[0], forge.url)
        with pytest.raises(Unauthorised):
            app.about()
    with app:
        assert app.about().id == 77


@pytest.mark.parametrize("ahead", [0, 90, -3600])
def test_the_difference_to_the_clock_of_github_is_measured_even_with_a_wrong_key(
    forge: FakeGitHub, app: App, ahead: int
) -> None:
    forge.ahead = ahead
    assert abs(app.about().ahead - ahead) < 2
    with (
        App(77, key_pair("other")[0], forge.url) as stranger,
        pytest.raises(Unauthorised, match="its private") as caught,
    ):
        stranger.about()
    assert abs(caught.value.ahead - ahead) < 2


def test_a_token_is_for_one_repository_with_the_least_permissions(forge: FakeGitHub, app: App) -> None:
    forge.add_project(OTHER).repo.private = True
    number = forge.tenants.install("octocat", [HELLO, OTHER])
    minted = app.create_token(number, forge.repo.id)
    assert (minted.full_name, minted.visibility) == (HELLO, "public")
    assert 3500 < minted.expires_at / 1000 - time.time() < 3700
    assert forge.world.tokens[minted.token].permissions == PERMISSIONS
    assert status(forge, minted.token, HELLO) == 200
    assert status(forge, minted.token, OTHER) == 404


@pytest.mark.parametrize(
    ("accepted", "granted"),
    [
        ({"discussions": "read"}, {"discussions": "read"}),
        ({"discussions": "write", "pull_requests": "write"}, {"discussions": "write", "pull_requests": "read"}),
        ({"actions": "write"}, {}),
    ],
)
def test_a_token_gets_accepted_optional_permissions(
    forge: FakeGitHub, app: App, accepted: dict[str, str], granted: dict[str, str]
) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.apps.by_id[77].permissions |= accepted
    minted = app.create_token(number, forge.repo.id)
    assert forge.world.tokens[minted.token].permissions == PERMISSIONS | granted
    requests_before = len(forge.requests)
    app.create_token(number, forge.repo.id)
    assert len(forge.requests) - requests_before == 1  # the accepted permissions are not read again


@pytest.mark.parametrize(("ttl", "granted"), [(PERMISSIONS_TTL, {}), (0.0, {"pull_requests": "read"})])
def test_a_permission_accepted_later_is_used_once_those_read_are_too_old(
    forge: FakeGitHub, ttl: float, granted: dict[str, str]
) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    with App(77, key_pair()[0], forge.url, permissions_ttl=ttl) as app:
        app.create_token(number, forge.repo.id)
        forge.apps.by_id[77].permissions["pull_requests"] = "read"
        minted = app.create_token(number, forge.repo.id)
    assert forge.world.tokens[minted.token].permissions == PERMISSIONS | granted


def test_a_token_is_created_even_if_accepted_permissions_cannot_be_read(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.apps.by_id[77].permissions["pull_requests"] = "read"
    forge.faults.add("GET /app/installations/*", "permission")
    assert forge.world.tokens[app.create_token(number, forge.repo.id).token].permissions == PERMISSIONS


def test_a_permission_removed_from_the_app_is_no_longer_requested(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.apps.by_id[77].permissions["pull_requests"] = "read"
    app.create_token(number, forge.repo.id)
    del forge.apps.by_id[77].permissions["pull_requests"]
    assert forge.world.tokens[app.create_token(number, forge.repo.id).token].permissions == PERMISSIONS


def test_a_token_has_the_current_name_of_the_repository(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.tenants.rename(forge, "renamed")
    forge.repo.private = True
    minted = app.create_token(number, forge.repo.id)
    assert (minted.full_name, minted.visibility) == ("octocat/renamed", "private")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda it, number: it.tenants.uninstall(number), NotInstalled, "no longer installed there"),
        (lambda it, number: it.tenants.remove(number, [HELLO]), NotInstalled, "cannot see this repository"),
        (lambda it, number: it.tenants.suspend(number), NotInstalled, "suspended"),
        (lambda it, _: it.apps.by_id[77].permissions.pop("issues"), NotPermitted, "issues: write, contents: write"),
    ],
)
def test_the_error_says_why_there_is_no_token(
    forge: FakeGitHub, app: App, change: Callable[[FakeGitHub, int], object], error: type[ForgeError], words: str
) -> None:
    number = forge.tenants.install("octocat", [HELLO, forge.add_project(OTHER).repo.full_name])
    change(forge, number)
    with pytest.raises(error, match=words):
        app.create_token(number, forge.repo.id)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("5xx", Unreachable), ("drop", Unreachable), ("html", Unreachable), ("cut", Unreachable),
     ("primary403", RateLimited), ("secondary403", RateLimited), ("429", RateLimited), ("401", Unauthorised),
     ("404", NotInstalled), ("422", NotInstalled), ("permission", NotPermitted)],
)  # fmt: skip
def test_each_fault_has_an_error_that_contains_no_token_or_key_and_does_not_last(
    forge: FakeGitHub, app: App, kind: str, expected: type[ForgeError]
) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    app.create_token(number, forge.repo.id)  # from now on the accepted permissions are known
    forge.faults.add("POST /app/installations/*", kind, times=2 if kind == "401" else 1)  # a new signature is tried
    with pytest.raises(expected) as caught:
        app.create_token(number, forge.repo.id)
    text = "".join(traceback.format_exception(caught.value))
    tokens = [token for token in forge.world.tokens if token.startswith("ghs_77")]
    assert not any(secret in text for secret in ("eyJ", key_pair()[0].splitlines()[1], *tokens))
    assert app.create_token(number, forge.repo.id).token


@pytest.mark.parametrize(
    ("date", "ahead"),
    [("Fri, 31 Dec 9999 23:59:59 GMT", 2.5e11), ("Sat, 01 Jan 2000 00:00:00 GMT", -8e8), ("soon", 0.0), ("", 0.0)],
)
def test_the_clock_difference_follows_from_any_date_header(date: str, ahead: float) -> None:
    assert seconds_ahead(date, 1.8e9) == pytest.approx(ahead, rel=0.1)


@pytest.mark.parametrize("key", ["", "no key", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"])
def test_a_malformed_key_is_refused_before_any_request(key: str) -> None:
    with pytest.raises(UserError, match="not an RSA key in PEM format") as caught:
        App(77, key, "http://127.0.0.1:9")
    assert "MIIE" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.slow
def test_installations_and_their_repositories_are_listed_to_the_last_page(forge: FakeGitHub, app: App) -> None:
    names = [f"octo-org/project-{number}" for number in range(103)]
    ids = [forge.add_project(name).repo.id for name in names]
    number = forge.tenants.install("octo-org", names)
    other = forge.tenants.install("octocat", [HELLO])
    forge.tenants.suspend(other)
    installations = [(item.id, item.account, item.suspended) for item in app.installations()]
    assert installations == [(number, "octo-org", False), (other, "octocat", True)]
    listed = [(item.id, item.name, item.visibility) for item in app.repositories(number)]
    assert listed == [(item, name, "public") for item, name in zip(ids, names, strict=True)]


def test_deliveries_are_listed_over_all_pages_back_to_a_time(forge: FakeGitHub, app: App) -> None:
    forge.tenants.install("octocat", [HELLO])
    forge.clock.now = "2026-01-05T12:00:00Z"
    for _ in range(150):
        forge.clock.advance(60)
        forge.tenants.deliver(forge, "push")
    until = 1767614400_000 + 40 * 60_000
    deliveries = list(app.deliveries(until))
    assert len(deliveries) == 111
    assert [item.delivered_at for item in deliveries] == sorted(
        (item.delivered_at for item in deliveries), reverse=True
    )
    assert deliveries[-1].delivered_at == until
    newest = deliveries[0]
    assert (newest.event, newest.status_code, newest.repository_id) == ("push", 502, forge.repo.id)


def test_a_delivery_can_be_requested_again(forge: FakeGitHub, app: App) -> None:
    forge.tenants.install("octocat", [HELLO])
    (lost,) = app.deliveries(0)
    app.redeliver(lost.id)
    deadline = time.monotonic() + 5
    while len(forge.hooks.deliveries) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [item.guid for item in app.deliveries(0)] == [lost.guid] * 2


@pytest.mark.slow
def test_one_app_serves_many_threads_over_persistent_connections(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    tokens: list[str] = []

    def mint() -> None:
        tokens.extend(app.create_token(number, forge.repo.id).token for _ in range(3))

    threads = [threading.Thread(target=mint) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tokens)) == 24
