"""A progress bar on stderr for work that takes a while; nothing where nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Gives a function that takes the number of steps done since the last call. None: nobody knows of how many."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from bot.cli.terminal import bar

    with bar(label, total) as tick:
        yield tick
