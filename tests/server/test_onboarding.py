"""Onboarding an organisation: excluded and observed repositories, the limit of histories, and their progress."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.domain.organisation import Visibility
from bot.domain.post import OrganisationKey
from bot.github.errors import CORE, GRAPHQL
from bot.github.events import ORGANISATION_EVENT, Event
from bot.server.model import (
    EXCLUDED,
    Delivery,
    DroppedDelivery,
    HistoryPart,
    Lease,
    Priority,
    RepositoryKey,
    RepositoryScope,
    RunReport,
)
from bot.server.options import ServerOptions
from bot.server.organisation.register import OrganisationRegister
from bot.server.pages.status_page import status_page
from bot.server.processes import open_inbox
from bot.server.receive.webhook import receive
from bot.server.storage.inbox import Inbox
from bot.server.storage.installations import HistoryEstimate, parse_estimate, repository_list
from bot.server.web import create_app
from bot.server.work.resync import Resync
from tests.memory.remotes import git
from tests.server.app_environment import APP, HELLO, OTHER, AppEnvironment, receive_sent, set_cursor
from tests.server.client import delivery_headers, issue_event
from tests.server.harness import ServerHarness
from tests.server.pages.test_status_page import text_of
from tests.server.queues import REPOSITORY, Queue, all_done, arrival, claim
from tests.server.receive.test_webhook import GUID, NOW, RULES, raw
from tests.server.web_process import make_web_context

ROOT = Path(__file__).resolve().parents[2]
UNREAD = RunReport(is_unread=True, history=HistoryPart(100, 900, 800), threads=100)


# -- excluded repositories -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "is_dropped"),
    [
        (RepositoryScope(include=("octo-org/*",)), False),
        (RepositoryScope(include=("octo-org/docs-*",)), True),
        (RepositoryScope(exclude=("OCTO-ORG/*",)), True),
        (RepositoryScope(include=("octo-org/*",), exclude=("*/project-17",)), True),
    ],
)
def test_a_delivery_of_an_excluded_repository_is_dropped(scope: RepositoryScope, is_dropped: bool) -> None:
    body = json.dumps(issue_event(1)).encode()
    received = receive("POST", raw(delivery_headers(body, "issues", GUID)), body, replace(RULES, scope=scope), NOW, "r")
    assert received == DroppedDelivery(EXCLUDED) if is_dropped else isinstance(received, Delivery)


def test_an_excluded_delivery_is_acknowledged_and_counted_but_not_stored(tmp_path: Path) -> None:
    body = json.dumps(issue_event(1)).encode()
    scope = {"type": "http", "method": "POST", "path": "/webhook", "client": ("127.0.0.1", 1)}
    headers = [*raw(delivery_headers(body, "issues", GUID)).items()]
    messages: list[dict[str, Any]] = []

    async def receive_body() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: MutableMapping[str, Any]) -> None:
        messages.append(dict(message))

    with open_inbox(ServerOptions(data=tmp_path), "test") as inbox:
        web_door = make_web_context(inbox, ServerOptions(data=tmp_path))
        web_door = replace(web_door, rules=replace(web_door.rules, scope=RepositoryScope(exclude=("octo-org/*",))))
        web_door.writer.start()
        asyncio.run(create_app(web_door)(scope | {"headers": headers}, receive_body, send))
        assert web_door.writer.stop(10)
        assert (messages[0]["status"], json.loads(messages[1]["body"])) == (202, {"said": f"dropped: {EXCLUDED}"})
        assert inbox.deliveries() == []
        assert inbox.counters.read() == {("precedent_deliveries_total", ("issues", "excluded")): 1}


def test_a_new_installation_reads_no_excluded_repository(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    scope = RepositoryScope(exclude=(OTHER,))
    sent = env.github.hooks.deliveries[-1]
    body = json.dumps(sent.payload).encode()
    headers = raw(delivery_headers(body, sent.event, GUID))
    received = receive("POST", headers, body, replace(RULES, scope=scope), env.clock.now, "r")
    assert isinstance(received, Delivery)
    assert dict(received.extra)["added"] == str(env.github.repo.id)
    env.inbox.put([receive_sent(env, sent)])  # as if the receiver had not known the scope yet
    repository, other = (RepositoryKey(number, env.github.world.names[name]) for name in (HELLO, OTHER))
    OrganisationRegister(env.inbox).store_repository(other, OTHER, Visibility.PUBLIC)
    work = env.begin(RepositoryKey(number, 0))
    env.apply(work, scope)
    assert (env.waiting(repository), env.waiting(other)) == (["catch-up"], [])


def run_resync(env: AppEnvironment, **patterns: tuple[str, ...]) -> None:
    env.clock.now += 60_000
    options = ServerOptions(app_id=APP, api_url=env.github.url, **patterns)  # type: ignore[arg-type]
    Resync(env.api, env.inbox, options, env.tokens, env.removed_clones.append).run(env.clock.now)


def test_a_resync_skips_excluded_repositories_until_they_are_included(env: AppEnvironment) -> None:
    env.github.tenants.lose = True
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    env.github.hooks.deliveries.clear()
    repository, other = (RepositoryKey(number, env.github.world.names[name]) for name in (HELLO, OTHER))
    run_resync(env, include=(HELLO,))
    assert (env.waiting(repository), env.waiting(other)) == (["catch-up"], [])
    assert env.installations.repository(other).name == ""
    run_resync(env, include=("octocat/*",))
    assert env.waiting(other) == ["catch-up"], "the list is asked for again, as the patterns changed"


@pytest.mark.slow
def test_an_excluded_repository_that_lags_behind_is_left_alone(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    env.github.hooks.deliveries.clear()
    env.github.open_issue("octocat", "Crash")
    set_cursor(env, repository, 1)
    run_resync(env, exclude=("octocat/*",))
    assert env.waiting(repository) == []
    assert [row.name for row in env.installations.repositories()] == [HELLO], "it stays known"
    run_resync(env)
    assert env.waiting(repository) == ["catch-up"]


@pytest.mark.slow
def test_a_newly_excluded_repository_disappears_from_comments_elsewhere(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    repository, other = (RepositoryKey(number, env.github.world.names[name]) for name in (HELLO, OTHER))
    register = OrganisationRegister(env.inbox)
    for each, name in ((repository, HELLO), (other, OTHER)):
        register.store_repository(each, name, Visibility.PUBLIC)
    register.add_shown(other, 5, [OrganisationKey(repository.number, 1)])
    run_resync(env)
    assert ORGANISATION_EVENT not in env.waiting(other)
    for _ in range(2):
        run_resync(env, exclude=(HELLO,))
        assert env.waiting(other).count(ORGANISATION_EVENT) == 1
    assert ORGANISATION_EVENT not in env.waiting(repository)


@pytest.mark.slow
def test_excluding_a_repository_drops_its_waiting_deliveries_and_keeps_its_memory(harness: ServerHarness) -> None:
    project = harness.project("octo-org/app", "PostgreSQL")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    first = harness.ask(project)
    harness.settle()
    bare = harness.git.folder / "octo-org/app.git"
    tip = git(bare, "rev-parse", "precedent")
    second = harness.ask(project)
    change_options(harness, exclude=("octo-org/*",))
    harness.settle()
    assert (harness.row(project, second).state, harness.row(project, second).reason) == ("dropped", EXCLUDED)
    assert [len(harness.comments(project, number)) for number in (first, second)] == [1, 0]
    row = harness.env.installations.repository(harness.repository(project))
    assert (row.is_unread, row.threads > 0) == (False, True), "what is known of it is kept"
    assert git(bare, "rev-parse", "precedent") == tip


def change_options(harness: ServerHarness, **changed: tuple[str, ...]) -> None:
    changed_options = replace(harness.dependencies.options, **changed)  # type: ignore[arg-type]
    harness.dependencies = replace(harness.dependencies, options=changed_options)


# -- observed repositories -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_but_the_memory_is_written_to_an_observed_repository(harness: ServerHarness) -> None:
    project, unobserved = harness.project("octo-org/app", "PostgreSQL"), harness.project("octo-org/other", "Redis")
    harness.github.tenants.install("octo-org", ["octo-org/app", "octo-org/other"])
    change_options(harness, observe=("octo-org/a*",))
    numbers = [harness.ask(project), harness.ask(unobserved)]
    command = project.comment(numbers[0], "octo-org", "/precedent search session store")
    harness.deliver_events(project, Event("issue_comment", "created", numbers[0], comment_id=command))
    harness.settle()
    assert [len(harness.comments(*each)) for each in zip((project, unobserved), numbers, strict=True)] == [0, 1]
    assert "would say" in {each.said for each in harness.env.rows(harness.repository(project))}
    assert harness.env.installations.repository(harness.repository(project)).threads == 2


# -- the limit of histories ----------------------------------------------------------------------------------------


def limited_inbox(queue: Queue, histories: int = 1) -> Inbox:
    return Inbox(queue.inbox.database, "one", queue.clock, histories)


def test_any_work_for_an_unread_repository_counts_as_reading_a_history(queue: Queue) -> None:
    inbox, other = limited_inbox(queue), RepositoryKey(7, 71)
    inbox.put([arrival("a"), arrival("b", other), arrival("c", RepositoryKey(7, 0))])
    leases = [inbox.queue.claim("one"), inbox.queue.claim("one"), inbox.queue.claim("one")]
    assert sorted((each.key, each.is_history) for each in leases if each) == [("7-0", False), (REPOSITORY.text, True)]
    end_run(inbox, next(each for each in leases if each and each.is_history), RunReport())
    second = claim(inbox)
    assert (second.key, second.is_history) == (other.text, True)
    inbox.put([arrival("d")])
    third = claim(inbox)
    assert (third.key, third.is_history) == (REPOSITORY.text, False), "it has been read by now"


def test_an_unfinished_history_still_counts_towards_the_limit_of_histories(queue: Queue) -> None:
    inbox = limited_inbox(queue)
    inbox.put([arrival("a")])
    inbox.give_back(claim(inbox), 0)
    first = claim(inbox)
    assert (first.is_history, first.priority) == (True, Priority.CHANGE)
    end_run(inbox, first, replace(UNREAD, requeue_after=1))
    following = claim(inbox)
    assert (following.is_history, following.priority) == (True, Priority.HISTORY)
    inbox.give_back(following, 0)
    assert claim(inbox).is_history
    inbox.put([arrival("b", RepositoryKey(7, 71))])
    assert inbox.queue.claim("one") is None


def test_a_waiting_history_does_not_count_as_overdue(queue: Queue) -> None:
    queue.inbox.put([replace(arrival("a"), priority=Priority.HISTORY, received_at=5)])
    assert queue.inbox.oldest_waiting() == 0
    queue.inbox.put([replace(arrival("b"), received_at=7)])
    assert queue.inbox.oldest_waiting() == 7


def test_a_run_that_read_nothing_leaves_the_history_progress_as_it_was(queue: Queue) -> None:
    inbox = limited_inbox(queue)
    inbox.put([arrival("a")])
    end_run(inbox, claim(inbox), UNREAD)
    inbox.put([arrival("b")])
    end_run(inbox, claim(inbox), RunReport(is_unread=None))
    row = inbox.installations.repository(REPOSITORY)
    assert (row.is_unread, row.threads, bool(row.history)) == (True, 100, True)
    inbox.put([arrival("c")])
    end_run(inbox, claim(inbox), RunReport(threads=900))
    row = inbox.installations.repository(REPOSITORY)
    assert (row.is_unread, row.threads, row.history) == (False, 900, "")


def test_the_first_run_in_a_new_repository_is_history_and_in_a_known_one_it_is_not(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    repository, other = (RepositoryKey(number, env.github.world.names[name]) for name in (HELLO, OTHER))
    set_cursor(env, repository, 1)
    assert env.inbox.begin(claim(env.inbox)) is None
    env.inbox.put([receive_sent(env, env.github.hooks.deliveries[-1])])
    work = env.begin(RepositoryKey(number, 0))
    env.apply(work)
    priorities = {}
    while lease := env.inbox.queue.claim("one"):
        priorities[lease.key] = lease.priority
    assert priorities == {repository.text: Priority.CATCH_UP, other.text: Priority.HISTORY}


def end_run(inbox: Inbox, lease: Lease, report: RunReport) -> None:
    work = inbox.begin(lease)
    assert work
    assert inbox.end(work, all_done(work), report)


# -- history progress ----------------------------------------------------------------------------------------------


def test_the_estimate_follows_the_pace_of_the_last_runs() -> None:
    estimate = HistoryEstimate(0).after(HistoryPart(100, 1_000, 900), 0, 60_000)
    assert estimate.done_at() == 60_000 + 9 * 60_000
    assert estimate.done_at(paused_until=100_000) == 100_000 + 9 * 60_000
    for run in range(1, 9):
        estimate = estimate.after(HistoryPart(100 + 50 * run, 0, 900 - 50 * run), 0, 60_000 * (run + 1))
    assert len(estimate.marks) == 7
    assert estimate.done_at() == 9 * 60_000 + 10 * 60_000, "50 a minute, as the last six runs did"
    assert (estimate.percent, estimate.left) == (50, 500)
    assert parse_estimate(estimate.to_text()) == estimate


@pytest.mark.parametrize(
    "estimate",
    [
        HistoryEstimate(5),
        HistoryEstimate(0).after(HistoryPart(7), 0, 1_000),
        HistoryEstimate(7, ((0, 50), (1_000, 50))),
        HistoryEstimate(7, ((0, 50), (1_000, 60))),
    ],
    ids=["nothing known", "no total", "no progress", "it grows"],
)
def test_without_a_pace_there_is_no_estimate(estimate: HistoryEstimate) -> None:
    assert estimate.done_at() == 0


def test_the_repository_list_shows_the_state_of_each_repository(queue: Queue) -> None:
    inbox = limited_inbox(queue, 9)
    register, installations, now = OrganisationRegister(inbox), inbox.installations, queue.clock()
    for number, name in enumerate(("ready", "reading", "new", "secret")):
        register.store_repository(RepositoryKey(7, number + 1), f"octo-org/{name}", Visibility.PRIVATE)
    register.store_repository(RepositoryKey(8, 9), "octocat/hello-world", Visibility.PUBLIC)
    register.store_installation(8, "octocat", "suspended")
    for number, report in ((1, RunReport(threads=12)), (2, UNREAD)):
        inbox.put([arrival(f"a{number}", RepositoryKey(7, number))])
        work = inbox.begin(claim(inbox))
        assert work
        queue.clock.ahead += 1_000  # the estimate needs the time that reading took
        assert inbox.end(work, all_done(work), report)
    queue.inbox.limits.pause(7, GRAPHQL, now + 3_600_000)
    scope = RepositoryScope(exclude=("*/secret",), observed=("octo-org/re*",))
    listed = repository_list(installations.repositories(), installations, inbox.limits, scope)
    assert [
        (each.name.partition("/")[2], each.state, each.is_observed, bool(each.paused_until)) for each in listed
    ] == [
        ("ready", "ready", True, False),
        ("reading", "reading", True, True),
        ("new", "unread", False, True),
        ("secret", "excluded", False, False),
        ("hello-world", "suspended", False, False),
    ]
    assert listed[1].done_at > now + 3_600_000
    queue.inbox.limits.pause(7, CORE, now + 60_000)
    again = repository_list(installations.repositories(), installations, inbox.limits, scope)
    assert {bool(each.paused_until) for each in again[:4]} == {True}


def test_the_status_page_shows_history_progress_and_observed_repositories(queue: Queue) -> None:
    inbox = limited_inbox(queue, 9)
    for number, name in enumerate(("api", "docs", "old", "new")):
        OrganisationRegister(inbox).store_repository(
            RepositoryKey(7, number + 1), f"octo-org/{name}", Visibility.PUBLIC
        )
    part = HistoryPart(100, 900, 800)
    for number, report in ((1, RunReport()), (2, replace(UNREAD, history=part)), (3, RunReport())):
        inbox.put([arrival(f"a{number}", RepositoryKey(7, number))])
        work = inbox.begin(claim(inbox))
        assert work
        queue.clock.ahead += 60_000
        inbox.end(work, all_done(work), report)
    scope = RepositoryScope(exclude=("*/old",), observed=("*/api",))
    progress = histories(status_page(inbox, [], queue.clock(), None, scope))
    assert progress == {
        "octo-org/api observed": "read",
        "octo-org/docs": "11 % read, all in about 7 min",
        "octo-org/old excluded": "read",
        "octo-org/new": "not read yet",
    }


def histories(page: str) -> dict[str, str]:
    """Return the names with their tags, and the history column, of the repositories on the status page."""
    rows = re.findall(r'<th scope="row".*?</tr>', page, re.DOTALL)
    cells = [re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL) for row in rows]
    return {text_of(f"<body>{row[0]}"): text_of(f"<body>{row[2]}") for row in cells}


def run_repos(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bot", "repos", *arguments, "--data", str(folder)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PRECEDENT_")}
    return subprocess.run(command, cwd=ROOT, env=clean | environ, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_repos_command_lists_repositories(tmp_path: Path) -> None:
    with open_inbox(ServerOptions(data=tmp_path), "test") as inbox:
        for number, name in enumerate(("octo-org/docs-a", "octo-org/Api", "octo-org/old\t\x1b[31m")):
            OrganisationRegister(inbox).store_repository(RepositoryKey(7, number + 1), name, Visibility.PRIVATE)
        inbox.put([arrival("a", RepositoryKey(7, 1)), arrival("b", RepositoryKey(7, 2))])
        end_run(inbox, claim(inbox), UNREAD)
        end_run(inbox, claim(inbox), RunReport(threads=12))
    listed = run_repos(tmp_path, "--header", PRECEDENT_EXCLUDE="*/old*", PRECEDENT_OBSERVE="*/docs-*")
    assert listed.stderr == ""
    cells = [line.split("\t") for line in listed.stdout.splitlines()]
    assert cells[0] == ["repository", "state", "threads", "read", "done at", "last run", "paused until", "observed"]
    assert [line[:4] for line in cells[1:]] == [
        ["octo-org/Api", "ready", "12", ""],
        ["octo-org/docs-a", "reading", "100", "11 %"],
        ["octo-org/old [31m", "excluded", "", ""],
    ]
    assert [line[7] for line in cells[1:]] == ["", "observed", ""]
    (only,) = json.loads(run_repos(tmp_path, "octo-org/D*", "--json").stdout)
    assert (only["repository"], only["read"], only["left"], only["paused_until"]) == ("octo-org/docs-a", 100, 800, None)
    assert only["done_at"] >= only["last_run"]
    unknown = run_repos(tmp_path, "octo-org/docs-a", "octo-org/new", "octo-org/older", PRECEDENT_EXCLUDE="*/old*")
    assert unknown.stderr.splitlines() == [
        "octo-org/new: no such repository is known",
        "octo-org/older: excluded by PRECEDENT_EXCLUDE",
    ]
    refused = run_repos(tmp_path, "docs")
    assert (refused.returncode, "is not a pattern such as octo-org/docs-*" in refused.stderr) == (2, True)
