"""Git in somebody's checkout: the only way that it is started there.

A checkout may be a stranger's, so nothing that it names is run (hooks, filters, monitors, signers, pagers, transports),
nothing is fetched, not even an object that a partial clone lacks, and what git prints and takes has bounds.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.errors import WorldError
from bot.memory.bounds import bound

if TYPE_CHECKING:
    import subprocess

PATIENCE = 5.0
"""Seconds that one process may take."""

MOST_BYTES = 1 << 18
"""Bytes of what git prints that are read; a process that prints more is ended."""

_MOST_REMARKS = 1 << 12
_PIECE = 1 << 16
_MOST_FILTERS = 50
_INHERITED = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "SYSTEMROOT")
"""With the home folder come the person's own settings, such as safe.directory."""

_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # also where git is too old to know GIT_NO_LAZY_FETCH
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "",
    "core.quotePath": "false",
    "diff.relative": "false",
    "log.showSignature": "false",
    "safe.bareRepository": "explicit",
    "status.relativePaths": "false",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
}
FIRST = ("upstream", "origin")
"""Remotes in the order in which they count: the issues of a fork are in the repository that it was forked from."""

_NO_FILTER = {"clean": "", "smudge": "", "process": "", "required": "false"}
_WANTED = r"^(filter\..*|remote\..*\.url)$"
_FILTER = re.compile(r"(?P<driver>filter\..+)\.[a-z]+", re.DOTALL)
_REMOTE = re.compile(r"remote\.(.+)\.url", re.DOTALL)


class NoAnswer(WorldError):
    """Git could not be asked, or did not come to an end."""


class GitAnswer(NamedTuple):
    """What git printed, at most MOST_BYTES of it: ``is_cut`` says that there was more."""

    returncode: int
    stdout: bytes
    stderr: bytes
    is_cut: bool = False


def top_of(folder: Path) -> Path | None:
    """The topmost folder of the checkout that ``folder`` is in; None outside of any, and in a bare repository."""
    with suppress(OSError, RuntimeError):  # links in a circle
        whole = folder.resolve()
        for each in (whole, *whole.parents):
            if (each / ".git").exists():
                return each
            if is_bare(each):
                return None
    return None


