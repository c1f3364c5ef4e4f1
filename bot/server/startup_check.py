"""Checks the configuration before the server runs, and reports all problems at once with their remedies."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from bot.errors import PrecedentError, UserError, WorldError
from bot.github.app import EVENTS, PERMISSION_LEVELS, PERMISSIONS, AppInfo
from bot.github.errors import Unauthorised
from bot.server.options import LOCAL_HOSTS, Misconfigured, ServerOptions, variable
from bot.server.pages.health import MAX_CLOCK_SKEW_SECONDS
from bot.server.secret_files import stored_password
from bot.server.storage.branches import MIN_FREE_BYTES
from bot.settings.schema import Settings

RECOMMENDED_FREE_BYTES = 1_000_000_000
"""Bytes that should be free at the start. A running server goes on down to `MIN_FREE_BYTES`, so a restart may too."""

REMOTE_FILE_SYSTEMS = re.compile(r"(nfs\d?|cifs|smb\w*|afs|ceph|lustre|glusterfs|fuse\.(sshfs|glusterfs|s3fs|rclone))")
"""File systems on which SQLite and file locks are not reliable. https://sqlite.org/faq.html#q5"""


Level = Literal["ok", "note", "warning", "wrong", "away"]


@dataclass(frozen=True, slots=True)
class StartupProblem:
    """The result of one check. "note": something optional is missing. "wrong" needs the operator, "away" may pass; both
    prevent the start."""

    name: str
    level: Level
    line: str


@dataclass(frozen=True, slots=True)
class OutsideChecks:
    """The checks that need the outside world.

    ``prepare`` prepares the tables. ``about`` asks GitHub about the App. ``bind`` tries the port, ``ask_index`` the
    organisation's index.
    """

    prepare: Callable[[], object]
    about: Callable[[], AppInfo]
    bind: Callable[[], object] | None = None
    ask_index: Callable[[], object] | None = None


def examine(options: ServerOptions, outside: OutsideChecks) -> list[StartupProblem]:
    """Run all checks, whatever the earlier ones found."""
    results = [
        _check_git(),
        *_check_data(options),
        _run_check("database", outside.prepare, "ready"),
        *_check_app(options, outside),
    ]
    if options.workers or outside.bind is None:
        results.append(check_text_model(Path(Settings().similar.model)))
    if outside.bind is not None:
        results += [
            _check_port(options, outside.bind),
            *_check_status_page(options),
        ]
    if outside.ask_index is not None:
        results += [*_check_organisation(options.organisation, outside.ask_index)]
    return results


def raise_problems(problems: list[StartupProblem]) -> None:
    """Raise if the server cannot run: Misconfigured with all faults, or WorldError if they may pass."""
    faults = [f"{each.name}: {each.line}" for each in problems if each.level in ("wrong", "away")]
    if any(each.level == "wrong" for each in problems):
        raise Misconfigured(faults)
    if faults:
        raise WorldError("; ".join(faults))


def _run_check(name: str, check: Callable[[], object], message: str) -> StartupProblem:
    try:
        check()
    except UserError as error:
        return StartupProblem(name, "away" if _may_pass(error) else "wrong", str(error))
    except PrecedentError as error:
        return StartupProblem(name, "away", str(error))
    return StartupProblem(name, "ok", message)


def _may_pass(error: UserError) -> bool:
    """Whether the error may pass: a port is in use until the previous server has ended."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE


def _check_port(options: ServerOptions, bind: Callable[[], object]) -> StartupProblem:
    """Check the port, and that a proxy is in front: slow and greedy clients are its affair."""
    if options.host in LOCAL_HOSTS or options.trusted_proxies:
        return _run_check("port", bind, f"{options.host}:{options.port} is free")
    line = f"{options.host} may be reached without a proxy: listen on 127.0.0.1, or name the HTTPS proxies in front in"
    return StartupProblem("port", "wrong", f"{line} {variable('trusted_proxies')}")


def _check_git() -> StartupProblem:
    if shutil.which("git") is None:
        return StartupProblem("git", "wrong", "git was not found: install it")
    done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
    return StartupProblem("git", "ok" if done.returncode == 0 else "wrong", (done.stdout or done.stderr).strip()[:100])


def _check_data(options: ServerOptions) -> Iterator[StartupProblem]:
    """Check the folder: writable, on a local disk, with free space, and fit for SQLite if that is used."""
    folder, free = options.data, _free_space(options.data)
    if isinstance(free, str):
        yield StartupProblem("data", "wrong", free)
        return
    kind = filesystem(folder, Path("/proc/self/mountinfo"))
    if REMOTE_FILE_SYSTEMS.fullmatch(kind):
        yield StartupProblem("data", "wrong", f"{folder} is on {kind}: use a local disk")
    elif not options.database_url and not _supports_wal(folder):
        yield StartupProblem(
            "data",
            "wrong",
            f"{folder} is on {kind or 'a disk'}, where SQLite's WAL mode does not work: use a local disk",
        )
    else:
        yield StartupProblem("data", "ok", f"{folder}")
    level: Level = "ok" if free >= RECOMMENDED_FREE_BYTES else "warning" if free >= MIN_FREE_BYTES else "wrong"
    yield StartupProblem(
        "disk",
        level,
        f"{free / 1e9:,.1f} GB free" + ("" if free >= RECOMMENDED_FREE_BYTES else ": at least 1 GB should be free"),
    )


def _free_space(folder: Path) -> int | str:
    """Return the free bytes of a folder, made if missing, or why nothing can be written there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
        return shutil.disk_usage(folder).free
    except OSError as error:
        return f"{folder} is not writable ({error.strerror}): let this account write to it"


