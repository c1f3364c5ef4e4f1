"""Reading checkouts: real repositories of every shape."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bot.domain.card import Worktree, WorktreeCommit
from bot.git.checkout import read_worktree

GIT_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "octocat",
    "GIT_AUTHOR_EMAIL": "octocat@example.org",
    "GIT_COMMITTER_NAME": "octocat",
    "GIT_COMMITTER_EMAIL": "octocat@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
}


def git(folder: Path, *args: str | bytes) -> str:
    environment = GIT_ENVIRONMENT | {"PATH": os.environ["PATH"], "HOME": str(folder)}
    process = subprocess.run(("git", *args), cwd=folder, env=environment, capture_output=True, check=True)
    return process.stdout.decode("utf-8", "replace").strip()


def messages(worktree: Worktree) -> tuple[str, ...]:
    return tuple(commit.message for commit in worktree.commits)


def committed(worktree: Worktree) -> list[str]:
    return [path for commit in worktree.commits for path in commit.files]


def commit(folder: Path, message: str, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{message}\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit on its main branch."""
    folder = tmp_path / "linkbarn"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "Begin", "pyproject.toml", "store/session.py")
    return folder


def test_a_branch_is_read_with_its_name_commits_and_files(checkout: Path) -> None:
    git(checkout, "switch", "--quiet", "--create", "fix/42-session-timeout")
    commit(checkout, "Expire sessions\n\nSee #42", "store/expiry.py")
    (checkout / "store" / "session.py").write_text("changed\n")
    (checkout / "new.py").write_text("new\n")
    (checkout / "staged.py").write_text("staged\n")
    git(checkout, "add", "staged.py")
    assert read_worktree(checkout) == Worktree(
        branch="fix/42-session-timeout",
        commits=(WorktreeCommit("Expire sessions\n\nSee #42", ("store/expiry.py",)),),
        modified=("store/session.py", "new.py"),
        staged=("staged.py",),
        is_own=True,
        project="linkbarn",
        language="python",
    )


def test_a_branch_without_commits_has_those_it_began_at(checkout: Path) -> None:
    git(checkout, "switch", "--quiet", "--create", "fix/42")
    worktree = read_worktree(checkout)
    assert (messages(worktree), worktree.is_own) == (("Begin",), False)


@pytest.mark.parametrize("name", ["main", "master"])
def test_a_main_branch_is_not_a_signal_and_its_commits_are_not_the_persons_own(checkout: Path, name: str) -> None:
    git(checkout, "branch", "--move", name)
    worktree = read_worktree(checkout)
    assert (worktree.branch, worktree.is_own, worktree.is_clean_trunk, worktree.unused) == ("", False, True, ())
    assert worktree.commits == (WorktreeCommit("Begin", ("pyproject.toml", "store/session.py")),)


def test_the_default_branch_of_the_remote_is_not_a_signal_either(checkout: Path) -> None:
    git(checkout, "branch", "--move", "develop")
    git(checkout.parent, "clone", "--quiet", str(checkout), "clone")
    clone = checkout.parent / "clone"
    assert (read_worktree(clone).branch, read_worktree(clone).project) == ("", "linkbarn")
    git(clone, "switch", "--quiet", "--create", "feature")
    commit(clone, "One")
    assert (read_worktree(clone).branch, messages(read_worktree(clone))) == ("feature", ("One",))


@pytest.fixture
def trunk(checkout: Path) -> Path:
    """A clone on its main branch, with everything pushed."""
    git(checkout.parent, "clone", "--quiet", str(checkout), "clone")
    return checkout.parent / "clone"


def test_unpushed_commits_on_a_main_branch_are_the_persons_own_while_files_are_changed(trunk: Path) -> None:
    (trunk / "store" / "session.py").write_text("changed\n")
    assert (messages(read_worktree(trunk)), read_worktree(trunk).is_own) == (("Begin",), False)
    git(trunk, "restore", ".")
    commit(trunk, "Expire sessions\n\nSee #42", "store/expiry.py")
    (trunk / "store" / "session.py").write_text("changed\n")
    worktree = read_worktree(trunk)
    assert (worktree.branch, worktree.is_own, worktree.is_clean_trunk) == ("", True, False)
    assert worktree.commits == (WorktreeCommit("Expire sessions\n\nSee #42", ("store/expiry.py",)),)
    git(trunk, "push", "--quiet", "origin", "HEAD:refs/heads/elsewhere")
    assert not read_worktree(trunk).is_own


