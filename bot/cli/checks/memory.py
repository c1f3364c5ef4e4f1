"""Checks of a memory: its branch, its manifest and its index. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote

from bot.cli.checks.result import CheckResult, RepositoryLinks, abbreviate, token_remedy
from bot.domain.ages import age
from bot.errors import StoreError
from bot.git.errors import AuthFailed, RemoteUnreachable
from bot.index import open_index
from bot.index.protocol import IndexCorrupt
from bot.memory.branch_store import MAX_GROWTH, Tip
from bot.memory.manifest import (
    FORMAT,
    INDEX_FOLDER,
    MANIFEST_PATH,
    MESSAGE_FOLDER,
    ForeignFormat,
    Manifest,
    decode_manifest,
)
from bot.memory.paths import RECORD_FOLDER
from bot.memory.store import Snapshot
from bot.memory.stored_index import damaged_files, other_maker


@dataclass(frozen=True, slots=True)
class InspectedMemory:
    """One state of memory. ``fault`` says why ``manifest`` cannot be read ("" if it can), ``foreign`` that this version
    does not support its format; the other fields are then unused. ``has_records``: there are files of records.

    ``index`` lists damaged, missing and foreign files of the indexes, if this version made them.
    """

    manifest: Manifest = field(default_factory=Manifest)
    fault: str = ""
    foreign: ForeignFormat | None = None
    has_records: bool = False
    index: tuple[str, ...] = ()


def inspect(snapshot: Snapshot) -> InspectedMemory:
    """Gather everything that the checks need. Raises StoreError."""
    data = snapshot.read([MANIFEST_PATH]).get(MANIFEST_PATH)
    if data is None:
        return InspectedMemory(fault="missing", has_records=any(snapshot.paths(RECORD_FOLDER)))
    try:
        manifest = decode_manifest(data)
    except ForeignFormat as error:
        return InspectedMemory(foreign=error)
    except ValueError as error:
        return InspectedMemory(fault=f"damaged ({error})")
    return InspectedMemory(manifest, index=_index_faults(snapshot, manifest))


def _index_faults(snapshot: Snapshot, manifest: Manifest) -> tuple[str, ...]:
    """Damaged, missing and foreign files of both indexes, except of indexes made by other versions."""
    faults: tuple[str, ...] = ()
    if not (manifest.index and other_maker(manifest.layout, manifest.analyser)):
        faults += _faults(snapshot, INDEX_FOLDER, manifest.index)
    messages = manifest.messages
    if messages and messages.files and not other_maker(messages.layout, messages.analyser):
        faults += _faults(snapshot, MESSAGE_FOLDER, messages.files)
    return faults


def _faults(snapshot: Snapshot, folder: str, hashes: Mapping[str, str]) -> tuple[str, ...]:
    foreign = snapshot.foreign_files(folder)
    if foreign or not hashes:
        return tuple(foreign)
    try:
        files = snapshot.checkout(folder)
        if damaged := damaged_files(hashes, files):
            return tuple(f"{folder}/{name}" for name in damaged)
        open_index(files).close()
    except StoreError as error:
        return (error.cause,)
    except IndexCorrupt as error:
        return (f"{folder} ({error!s:.100})",)
    return ()


def check_branch(
    tip: Tip | StoreError | None, target: RepositoryLinks, now: datetime, *, has_token: bool = False
) -> CheckResult:
    """Whether the branch exists, when it was last written, and its growth. ``has_token``: git had one."""
    if isinstance(tip, RemoteUnreachable):
        says = f"git cannot reach the server: {tip.cause}"
        return CheckResult("branch", "error", says, "run it again later", outside=True)
    if isinstance(tip, AuthFailed):
        return CheckResult("branch", "error", _explain_refusal(tip, target, has_token=has_token), token_remedy(target))
    if isinstance(tip, StoreError):
        return CheckResult(
            "branch", "error", f"{target.branch} cannot be read: {tip.cause}", tip.remedy or target.rebuild_remedy()
        )
    if tip is None:
        says = f"there is no branch {target.branch}: nothing is remembered yet"
        return CheckResult("branch", "warning", says, target.rebuild_remedy())
    written = f"written {age(now - tip.at)} ago" if tip.at else "written at an unknown time"
    commits = f"{tip.growth.commits:,} commit{'' if tip.growth.commits == 1 else 's'}"
    growth = f"{commits}, {tip.growth.bytes / 1e6:.1f} MB since its last squash"
    says = f"{target.branch}, {written}; {growth}"
    if tip.growth.commits > MAX_GROWTH.commits or tip.growth.bytes > MAX_GROWTH.bytes:
        remedy = f"let the workflow's token force-push to {target.branch}: {target.page('settings/rules')}"
        return CheckResult("branch", "note", f"{says}: it keeps growing, as the server forbids squashing it", remedy)
    return CheckResult("branch", "ok", says)


def _explain_refusal(refusal: AuthFailed, target: RepositoryLinks, *, has_token: bool) -> str:
    if "could not read Username" in str(refusal):  # git tried to prompt, as it has no credentials
        if has_token:
            return f"git may not read {target.repository} with this token: the server does not know it"
        return f"git may not read {target.repository} without a token: it is private, or does not exist"
    return f"git may not read {target.repository}: {refusal.cause}"


def check_manifest(memory: InspectedMemory, target: RepositoryLinks) -> Iterator[CheckResult]:
    """Whether the manifest can be read and its format is supported."""
    if memory.fault == "missing" and not memory.has_records:
        yield CheckResult(
            "manifest",
            "warning",
            "manifest.json and the records are missing: nothing is remembered yet",
            _import_remedy(target),
        )
    elif memory.fault:
        yield CheckResult("manifest", "error", f"manifest.json is {memory.fault}", target.rebuild_remedy())
    elif memory.foreign:
        yield CheckResult("format", "error", memory.foreign.cause, memory.foreign.remedy)
    else:
        yield CheckResult("manifest", "ok", f"manifest.json is valid, format {FORMAT}")


def _import_remedy(target: RepositoryLinks) -> str:
    is_made_here = target.store and not target.is_checkout
    return f"`precedent import FILE --store {quote(target.store)}`" if is_made_here else target.rebuild_remedy()


def check_index(memory: InspectedMemory, target: RepositoryLinks) -> Iterator[CheckResult]:
    """Whether the index matches the manifest, and was made by this version and its analyser."""
    if memory.fault or memory.foreign:
        return
    if memory.manifest.index and (maker := other_maker(memory.manifest.layout, memory.manifest.analyser)):
        yield CheckResult("index", "note", f"made by {maker}; it is rebuilt when used", target.rebuild_remedy())
    elif memory.index:
        yield CheckResult(
            "index", "warning", f"damaged: {abbreviate(memory.index)}; it is rebuilt when used", target.rebuild_remedy()
        )
    elif not memory.manifest.index and memory.manifest.threads:
        yield CheckResult("index", "warning", "it is missing; it is rebuilt when used", target.rebuild_remedy())
    else:
        yield CheckResult("index", "ok", f"{len(memory.manifest.index):,} files, all matching the manifest")
