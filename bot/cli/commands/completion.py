"""precedent completion: a script by which a shell completes commands, options, choices and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bot.errors import needs

_FILES = frozenset({"FILE", "FILE…"})
_FOLDERS = frozenset({"DIR"})
"""Metavars of arguments that are paths."""


def run_completion(given: argparse.Namespace) -> str:
    return script(given.top, given.shell)


def script(top: argparse.ArgumentParser, shell: str) -> str:
    with needs({"shtab"}, "{name} is missing: install what requirements.lock names"):
        import shtab
    for action in _actions(top):
        kind = shtab.FILE if action.metavar in _FILES else shtab.DIRECTORY if action.metavar in _FOLDERS else None
        if kind:
            action.complete = kind  # type: ignore[attr-defined]
    return shtab.complete(top, shell) + "\n"


def _actions(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in command._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
