"""What the tests of the commands that ask need: a checkout to ask from, and a terminal to look at."""

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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample/history.jsonl"

_CODE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x07\x1b]*\x1b\\")
"""What we ourselves tell a terminal: colours and links."""

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def git(folder: Path, *arguments: str) -> None:
    person = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.org")
    subprocess.run(("git", *person, *arguments), cwd=folder, check=True, capture_output=True)


def working_on_cookies(folder: Path) -> Path:
    """A checkout of the sample's project on a branch of its own, with a file that is being changed."""
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


def on_a_terminal(folder: Path, *arguments: str | Path, columns: int = 90, **environment: str) -> str:
    """What a person sees on stdout, which is a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    program = subprocess.Popen(
        [sys.executable, "-m", "bot", *map(str, arguments)],
        cwd=folder,
        env={**plain, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment},
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # Linux ends a terminal that nobody holds with EIO
        while piece := os.read(ours, 4096):
            seen += piece
    os.close(ours)
    assert program.wait(60) == 0
    return seen.decode().replace("\r\n", "\n")


def bare(seen: str) -> str:
    """The same without colours and links."""
    return _CODE.sub("", seen)


def obeyed(seen: str) -> list[str]:
    """What a terminal would obey, beside colours and links, and what turns text around."""
    return _OBEYED.findall(bare(seen))
