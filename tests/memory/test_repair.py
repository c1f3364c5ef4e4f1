"""Whatever somebody puts in the place of our files on the memory branch, the next runs continue and repair it."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from bot.domain.changes import Changes, FixInfo, Request
from bot.domain.post import Post
from bot.files import MAX_FILE_BYTES
from bot.memory.branch_store import BranchStore
from bot.memory.folder_store import FolderStore
from bot.memory.manifest import MANIFEST_PATH
from bot.memory.memory import Memory
from bot.memory.model_store import ModelUpdate
from bot.ranking.weights import shipped
from tests.examples import share
from tests.memory.remotes import bare_repository, commit, git
from tests.memory.samples import at, find_threads, issue, word_of

THREADS = tuple(issue(number) for number in (1, 2, 150))
ALL_CHANGES = Changes(
    records=THREADS,
    posts=(Post(1, "silent", at(1), reason="nothing relevant"),),
    requests=(Request(1, 7, "refresh", "octocat", at(1), state="done"),),
    fixes=(FixInfo(1, "#9", at(1)),),
    cursor=at(2),
)
SHARDS = ("posts/0000.jsonl", "requests/0000.jsonl", "fixes/0000.jsonl", "digests/0000.jsonl")
FILES = (MANIFEST_PATH, "records/0000/1.json", "model/ranking.json", *SHARDS)
FOLDERS = ("records", "records/0000", "index", "posts", "digests", "model")
KINDS = {
    "symlink": ("120000", b"/etc/passwd"),
    "executable": ("100755", b"{}"),
    "submodule": ("160000", b""),
    "garbage": ("100644", b"\0{"),
    "large": ("100644", b" " * (MAX_FILE_BYTES + 1)),
}


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A repository whose memory has a file of every kind."""
    bare = bare_repository(tmp_path / "remote.git")
    commit(bare, {"README.md": ("100644", b"# Hello\n")}, "refs/heads/main")
    rebuild(bare)
    assert set(FILES) <= set(git(bare, "ls-tree", "-r", "--name-only", "precedent").splitlines())
    return bare


def rebuild(remote: Path) -> list[str]:
    """Read everything again, as `rebuild` does, and return the notes."""
    with closing(Memory(BranchStore(str(remote), "precedent")).open()) as memory:
        memory.stage(ALL_CHANGES)
        memory.install_model(ModelUpdate(shipped(), 3))
        memory.rebuild_index()
        memory.commit("rebuild")
        return list(memory.notes)


def run_event(remote: Path) -> list[str]:
    """Store a changed thread, as a run of the Action does, and return the notes."""
    with closing(Memory(BranchStore(str(remote), "precedent")).open()) as memory:
        find_threads(memory, word_of(150))
        memory.state.comments([1, 2])
        memory.stage(replace(ALL_CHANGES, records=(issue(1, 3),), cursor=at(4)))
        memory.commit("event")
        return list(memory.notes)


def plant(remote: Path, path: str, kind: str) -> None:
    """Replace this path with something else and remove what is below it."""
    git(remote, "read-tree", "precedent")
    git(remote, "rm", "-r", "--cached", "--quiet", "--ignore-unmatch", path)
    if kind == "folder":
        path, (mode, content) = f"{path}/inside/x", ("100644", b"1")
    else:
        mode, content = KINDS[kind]
    oid = "1" * 40 if mode == "160000" else git(remote, "hash-object", "-w", "--stdin", stdin=content)
    git(remote, "update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}")
    commit_id = git(remote, "commit-tree", "-p", "precedent", "-m", "by hand", git(remote, "write-tree"))
    git(remote, "update-ref", "refs/heads/precedent", commit_id)


def irregular_files(remote: Path) -> list[str]:
    """The entries on the branch that are not files of ours."""
    lines = git(remote, "ls-tree", "-r", "precedent").splitlines()
    return [line for line in lines if not line.startswith("100644 blob") or "/inside/" in line]


def is_intact(remote: Path) -> bool:
    """Whether the memory has all threads and no notes. Fails unless everything is found."""
    with closing(Memory(BranchStore(str(remote), "precedent")).open()) as memory:
        assert find_threads(memory, word_of(150)) == [150]
        assert set(memory.records([1, 2, 150])) == {1, 2, 150}
        assert (set(memory.state.comments([1])), set(memory.requests([1])), set(memory.fixes([1]))) == ({1}, {1}, {1})
        return memory.state.manifest.threads == 3 and not memory.notes


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "kind"),
    [*share(product(FILES, [*KINDS, "folder"]), 4), *product(FOLDERS, ["symlink", "submodule", "executable"])],
)
def test_a_rebuild_repairs_a_replaced_file_or_folder(remote: Path, path: str, kind: str) -> None:
    plant(remote, path, kind)
    run_event(remote)
    rebuild(remote)
    assert irregular_files(remote) == []
    assert is_intact(remote)


@pytest.mark.parametrize("kind", share([*KINDS, "folder"]))
def test_the_next_event_repairs_the_manifest_and_reports_it(remote: Path, kind: str) -> None:
    plant(remote, MANIFEST_PATH, kind)
    assert [note for note in run_event(remote) if note.startswith("The manifest was ")]
    assert irregular_files(remote) == []
    with closing(Memory(BranchStore(str(remote), "precedent")).open()) as memory:
        assert (memory.state.manifest.cursor, memory.state.manifest.threads) == (at(4), 3)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_in_a_folder_store_a_link_or_a_pipe_counts_as_a_damaged_file(tmp_path: Path, kind: str) -> None:
    with closing(Memory(FolderStore(tmp_path / "store")).open()) as memory:
        memory.stage(ALL_CHANGES)
        memory.commit("first")
    file = tmp_path / "store" / MANIFEST_PATH
    file.unlink()
    os.mkfifo(file) if kind == "pipe" else file.symlink_to("/dev/zero")
    with closing(Memory(FolderStore(tmp_path / "store")).open()) as memory:
        memory.stage(ALL_CHANGES)
        memory.commit("second")
        assert "The manifest was damaged" in memory.notes[0]
    assert stat.S_ISREG(file.lstat().st_mode)
