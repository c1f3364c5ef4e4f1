"""Who may view, who may operate, and which requests may change something."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bot.server.options import ServerOptions
from bot.server.pages.access import FREE_TRIES, Access, AccessDenied, Role, is_from_own_page, role_of
from bot.server.receive.connections import MAX_CONNECTIONS
from tests.server.client import (
    OPERATOR,
    PASSWORD,
    Answer,
    Connection,
    auth_headers,
    delivery_headers,
    head,
    issue_event,
    open_connections,
    request_once,
)
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


def ask(access: Access, password: str, peer: str = "203.0.113.7", **extra: str) -> int:
    """The status of the answer to a request for a page: 200 for whoever may see it."""
    request_headers = headers(password, **extra) if password else {"host": "localhost"}
    result = access.role(request_headers, peer)
    return result.status if isinstance(result, AccessDenied) else 200


def test_a_guesser_has_to_wait_whichever_role_it_asks_for_and_others_do_not() -> None:
    access = Access(lambda: OPTIONS)
    assert [ask(access, "a guess") for _ in range(FREE_TRIES + 1)] == [*[401] * FREE_TRIES, 429]
    assert isinstance(denied := access.require_operator(headers("another guess"), "203.0.113.7"), AccessDenied)
    assert (denied.status, denied.headers) == (429, {"Retry-After": "1", "Connection": "close"})
    assert ask(access, "a guess", "203.0.113.8") == 401


@pytest.mark.parametrize("peers", [1, 500])
def test_a_right_password_is_let_through_however_many_wrong_ones_came(peers: int) -> None:
    access = Access(lambda: OPTIONS)
    for number in range(1000):
        ask(access, f"guess {number}", f"198.51.{number % peers // 250}.{number % peers % 250 + 1}")
    assert ask(access, "a guess", "198.51.0.1") == 429
    assert [ask(access, password, "198.51.0.1") for password in (PASSWORD, OPERATOR)] == [200, 200]
    assert access.require_operator(headers(OPERATOR), "198.51.0.1") is Role.OPERATE
    assert authorize(sec_fetch_site="same-origin") is Role.OPERATE


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
    status, response_headers = get_page(port, path, "a guess", source)
    assert (status, response_headers["retry-after"], response_headers["cache-control"]) == (429, "1", "no-store")
    assert get_page(port, path, PASSWORD, source)[0] in (200, 404)


def test_operate_asks_for_the_operators_password_and_then_redirects_to_the_page(web_server: tuple[int, int]) -> None:
    for password in ("", PASSWORD, "a guess"):
        status, response_headers = get_page(web_server[0], "/operate", password)
        assert (status, response_headers["www-authenticate"]) == (401, 'Basic realm="precedent", charset="UTF-8"')
    status, response_headers = get_page(web_server[0], "/operate", OPERATOR)
    assert (status, response_headers["location"], response_headers["cache-control"]) == (303, "/", "no-store")


def test_behind_a_trusted_proxy_each_client_waits_for_itself(tmp_path: Path) -> None:
    async def guess(port: int, *forwarded: str, source: str = "127.9.0.1") -> int:
        line = await Connection.open(port, source)
        named = {"X-Forwarded-For": ", ".join(forwarded)} if forwarded else {}
        try:
            return (await line.ask("GET", "/", auth_headers("precedent:a guess") | named)).status
        finally:
            await line.close()

    async def scenario(port: int) -> None:
        locked = [*[401] * FREE_TRIES, 429]
        assert [await guess(port, f"192.0.2.{number}", "203.0.113.7") for number in range(6)] == locked
        assert await guess(port, "203.0.113.7", "203.0.113.8") == 401, "only the address that the proxy added counts"
        assert await guess(port) == 401, "the proxy itself has not guessed yet"
        strangers = [await guess(port, f"192.0.2.{number}", source="127.8.0.1") for number in range(6)]
        assert strangers == locked, "nobody else is believed"

    with web_process(tmp_path, "--proxy", "127.9.0.0/16") as (port, _):
        asyncio.run(scenario(port))


def test_behind_trusted_proxies_one_client_takes_at_most_half_of_the_connections(tmp_path: Path) -> None:
    body = json.dumps(issue_event(1)).encode()
    unfinished = delivery_headers(body, content_length=str(len(body) + 1)) | {"X-Forwarded-For": "203.0.113.7"}
    honest = delivery_headers(body) | {"X-Forwarded-For": "203.0.113.8"}

    async def scenario(port: int) -> tuple[list[int], int]:
        async with open_connections(port, MAX_CONNECTIONS - 20, 8) as lines:
            await asyncio.gather(*(line.send(head("POST", "/webhook", unfinished) + body) for line in lines))
            await asyncio.sleep(0.5)
            answers = [await request_once(port, headers=honest, body=body) for _ in range(10)]
            await asyncio.gather(*(line.read_answer(0.1) for line in lines))
            return [answer.status for answer in answers], sum(not line.reader.at_eof() for line in lines)

    with web_process(tmp_path, "--proxy", "127.0.0.0/8") as (port, _):
        accepted, held = asyncio.run(scenario(port))
    assert accepted == [202] * 10
    assert 0 < held <= MAX_CONNECTIONS // 2
