"""A small memory: one issue more hardly changes how alike two others are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bot.domain.thread import Kind, Thread
from bot.evaluation.replay import PastLibrary, ReplayHistory
from bot.index import build_index, open_index
from bot.memory.model_store import LearnedModel
from bot.ranking.weights import shipped
from bot.ranking.word_vectors import train_embeddings
from bot.recall.similar import find_candidates, judge_candidates
from bot.sources.archive_file import read_archive
from tests.recall.samples import thread

SAMPLE = Path(__file__).resolve().parents[2] / "sample" / "history.jsonl"
HISTORY = [one for one in read_archive(SAMPLE) if one.kind is Kind.ISSUE]
LOGIN = next(one for one in HISTORY if one.id == 48)
OTHERS = [one for one in HISTORY if one.id != 48][:30]
LATE = max(one.created_at for one in HISTORY).replace(year=2030)
MOST = 0.05

ASKED = {
    "the same text": thread(99, LOGIN.title, LOGIN.body, author="hubot", created_at=LATE),
    "some of its words": thread(
        99,
        "Session cookie is not kept",
        "After the upgrade to 2.2 the session cookie has another path, so the login is lost.",
        author="hubot",
        created_at=LATE,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("trains", [False, True], ids=["words", "vectors"])
def test_one_issue_more_hardly_changes_how_alike_two_are(asked: Thread, *, trains: bool) -> None:
    history = ReplayHistory.read(HISTORY)
    words = train_embeddings([(one.title, one.body) for one in history.documents]) if trains else None
    assert bool(words) is trains
    steps = [after - before for before, after in pairwise(similarities(asked, LearnedModel(shipped(), words)))]
    assert len(steps) == len(OTHERS) - 1
    assert max(map(abs, steps)) < MOST


def similarities(asked: Thread, learned: LearnedModel) -> Iterator[float]:
    """How alike the two are in a memory of 2 issues, of 3, and so on."""
    for count in range(1, len(OTHERS) + 1):
        with TemporaryDirectory() as folder:
            yield _similarity(asked, [LOGIN, *OTHERS[:count]], learned, Path(folder))


def _similarity(asked: Thread, held: Sequence[Thread], learned: LearnedModel, folder: Path) -> float:
    history = ReplayHistory.read(held)
    vectors = (learned.term_vectors(one.title, one.body) for one in history.documents)
    build_index(folder, (replace(one, vectors=arms) for one, arms in zip(history.documents, vectors, strict=True)))
    index = open_index(folder)
    past = PastLibrary(history, len(held), learned, index)
    found = judge_candidates(asked, find_candidates(asked, past, LATE, ()), past, LATE)
    index.close()
    return next(one.candidate.similarity for one in found if one.thread.id == LOGIN.id)
