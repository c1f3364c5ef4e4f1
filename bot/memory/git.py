"""The git program, as small verbs on one bare repository of our own; nothing else starts it."""

from __future__ import annotations

import base64
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar, NamedTuple, Self

from bot.errors import UserError
from bot.memory.bounds import bound
from bot.memory.disk import DiskTrouble, on_disk
from bot.memory.git_errors import AuthFailed, FilterRefused, GitError, RemoteUnreachable, meaning
from bot.memory.objects import Commit, Objects
from bot.memory.store import StoreError

FILE_MODE = "100644"
TIP = "refs/tip"
NEXT = "refs/next"
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_INHERITED = (
    "PATH",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    *_PROXIES,
    *(name.upper() for name in _PROXIES),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_SETTINGS = {
    "advice.pushUpdateRejected": "false",
    "core.autocrlf": "false",
    "core.bigFileThreshold": "100m",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.symlinks": "false",
    "credential.helper": "",
    "fastimport.unpackLimit": "1",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "protocol.http.allow": "always",
    "protocol.https.allow": "always",
    "transfer.fsckObjects": "true",
}
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
# `git check-ref-format`, without the names that an option parser could take for its own.
_BRANCH = re.compile(
    r"(?![-/@]|.*(?:\.\.|@\{|//|/\.|\.lock/))[^\x00-\x20\x7f~^:?*\[\\.\ud800-\udfff]"
    r"[^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]{0,199}"
)


class Entry(NamedTuple):
    """A name in a tree: ``mode`` as git writes it (100644, 120000, …) and the object's id."""

    mode: str
    oid: str


@dataclass(frozen=True)
class Remote:
    """Where to fetch from and push to. ``url`` is http(s), or the path of a repository on this machine."""

    url: str
    token: str | None = None
    no_access: ClassVar[str] = AuthFailed.usual_remedy
    """What to do where the server knows nobody, or not somebody who may."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"(?:https?://[^\x00-\x20/@]+)?/[^\x00-\x20\x7f]*", self.url):
            raise UserError(
                f"not a repository address: {self.redacted(self.url)[:200]!r}; give https://HOST/OWNER/NAME,"
                " without a user name, or an absolute path"
            )

    def settings(self, leaving_out: str = "") -> dict[str, str]:
        """The settings of git for it. Without a filter git knows of no missing objects, and fetches none by itself."""
        found = {"remote.origin.url": self.url}
        if leaving_out:
            found |= {"remote.origin.promisor": "true", "remote.origin.partialclonefilter": leaving_out}
        if self.url.startswith("/"):
            found["protocol.file.allow"] = "always"  # a repository on this machine was asked for by its path
        elif self.token:
            found[f"http.{self.url}.extraheader"] = f"AUTHORIZATION: basic {self._basic}"
        return found

    def environment(self, settings: Mapping[str, str], home: Path) -> dict[str, str]:
        """What git is started with: of this machine's settings nothing but the way to the network."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return inherited | _ENVIRONMENT | given({**_SETTINGS, **settings}) | {"HOME": str(home)}

    def redacted(self, words: str) -> str:
        """``words`` without the token, plain or encoded."""
        for secret in (self.token, self._basic) if self.token else ():
            words = words.replace(secret or "", "***")
        return re.sub(r"://[^/@\s]{1,300}@", "://***@", words)

    @property
    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token}".encode()).decode()


def given(settings: Mapping[str, str]) -> dict[str, str]:
    """These settings as git takes them from its environment. https://git-scm.com/docs/git-config#ENVIRONMENT"""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for at, (key, value) in enumerate(settings.items()):
        found |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return found


def checked_branch(name: str) -> str:
    """``name`` itself, when git would take it as a branch's name; else UserError."""
    if name == "HEAD" or not _BRANCH.fullmatch(name) or name.endswith((".", "/", ".lock")):
        raise UserError(f"branch: {name[:80]!r} is not a branch name; use letters, digits, '-', '_' and '/'")
    return name


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
        """End the processes that read objects."""
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
        """Take away what a killed git left, locks and parts of packs. Only for who has the repository for himself."""
        with on_disk("tidy a repository"):
            for pattern in ("*.lock", "refs/**/*.lock", "objects/pack/*.lock", "objects/pack/tmp_*"):
                for left in self._folder.glob(pattern):
                    left.unlink(missing_ok=True)

    def exists(self) -> bool:
        """Whether `init` was called for this folder."""
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
            raise GitError(f"git {args[0]}: {error.filename!r} is missing; install git and put it on PATH") from None
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
