"""Checks whether discussions are remembered, and answered where the settings ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bot.cli.checks.github import GitHubFacts, Step, events_of, literal
from bot.cli.checks.memory import InspectedMemory
from bot.cli.checks.result import CheckResult, RepositoryLinks
from bot.settings.schema import Settings


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
        yield from _step(step, answers=answers)


def _step(step: Step, *, answers: bool) -> Iterator[CheckResult]:
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
