"""Parses the command line. Loads only the module of the command that was given."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from bot import __version__
from bot.cli.arguments import closest
from bot.cli.commands import ALIASES, COMMANDS, GROUPS
from bot.comment.clean_text import one_line

if TYPE_CHECKING:
    from bot.cli.options import Arguments

MAX_HELP_WIDTH = 100
"""Maximum columns of a help text."""

PURPOSE = "A repository's memory of its issues and how they ended."


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
    lines = ["usage: precedent COMMAND …", "", PURPOSE]
    for purpose, commands in GROUPS.items():
        lines += ["", f"{purpose}:"]
        for name, command in commands.items():
            alias = f" (or {command.alias})" if command.alias else ""
            example = f"precedent {name} {command.example}".rstrip()
            lines += [f"  {name:<{width}}{command.help}{alias}", f"  {'':<{width}}  {example}"]
    lines += ["", "Options of a command: precedent COMMAND --help. Version: precedent --version."]
    return "\n".join(lines) + "\n"


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these commands, whose modules it loads."""
    top = _TopParser(prog="precedent", description=PURPOSE)
    top.add_argument("--version", action="version", version=f"precedent {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for name in names:
        command, arguments = COMMANDS[name], _arguments_class(name)
        description = " ".join(f"{command.help}. {arguments.__doc__ or ''}".split())
        aliases = [command.alias] if command.alias else []
        subparser = commands.add_parser(name, aliases=aliases, help=command.help, description=description)
        arguments.add_to(subparser)
        subparser.set_defaults(parser=subparser)
    return top


def parse(words: Sequence[str]) -> Any:
    """The arguments of the command in the first word, in its own class. Exits for a mistake, and for a request for
    help."""
    name = ALIASES.get(words[0], words[0])
    if name not in COMMANDS and not name.startswith("-"):
        close = closest(name, COMMANDS)
        hint = f"; did you mean {close!r}?" if close else f" (choose from {', '.join(COMMANDS)})"
        parser(()).error(f"invalid choice: {name!r}{hint}")
    parsed, unknown = parser([name] if name in COMMANDS else ()).parse_known_args(words)
    if unknown:
        close = closest(unknown[0], re.findall(r"--[a-z][a-z-]+", parsed.parser.format_usage()))
        parsed.parser.error(f"unknown argument {unknown[0]!r}{f'; did you mean {close}?' if close else ''}")
    return _arguments_class(name)(**vars(parsed))


def command_module(name: str) -> ModuleType:
    return import_module(f"bot.cli.commands.{COMMANDS[name].module or name}")


def _arguments_class(name: str) -> type[Arguments]:
    words = name.title().replace("-", "")
    found: type[Arguments] = getattr(command_module(name), f"{words}Arguments")
    return found


@cache
def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        try:
            return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else MAX_HELP_WIDTH
        except (OSError, ValueError):
            return MAX_HELP_WIDTH
