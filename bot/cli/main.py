"""The command line: parse, call, print. Data goes to stdout, messages go to stderr.

A command's module is imported when the command runs, so that a search starts quickly.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from itertools import groupby
from typing import NoReturn

from bot import __version__
from bot.cli.arguments import closest
from bot.cli.options import COMMANDS
from bot.cli.output import CommandResult, forget_output, show, warn
from bot.comment.clean_text import one_line
from bot.errors import PrecedentError, bug_report

MAX_HELP_WIDTH = 100
"""Maximum columns of a help text."""


ALIASES = {command.alias: name for name, command in COMMANDS.items() if command.alias}


class _Help(argparse.HelpFormatter):
    """As wide as the terminal, but no wider than is easy to read."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(MAX_HELP_WIDTH, _columns()) - 2)


class _Parser(argparse.ArgumentParser):
    def __init__(self, *args: object, **settings: object) -> None:
        super().__init__(*args, formatter_class=_Help, **settings)  # type: ignore[arg-type,misc]

    def error(self, message: str) -> NoReturn:
        """End with one line that names the mistake and points to the help."""
        self.exit(2, f"{self.prog}: {one_line(message)}; see `{self.prog} --help`\n")


class _TopParser(_Parser):
    """The top-level parser; its help lists the commands by purpose."""

    def format_help(self) -> str:
        return overview()


def overview() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = ["usage: precedent COMMAND …", "", "A repository's memory of its issues and how they ended."]
    for purpose, commands in groupby(COMMANDS.items(), lambda each: each[1].purpose):
        lines += ["", f"{purpose}:"]
        for name, command in commands:
            alias = f" (or {command.alias})" if command.alias else ""
            lines += [f"  {name:<{width}}{command.help}{alias}", f"  {'':<{width}}  precedent {command.example}"]
    lines += ["", "Options of a command: precedent COMMAND --help. Version: precedent --version."]
    return "\n".join(lines) + "\n"


def parser(only: str = "") -> argparse.ArgumentParser:
    """The parser of all commands, or of one alone, which is faster to build."""
    top = _TopParser(prog="precedent", description="A repository's memory of its issues and how they ended.")
    top.add_argument("--version", action="version", version=f"precedent {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    only = ALIASES.get(only, only)
    for name in [only] if only in COMMANDS else COMMANDS:
        command = COMMANDS[name]
        description = " ".join((command.options.__doc__ or "").split())
        aliases = [command.alias] if command.alias else []
        subparser = commands.add_parser(name, aliases=aliases, help=command.help, description=description)
        command.options(subparser)
        subparser.set_defaults(parser=subparser)
    if "completion" in commands.choices:
        commands.choices["completion"].set_defaults(top=top)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 2 for a user's mistake, 1 for an outside failure, else that of the
    `CommandResult`."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    first = words[0] if words else "--help"
    if first in ("--help", "-h"):
        return show(overview())
    if close := "" if first in ALIASES.keys() | COMMANDS.keys() else closest(first, COMMANDS):
        parser().error(f"invalid choice: {first!r}; did you mean {close!r}?")
    args, unknown = parser(first if first != "completion" else "").parse_known_args(words)
    if unknown:
        close = closest(unknown[0], re.findall(r"--[a-z][a-z-]+", args.parser.format_usage()))
        args.parser.error(f"unknown argument {unknown[0]!r}{f'; did you mean {close}?' if close else ''}")
    try:
        return show(_runner(args.command)(args))
    except PrecedentError as error:
        warn(f"precedent {args.command}: {error}")
        return error.exit_code
    except MemoryError as error:
        warn(f"precedent {args.command}: {bug_report(error)}")
        return 1
    except BrokenPipeError:
        forget_output()  # whoever read this has seen enough
        return 1


def _runner(command: str) -> Callable[[argparse.Namespace], object]:
    if command == "action":
        from bot.action.main import run_action

        return lambda _: CommandResult("", run_action())
    name = ALIASES.get(command, command)
    module = import_module(f"bot.cli.commands.{COMMANDS[name].module}")
    return getattr(module, f"run_{name.replace('-', '_')}")  # type: ignore[no-any-return]


@cache
def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        try:
            return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else MAX_HELP_WIDTH
        except (OSError, ValueError):
            return MAX_HELP_WIDTH
