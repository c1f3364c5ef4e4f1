"""Checks the configuration before the server runs, and reports all problems at once with their remedies."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from bot.errors import PrecedentError, UserError, WorldError
from bot.github.app import EVENTS, PERMISSIONS, RANKS, AppInfo
from bot.github.errors import Unauthorised
from bot.server.health import SKEW, SPARE
from bot.server.options import Misconfigured, ServerOptions, stored_password
from bot.server.spans import is_tracing_wanted, tracing_problem

SPACE = 1_000_000_000
"""Bytes that should be free at the start. A running server goes on down to `SPARE`, so a restart may too."""

REMOTE = re.compile(r"(nfs\d?|cifs|smb\w*|afs|ceph|lustre|glusterfs|fuse\.(sshfs|glusterfs|s3fs|rclone))")
"""File systems on which SQLite and file locks are not reliable. https://sqlite.org/faq.html#q5"""


Level = Literal["ok", "warning", "wrong", "away"]


@dataclass(frozen=True, slots=True)
class StartupProblem:
    """The result of one check. "wrong" needs the operator, "away" may pass; both prevent the start."""

    name: str
    level: Level
    line: str


@dataclass(frozen=True, slots=True)
class Outside:
    """The checks that need the outside world.

    ``prepare`` prepares the tables. ``about`` asks GitHub about the App. ``bind`` tries the port, ``ask_index`` the
    organisation's index.
    """

    prepare: Callable[[], object]
    about: Callable[[], AppInfo]
    bind: Callable[[], object] | None = None
    ask_index: Callable[[], object] | None = None


def examine(options: ServerOptions, outside: Outside) -> list[StartupProblem]:
    """Run all checks, whatever the earlier ones found."""
    found = [_git(), *_data(options), _asked("database", outside.prepare, "ready"), *_app(options, outside)]
    if outside.bind is not None:
        found += [_asked("port", outside.bind, f"{options.host}:{options.port} is free"), *_page(options)]
    if outside.ask_index is not None:
        found += [*_organisation(options.organisation, outside.ask_index)]
    return [*found, *_traces(os.environ)]


def refuse(findings: list[StartupProblem]) -> None:
    """Raise if the server cannot run: Misconfigured with all faults, or WorldError if they may pass."""
    faults = [f"{each.name}: {each.line}" for each in findings if each.level in ("wrong", "away")]
    if any(each.level == "wrong" for each in findings):
        raise Misconfigured(faults)
    if faults:
        raise WorldError("; ".join(faults))


def _asked(name: str, ask: Callable[[], object], well: str) -> StartupProblem:
    try:
        ask()
    except UserError as error:
        return StartupProblem(name, "away" if _passes(error) else "wrong", str(error))
    except PrecedentError as error:
        return StartupProblem(name, "away", str(error))
    return StartupProblem(name, "ok", well)


def _passes(error: UserError) -> bool:
    """Whether the error may pass: a port is in use until the previous server has ended."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE


def _git() -> StartupProblem:
    if shutil.which("git") is None:
        return StartupProblem("git", "wrong", "there is no git: install it")
    done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
    return StartupProblem("git", "ok" if done.returncode == 0 else "wrong", (done.stdout or done.stderr).strip()[:100])


def _data(options: ServerOptions) -> Iterator[StartupProblem]:
    """Check the folder: writable, on a local disk, with free space, and fit for SQLite if that is used."""
    folder, free = options.data, _room(options.data)
    if isinstance(free, str):
        yield StartupProblem("data", "wrong", free)
        return
    kind = filesystem(folder, Path("/proc/self/mountinfo"))
    if REMOTE.fullmatch(kind):
        yield StartupProblem("data", "wrong", f"{folder} is on {kind}: take a local disk")
    elif not options.database_url and not _can_log_ahead(folder):
        yield StartupProblem(
            "data", "wrong", f"{folder} is on {kind or 'a disk'} where SQLite cannot: take a local disk"
        )
    else:
        yield StartupProblem("data", "ok", f"{folder}")
    level: Level = "ok" if free >= SPACE else "warning" if free >= SPARE else "wrong"
    yield StartupProblem("disk", level, f"{free / 1e9:,.1f} GB free" + ("" if free >= SPACE else ": make it 1 GB"))


def _room(folder: Path) -> int | str:
    """The free bytes of a folder, which is made if it is missing; or why nothing can be written there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
        return shutil.disk_usage(folder).free
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror}): give it to this account"


