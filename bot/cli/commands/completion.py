"""precedent completion: a shell script that completes commands, options, choices and files."""

from __future__ import annotations

import argparse

from bot.cli.arguments import FileArgument, FolderArgument
from bot.errors import require_libraries


def run_completion(args: argparse.Namespace) -> str:
    return script(args.top, args.shell)


def script(top: argparse.ArgumentParser, shell: str) -> str:
    with require_libraries({"shtab"}, "{name} is missing: install the packages in requirements.lock"):
        import shtab
    FileArgument.complete, FolderArgument.complete = shtab.FILE, shtab.DIRECTORY
    return shtab.complete(top, shell) + "\n"
