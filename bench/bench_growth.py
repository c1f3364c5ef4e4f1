"""Measures how the memory branch grows: many events, each in a separate run, squashed as shipped.

python -m bench.bench_growth [--threads 3000] [--events 2000] [--every 200] [--json FILE]

Prints a line for every 200 events and each squash. The peer is the same records as JSON files in a separate
repository, a commit for each event: no digests, no index, no pending answers, and no squash.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from bench.bench_event import git_version
from bench.figures import Curve, Limit, Peer, Report, Result, Spread, report_main, single
from bench.history import history
from bot.domain.changes import Changes
from bot.domain.post import Post
from bot.domain.thread import Message, Thread, ThreadId
from bot.domain.thread_json import archive_fields, without_defaults
from bot.memory.branch_store import BranchStore, Growth
from bot.memory.memory import Memory

BRANCH = "refs/heads/precedent"
PRINT_EVERY = 200
PLAIN = "records as JSON in git"


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def remember(remote: Path, changes: Changes, keys: list[ThreadId]) -> int:
    """One run, from the fetch to the push; returns how many bytes of content it added to the branch, deflated."""
    with BranchStore(str(remote), "precedent", None) as store:
        memory = Memory(store).open(keys)
        memory.stage(changes)
        before = branch_growth(remote)
        memory.commit("Remember")
    after = branch_growth(remote)
    return after.bytes - before.bytes if after.commits == before.commits + 1 else 0


def branch_growth(remote: Path) -> Growth:
    """The growth that the branch's tip states; zero without a branch."""
    shown = subprocess.run(
        ["git", "-C", str(remote), "log", "-1", "--format=%B", BRANCH], capture_output=True, check=False
    )
    return Growth.of(shown.stdout.decode()) if shown.returncode == 0 else Growth()


