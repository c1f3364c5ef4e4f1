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
from typing import NamedTuple

from bot import __version__
from bot.doors.output import Verdict, forget_output, show
from bot.errors import PrecedentError

WIDTH = 100
"""Columns of a help text at most."""


class Group(NamedTuple):
    """Commands whose options are in one module; ``runs`` maps each to the function that runs it."""

    module: str
    add: str
    runs: dict[str, str]


GROUPS = (
    Group("bot.doors.questions", "add_search", {"search": "bot.doors.asking:run_search"}),
    Group(
        "bot.doors.questions",
        "add_smart_search",
        dict.fromkeys(("smart-search", "ss"), "bot.doors.asking:run_smart_search"),
    ),
    Group("bot.doors.questions", "add_what", {"what": "bot.doors.asking:run_what"}),
    Group("bot.doors.questions", "add_related", {"related": "bot.doors.asking:run_related"}),
    Group("bot.doors.questions", "add_show", {"show": "bot.doors.showing:run_show"}),
    Group("bot.doors.context_options", "add_context", {"context": "bot.doors.context:run_context"}),
    Group("bot.doors.mcp", "add_mcp", {"mcp": "bot.doors.mcp:run_mcp"}),
    Group("bot.doors.skill", "add_skill", {"skill": "bot.doors.skill:run_skill"}),
    Group(
        "bot.doors.options",
        "add_working",
        {
            "action": "bot.doors.action:main",
            "references": "bot.doors.commands:run_references",
            "import": "bot.doors.commands:run_import",
            "answer": "bot.doors.commands:run_answer",
            "outcomes": "bot.doors.outcomes:run_outcomes",
        },
    ),
    Group(
        "bot.doors.options",
        "add_proofs",
        {
            "learn": "bot.doors.lesson:run_learn",
            "eval": "bot.doors.proof:run_eval",
            "backtest": "bot.doors.proof:run_backtest",
            "calibrate": "bot.doors.proof:run_calibrate",
            "doctor": "bot.doors.doctor:run_doctor",
        },
    ),
    Group(
        "bot.doors.operating",
        "add_server",
        {name: f"bot.doors.operating:run_{name}" for name in ("serve", "worker", "jobs")},
    ),
    Group("bot.doors.try_options", "add_try", {"try": "bot.doors.trying:run_try"}),
    Group("bot.doors.setup.options", "add_init", {"init": "bot.doors.setting_up:run_init"}),
    Group("bot.doors.completion", "add_completion", {"completion": "bot.doors.completion:run_completion"}),
)


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
    for group in [group for group in GROUPS if only in group.runs] or GROUPS:
        add = getattr(import_module(group.module), group.add)
        add(doors, top) if group.add == "add_completion" else add(doors)
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
    place = next(group.runs[command] for group in GROUPS if command in group.runs)
    module, _, name = place.partition(":")
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
