"""A stateful fake of GitHub on a loopback port, for tests in the same process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.fakes.apps import RANKS, App, Apps
from tests.fakes.exchange import RecordedRequest
from tests.fakes.faults import HOURLY, STOP_FAULTS, FaultPlan
from tests.fakes.hooks import Hooks
from tests.fakes.httpd import Listener
from tests.fakes.limits import RateLimits
from tests.fakes.objects import SITE, Shapes
from tests.fakes.payloads import EventfulProject
from tests.fakes.service import ENTERPRISE, SentReply, Service
from tests.fakes.state import BOT_LOGIN, DEFAULT_NOW, DEFAULT_TOKEN, Clock, Moment, Repository, Token, World
from tests.fakes.tenants import Tenants


class FakeGitHub(EventfulProject):
    """GitHub with one repository at first; the methods from `history` and `project` act on that one.

    It listens at once, on a free port; use it as a context manager or call `stop`. ``now`` None follows the real clock.
    ``site`` is the URL of the web pages. The token ``token`` acts as ``github-actions[bot]``.
    """

    serves_root = True
    """Whether the API is at the root, too, as on github.com."""

    def __init__(
        self,
        full_name: str = "octocat/hello-world",
        now: Moment = DEFAULT_NOW,
        validate: bool = True,
        site: str = SITE,
        port: int = 0,
    ) -> None:
        world = World(now)
        super().__init__(world, world.add_repository(full_name))
        self.validate = validate
        self.site = site
        self.token = DEFAULT_TOKEN
        self.add_token(DEFAULT_TOKEN, BOT_LOGIN, limit=1000)
        self.faults = FaultPlan()
        self.on_request: Callable[[str], object] = lambda request: None
        """Called with each request, such as ``"GET /app"``, before it is served."""
        self.limits = RateLimits(world.clock)
        self.apps = Apps(world)
        self.ahead = 0.0
        """Seconds by which the ``Date`` header is ahead of the clock."""
        self.hooks = Hooks(world)
        self.tenants = Tenants(self)
        self.requests: list[RecordedRequest] = []
        self.violations: list[str] = []
        self.fault_kinds: dict[int, str] = {}
        self.views: dict[object, Any] = {}
        self._written: list[bool] = []
        self._marked = 0
        self._service = Service(self)
        self._listener = Listener(self._answer, port)
        self.shapes = Shapes(self.url, site)

    @property
    def url(self) -> str:
        """The API's base URL, without a trailing slash."""
        return self._listener.url

    @property
    def api_url(self) -> str:
        """The URL of REST that the runner gives to jobs."""
        return self.url

    def environment(self, event_name: str, folder: Path) -> dict[str, str]:
        """A runner's environment for an Action, with the event in ``folder/event.json``; its outputs go there too."""
        return {
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_REPOSITORY": self.repo.full_name,
            "GITHUB_API_URL": self.api_url,
            "GITHUB_GRAPHQL_URL": self.graphql_url,
            "GITHUB_SERVER_URL": self.site,
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "RUNNER_TEMP": str(folder),
            "INPUT_TOKEN": self.token,
        }

    @property
    def enterprise_url(self) -> str:
        """The URL of the same API as on GitHub Enterprise Server."""
        return self.url + ENTERPRISE

    @property
    def graphql_url(self) -> str:
        return f"{self.url}/graphql"

    @property
    def clock(self) -> Clock:
        return self.world.clock

    @property
    def reads(self) -> int:
        """Requests since the last `mark` that changed nothing, including GraphQL queries."""
        return sum(not written for written in self._written[self._marked :])

    @property
    def writes(self) -> int:
        return sum(self._written[self._marked :])

    @property
    def recent(self) -> list[RecordedRequest]:
        """The requests since the last `mark`; `requests` are all."""
        return self.requests[self._marked :]

    def wasted_requests(self, since: int) -> list[str]:
        """Requests sent after a fault that should have stopped the client, apart from the first ``since`` requests.
        After an hourly limit, only requests that count against the same allowance."""
        stop_points = {
            index: kind for index, kind in self.fault_kinds.items() if index >= since and kind in STOP_FAULTS
        }
        return [
            f"after {kind}: {request.method} {request.path}"
            for index, kind in stop_points.items()
            for request in self.requests[index + 1 :]
            if kind not in HOURLY or (request.path == "/graphql") == (self.requests[index].path == "/graphql")
        ]

    def mark(self) -> None:
        """Begin a new count of `reads`, `writes` and `recent`."""
        self._marked = len(self.requests)

    def record(self, request: RecordedRequest, writes: bool) -> None:
        with self.world.lock:
            self.requests.append(request)
            self._written.append(writes)

    def add_token(
        self,
        value: str,
        login: str,
        permissions: dict[str, str] | None = None,
        limit: int = 5000,
        expires_at: str | None = None,
    ) -> Token:
        """A token that acts as ``login``.

        ``permissions`` is all that it may do (``{"issues": "write"}``), as on a private repository; None
        allows everything.
        """
        account = self.world.ensure_account(login)
        app = login.removesuffix("[bot]") if account.type == "Bot" else None
        token = Token(value, account, permissions, app, None, expires_at, limit)
        return self.world.add_token(token)

    def add_app(
        self, app_id: int, slug: str, permissions: dict[str, str] | None = None, public_key: str | None = None
    ) -> App:
        """An App that is installed on the first repository; the id of its installation is the App's id."""
        allowed = permissions or {"issues": "write", "contents": "write", "metadata": "read"}
        app = App(app_id, slug, allowed, public_key, {app_id: [self.repo.id]})
        self.apps.by_id[app_id] = app
        self.hooks.app = app_id
        return app

    def add_project(self, full_name: str) -> EventfulProject:
        """One more repository on the same server."""
        return self.project(self.world.add_repository(full_name))

    def project(self, repo: Repository) -> EventfulProject:
        if repo is self.repo:
            return self
        project = EventfulProject(self.world, repo)
        project.shapes = self.shapes
        return project

    def allows(self, token: Token | None, need: str) -> bool:
        """Whether the token has a permission such as ``issues:write``. Without a token, public data can be read."""
        name, level = need.split(":")
        if token is None:
            return level == "read"
        return token.permissions is None or RANKS.index(token.permissions.get(name, "none")) >= RANKS.index(level)

    def visible_repositories(self, token: Token) -> list[int]:
        """The ids of the repositories of the token's installation; the workflow's token sees the first one."""
        return [self.repo.id] if token.installation is None else self.apps.visible(token)

    def sees(self, token: Token | None, repo: Repository) -> bool:
        """Whether an installation token is for this repository; any other token sees all."""
        return token is None or token.installation is None or repo.id in self.visible_repositories(token)

    def stop(self) -> None:
        self._listener.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> SentReply:
        return self._service.serve(method, target, headers, body)


class EnterpriseGitHub(FakeGitHub):
    """GitHub Enterprise Server, whose API is below ``/api/v3`` and ``/api/graphql`` and nowhere else.

    https://docs.github.com/enterprise-server/rest/using-the-rest-api/getting-started-with-the-rest-api
    """

    serves_root = False

    @property
    def api_url(self) -> str:
        return self.enterprise_url

    @property
    def graphql_url(self) -> str:
        return f"{self.url}/api/graphql"
