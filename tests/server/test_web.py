"""The web side as a process of its own: refusals, slow senders, large bodies, who may see what, and how it ends."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.server import web
from bot.server.model import Refused
from bot.server.webhook import SMALL, BodyBudget
from tests.server.client import PASSWORD, Answer, burst, delivered, head, issue_event, knowing, lines, once, signature
from tests.server.doorway import running

MB = 1024 * 1024


@contextmanager
def memory_of(pid: int) -> Iterator[list[int]]:
    """Most memory of a process before and after the block, in kB."""

    def peak() -> int:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    found = [peak()]
    yield found
    found.append(peak())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """Port and process id of a server whose patience with headers is two seconds."""
    with running(tmp_path_factory.mktemp("data"), "--patience", "2") as (port, process):
        yield port, process.pid


def deliver(port: int, body: bytes = b"", method: str = "POST", **changed: str | None) -> Answer:
    body = body or json.dumps(issue_event(1)).encode()
    return asyncio.run(once(port, method, "/webhook", delivered(body, **changed), body))


@pytest.mark.slow
def test_a_delivery_is_answered_once_it_is_stored_and_known_when_it_comes_again(server: tuple[int, int]) -> None:
    guid = str(uuid.uuid4())
    first, again = (deliver(server[0], x_github_delivery=guid) for _ in range(2))
    assert (first.status, json.loads(first.body)) == (202, {"said": "stored"})
    assert (again.status, json.loads(again.body)) == (202, {"said": "repeated"})
    assert first.headers["x-request-id"] != again.headers["x-request-id"]


@pytest.mark.parametrize(
    ("expected", "method", "changed"),
    [
        (405, "GET", {}),
        (405, "PUT", {}),
        (405, "DELETE", {}),
        (415, "POST", {"content_type": "text/plain"}),
        (411, "POST", {"content_length": None}),
        (413, "POST", {"content_length": str(26 * MB)}),
        (400, "POST", {"x_github_event": None}),
        (403, "POST", {"x_hub_signature_256": None}),
        (403, "POST", {"x_hub_signature_256": "sha256=" + "0" * 64}),
    ],
)
def test_each_refusal_reaches_the_sender(
    server: tuple[int, int], expected: int, method: str, changed: dict[str, str | None]
) -> None:
    answer = deliver(server[0], b"", method, **changed)
    assert answer.status == expected
    assert answer.closed == (expected in (411, 413))
    assert "server" not in answer.headers


def test_no_other_address_takes_deliveries(server: tuple[int, int]) -> None:
    body = json.dumps(issue_event(1)).encode()
    for path in ("/webhook/", "/", "/webhooks", "/healthz", "//webhook"):
        assert asyncio.run(once(server[0], "POST", path, delivered(body), body)).status in (404, 405)


def test_26_mb_are_refused_without_being_read_into_memory(server: tuple[int, int]) -> None:
    port, pid = server
    deliver(port)

    async def flood(piece: bytes, **changed: str | None) -> Answer:
        async with lines(port) as (line,):
            await line.say(head("POST", "/webhook", delivered(b"", **changed)))
            for _ in range(26 * 16):
                if not await line.say(piece):
                    break
            return await line.add_results()

    piece = b"a" * 65_536
    with memory_of(pid) as kilobytes:
        told = asyncio.run(flood(piece, content_length=str(26 * MB)))
        chunk = b"10000\r\n" + piece + b"\r\n"
        chunked = asyncio.run(flood(chunk, content_length=None, transfer_encoding="chunked"))
    assert told.status in (413, 0)
    assert chunked.status in (411, 0)
    print(f"most memory before and after 26 MB by length and in chunks: {kilobytes[0]:,} and {kilobytes[1]:,} kB")
    assert kilobytes[1] - kilobytes[0] < 2_048


def test_a_length_beside_chunks_is_not_believed(server: tuple[int, int]) -> None:
    body = json.dumps(issue_event(1)).encode()
    answer = deliver(server[0], body, transfer_encoding="chunked")
    assert answer.status in (400, 411)


@pytest.mark.slow
def test_two_hundred_slow_senders_do_not_keep_others_waiting_and_are_closed(server: tuple[int, int]) -> None:
    async def story() -> tuple[list[Answer], list[Answer], float]:
        async with lines(server[0], 200) as slow:
            began = time.monotonic()
            for line in slow:
                await line.say(b"POST /webhook HTTP/1.1\r\nHost: localhost\r\n")
            sent = await burst(server[0], ((str(uuid.uuid4()), 17, number) for number in range(50)), 4)
            for line in slow:
                await line.say(b"X-Drip: drop\r\n")
            ends = await asyncio.gather(*(line.add_results(10) for line in slow))
            return [one.answer for one in sent], ends, time.monotonic() - began

    beside, ends, seconds = asyncio.run(story())
    assert [answer.status for answer in beside] == [202] * 50
    assert max(answer.seconds for answer in beside) < 2
    assert [answer.status for answer in ends] == [0] * 200
    assert 1.5 < seconds < 8


@pytest.mark.slow
def test_a_second_request_on_a_connection_has_to_hurry_as_well(server: tuple[int, int]) -> None:
    async def story() -> tuple[Answer, Answer, float]:
        async with lines(server[0]) as (line,):
            first = await line.ask("GET", "/healthz", {"Host": "localhost"})
            began = time.monotonic()
            await line.say(b"GET /healthz HTTP/1.1\r\nHost: local")
            return first, await line.add_results(10), time.monotonic() - began

    first, second, seconds = asyncio.run(story())
    assert (first.status, second.status) == (200, 0)
    assert 1.5 < seconds < 6


@pytest.mark.slow
def test_a_connection_that_is_kept_goes_on_beyond_the_patience_with_its_first_request(server: tuple[int, int]) -> None:
    async def story() -> list[int]:
        found = []
        async with lines(server[0]) as (line,):
            for _ in range(4):
                found.append((await line.ask("GET", "/healthz", {"Host": "localhost"})).status)
                await asyncio.sleep(0.8)
        return found

    assert asyncio.run(story()) == [200] * 4


def read_all(messages: list[dict[str, object]], length: int, seconds: float = 1) -> bytes | Refused:
    async def receive() -> dict[str, object]:
        if not messages:
            await asyncio.sleep(9)
        return messages.pop(0)

    async def story() -> bytes | Refused:
        async with BodyBudget().body(length, "192.0.2.7", receive, seconds) as found:
            return found

    return asyncio.run(story())


def part(body: bytes, *, more: bool) -> dict[str, object]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_that_comes_too_slowly_is_given_up() -> None:
    assert read_all([part(b"ab", more=True)], 4, 0.05) == Refused(408, "the body took too long")
    assert read_all([part(b"ab", more=True), part(b"cd", more=False)], 4) == b"abcd"


def test_a_body_that_ends_early_or_grows_is_refused() -> None:
    found = read_all([part(b"ab", more=True), {"type": "http.disconnect"}], 4)
    assert isinstance(found, Refused)
    assert found.status == 400
    assert read_all([part(b"abcde", more=True)], 4) == Refused(413, "the body is longer than its Content-Length")


def test_large_bodies_have_room_of_their_own() -> None:
    async def take(room: BodyBudget, length: int) -> int:
        async with room.body(length, "192.0.2.7", lambda: asyncio.sleep(0, part(b"a" * length, more=False))) as found:
            if isinstance(found, Refused):
                return found.status
            fixed.append(found)
            return await take(room, SMALL) if len(fixed) == 1 else 202

    fixed: list[bytes] = []
    assert asyncio.run(take(BodyBudget(2 * SMALL, 4 * SMALL), 2 * SMALL)) == 202
    fixed.clear()
    assert asyncio.run(take(BodyBudget(SMALL, 4 * SMALL), 2 * SMALL)) == 503, "half of the room is for one peer"


def test_a_large_delivery_is_taken(server: tuple[int, int]) -> None:
    body = json.dumps(issue_event(1) | {"padding": "a" * (3 * MB)}).encode()
    assert deliver(server[0], body).status == 202
    assert deliver(server[0], body, x_hub_signature_256=signature(b"")).status == 403


@pytest.mark.slow
def test_while_the_database_is_away_deliveries_get_503_and_readiness_says_so(tmp_path: Path) -> None:
    with running(tmp_path) as (port, _):
        assert deliver(port).status == 202
        (tmp_path / "away").touch()
        answer = deliver(port)
        assert (answer.status, answer.headers["retry-after"]) == (503, "60")
        assert b"database" not in answer.body
        time.sleep(2.1)
        ready = asyncio.run(once(port, "GET", "/readyz"))
        assert (ready.status, json.loads(ready.body)["queue"]) == (503, False)
        assert asyncio.run(once(port, "GET", "/status.json")).status == 503
        assert asyncio.run(once(port, "GET", "/")).status == 503
        assert asyncio.run(once(port, "GET", "/healthz")).status == 200
        (tmp_path / "away").unlink()
        assert deliver(port).status == 202


def test_the_state_names_what_is_well_and_no_more(server: tuple[int, int]) -> None:
    answer = asyncio.run(once(server[0], "GET", "/status.json", {"Host": "bot.example.org"}))
    well = {"well": True, "queue": True, "disk": True, "clock": True, "token": True, "workers": True}
    assert (answer.status, json.loads(answer.body)) == (200, well)
    ready = asyncio.run(once(server[0], "GET", "/readyz", {"Host": "bot.example.org"}))
    assert (ready.status, json.loads(ready.body)) == (200, {"ready": True, "queue": True, "disk": True})


PAGES = ["/", "/deliveries/1", "/metrics", "/?state=dead&repository=1-17&before=9"]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "bot.example.org"])
def test_who_knows_the_password_sees_the_pages(server: tuple[int, int], path: str, host: str) -> None:
    deliver(server[0])
    assert asyncio.run(once(server[0], "GET", path, knowing(host=host))).status == 200


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "127.0.0.1:PORT"},
        {"Host": "localhost"},
        {"Host": "[::1]:8080"},
        {"Host": "bot.example.org"},
        {"Host": "localhost", "X-Forwarded-For": "127.0.0.1"},
        {"Host": "localhost", "Forwarded": "for=127.0.0.1"},
        {"Host": "localhost", "Authorization": "Basic %%%"},
    ],
)
def test_without_it_nobody_does_as_a_proxy_on_this_machine_may_ask_for_anybody(
    server: tuple[int, int], path: str, headers: dict[str, str]
) -> None:
    given = headers | {"Host": headers["Host"].replace("PORT", str(server[0]))}
    answer = asyncio.run(once(server[0], "GET", path, given))
    assert (answer.status, answer.headers["www-authenticate"].partition(" ")[0]) == (401, "Basic")
    assert b"octo-org" not in answer.body


@pytest.mark.parametrize(
    "credentials", ["", ":", "precedent:", f"other:{PASSWORD}", f"precedent:{PASSWORD}x", PASSWORD]
)
def test_a_name_or_a_password_that_is_another_is_none(server: tuple[int, int], credentials: str) -> None:
    assert asyncio.run(once(server[0], "GET", "/")).status == 200, "wrong ones in a row would have to wait"
    assert asyncio.run(once(server[0], "GET", "/", knowing(credentials))).status == 401


def test_pages_can_load_nothing_and_are_kept_by_nobody(server: tuple[int, int]) -> None:
    for path in ("/", "/deliveries/1", "/deliveries/999999"):
        headers = asyncio.run(once(server[0], "GET", path)).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert (headers["cache-control"], headers["x-frame-options"]) == ("no-store", "DENY")
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")
        assert "set-cookie" not in headers


@pytest.mark.parametrize("name", ["999999", "0", "-1", "x", "1e3", "9" * 400, "%00", "١"])
def test_a_delivery_that_is_not_there_is_404(server: tuple[int, int], name: str) -> None:
    assert asyncio.run(once(server[0], "GET", f"/deliveries/{name.encode().decode('latin-1')}")).status in (400, 404)


def test_what_an_address_cannot_mean_is_left_out(server: tuple[int, int]) -> None:
    for query in ("state=none", "repository=x", "before=-5", "state=%00", "repository=" + "9" * 5000, "&&&=="):
        assert asyncio.run(once(server[0], "GET", f"/?{query}")).status == 200


@pytest.mark.slow
def test_refusals_are_counted_under_no_name_of_the_senders_choosing(server: tuple[int, int]) -> None:
    deliver(server[0], x_github_event="made_up", x_hub_signature_256="sha256=" + "0" * 64)
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        page = asyncio.run(once(server[0], "GET", "/metrics")).body.decode()
        if 'precedent_deliveries_total{event="other",result="refused 403"}' in page:
            break
        time.sleep(0.5)
    assert 'precedent_deliveries_total{event="other",result="refused 403"}' in page
    assert "made_up" not in page


def test_a_port_that_is_taken_is_told_with_a_remedy() -> None:
    with web.open_listener("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{port} .*choose another --port"):
            web.open_listener("127.0.0.1", port)


def test_an_address_of_version_6_is_listened_on() -> None:
    with web.open_listener("::1", 0) as door:
        assert door.getsockname()[0] == "::1"


@pytest.mark.slow
def test_what_is_under_way_when_it_is_told_to_stop_is_stored_and_answered(tmp_path: Path) -> None:
    async def story() -> tuple[Answer, float]:
        body = json.dumps(issue_event(1)).encode()
        async with lines(port) as (line,):
            await line.say(head("POST", "/webhook", delivered(body)) + body[:10])
            await asyncio.sleep(0.3)
            process.terminate()
            began = time.monotonic()
            await asyncio.sleep(0.5)
            await line.say(body[10:])
            return await line.add_results(), began

    with running(tmp_path) as (port, process):
        answer, began = asyncio.run(story())
        assert answer.status == 202
        assert process.wait(timeout=10) == 0
        assert time.monotonic() - began < 5
