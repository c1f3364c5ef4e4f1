"""A fake GitHub with an App, and the inbox and clock of its server."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.domain.organisation import Visibility
from bot.github.app import App
from bot.github.events import Event
from bot.server.model import (
    ALL_REPOSITORIES,
    Delivery,
    Instant,
    PendingWork,
    RepositoryKey,
    RepositoryScope,
    Result,
    RunReport,
)
from bot.server.options import ServerOptions
from bot.server.organisation.register import OrganisationRegister
from bot.server.receive.webhook import WebhookRules, receive
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.github_access import TokenCache
from bot.server.storage.inbox import Inbox
from bot.server.work.installation_events import InstallationEvents
from bot.server.work.resync import MINUTE, QUARTER_HOUR, QUARTERS_PER_DAY, Resync, ResyncResult
from tests.fakes.github import FakeGitHub
from tests.fakes.hooks import Delivery as SentDelivery
from tests.fakes.hooks import signed_headers
from tests.fakes.httpd import Listener
from tests.fakes.service import SentReply
from tests.github.keys import key_pair
from tests.server.queues import FileInbox, begin_work, drop

APP = 77
HELLO, OTHER = "octocat/hello-world", "octocat/other"
HOUR = 60 * MINUTE


@dataclass
class Clock:
    """The server's time in milliseconds; the fake GitHub follows the real time."""

    now: Instant

    def __call__(self) -> Instant:
        return self.now


@dataclass
class AppEnvironment:
    """What runs of an installation work with; ``removed_clones`` are repositories whose clones were removed."""

    github: FakeGitHub
    api: App
    clock: Clock
    inbox: Inbox
    removed_clones: list[RepositoryKey] = field(default_factory=list)
    guids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.tokens = TokenCache(self.api)
        self.installations = self.inbox.installations

    def arrive(
        self, key: RepositoryKey, event: str = "issues", action: str = "opened", number: int = 1, **extra: str
    ) -> str:
        """Store a delivery; returns its id."""
        delivery_id = f"{APP}:{next(self.guids):08d}"
        parsed_event = Event(event, action, None if extra else number)
        self.inbox.put(
            [Delivery(delivery_id, key, parsed_event, received_at=self.clock.now, extra=tuple(extra.items()))]
        )
        return delivery_id

    def begin(self, repository: RepositoryKey) -> PendingWork:
        """Begin a run with what waits in a repository."""
        return begin_work(self.inbox, repository)

    def apply(
        self, work: PendingWork, scope: RepositoryScope = ALL_REPOSITORIES, inbox: Inbox | None = None
    ) -> list[Result]:
        """The results of the events of an installation."""
        forget = self.removed_clones.append
        events = InstallationEvents(inbox or self.inbox, self.tokens, forget, work.began_at, scope)
        return [Result(each.seq, "done", events.apply(each)) for each in work.deliveries]

    def add_repositories(self, *repositories: RepositoryKey) -> None:
        """Store repositories that have already had a run."""
        for repository in repositories:
            OrganisationRegister(self.inbox).store_repository(
                repository, f"octocat/{repository.number}", Visibility.PUBLIC
            )
            self.arrive(repository)
            work = self.begin(repository)
            self.inbox.end(work, [], RunReport())
            drop(self.inbox, [each.seq for each in work.deliveries], "for the test")

    def waiting(self, repository: RepositoryKey) -> list[str]:
        """The names of the events that wait in a repository."""
        return [each.event.name for each in self.rows(repository) if each.state == "waiting"]

    def rows(self, repository: RepositoryKey) -> Sequence[Delivery]:
        return sorted(self.inbox.deliveries(DeliveryFilter(repository=repository)), key=lambda each: each.seq)


