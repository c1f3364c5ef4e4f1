"""Who may view, who may operate, and which requests may change something."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.access import Access, AccessDenied, Role, has_credentials, is_from_own_page, role_of
from bot.server.options import ServerOptions
from tests.server.client import PASSWORD, auth_headers, request_once
from tests.server.web_process import web_process

OPERATOR = "close sesame, please"
OPTIONS = ServerOptions(status_password=PASSWORD, operator_password=OPERATOR)
NEAR = ("127.0.0.1", 1)


def headers(password: str, **extra: str) -> dict[str, str]:
    """Request headers with lower-case names, as the web server passes them."""
    all_headers = auth_headers(f"precedent:{password}") | {name.replace("_", "-"): text for name, text in extra.items()}
    return {name.lower(): text for name, text in all_headers.items()}


def authorize(method: str = "POST", options: ServerOptions = OPTIONS, **extra: str) -> Role | int:
    """The role in which a request may change something, or the status of the refusal."""
    password = extra.pop("password", OPERATOR)
    result = Access(lambda: options).authorize_change(method, headers(password, **extra), NEAR)
    return result.status if isinstance(result, AccessDenied) else result


@pytest.mark.parametrize(
    ("status_password", "operator_password", "password", "role"),
    [
        (PASSWORD, OPERATOR, PASSWORD, Role.VIEW),
        (PASSWORD, OPERATOR, OPERATOR, Role.OPERATE),
        (PASSWORD, OPERATOR, "", None),
        (PASSWORD, OPERATOR, f"{OPERATOR} ", None),
        (PASSWORD, "", PASSWORD, Role.VIEW),
        (PASSWORD, "", "", None),
        ("", OPERATOR, "", None),
        (PASSWORD, PASSWORD, PASSWORD, Role.VIEW),
    ],
)
def test_each_password_grants_one_role_and_no_password_grants_none(
    status_password: str, operator_password: str, password: str, role: Role | None
) -> None:
    options = ServerOptions(status_password=status_password, operator_password=operator_password)
    assert role_of(headers(password)["authorization"], options) is role


def test_an_empty_password_never_matches() -> None:
    assert not has_credentials(headers("")["authorization"], "precedent", "")
    assert has_credentials(headers("x")["authorization"], "precedent", "x")


@pytest.mark.parametrize(
    ("request_headers", "is_own"),
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
def test_a_change_counts_as_from_our_own_page_only_if_the_browser_says_so(
    request_headers: dict[str, str], is_own: bool
) -> None:
    assert is_from_own_page(request_headers) is is_own


def test_an_operator_can_change_something_through_a_form_on_our_own_page() -> None:
    assert authorize(sec_fetch_site="same-origin") is Role.OPERATE
    assert authorize(origin="http://localhost") is Role.OPERATE


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "post"])
def test_only_the_post_method_can_change_something(method: str) -> None:
    assert authorize(method, sec_fetch_site="same-origin") == 405


def test_a_form_on_another_site_changes_nothing_even_if_the_browser_sends_the_password() -> None:
    assert authorize(sec_fetch_site="cross-site") == 403
    assert authorize(origin="https://evil.example.org") == 403
    assert authorize() == 403


def test_a_read_only_user_is_asked_for_the_operators_password() -> None:
    assert authorize(password=PASSWORD, sec_fetch_site="same-origin") == 401
    assert authorize(password="a guess", sec_fetch_site="same-origin") == 401


def test_without_an_operators_password_nobody_can_operate() -> None:
    options = ServerOptions(status_password=PASSWORD)
    assert authorize(options=options, password=PASSWORD, sec_fetch_site="same-origin") == 403
    assert authorize(options=options, password="", sec_fetch_site="same-origin") == 401


def test_repeated_wrong_passwords_are_throttled_whichever_role_they_ask_for() -> None:
    access = Access(lambda: OPTIONS)
    results = [access.require_operator(headers("a guess"), ("203.0.113.7", 1)) for _ in range(6)]
    assert [each.status for each in results if isinstance(each, AccessDenied)] == [401] * 5 + [429]
    assert access.require_operator(headers(OPERATOR), NEAR) is Role.OPERATE


# -- by HTTP -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with web_process(tmp_path_factory.mktemp("web"), "--operator", OPERATOR) as (web_port, _):
        yield web_port


def get_page(port: int, path: str, password: str) -> tuple[int, dict[str, str]]:
    answer = asyncio.run(
        request_once(port, "GET", path, auth_headers(f"precedent:{password}") if password else {"Host": "x"})
    )
    return answer.status, dict(answer.headers)


@pytest.mark.parametrize("path", ["/", "/deliveries/1", "/metrics"])
def test_an_operator_can_also_see_the_pages(port: int, path: str) -> None:
    assert get_page(port, path, OPERATOR)[0] == get_page(port, path, PASSWORD)[0] in (200, 404)
    assert get_page(port, path, "a guess")[0] == 401


def test_operate_asks_for_the_operators_password_and_then_redirects_to_the_page(port: int) -> None:
    for password in ("", PASSWORD, "a guess"):
        status, response_headers = get_page(port, "/operate", password)
        assert (status, response_headers["www-authenticate"]) == (401, 'Basic realm="precedent", charset="UTF-8"')
    status, response_headers = get_page(port, "/operate", OPERATOR)
    assert (status, response_headers["location"], response_headers["cache-control"]) == (303, "/", "no-store")


def test_operate_asks_for_no_password_when_none_is_configured(tmp_path: Path) -> None:
    with web_process(tmp_path) as (port, _):
        status, response_headers = get_page(port, "/operate", PASSWORD)
        assert (status, "www-authenticate" in response_headers) == (403, False)
