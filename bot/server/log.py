"""Writes the log: one JSON object per line, with the delivery it is about, and without secrets."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TextIO

from bot.errors import OUT_OF_MEMORY, PrecedentError, StoreError, bug_report
from bot.files import DISK_ERRORS, disk_fault

HIDDEN = "[hidden]"
DATABASE_OUTAGE = "the queue's database does not answer"
"""The words by which a line about an outage is known."""

CHECK_FAILED = "check failed"
OUTAGE_SECONDS = 60.0
MAX_CHARS = 2_000
"""Most characters of one text; the rest is cut off."""

_STANDARD_FIELDS = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"))
_TOKENS = re.compile(
    r"\b(?:gh[a-z]_[A-Za-z0-9_]{16,1000}|github_pat_[A-Za-z0-9_]{16,1000}|eyJ[A-Za-z0-9_-]{8,4000}(?:\.[A-Za-z0-9_-]{0,4000}){1,2})"
    r"|(?<=://)[^\s/@]{1,4000}(?=@)"
    r"|(?i:(?<=basic )|(?<=bearer ))[A-Za-z0-9._~+/=-]{8,4000}"
)
"""Credentials: GitHub's tokens, JSON web tokens, user names and passwords in addresses, and values of Authorization.
https://github.blog/engineering/behind-githubs-new-authentication-token-formats"""

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_shared: ContextVar[Mapping[str, str]] = ContextVar("shared", default=MappingProxyType({}))


@contextmanager
def log_fields(**fields: str) -> Iterator[None]:
    """Add these fields, except empty ones, to every line that this thread or task writes within the block.

    That includes the lines of libraries. A line's own field of the same name wins.
    """
    token = _shared.set({**_shared.get(), **{name: text for name, text in fields.items() if text}})
    try:
        yield
    finally:
        _shared.reset(token)


class LogFormatter(logging.Formatter):
    """Formats records as lines. Texts in ``secrets``, and anything that looks like a credential, are removed.

    An exception appears with its class and location, never with its text, which may contain a stranger's words. Values
    in ``extra`` become fields.
    """

    def __init__(self, form: Literal["json", "text"] = "json", secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._form = form
        self._texts: frozenset[str] = frozenset()
        self._secrets: re.Pattern[str] | None = None
        self.hide(secrets)

    def hide(self, secrets: Iterable[str]) -> None:
        self._texts |= {text for text in secrets if text}
        longest_first = sorted(self._texts, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": self._clean(record.getMessage()),
            "logger": record.name,
            "pid": record.process,
        }
        own = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
        fields = {name: self._field(value) for name, value in {**_shared.get(), **own}.items()}
        if record.exc_info and record.exc_info[1]:
            fields["error"] = self._clean(describe_error(record.exc_info[1]))
        if self._form == "json":
            return json.dumps(line | fields)
        rest = "".join(f" {name}={value}" for name, value in fields.items())
        return f"{line['time']} {line['level']}: {line['message']}{rest}"

    def _field(self, value: object) -> object:
        return value if value is None or isinstance(value, bool | int | float) else self._clean(str(value))

    def _clean(self, text: str) -> str:
        text = self._secrets.sub(HIDDEN, text) if self._secrets else text
        text = _CONTROLS.sub("\ufffd", _TOKENS.sub(HIDDEN, text))
        return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"


def describe_error(error: BaseException) -> str:
    """Return the class of an exception and the innermost frames of its traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-8:])
    return f"{type(error).__name__} at {places}" if places else type(error).__name__


class OutageFilter(logging.Filter):
    """Lets one warning a minute pass that says that the database does not answer: everything that needs it says so.

    A check that fails says so only once, so that always passes.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._next, self._left_out = clock, 0.0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if record.levelno > logging.WARNING or DATABASE_OUTAGE not in message or message.startswith(CHECK_FAILED):
            return True
        if self._clock() < self._next:
            self._left_out += 1
            return False
        if self._left_out:
            record.left_out = self._left_out
        self._next, self._left_out = self._clock() + OUTAGE_SECONDS, 0
        return True


def write_logs(form: Literal["json", "text"], secrets: Iterable[str], stream: TextIO | None = None) -> None:
    """Write all logs of this process, including those of libraries, to ``stream`` (stderr)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogFormatter(form, secrets))
    handler.addFilter(OutageFilter())
    root = logging.getLogger()
    for former in list(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("bot").setLevel(logging.INFO)
    logging.captureWarnings(capture=True)


def hide(secrets: Iterable[str]) -> None:
    """Also keep these texts out of the log of this process, from now on."""
    texts = list(secrets)
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, LogFormatter):
            handler.formatter.hide(texts)


class Bug(PrecedentError):
    """An unexpected error; its message is the line for a report."""


def catch_error(call: Callable[[], object]) -> PrecedentError | None:
    """Call it and return its error, an unexpected one as a `Bug`. Only what ends the process is raised.

    The server's threads keep running after a bug.
    """
    try:
        call()
    except PrecedentError as error:
        return error
    except MemoryError:
        return StoreError(OUT_OF_MEMORY)
    except OSError as error:
        return disk_fault("it failed", error) if error.errno in DISK_ERRORS else Bug(bug_report(error))
    except Exception as error:  # noqa: BLE001 - nothing above a thread would report a bug
        return Bug(bug_report(error))
    return None


def run_guarded(call: Callable[[], object]) -> str:
    """Call it and return what went wrong in one line; "" if nothing did."""
    return "; ".join(line.strip() for line in str(catch_error(call) or "").splitlines() if line.strip())