def test_a_clean_main_branch_has_its_last_commits_pushed_or_not(trunk: Path) -> None:
    assert (messages(read_worktree(trunk)), read_worktree(trunk).is_clean_trunk) == (("Begin",), True)
    commit(trunk, "Second")
    worktree = read_worktree(trunk)
    assert (messages(worktree), worktree.is_own, worktree.is_clean_trunk) == (("Second", "Begin"), False, True)


@pytest.mark.parametrize("file", ["store/session.py", "new.py"])
def test_a_changed_staged_or_new_file_makes_a_main_branch_unclean(trunk: Path, file: str) -> None:
    (trunk / file).write_text("changed\n")
    assert not read_worktree(trunk).is_clean_trunk
    git(trunk, "add", "--all")
    assert not read_worktree(trunk).is_clean_trunk
    git(trunk, "reset", "--quiet", "--hard")
    assert read_worktree(trunk).is_clean_trunk


def test_a_detached_head_has_no_branch_and_no_commits_of_its_own(trunk: Path) -> None:
    git(trunk, "switch", "--quiet", "--detach")
    commit(trunk, "Try")
    worktree = read_worktree(trunk)
    assert (worktree.branch, messages(worktree)) == ("", ("Try", "Begin"))
    assert (worktree.is_own, worktree.is_clean_trunk) == (False, False)


def test_without_a_remote_commits_on_a_main_branch_are_not_the_persons_own(checkout: Path) -> None:
    commit(checkout, "Second")
    assert not read_worktree(checkout).is_own


def test_the_five_newest_commits_are_read_without_merges(checkout: Path) -> None:
    git(checkout, "switch", "--quiet", "--create", "feature")
    for number in range(7):
        commit(checkout, f"Step {number}")
    git(checkout, "switch", "--quiet", "main")
    commit(checkout, "Elsewhere", "other.py")
    git(checkout, "switch", "--quiet", "feature")
    git(checkout, "merge", "--quiet", "--no-edit", "main")
    assert messages(read_worktree(checkout)) == tuple(f"Step {number}" for number in (6, 5, 4, 3, 2))


def test_it_reads_the_same_from_a_folder_inside(checkout: Path) -> None:
    (checkout / "store" / "session.py").write_text("changed\n")
    assert read_worktree(checkout / "store") == read_worktree(checkout)
    assert read_worktree(checkout).modified == ("store/session.py",)


def test_file_names_may_contain_anything(checkout: Path) -> None:
    odd_names = [
        b"a\nb.py",
        b"tab\t.py",
        b"caf\xe9.py",
        b'"quoted".py',
        b"1 M fake.py",
        b"-x",
        "日本.py".encode(),
    ]
    for name in odd_names:
        (checkout / os.fsdecode(name)).write_text("x")
    expected = {name.decode("utf-8", "replace") for name in odd_names}
    assert set(read_worktree(checkout).modified) == expected
    git(checkout, "add", "--all")
    assert set(read_worktree(checkout).staged) == expected
    commit(checkout, "Odd")
    assert expected <= set(committed(read_worktree(checkout)))


def test_a_renamed_file_has_both_names_and_a_deleted_one_its_own(checkout: Path) -> None:
    git(checkout, "mv", "store/session.py", "store/sessions.py")
    assert set(read_worktree(checkout).staged) == {"store/session.py", "store/sessions.py"}
    git(checkout, "reset", "--quiet", "--hard")
    (checkout / "store" / "session.py").unlink()
    assert read_worktree(checkout).modified == ("store/session.py",)


def test_a_file_in_conflict_is_modified(checkout: Path) -> None:
    git(checkout, "switch", "--quiet", "--create", "feature")
    commit(checkout, "Ours", "store/session.py")
    git(checkout, "switch", "--quiet", "main")
    commit(checkout, "Theirs", "store/session.py")
    with pytest.raises(subprocess.CalledProcessError):
        git(checkout, "merge", "feature")
    assert read_worktree(checkout).modified == ("store/session.py",)


def test_outside_a_checkout_and_in_a_bare_repository_nothing_is_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "bare.git")
    for folder in (tmp_path, tmp_path / "missing", tmp_path / "bare.git"):
        assert read_worktree(folder) == Worktree(unused=("git: not inside a checkout",))


