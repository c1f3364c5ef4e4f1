"""The git program: its environment, its secrets, its errors."""

from __future__ import annotations

import base64
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import UserError
from bot.git.errors import AuthFailed, GitError, RefMissing, RemoteUnreachable
from bot.git.remote import Remote, checked_branch
from bot.git.repository import TIP_REF, Git
from tests.examples import examples
from tests.memory.remotes import HostedRepository, bare_repository, git

CANARY = "ghs_canaryCANARYcanary0123456789abcdef"
ENCODED = base64.b64encode(f"x-access-token:{CANARY}".encode()).decode()

_recorders: list[list[list[str]]] = []


def _record_program(event: str, args: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and _recorders:
        _recorders[-1].append([str(word) for word in args[1]])


sys.addaudithook(_record_program)


@contextmanager
def started_programs() -> Iterator[list[list[str]]]:
    """Collect the arguments of every program that this process starts in the block."""
    _recorders.append([])
    try:
        yield _recorders[-1]
    finally:
        _recorders.pop()


def is_from_test_server(arguments: list[str]) -> bool:
    """Whether this was started by the tests' git server, which runs in the same process."""
    return "--stateless-rpc" in arguments or arguments[1:] == ["--exec-path"]


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Git]:
    with Git(tmp_path / "own.git", Remote(str(bare_repository(tmp_path / "remote.git"))), tries=1) as own_git:
        own_git.init()
        yield own_git


def test_the_users_own_git_configuration_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, trace = tmp_path / "home", tmp_path / "trace"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = evil\n[core]\n\thooksPath = /evil\n[credential]\n\thelper = store\n"
    )
    evil = ("CONFIG_VALUE_0", "EXEC_PATH", "SSH_COMMAND", "TEMPLATE_DIR", "ALTERNATE_OBJECT_DIRECTORIES")
    variables = {f"GIT_{name}": "/evil" for name in evil} | dict.fromkeys(("HOME", "XDG_CONFIG_HOME"), str(home))
    variables |= {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "GIT_TRACE": str(trace), "LANG": "de_DE.UTF-8"}
    variables |= {"GIT_CONFIG_GLOBAL": str(home / ".gitconfig"), "GIT_CONFIG_PARAMETERS": "'user.name=evil'"}
    variables |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.email"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    own = Git(tmp_path / "own.git", Remote("/nowhere"))
    own.init()
    settings_seen = own.run("config", "--list", "-z").decode()
    assert "evil" not in settings_seen
    for line in (
        "core.hookspath\n/dev/null",
        "core.symlinks\nfalse",
        "credential.helper\n\0",
        "transfer.fsckobjects\ntrue",
        "protocol.allow\nnever",
        "gc.auto\n0",
    ):
        assert line in settings_seen
    assert not trace.exists()
    assert not (tmp_path / "own.git" / "hooks").exists()


def test_the_token_is_passed_only_in_the_environment_of_git(hosted: HostedRepository, tmp_path: Path) -> None:
    own = Git(tmp_path / "own.git", Remote(hosted.url, hosted.token), tries=1)
    with started_programs() as programs:
        own.init()
        assert own.remote_tip("refs/heads/precedent") == ""
    encoded = base64.b64encode(f"x-access-token:{hosted.token}".encode()).decode()
    programs = [arguments for arguments in programs if not is_from_test_server(arguments)]
    assert [arguments[0] for arguments in programs] == ["git"]
    assert not any(secret in word for arguments in programs for word in arguments for secret in (hosted.token, encoded))
    files = [file.read_bytes() for file in (tmp_path / "own.git").rglob("*") if file.is_file()]
    assert files
    assert not any(secret.encode() in content for content in files for secret in (hosted.token, encoded))


@pytest.mark.parametrize("token", [CANARY, None])
def test_a_wrong_token_is_named_as_the_reason_but_not_shown(
    hosted: HostedRepository, tmp_path: Path, token: str | None
) -> None:
    own = Git(tmp_path / "own.git", Remote(hosted.url, token), tries=1)
    own.init()
    with pytest.raises(AuthFailed, match="contents: write") as caught:
        own.fetch_tip("refs/heads/precedent", ["blob:none"])
    assert CANARY not in str(caught.value)
    assert ENCODED not in str(caught.value)


def test_secrets_are_redacted_from_a_message_of_git() -> None:
    remote = Remote("https://github.com/octocat/hello", CANARY)
    message = remote.redact(f"fatal: {CANARY} {ENCODED} https://user:{'p' * 20}@github.com/")
    assert message == "fatal: *** *** https://***@github.com/"