def events(older: list[Thread], fresh: list[Thread], count: int) -> Iterator[Changes]:
    """In turn: a new issue with its pending answer, a comment on it, and its closing."""
    for turn in range(count):
        thread = fresh[turn // 3 % len(fresh)]
        thread = replace(thread, id=100_000 + turn // 3, comments=())
        now = older[-1].created_at + timedelta(minutes=10 * (turn + 1))
        opened = replace(
            thread,
            created_at=now - timedelta(minutes=10 * (turn % 3)),
            updated_at=now,
            closed_at=None,
            state="open",
            events=(),
        )
        comment = (
            Message("octocat", "NONE", now, "It also happens with the newest version.", turn + 1) if turn % 3 else None
        )
        record = replace(opened, comments=(comment,)) if comment else opened
        pending = () if turn % 3 else (Post(record.id, "pending", now, trying_since=now, content="x"),)
        yield Changes(records=(record,), posts=pending, cursor=now)


def clone_mb(remote: Path) -> float:
    """MB that a clone of the branch's current state gets, without unreachable objects."""
    return len(pack(remote, f"{BRANCH}\n")) / 1e6


def pack(repository: Path, revisions: str, *options: str) -> bytes:
    """The pack that git sends for these commits."""
    command = ["git", "-C", str(repository), "pack-objects", "--revs", "--stdout", "-q", *options]
    return subprocess.run(command, input=revisions.encode(), check=True, capture_output=True).stdout


def files(remote: Path) -> list[str]:
    """The current paths of the branch."""
    return git(remote, "ls-tree", "-r", "--name-only", BRANCH).splitlines()


def bare(folder: Path) -> Path:
    """An empty repository that serves partial clones, without automatic garbage collection."""
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    for setting in ("uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true", "gc.auto=0"):
        git(folder, "config", *setting.split("="))
    return folder


class PlainGit:
    """Only the same records as JSON files in a repository, a commit for each event: the minimum for any tool that keeps
    its memory in git."""

    def __init__(self, folder: Path) -> None:
        self.folder = bare(folder)
        self._import = subprocess.Popen(
            ["git", "-C", str(folder), "fast-import", "--quiet"], stdin=subprocess.PIPE, env=os.environ
        )
        self._commits = 0

    def commit(self, records: Sequence[Thread]) -> None:
        self._commits += 1
        lines = [b"commit %s" % BRANCH.encode(), b"mark :%d" % self._commits, b"committer a <a@b> 1 +0000", b"data 0"]
        lines += [b"from :%d" % (self._commits - 1)] if self._commits > 1 else []
        for record in records:
            text = json.dumps(without_defaults(archive_fields(record)), ensure_ascii=False, sort_keys=True).encode()
            path = f"{int(record.id) // 100:04}/{record.id}.json"
            lines += [f"M 100644 inline {path}".encode(), b"data %d" % len(text), text]
        assert self._import.stdin is not None
        self._import.stdin.write(b"\n".join([*lines, b"", b""]))

    def done(self) -> None:
        self._import.communicate()
        if self._import.returncode:
            raise SystemExit("git fast-import failed")
        git(self.folder, "repack", "-adfq")

    def at(self, events: int) -> str:
        """The commit after so many events."""
        return f"{BRANCH}~{self._commits - 1 - events}"

    def pushed(self, event: int) -> int:
        """Bytes of the pack that a push of this event sends; the first event is 1."""
        revisions = f"{self.at(event)}\n^{self.at(event - 1)}\n"
        return len(pack(self.folder, revisions, "--thin"))


@dataclass
class MeasuredGrowth:
    """``added``: bytes of each event; ``sizes``: pairs of events and the MB that a clone got after them."""

    added: list[int] = field(default_factory=list)
    sizes: list[tuple[int, float]] = field(default_factory=list)
    squashes: int = 0


def grow(remote: Path, known: list[Thread], changes: Iterable[Changes], every: int) -> MeasuredGrowth:
    """Remember the known threads, then play the events."""
    measured_growth, commits = MeasuredGrowth(), 1
    remember(remote, Changes(records=tuple(known), cursor=known[-1].created_at), [])
    measured_growth.sizes.append((0, clone_mb(remote)))
    for number, change in enumerate(changes, 1):
        measured_growth.added.append(remember(remote, change, [record.id for record in change.records]))
        commit_count = branch_growth(remote).commits
        is_squashed = commit_count < commits
        measured_growth.squashes, commits = measured_growth.squashes + is_squashed, commit_count
        if number % every == 0 or is_squashed:
            measured_growth.sizes.append((number, clone_mb(remote)))
            print_line(remote, number, commits, measured_growth)
    return measured_growth


def print_line(remote: Path, number: int, commits: int, growth: MeasuredGrowth) -> None:
    names, added = files(remote), growth.added
    print(
        f"{number:5} events: {growth.sizes[-1][1]:.1f} MB with a history of {commits} commits, {len(names)} files, "
        f"{sum(name.startswith('index/') for name in names)} of the index; {growth.squashes} squashes; "
        f"{statistics.median(added) / 1e3:.1f} KB an event, {max(added) / 1e3:.0f} at most",
        flush=True,
    )


def measured(count: int, number_of_events: int, every: int) -> Report:
    data, known, fresh = history(count)
    changes = list(events(known, fresh, number_of_events))
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        plain = PlainGit(Path(folder) / "plain.git")
        plain.commit(known)
        for change in changes:
            plain.commit([record for record in change.records if isinstance(record, Thread)])
        plain.done()
        growth = grow(bare(Path(folder) / "remote.git"), known, changes, every)
        curve = [(number, len(pack(plain.folder, plain.at(number) + "\n")) / 1e6) for number, _ in growth.sizes]
        sent = [plain.pushed(number) / 1e3 for number in range(1, number_of_events + 1, 5)]
    description = f"{number_of_events} events on {data}, {growth.squashes} squashes"
    axes = ("events", "MB that a clone of the branch gets")
    curves = (Curve("growth", "ours", *axes, tuple(growth.sizes)), Curve("growth", PLAIN, *axes, tuple(curve)))
    return Report(description, tuple(results(growth, curve, sent)), (), curves)


def results(growth: MeasuredGrowth, plain: list[tuple[int, float]], sent: list[float]) -> Iterator[Result]:
    def peer(spread: Spread) -> Peer:
        return Peer(PLAIN, git_version(), spread)

    first, last, most = growth.sizes[0][1], growth.sizes[-1][1], max(size for _, size in growth.sizes)
    yield Result("branch", "growth", "branch before the events", "MB", single(first), peer(single(plain[0][1])))
    yield Result("branch-after", "growth", "branch after the events", "MB", single(last), peer(single(plain[-1][1])))
    added_sizes = Spread.of(size / 1e3 for size in growth.added if size)
    title = "new content of one event, deflated"
    yield Result("taken", "growth", title, "KB", added_sizes, peer(Spread.of(sent)), Limit("median", 100.0))
    grown_by = single(most - first)
    yield Result("grown", "growth", "most that history added to a clone", "MB", grown_by, limit=Limit("median", 50.0))


if __name__ == "__main__":
    sys.exit(report_main(__doc__, measured, threads=3_000, events=2_000, every=PRINT_EVERY))
