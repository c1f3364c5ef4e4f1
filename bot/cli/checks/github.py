"""Checks of the token, the repository, its discussions, the API, the settings, and the workflow of the Action."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bot.cli.checks.memory import InspectedMemory
from bot.cli.checks.result import CheckResult, RepositoryLinks, age, moment, some, token_remedy
from bot.github.errors import ForgeError, Gone, NotPermitted, RateLimited, Unauthorised
from bot.settings.schema import INPUTS, Settings, SettingsError, read_inputs
from bot.settings.yaml_file import load_plain, load_settings

LOW = 100
"""Requests left for an hour that may not be enough for a run that catches up; of small allowances a tenth."""


@dataclass(frozen=True, slots=True)
class GitHubFacts:
    """The answers of the API. ``has_token``: one was given; ``fault`` says why the repository could not be read.

    ``limits`` is None if the server has none. ``discussions`` is how many there are, None if unknown.
    """

    has_token: bool = False
    repository: Mapping[str, Any] | None = None
    fault: ForgeError | None = None
    limits: Mapping[str, Any] | None = None
    discussions: int | None = None


def check_repository(seen: GitHubFacts, place: RepositoryLinks, *, git_reads: bool = False) -> CheckResult:
    """Whether the API answers, takes the token and shows the repository.

    ``git_reads``: git could read it, so the name is right.
    """
    if git_reads and not seen.has_token and isinstance(seen.fault, Gone | NotPermitted | Unauthorised):
        says = f"the API shows nothing of {place.repository} without a token: its part was left out"
        return CheckResult("repository", "note", says, token_remedy(place))
    if seen.fault:
        return _fault(seen, seen.fault, place)
    return CheckResult(
        "repository", "ok", f"{(seen.repository or {}).get('full_name') or place.repository} on {place.server}"
    )


def _fault(seen: GitHubFacts, fault: ForgeError, place: RepositoryLinks) -> CheckResult:
    if isinstance(fault, Unauthorised) and seen.has_token:
        remedy = f"make a new token at {place.server}/settings/tokens and put it in PRECEDENT_TOKEN"
        return CheckResult("token", "error", fault.cause, remedy)
    if isinstance(fault, Gone | NotPermitted | Unauthorised):
        why = fault.cause if seen.has_token else "it is private, or does not exist"
        says = f"{place.repository} cannot be seen {'with this' if seen.has_token else 'without a'} token: {why}"
        return CheckResult("repository", "error", says, f"check the name; {token_remedy(place)}")
    if isinstance(fault, RateLimited):
        return CheckResult("rate limit", "warning", fault.cause, _later(fault.until), outside=True)
    says = f"the API at {place.api} does not answer: {fault.cause}"
    return CheckResult(
        "repository", "error", says, "run it again later, or with `precedent doctor --offline`", outside=True
    )


def _later(until: datetime | None) -> str:
    return f"run it again after {moment(until)}" if until else "run it again in a few minutes"


def check_limits(seen: GitHubFacts, now: datetime) -> Iterator[CheckResult]:
    """Check how many of the hour's requests this token has left, for both APIs."""
    if seen.limits is None:
        yield CheckResult("rate limit", "ok", "the server tells of none")
        return
    resources = seen.limits.get("resources")
    for name in ("core", "graphql"):
        told = resources.get(name) if isinstance(resources, Mapping) else None
        if isinstance(told, Mapping) and all(_is_count(told.get(key)) for key in ("remaining", "limit", "reset")):
            yield _limit(name, told, now)


