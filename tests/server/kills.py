"""Kill the server again and again while deliveries come in, and check that each one was answered exactly once.

python -m tests.server.kills [--kills 100] [--seed S] [--postgres] [--standin]

Issues are opened in several repositories whose history has an answer to them, and GitHub reports each to the server.
Meanwhile processes get SIGKILL: on SQLite the web process, its worker, or both; on PostgreSQL one of two workers that
run by themselves, each with a folder of its own. They start again within a second. At the end, each delivery that was
answered with 202 must be done (those that the server gave up after five kills are replayed), its issue must have one
comment of ours and a record in a sound memory, and an issue the server never heard of at most one comment.
--standin: with runs that do nothing, so without comments.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import secrets
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, cast

from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.server.inbox_rows import MOST_ALONE, NEVER_ENDED
from bot.server.model import WORKER, Delivery
from bot.server.queue import LEASE
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.kills.verdict import branch_faults
from tests.server import postgres
from tests.server.aftermath import Kill, Run, Sent, name_of, overlapping, uncommented, unfinished, waits
from tests.server.stage import APP, READY, SLUG, STANDIN, ServerStage, until

if TYPE_CHECKING:
    from tests.kills.repository import Repository

BRANCH = "precedent"
REPOSITORIES, SHARE = 12, 4
"""Least number of repositories, and of kills to each: none gets to the most comments of a day."""

EVERY = 0.7
"""Seconds between two deliveries, on average."""

BETWEEN = (1.0, 5.0)
"""Seconds between two kills."""

STARTING = 0.2
"""Share of the kills of the server that do not wait until its worker is at work."""

UNLIMITED = 10**9

PATIENCE = 240.0
"""Seconds at the end: a comment that was promised before a kill is left alone for two minutes."""

LONGEST = LEASE / 1000 + 15
"""Seconds from a kill until what it interrupted has to be begun anew, where another worker lives: a lease, and what a
busy machine takes to start a worker or to end another run.

