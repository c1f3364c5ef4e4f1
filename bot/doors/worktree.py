"""Reads from a checkout what somebody is working on: by git alone, which changes nothing and runs nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from bot.memory.checkout_git import FIRST, PATIENCE, CheckoutGit, NoAnswer, meaning, top_of
from bot.recall.checkout import Checkout

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


def look(folder: Path, *, patience: float = PATIENCE) -> Checkout:
    """The signals of the checkout that ``folder`` is in. Never fails: what could not be had stands in ``unused``.

    A checkout may be a stranger's: whatever its own settings name (filters, hooks, monitors, signers) is not run.
    """
    top = top_of(folder)
    if top is None:
        return Checkout(unused=("git: not inside a checkout",))
    project = _line(top.name)
    language = next((name for marker, name in _MARKERS if (top / marker).exists()), "")
    git = CheckoutGit(top, patience)
    try:
        project = _project(git) or project
        default = git.noted_main()
    except NoAnswer as error:
        return Checkout(project=project, language=language, unused=(f"git: {error.cause}",))
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


def _project(git: CheckoutGit) -> str:
    """The name of the remote repository, "" where it has none."""
    address = next(iter(git.remotes.values()), "").strip().rstrip("/")
    return _line(re.split(r"[/:\\]", address)[-1].removesuffix(".git"))


def _printed(git: CheckoutGit, *words: str) -> bytes:
    """What git prints, up to the last field that is whole."""
    answer = git.run(*words)
    if answer.returncode:
        raise NoAnswer(meaning(answer.stderr))
    return answer.stdout[: answer.stdout.rfind(b"\0") + 1] if answer.is_cut else answer.stdout


def _status(git: CheckoutGit, unused: list[str]) -> _Status:
    """Branch and changed files; without new files where looking for them takes too long."""
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
