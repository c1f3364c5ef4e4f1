"""Files of the default branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.git.errors import AuthFailed
from bot.git.remote_files import open_head, read_head
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
    assert read_head(hosted.url, hosted.token, WANTED)[1] == FOUND
    assert len(hosted.asked) == 7
    assert hosted.server.bytes_out < 5_000


def test_a_project_without_settings_costs_two_exchanges(hosted: Hosted) -> None:
    commit(hosted.repository, {"README.md": (FILE, b"x" * 200_000)}, "refs/heads/main")
    assert read_head(hosted.url, hosted.token, WANTED)[1] == {}
    assert len(hosted.asked) == 5
    assert hosted.server.bytes_out < 5_000


def test_an_empty_repository_has_no_files(hosted: Hosted) -> None:
    assert read_head(hosted.url, hosted.token, WANTED) == ("", {})


def test_where_it_stood_when_its_files_were_read_is_not_asked_again(hosted: Hosted) -> None:
    made = commit(hosted.repository, PROJECT, "refs/heads/main")
    tip, files = read_head(hosted.url, hosted.token, WANTED)
    assert (tip, files) == (made, FOUND)
    before = len(hosted.asked)
    with open_head(hosted.url, hosted.token, tip) as head:
        assert head.tip() == made
        assert len(hosted.asked) == before
        commit(hosted.repository, PROJECT | {"new": (FILE, b"new")}, "refs/heads/main")
        assert head.tip() == made
    with open_head(hosted.url, hosted.token) as head:
        assert head.tip() != made


@pytest.mark.parametrize("filters", [True, False])
def test_servers_that_refuse_or_ignore_partial_clones_give_the_same(tmp_path: Path, filters: bool) -> None:
    remote = bare_repository(tmp_path / "remote.git", filters=filters)
    commit(remote, PROJECT, "refs/heads/main")
    git(remote, "config", "uploadpackfilter.tree.allow", "false")
    assert read_head(str(remote), None, WANTED)[1] == FOUND
    assert read_head(str(remote), None, ["README.md"], limit=200_000)[1] == {"README.md": b"x" * 200_000}


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
        read_head(hosted.url, hosted.token, WANTED)


@pytest.mark.parametrize("name", [".github/precedent.yml", "settings.yml"])
def test_a_file_over_the_limit_is_refused(hosted: Hosted, name: str) -> None:
    commit(hosted.repository, {name: (FILE, b"x" * 65_537)}, "refs/heads/main")
    with pytest.raises(StoreError, match="more than 65,536 bytes"):
        read_head(hosted.url, hosted.token, [name])
    commit(hosted.repository, {name: (FILE, b"x" * 65_536)}, "refs/heads/main")
    assert len(read_head(hosted.url, hosted.token, [name])[1][name]) == 65_536


def test_a_wrong_token_is_told(hosted: Hosted) -> None:
    with pytest.raises(AuthFailed):
        read_head(hosted.url, "wrong", WANTED)


def markdown(path: str) -> bool:
    return path.endswith(".md")


def test_the_default_branch_is_walked_without_its_files(hosted: Hosted) -> None:
    made = commit(hosted.repository, PROJECT | {"docs/a/b.md": (FILE, b"# B\n")}, "refs/heads/main")
    with open_head(hosted.url, hosted.token) as head:
        assert head.tip() == made
        assert head.fetch()[0] == made
        files, left_out = head.files(markdown, lambda folder: folder.startswith("docs"))
        assert (sorted(files), left_out) == (["README.md", "docs/a/b.md"], [])
        assert head.contents([*files.values()], 1_000) == {files["docs/a/b.md"]: b"# B\n"}


def test_a_folder_that_leads_nowhere_is_not_looked_into(hosted: Hosted) -> None:
    commit(hosted.repository, {"docs/a.md": (FILE, b"a"), "src/b.md": (FILE, b"b")}, "refs/heads/main")
    asked: list[str] = []
    with open_head(hosted.url, hosted.token) as head:
        head.fetch()
        assert list(head.files(markdown, lambda folder: bool(asked.append(folder)) or folder == "docs")[0]) == [
            "docs/a.md"
        ]
    assert asked == ["docs", "src"]


def test_the_tip_costs_next_to_nothing(hosted: Hosted) -> None:
    commit(hosted.repository, PROJECT, "refs/heads/main")
    with open_head(hosted.url, hosted.token) as head:
        head.tip()
    hosted.settle()
    assert hosted.server.bytes_out < 1_000


@pytest.mark.parametrize("name", ["octocat/hello", "octocat/hello.wiki"])
def test_nothing_and_no_repository_have_no_tip(hosted: Hosted, name: str) -> None:
    with open_head(f"{hosted.server.url}/{name}.git", hosted.token) as head:
        assert head.tip() == ""


def test_a_wrong_token_is_not_taken_for_an_absent_repository(hosted: Hosted) -> None:
    with open_head(hosted.url, "wrong") as head, pytest.raises(AuthFailed):
        head.tip()


def test_a_server_that_sends_everything_gives_the_same_files(tmp_path: Path) -> None:
    remote = bare_repository(tmp_path / "remote.git", filters=False)
    commit(remote, {"docs/a.md": (FILE, b"a"), "b.txt": (FILE, b"b")}, "refs/heads/main")
    with open_head(str(remote), None) as head:
        head.fetch()
        files, _ = head.files(markdown, lambda _: True)
        assert head.contents([*files.values()], 10) == {files["docs/a.md"]: b"a"}


def test_folders_below_folders_come_to_an_end(hosted: Hosted) -> None:
    deep = "/".join(["docs"] * 40)
    commit(hosted.repository, {f"{deep}/a.md": (FILE, b"a"), "docs/b.md": (FILE, b"b")}, "refs/heads/main")
    with open_head(hosted.url, hosted.token) as head:
        head.fetch()
        assert list(head.files(markdown, lambda _: True)[0]) == ["docs/b.md"]