def check_text_model(folder: Path) -> StartupProblem:
    if (folder / "model.safetensors").exists():
        return StartupProblem("text model", "ok", f"the one in {folder}")
    return StartupProblem("text model", "note", f"none in {folder}: issues are compared by their words only")


def _check_organisation(address: str, ask: Callable[[], object]) -> Iterator[StartupProblem]:
    """Check the organisation's index. If it does not answer, the server starts: answers go on without it."""
    name = "organisation"
    if find_spec("lancedb") is None:
        yield StartupProblem(
            name,
            "wrong",
            "lancedb is missing: install the packages in requirements-org.lock or build the image with ORG=1",
        )
        return
    if "://" not in address and isinstance(fault := _free_space(Path(address)), str):
        yield StartupProblem(name, "wrong", fault)
        return
    try:
        ask()
    except WorldError as error:
        yield StartupProblem(name, "warning", f"answers continue without other repositories until it is back: {error}")
    else:
        yield StartupProblem(name, "ok", address)


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
        mount = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), parts[4]) if len(parts) > 4 else ""
        if mount and folder.is_relative_to(mount) and len(mount) >= best:
            best, kind = len(mount), after.split(" ")[0]
    return kind


def _supports_wal(folder: Path) -> bool:
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


def _check_app(options: ServerOptions, outside: OutsideChecks) -> Iterator[StartupProblem]:
    """Check the App. If GitHub is out of reach, the server still starts and stores deliveries until it is back.

    If the clock is off, GitHub rejects even the right key; the clock may be correct at the next start.
    """
    try:
        info = outside.about()
    except UserError as error:
        yield StartupProblem("app", "wrong", str(error))
        return
    except Unauthorised as error:
        clock = _check_clock(error.ahead)
        if clock.level == "ok":
            yield StartupProblem("app", "wrong", str(error))
        else:
            yield from (StartupProblem("app", "away", str(error)), clock)
        return
    except PrecedentError as error:
        yield StartupProblem("app", "warning", str(error))
        return
    if info.id != options.app_id:
        yield StartupProblem("app", "wrong", f"the key belongs to App {info.id}, not to {options.app_id}")
        return
    yield StartupProblem("app", "ok", f"{info.login}")
    yield from _missing_rights(info)
    yield _check_clock(info.ahead)


def _check_clock(ahead: float) -> StartupProblem:
    line = f"{abs(ahead):.0f} s from GitHub's"
    return (
        StartupProblem("clock", "ok", line)
        if abs(ahead) <= MAX_CLOCK_SKEW_SECONDS
        else StartupProblem("clock", "away", f"{line}: correct it")
    )


def _missing_rights(info: AppInfo) -> Iterator[StartupProblem]:
    for name, level in PERMISSIONS.items():
        granted = info.permissions.get(name, "none")
        if granted not in PERMISSION_LEVELS or PERMISSION_LEVELS.index(granted) < PERMISSION_LEVELS.index(level):
            yield StartupProblem(
                "permissions", "warning", f"the App has {name}: {granted}; set it to {level} on its page"
            )
    granted = info.permissions.get("discussions", "none")
    if granted != "write":
        ability = (
            "remember discussions but not answer them"
            if granted == "read"
            else "neither remember nor answer discussions"
        )
        yield StartupProblem("discussions", "note", f"the App has discussions: {granted}, so it can {ability}")
    if info.permissions.get("pull_requests", "none") == "none":
        line = "the App has pull_requests: none, so it cannot read pull requests of private repositories"
        yield StartupProblem("pull requests", "note", line)
    if missing := [event for event in EVENTS if event not in info.events]:
        yield StartupProblem(
            "events", "warning", f"the App is not subscribed to {', '.join(missing)}: subscribe on its page"
        )


def _check_status_page(options: ServerOptions) -> Iterator[StartupProblem]:
    """Check the stored password if no other is set. None is made yet."""
    try:
        if not options.status_password:
            stored_password(options.data)
    except UserError as error:
        yield StartupProblem("status page", "wrong", str(error))
