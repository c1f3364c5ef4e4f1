"""Forgetting a thread: nothing of its text is left in the store or its history, and nothing brings it back."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from bot.domain.changes import FORGET, Changes, FixInfo, Request
from bot.domain.post import Post
from bot.domain.thread import FORGOTTEN, Message, Thread, Tombstone
from bot.git.errors import RemoteRefused
from bot.memory.branch_store import CLONE_FOLDER, BranchStore
from bot.memory.memory import Memory
from bot.memory.model_store import ModelUpdate
from bot.ranking.weights import shipped
from tests.memory.remotes import HostedRepository, files_with, git, open_store, read_object
from tests.memory.samples import ON_BRANCH_TOO, StoredMemory, at, find_threads, issue, remember

SECRET = "hunterkeyzq9"
FORGET_REQUEST = Request(7, 70, FORGET, "octocat", at(5), trying_since=at(5))
FORGET_CHANGES = Changes(records=(Tombstone(7, at(5), FORGOTTEN),), requests=(FORGET_REQUEST,))


def leaky(hours: float = 1) -> Thread:
    message = Message("octocat", "NONE", at(hours), f"the key is {SECRET}, in hashes/{SECRET}.py", id=71)
    return issue(7, hours, body=f"It prints\n\n```\nError: {SECRET} was refused\n```\n", comments=(message,))


def forget(memory: Memory) -> bool:
    memory.stage(FORGET_CHANGES)
    return memory.commit("Forget 7", squash=True)


def reachable_objects(repository: Path, ref: str = "precedent") -> dict[str, bytes]:
    """All objects reachable from the branch, with their contents."""
    object_names = git(repository, "rev-list", "--objects", "--no-object-names", ref).split()
    batch_option = "--batch-check=%(objecttype)"
    kinds = git(repository, "cat-file", batch_option, stdin="\n".join(object_names).encode()).split()
    return {name: read_object(repository, kind, name) for name, kind in zip(object_names, kinds, strict=True)}


def fill_memory(stored: StoredMemory) -> Memory:
    """Fill a memory with the secret in every place that can hold it."""
    memory = stored.memory()
    remember(memory, *(issue(key) for key in range(1, 7)), leaky(0.5))
    remember(memory, leaky(), issue(8, 1, body="see #7"))
    memory.stage(
        Changes(
            posts=(Post(7, "said", at(1), comment_id=11, question="1" * 16, content="0" * 16),),
            requests=(Request(7, 12, "search", "octocat", at(1)),),
            fixes=(FixInfo(7, "#8", at(1), files=(f"hashes/{SECRET}.py",)),),
        )
    )
    memory.install_model(ModelUpdate(shipped(), 8, {"title": SECRET}))
    memory.commit("all of it")
    return memory


@ON_BRANCH_TOO
def test_nothing_of_a_forgotten_thread_is_left_in_the_store_or_its_history(stored: StoredMemory) -> None:
    memory = fill_memory(stored)
    assert find_threads(memory, SECRET) == [7]
    location = stored.hosted.repository if stored.hosted else stored.folder
    assert len(files_with(location, SECRET)) > 3
    assert forget(memory)
    assert (find_threads(memory, SECRET), len(memory.state.base.digest_paths())) == ([], 1)
    if stored.hosted:
        assert git(location, "rev-list", "--count", "precedent") == "1"
        assert [name for name, content in reachable_objects(location).items() if SECRET.encode() in content] == []
    else:
        assert files_with(location, SECRET) == []
    assert [path for path, data in stored.files().items() if SECRET.encode() in data] == []
    assert memory.records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}
    assert (memory.state.comments([7]), memory.fixes([7]), memory.requests([7])) == ({}, {}, {7: (FORGET_REQUEST,)})
    assert (memory.state.manifest.model, memory.state.manifest.learned_from) == ({}, 0)
    assert memory.state.manifest.requests_since(at(0)) == (FORGET_REQUEST,)


def test_a_forgotten_thread_never_comes_back(stored: StoredMemory) -> None:
    memory = fill_memory(stored)
    forget(memory)
    for later in (leaky(9), replace(leaky(9), state="closed"), Tombstone(7, at(9), "deleted")):
        memory.stage(Changes(records=(later,), posts=(Post(7, "pending", at(9), reason="it was read as history"),)))
        memory.commit("again")
    memory = stored.memory()
    memory.rebuild_index()
    memory.commit("Rebuild")
    assert stored.memory().records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}
    assert (stored.memory().state.comments([7]), stored.memory().state.manifest.pending) == ({}, ())


def test_a_deleted_thread_can_be_forgotten(stored: StoredMemory) -> None:
    memory = fill_memory(stored)
    remember(memory, Tombstone(7, at(9), "deleted"))
    forget(memory)
    assert stored.memory().records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}
    assert stored.memory().state.manifest.threads == 7


REMEMBER_CHANGES = Changes(records=(issue(7, 6, body="a kookaburra"),), remembered=((7, at(6)),))


@pytest.mark.parametrize("order", [*permutations(range(3))], ids=str)
def test_a_thread_remembered_again_wins_over_racing_runs_in_any_order(
    stored: StoredMemory, order: tuple[int, ...]
) -> None:
    remember(stored.memory(), leaky(0.5))
    racing = (FORGET_CHANGES, REMEMBER_CHANGES, Changes(records=(leaky(1),)))
    writers = [stored.memory() for _ in racing]
    for writer, changes in zip(writers, racing, strict=True):
        writer.stage(changes)
    for place in order:
        writers[place].commit("one of three")
    memory = stored.memory()
    assert memory.records([7]) == {7: REMEMBER_CHANGES.records[0]}
    assert [path for path, data in stored.files().items() if SECRET.encode() in data] == []
    assert memory.state.manifest.threads == 1
    assert (find_threads(memory, SECRET), find_threads(memory, "kookaburra")) == ([], [7])


def test_a_thread_forgotten_once_more_stays_forgotten(stored: StoredMemory) -> None:
    memory = fill_memory(stored)
    forget(memory)
    memory.stage(REMEMBER_CHANGES)
    memory.commit("Remember")
    again = Tombstone(7, at(7), FORGOTTEN)
    for changes in (Changes(records=(again,)), REMEMBER_CHANGES, Changes(records=(leaky(9),))):
        memory.stage(changes)
        memory.commit("again")
        assert stored.memory().records([7]) == {7: again}


@ON_BRANCH_TOO
def test_a_concurrent_run_restores_no_forgotten_text_and_postpones_its_plans(stored: StoredMemory) -> None:
    fill_memory(stored)
    other = stored.memory()
    other.stage(Changes(records=(leaky(9), issue(9, 9, body="as in #7"))))
    promise = Post(9, "pending", at(9), trying_since=at(9), content="2" * 16, matches=((7, 0.5),))
    reply = Request(9, 90, "context", "octocat", at(9), trying_since=at(9))
    other.stage(Changes(posts=(promise, replace(promise, id=7)), requests=(reply,)))
    other.install_model(ModelUpdate(shipped(), 9, {"title": SECRET}))
    other.rebuild_index()
    forget(stored.memory())
    assert other.commit("later")
    assert other.is_outdated
    assert [path for path, data in stored.files().items() if SECRET.encode() in data] == []
    memory = stored.memory()
    assert memory.records([7, 9]) == {7: Tombstone(7, at(5), FORGOTTEN), 9: issue(9, 9, body="as in #7")}
    assert memory.state.comments([7, 9]) == {9: replace(promise, trying_since=None, matches=())}
    assert memory.requests([9]) == {9: (replace(reply, trying_since=None),)}
    assert memory.state.manifest.pending == (9,)
    assert memory.state.manifest.model == {}
    remember(other, issue(10, 10))
    assert not other.is_outdated


def test_a_thread_is_forgotten_even_if_another_run_writes_meanwhile(stored: StoredMemory) -> None:
    memory = fill_memory(stored)
    other = stored.memory()
    remember(other, replace(leaky(9), title=f"{SECRET} again"))
    assert forget(memory)
    assert [path for path, data in stored.files().items() if SECRET.encode() in data] == []
    assert stored.memory().records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}


@pytest.mark.slow
@pytest.mark.parametrize("stored", ["branch"], indirect=True)
def test_forgetting_again_squashes_the_history_again(stored: StoredMemory) -> None:
    remember(stored.memory(), leaky())
    forget(stored.memory())
    remember(stored.memory(), issue(9))
    assert forget(stored.memory())
    assert stored.hosted
    assert git(stored.hosted.repository, "rev-list", "--count", "precedent") == "1"


def test_if_the_server_forbids_the_squash_nothing_is_written(hosted: HostedRepository) -> None:
    with open_store(hosted) as store:
        memory = Memory(store).open()
        remember(memory, leaky())
        git(hosted.repository, "config", "receive.denyNonFastForwards", "true")
        before = git(hosted.repository, "rev-parse", "precedent")
        memory.stage(FORGET_CHANGES)
        with pytest.raises(RemoteRefused):
            memory.commit("Forget 7", squash=True)
        assert git(hosted.repository, "rev-parse", "precedent") == before
        assert memory.commit("Forget 7")
        assert git(hosted.repository, "rev-list", "--count", "precedent") == "2"


def open_kept(hosted: HostedRepository, folder: Path) -> BranchStore:
    return BranchStore(hosted.url, "precedent", hosted.token, keep=folder)


@pytest.mark.slow
def test_forgetting_removes_kept_clones_here_and_on_other_machines(hosted: HostedRepository, tmp_path: Path) -> None:
    for machine in (tmp_path / "one", tmp_path / "other"):
        with open_kept(hosted, machine) as store:
            remember(Memory(store).open([7]), leaky(), issue(1, 1, machine.name))
        with open_kept(hosted, machine) as store:
            Memory(store).open([7]).records([7])
    assert all(files_with(machine, SECRET) for machine in (tmp_path / "one", tmp_path / "other"))
    with open_kept(hosted, tmp_path / "one") as store:
        forget(Memory(store).open([7]))
    assert not (tmp_path / "one" / CLONE_FOLDER).exists()
    with open_kept(hosted, tmp_path / "other") as store:
        memory = Memory(store).open([7, 1])
        assert memory.records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}
        before = (tmp_path / "other" / CLONE_FOLDER).stat().st_ino
        remember(memory, issue(2))
    assert files_with(tmp_path / "other", SECRET) == []
    with open_kept(hosted, tmp_path / "other") as store:
        store.open()
    assert (tmp_path / "other" / CLONE_FOLDER).stat().st_ino == before
