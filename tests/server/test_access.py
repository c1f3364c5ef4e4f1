"""Who may look, who may operate, and which requests may change something."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.access import Access, AccessDenied, Role, has_credentials, is_from_own_page, role_of
from bot.server.options import ServerOptions
from tests.server.client import PASSWORD, knowing, once
from tests.server.doorway import running

OPERATOR = "close sesame, please"
OPTIONS = ServerOptions(status_password=PASSWORD, operator_password=OPERATOR)
NEAR = ("127.0.0.1", 1)


def headers(password: str, **more: str) -> dict[str, str]:
    """As the web server gives them: names in lower case."""
    given = knowing(f"precedent:{password}") | {name.replace("_", "-"): text for name, text in more.items()}
    return {name.lower(): text for name, text in given.items()}


def operated(method: str = "POST", options: ServerOptions = OPTIONS, **more: str) -> Role | int:
    """The role in which a request of the operator may change something, or the status of the answer."""
    password = more.pop("password", OPERATOR)
    found = Access(lambda: options).authorize_change(method, headers(password, **more), NEAR)
    return found.status if isinstance(found, AccessDenied) else found


@pytest.mark.parametrize(
    ("look", "operate", "given", "role"),
    [
        (PASSWORD, OPERATOR, PASSWORD, Role.LOOK),
        (PASSWORD, OPERATOR, OPERATOR, Role.OPERATE),
        (PASSWORD, OPERATOR, "", None),
        (PASSWORD, OPERATOR, f"{OPERATOR} ", None),
        (PASSWORD, "", PASSWORD, Role.LOOK),
        (PASSWORD, "", "", None),
        ("", OPERATOR, "", None),
        (PASSWORD, PASSWORD, PASSWORD, Role.LOOK),
    ],
)
def test_a_password_gives_one_role_and_none_gives_none(look: str, operate: str, given: str, role: Role | None) -> None:
    options = ServerOptions(status_password=look, operator_password=operate)
    assert role_of(headers(given)["authorization"], options) is role


def test_a_password_that_is_none_is_known_by_nobody() -> None:
    assert not has_credentials(headers("")["authorization"], "precedent", "")
    assert has_credentials(headers("x")["authorization"], "precedent", "x")


@pytest.mark.parametrize(
    ("given", "own"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-origin", "origin": "https://bot.example.org", "host": "127.0.0.1:8080"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "cross-site", "origin": "http://localhost:8080", "host": "localhost:8080"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"origin": "http://localhost:8080", "host": "localhost:8080"}, True),
        ({"origin": "https://Bot.example.org", "host": "bot.example.org"}, True),
        ({"origin": "http://localhost:8081", "host": "localhost:8080"}, False),
        ({"origin": "https://evil.example.org", "host": "bot.example.org"}, False),
        ({"origin": "https://bot.example.org.evil.example", "host": "bot.example.org"}, False),
        ({"origin": "https://evil.example/bot.example.org", "host": "bot.example.org"}, False),
        ({"origin": "null", "host": "null"}, False),
        ({"origin": "null"}, False),
        ({"host": ""}, False),
        ({"host": "bot.example.org"}, False),
        ({"referer": "https://bot.example.org/", "host": "bot.example.org"}, False),
    ],
)
def test_a_change_comes_from_our_own_page_if_the_browser_says_so(given: dict[str, str], own: bool) -> None:
    assert is_from_own_page(given) is own


def test_an_operator_changes_something_by_a_form_of_our_own_page() -> None:
    assert operated(sec_fetch_site="same-origin") is Role.OPERATE
    assert operated(origin="http://localhost") is Role.OPERATE


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "post"])
def test_another_method_changes_nothing(method: str) -> None:
    assert operated(method, sec_fetch_site="same-origin") == 405


def test_a_form_of_another_site_changes_nothing_although_the_browser_sends_the_password() -> None:
    assert operated(sec_fetch_site="cross-site") == 403
    assert operated(origin="https://evil.example.org") == 403
    assert operated() == 403


def test_who_may_only_look_is_asked_for_the_other_password() -> None:
    assert operated(password=PASSWORD, sec_fetch_site="same-origin") == 401
    assert operated(password="a guess", sec_fetch_site="same-origin") == 401


def test_without_an_operators_password_nobody_operates() -> None:
    options = ServerOptions(status_password=PASSWORD)
    assert operated(options=options, password=PASSWORD, sec_fetch_site="same-origin") == 403
    assert operated(options=options, password="", sec_fetch_site="same-origin") == 401


def test_wrong_passwords_in_a_row_have_to_wait_whatever_they_are_for() -> None:
    access = Access(lambda: OPTIONS)
    found = [access.require_operator(headers("a guess"), ("203.0.113.7", 1)) for _ in range(6)]
    assert [each.status for each in found if isinstance(each, AccessDenied)] == [401] * 5 + [429]
    assert access.require_operator(headers(OPERATOR), NEAR) is Role.OPERATE


# -- by HTTP -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running(tmp_path_factory.mktemp("web"), "--operator", OPERATOR) as (found, _):
        yield found


def asked(port: int, path: str, password: str) -> tuple[int, dict[str, str]]:
    answer = asyncio.run(once(port, "GET", path, knowing(f"precedent:{password}") if password else {"Host": "x"}))
    return answer.status, dict(answer.headers)


@pytest.mark.parametrize("path", ["/", "/deliveries/1", "/metrics"])
def test_who_may_operate_may_look(port: int, path: str) -> None:
    assert asked(port, path, OPERATOR)[0] == asked(port, path, PASSWORD)[0] in (200, 404)
    assert asked(port, path, "a guess")[0] == 401


def test_a_browser_is_asked_for_the_operators_password_and_returns_to_the_page(port: int) -> None:
    for password in ("", PASSWORD, "a guess"):
        status, said = asked(port, "/operate", password)
        assert (status, said["www-authenticate"]) == (401, 'Basic realm="precedent", charset="UTF-8"')
    status, said = asked(port, "/operate", OPERATOR)
    assert (status, said["location"], said["cache-control"]) == (303, "/", "no-store")


def test_without_an_operators_password_no_browser_is_asked_for_one(tmp_path: Path) -> None:
    with running(tmp_path) as (port, _):
        status, said = asked(port, "/operate", PASSWORD)
        assert (status, "www-authenticate" in said) == (403, False)
