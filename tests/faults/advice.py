# ruff: noqa: E501 - a piece of advice is a row
"""What the docs tell a maintainer about a run: what to do, and what happens by itself. The tables have the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults import git_faults, rebuilds
from tests.faults.fault_runs import Outcome
from tests.faults.table import (
    CHANGE,
    CREATE,
    HISTORY,
    LIST,
    MENTIONED,
    OWN,
    PROMISED,
    REPLY,
    SECONDARY_KINDS,
    THREAD,
    rules,
)

AFTER = {
    "now": "This run repairs it{}.",
    "later": "The next run{} catches up.",
    "never": "Nothing{}: the issue is remembered, but the comment is not tried again.",
}
CANCELLED = (
    "| nothing: the run is cancelled | grey | Nothing. | A newer run in the queue does its work. "
    "Only a deletion or transfer [may be missed](security.md#what-is-not-promised). |"
)
"""GitHub's queue is not simulated: in a concurrency group, it keeps only the newest waiting run."""


@dataclass(frozen=True)
class Advice:
    """``log_line`` is what the maintainer sees, ``remedy`` what to do. ``cells`` are pairs of a call and a fault, ``git``
    and ``rebuild`` rows of those tables: all must end alike, and ``log_line`` must contain what each of them says.
    ``condition`` must hold before anything happens by itself, ``extra`` follows it."""

    log_line: str
    remedy: str
    cells: tuple[tuple[str, str], ...] = ()
    git: tuple[str, ...] = ()
    rebuild: tuple[str, ...] = ()
    condition: str = ""
    extra: str = ""


