"""Reads a checkout by git alone, which changes and runs nothing: where it comes from, what is worked on."""

from __future__ import annotations

import os
import re
import resource
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from bot.domain.card import Worktree
from bot.errors import UserError, WorldError

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
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def meaning(said: bytes) -> str:
    """What git complains of, in one line."""
    if b"dubious ownership" in said:
        return "the checkout belongs to somebody else; git asks for safe.directory"
    first = said.decode("utf-8", "replace").partition("\n")[0].removeprefix("fatal: ")
    return "".join(char if char.isprintable() else " " for char in first).strip()[:160] or "git failed"


_MOST_FILES = 200
_MOST_MESSAGE = 2_000
_COMMITS = 5
_STATUS = ("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--ignore-submodules=dirty")
_LOG = ("log", f"-{_COMMITS}", "--no-merges", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
_FORMAT = ("--no-show-signature", "--encoding=UTF-8", "--format=%x00%H%x00%B")
_MAIN = ("main", "master", "trunk")
_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PLAIN_FIELDS = {b"1": 8, b"2": 9, b"u": 10}
"""How many fields stand before the path: changed, renamed, unmerged (git-status, porcelain format version 2)."""

_MARKERS = (
    *(("pyproject.toml", "python"), ("setup.py", "python"), ("Cargo.toml", "rust"), ("go.mod", "go")),
    *(("tsconfig.json", "typescript"), ("package.json", "javascript"), ("pom.xml", "java"), ("build.gradle", "java")),
    *(("build.gradle.kts", "kotlin"), ("Gemfile", "ruby"), ("composer.json", "php"), ("mix.exs", "elixir")),
    *(("Package.swift", "swift"), ("CMakeLists.txt", "cpp")),
)


class _Status(NamedTuple):
    """``head`` is the branch, "" where detached; ``has_commit`` is false in an empty repository."""

    head: str = ""
    has_commit: bool = False
    modified: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()


def read_worktree(folder: Path, *, patience: float = PATIENCE) -> Worktree:
    """The signals of the checkout that ``folder`` is in. Never fails: what could not be had stands in ``unused``.

    A checkout may be a stranger's: whatever its own settings name (filters, hooks, monitors, signers) is not run.
    """
    top = top_of(folder)
    if top is None:
        return Worktree(unused=("git: not inside a checkout",))
    project = _line(top.name)
    language = next((name for marker, name in _MARKERS if (top / marker).exists()), "")
    git = CheckoutGit(top, patience)
    try:
        project = _project(git) or project
        default = git.noted_main()
    except NoAnswer as error:
        return Worktree(project=project, language=language, unused=(f"git: {error.cause}",))
    unused: list[str] = []
    status = _status(git, unused)
    branch = "" if status.head in (*_MAIN, default) else status.head
    if not status.has_commit and not unused:
        unused.append("commits: there is none yet")
    records, is_own = _log(git, branch, default, unused) if status.has_commit else ([], False)
    return Worktree(
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


def _project(git: CheckoutGit) -> str:
    address = next(iter(git.remotes.values()), "").strip().rstrip("/")
    return _line(re.split(r"[/:\\]", address)[-1].removesuffix(".git"))


def _printed(git: CheckoutGit, *words: str) -> bytes:
    """What git prints, up to the last field that is whole."""
    answer = git.run(*words)
    if answer.returncode:
        raise NoAnswer(meaning(answer.stderr))
    return answer.stdout[: answer.stdout.rfind(b"\0") + 1] if answer.is_cut else answer.stdout


def _status(git: CheckoutGit, unused: list[str]) -> _Status:
    for untracked, missed in (("normal", "new files"), ("no", "changed files")):
        try:
            return _read_status(_printed(git, *_STATUS, f"--untracked-files={untracked}"))
        except NoAnswer as error:
            unused.append(f"{missed}: {error.cause}")
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


def _log(git: CheckoutGit, branch: str, default: str, unused: list[str]) -> tuple[list[tuple[str, list[str]]], bool]:
    """The newest commits, each with the files that it touched, and whether they are the branch's own.

    The branch's own where it has some: the others are of what somebody did before.
    """
    mains = dict.fromkeys((*_MAIN, *([default] if re.fullmatch(r"[\w./-]+", default) else [])))
    exact = [f"{name[:-1]}[{name[-1]}]" for name in mains]  # git reads a name without brackets as a folder's
    others = [f"--{where}{name}" for name in exact for where in ("branches=", *(f"remotes={one}/" for one in FIRST))]
    try:
        if branch:
            own = list(_read_log(_printed(git, *_LOG, *_FORMAT, "HEAD", "--not", *others, "--")))
            if own:
                return own, True
        return list(_read_log(_printed(git, *_LOG, *_FORMAT, "HEAD", "--"))), False
    except NoAnswer as error:
        unused.append(f"commits: {error.cause}")
        return [], False


def _read_log(printed: bytes) -> Iterator[tuple[str, list[str]]]:
    """A commit is an empty field, its id, its message and its files; the first of these after a line break."""
    items = printed.split(b"\0")
    starts = [at for at in range(len(items) - 2) if not items[at] and _ID.fullmatch(items[at + 1])]
    for start, end in pairwise([*starts, len(items)]):
        files = [item.removeprefix(b"\n") for item in items[start + 3 : end][:_MOST_FILES]]
        yield _text(items[start + 2].strip())[:_MOST_MESSAGE], [_text(name) for name in files if name]


def _few(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if path))[:_MOST_FILES]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text).strip()


