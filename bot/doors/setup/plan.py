"""What is to become of each file, decided before any is written."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bot.config import CONFIG_PATH, load_settings
from bot.doors.checkup import workflow as checkup
from bot.doors.checkup.finding import Finding
from bot.doors.setup import files
from bot.doors.setup.options import is_action
from bot.doors.setup.place import Place
from bot.doors.setup.written import PLACEHOLDER, WORKFLOW, Choice, settings, workflow
from bot.errors import UserError
from bot.inputs import with_inputs
from bot.settings import Settings


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is and as it would be. ``state``: new, same, kept (the owner's, never replaced), differs (left as it
    is), replaced."""

    path: str
    state: str
    text: str
    before: bytes | None = None

    @property
    def is_written(self) -> bool:
        return self.state in ("new", "replaced")


@dataclass(frozen=True, slots=True)
class Plan:
    """All that follows from a checkout and what was asked for. ``refused`` is why nothing can be written, "" else."""

    place: Place
    choice: Choice
    settings: Settings
    files: tuple[File, ...]
    refused: str = ""
    findings: tuple[Finding, ...] = field(default=())

    @property
    def mode(self) -> str:
        """How it will speak: what the workflow gives goes before the settings."""
        return self.settings.mode if self.choice.mode == "comment" else self.choice.mode

    @property
    def is_named(self) -> bool:
        """Whether it is known where the Action comes from."""
        return not self.choice.action.startswith("OWNER/")


def plan(place: Place, given: argparse.Namespace) -> Plan:
    """What would be written, and what stands against it. UserError for settings that cannot be used."""
    there = {path: data for path in files.names(place.top, checkup.FOLDER) if (data := _read_one(place, path))}
    there |= {WORKFLOW: data} if (data := files.read(place.top, WORKFLOW)) is not None else {}
    found, _ = checkup.find(there, is_ours=False)
    choice = _choice(place, given, [step for step in found if step.path == WORKFLOW])
    others = sorted({step.path for step in found if step.path != WORKFLOW and not checkup.is_dry(step)})
    config, used = _config(place, given.branch)
    text = workflow(choice)
    told, _ = checkup.find({WORKFLOW: text.encode()}, is_ours=False)
    made = Plan(place, choice, used, (_file(WORKFLOW, text, there.get(WORKFLOW), force=given.force), config))
    findings = tuple(checkup.checks(told, comments=made.mode == "comment"))
    return replace(made, findings=findings, refused=_refused(made, others, force=given.force))


def _read_one(place: Place, path: str) -> bytes | None:
    """One of the workflows that are there, None for a link or what is no file: those are not ours to judge."""
    try:
        return files.read(place.top, path)
    except UserError:
        return None


def _choice(place: Place, given: argparse.Namespace, steps: list[checkup.Step]) -> Choice:
    """What was asked for; else what the workflow that is there has, so that a second run asks for the same."""
    choice = Choice(main=place.main, hosted=place.hosted)
    if len(steps) == 1:
        uses, events = steps[0].uses, steps[0].workflow.get("on")
        is_minimal = isinstance(events, Mapping) and not {"schedule", "workflow_dispatch", "push"} & events.keys()
        mode = "summary" if steps[0].inputs.get("mode") == "summary" else "comment"
        choice = replace(choice, action=uses if is_action(uses) else PLACEHOLDER, mode=mode, minimal=is_minimal)
    asked = {name: getattr(given, name) for name in ("action", "mode", "minimal")}
    return replace(choice, **{name: value for name, value in asked.items() if value is not None})


def _file(path: str, text: str, before: bytes | None, *, force: bool) -> File:
    same = before is not None and before.replace(b"\r\n", b"\n") == text.encode()
    state = "new" if before is None else "same" if same else "replaced" if force else "differs"
    return File(path, state, text, before)


def _config(place: Place, branch: str | None) -> tuple[File, Settings]:
    """The settings' file, which stays as it is where there is one, and the settings that it makes."""
    wanted = with_inputs(Settings(), {"branch": branch or ""})
    text, before = settings(wanted.branch), files.read(place.top, CONFIG_PATH)
    if before is None:
        return File(CONFIG_PATH, "new", text), wanted
    used = load_settings(before, CONFIG_PATH)
    if branch and used.branch != branch:
        raise UserError(
            f"{CONFIG_PATH} names the branch {used.branch}, and stays as it is: write branch: {branch} there"
        )
    state = "same" if before.replace(b"\r\n", b"\n") == text.encode() else "kept"
    return File(CONFIG_PATH, state, before.decode("utf-8-sig"), before), used


def _refused(made: Plan, others: list[str], *, force: bool) -> str:
    if made.settings.branch == made.place.main:
        return f"{made.place.main} is the default branch, and memory needs one of its own: name another with --branch"
    if others and not force:
        return f"{others[0]} uses Precedent already, and two of them would answer: change that one, or add --force"
    if any(file.state == "differs" for file in made.files):
        return f"{WORKFLOW} is there and differs: it is left as it is; keep it, or replace it with --force"
    return ""
