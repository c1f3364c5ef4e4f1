"""Who may view, who may operate, and which requests may change something."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.server.options import ServerOptions
from bot.server.pages.access import Access, AccessDenied, Role, is_from_own_page, role_of
from tests.server.client import OPERATOR, PASSWORD, auth_headers, request_once
from tests.server.web_process import web_process

OPTIONS = ServerOptions(status_password=PASSWORD, operator_password=OPERATOR)
NEAR = "127.0.0.1"


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


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "post"])
def test_only_the_post_method_can_change_something(method: str) -> None:
    assert authorize(method, sec_fetch_site="same-origin") == 405


def test_without_an_operators_password_nobody_can_operate() -> None:
    options = ServerOptions(status_password=PASSWORD)
    assert authorize(options=options, password=PASSWORD, sec_fetch_site="same-origin") == 403
    assert authorize(options=options, password="", sec_fetch_site="same-origin") == 401
    denied = Access(lambda: options).require_operator(headers(PASSWORD), NEAR)
    assert isinstance(denied, AccessDenied)
    assert (denied.status, denied.headers) == (403, {}), "no browser asks for a password that does not exist"


def test_a_right_password_is_let_through_however_many_wrong_ones_came() -> None:
    access = Access(lambda: OPTIONS)
    for number in range(1000):
        denied = access.role(headers(f"guess {number}"), NEAR)
        assert isinstance(denied, AccessDenied)
        assert denied.status == 401
    assert access.role(headers(PASSWORD), NEAR) is Role.VIEW
    assert access.require_operator(headers(OPERATOR), NEAR) is Role.OPERATE


def test_whoever_gave_a_wrong_password_is_in_the_log_and_whoever_gave_none_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Access(lambda: OPTIONS).role({"host": "localhost"}, NEAR)
    assert not caplog.records
    Access(lambda: OPTIONS).role(headers("a guess"), "203.0.113.7")
    assert [vars(record)["peer"] for record in caplog.records] == ["203.0.113.7"]


# -- by HTTP -------------------------------------------------------------------------------------------------------


def get_page(port: int, path: str, password: str, **extra: str) -> tuple[int, dict[str, str]]:
    request_headers = auth_headers(f"precedent:{password}") if password else {"Host": "x"}
    answer = asyncio.run(request_once(port, "GET", path, request_headers | extra))
    return answer.status, dict(answer.headers)


@pytest.mark.parametrize("path", ["/", "/deliveries/1", "/metrics"])
def test_an_operator_can_also_see_the_pages_and_a_guesser_cannot(web_server: tuple[int, int], path: str) -> None:
    port = web_server[0]
    assert get_page(port, path, OPERATOR)[0] == get_page(port, path, PASSWORD)[0] in (200, 404)
    status, response_headers = get_page(port, path, "a guess")
    assert (status, response_headers["cache-control"]) == (401, "no-store")


def test_operate_asks_for_the_operators_password_and_then_redirects_to_the_page(web_server: tuple[int, int]) -> None:
    for password in ("", PASSWORD, "a guess"):
        status, response_headers = get_page(web_server[0], "/operate", password)
        assert (status, response_headers["www-authenticate"]) == (401, 'Basic realm="precedent", charset="UTF-8"')
    status, response_headers = get_page(web_server[0], "/operate", OPERATOR)
    assert (status, response_headers["location"], response_headers["cache-control"]) == (303, "/", "no-store")


@pytest.mark.parametrize(
    ("proxies", "peer"), [((), "127.0.0.1"), (("--proxy", "127.0.0.0/8"), "203.0.113.7")], ids=["none", "trusted"]
)
def test_only_a_trusted_proxy_names_the_client(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], proxies: tuple[str, ...], peer: str
) -> None:
    with web_process(tmp_path, *proxies) as (port, _):
        get_page(port, "/", "a guess", **{"X-Forwarded-For": "192.0.2.1, 203.0.113.7, 127.0.0.9"})
    assert f"a wrong password for the status page peer={peer}\n" in capfd.readouterr().err
