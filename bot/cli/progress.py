"""What work that takes a while shows on stderr: a progress bar where somebody watches, and warnings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bot.comment.clean_text import one_line


def warn(note: str) -> None:
    """Shows the note in one line."""
    print(one_line(note), file=sys.stderr)


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Gives a function that takes the number of steps done since the last call. None: nobody knows of how many."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from bot.cli.terminal import bar

    with bar(label, total) as tick:
        yield tick
