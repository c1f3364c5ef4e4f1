"""What is read of agent sessions: who said what when, and which files the tools touched."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

USER, ASSISTANT = "user", "assistant"


class Utterance(NamedTuple):
    """A message of a session. ``type`` is ``user`` or ``assistant``; ``at`` None where its line does not tell.

    ``files`` are what the tools were called with until somebody spoke again, below the session's folder where they are
    in it. The text may be empty: files alone, before anything was said.
    """

    type: str
    text: str
    at: datetime | None = None
    files: tuple[str, ...] = ()


class Session(NamedTuple):
    """A session as one file tells it, its messages in the order of the lines.

    ``issue`` is the number of the issue that it worked on, where a mapping file tells. ``broken`` lines of the file
    were skipped; they belong to no session, so each session of the file has the same number.
    """

    id: str
    path: str
    utterances: tuple[Utterance, ...]
    issue: int | None = None
    broken: int = 0
