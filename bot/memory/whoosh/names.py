"""What the index calls threads and fields."""

from __future__ import annotations

import hashlib

from bot.memory.index import NOTES, TEXT
from bot.memory.packed import encode_key
from bot.model import Kind, ThreadId

LETTERS = {"id": "i", NOTES: "n", TEXT: "t"}
"""Field → the letter that its keys begin with."""


KINDS = {Kind.ISSUE: 1, Kind.PULL: 2, Kind.PAGE: 3, Kind.SESSION: 4}
"""Kind → the number that stands for it in a column."""


def id_term(key: ThreadId) -> str:
    """What the index calls a thread."""
    return f"#{key}" if isinstance(key, int) else f"={key}"


def id_key(key: ThreadId) -> bytes:
    """The key of the list that has a thread's document only."""
    return encode_key(LETTERS["id"], id_term(key))


def stand_in(key: ThreadId) -> int:
    """A number in place of a thread: of 63 bits, never 0, and for the same thread always the same."""
    digest = hashlib.blake2b(id_term(key).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1 or 1