@pytest.mark.parametrize(
    "url",
    [
        *("", "ext::sh -c id", "--upload-pack=id", "git@github.com:octocat/hello", "ssh://github.com/octocat/hello"),
        *("file:///tmp/x", "https://user:secret@github.com/octocat/hello", "https://github.com", "http:///x"),
        *("https://github.com/a b", "/a\nb", "relative/path"),
    ],
)
def test_other_addresses_are_refused_without_repeating_a_password(url: str) -> None:
    with pytest.raises(UserError, match="not a repository address") as caught:
        Remote(url)
    assert "secret" not in str(caught.value)


VALID_NAMES = ["precedent", "a/b", "memory/v1.2", "x" * 200, "日本", "a-b_c+d", "feature/@home", "a@b", "{x}", "a.b"]
INVALID_NAMES = [
    *("", "HEAD", "-x", "--upload-pack=id", "@", "/a", "a/", "a//b", "a..b", ".a", "a/.b", "a.", "a.lock", "a.lock/b"),
    *("a/b.lock", "a b", "a\tb", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "a@{1}", "a\x7f", "a\nb", "x" * 201),
    "\ud800",
]


@pytest.mark.parametrize("name", VALID_NAMES)
def test_a_valid_branch_name_is_accepted(name: str) -> None:
    assert checked_branch(name) == name
    subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=True)


@pytest.mark.parametrize("name", INVALID_NAMES)
def test_an_invalid_branch_name_or_one_like_an_option_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="branch"):
        checked_branch(name)


@settings(max_examples=examples(60), deadline=None)
@given(
    name=st.lists(
        st.sampled_from([*"ab./-@{}~^:?*[\\ \x01\x7fé", ".lock", "..", "@{", "HEAD"]), min_size=1, max_size=6
    ).map("".join)
)
def test_git_agrees_with_every_accepted_name(name: str) -> None:
    try:
        checked_branch(name)
    except UserError:
        return
    assert (
        subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True, check=False).returncode == 0
    )


def test_a_closed_port_is_tried_again_after_pauses_and_raises_remote_unreachable(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        remote, pauses = Remote(f"http://127.0.0.1:{probe.getsockname()[1]}/x.git", CANARY), list[float]()
        own = Git(tmp_path / "own.git", remote, tries=3, pause=pauses.append)
        own.init()
        with pytest.raises(RemoteUnreachable):
            own.remote_tip("refs/heads/precedent")
        first, second = pauses
        assert 0.25 <= first <= 0.75
        assert 0.5 <= second <= 1.5


def test_a_server_that_never_responds_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        own = Git(
            tmp_path / "own.git", Remote(f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"), timeout=0.5, tries=1
        )
        own.init()
        with pytest.raises(RemoteUnreachable, match="timed out after"):
            own.remote_tip("refs/heads/precedent")


def test_a_remote_that_took_all_the_time_is_not_asked_again(tmp_path: Path) -> None:
    """Three times five minutes would count as a run that hangs."""
    pauses = list[float]()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = Remote(f"http://127.0.0.1:{silent.getsockname()[1]}/x.git")
        with Git(tmp_path / "own.git", remote, timeout=0.5, pause=pauses.append) as git:
            git.init()
            with pytest.raises(RemoteUnreachable, match="timed out after"):
                git.fetch_tip("refs/heads/precedent", [])
    assert pauses == []


def test_without_git_on_the_path_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="install git"):
        Git(tmp_path, Remote("/nowhere")).run("--version")


def test_an_absent_branch_raises_ref_missing(repository: Git) -> None:
    with pytest.raises(RefMissing):
        repository.fetch_tip("refs/heads/precedent", ["blob:none"])


def test_no_object_is_fetched_implicitly(repository: Git, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    blob = git(remote, "hash-object", "-w", "--stdin", stdin=b"content")
    tree = git(remote, "mktree", stdin=f"100644 blob {blob}\tfile\n".encode())
    commit = git(remote, "commit-tree", "-m", "x", tree)
    git(remote, "update-ref", "refs/heads/precedent", commit)
    assert repository.fetch_tip("refs/heads/precedent", ["blob:none"])
    assert repository.objects.commit(TIP_REF).tree == tree
    assert repository.objects.absent([blob, tree]) == [blob]
    assert list(repository.objects.read([blob])) == []
    repository.fetch_objects([blob], "blob:none")
    assert list(repository.objects.read([blob])) == [(blob, b"content")]
