"""Runs git in a bare repository of our own: small operations, streams that make commits, and bounded tree walks."""

from __future__ import annotations

import hashlib
import random
import re
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple, Self

from bot.errors import StoreError
from bot.files import MAX_DEPTH, MAX_FILES, MAX_PATH_CHARS, disk_fault, on_disk
from bot.git.errors import FilterRefused, GitError, RemoteUnreachable, parse_error
from bot.git.objects import Commit, Objects
from bot.git.process import PIPE, GitAnswer, GitProcess, finish, start
from bot.git.remote import Remote

FILE_MODE = "100644"
TIP_REF = "refs/tip"
NEXT_REF = "refs/next"
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")


class TreeEntry(NamedTuple):
    """A name in a tree: ``mode`` as git writes it (100644, 120000, …) and the object's id."""

    mode: str
    oid: str


class Git:
    """The bare repository in ``folder``. Every call is a process with a clean environment and a time limit.

    ``settings`` of git are added to those of ``remote``. ``objects`` reads its objects in separate processes, which
    `close` ends.
    """

    def __init__(
        self,
        folder: Path,
        remote: Remote,
        *,
        timeout: float = 300.0,
        tries: int = 3,
        pause: Callable[[float], object] = time.sleep,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._folder, self._remote, self._timeout, self._tries, self._pause = folder, remote, timeout, tries, pause
        self._settings = settings or {}
        self.objects = Objects(lambda args: self._start(args, PIPE, {}), self._parse_error, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.objects.close()

    def init(self) -> None:
        """Make an empty repository: what `gitrepository-layout` requires, in the format that every git reads.

        The result of `git init` depends on its version, and starting it is slower.
        """
        with on_disk("make a repository"):
            for folder in ("objects", "refs"):
                (self._folder / folder).mkdir(parents=True, exist_ok=True)
            (self._folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
            (self._folder / "HEAD").write_text("ref: refs/heads/main\n")

    def tidy(self) -> None:
        """Delete the locks and partial packs that a killed git left. Nobody else may be using the repository."""
        with on_disk("tidy a repository"):
            for pattern in ("*.lock", "refs/**/*.lock", "objects/pack/*.lock", "objects/pack/tmp_*"):
                for leftover in self._folder.glob(pattern):
                    leftover.unlink(missing_ok=True)

    def exists(self) -> bool:
        return (self._folder / "HEAD").exists()

    def fetch_tip(self, ref: str, filters: Iterable[str], target: str = TIP_REF) -> bool:
        """Fetch the newest commit of ``ref`` to ``target``, without its history, with the first filter the server
        accepts; with a ``*`` in both, those of all such refs.

        Returns whether the server left anything out; without a known filter it sends everything. Raises RefMissing.
        """
        for filter_spec in (*filters, ""):
            settings = self._remote.settings(filter_spec)
            try:
                fetched = self._remotely(*_FETCH, "--depth=1", "origin", f"+{ref}:{target}", settings=settings)
                return bool(filter_spec) and b"filtering not recognized" not in fetched.stderr
            except FilterRefused:
                if not filter_spec:
                    raise
        raise AssertionError("the last try returns or raises")

    def fetch_objects(self, oids: Iterable[str], filter_spec: str) -> None:
        """Fetch these objects in one exchange, and the contents of trees among them, filtered by ``filter_spec``."""
        lines = "".join(f"{oid}\n" for oid in oids).encode()
        settings = self._remote.settings(filter_spec) | {"fetch.negotiationAlgorithm": "noop"}
        self._remotely(*_FETCH, "--stdin", "origin", settings=settings, stdin=lines)

    def remote_tip(self, ref: str) -> str:
        """Return the commit that ``ref`` points to on the server, "" if there is none."""
        listed = self._remotely("ls-remote", "--quiet", "origin", ref, settings=self._remote.settings()).stdout
        return next((line[:40] for line in listed.decode().splitlines() if line[41:] == ref), "")

    def push(self, oid: str, ref: str, *, lease: str = "") -> None:
        """Move ``ref`` on the server to ``oid``. History may only be lost with ``lease``, its present commit."""
        force = (f"--force-with-lease={ref}:{lease}",) if lease else ()
        move = ("origin", f"{oid}:{ref}")
        self._remotely("push", "--quiet", "--porcelain", *force, *move, settings=self._remote.settings())

    def fast_import(self, stream: IO[bytes]) -> Commit:
        """Make the commit of a `git fast-import` stream that prints the ids of the commit and of its tree."""
        stream.seek(0)
        printed = self.run("fast-import", "--quiet", "--done", "--force", stdin=stream).split()
        return Commit(printed[0].decode(), printed[3].decode(), "")

    def run(self, *args: str, stdin: bytes | IO[bytes] = b"") -> bytes:
        """Return what `git args` prints. Raises the GitError for its complaint."""
        return self._run(args, stdin, {}).stdout

    def _remotely(self, *args: str, settings: Mapping[str, str], stdin: bytes = b"") -> GitAnswer:
        """Run git, and again after a pause while the remote is unreachable, unless that took too long already."""
        until = time.monotonic() + self._timeout
        for pause in (*(0.5 * 2**turn for turn in range(self._tries - 1)), 0.0):
            try:
                return self._run(args, stdin, settings)
            except RemoteUnreachable:
                if not pause or time.monotonic() > until:
                    raise
                self._pause(pause * random.uniform(0.5, 1.5))
        raise AssertionError("the last try returns or raises")

    def _run(self, args: Sequence[str], stdin: bytes | IO[bytes], settings: Mapping[str, str]) -> GitAnswer:
        with ExitStack() as opened:
            if isinstance(stdin, bytes):
                data, stdin = stdin, opened.enter_context(tempfile.TemporaryFile())
                stdin.write(data)
                stdin.seek(0)
            process = self._start(args, stdin, settings)
            try:
                answer = finish(process, self._timeout)
            except TimeoutError:
                raise self._parse_error(args, None) from None
        if answer.returncode or answer.is_cut:
            raise self._parse_error(args, answer.stderr + b"\n" + (answer.stdout if args[0] == "push" else b""))
        return answer

    def _start(self, args: Sequence[str], stdin: IO[bytes] | int, settings: Mapping[str, str]) -> GitProcess:
        try:
            environment = self._remote.environment({**self._settings, **settings}, self._folder)
            return start(args, self._folder, environment, stdin)
        except FileNotFoundError as error:
            raise GitError(f"git {args[0]}: {error.filename!r} is missing", "install git and put it on PATH") from None
        except OSError as error:
            raise disk_fault(f"git {args[0]}", error) from None

    def _parse_error(self, args: Sequence[str], remarks: bytes | None) -> StoreError:
        """The error in git's remarks, which are None if it did not finish in time."""
        if remarks is None:
            output = f"git {args[0]}: timed out after {self._timeout:.0f} s"
            return RemoteUnreachable(output, RemoteUnreachable.usual_remedy)
        output = self._remote.redact(remarks.decode("utf-8", "replace"))
        return parse_error(args[0], output, self._remote.no_access)


@contextmanager
def temporary_repository(remote: Remote, settings: Mapping[str, str] | None = None) -> Iterator[Git]:
    """An empty repository in a temporary folder that is deleted afterwards."""
    with (
        on_disk("make a temporary folder"),
        tempfile.TemporaryDirectory(prefix="precedent-") as folder,
        Git(Path(folder) / "temporary.git", remote, settings=settings) as git,
    ):
        git.init()
        yield git


AUTHOR = "precedent <precedent@users.noreply.github.com>"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Blob:
    """The new content of a file: its source, its size in bytes, and the id that git gives it."""

    source: bytes | Path
    size: int
    oid: str

    @classmethod
    def of(cls, source: bytes | Path) -> Blob:
        """Measure ``source``. Raises StoreError for a path that is not a regular file."""
        size = len(source) if isinstance(source, bytes) else _file_size(source)
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        for chunk in _chunks(source):
            digest.update(chunk)
        return cls(source, size, digest.hexdigest())

    def packed(self) -> int:
        """Return the deflated size in bytes, the most that a push sends (a delta may be far smaller)."""
        deflate = zlib.compressobj(1)
        return sum(len(deflate.compress(chunk)) for chunk in _chunks(self.source)) + len(deflate.flush())

    def write(self, out: IO[bytes]) -> None:
        """Append the content. Raises StoreError if the size has changed since it was measured."""
        if sum(out.write(chunk) for chunk in _chunks(self.source)) != self.size:
            raise StoreError(f"{self.source!s} changed while it was stored; write it before handing it over")


Changes = Mapping[str, Blob | None]
"""Path → new content, None to delete it."""


@dataclass(frozen=True)
class CommitDraft:
    """A commit to make on ``parent`` or, without one, from ``tree`` ("": empty); ``time`` in seconds since 1970."""

    parent: str
    tree: str
    message: str
    time: int


def import_stream(draft: CommitDraft, changes: Changes, folder: Path) -> IO[bytes]:
    """Write the `git fast-import` stream of this commit, to a file in ``folder`` that vanishes when closed.

    Git loads only the trees on the path to a changed file, and prints the ids of the commit and its tree.
    """
    out = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    text = draft.message.encode("utf-8", "replace")
    out.write(
        b"commit %s\nmark :1\ncommitter %s %d +0000\ndata %d\n%s\n"
        % (NEXT_REF.encode(), AUTHOR.encode(), draft.time, len(text), text)
    )
    if draft.parent:
        out.write(b"from %s\n" % draft.parent.encode())
    elif draft.tree:
        out.write(b'M 040000 %s ""\n' % draft.tree.encode())
    for path in (path for path, blob in changes.items() if blob is None):  # first, since a file may replace a folder
        out.write(b"D %s\n" % _quoted(path))
    for path, blob in changes.items():
        if blob is not None:
            out.write(b"M %s inline %s\ndata %d\n" % (FILE_MODE.encode(), _quoted(path), blob.size))
            blob.write(out)
            out.write(b"\n")
    out.write(b'\nget-mark :1\nls :1 ""\ndone\n')
    return out


def drop_unchanged(files: Mapping[str, TreeEntry], changes: Changes) -> Changes:
    return {
        path: blob
        for path, blob in changes.items()
        if files.get(path) != (None if blob is None else TreeEntry(FILE_MODE, blob.oid))
    }


def apply_changes(files: Mapping[str, TreeEntry], changes: Changes) -> dict[str, TreeEntry]:
    kept = {path: entry for path, entry in files.items() if path not in changes}
    return kept | {path: TreeEntry(FILE_MODE, blob.oid) for path, blob in changes.items() if blob is not None}


def _quoted(path: str) -> bytes:
    return b'"%s"' % path.replace('"', '\\"').encode()


def _file_size(path: Path) -> int:
    if path.is_symlink() or not path.is_file():
        raise StoreError(f"{path} is not a regular file; hand over its content or a file")
    return path.stat().st_size


def _chunks(source: bytes | Path) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    try:
        with source.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise StoreError(f"cannot read {source}: {error.strerror}") from error


MAX_TREE_BYTES = 16_000_000
"""Bytes of one folder's list of names, about 400,000 names."""

FOLDER_MODE = "040000"
SUBMODULE_MODE = "160000"
_SLASH_IN_NAME = "\udc2f"
_TREE_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)


class TreeTooLarge(StoreError):
    """A tree has too many names to look through."""


def walk(git: Git, tree: str, leads: Callable[[str], bool], most: int) -> Iterator[tuple[str, TreeEntry]]:
    """Yield path and entry of everything in ``tree``. Raises TreeTooLarge after ``most`` entries or for a huge folder.

    ``leads`` decides which folders to look into; those with too long a path are left out. Only one list of names is in
    memory at a time. A name longer than any of our paths counts as several. A slash in a name is no separator: like
    bytes that are not UTF-8, it becomes a lone surrogate.
    """
    level, count = {tree: [""]}, 0
    for _ in range(MAX_DEPTH):
        below: dict[str, list[str]] = {}
        for oid, data in git.objects.read(level, MAX_TREE_BYTES):
            folders = level.pop(oid)
            for match in _TREE_ENTRY.finditer(data):
                bits, name, raw = match.groups()
                count += len(folders) * (1 + len(name) // MAX_PATH_CHARS)
                if count > most:
                    raise TreeTooLarge(f"there are more than {most:,} files")
                entry = TreeEntry(_kind(bits), raw.hex())
                for folder in folders:
                    path = folder + name.decode("utf-8", "surrogateescape").replace("/", _SLASH_IN_NAME)
                    yield path, entry
                    if entry.mode == FOLDER_MODE and len(path) < MAX_PATH_CHARS and leads(path):
                        below.setdefault(entry.oid, []).append(f"{path}/")
        for folder in chain.from_iterable(level.values()):
            raise TreeTooLarge(f"the folder {folder[:80]!r} is missing or too large to read")
        level = below


def all_files(git: Git, tree: str) -> dict[str, TreeEntry]:
    """Return path → entry of all files, symlinks and submodules in ``tree``. Raises StoreError beyond MAX_FILES."""
    try:
        entries = walk(git, tree, lambda _: True, MAX_FILES)
        return {path: entry for path, entry in entries if entry.mode != FOLDER_MODE}
    except TreeTooLarge as error:
        raise TreeTooLarge(
            f"{error}: this program did not write that branch; delete it, and run with `rebuild`"
        ) from None


@cache
def _kind(mode: bytes) -> str:
    """The mode as git sees it: for a regular file, only whether its owner may execute it matters."""
    number = int(mode, 8)
    match number & 0o170000:
        case 0o100000:
            return "100755" if number & 0o100 else FILE_MODE
        case 0o040000:
            return FOLDER_MODE
        case 0o120000:
            return "120000"
    return SUBMODULE_MODE
