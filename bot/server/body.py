"""Reading the body of a delivery within its length, within the room that all of them share, and in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from bot.server.nouns import Refused
from bot.server.peers import Shares

SECONDS = 10.0
"""How long a body may take; GitHub gives up a delivery after ten seconds."""

SMALL = 1_000_000
"""Bytes. Larger bodies are read and looked through in a thread, and have room of their own."""

SMALL_ROOM, LARGE_ROOM = 64_000_000, 100_000_000
"""Bytes of all small bodies, and of all large ones, that are in memory at once; half of that is for one peer."""

PART = 100
"""Bytes that a part of a body takes at least, however little came with it."""

CROWDED = "too many deliveries come at once"

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Room:
    """How many bytes of bodies may be in memory at once. Used by one event loop alone."""

    def __init__(self, small: int = SMALL_ROOM, large: int = LARGE_ROOM) -> None:
        self._small, self._large = Shares(small, small // 2), Shares(large, large // 2)

    @asynccontextmanager
    async def body(
        self, length: int, peer: str, receive: Receive, seconds: float = SECONDS
    ) -> AsyncIterator[bytes | Refused]:
        """The body, ``length`` bytes by its own word, or why it cannot be had; its room is kept for the block.

        It takes as much room as has arrived. One that is not whole gives way where others need the room.
        """
        shares = self._large if length > SMALL else self._small
        reading = _ArrivingBody(length, receive, seconds)
        share = shares.open(peer, reading.give_way)
        try:
            yield await reading.whole(lambda much: shares.take(share, much))
        finally:
            shares.close(share)


class _ArrivingBody:
    """One body on its way."""

    def __init__(self, length: int, receive: Receive, seconds: float) -> None:
        self._length = length
        self._receive = receive
        self._seconds = seconds
        self._limit: asyncio.Timeout | None = None
        self._gave_way = False

    def give_way(self) -> bool:
        """End it now, unless it is whole."""
        if self._limit is None:
            return False
        self._limit.reschedule(asyncio.get_running_loop().time())
        self._gave_way = True
        return True

    async def whole(self, take: Callable[[int], bool]) -> bytes | Refused:
        """The body; ``take`` says whether there is room for so many bytes more."""
        try:
            async with asyncio.timeout(self._seconds) as self._limit:
                return await self._read(take)
        except TimeoutError:
            return Refused(503, CROWDED) if self._gave_way else Refused(408, "the body took too long")
        finally:
            self._limit = None

    async def _read(self, take: Callable[[int], bool]) -> bytes | Refused:
        parts, left = list[bytes](), self._length
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return Refused(400, "the connection ended before the body did")
            parts.append(message.get("body", b""))
            left -= len(parts[-1])
            if left < 0:
                return Refused(413, "longer than it said")
            if not take(max(PART, len(parts[-1]))):
                return Refused(503, CROWDED)
            if not message.get("more_body"):
                return b"".join(parts)
