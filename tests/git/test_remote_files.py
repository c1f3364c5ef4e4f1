"""Files of the default branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.git.errors import AuthFailed
from bot.git.remote_files import open_head, read_head
from tests.memory.remotes import HostedRepository, bare_repository, commit, git

PATTERNS = [".github/precedent.yml", ".github/precedent/*.j2"]
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
EXPECTED = {".github/precedent.yml": b"limit: 3\n", ".github/precedent/context.md.j2": b"{{ x }}"}


@pytest.mark.parametrize(
    ("project", "expected", "requests"),
    [(PROJECT, EXPECTED, 7), ({"README.md": (FILE, b"x" * 200_000)}, {}, 5), ({}, {}, 2)],
    ids=["settings", "no settings", "nothing"],
)
def test_the_wanted_files_take_three_exchanges_and_nothing_large_is_sent(
    hosted: HostedRepository, project: dict[str, tuple[str, bytes]], expected: dict[str, bytes], requests: int
) -> None:
    commit_id = commit(hosted.repository, project, "refs/heads/main") if project else ""
    assert read_head(hosted.url, hosted.token, PATTERNS) == (commit_id, expected)
    assert len(hosted.request_lines) == requests
    assert hosted.server.bytes_out < 5_000


def test_a_known_tip_is_not_requested_again(hosted: HostedRepository) -> None:
    commit_id = commit(hosted.repository, PROJECT, "refs/heads/main")
    tip, files = read_head(hosted.url, hosted.token, PATTERNS)
    assert (tip, files) == (commit_id, EXPECTED)
    before = len(hosted.request_lines)
    with open_head(hosted.url, hosted.token, tip) as head:
        assert head.tip() == commit_id
        assert len(hosted.request_lines) == before
        commit(hosted.repository, PROJECT | {"new": (FILE, b"new")}, "refs/heads/main")
        assert head.tip() == commit_id
    with open_head(hosted.url, hosted.token) as head:
        assert head.tip() != commit_id


@pytest.mark.parametrize("filters", [True, False])
def test_servers_that_refuse_or_ignore_partial_clones_return_the_same(tmp_path: Path, filters: bool) -> None:
    remote = bare_repository(tmp_path / "remote.git", filters=filters)
    commit(remote, PROJECT, "refs/heads/main")
    git(remote, "config", "uploadpackfilter.tree.allow", "false")
    assert read_head(str(remote), None, PATTERNS)[1] == EXPECTED
    assert read_head(str(remote), None, ["README.md"], limit=200_000)[1] == {"README.md": b"x" * 200_000}


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        *(
            (path, "120000")
            for path in (".github/precedent.yml", ".github/precedent/x.j2", ".github/precedent", ".github")
        ),
        *((path, "160000") for path in (".github/precedent", ".github")),
    ],
)
def test_a_symlink_or_submodule_on_the_way_is_refused(hosted: HostedRepository, path: str, mode: str) -> None:
    commit(hosted.repository, {path: (mode, b"/etc/passwd"), "z": (FILE, b"z")}, "refs/heads/main")
    with pytest.raises(StoreError, match="is a symlink or a submodule"):
        read_head(hosted.url, hosted.token, PATTERNS)


@pytest.mark.parametrize("name", [".github/precedent.yml", "settings.yml"])
def test_a_file_over_the_limit_is_refused(hosted: HostedRepository, name: str) -> None:
    commit(hosted.repository, {name: (FILE, b"x" * 65_537)}, "refs/heads/main")
    with pytest.raises(StoreError, match="more than 65,536 bytes"):
        read_head(hosted.url, hosted.token, [name])
    commit(hosted.repository, {name: (FILE, b"x" * 65_536)}, "refs/heads/main")
    assert len(read_head(hosted.url, hosted.token, [name])[1][name]) == 65_536


def is_markdown(path: str) -> bool:
    return path.endswith(".md")


def test_the_default_branch_is_listed_without_fetching_its_files(hosted: HostedRepository) -> None:
    commit_id = commit(hosted.repository, PROJECT | {"docs/a/b.md": (FILE, b"# B\n")}, "refs/heads/main")
    with open_head(hosted.url, hosted.token) as head:
        assert head.tip() == commit_id
        assert head.fetch()[0] == commit_id
        files, left_out = head.files(is_markdown, lambda folder: folder.startswith("docs"))
        assert (sorted(files), left_out) == (["README.md", "docs/a/b.md"], [])
        assert head.contents([*files.values()], 1_000) == {files["docs/a/b.md"]: b"# B\n"}


def test_an_unwanted_folder_is_not_entered(hosted: HostedRepository) -> None:
    commit(hosted.repository, {"docs/a.md": (FILE, b"a"), "src/b.md": (FILE, b"b")}, "refs/heads/main")
    folders: list[str] = []
    with open_head(hosted.url, hosted.token) as head:
        head.fetch()
        assert list(head.files(is_markdown, lambda folder: bool(folders.append(folder)) or folder == "docs")[0]) == [
            "docs/a.md"
        ]
    assert folders == ["docs", "src"]


def test_reading_the_tip_costs_next_to_nothing(hosted: HostedRepository) -> None:
    commit(hosted.repository, PROJECT, "refs/heads/main")
    with open_head(hosted.url, hosted.token) as head:
        head.tip()
    hosted.settle()
    assert hosted.server.bytes_out < 1_000


@pytest.mark.parametrize("name", ["octocat/hello", "octocat/hello.wiki"])
def test_an_empty_or_absent_repository_has_no_tip(hosted: HostedRepository, name: str) -> None:
    with open_head(f"{hosted.server.url}/{name}.git", hosted.token) as head:
        assert head.tip() == ""


def test_a_wrong_token_is_not_mistaken_for_an_absent_repository(hosted: HostedRepository) -> None:
    with open_head(hosted.url, "wrong") as head, pytest.raises(AuthFailed):
        head.tip()
    with pytest.raises(AuthFailed):
        read_head(hosted.url, "wrong", PATTERNS)


def test_a_server_that_sends_everything_returns_the_same_files(tmp_path: Path) -> None:
    remote = bare_repository(tmp_path / "remote.git", filters=False)
    commit(remote, {"docs/a.md": (FILE, b"a"), "b.txt": (FILE, b"b")}, "refs/heads/main")
    with open_head(str(remote), None) as head:
        head.fetch()
        files, _ = head.files(is_markdown, lambda _: True)
        assert head.contents([*files.values()], 10) == {files["docs/a.md"]: b"a"}


def test_too_deeply_nested_folders_are_left_out(hosted: HostedRepository) -> None:
    deep = "/".join(["docs"] * 40)
    commit(hosted.repository, {f"{deep}/a.md": (FILE, b"a"), "docs/b.md": (FILE, b"b")}, "refs/heads/main")
    with open_head(hosted.url, hosted.token) as head:
        head.fetch()
        assert list(head.files(is_markdown, lambda _: True)[0]) == ["docs/b.md"]
