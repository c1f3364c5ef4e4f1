"""Follows a duplicate to its original."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

MAX_CHAIN = 10
"""Most steps from a duplicate to its original."""

Key = TypeVar("Key")


def duplicate_chain(start: Key, original_of: Callable[[Key], Key | None]) -> list[Key]:
    """The chain of duplicates from ``start`` to their original, ``start`` first.

    ``original_of`` gives the thread that one is a duplicate of, None if it is of none, or of one that is not known. The
    chain ends before a thread that is already in it, so threads that name each other are one.
    """
    chain = [start]
    while len(chain) <= MAX_CHAIN and (original := original_of(chain[-1])) is not None and original not in chain:
        chain.append(original)
    return chain
