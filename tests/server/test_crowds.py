"""Many slow or greedy senders over real sockets: an honest delivery that comes beside them is taken at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.web import AT_ONCE
from bot.server.webhook import LARGE_ROOM, SMALL
from tests.server.client import Answer, Line, delivered, head, issue_event, lines, once
from tests.server.doorway import running

QUICK = 2.0
"""Seconds in which an honest delivery is answered, where senders may take ten."""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running(tmp_path_factory.mktemp("data")) as (port, _):
        yield port


async def honest(port: int, size: int = 0) -> Answer:
    body = json.dumps(issue_event(1) | {"padding": "a" * size}).encode()
    return await once(port, "POST", "/webhook", delivered(body), body)


async def begun(held: list[Line], length: int, sent: int) -> None:
    """Each says how long its body is, sends so much of it and rests."""
    first = head("POST", "/webhook", delivered(b"", content_length=str(length)))
    await asyncio.gather(*(line.say(first + b"a" * sent) for line in held))
    await asyncio.sleep(0.3)


@pytest.mark.parametrize(("count", "peers"), [(64, 1), (200, 1), (400, 400), (AT_ONCE, 1), (AT_ONCE, AT_ONCE)])
@pytest.mark.parametrize("length", [SMALL, 25 * SMALL])
def test_a_declared_length_takes_no_room(port: int, count: int, peers: int, length: int) -> None:
    async def story() -> list[Answer]:
        async with lines(port, count, peers) as held:
            await begun(held, length, 1)
            return [await honest(port), await honest(port, 3 * SMALL)]

    answers = asyncio.run(story())
    assert [answer.status for answer in answers] == [202, 202]
    assert max(answer.seconds for answer in answers) < QUICK


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "peers", "length"),
    [(90, 1, SMALL), (90, 90, SMALL), (200, 3, SMALL), (8, 1, LARGE_ROOM // 4), (8, 8, LARGE_ROOM // 4)],
)
def test_bodies_that_came_all_but_a_byte_give_way(port: int, count: int, peers: int, length: int) -> None:
    async def story() -> list[Answer]:
        async with lines(port, count, peers) as held:
            await begun(held, length, length - 1)
            return [await honest(port), await honest(port, 2 * SMALL), await honest(port, SMALL // 2)]

    answers = asyncio.run(story())
    assert [answer.status for answer in answers] == [202] * 3
    assert max(answer.seconds for answer in answers) < QUICK


@pytest.mark.slow
@pytest.mark.parametrize("peers", [1, 300])
def test_senders_of_a_byte_a_second_hold_nothing_up(port: int, peers: int) -> None:
    async def story() -> list[Answer]:
        async with lines(port, 300, peers) as held:
            await begun(held, SMALL, 1)
            found = []
            for _ in range(5):
                await asyncio.gather(*(line.say(b"a") for line in held))
                found.append(await honest(port))
                await asyncio.sleep(1)
            return found

    answers = asyncio.run(story())
    assert [answer.status for answer in answers] == [202] * 5
    assert max(answer.seconds for answer in answers) < QUICK


@pytest.mark.slow
@pytest.mark.parametrize("peers", [1, 700])
@pytest.mark.parametrize("said", [b"", b"POST /webhook HTTP/1.1\r\nHost: localhost\r\n"], ids=["silent", "headers"])
def test_more_connections_than_there_are_places_keep_nobody_out(port: int, said: bytes, peers: int) -> None:
    async def story() -> list[Answer]:
        async with lines(port, 700, peers) as held:
            await asyncio.gather(*(line.say(said) for line in held))
            return [await honest(port) for _ in range(3)]

    answers = asyncio.run(story())
    assert [answer.status for answer in answers] == [202] * 3
    assert max(answer.seconds for answer in answers) < QUICK


def test_who_gave_way_is_told_to_come_again_later(port: int) -> None:
    async def story() -> tuple[Answer, Answer]:
        async with lines(port, 3) as held:
            await begun(held[:2], 25 * SMALL, 25 * SMALL - 1)
            third = await honest(port, 2 * SMALL)
            return await held[0].add_results(), third

    first, third = asyncio.run(story())
    assert (first.status, first.headers["retry-after"], first.closed) == (503, "60", True)
    assert third.status == 202


def test_a_memory_bound_holds_whatever_comes(tmp_path: Path) -> None:
    """400 MB that are never whole are not kept: 64 MB are, and each connection brings up to 256 KB in one read."""

    async def story(port: int) -> None:
        async with lines(port, 400, 400) as held:
            await begun(held, SMALL, SMALL - 1)

    with running(tmp_path) as (port, process):
        before = peak(process.pid)
        asyncio.run(story(port))
        assert peak(process.pid) - before < 250_000


def peak(pid: int) -> int:
    """The most memory that a process ever had, in kB."""
    lines_of = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines_of if line.startswith("VmHWM"))
