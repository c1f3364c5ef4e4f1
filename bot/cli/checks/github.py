"""Checks of the token, the repository, its discussions, the API, the settings, and the workflow of the Action."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bot.cli.checks.memory import InspectedMemory
from bot.cli.checks.result import CheckResult, RepositoryLinks, abbreviate, format_time, token_remedy
from bot.domain.ages import age
from bot.github.errors import ForgeError, Gone, NotPermitted, RateLimited, Unauthorised
from bot.settings.schema import INPUTS, Settings, SettingsError, read_inputs
from bot.settings.yaml_file import load_plain, load_settings

LOW_QUOTA = 100
"""Remaining requests below which a catch-up run may fail; for small quotas, a tenth of the quota."""


@dataclass(frozen=True, slots=True)
class GitHubFacts:
    """Answers from the API. ``has_token``: a token was given; ``fault`` says why the repository could not be read.

    ``limits`` is None if the server has none. ``discussions`` is their number, None if unknown.
    """

    has_token: bool = False
    repository: Mapping[str, Any] | None = None
    fault: ForgeError | None = None
    limits: Mapping[str, Any] | None = None
    discussions: int | None = None


def check_repository(facts: GitHubFacts, target: RepositoryLinks, *, git_reads: bool = False) -> CheckResult:
    """Whether the API answers, accepts the token and shows the repository.

    ``git_reads``: git could read it, so the name is right.
    """
    if git_reads and not facts.has_token and isinstance(facts.fault, Gone | NotPermitted | Unauthorised):
        says = f"the API does not show {target.repository} without a token: its checks were skipped"
        return CheckResult("repository", "note", says, token_remedy(target))
    if facts.fault:
        return _explain_fault(facts, facts.fault, target)
    return CheckResult(
        "repository", "ok", f"{(facts.repository or {}).get('full_name') or target.repository} on {target.server}"
    )


def _explain_fault(facts: GitHubFacts, fault: ForgeError, target: RepositoryLinks) -> CheckResult:
    if isinstance(fault, Unauthorised) and facts.has_token:
        remedy = f"make a new token at {target.server}/settings/tokens and put it in PRECEDENT_TOKEN"
        return CheckResult("token", "error", fault.cause, remedy)
    if isinstance(fault, Gone | NotPermitted | Unauthorised):
        why = fault.cause if facts.has_token else "it is private, or does not exist"
        says = f"{target.repository} cannot be seen {'with this' if facts.has_token else 'without a'} token: {why}"
        return CheckResult("repository", "error", says, f"check the name; {token_remedy(target)}")
    if isinstance(fault, RateLimited):
        return CheckResult("rate limit", "warning", fault.cause, _retry_later(fault.until), outside=True)
    says = f"the API at {target.api} does not answer: {fault.cause}"
    return CheckResult(
        "repository", "error", says, "run it again later, or with `precedent doctor --offline`", outside=True
    )


def _retry_later(until: datetime | None) -> str:
    return f"run it again after {format_time(until)}" if until else "run it again in a few minutes"


def check_limits(facts: GitHubFacts, now: datetime) -> Iterator[CheckResult]:
    """Check how many requests this token has left in this hour, for both APIs."""
    if facts.limits is None:
        yield CheckResult("rate limit", "ok", "the server reports none")
        return
    resources = facts.limits.get("resources")
    for name in ("core", "graphql"):
        quota = resources.get(name) if isinstance(resources, Mapping) else None
        if isinstance(quota, Mapping) and all(_is_count(quota.get(key)) for key in ("remaining", "limit", "reset")):
            yield _check_quota(name, quota, now)


def _check_quota(name: str, quota: Mapping[str, Any], now: datetime) -> CheckResult:
    left, most, until = quota["remaining"], quota["limit"], datetime.fromtimestamp(quota["reset"], UTC)
    says = f"{name}: {left:,} of {most:,} requests left, reset at {format_time(until)} (in {age(until - now)})"
    if most and left < min(LOW_QUOTA, most // 10):
        return CheckResult("rate limit", "warning", says, _retry_later(until), outside=True)
    return CheckResult("rate limit", "ok", says)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**11


def read_config(data: bytes | None, name: str) -> tuple[Settings, CheckResult]:
    """The settings of the file, or the defaults if it is invalid, and a finding on it."""
    if data is None:
        return Settings(), CheckResult("settings", "ok", f"no {name}: all settings are the defaults")
    try:
        return load_settings(data, name), CheckResult("settings", "ok", f"{name} is valid")
    except SettingsError as error:
        file = name if re.fullmatch(r"[\w./][\w./-]{0,199}", name, re.ASCII) else "FILE"
        remedy = f"fix that line, and check it with `precedent doctor --config {file}` before you push it"
        return Settings(), CheckResult("settings", "error", str(error), remedy)


WORKFLOW_FOLDER = ".github/workflows"
WORKFLOW_PATH = f"{WORKFLOW_FOLDER}/precedent.yml"
REQUIRED_EVENTS: Mapping[str, tuple[str, ...]] = {
    "issues": ("opened", "edited", "closed", "reopened", "deleted", "transferred"),
    "issue_comment": ("created", "edited", "deleted"),
}
"""Events without which memory lags behind, each with the activity types that bring something new."""

_PRECEDENT_ACTION = re.compile(r"(?:docker://)?(?:[\w.-]{1,100}/){1,4}precedent(?:[@:][\w./:@-]{1,200})?", re.ASCII)
_OTHER_ACTION = re.compile(r"(?!actions/)[\w-]{1,39}/[\w.-]{1,100}@[\w./-]{1,200}", re.ASCII)
"""Any Action but those of GitHub: in the workflow that `precedent init` writes, it is a fork with another name."""

_PLACEHOLDER = re.compile(r"(?:\A|/)OWNER/", re.ASCII)


@dataclass(frozen=True, slots=True)
class Step:
    """A step that runs the Action, with its job and its workflow, which is in the file ``path``.

    ``has_condition``: the step or its job has an ``if``.
    """

    path: str
    workflow: Mapping[str, Any]
    job: Mapping[str, Any]
    uses: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    has_condition: bool = False


def find_workflows(files: Mapping[str, bytes], *, is_ours: bool) -> tuple[list[Step], list[CheckResult]]:
    """The steps that run the Action in these workflows, and a finding for each unreadable workflow that may hold one.

    ``is_ours``: this is the Action's own repository, where ``uses: ./`` runs it.
    """
    steps: list[Step] = []
    wrong = []
    for path in sorted(files):
        try:
            steps += _find_steps(path, load_plain(files[path], path), is_ours=is_ours)
        except SettingsError as error:
            if b"precedent" in files[path].lower():
                wrong.append(CheckResult("workflow", "warning", f"cannot be read: {error}", f"fix that line of {path}"))
    return steps, wrong


def _find_steps(path: str, workflow: object, *, is_ours: bool) -> Iterator[Step]:
    top = _as_mapping(workflow)
    for job in map(_as_mapping, _as_mapping(top.get("jobs")).values()):
        for step in map(_as_mapping, _as_list(job.get("steps"))):
            uses = str(step.get("uses") or "")
            is_fork = path == WORKFLOW_PATH and _OTHER_ACTION.fullmatch(uses)
            if is_fork or _PRECEDENT_ACTION.fullmatch(uses) or (is_ours and uses in ("./", ".")):
                inputs = {str(name): _as_text(value) for name, value in _as_mapping(step.get("with")).items()}
                yield Step(path, top, job, uses, inputs, "if" in step or "if" in job)


def check_workflow(
    steps: Sequence[Step], *, comments: bool, is_checkout: bool = False, unread: bool = False
) -> Iterator[CheckResult]:
    """Check each step. ``comments``: the settings ask for comments, not only summaries; ``is_checkout``: the files are
    those of a checkout, which may differ from the default branch; ``unread``: another finding reports an unreadable
    workflow that may hold a step."""
    if not (steps or unread):
        where = "of this checkout" if is_checkout else "on the default branch"
        says = f"none of the files in {WORKFLOW_FOLDER} {where} uses Precedent"
        remedy = f"put the workflow of the README on the default branch, as {WORKFLOW_PATH}"
        yield CheckResult("workflow", "warning" if is_checkout else "error", says, remedy)
    for step in steps:
        findings = [
            *_check_events(step),
            *_check_permissions(step, comments),
            *_check_concurrency(step),
            *_check_inputs(step),
            *_check_version(step),
        ]
        if not any(each.is_problem for each in findings):
            findings.insert(0, CheckResult("workflow", "ok", f"{step.path} is set up correctly"))
        yield from findings


def next_issue(mode: str, steps: Sequence[Step]) -> Iterator[CheckResult]:
    """What will happen at the next issue, in one sentence; ``mode`` is that of the settings and the inputs."""
    if not steps:
        return  # another check reports that nothing runs
    step, given = steps[0], steps[0].inputs.get("mode", "")
    if is_dry(step):
        says = "Nothing happens at the next issue: the workflow has dry-run: true."
    elif "${{" in given:
        says = f"Whether the next issue gets a comment is decided when {step.path} runs: its mode is an expression."
    else:
        source = f"an input in {step.path}, which outranks the settings" if given else "of the settings"
        yield CheckResult("next issue", "ok", f"{_AT_THE_NEXT_ISSUE[mode]} (mode: {mode}, {source})")
        return
    yield CheckResult("next issue", "note", says)


_AT_THE_NEXT_ISSUE = {
    "comment": "The next issue that resembles a closed one gets a comment.",
    "summary": "The next issue that resembles a closed one gets no comment: it is only shown in the job summary.",
    "off": "The next issue gets no answer: Precedent only remembers it.",
}


def _check_events(step: Step) -> Iterator[CheckResult]:
    events = events_of(step.workflow)
    for name, expected_types in REQUIRED_EVENTS.items():
        if name not in events:
            says = f"{step.path} does not run on {name}: what happens there is remembered a day later"
            yield CheckResult("events", "warning", says, f"add `{name}:` under `on:` in {step.path}")
            continue
        types = _as_mapping(events[name]).get("types")
        missing = [kind for kind in expected_types if types is not None and kind not in map(_as_text, _as_list(types))]
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
    """The events that trigger the workflow, with their configuration."""
    events = workflow.get("on")
    if isinstance(events, Mapping):
        return dict(events)
    return {_as_text(name): None for name in _as_list(events)}


def _check_permissions(step: Step, comments: bool) -> Iterator[CheckResult]:
    permissions = step.job.get("permissions", step.workflow.get("permissions"))
    remedy = f"give the job `permissions:` with `contents: write` and `issues: write` in {step.path}"
    if permissions is None:
        says = f"{step.path} sets none, so a setting of the repository decides"
        yield CheckResult("permissions", "warning", says, remedy)
        return
    if permissions == "write-all":
        says = f"{step.path} gives the job all of them; it needs contents and issues"
        yield CheckResult("permissions", "note", says, remedy)
        return
    if literal_inputs(step).get("dry-run", "").lower() == "true":
        return  # it writes nothing, so it needs no permission
    missing = [name for name in ("contents", "issues") if _as_mapping(permissions).get(name) != "write"]
    if "contents" in missing:
        says = f"the job in {step.path} may not write contents, where memory is kept"
        yield CheckResult("permissions", "error", says, f"add `contents: write` to its `permissions` in {step.path}")
    if "issues" in missing:
        says = f"the job in {step.path} may not write issues, so it cannot comment"
        remedy = f"add `issues: write` to its `permissions` in {step.path}"
        yield CheckResult("permissions", "error" if comments else "note", says, remedy)


def _check_concurrency(step: Step) -> Iterator[CheckResult]:
    concurrency = step.job.get("concurrency", step.workflow.get("concurrency"))
    if not concurrency:
        says = f"{step.path} has none: many runs at once wait for each other's writes"
        remedy = f"add `concurrency: {{group: precedent, cancel-in-progress: false}}` to {step.path}"
        yield CheckResult("concurrency", "warning", says, remedy)
    elif _as_mapping(concurrency).get("cancel-in-progress") not in (None, False):
        says = f"{step.path} cancels runs in progress: what they were about to post waits for the next run"
        yield CheckResult("concurrency", "warning", says, f"set `cancel-in-progress: false` in {step.path}")


def _check_inputs(step: Step) -> Iterator[CheckResult]:
    if is_dry(step):
        says = "dry-run is true for every event: nothing is remembered or said"
        yield CheckResult("inputs", "warning", says, f"remove `dry-run: true` from `with:` in {step.path}")
    for name in step.inputs.keys() - set(INPUTS):
        close = difflib.get_close_matches(name[:100], INPUTS, n=1)
        remedy = f'did you mean "{close[0]}"?' if close else f"the inputs are {abbreviate(INPUTS, 20)}."
        says = f"{step.path} has an unknown input: {name:.60}"
        yield CheckResult("inputs", "warning", says, f"{remedy} Change it under `with:` in {step.path}")
    try:
        read_inputs({name: text for name, text in literal_inputs(step).items() if name != "token"})
    except SettingsError as error:
        yield CheckResult("inputs", "error", f"{step.path}: {error}", f"change it under `with:` in {step.path}")


def literal_inputs(step: Step) -> dict[str, str]:
    """The known inputs with literal values, not expressions."""
    return {name: text for name, text in step.inputs.items() if name in INPUTS and text and "${{" not in text}


def is_dry(step: Step) -> bool:
    """Whether it is always a dry run, whatever the event."""
    return literal_inputs(step).get("dry-run", "").lower() == "true" and not step.has_condition


def _check_version(step: Step) -> Iterator[CheckResult]:
    if _PLACEHOLDER.search(step.uses):
        says = f"{step.path} uses {step.uses}: OWNER is the README's placeholder"
        yield CheckResult("version", "error", says, "replace OWNER with the account that you use it from")


def check_discussions(
    facts: GitHubFacts,
    settings: Settings,
    steps: Sequence[Step],
    memory: InspectedMemory | None,
    target: RepositoryLinks,
) -> Iterator[CheckResult]:
    """``memory`` is None if it cannot be read, which another finding reports."""
    repository, answers = facts.repository, settings.discussions.answer and settings.mode == "comment"
    if repository is None or not isinstance(repository.get("has_discussions"), bool):
        return
    if not repository["has_discussions"]:
        if answers:
            says = "discussions.answer is true, but the repository has no discussions"
            yield CheckResult("discussions", "note", says, f"switch them on: {target.page('settings')}")
        return
    count_note = "" if facts.discussions is None else f", {facts.discussions:,} in all"
    reading = memory.manifest.discussions if memory else None
    reading_note = (
        ""
        if memory is None
        else "; memory has read them all"
        if reading and reading.is_done
        else "; memory has not read them all yet"
    )
    answer_note = "answers them" if answers else "does not answer them"
    yield CheckResult("discussions", "ok", f"switched on{count_note}{reading_note}; Precedent {answer_note}")
    for step in steps:
        yield from _check_discussion_step(step, answers=answers)


def _check_discussion_step(step: Step, *, answers: bool) -> Iterator[CheckResult]:
    if missing := [name for name in ("discussion", "discussion_comment") if name not in events_of(step.workflow)]:
        says = f"{step.path} does not run on {' and '.join(missing)}: what happens there is remembered a day later"
        remedy = f"add {' and '.join(f'`{name}:`' for name in missing)} under `on:` in {step.path}"
        yield CheckResult("events", "warning" if answers and "discussion" in missing else "note", says, remedy)
    permissions = step.job.get("permissions", step.workflow.get("permissions"))
    if not isinstance(permissions, Mapping) or literal_inputs(step).get("dry-run", "").lower() == "true":
        return  # another check reports on the permissions as a whole
    may = permissions.get("discussions")
    if answers and may != "write":
        says = f"the job in {step.path} may not write discussions, so it cannot answer there"
        yield CheckResult("permissions", "error", says, f"add `discussions: write` to its `permissions` in {step.path}")
    elif may not in ("read", "write"):
        says = f"the job in {step.path} may not read discussions, so they are not remembered"
        yield CheckResult("permissions", "note", says, f"add `discussions: read` to its `permissions` in {step.path}")


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _as_list(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value).strip()
