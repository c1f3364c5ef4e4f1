"""Reads the user's checkout with git: its remotes and the work in progress. Nothing in it is run or changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.domain.card import Worktree, WorktreeCommit
from bot.domain.hosts import GITHUB, parse_remote_url
from bot.errors import WorldError

if TYPE_CHECKING:
    from bot.git.process import GitAnswer


TIMEOUT = 5.0
"""Maximum seconds that one git process may take."""

MAX_OUTPUT_BYTES = 1 << 18
"""Maximum bytes to read of git's output."""

_MAX_FILTERS = 50
_NAMES_PER_CALL = 500
_INHERITED = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "SYSTEMROOT")
"""The home folder brings the user's own settings, such as safe.directory."""

_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # also where git is too old to know GIT_NO_LAZY_FETCH
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
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
PREFERRED_REMOTES = ("upstream", "origin")
"""Names of remotes, most important first: the issues of a fork are in the repository it was forked from."""

_NO_FILTER = {"clean": "", "smudge": "", "process": "", "required": "false"}
_WANTED_KEYS = r"^(filter\..*|remote\..*\.url)$"
_FILTER_KEY = r"(?s:(?P<driver>filter\..+)\.[a-z]+)"
_REMOTE_KEY = re.compile(r"remote\.(.+)\.url", re.DOTALL)


class NoAnswer(WorldError):
    """Git could not be run, or did not finish in time."""


def find_top(folder: Path) -> Path | None:
    """Return the top folder of the checkout around ``folder``; None outside a checkout and in a bare repository."""
    with suppress(OSError, RuntimeError):  # circular symlinks
        resolved = folder.resolve()
        for parent in (resolved, *resolved.parents):
            if (parent / ".git").exists():
                return parent
            if is_bare(parent):
                return None
    return None


