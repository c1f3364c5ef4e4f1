"""A few files of the default branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.memory.git_errors import AuthFailed
from bot.memory.head import read_head_files
from bot.memory.store import StoreError
from tests.memory.remotes import Hosted, bare_repository, commit, git

WANTED = [".github/precedent.yml", ".github/precedent/*.j2"]
FILE = "100644"
PROJECT = {
    "README.md": (FILE, b"x" * 200_000),
    "src/large.bin": (FILE, b"y" * 300_000),
    ".github/precedent.yml": (FILE, b"limit: 3\n"),
    ".github/workflows/ci.yml": (FILE, b"on: push\n"),
    ".github/logo.png": (FILE, bytes(100_000)),
    ".github/precedent/context.md.j2": ("100755", b"{{ x }}"),
    ".github/precedent/notes.txt": (FILE, b"notes"),
    ".github/precedent/deep/other.md.j2": (FILE, b"too deep"),
}
FOUND = {".github/precedent.yml": b"limit: 3\n", ".github/precedent/context.md.j2": b"{{ x }}"}


def test_the_wanted_files_come_in_three_exchanges_and_nothing_large(hosted: Hosted) -> None:
    commit(hosted.repository, PROJECT, "refs/heads/main")
    assert read_head_files(hosted.url, hosted.token, WANTED) == FOUND
    assert len(hosted.asked) == 7
    assert hosted.server.bytes_out < 5_000


def test_a_project_without_settings_costs_two_exchanges(hosted: Hosted) -> None:
    commit(hosted.repository, {"README.md": (FILE, b"x" * 200_000)}, "refs/heads/main")
    assert read_head_files(hosted.url, hosted.token, WANTED) == {}
    assert len(hosted.asked) == 5
    assert hosted.server.bytes_out < 5_000


def test_an_empty_repository_has_no_files(hosted: Hosted) -> None:
    assert read_head_files(hosted.url, hosted.token, WANTED) == {}


@pytest.mark.parametrize("filters", [True, False])
def test_servers_that_refuse_or_ignore_partial_clones_give_the_same(tmp_path: Path, filters: bool) -> None:
    remote = bare_repository(tmp_path / "remote.git", filters=filters)
    commit(remote, PROJECT, "refs/heads/main")
    git(remote, "config", "uploadpackfilter.tree.allow", "false")
    assert read_head_files(str(remote), None, WANTED) == FOUND
    assert read_head_files(str(remote), None, ["README.md"], limit=200_000) == {"README.md": b"x" * 200_000}


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        (".github/precedent.yml", "120000"),
        (".github/precedent/x.j2", "120000"),
        (".github/precedent", "120000"),
        (".github", "120000"),
        (".github/precedent", "160000"),
        (".github", "160000"),
    ],
)
def test_a_symlink_or_submodule_on_the_way_is_refused(hosted: Hosted, path: str, mode: str) -> None:
    commit(hosted.repository, {path: (mode, b"/etc/passwd"), "z": (FILE, b"z")}, "refs/heads/main")
    with pytest.raises(StoreError, match="is a symlink or a submodule"):
        read_head_files(hosted.url, hosted.token, WANTED)


@pytest.mark.parametrize("name", [".github/precedent.yml", "settings.yml"])
def test_a_file_over_the_limit_is_refused(hosted: Hosted, name: str) -> None:
    commit(hosted.repository, {name: (FILE, b"x" * 65_537)}, "refs/heads/main")
    with pytest.raises(StoreError, match="more than 65,536 bytes"):
        read_head_files(hosted.url, hosted.token, [name])
    commit(hosted.repository, {name: (FILE, b"x" * 65_536)}, "refs/heads/main")
    assert len(read_head_files(hosted.url, hosted.token, [name])[name]) == 65_536


def test_a_wrong_token_is_told(hosted: Hosted) -> None:
    with pytest.raises(AuthFailed):
        read_head_files(hosted.url, "wrong", WANTED)
