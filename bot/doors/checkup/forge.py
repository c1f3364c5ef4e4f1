"""What is judged of the forge: the token, the repository, the limits of the API, the protection of the branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bot.doors.checkup.finding import Finding, age, moment
from bot.doors.checkup.memory import token_remedy
from bot.doors.checkup.place import REPOSITORY, Place
from bot.github.errors import ForgeError, Gone, NotPermitted, RateLimited, Unauthorised

LOW = 100
"""Requests left for an hour that may not be enough for a run that catches up; of small allowances a tenth."""

OF_A_JOB = "workflow"
"""The kind of token that each job of a workflow has, and an App."""

_KINDS = (
    ("ghs_", OF_A_JOB),
    ("ghp_", "classic"),
    ("github_pat_", "fine-grained"),
    ("gho_", "login"),
    ("ghu_", "login"),
)
"""https://docs.github.com/authentication/keeping-your-account-and-data-secure/about-authentication-to-github"""

_SCOPES = frozenset({"repo", "public_repo"})


@dataclass(frozen=True, slots=True)
class Forge:
    """What the API told. ``token`` is its kind, never the token; ``fault`` why the repository could not be read.

    ``scopes`` are those of a classic token, None where the API tells none. ``unreadable`` says why issues could not be
    read, ``changed`` when threads changed since the cursor. ``limits``, ``branch`` and ``runs``, the newest run of the
    workflow, are None where nobody could tell.
    """

    token: str = ""
    repository: Mapping[str, Any] | None = None
    fault: ForgeError | None = None
    scopes: frozenset[str] | None = None
    unreadable: ForgeError | None = None
    changed: tuple[datetime, ...] | None = None
    limits: Mapping[str, Any] | None = None
    branch: Mapping[str, Any] | None = None
    runs: Mapping[str, Any] | None = None


def kind_of(token: str) -> str:
    """What kind of token it is by its first letters, "" for none."""
    return next((kind for start, kind in _KINDS if token.startswith(start)), "unknown" if token else "")


def repository(seen: Forge, place: Place, *, git_reads: bool = False) -> Finding:
    """Whether the API answers, takes the token and shows the repository, under the name that was given.

    ``git_reads``: git could read it, so that a private one is no wrong name.
    """
    if git_reads and not seen.token and isinstance(seen.fault, Gone | NotPermitted | Unauthorised):
        says = f"the API shows nothing of {place.repository} without a token: issues, limits and changes were left out"
        return Finding("repository", "note", says, token_remedy(place))
    if seen.fault:
        return _fault(seen, seen.fault, place)
    name = str((seen.repository or {}).get("full_name") or place.repository)
    if name.lower() != place.repository.lower() and REPOSITORY.fullmatch(name):
        remedy = f"`git remote set-url {place.remote_name or 'origin'} {place.server}/{name}.git`"
        return Finding("repository", "warning", f"{place.repository} is called {name} now", remedy)
    return Finding("repository", "ok", f"{name} on {place.server}")


def _fault(seen: Forge, fault: ForgeError, place: Place) -> Finding:
    if isinstance(fault, Unauthorised) and seen.token:
        remedy = f"make a new token at {place.server}/settings/tokens and put it in PRECEDENT_TOKEN"
        return Finding("token", "error", fault.cause, remedy)
    if isinstance(fault, Gone | NotPermitted | Unauthorised):
        why = fault.cause if seen.token else "it is private, or does not exist"
        says = f"{place.repository} cannot be seen {'with this' if seen.token else 'without a'} token: {why}"
        return Finding("repository", "error", says, f"check the name; {token_remedy(place)}")
    if isinstance(fault, RateLimited):
        return Finding("rate limit", "warning", fault.cause, _later(fault.until), outside=True)
    says = f"the API at {place.api} does not answer: {fault.cause}"
    return Finding(
        "repository", "error", says, "run it again later, or with `precedent doctor --offline`", outside=True
    )


def _later(until: datetime | None) -> str:
    return f"run it again after {moment(until)}" if until else "run it again in a few minutes"


