"""Forgetting a thread: nothing of its text is left in the store or its history, and nothing brings it back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.changes import FORGET, AnswerRecord, Changes, FixInfo, Request
from bot.domain.thread import FORGOTTEN, Message, Thread, Tombstone
from bot.git.errors import RemoteRefused
from bot.memory.branch_store import CLONE, BranchStore
from bot.memory.memory import Memory
from bot.memory.model_store import ModelUpdate
from bot.ranking.weights import shipped
from tests.memory.remotes import Hosted, git, holds, opened, shown
from tests.memory.samples import Place, at, found, issue, remember

SECRET = "hunterkeyzq9"
ASKED = Request(7, 70, FORGET, "octocat", at(5), trying_since=at(5))
GONE = Changes(records=(Tombstone(7, at(5), FORGOTTEN),), requests=(ASKED,))


def leaky(hours: float = 1) -> Thread:
    said = Message("octocat", "NONE", at(hours), f"the key is {SECRET}, in hashes/{SECRET}.py", id=71)
    return issue(7, hours, body=f"It prints\n\n```\nError: {SECRET} was refused\n```\n", comments=(said,))


def forget(memory: Memory) -> bool:
    memory.stage(GONE)
    return memory.commit("Forget 7", squash=True)


def reachable(repository: Path, ref: str = "precedent") -> dict[str, bytes]:
    """All objects that the branch leads to, with their contents."""
    names = git(repository, "rev-list", "--objects", "--no-object-names", ref).split()
    read = "--batch-check=%(objecttype)"
    kinds = git(repository, "cat-file", read, given="\n".join(names).encode()).split()
    return {name: shown(repository, kind, name) for name, kind in zip(names, kinds, strict=True)}


def known(place: Place) -> Memory:
    """A memory that knows the secret in every way in which it can."""
    memory = place.memory()
    remember(memory, *(issue(key) for key in range(1, 7)), leaky(0.5))
    remember(memory, leaky(), issue(8, 1, body="see #7"))
    memory.stage(
        Changes(
            answers=(AnswerRecord(7, "said", at(1), comment_id=11, text_hash="0" * 16, question="1" * 16),),
            requests=(Request(7, 12, "search", "octocat", at(1)),),
            fixes=(FixInfo(7, "#8", at(1), files=(f"hashes/{SECRET}.py",)),),
        )
    )
    memory.install_model(ModelUpdate(b"not words, but " + SECRET.encode(), shipped(), 8, {"title": SECRET}))
    memory.commit("all of it")
    return memory


def test_nothing_of_a_forgotten_thread_is_left_in_the_store_nor_in_what_it_was(place: Place) -> None:
    memory = known(place)
    assert found(memory, SECRET) == [7]
    where = place.folder / ("store" if place.kind == "folder" else "remote.git")
    assert len(holds(where, SECRET)) > 3
    assert forget(memory)
    assert (found(memory, SECRET), len(memory.state.base.digest_paths())) == ([], 1)
    if place.kind == "folder":
        assert holds(where, SECRET) == []
    else:
        assert git(where, "rev-list", "--count", "precedent") == "1"
        assert [name for name, content in reachable(where).items() if SECRET.encode() in content] == []
    assert [path for path, data in place.files().items() if SECRET.encode() in data] == []
    assert memory.records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}
    assert (memory.state.answers([7]), memory.fixes([7]), memory.requests([7])) == ({}, {}, {7: (ASKED,)})
    assert (memory.index.encoder.learned.has_words, memory.state.manifest.learned_from) == (False, 0)
    assert memory.state.manifest.requests_since(at(0)) == (ASKED,)


def test_no_later_text_takes_the_place_of_what_is_forgotten(place: Place) -> None:
    memory = known(place)
    forget(memory)
    for later in (leaky(9), replace(leaky(9), state="closed"), Tombstone(7, at(9), "deleted")):
        memory.stage(Changes(records=(later,), answers=(AnswerRecord(7, "pending", at(9), "it was read as history"),)))
        memory.commit("again")
    memory = place.memory()
    memory.rebuild_index()
    memory.commit("Rebuild")
    assert place.memory().records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}
    assert (place.memory().state.answers([7]), place.memory().state.manifest.pending) == ({}, ())


def test_a_thread_that_is_gone_already_can_be_forgotten(place: Place) -> None:
    memory = known(place)
    remember(memory, Tombstone(7, at(9), "deleted"))
    forget(memory)
    assert place.memory().records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}
    assert (place.memory().state.manifest.threads, place.memory().state.manifest.tombstones) == (7, 1)


def test_another_run_with_the_text_at_hand_brings_nothing_back_and_puts_off_what_it_planned(place: Place) -> None:
    known(place)
    other = place.memory()
    other.stage(Changes(records=(leaky(9), issue(9, 9, body="as in #7"))))
    promise = AnswerRecord(9, "pending", at(9), text_hash="2" * 16, trying_since=at(9))
    reply = Request(9, 90, "context", "octocat", at(9), trying_since=at(9))
    other.stage(Changes(answers=(promise, replace(promise, id=7)), requests=(reply,)))
    other.install_model(ModelUpdate(SECRET.encode(), shipped(), 9, {"title": SECRET}))
    other.rebuild_index()
    forget(place.memory())
    assert other.commit("later")
    assert other.is_outdated
    assert [path for path, data in place.files().items() if SECRET.encode() in data] == []
    memory = place.memory()
    assert memory.records([7, 9]) == {7: Tombstone(7, at(5), FORGOTTEN), 9: issue(9, 9, body="as in #7")}
    assert memory.state.answers([7, 9]) == {9: replace(promise, trying_since=None)}
    assert memory.requests([9]) == {9: (replace(reply, trying_since=None),)}
    assert memory.state.manifest.pending == (9,)
    assert not memory.index.encoder.learned.has_words
    remember(other, issue(10, 10))
    assert not other.is_outdated


def test_what_is_forgotten_while_another_run_writes_is_forgotten_all_the_same(place: Place) -> None:
    memory = known(place)
    other = place.memory()
    remember(other, replace(leaky(9), title=f"{SECRET} again"))
    assert forget(memory)
    assert [path for path, data in place.files().items() if SECRET.encode() in data] == []
    assert place.memory().records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}


def test_forgetting_again_gives_up_the_history_again(place: Place) -> None:
    memory = known(place)
    forget(memory)
    remember(place.memory(), issue(9))
    assert forget(place.memory())
    if place.kind == "branch":
        assert git(place.folder / "remote.git", "rev-list", "--count", "precedent") == "1"


def test_a_server_that_forbids_the_squash_is_told_of_and_nothing_is_written(hosted: Hosted) -> None:
    with opened(hosted) as store:
        memory = Memory(store).open()
        remember(memory, leaky())
        git(hosted.repository, "config", "receive.denyNonFastForwards", "true")
        before = git(hosted.repository, "rev-parse", "precedent")
        memory.stage(GONE)
        with pytest.raises(RemoteRefused):
            memory.commit("Forget 7", squash=True)
        assert git(hosted.repository, "rev-parse", "precedent") == before
        assert memory.commit("Forget 7")
        assert git(hosted.repository, "rev-list", "--count", "precedent") == "2"


def kept(hosted: Hosted, folder: Path) -> BranchStore:
    return BranchStore(hosted.url, "precedent", hosted.token, keep=folder)


def test_a_kept_clone_goes_with_the_past_of_the_branch_here_and_on_other_machines(
    hosted: Hosted, tmp_path: Path
) -> None:
    for machine in (tmp_path / "one", tmp_path / "other"):
        with kept(hosted, machine) as store:
            remember(Memory(store).open([7]), leaky(), issue(1, 1, machine.name))
        with kept(hosted, machine) as store:
            Memory(store).open([7]).records([7])
    assert all(holds(machine, SECRET) for machine in (tmp_path / "one", tmp_path / "other"))
    with kept(hosted, tmp_path / "one") as store:
        forget(Memory(store).open([7]))
    assert not (tmp_path / "one" / CLONE).exists()
    with kept(hosted, tmp_path / "other") as store:
        memory = Memory(store).open([7, 1])
        assert memory.records([7]) == {7: Tombstone(7, at(5), FORGOTTEN)}
        before = (tmp_path / "other" / CLONE).stat().st_ino
        remember(memory, issue(2))
    assert holds(tmp_path / "other", SECRET) == []
    with kept(hosted, tmp_path / "other") as store:
        store.open()
    assert (tmp_path / "other" / CLONE).stat().st_ino == before
