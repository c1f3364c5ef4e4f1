"""GitHub with an App that is installed in places, and a ledger beside it."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.github.app import App
from bot.github.events import Event
from bot.server.inbox import Inbox
from bot.server.installations import TokenCache
from bot.server.model import Arrival, Delivery, Instant, PendingWork, RepositoryKey, RunReport
from bot.server.options import ServerOptions
from bot.server.resync import MINUTE, QUARTER, QUARTERS, Resync, ResyncResult
from bot.server.webhook import WebhookRules, receive
from tests.fakes.github import FakeGitHub
from tests.fakes.hooks import Delivery as Sending
from tests.fakes.hooks import signed_headers
from tests.fakes.httpd import Listener
from tests.fakes.service import Sent
from tests.github.keys import key_pair
from tests.server.queues import FileInbox, leased

APP = 77
HELLO, OTHER = "octocat/hello-world", "octocat/other"
HOUR = 60 * MINUTE


@dataclass
class Clock:
    """Our own time, in milliseconds; GitHub's fake follows the real one."""

    now: Instant

    def __call__(self) -> Instant:
        return self.now


@dataclass
class Places:
    """What an installation's own run works with; ``forgotten``: repositories whose clones were removed."""

    github: FakeGitHub
    api: App
    clock: Clock
    inbox: Inbox
    forgotten: list[RepositoryKey] = field(default_factory=list)
    guids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.tokens = TokenCache(self.api)
        self.register = self.inbox.installations()

    def arrive(
        self, to: RepositoryKey, event: str = "issues", action: str = "opened", number: int = 1, **extra: str
    ) -> str:
        """A delivery comes in; its id."""
        name = f"{APP}:{next(self.guids):08d}"
        told = Event(event, action, None if extra else number)
        self.inbox.put([Arrival(name, to, told, received_at=self.clock.now, extra=tuple(extra.items()))])
        return name

    def begin(self, repository: RepositoryKey) -> PendingWork:
        """What waits in a repository."""
        work = self.inbox.begin(leased(self.inbox, repository))
        assert work is not None, f"nothing waits in {repository}"
        return work

    def know(self, *repositories: RepositoryKey) -> None:
        """The repositories have had runs."""
        for repository in repositories:
            self.register.store_repository(repository, f"octocat/{repository.number}", private=False)
            self.arrive(repository)
            work = self.begin(repository)
            self.inbox.end(work, [], RunReport())
            self.inbox.drop([each.seq for each in work.deliveries], "for the test")

    def waiting(self, repository: RepositoryKey) -> list[str]:
        """The events that wait in a repository."""
        return [each.event.name for each in self.rows(repository) if each.state == "waiting"]

    def rows(self, repository: RepositoryKey) -> Sequence[Delivery]:
        return sorted(self.inbox.deliveries(repository=repository), key=lambda each: each.seq)


def _apart(github: FakeGitHub) -> None:
    """Give repositories numbers by which their daily look is half a day from now: it is in no sweep's way."""
    world, half = github.world, round(github.clock.epoch * 1000) // QUARTER + QUARTERS // 2
    for place, repo in enumerate(list(world.repositories.values()), 10_000):
        if repo.id < 10_000 * QUARTERS or abs((repo.id - half) % QUARTERS) > 1:
            del world.repositories[repo.id]
            repo.id = world.names[repo.full_name.lower()] = place * QUARTERS + half % QUARTERS
            world.repositories[repo.id] = repo


def places(github: FakeGitHub, inbox: Inbox | None = None) -> Places:
    """With the App installed nowhere, with an inbox of its own unless one is given; its ``api`` is to be closed."""
    github.clock.now = None
    _apart(github)
    github.add_app(APP, "precedent", public_key=key_pair()[1]).installations.clear()
    clock, api = Clock(github.clock.epoch * 1000), App(APP, key_pair()[0], github.url)
    return Places(github, api, clock, inbox or FileInbox(now=clock))


def known_at(here: Places, repository: RepositoryKey, cursor: Instant) -> None:
    """The repository has read so far."""
    here.register.store_repository(repository, HELLO, private=False)
    here.arrive(repository)
    work = here.begin(repository)
    here.inbox.end(work, [], RunReport(cursor=cursor))
    here.inbox.drop([each.seq for each in work.deliveries], "for the test")


def heard(here: Places, sent: Sending) -> Arrival:
    """A delivery of the fake as the receiving part understands it."""
    body = json.dumps(sent.payload).encode()
    said = signed_headers(sent.event, sent.guid, body, here.github.hooks.secret) | {"Content-Length": str(len(body))}
    headers = {name.lower().encode(): value.encode() for name, value in said.items()}
    rules = WebhookRules(APP, (here.github.hooks.secret.encode(),), "precedent[bot]")
    found = receive("POST", headers, body, rules, here.clock.now, "request")
    assert isinstance(found, Arrival), found
    return found


def resync(here: Places, api: App | None = None) -> Resync:
    api = api or here.api
    options = ServerOptions(app_id=APP, api_url=here.github.url)
    return Resync(api, here.inbox, options, TokenCache(api), here.forgotten.append)


@dataclass
class Door:
    """Where deliveries come in: kept in the ledger, or answered with an error while it is ``shut``."""

    here: Places
    shut: int = 0
    heard: list[str] = field(default_factory=list)

    def open(self) -> Listener:
        """Have GitHub deliver here, until the listener is stopped."""
        listener = Listener(self)
        self.here.github.hooks.url = f"{listener.url}/webhook"
        return listener

    def __call__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Sent:
        self.heard.append(headers["X-Github-Delivery"])
        if self.shut:
            return Sent(self.shut, {}, b"")
        given = {name.lower().encode(): value.encode() for name, value in headers.items()}
        rules = WebhookRules(APP, (self.here.github.hooks.secret.encode(),), "precedent[bot]")
        found = receive(method, given, body, rules, self.here.clock.now, "request")
        if isinstance(found, Arrival):
            self.here.inbox.put([found])
        return Sent(202, {}, b"")


def sweep(here: Places, after: int = 0, api: App | None = None) -> ResyncResult:
    """One sweep, so many milliseconds later; returns when all it asked for has come."""
    here.clock.now += after
    before = len(here.github.hooks.deliveries)
    swept = resync(here, api).run(here.clock.now)
    deadline = time.monotonic() + 10
    while len(here.github.hooks.deliveries) < before + swept.redelivered and time.monotonic() < deadline:
        time.sleep(0.01)
    return swept


def opened(here: Places, count: int = 1) -> None:
    for _ in range(count):
        number = here.github.open_issue("octocat", "Crash")
        here.github.tenants.deliver(here.github, "issues", "opened", number)
