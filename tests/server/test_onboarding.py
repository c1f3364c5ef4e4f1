"""Onboarding an organisation: what is excluded or observed, how many histories are read, and when they are done."""

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

from bot.domain.answer import OrganisationKey
from bot.domain.organisation import Visibility
from bot.github.errors import CORE, GRAPHQL
from bot.github.events import ORGANISATION, Event
from bot.server.inbox import Inbox
from bot.server.installation_events import apply_installation_events
from bot.server.installations import Installations
from bot.server.model import Arrival, DroppedDelivery, HistoryPart, Lease, Priority, RepositoryKey, RunReport
from bot.server.options import ServerOptions
from bot.server.organisation_register import OrganisationRegister
from bot.server.processes import open_inbox
from bot.server.repository_list import HistoryEstimate, parse_estimate, repository_list
from bot.server.resync import Resync
from bot.server.scope import EXCLUDED, RepositoryScope
from bot.server.status_page import status_page
from bot.server.web import Webhook
from bot.server.webhook import receive
from tests.fakes.state import from_epoch
from tests.server.client import delivered, issue_event
from tests.server.doorway import door
from tests.server.places import APP, HELLO, OTHER, Places, heard, known_at
from tests.server.queues import REPOSITORY, Queue, all_done, arrival
from tests.server.test_status_page import text_of
from tests.server.test_webhook import GUID, NOW, RULES, raw
from tests.server.town import AGO, Town

ROOT = Path(__file__).resolve().parents[2]
UNREAD = RunReport(is_unread=True, history=HistoryPart(100, 900, 800), threads=100)


# -- what is excluded ------------------------------------------------------------------------------------------------


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
    found = receive("POST", raw(delivered(body, "issues", GUID)), body, replace(RULES, scope=scope), NOW, "r")
    assert found == DroppedDelivery(EXCLUDED) if is_dropped else isinstance(found, Arrival)


