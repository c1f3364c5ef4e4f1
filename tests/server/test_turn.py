"""Turns over GitHub and git: a delivery ends in a comment, once, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.github.events import Event
from bot.server.nouns import Instant
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