def _organisation(place: str, ask: Callable[[], object]) -> Iterator[StartupProblem]:
    """Check the organisation's index. If it does not answer, the server starts: answers go on without it."""
    name = "organisation"
    if find_spec("lancedb") is None:
        yield StartupProblem(
            name, "wrong", "lancedb is missing: install what requirements-org.lock names, or build the image with ORG=1"
        )
        return
    if "://" not in place and isinstance(fault := _room(Path(place)), str):
        yield StartupProblem(name, "wrong", fault)
        return
    try:
        ask()
    except WorldError as error:
        yield StartupProblem(name, "warning", f"answers go on without other repositories until it is back: {error}")
    else:
        yield StartupProblem(name, "ok", place)


def filesystem(folder: Path, mounts: Path) -> str:
    """Return the file system of a folder, "" if unknown.

    ``mounts`` is as described in https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html.
    """
    best, kind = -1, ""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        parts = before.split(" ")
        place = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), parts[4]) if len(parts) > 4 else ""
        if place and folder.is_relative_to(place) and len(place) >= best:
            best, kind = len(place), after.split(" ")[0]
    return kind


def _can_log_ahead(folder: Path) -> bool:
    probe = folder / f".probe-{os.getpid()}.sqlite"
    try:
        connection = sqlite3.connect(probe)
        try:
            (mode,) = connection.execute("pragma journal_mode=wal").fetchone()
            connection.execute("create table t (x)")
        finally:
            connection.close()
    except sqlite3.Error:
        return False
    finally:
        for suffix in ("", "-wal", "-shm"):
            probe.with_name(probe.name + suffix).unlink(missing_ok=True)
    return bool(mode == "wal")


def _app(options: ServerOptions, outside: Outside) -> Iterator[StartupProblem]:
    """Check the App. If GitHub is out of reach, the server still starts and stores deliveries until it is back.

    If the clock is off, GitHub rejects even the right key; the clock may be correct at the next start.
    """
    try:
        info = outside.about()
    except UserError as error:
        yield StartupProblem("app", "wrong", str(error))
        return
    except Unauthorised as error:
        clock = _clock(error.ahead)
        if clock.level == "ok":
            yield StartupProblem("app", "wrong", str(error))
        else:
            yield from (StartupProblem("app", "away", str(error)), clock)
        return
    except PrecedentError as error:
        yield StartupProblem("app", "warning", str(error))
        return
    if info.id != options.app_id:
        yield StartupProblem("app", "wrong", f"the key is that of App {info.id}, not of {options.app_id}")
        return
    yield StartupProblem("app", "ok", f"{info.login}")
    yield from _lacking(info)
    yield _clock(info.ahead)


def _clock(ahead: float) -> StartupProblem:
    line = f"{abs(ahead):.0f} s from GitHub's"
    return (
        StartupProblem("clock", "ok", line)
        if abs(ahead) <= SKEW
        else StartupProblem("clock", "away", f"{line}: set it right")
    )


def _lacking(info: AppInfo) -> Iterator[StartupProblem]:
    for name, level in PERMISSIONS.items():
        given = info.permissions.get(name, "none")
        if given not in RANKS or RANKS.index(given) < RANKS.index(level):
            yield StartupProblem("permissions", "warning", f"the App has {name}: {given}: give it {level} on its page")
    given = info.permissions.get("discussions", "none")
    if given != "write":
        can = (
            "remember discussions, and not answer them"
            if given == "read"
            else "neither remember nor answer discussions"
        )
        yield StartupProblem("discussions", "ok", f"the App has discussions: {given}, so that it can {can}")
    if info.permissions.get("pull_requests", "none") == "none":
        line = "the App has pull_requests: none, so that it can read no pull request of a private repository"
        yield StartupProblem("pull requests", "ok", line)
    if missing := [event for event in EVENTS if event not in info.events]:
        yield StartupProblem(
            "events", "warning", f"the App does not hear of {', '.join(missing)}: subscribe on its page"
        )


def _traces(environ: Mapping[str, str]) -> Iterator[StartupProblem]:
    """Check the traces, if they are asked for. The server starts without them, too."""
    if line := tracing_problem(environ):
        yield StartupProblem("traces", "warning", line)
    elif is_tracing_wanted(environ):
        yield StartupProblem("traces", "ok", "ready")


def _page(options: ServerOptions) -> Iterator[StartupProblem]:
    """Check the stored password, if none is given. None is made yet."""
    try:
        if not options.status_password:
            stored_password(options.data)
    except UserError as error:
        yield StartupProblem("status page", "wrong", str(error))
