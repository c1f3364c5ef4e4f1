"""Where the memory is found: in a folder, or on the branch of the repository that somebody works in."""

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
from bot.local_cache.threads import open_records
from bot.memory.branch_store import BranchStore, CachedBranch, lock_folder
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.places import CLONE
from bot.reading.analyzer import terms
from bot.sources.archive_file import read_archive
from tests.fakes.git_http import GitServer
from tests.memory.remotes import Hosted, bare_repository, commit, git, holds
from tests.memory.samples import at, issue, remember

SAMPLE = Path(__file__).resolve().parents[2] / "sample/history.jsonl"
OPEN = {"GIT_TERMINAL_PROMPT": "0"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person with an empty home folder and an empty cache."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.delenv("GITHUB_SERVER_URL", raising=False)
    return folder


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A repository with the sample's memory on its branch."""
    bare = bare_repository(tmp_path / "octo-org/linkbarn.git")
    commit(bare, {"README.md": ("100644", b"# Linkbarn\n")}, "refs/heads/main")
    with BranchStore(str(bare), "precedent") as store:
        memory = Memory(store, repo="octo-org/linkbarn").open()
        memory.stage(Changes(records=tuple(read_archive(SAMPLE))))
        memory.commit("sample")
    return bare


@pytest.fixture
def checkout(remote: Path, tmp_path: Path) -> Path:
    """A clone of it, without the branch."""
    return clone(str(remote), tmp_path / "checkout")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Hosted]:
    """A private repository with a small memory, on a server."""
    with GitServer(tmp_path / "served") as server:
        hosted = Hosted(server, server.create("octocat/hello"))
        server.commit("octocat/hello", "README.md", "# Hello\n")
        with BranchStore(hosted.url, "precedent", hosted.token) as store:
            remember(Memory(store).open(), issue(1, 0, "zebra"))
        yield hosted


