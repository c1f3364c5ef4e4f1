"""The App at the API: tokens for one repository, what refuses them, and deliveries that are listed and sent again."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Iterator

import httpx
import pytest

from bot.errors import UserError, WorldError
from bot.github.app import EVENTS, PERMISSIONS, App, seconds_ahead
from bot.github.errors import ForgeError, NotInstalled, NotPermitted, RateLimited, Unauthorised, Unreachable
from tests.fakes.github import FakeGitHub
from tests.github.keys import key_pair

HELLO, OTHER = "octocat/hello-world", "octocat/other"


@pytest.fixture
def forge(github: FakeGitHub) -> FakeGitHub:
    """GitHub at the real time, with the App 77 that is installed nowhere yet."""
    github.clock.now = None
    github.add_app(77, "precedent", public_key=key_pair()[1]).installations.clear()
    return github


@pytest.fixture
def app(forge: FakeGitHub) -> Iterator[App]:
    with App(77, key_pair()[0], forge.url) as made:
        yield made


def status(forge: FakeGitHub, token: str, full_name: str) -> int:
    return httpx.get(f"{forge.url}/repos/{full_name}", headers={"Authorization": f"Bearer {token}"}).status_code


def test_the_app_says_who_it_is_and_what_it_may_do(forge: FakeGitHub, app: App) -> None:
    about = app.about()
    assert (about.id, about.slug, about.login) == (77, "precedent", "precedent[bot]")
    assert about.permissions == PERMISSIONS
    assert set(EVENTS) <= set(about.events)


def test_a_new_key_is_used_from_the_next_request_on(forge: FakeGitHub, app: App) -> None:
    private, public = key_pair("another")
    app.about()
    with pytest.raises(UserError, match="not an RSA key in PEM format"):
        app.use_key(private[:200])
    assert app.about().id == 77
    app.use_key(private)
    with pytest.raises(Unauthorised):
        app.about()
    forge.apps.known[77].public_key = public
    assert app.about().id == 77


@pytest.mark.parametrize("ahead", [0, 90, -3600])
def test_the_clock_of_github_is_compared_with_ours(forge: FakeGitHub, app: App, ahead: int) -> None:
    forge.ahead = ahead
    assert abs(app.about().ahead - ahead) < 2


def test_a_token_is_for_one_repository_with_the_least_permissions(forge: FakeGitHub, app: App) -> None:
    forge.add_project(OTHER).repo.private = True
    number = forge.tenants.install("octocat", [HELLO, OTHER])
    minted = app.create_token(number, forge.repo.id)
    assert (minted.full_name, minted.private) == (HELLO, False)
    assert 3500 < minted.expires_at / 1000 - time.time() < 3700
    assert forge.world.tokens[minted.token].permissions == PERMISSIONS
    assert status(forge, minted.token, HELLO) == 200
    assert status(forge, minted.token, OTHER) == 404


@pytest.mark.parametrize(
    ("accepted", "given"),
    [
        ({"discussions": "read"}, {"discussions": "read"}),
        ({"discussions": "write", "pull_requests": "write"}, {"discussions": "write", "pull_requests": "read"}),
        ({"actions": "write"}, {}),
    ],
)
def test_a_token_may_do_what_else_was_accepted(
    forge: FakeGitHub, app: App, accepted: dict[str, str], given: dict[str, str]
) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.apps.known[77].permissions |= accepted
    minted = app.create_token(number, forge.repo.id)
    assert forge.world.tokens[minted.token].permissions == PERMISSIONS | given
    asked = len(forge.requests)
    app.create_token(number, forge.repo.id)
    assert len(forge.requests) - asked == 1  # what was accepted is not read again


def test_what_is_accepted_later_counts_after_an_hour(
    forge: FakeGitHub, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    app.create_token(number, forge.repo.id)
    forge.apps.known[77].permissions["pull_requests"] = "read"
    assert forge.world.tokens[app.create_token(number, forge.repo.id).token].permissions == PERMISSIONS
    monkeypatch.setattr("bot.github.app.REREAD", 0.0)
    minted = app.create_token(number, forge.repo.id)
    assert forge.world.tokens[minted.token].permissions == PERMISSIONS | {"pull_requests": "read"}


def test_who_may_not_say_what_was_accepted_gives_a_token_nevertheless(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.apps.known[77].permissions["pull_requests"] = "read"
    forge.faults.add("GET /app/installations/*", "permission")
    assert forge.world.tokens[app.create_token(number, forge.repo.id).token].permissions == PERMISSIONS


def test_what_was_taken_from_the_app_is_not_asked_for_any_more(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.apps.known[77].permissions["pull_requests"] = "read"
    app.create_token(number, forge.repo.id)
    del forge.apps.known[77].permissions["pull_requests"]
    assert forge.world.tokens[app.create_token(number, forge.repo.id).token].permissions == PERMISSIONS


def test_a_token_says_what_the_repository_is_called_now(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.tenants.rename(forge, "renamed")
    forge.repo.private = True
    minted = app.create_token(number, forge.repo.id)
    assert (minted.full_name, minted.private) == ("octocat/renamed", True)


def test_without_an_installation_there_is_no_token(forge: FakeGitHub, app: App) -> None:
    with pytest.raises(NotInstalled, match="not installed there any more"):
        app.create_token(4711, forge.repo.id)


def test_what_the_installation_does_not_see_has_no_token(forge: FakeGitHub, app: App) -> None:
    other = forge.add_project(OTHER).repo.id
    number = forge.tenants.install("octocat", [HELLO])
    with pytest.raises(NotInstalled, match="may not see this repository"):
        app.create_token(number, other)


def test_a_suspended_installation_has_no_token(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.tenants.suspend(number)
    with pytest.raises(NotInstalled, match="suspended"):
        app.create_token(number, forge.repo.id)


def test_an_app_with_too_few_permissions_is_told_which_it_needs(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    forge.apps.known[77].permissions = {"issues": "read", "metadata": "read"}
    with pytest.raises(NotPermitted, match="issues: write, contents: write, metadata: read"):
        app.create_token(number, forge.repo.id)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("5xx", Unreachable), ("drop", Unreachable), ("html", Unreachable), ("primary403", RateLimited),
     ("secondary403", RateLimited), ("429", RateLimited), ("cut", Unreachable)],
)  # fmt: skip
def test_a_github_that_is_down_or_has_had_enough_is_not_taken_for_an_uninstalled_app(
    forge: FakeGitHub, app: App, kind: str, expected: type[ForgeError]
) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    app.create_token(number, forge.repo.id)  # after which it is known what was accepted
    forge.faults.add("POST /app/installations/*", kind)
    with pytest.raises(expected):
        app.create_token(number, forge.repo.id)
    assert app.create_token(number, forge.repo.id).token


@pytest.mark.parametrize("ahead", [0, 90, -3600])
def test_another_key_is_refused_in_words_that_say_what_to_check_and_with_the_clock(
    forge: FakeGitHub, ahead: int
) -> None:
    forge.ahead = ahead
    with App(77, key_pair("other")[0], forge.url) as app, pytest.raises(Unauthorised, match="its private key") as found:
        app.about()
    assert abs(found.value.ahead - ahead) < 2


@pytest.mark.parametrize(
    ("date", "ahead"),
    [("Fri, 31 Dec 9999 23:59:59 GMT", 2.5e11), ("Sat, 01 Jan 2000 00:00:00 GMT", -8e8), ("soon", 0.0), ("", 0.0)],
)
def test_whatever_date_an_answer_has_says_how_far_the_clock_is_off(date: str, ahead: float) -> None:
    assert seconds_ahead(date, 1.8e9) == pytest.approx(ahead, rel=0.1)


def test_a_key_that_was_replaced_works_at_once(forge: FakeGitHub, app: App) -> None:
    assert app.about().id == 77
    forge.apps.known[77].public_key = key_pair("new")[1]
    with App(77, key_pair("new")[0], forge.url) as fresh:
        assert fresh.about().id == 77
    with pytest.raises(Unauthorised):
        app.about()


@pytest.mark.parametrize("key", ["", "no key", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"])
def test_what_is_no_key_is_found_before_anything_is_asked(key: str) -> None:
    with pytest.raises(UserError, match="not an RSA key in PEM format") as caught:
        App(77, key, "http://127.0.0.1:9")
    assert "MIIE" not in "".join(traceback.format_exception(caught.value))


def test_no_token_and_no_key_is_in_any_error(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    app.create_token(number, forge.repo.id)  # after which it is known what was accepted
    told = []
    for kind in ("5xx", "drop", "html", "401", "404", "422", "permission", "cut", "429"):
        forge.faults.add("POST /app/installations/*", kind)
        with pytest.raises(WorldError) as caught:
            app.create_token(number, forge.repo.id)
        told += traceback.format_exception(caught.value)
    text = "".join(told)
    body = key_pair()[0].splitlines()[1]
    assert "eyJ" not in text
    assert body not in text
    assert not any(token in text for token in forge.world.tokens if token.startswith("ghs_77"))


def test_installations_and_their_repositories_are_listed_to_the_last_page(forge: FakeGitHub, app: App) -> None:
    names = [f"octo-org/project-{number}" for number in range(103)]
    ids = [forge.add_project(name).repo.id for name in names]
    number = forge.tenants.install("octo-org", names)
    other = forge.tenants.install("octocat", [HELLO])
    forge.tenants.suspend(other)
    found = [(each.id, each.account, each.suspended) for each in app.installations()]
    assert found == [(number, "octo-org", False), (other, "octocat", True)]
    listed = [(each.id, each.name, each.private) for each in app.repositories(number)]
    assert listed == [(each, name, False) for each, name in zip(ids, names, strict=True)]


def test_deliveries_are_listed_back_to_a_time_over_all_pages(forge: FakeGitHub, app: App) -> None:
    forge.tenants.install("octocat", [HELLO])
    forge.clock.now = "2026-01-05T12:00:00Z"
    for _ in range(150):
        forge.clock.advance(60)
        forge.tenants.deliver(forge, "push")
    until = 1767614400_000 + 40 * 60_000
    found = list(app.deliveries(until))
    assert len(found) == 111
    assert [each.delivered_at for each in found] == sorted((each.delivered_at for each in found), reverse=True)
    assert found[-1].delivered_at == until
    last = found[0]
    assert (last.event, last.status_code, last.repository_id) == ("push", 502, forge.repo.id)


def test_a_delivery_is_asked_for_again(forge: FakeGitHub, app: App) -> None:
    forge.tenants.install("octocat", [HELLO])
    (lost,) = app.deliveries(0)
    app.redeliver(lost.id)
    deadline = time.monotonic() + 5
    while len(forge.hooks.deliveries) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [each.guid for each in app.deliveries(0)] == [lost.guid] * 2


def test_one_app_serves_many_threads_over_kept_connections(forge: FakeGitHub, app: App) -> None:
    number = forge.tenants.install("octocat", [HELLO])
    found: list[str] = []

    def mint() -> None:
        found.extend(app.create_token(number, forge.repo.id).token for _ in range(3))

    threads = [threading.Thread(target=mint) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 24
