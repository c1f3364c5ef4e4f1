"""How the memory branch grows: many events, each remembered in a run of its own, with the squash as shipped.

python -m tests.bench.bench_growth [--threads 3000] [--events 2000] [--every 200] [--json FILE]

A line for every 200 events and each squash. Beside it the same records grow as files of JSON in a repository of their
own, a commit for each event: no digests, no index, no promises, and no squash.
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

from bot.domain.changes import AnswerRecord, Changes
from bot.domain.thread import Message, Thread, ThreadId
from bot.domain.thread_json import archive_fields, without_defaults
from bot.memory.branch_store import BranchStore, Growth
from bot.memory.memory import Memory
from tests.bench.bench_event import version_of_git
from tests.bench.figures import Curve, Limit, Peer, Report, Result, Spread, one, report_main
from tests.bench.history import history

BRANCH = "refs/heads/precedent"
TOLD_EVERY = 200
PLAIN = "records as JSON in git"


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def remember(remote: Path, changes: Changes, keys: list[ThreadId]) -> int:
    """One run, from the fetch to the push. How many bytes of content the branch took in by it, deflated."""
    with BranchStore(str(remote), "precedent", None) as store:
        memory = Memory(store).open(keys)
        memory.stage(changes)
        before = grown(remote)
        memory.commit("Remember")
    after = grown(remote)
    return after.bytes - before.bytes if after.commits == before.commits + 1 else 0


def grown(remote: Path) -> Growth:
    """What the tip says of the branch; nothing where there is none."""
    found = subprocess.run(
        ["git", "-C", str(remote), "log", "-1", "--format=%B", BRANCH], capture_output=True, check=False
    )
    return Growth.of(found.stdout.decode()) if found.returncode == 0 else Growth()


def events(known: list[Thread], fresh: list[Thread], count: int) -> Iterator[Changes]:
    """By turns a new issue with its promise, a comment on it, and its closing."""
    for turn in range(count):
        thread = fresh[turn // 3 % len(fresh)]
        thread = replace(thread, id=100_000 + turn // 3, comments=())
        now = known[-1].created_at + timedelta(minutes=10 * (turn + 1))
        opened = replace(
            thread,
            created_at=now - timedelta(minutes=10 * (turn % 3)),
            updated_at=now,
            closed_at=None,
            state="open",
            events=(),
        )
        said = (
            Message("octocat", "NONE", now, "It also happens with the newest version.", turn + 1) if turn % 3 else None
        )
        record = replace(opened, comments=(said,)) if said else opened
        promise = () if turn % 3 else (AnswerRecord(record.id, "pending", now, text_hash="x", trying_since=now),)
        yield Changes(records=(record,), answers=promise, cursor=now)


def packed(remote: Path) -> float:
    """MB of what a clone of the branch as it stands gets, and nothing that was left behind."""
    return len(pack(remote, f"{BRANCH}\n")) / 1e6


def pack(repository: Path, wanted: str, *options: str) -> bytes:
    """What git sends of these commits."""
    command = ["git", "-C", str(repository), "pack-objects", "--revs", "--stdout", "-q", *options]
    return subprocess.run(command, input=wanted.encode(), check=True, capture_output=True).stdout


def files(remote: Path) -> list[str]:
    """The paths of the branch as it stands."""
    return git(remote, "ls-tree", "-r", "--name-only", BRANCH).splitlines()


def bare(folder: Path) -> Path:
    """An empty repository that serves partial clones, and tidies nothing up by itself."""
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    for setting in ("uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true", "gc.auto=0"):
        git(folder, "config", *setting.split("="))
    return folder


class PlainGit:
    """The same records as files of JSON in a repository, a commit for each event, and nothing else: what any tool that
    keeps its memory in git has to keep."""

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
        """The commit of the moment at which so many events had been."""
        return f"{BRANCH}~{self._commits - 1 - events}"

    def pushed(self, event: int) -> int:
        """Bytes of the pack that a push of this event sends, the first being 1."""
        wanted = f"{self.at(event)}\n^{self.at(event - 1)}\n"
        return len(pack(self.folder, wanted, "--thin"))


@dataclass
class Grown:
    """``taken``: bytes of each event; ``told``: after how many events a clone got how many MB."""

    taken: list[int] = field(default_factory=list)
    told: list[tuple[int, float]] = field(default_factory=list)
    squashes: int = 0


def grow(remote: Path, known: list[Thread], changes: Iterable[Changes], every: int) -> Grown:
    """Remember everything that is known, then play the events."""
    found, commits = Grown(), 1
    remember(remote, Changes(records=tuple(known), cursor=known[-1].created_at), [])
    found.told.append((0, packed(remote)))
    for number, change in enumerate(changes, 1):
        found.taken.append(remember(remote, change, [record.id for record in change.records]))
        now = grown(remote).commits
        squashed = now < commits
        found.squashes, commits = found.squashes + squashed, now
        if number % every == 0 or squashed:
            found.told.append((number, packed(remote)))
            tell(remote, number, commits, found)
    return found


def tell(remote: Path, number: int, commits: int, found: Grown) -> None:
    names, taken = files(remote), found.taken
    print(
        f"{number:5} events: {found.told[-1][1]:.1f} MB with a history of {commits} commits, {len(names)} files, "
        f"{sum(name.startswith('index/') for name in names)} of the index; {found.squashes} squashes; "
        f"{statistics.median(taken) / 1e3:.1f} KB an event, {max(taken) / 1e3:.0f} at most",
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
        found = grow(bare(Path(folder) / "remote.git"), known, changes, every)
        curve = [(number, len(pack(plain.folder, plain.at(number) + "\n")) / 1e6) for number, _ in found.told]
        sent = [plain.pushed(number) / 1e3 for number in range(1, number_of_events + 1, 5)]
    told = f"{number_of_events} events on {data}, {found.squashes} squashes"
    axes = ("events", "MB that a clone of the branch gets")
    curves = (Curve("growth", "ours", *axes, tuple(found.told)), Curve("growth", PLAIN, *axes, tuple(curve)))
    return Report(told, tuple(results(found, curve, sent)), (), curves)


def results(found: Grown, plain: list[tuple[int, float]], sent: list[float]) -> Iterator[Result]:
    def peer(spread: Spread) -> Peer:
        return Peer(PLAIN, version_of_git(), spread)

    first, last, most = found.told[0][1], found.told[-1][1], max(size for _, size in found.told)
    yield Result("branch", "growth", "branch before the events", "MB", one(first), peer(one(plain[0][1])))
    yield Result("branch-after", "growth", "branch after the events", "MB", one(last), peer(one(plain[-1][1])))
    taken = Spread.of(size / 1e3 for size in found.taken if size)
    what = "new content of one event, deflated"
    yield Result("taken", "growth", what, "KB", taken, peer(Spread.of(sent)), Limit("median", 100.0))
    grown_by = one(most - first)
    yield Result("grown", "growth", "most that history added to a clone", "MB", grown_by, limit=Limit("median", 50.0))


if __name__ == "__main__":
    sys.exit(report_main(__doc__, measured, threads=3_000, events=2_000, every=TOLD_EVERY))
