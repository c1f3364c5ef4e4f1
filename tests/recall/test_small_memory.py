"""A small memory: one more issue hardly changes how similar two others are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from bot.domain.thread import Kind, Thread
from bot.evaluation.replay import ReplayHistory, past_library
from bot.recall.similar import find_candidates, judge_candidates
from bot.sources.archive_file import read_archive
from tests.recall.samples import thread

SAMPLE = Path(__file__).resolve().parents[2] / "sample" / "history.jsonl"
HISTORY = [issue for issue in read_archive(SAMPLE) if issue.kind is Kind.ISSUE]
LOGIN = next(issue for issue in HISTORY if issue.id == 48)
OTHERS = [issue for issue in HISTORY if issue.id != 48][:30]
LATE = max(issue.created_at for issue in HISTORY).replace(year=2030)
MAX_STEP = 0.05

QUESTIONS = {
    "the same text": thread(99, LOGIN.title, LOGIN.body, author="hubot", created_at=LATE),
    "some of its words": thread(
        99,
        "Session cookie is not kept",
        "After the upgrade to 2.2 the session cookie has another path, so the login is lost.",
        author="hubot",
        created_at=LATE,
    ),
}


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_one_more_issue_hardly_changes_how_similar_two_others_are(question: Thread) -> None:
    steps = [after - before for before, after in pairwise(similarities(question))]
    assert len(steps) == len(OTHERS) - 1
    assert max(map(abs, steps)) < MAX_STEP


def similarities(question: Thread) -> Iterator[float]:
    """How similar the two are in a memory of 2 issues, of 3, and so on."""
    for count in range(1, len(OTHERS) + 1):
        with past_library(ReplayHistory.read([LOGIN, *OTHERS[:count]])) as past:
            judged = judge_candidates(question, find_candidates(question, past, LATE, ()), past, LATE)
        yield next(match.candidate.similarity for match in judged if match.thread.id == LOGIN.id)
