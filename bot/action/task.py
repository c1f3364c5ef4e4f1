"""What a run is for: its inputs, its event, and the files with the repository's settings. Loads little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bot.action.environment import RunnerEnvironment
from bot.errors import UserError
from bot.github.events import KNOWN, Event, parse_event
from bot.pipeline.site import RepositorySite, SettingsFiles, fetch_settings
from bot.settings.schema import Inputs, read_inputs

OF_ONE = ("answer", "forget")
"""Runs by hand that need an issue number."""


class RunTask(NamedTuple):
    """One event of a repository. ``fetched`` is None where the event is none of ours, and nothing is to be done.

    ``given`` are the inputs as texts, the settings among them too.
    """

    given: Mapping[str, str]
    inputs: Inputs
    event: Event
    site: RepositorySite
    fetched: SettingsFiles | None


def read_task(around: RunnerEnvironment, given: Mapping[str, str]) -> RunTask:
    """Read the inputs and the event, and fetch the settings from GitHub. Raises UserError, StoreError."""
    inputs = read_inputs(given)
    if not inputs.token:
        raise UserError('input "token" is empty: leave it out, or give ${{ github.token }}')
    event, site = _event(around, inputs), _site(around, inputs)
    return RunTask(given, inputs, event, site, fetch_settings(site, inputs.config) if event.name in KNOWN else None)


def _event(around: RunnerEnvironment, inputs: Inputs) -> Event:
    try:
        payload = Path(around.event_path).read_bytes()
    except OSError as error:
        raise UserError(f"GITHUB_EVENT_PATH cannot be read: {error.strerror}") from error
    event = parse_event(around.event_name, payload)
    if event.name != "workflow_dispatch":
        return event
    asked = {"run": event.input("run") or event.input("mode"), "issue": event.input("issue").strip()}
    by_hand = read_inputs(asked)
    mode, number = inputs.run or by_hand.run or "catch-up", inputs.issue or by_hand.issue
    if mode in OF_ONE and not number:
        raise UserError(f'run: {mode} needs the input "issue", the number of the issue to {mode}')
    return replace(event, number=number if mode in OF_ONE else None, inputs=(("run", mode),))


def _site(around: RunnerEnvironment, inputs: Inputs) -> RepositorySite:
    return RepositorySite(
        repository=around.repository,
        token=inputs.token,
        api_url=around.api_url,
        server_url=around.server_url,
        workspace=Path(around.workspace or "."),
        write_gap=around.write_gap,
    )
