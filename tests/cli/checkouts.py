"""Helpers for the tests of the commands that ask the memory: a checkout to ask from, and a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample/history.jsonl"

_CODE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x07\x1b]*\x1b\\")
"""The codes that we print ourselves: colours and links."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.org", "-c", "commit.gpgsign=false")
    process = subprocess.run(("git", *identity, *arguments), cwd=folder, check=True, capture_output=True, text=True)
    return process.stdout


def create_cookie_checkout(folder: Path) -> Path:
    """Create a checkout of the sample's project on a branch of its own, with an uncommitted change."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    file = folder / "linkbarn/auth/cookie.py"
    file.parent.mkdir(parents=True)
    file.write_text("PATH = '/'\n")
    (folder / "pyproject.toml").touch()
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "Begin")
    git(folder, "switch", "--quiet", "--create", "fix/login-loop")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "Read the cookie of the base path first")
    file.write_text("PATH = '/bm'\n")
    return folder


def show_on_terminal(folder: Path, *arguments: str | Path, columns: int = 90, **environment: str) -> str:
    """What a command of this process prints on a terminal of this width."""
    from bot.cli.main import main

    controller, terminal = pty.openpty()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as reader:
        for name in ("NO_COLOR", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm-256color", "COLUMNS": str(columns), **environment}.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        output = reader.submit(_read_terminal, controller)
        with os.fdopen(terminal, "w", encoding="utf-8") as screen, contextlib.redirect_stdout(screen):
            assert main([*map(str, arguments)]) == 0
        return output.result()


def run_on_terminal(folder: Path, *arguments: str | Path, columns: int = 90, stream: str = "stdout") -> str:
    """What a program prints on a stream that is a terminal of this width."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")
    }
    program = subprocess.Popen(
        [sys.executable, "-m", "bot", *map(str, arguments)],
        cwd=folder,
        env={**inherited, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)},
        **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: terminal},
    )
    os.close(terminal)
    output = _read_terminal(controller)
    assert program.wait(60) == 0
    return output


def _read_terminal(controller: int) -> str:
    output = b""
    with contextlib.suppress(OSError):  # Linux reports EIO once nobody holds the terminal
        while piece := os.read(controller, 4096):
            output += piece
    os.close(controller)
    return output.decode().replace("\r\n", "\n")


def strip_codes(text: str) -> str:
    """The text without colours and links."""
    return _CODE.sub("", text)


def control_characters(text: str) -> list[str]:
    """Control characters other than our colours and links, and characters that reverse text."""
    return _CONTROL.findall(strip_codes(text))
