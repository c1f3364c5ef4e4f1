"""The store on a git branch: shallow fetches without blobs, compare-and-swap pushes, a squash by lease."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Self

from bot.errors import StoreError, TipMoved, UnreadableFile
from bot.files import (
    MAX_CHECKOUT_BYTES,
    MAX_CHECKOUT_FILES,
    MAX_FILE_BYTES,
    check_folder,
    check_path,
    check_paths,
    is_below,
    is_safe_path,
    lock_within,
    on_disk,
    refuse_clashes,
)
from bot.git.errors import (
    AuthFailed,
    GitError,
    PushRejected,
    RefMissing,
    RemoteRefused,
    RemoteUnreachable,
)
from bot.git.objects import Commit
from bot.git.remote import OwnRemote, Remote, as_remote, checked_branch
from bot.git.repository import (
    FILE_MODE,
    TIP_REF,
    Blob,
    Changes,
    CommitDraft,
    Git,
    TreeEntry,
    all_files,
    apply_changes,
    drop_unchanged,
    import_stream,
    temporary_repository,
)
from bot.memory.paths import CLONE_FOLDER
from bot.memory.store import Edits, Snapshot, check_flat, relative_to

_LOG = logging.getLogger(__name__)
_BLOB_FILTER = "blob:none"
_TEMP_PREFIX = "precedent-"

_REMOTE_ERRORS = (AuthFailed, RemoteRefused, RemoteUnreachable)
"""Errors that a fresh clone would not fix."""

_COUNT_TRAILERS = re.compile(r"^Precedent-(Commits|Bytes): (\d{1,15})$", re.MULTILINE | re.ASCII)
_EPOCH_TRAILER = re.compile(r"^Precedent-Past: ([0-9a-f]{16})$", re.MULTILINE | re.ASCII)


@dataclass(frozen=True)
class Growth:
    """How much the branch has grown since it was last squashed: commits, and at most how many bytes were pushed.

    ``epoch`` identifies its history since then, "" if it was never squashed: a kept clone with another ``epoch``
    contains discarded objects. All three are stored in the message of the tip, the only commit that a shallow fetch is
    sure to see.
    """

    commits: int = 0
    bytes: int = 0
    epoch: str = ""

    @classmethod
    def of(cls, message: str) -> Growth:
        """Parse the trailers of a commit's message; all zero if it has none."""
        counts = {name: int(number) for name, number in _COUNT_TRAILERS.findall(message)}
        past = _EPOCH_TRAILER.search(message)
        return cls(counts.get("Commits", 0), counts.get("Bytes", 0), past[1] if past else "")

    def with_trailers(self, message: str) -> str:
        """``message`` with these trailers and a nonce. Without the nonce, two runs that make the same change in one
        second would make the same commit, and each would mistake the other's push for its own."""
        counts = f"Precedent-Commits: {self.commits}\nPrecedent-Bytes: {self.bytes}"
        past = f"Precedent-Past: {self.epoch}\n" if self.epoch else ""
        return f"{message.rstrip()}\n\n{counts}\n{past}Precedent-Run: {secrets.token_hex(8)}\n"


MAX_GROWTH = Growth(commits=200, bytes=50_000_000)
"""A branch that has grown more since its last squash is squashed: clones stay small, and pushes ordinary."""


class BranchSnapshot:
    """One commit of the branch. Its list of files is read once; contents are fetched together when first needed."""

    def __init__(self, store: BranchStore, commit: Commit | None, files: dict[str, TreeEntry]) -> None:
        self.revision = commit.oid if commit else ""
        self.commit, self.files = commit, files
        self._store = store

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        wanted = {path: self.files[path] for path in check_paths(paths) if path in self.files}
        if irregular := [path for path, entry in wanted.items() if entry.mode != FILE_MODE]:
            raise UnreadableFile(_describe_odd(irregular[0], wanted[irregular[0]]), irregular)
        contents = dict(self._store.contents(entry.oid for entry in wanted.values()))
        if large := [path for path, entry in wanted.items() if entry.oid not in contents]:
            raise UnreadableFile(
                f"{large[0]} on the branch has more than {MAX_FILE_BYTES:,} bytes; remove it there", large
            )
        return {path: contents[entry.oid] for path, entry in wanted.items()}

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        entries = {path: self.files[path] for path in check_paths(paths) if path in self.files}
        oids = {path: entry.oid for path, entry in entries.items() if entry.mode == FILE_MODE}
        sizes = self._store.sizes(oids.values())
        return {path: sizes[oid] for path, oid in oids.items() if oid in sizes}

    def twins(self, paths: Iterable[str]) -> frozenset[str]:
        oids = {path: self.files[path].oid for path in paths}
        counts = Counter(oids.values())
        return frozenset(path for path, oid in oids.items() if counts[oid] > 1)

    def paths(self, prefix: str) -> list[str]:
        folder = check_folder(prefix)
        return sorted(path for path, entry in self.files.items() if entry.mode == FILE_MODE and is_below(path, folder))

    def foreign_files(self, prefix: str) -> list[str]:
        folder = check_folder(prefix)
        return sorted(path for path, entry in self.files.items() if _is_foreign(path, entry, folder))

    def checkout(self, prefix: str) -> Path:
        folder = check_folder(prefix)
        names: dict[str, list[str]] = {}
        for path, entry in self.files.items():
            if is_below(path, folder):
                if entry.mode != FILE_MODE:
                    raise UnreadableFile(_describe_odd(check_path(path), entry), [path])
                names.setdefault(entry.oid, []).append(relative_to(check_flat(path, folder), folder))
        return self._store.write_checkout(names)


