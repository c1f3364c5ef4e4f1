"""What is judged of the workflow that runs the Action: its events, permissions, concurrency, schedule and version."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.config import load_plain
from bot.doors.checkup.finding import Finding, some
from bot.inputs import INPUTS, read_inputs
from bot.settings import SettingsError

FOLDER = ".github/workflows"
EVENTS: Mapping[str, tuple[str, ...]] = {
    "issues": ("opened", "edited", "closed", "reopened", "deleted", "transferred"),
    "issue_comment": ("created", "edited", "deleted"),
}
"""Events without which memory is behind until the next one, and of each the kinds that say something new."""

_OURS = re.compile(r"(?:docker://)?(?:[\w.-]{1,100}/){1,4}precedent(?:[@:][\w./:@-]{1,200})?", re.ASCII)
_PLACEHOLDER = re.compile(r"(?:\A|/)OWNER/", re.ASCII)


@dataclass(frozen=True, slots=True)
class Step:
    """A step that runs the Action, with what is around it: the job and the workflow in the file ``path``.

    ``has_condition``: an ``if`` of its own or of its job decides whether it runs.
    """

    path: str
    workflow: Mapping[str, Any]
    job: Mapping[str, Any]
    uses: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    has_condition: bool = False


def find(files: Mapping[str, bytes], *, is_ours: bool) -> tuple[list[Step], list[Finding]]:
    """The steps that run the Action in these workflows, and the workflows that may hold one and cannot be read.

    ``is_ours``: the repository is that of the Action, so that a step that uses ``./`` runs it.
    """
    steps: list[Step] = []
    wrong = []
    for path in sorted(files):
        try:
            steps += _steps(path, load_plain(files[path], path), is_ours=is_ours)
        except SettingsError as error:
            if b"precedent" in files[path].lower():
                wrong.append(Finding("workflow", "warning", f"cannot be read: {error}", f"mend that line of {path}"))
    return steps, wrong


def _steps(path: str, workflow: object, *, is_ours: bool) -> Iterator[Step]:
    top = _mapping(workflow)
    for job in map(_mapping, _mapping(top.get("jobs")).values()):
        for step in map(_mapping, _listed(job.get("steps"))):
            uses = str(step.get("uses") or "")
            if _OURS.fullmatch(uses) or (is_ours and uses in ("./", ".")):
                given = {str(name): _text(value) for name, value in _mapping(step.get("with")).items()}
                yield Step(path, top, job, uses, given, "if" in step or "if" in job)


def checks(
    steps: Sequence[Step], *, comments: bool, is_checkout: bool = False, unread: bool = False
) -> Iterator[Finding]:
    """Everything about every step. ``comments``: the settings want comments, not only summaries; ``is_checkout``: a
    checkout was looked at, which says nothing certain of the default branch; ``unread``: a workflow that may hold one
    could not be read, which was said."""
    if not (steps or unread):
        where = "of this checkout" if is_checkout else "on the default branch"
        says = f"none of the files in {FOLDER} {where} uses Precedent"
        remedy = f"put the workflow of the README on the default branch, as {FOLDER}/precedent.yml"
        yield Finding("workflow", "warning" if is_checkout else "error", says, remedy)
    for step in steps:
        found = [*_events(step), *_permissions(step, comments), *_concurrency(step), *_inputs(step), *_version(step)]
        if not any(each.is_problem for each in found):
            found.insert(0, Finding("workflow", "ok", f"{step.path} runs it as it should"))
        yield from found


def _events(step: Step) -> Iterator[Finding]:
    events = _events_of(step.workflow)
    for name, wanted in EVENTS.items():
        if name not in events:
            says = f"{step.path} does not run on {name}: what happens there is remembered a day later"
            yield Finding("events", "warning", says, f"add `{name}:` under `on:` in {step.path}")
            continue
        types = _mapping(events[name]).get("types")
        missing = [kind for kind in wanted if types is not None and kind not in map(_text, _listed(types))]
        if missing:
            says = f"{step.path} does not run on {name} that are {', '.join(missing)}"
            yield Finding("events", "warning", says, f"add {', '.join(missing)} to `types` of `{name}` in {step.path}")
    if "schedule" not in events:
        says = f"{step.path} has no schedule: what a lost run missed waits for the next event"
        yield Finding("events", "warning", says, f"add `schedule: [{{cron: '23 4 * * *'}}]` under `on:` in {step.path}")


def _events_of(workflow: Mapping[str, Any]) -> dict[str, Any]:
    given = workflow.get("on")
    if isinstance(given, Mapping):
        return dict(given)
    return {_text(name): None for name in _listed(given)}


def _permissions(step: Step, comments: bool) -> Iterator[Finding]:
    given = step.job.get("permissions", step.workflow.get("permissions"))
    remedy = f"give the job `permissions:` with `contents: write` and `issues: write` in {step.path}"
    if given is None:
        says = f"{step.path} does not say which, so that a setting of the repository decides"
        yield Finding("permissions", "warning", says, remedy)
        return
    if given == "write-all":
        says = f"{step.path} gives the job all that there are; it needs contents and issues"
        yield Finding("permissions", "note", says, remedy)
        return
    if literal(step).get("dry-run", "").lower() == "true":
        return  # it writes nothing, so that it need not be allowed to
    missing = [name for name in ("contents", "issues") if _mapping(given).get(name) != "write"]
    if "contents" in missing:
        says = f"the job in {step.path} may not write contents, where memory is kept"
        yield Finding("permissions", "error", says, f"add `contents: write` to its `permissions` in {step.path}")
    if "issues" in missing:
        says = f"the job in {step.path} may not write issues, so that it cannot comment"
        remedy = f"add `issues: write` to its `permissions` in {step.path}"
        yield Finding("permissions", "error" if comments else "note", says, remedy)


def _concurrency(step: Step) -> Iterator[Finding]:
    given = step.job.get("concurrency", step.workflow.get("concurrency"))
    if not given:
        says = f"{step.path} has none: many runs at once wait for each other's writes"
        remedy = f"add `concurrency: {{group: precedent, cancel-in-progress: false}}` to {step.path}"
        yield Finding("concurrency", "warning", says, remedy)
    elif _mapping(given).get("cancel-in-progress") not in (None, False):
        says = f"{step.path} cancels runs in progress: what they were about to say is said a run later"
        yield Finding("concurrency", "warning", says, f"set `cancel-in-progress: false` in {step.path}")


def _inputs(step: Step) -> Iterator[Finding]:
    if is_dry(step):
        says = "dry-run is true for every event: nothing is remembered or said"
        yield Finding("inputs", "warning", says, f"take `dry-run: true` out of `with:` in {step.path}")
    for name in step.inputs.keys() - set(INPUTS):
        close = difflib.get_close_matches(name[:100], INPUTS, n=1)
        remedy = f'did you mean "{close[0]}"?' if close else f"known are {some(INPUTS, 20)}"
        says = f"{step.path} gives an input that there is not: {name:.60}"
        yield Finding("inputs", "warning", says, f"{remedy} Change it under `with:` in {step.path}")
    try:
        read_inputs({name: text for name, text in literal(step).items() if name != "token"})
    except SettingsError as error:
        yield Finding("inputs", "error", f"{step.path}: {error}", f"change it under `with:` in {step.path}")


def literal(step: Step) -> dict[str, str]:
    """The known inputs whose values stand in the workflow, not in an expression."""
    return {name: text for name, text in step.inputs.items() if name in INPUTS and text and "${{" not in text}


def is_dry(step: Step) -> bool:
    """Whether it only shows what it would write, whatever the event is."""
    return literal(step).get("dry-run", "").lower() == "true" and not step.has_condition


def _version(step: Step) -> Iterator[Finding]:
    if _PLACEHOLDER.search(step.uses):
        says = f"{step.path} uses {step.uses}: OWNER is the README's placeholder"
        yield Finding("version", "error", says, "put the account there that you use it from")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value).strip()
