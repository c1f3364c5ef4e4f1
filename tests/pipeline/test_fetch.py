"""What a run makes of what it cannot read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.changes import AnswerRecord, Changes
from bot.github.events import Event
from bot.memory.places import record_path
from bot.memory.shards import ANSWERS
from bot.pipeline.fetch import fetch_changes
from tests.pipeline.test_replies import Office, office, opened

__all__ = ["office", "opened"]


def unread(office: Office) -> AnswerRecord:
    """What memory has to say of issue 3 after a run that lists it not, and can read neither its record nor itself."""
    office.github.clock.advance(3_600)
    office.github.open_issue("octocat", "Something else")
    office.later()
    (office.folder / "store" / record_path(3)).write_text("{", encoding="utf-8")
    office.github.clock.advance(3_600)
    office.github.faults.add("GET */issues/3*", "5xx", None)
    memory = office.memory()
    fetch_changes(Event("issues", "opened", 3), office.bot(memory))
    memory.commit("looked")
    found = memory.state.answers([3])[3]
    memory.close()
    return found


@pytest.mark.parametrize("state", ["said", "removed", "silent", "withdrawn"])
def test_what_was_said_on_an_issue_that_cannot_be_read_stands(office: Office, state: str) -> None:
    memory = office.memory().open()
    told = AnswerRecord(3, state, office.bot(memory).now, text_hash="abc", comment_id=77, question="what")
    memory.stage(Changes(answers=(told,)))
    memory.commit("said")
    memory.close()
    assert replace(unread(office), reason="") == told


def test_where_nothing_was_said_an_issue_that_cannot_be_read_is_looked_at_again(office: Office) -> None:
    (office.folder / "store" / ANSWERS.path(3)).unlink()
    found = unread(office)
    assert (found.state, found.reason.partition(":")[0]) == ("pending", "it could not be read")