def issues(seen: Forge, place: Place) -> Finding:
    """Whether there are issues to remember and to comment on."""
    features = place.page("settings")
    told = seen.repository or {}
    if told.get("archived") is True:
        says = "the repository is archived: nothing can be written to it"
        return Finding("issues", "error", says, f"unarchive it, at the end of {features}")
    if told.get("has_issues") is False:
        return Finding("issues", "error", "issues are switched off", f"switch them on under Features: {features}")
    if isinstance(seen.unreadable, NotPermitted | Gone):
        remedy = f"give the token the permission issues: read at {place.server}/settings/tokens"
        return Finding("issues", "error", f"the token may not read them: {seen.unreadable.cause}", remedy)
    if seen.unreadable:
        says = f"they could not be read: {seen.unreadable.cause}"
        return Finding("issues", "warning", says, "run it again later", outside=True)
    return Finding("issues", "ok", "they can be read")


def rights(seen: Forge, place: Place) -> Finding:
    """What this token may write, as far as that can be told without writing. The Action has a token of its own."""
    if not seen.token:
        says = "none was given: what private repositories hold, and what a token may do, was left out"
        return Finding("token", "note", says, "put one in PRECEDENT_TOKEN, GH_TOKEN or GITHUB_TOKEN")
    if seen.token == OF_A_JOB:
        where = f"it stands in the log of each run, under Set up job, GITHUB_TOKEN Permissions: {place.page('actions')}"
        return Finding("token", "note", "accepted; what the token of a job may write cannot be asked for", where)
    allowed = (seen.repository or {}).get("permissions")
    if not isinstance(allowed, Mapping):
        return Finding("token", "ok", "accepted; the API does not tell what it may do")
    if seen.scopes is not None and not seen.scopes & _SCOPES:
        says = "accepted, with no scope to write: enough to look, not to act"
        return Finding("token", "note", says, f"for writing, give it the scope repo: {place.server}/settings/tokens")
    if not allowed.get("push"):
        says = "accepted; its account may read here and not write: enough to look, not to act"
        return Finding(
            "token", "note", says, "the Action writes with the token of its job: see the workflow's permissions"
        )
    limited = "" if seen.scopes is not None else ", unless the token itself was given less"
    return Finding("token", "ok", f"accepted; its account may write issues and contents{limited}")


def limits(seen: Forge, now: datetime) -> Iterator[Finding]:
    """What is left of the hour's requests of this token, for both APIs, and when the hour begins anew."""
    if seen.limits is None:
        yield Finding("rate limit", "ok", "the server tells of none")
        return
    resources = seen.limits.get("resources")
    for name in ("core", "graphql"):
        told = resources.get(name) if isinstance(resources, Mapping) else None
        if isinstance(told, Mapping) and all(_is_count(told.get(key)) for key in ("remaining", "limit", "reset")):
            yield _limit(name, told, now)


def _limit(name: str, told: Mapping[str, Any], now: datetime) -> Finding:
    left, most, until = told["remaining"], told["limit"], datetime.fromtimestamp(told["reset"], UTC)
    says = f"{name}: {left:,} of {most:,} requests left, anew at {moment(until)} (in {age(until - now)})"
    if most and left < min(LOW, most // 10):
        return Finding("rate limit", "warning", says, _later(until), outside=True)
    return Finding("rate limit", "ok", says)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**11


def protection(seen: Forge, place: Place, where: str) -> Iterator[Finding]:
    """Whether the branch of the memory is protected, or is no branch of its own. ``where`` its name is set."""
    default = (seen.repository or {}).get("default_branch")
    if default == place.branch:
        says = f"memory would be kept on {place.branch}, which is the default branch"
        remedy = f"set `branch` {where} to a name that nothing else uses, such as precedent"
        yield Finding("protection", "error", says, remedy)
    elif seen.branch is not None and seen.branch.get("protected") is True:
        remedy = (
            f"if runs fail with GH006 or GH013, leave {place.branch} out of the rules: {place.page('settings/rules')}"
        )
        yield Finding("protection", "note", f"{place.branch} is protected: the token of the workflow must pass", remedy)
    elif seen.branch is not None:
        yield Finding("protection", "ok", f"{place.branch} is not protected")
