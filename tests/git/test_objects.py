"""Objects are read through processes that stay: whatever becomes of them, an answer belongs to its question."""

from __future__ import annotations

import signal
from collections.abc import Iterator
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
    with Git(tmp_path / "own.git", Remote("/nowhere")) as made:
        made.init()
        yield made


def blobs(git: Git, contents: list[bytes]) -> list[str]:
    stream = b"".join(b"blob\nmark :%d\ndata %d\n%s\n" % (at, len(c), c) for at, c in enumerate(contents, 1))
    asked = b"".join(b"get-mark :%d\n" % at for at in range(1, len(contents) + 1))
    return git.run("fast-import", "--quiet", "--done", stdin=stream + asked + b"done\n").decode().split()


def test_more_names_than_a_pipe_holds_are_answered_in_their_order(git: Git) -> None:
    contents = [b"%d\n" % at * (at % 7) for at in range(1_000)]
    oids = blobs(git, contents)
    asked = [oid for pair in zip(oids, [ABSENT] * len(oids), strict=True) for oid in pair]
    assert list(git.objects.read(oids)) == list(dict(zip(oids, contents, strict=True)).items())
    assert git.objects.absent(asked) == [ABSENT] * len(oids)


def test_what_came_after_the_processes_began_is_seen(git: Git) -> None:
    assert list(git.objects.read([ABSENT])) == []
    oids = blobs(git, [b"new"])
    assert list(git.objects.read(oids)) == [(oids[0], b"new")]


def test_who_stops_reading_in_the_middle_leaves_nothing_to_the_next(git: Git) -> None:
    first, second, third = blobs(git, [b"first" * 100_000, b"second", b"third"])
    reading = git.objects.read([first, second])
    assert next(reading)[0] == first
    reading.close()  # type: ignore[attr-defined]
    assert dict(git.objects.read([third])) == {third: b"third"}


def test_what_is_too_large_is_left_out(git: Git) -> None:
    small, large = blobs(git, [b"small", b"a much larger one"])
    assert dict(git.objects.read([large, small], limit=6)) == {small: b"small"}


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("committer a <a> 1700000000 +0000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("committer a <a> 99999999999999999999 +0000", None),
        ("committer a", None),
    ],
)
def test_a_commit_says_when_it_was_written(git: Git, line: str, at: datetime | None) -> None:
    tree = git.run("hash-object", "-t", "tree", "-w", "--stdin").decode().strip()
    words = f"tree {tree}\nauthor a <a> 1 +0000\n{line}\n\nWords\n\ncommitter b <b> 5 +0000\n"
    oid = git.run("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=words.encode()).decode().strip()
    commit = git.objects.commit(oid)
    assert (commit.oid, commit.tree, commit.at) == (oid, tree, at)
    assert commit.message == "Words\n\ncommitter b <b> 5 +0000\n"


def test_what_is_no_commit_is_refused(git: Git) -> None:
    oids = blobs(git, [b"content"])
    for rev in (oids[0], ABSENT):
        with pytest.raises(GitError, match="is not a commit"):
            git.objects.commit(rev)
    assert dict(git.objects.read(oids)) == {oids[0]: b"content"}


# Processes that do not answer.


class Stubborn:
    """Starts a shell instead of git, and notes how it ended and what it is blamed for."""

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
    def ended(self) -> list[tuple[int | None, bytes | None]]:
        return [(one.returncode, told) for one, told in zip(self.processes, self.remarks, strict=True)]


@pytest.mark.parametrize(
    ("script", "timeout", "ended"),
    [
        ("exec sleep 60", 0.05, (-signal.SIGKILL, None)),
        ("read name; printf 'half of a line'; echo why >&2; exit 3", 10, (3, b"why\n")),
    ],
)
def test_one_that_stops_in_the_middle_of_an_answer_is_ended_and_started_again(
    script: str, timeout: float, ended: tuple[int, bytes | None]
) -> None:
    stubborn = Stubborn(script, timeout)
    for _ in range(2):
        with pytest.raises(RemoteUnreachable):
            stubborn.objects.absent([ABSENT])
    assert stubborn.ended == [ended, ended]


def test_closing_ends_them_and_they_start_again(git: Git) -> None:
    oids = blobs(git, [b"content"])
    for _ in range(2):
        assert dict(git.objects.read(oids)) == {oids[0]: b"content"}
        git.close()
