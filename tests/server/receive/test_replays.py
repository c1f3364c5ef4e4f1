"""Signed deliveries that somebody recorded and sends again: under the name of another event, or long after they were
true. Nothing is removed that GitHub still has."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from bot.domain.thread import Record, Thread, Tombstone
from bot.github.events import EVENT_SHAPES, Event
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.server.model import Delivery, DroppedDelivery, Refused
from bot.server.receive.webhook import WebhookRules, receive
from tests.fakes.hooks import signed_headers
from tests.fakes.payloads import EventfulProject
from tests.server.app_environment import APP
from tests.server.client import event_body
from tests.server.harness import LOGIN, ServerHarness

GUIDS = (f"72d3162e-cc78-11e3-81ab-{number:012x}" for number in itertools.count(1))
LONE = {"watch": "started", "star": "deleted", "label": "deleted", "milestone": "deleted", "member": "removed"}
"""Events that the server does not read, and whose bodies are almost those of a repository."""


def send(harness: ServerHarness, name: str, body: dict[str, Any]) -> Delivery | DroppedDelivery | Refused:
    """Send a signed body to the server under this name, and handle what it stores."""
    data = json.dumps(body).encode()
    headers = signed_headers(name, next(GUIDS), data, harness.github.hooks.secret)
    raw = {key.lower().encode(): value.encode() for key, value in {**headers, "Content-Length": str(len(data))}.items()}
    rules = WebhookRules(APP, (harness.github.hooks.secret.encode(),), LOGIN)
    received = receive("POST", raw, data, rules, harness.env.clock.now, "request")
    if isinstance(received, Delivery):
        harness.env.inbox.put([received])
        harness.settle()
    return received


def records(harness: ServerHarness, project: EventfulProject) -> dict[object, Record]:
    """What the memory of a repository shows."""
    with BranchStore(str(harness.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        memory = Memory(store, repo=project.repo.full_name).open()
        return {
            each.id: each
            for each in memory.state.every_record()
            if each.id not in memory.state.manifest.hidden_by_github
        }


@pytest.fixture
def discussed(harness: ServerHarness, project: EventfulProject) -> int:
    """The number of a discussion; it and issue 1 with its comment are remembered."""
    next(iter(harness.github.apps.by_id.values())).permissions["discussions"] = "read"
    number = project.discuss("hubot", "How do I keep the cookie?", "It disappears.")
    harness.deliver_events(project, Event("discussion", "created", number))
    harness.settle()
    assert {1, number} <= records(harness, project).keys()
    return number


def bodies(harness: ServerHarness, project: EventfulProject, discussion: int) -> list[tuple[str, dict[str, Any]]]:
    """The name and a body of each event that the server reads, with the actions that remove most."""
    installation = harness.repository(project).installation
    account = {"id": installation, "account": {"login": "octo-org"}}
    mine = {"installation": {"id": installation}}
    repository = [{"id": project.repo.id, "full_name": project.repo.full_name}]
    comment, said = project.issue(1).comments[0].id, project.say(discussion, "hubot", "Nobody knows?")
    moved = {"changes": {"new_issue": {"number": 9}, "new_repository": {"full_name": "octo-org/other"}}}
    of_app = {"installation": account, "sender": {"login": "octo-org"}}
    return [
        *(("issues", project.payload("issues", action, 1, extra=mine)) for action in ("edited", "deleted")),
        ("issues", project.payload("issues", "closed", 1, extra=mine | moved) | {"action": "transferred"}),
        *(("issue_comment", project.payload("issue_comment", action, 1, comment, mine))
          for action in ("created", "deleted")),
        *(("discussion", project.payload("discussion", action, discussion, extra=mine))
          for action in ("edited", "deleted", "transferred")),
        *(("discussion_comment", project.payload("discussion_comment", action, discussion, said, mine))
          for action in ("created", "deleted")),
        *((name, project.payload(name, extra=mine)) for name in ("push", "gollum")),
        *(("release", project.payload("release", action, extra=mine)) for action in ("published", "deleted")),
        *(("repository", project.payload("repository", action, extra=mine))
          for action in ("deleted", "transferred", "privatized", "renamed", "archived")),
        *(("installation", {"action": action, "repositories": repository, **of_app})
          for action in ("deleted", "suspend")),
        ("installation_repositories",
         {"action": "removed", "repositories_added": [], "repositories_removed": repository, **of_app}),
    ]  # fmt: skip


def state_of(harness: ServerHarness, project: EventfulProject) -> object:
    """Everything that a removal would change."""
    rows = [(row.repository, row.name, row.visibility) for row in harness.env.installations.repositories()]
    kept = {key: type(record) for key, record in records(harness, project).items()}
    return rows, harness.env.installations.states(), kept, len(harness.env.rows(harness.repository(project)))


def test_a_signed_body_is_believed_only_under_the_event_whose_shape_it_has(
    harness: ServerHarness, project: EventfulProject, discussed: int
) -> None:
    before, tried = state_of(harness, project), 0
    for name, body in bodies(harness, project, discussed):
        for other in EVENT_SHAPES.keys() - {name}:
            received = send(harness, other, body)
            assert received == Refused(400, f"the body is not that of the event {other}"), (name, body["action"])
            tried += 1
    assert tried > 150
    assert state_of(harness, project) == before


@pytest.mark.parametrize("name", LONE)
def test_a_body_of_an_event_that_is_not_read_removes_no_repository(harness: ServerHarness, name: str) -> None:
    parts = {} if name == "watch" else {"starred_at": None} if name == "star" else {name: {"id": 3}}
    body = event_body("repository", LONE[name], **parts)
    for other in EVENT_SHAPES:
        received = send(harness, other, body)
        assert received == DroppedDelivery("unknown action") or isinstance(received, Refused), other


def test_an_old_removal_that_is_sent_again_removes_nothing_that_github_still_has(
    harness: ServerHarness, project: EventfulProject, discussed: int
) -> None:
    sent = bodies(harness, project, discussed)
    known = records(harness, project)
    (home,) = harness.env.installations.repositories()
    for name, body in sent:
        assert isinstance(send(harness, name, body), Delivery) or name == "push", name
        shown = records(harness, project)
        assert [key for key in known if not isinstance(shown.get(key), Thread)] == [], (name, body.get("action"))
        assert [row.repository for row in harness.env.installations.repositories()] == [home.repository]
        assert set(harness.env.installations.states().values()) <= {"active"}
    kept = records(harness, project)[1]
    assert isinstance(kept, Thread)
    assert [comment.id for comment in kept.comments] == [comment.id for comment in project.issue(1).comments]
    number = harness.ask(project)
    harness.settle()
    assert "PostgreSQL" in harness.comments(project, number)[0], "the server works there as before"


def test_an_issue_that_waits_with_an_old_removal_is_answered(harness: ServerHarness, project: EventfulProject) -> None:
    number = harness.ask(project)
    harness.deliver_events(project, Event("issues", "deleted", number))
    harness.settle()
    assert len(harness.comments(project, number)) == 1
    assert {state for state, _ in harness.states(harness.repository(project))} == {"done"}


@pytest.mark.parametrize("fault", ["5xx", pytest.param("429", marks=pytest.mark.slow)])
def test_while_github_does_not_say_a_thread_is_hidden_and_then_as_github_has_it(
    harness: ServerHarness, project: EventfulProject, fault: str
) -> None:
    lost = harness.ask(project)
    harness.settle()
    project.delete_issue(lost)
    harness.github.faults.add("GET */issues/[0-9]*", fault, times=None)
    for number in (1, lost):
        harness.deliver_events(project, Event("issues", "deleted", number))
    harness.settle(1)
    assert not {1, lost} & records(harness, project).keys()
    assert {row.state for row in harness.env.rows(harness.repository(project))[-2:]} == {"waiting"}
    harness.github.faults.clear()
    for _ in range(3):
        harness.pass_time(3700)
        harness.settle()
    shown = records(harness, project)
    assert isinstance(shown[1], Thread)
    assert isinstance(shown[lost], Tombstone)
