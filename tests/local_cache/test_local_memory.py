"""Where the memory is found: in a folder, or on the branch of the checkout's repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bot.domain.changes import Changes
from bot.domain.thread import FORGOTTEN, Thread, Tombstone
from bot.errors import StoreError, UserError, WorldError
from bot.git.checkout import without_secret
from bot.git.errors import GitError
from bot.git.remote import OwnRemote
from bot.local_cache.local_memory import CACHE_FILE, FETCHED_FILE, LocalMemory, MemoryOptions, cache_folder
from bot.local_cache.location import open_memory
from bot.local_cache.messages import LocalMessages
from bot.local_cache.sync import memory_of
from bot.memory.branch_store import BranchStore, CachedBranch, lock_folder
from bot.memory.folder_store import FolderStore
from bot.memory.manifest import ForeignFormat
from bot.memory.memory import Memory
from bot.memory.paths import CLONE_FOLDER
from bot.reading.analyzer import terms
from tests.fakes.git_http import GitServer
from tests.memory.remotes import HostedRepository, bare_repository, commit, files_with, git
from tests.memory.samples import at, issue, remember

SAMPLE = Path(__file__).resolve().parents[2] / "sample/history.jsonl"
NO_PROMPT = {"GIT_TERMINAL_PROMPT": "0"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user, empty like the cache."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.delenv("GITHUB_SERVER_URL", raising=False)
    return folder


@pytest.fixture
def remote(sample_remote: Path, tmp_path: Path) -> Path:
    """A repository with the sample's memory on its branch."""
    return Path(shutil.copytree(sample_remote, tmp_path / "octo-org/linkbarn.git"))


@pytest.fixture
def checkout(remote: Path, tmp_path: Path) -> Path:
    """A clone of it, without the branch."""
    return clone(str(remote), tmp_path / "checkout")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[HostedRepository]:
    """A private repository with a small memory, on a server."""
    with GitServer(tmp_path / "served") as server:
        hosted = HostedRepository(server, server.create("octocat/hello"))
        server.commit("octocat/hello", "README.md", "# Hello\n")
        with BranchStore(hosted.url, "precedent", hosted.token) as store:
            remember(Memory(store).open(), issue(1, 0, "zebra"))
        yield hosted


def clone(url: str, folder: Path) -> Path:
    subprocess.run(
        ["git", "clone", "--quiet", "--single-branch", url, str(folder)], check=True, env=os.environ | NO_PROMPT
    )
    return folder


def ids(local_memory: LocalMemory, words: str) -> list[object]:
    weights = {term: float(count) for term, count in Counter(terms(words)).items()}
    return [hit.card.id for hit in local_memory.local_cache.search(weights, limit=3, floor=0.5)]


def cache_of(checkout: Path) -> Path:
    with open_memory(MemoryOptions(checkout, offline=True)) as local_memory:
        assert local_memory.cache is not None
        return local_memory.cache


def push(remote: Path, *threads: Thread) -> None:
    with BranchStore(str(remote), "precedent") as store:
        remember(Memory(store).open(), *threads)


def age_last_fetch(cache: Path, seconds: float) -> None:
    """Make the last fetch look so many seconds older."""
    at = (cache / FETCHED_FILE).stat().st_mtime - seconds
    os.utime(cache / FETCHED_FILE, (at, at))


# In a checkout


@pytest.mark.slow
def test_a_forgotten_thread_leaves_this_machine_with_the_next_fetch(checkout: Path, remote: Path) -> None:
    push(remote, *(issue(key) for key in range(901, 905)))
    push(remote, issue(900, 1, body="the key is zebrafinch7731, said octocat"))
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert ids(local_memory, "zebrafinch7731") == [900]
    cache = cache_of(checkout)
    assert files_with(cache, "zebrafinch7731")
    with BranchStore(str(remote), "precedent") as store:
        memory = Memory(store).open([900])
        memory.stage(Changes(records=(Tombstone(900, at(2), FORGOTTEN),)))
        memory.commit("Forget 900", squash=True)
    with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
        assert (ids(local_memory, "zebrafinch7731"), local_memory.local_cache.size) == ([], 77)
    assert files_with(cache, "zebrafinch7731") == []


