"""precedent completion: a shell script that completes commands, options, choices and files."""

from __future__ import annotations

from bot.cli.arguments import one_of
from bot.cli.options import Arguments, FileArgument, FolderArgument, argument
from bot.cli.parser import parser
from bot.errors import require_libraries

SHELLS = ("bash", "zsh", "fish")


class CompletionArguments(Arguments):
    """Write it into a file once, for bash ~/.local/share/bash-completion/completions/precedent.

    docs/command-line.md has the other shells.
    """

    shell: str = argument("SHELL", ", ".join(SHELLS), **one_of(*SHELLS))


def run_completion(args: CompletionArguments) -> str:
    return script(args.shell)


def script(shell: str) -> str:
    with require_libraries({"shtab"}, "{name} is missing: install the packages in requirements.lock"):
        import shtab
    FileArgument.complete, FolderArgument.complete = shtab.FILE, shtab.DIRECTORY
    return shtab.complete(parser(), shell) + "\n"
