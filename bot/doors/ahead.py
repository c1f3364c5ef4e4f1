"""What a run of the Action asks of git first, asked while the rest of the program is still being loaded.

To load it takes as long as git needs for an answer, and git is a process of its own.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterable, Mapping

from bot.config import TEMPLATES
from bot.errors import PrecedentError
from bot.github.events import KNOWN
from bot.inputs import given_inputs, read_inputs
from bot.memory.head import read_head

Files = tuple[str, dict[str, bytes]]

PATIENCE = 10.0
"""Seconds that a run which ended early waits for what nobody asked for any more."""


class Ahead:
    """Reads some files of a repository's default branch before anybody has asked for them."""

    def __init__(self) -> None:
        self._asked: tuple[str, str, tuple[str, ...]] | None = None
        self._thread: threading.Thread | None = None
        self._files: Files | None = None

    def begin(self, url: str, token: str, paths: Iterable[str]) -> None:
        """Start to read. What fails now is asked again, and told, when it is needed."""
        self._asked = (url, token, tuple(paths))
        self._thread = threading.Thread(target=self._read, name="ahead", daemon=True)
        self._thread.start()

    def read(self, url: str, token: str, paths: Iterable[str]) -> Files:
        """As `bot.memory.head.read_head`: what was read ahead where it is the same that was asked for then, once."""
        wanted = (url, token, tuple(paths))
        if self._thread and self._asked == wanted:
            self._thread.join()
            self._thread = None
            if self._files is not None:
                return self._files
        return read_head(*wanted)

    def end(self) -> None:
        """Let go of what nobody asked for."""
        if self._thread:
            self._thread.join(PATIENCE)

    def _read(self) -> None:
        if self._asked:
            try:
                self._files = read_head(*self._asked)
            except PrecedentError:  # whoever asks in earnest meets it again
                self._files = None


def begin(environ: Mapping[str, str]) -> Ahead:
    """Ask for the settings, where these variables of a runner say of which repository, for an event that is ours."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no picture of the token
    ahead = Ahead()
    repository, server = environ.get("GITHUB_REPOSITORY"), environ.get("GITHUB_SERVER_URL")
    if not repository or not server or environ.get("GITHUB_EVENT_NAME") not in KNOWN:
        return ahead
    try:
        inputs = read_inputs(given_inputs(environ))
    except PrecedentError:  # the run says it better
        return ahead
    if inputs.token:
        ahead.begin(f"{server.rstrip('/')}/{repository}.git", inputs.token, [inputs.config, *TEMPLATES])
    return ahead