_MOST = ((resource.RLIMIT_AS, 4 << 30), (resource.RLIMIT_FSIZE, 4 << 30), (resource.RLIMIT_CORE, 0))
"""Bytes of memory, of one file, and of the picture of its memory that a crash leaves, in which a token would be."""


def bound(process: int) -> None:
    """Hold a process that has just begun, and what it starts, to _MOST. Linux alone can do that from outside."""
    for kind, most in _MOST:
        with suppress(OSError, AttributeError):  # it ended already; another system
            allowed = resource.prlimit(process, kind)[1]
            if allowed == resource.RLIM_INFINITY or allowed > most:
                resource.prlimit(process, kind, (most, most))


_OWNER_NAME = re.compile(r"(?:^|[/:])([^/:\s]{1,100}/[^/:\s]{1,100}?)(?:\.git)?/?$")
_SSH = re.compile(r"(?:[^@/\s]+@)?([A-Za-z0-9_.-]+):(?!//)")
_USER = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/:@\s]*)(?::[^/\s]*)?@")
_NAME = re.compile(r"[A-Za-z0-9.-]{1,39}", re.ASCII)
"""A name that somebody has on a server: a token is longer, or has other characters in it."""

_SITES = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}


class RemoteRepository(NamedTuple):
    """Where a repository is: its address for git; OWNER/NAME and its address for people, "" where that is no site.

    ``name`` is what the checkout calls the remote, "" where it was named otherwise.
    """

    url: str
    repo: str = ""
    home: str = ""
    name: str = ""


def remote_of_repository(repo: str) -> RemoteRepository:
    """The repository of this name on GitHub, or on the server that GITHUB_SERVER_URL names."""
    server = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/") or "https://github.com"
    return RemoteRepository(f"{server}/{repo}", repo, f"{server}/{repo}")


def remote_of_checkout(top: Path | None) -> RemoteRepository | str:
    """The repository that this checkout was cloned from, or why nobody knows it, and what to do."""
    if top is None:
        return "this is no git checkout: go into one, or name a repository (--repo OWNER/NAME) or folder (--store DIR)"
    git = CheckoutGit(top)
    for name, address in git.remotes.items():
        return _at_address(address, top)._replace(name=name)
    return git.refusal() or f"{top} has no remote: name a repository (--repo OWNER/NAME) or a folder (--store DIR)"


def tracked_files(top: Path, paths: Iterable[str]) -> set[str]:
    """Those of these files that are part of the checkout, and not only lie in its folder."""
    git = CheckoutGit(top)
    asked = {path: git.run("ls-files", "-z", "--", path) for path in paths}
    return {path for path, told in asked.items() if told.stdout or told.returncode}  # what git will not say is not ours


def _at_address(address: str, top: Path) -> RemoteRepository:
    """What a remote of the checkout at ``top`` means, in any of git's forms, without a secret in it."""
    scp = None if "://" in address else _SSH.match(address)
    if not scp and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|/", address):
        address = str((top / address).resolve())  # a path, as git takes it: from the checkout
    address = without_secret(address)
    site = _site(scp[1] if scp else "", address)
    owner_name = _OWNER_NAME.search(address) if site else None
    if not owner_name:
        return RemoteRepository(address)
    return RemoteRepository(address, owner_name[1], f"{site}/{owner_name[1]}")


def _site(host: str, address: str) -> str:
    try:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https"):
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        host = host or (parts.hostname or "" if parts.scheme == "ssh" else "")
    except ValueError:
        raise UserError("the address of the remote is no address: look at `git remote --verbose`") from None
    host = _SITES.get(host, host)
    return f"https://{host}" if "." in host else ""


def without_secret(address: str) -> str:
    """The address without what may be a password or a token: git's own credentials are asked instead."""
    found = _USER.match(address)
    if not found:
        return address
    user = found["user"] if _NAME.fullmatch(found["user"]) else ""
    return f"{found['scheme']}{user}{'@' if user else ''}{address[found.end() :]}"
