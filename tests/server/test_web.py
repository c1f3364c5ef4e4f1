"""The web side as a separate process: refusals, large bodies, access to pages, and shutdown."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.server.model import Refused
from bot.server.receive.endpoint import MAX_SMALL_BODY, SMALL_BUDGET, BodyBudget
from bot.server.web import MAX_CONNECTIONS, open_listener
from tests.server.client import (
    PASSWORD,
    Answer,
    auth_headers,
    delivery_headers,
    head,
    issue_event,
    open_connections,
    request_once,
)
from tests.server.queues import until
from tests.server.web_process import web_process

MB = 1024 * 1024


@pytest.fixture
def port(web_server: tuple[int, int]) -> int:
    return web_server[0]


def get(port: int, path: str, headers: dict[str, str] | None = None) -> Answer:
    return asyncio.run(request_once(port, "GET", path, headers))


def deliver(port: int, body: bytes = b"", method: str = "POST", **changed: str | None) -> Answer:
    body = body or json.dumps(issue_event(1)).encode()
    return asyncio.run(request_once(port, method, "/webhook", delivery_headers(body, **changed), body))


@pytest.mark.slow
def test_a_delivery_is_acknowledged_once_stored_and_a_repetition_is_recognised(port: int) -> None:
    guid = str(uuid.uuid4())
    first, second = (deliver(port, x_github_delivery=guid) for _ in range(2))
    assert (first.status, json.loads(first.body)) == (202, {"said": "stored"})
    assert (second.status, json.loads(second.body)) == (202, {"said": "repeated"})
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


@pytest.mark.parametrize(
    ("expected", "method", "changed"),
    [
        (405, "GET", {}),
        (411, "POST", {"content_length": None}),
        (413, "POST", {"content_length": str(26 * MB)}),
        (403, "POST", {"x_hub_signature_256": "sha256=" + "0" * 64}),
    ],
)
def test_a_refused_delivery_gets_its_status(
    port: int, expected: int, method: str, changed: dict[str, str | None]
) -> None:
    answer = deliver(port, b"", method, **changed)
    assert answer.status == expected
    assert answer.closed == (expected in (411, 413))
    assert "server" not in answer.headers


def test_no_other_path_accepts_deliveries(port: int) -> None:
    body = json.dumps(issue_event(1)).encode()
    for path in ("/webhook/", "/", "/webhooks", "/healthz", "//webhook"):
        assert asyncio.run(request_once(port, "POST", path, delivery_headers(body), body)).status in (404, 405)


def test_a_body_of_26_mb_is_refused_without_being_read_into_memory(web_server: tuple[int, int]) -> None:
    port, pid = web_server
    deliver(port)

    async def flood(piece: bytes, **changed: str | None) -> Answer:
        async with open_connections(port) as (connection,):
            await connection.send(head("POST", "/webhook", delivery_headers(b"", **changed)))
            for _ in range(26 * 16):
                if not await connection.send(piece):
                    break
            return await connection.read_answer()

    piece = b"a" * 65_536
    before = peak_memory(pid)
    announced = asyncio.run(flood(piece, content_length=str(26 * MB)))
    chunk = b"10000\r\n" + piece + b"\r\n"
    chunked = asyncio.run(flood(chunk, content_length=None, transfer_encoding="chunked"))
    after = peak_memory(pid)
    assert announced.status in (413, 0)
    assert chunked.status in (411, 0)
    print(f"most memory before and after 26 MB by length and in chunks: {before:,} and {after:,} kB")
    assert after - before < 2_048


def test_a_content_length_beside_chunked_encoding_is_refused(port: int) -> None:
    body = json.dumps(issue_event(1)).encode()
    answer = deliver(port, body, transfer_encoding="chunked")
    assert answer.status in (400, 411)


def peak_memory(pid: int) -> int:
    """The peak memory of a process, in kB."""
    status_lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status_lines if line.startswith("VmHWM"))


@pytest.mark.slow
def test_further_connections_than_there_are_places_get_503(tmp_path: Path) -> None:
    async def scenario(port: int) -> tuple[int, int]:
        async with open_connections(port, MAX_CONNECTIONS):
            crowded = (await request_once(port, "GET", "/healthz", {"Host": "localhost"})).status
        await asyncio.sleep(0.5)
        return crowded, (await request_once(port, "GET", "/healthz", {"Host": "localhost"})).status

    with web_process(tmp_path) as (port, _):
        assert asyncio.run(scenario(port)) == (503, 200)


@pytest.mark.slow
def test_unfinished_bodies_take_bounded_memory_and_others_are_told_to_come_again(tmp_path: Path) -> None:
    body = b"a" * (MAX_SMALL_BODY - 1)
    unfinished = head("POST", "/webhook", delivery_headers(body, content_length=str(MAX_SMALL_BODY))) + body

    async def scenario(port: int) -> list[Answer]:
        async with open_connections(port, 100) as lines:
            await asyncio.gather(*(line.send(unfinished) for line in lines))
            answers = [await line.read_answer(0.05) for line in lines]
        return [answer for answer in answers if answer.status]

    with web_process(tmp_path) as (port, process):
        before = peak_memory(process.pid)
        refused = asyncio.run(scenario(port))
        assert refused, "some connections were reset before their answer was read"
        assert {(answer.status, answer.headers["retry-after"], answer.closed) for answer in refused} == {
            (503, "60", True)
        }
        assert peak_memory(process.pid) - before < 150_000
        until(lambda: deliver(port).status == 202)


def read_all(messages: list[dict[str, object]], length: int, seconds: float = 1) -> bytes | Refused:
    async def receive() -> dict[str, object]:
        if not messages:
            await asyncio.sleep(9)
        return messages.pop(0)

    async def read() -> bytes | Refused:
        async with BodyBudget(SMALL_BUDGET).body(length, receive, seconds) as body:
            return body

    return asyncio.run(read())


def part(body: bytes, *, more: bool) -> dict[str, object]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_that_arrives_too_slowly_is_refused() -> None:
    assert read_all([part(b"ab", more=True)], 4, 0.05) == Refused(408, "the body took too long")
    assert read_all([part(b"ab", more=True), part(b"cd", more=False)], 4) == b"abcd"


def test_a_body_that_is_shorter_or_longer_than_announced_is_refused() -> None:
    refused = read_all([part(b"ab", more=True), {"type": "http.disconnect"}], 4)
    assert isinstance(refused, Refused)
    assert refused.status == 400
    assert read_all([part(b"abcde", more=True)], 4) == Refused(413, "the body is longer than its Content-Length")


def test_only_as_many_bodies_as_fit_are_in_memory_at_once() -> None:
    async def receive_at_once(budget: BodyBudget, lengths: list[int]) -> list[bool]:
        async with budget.body(lengths[0], lambda: asyncio.sleep(0, part(b"a" * lengths[0], more=False))) as body:
            later = await receive_at_once(budget, lengths[1:]) if lengths[1:] else []
            return [isinstance(body, bytes), *later]

    budget = BodyBudget(10)
    assert asyncio.run(receive_at_once(budget, [6, 4])) == [True, True]
    assert asyncio.run(receive_at_once(budget, [6, 5])) == [True, False]
    assert asyncio.run(receive_at_once(budget, [10])) == [True], "all of it is free again"


@pytest.mark.night
@pytest.mark.slow
def test_the_status_is_public_and_without_the_database_deliveries_get_503_and_the_server_is_not_ready(
    tmp_path: Path,
) -> None:
    with web_process(tmp_path) as (port, _):
        answer, ready = (get(port, path, {"Host": "bot.example.org"}) for path in ("/status.json", "/readyz"))
        expected = {"well": True, "queue": True, "disk": True, "clock": True, "token": True, "workers": True}
        assert (answer.status, json.loads(answer.body)) == (200, expected)
        assert (ready.status, json.loads(ready.body)) == (200, {"ready": True, "queue": True, "disk": True})
        assert deliver(port).status == 202
        (tmp_path / "away").touch()
        answer = deliver(port)
        assert (answer.status, answer.headers["retry-after"]) == (503, "60")
        assert b"database" not in answer.body
        time.sleep(2.1)
        ready = get(port, "/readyz")
        assert (ready.status, json.loads(ready.body)["queue"]) == (503, False)
        assert get(port, "/status.json").status == 503
        assert get(port, "/").status == 503
        assert get(port, "/healthz").status == 200
        (tmp_path / "away").unlink()
        assert deliver(port).status == 202


PAGES = ["/", "/deliveries/1", "/metrics", "/?state=dead&repository=1-17&before=9"]


@pytest.mark.parametrize("path", PAGES)
def test_only_a_request_with_the_password_gets_the_pages_also_from_here_or_through_a_proxy(
    port: int, path: str
) -> None:
    deliver(port)
    for host in ("localhost", "127.0.0.1:8080", "bot.example.org"):
        assert get(port, path, auth_headers(host=host)).status == 200
    for headers in (
        {"Host": f"127.0.0.1:{port}"},
        {"Host": "[::1]:8080"},
        {"Host": "bot.example.org"},
        {"Host": "localhost", "X-Forwarded-For": "127.0.0.1"},
        {"Host": "localhost", "Forwarded": "for=127.0.0.1"},
        {"Host": "localhost", "Authorization": "Basic %%%"},
    ):
        answer = get(port, path, headers)
        assert (answer.status, answer.headers["www-authenticate"].partition(" ")[0]) == (401, "Basic")
        assert b"octo-org" not in answer.body


@pytest.mark.parametrize(
    "credentials", ["", ":", "precedent:", f"other:{PASSWORD}", f"precedent:{PASSWORD}x", PASSWORD]
)
def test_wrong_credentials_are_refused(port: int, credentials: str) -> None:
    assert get(port, "/", auth_headers(credentials)).status == 401


def test_pages_cannot_load_anything_and_are_not_cached(port: int) -> None:
    for path in ("/", "/deliveries/1", "/deliveries/999999"):
        headers = get(port, path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert (headers["cache-control"], headers["x-frame-options"]) == ("no-store", "DENY")
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")
        assert "set-cookie" not in headers


def test_invalid_addresses_are_404_and_invalid_query_parameters_are_ignored(port: int) -> None:
    for name in ("999999", "0", "-1", "x", "1e3", "9" * 400, "%00", "١"):
        assert get(port, f"/deliveries/{name.encode().decode('latin-1')}").status in (400, 404)
    for query in ("state=none", "repository=x", "before=-5", "state=%00", "repository=" + "9" * 5000, "&&&=="):
        assert get(port, f"/?{query}").status == 200


@pytest.mark.slow
def test_refusals_are_not_counted_under_names_chosen_by_the_sender(port: int) -> None:
    deliver(port, x_github_event="made_up", x_hub_signature_256="sha256=" + "0" * 64)
    until(lambda: b'precedent_deliveries_total{event="other",result="refused 403"}' in get(port, "/metrics").body)
    assert b"made_up" not in get(port, "/metrics").body
    assert b"with 403 (a wrong signature" in get(port, "/").body


def test_a_port_that_is_taken_is_reported_with_a_remedy() -> None:
    with open_listener("127.0.0.1", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{port} .*choose another --port"):
            open_listener("127.0.0.1", port)


def test_the_server_can_listen_on_an_ipv6_address() -> None:
    with open_listener("::1", 0) as listener:
        assert listener.getsockname()[0] == "::1"


@pytest.mark.slow
def test_a_delivery_in_progress_at_shutdown_is_stored_and_answered(tmp_path: Path) -> None:
    async def send_during_shutdown() -> Answer:
        body = json.dumps(issue_event(1)).encode()
        async with open_connections(port) as (connection,):
            await connection.send(head("POST", "/webhook", delivery_headers(body)) + body[:10])
            await asyncio.sleep(0.3)
            process.terminate()
            await asyncio.sleep(0.5)
            await connection.send(body[10:])
            return await connection.read_answer()

    with web_process(tmp_path) as (port, process):
        assert asyncio.run(send_during_shutdown()).status == 202
        assert process.wait(timeout=30) == 0


def test_a_delivery_is_shown_under_the_id_that_github_shows(port: int) -> None:
    guid = str(uuid.uuid4())
    deliver(port, x_github_delivery=guid)
    assert guid.encode() in get(port, f"/deliveries/{guid}").body
    refused = get(port, f"/deliveries/{uuid.uuid4()}")
    assert (refused.status, b"refused or dropped when it arrived" in refused.body) == (404, True)
