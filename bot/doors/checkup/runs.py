"""What is judged of the workflow's runs: why what changed is not remembered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.archive import parse_time
from bot.doors.checkup.finding import moment
from bot.doors.checkup.place import Place

AGAIN = "start it by hand with catch-up"


@dataclass(frozen=True, slots=True)
class Run:
    """The newest run: when it began, and how it ended, empty where it goes on."""

    id: int
    at: datetime
    ended: str


@dataclass(frozen=True, slots=True)
class Runs:
    """What is known of the workflow: whether there is one, None where nobody could look; whether it has a schedule; and
    what GitHub told of its runs, None where it did not."""

    has_workflow: bool | None = None
    is_scheduled: bool = False
    told: Mapping[str, Any] | None = None


def cause(runs: Runs, missed: datetime | None, place: Place) -> tuple[str, str]:
    """Why memory is behind, as far as it is known, and what mends that. ``missed``: the oldest change that it lacks."""
    if runs.has_workflow is False:
        return "no workflow runs it", "put the workflow of the README on the default branch"
    page = place.page(f"actions/workflows/{place.workflow}")
    stops = " (GitHub stops schedules after 60 days without activity)" if runs.is_scheduled else ""
    enable = f"enable the workflow at {page}{stops}, then {AGAIN}"
    try:
        newest = _newest(runs.told)
    except (LookupError, TypeError, ValueError):
        return "no run has come to its end since", f"see the last run at {page}; if there is none, {enable}"
    if newest is None:
        return "the workflow never ran", enable
    when, there = moment(newest.at), place.page(f"actions/runs/{newest.id}")
    if not newest.ended:
        return f"the run that began {when} is not at its end", f"see what it waits for at {there}"
    if newest.ended != "success":
        return f"the last run, of {when}, ended as {newest.ended}", f"see why at {there}, then {AGAIN}"
    if missed and newest.at < missed:
        return f"the workflow did not run since {when}", enable
    return f"the last run, of {when}, ended well and left them out", f"see what it says at {there}"


def _newest(told: Mapping[str, Any] | None) -> Run | None:
    """The first run of the list, None where it is empty; LookupError, TypeError or ValueError where it is none."""
    if told is None or not isinstance(told["workflow_runs"], list):
        raise ValueError("nothing is known of the runs")
    for run in told["workflow_runs"][:1]:
        if not isinstance(run["id"], int):
            raise ValueError("no run")
        how = str(run["conclusion"] or "")
        ended = how.replace("_", " ") if re.fullmatch(r"[a-z_]{0,40}", how, re.ASCII) else "something else"
        return Run(run["id"], parse_time(run["created_at"]), ended)
    return None
