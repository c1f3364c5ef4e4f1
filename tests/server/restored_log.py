"""Lets a test set up the log of this process, and restores it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_log() -> Iterator[None]:
    """Restore the log handlers and levels at the end of the block."""
    root, ours = logging.getLogger(), logging.getLogger("bot")
    before = (list(root.handlers), root.level, ours.level)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