class BranchStore:
    """The tree on ``branch`` of the repository at ``url``, through a clone that `close` removes.

    With a folder to ``keep``, the clone stays there for the next caller with exclusive use of the folder; it is cloned
    again once the branch has been squashed. A write makes a commit on the tip and pushes it without force. When the
    branch has grown beyond ``limit``, the write makes one commit without parents instead and pushes it with a lease: it
    replaces exactly the tip that was read, or TipMoved is raised. If the server forbids that, the write is an ordinary
    one, unless a squash was requested.
    """

    def __init__(
        self,
        url: str | Remote,
        branch: str,
        token: str | None = None,
        *,
        keep: Path | None = None,
        limit: Growth = MAX_GROWTH,
    ) -> None:
        self._ref = f"refs/heads/{checked_branch(branch)}"
        self._limit = limit
        self._keep = keep
        self._folder = _make_temporary_folder(keep)
        self._git = Git((keep or self._folder) / CLONE_FOLDER, as_remote(url, token))
        if keep and self._git.exists():
            self._git.tidy()
        self._newest: BranchSnapshot | None = None
        self._tree, self._files = "", dict[str, TreeEntry]()  # of the tip that was last fetched
        self._sizes: dict[str, int] = {}  # of blobs that are here
        self._has_squashed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End git's processes, and remove the checkouts and the clone unless it is kept.

        A clone that this store squashed from is removed too, as it contains everything that was discarded.
        """
        self._git.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._has_squashed:
            self._remove_clone()

    def open(self, want: Iterable[str] = ()) -> BranchSnapshot:
        """The newest state; everything that ``want`` names is fetched along with it.

        Takes three requests, and two more for contents; two in total if nothing happened since this store's last write.
        """
        folders = [check_folder(name) for name in want]
        snapshot = self._last_write() or self._fetch_or_repair()
        self.sizes(
            entry.oid
            for path, entry in snapshot.files.items()
            if entry.mode == FILE_MODE and any(path == folder or is_below(path, folder) for folder in folders)
        )
        return snapshot

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> BranchSnapshot:
        assert isinstance(base, BranchSnapshot)
        blobs = {path: None if edits[path] is None else Blob.of(edits[path] or b"") for path in check_paths(edits)}
        changes = drop_unchanged(base.files, blobs)
        if not (changes or (squash and base.commit)):
            return base
        files = apply_changes(base.files, changes)
        refuse_clashes(files)
        self._newest = None
        made = self._push_changes(base, changes, message, squash=squash)
        self._newest = BranchSnapshot(self, made, files)
        return self._newest

    def contents(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of these blobs, except those of more than MAX_FILE_BYTES. Missing ones are fetched together."""
        small = [oid for oid, size in self.sizes(oids).items() if size <= MAX_FILE_BYTES]
        return dict(self._git.objects.read(small, MAX_FILE_BYTES)) if small else {}

    def sizes(self, oids: Iterable[str]) -> dict[str, int]:
        """The bytes of these blobs. Missing ones are fetched together."""
        distinct = list(dict.fromkeys(oids))
        if unknown := [oid for oid in distinct if oid not in self._sizes]:
            self._sizes |= self._git.objects.sizes(unknown)
        if absent := [oid for oid in unknown if oid not in self._sizes]:
            self._git.fetch_objects(absent, _BLOB_FILTER)
            self._sizes |= self._git.objects.sizes(absent)
        return {oid: self._sizes[oid] for oid in distinct if oid in self._sizes}

    def write_checkout(self, names: dict[str, list[str]]) -> Path:
        """Write these blobs (id → file names) to a new folder; missing ones are fetched together.

        Files beyond MAX_CHECKOUT_BYTES and MAX_CHECKOUT_FILES are left out and count as damaged: an index is smaller.
        """
        self.sizes(names)
        remaining, files = MAX_CHECKOUT_BYTES, 0
        with on_disk("write a working copy"):
            folder = Path(tempfile.mkdtemp(prefix="checkout-", dir=self._folder))
            for oid, content in self._git.objects.read(names):
                for name in names[oid]:
                    remaining, files = remaining - len(content), files + 1
                    if remaining >= 0 and files <= MAX_CHECKOUT_FILES:
                        (folder / name).write_bytes(content)
        return folder

    def _last_write(self) -> BranchSnapshot | None:
        """This store's own last write, if it is still the newest state."""
        if self._newest and self._git.remote_tip(self._ref) != self._newest.revision:
            self._newest = None
        return self._newest

    def _fetch_or_repair(self) -> BranchSnapshot:
        past = self._clone_past()
        try:
            snapshot = self._fetch()
            if past in (None, self._clone_past()) or not snapshot.commit:
                return snapshot
        except GitError as error:
            if not self._may_be_damage(error):
                raise
        self._clone_again()
        return self._fetch()

    def _may_be_damage(self, error: GitError) -> bool:
        """Whether cloning again may help."""
        is_damage = self._keep is not None and not isinstance(error, _REMOTE_ERRORS)
        if is_damage:
            _LOG.warning("a kept clone was damaged; cloning it again: %s", error)
        return is_damage

    def _clone_again(self) -> None:
        self._remove_clone()

    def _fetch(self) -> BranchSnapshot:
        if not self._git.exists():
            self._git.init()
        try:
            if not self._git.fetch_tip(self._ref, [_BLOB_FILTER]):
                _LOG.warning("the server does not support partial clones: the whole tip of the branch was fetched")
        except RefMissing:
            if self._keep:
                self._remove_clone()
                self._git.init()
            return BranchSnapshot(self, None, {})
        return self._at_tip()

    def _at_tip(self) -> BranchSnapshot:
        commit = self._git.objects.commit(TIP_REF)
        if self._tree != commit.tree:
            self._files, self._tree = all_files(self._git, commit.tree), commit.tree
        return BranchSnapshot(self, commit, self._files)

    def _clone_past(self) -> str | None:
        """The past of the commit that a kept clone last fetched; None without a clone or a commit."""
        if self._keep is None or not self._git.exists():
            return None
        try:
            return Growth.of(self._git.objects.commit(TIP_REF).message).epoch
        except GitError:
            return None

    def _remove_clone(self) -> None:
        self._git.close()
        self._sizes.clear()
        if self._keep:
            shutil.rmtree(self._keep / CLONE_FOLDER, ignore_errors=True)

    def _push_changes(self, base: BranchSnapshot, changes: Changes, message: str, *, squash: bool) -> Commit:
        """Push a commit and return it. A squash that the server's rules forbid is postponed until the limits are
        reached again, unless it was requested."""
        before = Growth.of(base.commit.message) if base.commit else Growth()
        size = before.bytes + sum(blob.packed() for blob in changes.values() if blob)
        growth = replace(before, commits=before.commits + 1, bytes=size)
        if base.commit and (squash or growth.commits > self._limit.commits or growth.bytes > self._limit.bytes):
            squashed = Growth(commits=1, epoch=secrets.token_hex(8))
            try:
                draft = CommitDraft("", base.commit.tree, squashed.with_trailers(message), int(time.time()))
                return self._push(draft, changes, lease=base.revision)
            except RemoteRefused as error:
                if squash:
                    raise
                _LOG.warning("the branch was not squashed: %s", error)
                growth = replace(squashed, epoch=before.epoch)
        return self._push(CommitDraft(base.revision, "", growth.with_trailers(message), int(time.time())), changes)

    def _push(self, draft: CommitDraft, changes: Changes, lease: str = "") -> Commit:
        with on_disk("write a commit"), import_stream(draft, changes, self._folder) as stream:
            made = self._git.fast_import(stream)
        try:
            self._git.push(made.oid, self._ref, lease=lease)
        except GitError as error:
            if isinstance(error, _REMOTE_ERRORS):
                raise
            self._check_tip(error, lease or draft.parent, made.oid)
        self._has_squashed |= bool(lease)
        return Commit(made.oid, made.tree, draft.message)

    def _check_tip(self, error: GitError, base: str, made: str) -> None:
        """Raises TipMoved when the branch has left ``base``, unless this push brought it to ``made``."""
        if type(error) is not PushRejected:  # only the present tip reveals a lost answer or a deleted branch
            tip = self._git.remote_tip(self._ref)
            if tip == made:
                return
            if tip == base and not isinstance(error, PushRejected):
                raise error
        raise TipMoved(str(error)) from error


