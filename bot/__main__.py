"""`python -m bot`, and the command `precedent`."""

from __future__ import annotations

import gc
import os
import sys
from typing import TextIO

GC_THRESHOLD = 50_000
"""New objects before garbage is collected. Loading modules leaves no garbage, and most runs end before that many."""

LONG_RUNNING = {"serve", "worker", "mcp"}
"""Commands that run for weeks: Python's own threshold is right for them."""


def main() -> int:
    """Run the program; returns its exit code, and for Ctrl-C 128 and the number of the signal."""
    if LONG_RUNNING.isdisjoint(sys.argv[1:2]):
        gc.set_threshold(GC_THRESHOLD)
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    try:
        return _run()
    except KeyboardInterrupt:
        print("precedent: stopped", file=sys.stderr)
        return 130
    finally:
        gc.freeze()  # to look through everything at the end takes a tenth of an event's time


def _nowhere() -> TextIO:
    """Instead of an output that whoever started this has closed, which Python knows as None."""
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123


def _run() -> int:
    """The Action needs nothing of the command line, and is there sooner without it."""
    if sys.argv[1:] == ["action"]:
        from bot.action.main import run_action

        return run_action()
    from bot.cli.main import main as run_command

    return run_command()


if __name__ == "__main__":
    sys.exit(main())