def is_bare(folder: Path) -> bool:
    """Whether this very folder is a repository without files: a stranger's checkout may hold one, with settings."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


class CheckoutGit:
    """The git program in the checkout that begins at ``top``; each call is a process of ``patience`` seconds at most.

    Git works in ``top`` itself, whatever folder the settings of the checkout name (core.worktree).
    """

    def __init__(self, top: Path, patience: float = PATIENCE) -> None:
        self._top, self._patience = top, patience

    @property
    def remotes(self) -> Mapping[str, str]:
        """Name → address of the remotes, as the settings have them. Raises NoAnswer.

        The first one counts, for every command.
        """
        found: dict[str, str] = {}
        for key, address in self._known:
            named = _REMOTE.fullmatch(key)
            if named and address:
                found.setdefault(_shown(named[1]), _shown(address))
        return {name: found[name] for name in (*FIRST, *sorted(found.keys() - {*FIRST})) if name in found}

    def refusal(self) -> str:
        """Why git does not look into this checkout, such as that it is another account's; "" where it does."""
        answer = self.run("rev-parse", "--git-dir")
        return meaning(answer.stderr) if answer.returncode else ""

    def noted_main(self) -> str:
        """The default branch of the first remote of which the clone noted it; "" where it noted none."""
        for name in self.remotes:
            start = f"refs/remotes/{name}/"
            if noted := self.line("symbolic-ref", "--quiet", f"{start}HEAD"):
                return noted.removeprefix(start)
        return ""

    def run(self, *words: str) -> GitAnswer:
        """What git answers to these words. Raises NoAnswer."""
        return self._ask({**_SETTINGS, **self._no_filters}, words)

    def line(self, *words: str) -> str:
        """The first line that git prints, "" where it fails. Raises NoAnswer."""
        answer = self.run(*words)
        return "" if answer.returncode else answer.stdout.decode("utf-8", "surrogateescape").partition("\n")[0]

    @cached_property
    def _known(self) -> list[tuple[str, str]]:
        """What has to be known of the settings: key and value, in their order."""
        answer = self._ask(_SETTINGS, ("config", "-z", "--get-regexp", _WANTED))
        if answer.is_cut:  # the settings that are cut off may name filters
            raise NoAnswer("the settings of the checkout are too long")
        if answer.returncode not in (0, 1):  # 1: there is none
            raise NoAnswer(meaning(answer.stderr))
        printed = answer.stdout.decode("utf-8", "surrogateescape")
        items = (item.partition("\n") for item in printed.split("\0") if item)
        return [(key, value) for key, _, value in items]

    @cached_property
    def _no_filters(self) -> dict[str, str]:
        """Git has no switch against all filters, only against each by its name."""
        drivers = {found["driver"] for key, _ in self._known if (found := _FILTER.fullmatch(key))}
        if any("=" in driver for driver in drivers) or len(drivers) > _MOST_FILTERS:
            raise NoAnswer("its settings name filters that cannot be switched off")
        return {f"{driver}.{name}": value for driver in drivers for name, value in _NO_FILTER.items()}

    def _ask(self, settings: Mapping[str, str], words: tuple[str, ...]) -> GitAnswer:
        process = self._started(settings, words)
        with process:
            try:
                bound(process.pid)
                return _answer(process, self._patience)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def _started(self, settings: Mapping[str, str], words: tuple[str, ...]) -> subprocess.Popen[bytes]:
        import subprocess  # a command that asks no git does without

        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        own = {"GIT_WORK_TREE": str(self._top), "GIT_CEILING_DIRECTORIES": str(self._top.parent)}
        kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        try:
            return subprocess.Popen(
                ("git", "--no-pager", *options, *words),
                cwd=self._top,
                env=kept | _ENVIRONMENT | own,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except (OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError) and error.filename == "git":
                raise NoAnswer("git is not installed", "install it and put it on PATH") from error
            raise NoAnswer(f"git cannot be started in {self._top}") from error


def _answer(process: subprocess.Popen[bytes], patience: float) -> GitAnswer:
    """Read both pipes as they fill, since a process waits where nobody reads."""
    import selectors

    assert process.stdout
    assert process.stderr
    until = time.monotonic() + patience
    printed, remarks = bytearray(), bytearray()
    with selectors.DefaultSelector() as pipes:
        pipes.register(process.stdout, selectors.EVENT_READ, printed)
        pipes.register(process.stderr, selectors.EVENT_READ, remarks)
        while pipes.get_map():
            ready = pipes.select(max(0.0, until - time.monotonic()))
            if not ready:
                raise NoAnswer(f"no end after {patience:g} s")
            for pipe, _ in ready:
                piece = os.read(pipe.fd, _PIECE)
                if not piece:
                    pipes.unregister(pipe.fileobj)
                elif pipe.data is printed or len(remarks) < _MOST_REMARKS:
                    pipe.data.extend(piece)
            if len(printed) > MOST_BYTES:
                return GitAnswer(0, bytes(printed[:MOST_BYTES]), bytes(remarks), is_cut=True)
    return GitAnswer(_ended(process, until, patience), bytes(printed), bytes(remarks))


def _ended(process: subprocess.Popen[bytes], until: float, patience: float) -> int:
    import subprocess

    try:
        return process.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"no end after {patience:g} s") from None


def _shown(text: str) -> str:
    """With a sign in the place of bytes that are no text."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def meaning(said: bytes) -> str:
    """What git complains of, in one line."""
    if b"dubious ownership" in said:
        return "the checkout belongs to somebody else; git asks for safe.directory"
    first = said.decode("utf-8", "replace").partition("\n")[0].removeprefix("fatal: ")
    return "".join(char if char.isprintable() else " " for char in first).strip()[:160] or "git failed"