def test_an_excluded_delivery_is_answered_counted_and_not_stored(tmp_path: Path) -> None:
    body = json.dumps(issue_event(1)).encode()
    scope = {"type": "http", "method": "POST", "path": "/webhook", "client": ("127.0.0.1", 1)}
    headers = [*raw(delivered(body, "issues", GUID)).items()]
    sent: list[dict[str, Any]] = []

    async def came() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def answered(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    with open_inbox(ServerOptions(data=tmp_path), "test") as inbox:
        made = door(inbox, ServerOptions(data=tmp_path))
        made = replace(made, rules=replace(made.rules, scope=RepositoryScope(exclude=("octo-org/*",))))
        made.writer.start()
        asyncio.run(Webhook(made)(scope | {"headers": headers}, came, answered))
        assert made.writer.stop(10)
        assert (sent[0]["status"], json.loads(sent[1]["body"])) == (202, {"said": f"dropped: {EXCLUDED}"})
        assert inbox.deliveries() == []
        assert inbox.counters() == {("precedent_deliveries_total", ("issues", "excluded")): 1}


def test_a_new_installation_has_no_excluded_repository_looked_at(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    scope = RepositoryScope(exclude=(OTHER,))
    sent = here.github.hooks.deliveries[-1]
    body = json.dumps(sent.payload).encode()
    headers = raw(delivered(body, sent.event, GUID))
    came = receive("POST", headers, body, replace(RULES, scope=scope), here.clock.now, "r")
    assert isinstance(came, Arrival)
    assert dict(came.extra)["added"] == str(here.github.repo.id)
    here.inbox.put([heard(here, sent)])  # as if a receiver had not known yet
    repository, other = (RepositoryKey(number, here.github.world.names[name]) for name in (HELLO, OTHER))
    here.register.store_repository(other, OTHER, private=False)
    work = here.begin(RepositoryKey(number, 0))
    apply_installation_events(work, here.inbox, here.tokens, here.forgotten.append, scope)
    assert (here.waiting(repository), here.waiting(other)) == (["catch-up"], [])


def sweep(here: Places, **patterns: tuple[str, ...]) -> None:
    here.clock.now += 60_000
    options = ServerOptions(app_id=APP, api_url=here.github.url, **patterns)  # type: ignore[arg-type]
    Resync(here.api, here.inbox, options, here.tokens, here.forgotten.append).run(here.clock.now)


def test_a_resync_leaves_excluded_repositories_out_until_they_are_included(here: Places) -> None:
    here.github.tenants.lose = True
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    here.github.hooks.deliveries.clear()
    repository, other = (RepositoryKey(number, here.github.world.names[name]) for name in (HELLO, OTHER))
    sweep(here, include=(HELLO,))
    assert (here.waiting(repository), here.waiting(other)) == (["catch-up"], [])
    assert here.register.repository(other).name == ""
    sweep(here, include=("octocat/*",))
    assert here.waiting(other) == ["catch-up"], "the list is asked for again, as the patterns changed"


def test_an_excluded_repository_that_lags_behind_is_left_alone(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    here.github.open_issue("octocat", "Crash")
    known_at(here, repository, 1)
    sweep(here, exclude=("octocat/*",))
    assert here.waiting(repository) == []
    assert [row.name for row in here.register.repositories()] == [HELLO], "it stays known"
    sweep(here)
    assert here.waiting(repository) == ["catch-up"]


def test_what_is_excluded_leaves_the_comments_of_others_at_the_start(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    repository, other = (RepositoryKey(number, here.github.world.names[name]) for name in (HELLO, OTHER))
    register = OrganisationRegister(here.inbox)
    for each, name in ((repository, HELLO), (other, OTHER)):
        register.store_repository(each, name, private=False, visibility=Visibility.PUBLIC)
    register.add_shown(other, 5, [OrganisationKey(repository.number, 1)])
    sweep(here)
    assert ORGANISATION not in here.waiting(other)
    for _ in range(2):
        sweep(here, exclude=(HELLO,))
        assert here.waiting(other).count(ORGANISATION) == 1
    assert ORGANISATION not in here.waiting(repository)


@pytest.mark.slow
def test_what_waits_is_dropped_once_its_repository_is_excluded_and_memory_stays(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    first = town.ask(project)
    town.settle()
    branch = town.git.tip("octo-org/app", "precedent") if hasattr(town.git, "tip") else None
    second = town.ask(project)
    options(town, exclude=("octo-org/*",))
    town.settle()
    assert (town.row(project, second).state, town.row(project, second).reason) == ("dropped", EXCLUDED)
    assert [len(town.comments(project, number)) for number in (first, second)] == [1, 0]
    row = town.here.register.repository(town.repository(project))
    assert (row.is_unread, row.threads > 0) == (False, True), "what is known of it is kept"
    assert branch is None or town.git.tip("octo-org/app", "precedent") == branch


def options(town: Town, **changed: tuple[str, ...]) -> None:
    found = replace(town.dependencies.options, **changed)  # type: ignore[arg-type]
    town.dependencies = replace(town.dependencies, options=found)


# -- what is observed ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_written_to_an_observed_repository_but_its_memory(town: Town) -> None:
    project, spoken = town.project("octo-org/app", "PostgreSQL"), town.project("octo-org/other", "Redis")
    town.github.tenants.install("octo-org", ["octo-org/app", "octo-org/other"])
    options(town, observe=("octo-org/a*",))
    numbers = [town.ask(project), town.ask(spoken)]
    command = project.comment(numbers[0], "octo-org", "/precedent search session store")
    town.hear_of(project, Event("issue_comment", "created", numbers[0], comment_id=command))
    town.settle()
    assert [len(town.comments(*each)) for each in zip((project, spoken), numbers, strict=True)] == [0, 1]
    assert "would say" in {each.said for each in town.here.rows(town.repository(project))}
    assert town.here.register.repository(town.repository(project)).threads == 2


# -- how many histories are read -------------------------------------------------------------------------------------


def limited(queue: Queue, histories: int = 1) -> Inbox:
    return Inbox(queue.inbox.database, "one", queue.clock, histories)


def test_a_repository_that_was_never_read_takes_the_place_of_a_history_whatever_happens_there(queue: Queue) -> None:
    inbox, other = limited(queue), RepositoryKey(7, 71)
    inbox.put([arrival("a"), arrival("b", other), arrival("c", RepositoryKey(7, 0))])
    leases = [inbox.queue.claim("one"), inbox.queue.claim("one"), inbox.queue.claim("one")]
    assert sorted((each.key, each.is_history) for each in leases if each) == [("7-0", False), (REPOSITORY.text, True)]
    end(inbox, next(each for each in leases if each and each.is_history), RunReport())
    last = inbox.queue.claim("one")
    assert last
    assert (last.key, last.is_history) == (other.text, True)
    inbox.put([arrival("d")])
    again = inbox.queue.claim("one")
    assert again
    assert (again.key, again.is_history) == (REPOSITORY.text, False), "it has been read by now"


def test_a_history_that_is_not_read_completely_keeps_to_the_places_of_histories(queue: Queue) -> None:
    inbox = limited(queue)
    inbox.put([arrival("a")])
    inbox.give_back(claimed(inbox), 0)
    first = claimed(inbox)
    assert (first.is_history, first.priority) == (True, Priority.CHANGE)
    end(inbox, first, replace(UNREAD, requeue_after=1))
    following = claimed(inbox)
    assert (following.is_history, following.priority) == (True, Priority.HISTORY)
    inbox.give_back(following, 0)
    assert claimed(inbox).is_history
    inbox.put([arrival("b", RepositoryKey(7, 71))])
    assert inbox.queue.claim("one") is None


def test_a_history_that_has_to_wait_is_no_reason_for_an_alarm(queue: Queue) -> None:
    queue.inbox.put([replace(arrival("a"), priority=Priority.HISTORY, received_at=5)])
    assert queue.inbox.oldest_waiting() == 0
    queue.inbox.put([replace(arrival("b"), received_at=7)])
    assert queue.inbox.oldest_waiting() == 7


def test_a_run_that_did_not_get_to_read_leaves_the_repository_as_it_was(queue: Queue) -> None:
    inbox = limited(queue)
    inbox.put([arrival("a")])
    end(inbox, claimed(inbox), UNREAD)
    inbox.put([arrival("b")])
    end(inbox, claimed(inbox), RunReport(is_unread=None))
    row = inbox.installations().repository(REPOSITORY)
    assert (row.is_unread, row.threads, bool(row.history)) == (True, 100, True)
    inbox.put([arrival("c")])
    end(inbox, claimed(inbox), RunReport(threads=900))
    row = inbox.installations().repository(REPOSITORY)
    assert (row.is_unread, row.threads, row.history) == (False, 900, "")


def test_the_first_look_at_a_new_repository_is_history_and_that_at_a_known_one_is_not(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    repository, other = (RepositoryKey(number, here.github.world.names[name]) for name in (HELLO, OTHER))
    known_at(here, repository, 1)
    assert here.inbox.begin(claimed(here.inbox)) is None
    here.inbox.put([heard(here, here.github.hooks.deliveries[-1])])
    work = here.begin(RepositoryKey(number, 0))
    apply_installation_events(work, here.inbox, here.tokens, here.forgotten.append)
    found = {}
    while lease := here.inbox.queue.claim("one"):
        found[lease.key] = lease.priority
    assert found == {repository.text: Priority.CATCH_UP, other.text: Priority.HISTORY}


def claimed(inbox: Inbox) -> Lease:
    lease = inbox.queue.claim("one")
    assert lease
    return lease


def end(inbox: Inbox, lease: Lease, report: RunReport) -> None:
    work = inbox.begin(lease)
    assert work
    assert inbox.end(work, all_done(work), report)


# -- when they are done ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_long_history_is_read_run_after_run_and_its_progress_is_known(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.server.reconcile.PART", -1.0)  # each run reads one batch
    monkeypatch.setattr("bot.pipeline.fetch.PAGES", 0)
    project = town.project("octo-org/app", "PostgreSQL")
    for number in range(180):
        day = from_epoch(town.github.clock.epoch - AGO + 24 * 3600 * (number + 1))
        project.open_issue("octo-org", f"Crash {number}", "It crashes.", at=day)
    town.github.tenants.install("octo-org", ["octo-org/app"])
    repository = town.repository(project)
    town.here.arrive(repository, "catch-up", "", 0)
    town.run(repository)
    row = town.here.register.repository(repository)
    first = parse_estimate(row.history)
    assert first
    assert (row.is_unread, row.threads, first.read, first.left) == (True, 99, 99, 82)
    town.pass_time(60)
    town.settle(1)
    second = parse_estimate(town.here.register.repository(repository).history)
    assert second
    assert (second.read, second.left, second.percent) == (148, 33, 81)
    assert town.here.clock.now < second.done_at() < town.here.clock.now + 60_000
    town.pass_time(60)
    town.settle(1)
    row = town.here.register.repository(repository)
    assert (row.is_unread, row.threads, row.history) == (False, 181, "")
    assert town.here.waiting(repository) == []


def test_the_estimate_is_by_the_pace_of_the_last_runs() -> None:
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


def test_the_list_says_how_each_repository_is(queue: Queue) -> None:
    inbox = limited(queue, 9)
    known, now = inbox.installations(), queue.clock()
    for number, name in enumerate(("ready", "reading", "new", "secret")):
        known.store_repository(RepositoryKey(7, number + 1), f"octo-org/{name}", private=True)
    known.store_repository(RepositoryKey(8, 9), "octocat/hello-world", private=False)
    known.store_installation(8, "octocat", "suspended")
    for number, report in ((1, RunReport(threads=12)), (2, UNREAD)):
        inbox.put([arrival(f"a{number}", RepositoryKey(7, number))])
        work = inbox.begin(claimed(inbox))
        assert work
        queue.clock.ahead += 1_000  # reading takes time, of which the rest is estimated
        assert inbox.end(work, all_done(work), report)
    known.pause(7, GRAPHQL, now + 3_600_000)
    scope = RepositoryScope(exclude=("*/secret",), observed=("octo-org/re*",))
    found = repository_list(known.repositories(), known, scope, now)
    assert [(each.name.partition("/")[2], each.state, each.is_observed, bool(each.paused_until)) for each in found] == [
        ("ready", "ready", True, False),
        ("reading", "reading", True, True),
        ("new", "unread", False, True),
        ("secret", "excluded", False, False),
        ("hello-world", "suspended", False, False),
    ]
    assert found[1].done_at > now + 3_600_000
    known.pause(7, CORE, now + 60_000)
    assert {bool(each.paused_until) for each in again(known, scope, now)[:4]} == {True}


def again(known: Installations, scope: RepositoryScope, now: int) -> list[object]:
    return [*repository_list(known.repositories(), known, scope, now)]


def test_the_status_page_says_how_far_histories_are_read_and_what_is_observed(queue: Queue) -> None:
    inbox = limited(queue, 9)
    for number, name in enumerate(("api", "docs", "old", "new")):
        inbox.installations().store_repository(RepositoryKey(7, number + 1), f"octo-org/{name}", private=False)
    part = HistoryPart(100, 900, 800)
    for number, report in ((1, RunReport()), (2, replace(UNREAD, history=part)), (3, RunReport())):
        inbox.put([arrival(f"a{number}", RepositoryKey(7, number))])
        work = inbox.begin(claimed(inbox))
        assert work
        queue.clock.ahead += 60_000
        inbox.end(work, all_done(work), report)
    scope = RepositoryScope(exclude=("*/old",), observed=("*/api",))
    shown = histories(status_page(inbox, [], queue.clock(), None, scope))
    assert shown == {
        "octo-org/api observed": "read",
        "octo-org/docs": "11 % read, all in about 7 min",
        "octo-org/old excluded": "read",
        "octo-org/new": "not read yet",
    }


def histories(page: str) -> dict[str, str]:
    """The names with their tags, and the column of histories, of the status page's list of repositories."""
    rows = re.findall(r'<th scope="row".*?</tr>', page, re.DOTALL)
    cells = [re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL) for row in rows]
    return {text_of(f"<body>{row[0]}"): text_of(f"<body>{row[2]}") for row in cells}


def repos(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bot", "repos", *arguments, "--data", str(folder)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PRECEDENT_")}
    return subprocess.run(command, cwd=ROOT, env=clean | environ, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_repositories_are_listed_by_the_command(tmp_path: Path) -> None:
    with open_inbox(ServerOptions(data=tmp_path), "test") as inbox:
        for number, name in enumerate(("octo-org/docs-a", "octo-org/Api", "octo-org/old\t\x1b[31m")):
            inbox.installations().store_repository(RepositoryKey(7, number + 1), name, private=True)
        inbox.put([arrival("a", RepositoryKey(7, 1)), arrival("b", RepositoryKey(7, 2))])
        end(inbox, claimed(inbox), UNREAD)
        end(inbox, claimed(inbox), RunReport(threads=12))
    done = repos(tmp_path, "--header", PRECEDENT_EXCLUDE="*/old*", PRECEDENT_OBSERVE="*/docs-*")
    assert done.stderr == ""
    cells = [line.split("\t") for line in done.stdout.splitlines()]
    assert cells[0] == ["repository", "state", "threads", "read", "done at", "last run", "paused until", "observed"]
    assert [line[:4] for line in cells[1:]] == [
        ["octo-org/Api", "ready", "12", ""],
        ["octo-org/docs-a", "reading", "100", "11 %"],
        ["octo-org/old [31m", "excluded", "", ""],
    ]
    assert [line[7] for line in cells[1:]] == ["", "observed", ""]
    (only,) = json.loads(repos(tmp_path, "octo-org/D*", "--json").stdout)
    assert (only["repository"], only["read"], only["left"], only["paused_until"]) == ("octo-org/docs-a", 100, 800, None)
    assert only["done_at"] >= only["last_run"]
    refused = repos(tmp_path, "docs")
    assert (refused.returncode, "is not a pattern such as octo-org/docs-*" in refused.stderr) == (2, True)
