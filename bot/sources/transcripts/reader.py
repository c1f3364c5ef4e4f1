"""Reads a file of sessions line by line, from its start or from where an earlier reading ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from bot.sources.transcripts.clock import TranscriptClock
from bot.sources.transcripts.content import MAX_FILES, Unreadable, plain
from bot.sources.transcripts.files import File
from bot.sources.transcripts.lines import MAX_ID, MAX_LINE, Elsewhere, Opened, Said, told
from bot.sources.transcripts.nouns import ASSISTANT, Session, Utterance
from bot.sources.transcripts.subagents import Subagents, opened

MAX_MESSAGES = 50_000
"""Messages of one session that are kept, the first ones."""

MAX_CHARS = 16 << 20
"""Characters of one portion."""

_CHUNK = 1 << 20
_GUARDED = 4_096
"""Bytes at the start of what was read, and at its end, by which it is known again."""


class Cursor(NamedTuple):
    """How far a file was read. ``session`` and ``folder`` are those of its last header, ``broken`` counts its lines
    before ``offset`` that were skipped; ``last`` is the time that was read last, in ISO 8601; ``guard`` tells whether
    these bytes still are the same."""

    offset: int = 0
    session: str = ""
    folder: str = ""
    broken: int = 0
    last: str = ""
    guard: str = ""


class Portion(NamedTuple):
    """What was read at once: sessions' ids with what was said in them, and where the next reading begins.

    ``unfinished`` is 1 where the file ends in a broken line without its newline, which is read again next time: it may
    be in the middle of being written. ``is_last`` unless the portion was full before the file ended.
    """

    said: tuple[tuple[str, Utterance], ...]
    cursor: Cursor
    lines: int
    unfinished: int
    is_last: bool


def sessions(file: File, zone: tzinfo = UTC) -> tuple[Session, ...]:
    """The sessions in a file, in the order in which they begin; ``zone`` as in `read`. Raises OSError."""
    found: dict[str, list[Utterance]] = {}
    cursor, unfinished, is_last = Cursor(), 0, False
    while not is_last:
        said, cursor, _, unfinished, is_last = read(file, cursor, zone=zone)
        for name, utterance in said:
            messages = found.setdefault(name, [])
            if len(messages) < MAX_MESSAGES:
                messages.append(utterance)
    broken = cursor.broken + unfinished
    return tuple(Session(name, file.path, tuple(messages), None, broken) for name, messages in found.items())


def is_same(file: File, cursor: Cursor) -> bool:
    """Whether what was read up to the cursor still stands in the file, so that reading may go on there.

    Its first and its last bytes are compared: a log that is written to its end keeps both. Raises OSError.
    """
    if not cursor.offset or file.size < cursor.offset:
        return False
    with os.fdopen(opened(Path(file.path)), "rb") as handle:
        return _guard(handle, cursor.offset) == cursor.guard


def read(
    file: File,
    cursor: Cursor = Cursor(),  # noqa: B008 (a constant)
    most: int = MAX_MESSAGES,
    zone: tzinfo = UTC,
) -> Portion:
    """The next messages of a file, at most about so many; times without a zone are in ``zone``. Raises OSError."""
    with os.fdopen(opened(Path(file.path)), "rb") as handle:
        handle.seek(cursor.offset)
        reading = _Reading(file, cursor, zone)
        is_last = True
        for line, length, is_whole in _lines(handle):
            reading.take(line, length, is_whole=is_whole)
            if reading.chars > MAX_CHARS or reading.count >= most:
                is_last = False
                break
        reading.flush()
        return reading.portion(_guard(handle, reading.offset), is_last=is_last)


class _Reading:
    """A portion in the making. A message waits until the next one: tools that are called after it add their files."""

    def __init__(self, file: File, cursor: Cursor, zone: tzinfo) -> None:
        self._file = file
        self.offset, self._session, self._folder, self._broken, last, _ = cursor
        self._clock = TranscriptClock(zone, datetime.fromisoformat(last) if last else None)
        self._subagents: Subagents | None = None
        self._waiting: tuple[str, Utterance] | None = None
        self.said: list[tuple[str, Utterance]] = []
        self.chars = self._lines = self._unfinished = 0

    def take(self, line: bytes, length: int, *, is_whole: bool) -> None:
        self._lines += 1
        try:
            found = told(line, self._folder, self._clock) if line.strip() else None
        except Unreadable:
            if not is_whole:
                self._unfinished = 1
                return
            self._broken += 1
            found = None
        self.offset += length
        if isinstance(found, Opened):
            self._session, self._folder = found
        elif isinstance(found, Said):
            self._say(found.session, Utterance(found.type, found.content.text, found.at, found.content.files))
        elif isinstance(found, Elsewhere):
            self._answer(found.session, found.path, found.at)

    @property
    def count(self) -> int:
        """How many messages there are, the waiting one among them."""
        return len(self.said) + (self._waiting is not None)

    def flush(self) -> None:
        if self._waiting:
            self.said.append(self._waiting)
            self._waiting = None

    def portion(self, guard: str, *, is_last: bool) -> Portion:
        last = self._clock.last.isoformat() if self._clock.last else ""
        cursor = Cursor(self.offset, self._session, self._folder, self._broken, last, guard)
        return Portion(tuple(self.said), cursor, self._lines, self._unfinished, is_last)

    def _answer(self, session: str, path: str, at: datetime | None) -> None:
        self._subagents = self._subagents or Subagents(self._file)
        text = self._subagents.response(path)
        if text:
            self._say(session, Utterance(ASSISTANT, text, at))

    def _say(self, session: str, utterance: Utterance) -> None:
        if not utterance.text and not utterance.files:
            return
        name = session or self._session or _name(self._file)
        self.chars += len(utterance.text) + sum(map(len, utterance.files))
        before = self._waiting
        if (
            before
            and before[0] == name
            and before[1].type == utterance.type
            and not (before[1].text and utterance.text)
        ):
            files = tuple(dict.fromkeys(before[1].files + utterance.files))[:MAX_FILES]
            at = before[1].at or utterance.at
            self._waiting = (name, Utterance(utterance.type, before[1].text or utterance.text, at, files))
        else:
            self.flush()
            self._waiting = (name, utterance)


def _name(file: File) -> str:
    """What a session is called that tells no name: its file, without the ending."""
    return " ".join(plain(os.path.splitext(file.name)[0]).split())[-MAX_ID:] or "session"  # noqa: PTH122 (dots stay)


def _lines(handle: BinaryIO) -> Iterator[tuple[bytes, int, bool]]:
    """Each line, its length in bytes, and whether it ends in a newline; of one that is too long only the beginning."""
    while line := handle.readline(MAX_LINE + 2):
        length, end = len(line), line[-1:]
        if length > MAX_LINE + 1:
            while end != b"\n" and (rest := handle.readline(_CHUNK)):
                length, end = length + len(rest), rest[-1:]
        yield line.rstrip(b"\r\n"), length, end == b"\n"


def _guard(handle: BinaryIO, offset: int) -> str:
    digest = sha256()
    for begin, end in ((0, min(offset, _GUARDED)), (max(0, offset - _GUARDED), offset)):
        handle.seek(begin)
        digest.update(handle.read(end - begin))
    return digest.hexdigest()
