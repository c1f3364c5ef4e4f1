"""How much a program may take that works on what strangers have packed."""

from __future__ import annotations

import resource
from contextlib import suppress

MAX_FILE = 16_000_000
"""Bytes of a file that is read as a whole: a thread of a million characters takes a third of it."""

MAX_CHECKOUT = 500_000_000
"""Bytes of a working copy: one blob of a megabyte may bear a million names."""

MAX_FILES = 400_000
"""Names in a store: 100,000 threads take a quarter of it."""

MAX_DEPTH = 20
"""Folders within each other that are looked into."""

_MOST = ((resource.RLIMIT_AS, 4 << 30), (resource.RLIMIT_FSIZE, 4 << 30), (resource.RLIMIT_CORE, 0))
"""Bytes of memory, of one file, and of the picture of its memory that a crash leaves, in which a token would be."""


def bound(process: int) -> None:
    """Hold a process that has just begun, and what it starts, to _MOST. Linux alone can do that from outside."""
    for kind, most in _MOST:
        with suppress(OSError, AttributeError):  # it ended already; another system
            allowed = resource.prlimit(process, kind)[1]
            if allowed == resource.RLIM_INFINITY or allowed > most:
                resource.prlimit(process, kind, (most, most))
