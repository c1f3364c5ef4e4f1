"""The task of a run: its inputs, its event, and the repository's settings files. Imports little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bot.action.environment import RunnerEnvironment
from bot.errors import UserError
from bot.github.events import KNOWN_EVENTS, Event, parse_event
from bot.pipeline.site import RepositorySite, SettingsFiles, fetch_settings
from bot.settings.schema import Inputs, read_inputs

ISSUE_MODES = ("answer", "forget", "remember")
"""Runs by hand that need an issue number."""


class RunTask(NamedTuple):
    """One event of a repository. ``fetched`` is None if Precedent does not handle the event, so there is nothing to do.

    ``given`` are the inputs as texts, including those that override settings.
    """

    given: Mapping[str, str]
    inputs: Inputs
    event: Event
    site: RepositorySite
    fetched: SettingsFiles | None


def read_task(environment: RunnerEnvironment, given: Mapping[str, str]) -> RunTask:
    """Read the inputs and the event, and fetch the settings from GitHub. Raises UserError, StoreError."""
    inputs = read_inputs(given)
    if not inputs.token:
        raise UserError('input "token" is empty: leave it out, or give ${{ github.token }}')
    event, site = _read_event(environment, inputs), _site(environment, inputs)
    return RunTask(
        given, inputs, event, site, fetch_settings(site, inputs.config) if event.name in KNOWN_EVENTS else None
    )


def _read_event(environment: RunnerEnvironment, inputs: Inputs) -> Event:
    try:
        payload = Path(environment.event_path).read_bytes()
    except OSError as error:
        raise UserError(f"GITHUB_EVENT_PATH cannot be read: {error.strerror}") from error
    event = parse_event(environment.event_name, payload)
    if event.name != "workflow_dispatch":
        return event
    texts = {"run": event.input("run") or event.input("mode"), "issue": event.input("issue").strip()}
    by_hand = read_inputs(texts)
    mode, number = inputs.run or by_hand.run or "catch-up", inputs.issue or by_hand.issue
    if mode in ISSUE_MODES and not number:
        raise UserError(f'run: {mode} needs the input "issue", the number of the issue to {mode}')
    return replace(event, number=number if mode in ISSUE_MODES else None, inputs=(("run", mode),))


def _site(environment: RunnerEnvironment, inputs: Inputs) -> RepositorySite:
    return RepositorySite(
        repository=environment.repository,
        token=inputs.token,
        api_url=environment.api_url,
        server_url=environment.server_url,
        workspace=Path(environment.workspace or "."),
        write_gap=environment.write_gap,
    )
