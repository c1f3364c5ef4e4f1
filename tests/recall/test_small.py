"""A small memory: one issue more hardly changes how alike two others are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bot.doors.archives import read_archive
from bot.evaluation.replay import History, Past
from bot.memory.learned import Learned
from bot.memory.whoosh import build, open_index
from bot.model import Kind, Thread
from bot.numeric.towers import train
from bot.ranking import shipped
from bot.recall.troubleshoot import candidates, judged
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
    history = History.read(HISTORY)
    words = train([(one.title, one.body) for one in history.documents]) if trains else None
    assert bool(words) is trains
    steps = [after - before for before, after in pairwise(similarities(asked, Learned(shipped(), words)))]
    assert len(steps) == len(OTHERS) - 1
    assert max(map(abs, steps)) < MOST


def similarities(asked: Thread, learned: Learned) -> Iterator[float]:
    """How alike the two are in a memory of 2 issues, of 3, and so on."""
    for count in range(1, len(OTHERS) + 1):
        with TemporaryDirectory() as folder:
            yield _similarity(asked, [LOGIN, *OTHERS[:count]], learned, Path(folder))


def _similarity(asked: Thread, held: Sequence[Thread], learned: Learned, folder: Path) -> float:
    history = History.read(held)
    vectors = (learned.term_vectors(one.title, one.body) for one in history.documents)
    build(folder, (replace(one, vectors=arms) for one, arms in zip(history.documents, vectors, strict=True)))
    index = open_index(folder)
    past = Past(history, len(held), learned, index)
    found = judged(asked, candidates(asked, past, LATE, ()), past, LATE)
    index.close()
    return next(one.candidate.similarity for one in found if one.thread.id == LOGIN.id)
