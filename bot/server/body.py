"""Reading the body of a delivery within its length, within the room that all of them share, and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from bot.server.nouns import Refused

SECONDS = 10.0
"""How long a body may take; GitHub gives up a delivery after ten seconds."""

SMALL = 1_000_000
"""Bytes. Larger bodies are read and looked through in a thread, and have room of their own."""

SMALL_ROOM, LARGE_ROOM = 64_000_000, 100_000_000

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Room:
    """How many bytes of bodies may be in memory at once. Used by one event loop alone."""

    def __init__(self, small: int = SMALL_ROOM, large: int = LARGE_ROOM) -> None:
        self._left = [small, large]

    @contextmanager
    def holding(self, length: int) -> Iterator[bool]:
        """Whether there is room for so many bytes, which is kept for the block."""
        kind = int(length > SMALL)
        fits = length <= self._left[kind]
        if not fits:
            yield False
            return
        self._left[kind] -= length
        try:
            yield True
        finally:
            self._left[kind] += length


async def read(length: int, receive: Receive, seconds: float = SECONDS) -> bytes | Refused:
    """The body, ``length`` bytes by its own word; or why it cannot be had. No more than that is ever kept."""
    try:
        async with asyncio.timeout(seconds):
            return await _whole(length, receive)
    except TimeoutError:
        return Refused(408, "the body took too long")


async def _whole(length: int, receive: Receive) -> bytes | Refused:
    parts: list[bytes] = []
    left = length
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return Refused(400, "the connection ended before the body did")
        parts.append(message.get("body", b""))
        left -= len(parts[-1])
        if left < 0:
            return Refused(413, "longer than it said")
        if not message.get("more_body"):
            return b"".join(parts)
