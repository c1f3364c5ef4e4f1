"""A small memory: one more issue hardly changes how similar two others are."""

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
@pytest.mark.parametrize("has_vectors", [False, True], ids=["words", "vectors"])
def test_one_more_issue_hardly_changes_how_similar_two_others_are(question: Thread, *, has_vectors: bool) -> None:
    history = ReplayHistory.read(HISTORY)
    words = (
        train_embeddings([(document.title, document.body) for document in history.documents]) if has_vectors else None
    )
    assert bool(words) is has_vectors
    steps = [after - before for before, after in pairwise(similarities(question, LearnedModel(shipped(), words)))]
    assert len(steps) == len(OTHERS) - 1
    assert max(map(abs, steps)) < MAX_STEP


def similarities(question: Thread, learned: LearnedModel) -> Iterator[float]:
    """How similar the two are in a memory of 2 issues, of 3, and so on."""
    for count in range(1, len(OTHERS) + 1):
        with TemporaryDirectory() as folder:
            yield _similarity(question, [LOGIN, *OTHERS[:count]], learned, Path(folder))


def _similarity(question: Thread, threads: Sequence[Thread], learned: LearnedModel, folder: Path) -> float:
    history = ReplayHistory.read(threads)
    vectors = (learned.term_vectors(document.title, document.body) for document in history.documents)
    build_index(
        folder, (replace(document, vectors=fields) for document, fields in zip(history.documents, vectors, strict=True))
    )
    index = open_index(folder)
    past = PastLibrary(history, len(threads), learned, index)
    judged = judge_candidates(question, find_candidates(question, past, LATE, ()), past, LATE)
    index.close()
    return next(match.candidate.similarity for match in judged if match.thread.id == LOGIN.id)
