"""git over HTTP as on GitHub: what is served to whom, and faults."""

import os
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.fakes.git_http import GitServer

pytestmark = pytest.mark.slow

NAME = "octocat/hello-world"
PUSH = ("push", "--quiet", "origin", "HEAD:main")
BARE_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    **{f"GIT_{who}_{what}": "octocat@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = ["git", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=BARE_ENVIRONMENT, capture_output=True, text=True, check=False)


def git_output(*arguments: str | Path, folder: Path | None = None) -> str:
    result = git(*arguments, folder=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def work(git_server: GitServer, tmp_path: Path) -> Path:
    """A clone of a repository, with a commit to push."""
    git_server.create(NAME)
    git_server.commit(NAME, "README.md", "# Hello")
    git_output("clone", "--quiet", git_server.remote(NAME), tmp_path / "work")
    git_output("commit", "--quiet", "--allow-empty", "--message", "More", folder=tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("verb", "name", "token", "message"),
    [
        ("fetch", NAME, "", "could not read Username"),
        ("fetch", NAME, "wrong", "Authentication failed"),
        ("fetch", "octocat/absent", "reader", "Repository not found."),
        ("fetch", NAME, "reader", ""),
        ("push", NAME, "reader", f"Permission to {NAME}.git denied"),
    ],
)
def test_a_token_must_be_valid_and_may_allow_reading_only(
    git_server: GitServer, work: Path, verb: str, name: str, token: str, message: str
) -> None:
    git_server.tokens["reader"] = "read"
    done = git(verb, git_server.remote(name, token), "HEAD:refs/heads/new", folder=work)
    assert (done.returncode == 0, message in done.stderr) == (not message, True)


@pytest.mark.parametrize(
    ("user", "path", "status"),
    [
        ("octocat", f"{NAME}.git/info/refs?service=git-upload-pack", 401),
        ("x-access-token", "../secret.git/info/refs", 404),
        ("x-access-token", f"{NAME}.git/config", 404),
        ("x-access-token", "octocat/..", 404),
        ("x-access-token", f"{NAME}.git/info/refs", 403),
        ("x-access-token", f"{NAME}.git/info/refs?service=git-upload-archive", 403),
        ("x-access-token", f"{NAME}.git/git-upload-pack", 403),
    ],
)
def test_only_the_smart_protocol_is_served(
    git_server: GitServer, work: Path, user: str, path: str, status: int
) -> None:
    assert httpx.get(f"{git_server.url}/{path}", auth=(user, git_server.token)).status_code == status


def test_the_advertised_capabilities_follow_the_configuration_of_the_repository(
    git_server: GitServer, work: Path
) -> None:
    address = f"{git_server.url}/{NAME}.git/info/refs?service=git-upload-pack"
    user, version = ("x-access-token", git_server.token), {"Git-Protocol": "version=2"}
    before = httpx.get(address, auth=user, headers=version).text
    git_output("config", "lsrefs.unborn", "ignore", folder=git_server.folder / f"{NAME}.git")
    after = httpx.get(address, auth=user, headers=version).text
    assert ["ls-refs=unborn" in text for text in (before, after)] == [True, False]


@pytest.mark.parametrize(("kind", "has_effect"), [("dup", True), ("5xx", False), ("drop", False), ("429", False)])
def test_a_fault_fails_one_push_which_may_have_taken_effect(
    git_server: GitServer, work: Path, kind: str, has_effect: bool
) -> None:
    git_server.faults.add("POST */git-receive-pack", kind)
    assert git(*PUSH, folder=work).returncode != 0
    tip = git_output("rev-parse", "HEAD", folder=work).strip()
    assert (tip in git_output("ls-remote", "origin", "refs/heads/main", folder=work)) == has_effect
    git_output(*PUSH, folder=work)
