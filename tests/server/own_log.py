"""The log of this process, set up by a test and put back afterwards."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_log() -> Iterator[None]:
    """Whatever sets up logs meanwhile, those of before count again afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("bot")
    before = (list(root.handlers), root.level, ours.level)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
