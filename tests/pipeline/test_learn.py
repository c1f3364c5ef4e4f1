"""What a memory learns from its own history: when, what it keeps of it, and what happens to it on the way."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bot.comment.render import Renderer
from bot.domain.changes import Changes
from bot.domain.thread import Kind, RepositoryAddress, Thread
from bot.evaluation.results import Backtest
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.model_store import BACKTEST, RANKING, WORDS, ModelUpdate
from bot.pipeline.learn import CALM_GROWTH, GROWTH, LEAST_THREADS, is_due, learn
from bot.ranking.weights import parse, shipped
from bot.recall.similar import find_candidates
from bot.settings.schema import Settings
from tests.evaluation.timelines import generated

SIZE = 60
THREADS = [life.thread() for life in generated(SIZE + 1, Random(5))]
HISTORY, LATER = THREADS[:SIZE], THREADS[SIZE]


def opened(folder: Path) -> Memory:
    return Memory(FolderStore(folder), sleep=lambda _: None).open()


def remembering(folder: Path, threads: Iterable[Thread]) -> Memory:
    memory = opened(folder)
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("Remember")
    return memory


def taught(memory: Memory) -> Backtest:
    return learn(memory, Settings(), Renderer(), RepositoryAddress("octo-org/hello-world"))


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose memory has learned from its history."""
    folder = tmp_path_factory.mktemp("learned")
    memory = remembering(folder, HISTORY)
    taught(memory)
    assert memory.commit("Learn")
    return folder


@pytest.fixture
def copied(learned: Path, tmp_path: Path) -> Path:
    """The same, to be damaged."""
    for file in learned.rglob("*"):
        if file.is_file():
            (tmp_path / file.relative_to(learned)).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file.relative_to(learned)).write_bytes(file.read_bytes())
    return tmp_path


def near(memory: Memory, thread: Thread) -> list[set[str]]:
    """The arms by which each candidate for a thread was compared."""
    return [set(one.hit.near) for one in find_candidates(thread, memory, None, ()).candidates]


# When


def test_a_memory_learns_anew_when_it_has_grown(tmp_path: Path) -> None:
    memory = remembering(tmp_path, HISTORY)

    def due(learned_from: int) -> tuple[bool, bool]:
        memory.install_model(ModelUpdate(None, shipped(), learned_from))
        return is_due(memory, calm=True), is_due(memory, calm=False)

    assert due(0) == (True, True)
    assert due(int(SIZE / GROWTH)) == (True, True)
    assert due(int(SIZE / GROWTH) + 1) == (True, False)
    assert due(int(SIZE / CALM_GROWTH)) == (True, False)
    assert due(int(SIZE / CALM_GROWTH) + 1) == (False, False)
    assert due(SIZE) == (False, False)


