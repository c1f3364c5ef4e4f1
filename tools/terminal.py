"""Shows a terminal as an HTML page: the output of a command in a clone of the sample's repository."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from bot.domain.changes import Changes
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.sources.archive_file import read_archive
from tests.memory.remotes import bare_repository, commit, git

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, LINES = 94, 50
BRANCH = "fix/42-session-timeout"
CHANGED = ("linkbarn/store/session.py", "linkbarn/auth/cookie.py")
FOREIGN = "#23"
"""The last thread is left out: the fonts of the picture lack its script."""

PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 22px 26px; background: #1b1d23; color: #d9d9d9; }}
pre {{ font: 14px/1.45 "DejaVu Sans Mono", monospace; margin: 0; }}
a {{ color: inherit; text-decoration: none; }}
{stylesheet}</style><pre>{code}</pre>"""


def checkout(folder: Path) -> Path:
    """A clone of a repository with the sample's memory, on a branch with two changed files."""
    remote = bare_repository(folder / "octo-org/linkbarn.git")
    commit(remote, dict.fromkeys(("README.md", *CHANGED), ("100644", b"")), "refs/heads/main")
    with BranchStore(str(remote), "precedent") as store:
        memory = Memory(store, repo="octo-org/linkbarn").open()
        memory.stage(Changes(records=tuple(read_archive(ROOT / "sample/history.jsonl"))))
        memory.commit("sample")
    top = folder / "linkbarn"
    subprocess.run(["git", "clone", "--quiet", "--single-branch", str(remote), str(top)], check=True)
    git(top, "switch", "--quiet", "--create", BRANCH)
    for name in CHANGED:
        (top / name).write_text("changed\n")
    return top


def run_in_terminal(command: str, top: Path, home: Path) -> str:
    """Run a command in a terminal; returns its output with colours."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    program = [sys.executable, "-m", "bot", *command.split()[1:]]
    subprocess.run(
        program, cwd=top, env=environ, check=True, capture_output=True
    )  # fetches first, as that shows a progress bar
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (LINES, COLUMNS))
    process = subprocess.Popen(program, cwd=top, env=environ, stdout=terminal, stderr=terminal, stdin=terminal)
    os.close(terminal)
    output = b""
    while True:
        try:
            piece = os.read(controller, 65_536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    process.wait()
    return output.decode().replace("\r\n", "\n")


def screen(folder: Path) -> Path:
    """The page with the output of `precedent what`."""
    top = checkout(folder)
    output = run_in_terminal("precedent what", top, folder)
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="256", force_terminal=True)
    console.print(Text(f"~/linkbarn ({BRANCH}) $ precedent what\n", style="bold"))
    console.print(Text.from_ansi(output.partition(FOREIGN)[0].rpartition("\n")[0]))
    file = folder / "terminal.html"
    file.write_text(console.export_html(theme=DIMMED_MONOKAI, code_format=PAGE), encoding="utf-8")
    return file