def _postpone_daily_checks(github: FakeGitHub) -> None:
    """Give repositories ids whose daily check is half a day from now, so that it does not disturb a resync."""
    world, far_slot = github.world, round(github.clock.epoch * 1000) // QUARTER_HOUR + QUARTERS_PER_DAY // 2
    for number, repo in enumerate(list(world.repositories.values()), 10_000):
        if repo.id < 10_000 * QUARTERS_PER_DAY or abs((repo.id - far_slot) % QUARTERS_PER_DAY) > 1:
            del world.repositories[repo.id]
            repo.id = world.names[repo.full_name.lower()] = number * QUARTERS_PER_DAY + far_slot % QUARTERS_PER_DAY
            world.repositories[repo.id] = repo


def make_environment(github: FakeGitHub, inbox: Inbox | None = None) -> AppEnvironment:
    """An environment with the App installed nowhere. Uses a new inbox unless one is given; close its ``api``."""
    github.clock.now = None
    _postpone_daily_checks(github)
    github.add_app(APP, "precedent", public_key=key_pair()[1]).installations.clear()
    clock, api = Clock(github.clock.epoch * 1000), App(APP, key_pair()[0], github.url)
    return AppEnvironment(github, api, clock, inbox or FileInbox(now=clock))


def set_cursor(env: AppEnvironment, repository: RepositoryKey, cursor: Instant) -> None:
    """Store a repository whose history is read up to ``cursor``."""
    OrganisationRegister(env.inbox).store_repository(repository, HELLO, Visibility.PUBLIC)
    env.arrive(repository)
    work = env.begin(repository)
    env.inbox.end(work, [], RunReport(cursor=cursor))
    drop(env.inbox, [each.seq for each in work.deliveries], "for the test")


def receive_sent(env: AppEnvironment, sent: SentDelivery) -> Delivery:
    """A delivery of the fake, parsed by the server's receiver."""
    body = json.dumps(sent.payload).encode()
    named_headers = signed_headers(sent.event, sent.guid, body, env.github.hooks.secret) | {
        "Content-Length": str(len(body))
    }
    headers = {name.lower().encode(): value.encode() for name, value in named_headers.items()}
    rules = WebhookRules(APP, (env.github.hooks.secret.encode(),), "precedent[bot]")
    arrival = receive("POST", headers, body, rules, env.clock.now, "request")
    assert isinstance(arrival, Delivery), arrival
    return arrival


def resync(env: AppEnvironment, api: App | None = None) -> Resync:
    api = api or env.api
    options = ServerOptions(app_id=APP, api_url=env.github.url)
    return Resync(api, env.inbox, options, TokenCache(api), env.removed_clones.append)


@dataclass
class DeliveryEndpoint:
    """Receives deliveries: stores them in the inbox, or answers with ``error_status`` if that is set."""

    env: AppEnvironment
    error_status: int = 0
    guids: list[str] = field(default_factory=list)

    def listen(self) -> Listener:
        """Have GitHub deliver here until the listener is stopped."""
        listener = Listener(self)
        self.env.github.hooks.url = f"{listener.url}/webhook"
        return listener

    def __call__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> SentReply:
        self.guids.append(headers["X-Github-Delivery"])
        if self.error_status:
            return SentReply(self.error_status, {}, b"")
        encoded = {name.lower().encode(): value.encode() for name, value in headers.items()}
        rules = WebhookRules(APP, (self.env.github.hooks.secret.encode(),), "precedent[bot]")
        arrival = receive(method, encoded, body, rules, self.env.clock.now, "request")
        if isinstance(arrival, Delivery):
            self.env.inbox.put([arrival])
        return SentReply(202, {}, b"")


def run_resync(env: AppEnvironment, after: int = 0, api: App | None = None) -> ResyncResult:
    """Run a resync ``after`` milliseconds; returns when all deliveries it requested have arrived."""
    env.clock.now += after
    before = len(env.github.hooks.deliveries)
    result = resync(env, api).run(env.clock.now)
    deadline = time.monotonic() + 10
    while len(env.github.hooks.deliveries) < before + result.redelivered and time.monotonic() < deadline:
        time.sleep(0.01)
    return result


def open_issues(env: AppEnvironment, count: int = 1) -> None:
    for _ in range(count):
        number = env.github.open_issue("octocat", "Crash")
        env.github.tenants.deliver(env.github, "issues", "opened", number)