def test_pages_are_no_reason_to_learn_over_and_over(tmp_path: Path) -> None:
    pages = (
        replace(HISTORY[0], id=f"docs:{n}.md", title=f"Page {n}", kind=Kind.PAGE, comments=()) for n in range(SIZE)
    )
    memory = remembering(tmp_path, [*HISTORY[: SIZE // 3], *pages])
    assert is_due(memory, calm=False)
    learn(memory, Settings(), Renderer(), RepositoryAddress("octo-org/hello-world"), seconds=1)
    assert not is_due(memory, calm=True)


def test_a_small_memory_does_not_learn_by_itself(tmp_path: Path) -> None:
    memory = remembering(tmp_path, HISTORY[: LEAST_THREADS - 1])
    assert not is_due(memory, calm=True)
    memory.stage(Changes(records=(HISTORY[LEAST_THREADS - 1],)))
    assert is_due(memory, calm=True)


# What


@pytest.mark.slow
def test_what_was_learned_is_kept_with_where_it_comes_from(learned: Path) -> None:
    memory = opened(learned)
    assert memory.state.manifest.learned_from == memory.state.manifest.threads == SIZE
    ranking = parse(json.loads((learned / RANKING).read_text(encoding="utf-8")))
    assert memory.ranking == ranking
    assert ranking.provenance["replayed"] == SIZE
    assert "the cut is kept as it is: only 60 issues" in str(ranking.provenance["cut"])
    figures = json.loads((learned / BACKTEST).read_text(encoding="utf-8"))
    assert (figures["threads"], figures["n"], figures["repo"]) == (SIZE, SIZE, "octo-org/hello-world")
    assert memory.notes == []


def test_threads_are_compared_by_vectors_afterwards(learned: Path) -> None:
    memory = opened(learned)
    assert set(memory.vectors(LATER)) == {"trained", "trained_title"}
    assert near(memory, LATER)
    assert all(arms == {"trained", "trained_title"} for arms in near(memory, LATER))


def test_a_thread_that_comes_later_has_vectors_too(copied: Path) -> None:
    remembering(copied, [LATER])
    asked = replace(LATER, id=99, created_at=LATER.created_at.replace(year=LATER.created_at.year + 1))
    memory = opened(copied)
    (found,) = [c for c in find_candidates(asked, memory, None, ()).candidates if LATER.id in c.folded]
    assert found.hit.near["trained"] == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_nothing_is_written_before_it_is_committed(tmp_path: Path) -> None:
    memory = remembering(tmp_path, HISTORY)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    backtest = taught(memory)
    assert len(backtest.replayed) == SIZE
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path in before} == before
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_learning_twice_makes_the_same_vectors(copied: Path) -> None:
    words = (copied / WORDS).read_bytes()
    memory = opened(copied)
    taught(memory)
    memory.commit("Learn again")
    assert (copied / WORDS).read_bytes() == words


def test_few_threads_teach_no_words_and_answer_by_words(tmp_path: Path) -> None:
    memory = remembering(tmp_path, HISTORY[:20])
    taught(memory)
    assert memory.commit("Learn")
    assert not (tmp_path / WORDS).exists()
    memory = opened(tmp_path)
    assert (memory.state.manifest.learned_from, memory.vectors(HISTORY[19]), memory.notes) == (20, {}, [])
    assert near(memory, HISTORY[19])


def test_a_memory_that_has_shrunk_gives_its_words_back(copied: Path) -> None:
    memory = opened(copied)
    memory.install_model(ModelUpdate(b"", shipped(), 20))
    memory.rebuild_index()
    assert memory.commit("Learn")
    assert not (copied / WORDS).exists()
    memory = opened(copied)
    assert (memory.vectors(LATER), memory.notes) == ({}, [])


def test_an_empty_memory_learns_nothing_and_fails_at_nothing(tmp_path: Path) -> None:
    backtest = taught(opened(tmp_path))
    assert (backtest.replayed, backtest.threads) == ((), 0)


# Damage


@pytest.mark.parametrize("damage", ["missing", "cut off", "other bytes"])
@pytest.mark.parametrize("name", [WORDS, RANKING])
def test_what_is_damaged_is_left_out_and_told(copied: Path, name: str, damage: str) -> None:
    file = copied / name
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9] + (b"" if damage == "cut off" else b"x" * 9))
    memory = opened(copied)
    found = near(memory, LATER)
    assert found
    assert memory.ranking == (shipped() if name == RANKING else opened(copied).ranking)
    assert bool(memory.vectors(LATER)) == (name == RANKING)
    (note,) = memory.notes
    assert note.startswith(f"{name} is {'missing' if damage == 'missing' else 'damaged'}")
    assert note.endswith("the search works without it until the next rebuild.")


@pytest.mark.slow
@pytest.mark.parametrize("name", [WORDS, RANKING])
def test_learning_again_mends_what_was_damaged(copied: Path, name: str) -> None:
    (copied / name).write_bytes(b"")
    memory = opened(copied)
    taught(memory)
    assert memory.commit("Learn")
    memory = opened(copied)
    assert memory.vectors(LATER)
    assert memory.notes == []


# Races


@pytest.mark.slow
def test_what_was_learned_is_put_on_top_of_what_others_wrote_meanwhile(tmp_path: Path) -> None:
    remembering(tmp_path, HISTORY)
    memory = opened(tmp_path)
    taught(memory)
    remembering(tmp_path, [LATER])
    assert memory.commit("Learn")
    memory = opened(tmp_path)
    assert (memory.state.manifest.threads, memory.state.manifest.learned_from) == (SIZE + 1, SIZE)
    assert set(memory.entries([LATER.id])) == {LATER.id}
    assert all(arms == {"trained", "trained_title"} for arms in near(memory, HISTORY[-1]))
    assert memory.notes == []


@pytest.mark.slow
def test_of_two_lessons_at_once_the_later_one_stays_whole(tmp_path: Path) -> None:
    remembering(tmp_path, HISTORY)
    one, two = opened(tmp_path), opened(tmp_path)
    two.stage(Changes(records=(LATER,)))
    taught(one)
    taught(two)
    assert one.commit("One")
    assert two.commit("Two")
    memory = opened(tmp_path)
    assert (memory.state.manifest.learned_from, memory.state.manifest.threads) == (SIZE + 1, SIZE + 1)
    assert memory.vectors(LATER)
    assert memory.notes == []