@pytest.mark.slow
def test_in_a_checkout_the_branch_is_fetched_from_its_remote(checkout: Path, remote: Path) -> None:
    (checkout / "src").mkdir()
    with open_memory(MemoryOptions(checkout / "src")) as local_memory:
        assert (local_memory.missing, local_memory.note, local_memory.top) == ("", "", checkout)
        assert (local_memory.repo, local_memory.home, local_memory.local_cache.size) == (
            "",
            "",
            73,
        )  # a local folder is no site
        assert ids(local_memory, "login loop cookie")[0] == 48
    assert "precedent" not in git(checkout, "branch", "--all")
    assert git(checkout, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_fetch_reports_its_progress(checkout: Path) -> None:
    labels: list[str] = []

    @contextmanager
    def show_progress(label: str, _total: int | None) -> Iterator[Callable[[int], None]]:
        labels.append(label)
        yield lambda _: None

    with open_memory(MemoryOptions(checkout, progress=show_progress)):
        pass
    assert labels == ["Fetching the memory", "Reading the memory"]


@pytest.mark.slow
def test_the_branch_is_fetched_again_only_after_a_minute(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    push(remote, issue(900, 10, "zebra"))
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert ids(local_memory, "zebra") == []
    age_last_fetch(cache_of(checkout), 61)
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert ids(local_memory, "zebra") == [900]


@pytest.mark.slow
def test_refresh_fetches_at_once_and_offline_never(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    push(remote, issue(900, 10, "zebra"))
    age_last_fetch(cache_of(checkout), 1000)
    with open_memory(MemoryOptions(checkout, offline=True)) as local_memory:
        assert ids(local_memory, "zebra") == []
    with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
        assert ids(local_memory, "zebra") == [900]


@pytest.mark.slow
def test_without_a_network_the_last_fetched_memory_is_used_with_a_note(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    shutil.rmtree(remote)
    with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
        assert ids(local_memory, "login loop cookie")[0] == 48
        assert local_memory.note.startswith("Using the memory as last fetched: ")
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert local_memory.note.startswith("Using the memory as last fetched: ")  # it still says so


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        "ssh: connect to host git.example.com port 22: Network is unreachable",
        "ssh: connect to host git.example.com port 22: No route to host",
        "git@git.example.com: Permission denied (publickey).",
        "something that nobody has seen before",
    ],
)
def test_a_fetch_that_fails_leaves_the_clone_and_says_why(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    with open_memory(MemoryOptions(checkout)) as local_memory:
        cache = local_memory.cache
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\necho "{message}" >&2\nexit 255\n')
    program.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(program))
    assert cache
    unreachable = OwnRemote("git@git.example.com:octo-org/linkbarn.git")
    with (
        lock_folder(cache),
        closing(CachedBranch(unreachable, "precedent", cache, fetches=True)) as store,
        pytest.raises(GitError) as failed,
    ):
        store.open()
    assert message in str(failed.value) or "fatal: Could not read from remote" in str(failed.value)
    with open_memory(MemoryOptions(checkout, offline=True)) as local_memory, memory_of(local_memory) as memory:
        assert memory.records([48])


def test_offline_there_is_no_memory_before_the_first_fetch(checkout: Path) -> None:
    with open_memory(MemoryOptions(checkout, offline=True)) as local_memory:
        assert "never fetched here" in local_memory.missing
        assert local_memory.local_cache.size == 0
        with pytest.raises(UserError, match="never fetched here"):
            local_memory.require()


@pytest.mark.slow
def test_the_records_can_be_read_without_a_network(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)) as local_memory:
        shutil.rmtree(remote)
        with memory_of(local_memory) as memory:
            record = memory.records([48])[48]
    assert isinstance(record, Thread)
    assert len(record.comments) == 6


def test_a_repository_without_the_branch_is_reported(tmp_path: Path) -> None:
    bare = bare_repository(tmp_path / "empty.git")
    commit(bare, {"a": ("100644", b"")}, "refs/heads/main")
    with open_memory(MemoryOptions(clone(str(bare), tmp_path / "one"))) as local_memory:
        assert "there is no branch 'precedent'" in local_memory.missing


@pytest.mark.slow
def test_a_deleted_branch_removes_the_local_memory(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    git(remote, "update-ref", "-d", "refs/heads/precedent")
    with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
        assert (local_memory.local_cache.size, "there is no branch" in local_memory.missing) == (0, True)


@pytest.mark.slow
def test_the_settings_of_the_checkout_name_the_branch(checkout: Path, remote: Path) -> None:
    git(remote, "update-ref", "refs/heads/memory", "refs/heads/precedent")
    git(remote, "update-ref", "-d", "refs/heads/precedent")
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text("branch: memory\n")
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert local_memory.local_cache.size == 73
    with open_memory(MemoryOptions(checkout, branch="precedent")) as local_memory:
        assert "there is no branch 'precedent'" in local_memory.missing


@pytest.mark.slow
def test_a_fork_uses_the_memory_of_its_upstream(checkout: Path, remote: Path, tmp_path: Path) -> None:
    fork = bare_repository(tmp_path / "fork.git")
    git(checkout, "remote", "set-url", "origin", str(fork))
    git(checkout, "remote", "add", "upstream", "../octo-org/linkbarn.git")
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert local_memory.local_cache.size == 73


@pytest.mark.parametrize(
    ("address", "repo", "home"),
    [
        ("https://github.com/octocat/hello.git", "octocat/hello", "https://github.com/octocat/hello"),
        ("https://octocat:secret@github.com/octocat/hello", "octocat/hello", "https://github.com/octocat/hello"),
        ("git@github.com:octocat/hello.git", "octocat/hello", "https://github.com/octocat/hello"),
        ("ssh://git@git.example.com:2222/octocat/hello.git", "octocat/hello", "https://git.example.com/octocat/hello"),
        ("ssh://git@ssh.github.com:443/octocat/hello.git", "octocat/hello", "https://github.com/octocat/hello"),
        ("https://git.example.com:8443/octocat/hello", "octocat/hello", "https://git.example.com:8443/octocat/hello"),
        ("git@git.example.com:group/octocat/hello.git", "", ""),
        ("gh:octocat/hello", "", ""),
        ("/srv/git/hello.git", "", ""),
    ],
)
def test_the_address_of_a_remote_names_the_repository(tmp_path: Path, address: str, repo: str, home: str) -> None:
    from bot.git.checkout import RemoteRepository, remote_of_checkout

    git(bare_repository(tmp_path / "one/.git"), "config", "remote.origin.url", address)
    origin = remote_of_checkout(tmp_path / "one")
    assert isinstance(origin, RemoteRepository)
    assert (origin.repo, origin.home, "secret" in origin.url) == (repo, home, False)


def test_outside_of_git_or_without_a_remote_the_problem_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    with open_memory(MemoryOptions(bare)) as local_memory:
        assert (local_memory.top, "--store DIR" in local_memory.missing) == (None, True)
    subprocess.run(["git", "init", "--quiet", str(bare)], check=True)
    with open_memory(MemoryOptions(bare)) as local_memory:
        assert (local_memory.top, "has no remote" in local_memory.missing) == (bare, True)


def test_a_repository_can_be_named_from_anywhere(
    served: HostedRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.server.tokens[""] = "read"
    monkeypatch.setenv("GITHUB_SERVER_URL", served.server.url)
    set_credential_helper(tmp_path, served)
    with open_memory(MemoryOptions(tmp_path, repo="octocat/hello")) as local_memory:
        assert (local_memory.repo, local_memory.local_cache.size) == ("octocat/hello", 1)
        assert local_memory.home == f"{served.server.url}/octocat/hello"


# With the user's own git


def set_credential_helper(folder: Path, served: HostedRepository) -> None:
    """Give the user's git the credentials of the server."""
    program = f"!f() {{ echo username=x-access-token; echo password={served.token}; }}; f"
    subprocess.run(["git", "config", "--global", "credential.helper", program], check=True)


def test_the_users_own_credentials_are_used(served: HostedRepository, tmp_path: Path) -> None:
    checkout = tmp_path / "mine"
    git(bare_repository(checkout / ".git"), "config", "remote.origin.url", served.url)
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert local_memory.missing.startswith("the memory could not be fetched: ")
    set_credential_helper(tmp_path, served)
    with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
        assert (local_memory.local_cache.size, local_memory.missing) == (1, "")


def test_what_the_users_git_has_fetched_is_used_if_ours_may_not_fetch(served: HostedRepository, tmp_path: Path) -> None:
    """A password in the address of a remote is the user's, and ours must not use it."""
    checkout = tmp_path / "mine"
    git(bare_repository(checkout / ".git"), "config", "remote.upstream.url", served.url)
    url = served.url.replace("://", f"://x-access-token:{served.token}@")
    git(checkout / ".git", "fetch", "-q", url, "refs/heads/precedent:refs/remotes/upstream/precedent")
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert (local_memory.local_cache.size, local_memory.missing) == (1, "")
        assert local_memory.note.startswith("Using the memory as this checkout last fetched it: ")
    with open_memory(MemoryOptions(checkout, repo="octocat/other")) as local_memory:
        assert local_memory.missing
    set_credential_helper(tmp_path, served)
    with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
        assert (local_memory.local_cache.size, local_memory.note) == (1, "")


def test_no_program_from_the_settings_of_a_checkout_is_run(served: HostedRepository, tmp_path: Path) -> None:
    checkout, trace = tmp_path / "theirs", tmp_path / "trace"
    git(bare_repository(checkout / ".git"), "config", "remote.origin.url", served.url)
    for key in ("credential.helper", "core.sshCommand", "core.fsmonitor", "core.gitProxy", "core.askPass"):
        git(checkout / ".git", "config", key, f"!touch {trace}" if key.startswith("cred") else f"touch {trace}")
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert local_memory.missing
    assert not trace.exists()


def test_an_invalid_address_is_refused() -> None:
    urls = ["ext::sh -c true", "-oProxyCommand=x:y", "", "a\nb:c", "host::path", "https://a b/c"]
    options_as_path_or_port = ["git.example.com:-a", "git@h:-oX/a", "ssh://h:-p/a", "ssh://h%0a/a", "ssh://h%00/a"]
    for_a_remote_helper_of_git = ["foo://h/a", "SSH://-oX/a", "ext://sh/a", "git+ssh://h/a", "x://-a"]
    for url in [*urls, *options_as_path_or_port, *for_a_remote_helper_of_git]:
        with pytest.raises(UserError, match="not the address"):
            OwnRemote(url)


FORMS = (
    *("ssh://{}{}/a", "ssh://{}{}:22/a", "ssh://{}[{}]/a", "ssh://{}[{}]:22/a", "git://{}{}/a", "ssh://{}{}"),
    *("{}{}:a", "{}[{}]:a", "[{}{}]:a", "[{}{}:22]:a"),
)
USERS = ("", "git@", "@", "git:pass@", "a@b@")
OPTIONS = ("-oProxyCommand=x", "-p", "--", "%2DoProxyCommand=x", "%2doX", "git@-oX", "git%40-oX", "[-oX", "%5B-oX")


def test_an_address_with_an_option_in_it_is_refused() -> None:
    for form in FORMS:
        users = (
            USERS if "://" in form else [user for user in USERS if ":" not in user]
        )  # there, the host is before the colon
        for user in users:
            for option in OPTIONS:
                with pytest.raises(UserError, match="not the address"):
                    OwnRemote(form.format(user, option))
        for option in ("-lroot@", "%2Dlroot@", "-oProxyCommand=x@", "-l:x@"):
            with pytest.raises(UserError, match="not the address"):
                OwnRemote(form.format(option, "git.example.com"))


@pytest.mark.parametrize(
    ("url", "destination"),
    [
        ("git@git.example.com:octo-org/-a.git", "git@git.example.com"),
        ("git.example.com:a-b/c", "git.example.com"),
        ("ssh://a-b@git-1.example.com:2222/-a", "a-b@git-1.example.com"),
        ("ssh://git@[::1]:22/a", "git@::1"),
        ("ssh://git%2Dhub@git.example.com/a", "git-hub@git.example.com"),
    ],
)
def test_ssh_gets_a_valid_address_only_as_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, destination: str
) -> None:
    program = tmp_path / "ssh"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{tmp_path}/asked'\nexit 255\n")
    program.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(program))
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")
    remote = OwnRemote(url)
    command = ("git", "ls-remote", remote.url)
    subprocess.run(command, env=remote.environment({}, tmp_path), cwd=tmp_path, capture_output=True, check=False)
    arguments = (tmp_path / "asked").read_text().splitlines()
    assert destination in arguments
    assert [argument for argument in arguments if argument.startswith("-")] in ([], ["-o"], ["-p"], ["-o", "-p"])


@pytest.mark.slow
def test_only_new_objects_cross_the_network(served: HostedRepository, tmp_path: Path) -> None:
    set_credential_helper(tmp_path, served)
    checkout = tmp_path / "mine"
    git(bare_repository(checkout / ".git"), "config", "remote.origin.url", served.url)
    with BranchStore(served.url, "precedent", served.token) as store:
        remember(Memory(store).open(), *(issue(n, 1, f"{os.urandom(2000).hex()}") for n in range(2, 60)))
    served.mark()
    with open_memory(MemoryOptions(checkout)):
        pass
    served.settle()
    whole_fetch = served.server.bytes_out
    with BranchStore(served.url, "precedent", served.token) as store:
        remember(Memory(store).open(), issue(70, 2, "zebra"))
    served.mark()
    with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
        assert local_memory.local_cache.size == 60
    served.settle()
    assert served.server.bytes_out < whole_fetch / 4


def test_secrets_are_removed_from_an_address() -> None:
    expected = {
        "https://octocat:p@ssw0rd@git.example.com/o/n.git": "https://octocat@git.example.com/o/n.git",
        "https://ghp_0123456789abcdef@github.com/o/n": "https://github.com/o/n",
        f"https://{'a1' * 20}@github.com/o/n": "https://github.com/o/n",
        "ssh://git:secret@git.example.com/o/n": "ssh://git@git.example.com/o/n",
        "HTTPS://x:y@h.example/o/n": "HTTPS://x@h.example/o/n",
        "git@github.com:o/n.git": "git@github.com:o/n.git",
        "/srv/a@b/n.git": "/srv/a@b/n.git",
    }
    assert {address: without_secret(address) for address in expected} == expected


def test_the_users_own_ssh_program_is_used(tmp_path: Path, home: Path) -> None:
    trace = tmp_path / "trace"
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\necho "$@" >> {trace}\nexit 1\n')
    program.chmod(0o755)
    subprocess.run(["git", "config", "--global", "core.sshCommand", str(program)], check=True)
    git(bare_repository(tmp_path / "mine/.git"), "config", "remote.origin.url", "git@git.example.com:o/n.git")
    with open_memory(MemoryOptions(tmp_path / "mine")) as local_memory:
        assert local_memory.missing
    assert "git@git.example.com" in trace.read_text()


@pytest.mark.slow
def test_the_message_of_a_fetch_is_repeated_until_the_next_one(checkout: Path, remote: Path, tmp_path: Path) -> None:
    bare = bare_repository(tmp_path / "empty.git")
    commit(bare, {"a": ("100644", b"")}, "refs/heads/main")
    empty = clone(str(bare), tmp_path / "one")
    for _ in range(2):
        with open_memory(MemoryOptions(empty)) as local_memory:
            assert "there is no branch 'precedent'" in local_memory.missing
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert local_memory.note == ""


def test_a_repository_that_is_named_does_not_depend_on_the_checkout(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text("branch: [\n")
    with open_memory(MemoryOptions(checkout, repo="octocat/none", offline=True)) as local_memory:
        assert "never fetched here" in local_memory.missing


@pytest.mark.slow
def test_an_unreadable_branch_leaves_the_local_memory(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    commit(remote, {"notes.txt": ("100644", b"of somebody else")})
    for _ in range(2):
        with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
            assert ids(local_memory, "login loop cookie")[0] == 48
            assert "the place for the memory has 'notes.txt'" in local_memory.note
    commit(remote, {"manifest.json": ("100644", b'{"format": 3}')})
    with pytest.raises(ForeignFormat), open_memory(MemoryOptions(checkout, refresh=True)):
        pytest.fail("the memory as last fetched would hide that this version is too old")


@pytest.mark.slow
def test_missing_digests_are_reported(checkout: Path, remote: Path) -> None:
    listed = git(remote, "ls-tree", "refs/heads/precedent").splitlines()
    remaining = "".join(f"{line}\n" for line in listed if not line.endswith("\tdigests"))
    commit_id = git(remote, "commit-tree", "-m", "x", git(remote, "mktree", stdin=remaining.encode()))
    git(remote, "update-ref", "refs/heads/precedent", commit_id)
    with open_memory(MemoryOptions(checkout)) as local_memory:
        assert (local_memory.local_cache.size, "73 threads have no digest" in local_memory.note) == (0, True)


# A folder


def test_a_deleted_store_is_an_error(tmp_path: Path) -> None:
    store = tmp_path / "store"
    remember(Memory(FolderStore(store)).open(), issue(1, 0, "zebra"))
    with open_memory(MemoryOptions(tmp_path, store=store)):
        pass
    shutil.rmtree(store)
    with pytest.raises(UserError, match="no store at"), open_memory(MemoryOptions(tmp_path, store=store)):
        pass


def test_a_store_is_read_again_after_a_change(tmp_path: Path) -> None:
    store = tmp_path / "store"
    memory = Memory(FolderStore(store)).open()
    remember(memory, issue(1, 0, "zebra"))
    with open_memory(MemoryOptions(tmp_path, store=store)) as local_memory:
        assert (ids(local_memory, "zebra"), local_memory.store) == ([1], store)
        assert local_memory.cache is not None
        stamp = local_memory.local_cache.fact("stamp")
    with open_memory(MemoryOptions(tmp_path, store=store)) as local_memory:
        assert local_memory.local_cache.fact("stamp") == stamp
    remember(memory, issue(2, 0, "zebra"))
    with open_memory(MemoryOptions(tmp_path, store=store)) as local_memory:
        assert ids(local_memory, "zebra") == [1, 2]
        with memory_of(local_memory) as records:
            assert records.state.manifest.threads == 2


def test_reading_a_store_does_not_change_it(tmp_path: Path) -> None:
    store = tmp_path / "store"
    remember(Memory(FolderStore(store)).open(), issue(1, 0, "zebra"))
    shutil.rmtree(store / ".store")
    before = sorted(path.relative_to(store) for path in store.rglob("*"))
    with open_memory(MemoryOptions(tmp_path, store=store)) as local_memory, memory_of(local_memory):
        assert ids(local_memory, "zebra") == [1]
    assert sorted(path.relative_to(store) for path in store.rglob("*")) == before


def test_a_damaged_index_is_reported(tmp_path: Path) -> None:
    store = tmp_path / "store"
    remember(Memory(FolderStore(store)).open(), issue(1, 0, "zebra"))
    for file in (store / "index").iterdir():
        file.write_bytes(b"x")
    with open_memory(MemoryOptions(tmp_path, store=store)) as local_memory:
        assert ids(local_memory, "zebra") == [1]
        assert "rebuilt" in local_memory.note


# The cache


@pytest.mark.slow
def test_a_damaged_cache_is_recreated(checkout: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    cache = cache_of(checkout)
    for broken in (CACHE_FILE, "clone.git/HEAD"):
        (cache / broken).write_bytes(b"\xff" * 4096)
        with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
            assert ids(local_memory, "login loop cookie")[0] == 48, broken


@pytest.mark.slow
def test_several_readers_at_once_get_the_same_answers(checkout: Path) -> None:
    def read(_: int) -> list[object]:
        with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory, memory_of(local_memory) as memory:
            assert memory.records([48])
            return ids(local_memory, "login loop cookie")

    with ThreadPoolExecutor(6) as pool:
        assert {tuple(answer) for answer in pool.map(read, range(12))} == {(48, 50, 14)}


@pytest.mark.slow
def test_a_clone_of_many_fetches_is_recreated(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    packs = cache_of(checkout) / "clone.git/objects/pack"
    pack = next(packs.glob("*.pack"))
    for n in range(45):
        shutil.copy(pack, packs / f"pack-{n:040x}.pack")
        shutil.copy(pack.with_suffix(".idx"), packs / f"pack-{n:040x}.idx")
    with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
        assert local_memory.local_cache.size == 73
    assert len(list(packs.glob("*.pack"))) < 5


def test_an_unwritable_cache_is_an_error(checkout: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
    with pytest.raises((WorldError, StoreError)), open_memory(MemoryOptions(checkout)):
        pass


def test_the_cache_folder_follows_xdg_cache_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == home / "cache/precedent"
    for invalid in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", invalid)
        assert cache_folder() == home / ".cache/precedent"


def test_the_messages_of_threads_are_read_from_the_clone_without_the_network(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout, refresh=True)) as local_memory:
        keys = [card.id for card in local_memory.local_cache.newest(5, lambda _: True)]
        remote.rename(remote.with_name("away"))
        messages_by_thread = LocalMessages(local_memory)(keys)
        assert messages_by_thread.keys() == set(keys)
        assert any(messages[0].text for messages in messages_by_thread.values())
        (checkout / ".github").mkdir()
        people = json.dumps(
            sorted({message.author for messages in messages_by_thread.values() for message in messages})
        )
        (checkout / ".github/precedent.yml").write_text(f"ignore:\n  people: {people}\n")
    with open_memory(MemoryOptions(checkout, offline=True)) as local_memory:
        assert not any(message.text for messages in LocalMessages(local_memory)(keys).values() for message in messages)
        assert local_memory.cache
        (local_memory.cache / CLONE_FOLDER).rename(local_memory.cache / "gone.git")
        assert LocalMessages(local_memory)(keys) == {}
