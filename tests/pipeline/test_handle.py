"""Handling one event from start to finish, as seen by an observer of the stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from bot.comment.render import Renderer
from bot.domain.thread import Thread
from bot.errors import StoreError
from bot.github.events import Event
from bot.pipeline.handle import handle_event
from bot.pipeline.room import House, Room
from bot.settings.schema import MentionSettings, Settings
from tests.pipeline.sample_repository import BOT, DECISION, LATER, SampleRepository
from tests.pipeline.test_organisation import SLOW_STEPS

STEPS = ["look", "remember", "plan", "push", "say"]


def test_each_stage_is_reported_as_it_begins(sample: SampleRepository) -> None:
    number = sample.github.open_issue("monalisa", "Sessions", "As in #1.")
    memory, stages = sample.memory().open(), list[tuple[str, str, int]]()
    run = sample.tools(memory)

    def record_stage(step: str) -> None:
        stored = sample.memory().open()
        state = stored.state.comments([number])[number].state if stored.state.comments([number]) else ""
        stored.close()
        stages.append((step, state, len(sample.github.comments_by(run.own.login, number))))

    handle_event(Event("issues", "opened", number), replace(run, on_stage=record_stage))
    memory.close()
    assert stages == [*((step, "", 0) for step in STEPS[:4]), ("say", "pending", 0)]


@pytest.mark.parametrize("step", ["push", *SLOW_STEPS])
def test_comments_stay_correct_when_two_runs_overlap(sample: SampleRepository, step: str) -> None:
    """While one run learns that 1 lost its decision, another learns that 2 was reopened; one comment shows both."""
    github = sample.github
    sample.settings = replace(Settings(), mentions=MentionSettings(speak="always"))
    number = github.open_issue("monalisa", "Sessions", "As in #1 and #2.")
    run_event(sample, Event("issues", "opened", number))
    commands = [github.comment(number, "octocat", f"/precedent context #{target}") for target in (1, 2)]
    run_event(sample, Event("issue_comment", "created", number, comment_id=commands[1]))
    assert [DECISION in text for text in comments_of(sample, number)] == [True, True, False]
    github.clock.advance(LATER)
    run_event(sample, Event("schedule"))
    (decision,) = (comment.id for comment in github.issue(1).comments)
    github.delete_comment(decision)

    def reopen_other(at: str) -> None:
        if at == step:
            github.reopen(2, "hubot")
            run_event(sample, Event("issues", "reopened", 2))

    run_event(sample, Event("issue_comment", "deleted", 1, comment_id=decision), reopen_other)
    github.clock.advance(LATER)
    run_event(sample, Event("schedule"))
    texts = comments_of(sample, number)
    assert [(DECISION in text, "open again" in text) for text in texts] == [
        (False, True),
        (False, False),
        (False, True),
    ]
    run_event(sample, Event("schedule"))
    assert comments_of(sample, number) == texts
    memory = sample.memory().open()
    assert (memory.state.manifest.renewals_due, memory.state.manifest.pending) == ((), ())
    memory.close()


def run_event(sample: SampleRepository, event: Event, watch: Callable[[str], None] = lambda _: None) -> None:
    sample.github.clock.advance(1)
    memory = sample.memory()
    handle_event(event, replace(sample.tools(memory), on_stage=watch))
    memory.close()


def comments_of(sample: SampleRepository, number: int) -> list[str]:
    return [comment.body for comment in sample.github.comments_by(BOT, number)]


# -- rooms that fail -------------------------------------------------------------------------------------------------


class Turns(Room):
    """A room that notes its turns, and fails in one."""

    def __init__(self, name: str, fails_in: str, fault: Exception, turns: list[str]) -> None:
        self.name, self.fails_in, self.fault, self.turns = name, fails_in, fault, turns

    def take(self, turn: str) -> None:
        self.turns.append(f"{self.name} {turn}")
        if turn == self.fails_in:
            raise self.fault


def test_a_room_that_fails_gets_no_further_turn_and_the_others_go_on() -> None:
    turns, fault = list[str](), ValueError("no such door")
    house = House([Turns("first", "plan", fault, turns), Turns("second", "", fault, turns)])
    for turn in ("look", "plan", "settle"):
        house.each(lambda room, turn=turn: room.take(turn))
    assert turns == ["first look", "second look", "first plan", "second plan", "second settle"]
    assert house.error is fault


def test_nothing_goes_on_if_memory_cannot_be_read() -> None:
    turns, fault = list[str](), StoreError("no memory")
    house = House([Turns("first", "look", fault, turns), Turns("second", "", fault, turns)])
    with pytest.raises(StoreError):
        house.each(lambda room: room.take("look"))
    assert turns == ["first look"]


@dataclass(frozen=True)
class BrokenPages:
    name: str = "docs"

    def read(self, *_: object) -> None:
        raise ValueError("no such page")


def test_a_fault_in_one_feature_stops_no_comment(sample: SampleRepository) -> None:
    sample.settings = replace(Settings(), mentions=MentionSettings(speak="always"))
    number, memory = sample.github.open_issue("monalisa", "Sessions", "As in #1."), sample.memory()
    run = replace(sample.tools(memory), pages=(BrokenPages(),))
    handled = handle_event(Event("issues", "opened", number), run)
    memory.close()
    assert [result.action for result in handled.results] == ["created"]
    with pytest.raises(ValueError, match="no such page"):
        handled.raise_error()
    assert [DECISION in text for text in comments_of(sample, number)] == [True]


def test_a_room_that_answers_events_ends_the_run_until_its_promises_are_stored() -> None:
    turns, fault = list[str](), ValueError("no such door")
    room = Turns("first", "plan", fault, turns)
    room.answers_events = True
    with pytest.raises(ValueError, match="no such door"):
        House([room]).each(lambda room: room.take("plan"))
    house = House([room])
    house.each(lambda room: room.take("plan"), is_stored=True)
    assert house.error is fault


def test_a_comment_that_could_not_be_planned_is_planned_by_the_next_run(sample: SampleRepository) -> None:
    sample.settings = replace(Settings(), mentions=MentionSettings(speak="always"))
    number, memory = sample.github.open_issue("monalisa", "Sessions", "As in #1."), sample.memory()
    run = sample.tools(memory)
    with pytest.raises(ValueError, match="no such fix"):
        handle_event(Event("issues", "opened", number), replace(run, renderer=BrokenRenderer()))
    memory.close()
    assert comments_of(sample, number) == []
    sample.github.clock.advance(LATER)
    run_event(sample, Event("schedule"))
    assert [DECISION in text for text in comments_of(sample, number)] == [True]


class BrokenRenderer(Renderer):
    def for_thread(self, thread: Thread) -> Renderer:
        raise ValueError(f"no such fix in {thread.id}")
