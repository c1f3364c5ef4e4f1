"""Reads a transcript line by line, from its start or from the end of an earlier reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

from bot.sources.sessions.content import MAX_FILES, MAX_ID, plain
from bot.sources.sessions.files import SessionFile
from bot.sources.sessions.formats import ASSISTANT, fold_chat, is_chat, match_path
from bot.sources.sessions.head import (
    HEAD_BYTES,
    MAX_LINE,
    Unreadable,
    holds_messages,
    is_spread,
    open_regular_file,
    parse_object,
)
from bot.sources.sessions.line import parse_line, parse_whole
from bot.sources.sessions.opencode import read_stored
from bot.sources.sessions.session import Session, Utterance
from bot.sources.sessions.times import TranscriptClock
from bot.sources.sessions.transcript import (
    PullRequestLink,
    SessionHeader,
    SubagentTranscript,
    TranscriptLine,
    TranscriptMessage,
    WholeSession,
)

MAX_OBJECT_BYTES = 8 << 20
"""Maximum bytes of a file that is one object."""

MAX_MESSAGES = 50_000
"""Maximum messages kept of one session; the first ones are kept."""

MAX_CHARS = 16 << 20
"""Maximum characters of one portion."""

MAX_MARKS = 200
"""Maximum branches and pull requests kept of one portion; the first ones are kept."""

MAX_CHAT_BYTES = 64 << 20
"""Maximum bytes of a chat whose later lines change earlier ones; more are not read."""

MAX_ASKED = 20
"""Questions to the person that may wait for their answers, the last ones."""

BRANCH, PULL_REQUEST = "branch", "pull request"

_CHUNK_BYTES = 1 << 20


class Cursor(NamedTuple):
    """How far a file was read. ``session`` and ``folder`` come from the last header, ``broken`` counts the skipped
    lines before ``offset``, ``last`` is the last time in ISO 8601, ``checksum`` the CRC-32 of the bytes before
    ``offset``, and ``asked`` has the ids of the questions without an answer, between spaces.

    A file that is read as a whole leaves ``offset`` at 0, so that the next reading begins at its start.
    """

    offset: int = 0
    session: str = ""
    folder: str = ""
    broken: int = 0
    last: str = ""
    checksum: int = 0
    asked: str = ""


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
    ``replaces_last``: the first message is the last one of the former portion, with what was added to it.
    """

    messages: tuple[tuple[str, Utterance], ...]
    cursor: Cursor
    lines: int
    unfinished: int
    is_last: bool
    marks: tuple[SessionMark, ...] = ()
    replaces_last: bool = False


def read_sessions(file: SessionFile, zone: tzinfo = UTC) -> tuple[Session, ...]:
    """Return the sessions in a file, in the order of their first messages. Raises OSError."""
    messages: list[tuple[str, Utterance]] = []
    cursor, portion = Cursor(), None
    while portion is None or not portion.is_last:
        portion = read_portion(file, cursor, zone=zone, last=messages[-1] if messages else None)
        messages[len(messages) - portion.replaces_last :] = portion.messages
        cursor = portion.cursor
    sessions: dict[str, list[Utterance]] = {}
    for name, utterance in messages:
        utterances = sessions.setdefault(name, [])
        if len(utterances) < MAX_MESSAGES:
            utterances.append(utterance)
    broken = cursor.broken + portion.unfinished
    return tuple(Session(name, file.path, tuple(utterances), None, broken) for name, utterances in sessions.items())


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
    last: tuple[str, Utterance] | None = None,
) -> Portion:
    """Read up to about ``most`` more messages; times without a zone are in ``zone``. ``last`` is the last message of
    the former portion, to which tool calls may still add files. Raises OSError."""
    reading = _Reading(file, cursor, zone, last)
    if file.database:
        reading.take_whole(lambda: read_stored(file.database, file.path[len(file.database) + 1 :]))
        return reading.portion(is_last=True)
    with os.fdopen(open_regular_file(Path(file.path)), "rb") as handle:
        if not cursor.offset and reading.take_file(handle):
            return reading.portion(is_last=True)
        handle.seek(cursor.offset)
        for line in _lines(handle, cursor.checksum):
            reading.take(line)
            if reading.chars > MAX_CHARS or reading.count >= most:
                return reading.portion(is_last=False)
        return reading.portion(is_last=True)


