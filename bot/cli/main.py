"""The command line: parse, call, print. Data goes to stdout, messages go to stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bot.cli.commands import ALIASES
from bot.cli.output import forget_output, show, warn
from bot.cli.parser import command_module, overview, parse
from bot.errors import PrecedentError, bug_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 2 for a user's mistake, 1 for an outside failure, else that of the
    `CommandResult`."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not words or words[0] in ("--help", "-h"):
        return show(overview())
    parsed, name = parse(words), words[0]
    command = ALIASES.get(name, name)
    try:
        return show(getattr(command_module(command), f"run_{command.replace('-', '_')}")(parsed))
    except PrecedentError as error:
        warn(f"precedent {name}: {error}")
        return error.exit_code
    except MemoryError as error:
        warn(f"precedent {name}: {bug_report(error)}")
        return 1
    except BrokenPipeError:
        forget_output()  # whoever read this has seen enough
        return 1
