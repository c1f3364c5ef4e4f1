"""What a plan says to a person: the changes, what each permission and trigger is for, and what comes next."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from bot.comment.visible import clean, one_line
from bot.doors.setup.files import MAX_BYTES
from bot.doors.setup.plan import File, Plan
from bot.doors.setup.written import PLACEHOLDER, WORKFLOW, permissions, triggers

NEVER = (
    "It closes, labels and assigns nothing, mentions nobody and calls nothing a duplicate.",
    "It writes no second comment on an issue unasked, and runs no code of the repository.",
    "It sends nothing anywhere but to this repository.",
)
_STATES = {
    "new": "Would write {}:",
    "replaced": "Would replace {}:",
    "differs": "{} is there and differs; it is left as it is without --force:",
    "kept": "{} is there; it is yours, and stays as it is.",
    "same": "{} is already so.",
}
_WRITTEN = {"new": "wrote {}", "replaced": "replaced {}", "kept": "{} stays as it is", "same": "{} is already so"}


def tell(plan: Plan) -> str:
    """Everything that would be done, and why."""
    text = plan.files[0].text
    parts = [[_place(plan)], *([*_change(file)] for file in plan.files)]
    parts += [
        ["Its job may do this, and nothing else:", *_pairs(permissions(text))],
        ["It runs on:", *_pairs(triggers(text))],
        [*_memory(plan)],
        ["What it never does:", *(f"  {line}" for line in NEVER)],
    ]
    if said := notes(plan):
        parts.append(["To know:", *(f"  - {line}" for line in said)])
    parts.append([*_next(plan)])
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts)


def tell_written(plan: Plan) -> str:
    """What became of each file, and what comes next."""
    lines = [_WRITTEN[file.state].format(file.path) for file in plan.files]
    if any(file.is_written for file in plan.files):
        lines += [*(f"note: {line}" for line in notes(plan)), "", "Next:", *_numbered(after(plan))]
    return "".join(f"{line}\n" for line in lines)


def as_data(plan: Plan, *, written: bool) -> dict[str, object]:
    """The plan as JSON has it; ``written``: it was carried out."""
    text = plan.files[0].text
    return {
        "root": clean(str(plan.place.top)),
        "repository": plan.place.repository,
        "server": plan.place.server,
        "remote": clean(plan.place.remote),
        "default_branch": clean(plan.place.main),
        "memory_branch": plan.settings.branch,
        "mode": plan.mode,
        "action": plan.choice.action,
        "written": written,
        "refused": clean(plan.refused),
        "files": [{"path": file.path, "state": file.state, "content": file.text} for file in plan.files],
        "permissions": permissions(text),
        "triggers": triggers(text),
        "notes": notes(plan),
        "next": after(plan),
    }


def notes(plan: Plan) -> list[str]:
    """What the person should know before it is written, each in one line."""
    return [one_line(line) for line in (*_about_action(plan), *_about_place(plan), *_about_doctor(plan))]


def after(plan: Plan) -> list[str]:
    """What to do once the files are there."""
    place, paths = plan.place, " ".join(file.path for file in plan.files)
    steps = [f"git add {paths} && git commit -m 'Precedent remembers the issues' && git push"]
    if place.is_fork and place.repository:
        steps.append(
            f"open a pull request to {place.main} of {place.repository}: GitHub starts these events there only"
        )
    elif place.current != place.main:
        steps.append(f"bring that to {place.main}: GitHub starts these events from there only")
    if not plan.choice.minimal:
        page = f"{place.server}/{place.repository}/actions/workflows/precedent.yml" if place.repository else ""
        where = f": {page}" if page else " (Actions, Precedent, Run workflow)"
        steps.append(f"start it by hand with rebuild, which reads the history, then with backtest{where}")
    steps.append("precedent doctor, which looks whether all of it is set up as it should be")
    if plan.choice.mode == "summary":
        steps.append(f"look at the job summaries; to let it comment, take the line `mode: summary` out of {WORKFLOW}")
    return [one_line(step) for step in steps]


def _next(plan: Plan) -> Iterator[str]:
    if plan.refused or any(file.is_written for file in plan.files):
        source = " --action OWNER/precedent@COMMIT" if plan.choice.action == PLACEHOLDER else ""
        again = f"the same command with --write{source}" + (
            ", once what is said below is settled" if plan.refused else ""
        )
        yield from ("Nothing was written. Next:", *_numbered([again, *after(plan)]))
    else:
        yield from ("All of it is there; nothing is to be written. What comes next, where it is not done:",)
        yield from _numbered(after(plan))


def _place(plan: Plan) -> str:
    place = plan.place
    host = urlsplit(place.server).netloc
    known = f"{place.repository} on {host}, the remote {place.remote},"
    whose = known if place.repository else "a repository that no remote names,"
    return one_line(f"Precedent for {whose} in {place.top}; the default branch is {place.main}.")


def _change(file: File) -> Iterator[str]:
    yield _STATES[file.state].format(file.path)
    if file.state in ("kept", "same"):
        return
    if file.before is not None and len(file.before) > MAX_BYTES:
        yield "  (the file that is there is larger than a workflow, and is not shown)"
        return
    old = (file.before or b"").decode("utf-8", "replace").split("\n")[:-1] if file.before is not None else []
    names = (f"a/{file.path}" if old else "/dev/null", f"b/{file.path}")
    for line in difflib.unified_diff(old, file.text.split("\n")[:-1], *names, lineterm=""):
        yield clean(line).replace("\n", "\N{SYMBOL FOR NEWLINE}")


def _pairs(reasons: Mapping[str, str]) -> list[str]:
    width = max(map(len, reasons))
    return [f"  {name:<{width}}  {why}" for name, why in reasons.items()]


def _numbered(steps: list[str]) -> list[str]:
    return [f"  {at}. {step}" for at, step in enumerate(steps, 1)]


def _memory(plan: Plan) -> Iterator[str]:
    branch = plan.settings.branch
    yield f"The memory will be the branch {branch} of this repository, which the first run makes;"
    yield f"git push origin --delete {branch} removes it."
    if plan.mode == "comment":
        yield "It answers in comments."
    else:
        yield f"The mode is {plan.mode}: nothing is posted" + (
            ", each run's job summary has what it would have said." if plan.mode == "summary" else "."
        )


def _about_action(plan: Plan) -> Iterator[str]:
    if not plan.is_named:
        yield (
            f"{PLACEHOLDER} is a placeholder, and no release is tagged yet: name the account that you use it from and "
            "the full id of a commit with --action OWNER/precedent@COMMIT; the newest one is printed by "
            "git ls-remote https://github.com/OWNER/precedent HEAD"
        )


def _about_place(plan: Plan) -> Iterator[str]:
    place = plan.place
    if not place.repository:
        told = f"the remote {place.remote} is" if place.remote else "there is no remote that is"
        yield f"{told} {'no' if place.remote else 'a'} repository on a GitHub server: what is written is for github.com"
    elif not place.hosted:
        yield (
            f"{urlsplit(place.server).netloc} is taken for a GitHub Enterprise Server: the Action or its image has to "
            "be mirrored there, and runs-on has to name labels of your runners (docs/workflows.md)"
        )
    if not place.is_noted and not plan.choice.minimal:
        asks = f"git remote set-head {place.remote or 'origin'} --auto"
        yield f"{place.main} was taken for the default branch: `{asks}` has git ask"
    for name in place.docs:
        yield f'{name}/ has Markdown that is not read: add "{name}/**/*.md" to pages.docs in .github/precedent.yml'
    yield "in a private repository, add `pull-requests: read` to have files of fixes and releases told"


def _about_doctor(plan: Plan) -> Iterator[str]:
    for each in plan.findings:
        if each.level != "ok" and (plan.is_named or each.check != "version"):
            yield f"precedent doctor will say: {each.says} ({each.remedy})"