def test_an_empty_repository_has_a_branch_and_files(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=fix/42", "fresh")
    (tmp_path / "fresh" / "a.py").write_text("x")
    worktree = read_worktree(tmp_path / "fresh")
    assert worktree == Worktree("fix/42", modified=("a.py",), project="fresh", unused=("commits: none yet",))


def test_a_shallow_clone_and_a_second_worktree_are_checkouts(checkout: Path) -> None:
    commit(checkout, "Second")
    git(checkout.parent, "clone", "--quiet", "--depth=1", f"file://{checkout}", "shallow")
    assert messages(read_worktree(checkout.parent / "shallow")) == ("Second",)
    git(checkout, "worktree", "add", "--quiet", "-b", "fix/7", "../second")
    worktree = read_worktree(checkout.parent / "second")
    assert (worktree.branch, messages(worktree), worktree.unused) == ("fix/7", ("Second", "Begin"), ())


def test_a_submodule_is_its_own_checkout_and_its_changes_are_not_counted_outside(
    checkout: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "inner")
    commit(tmp_path / "inner", "Inner", "a.c")
    git(checkout, "submodule", "--quiet", "add", f"{tmp_path / 'inner'}", "vendor")
    commit(checkout, "With a submodule")
    (checkout / "vendor" / "a.c").write_text("changed")
    assert read_worktree(checkout).modified == ()
    inner = read_worktree(checkout / "vendor")
    assert (inner.modified, messages(inner)) == (("a.c",), ("Inner",))


def test_thousands_of_changes_are_cut_off(checkout: Path) -> None:
    for number in range(1_400):
        (checkout / f"{number}.{'x' * 200}").write_text("")
    worktree = read_worktree(checkout)
    assert (len(worktree.modified), worktree.unused) == (200, ())
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "-m", "m" * 10_000)
    worktree = read_worktree(checkout)
    assert len(committed(worktree)) == 200
    assert messages(worktree)[0] == "m" * 2_000


def test_without_git_only_the_project_is_known(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert read_worktree(checkout) == Worktree(
        project="linkbarn", language="python", unused=("git: git is not installed",)
    )


def test_a_broken_repository_is_reported(checkout: Path) -> None:
    (checkout / ".git" / "HEAD").write_text("nonsense")
    worktree = read_worktree(checkout)
    assert worktree._replace(unused=()) == Worktree(project="linkbarn", language="python")
    assert all("\n" not in note for note in worktree.unused)
    assert worktree.unused


def test_a_git_that_hangs_is_given_up(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = checkout.parent / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text('#!/bin/sh\ncase "$*" in *" status "*|*" log "*) exec sleep 60;; esac\nexit 1\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    worktree = read_worktree(checkout, timeout=0.2)
    assert worktree.unused == ("new files: timed out after 0.2 s", "changed files: timed out after 0.2 s")
    assert (worktree.project, worktree.language) == ("linkbarn", "python")


def test_environment_variables_that_point_git_elsewhere_are_ignored(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(checkout.parent, "init", "--quiet", "--initial-branch=other", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(checkout.parent / "elsewhere" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(checkout.parent / "elsewhere"))
    assert messages(read_worktree(checkout)) == ("Begin",)


def test_missing_objects_of_a_partial_clone_are_not_fetched(checkout: Path) -> None:
    git(checkout, "config", "uploadpack.allowFilter", "true")
    commit(checkout, "Second", "a.py")
    git(checkout.parent, "clone", "--quiet", "--filter=tree:0", "--no-checkout", f"file://{checkout}", "partial")
    clone, mark = checkout.parent / "partial", checkout.parent / "mark"
    git(clone, "config", "remote.origin.url", f"ext::touch {mark}")
    git(clone, "config", "protocol.ext.allow", "always")
    worktree = read_worktree(clone)
    assert not mark.exists()
    assert worktree.unused


def test_reading_a_checkout_changes_nothing(checkout: Path) -> None:
    os.utime(checkout / "store" / "session.py", (1, 1))
    before = {path: path.stat().st_mtime_ns for path in checkout.rglob("*")}
    read_worktree(checkout)
    assert {path: path.stat().st_mtime_ns for path in checkout.rglob("*")} == before
