"""How many open issues a run looks up for the open pull requests that may fix them."""

from __future__ import annotations

from bot.domain.answer import Context, Match, Speak
from bot.domain.thread import Thread
from bot.github.open_pulls import MAX_ISSUES
from bot.pipeline.draft import Draft
from bot.pipeline.open_pulls import add_open_pulls
from tests.comment.contexts import day
from tests.pipeline.sample_repository import SampleRepository


def test_a_run_looks_up_a_limited_number_of_issues_in_one_request(sample: SampleRepository) -> None:
    numbers = [sample.github.open_issue("hubot", "It crashes") for _ in range(MAX_ISSUES + 1)]
    for number in numbers[-2:]:
        sample.github.add_pull("octocat", "Fix it", f"Fixes #{number}.", closes=[number])
    shown = tuple(Match(number, "It crashes", 0.9, "open", day(1, 5)) for number in numbers)
    plan = Draft(Thread(3, "Zyx", "Wvu.", "monalisa", day(1, 5)), Speak(Context(open_now=shown)), text="Shown.")
    memory = sample.memory().open()
    run = sample.tools(memory)
    assert run.now
    sample.github.mark()
    (completed,) = add_open_pulls([plan], run)
    memory.close()
    assert [pull.about for pull in completed.context.pulls] == [numbers[-2]]
    assert len(sample.github.recent) == 1