Where the only one is killed every few seconds, often before it is at work, there is nobody to take over.
"""

AGO = 200 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Place:
    """A repository as `branch_faults` wants it: where it lies, what it is called."""

    bare: Path
    name: str

    def lacks(self, numbers: Iterable[int]) -> list[str]:
        """What is wrong with the memory of it, which should have these issues."""
        with BranchStore(str(self.bare), BRANCH, None) as store:
            memory = Memory(store, repo=self.name).open()
            known = {record.id for record in memory.state.every_record()}
            memory.close()
        lost = [f"the memory of {self.name} has no #{number}" for number in sorted(set(numbers) - known)]
        return lost + [f"{self.name}: {fault}" for fault in branch_faults(cast("Repository", self))]


@dataclass
class Campaign:
    """Deliveries and kills against one stage, with so many workers without a web part; 0 for one of the server's."""

    stage: ServerStage
    chance: random.Random
    machines: int
    hands: list[Popen[bytes]] = field(default_factory=list)
    projects: list[EventfulProject] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    given_up: list[Delivery] = field(default_factory=list)
    struck: float = 0.0
    """Seconds until the last kill."""

    def settle_down(self, repositories: int) -> None:
        """So many repositories, each with one decision in its past."""
        github = self.stage.github
        for resource in ("core", "graphql"):
            github.limits.set(UNLIMITED, resource=resource)  # more happens here than in an hour of most repositories
        past = from_epoch(github.clock.epoch - AGO)
        for number in range(repositories):
            project = github.add_project(f"octo-org/shop-{number}")
            self.stage.git.create(project.repo.full_name)
            project.open_issue("octocat", "Where should sessions live?", "Files are slow.", at=past)
            project.comment(1, "octocat", "We decided to go with Redis for the session store.", at=past)
            project.close(1, "octocat", at=past)
            self.stage.app.installations[APP].append(project.repo.id)
            self.projects.append(project)

    def send(self) -> None:
        """Open issues and tell of them until it is over."""
        chance = random.Random(self.chance.random())
        while not self.over.wait(chance.expovariate(1 / EVERY)):
            project = chance.choice(self.projects)
            number = project.open_issue("monalisa", "Which session store?", "What was decided in #1 about sessions?")
            payload = project.payload("issues", "opened", number, extra={"installation": {"id": APP}})
            if self.stage.module == STANDIN:  # its runs take as many tenths of a second as are above a hundred
                payload["issue"]["number"] = 100 + chance.randint(1, 20)
            sent = self.stage.github.hooks.deliver("issues", payload)
            self.sent.append(Sent(f"{APP}:{sent.guid}", project, number, sent.status))

    def strike(self) -> None:
        """One kill, and what is needed so that the server runs again."""
        time.sleep(self.chance.uniform(*BETWEEN))
        if self.hands:
            self.replace(self.chance.randrange(len(self.hands)))
            return
        is_starting = self.chance.random() < STARTING
        until(lambda: self.started() if is_starting else self.started() & self.at_work(), READY, self.stage.told)
        what = self.chance.choice(("web", "worker", "both"))
        pids = self.stage.children() if what != "web" else []
        self.note(what, pids or self.stage.children())
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if what != "worker":
            self.stage.stop(signal.SIGKILL)
            time.sleep(self.chance.uniform(0, 1))
            self.stage.start(1, wait=False)
            until(lambda: self.stage.get("/healthz")[0] == 200, READY, self.stage.told)

    def replace(self, place: int) -> None:
        """Kill the worker of this place, and start another one. Meanwhile one is at work that can take over."""
        others = [each for at, each in enumerate(self.hands) if at != place]
        until(lambda: {each.pid for each in others} & self.at_work(), READY, self.stage.told)
        self.note("worker", [self.hands[place].pid])
        self.hands[place].kill()
        self.hands[place].wait()
        time.sleep(self.chance.uniform(0, 1))
        self.hands[place] = self.stage.worker(place)

    def started(self) -> set[int]:
        return set(self.stage.children())

    def at_work(self) -> set[object]:
        """The ids of the workers that have said that they live; some may have been killed since."""
        with self.stage.inbox() as ledger:
            return {note["pid"] for name, (_, note) in ledger.heartbeats().items() if name.startswith(WORKER)}

    def note(self, what: str, pids: Sequence[int]) -> None:
        names = []
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended by itself
                command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
                names.append(name_of(command, pid))
        self.kills.append(Kill(time.time_ns() // 1_000_000, what, tuple(names)))

    def run(self, kills: int) -> None:
        """All of it; returns when everything is answered, or `PATIENCE` has run out."""
        self.settle_down(max(REPOSITORIES, kills // SHARE))
        self.hands += [self.stage.worker(place) for place in range(self.machines)]
        self.stage.start(0 if self.hands else 1)
        sending = threading.Thread(target=self.send, daemon=True)
        sending.start()
        began = time.monotonic()
        for number in range(kills):
            self.strike()
            print(f"\r{number + 1} kills, {len(self.sent)} deliveries", end="", flush=True)
        self.struck = time.monotonic() - began
        self.over.set()
        sending.join()
        end = time.monotonic() + PATIENCE
        while self.faults() and time.monotonic() < end:
            self.replay_given_up()
            time.sleep(1)

    def replay_given_up(self) -> None:
        """Replay the deliveries that were killed five times alone, as an operator would."""
        if dead := [row for row in self.stage.rows() if row.reason == NEVER_ENDED]:
            self.given_up += dead
            numbers = [str(row.seq) for row in dead]
            done = self.stage.run("deliveries", "replay", *numbers, "--why", "killed by the campaign")
            assert done.returncode == 0, done.stderr

    def given_up_early(self) -> list[str]:
        """Deliveries that were given up although fewer runs of their repository were killed since they arrived."""
        killed = [run for run in self.runs() if not run.ended]
        found = []
        for row in self.given_up:
            mine = [run for run in killed if run.repository == row.repository.text and run.began >= row.received_at]
            if len(mine) < MOST_ALONE:
                found.append(f"{row.id} was given up after {len(mine)} kills")
        return found

    def faults(self) -> list[str]:
        """What is wrong by now with the deliveries."""
        rows = {row.id: row for row in self.stage.rows()}
        found = [unfinished(each, rows.get(each.id)) for each in self.sent if each.status == 202]
        if self.stage.module != STANDIN:
            login = f"{SLUG}[bot]"
            found += [uncommented(each, len(each.project.comments_by(login, each.number))) for each in self.sent]
        return [fault for fault in found if fault] + self.stranded()

    def stranded(self) -> list[str]:
        """Repositories that have something to do and that no worker would look at."""
        sql = (
            "select distinct repository from deliveries where state in ('waiting', 'working')"
            " and repository not in (select key from queue)"
        )
        with self.stage.inbox() as ledger, ledger.database.transaction() as asking:
            return [f"{row['repository']} has deliveries and no key" for row in asking.rows(sql)]

    def forgotten(self) -> list[str]:
        """What is wrong with the memories, when everything is done."""
        found = []
        for project in self.projects if self.stage.module != STANDIN else ():
            numbers = [each.number for each in self.sent if each.project is project and each.status == 202]
            name = project.repo.full_name
            found += Place(self.stage.git.folder / f"{name}.git", name).lacks(numbers) if numbers else []
        return found

    def runs(self) -> list[Run]:
        """All runs, in the order in which they began."""
        sql = "select runs.*, (select min(seq) from deliveries where run = runs.id) as first from runs order by began"
        with self.stage.inbox() as ledger, ledger.database.transaction() as asking:
            return [
                Run(each["repository"], each["began"], each["ended"], int(each["first"] or 0), each["worker"])
                for each in asking.rows(sql)
            ]


def told(campaign: Campaign, seconds: float) -> list[str]:
    """The faults, after lines about what happened."""
    runs, kills = campaign.runs(), campaign.kills
    waited = waits(runs, kills)
    faults = [*campaign.faults(), *campaign.forgotten(), *campaign.given_up_early(), *overlapping(runs, kills)]
    late = [each for each in waited if each > LONGEST] if campaign.machines else []
    faults += [f"a repository was begun anew after {each:.1f} s" for each in late]
    answered = Counter(each.status for each in campaign.sent)
    each = campaign.struck / max(1, len(kills))
    print(f"\n{len(kills)} kills in {seconds:.0f} s, {each:.1f} s each: {dict(Counter(kill.what for kill in kills))}")
    print(f"{len(campaign.sent)} deliveries, answered with {dict(answered)}; {len(runs)} runs")
    if campaign.given_up:
        print(f"{len(campaign.given_up)} deliveries killed {MOST_ALONE} times alone, given up, and replayed at the end")
    if waited:
        middle = statistics.median(waited)
        print(f"{len(waited)} runs killed; begun anew after {middle:.1f} s (median), {max(waited):.1f} s (longest)")
    print(f"faults: {len(faults)}", *faults, sep="\n  ", flush=True)
    return faults


@contextlib.contextmanager
def stage(folder: Path, *, on_postgres: bool, standin: bool) -> Iterator[ServerStage]:
    """A stage over a database of its own."""
    with contextlib.ExitStack() as at_end:
        url = ""
        if on_postgres:
            server = postgres.start()
            at_end.callback(server.stop)
            url = at_end.enter_context(server.database())
        made = ServerStage(folder, STANDIN if standin else "bot", url)
        at_end.callback(made.close)
        yield made


def campaign(folder: Path, seed: int, kills: int, *, on_postgres: bool, standin: bool) -> list[str]:
    """The faults of one campaign."""
    began = time.monotonic()
    with stage(folder, on_postgres=on_postgres, standin=standin) as made:
        one = Campaign(made, random.Random(seed), machines=2 if on_postgres else 0)
        one.run(kills)
        return told(one, time.monotonic() - began)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31))
    options.add_argument("--postgres", action="store_true")
    options.add_argument("--standin", action="store_true")
    chosen = options.parse_args()
    logging.getLogger("bot").setLevel(logging.ERROR)  # the memories are read from folders, which gives warnings
    print(f"seed {chosen.seed}, {chosen.kills} kills", flush=True)
    with tempfile.TemporaryDirectory(prefix="precedent-kills-", ignore_cleanup_errors=True) as folder:
        faults = campaign(Path(folder), chosen.seed, chosen.kills, on_postgres=chosen.postgres, standin=chosen.standin)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