def clone(url: str, folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", "--single-branch", url, str(folder)], check=True, env=os.environ | OPEN)
    return folder


def ids(place: LocalMemory, words: str) -> list[object]:
    weights = {term: float(count) for term, count in Counter(terms(words)).items()}
    return [found.card.id for found in place.local_cache.search(weights, limit=3, floor=0.5)]


def cache_of(checkout: Path) -> Path:
    with open_memory(MemoryOptions(checkout, offline=True)) as place:
        assert place.cache is not None
        return place.cache


def push(remote: Path, *threads: Thread) -> None:
    with BranchStore(str(remote), "precedent") as store:
        remember(Memory(store).open(), *threads)


def age(cache: Path, seconds: float) -> None:
    """As if the last fetch were so long ago."""
    at = (cache / FETCHED_FILE).stat().st_mtime - seconds
    os.utime(cache / FETCHED_FILE, (at, at))


# In a checkout


@pytest.mark.slow
def test_what_was_forgotten_leaves_this_machine_with_the_next_fetch(checkout: Path, remote: Path) -> None:
    push(remote, *(issue(key) for key in range(901, 905)))
    push(remote, issue(900, 1, body="the key is zebrafinch7731, said octocat"))
    with open_memory(MemoryOptions(checkout)) as place:
        assert ids(place, "zebrafinch7731") == [900]
    cache = cache_of(checkout)
    assert holds(cache, "zebrafinch7731")
    with BranchStore(str(remote), "precedent") as store:
        memory = Memory(store).open([900])
        memory.stage(Changes(records=(Tombstone(900, at(2), FORGOTTEN),)))
        memory.commit("Forget 900", squash=True)
    with open_memory(MemoryOptions(checkout, refresh=True)) as place:
        assert (ids(place, "zebrafinch7731"), place.local_cache.size) == ([], 77)
    assert holds(cache, "zebrafinch7731") == []


@pytest.mark.slow
def test_in_a_checkout_the_branch_is_fetched_from_its_remote(checkout: Path, remote: Path) -> None:
    (checkout / "src").mkdir()
    with open_memory(MemoryOptions(checkout / "src")) as place:
        assert (place.missing, place.note, place.top) == ("", "", checkout)
        assert (place.repo, place.home, place.local_cache.size) == ("", "", 73)  # a folder of this machine is no site
        assert ids(place, "login loop cookie")[0] == 48
    assert "precedent" not in git(checkout, "branch", "--all")
    assert git(checkout, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_fetch_shows_that_it_works(checkout: Path) -> None:
    labels: list[str] = []

    @contextmanager
    def shown(label: str, _total: int | None) -> Iterator[Callable[[int], None]]:
        labels.append(label)
        yield lambda _: None

    with open_memory(MemoryOptions(checkout, progress=shown)):
        pass
    assert labels == ["Fetching the memory", "Reading the memory"]


def test_within_a_minute_nobody_fetches_again_and_after_it_what_is_new_is_there(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    push(remote, issue(900, 10, "zebra"))
    with open_memory(MemoryOptions(checkout)) as place:
        assert ids(place, "zebra") == []
    age(cache_of(checkout), 61)
    with open_memory(MemoryOptions(checkout)) as place:
        assert ids(place, "zebra") == [900]


@pytest.mark.slow
def test_refresh_fetches_at_once_and_offline_never(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    push(remote, issue(900, 10, "zebra"))
    age(cache_of(checkout), 1000)
    with open_memory(MemoryOptions(checkout, offline=True)) as place:
        assert ids(place, "zebra") == []
    with open_memory(MemoryOptions(checkout, refresh=True)) as place:
        assert ids(place, "zebra") == [900]


@pytest.mark.slow
def test_without_a_network_the_memory_is_as_it_was_and_that_is_said(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    shutil.rmtree(remote)
    with open_memory(MemoryOptions(checkout, refresh=True)) as place:
        assert ids(place, "login loop cookie")[0] == 48
        assert place.note.startswith("Using the memory as last fetched: ")
    with open_memory(MemoryOptions(checkout)) as place:
        assert place.note.startswith("Using the memory as last fetched: ")  # and it still is


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        "ssh: connect to host git.example.com port 22: Network is unreachable",
        "ssh: connect to host git.example.com port 22: No route to host",
        "git@git.example.com: Permission denied (publickey).",
        "something that nobody has seen before",
    ],
)
def test_a_fetch_that_fails_leaves_the_clone_and_says_why(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    with open_memory(MemoryOptions(checkout)) as place:
        cache = place.cache
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 255\n')
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
    assert said in str(failed.value) or "fatal: Could not read from remote" in str(failed.value)
    with open_memory(MemoryOptions(checkout, offline=True)) as place, open_records(place) as memory:
        assert memory.records([48])


def test_offline_before_anything_was_fetched_there_is_no_memory(checkout: Path) -> None:
    with open_memory(MemoryOptions(checkout, offline=True)) as place:
        assert "never fetched here" in place.missing
        assert place.local_cache.size == 0
        with pytest.raises(UserError, match="never fetched here"):
            place.require()


@pytest.mark.slow
def test_the_records_are_there_without_a_network(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)) as place:
        shutil.rmtree(remote)
        with open_records(place) as memory:
            record = memory.records([48])[48]
    assert isinstance(record, Thread)
    assert len(record.comments) == 6


def test_a_repository_without_the_branch_says_what_makes_it(tmp_path: Path) -> None:
    bare = bare_repository(tmp_path / "empty.git")
    commit(bare, {"a": ("100644", b"")}, "refs/heads/main")
    with open_memory(MemoryOptions(clone(str(bare), tmp_path / "one"))) as place:
        assert "there is no branch 'precedent'" in place.missing


@pytest.mark.slow
def test_a_branch_that_is_deleted_takes_the_memory_with_it(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    git(remote, "update-ref", "-d", "refs/heads/precedent")
    with open_memory(MemoryOptions(checkout, refresh=True)) as place:
        assert (place.local_cache.size, "there is no branch" in place.missing) == (0, True)


@pytest.mark.slow
def test_the_settings_of_the_checkout_name_the_branch(checkout: Path, remote: Path) -> None:
    git(remote, "update-ref", "refs/heads/memory", "refs/heads/precedent")
    git(remote, "update-ref", "-d", "refs/heads/precedent")
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text("branch: memory\n")
    with open_memory(MemoryOptions(checkout)) as place:
        assert place.local_cache.size == 73
    with open_memory(MemoryOptions(checkout, branch="precedent")) as place:
        assert "there is no branch 'precedent'" in place.missing


@pytest.mark.slow
def test_a_fork_takes_the_memory_of_what_it_was_forked_from(checkout: Path, remote: Path, tmp_path: Path) -> None:
    fork = bare_repository(tmp_path / "fork.git")
    git(checkout, "remote", "set-url", "origin", str(fork))
    git(checkout, "remote", "add", "upstream", "../octo-org/linkbarn.git")
    with open_memory(MemoryOptions(checkout)) as place:
        assert place.local_cache.size == 73


@pytest.mark.parametrize(
    ("address", "repo", "home"),
    [
        ("https://github.com/octocat/hello.git", "octocat/hello", "https://github.com/octocat/hello"),
        ("https://octocat:secret@github.com/octocat/hello", "octocat/hello", "https://github.com/octocat/hello"),
        ("git@github.com:octocat/hello.git", "octocat/hello", "https://github.com/octocat/hello"),
        ("ssh://git@git.example.com:2222/octocat/hello.git", "octocat/hello", "https://git.example.com/octocat/hello"),
        ("ssh://git@ssh.github.com:443/octocat/hello.git", "octocat/hello", "https://github.com/octocat/hello"),
        ("https://git.example.com:8443/octocat/hello", "octocat/hello", "https://git.example.com:8443/octocat/hello"),
        ("gh:octocat/hello", "", ""),
        ("/srv/git/hello.git", "", ""),
    ],
)
def test_the_address_of_a_remote_names_the_repository(tmp_path: Path, address: str, repo: str, home: str) -> None:
    from bot.git.checkout import RemoteRepository, remote_of_checkout

    git(bare_repository(tmp_path / "one/.git"), "config", "remote.origin.url", address)
    found = remote_of_checkout(tmp_path / "one")
    assert isinstance(found, RemoteRepository)
    assert (found.repo, found.home, "secret" in found.url) == (repo, home, False)


def test_outside_of_git_and_without_a_remote_it_is_said_what_to_name(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    with open_memory(MemoryOptions(bare)) as place:
        assert (place.top, "--store DIR" in place.missing) == (None, True)
    subprocess.run(["git", "init", "--quiet", str(bare)], check=True)
    with open_memory(MemoryOptions(bare)) as place:
        assert (place.top, "has no remote" in place.missing) == (bare, True)


def test_a_repository_is_named_from_anywhere(served: Hosted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served.server.tokens[""] = "read"
    monkeypatch.setenv("GITHUB_SERVER_URL", served.server.url)
    helper(tmp_path, served)
    with open_memory(MemoryOptions(tmp_path, repo="octocat/hello")) as place:
        assert (place.repo, place.local_cache.size) == ("octocat/hello", 1)
        assert place.home == f"{served.server.url}/octocat/hello"


# As the person's own git


def helper(folder: Path, served: Hosted) -> None:
    """Let the person's git know the credentials of the server."""
    told = f"!f() {{ echo username=x-access-token; echo password={served.token}; }}; f"
    subprocess.run(["git", "config", "--global", "credential.helper", told], check=True)


def test_the_credentials_of_the_person_are_used(served: Hosted, tmp_path: Path) -> None:
    checkout = tmp_path / "mine"
    git(bare_repository(checkout / ".git"), "config", "remote.origin.url", served.url)
    with open_memory(MemoryOptions(checkout)) as place:
        assert place.missing.startswith("the memory could not be fetched: ")
    helper(tmp_path, served)
    with open_memory(MemoryOptions(checkout, refresh=True)) as place:
        assert (place.local_cache.size, place.missing) == (1, "")


def test_a_helper_that_a_checkout_brings_is_not_run(served: Hosted, tmp_path: Path) -> None:
    checkout, trace = tmp_path / "theirs", tmp_path / "trace"
    git(bare_repository(checkout / ".git"), "config", "remote.origin.url", served.url)
    for key in ("credential.helper", "core.sshCommand", "core.fsmonitor", "core.gitProxy", "core.askPass"):
        git(checkout / ".git", "config", key, f"!touch {trace}" if key.startswith("cred") else f"touch {trace}")
    with open_memory(MemoryOptions(checkout)) as place:
        assert place.missing
    assert not trace.exists()


@pytest.mark.parametrize("url", ["ext::sh -c true", "-oProxyCommand=x:y", "", "a\nb:c", "host::path", "https://a b/c"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="not the address"):
        OwnRemote(url)


FORMS = (
    *("ssh://{}{}/a", "ssh://{}{}:22/a", "ssh://{}[{}]/a", "ssh://{}[{}]:22/a", "git://{}{}/a", "ssh://{}{}"),
    *("{}{}:a", "{}[{}]:a", "[{}{}]:a", "[{}{}:22]:a"),
)
USERS = ("", "git@", "@", "git:pass@", "a@b@")
OPTIONS = ("-oProxyCommand=x", "-p", "--", "%2DoProxyCommand=x", "%2doX", "git@-oX", "git%40-oX", "[-oX", "%5B-oX")


@pytest.mark.parametrize("form", FORMS)
def test_an_address_with_an_option_in_it_is_refused(form: str) -> None:
    users = USERS if "://" in form else [user for user in USERS if ":" not in user]  # what is before is the host there
    for user in users:
        for option in OPTIONS:
            with pytest.raises(UserError, match="not the address"):
                OwnRemote(form.format(user, option))
    for option in ("-lroot@", "%2Dlroot@", "-oProxyCommand=x@", "-l:x@"):
        with pytest.raises(UserError, match="not the address"):
            OwnRemote(form.format(option, "git.example.com"))


@pytest.mark.parametrize("url", ["git.example.com:-a", "git@h:-oX/a", "ssh://h:-p/a", "ssh://h%0a/a", "ssh://h%00/a"])
def test_a_path_or_port_that_is_an_option_is_refused_too(url: str) -> None:
    with pytest.raises(UserError, match="not the address"):
        OwnRemote(url)


@pytest.mark.parametrize("url", ["foo://h/a", "SSH://-oX/a", "ext://sh/a", "git+ssh://h/a", "x://-a"])
def test_an_address_for_a_helper_of_git_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="not the address"):
        OwnRemote(url)


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
def test_what_ssh_gets_of_any_other_address_is_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, destination: str
) -> None:
    program = tmp_path / "ssh"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{tmp_path}/asked'\nexit 255\n")
    program.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(program))
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")
    remote = OwnRemote(url)
    asked = ("git", "ls-remote", remote.url)
    subprocess.run(asked, env=remote.environment({}, tmp_path), cwd=tmp_path, capture_output=True, check=False)
    words = (tmp_path / "asked").read_text().splitlines()
    assert destination in words
    assert [word for word in words if word.startswith("-")] in ([], ["-o"], ["-p"], ["-o", "-p"])


@pytest.mark.slow
def test_only_what_is_new_crosses_the_network(served: Hosted, tmp_path: Path) -> None:
    helper(tmp_path, served)
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
    with open_memory(MemoryOptions(checkout, refresh=True)) as place:
        assert place.local_cache.size == 60
    served.settle()
    assert served.server.bytes_out < whole_fetch / 4


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://octocat:p@ssw0rd@git.example.com/o/n.git", "https://octocat@git.example.com/o/n.git"),
        ("https://ghp_0123456789abcdef@github.com/o/n", "https://github.com/o/n"),
        (f"https://{'a1' * 20}@github.com/o/n", "https://github.com/o/n"),
        ("ssh://git:secret@git.example.com/o/n", "ssh://git@git.example.com/o/n"),
        ("HTTPS://x:y@h.example/o/n", "HTTPS://x@h.example/o/n"),
        ("git@github.com:o/n.git", "git@github.com:o/n.git"),
        ("/srv/a@b/n.git", "/srv/a@b/n.git"),
    ],
)
def test_no_secret_of_an_address_is_kept(address: str, kept: str) -> None:
    assert without_secret(address) == kept


def test_the_ssh_program_of_the_person_is_used(tmp_path: Path, home: Path) -> None:
    trace = tmp_path / "trace"
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\necho "$@" >> {trace}\nexit 1\n')
    program.chmod(0o755)
    subprocess.run(["git", "config", "--global", "core.sshCommand", str(program)], check=True)
    git(bare_repository(tmp_path / "mine/.git"), "config", "remote.origin.url", "git@git.example.com:o/n.git")
    with open_memory(MemoryOptions(tmp_path / "mine")) as place:
        assert place.missing
    assert "git@git.example.com" in trace.read_text()


@pytest.mark.slow
def test_what_was_to_be_said_of_a_fetch_is_said_until_the_next(checkout: Path, remote: Path, tmp_path: Path) -> None:
    bare = bare_repository(tmp_path / "empty.git")
    commit(bare, {"a": ("100644", b"")}, "refs/heads/main")
    empty = clone(str(bare), tmp_path / "one")
    for _ in range(2):
        with open_memory(MemoryOptions(empty)) as place:
            assert "there is no branch 'precedent'" in place.missing
    with open_memory(MemoryOptions(checkout)) as place:
        assert place.note == ""


def test_a_repository_that_is_named_does_not_depend_on_the_checkout(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text("branch: [\n")
    with open_memory(MemoryOptions(checkout, repo="octocat/none", offline=True)) as place:
        assert "never fetched here" in place.missing


@pytest.mark.slow
def test_a_branch_that_cannot_be_read_leaves_what_is_here(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    commit(remote, {"notes.txt": ("100644", b"of somebody else")})
    for _ in range(2):
        with open_memory(MemoryOptions(checkout, refresh=True)) as place:
            assert ids(place, "login loop cookie")[0] == 48
            assert "the place for the memory has 'notes.txt'" in place.note


@pytest.mark.slow
def test_digests_that_are_missing_are_told_of(checkout: Path, remote: Path) -> None:
    listed = git(remote, "ls-tree", "refs/heads/precedent").splitlines()
    kept = "".join(f"{line}\n" for line in listed if not line.endswith("\tdigests"))
    made = git(remote, "commit-tree", "-m", "x", git(remote, "mktree", given=kept.encode()))
    git(remote, "update-ref", "refs/heads/precedent", made)
    with open_memory(MemoryOptions(checkout)) as place:
        assert (place.local_cache.size, "73 threads have no digest" in place.note) == (0, True)


# A folder


def test_a_store_that_is_gone_does_not_answer(tmp_path: Path) -> None:
    store = tmp_path / "store"
    remember(Memory(FolderStore(store)).open(), issue(1, 0, "zebra"))
    with open_memory(MemoryOptions(tmp_path, store=store)):
        pass
    shutil.rmtree(store)
    with pytest.raises(UserError, match="no store at"), open_memory(MemoryOptions(tmp_path, store=store)):
        pass


def test_a_store_is_read_again_when_it_was_written(tmp_path: Path) -> None:
    store = tmp_path / "store"
    memory = Memory(FolderStore(store)).open()
    remember(memory, issue(1, 0, "zebra"))
    with open_memory(MemoryOptions(tmp_path, store=store)) as place:
        assert (ids(place, "zebra"), place.store) == ([1], store)
        assert place.cache is not None
        stamp = place.local_cache.fact("stamp")
    with open_memory(MemoryOptions(tmp_path, store=store)) as place:
        assert place.local_cache.fact("stamp") == stamp
    remember(memory, issue(2, 0, "zebra"))
    with open_memory(MemoryOptions(tmp_path, store=store)) as place:
        assert ids(place, "zebra") == [1, 2]
        with open_records(place) as inside:
            assert inside.state.manifest.threads == 2


def test_a_store_that_is_only_looked_at_stays_as_it_is(tmp_path: Path) -> None:
    store = tmp_path / "store"
    remember(Memory(FolderStore(store)).open(), issue(1, 0, "zebra"))
    shutil.rmtree(store / ".store")
    before = sorted(path.relative_to(store) for path in store.rglob("*"))
    with open_memory(MemoryOptions(tmp_path, store=store)) as place, open_records(place):
        assert ids(place, "zebra") == [1]
    assert sorted(path.relative_to(store) for path in store.rglob("*")) == before


def test_no_store_is_the_mistake_of_whoever_named_it(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="no store at"),
        open_memory(MemoryOptions(tmp_path, store=tmp_path / "nothing")),
    ):
        pass


def test_a_damaged_index_is_told_of(tmp_path: Path) -> None:
    store = tmp_path / "store"
    remember(Memory(FolderStore(store)).open(), issue(1, 0, "zebra"))
    for file in (store / "index").iterdir():
        file.write_bytes(b"x")
    with open_memory(MemoryOptions(tmp_path, store=store)) as place:
        assert ids(place, "zebra") == [1]
        assert "rebuilt" in place.note


# What is kept


@pytest.mark.slow
def test_a_damaged_cache_is_made_anew(checkout: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    cache = cache_of(checkout)
    for broken in (CACHE_FILE, "clone.git/HEAD"):
        (cache / broken).write_bytes(b"\xff" * 4096)
        with open_memory(MemoryOptions(checkout, refresh=True)) as place:
            assert ids(place, "login loop cookie")[0] == 48, broken


@pytest.mark.slow
def test_several_at_once_get_the_same(checkout: Path) -> None:
    def ask(_: int) -> list[object]:
        with open_memory(MemoryOptions(checkout, refresh=True)) as place, open_records(place) as memory:
            assert memory.records([48])
            return ids(place, "login loop cookie")

    with ThreadPoolExecutor(6) as pool:
        assert {tuple(found) for found in pool.map(ask, range(12))} == {(48, 50, 14)}


@pytest.mark.slow
def test_a_clone_of_many_fetches_is_made_anew(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout)):
        pass
    packs = cache_of(checkout) / "clone.git/objects/pack"
    pack = next(packs.glob("*.pack"))
    for n in range(45):
        shutil.copy(pack, packs / f"pack-{n:040x}.pack")
        shutil.copy(pack.with_suffix(".idx"), packs / f"pack-{n:040x}.idx")
    with open_memory(MemoryOptions(checkout, refresh=True)) as place:
        assert place.local_cache.size == 73
    assert len(list(packs.glob("*.pack"))) < 5


def test_where_the_cache_cannot_be_written_the_remedy_is_told(
    checkout: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
    with pytest.raises((WorldError, StoreError)), open_memory(MemoryOptions(checkout)):
        pass


def test_the_cache_lies_where_the_desktop_says(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == home / "cache/precedent"
    for wrong in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", wrong)
        assert cache_folder() == home / ".cache/precedent"


def test_the_messages_of_threads_are_read_from_the_clone_without_the_network(checkout: Path, remote: Path) -> None:
    with open_memory(MemoryOptions(checkout, refresh=True)) as place:
        keys = [card.id for card in place.local_cache.newest(5, lambda _: True)]
        remote.rename(remote.with_name("away"))
        found = LocalMessages(place)(keys)
        assert found.keys() == set(keys)
        assert any(said[0].text for said in found.values())
        (checkout / ".github").mkdir()
        people = json.dumps(sorted({one.author for said in found.values() for one in said}))
        (checkout / ".github/precedent.yml").write_text(f"ignore:\n  people: {people}\n")
        assert not any(one.text for said in LocalMessages(place)(keys).values() for one in said)
        assert place.cache
        (place.cache / CLONE).rename(place.cache / "gone.git")
        assert LocalMessages(place)(keys) == {}
