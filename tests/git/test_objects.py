"""Objects are read through long-lived processes: whatever happens to them, each answer belongs to its request."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.git.errors import GitError, RemoteUnreachable
from bot.git.objects import Objects
from bot.git.process import PIPE, GitProcess
from bot.git.remote import Remote
from bot.git.repository import Git

ABSENT = "0" * 40


@pytest.fixture
def git(tmp_path: Path) -> Iterator[Git]:
    with Git(tmp_path / "own.git", Remote("/nowhere")) as own_git:
        own_git.init()
        yield own_git


def write_blobs(git: Git, contents: list[bytes]) -> list[str]:
    stream = b"".join(b"blob\nmark :%d\ndata %d\n%s\n" % (at, len(c), c) for at, c in enumerate(contents, 1))
    requests = b"".join(b"get-mark :%d\n" % at for at in range(1, len(contents) + 1))
    return git.run("fast-import", "--quiet", "--done", stdin=stream + requests + b"done\n").decode().split()


def test_more_names_than_a_pipe_holds_are_answered_in_order(git: Git) -> None:
    contents = [b"%d\n" % at * (at % 7) for at in range(1_000)]
    oids = write_blobs(git, contents)
    mixed_oids = [oid for pair in zip(oids, [ABSENT] * len(oids), strict=True) for oid in pair]
    assert list(git.objects.read(oids)) == list(dict(zip(oids, contents, strict=True)).items())
    assert git.objects.absent(mixed_oids) == [ABSENT] * len(oids)


def test_objects_added_after_the_processes_started_are_seen(git: Git) -> None:
    assert list(git.objects.read([ABSENT])) == []
    oids = write_blobs(git, [b"new"])
    assert list(git.objects.read(oids)) == [(oids[0], b"new")]


def test_an_abandoned_read_leaves_nothing_for_the_next_one(git: Git) -> None:
    first, second, third = write_blobs(git, [b"first" * 100_000, b"second", b"third"])
    reading = git.objects.read([first, second])
    assert next(reading)[0] == first
    reading.close()  # type: ignore[attr-defined]
    assert dict(git.objects.read([third])) == {third: b"third"}


def test_objects_over_the_limit_are_left_out(git: Git) -> None:
    small, large = write_blobs(git, [b"small", b"a much larger one"])
    assert dict(git.objects.read([large, small], limit=6)) == {small: b"small"}


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("committer a <a> 1700000000 +0000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("committer a <a> 99999999999999999999 +0000", None),
        ("committer a", None),
    ],
)
def test_a_commit_has_its_time_and_message(git: Git, line: str, at: datetime | None) -> None:
    tree = git.run("hash-object", "-t", "tree", "-w", "--stdin").decode().strip()
    words = f"tree {tree}\nauthor a <a> 1 +0000\n{line}\n\nWords\n\ncommitter b <b> 5 +0000\n"
    oid = git.run("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=words.encode()).decode().strip()
    commit = git.objects.commit(oid)
    assert (commit.oid, commit.tree, commit.at) == (oid, tree, at)
    assert commit.message == "Words\n\ncommitter b <b> 5 +0000\n"


def test_reading_commits_takes_one_process_of_each_kind(git: Git, tmp_path: Path) -> None:
    started: list[object] = []

    def start(words: Sequence[str]) -> GitProcess:
        started.append(words)
        return GitProcess(
            ["git", "-C", str(tmp_path / "own.git"), *words],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )

    tree = git.run("hash-object", "-t", "tree", "-w", "--stdin").decode().strip()
    words = f"tree {tree}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nWords\n".encode()
    oid = git.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=words).decode().strip()
    objects = Objects(start, lambda *_: RemoteUnreachable("it said no more"), 10.0)
    assert [objects.commit(oid).message for _ in range(3)] == ["Words\n"] * 3
    assert len(started) == 2
    objects.close()


def test_an_object_that_is_not_a_commit_is_refused(git: Git) -> None:
    oids = write_blobs(git, [b"content"])
    for rev in (oids[0], ABSENT):
        with pytest.raises(GitError, match="is not a commit"):
            git.objects.commit(rev)
    assert dict(git.objects.read(oids)) == {oids[0]: b"content"}


# Processes that do not respond.


class UnresponsiveGit:
    """Starts a shell instead of git, and records how it ended and what it printed to stderr."""

    def __init__(self, script: str, timeout: float) -> None:
        self.script, self.processes, self.remarks = script, list[GitProcess](), list[bytes | None]()
        self.objects = Objects(self.start, self.explain, timeout)

    def start(self, _: object) -> GitProcess:
        command = ["sh", "-c", self.script]
        self.processes.append(GitProcess(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True))
        return self.processes[-1]

    def explain(self, _: object, remarks: bytes | None) -> StoreError:
        self.remarks.append(remarks)
        return RemoteUnreachable("it said no more")

    @property
    def endings(self) -> list[tuple[int | None, bytes | None]]:
        return [(process.returncode, remark) for process, remark in zip(self.processes, self.remarks, strict=True)]


@pytest.mark.parametrize(
    ("script", "timeout", "ending"),
    [
        ("exec sleep 60", 0.05, (-signal.SIGKILL, None)),
        ("read name; printf 'half of a line'; echo why >&2; exit 3", 10, (3, b"why\n")),
    ],
)
def test_a_process_that_stops_responding_is_killed_and_restarted(
    script: str, timeout: float, ending: tuple[int, bytes | None]
) -> None:
    unresponsive = UnresponsiveGit(script, timeout)
    for _ in range(2):
        with pytest.raises(RemoteUnreachable):
            unresponsive.objects.absent([ABSENT])
    assert unresponsive.endings == [ending, ending]


def test_processes_end_on_close_and_start_again_when_needed(git: Git) -> None:
    oids = write_blobs(git, [b"content"])
    for _ in range(2):
        assert dict(git.objects.read(oids)) == {oids[0]: b"content"}
        git.close()
