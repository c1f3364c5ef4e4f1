"""precedent action: handles the event of a GitHub Actions runner."""

from __future__ import annotations

from bot.action.main import run_action as run
from bot.cli.options import Arguments
from bot.cli.output import CommandResult


class ActionArguments(Arguments):
    pass


def run_action(_: ActionArguments) -> CommandResult:
    return CommandResult("", run())
