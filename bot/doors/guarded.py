"""Threads of the server go on after a bug: what they call is run here, and what was unexpected becomes a line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bot.errors import PrecedentError


def bug(error: BaseException) -> str:
    """An unexpected error as one line for a report: what and where, and none of the values, which may be anybody's."""
    import traceback  # for a bug alone

    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
    return f"this is a bug of Precedent, please report it: {type(error).__name__} at {' > '.join(places[-8:])}"


def guarded(call: Callable[[], object]) -> str:
    """Call it; "" when it ended well, else what went wrong in a line. What ends the process passes through."""
    try:
        call()
    except PrecedentError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - a thread of the server has nobody above it who would hear of a bug
        return bug(error)
    return ""
