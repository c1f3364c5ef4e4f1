"""Several tenants and their repositories, and turns that do what a run of the Action does, with the App's tokens."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.doors.action import run
from bot.github.errors import NotInstalled
from bot.server.house import House, keep
from bot.server.nouns import Delivery, Grant, Lane, Result, Told
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server.places import places

LOGIN = "precedent[bot]"
AGO = 200 * 24 * 3600
"""Seconds since the past of every repository."""


class Town:
    """GitHub, git, a ledger in memory; `settle` works on what waits until nothing does.

    A turn is a run of the Action's own door on what the ledger keeps of a delivery, as the repository that the token
    is for. ``dropped`` are the reasons of what was not worked on.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git = GitServer(folder / "git")
        self.github = FakeGitHub("octo-org/first", None, site=self.git.url)
        self.here = places(self.github)
        self.git.access = self.github.tenants.right
        self.git.create("octo-org/first")
        self.dropped: list[str] = []
        self.later = timedelta(0)
        """By which turns are later than it is."""

    def close(self) -> None:
        self.here.api.close()
        self.github.stop()
        self.git.stop()

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

    def tell(self, project: EventfulProject, number: int) -> None:
        """The delivery of an opened issue arrives at the lane of whoever sees the repository now."""
        found = self.github.apps.where(project.repo.id)
        assert found is not None, f"no App sees {project.repo.full_name}"
        self.here.arrive(Lane(found[1], project.repo.id), number=number)

    def hear(self) -> None:
        """What happened last to an installation or a repository arrives."""
        payload = self.github.hooks.deliveries[-1].payload
        listed = {key: ",".join(str(each["id"]) for each in payload.get(name, ()))
                  for key, name in (("added", "repositories"), ("added", "repositories_added"),
                                    ("removed", "repositories_removed")) if payload.get(name)}  # fmt: skip
        about = {"repository": str(payload["repository"]["id"])} if "repository" in payload else {}
        event = self.github.hooks.deliveries[-1].event
        house = Lane(int(payload["installation"]["id"]), 0)
        self.here.arrive(house, event, payload["action"], account="", **listed, **about)

    def settle(self, rounds: int = 10) -> None:
        """Turns of all lanes, until nothing waits or so many were done."""
        for _ in range(rounds):
            lanes = sorted({row.lane for row in self.here.ledger.deliveries(state="waiting", limit=1000)})
            if not lanes:
                return
            for lane in lanes:
                self.turn(lane)

    def turn(self, lane: Lane) -> None:
        work = self.here.ledger.begin("ticket", lane, self.here.clock.now)
        if work is None:
            return
        if lane.repository:
            results = [self._result(each) for each in work.deliveries]
        else:
            results = keep(work, self.here.ledger, self.here.tokens, self.here.forgotten.append)
        self.dropped += [result.reason for result in results if result.state == "dropped"]
        self.here.ledger.end(work, results, Told())

    def comments(self, project: EventfulProject, number: int) -> list[str]:
        """What we said there."""
        return [str(comment.body) for comment in project.comments_by(LOGIN, number)]

    def trespasses(self) -> list[tuple[str, int]]:
        """Where a token was used on a repository that it is not for."""
        reach = self.github.apps.reach
        return [(token[:12], repo) for token, repo in self.github.apps.used if repo not in reach.get(token, {repo})]

    def _result(self, delivery: Delivery) -> Result:
        """With a token that is dead the delivery is tried once more with a new one."""
        for _ in range(2):
            try:
                grant = self.here.tokens.grant(delivery.lane, self.here.clock.now)
            except NotInstalled as error:
                House(self.here.ledger, self.here.tokens, self.here.forgotten.append, 0).loses(
                    delivery.lane, str(error)
                )
                return Result(delivery.seq, "dropped", str(error))
            self.here.register.seen(delivery.lane, grant.name, private=grant.private)
            if self._run(grant, delivery) == 0:
                return Result(delivery.seq, "done", "worked on")
            self.here.tokens.forget(delivery.lane)
        return Result(delivery.seq, "dead", "it failed twice")

    def _run(self, grant: Grant, delivery: Delivery) -> int:
        event = delivery.event
        name = "schedule" if event.name == "catch-up" else event.name
        payload: dict[str, Any] = {"issue": {"number": event.number}} if event.number else {}
        environ = self.github.environment(name, self.folder) | {
            "GITHUB_REPOSITORY": grant.name, "GITHUB_SERVER_URL": self.git.url,
            "INPUT_TOKEN": grant.token, "INPUT_BOT-LOGIN": LOGIN,
        }  # fmt: skip
        Path(environ["GITHUB_EVENT_PATH"]).write_text(json.dumps(payload | {"action": event.action}), encoding="utf-8")
        return run(environ, datetime.now(UTC) + self.later, write_gap=0)
