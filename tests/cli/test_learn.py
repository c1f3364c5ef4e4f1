"""A store on a person's machine learns from its own history, as the Action's memory does."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from bot.comment.render import Renderer
from bot.domain.changes import Changes
from bot.domain.thread import RepositoryAddress
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.model_store import RANKING_PATH
from bot.pipeline.learn import MIN_LEARN_THREADS, learn
from bot.settings.schema import Settings
from tests.cli.program_result import Run
from tests.cli.test_evaluate import archive, open_memory
from tests.evaluation.timelines import generated
from tests.ranking.tiny_model import write_folder

THREADS = [life.thread() for life in generated(MIN_LEARN_THREADS + 30, Random(3))]


@pytest.mark.night
@pytest.mark.slow
def test_an_import_learns_what_the_action_learns(tmp_path: Path, call: Run) -> None:
    file = archive(tmp_path / "history.jsonl", THREADS)
    result = call("import", file, "--store", tmp_path / "store")
    assert result.code == 0
    hint = f"`precedent learn --store {tmp_path / 'store'}` spends more time on it"
    assert result.out.splitlines()[1] == f"learned from {len(THREADS)} threads; {hint}"
    assert open_memory(tmp_path / "store").uncompared() == {}  # for clusters
    action_memory = Memory(FolderStore(tmp_path / "action"))
    action_memory.stage(Changes(records=tuple(THREADS)))
    learn(action_memory, Settings(), Renderer(), RepositoryAddress())
    action_memory.commit("Learn")
    files = [tmp_path / name / RANKING_PATH for name in ("store", "action")]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.night
@pytest.mark.slow
def test_a_store_with_the_vectors_of_a_text_model_keeps_them(tmp_path: Path, call: Run) -> None:
    file, store = archive(tmp_path / "history.jsonl", THREADS), tmp_path / "store"
    model = write_folder(tmp_path / "model")
    assert call("import", file, "--store", store, "--semantic", model, "--no-learn").code == 0
    assert call("learn", "--store", store, "--semantic", model).code == 0
    result = call("answer", str(THREADS[-1].id), "--store", store, "--semantic", model)
    assert (result.code, result.err.count("no vectors of the model")) == (0, 0)


@pytest.mark.night
@pytest.mark.slow
def test_learning_can_be_skipped_and_done_later(tmp_path: Path, call: Run) -> None:
    file, store = archive(tmp_path / "history.jsonl", THREADS), tmp_path / "store"
    assert call("import", file, "--store", store, "--no-learn", "--json").data["learned_from"] == 0
    assert not (store / RANKING_PATH).exists()
    data = call("learn", "--store", store, "--json").data
    assert (data["learned"], data["reason"], data["threads"]) == (True, "", len(THREADS))
    assert (store / RANKING_PATH).exists()
    assert call("learn", "--store", store).out.startswith(f"learned from {len(THREADS)} threads. Of the ")
    assert open_memory(store).state.manifest.learned_from == len(THREADS)


@pytest.mark.slow
def test_too_few_threads_are_compared_but_not_learned_from(tmp_path: Path, call: Run) -> None:
    file, store = archive(tmp_path / "history.jsonl", THREADS[: MIN_LEARN_THREADS - 1]), tmp_path / "store"
    assert call("import", file, "--store", store).out.count("\n") == 1
    assert open_memory(store).uncompared()
    reason = "nothing was learned: 49 threads are too few, 50 are needed"
    assert call("learn", "--store", store).out == f"{reason}\n"
    assert call("learn", "--store", store, "--json").data == {"learned": False, "reason": reason}
    assert not open_memory(store).uncompared()
    assert not (store / RANKING_PATH).exists()


@pytest.mark.night
@pytest.mark.slow
def test_an_import_learns_again_once_a_third_more_threads_were_added(tmp_path: Path, call: Run) -> None:
    store = tmp_path / "store"
    call("import", archive(tmp_path / "first.jsonl", THREADS[:60]), "--store", store)
    ranking = (store / RANKING_PATH).read_bytes()
    second = call("import", archive(tmp_path / "second.jsonl", THREADS[60:65]), "--store", store, "--json")
    assert second.data["learned_from"] == 60
    assert (store / RANKING_PATH).read_bytes() == ranking
    assert open_memory(store).notes == []
    third = call("import", archive(tmp_path / "third.jsonl", THREADS[65:80]), "--store", store, "--json")
    assert third.data["learned_from"] == 80
