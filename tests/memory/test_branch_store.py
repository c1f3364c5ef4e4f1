"""The branch: requests to the server, lost races, squashes, kept clones, many writers."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import StoreError, TipMoved, UserError
from bot.files import DiskFault
from bot.git.errors import AuthFailed, GitError, RemoteRefused, RemoteUnreachable
from bot.memory.branch_store import CLONE_FOLDER, MAX_GROWTH, BranchStore, Growth
from tests.examples import THOROUGH
from tests.memory.contention import contend
from tests.memory.remotes import HostedRepository, bare_repository, commit, contents, git, open_store


@pytest.mark.slow
def test_a_run_fetches_the_tip_once_all_contents_once_and_pushes_once(hosted: HostedRepository) -> None:
    with open_store(hosted) as store:
        files = {f"records/{number // 100:04d}/{number}.json": b"%d" % number for number in range(500)}
        store.write(store.open(), {**files, "index/toc": b"toc", "index/seg": b"seg", "manifest.json": b"{}"}, "many")
    with open_store(hosted) as store:
        hosted.mark()
        snapshot = store.open(["index", "manifest.json", "records/0003/342.json"])
        assert hosted.request_lines == [
            "GET refs",
            "POST git-upload-pack",
            "POST git-upload-pack",
            "GET refs",
            "POST git-upload-pack",
        ]
        hosted.mark()
        assert len(list(snapshot.checkout("index").iterdir())) == 2
        assert len(snapshot.read(["manifest.json", "records/0003/342.json"])) == 2
        assert hosted.request_lines == []
        store.write(snapshot, {"records/0003/342.json": b"new"}, "one")
        assert hosted.request_lines == ["GET refs", "POST git-receive-pack"]
        hosted.mark()
        store.open(["index"])
        assert hosted.request_lines == ["GET refs", "POST git-upload-pack"]
        hosted.mark()
        assert len(snapshot.read(snapshot.paths("records"))) == 500
        assert hosted.request_lines == ["GET refs", "POST git-upload-pack"]


@pytest.mark.slow
def test_a_push_sends_little_of_a_large_branch(hosted: HostedRepository) -> None:
    rng = random.Random(7)
    words = [f"word{number}" for number in range(5000)]
    records = {
        f"records/{number // 100:04d}/{number}.json": json.dumps(
            {"number": number, "text": " ".join(rng.choices(words, k=120))}, indent=1
        ).encode()
        for number in range(2000)
    }
    digests = [" ".join(rng.choices(words, k=18)).encode() for _ in range(1000)]
    with open_store(hosted) as store:
        store.write(
            store.open(),
            {**records, "digests/000.jsonl": b"\n".join(digests), "index/old": rng.randbytes(10_000_000)},
            "large",
        )
    digests[500] = b"changed"
    with open_store(hosted) as store:
        touched = ["records/0000/42.json", "digests/000.jsonl"]
        snapshot = store.open(touched)
        hosted.settle()
        assert hosted.server.bytes_out < 300_000
        record = snapshot.read(touched)["records/0000/42.json"].replace(b"word1 ", b"changed ")
        hosted.mark()
        store.write(
            snapshot,
            {
                "records/0000/42.json": record + b" ",
                "digests/000.jsonl": b"\n".join(digests),
                "index/new": rng.randbytes(10_000),
            },
            "one event",
        )
        hosted.settle()
        assert hosted.server.bytes_in < 20_000


@pytest.mark.slow
def test_opening_after_another_write_fetches_only_what_is_new(hosted: HostedRepository) -> None:
    with open_store(hosted) as mine, open_store(hosted) as other:
        first = mine.write(
            mine.open(), {"index/large": random.Random(1).randbytes(1_000_000), "manifest.json": b"1"}, "first"
        )
        other.write(other.open(), {"manifest.json": b"2"}, "second")
        with pytest.raises(TipMoved):
            mine.write(first, {"manifest.json": b"3"}, "third")
        hosted.mark()
        newest = mine.open(["index", "manifest.json"])
        assert newest.read(["manifest.json"]) == {"manifest.json": b"2"}
        hosted.settle()
        assert hosted.server.bytes_out < 5_000
        assert len(hosted.request_lines) == 5


def test_without_partial_clones_the_server_sends_everything_which_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remote = bare_repository(tmp_path / "remote.git", filters=False)
    commit(remote, {"a/b": ("100644", b"1"), "c": ("100644", b"2")})
    with BranchStore(str(remote), "precedent", None) as store:
        snapshot = store.open()
        assert "not support partial clones" in caplog.text
        assert snapshot.read(["a/b", "c"]) == {"a/b": b"1", "c": b"2"}
        store.write(snapshot, {"c": b"3"}, "works")
    assert git(remote, "show", "precedent:c") == "3"


@pytest.mark.parametrize(
    ("mode", "kind"), [("120000", "a symlink"), ("100755", "an executable"), ("160000", "a submodule")]
)
def test_odd_entries_on_the_branch_are_refused(hosted: HostedRepository, mode: str, kind: str) -> None:
    commit(
        hosted.repository,
        {"index/toc": ("100644", b"1"), "index/odd": (mode, b"/etc/passwd"), "fine": ("100644", b"2")},
    )
    with open_store(hosted) as store:
        snapshot = store.open(["index", "fine"])
        assert snapshot.paths("") == ["fine", "index/toc"]
        assert snapshot.read(["fine", "index/toc"]) == {"fine": b"2", "index/toc": b"1"}
        for attempt in (lambda: snapshot.read(["index/odd"]), lambda: snapshot.checkout("index")):
            with pytest.raises(StoreError, match=f"index/odd on the branch is {kind}"):
                attempt()
        store.write(snapshot, {"index/odd": b"3"}, "put a file in its place")
    assert contents(hosted)["index/odd"] == b"3"


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "set to another history"])
def test_a_branch_moved_meanwhile_raises_tip_moved_and_is_read_anew(hosted: HostedRepository, is_deleted: bool) -> None:
    with open_store(hosted) as store:
        store.write(store.open(), {"a": b"1"}, "first")
    with open_store(hosted) as store:
        snapshot = store.open()
        if is_deleted:
            git(hosted.repository, "update-ref", "-d", "refs/heads/precedent")
        else:
            commit(hosted.repository, {"z": ("100644", b"other")})
        with pytest.raises(TipMoved):
            store.write(snapshot, {"b": b"2"}, "second")
        fresh = store.open()
        assert (fresh.paths(""), fresh.revision == "") == ([] if is_deleted else ["z"], is_deleted)
        store.write(fresh, {"b": b"2"}, "anew")
    assert contents(hosted) == {"b": b"2"} | ({} if is_deleted else {"z": b"other"})


@pytest.mark.slow
def test_a_reference_locked_by_another_push_raises_tip_moved(hosted: HostedRepository) -> None:
    with open_store(hosted) as store:
        snapshot = store.write(store.open(), {"a": b"1"}, "first")
        lock = hosted.repository / "refs" / "heads" / "precedent.lock"
        lock.touch()
        with pytest.raises(TipMoved):
            store.write(snapshot, {"a": b"2"}, "second")
        lock.unlink()
        store.write(store.open(), {"a": b"2"}, "second")
    assert contents(hosted) == {"a": b"2"}


def test_only_one_of_two_identical_concurrent_writes_succeeds(hosted: HostedRepository) -> None:
    with open_store(hosted) as one, open_store(hosted) as other:
        snapshots = one.open(), other.open()
        time.sleep(1 - time.time() % 1)  # both in one second: only the random part of the commits differs
        one.write(snapshots[0], {"answers/0000.jsonl": b"promised"}, "Remember issues opened of 1")
        with pytest.raises(TipMoved):
            other.write(snapshots[1], {"answers/0000.jsonl": b"promised"}, "Remember issues opened of 1")


@pytest.mark.parametrize("rule", ["GH006", "GH013"])
def test_a_protected_branch_is_refused_with_the_remedy(hosted: HostedRepository, rule: str) -> None:
    hosted.server.protect("octocat/hello", "precedent", rule)
    with open_store(hosted) as store, pytest.raises(RemoteRefused, match=f"{rule}.*set `branch` to a name"):
        store.write(store.open(), {"a": b"1"}, "first")


def test_a_read_only_token_can_read_and_a_write_names_the_missing_permission(hosted: HostedRepository) -> None:
    with open_store(hosted) as store:
        store.write(store.open(), {"a": b"1"}, "first")
    hosted.server.tokens["readonly-token"] = "read"
    with BranchStore(hosted.url, "precedent", "readonly-token") as store:
        snapshot = store.open(["a"])
        assert snapshot.read(["a"]) == {"a": b"1"}
        with pytest.raises(AuthFailed, match="contents: write") as caught:
            store.write(snapshot, {"a": b"2"}, "second")
    assert "readonly-token" not in str(caught.value)
    assert contents(hosted) == {"a": b"1"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "match"), [("5xx", "*info/refs"), ("drop", "*git-upload-pack"), ("429", "*git-upload-pack")]
)
def test_a_request_that_fails_once_is_retried(hosted: HostedRepository, kind: str, match: str) -> None:
    with open_store(hosted) as store:
        store.write(store.open(), {"a": b"1"}, "first")
    hosted.server.faults.add(f"* {match}", kind)
    assert contents(hosted) == {"a": b"1"}
    assert len(hosted.server.faults.injected) == 1


@pytest.mark.slow
def test_a_push_whose_response_was_lost_counts_as_done(hosted: HostedRepository) -> None:
    with open_store(hosted) as store:
        first = store.write(store.open(), {"a": b"1"}, "first")
        hosted.server.faults.add("POST */git-receive-pack", "dup")
        hosted.server.mark()
        second = store.write(first, {"a": b"2"}, "second")
        assert hosted.request_lines == ["GET refs", "POST git-receive-pack", "GET refs"], "it asks what became of it"
        assert store.write(second, {"a": b"3"}, "third").revision
    assert git(hosted.repository, "rev-list", "--count", "precedent") == "3"
    assert contents(hosted) == {"a": b"3"}


@pytest.mark.slow
def test_an_unreachable_server_is_reported_and_the_store_works_again_later(hosted: HostedRepository) -> None:
    with open_store(hosted) as store:
        first = store.write(store.open(), {"a": b"1"}, "first")
        hosted.server.faults.add("* */info/refs", "5xx", times=None)
        with pytest.raises(RemoteUnreachable):
            store.write(first, {"a": b"2"}, "second")
        hosted.server.faults.clear()
        store.write(store.open(), {"a": b"2"}, "second")
    assert contents(hosted) == {"a": b"2"}


def test_a_branch_name_that_looks_like_an_option_is_refused(hosted: HostedRepository) -> None:
    with pytest.raises(UserError, match="not a branch name"):
        BranchStore(hosted.url, "--upload-pack=touch /tmp/x", hosted.token)


LOG_MOVES = """#!/bin/sh
forced=no
case "$2" in 0000*) ;; *) git merge-base --is-ancestor "$2" "$3" || forced=yes ;; esac
echo "$forced $3" >> moves
"""


def log_moves(repository: Path) -> Path:
    """Have the server log each move of a branch and whether it was forced. Returns the path of the log."""
    hook = repository / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(LOG_MOVES)
    hook.chmod(0o755)
    return repository / "moves"


def test_a_commit_names_its_author_and_counts_what_was_added(hosted: HostedRepository) -> None:
    with open_store(hosted) as store:
        first = store.write(store.open(), {"a": random.Random(1).randbytes(10_000)}, "Remember #1")
        store.write(first, {"b": b"2"}, "Remember #2\n")
    commit_lines = git(hosted.repository, "log", "-1", "--format=%an <%ae> %cn%n%B", "precedent").splitlines()
    assert commit_lines[:3] == ["precedent <precedent@users.noreply.github.com> precedent", "Remember #2", ""]
    growth = Growth.of("\n".join(commit_lines))
    assert growth.commits == 2
    assert 10_000 < growth.bytes < 10_100
    assert git(hosted.repository, "rev-list", "--count", "precedent") == "2"
    git(hosted.repository, "fsck", "--strict")


@pytest.mark.slow
def test_the_branch_is_squashed_with_a_lease_when_it_has_too_many_commits(hosted: HostedRepository) -> None:
    moves = log_moves(hosted.repository)
    with open_store(hosted, limit=replace(MAX_GROWTH, commits=3)) as store:
        snapshot = store.open()
        for turn in range(8):
            snapshot = store.write(snapshot, {f"records/{turn}": b"x", "turn": b"%d" % turn}, f"turn {turn}")
    assert [line.split()[0] for line in moves.read_text().splitlines()] == ["no"] * 3 + ["yes", "no", "no", "yes", "no"]
    assert git(hosted.repository, "rev-list", "--count", "precedent") == "2"
    assert contents(hosted) == {**{f"records/{turn}": b"x" for turn in range(8)}, "turn": b"7"}


@pytest.mark.slow
def test_the_branch_is_squashed_after_too_many_bytes_and_little_is_sent(hosted: HostedRepository) -> None:
    with open_store(hosted) as store:
        store.write(store.open(), {"large": random.Random(1).randbytes(500_000)}, "large")
    with open_store(hosted, limit=replace(MAX_GROWTH, bytes=500_000)) as store:
        snapshot = store.open()
        hosted.mark()
        squashed = store.write(snapshot, {"small": b"1"}, "small")
        hosted.settle()
        assert hosted.server.bytes_in < 3_000
        assert store.write(squashed, {"small": b"2"}, "next").paths("") == ["large", "small"]
    assert git(hosted.repository, "rev-list", "--count", "precedent") == "2"
    assert len(contents(hosted)["large"]) == 500_000


@pytest.mark.slow
def test_a_squash_that_loses_its_lease_discards_nothing(hosted: HostedRepository) -> None:
    moves = log_moves(hosted.repository)
    with open_store(hosted, limit=replace(MAX_GROWTH, commits=1)) as squasher, open_store(hosted) as other:
        old = squasher.write(squasher.open(), {"a": b"1"}, "first")
        other.write(other.open(), {"b": b"2"}, "second")
        with pytest.raises(TipMoved):
            squasher.write(old, {"c": b"3"}, "squash")
        assert contents(hosted) == {"a": b"1", "b": b"2"}
        squasher.write(squasher.open(), {"c": b"3"}, "squash")
    assert contents(hosted) == {"a": b"1", "b": b"2", "c": b"3"}
    assert [line.split()[0] for line in moves.read_text().splitlines()] == ["no", "no", "yes"]


@pytest.mark.slow
def test_if_force_pushes_are_forbidden_a_write_is_not_squashed(
    hosted: HostedRepository, caplog: pytest.LogCaptureFixture
) -> None:
    git(hosted.repository, "config", "receive.denyNonFastForwards", "true")
    with open_store(hosted, limit=replace(MAX_GROWTH, commits=2)) as store:
        snapshot = store.open()
        for turn in range(4):
            hosted.mark()
            snapshot = store.write(snapshot, {"turn": b"%d" % turn}, "turn")
            assert hosted.request_lines.count("POST git-receive-pack") == (2 if turn == 2 else 1)
    assert "not squashed" in caplog.text
    assert git(hosted.repository, "rev-list", "--count", "precedent") == "4"
    assert contents(hosted) == {"turn": b"3"}


def test_impossible_counts_in_a_commit_message_are_ignored() -> None:
    assert Growth.of("x\n\nPrecedent-Commits: 12\nPrecedent-Bytes: 34\n") == Growth(12, 34)
    assert Growth.of("x\n\nPrecedent-Commits: -1\nPrecedent-Bytes: " + "9" * 40) == Growth()
    assert Growth.of("Precedent-Commits: 1\n\nPrecedent-Commits: 7\nPrecedent-Bytes: ٣\n") == Growth(7, 0)
    assert Growth.of(Growth(3, 4).with_trailers("message\n")) == Growth(3, 4)


def test_closing_leaves_nothing_behind_but_the_kept_clone(hosted: HostedRepository, tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    with BranchStore(hosted.url, "precedent", hosted.token, keep=keep) as store:
        store.write(store.open(), {"a": b"1"}, "first").checkout("")
        assert len(list(keep.iterdir())) == 2
    assert [path.name for path in keep.iterdir()] == [CLONE_FOLDER]


def test_closing_removes_a_clone_that_is_not_kept(hosted: HostedRepository, tmp_path: Path) -> None:
    tempfile.tempdir = str(tmp_path)
    try:
        with open_store(hosted) as store:
            store.write(store.open(), {"a": b"1"}, "first").checkout("")
            assert len(list(tmp_path.glob("precedent-*"))) == 1
    finally:
        tempfile.tempdir = None
    assert list(tmp_path.glob("precedent-*")) == []


@pytest.mark.slow
def test_a_kept_clone_is_reused_even_after_a_squash(hosted: HostedRepository, tmp_path: Path) -> None:
    for number in range(6):
        limit = replace(MAX_GROWTH, commits=3)
        with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path, limit=limit) as store:
            base = store.open(["a"])
            assert base.read(["a"]) == ({"a": str(number - 1).encode()} if number else {})
            store.write(base, {"a": str(number).encode()}, "next")
    assert contents(hosted) == {"a": b"5"}


def test_locks_left_by_a_killed_git_in_a_kept_clone_are_removed(hosted: HostedRepository, tmp_path: Path) -> None:
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store:
        store.write(store.open(), {"a": b"1"}, "first")
    clone = tmp_path / CLONE_FOLDER
    leftovers = [clone / "shallow.lock", clone / "refs" / "tip.lock", clone / "objects" / "pack" / "tmp_pack_x"]
    leftovers += [tmp_path / "precedent-left" / "checkout"]
    for path in leftovers:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    with open_store(hosted) as other:
        other.write(other.open(), {"a": b"2"}, "second")
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store:
        assert store.open(["a"]).read(["a"]) == {"a": b"2"}
    assert not any(path.exists() for path in leftovers)


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["objects", "packed away", "not a repository"])
def test_a_damaged_kept_clone_is_replaced(hosted: HostedRepository, tmp_path: Path, harm: str) -> None:
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store:
        store.write(store.open(), {"a": b"1"}, "first")
        store.open(["a"])
    clone = tmp_path / CLONE_FOLDER
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


def test_an_unreachable_server_does_not_cost_the_kept_clone(hosted: HostedRepository, tmp_path: Path) -> None:
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store:
        store.write(store.open(), {"a": b"1"}, "first")
    before = (tmp_path / CLONE_FOLDER / "HEAD").stat().st_ino
    hosted.server.faults.add("* */info/refs", "401", times=None)
    with BranchStore(hosted.url, "precedent", hosted.token, keep=tmp_path) as store, pytest.raises(GitError):
        store.open()
    assert (tmp_path / CLONE_FOLDER / "HEAD").stat().st_ino == before


def test_a_clone_folder_that_cannot_be_made_is_reported(hosted: HostedRepository) -> None:
    with pytest.raises(DiskFault, match=r"cannot make a temporary folder: .*; free some space"):
        BranchStore(hosted.url, "precedent", hosted.token, keep=Path("/proc/none"))


@pytest.mark.night
@pytest.mark.slow
def test_concurrent_processes_lose_nothing(tmp_path: Path) -> None:
    processes, turns = (8, 5) if THOROUGH else (4, 4)
    outcome = contend(tmp_path, processes, turns)
    assert (outcome.lost, outcome.forced) == ([], 0)
    assert outcome.moves == processes * turns
