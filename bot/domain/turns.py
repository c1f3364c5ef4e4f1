"""Accounts take turns, so that nobody who asks or reports often keeps others waiting."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import TypeVar

Item = TypeVar("Item")
Account = TypeVar("Account", bound=Hashable)


def in_turns(
    items: Iterable[Item],
    account_of: Callable[[Item], Account],
    taken: Mapping[Account, int] = MappingProxyType({}),
    most: float = math.inf,
) -> list[Item]:
    """The items in their order, with accounts taking turns: first everybody's first, then everybody's second.

    ``taken``: the turns that an account had before; it gets ``most`` in all.
    """
    counts, ranked = Counter(taken), list[tuple[int, Item]]()
    for item in items:
        counts[account_of(item)] += 1
        ranked.append((counts[account_of(item)], item))
    return [item for turn, item in sorted(ranked, key=itemgetter(0)) if turn <= most]