def _make_temporary_folder(keep: Path | None) -> Path:
    """Make a folder that lasts as long as the store. Leftovers of killed stores next to it are removed."""
    with on_disk("make a temporary folder"):
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            for leftover in keep.glob(f"{_TEMP_PREFIX}*"):
                shutil.rmtree(leftover, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=_TEMP_PREFIX, dir=keep))


def _describe_odd(path: str, entry: TreeEntry) -> str:
    kind = {"120000": "a symlink", "160000": "a submodule", "100755": "an executable"}.get(entry.mode, "not a file")
    return f"{path} on the branch is {kind}, which this program never writes; remove it there"


def _is_foreign(path: str, entry: TreeEntry, folder: str) -> bool:
    is_odd = "/" in relative_to(path, folder) or entry.mode != FILE_MODE or not is_safe_path(path)
    return path == folder or (is_below(path, folder) and is_odd)


# -- a clone that is kept ----------------------------------------------------------------------------------------------

_MAX_PACKS = 40
"""Fetches after which the branch is cloned again, as each leaves a pack. A clone is one commit, and small."""

_LOCK_TIMEOUT = 60.0
_FRESH_CLONE = "fresh.git"


class CachedBranch(BranchStore):
    """The tip of a branch in the folder ``keep``; with ``fetches`` False, as last fetched.

    ``tracked_by``: the remote whose branch it is if ``remote`` is a checkout, which has it as it last fetched it.
    Callers hold `lock_folder` while one is open.
    """

    def __init__(self, remote: OwnRemote, branch: str, keep: Path, *, fetches: bool, tracked_by: str = "") -> None:
        if fetches and len(list((keep / CLONE_FOLDER / "objects" / "pack").glob("*.pack"))) > _MAX_PACKS:
            shutil.rmtree(keep / CLONE_FOLDER, ignore_errors=True)
        super().__init__(remote, branch, keep=keep)
        self._fetches, self._remote, self._clone = fetches, remote, keep / CLONE_FOLDER
        if tracked_by:
            self._ref = f"refs/remotes/{checked_branch(tracked_by)}/{branch}"

    def _may_be_damage(self, _: GitError) -> bool:
        """Assume damage: only another clone shows whether this one was damaged or the remote failed."""
        return self._fetches

    def _clone_again(self) -> None:
        """Keep the old clone until the new one has been fetched."""
        fresh = self._clone.with_name(_FRESH_CLONE)
        shutil.rmtree(fresh, ignore_errors=True)
        with Git(fresh, self._remote) as git:
            git.init()
            with suppress(RefMissing):
                git.fetch_tip(self._ref, [])
        self._remove_clone()
        fresh.rename(self._clone)

    def _fetch(self) -> BranchSnapshot:
        if self._fetches:
            if not self._git.exists():
                self._git.init()
            try:
                self._git.fetch_tip(self._ref, [])
            except RefMissing:
                return BranchSnapshot(self, None, {})
        elif not self._git.exists():
            raise StoreError("the memory was never fetched here")
        return self._at_tip()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other processes out of the folder. Raises StoreError after waiting one minute."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror}", "set XDG_CACHE_HOME to another folder"
        ) from error
    try:
        try:
            is_ours = lock_within(descriptor, fcntl.LOCK_EX, _LOCK_TIMEOUT)
        except OSError as error:
            trouble = f"{folder} cannot be locked: {error.strerror}"
            raise StoreError(trouble, "set XDG_CACHE_HOME to a folder on this machine") from error
        if not is_ours:
            raise StoreError(f"another process holds {folder} locked: wait for it, or end it")
        yield
    finally:
        os.close(descriptor)


# -- the tip alone -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tip:
    """The commit that a branch points to; ``at`` is when it was written, None if its time is invalid."""

    oid: str
    at: datetime | None
    growth: Growth


def memory_branches(remote: Remote) -> list[str]:
    """The branches whose newest commit this program wrote, the newest first. Takes two requests."""
    with temporary_repository(remote) as git:
        git.fetch_tip("refs/heads/*", ["tree:0", _BLOB_FILTER], "refs/heads/*")
        refs = git.run("for-each-ref", "--sort=-committerdate", "--format=%(refname)").decode().splitlines()
        ours = [ref for ref in refs if Growth.of(git.objects.commit(ref).message).commits]
    return [ref.removeprefix("refs/heads/") for ref in ours]


def read_tip(url: str | Remote, branch: str) -> Tip | None:
    """The newest commit of ``branch`` at ``url``; None if there is no such branch. Takes two requests."""
    ref = f"refs/heads/{checked_branch(branch)}"
    with temporary_repository(as_remote(url, None)) as git:
        try:
            git.fetch_tip(ref, ["tree:0", _BLOB_FILTER])
        except RefMissing:
            return None
        commit = git.objects.commit(TIP_REF)
    return Tip(commit.oid, commit.at, Growth.of(commit.message))
