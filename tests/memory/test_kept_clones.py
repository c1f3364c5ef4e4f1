"""A clone that stays from one opening of the branch to the next."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from bot.files import DiskTrouble
from bot.git.errors import GitError
from bot.memory.branch_store import CLONE, BranchStore
from tests.memory.remotes import Hosted, contents, opened


def test_closing_leaves_nothing_behind_but_a_clone_that_is_kept(hosted: Hosted, tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    with BranchStore(hosted.url, "precedent", hosted.token, keep=keep) as store:
        store.write(store.open(), {"a": b"1"}, "first").checkout("")
        assert len(list(keep.iterdir())) == 2
    assert [each.name for each in keep.iterdir()] == [CLONE]


def test_nothing_of_a_clone_that_is_not_kept_is_left(hosted: Hosted, tmp_path: Path) -> None:
    tempfile.tempdir = str(tmp_path)
    try:
        with opened(hosted) as store:
            store.write(store.open(), {"a": b"1"}, "first").checkout("")
            assert len(list(tmp_path.glob("precedent-*"))) == 1
    finally:
        tempfile.tempdir = None
    assert list(tmp_path.glob("precedent-*")) == []


@pytest.mark.slow
def test_a_kept_clone_goes_on_where_it_was_left_also_after_a_squash(hosted: Hosted, tmp_path: Path) -> None:
    for number in range(6):
        with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path, squash_after=3) as store:
            base = store.open(["a"])
            assert base.read(["a"]) == ({"a": str(number - 1).encode()} if number else {})
            store.write(base, {"a": str(number).encode()}, "next")
    assert contents(hosted) == {"a": b"5"}


def test_what_a_killed_git_left_in_a_kept_clone_holds_nobody_up(hosted: Hosted, tmp_path: Path) -> None:
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store:
        store.write(store.open(), {"a": b"1"}, "first")
    clone = tmp_path / CLONE
    left = [clone / "shallow.lock", clone / "refs" / "tip.lock", clone / "objects" / "pack" / "tmp_pack_x"]
    left += [tmp_path / "precedent-left" / "checkout"]
    for each in left:
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_bytes(b"")
    with opened(hosted) as other:
        other.write(other.open(), {"a": b"2"}, "second")
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store:
        assert store.open(["a"]).read(["a"]) == {"a": b"2"}
    assert not any(each.exists() for each in left)


@pytest.mark.parametrize("harm", ["objects", "packed away", "not a repository"])
def test_a_kept_clone_that_was_damaged_is_made_anew(hosted: Hosted, tmp_path: Path, harm: str) -> None:
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store:
        store.write(store.open(), {"a": b"1"}, "first")
        store.open(["a"])
    clone = tmp_path / CLONE
    if harm == "objects":
        for file in (path for path in (clone / "objects").rglob("*") if path.is_file()):
            file.chmod(0o600)
            file.write_bytes(b"damaged")
    elif harm == "packed away":
        shutil.rmtree(clone / "objects")
        (clone / "objects").mkdir()
    else:
        (clone / "config").write_text("nothing of that kind")
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store:
        assert store.open(["a"]).read(["a"]) == {"a": b"1"}
        store.write(store.open(), {"a": b"2"}, "second")
    assert contents(hosted) == {"a": b"2"}


def test_a_server_that_is_away_costs_no_kept_clone(hosted: Hosted, tmp_path: Path) -> None:
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store:
        store.write(store.open(), {"a": b"1"}, "first")
    before = (tmp_path / CLONE / "HEAD").stat().st_ino
    hosted.server.faults.add("* */info/refs", "401", times=None)
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store, pytest.raises(GitError):
        store.open()
    assert (tmp_path / CLONE / "HEAD").stat().st_ino == before


def test_a_folder_to_keep_that_cannot_be_made_is_reported(hosted: Hosted) -> None:
    with pytest.raises(DiskTrouble, match=r"cannot make a temporary folder: .*; free some space"):
        BranchStore(hosted.url, "precedent", hosted.token, keep=Path("/proc/none"))
