"""Bare repositories for the tests of this room: by path, and served over HTTP."""

from __future__ import annotations

import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bot.memory.branch_store import BranchStore
from tests.fakes.git_http import GitServer


@dataclass(frozen=True)
class Hosted:
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
        """Start counting requests and bytes anew."""
        self.settle()
        self.server.mark()

    def settle(self) -> None:
        """Wait until the server has counted what it answered: it does so a moment after the client has the answer."""
        seen = -1
        while seen != (seen := len(self.server.requests)):
            time.sleep(0.03)

    @property
    def asked(self) -> list[str]:
        """What was requested since the last `mark`, in short."""
        self.settle()
        return [
            f"{served.method} {served.path.rsplit('/', 1)[-1].partition('?')[0]}" for served in self.server.requests
        ]


def opened(hosted: Hosted, **limits: int) -> BranchStore:
    return BranchStore(hosted.url, "precedent", hosted.token, **limits)


def contents(hosted: Hosted) -> dict[str, bytes]:
    with opened(hosted) as store:
        snapshot = store.open([""])
        return snapshot.read(snapshot.paths(""))


def bare_repository(folder: Path, *, filters: bool = True) -> Path:
    """The bare repository in ``folder``, made when it is not there; without ``filters`` it sends no partial clones."""
    if not folder.exists():
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)], check=True)
        git(folder, "config", "uploadpack.allowFilter", str(filters).lower())
    return folder


def git(repository: Path, *args: str, given: bytes = b"") -> str:
    """What git prints in this repository."""
    author = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.com")
    done = subprocess.run(
        ["git", "-C", str(repository), *author, *args], input=given, stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode().strip()


def commit(repository: Path, entries: dict[str, tuple[str, bytes]], ref: str = "refs/heads/precedent") -> str:
    """Put a commit without parent, with these (mode, content) at these paths, on ``ref``."""
    git(repository, "read-tree", "--empty")
    for path, (mode, content) in entries.items():
        oid = "1" * 40 if mode == "160000" else git(repository, "hash-object", "-w", "--stdin", given=content)
        git(repository, "update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}")
    made = git(repository, "commit-tree", "-m", "by hand", git(repository, "write-tree"))
    git(repository, "update-ref", ref, made)
    return made


def shown(repository: Path, kind: str, name: str) -> bytes:
    """The content of an object, as it is."""
    command = ["git", "-C", str(repository), "cat-file", kind, name]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def holds(place: Path, word: str) -> list[str]:
    """The files below a folder in which a word is, as it is or deflated."""
    wanted = word.encode()
    files = (path for path in place.rglob("*") if path.is_file())
    return [
        str(path) for path in files if any(wanted in part for part in (path.read_bytes(), *inflated(path.read_bytes())))
    ]


def parts(data: bytes) -> Iterator[bytes]:
    """These bytes, and all that something deflated in them unpacks to."""
    yield data
    yield from inflated(data)


def inflated(data: bytes) -> Iterator[bytes]:
    """All that something deflated in these bytes unpacks to, such as the objects of a pack."""
    for start in range(len(data) - 1):
        if data[start] == 0x78 and not (data[start] << 8 | data[start + 1]) % 31:
            with suppress(zlib.error):
                yield zlib.decompressobj().decompress(data[start:], 1 << 22)