def _limit(name: str, told: Mapping[str, Any], now: datetime) -> CheckResult:
    left, most, until = told["remaining"], told["limit"], datetime.fromtimestamp(told["reset"], UTC)
    says = f"{name}: {left:,} of {most:,} requests left, reset at {moment(until)} (in {age(until - now)})"
    if most and left < min(LOW, most // 10):
        return CheckResult("rate limit", "warning", says, _later(until), outside=True)
    return CheckResult("rate limit", "ok", says)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**11


def read_config(data: bytes | None, name: str) -> tuple[Settings, CheckResult]:
    """The settings in the file, the defaults where they cannot be used, and whether they can."""
    if data is None:
        return Settings(), CheckResult("settings", "ok", f"no {name}: all settings are the defaults")
    try:
        return load_settings(data, name), CheckResult("settings", "ok", f"{name} is valid")
    except SettingsError as error:
        file = name if re.fullmatch(r"[\w./][\w./-]{0,199}", name, re.ASCII) else "FILE"
        remedy = f"fix that line, and check it with `precedent doctor --config {file}` before it is pushed"
        return Settings(), CheckResult("settings", "error", str(error), remedy)


WORKFLOW_FOLDER = ".github/workflows"
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


def find_workflows(files: Mapping[str, bytes], *, is_ours: bool) -> tuple[list[Step], list[CheckResult]]:
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
                wrong.append(CheckResult("workflow", "warning", f"cannot be read: {error}", f"fix that line of {path}"))
    return steps, wrong


def _steps(path: str, workflow: object, *, is_ours: bool) -> Iterator[Step]:
    top = _mapping(workflow)
    for job in map(_mapping, _mapping(top.get("jobs")).values()):
        for step in map(_mapping, _listed(job.get("steps"))):
            uses = str(step.get("uses") or "")
            if _OURS.fullmatch(uses) or (is_ours and uses in ("./", ".")):
                given = {str(name): _text(value) for name, value in _mapping(step.get("with")).items()}
                yield Step(path, top, job, uses, given, "if" in step or "if" in job)


def check_workflow(
    steps: Sequence[Step], *, comments: bool, is_checkout: bool = False, unread: bool = False
) -> Iterator[CheckResult]:
    """Everything about every step. ``comments``: the settings want comments, not only summaries; ``is_checkout``: a
    checkout was looked at, which says nothing certain of the default branch; ``unread``: a workflow that may hold one
    could not be read, which was said."""
    if not (steps or unread):
        where = "of this checkout" if is_checkout else "on the default branch"
        says = f"none of the files in {WORKFLOW_FOLDER} {where} uses Precedent"
        remedy = f"put the workflow of the README on the default branch, as {WORKFLOW_FOLDER}/precedent.yml"
        yield CheckResult("workflow", "warning" if is_checkout else "error", says, remedy)
    for step in steps:
        found = [*_events(step), *_permissions(step, comments), *_concurrency(step), *_inputs(step), *_version(step)]
        if not any(each.is_problem for each in found):
            found.insert(0, CheckResult("workflow", "ok", f"{step.path} runs it as it should"))
        yield from found


def _events(step: Step) -> Iterator[CheckResult]:
    events = events_of(step.workflow)
    for name, wanted in EVENTS.items():
        if name not in events:
            says = f"{step.path} does not run on {name}: what happens there is remembered a day later"
            yield CheckResult("events", "warning", says, f"add `{name}:` under `on:` in {step.path}")
            continue
        types = _mapping(events[name]).get("types")
        missing = [kind for kind in wanted if types is not None and kind not in map(_text, _listed(types))]
        if missing:
            says = f"{step.path} does not run on {name} that are {', '.join(missing)}"
            yield CheckResult(
                "events", "warning", says, f"add {', '.join(missing)} to `types` of `{name}` in {step.path}"
            )
    if "schedule" not in events:
        says = f"{step.path} has no schedule: what a lost run missed waits for the next event"
        yield CheckResult(
            "events", "warning", says, f"add `schedule: [{{cron: '23 4 * * *'}}]` under `on:` in {step.path}"
        )


def events_of(workflow: Mapping[str, Any]) -> dict[str, Any]:
    """The events on which the workflow runs, with what it says of each."""
    given = workflow.get("on")
    if isinstance(given, Mapping):
        return dict(given)
    return {_text(name): None for name in _listed(given)}


def _permissions(step: Step, comments: bool) -> Iterator[CheckResult]:
    given = step.job.get("permissions", step.workflow.get("permissions"))
    remedy = f"give the job `permissions:` with `contents: write` and `issues: write` in {step.path}"
    if given is None:
        says = f"{step.path} does not say which, so that a setting of the repository decides"
        yield CheckResult("permissions", "warning", says, remedy)
        return
    if given == "write-all":
        says = f"{step.path} gives the job all that there are; it needs contents and issues"
        yield CheckResult("permissions", "note", says, remedy)
        return
    if literal(step).get("dry-run", "").lower() == "true":
        return  # it writes nothing, so that it need not be allowed to
    missing = [name for name in ("contents", "issues") if _mapping(given).get(name) != "write"]
    if "contents" in missing:
        says = f"the job in {step.path} may not write contents, where memory is kept"
        yield CheckResult("permissions", "error", says, f"add `contents: write` to its `permissions` in {step.path}")
    if "issues" in missing:
        says = f"the job in {step.path} may not write issues, so that it cannot comment"
        remedy = f"add `issues: write` to its `permissions` in {step.path}"
        yield CheckResult("permissions", "error" if comments else "note", says, remedy)


def _concurrency(step: Step) -> Iterator[CheckResult]:
    given = step.job.get("concurrency", step.workflow.get("concurrency"))
    if not given:
        says = f"{step.path} has none: many runs at once wait for each other's writes"
        remedy = f"add `concurrency: {{group: precedent, cancel-in-progress: false}}` to {step.path}"
        yield CheckResult("concurrency", "warning", says, remedy)
    elif _mapping(given).get("cancel-in-progress") not in (None, False):
        says = f"{step.path} cancels runs in progress: what they were about to say is said a run later"
        yield CheckResult("concurrency", "warning", says, f"set `cancel-in-progress: false` in {step.path}")


def _inputs(step: Step) -> Iterator[CheckResult]:
    if is_dry(step):
        says = "dry-run is true for every event: nothing is remembered or said"
        yield CheckResult("inputs", "warning", says, f"take `dry-run: true` out of `with:` in {step.path}")
    for name in step.inputs.keys() - set(INPUTS):
        close = difflib.get_close_matches(name[:100], INPUTS, n=1)
        remedy = f'did you mean "{close[0]}"?' if close else f"known are {some(INPUTS, 20)}"
        says = f"{step.path} gives an input that there is not: {name:.60}"
        yield CheckResult("inputs", "warning", says, f"{remedy} Change it under `with:` in {step.path}")
    try:
        read_inputs({name: text for name, text in literal(step).items() if name != "token"})
    except SettingsError as error:
        yield CheckResult("inputs", "error", f"{step.path}: {error}", f"change it under `with:` in {step.path}")


def literal(step: Step) -> dict[str, str]:
    """The known inputs whose values stand in the workflow, not in an expression."""
    return {name: text for name, text in step.inputs.items() if name in INPUTS and text and "${{" not in text}


def is_dry(step: Step) -> bool:
    """Whether it only shows what it would write, whatever the event is."""
    return literal(step).get("dry-run", "").lower() == "true" and not step.has_condition


def _version(step: Step) -> Iterator[CheckResult]:
    if _PLACEHOLDER.search(step.uses):
        says = f"{step.path} uses {step.uses}: OWNER is the README's placeholder"
        yield CheckResult("version", "error", says, "put the account there that you use it from")


def check_discussions(
    told: GitHubFacts, settings: Settings, steps: Sequence[Step], held: InspectedMemory | None, place: RepositoryLinks
) -> Iterator[CheckResult]:
    """``held`` is None where memory cannot be read, which was said."""
    repository, answers = told.repository, settings.discussions.answer and settings.mode == "comment"
    if repository is None or not isinstance(repository.get("has_discussions"), bool):
        return
    if not repository["has_discussions"]:
        if answers:
            says = "discussions.answer is true, and the repository has no discussions"
            yield CheckResult("discussions", "note", says, f"switch them on: {place.page('settings')}")
        return
    many = "" if told.discussions is None else f", {told.discussions:,} in number"
    reading = held.manifest.discussions if held else None
    read = (
        "" if held is None else "; memory read all" if reading and reading.is_done else "; memory has not read all yet"
    )
    will = "answers them" if answers else "does not answer them"
    yield CheckResult("discussions", "ok", f"switched on{many}{read}; Precedent {will}")
    for step in steps:
        yield from _discussion_step(step, answers=answers)


def _discussion_step(step: Step, *, answers: bool) -> Iterator[CheckResult]:
    if missing := [name for name in ("discussion", "discussion_comment") if name not in events_of(step.workflow)]:
        says = f"{step.path} does not run on {' and '.join(missing)}: what happens there is remembered a day later"
        remedy = f"add {' and '.join(f'`{name}:`' for name in missing)} under `on:` in {step.path}"
        yield CheckResult("events", "warning" if answers and "discussion" in missing else "note", says, remedy)
    given = step.job.get("permissions", step.workflow.get("permissions"))
    if not isinstance(given, Mapping) or literal(step).get("dry-run", "").lower() == "true":
        return  # what it says of all permissions was told
    may = given.get("discussions")
    if answers and may != "write":
        says = f"the job in {step.path} may not write discussions, so that it cannot answer there"
        yield CheckResult("permissions", "error", says, f"add `discussions: write` to its `permissions` in {step.path}")
    elif may not in ("read", "write"):
        says = f"the job in {step.path} may not read discussions, so that they are not remembered"
        yield CheckResult("permissions", "note", says, f"add `discussions: read` to its `permissions` in {step.path}")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value).strip()
