"""Archives of threads: one JSON object a line, plain or compressed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from bot.archive import thread_from_archive
from bot.errors import UserError
from bot.model import Thread

MAX_LINE = 16 * 1024 * 1024


def read_archive(path: Path) -> Iterator[Thread]:
    """The threads of an archive; UserError with file and line for the first that is none."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), 1):
                if line.strip():
                    yield _parsed(line, path, number)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read as an archive: {getattr(error, 'strerror', None) or error}") from error


def _parsed(line: bytes, path: Path, number: int) -> Thread:
    try:
        fields = json.loads(line.decode("utf-8-sig").rstrip())
        if not isinstance(fields, dict):
            raise TypeError("each line is one JSON object")
        return thread_from_archive(fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}, line {number}: not a thread ({_fault(error):.120})") from error


def _fault(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"not JSON: {error.msg} at column {error.colno}"
        case UnicodeDecodeError():
            return f"not UTF-8 at byte {error.start}"
        case RecursionError():
            return "nested too deeply"
        case KeyError():
            return f"no {error}"
    return str(error)
