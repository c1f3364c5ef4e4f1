"""A harness with several tenants and their repositories, the server's real runs, and a clock that waits advance."""

from __future__ import annotations

import copy
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.github.events import Event
from bot.server.dependencies import RunDependencies
from bot.server.model import Delivery, Instant, RepositoryKey, RunRow
from bot.server.options import ServerOptions
from bot.server.storage.branches import CloneCache, DiskGuard, RateLimiter
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.inbox import Inbox
from bot.server.work.reconcile import reconcile
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server.app_environment import APP, make_environment, receive_sent
from tests.server.queues import FileInbox, take_lease

LOGIN = "precedent[bot]"
FIRST = "octo-org/first"
HISTORY_AGE = 200 * 24 * 3600
"""Age in seconds of every repository's history."""


@dataclass
class SimulatedSleep:
    """Waits that end at once by advancing the clock; ``slept`` holds their seconds."""

    harness: ServerHarness
    slept: list[float] = field(default_factory=list)

    def __call__(self, stop: threading.Event, seconds: float) -> bool:
        if stop.is_set():
            return True
        self.slept.append(seconds)
        self.harness.pass_time(seconds)
        return False


class ServerHarness:
    """A fake GitHub, git over HTTP, an inbox and what runs need; `settle` handles deliveries until none is due.

    Uses a new inbox unless one is given. ``on_request`` is called for every request, to the API and to git.
    """

    def __init__(self, folder: Path, inbox: Inbox | None = None) -> None:
        self.folder = folder
        self.git = GitServer(folder / "git")
        self.github = FakeGitHub(FIRST, None, site=self.git.url)
        self.env = make_environment(self.github, inbox)
        self.on_request: Callable[[str], object] = lambda request: None
        self.github.on_request = self._observe_request
        self.git.access = self._access
        self.git.create(FIRST)
        self.stop = threading.Event()
        self.waits = SimulatedSleep(self)
        self.clones = folder / "clones"
        self.dependencies = RunDependencies(
            options=ServerOptions(app_id=APP, data=folder, api_url=self.github.url, server_url=self.git.url),
            inbox=self.env.inbox,
            tokens=self.env.tokens,
            clones=CloneCache(self.clones, 100),
            disk=DiskGuard(folder),
            pace=RateLimiter(6, self.env.clock, self.waits),
            own_login=LOGIN,
            stop=self.stop,
            write_gap=0.0,
        )

    def close(self) -> None:
        self.env.api.close()
        self.github.stop()
        self.git.stop()

    # -- a saved state ---------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Save everything: GitHub, the folders of the repositories and clones, and the database; see `restore`."""
        self.env.inbox.database.close()
        for folder, saved in self._folders():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copytree(folder, saved, symlinks=True)
        self._saved = (self._copy_github(vars(self.github)), self.env.clock.now - self._real_time(), self.dependencies)

    def restore(self) -> None:
        """Return to the saved state. The time since then has passed for the server too."""
        github, ahead, dependencies = self._saved
        self.env.inbox.database.close()
        for folder, saved in self._folders():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(saved, folder, symlinks=True)
        vars(self.github).update(self._copy_github(github))
        self.env.clock.now = self._real_time() + ahead
        self.env.tokens.forget()
        self.env.removed_clones.clear()
        self.stop.clear()
        self.waits.slept.clear()
        self.on_request = lambda request: None
        self.git.access = self._access
        self.git.faults.clear()
        self.dependencies = replace(dependencies, clones=CloneCache(self.clones, 100))

    def _folders(self) -> list[tuple[Path, Path]]:
        """The folders of the repositories, the clones and the queue, and where each is saved."""
        assert isinstance(self.env.inbox, FileInbox)
        folders = (self.git.folder, self.clones, self.env.inbox.folder)
        return [(folder, self.folder / "saved" / str(number)) for number, folder in enumerate(folders)]

    def _copy_github(self, state: dict[str, object]) -> dict[str, object]:
        """A copy of what a fake GitHub holds in memory, for the same server at the same address."""
        shared = (self, self.github, self.github.world.lock, self.github._listener)
        return copy.deepcopy(state, {id(each): each for each in shared})

    @staticmethod
    def _real_time() -> Instant:
        return time.time_ns() // 1_000_000

    # -- what people do --------------------------------------------------------------------------------------------

    def project(self, full_name: str, decision: str, *, private: bool = True) -> EventfulProject:
        """A repository with one decision in its past, which is issue 1."""
        project = self.github.add_project(full_name)
        project.repo.private = private
        self.git.create(full_name)
        owner = full_name.partition("/")[0]
        past = from_epoch(self.github.clock.epoch - HISTORY_AGE)
        project.open_issue(owner, "Where should sessions live?", "Files are slow.", at=past)
        project.comment(1, owner, f"We decided to go with {decision} for the session store.", at=past)
        project.close(1, owner, at=past)
        return project

    def known(self, full_name: str) -> EventfulProject:
        """The repository of this name."""
        world = self.github.world
        return self.github.project(world.repositories[world.names[full_name.lower()]])

    def ask(self, project: EventfulProject) -> int:
        """Open an issue that history has an answer to, and deliver it. Returns its number."""
        number = project.open_issue("monalisa", "Which session store?", "What did we decide in #1 about sessions?")
        self.deliver_opened(project, number)
        return number

    def rename(self, project: EventfulProject, name: str) -> None:
        """Rename a repository, on GitHub and in git."""
        old = project.repo.full_name
        self.github.tenants.rename(project, name)
        self.git.rename(old, project.repo.full_name)

    def transfer(self, project: EventfulProject, login: str, to: int | None = None) -> None:
        """Transfer a repository to another account, on GitHub and in git."""
        old = project.repo.full_name
        self.github.tenants.transfer(project, login, to)
        self.git.rename(old, project.repo.full_name)

    # -- what comes in ---------------------------------------------------------------------------------------------

    def deliver_opened(self, project: EventfulProject, number: int) -> None:
        """Store the delivery of an opened issue for the installation that sees the repository now."""
        self.env.arrive(self.repository(project), number=number)

    def deliver_last(self) -> None:
        """Store what GitHub delivered last."""
        self.env.inbox.put([receive_sent(self.env, self.github.hooks.deliveries[-1])])

    def deliver_events(self, project: EventfulProject, *events: Event) -> None:
        """Store deliveries with these events, in this order."""
        repository, now = self.repository(project), self.env.clock.now
        self.env.inbox.put(
            [Delivery(f"{APP}:{next(self.env.guids):08d}", repository, event, received_at=now) for event in events]
        )

    # -- what we do ------------------------------------------------------------------------------------------------

    def settle(self, rounds: int = 10) -> None:
        """Run all repositories until no delivery is due, for at most ``rounds`` rounds."""
        for _ in range(rounds):
            due = [
                row
                for row in self.env.inbox.deliveries(DeliveryFilter(state="waiting"), limit=1000)
                if self._is_due(row)
            ]
            if not due:
                return
            for repository in sorted({row.repository for row in due}):
                self.run(repository)

    def _is_due(self, row: Delivery) -> bool:
        return row.next_at <= self.env.clock.now

    def run(self, repository: RepositoryKey) -> None:
        """Run this repository, at the earliest time that its last push allows."""
        pushes = self.env.installations.repository(repository).pushes
        self.env.clock.now = max(self.env.clock.now, self.dependencies.pace.earliest(pushes))
        reconcile(take_lease(self.env.inbox, repository), self.dependencies)

    def pass_time(self, seconds: float) -> None:
        self.env.clock.now += round(seconds * 1000)

    # -- results ---------------------------------------------------------------------------------------------------

    def repository(self, project: EventfulProject) -> RepositoryKey:
        seen_by = self.github.apps.where(project.repo.id)
        assert seen_by is not None, f"no App sees {project.repo.full_name}"
        return RepositoryKey(seen_by[1], project.repo.id)

    def row(self, project: EventfulProject, number: int) -> Delivery:
        """The last delivery about an issue."""
        rows = self.env.rows(self.repository(project))
        return [each for each in rows if each.event.number == number][-1]

    def states(self, repository: RepositoryKey) -> list[tuple[str, str]]:
        """State and reason of the deliveries in a repository that people caused."""
        return [(each.state, each.reason) for each in self.env.rows(repository) if each.event.number]

    def runs(self, repository: RepositoryKey | None = None) -> list[RunRow]:
        """The last run of each delivery, earliest first."""
        inbox, runs_by_id = self.env.inbox, dict[str, RunRow]()
        for each in inbox.deliveries(DeliveryFilter(repository=repository), limit=1000):
            delivery = inbox.delivery(each.seq)
            if delivery and delivery[1]:
                runs_by_id[delivery[1].id] = delivery[1]
        return sorted(runs_by_id.values(), key=lambda run: run.began)

    def pushes(self) -> list[Instant]:
        return sorted(at for each in self.runs() for at in each.pushes)

    def comments(self, project: EventfulProject, number: int) -> list[str]:
        """The texts of our comments on an issue."""
        return [str(comment.body) for comment in project.comments_by(LOGIN, number)]

    def cloned_repositories(self) -> set[str]:
        """The names of the clones that are kept."""
        return {folder.name for folder in self.clones.glob("[0-9]*") if folder.is_dir()}

    def token_misuses(self) -> list[tuple[str, int]]:
        """Uses of a token on a private repository that it is not for."""
        allowed, repositories = self.github.apps.token_repositories, self.github.world.repositories
        uses = dict.fromkeys(self.github.apps.reached)
        return [
            (token[:12], repository)
            for token, repository in uses
            if repository not in allowed.get(token, {repository}) and repositories[repository].private
        ]

    def _observe_request(self, request: str) -> None:
        self.github.ahead = (self.env.clock.now - self._real_time()) / 1000  # the clocks agree
        self.on_request(request)

    def _access(self, token: str, full_name: str) -> str | None:
        self.on_request(f"git {full_name}")
        return self.github.tenants.access_level(token, full_name)
