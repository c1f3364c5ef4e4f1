"""Handling one event from start to finish, as seen by an observer of the stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.github.events import Event
from bot.pipeline.handle import handle_event
from bot.settings.schema import ReferenceSettings, Settings
from tests.pipeline.test_commands import BOT, DECISION, LATER, SampleRepository, memory_folder, sample
from tests.pipeline.test_organisation import SLOW_STEPS

__all__ = ["memory_folder", "sample"]

STEPS = ["look", "remember", "plan", "push", "say"]


def test_each_stage_is_reported_as_it_begins(sample: SampleRepository) -> None:
    number = sample.github.open_issue("monalisa", "Sessions", "As in #1.")
    memory, stages = sample.memory().open(), list[tuple[str, str, int]]()
    run_context = sample.run_context(memory)

    def record_stage(step: str) -> None:
        stored = sample.memory().open()
        state = stored.state.comments([number])[number].state if stored.state.comments([number]) else ""
        stored.close()
        stages.append((step, state, len(sample.github.comments_by(run_context.own.login, number))))

    handle_event(Event("issues", "opened", number), replace(run_context, on_stage=record_stage))
    memory.close()
    assert stages == [*((step, "", 0) for step in STEPS[:4]), ("say", "pending", 0)]


@pytest.mark.parametrize("step", ["push", *SLOW_STEPS])
def test_comments_stay_correct_when_two_runs_overlap(sample: SampleRepository, step: str) -> None:
    """While one run learns that 1 lost its decision, another learns that 2 was reopened; one comment shows both."""
    github = sample.github
    sample.settings = replace(Settings(), references=ReferenceSettings(speak="always"))
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
    assert (memory.state.manifest.owed, memory.state.manifest.pending) == ((), ())
    memory.close()


def run_event(sample: SampleRepository, event: Event, watch: Callable[[str], None] = lambda _: None) -> None:
    sample.github.clock.advance(1)
    memory = sample.memory()
    handle_event(event, replace(sample.run_context(memory), on_stage=watch))
    memory.close()


def comments_of(sample: SampleRepository, number: int) -> list[str]:
    return [comment.body for comment in sample.github.comments_by(BOT, number)]
