"""The inputs of the action: what a workflow gives to one run, and the settings that it may override there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from bot.settings import GLOB, Settings, Value, checked, rules, setting

Run = Literal["", "catch-up", "rebuild", "answer", "forget", "backtest"]

OVERRIDES: Mapping[str, str] = {"mode": "mode", "branch": "branch", "bot-login": "comment.author"}
"""Inputs that override a setting, and which."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a run is given that is no setting; `token` stays out of its repr."""

    token: str = setting("", "The token that reads the repository and writes memory and comment.", secret=True)
    config: str = setting(".github/precedent.yml", "Where the settings are, on the default branch.", **GLOB)
    run: Run = setting(
        "",
        "What a run by hand does; without it, what the event asks for.",
        choices=("", "catch-up", "rebuild", "answer", "forget", "backtest"),
    )
    issue: int = setting(0, "The issue, when run is answer or forget.", low=0, high=2_147_483_647)
    dry_run: bool = setting(False, "Write nothing; show in the job summary what would be written.")


INPUTS = (*(name.replace("_", "-") for name in rules(Inputs)), *OVERRIDES)
"""The names of all inputs, as `action.yml` declares them."""


def given_inputs(environ: Mapping[str, str]) -> dict[str, str]:
    """The inputs as the runner passes them to a container: ``INPUT_`` and the name in upper case, hyphens kept.

    https://docs.github.com/actions/reference/workflows-and-actions/metadata-syntax#inputs
    """
    texts = {name: environ.get(f"INPUT_{name.upper()}", "").strip() for name in INPUTS}
    return {name: text for name, text in texts.items() if text}


def with_inputs(settings: Settings, inputs: Mapping[str, str]) -> Settings:
    """The settings as the action's inputs override them (names as in `OVERRIDES`); an empty text counts as not given.

    Raises SettingsError that names the input.
    """
    for name, path in OVERRIDES.items():
        if text := inputs.get(name, ""):
            settings = _replaced(settings, path.split("."), text, f'input "{name}"')
    return settings


def _replaced(part: Any, path: list[str], value: object, where: str) -> Any:
    rule, default = rules(type(part))[path[0]]
    if len(path) > 1:
        return replace(part, **{path[0]: _replaced(getattr(part, path[0]), path[1:], value, where)})
    assert not isinstance(default, type)
    return replace(part, **{path[0]: checked(where, value, rule, default)})


def read_inputs(inputs: Mapping[str, str]) -> Inputs:
    """The inputs of a run (names as in `action.yml`); an empty text counts as not given. Raises SettingsError."""
    given: dict[str, Value] = {}
    for attribute, (rule, default) in rules(Inputs).items():
        name = attribute.replace("_", "-")
        if (text := inputs.get(name, "")) and not isinstance(default, type):
            given[attribute] = text if rule.secret else checked(f'input "{name}"', _typed(text, default), rule, default)
    return replace(Inputs(), **given)  # type: ignore[arg-type]


def _typed(text: str, default: Value) -> Value:
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    return int(text.lstrip("#")) if isinstance(default, int) and re.fullmatch(r"#?[0-9]{1,18}", text) else text
