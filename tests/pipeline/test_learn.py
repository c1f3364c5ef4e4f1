"""What a memory learns from its own history: when it learns, what it stores, and what can go wrong."""

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
from bot.memory.model_store import BACKTEST_PATH, RANKING_PATH, ModelUpdate
from bot.pipeline.learn import (
    GROWTH_FACTOR,
    MIN_LEARN_THREADS,
    UNATTENDED_GROWTH_FACTOR,
    is_due,
    learn,
    without_ignored,
)
from bot.ranking.weights import parse, shipped
from bot.recall.similar import find_candidates
from bot.settings.schema import IgnoreSettings, Settings
from tests.evaluation.timelines import generated

SIZE = 60
THREADS = [life.thread() for life in generated(SIZE + 1, Random(5))]
HISTORY, LATER = THREADS[:SIZE], THREADS[SIZE]


def open_memory(folder: Path) -> Memory:
    return Memory(FolderStore(folder), sleep=lambda _: None).open()


def remember(folder: Path, threads: Iterable[Thread]) -> Memory:
    memory = open_memory(folder)
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("Remember")
    return memory


def learn_from(memory: Memory) -> Backtest:
    return learn(memory, Settings(), Renderer(), RepositoryAddress("octo-org/hello-world"))


@pytest.fixture(scope="module")
def learned_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose memory has learned from its history."""
    folder = tmp_path_factory.mktemp("learned")
    memory = remember(folder, HISTORY)
    learn_from(memory)
    assert memory.commit("Learn")
    return folder


@pytest.fixture
def copy(learned_folder: Path, tmp_path: Path) -> Path:
    """A copy of it, for the test to damage."""
    for file in learned_folder.rglob("*"):
        if file.is_file():
            (tmp_path / file.relative_to(learned_folder)).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file.relative_to(learned_folder)).write_bytes(file.read_bytes())
    return tmp_path


# When models are learned


def test_a_memory_learns_again_when_it_has_grown(tmp_path: Path) -> None:
    memory = remember(tmp_path, HISTORY)

    def due(learned_from: int) -> tuple[bool, bool]:
        memory.install_model(ModelUpdate(shipped(), learned_from))
        return is_due(memory, unattended=True), is_due(memory, unattended=False)

    assert due(0) == (True, True)
    assert due(int(SIZE / GROWTH_FACTOR)) == (True, True)
    assert due(int(SIZE / GROWTH_FACTOR) + 1) == (True, False)
    assert due(int(SIZE / UNATTENDED_GROWTH_FACTOR)) == (True, False)
    assert due(int(SIZE / UNATTENDED_GROWTH_FACTOR) + 1) == (False, False)
    assert due(SIZE) == (False, False)


@pytest.mark.slow
def test_pages_do_not_cause_repeated_learning(tmp_path: Path) -> None:
    pages = (
        replace(HISTORY[0], id=f"docs:{n}.md", title=f"Page {n}", kind=Kind.PAGE, comments=()) for n in range(SIZE)
    )
    memory = remember(tmp_path, [*HISTORY[: SIZE // 3], *pages])
    assert is_due(memory, unattended=False)
    learn(memory, Settings(), Renderer(), RepositoryAddress("octo-org/hello-world"), seconds=1)
    assert not is_due(memory, unattended=True)


def test_a_small_memory_does_not_learn_by_itself(tmp_path: Path) -> None:
    memory = remember(tmp_path, HISTORY[: MIN_LEARN_THREADS - 1])
    assert not is_due(memory, unattended=True)
    memory.stage(Changes(records=(HISTORY[MIN_LEARN_THREADS - 1],)))
    assert is_due(memory, unattended=True)


# What is learned


@pytest.mark.slow
def test_a_learned_model_is_stored_with_its_provenance(learned_folder: Path) -> None:
    memory = open_memory(learned_folder)
    assert memory.state.manifest.learned_from == memory.state.manifest.threads == SIZE
    ranking = parse(json.loads((learned_folder / RANKING_PATH).read_text(encoding="utf-8")))
    assert memory.ranking == ranking
    assert ranking.provenance["replayed"] == SIZE
    assert "the cut is kept as it is: only 60 issues" in str(ranking.provenance["cut"])
    figures = json.loads((learned_folder / BACKTEST_PATH).read_text(encoding="utf-8"))
    assert (figures["threads"], figures["n"], figures["repo"]) == (SIZE, SIZE, "octo-org/hello-world")
    assert memory.notes == []


@pytest.mark.slow
def test_nothing_is_written_before_it_is_committed(tmp_path: Path) -> None:
    memory = remember(tmp_path, HISTORY)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    backtest = learn_from(memory)
    assert len(backtest.replayed) == SIZE
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path in before} == before
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_learning_twice_gives_the_same_ranking(copy: Path) -> None:
    ranking = (copy / RANKING_PATH).read_bytes()
    memory = open_memory(copy)
    learn_from(memory)
    memory.commit("Learn again")
    assert (copy / RANKING_PATH).read_bytes() == ranking


def test_an_empty_memory_learns_nothing_and_does_not_fail(tmp_path: Path) -> None:
    backtest = learn_from(open_memory(tmp_path))
    assert (backtest.replayed, backtest.threads) == ((), 0)


# Damage


@pytest.mark.parametrize("damage", ["missing", "cut off", "other bytes"])
def test_a_damaged_ranking_is_left_out_and_reported(copy: Path, damage: str) -> None:
    file = copy / RANKING_PATH
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9] + (b"" if damage == "cut off" else b"x" * 9))
    memory = open_memory(copy)
    assert find_candidates(LATER, memory, None, ()).candidates
    assert memory.ranking == shipped()
    (note,) = memory.notes
    assert note.startswith(f"{RANKING_PATH} is {'missing' if damage == 'missing' else 'damaged'}")
    assert note.endswith("the search works without it until the next rebuild.")


@pytest.mark.slow
def test_learning_again_repairs_a_damaged_ranking(copy: Path) -> None:
    (copy / RANKING_PATH).write_bytes(b"")
    memory = open_memory(copy)
    learn_from(memory)
    assert memory.commit("Learn")
    memory = open_memory(copy)
    assert memory.ranking.provenance["replayed"] == SIZE
    assert memory.notes == []


# Races


@pytest.mark.slow
def test_a_learned_model_is_applied_on_top_of_concurrent_changes(tmp_path: Path) -> None:
    remember(tmp_path, HISTORY)
    memory = open_memory(tmp_path)
    learn_from(memory)
    remember(tmp_path, [LATER])
    assert memory.commit("Learn")
    memory = open_memory(tmp_path)
    assert (memory.state.manifest.threads, memory.state.manifest.learned_from) == (SIZE + 1, SIZE)
    assert set(memory.entries([LATER.id])) == {LATER.id}
    assert memory.notes == []


@pytest.mark.slow
def test_the_later_of_two_concurrent_model_updates_stays_intact(tmp_path: Path) -> None:
    remember(tmp_path, HISTORY)
    one, two = open_memory(tmp_path), open_memory(tmp_path)
    two.stage(Changes(records=(LATER,)))
    learn_from(one)
    learn_from(two)
    assert one.commit("One")
    assert two.commit("Two")
    memory = open_memory(tmp_path)
    assert (memory.state.manifest.learned_from, memory.state.manifest.threads) == (SIZE + 1, SIZE + 1)
    assert memory.ranking.provenance["replayed"] == SIZE + 1
    assert memory.notes == []


def test_a_backtest_leaves_out_issues_of_people_who_are_left_alone(tmp_path: Path) -> None:
    memory = remember(tmp_path, HISTORY)
    backtest = learn_from(memory)
    author = HISTORY[-1].author
    for ignored in (IgnoreSettings(people=(author.upper(),)), IgnoreSettings(authors=(author,))):
        rest = without_ignored(backtest, memory, Settings(mode="off", ignore=ignored))
        removed = {thread.id for thread in HISTORY if thread.author == author}
        assert [one.id for one in rest.replayed] == [one.id for one in backtest.replayed if one.id not in removed]
        assert len(backtest.replayed) - len(rest.replayed) == backtest.wanted - rest.wanted > 0
