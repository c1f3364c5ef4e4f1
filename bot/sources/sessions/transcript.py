"""What a line of a transcript can say, and what a format reads it with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol


class Content(NamedTuple):
    """The text of a message, the files that its tool calls name, and the ids of the calls that ask the person."""

    text: str
    files: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


class Answer(NamedTuple):
    """The words of the person that a tool returned, if the agent's call with this id asked a question."""

    call: str
    text: str


class TranscriptMessage(NamedTuple):
    """A message. ``session`` is "" if the line names none; ``branch`` is the git branch it was written on."""

    session: str
    type: str
    content: Content
    at: datetime | None
    branch: str = ""
    answers: tuple[Answer, ...] = ()


class SessionHeader(NamedTuple):
    """The header of a session. Later lines that name no session belong to it. "" leaves what an earlier one said.

    ``names_file``: the first header of this kind names all of the file, as a fork repeats that of its parent.
    """

    session: str
    folder: str
    branch: str = ""
    names_file: bool = False


class PullRequestLink(NamedTuple):
    """A pull request that the agent worked on: ``#50`` or ``owner/name#50``."""

    session: str
    name: str


class WholeSession(NamedTuple):
    """A session in one object. ``broken`` of its messages were unreadable."""

    session: str
    messages: tuple[TranscriptMessage, ...]
    broken: int


class SubagentTranscript(NamedTuple):
    """A subagent has answered, in the transcript at ``path``."""

    session: str
    path: str
    at: datetime | None


TranscriptLine = TranscriptMessage | SessionHeader | SubagentTranscript | PullRequestLink | WholeSession


class Line(Protocol):
    """The ``fields`` of a line, and what a format reads them with.

    An ``inner`` object of the line may hold its session and its time instead. Raises `Unreadable` for what should be a
    message but is not.
    """

    fields: Mapping[str, Any]

    def message(
        self, speaker: str, content: Any, *inner: Mapping[str, Any], is_subagent: bool = False
    ) -> TranscriptMessage:
        """What ``user`` or ``assistant`` said. ``is_subagent``: the agent wrote what the subagent is asked."""

    def answer(self, source: Mapping[str, Any], text: Any) -> TranscriptMessage | None:
        """What the person answered to the call of a tool that ``source`` names."""

    def answers_in_json(self, text: Any) -> str:
        """The words of the person in a tool's result: an object with ``answers``."""

    def header(
        self, source: Mapping[str, Any], place: Mapping[str, Any], branch: Any = None, *, names_file: bool = False
    ) -> SessionHeader:
        """The header of the session that ``source`` names, with the folder in ``place``."""

    def pull_request(self, number: Any, repo: Any) -> PullRequestLink | None:
        """A pull request that the agent worked on; None for a wrong number."""

    def subagent(self, paths: Iterable[Any], *inner: Mapping[str, Any]) -> SubagentTranscript | None:
        """The answer of a subagent, in the first of these transcripts."""

    def common(self) -> TranscriptLine | None:
        """What the line says in the common form: messages with a ``role`` or ``type``, perhaps after a header."""
