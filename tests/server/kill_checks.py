"""What a campaign of kills leaves behind: deliveries, kills and runs, and the faults in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.server.model import Delivery
from tests.fakes.payloads import EventfulProject


@dataclass(frozen=True, slots=True)
class Sent:
    """An issue that was opened, and how the server answered its delivery."""

    id: str
    project: EventfulProject
    number: int
    status: int


@dataclass(frozen=True, slots=True)
class Kill:
    """``at`` is in milliseconds since 1970. ``workers`` are parts of the killed workers' names, empty for all."""

    at: int
    what: str
    workers: tuple[str, ...] = ()

    def may_have_ended(self, run: Run) -> bool:
        """Whether this kill may have ended the run."""
        is_targeted = not self.workers or any(name in run.worker for name in self.workers)
        return self.at >= run.began and is_targeted


@dataclass(frozen=True, slots=True)
class Run:
    """A run in the inbox; ``ended`` is 0 when its process was killed or it lost its lease."""

    repository: str
    began: int
    ended: int
    first: int = 0
    worker: str = ""


def name_of(command: Sequence[str], pid: int) -> str:
    """A unique part of the name of the worker with this command line: the name it was started with, or else its
    process id."""
    at = command.index("--name") + 1 if "--name" in command else 0
    return command[at] if at else f"-{pid}-"


def delivery_fault(sent: Sent, row: Delivery | None) -> str:
    """What is wrong with a delivery that was answered with 202, or ""."""
    if row is None:
        return f"{sent.id} is lost"
    return "" if row.state == "done" else f"{sent.id} is {row.state}: {row.reason}"


def comment_fault(sent: Sent, comments: int) -> str:
    """What is wrong with an issue's comments, or ""; an issue that the server never heard of may have none."""
    if comments == 1 or (comments == 0 and sent.status != 202):
        return ""
    return f"{sent.project.repo.full_name}#{sent.number} has {comments} comments of ours"


def overlap_faults(runs: Sequence[Run], kills: Sequence[Kill]) -> list[str]:
    """Runs of a repository that began during another run of it; a killed run lasts until its kill."""
    faults = []
    for repository in sorted({run.repository for run in runs}):
        for before, after in pairwise(run for run in runs if run.repository == repository):
            end = before.ended or next((kill.at for kill in kills if kill.may_have_ended(before)), before.began)
            if after.began < end:
                faults.append(f"two runs of {repository} ran at once, {end - after.began} ms")
    return faults


def restart_delays(runs: Sequence[Run], kills: Sequence[Kill]) -> list[float]:
    """For each killed run: seconds from the kill until the next run of its repository."""
    delays = []
    for run in runs:
        kill = next((kill for kill in kills if kill.may_have_ended(run)), None)
        if run.ended or kill is None:
            continue
        later = (after.began for after in runs if after.repository == run.repository and after.began > run.began)
        delays.append((next(later, kill.at + 10**9) - kill.at) / 1000)
    return delays
