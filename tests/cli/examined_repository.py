"""A repository with a memory, a workflow and a fake GitHub, for `precedent doctor` to examine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.cli.checks.result import CheckResult
from bot.cli.commands.doctor import examine
from bot.cli.parser import parse
from bot.domain.changes import Changes
from bot.domain.thread import Thread
from bot.files import bytes_hash
from bot.memory import manifest as manifests
from bot.memory.branch_store import BranchStore
from bot.memory.manifest import Manifest
from bot.memory.memory import Memory
from bot.memory.store import Edits, Snapshot
from tests.acceptance.stage import REPOSITORY, Stage

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
WORKFLOW = """on:
  issues:
  issue_comment:
  schedule:
    - cron: '23 4 * * *'
  workflow_dispatch:
    inputs:
      run:
        type: choice
        options: [catch-up, rebuild, answer, forget, remember, backtest, digest]
permissions: {}
concurrency:
  group: precedent
  cancel-in-progress: false
jobs:
  remember:
    permissions:
      contents: write
      issues: write
    steps:
      - uses: octo-org/precedent@08c6903cd8c0fde910a37f88322edcfb5dd907a8
        with:
          run: ${{ inputs.run }}
"""
WORKFLOW_PATH = ".github/workflows/precedent.yml"

Edit = Callable[[Manifest], Manifest]


class ExaminedRepository(Stage):
    """`examine` returns what the doctor finds at NOW; `put_files` and `overwrite` plant faults."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.put_files({WORKFLOW_PATH: WORKFLOW})

    @property
    def remote(self) -> str:
        return f"{self.git.url}/{REPOSITORY}.git"

    def put_files(self, files: Mapping[str, str | bytes]) -> None:
        """Put these files, and no others, on the default branch."""
        stream = b"commit refs/heads/main\ncommitter octocat <octocat@example.com> 1767600000 +0000\ndata 0\n"
        for path, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            stream += b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data)
        command = ["git", "-C", str(self.bare), "fast-import", "--quiet", "--force"]
        subprocess.run(command, input=stream, check=True, stdout=subprocess.DEVNULL)

    def store(self) -> BranchStore:
        return BranchStore(self.remote, "precedent", self.git.token)

    def remember(self, *threads: Thread, cursor: datetime | None = None) -> None:
        """Write these threads to the memory branch."""
        with closing(Memory(self.store(), repo=REPOSITORY).open()) as memory:
            memory.stage(Changes(records=threads, cursor=cursor))
            memory.commit("changes")
        self.github.repo.branches["precedent"] = "1" * 40

    def overwrite(self, edits: Callable[[Snapshot], Edits]) -> None:
        """Overwrite files of the memory branch behind the memory's back."""
        with closing(self.store()) as store:
            snapshot = store.open([""])
            store.write(snapshot, edits(snapshot), "by hand")

    def edit_manifest(self, edit: Edit) -> None:
        self.overwrite(
            lambda snapshot: {manifests.MANIFEST_PATH: manifests.encode_manifest(edit(manifest_of(snapshot)))}
        )

    def replace_index(self, files: Mapping[str, bytes]) -> None:
        """Replace the index by these files, and list them in the manifest."""
        hashes = {name: bytes_hash(data) for name, data in files.items()}
        self.overwrite(
            lambda snapshot: dict.fromkeys(snapshot.paths("index")) | {f"index/{name}": files[name] for name in files}
        )
        self.edit_manifest(lambda manifest: replace(manifest, index=hashes))

    def examine(self, *options: str | Path, token: str | None = None, now: datetime = NOW) -> list[CheckResult]:
        target = ("--repo", REPOSITORY, "--server", self.git.url, "--api", self.github.url)
        arguments = parse(["doctor", *target, *map(str, options)])
        environ = {"PRECEDENT_TOKEN": self.github.token if token is None else token}
        return examine(arguments, environ, now)

    def refs(self) -> dict[str, str]:
        """All refs of the repository."""
        lines = self.run_git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ", 1) for line in lines)

    def close(self) -> None:
        super().close()
        assert not self.github.violations, "\n".join(self.github.violations)


def manifest_of(snapshot: Snapshot) -> Manifest:
    return manifests.decode_manifest(snapshot.read([manifests.MANIFEST_PATH])[manifests.MANIFEST_PATH])


def threads(count: int) -> list[Thread]:
    when = NOW - timedelta(days=30)
    return [
        Thread(number, f"The importer fails, {number}", "Rows are lost.", "octocat", when, updated_at=when)
        for number in range(1, count + 1)
    ]


def with_newer_format(data: bytes) -> bytes:
    """The manifest as a future version would write it."""
    return json.dumps(json.loads(data) | {"format": 3}).encode()