def pairs_of(calls: tuple[str, ...], faults: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((call, fault) for call in calls for fault in faults)


OUTAGES = ("5xx", "dropped")
LIMITS = ("primary limit", "secondary limit")
ALL = (
    Advice("`GitHub refused the token (401)`; `git fetch: …` or `git push: …; check the token`",
           "Renew your own token; with the job's token, start the run again.",
           pairs_of((LIST, OWN, CREATE, CHANGE, REPLY), ("401",)), ("fetch: 401", "push: 401"), condition=" with a valid token"),
    Advice("`the token may not do this (403 …): give the job 'issues: write'`; `git push: …; give the job` … `contents: write`",
           "Give the job the permission named in the line.",
           pairs_of((LIST, OWN, PROMISED, CREATE, CHANGE, REPLY), ("permission",)), ("fetch: 403", "push: 403"), condition=" with the permission"),
    Advice("`GitHub's rate limit is exhausted until 13:00 UTC`", "Nothing.",
           (*pairs_of((LIST, OWN, MENTIONED, CREATE, CHANGE, REPLY), LIMITS), *pairs_of((LIST, CREATE), SECONDARY_KINDS),
            (HISTORY, "secondary limit")), rebuild=("primary limit", "limit with status 200", "secondary limit of an hour"),
           extra="Whatever was read is kept."),
    Advice("`GitHub answered 502: the next run catches up`; `GitHub did not answer …`; `git fetch: …` or `git push: …; check the network …`",
           "Nothing; see githubstatus.com.",
           (*pairs_of((LIST, OWN, CHANGE, REPLY, CREATE), OUTAGES), (THREAD, "5xx")), ("fetch: 5xx", "fetch: dropped", "push: 5xx", "push: 429")),
    Advice("nothing: GitHub did the work, but its answer was lost", "Nothing.",
           pairs_of((CREATE, REPLY), ("lost reply",)), ("push: lost reply",),
           extra="It looks for the comment first, so none is posted twice."),
    Advice("`git push: … GH006 …` or `… GH013 …`: a rule protects the branch",
           "Exclude `precedent` from the rule, let an App bypass it, or set `branch`.", git=("protected branch (GH006)", "ruleset (GH013)"),
           condition=" that may push"),
    Advice("`git push: … GH013 … Push cannot contain secrets …`: push protection finds a secret that belongs to no issue",
           "Let it through at the address in the line, or `/precedent forget` the issue with it.", git=("push protection",),
           condition=" after that", extra="For one in an issue, see [security](security.md#secrets)."),
    Advice("`git push: … was archived …`: the repository is archived", "Nothing, or unarchive it.", git=("archived repository",),
           condition=" after it is unarchived"),
    Advice("`GitHub accepts no comment here`: the conversation is locked, or comments are limited", "Nothing.",
           (*pairs_of((CREATE,), ("archived", "locked", "interaction limit", "2,500 comments")), (REPLY, "locked"))),
    Advice("`issues are switched off in this repository`", "Switch them on, or remove the workflow.",
           pairs_of((LIST, HISTORY), ("issues switched off",)), rebuild=("issues switched off",),
           condition=" after they are on", extra="Nothing is treated as deleted."),
    Advice("`the memory has format … which a newer Precedent wrote`", "Raise the version in the `uses:` of the workflow ([upgrades](upgrades.md)).", git=("newer format",),
           condition=" after the update", extra="The branch is not changed."),
    Advice("`There was no memory to continue from, …`, or nothing: the memory branch was deleted or reset",
           "Nothing; on a large repository start `rebuild`.", git=("branch deleted before", "branch deleted in the run", "branch set back before"),
           extra="Existing comments are found. A comment that somebody had deleted may be posted again."),
    Advice("`… was damaged …`, `… it was rebuilt …`", "Nothing.", git=("manifest missing", "index file cut", "record cut"),
           extra="It reads the lost part from GitHub or rebuilds it from the records."),
    Advice("`the place for the memory has … but no memory: choose another branch or folder`",
           "Set `branch`, or delete that branch.", git=("branch of another project",), condition=" after that"),
    Advice("``The history could not be read …: … Start `rebuild` again later``: a rebuild by hand", "Start it again later.", rebuild=("503", "dropped"),
           extra="Whatever was read is kept; if the line says so, scheduled runs continue."),
    Advice("`GitHub rejected the request (422 …)`", "Report it: this is a bug.", pairs_of((CREATE, CHANGE, REPLY), ("422",))),
)  # fmt: skip


def outcomes(advice: Advice) -> Iterator[tuple[str, Outcome | rebuilds.Row]]:
    """The named outcomes of everything that the advice covers."""
    rules_by_pair = {pair: rule for _, rule in rules() for pair in rule.pairs}
    for call, fault in advice.cells:
        rule = rules_by_pair[call, fault]
        while rule.like:
            rule = rules_by_pair[call, rule.like]
        assert rule.outcome, f"{call} x {fault} cannot happen"
        yield f"{call} x {fault}", rule.outcome
    git = {row.name: row.outcome for row in git_faults.ROWS}
    yield from ((name, git[name]) for name in advice.git)
    rebuild = {row.name: row for row in rebuilds.ROWS}
    yield from ((f"rebuild x {name}", rebuild[name]) for name in advice.rebuild)


def check_advice(advice: Advice) -> Iterator[str]:
    """Where the advice contradicts the tables."""
    named_outcomes = list(outcomes(advice))
    first = named_outcomes[0][1]
    for name, outcome in named_outcomes:
        if (outcome.code, outcome.done) != (first.code, first.done):
            yield f"{name} ends with {outcome.code}, {outcome.done}, and {named_outcomes[0][0]} with {first.code}, {first.done}"
        if outcome.says not in advice.log_line:
            yield f"{name} says {outcome.says!r}, which is not in {advice.log_line!r}"


def chapter() -> Iterator[str]:
    """The part of the page for maintainers."""
    yield "| what the log says | the run is | what you do | what happens by itself |"
    yield "|---|---|---|---|"
    for advice in ALL:
        outcome = next(outcome for _, outcome in outcomes(advice))
        consequence = " ".join(
            [AFTER[outcome.done].format(advice.condition), *([advice.extra] if advice.extra else [])]
        )
        yield f"| {advice.log_line} | {'red' if outcome.code else 'green'} | {advice.remedy} | {consequence} |"
    yield CANCELLED
    yield ""
