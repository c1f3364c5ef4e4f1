"""The straight line, as whoever watches it sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.github.events import Event
from bot.pipeline.handle import handle_event
from tests.pipeline.test_replies import BOT, DECISION, LATER, Office, office, opened

__all__ = ["office", "opened"]

STEPS = ["look", "remember", "ask", "plan", "push", "say", "reply"]


def test_each_step_is_told_as_it_begins(office: Office) -> None:
    number = office.github.open_issue("hubot", "Sessions", "As in #1.")
    memory, seen = office.memory().open(), list[tuple[str, str, int]]()
    bot = office.bot(memory)

    def look(step: str) -> None:
        other = office.memory().open()
        state = other.state.answers([number])[number].state if other.state.answers([number]) else ""
        other.close()
        seen.append((step, state, len(office.github.comments_by(bot.own.login, number))))

    handle_event(Event("issues", "opened", number), replace(bot, on_stage=look))
    memory.close()
    before = [(step, "", 0) for step in STEPS[:5]]
    assert seen == [*before, ("say", "pending", 0), ("reply", "pending", 1)]


@pytest.mark.parametrize("step", ["look", "remember", "plan", "push", "say", "reply"])
def test_of_two_runs_at_once_one_keeps_a_comment_true(office: Office, step: str) -> None:
    """While a run learns that 1 lost its decision, another learns that 2 was reopened; one comment shows both."""
    github = office.github
    number = github.open_issue("hubot", "Sessions", "As in #1 and #2.")
    office_runs(office, Event("issues", "opened", number))
    asked = [github.comment(number, "octocat", f"/precedent context #{each}") for each in (1, 2)]
    office_runs(office, Event("issue_comment", "created", number, comment_id=asked[1]))
    assert [DECISION in text for text in comments_of(office, number)] == [True, True, False]
    github.clock.advance(LATER)
    office_runs(office, Event("schedule"))
    (decision,) = (comment.id for comment in github.issue(1).comments)
    github.delete_comment(decision)

    def other(at: str) -> None:
        if at == step:
            github.reopen(2, "hubot")
            office_runs(office, Event("issues", "reopened", 2))

    office_runs(office, Event("issue_comment", "deleted", 1, comment_id=decision), other)
    github.clock.advance(LATER)
    office_runs(office, Event("schedule"))
    texts = comments_of(office, number)
    assert [(DECISION in text, "open again" in text) for text in texts] == [
        (False, True),
        (False, False),
        (False, True),
    ]
    office_runs(office, Event("schedule"))
    assert comments_of(office, number) == texts
    memory = office.memory().open()
    assert (memory.state.manifest.owed, memory.state.manifest.pending) == ((), ())
    memory.close()


def office_runs(office: Office, event: Event, watch: Callable[[str], None] = lambda _: None) -> None:
    office.github.clock.advance(1)
    memory = office.memory()
    handle_event(event, replace(office.bot(memory), on_stage=watch))
    memory.close()


def comments_of(office: Office, number: int) -> list[str]:
    return [comment.body for comment in office.github.comments_by(BOT, number)]
