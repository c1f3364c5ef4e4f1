"""The straight line, as whoever watches it sees it."""

from __future__ import annotations

from dataclasses import replace

from bot.flow import handle
from bot.github.events import Event
from tests.test_replies import Office, office, opened

__all__ = ["office", "opened"]

STEPS = ["look", "remember", "ask", "plan", "push", "say", "reply"]


def test_each_step_is_told_as_it_begins(office: Office) -> None:
    number = office.github.open_issue("hubot", "Sessions", "As in #1.")
    memory, seen = office.memory().open(), list[tuple[str, str, int]]()
    bot = office.bot(memory)

    def look(step: str) -> None:
        other = office.memory().open()
        state = other.said([number])[number].state if other.said([number]) else ""
        other.close()
        seen.append((step, state, len(office.github.comments_by(bot.own.login, number))))

    handle(Event("issues", "opened", number), replace(bot, watch=look))
    memory.close()
    before = [(step, "", 0) for step in STEPS[:5]]
    assert seen == [*before, ("say", "pending", 0), ("reply", "pending", 1)]
