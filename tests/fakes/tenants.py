"""Where Apps are installed: verbs that change it as people do on the web, each with the deliveries that tell of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.fakes.apps import App
from tests.fakes.hooks import Delivery, Payload
from tests.fakes.objects import node_id
from tests.fakes.payloads import EventfulProject
from tests.fakes.rest_app import installation_shape
from tests.fakes.state import Repository, Token


class Tenants:
    """The installations of one fake's Apps. While ``lose`` is set, nobody hears of what a verb does."""

    def __init__(self, fake: Any) -> None:
        self._fake = fake
        self.lose = False

    def install(self, login: str, full_names: Iterable[str] = (), app: App | None = None) -> int:
        """Install an App (None: the only one) for an account, to see these repositories; the installation's number."""
        world = self._fake.world
        with world.lock:
            chosen = app or next(iter(self._fake.apps.known.values()))
            number = world.next_id()
            chosen.installations[number] = self._ids(full_names)
            chosen.accounts[number] = world.existing(login)
        self._tell(number, "installation", "created", {"repositories": self._listed(chosen.installations[number])})
        return number

    def uninstall(self, number: int, *, aside: bool = False) -> None:
        """Take an App away from an account: its tokens are worth nothing from now on.

        ``aside``: the delivery is made by a thread of its own, for who holds the lock.
        """
        app = self._app(number)
        payload = self._payload(number, "deleted", {"repositories": self._listed(app.installations[number])})
        with self._fake.world.lock:
            self._fake.apps.revoke(number)
            del app.installations[number]
            app.accounts.pop(number, None)
        self._send("installation", payload, aside=aside)

    def suspend(self, number: int, *, aside: bool = False) -> None:
        """Its tokens are refused, and it gets no new ones, until `unsuspend`."""
        self._app(number).suspended[number] = self._fake.clock.now
        self._tell(number, "installation", "suspend", aside=aside)

    def unsuspend(self, number: int, *, aside: bool = False) -> None:
        self._app(number).suspended.pop(number, None)
        self._tell(number, "installation", "unsuspend", aside=aside)

    def add(self, number: int, full_names: Iterable[str]) -> None:
        """Let an installation see more repositories."""
        added = self._ids(full_names)
        self._app(number).installations[number].extend(added)
        self._tell_selection(number, "added", added)

    def remove(self, number: int, full_names: Iterable[str]) -> None:
        """An installation sees these no more."""
        removed = self._ids(full_names)
        app = self._app(number)
        app.accounts.setdefault(number, self._fake.apps.account(app, number))
        with self._fake.world.lock:
            app.installations[number] = [each for each in app.installations[number] if each not in removed]
        self._tell_selection(number, "removed", removed)

    def rename(self, project: EventfulProject, name: str) -> None:
        """A repository gets another name; the old one leads to it until somebody else takes it."""
        old = project.repo.name
        project.rename_repo(f"{project.repo.owner.login}/{name}")
        self.deliver(project, "repository", "renamed", extra={"changes": {"repository": {"name": {"from": old}}}})

    def transfer(self, project: EventfulProject, login: str, to: int | None = None) -> None:
        """A repository goes to another account, where the installation ``to`` sees it, or no App does.

        Only who gets it is told. https://docs.github.com/webhooks/webhook-events-and-payloads#repository
        """
        giver, apps = project.repo.owner, self._fake.apps
        with self._fake.world.lock:
            for app in apps.known.values():
                for number, seen in app.installations.items():
                    app.accounts.setdefault(number, apps.account(app, number))
                    app.installations[number] = [each for each in seen if each != project.repo.id]
        project.rename_repo(f"{login}/{project.repo.name}")
        if to is not None:
            self._app(to).installations[to].append(project.repo.id)
            former = {"changes": {"owner": {"from": {"user": project.shapes.account(giver)}}}}
            self.deliver(project, "repository", "transferred", extra=former)

    def set_visibility(self, project: EventfulProject, visibility: str) -> None:
        """Make a repository public, internal or private."""
        before = project.repo.visibility
        project.repo.private, project.repo.internal = visibility != "public", visibility == "internal"
        actions = {"public": "publicized", "private": "privatized"}
        action = "privatized" if before == "public" else actions.get(visibility, "edited")
        self.deliver(project, "repository", action)

    def deliver(
        self, project: EventfulProject, event: str, *what: Any, extra: Mapping[str, Any] | None = None
    ) -> Delivery | None:
        """Tell the App of something in a repository; ``what`` are action, number and comment as `payload` takes them.

        None where no App sees the repository, or the one that does is suspended.
        """
        found = self._fake.apps.where(project.repo.id)
        if found is None or found[1] in found[0].suspended:
            return None
        installation = {"installation": {"id": found[1], "node_id": node_id("IN", found[1])}}
        payload = project.payload(event, *what, extra=installation | dict(extra or {}))
        sent: Delivery = self._fake.hooks.deliver(event, payload, self.lose)
        return sent

    def right(self, credential: str, full_name: str) -> str | None:
        """What a token may do by git: ``write``, ``read``, "" where it sees nothing; None for one that is no token."""
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
        found = self._fake.apps.of(number)
        assert found is not None, f"there is no installation {number}"
        return found  # type: ignore[no-any-return]

    def _ids(self, full_names: Iterable[str]) -> list[int]:
        return [self._fake.world.names[name.lower()] for name in full_names]

    def _listed(self, numbers: Sequence[int]) -> list[Payload]:
        """Repositories as the events of an installation name them."""
        found: list[Repository] = [self._fake.world.repositories[number] for number in numbers]
        return [
            {"id": each.id, "node_id": node_id("R", each.id), "name": each.name, "full_name": each.full_name,
             "private": each.private}
            for each in found
        ]  # fmt: skip

    def _payload(self, number: int, action: str, extra: Mapping[str, Any]) -> Payload:
        app, shapes = self._app(number), self._fake.shapes
        account = self._fake.apps.account(app, number)
        shape = installation_shape(shapes, number, app, account)
        return {"action": action, "installation": shape, "sender": shapes.account(account), **extra}

    def _tell(self, number: int, event: str, action: str, extra: Mapping[str, Any] | None = None, *,
              aside: bool = False) -> None:  # fmt: skip
        self._send(event, self._payload(number, action, extra or {}), aside=aside)

    def _tell_selection(self, number: int, action: str, changed: Sequence[int]) -> None:
        lists: dict[str, list[Payload]] = {"repositories_added": [], "repositories_removed": []}
        lists[f"repositories_{action}"] = self._listed(changed)
        extra = {"repository_selection": "selected", "requester": None, **lists}
        self._tell(number, "installation_repositories", action, extra)

    def _send(self, event: str, payload: Payload, *, aside: bool) -> None:
        told = (event, payload, self.lose)
        if aside:
            threading.Thread(target=self._fake.hooks.deliver, args=told, daemon=True).start()
        else:
            self._fake.hooks.deliver(*told)
