"""What is to be seen after a campaign of kills: what was sent, killed and begun, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.server.model import Delivery
from tests.fakes.payloads import EventfulProject


@dataclass(frozen=True, slots=True)
class Sent:
    """An issue that was opened, and how the server answered when it was told."""

    id: str
    project: EventfulProject
    number: int
    status: int


@dataclass(frozen=True, slots=True)
class Kill:
    """``at``: milliseconds since 1970. ``workers``: what is in the names of those that ended by it, all for none."""

    at: int
    what: str
    workers: tuple[str, ...] = ()

    def ended(self, run: Run) -> bool:
        """Whether it may be what ended the run."""
        is_meant = not self.workers or any(name in run.worker for name in self.workers)
        return self.at >= run.began and is_meant


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the ledger; ``ended`` is 0 when its process was killed, and when it lost its lease."""

    repository: str
    began: int
    ended: int
    first: int = 0
    worker: str = ""


def name_of(command: Sequence[str], pid: int) -> str:
    """What is in the name of the worker with this command line, and in no other one's: whoever starts it gives it one,
    else it has its process id in it."""
    at = command.index("--name") + 1 if "--name" in command else 0
    return command[at] if at else f"-{pid}-"


def unfinished(sent: Sent, row: Delivery | None) -> str:
    """What is wrong with a delivery that was answered with 202, "" for nothing."""
    if row is None:
        return f"{sent.id} is lost"
    return "" if row.state == "done" else f"{sent.id} is {row.state}: {row.reason}"


def uncommented(sent: Sent, comments: int) -> str:
    """What is wrong with an issue; one that the server did not hear of may have none."""
    if comments == 1 or (comments == 0 and sent.status != 202):
        return ""
    return f"{sent.project.repo.full_name}#{sent.number} has {comments} comments of ours"


def overlapping(runs: Sequence[Run], kills: Sequence[Kill]) -> list[str]:
    """Runs of a repository that began while another one of it ran; one that was killed ran until then."""
    found = []
    for repository in sorted({run.repository for run in runs}):
        for before, after in pairwise(run for run in runs if run.repository == repository):
            end = before.ended or next((kill.at for kill in kills if kill.ended(before)), before.began)
            if after.began < end:
                found.append(f"two runs of {repository} ran at once, {end - after.began} ms")
    return found


def waits(runs: Sequence[Run], kills: Sequence[Kill]) -> list[float]:
    """For each run that was killed: seconds from the kill until its repository was begun anew."""
    found = []
    for run in runs:
        kill = next((kill for kill in kills if kill.ended(run)), None)
        if run.ended or kill is None:
            continue
        later = (after.began for after in runs if after.repository == run.repository and after.began > run.began)
        found.append((next(later, kill.at + 10**9) - kill.at) / 1000)
    return found
