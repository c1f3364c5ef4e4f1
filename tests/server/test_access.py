"""Who may view, who may operate, and which requests may change something."""

from __future__ import annotations

import asyncio

import pytest

from bot.server.access import Access, AccessDenied, Role, is_from_own_page, role_of
from bot.server.options import ServerOptions
from bot.server.rate_limiter import FREE_TRIES
from tests.server.client import OPERATOR, PASSWORD, Answer, Connection, auth_headers

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


def ask(access: Access, password: str, peer: str = "203.0.113.7", **extra: str) -> int:
    """The status of the answer to a request for a page: 200 for whoever may see it."""
    request_headers = headers(password, **extra) if password else {"host": "localhost"}
    result = access.role(request_headers, (peer, 1))
    return result.status if isinstance(result, AccessDenied) else 200


def test_a_guesser_has_to_wait_whichever_role_it_asks_for_and_others_do_not() -> None:
    access = Access(lambda: OPTIONS)
    assert [ask(access, "a guess") for _ in range(FREE_TRIES + 1)] == [*[401] * FREE_TRIES, 429]
    assert (ask(access, PASSWORD), ask(access, OPERATOR), ask(access, PASSWORD, "203.0.113.8")) == (429, 429, 200)
    assert isinstance(denied := access.require_operator(headers(OPERATOR), ("203.0.113.7", 1)), AccessDenied)
    assert (denied.status, denied.headers) == (429, {"Retry-After": "1"})
    assert access.require_operator(headers(OPERATOR), NEAR) is Role.OPERATE


def test_guesses_through_a_proxy_do_not_lock_out_direct_visitors() -> None:
    access = Access(lambda: OPTIONS)
    statuses = [ask(access, "a guess", x_forwarded_for=f"192.0.2.{number}") for number in range(FREE_TRIES + 1)]
    assert statuses[-1] == 429, "for whom a proxy asks is not believed"
    assert ask(access, PASSWORD) == 200


def test_a_request_without_a_password_does_not_count_as_a_guess() -> None:
    access = Access(lambda: OPTIONS)
    assert [ask(access, "") for _ in range(3 * FREE_TRIES)] == [401] * (3 * FREE_TRIES)
    assert ask(access, PASSWORD) == 200


# -- by HTTP -------------------------------------------------------------------------------------------------------


def get_page(port: int, path: str, password: str, source: str = "127.0.0.1") -> tuple[int, dict[str, str]]:
    async def request() -> Answer:
        line = await Connection.open(port, source)
        try:
            return await line.ask("GET", path, auth_headers(f"precedent:{password}") if password else {"Host": "x"})
        finally:
            await line.close()

    answer = asyncio.run(request())
    return answer.status, dict(answer.headers)


@pytest.mark.parametrize("path", ["/", "/deliveries/1", "/metrics"])
def test_an_operator_can_also_see_the_pages_and_a_guesser_cannot(web_server: tuple[int, int], path: str) -> None:
    port = web_server[0]
    assert get_page(port, path, OPERATOR)[0] == get_page(port, path, PASSWORD)[0] in (200, 404)
    source = f"127.1.0.{len(path)}"
    assert [get_page(port, path, "a guess", source)[0] for _ in range(FREE_TRIES + 1)] == [*[401] * FREE_TRIES, 429]
    status, response_headers = get_page(port, path, PASSWORD, source)
    assert (status, response_headers["retry-after"], response_headers["cache-control"]) == (429, "1", "no-store")


def test_operate_asks_for_the_operators_password_and_then_redirects_to_the_page(web_server: tuple[int, int]) -> None:
    for password in ("", PASSWORD, "a guess"):
        status, response_headers = get_page(web_server[0], "/operate", password)
        assert (status, response_headers["www-authenticate"]) == (401, 'Basic realm="precedent", charset="UTF-8"')
    status, response_headers = get_page(web_server[0], "/operate", OPERATOR)
    assert (status, response_headers["location"], response_headers["cache-control"]) == (303, "/", "no-store")
