"""The growth of the branch: what its commits count, and how it becomes one commit again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bot.errors import TipMoved
from bot.memory.branch_store import Growth
from tests.memory.remotes import Hosted, commit, contents, git, opened

LOG_MOVES = """#!/bin/sh
forced=no
case "$2" in 0000*) ;; *) git merge-base --is-ancestor "$2" "$3" || forced=yes ;; esac
echo "$forced $3" >> moves
"""


def log_moves(repository: Path) -> Path:
    """Have the server note each move of a branch, and whether history was given up for it; where it notes them."""
    hook = repository / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(LOG_MOVES)
    hook.chmod(0o755)
    return repository / "moves"


def test_the_commit_says_who_wrote_it_and_counts_what_was_added(hosted: Hosted) -> None:
    with opened(hosted) as store:
        first = store.write(store.open(), {"a": random.Random(1).randbytes(10_000)}, "Remember #1")
        store.write(first, {"b": b"2"}, "Remember #2\n")
    shown = git(hosted.repository, "log", "-1", "--format=%an <%ae> %cn%n%B", "precedent").splitlines()
    assert shown[:3] == ["precedent <precedent@users.noreply.github.com> precedent", "Remember #2", ""]
    growth = Growth.of("\n".join(shown))
    assert growth.commits == 2
    assert 10_000 < growth.bytes < 10_100
    assert git(hosted.repository, "rev-list", "--count", "precedent") == "2"
    git(hosted.repository, "fsck", "--strict")


@pytest.mark.slow
def test_the_branch_is_squashed_by_lease_when_it_has_too_many_commits(hosted: Hosted) -> None:
    moves = log_moves(hosted.repository)
    with opened(hosted, squash_after=3) as store:
        snapshot = store.open()
        for turn in range(8):
            snapshot = store.write(snapshot, {f"records/{turn}": b"x", "turn": b"%d" % turn}, f"turn {turn}")
    assert [line.split()[0] for line in moves.read_text().splitlines()] == ["no"] * 3 + ["yes", "no", "no", "yes", "no"]
    assert git(hosted.repository, "rev-list", "--count", "precedent") == "2"
    assert contents(hosted) == {**{f"records/{turn}": b"x" for turn in range(8)}, "turn": b"7"}


@pytest.mark.slow
def test_the_branch_is_squashed_when_it_took_too_many_bytes_and_little_is_sent(hosted: Hosted) -> None:
    with opened(hosted) as store:
        store.write(store.open(), {"large": random.Random(1).randbytes(500_000)}, "large")
    with opened(hosted, squash_bytes=500_000) as store:
        snapshot = store.open()
        hosted.mark()
        squashed = store.write(snapshot, {"small": b"1"}, "small")
        hosted.settle()
        assert hosted.server.bytes_in < 3_000
        assert store.write(squashed, {"small": b"2"}, "next").paths("") == ["large", "small"]
    assert git(hosted.repository, "rev-list", "--count", "precedent") == "2"
    assert len(contents(hosted)["large"]) == 500_000


@pytest.mark.slow
def test_a_squash_that_loses_its_lease_gives_nothing_up(hosted: Hosted) -> None:
    moves = log_moves(hosted.repository)
    with opened(hosted, squash_after=1) as squasher, opened(hosted) as other:
        old = squasher.write(squasher.open(), {"a": b"1"}, "first")
        other.write(other.open(), {"b": b"2"}, "second")
        with pytest.raises(TipMoved):
            squasher.write(old, {"c": b"3"}, "squash")
        assert contents(hosted) == {"a": b"1", "b": b"2"}
        squasher.write(squasher.open(), {"c": b"3"}, "squash")
    assert contents(hosted) == {"a": b"1", "b": b"2", "c": b"3"}
    assert [line.split()[0] for line in moves.read_text().splitlines()] == ["no", "no", "yes"]


@pytest.mark.slow
def test_where_history_may_not_be_given_up_the_write_is_an_ordinary_one(
    hosted: Hosted, caplog: pytest.LogCaptureFixture
) -> None:
    git(hosted.repository, "config", "receive.denyNonFastForwards", "true")
    with opened(hosted, squash_after=2) as store:
        snapshot = store.open()
        for turn in range(4):
            hosted.mark()
            snapshot = store.write(snapshot, {"turn": b"%d" % turn}, "turn")
            assert hosted.asked.count("POST git-receive-pack") == (2 if turn == 2 else 1)
    assert "not squashed" in caplog.text
    assert git(hosted.repository, "rev-list", "--count", "precedent") == "4"
    assert contents(hosted) == {"turn": b"3"}


def test_somebody_elses_commit_without_counts_is_built_upon(hosted: Hosted) -> None:
    commit(hosted.repository, {"records/1": ("100644", b"by hand")})
    with opened(hosted) as store:
        store.write(store.open(), {"records/2": b"ours"}, "next")
    assert contents(hosted) == {"records/1": b"by hand", "records/2": b"ours"}


def test_counts_that_nobody_could_have_written_are_ignored() -> None:
    assert Growth.of("x\n\nPrecedent-Commits: 12\nPrecedent-Bytes: 34\n") == Growth(12, 34)
    assert Growth.of("x\n\nPrecedent-Commits: -1\nPrecedent-Bytes: " + "9" * 40) == Growth()
    assert Growth.of("Precedent-Commits: 1\n\nPrecedent-Commits: 7\nPrecedent-Bytes: ٣\n") == Growth(7, 0)
    assert Growth.of(Growth(3, 4).with_trailers("message\n")) == Growth(3, 4)
