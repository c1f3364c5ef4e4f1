"""Bare repositories for tests: by path, and served over HTTP."""

from __future__ import annotations

import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bot.memory.branch_store import BranchStore, Growth
from tests.fakes.git_http import GitServer


@dataclass(frozen=True)
class HostedRepository:
    """An empty repository on the fake of GitHub's git server."""

    server: GitServer
    repository: Path
    name: str = "octocat/hello"

    @property
    def url(self) -> str:
        return f"{self.server.url}/{self.name}.git"

    @property
    def token(self) -> str:
        return self.server.token

    def mark(self) -> None:
        """Start counting requests and bytes from zero."""
        self.settle()
        self.server.mark()

    def settle(self) -> None:
        """Wait until the server has counted its responses, which it does a moment after the client has them."""
        count = -1
        while count != (count := len(self.server.requests)):
            time.sleep(0.03)

    @property
    def request_lines(self) -> list[str]:
        """The requests since the last `mark`, such as "GET refs"."""
        self.settle()
        return [
            f"{served.method} {served.path.rsplit('/', 1)[-1].partition('?')[0]}" for served in self.server.requests
        ]


def open_store(hosted: HostedRepository, **limits: Growth) -> BranchStore:
    return BranchStore(hosted.url, "precedent", hosted.token, **limits)


def contents(hosted: HostedRepository) -> dict[str, bytes]:
    with open_store(hosted) as store:
        snapshot = store.open([""])
        return snapshot.read(snapshot.paths(""))


def bare_repository(folder: Path, *, filters: bool = True) -> Path:
    """The bare repository in ``folder``, created if missing; without ``filters`` it refuses partial clones."""
    if not folder.exists():
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)], check=True)
        git(folder, "config", "uploadpack.allowFilter", str(filters).lower())
    return folder


def git(repository: Path, *args: str, stdin: bytes = b"") -> str:
    """Run git in this repository and return its output."""
    author = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.com")
    process = subprocess.run(
        ["git", "-C", str(repository), *author, *args], input=stdin, stdout=subprocess.PIPE, check=True
    )
    return process.stdout.decode().strip()


def commit(repository: Path, entries: dict[str, tuple[str, bytes]], ref: str = "refs/heads/precedent") -> str:
    """Set ``ref`` to a commit without parents that has these paths, each with (mode, content)."""
    git(repository, "read-tree", "--empty")
    for path, (mode, content) in entries.items():
        oid = "1" * 40 if mode == "160000" else git(repository, "hash-object", "-w", "--stdin", stdin=content)
        git(repository, "update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}")
    commit_id = git(repository, "commit-tree", "-m", "by hand", git(repository, "write-tree"))
    git(repository, "update-ref", ref, commit_id)
    return commit_id


def read_object(repository: Path, kind: str, name: str) -> bytes:
    """The raw content of an object."""
    command = ["git", "-C", str(repository), "cat-file", kind, name]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def files_with(folder: Path, word: str) -> list[str]:
    """The files below a folder that contain a word, plain or deflated."""
    needle = word.encode()
    files = (path for path in folder.rglob("*") if path.is_file())
    return [
        str(path) for path in files if any(needle in part for part in (path.read_bytes(), *inflated(path.read_bytes())))
    ]


def inflated(data: bytes) -> Iterator[bytes]:
    """Whatever is deflated in these bytes, such as the objects of a pack, inflated."""
    for start in range(len(data) - 1):
        if data[start] == 0x78 and not (data[start] << 8 | data[start + 1]) % 31:
            with suppress(zlib.error):
                yield zlib.decompressobj().decompress(data[start:], 1 << 22)
