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

from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.server.inbox_rows import MAX_SOLO_ATTEMPTS, NEVER_ENDED
from bot.server.model import WORKER_PREFIX, Delivery
from bot.server.queue import LEASE_DURATION
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.invariants import broken_objects, memory_faults
from tests.server import postgres
from tests.server.kill_checks import (
    Kill,
    Run,
    Sent,
    comment_fault,
    delivery_fault,
    name_of,
    overlap_faults,
    restart_delays,
)
from tests.server.server_process import APP, READY, SLUG, STANDIN, ServerStage, until

BRANCH = "precedent"
REPOSITORIES, SHARE = 12, 4
"""Minimum of repositories, and kills per repository: so none reaches the daily comment limit."""

EVERY = 0.7
"""Seconds between two deliveries, on average."""

BETWEEN = (1.0, 5.0)
"""Seconds between two kills."""

STARTING = 0.2
"""Share of the kills of the server that do not wait for its worker to be ready."""

UNLIMITED = 10**9

PATIENCE = 240.0
"""Seconds to wait at the end: a comment that was pending at a kill is left alone for two minutes."""

LONGEST = LEASE_DURATION / 1000 + 15
"""Maximum seconds from a kill until the interrupted work restarts on another worker: a lease, and what a busy machine
takes to start a worker or to end another run.

It does not apply to a single worker that is killed every few seconds: nobody can take over.
"""

HISTORY_AGE = 200 * 24 * 3600


@dataclass(frozen=True, slots=True)
class MemoryBranch:
    """The memory branch of a repository: its path and its name."""

    bare: Path
    name: str

    def faults(self, numbers: Iterable[int]) -> list[str]:
        """What is wrong with its memory, which should contain these issues."""
        with BranchStore(str(self.bare), BRANCH, None) as store:
            memory = Memory(store, repo=self.name).open()
            remembered = {record.id for record in memory.state.every_record()}
            faults = [f"no #{number}" for number in sorted(set(numbers) - remembered)] + list(memory_faults(memory))
        return [f"the memory of {self.name}: {fault}" for fault in (*faults, *broken_objects(self.bare))]


