"""Many slow or greedy senders over real sockets: an honest delivery among them is accepted at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.receive.connections import MAX_CONNECTIONS
from bot.server.receive.endpoint import LARGE_BUDGET, MAX_SMALL_BODY
from tests.server.client import Answer, Connection, delivery_headers, head, issue_event, open_connections, request_once
from tests.server.web_process import web_process


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with web_process(tmp_path_factory.mktemp("data")) as (port, _):
        yield port


async def send_honest(port: int, size: int = 0) -> Answer:
    body = json.dumps(issue_event(1) | {"padding": "a" * size}).encode()
    return await request_once(port, "POST", "/webhook", delivery_headers(body), body)


async def still_waits(sender: Connection) -> bool:
    """Whether a slow sender has not been cut off yet: then nobody waited for its end."""
    return (await sender.read_answer(0.01)).status == 0 and not sender.reader.at_eof()


async def start_bodies(connections: list[Connection], length: int, sent: int) -> None:
    """Each connection declares ``length``, sends ``sent`` bytes of its body and then stops."""
    first = head("POST", "/webhook", delivery_headers(b"", content_length=str(length)))
    await asyncio.gather(*(line.send(first + b"a" * sent) for line in connections))
    await asyncio.sleep(0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "peers"),
    [
        (64, 1),
        *(
            pytest.param(count, peers, marks=pytest.mark.slow)
            for count, peers in ((200, 1), (400, 400), (MAX_CONNECTIONS, 1), (MAX_CONNECTIONS, MAX_CONNECTIONS))
        ),
    ],
)
@pytest.mark.parametrize("length", [MAX_SMALL_BODY, 25 * MAX_SMALL_BODY])
def test_a_declared_length_reserves_no_memory(port: int, count: int, peers: int, length: int) -> None:
    async def scenario() -> list[Answer]:
        async with open_connections(port, count, peers) as connections:
            await start_bodies(connections, length, 1)
            answers = [await send_honest(port), await send_honest(port, 3 * MAX_SMALL_BODY)]
            assert await still_waits(connections[-1])
            return answers

    answers = asyncio.run(scenario())
    assert [answer.status for answer in answers] == [202, 202]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "peers", "length"),
    [
        (90, 1, MAX_SMALL_BODY),
        (90, 90, MAX_SMALL_BODY),
        (200, 3, MAX_SMALL_BODY),
        (8, 1, LARGE_BUDGET // 4),
        (8, 8, LARGE_BUDGET // 4),
    ],
)
def test_bodies_that_lack_only_their_last_byte_make_room_for_others(
    port: int, count: int, peers: int, length: int
) -> None:
    async def scenario() -> list[Answer]:
        async with open_connections(port, count, peers) as connections:
            await start_bodies(connections, length, length - 1)
            answers = [await send_honest(port, size) for size in (0, 2 * MAX_SMALL_BODY, MAX_SMALL_BODY // 2)]
            assert await still_waits(connections[-1])
            return answers

    answers = asyncio.run(scenario())
    assert [answer.status for answer in answers] == [202] * 3


@pytest.mark.slow
@pytest.mark.parametrize("peers", [1, 300])
def test_senders_of_a_byte_a_second_delay_nobody(port: int, peers: int) -> None:
    async def scenario() -> list[Answer]:
        async with open_connections(port, 300, peers) as connections:
            await start_bodies(connections, MAX_SMALL_BODY, 1)
            answers = []
            for _ in range(3):
                await asyncio.gather(*(line.send(b"a") for line in connections))
                answers.append(await send_honest(port))
                await asyncio.sleep(1)
            assert await still_waits(connections[-1])
            return answers

    answers = asyncio.run(scenario())
    assert [answer.status for answer in answers] == [202] * 3


@pytest.mark.slow
@pytest.mark.parametrize("peers", [1, 700])
@pytest.mark.parametrize("opening", [b"", b"POST /webhook HTTP/1.1\r\nHost: localhost\r\n"], ids=["silent", "headers"])
def test_more_connections_than_slots_keep_nobody_out(port: int, opening: bytes, peers: int) -> None:
    async def scenario() -> list[Answer]:
        async with open_connections(port, 700, peers) as connections:
            await asyncio.gather(*(line.send(opening) for line in connections))
            answers = [await send_honest(port) for _ in range(3)]
            assert await still_waits(connections[-1])
            return answers

    answers = asyncio.run(scenario())
    assert [answer.status for answer in answers] == [202] * 3


@pytest.mark.slow
def test_an_evicted_sender_is_told_to_retry_later(port: int) -> None:
    async def scenario() -> tuple[Answer, Answer]:
        async with open_connections(port, 3) as connections:
            await start_bodies(connections[:2], 25 * MAX_SMALL_BODY, 25 * MAX_SMALL_BODY - 1)
            third = await send_honest(port, 2 * MAX_SMALL_BODY)
            return await connections[0].read_answer(), third

    first, third = asyncio.run(scenario())
    assert (first.status, first.headers["retry-after"], first.closed) == (503, "60", True)
    assert third.status == 202


@pytest.mark.night
@pytest.mark.slow
def test_memory_stays_bounded_whatever_is_sent(tmp_path: Path) -> None:
    """Of 400 MB of incomplete bodies only 64 MB are kept, plus up to 256 KB per connection from one read."""

    async def scenario(port: int) -> None:
        async with open_connections(port, 400, 400) as connections:
            await start_bodies(connections, MAX_SMALL_BODY, MAX_SMALL_BODY - 1)

    with web_process(tmp_path) as (port, process):
        before = peak_memory(process.pid)
        asyncio.run(scenario(port))
        assert peak_memory(process.pid) - before < 250_000


def peak_memory(pid: int) -> int:
    """The peak memory of a process, in kB."""
    status_lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status_lines if line.startswith("VmHWM"))
