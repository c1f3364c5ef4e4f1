"""Reads from a checkout what somebody is working on: by git alone, which changes nothing and runs nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from threading import Timer
from typing import IO, NamedTuple

from bot.memory.bounds import bound
from bot.recall.checkout import Checkout

PATIENCE = 5.0
"""Seconds that one process may take."""

_MOST_BYTES = 1 << 18
_MOST_FILES = 200
_MOST_FILTERS = 50
_MOST_MESSAGE = 2_000
_COMMITS = 5
_INHERITED = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "SYSTEMROOT")
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""Nothing is written, asked or fetched: not even what a clone without all objects misses."""

_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.pager", ""),
    ("core.quotePath", "false"),
    ("diff.relative", "false"),
    ("log.showSignature", "false"),
    ("status.relativePaths", "false"),
)
_NO_FILTER = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
_STATUS = ("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--ignore-submodules=dirty")
_LOG = ("log", f"-{_COMMITS}", "--no-merges", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
_FORMAT = ("--no-show-signature", "--encoding=UTF-8", "--format=%x00%H%x00%B")
_MAIN = ("main", "master", "trunk")
_FILTER = re.compile(r"(?P<driver>filter\..+)\.[a-z]+", re.DOTALL)
_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PLAIN_FIELDS = {b"1": 8, b"2": 9, b"u": 10}
"""How many fields stand before the path: changed, renamed, unmerged (git-status, porcelain format version 2)."""

_MARKERS = (
    *(("pyproject.toml", "python"), ("setup.py", "python"), ("Cargo.toml", "rust"), ("go.mod", "go")),
    *(("tsconfig.json", "typescript"), ("package.json", "javascript"), ("pom.xml", "java"), ("build.gradle", "java")),
    *(("build.gradle.kts", "kotlin"), ("Gemfile", "ruby"), ("composer.json", "php"), ("mix.exs", "elixir")),
    *(("Package.swift", "swift"), ("CMakeLists.txt", "cpp")),
)


class _Unread(Exception):
    """Git did not say what it was asked; the message says why."""


class _Status(NamedTuple):
    """``head`` is the branch, "" where detached; ``has_commit`` is false in an empty repository."""

    head: str = ""
    has_commit: bool = False
    modified: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()


def look(folder: Path, *, patience: float = PATIENCE) -> Checkout:
    """The signals of the checkout that ``folder`` is in. Never fails: what could not be had stands in ``unused``.

    A checkout may be a stranger's: whatever its own settings name (filters, hooks, monitors, signers) is not run.
    """
    top = _top(folder)
    if top is None:
        return Checkout(unused=("git: not inside a checkout",))
    project = _line(top.name)
    language = next((name for marker, name in _MARKERS if (top / marker).exists()), "")
    git = _Git(folder, patience)
    try:
        project = _line(git.settle()) or project
    except _Unread as error:
        return Checkout(project=project, language=language, unused=(f"git: {error}",))
    default = _default(top / ".git")
    unused: list[str] = []
    status = _status(git, unused)
    branch = "" if status.head in (*_MAIN, default) else status.head
    if not status.has_commit and not unused:
        unused.append("commits: there is none yet")
    records, is_own = _log(git, branch, default, unused) if status.has_commit else ([], False)
    return Checkout(
        branch=branch,
        messages=tuple(message for message, _ in records),
        modified=status.modified,
        staged=status.staged,
        recent=_few(path for _, paths in records for path in paths),
        is_own=is_own,
        project=project,
        language=language,
        unused=tuple(unused),
    )


def _top(folder: Path) -> Path | None:
    """Where the checkout begins; None where there is none."""
    with suppress(OSError):
        for each in (folder.resolve(), *folder.resolve().parents):
            if (each / ".git").exists():
                return each
            if (each / "HEAD").is_file() and (each / "objects").is_dir() and (each / "refs").is_dir():
                return None  # a bare repository
    return None


class _Git:
    """The git program in a folder; each call is a process that ends after ``patience`` seconds."""

    def __init__(self, folder: Path, patience: float) -> None:
        self._folder, self._patience = folder, patience
        self._settings: tuple[tuple[str, str], ...] = _SETTINGS

    def settle(self) -> str:
        """Empty the filters that the repository sets up; the name of the remote repository, "" where it has none.

        Git has no switch against filters, only against each by its name.
        """
        wanted = r"^(filter\..*|remote\.origin\.url)$"
        printed = self.run("config", "-z", "--get-regexp", wanted, none_is_fine=True)
        filters: dict[str, None] = {}
        remote = ""
        for item in printed.decode("utf-8", "surrogateescape").split("\0"):
            key, _, value = item.partition("\n")
            found = _FILTER.fullmatch(key)
            if found:
                filters[found["driver"]] = None
            elif key == "remote.origin.url":
                remote = re.split(r"[/:\\]", value.strip().rstrip("/"))[-1].removesuffix(".git")
        if any("=" in driver for driver in filters) or len(filters) > _MOST_FILTERS:
            raise _Unread("its settings name filters that cannot be switched off")
        self._settings += tuple((f"{driver}.{name}", value) for driver in filters for name, value in _NO_FILTER)
        return remote

    def run(self, *args: str, none_is_fine: bool = False) -> bytes:
        """What git prints, at most _MOST_BYTES of it; ``none_is_fine``: that it found nothing. Raises _Unread."""
        with tempfile.TemporaryFile() as remarks:
            process = self._started(args, remarks)
            printed, late = self._printed(process)
            remarks.seek(0)
            said = remarks.read(4096)
        if late:
            raise _Unread(f"no end after {self._patience:g} s")
        if len(printed) > _MOST_BYTES:
            return printed[: printed.rfind(b"\0", 0, _MOST_BYTES) + 1]
        if process.returncode and not (none_is_fine and process.returncode == 1):
            raise _Unread(_meaning(said))
        return printed

    def _started(self, args: Sequence[str], remarks: IO[bytes]) -> subprocess.Popen[bytes]:
        options = [part for key, value in self._settings for part in ("-c", f"{key}={value}")]
        try:
            process = subprocess.Popen(
                ("git", "--no-pager", "--no-replace-objects", *options, *args),
                cwd=self._folder,
                env=_ENVIRONMENT | {name: os.environ[name] for name in _INHERITED if name in os.environ},
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=remarks,
            )
        except (OSError, ValueError) as error:
            is_missing = isinstance(error, FileNotFoundError) and error.filename == "git"
            raise _Unread("git is not installed" if is_missing else "git cannot be started here") from error
        bound(process.pid)
        return process

    def _printed(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bool]:
        """What it prints, cut off behind _MOST_BYTES, and whether its time was over."""
        late: list[bool] = []

        def end() -> None:
            late.append(True)
            process.kill()

        watch = Timer(self._patience, end)
        watch.start()
        with process:
            assert process.stdout is not None
            printed = process.stdout.read(_MOST_BYTES + 1)
            if len(printed) > _MOST_BYTES:
                process.kill()
            process.wait()
            watch.cancel()
        return printed, bool(late)


def _default(git: Path) -> str:
    """What the remote's main branch is called, as far as the clone noted it in its folder; "" else."""
    with suppress(OSError, ValueError):
        if git.is_file():
            git = git.parent / _start_of(git).removeprefix("gitdir:").strip()
            common = git / "commondir"
            git = git / _start_of(common).strip() if common.is_file() else git
        noted = _start_of(git / "refs" / "remotes" / "origin" / "HEAD").strip()
        return noted.removeprefix("ref: refs/remotes/origin/") if noted.startswith("ref: ") else ""
    return ""


def _start_of(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(4096)


def _status(git: _Git, unused: list[str]) -> _Status:
    """Branch and changed files; without new files where looking for them takes too long."""
    for untracked, missed in (("normal", "new files"), ("no", "changed files")):
        try:
            return _read_status(git.run(*_STATUS, f"--untracked-files={untracked}"))
        except _Unread as error:
            unused.append(f"{missed}: {error}")
    return _Status()


def _read_status(printed: bytes) -> _Status:
    head, has_commit = "", False
    modified: list[str] = []
    staged: list[str] = []
    items = iter(printed.split(b"\0")[:-1])
    for item in items:
        kind = item[:1]
        if item.startswith(b"# branch.oid "):
            has_commit = bool(_ID.fullmatch(item[13:]))
        elif item.startswith(b"# branch.head "):
            head = "" if item[14:] == b"(detached)" else _text(item[14:])
        elif kind == b"?":
            modified += [] if item.endswith(b"/") else [_text(item[2:])]
        elif kind in _PLAIN_FIELDS:
            fields = item.split(b" ", _PLAIN_FIELDS[kind])
            before = next(items, b"") if kind == b"2" else b""
            if len(fields) > _PLAIN_FIELDS[kind]:
                paths = [_text(path) for path in (fields[-1], before) if path]
                staged += paths if fields[1][:1] != b"." else []
                modified += paths[:1] if fields[1][1:] != b"." else []
    return _Status(head, has_commit, _few(modified), _few(staged))


def _log(git: _Git, branch: str, default: str, unused: list[str]) -> tuple[list[tuple[str, list[str]]], bool]:
    """The newest commits, each with the files that it touched, and whether they are the branch's own.

    The branch's own where it has some: the others are of what somebody did before.
    """
    mains = dict.fromkeys((*_MAIN, *([default] if re.fullmatch(r"[\w./-]+", default) else [])))
    exact = [f"{name[:-1]}[{name[-1]}]" for name in mains]  # git reads a name without brackets as a folder's
    others = [f"--{where}{name}" for name in exact for where in ("branches=", "remotes=origin/")]
    try:
        if branch:
            own = list(_read_log(git.run(*_LOG, *_FORMAT, "HEAD", "--not", *others, "--")))
            if own:
                return own, True
        return list(_read_log(git.run(*_LOG, *_FORMAT, "HEAD", "--"))), False
    except _Unread as error:
        unused.append(f"commits: {error}")
        return [], False


def _read_log(printed: bytes) -> Iterator[tuple[str, list[str]]]:
    """A commit is an empty field, its id, its message and its files; the first of these after a line break."""
    items = printed.split(b"\0")
    starts = [at for at in range(len(items) - 2) if not items[at] and _ID.fullmatch(items[at + 1])]
    for start, end in pairwise([*starts, len(items)]):
        files = [item.removeprefix(b"\n") for item in items[start + 3 : end][:_MOST_FILES]]
        yield _text(items[start + 2].strip())[:_MOST_MESSAGE], [_text(name) for name in files if name]


def _meaning(said: bytes) -> str:
    if b"dubious ownership" in said:
        return "the checkout belongs to somebody else; git asks for safe.directory"
    words = _line(said.decode("utf-8", "replace").partition("\n")[0].removeprefix("fatal: "))
    return words[:160] or "git failed"


def _few(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if path))[:_MOST_FILES]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text).strip()
