"""Kill the server again and again while deliveries come in, and check that each one was answered exactly once.

Issues are opened in several repositories whose history has an answer to them, and GitHub reports each to the server.
Meanwhile processes get SIGKILL: on SQLite the web process, its worker, or both; on PostgreSQL one of two workers that
run by themselves, each with a folder of its own. They start again within a second. At the end, each delivery that was
answered with 202 must be done (those that the server gave up after five kills are replayed), its issue must have one
comment of ours, a record in a sound memory and one entry in the organisation's index, and an issue the server never
heard of at most one comment. With a stand-in for the server, whose runs do nothing, there is none of this.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from subprocess import Popen

from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.organisation.lance import open_candidates
from bot.reading.analyzer import terms
from bot.server.model import WORKER_PREFIX, Delivery
from bot.server.storage.deliveries import MAX_SOLO_ATTEMPTS, NEVER_ENDED
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.invariants import broken_objects, memory_faults
from tests.server import postgres
from tests.server.server_process import APP, READY, SLUG, STANDIN, ServerStage, until

BRANCH = "precedent"
REPOSITORIES = 12
SETTINGS = "comment:\n  daily_limit: 500\n"
"""So high that no repository reaches it, however many kills there are and however slow the machine is."""

EVERY = 0.7
"""Seconds between two deliveries, on average."""

BETWEEN = (1.0, 5.0)
"""Seconds between two kills."""

STARTING = 0.2
"""Share of the kills of the server that do not wait for its worker to be ready."""

PATIENCE = 240.0
"""Seconds without progress to wait at the end: a comment that was pending at a kill is left alone for two minutes."""

HISTORY_AGE = 200 * 24 * 3600
STRANDED = (
    "select distinct repository from deliveries where state in ('waiting', 'working')"
    " and repository not in (select key from queue)"
)
"""Repositories with open deliveries that no worker would look at."""


@dataclass(frozen=True, slots=True)
class Sent:
    """An issue that was opened, and how the server answered its delivery."""

    id: str
    project: EventfulProject
    number: int
    status: int


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
    finished: threading.Event = field(default_factory=threading.Event)
    replayed: list[Delivery] = field(default_factory=list)

    def create_repositories(self) -> None:
        """Create repositories, each with one decision in its past."""
        github = self.stage.github
        past = from_epoch(github.clock.epoch - HISTORY_AGE)
        for number in range(REPOSITORIES):
            project = github.add_project(f"octocat/shop-{number}")
            self.stage.git.create(project.repo.full_name)
            self.stage.git.commit(project.repo.full_name, ".github/precedent.yml", SETTINGS)
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
            number = project.open_issue("octocat", "Which session store?", "What was decided in #1 about sessions?")
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
            lambda: set(self.stage.children()) & (set(self.stage.children()) if is_starting else self.live_pids()),
            READY,
            self.stage.log_text,
        )
        what = self.rng.choice(("web", "worker", "both"))
        for pid in self.stage.children() if what != "web" else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if what != "worker":
            self.stage.stop(signal.SIGKILL)
            time.sleep(self.rng.uniform(0, 1))
            self.stage.start(1, wait=False)
            until(lambda: self.stage.get("/healthz")[0] == 200, READY, self.stage.log_text)

    def replace(self, number: int) -> None:
        """Kill and replace the worker of this number, once another one that can take over is at work."""
        others = {worker.pid for index, worker in enumerate(self.workers) if index != number}
        until(lambda: others & self.live_pids(), READY, self.stage.log_text)
        self.workers[number].kill()
        self.workers[number].wait()
        time.sleep(self.rng.uniform(0, 1))
        self.workers[number] = self.stage.start_worker(number)

    def live_pids(self) -> set[object]:
        """The process ids of the workers with a heartbeat; some may have been killed since."""
        with self.stage.inbox() as inbox:
            return {note["pid"] for name, (_, note) in inbox.heartbeats.all().items() if name.startswith(WORKER_PREFIX)}

    def run(self, kills: int) -> list[str]:
        """Run the campaign, until everything is answered or nothing was for `PATIENCE`. Returns the faults."""
        self.create_repositories()
        self.workers += [self.stage.start_worker(number) for number in range(self.worker_count)]
        self.stage.start(0 if self.workers else 1)
        sending = threading.Thread(target=self.send, daemon=True)
        sending.start()
        for _ in range(kills):
            self.kill_once()
        self.finished.set()
        sending.join()
        fewest, end = len(self.sent) * 3, time.monotonic() + PATIENCE
        while (faults := len(self.faults())) and time.monotonic() < end:
            if faults < fewest:
                fewest, end = faults, time.monotonic() + PATIENCE
            self.replay_dead()
            time.sleep(1)
        return [*self.faults(), *self.memory_faults(), *self.index_faults(), *self.run_faults()]

    def replay_dead(self) -> None:
        """Replay the deliveries whose runs were killed five times while alone, as an operator would."""
        if dead := [row for row in self.stage.rows() if row.reason == NEVER_ENDED]:
            self.replayed += dead
            numbers = [str(row.seq) for row in dead]
            done = self.stage.run("deliveries", "replay", *numbers, "--why", "killed by the campaign")
            assert done.returncode == 0, done.stderr

    def faults(self) -> list[str]:
        """What is still wrong with the deliveries."""
        rows, login = {row.id: row for row in self.stage.rows()}, f"{SLUG}[bot]"
        faults = []
        for each in self.sent:
            row, has_answer = rows.get(each.id), each.status == 202
            if has_answer and (row is None or row.state != "done"):
                faults.append(f"{each.id} is {row.state if row else 'lost'}")
            comments = len(each.project.comments_by(login, each.number)) if self.stage.module != STANDIN else 1
            if comments > 1 or comments < has_answer:
                faults.append(f"{each.project.repo.full_name}#{each.number} has {comments} comments of ours")
        with self.stage.inbox() as inbox, inbox.database.transaction() as transaction:
            return faults + [f"{row['repository']} has work and no key" for row in transaction.rows(STRANDED)]

    def memory_faults(self) -> list[str]:
        """What is wrong with the memories after everything is done."""
        faults = []
        for project in self.projects if self.stage.module != STANDIN else ():
            numbers = [each.number for each in self.sent if each.project is project and each.status == 202]
            name = project.repo.full_name
            faults += MemoryBranch(self.stage.git.folder / f"{name}.git", name).faults(numbers) if numbers else []
        return faults

    def index_faults(self) -> list[str]:
        """What is missing from the organisation's index, or there twice, once no change waits for it."""
        if not (folder := self.stage.settings.get("ORGANISATION")):
            return []
        with self.stage.inbox() as inbox:
            changes = inbox.changes
            until(lambda: changes.backlog() == (0, 0), PATIENCE, self.stage.log_text)
        repositories = {project.repo.id for project in self.projects}
        found = open_candidates(folder, str(APP)).search(terms("session store"), repositories, limit=1_000)
        count = Counter((each.thread.repository, each.thread.id) for each in found)
        wanted = {(each.project.repo.id, each.number) for each in self.sent if each.status == 202}
        return [f"{key} is in the index {count[key]} times" for key in wanted | count.keys() if count[key] != 1]

    def run_faults(self) -> list[str]:
        """Runs of a repository that overlap, and deliveries that were given up after too few killed runs."""
        with self.stage.inbox() as inbox, inbox.database.transaction() as transaction:
            runs = transaction.rows("select repository, began, ended from runs order by began")
        faults = []
        for repository in sorted({run["repository"] for run in runs}):
            ended = [run for run in runs if run["repository"] == repository and run["ended"]]
            faults += [
                f"two runs of {repository} at once" for run, after in pairwise(ended) if after["began"] < run["ended"]
            ]
        for row in self.replayed:
            key, came = row.repository.text, row.received_at
            killed = sum(run["repository"] == key and not run["ended"] and run["began"] >= came for run in runs)
            if killed < MAX_SOLO_ATTEMPTS:
                faults.append(f"{row.id} was given up after {killed} kills")
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
        if not standin:
            server_stage.settings["ORGANISATION"] = str(folder / "index")
        at_end.callback(server_stage.close)
        yield server_stage


def campaign(folder: Path, seed: int, kills: int, *, on_postgres: bool, standin: bool) -> list[str]:
    """Run one campaign and return its faults."""
    with stage(folder, on_postgres=on_postgres, standin=standin) as server:
        return Campaign(server, random.Random(seed), worker_count=2 if on_postgres else 0).run(kills)
