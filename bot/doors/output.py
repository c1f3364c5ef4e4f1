"""Data on stdout."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from typing import NamedTuple

from bot.errors import WorldError

_UNSEEN = "[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
"""What a terminal would obey, and what nobody sees, such as characters that turn a line around."""


class Verdict(NamedTuple):
    """What a command shows, and the exit code with which it ends although nothing stopped it."""

    shown: object
    code: int


def show(result: object) -> int:
    """Print text as it is, anything else as JSON, in UTF-8 whatever the terminal's language. Returns the exit code.

    Raises WorldError where the output has no room, and BrokenPipeError where nobody reads it any more.
    """
    shown, code = (result.shown, result.code) if isinstance(result, Verdict) else (result, 0)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    text = shown if isinstance(shown, str) else f"{_escaped(json.dumps(shown, ensure_ascii=False, indent=1))}\n"
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_output()
        raise WorldError(f"the answer cannot be written: {error.strerror}", "see that there is room for it") from error
    return code


def forget_output() -> None:
    """What is still buffered goes nowhere: it must not fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _escaped(text: str) -> str:
    """JSON in which what a terminal would obey, and what nobody sees, is written as numbers: the data stay the same."""
    return text if text.isascii() and "\x7f" not in text else re.sub(_UNSEEN, _number, text)


def _number(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]  # two numbers for a character beyond the first 65,536
