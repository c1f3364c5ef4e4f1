"""Turns over GitHub and git: a delivery ends in a comment, once, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.github.events import Event
from bot.server.nouns import Instant
from bot.server.turn import carry_out
from tests.server.shop import Turned


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Turned]:
    made = Turned(tmp_path)
    yield made
    made.close()
    assert made.github.violations == []
    assert made.trespasses() == []


def most_in_a_minute(times: list[Instant]) -> int:
    return max((sum(start <= each < start + 60_000 for each in times) for start in times), default=0)


def test_a_delivery_ends_in_a_comment_and_the_ledger_says_which(town: Turned) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    town.turn(town.lane(project))
    (said,) = town.comments(project, number)
    assert "PostgreSQL" in said
    assert said.startswith("<!-- precedent:v1 id=app -->")
    row = town.row(project, number)
    assert (row.state, row.said) == ("done", "created")
    comment = project.comments_by("precedent[bot]", number)[0]
    assert row.url.endswith(f"/octo-org/app/issues/{number}#issuecomment-{comment.id}")
    _, _, told = town.done[0]
    assert {name for name, _ in told.stages} >= {"token", "settings", "clone", "look", "plan", "push", "say"}
    assert told.cursor
    assert told.reads
    assert told.writes


def test_forty_deliveries_of_one_issue_are_one_comment_and_few_pushes(town: Turned) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    for at in range(39):
        comment = project.comment(number, "hubot", f"Me too, {at}.")
        town.hear_of(project, Event("issue_comment", "created", number, comment_id=comment))
    town.settle()
    assert len(town.comments(project, number)) == 1
    assert {each.state for each in town.here.rows(town.lane(project))} == {"done"}
    assert len(town.done) <= 2
    assert most_in_a_minute(town.pushes()) <= 6


def test_a_worker_that_died_between_promise_and_comment_leaves_one_comment(town: Turned) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    town.github.faults.add("POST */issues/*/comments", "5xx", times=None)
    town.turn(town.lane(project))
    assert town.row(project, number).state == "waiting"
    assert town.comments(project, number) == []
    town.github.faults.clear()
    for _ in range(3):
        town.pass_time(130)
        town.settle(1)
    assert len(town.comments(project, number)) == 1
    assert town.row(project, number).state == "done"


def test_a_repository_that_the_app_may_not_see_any_more_is_let_go(town: Turned) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    installed = town.github.tenants.install("octo-org", ["octo-org/app"])
    number, lane = town.ask(project), town.lane(project)
    town.github.tenants.uninstall(installed)
    town.turn(lane)
    assert [each.state for each in town.here.rows(lane)] == ["dropped"]
    assert town.comments(project, number) == []


def test_settings_that_cannot_be_used_are_told_and_what_is_owed_is_said_when_they_are_mended(town: Turned) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.git.commit("octo-org/app", ".github/precedent.yml", "mode: loud\n")
    number = town.ask(project)
    town.turn(town.lane(project))
    assert town.comments(project, number) == []
    assert ".github/precedent.yml" in town.row(project, number).reason
    town.git.commit("octo-org/app", ".github/precedent.yml", "mode: comment\n")
    town.pass_time(60)
    town.hear_of(project, Event("push"))
    town.turn(town.lane(project))
    assert len(town.comments(project, number)) == 1


def test_a_server_that_stops_gives_back_what_it_has_not_begun(town: Turned) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    work = town.here.begin(town.lane(project))
    town.stop.set()
    results, told = carry_out(work, town.desk)
    town.here.ledger.end(work, results, told)
    row = town.row(project, number)
    assert (row.state, row.attempts, row.begun) == ("waiting", 0, 0)
    town.stop.clear()
    town.settle()
    assert len(town.comments(project, number)) == 1