class _Reading:
    """Builds a portion. A message waits for the next one, as later tool calls add their files to it."""

    def __init__(self, file: SessionFile, cursor: Cursor, zone: tzinfo, last: tuple[str, Utterance] | None) -> None:
        self._file = file
        match = match_path(file.path)
        self._is_subagent = match is not None and bool(match.groupdict().get("subagent"))
        self._offset, self._session, self._folder, self._broken, time, self._checksum, asked = cursor
        self._clock = TranscriptClock(zone, datetime.fromisoformat(time) if time else None)
        self._subagents: Subagents | None = None
        self._asked = dict.fromkeys(asked.split())
        self._last = self._waiting = last if cursor.offset else None
        self._replaces_last = False
        self._marks: dict[SessionMark, None] = {}
        self._messages: list[tuple[str, Utterance]] = []
        self.chars = self._lines = self._unfinished = 0

    def take(self, line: _Line) -> None:
        self._lines += 1
        try:
            parsed = parse_line(line.text, self._folder, self._clock) if line.text.strip() else None
        except Unreadable:
            if not line.is_whole:
                self._unfinished = 1
                return
            self._broken += 1
            parsed = None
        self._offset, self._checksum = self._offset + line.length, line.checksum
        if parsed:
            self._add_line(parsed)

    def take_file(self, handle: BinaryIO) -> bool:
        """Read a file that is one object, or a chat; whether it is one."""
        head = handle.read(HEAD_BYTES)
        handle.seek(0)
        is_object = self._file.path.endswith(".json") or is_spread(head)
        if is_object and not holds_messages(head):
            return True
        if not is_object and not is_chat(head):
            return False
        most = MAX_OBJECT_BYTES if is_object else MAX_CHAT_BYTES
        data = handle.read(most + 1)
        self.take_whole(lambda: parse_object(data, most) if is_object else self._fold(data, most))
        return True

    def _fold(self, data: bytes, most: int) -> dict[str, Any]:
        fields, broken = fold_chat(data[:most].split(b"\n"))
        self._broken += broken
        if fields.get("kind") == "subagent":
            fields["sessionId"] = Path(self._file.path).parent.name  # that of the session which started it
        return fields

    def take_whole(self, read: Callable[[], dict[str, Any]]) -> None:
        """Add a session that is one object; one that cannot be read counts as a broken line. Raises OSError."""
        self._lines += 1
        try:
            self._add_line(parse_whole(read(), self._folder, self._clock))
        except Unreadable:
            self._broken += 1

    def _add_line(self, parsed: TranscriptLine) -> None:
        if isinstance(parsed, SessionHeader):
            self._add_header(parsed)
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
            self._add_words(parsed)

    def _add_header(self, header: SessionHeader) -> None:
        if header.names_file and header.session and self._session:
            return
        self._session, self._folder = header.session or self._session, header.folder or self._folder
        self._add_mark("", BRANCH, header.branch)

    def _add_words(self, message: TranscriptMessage) -> None:
        """Add a message with the answers in it, unless the agent did not ask."""
        text, files, asks = message.content
        answers = [answer.text for answer in message.answers if answer.call in self._asked]
        for answer in message.answers:
            self._asked.pop(answer.call, None)
        self._asked |= dict.fromkeys(asks)
        while len(self._asked) > MAX_ASKED:
            del self._asked[next(iter(self._asked))]
        text = "\n\n".join(filter(None, [text, *map(plain, answers)]))
        speaker = ASSISTANT if self._is_subagent else message.type  # the agent wrote what the subagent is asked
        self._add_message(message.session, Utterance(speaker, text, message.at, files))

    @property
    def count(self) -> int:
        return len(self._messages) + (self._waiting is not None and self._waiting is not self._last)

    def _flush(self) -> None:
        if self._waiting and self._waiting is not self._last:
            self._messages.append(self._waiting)
        self._waiting = self._last = None

    def portion(self, *, is_last: bool) -> Portion:
        self._flush()
        time = self._clock.last.isoformat() if self._clock.last else ""
        asked = " ".join(self._asked)
        cursor = Cursor(self._offset, self._session, self._folder, self._broken, time, self._checksum, asked)
        messages, marks = tuple(self._messages), tuple(self._marks)
        return Portion(messages, cursor, self._lines, self._unfinished, is_last, marks, self._replaces_last)

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
            self._replaces_last = self._replaces_last or self._waiting is self._last
            self._waiting = (name, Utterance(utterance.type, text, at, files))
        else:
            self._flush()
            self._waiting = (name, utterance)


def _session_name(file: SessionFile) -> str:
    """The name for a session without one: its file name without the suffix."""
    if match := match_path(file.path):
        return match["session"]
    return " ".join(plain(os.path.splitext(file.name)[0]).split())[-MAX_ID:] or "session"  # noqa: PTH122 (dots stay)


class _Line(NamedTuple):
    """A line of ``length`` bytes. ``is_whole``: it ends in a newline; ``checksum`` is the CRC-32 of this line and all
    before it."""

    text: bytes
    length: int
    is_whole: bool
    checksum: int


def _lines(handle: BinaryIO, checksum: int) -> Iterator[_Line]:
    """The remaining lines; overlong ones are truncated."""
    while line := handle.readline(MAX_LINE + 2):
        length, end, checksum = len(line), line[-1:], crc32(line, checksum)
        if length > MAX_LINE + 1:
            while end != b"\n" and (rest := handle.readline(_CHUNK_BYTES)):
                length, end, checksum = length + len(rest), rest[-1:], crc32(rest, checksum)
        yield _Line(line.rstrip(b"\r\n"), length, end == b"\n", checksum)


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