@dataclass
class Campaign:
    """Deliveries and kills against one stage; with ``worker_count`` 0, the server starts its own worker."""

    stage: ServerStage
    rng: random.Random
    worker_count: int
    workers: list[Popen[bytes]] = field(default_factory=list)
    projects: list[EventfulProject] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    finished: threading.Event = field(default_factory=threading.Event)
    replayed: list[Delivery] = field(default_factory=list)
    killing_seconds: float = 0.0
    """Seconds from the start until the last kill."""

    def create_repositories(self, repositories: int) -> None:
        """Create repositories, each with one decision in its past."""
        github = self.stage.github
        for resource in ("core", "graphql"):
            github.limits.set(UNLIMITED, resource=resource)  # more happens here than in an hour of most repositories
        past = from_epoch(github.clock.epoch - HISTORY_AGE)
        for number in range(repositories):
            project = github.add_project(f"octo-org/shop-{number}")
            self.stage.git.create(project.repo.full_name)
            project.open_issue("octocat", "Where should sessions live?", "Files are slow.", at=past)
            project.comment(1, "octocat", "We decided to go with Redis for the session store.", at=past)
            project.close(1, "octocat", at=past)
            self.stage.app.installations[APP].append(project.repo.id)
            self.projects.append(project)

    def send(self) -> None:
        """Open issues and deliver their events until the campaign is over."""
        rng = random.Random(self.rng.random())
        while not self.finished.wait(rng.expovariate(1 / EVERY)):
            project = rng.choice(self.projects)
            number = project.open_issue("monalisa", "Which session store?", "What was decided in #1 about sessions?")
            payload = project.payload("issues", "opened", number, extra={"installation": {"id": APP}})
            if self.stage.module == STANDIN:  # run time in tenths of a second, plus 100
                payload["issue"]["number"] = 100 + rng.randint(1, 20)
            sent = self.stage.github.hooks.deliver("issues", payload)
            self.sent.append(Sent(f"{APP}:{sent.guid}", project, number, sent.status))

    def kill_once(self) -> None:
        """Kill something once, and restart what was killed."""
        time.sleep(self.rng.uniform(*BETWEEN))
        if self.workers:
            self.replace(self.rng.randrange(len(self.workers)))
            return
        is_starting = self.rng.random() < STARTING
        until(
            lambda: self.child_pids() if is_starting else self.child_pids() & self.live_worker_pids(),
            READY,
            self.stage.log_text,
        )
        what = self.rng.choice(("web", "worker", "both"))
        pids = self.stage.children() if what != "web" else []
        self.record_kill(what, pids or self.stage.children())
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if what != "worker":
            self.stage.stop(signal.SIGKILL)
            time.sleep(self.rng.uniform(0, 1))
            self.stage.start(1, wait=False)
            until(lambda: self.stage.get("/healthz")[0] == 200, READY, self.stage.log_text)

    def replace(self, number: int) -> None:
        """Kill and replace the worker of this number, once another one that can take over is at work."""
        others = [worker for index, worker in enumerate(self.workers) if index != number]
        until(lambda: {worker.pid for worker in others} & self.live_worker_pids(), READY, self.stage.log_text)
        self.record_kill("worker", [self.workers[number].pid])
        self.workers[number].kill()
        self.workers[number].wait()
        time.sleep(self.rng.uniform(0, 1))
        self.workers[number] = self.stage.start_worker(number)

    def child_pids(self) -> set[int]:
        return set(self.stage.children())

    def live_worker_pids(self) -> set[object]:
        """The process ids of the workers with a heartbeat; some may have been killed since."""
        with self.stage.inbox() as inbox:
            return {note["pid"] for name, (_, note) in inbox.heartbeats().items() if name.startswith(WORKER_PREFIX)}

    def record_kill(self, what: str, pids: Sequence[int]) -> None:
        names = []
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended by itself
                command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
                names.append(name_of(command, pid))
        self.kills.append(Kill(time.time_ns() // 1_000_000, what, tuple(names)))

    def run(self, kills: int) -> None:
        """Run the campaign; returns when everything is answered, or `PATIENCE` has run out."""
        self.create_repositories(max(REPOSITORIES, kills // SHARE))
        self.workers += [self.stage.start_worker(number) for number in range(self.worker_count)]
        self.stage.start(0 if self.workers else 1)
        sending = threading.Thread(target=self.send, daemon=True)
        sending.start()
        began = time.monotonic()
        for number in range(kills):
            self.kill_once()
            print(f"\r{number + 1} kills, {len(self.sent)} deliveries", end="", flush=True)
        self.killing_seconds = time.monotonic() - began
        self.finished.set()
        sending.join()
        end = time.monotonic() + PATIENCE
        while self.faults() and time.monotonic() < end:
            self.replay_dead()
            time.sleep(1)

    def replay_dead(self) -> None:
        """Replay the deliveries whose runs were killed five times while alone, as an operator would."""
        if dead := [row for row in self.stage.rows() if row.reason == NEVER_ENDED]:
            self.replayed += dead
            numbers = [str(row.seq) for row in dead]
            done = self.stage.run("deliveries", "replay", *numbers, "--why", "killed by the campaign")
            assert done.returncode == 0, done.stderr

    def replayed_too_early(self) -> list[str]:
        """Deliveries that were given up after too few killed runs of their repository."""
        killed = [run for run in self.runs() if not run.ended]
        faults = []
        for row in self.replayed:
            own_runs = [run for run in killed if run.repository == row.repository.text and run.began >= row.received_at]
            if len(own_runs) < MAX_SOLO_ATTEMPTS:
                faults.append(f"{row.id} was given up after {len(own_runs)} kills")
        return faults

    def faults(self) -> list[str]:
        """What is still wrong with the deliveries."""
        rows = {row.id: row for row in self.stage.rows()}
        all_faults = [delivery_fault(each, rows.get(each.id)) for each in self.sent if each.status == 202]
        if self.stage.module != STANDIN:
            login = f"{SLUG}[bot]"
            all_faults += [comment_fault(each, len(each.project.comments_by(login, each.number))) for each in self.sent]
        return [fault for fault in all_faults if fault] + self.stranded()

    def stranded(self) -> list[str]:
        """Repositories with open deliveries that no worker would look at."""
        sql = (
            "select distinct repository from deliveries where state in ('waiting', 'working')"
            " and repository not in (select key from queue)"
        )
        with self.stage.inbox() as inbox, inbox.database.transaction() as transaction:
            return [f"{row['repository']} has deliveries and no key" for row in transaction.rows(sql)]

    def memory_faults(self) -> list[str]:
        """What is wrong with the memories after everything is done."""
        faults = []
        for project in self.projects if self.stage.module != STANDIN else ():
            numbers = [each.number for each in self.sent if each.project is project and each.status == 202]
            name = project.repo.full_name
            faults += MemoryBranch(self.stage.git.folder / f"{name}.git", name).faults(numbers) if numbers else []
        return faults

    def runs(self) -> list[Run]:
        """All runs, in the order in which they began."""
        sql = "select runs.*, (select min(seq) from deliveries where run = runs.id) as first from runs order by began"
        with self.stage.inbox() as inbox, inbox.database.transaction() as transaction:
            return [
                Run(each["repository"], each["began"], each["ended"], int(each["first"] or 0), each["worker"])
                for each in transaction.rows(sql)
            ]


def report(campaign: Campaign, seconds: float) -> list[str]:
    """Print what happened, and return the faults."""
    runs, kills = campaign.runs(), campaign.kills
    delays = restart_delays(runs, kills)
    faults = [
        *campaign.faults(),
        *campaign.memory_faults(),
        *campaign.replayed_too_early(),
        *overlap_faults(runs, kills),
    ]
    late = [each for each in delays if each > LONGEST] if campaign.worker_count else []
    faults += [f"a repository was begun anew after {each:.1f} s" for each in late]
    answered = Counter(each.status for each in campaign.sent)
    each = campaign.killing_seconds / max(1, len(kills))
    print(f"\n{len(kills)} kills in {seconds:.0f} s, {each:.1f} s each: {dict(Counter(kill.what for kill in kills))}")
    print(f"{len(campaign.sent)} deliveries, answered with {dict(answered)}; {len(runs)} runs")
    if campaign.replayed:
        print(
            f"{len(campaign.replayed)} deliveries killed {MAX_SOLO_ATTEMPTS} times alone, given up,"
            " and replayed at the end"
        )
    if delays:
        median = statistics.median(delays)
        print(f"{len(delays)} runs killed; begun anew after {median:.1f} s (median), {max(delays):.1f} s (longest)")
    print(f"faults: {len(faults)}", *faults, sep="\n  ", flush=True)
    return faults


@contextlib.contextmanager
def stage(folder: Path, *, on_postgres: bool, standin: bool) -> Iterator[ServerStage]:
    """A stage with its own database."""
    with contextlib.ExitStack() as at_end:
        url = ""
        if on_postgres:
            server = postgres.start()
            at_end.callback(server.stop)
            url = at_end.enter_context(server.database())
        server_stage = ServerStage(folder, STANDIN if standin else "bot", url)
        at_end.callback(server_stage.close)
        yield server_stage


def campaign(folder: Path, seed: int, kills: int, *, on_postgres: bool, standin: bool) -> list[str]:
    """Run one campaign and return its faults."""
    began = time.monotonic()
    with stage(folder, on_postgres=on_postgres, standin=standin) as server:
        run = Campaign(server, random.Random(seed), worker_count=2 if on_postgres else 0)
        run.run(kills)
        return report(run, time.monotonic() - began)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31))
    options.add_argument("--postgres", action="store_true")
    options.add_argument("--standin", action="store_true")
    arguments = options.parse_args()
    logging.getLogger("bot").setLevel(logging.ERROR)  # the memories are read from folders, which gives warnings
    print(f"seed {arguments.seed}, {arguments.kills} kills", flush=True)
    with tempfile.TemporaryDirectory(prefix="precedent-kills-", ignore_cleanup_errors=True) as folder:
        faults = campaign(
            Path(folder), arguments.seed, arguments.kills, on_postgres=arguments.postgres, standin=arguments.standin
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
