"""git over HTTP as on GitHub: all kinds of clones, pushes that win, lose or are refused, and faults."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.fakes.git_http import GitServer

pytestmark = pytest.mark.slow

NAME = "octocat/hello-world"
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


def commit(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    git_output("add", "--all", folder=folder)
    git_output("commit", "--quiet", "--message", name, folder=folder)


@pytest.fixture
def work(git_server: GitServer, tmp_path: Path) -> Path:
    """A clone with two commits, pushed."""
    git_server.create(NAME)
    folder = tmp_path / "work"
    git_output("clone", "--quiet", git_server.remote(NAME), folder)
    commit(folder, "one/a.txt", b"a" * 5000)
    commit(folder, "two/b.bin", os.urandom(300_000))
    git_output("push", "--quiet", "origin", "HEAD:main", folder=folder)
    return folder


def test_a_push_comes_back_in_a_clone(git_server: GitServer, work: Path, tmp_path: Path) -> None:
    git_output("clone", "--quiet", git_server.remote(NAME), tmp_path / "copy")

    assert (tmp_path / "copy/two/b.bin").read_bytes() == (work / "two/b.bin").read_bytes()
    assert git_server.pushes >= 1


def test_a_shallow_clone_has_one_commit_and_can_push(git_server: GitServer, work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shallow"
    git_output("clone", "--quiet", "--depth=1", git_server.remote(NAME), folder)
    assert git_output("rev-list", "--count", "HEAD", folder=folder) == "1\n"

    commit(folder, "c.txt", b"c")
    git_output("push", "--quiet", "origin", "HEAD:main", folder=folder)


def test_a_partial_sparse_clone_takes_only_what_it_shows(git_server: GitServer, work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sparse"
    git_server.mark()
    git_output("clone", "--quiet", "--depth=1", "--filter=blob:none", "--sparse", git_server.remote(NAME), folder)
    git_output("sparse-checkout", "set", "one", folder=folder)

    assert (folder / "one/a.txt").is_file()
    assert not (folder / "two").exists()
    assert git_server.bytes_out < 10_000


def test_any_commit_can_be_fetched_by_its_id(git_server: GitServer, work: Path, tmp_path: Path) -> None:
    first = git_output("rev-parse", "HEAD~1", folder=work).strip()
    git_output("init", "--quiet", tmp_path / "one")

    git_output("fetch", "--quiet", "--depth=1", git_server.remote(NAME), first, folder=tmp_path / "one")


def test_a_wiki_is_a_repository_of_its_own(git_server: GitServer, tmp_path: Path) -> None:
    git_server.create(f"{NAME}.wiki", branch="master")

    git_output("clone", "--quiet", git_server.remote(f"{NAME}.wiki"), tmp_path / "wiki")


@pytest.mark.parametrize(
    ("token", "message"),
    [("", "could not read Username"), ("wrong", "Authentication failed")],
)
def test_a_client_without_a_valid_token_is_refused(
    git_server: GitServer, work: Path, tmp_path: Path, token: str, message: str
) -> None:
    refused = git("clone", git_server.remote(NAME, token), tmp_path / "copy")

    assert refused.returncode == 128
    assert message in refused.stderr


def test_a_token_is_accepted_only_with_the_user_x_access_token(git_server: GitServer, work: Path) -> None:
    with httpx.Client(auth=("octocat", git_server.token)) as client:
        answer = client.get(f"{git_server.url}/{NAME}.git/info/refs?service=git-upload-pack")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Basic realm="GitHub"'


def test_a_read_only_token_can_clone_but_not_push(git_server: GitServer, work: Path, tmp_path: Path) -> None:
    git_server.tokens["reader"] = "read"
    git_output("clone", "--quiet", git_server.remote(NAME, "reader"), tmp_path / "copy")
    commit(work, "c.txt", b"c")
    refused = git("push", git_server.remote(NAME, "reader"), "HEAD:main", folder=work)

    assert f"Permission to {NAME}.git denied" in refused.stderr
    assert "error: 403" in refused.stderr


def test_an_absent_repository_is_not_found(git_server: GitServer, tmp_path: Path) -> None:
    refused = git("clone", git_server.remote("octocat/absent"), tmp_path / "copy")

    assert "Repository not found." in refused.stderr


@pytest.mark.parametrize("path", ["../secret.git/info/refs", "octocat/hello-world.git/config", "octocat/.."])
def test_nothing_but_the_three_services_is_served(git_server: GitServer, work: Path, path: str) -> None:
    with httpx.Client(auth=("x-access-token", git_server.token)) as client:
        answer = client.get(f"{git_server.url}/{path}")

    assert answer.status_code == 404


@pytest.mark.parametrize("query", ["", "?service=git-upload-archive"])
def test_only_the_smart_protocol_is_served(git_server: GitServer, work: Path, query: str) -> None:
    with httpx.Client(auth=("x-access-token", git_server.token)) as client:
        assert client.get(f"{git_server.url}/{NAME}.git/info/refs{query}").status_code == 403
        assert client.get(f"{git_server.url}/{NAME}.git/git-upload-pack").status_code == 403


def test_the_advertised_capabilities_follow_the_configuration_of_the_repository(
    git_server: GitServer, work: Path
) -> None:
    address = f"{git_server.url}/{NAME}.git/info/refs?service=git-upload-pack"
    user, version = ("x-access-token", git_server.token), {"Git-Protocol": "version=2"}

    def advertisement() -> str:
        return httpx.get(address, auth=user, headers=version).text

    assert advertisement() == advertisement()
    assert "ls-refs=unborn" in advertisement()
    git_output("config", "lsrefs.unborn", "ignore", folder=git_server.folder / f"{NAME}.git")
    assert "ls-refs=unborn" not in advertisement()


@pytest.mark.parametrize("rule", ["GH006", "GH013"])
def test_a_protected_branch_refuses_with_githubs_code(git_server: GitServer, work: Path, rule: str) -> None:
    git_server.protect(NAME, "main", rule)
    commit(work, "c.txt", b"c")
    refused = git("push", "origin", "HEAD:main", folder=work)

    assert f"remote: error: {rule}: " in refused.stderr
    assert "refs/heads/main" in git_output("ls-remote", "origin", folder=work)
    git_output("push", "--quiet", "origin", "HEAD:other", folder=work)

    git_server.unprotect(NAME)
    git_output("push", "--quiet", "origin", "HEAD:main", folder=work)


def test_the_second_pusher_must_fetch_first(git_server: GitServer, work: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    git_output("clone", "--quiet", git_server.remote(NAME), second)
    commit(work, "c.txt", b"c")
    commit(second, "d.txt", b"d")
    git_output("push", "--quiet", "origin", "HEAD:main", folder=work)
    refused = git("push", "origin", "HEAD:main", folder=second)

    assert "[rejected]" in refused.stderr
    assert "fetch first" in refused.stderr


def test_one_of_several_simultaneous_pushes_wins(git_server: GitServer, work: Path, tmp_path: Path) -> None:
    folders = [tmp_path / f"writer{i}" for i in range(6)]
    for i, folder in enumerate(folders):
        git_output("clone", "--quiet", "--depth=1", git_server.remote(NAME), folder)
        commit(folder, f"{i}.txt", b"x")
    with ThreadPoolExecutor(len(folders)) as pool:
        results = list(pool.map(lambda folder: git("push", "origin", "HEAD:main", folder=folder), folders))
    losers = [result.stderr for result in results if result.returncode != 0]

    assert len(losers) == len(folders) - 1
    assert all("fetch first" in text or "cannot lock ref" in text or "failed to update ref" in text for text in losers)


def test_a_large_push_streams_in_chunks(git_server: GitServer, work: Path, tmp_path: Path) -> None:
    content = os.urandom(5_000_000)
    commit(work, "large.bin", content)
    git_server.mark()
    git_output("-c", "http.postBuffer=65536", "push", "--quiet", "origin", "HEAD:main", folder=work)
    pushed = git_server.bytes_in
    git_server.mark()
    git_output("clone", "--quiet", "--depth=1", git_server.remote(NAME), tmp_path / "copy")

    assert (tmp_path / "copy/large.bin").read_bytes() == content
    assert 5_000_000 < pushed < 5_100_000
    assert 5_000_000 < git_server.bytes_out < 5_500_000


def test_compressed_requests_with_many_wants_are_understood(git_server: GitServer, work: Path, tmp_path: Path) -> None:
    for i in range(40):
        commit(work, f"{i}.txt", b"x")
        git_output("tag", f"t{i}", folder=work)
    git_output("push", "--quiet", "origin", "HEAD:main", "--tags", folder=work)
    folder = tmp_path / "copy"
    git_output("clone", "--quiet", "--filter=blob:none", "--no-checkout", git_server.remote(NAME), folder)
    git_output("checkout", "--quiet", "main", folder=folder)

    assert len(git_output("tag", folder=folder).split()) == 40


def test_a_push_takes_effect_even_if_its_reply_is_lost(git_server: GitServer, work: Path) -> None:
    commit(work, "c.txt", b"c")
    git_server.faults.add("POST */git-receive-pack", "dup")
    failed = git("push", "origin", "HEAD:main", folder=work)
    tip = git_output("rev-parse", "HEAD", folder=work).strip()

    assert failed.returncode != 0
    assert tip in git_output("ls-remote", "origin", "refs/heads/main", folder=work)


@pytest.mark.parametrize("kind", ["5xx", "drop", "429"])
def test_a_fault_fails_one_push_and_the_next_succeeds(git_server: GitServer, work: Path, kind: str) -> None:
    commit(work, "c.txt", b"c")
    git_server.faults.add("POST */git-receive-pack", kind)

    assert git("push", "origin", "HEAD:main", folder=work).returncode != 0
    git_output("push", "--quiet", "origin", "HEAD:main", folder=work)
