"""What a run adds to the counters that all processes share."""

from __future__ import annotations

from collections.abc import Sequence

from bot.server.model import Result, RunReport

MOST_BEGUN = 20
NEVER_ENDED = f"it was begun {MOST_BEGUN} times and never ended"

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper ends in seconds of the histogram of stages; one more holds all that took longer."""

REASONS = (
    "memory has something to tell",
    "nothing in memory is close enough",
    "memory holds no older issue",
    "nothing was due",
    "it says that already",
    "it was said before",
    "it was looked at together with a later delivery",
    "what happened was looked at",
    "somebody switched it off on this issue",
    "a person deleted the comment",
    "a person edited the comment",
    "it is closed already",
    "the conversation is locked",
    "its author is a bot or ignored",
    "its author asked to be left alone",
    "it carries an ignored label",
    "pull requests are not answered",
    "the mode is off",
    "as many comments were written as one day may have",
    "asked to search",
    "asked about an issue",
    "asked what was said before",
    "asked for the commands",
    "an issue was called wrong here",
    "asked to say nothing more here",
    "asked to speak here again",
    "asked for a new answer",
    "the issue was forgotten",
    "it showed an issue that is forgotten",
    "only an administrator of the repository may ask for that",
    "the account's questions of this hour are used up",
    "only its author or who may write to the repository may ask for that",
    "what was asked was not understood",
    "GitHub takes no comment here",
    "the token may not do this",
    "the App is at work",
    "the App is not installed there any more",
    "the App is suspended there",
    "the App may not see this repository any more",
    "the repository was deleted",
    "the repository went to another account",
    NEVER_ENDED,
)
"""What an answer's reason is counted under: the one that it begins with, else "other"."""


def tally_run(results: Sequence[Result], report: RunReport) -> dict[tuple[str, tuple[str, ...]], float]:
    """What a run adds to the counters, by the names and labels under which they are shown."""
    failed = any(result.state == "waiting" for result in results)
    counted: dict[tuple[str, tuple[str, ...]], float] = {}

    def add(name: str, *labels: str, much: float = 1) -> None:
        counted[name, labels] = counted.get((name, labels), 0) + much

    add("precedent_turns_total", "again" if failed else "done")
    for result in results:
        if result.state != "waiting":
            add("precedent_answers_total", result.said or result.state, _short(result.reason))
    for stage, seconds in report.stages:
        add("precedent_stage_seconds_bucket", stage, _bucket(seconds))
        add("precedent_stage_seconds_sum", stage, much=seconds)
        add("precedent_stage_seconds_count", stage)
    if report.pushes:
        add("precedent_pushes_total", much=len(report.pushes))
    return counted


def _bucket(seconds: float) -> str:
    """The smallest bucket that holds it, which alone is counted: buckets are summed up where they are shown."""
    return next((str(end) for end in BUCKETS if seconds <= end), "+Inf")


def _short(reason: str) -> str:
    return next((known for known in REASONS if reason.startswith(known)), "other" if reason else "")
