"""Where Apps are installed: changes as people make them on the web, each with its webhook deliveries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.fakes.apps import App
from tests.fakes.hooks import Delivery, Payload
from tests.fakes.objects import node_id
from tests.fakes.payloads import EventfulProject
from tests.fakes.rest_app import installation_shape
from tests.fakes.state import Repository, Token


class Tenants:
    """The installations of one fake's Apps. While ``lose`` is set, all deliveries get lost."""

    def __init__(self, fake: Any) -> None:
        self._fake = fake
        self.lose = False

    def install(self, login: str, full_names: Iterable[str] = ()) -> int:
        """Install the App for an account with these repositories; returns the installation's id."""
        world = self._fake.world
        with world.lock:
            chosen = next(iter(self._fake.apps.by_id.values()))
            number = world.next_id()
            chosen.installations[number] = self._ids(full_names)
            chosen.accounts[number] = world.ensure_account(login)
        listed = {"repositories": self._list_repositories(chosen.installations[number])}
        self._deliver_event(number, "installation", "created", listed)
        return number

    def uninstall(self, number: int) -> None:
        """Uninstall an App from an account and revoke its tokens."""
        app = self._app(number)
        payload = self._payload(number, "deleted", {"repositories": self._list_repositories(app.installations[number])})
        with self._fake.world.lock:
            self._fake.apps.revoke(number)
            del app.installations[number]
            app.accounts.pop(number, None)
        self._fake.hooks.deliver("installation", payload, self.lose)

    def suspend(self, number: int) -> None:
        """Suspend an installation: until `unsuspend`, its tokens are refused and it gets no new ones."""
        self._app(number).suspended[number] = self._fake.clock.now
        self._deliver_event(number, "installation", "suspend")

    def unsuspend(self, number: int) -> None:
        self._app(number).suspended.pop(number, None)
        self._deliver_event(number, "installation", "unsuspend")

    def add(self, number: int, full_names: Iterable[str]) -> None:
        """Add repositories to an installation."""
        added = self._ids(full_names)
        self._app(number).installations[number].extend(added)
        self._deliver_selection(number, "added", added)

    def remove(self, number: int, full_names: Iterable[str]) -> None:
        """Remove repositories from an installation."""
        removed = self._ids(full_names)
        app = self._app(number)
        app.accounts.setdefault(number, self._fake.apps.account(app, number))
        with self._fake.world.lock:
            app.installations[number] = [each for each in app.installations[number] if each not in removed]
        self._deliver_selection(number, "removed", removed)

    def rename(self, project: EventfulProject, name: str) -> None:
        """Rename a repository; the old name redirects to it until somebody else takes it."""
        old = project.repo.name
        project.rename_repo(f"{project.repo.owner.login}/{name}")
        self.deliver(project, "repository", "renamed", extra={"changes": {"repository": {"name": {"from": old}}}})

    def transfer(self, project: EventfulProject, login: str, to: int | None = None) -> None:
        """Transfer a repository to another account, where the installation ``to`` sees it (None: no App does).

        Only the new owner gets the event. https://docs.github.com/webhooks/webhook-events-and-payloads#repository
        """
        former_owner, apps = project.repo.owner, self._fake.apps
        with self._fake.world.lock:
            for app in apps.by_id.values():
                for number, repositories in app.installations.items():
                    app.accounts.setdefault(number, apps.account(app, number))
                    app.installations[number] = [each for each in repositories if each != project.repo.id]
        project.rename_repo(f"{login}/{project.repo.name}")
        if to is not None:
            self._app(to).installations[to].append(project.repo.id)
            former = {"changes": {"owner": {"from": {"user": project.shapes.account(former_owner)}}}}
            self.deliver(project, "repository", "transferred", extra=former)

    def set_visibility(self, project: EventfulProject, visibility: str) -> None:
        """Make a repository public, internal or private."""
        before = project.repo.visibility
        project.repo.private, project.repo.internal = visibility != "public", visibility == "internal"
        actions = {"public": "publicized", "private": "privatized"}
        action = "privatized" if before == "public" else actions.get(visibility, "edited")
        self.deliver(project, "repository", action)

    def deliver(
        self, project: EventfulProject, event: str, *details: Any, extra: Mapping[str, Any] | None = None
    ) -> Delivery | None:
        """Deliver an event of a repository to the App; ``details`` are action, number and comment, as in `payload`.

        None if no App sees the repository, or its installation is suspended.
        """
        match = self._fake.apps.where(project.repo.id)
        if match is None or match[1] in match[0].suspended:
            return None
        installation = {"installation": {"id": match[1], "node_id": node_id("IN", match[1])}}
        payload = project.payload(event, *details, extra=installation | dict(extra or {}))
        sent: Delivery = self._fake.hooks.deliver(event, payload, self.lose)
        return sent

    def access_level(self, credential: str, full_name: str) -> str | None:
        """What a token may do with git: ``write``, ``read``, or "" if it sees nothing; None for an invalid token."""
        world = self._fake.world
        with world.lock:
            token: Token | None = world.tokens.get(credential)
            if token is None or (token.expires_at is not None and token.expires_at <= world.clock.now):
                return None
            app, repo = self._fake.apps.of(token.installation), world.names.get(full_name.lower().removesuffix(".wiki"))
            if repo is None or (app and token.installation in app.suspended):
                return ""
            level = "write" if token.permissions is None else token.permissions.get("contents", "")
            if repo in self._fake.visible_repositories(token):
                return level
            return "" if world.repositories[repo].private else level and "read"

    def _app(self, number: int) -> App:
        app = self._fake.apps.of(number)
        assert app is not None, f"there is no installation {number}"
        return app  # type: ignore[no-any-return]

    def _ids(self, full_names: Iterable[str]) -> list[int]:
        return [self._fake.world.names[name.lower()] for name in full_names]

    def _list_repositories(self, numbers: Sequence[int]) -> list[Payload]:
        """Repositories as the events of an installation list them."""
        listed: list[Repository] = [self._fake.world.repositories[number] for number in numbers]
        return [
            {"id": each.id, "node_id": node_id("R", each.id), "name": each.name, "full_name": each.full_name,
             "private": each.private}
            for each in listed
        ]  # fmt: skip

    def _payload(self, number: int, action: str, extra: Mapping[str, Any]) -> Payload:
        app, shapes = self._app(number), self._fake.shapes
        account = self._fake.apps.account(app, number)
        shape = installation_shape(shapes, number, app, account)
        return {"action": action, "installation": shape, "sender": shapes.account(account), **extra}

    def _deliver_event(self, number: int, event: str, action: str, extra: Mapping[str, Any] | None = None) -> None:
        self._fake.hooks.deliver(event, self._payload(number, action, extra or {}), self.lose)

    def _deliver_selection(self, number: int, action: str, changed: Sequence[int]) -> None:
        lists: dict[str, list[Payload]] = {"repositories_added": [], "repositories_removed": []}
        lists[f"repositories_{action}"] = self._list_repositories(changed)
        extra = {"repository_selection": "selected", "requester": None, **lists}
        self._deliver_event(number, "installation_repositories", action, extra)
