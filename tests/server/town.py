"""Several tenants and their repositories, the server's own runs over them, and time that waits pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.github.events import Event
from bot.server.clone_cache import CloneCache
from bot.server.inbox import Inbox
from bot.server.model import Arrival, Delivery, Instant, RepositoryKey, RunRow
from bot.server.options import ServerOptions
from bot.server.rate_limiter import RateLimiter
from bot.server.reconcile import reconcile
from bot.server.worker import RunDependencies
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server.places import APP, heard, places
from tests.server.queues import leased

LOGIN = "precedent[bot]"
FIRST = "octo-org/first"
AGO = 200 * 24 * 3600
"""Seconds since the past of every repository."""


@dataclass
class Waits:
    """Waits that pass at once, by moving the clock; ``slept`` is how long, in seconds."""

    town: Town
    slept: list[float] = field(default_factory=list)

    def __call__(self, stop: threading.Event, seconds: float) -> bool:
        if stop.is_set():
            return True
        self.slept.append(seconds)
        self.town.pass_time(seconds)
        return False


class Town:
    """GitHub, git over HTTP, an inbox and what runs work with; `settle` works on what waits until nothing does.

    The inbox is one of its own unless one is given. ``asked`` is told of every request, to the API and of git.
    """

    def __init__(self, folder: Path, inbox: Inbox | None = None) -> None:
        self.folder = folder
        self.git = GitServer(folder / "git")
        self.github = FakeGitHub(FIRST, None, site=self.git.url)
        self.here = places(self.github, inbox)
        self.asked: Callable[[str], object] = lambda request: None
        self.github.on_request = self._asked
        self.git.access = self._access
        self.git.create(FIRST)
        self.stop = threading.Event()
        self.waits = Waits(self)
        self.clones = folder / "clones"
        self.dependencies = RunDependencies(
            options=ServerOptions(app_id=APP, data=folder, api_url=self.github.url, server_url=self.git.url),
            inbox=self.here.inbox,
            tokens=self.here.tokens,
            clones=CloneCache(self.clones, 100),
            pace=RateLimiter(6, self.here.clock, self.waits),
            own_login=LOGIN,
            stop=self.stop,
            now=self.here.clock,
            write_gap=0.0,
        )

    def close(self) -> None:
        self.here.api.close()
        self.github.stop()
        self.git.stop()

    # -- what people do --------------------------------------------------------------------------------------------

    def project(self, full_name: str, decision: str, *, private: bool = True) -> EventfulProject:
        """A repository with one decision in its past, which is issue 1."""
        project = self.github.add_project(full_name)
        project.repo.private = private
        self.git.create(full_name)
        owner = full_name.partition("/")[0]
        past = from_epoch(self.github.clock.epoch - AGO)
        project.open_issue(owner, "Where should sessions live?", "Files are slow.", at=past)
        project.comment(1, owner, f"We decided to go with {decision} for the session store.", at=past)
        project.close(1, owner, at=past)
        return project

    def ask(self, project: EventfulProject) -> int:
        """Somebody opens an issue that the past has an answer to, and GitHub tells of it; its number."""
        number = project.open_issue("monalisa", "Which session store?", "What did we decide in #1 about sessions?")
        self.tell(project, number)
        return number

    def rename(self, project: EventfulProject, name: str) -> None:
        """A repository gets another name, and its git does."""
        old = project.repo.full_name
        self.github.tenants.rename(project, name)
        self.git.rename(old, project.repo.full_name)

    def transfer(self, project: EventfulProject, login: str, to: int | None = None) -> None:
        """A repository goes to another account, and its git does."""
        old = project.repo.full_name
        self.github.tenants.transfer(project, login, to)
        self.git.rename(old, project.repo.full_name)

    # -- what comes in ---------------------------------------------------------------------------------------------

    def tell(self, project: EventfulProject, number: int) -> None:
        """The delivery of an opened issue arrives under the key of whoever sees the repository now."""
        self.here.arrive(self.repository(project), number=number)

    def add_results(self) -> None:
        """What GitHub delivered last arrives."""
        self.here.inbox.put([heard(self.here, self.github.hooks.deliveries[-1])])

    def hear_of(self, project: EventfulProject, *events: Event) -> None:
        """Deliveries come in, in this order."""
        repository, now = self.repository(project), self.here.clock.now
        self.here.inbox.put(
            [Arrival(f"{APP}:{next(self.here.guids):08d}", repository, event, received_at=now) for event in events]
        )

    # -- what we do ------------------------------------------------------------------------------------------------

    def settle(self, rounds: int = 10) -> None:
        """Runs of all repositories, until nothing waits that is due, or so many were done."""
        for _ in range(rounds):
            due = [row for row in self.here.inbox.deliveries(state="waiting", limit=1000) if self._is_due(row)]
            if not due:
                return
            for repository in sorted({row.repository for row in due}):
                self.run(repository)

    def _is_due(self, row: Delivery) -> bool:
        return row.next_at <= self.here.clock.now

    def run(self, repository: RepositoryKey) -> None:
        """A run of this repository, once its last push is long enough ago."""
        pushes = self.here.register.repository(repository).pushes
        self.here.clock.now = max(self.here.clock.now, self.dependencies.pace.earliest(pushes))
        reconcile(leased(self.here.inbox, repository), self.dependencies)

    def pass_time(self, seconds: float) -> None:
        self.here.clock.now += round(seconds * 1000)

    def with_attempts(self, attempts: int) -> None:
        options = replace(self.dependencies.options, attempts=attempts)
        self.dependencies = replace(self.dependencies, options=options)

    # -- what came of it -------------------------------------------------------------------------------------------

    def repository(self, project: EventfulProject) -> RepositoryKey:
        found = self.github.apps.where(project.repo.id)
        assert found is not None, f"no App sees {project.repo.full_name}"
        return RepositoryKey(found[1], project.repo.id)

    def row(self, project: EventfulProject, number: int) -> Delivery:
        """The last delivery about an issue."""
        rows = self.here.rows(self.repository(project))
        return [each for each in rows if each.event.number == number][-1]

    def states(self, repository: RepositoryKey) -> list[tuple[str, str]]:
        """What became of the deliveries of people's doing in a repository: state and reason."""
        return [(each.state, each.reason) for each in self.here.rows(repository) if each.event.number]

    def done(self, repository: RepositoryKey | None = None) -> list[RunRow]:
        """The runs that deliveries had last, the earliest first."""
        ledger, found = self.here.inbox, dict[str, RunRow]()
        for each in ledger.deliveries(repository=repository, limit=1000):
            told = ledger.delivery(each.seq)
            if told and told[1]:
                found[told[1].id] = told[1]
        return sorted(found.values(), key=lambda run: run.began)

    def pushes(self) -> list[Instant]:
        return sorted(at for each in self.done() for at in each.pushes)

    def comments(self, project: EventfulProject, number: int) -> list[str]:
        """What we said there."""
        return [str(comment.body) for comment in project.comments_by(LOGIN, number)]

    def kept(self) -> set[str]:
        """The repositories of which there is a clone."""
        return {place.name for place in self.clones.glob("[0-9]*") if place.is_dir()}

    def trespasses(self) -> list[tuple[str, int]]:
        """Where a token was used on a repository that it is not for, and that is not everybody's to read."""
        reach, known = self.github.apps.reach, self.github.world.repositories
        used = dict.fromkeys(self.github.apps.used)
        return [(token[:12], at) for token, at in used if at not in reach.get(token, {at}) and known[at].private]

    def _asked(self, request: str) -> None:
        self.asked(request)

    def _access(self, token: str, full_name: str) -> str | None:
        self.asked(f"git {full_name}")
        return self.github.tenants.right(token, full_name)
