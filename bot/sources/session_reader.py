"""Reads a transcript line by line, from its start or from the end of an earlier reading."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from bot.sources.session import (
    ASSISTANT,
    MAX_FILES,
    MAX_ID,
    MAX_LINE,
    MAX_OBJECT_BYTES,
    PullRequestLink,
    Session,
    SessionHeader,
    SubagentTranscript,
    TranscriptLine,
    TranscriptMessage,
    Unreadable,
    Utterance,
    WholeSession,
    parse_line,
    plain,
)
from bot.sources.session_files import SessionFile
from bot.sources.session_head import HEAD_BYTES, holds_messages, is_spread, open_regular_file
from bot.sources.session_times import TranscriptClock

MAX_MESSAGES = 50_000
"""Maximum messages kept of one session; the first ones are kept."""

MAX_CHARS = 16 << 20
"""Maximum characters of one portion."""

MAX_MARKS = 200
"""Maximum branches and pull requests kept of one portion; the first ones are kept."""

BRANCH, PULL_REQUEST = "branch", "pull request"

_CHUNK_BYTES = 1 << 20


class Cursor(NamedTuple):
    """How far a file was read. ``session`` and ``folder`` come from the last header, ``broken`` counts the skipped
    lines before ``offset``, ``last`` is the last time in ISO 8601, and ``checksum`` the CRC-32 of these bytes."""

    offset: int = 0
    session: str = ""
    folder: str = ""
    broken: int = 0
    last: str = ""
    checksum: int = 0


class SessionMark(NamedTuple):
    """What a session worked on: ``kind`` is ``branch``, or ``pull request`` with a ``name`` such as ``#50`` or
    ``owner/name#50``."""

    session: str
    kind: str
    name: str


class Portion(NamedTuple):
    """Messages read in one go, with the ids of their sessions, and the cursor for the next reading.

    ``unfinished`` is 1 if the file ends in a broken line without a newline: it may be half written, and is read again
    next time. ``marks`` say what the sessions worked on. ``is_last``: the file ended before the portion was full.
    """

    messages: tuple[tuple[str, Utterance], ...]
    cursor: Cursor
    lines: int
    unfinished: int
    is_last: bool
    marks: tuple[SessionMark, ...] = ()


def read_sessions(file: SessionFile, zone: tzinfo = UTC) -> tuple[Session, ...]:
    """Return the sessions in a file, in the order of their first messages. Raises OSError."""
    sessions: dict[str, list[Utterance]] = {}
    cursor, unfinished, is_last = Cursor(), 0, False
    while not is_last:
        utterances, cursor, _, unfinished, is_last, _ = read_portion(file, cursor, zone=zone)
        for name, utterance in utterances:
            messages = sessions.setdefault(name, [])
            if len(messages) < MAX_MESSAGES:
                messages.append(utterance)
    broken = cursor.broken + unfinished
    return tuple(Session(name, file.path, tuple(messages), None, broken) for name, messages in sessions.items())


def is_same(file: SessionFile, cursor: Cursor) -> bool:
    """Whether the part up to the cursor is unchanged, so that reading can continue there. Raises OSError.

    All of that part is compared by its checksum, at a gigabyte per second or more, so that an edit in the middle of a
    log that also grew is seen. One edit in four billion has the same checksum and is missed.
    """
    if not cursor.offset or file.size < cursor.offset:
        return False
    with os.fdopen(open_regular_file(Path(file.path)), "rb") as handle:
        checksum, left = 0, cursor.offset
        while left and (chunk := handle.read(min(_CHUNK_BYTES, left))):
            checksum, left = crc32(chunk, checksum), left - len(chunk)
        return checksum == cursor.checksum


