"""The command line: parse, call, print. Data goes to stdout, words go to stderr.

What a command needs is imported when it is given: a search is over before all of it would be loaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

from bot import __version__
from bot.doors.output import Verdict, forget_output, show
from bot.errors import PrecedentError

ALIAS = "ss"
"""Of smart-search, which adds it with its options."""

WIDTH = 100
"""Columns of a help text at most."""


COMMANDS = {
    "search": ("bot.doors.questions.add_search", "bot.doors.asking.run_search"),
    "smart-search": ("bot.doors.questions.add_smart_search", "bot.doors.asking.run_smart_search"),
    "ss": ("bot.doors.questions.add_smart_search", "bot.doors.asking.run_smart_search"),
    "what": ("bot.doors.questions.add_what", "bot.doors.asking.run_what"),
    "related": ("bot.doors.questions.add_related", "bot.doors.asking.run_related"),
    "show": ("bot.doors.questions.add_show", "bot.doors.showing.run_show"),
    "context": ("bot.doors.context_options.add_context", "bot.doors.context.run_context"),
    "mcp": ("bot.doors.mcp.add_mcp", "bot.doors.mcp.run_mcp"),
    "skill": ("bot.doors.skill.add_skill", "bot.doors.skill.run_skill"),
    "action": ("bot.doors.options.add_action", "bot.doors.action.main"),
    "references": ("bot.doors.options.add_references", "bot.doors.commands.run_references"),
    "import": ("bot.doors.options.add_import", "bot.doors.commands.run_import"),
    "answer": ("bot.doors.options.add_answer", "bot.doors.commands.run_answer"),
    "outcomes": ("bot.doors.options.add_outcomes", "bot.doors.outcomes.run_outcomes"),
    "learn": ("bot.doors.options.add_learn", "bot.doors.lesson.run_learn"),
    "eval": ("bot.doors.options.add_eval", "bot.doors.proof.run_eval"),
    "backtest": ("bot.doors.options.add_backtest", "bot.doors.proof.run_backtest"),
    "calibrate": ("bot.doors.options.add_calibrate", "bot.doors.proof.run_calibrate"),
    "doctor": ("bot.doors.options.add_doctor", "bot.doors.doctor.run_doctor"),
    "serve": ("bot.doors.operating.add_serve", "bot.doors.operating.run_serve"),
    "worker": ("bot.doors.operating.add_worker", "bot.doors.operating.run_worker"),
    "jobs": ("bot.doors.operating.add_jobs", "bot.doors.operating.run_jobs"),
    "try": ("bot.doors.try_options.add_try", "bot.doors.trying.run_try"),
    "init": ("bot.doors.setting_up.add_init", "bot.doors.setting_up.run_init"),
    "completion": ("bot.doors.completion.add_completion", "bot.doors.completion.run_completion"),
}
"""Each command: the function that adds its options, and the one that runs it. They are loaded when it is given."""


class _Help(argparse.HelpFormatter):
    """As wide as the terminal, and no wider than anybody reads."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(WIDTH, _columns()) - 2)


class _Parser(argparse.ArgumentParser):
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, formatter_class=_Help, **options)  # type: ignore[arg-type,misc]

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """A word that is nearly one of those that may stand there is told which."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as fault:
            from difflib import get_close_matches  # a command that is spelled right has no use for it

            if close := get_close_matches(str(value), [str(choice) for choice in action.choices or ()], n=1):
                meant = f"invalid choice: {value!r}; did you mean {close[0]!r}?"
                raise argparse.ArgumentError(action, meant) from fault
            raise


def parser(only: str = "") -> argparse.ArgumentParser:
    """All commands with their options; with the name of one, that one alone, which is there sooner."""
    top = _Parser(prog="precedent", description="A repository's memory of its issues and how they ended.")
    top.add_argument("--version", action="version", version=f"precedent {__version__}")
    doors = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for command in [only] if only in COMMANDS else [name for name in COMMANDS if name != ALIAS]:
        add = _loaded(COMMANDS[command][0])
        add(doors, top) if command == "completion" else add(doors)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 2 for a mistake of the user, 1 for a fault outside, or its `Verdict`."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    first = words[0] if words else ""
    given = parser(first if first != "completion" else "").parse_args(words)
    try:
        return show(_runner(given.command)(given))
    except PrecedentError as error:
        from bot.comment.visible import one_line  # what a stranger named may be part of it

        print(f"precedent {given.command}: {one_line(str(error))}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        forget_output()  # whoever read this has seen enough
        return 1


def _runner(command: str) -> Callable[[argparse.Namespace], object]:
    """The function of a command."""
    if command == "action":
        from bot.doors.action import main as act

        return lambda _: Verdict("", act())
    return _loaded(COMMANDS[command][1])


def _loaded(place: str) -> Callable[..., object]:
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


@cache
def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        try:
            return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else WIDTH
        except (OSError, ValueError):
            return WIDTH
