"""Runs git in a bare repository of our own, as small verbs."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple, Self

from bot.errors import StoreError
from bot.files import DiskTrouble, on_disk
from bot.git.errors import FilterRefused, GitError, RemoteUnreachable, meaning
from bot.git.objects import Commit, Objects
from bot.git.process import PIPE, GitAnswer, GitProcess, finish, start
from bot.git.remote import Remote

FILE_MODE = "100644"
TIP = "refs/tip"
NEXT = "refs/next"
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")


class TreeEntry(NamedTuple):
    """A name in a tree: ``mode`` as git writes it (100644, 120000, …) and the object's id."""

    mode: str
    oid: str


class Git:
    """The bare repository in ``folder``. Every call is a process with a clean environment and a time limit.

    ``objects`` reads its objects, in processes of its own that `close` ends.
    """

    def __init__(self, folder: Path, remote: Remote, *, timeout: float = 300.0, tries: int = 3) -> None:
        self._folder, self._remote, self._timeout, self._tries = folder, remote, timeout, tries
        self.objects = Objects(lambda args: self._start(args, PIPE, {}), self._meaning, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.objects.close()

    def init(self) -> None:
        """Make an empty repository: what `gitrepository-layout` requires, in the format that every git reads.

        The outcome of `git init` depends on its version, and starting it costs more.
        """
        with on_disk("make a repository"):
            for folder in ("objects", "refs"):
                (self._folder / folder).mkdir(parents=True, exist_ok=True)
            (self._folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
            (self._folder / "HEAD").write_text("ref: refs/heads/main\n")

    def tidy(self) -> None:
        """Delete the locks and partial packs that a killed git left. Nobody else may use the repository meanwhile."""
        with on_disk("tidy a repository"):
            for pattern in ("*.lock", "refs/**/*.lock", "objects/pack/*.lock", "objects/pack/tmp_*"):
                for left in self._folder.glob(pattern):
                    left.unlink(missing_ok=True)

    def exists(self) -> bool:
        return (self._folder / "HEAD").exists()

    def fetch_tip(self, ref: str, filters: Iterable[str]) -> bool:
        """Fetch the newest commit of ``ref``, without its history, to TIP, with the first filter the server accepts.

        Returns whether the server left anything out; without a known filter it sends all. Raises RefMissing.
        """
        for leaving_out in (*filters, ""):
            settings = self._remote.settings(leaving_out)
            try:
                fetched = self._remotely(*_FETCH, "--depth=1", "origin", f"+{ref}:{TIP}", settings=settings)
                return bool(leaving_out) and b"filtering not recognized" not in fetched.stderr
            except FilterRefused:
                if not leaving_out:
                    raise
        raise AssertionError("the last try returns or raises")

    def fetch_objects(self, oids: Iterable[str], leaving_out: str) -> None:
        """Fetch these objects in one exchange, and of trees among them what the filter ``leaving_out`` lets through."""
        lines = "".join(f"{oid}\n" for oid in oids).encode()
        settings = self._remote.settings(leaving_out) | {"fetch.negotiationAlgorithm": "noop"}
        self._remotely(*_FETCH, "--stdin", "origin", settings=settings, stdin=lines)

    def remote_tip(self, ref: str) -> str:
        """Return the commit that ``ref`` points to on the server, "" without one."""
        listed = self._remotely("ls-remote", "--quiet", "origin", ref, settings=self._remote.settings()).stdout
        return next((line[:40] for line in listed.decode().splitlines() if line[41:] == ref), "")

    def push(self, oid: str, ref: str, *, lease: str = "") -> None:
        """Move ``ref`` on the server to ``oid``. Only with ``lease``, its present commit, may history be lost."""
        force = (f"--force-with-lease={ref}:{lease}",) if lease else ()
        move = ("origin", f"{oid}:{ref}")
        self._remotely("push", "--quiet", "--porcelain", *force, *move, settings=self._remote.settings())

    def fast_import(self, stream: IO[bytes]) -> Commit:
        """Make the commit of a `git fast-import` stream that prints the ids of the commit and of its tree."""
        stream.seek(0)
        words = self.run("fast-import", "--quiet", "--done", "--force", stdin=stream).split()
        return Commit(words[0].decode(), words[3].decode(), "")

    def run(self, *args: str, stdin: bytes | IO[bytes] = b"") -> bytes:
        """Return what `git args` prints. Raises the GitError that its complaint means."""
        return self._run(args, stdin, {}).stdout

    def _remotely(self, *args: str, settings: Mapping[str, str], stdin: bytes = b"") -> GitAnswer:
        """Run git, and again after a pause while the remote is unreachable."""
        for pause in (*(0.5 * 2**turn for turn in range(self._tries - 1)), 0.0):
            try:
                return self._run(args, stdin, settings)
            except RemoteUnreachable:
                if not pause:
                    raise
                time.sleep(pause * random.uniform(0.5, 1.5))
        raise AssertionError("the last try returns or raises")

    def _run(self, args: Sequence[str], stdin: bytes | IO[bytes], settings: Mapping[str, str]) -> GitAnswer:
        with ExitStack() as opened:
            if isinstance(stdin, bytes):
                given, stdin = stdin, opened.enter_context(tempfile.TemporaryFile())
                stdin.write(given)
                stdin.seek(0)
            process = self._start(args, stdin, settings)
            try:
                answer = finish(process, self._timeout)
            except TimeoutError:
                raise self._meaning(args, None) from None
        if answer.returncode or answer.is_cut:
            raise self._meaning(args, answer.stderr + b"\n" + (answer.stdout if args[0] == "push" else b""))
        return answer

    def _start(self, args: Sequence[str], stdin: IO[bytes] | int, settings: Mapping[str, str]) -> GitProcess:
        try:
            return start(args, self._folder, self._remote.environment(settings, self._folder), stdin)
        except FileNotFoundError as error:
            raise GitError(f"git {args[0]}: {error.filename!r} is missing", "install git and put it on PATH") from None
        except OSError as error:
            raise DiskTrouble(f"git {args[0]}: {error.strerror}", DiskTrouble.usual_remedy) from None

    def _meaning(self, args: Sequence[str], remarks: bytes | None) -> StoreError:
        """The error that git's remarks mean; None for remarks if it did not end in time."""
        if remarks is None:
            told = f"git {args[0]}: no end after {self._timeout:.0f} s"
            return RemoteUnreachable(told, RemoteUnreachable.usual_remedy)
        told = self._remote.redacted(remarks.decode("utf-8", "replace"))
        return meaning(args[0], told, self._remote.no_access)