def read_portion(
    file: SessionFile,
    cursor: Cursor = Cursor(),  # noqa: B008 (a constant)
    most: int = MAX_MESSAGES,
    zone: tzinfo = UTC,
) -> Portion:
    """Read up to about ``most`` more messages; times without a zone are in ``zone``. Raises OSError."""
    with os.fdopen(open_regular_file(Path(file.path)), "rb") as handle:
        handle.seek(cursor.offset)
        reading = _Reading(file, cursor, zone)
        is_last = True
        single = _read_object(handle, file)
        for line in _lines(handle, cursor.checksum) if single is None else single:
            reading.take(line)
            if reading.chars > MAX_CHARS or reading.count >= most:
                is_last = False
                break
        reading.flush()
        return reading.portion(is_last=is_last)


class _Reading:
    """Builds a portion. A message waits for the next one, as later tool calls add their files to it."""

    def __init__(self, file: SessionFile, cursor: Cursor, zone: tzinfo) -> None:
        self._file = file
        self._offset, self._session, self._folder, self._broken, last, self._checksum = cursor
        self._clock = TranscriptClock(zone, datetime.fromisoformat(last) if last else None)
        self._subagents: Subagents | None = None
        self._waiting: tuple[str, Utterance] | None = None
        self._marks: dict[SessionMark, None] = {}
        self.messages: list[tuple[str, Utterance]] = []
        self.chars = self._lines = self._unfinished = 0

    def take(self, line: _Line) -> None:
        self._lines += 1
        try:
            parsed = parse_line(line.text, self._folder, self._clock, line.most) if line.text.strip() else None
        except Unreadable:
            if not line.is_whole:
                self._unfinished = 1
                return
            self._broken += 1
            parsed = None
        self._offset, self._checksum = self._offset + line.length, line.checksum
        if parsed:
            self._add_line(parsed)

    def _add_line(self, parsed: TranscriptLine) -> None:
        if isinstance(parsed, SessionHeader):
            self._session, self._folder, branch = parsed
            self._add_mark("", BRANCH, branch)
        elif isinstance(parsed, WholeSession):
            self._broken += parsed.broken
            self._session = parsed.session or self._session
            for message in parsed.messages:
                self._add_line(message)
        elif isinstance(parsed, PullRequestLink):
            self._add_mark(parsed.session, PULL_REQUEST, parsed.name)
        elif isinstance(parsed, SubagentTranscript):
            self._add_answer(parsed.session, parsed.path, parsed.at)
        else:
            self._add_mark(parsed.session, BRANCH, parsed.branch)
            self._add_message(
                parsed.session, Utterance(parsed.type, parsed.content.text, parsed.at, parsed.content.files)
            )

    @property
    def count(self) -> int:
        return len(self.messages) + (self._waiting is not None)

    def flush(self) -> None:
        if self._waiting:
            self.messages.append(self._waiting)
            self._waiting = None

    def portion(self, *, is_last: bool) -> Portion:
        last = self._clock.last.isoformat() if self._clock.last else ""
        cursor = Cursor(self._offset, self._session, self._folder, self._broken, last, self._checksum)
        return Portion(tuple(self.messages), cursor, self._lines, self._unfinished, is_last, tuple(self._marks))

    def _add_mark(self, session: str, kind: str, name: str) -> None:
        if name and len(self._marks) < MAX_MARKS:
            self._marks[SessionMark(self._session_name(session), kind, name)] = None

    def _add_answer(self, session: str, path: str, at: datetime | None) -> None:
        self._subagents = self._subagents or Subagents(self._file)
        text = self._subagents.response(path)
        if text:
            self._add_message(session, Utterance(ASSISTANT, text, at))

    def _session_name(self, session: str) -> str:
        return session or self._session or _session_name(self._file)

    def _add_message(self, session: str, utterance: Utterance) -> None:
        if not utterance.text and not utterance.files:
            return
        name = self._session_name(session)
        self.chars += len(utterance.text) + sum(map(len, utterance.files))
        session_before, earlier = self._waiting or ("", None)
        is_same_speaker = earlier and session_before == name and earlier.type == utterance.type
        if earlier and is_same_speaker and not (earlier.text and utterance.text):
            files = tuple(dict.fromkeys(earlier.files + utterance.files))[:MAX_FILES]
            text, at = earlier.text or utterance.text, earlier.at or utterance.at
            self._waiting = (name, Utterance(utterance.type, text, at, files))
        else:
            self.flush()
            self._waiting = (name, utterance)


