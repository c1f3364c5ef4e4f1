"""`python -m bot`: the first word chooses the door, and only that door is opened."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the program; returns its exit code."""
    if sys.argv[1:] == ["action"]:
        from bot.doors.action import main as door
    else:
        from bot.doors.cli import main as door
    return door()


if __name__ == "__main__":
    sys.exit(main())
