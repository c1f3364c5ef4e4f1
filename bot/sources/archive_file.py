"""Reads archives of threads: one JSON object per line, plain or compressed."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from bot.domain.thread import Thread
from bot.domain.thread_json import thread_from_archive
from bot.errors import UserError

MAX_THREAD_BYTES = 16 * 1024 * 1024
"""Maximum decompressed bytes of one thread, including blank lines before it. The number of threads is unlimited."""

_BLOCK = 1024 * 1024
_BLANK = re.compile(rb"\s*")


def read_archive(path: Path) -> Iterator[Thread]:
    """Yield the threads of an archive. Raises UserError with file and line for the first invalid one."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in _lines(file, path):
                yield _parse_thread(line, path, number)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read as an archive: {getattr(error, 'strerror', None) or error}") from error


def _lines(file: BufferedIOBase, path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers. Blank ones are skipped a block at a time."""
    buffer, at, number, blank = b"", 0, 1, 0
    while True:
        start = _after_blank(buffer, at)
        number += buffer.count(b"\n", at, start)
        blank += start - at
        end = buffer.find(b"\n", start)
        more = b"" if end >= 0 else file.read(_BLOCK)
        if blank + (end if end >= 0 else len(buffer)) - start > MAX_THREAD_BYTES:
            raise UserError(f"{path}, line {number}: over {MAX_THREAD_BYTES // 1024**2} MB without the end of a thread")
        if more:
            buffer, at = buffer[start:] + more, 0
            continue
        if start < len(buffer):
            yield number, buffer[start:end] if end >= 0 else buffer[start:]
        if end < 0:
            return
        at, blank = end, 0


def _after_blank(buffer: bytes, at: int) -> int:
    blank = _BLANK.match(buffer, at)
    return blank.end() if blank else at


def _parse_thread(line: bytes, path: Path, number: int) -> Thread:
    try:
        fields = json.loads(line.decode("utf-8-sig").rstrip())
        if not isinstance(fields, dict):
            raise TypeError("each line must be one JSON object")
        return thread_from_archive(fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}, line {number}: not a thread ({_describe_error(error):.120})") from error


def _describe_error(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"not JSON: {error.msg} at column {error.colno}"
        case UnicodeDecodeError():
            return f"not UTF-8 at byte {error.start}"
        case RecursionError():
            return "nested too deeply"
        case KeyError():
            return f"{error} is missing"
    return str(error)