def _session_name(file: SessionFile) -> str:
    """The name for a session without one: its file name without the suffix."""
    return " ".join(plain(os.path.splitext(file.name)[0]).split())[-MAX_ID:] or "session"  # noqa: PTH122 (dots stay)


class _Line(NamedTuple):
    """A line of ``length`` bytes, of which at most ``most`` may be read. ``is_whole``: it ends in a newline;
    ``checksum`` is the CRC-32 of this line and all before it."""

    text: bytes
    length: int
    is_whole: bool
    checksum: int
    most: int = MAX_LINE


def _lines(handle: BinaryIO, checksum: int) -> Iterator[_Line]:
    """The remaining lines; overlong ones are truncated."""
    while line := handle.readline(MAX_LINE + 2):
        length, end, checksum = len(line), line[-1:], crc32(line, checksum)
        if length > MAX_LINE + 1:
            while end != b"\n" and (rest := handle.readline(_CHUNK_BYTES)):
                length, end, checksum = length + len(rest), rest[-1:], crc32(rest, checksum)
        yield _Line(line.rstrip(b"\r\n"), length, end == b"\n", checksum)


def _read_object(handle: BinaryIO, file: SessionFile) -> tuple[_Line, ...] | None:
    """The whole file as one line if it is one object, () for a ``.json`` without messages, None for a file of lines."""
    if handle.tell():
        return None
    head = handle.read(HEAD_BYTES)
    handle.seek(0)
    is_json = file.path.endswith(".json")
    if is_json and not holds_messages(head):
        return ()
    if not is_json and not is_spread(head):
        return None
    text = handle.read(MAX_OBJECT_BYTES + 1)
    length = max(os.fstat(handle.fileno()).st_size, len(text))
    return (_Line(text, length, is_whole=True, checksum=crc32(text), most=MAX_OBJECT_BYTES),)


# -- subagents ---------------------------------------------------------------------------------------------------------

MAX_TAIL = 1 << 20
"""How many bytes at the end of a transcript are searched."""

MAX_TRANSCRIPTS = 200
"""Maximum transcripts to read for one portion of a log."""


class Subagents:
    """Reads the last answers of subagents from the transcripts that one log names: regular ``.jsonl`` files below its
    own folder, or below the top of the sources."""

    def __init__(self, log: SessionFile) -> None:
        folder = Path(log.path).parent
        self._bases = (folder, Path(log.top))
        self._roots = (folder.resolve(), Path(log.top).resolve())
        self._responses: dict[str, str] = {}

    def response(self, path: str) -> str:
        """Return the last answer of the subagent, "" if it cannot be read."""
        if path not in self._responses:
            self._responses[path] = self._read(path) if len(self._responses) < MAX_TRANSCRIPTS else ""
        return self._responses[path]

    def _read(self, path: str) -> str:
        file = Path(path).expanduser() if path.startswith("~/") else Path(path)
        for base in self._bases:
            with suppress(OSError, ValueError, RuntimeError):
                transcript = (base / file).resolve(strict=True)
                if transcript.suffix == ".jsonl" and any(transcript.is_relative_to(root) for root in self._roots):
                    return _last_answer(_read_tail(transcript))
        return ""


def _read_tail(path: Path) -> bytes:
    with os.fdopen(open_regular_file(path), "rb") as handle:
        begin = max(0, os.fstat(handle.fileno()).st_size - MAX_TAIL)
        handle.seek(begin)
        data = handle.read(MAX_TAIL)
    return data.partition(b"\n")[2] if begin else data


def _last_answer(data: bytes) -> str:
    for line in reversed(data.split(b"\n")):
        with suppress(Unreadable):
            parsed = parse_line(line)
            if isinstance(parsed, TranscriptMessage) and parsed.type == ASSISTANT and parsed.content.text:
                return parsed.content.text
    return ""
