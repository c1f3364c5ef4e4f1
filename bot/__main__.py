"""`python -m bot`: the first word chooses the door, and only that door is opened."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def main() -> int:
    """Run the program; returns its exit code, and for Ctrl-C 128 and the number of the signal."""
    try:
        return _run()
    except KeyboardInterrupt:
        print("precedent: stopped", file=sys.stderr)
        return 130


def _run() -> int:
    gc.disable()  # while modules are loaded nothing becomes garbage, and looking for it takes a tenth of the time
    if sys.argv[1:] == ["action"]:
        return act()
    from bot.doors.cli import main as door

    gc.enable()
    code = door()
    if sys.argv[1:2] == ["search"]:
        leave(code)
    return code


def act() -> int:
    """The Action, which asks git for the first time before all of it is there."""
    from bot.doors.ahead import begin

    ahead = begin(os.environ)
    from bot.doors.action import main as door

    gc.freeze()  # what was loaded stays
    gc.enable()
    return door(ahead)


def leave(code: int) -> NoReturn:
    """End at once: Python takes a tenth of a search's time to tidy up, and nothing is left open."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
