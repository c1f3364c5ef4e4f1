"""The git program, as small verbs on one bare repository of our own; nothing else starts it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, Self

from bot.errors import StoreError
from bot.files import DiskTrouble, on_disk
from bot.git.checkout import bound
from bot.git.errors import FilterRefused, GitError, RemoteUnreachable, meaning
from bot.git.objects import Commit, Objects
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
    """One bare repository in ``folder``; every call is a process with a clean environment and a time limit.

    ``objects`` is what lies in it; it has processes of its own, which `close` ends.
    """

    def __init__(self, folder: Path, remote: Remote, *, timeout: float = 300.0, tries: int = 3) -> None:
        self._folder, self._remote, self._timeout, self._tries = folder, remote, timeout, tries
        self.objects = Objects(self._reader, self._failed, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.objects.close()

    def init(self) -> None:
        """Make the repository, empty: what `gitrepository-layout` asks for, in the format that all of git reads.

        What `git init` makes depends on its version, and starting it costs more.
        """
        with on_disk("make a repository"):
            for folder in ("objects", "refs"):
                (self._folder / folder).mkdir(parents=True, exist_ok=True)
            (self._folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
            (self._folder / "HEAD").write_text("ref: refs/heads/main\n")

    def tidy(self) -> None:
        """Take away what a killed git left, locks and parts of packs. For its only user."""
        with on_disk("tidy a repository"):
            for pattern in ("*.lock", "refs/**/*.lock", "objects/pack/*.lock", "objects/pack/tmp_*"):
                for left in self._folder.glob(pattern):
                    left.unlink(missing_ok=True)

    def exists(self) -> bool:
        return (self._folder / "HEAD").exists()

    def fetch_tip(self, ref: str, filters: Iterable[str]) -> bool:
        """Bring the newest commit of ``ref``, not its history, to TIP, by the first filter that the server takes.

        Says whether the server left anything out; all comes when it knows none. RefMissing where there is no such ref.
        """
        for leaving_out in (*filters, ""):
            settings = self._remote.settings(leaving_out)
            try:
                remarks = self._remotely(*_FETCH, "--depth=1", "origin", f"+{ref}:{TIP}", settings=settings)
                return bool(leaving_out) and b"filtering not recognized" not in remarks
            except FilterRefused:
                if not leaving_out:
                    raise
        raise AssertionError("the last try returns or raises")

    def fetch_objects(self, oids: Iterable[str], leaving_out: str) -> None:
        """Bring these objects in one exchange, and of trees among them what the filter ``leaving_out`` lets through."""
        lines = "".join(f"{oid}\n" for oid in oids).encode()
        settings = self._remote.settings(leaving_out) | {"fetch.negotiationAlgorithm": "noop"}
        self._remotely(*_FETCH, "--stdin", "origin", settings=settings, stdin=lines)

    def remote_tip(self, ref: str) -> str:
        """The commit that ``ref`` stands at on the server, "" where there is none."""
        words = self._remotely("ls-remote", "--quiet", "origin", ref, settings=self._remote.settings(), answer=True)
        return next((line[:40] for line in words.decode().splitlines() if line[41:] == ref), "")

    def push(self, oid: str, ref: str, *, lease: str = "") -> None:
        """Move ``ref`` on the server to ``oid``; history is given up only with ``lease``, its commit now."""
        force = (f"--force-with-lease={ref}:{lease}",) if lease else ()
        move = ("origin", f"{oid}:{ref}")
        self._remotely("push", "--quiet", "--porcelain", *force, *move, settings=self._remote.settings())

    def fast_import(self, stream: IO[bytes]) -> Commit:
        """The commit that a `git fast-import` stream makes, which prints the ids of the commit and of its tree."""
        stream.seek(0)
        words = self.run("fast-import", "--quiet", "--done", "--force", stdin=stream).split()
        return Commit(words[0].decode(), words[3].decode(), "")

    def run(
        self,
        *args: str,
        stdin: bytes | IO[bytes] = b"",
        stdout: IO[bytes] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> bytes:
        """What `git args` prints, or the GitError that its complaint means."""
        return self._start(args, stdin, stdout, self._remote.environment(settings or {}, self._folder))[0]

    def _remotely(self, *args: str, settings: Mapping[str, str], stdin: bytes = b"", answer: bool = False) -> bytes:
        """What git prints (its remarks unless ``answer``); tried again after a pause when the remote is unreachable."""
        for pause in (*(0.5 * 2**turn for turn in range(self._tries - 1)), 0.0):
            try:
                printed, remarks = self._start(args, stdin, None, self._remote.environment(settings, self._folder))
                return printed if answer else remarks
            except RemoteUnreachable:
                if not pause:
                    raise
                time.sleep(pause * random.uniform(0.5, 1.5))
        raise AssertionError("the last try returns or raises")

    def _start(
        self, args: Sequence[str], stdin: bytes | IO[bytes], stdout: IO[bytes] | None, environment: Mapping[str, str]
    ) -> tuple[bytes, bytes]:
        given, source = (stdin, subprocess.PIPE) if isinstance(stdin, bytes) else (None, stdin)
        process = self._process(args, source, stdout or subprocess.PIPE, environment)
        try:
            printed, remarks = process.communicate(given, self._timeout)
        except BaseException as error:
            _kill(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise self._late(args) from None
            raise
        if process.returncode:
            raise self._meaning(args, remarks + b"\n" + (printed or b"" if args[0] == "push" else b""))
        return printed or b"", remarks

    def _process(
        self, args: Sequence[str], stdin: IO[bytes] | int, stdout: IO[bytes] | int, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Git itself, in a session of its own so that it ends with all that it starts."""
        try:
            process = subprocess.Popen(
                ("git", *args),
                cwd=self._folder,
                env=environment,
                start_new_session=True,
                stderr=subprocess.PIPE,
                stdin=stdin,
                stdout=stdout,
            )
        except FileNotFoundError as error:
            raise GitError(f"git {args[0]}: {error.filename!r} is missing", "install git and put it on PATH") from None
        except OSError as error:
            raise DiskTrouble(f"git {args[0]}: {error.strerror}", DiskTrouble.usual_remedy) from None
        bound(process.pid)
        return process

    def _reader(self, args: Sequence[str]) -> subprocess.Popen[bytes]:
        return self._process(args, subprocess.PIPE, subprocess.PIPE, self._remote.environment({}, self._folder))

    def _failed(self, process: subprocess.Popen[bytes], late: bool) -> StoreError:
        assert isinstance(process.args, tuple)
        args = process.args[1:]
        if late:
            _kill(process)
            return self._late(args)
        return self._meaning(args, process.communicate()[1])

    def _late(self, args: Sequence[str]) -> GitError:
        told = f"git {args[0]}: no end after {self._timeout:.0f} s"
        return RemoteUnreachable(told, RemoteUnreachable.usual_remedy)

    def _meaning(self, args: Sequence[str], words: bytes) -> StoreError:
        told = self._remote.redacted(words.decode("utf-8", "replace"))
        return meaning(args[0], told, self._remote.no_access)


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
