"""Reads the runner's environment, prepares the process, and writes the lines and files that the runner keeps."""

from __future__ import annotations

import logging
import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.comment.clean_text import plain_log_line
from bot.domain.hosts import GITHUB
from bot.errors import UserError, WorldError
from bot.github.budget import WRITE_GAP

OUTPUT_FOLDER = ".precedent"
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class RunnerEnvironment:
    """The runner's variables. https://docs.github.com/actions/reference/workflows-and-actions/variables"""

    event_name: str
    event_path: str
    repository: str
    api_url: str
    server_url: str
    output: str
    summary: str
    temp: str
    workspace: str
    write_gap: float = WRITE_GAP


def read_environment(environ: Mapping[str, str]) -> RunnerEnvironment:
    """The runner's variables. Raises UserError with the name of a missing one."""
    needed = {name: environ.get(name, "") for name in ("GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY")}
    for name, value in needed.items():
        if not value:
            raise UserError(f"{name} is not set: this command is for a GitHub Actions runner")
    return RunnerEnvironment(
        event_name=needed["GITHUB_EVENT_NAME"],
        event_path=needed["GITHUB_EVENT_PATH"],
        repository=needed["GITHUB_REPOSITORY"],
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        server_url=(environ.get("GITHUB_SERVER_URL") or GITHUB).rstrip("/"),
        output=environ.get("GITHUB_OUTPUT", ""),
        summary=environ.get("GITHUB_STEP_SUMMARY", ""),
        temp=environ.get("RUNNER_TEMP", ""),
        workspace=environ.get("GITHUB_WORKSPACE", ""),
    )


class _LibraryLogHandler(logging.Handler):
    """Writes remarks of libraries and git as log lines."""

    def emit(self, record: logging.LogRecord) -> None:
        print(plain_log_line(record.getMessage()), flush=True)


def prepare_process() -> None:
    """Prepare the process once: log lines are never commands to the runner, and a crash leaves no core file."""
    logging.basicConfig(level=logging.WARNING, handlers=[_LibraryLogHandler()])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def write_file(environment: RunnerEnvironment, name: str, text: str) -> str:
    """Write a file for the next steps. Returns the path at which they find it.

    The file is in the workspace, with a path relative to it, as a container has other names for the runner's folders.
    Without a workspace it is next to the runner's temporary files. Symlinks are not followed.
    """
    root = Path(environment.workspace or environment.temp or Path(environment.output).parent)
    path = root / OUTPUT_FOLDER / name
    try:
        path.parent.mkdir(exist_ok=True)
        if path.parent.is_symlink():
            raise WorldError(f"{OUTPUT_FOLDER} in {root} is a symlink, which is not followed: remove it")
        with open(os.open(path, _CREATE_FLAGS, 0o644), "w", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise WorldError(f"{name} cannot be written to {root}: {error.strerror}") from error
    return str(path.relative_to(root) if environment.workspace else path)


def append(path: str, text: str) -> None:
    try:
        with Path(path).open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise WorldError(f"the runner's file {path} cannot be written: {error.strerror}") from error


def print_line(line: str) -> None:
    """Print a line of the log at once."""
    print(line, flush=True)