def is_bare(folder: Path) -> bool:
    """Whether this very folder is a bare repository: a stranger's checkout may contain one with settings of its own."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


class CheckoutGit:
    """Runs git in the checkout at ``top``; each call may take ``timeout`` seconds.

    No program named in the checkout's settings is run, and git works in ``top`` even if they name another folder
    (core.worktree).
    """

    def __init__(self, top: Path, timeout: float = TIMEOUT) -> None:
        self._top, self._timeout = top, timeout

    @property
    def remotes(self) -> Mapping[str, str]:
        """Name → address of the remotes, as configured. Every command uses the first one. Raises NoAnswer."""
        addresses: dict[str, str] = {}
        for key, address in self._config_items:
            match = _REMOTE_KEY.fullmatch(key)
            if match and address:
                addresses.setdefault(_printable(match[1]), _printable(address))
        return {
            name: addresses[name]
            for name in (*PREFERRED_REMOTES, *sorted(addresses.keys() - {*PREFERRED_REMOTES}))
            if name in addresses
        }

    def refusal(self) -> str:
        """Why git refuses this checkout, for example because another account owns it; "" if it does not."""
        answer = self.run("rev-parse", "--git-dir")
        return _complaint(answer.stderr) if answer.returncode else ""

    def recorded_default_branch(self) -> str:
        """The default branch of the first remote for which the clone recorded one, else ""."""
        for name in self.remotes:
            start = f"refs/remotes/{name}/"
            if branch := self.line("symbolic-ref", "--quiet", f"{start}HEAD"):
                return branch.removeprefix(start)
        return ""

    def run(self, *args: str) -> GitAnswer:
        """Run `git args`. Raises NoAnswer."""
        return self._run_git({**_SETTINGS, **self._no_filters}, args)

    def line(self, *args: str) -> str:
        """Return the first line that git prints, "" if it fails. Raises NoAnswer."""
        answer = self.run(*args)
        return "" if answer.returncode else answer.stdout.decode("utf-8", "surrogateescape").partition("\n")[0]

    @cached_property
    def _config_items(self) -> list[tuple[str, str]]:
        answer = self._run_git(_SETTINGS, ("config", "-z", "--get-regexp", _WANTED_KEYS))
        if answer.is_cut:  # the rest may name filters
            raise NoAnswer("the settings of the checkout are too long")
        if answer.returncode not in (0, 1):  # 1: no such setting
            raise NoAnswer(_complaint(answer.stderr))
        text = answer.stdout.decode("utf-8", "surrogateescape")
        items = (item.partition("\n") for item in text.split("\0") if item)
        return [(key, value) for key, _, value in items]

    @cached_property
    def _no_filters(self) -> dict[str, str]:
        """Settings that switch off each filter by name, as git has no switch for all of them."""
        drivers = {match["driver"] for key, _ in self._config_items if (match := re.fullmatch(_FILTER_KEY, key))}
        if any("=" in driver for driver in drivers) or len(drivers) > _MAX_FILTERS:
            raise NoAnswer("its settings name filters that cannot be switched off")
        return {f"{driver}.{name}": value for driver in drivers for name, value in _NO_FILTER.items()}

    def _run_git(self, settings: Mapping[str, str], args: tuple[str, ...]) -> GitAnswer:
        from bot.git.process import QUIET_ENVIRONMENT, finish, inherit, start  # commands without git need not load it

        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        own = {"GIT_WORK_TREE": str(self._top), "GIT_CEILING_DIRECTORIES": str(self._top.parent)}
        environment = inherit(_INHERITED) | QUIET_ENVIRONMENT | _ENVIRONMENT | own
        try:
            return finish(
                start(("--no-pager", *options, *args), self._top, environment), self._timeout, MAX_OUTPUT_BYTES
            )
        except TimeoutError:
            raise NoAnswer(f"timed out after {self._timeout:g} s") from None
        except (OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError) and error.filename == "git":
                raise NoAnswer("git is not installed", "install it and put it on PATH") from error
            raise NoAnswer(f"git cannot be started in {self._top}") from error


def _printable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _complaint(stderr: bytes) -> str:
    if b"dubious ownership" in stderr:
        return "the checkout belongs to another user; git requires an entry in safe.directory"
    first = stderr.decode("utf-8", "replace").partition("\n")[0].removeprefix("fatal: ")
    return "".join(char if char.isprintable() else " " for char in first).strip()[:160] or "git failed"


_MAX_FILES = 200
_MAX_MESSAGE_CHARS = 2_000
_MAX_COMMITS = 5
_STATUS = ("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--ignore-submodules=dirty")
_LOG = ("log", f"-{_MAX_COMMITS}", "--no-merges", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
_LOG_FORMAT = ("--no-show-signature", "--encoding=UTF-8", "--format=%x00%H%x00%B")
_MAIN_BRANCHES = ("main", "master", "trunk")
_OBJECT_ID = rb"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_FIELDS_BEFORE_PATH = {b"1": 8, b"2": 9, b"u": 10}
"""Number of fields before the path: changed, renamed, unmerged (git-status, porcelain format version 2)."""

_LANGUAGE_MARKERS = (
    *(("pyproject.toml", "python"), ("setup.py", "python"), ("Cargo.toml", "rust"), ("go.mod", "go")),
    *(("tsconfig.json", "typescript"), ("package.json", "javascript"), ("pom.xml", "java"), ("build.gradle", "java")),
    *(("build.gradle.kts", "kotlin"), ("Gemfile", "ruby"), ("composer.json", "php"), ("mix.exs", "elixir")),
    *(("Package.swift", "swift"), ("CMakeLists.txt", "cpp")),
)


class _Status(NamedTuple):
    """``head`` is the branch, "" when detached; ``has_commit`` is false in an empty repository."""

    head: str = ""
    has_commit: bool = False
    modified: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()


def read_worktree(folder: Path, *, timeout: float = TIMEOUT) -> Worktree:
    """Read the signals of the checkout around ``folder``. Never fails: ``unused`` lists what could not be read.

    The checkout may be a stranger's: programs that its settings name (filters, hooks, monitors, signers) are not run.
    """
    top = find_top(folder)
    if top is None:
        return Worktree(unused=("git: not inside a checkout",))
    project = _one_line(top.name)
    language = next((name for marker, name in _LANGUAGE_MARKERS if (top / marker).exists()), "")
    git = CheckoutGit(top, timeout)
    try:
        project = _project_name(git) or project
        default = git.recorded_default_branch()
    except NoAnswer as error:
        return Worktree(project=project, language=language, unused=(f"git: {error.cause}",))
    unused: list[str] = []
    status = _status(git, unused)
    is_main = _is_main(status.head, default)
    if not status.has_commit and not unused:
        unused.append("commits: none yet")
    is_clean_trunk = is_main and status.has_commit and not (status.modified or status.staged)
    working_branch = "" if is_clean_trunk else status.head
    commits, is_own = _log(git, working_branch, default, unused) if status.has_commit else ((), False)
    return Worktree(
        branch="" if is_main else status.head,
        commits=commits,
        modified=status.modified,
        staged=status.staged,
        is_own=is_own,
        is_clean_trunk=is_clean_trunk,
        project=project,
        language=language,
        unused=tuple(unused),
    )


def _project_name(git: CheckoutGit) -> str:
    address = next(iter(git.remotes.values()), "").strip().rstrip("/")
    return _one_line(re.split(r"[/:\\]", address)[-1].removesuffix(".git"))


def _output(git: CheckoutGit, *args: str) -> bytes:
    answer = git.run(*args)
    if answer.returncode:
        raise NoAnswer(_complaint(answer.stderr))
    return answer.stdout[: answer.stdout.rfind(b"\0") + 1] if answer.is_cut else answer.stdout


def _status(git: CheckoutGit, unused: list[str]) -> _Status:
    for untracked, subject in (("normal", "new files"), ("no", "changed files")):
        try:
            return _read_status(_output(git, *_STATUS, f"--untracked-files={untracked}"))
        except NoAnswer as error:
            unused.append(f"{subject}: {error.cause}")
    return _Status()


def _read_status(output: bytes) -> _Status:
    head, has_commit = "", False
    modified: list[str] = []
    staged: list[str] = []
    items = iter(output.split(b"\0")[:-1])
    for item in items:
        kind = item[:1]
        if item.startswith(b"# branch.oid "):
            has_commit = bool(re.fullmatch(_OBJECT_ID, item[13:]))
        elif item.startswith(b"# branch.head "):
            head = "" if item[14:] == b"(detached)" else _text(item[14:])
        elif kind == b"?":
            modified += [] if item.endswith(b"/") else [_text(item[2:])]
        elif kind in _FIELDS_BEFORE_PATH:
            fields = item.split(b" ", _FIELDS_BEFORE_PATH[kind])
            before = next(items, b"") if kind == b"2" else b""
            if len(fields) > _FIELDS_BEFORE_PATH[kind]:
                paths = [_text(path) for path in (fields[-1], before) if path]
                staged += paths if fields[1][:1] != b"." else []
                modified += paths[:1] if fields[1][1:] != b"." else []
    return _Status(head, has_commit, _first_unique(modified), _first_unique(staged))


def _is_main(head: str, default: str) -> bool:
    return bool(head) and head in (*_MAIN_BRANCHES, default)


def _exclusions(git: CheckoutGit, head: str, default: str) -> tuple[str, ...]:
    """Options that exclude branches whose commits are not the current work; none if these cannot be determined.

    On a branch these are the main branches; on a main branch, everything that was pushed.
    """
    if not head:
        return ()
    if _is_main(head, default):
        has_remote = git.line("for-each-ref", "--count=1", "--format=%(refname)", "refs/remotes/")
        return ("--remotes",) if has_remote else ()
    mains = dict.fromkeys((*_MAIN_BRANCHES, *([default] if re.fullmatch(r"[\w./-]+", default) else [])))
    exact = [f"{name[:-1]}[{name[-1]}]" for name in mains]  # git treats a name without brackets as a folder
    places = ("branches=", *(f"remotes={remote}/" for remote in PREFERRED_REMOTES))
    return tuple(f"--{where}{name}" for name in exact for where in places)


def _log(git: CheckoutGit, branch: str, default: str, unused: list[str]) -> tuple[tuple[WorktreeCommit, ...], bool]:
    """The newest commits, and whether they are the current work on this branch; "" for any commits.

    Commits of the current work are preferred; the others show earlier work.
    """
    try:
        others = _exclusions(git, branch, default)
        if others and (own := _read_log(_output(git, *_LOG, *_LOG_FORMAT, "HEAD", "--not", *others, "--"))):
            return own, True
        return _read_log(_output(git, *_LOG, *_LOG_FORMAT, "HEAD", "--")), False
    except NoAnswer as error:
        unused.append(f"commits: {error.cause}")
        return (), False


def _read_log(output: bytes) -> tuple[WorktreeCommit, ...]:
    """Each commit is an empty field, its id, its message, and its files, the first after a line break."""
    items = output.split(b"\0")
    starts = [at for at in range(len(items) - 2) if not items[at] and re.fullmatch(_OBJECT_ID, items[at + 1])]
    return tuple(
        WorktreeCommit(
            _text(items[start + 2].strip())[:_MAX_MESSAGE_CHARS],
            _first_unique(_text(item.removeprefix(b"\n")) for item in items[start + 3 : end]),
        )
        for start, end in pairwise([*starts, len(items)])
    )


def _first_unique(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if path))[:_MAX_FILES]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text).strip()


_SCP_ADDRESS = re.compile(r"(?:[^@/\s]+@)?[A-Za-z0-9_.-]+:(?!//)")
_URL_USER = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/:@\s]*)(?::[^/\s]*)?@")
_USER_NAME = re.compile(r"[A-Za-z0-9.-]{1,39}", re.ASCII)
"""A user name on a server. A token is longer, or contains other characters."""


class RemoteRepository(NamedTuple):
    """The address of a repository for git, its OWNER/NAME and its web address, "" if it has none.

    ``name`` is the name of the remote in the checkout, "" if the repository was given in another way.
    """

    url: str
    repo: str = ""
    home: str = ""
    name: str = ""


def remote_of_repository(repo: str) -> RemoteRepository:
    """Return the repository of this name on GitHub, or on the server in GITHUB_SERVER_URL."""
    server = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/") or GITHUB
    return RemoteRepository(f"{server}/{repo}", repo, f"{server}/{repo}")


def remote_of_checkout(top: Path | None) -> RemoteRepository | str:
    """Return the repository this checkout was cloned from, or a sentence with why it is unknown and what to do."""
    if top is None:
        return (
            "this is not a git checkout: run this in one, or name a repository (--repo OWNER/NAME)"
            " or a folder (--store DIR)"
        )
    git = CheckoutGit(top)
    for name, address in git.remotes.items():
        return _parse_address(address, top)._replace(name=name)
    return git.refusal() or f"{top} has no remote: name a repository (--repo OWNER/NAME) or a folder (--store DIR)"


def tracked_files(top: Path | None, paths: Iterable[str]) -> set[str]:
    """Return the files that git tracks in the checkout around each, which may be a submodule or another one than that
    at ``top``. If git fails for a checkout, all these files in it count as tracked."""
    owners: dict[str, Path | None] = {}
    by_owner: dict[Path, dict[str, str]] = {}
    for path in paths:
        folder = os.path.realpath(os.path.dirname(path))  # noqa: PTH120 - the file itself may be a link
        if folder not in owners:
            owners[folder] = find_top(Path(folder)) or top  # what looks like a bare repository may hide in it
        owner = owners[folder]
        if owner and Path(folder).is_relative_to(owner):
            by_owner.setdefault(owner, {})[os.path.relpath(f"{folder}/{os.path.basename(path)}", owner)] = path  # noqa: PTH119
    return {path for owner, names in by_owner.items() for path in _tracked_in(owner, names)}


def _tracked_in(top: Path, names: Mapping[str, str]) -> Iterator[str]:
    """The paths whose names in the checkout at ``top`` git tracks."""
    git, all_names = CheckoutGit(top), [*names]
    for start in range(0, len(all_names), _NAMES_PER_CALL):
        part = all_names[start : start + _NAMES_PER_CALL]
        with suppress(NoAnswer):
            answer = git.run("ls-files", "-z", "--", *part)
            if not (answer.returncode or answer.is_cut):
                listed = set(answer.stdout.decode("utf-8", "surrogateescape").split("\0"))
                part = [name for name in part if name in listed]
        yield from (names[name] for name in part)


def _parse_address(address: str, top: Path) -> RemoteRepository:
    """Read the address of a remote of the checkout at ``top``, in any of git's forms; secrets are removed."""
    scp = None if "://" in address else _SCP_ADDRESS.match(address)
    if not scp and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|/", address):
        address = str((top / address).resolve())  # git reads paths from the checkout
    address = without_secret(address)
    if parsed := parse_remote_url(address):
        site, repo = parsed
        return RemoteRepository(address, repo, f"{site}/{repo}")
    return RemoteRepository(address)


def without_secret(address: str) -> str:
    """Remove anything that may be a password or a token from an address; git's own credentials are used instead."""
    found = _URL_USER.match(address)
    if not found:
        return address
    user = found["user"] if _USER_NAME.fullmatch(found["user"]) else ""
    return f"{found['scheme']}{user}{'@' if user else ''}{address[found.end() :]}"
