"""Checks of a memory: its branch, its manifest and its index. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote

from bot.cli.checks.result import CheckResult, RepositoryLinks, age, some, token_remedy
from bot.errors import StoreError
from bot.git.errors import AuthFailed, RemoteUnreachable
from bot.index import open_index
from bot.index.protocol import IndexCorrupt
from bot.memory.branch_store import Tip
from bot.memory.manifest import (
    FORMAT,
    INDEX,
    MANIFEST_PATH,
    MESSAGE_PARTS,
    MESSAGES,
    PARTS,
    ForeignFormat,
    Manifest,
    decode_manifest,
)
from bot.memory.places import RECORD_FOLDER
from bot.memory.store import Snapshot
from bot.memory.stored_index import damaged_files, other_maker, part_path
from bot.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class InspectedMemory:
    """One state of memory. ``fault`` says why ``manifest`` cannot be read ("" where it can), ``foreign`` that this
    version does not read its format; nothing else counts then. ``has_records``: there are files of records.

    ``index`` are the files and parts of the indexes that are not as they should be, where this version made it.
    """

    manifest: Manifest = field(default_factory=Manifest)
    fault: str = ""
    foreign: ForeignFormat | None = None
    has_records: bool = False
    index: tuple[str, ...] = ()


def inspect(snapshot: Snapshot) -> InspectedMemory:
    """Everything that the checks judge. Raises StoreError."""
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
    """The files and parts of both indexes that are not as they should be; nothing of those by other versions."""
    found: tuple[str, ...] = ()
    if not (manifest.index and other_maker(manifest.layout, manifest.analyser)):
        found += _faults(snapshot, INDEX, PARTS, manifest.index)
    messages = manifest.messages
    if messages and messages.files and not other_maker(messages.layout, messages.analyser):
        found += _faults(snapshot, MESSAGES, MESSAGE_PARTS, messages.files)
    return found


def _faults(snapshot: Snapshot, folder: str, parts: str, hashes: Mapping[str, str]) -> tuple[str, ...]:
    foreign = snapshot.foreign_files(folder)
    if foreign or not hashes:
        return tuple(foreign)
    try:
        files = snapshot.checkout(folder)
        if wrong := damaged_files(hashes, files):
            return tuple(f"{folder}/{name}" for name in wrong)
        with closing(open_index(files)) as index:
            known = {part_path(parts, name) for name in index.parts()}
    except StoreError as error:
        return (error.cause,)
    except IndexCorrupt as error:
        return (f"{folder} ({error!s:.100})",)
    return tuple(sorted(known.difference(snapshot.paths(parts))))


def check_branch(
    tip: Tip | StoreError | None, place: RepositoryLinks, settings: Settings, now: datetime, *, token: bool = False
) -> CheckResult:
    """Whether the branch is there, when it was last written, and how far it has grown. ``token``: git had one."""
    if isinstance(tip, RemoteUnreachable):
        says = f"git cannot reach the server: {tip.cause}"
        return CheckResult("branch", "error", says, "run it again later", outside=True)
    if isinstance(tip, AuthFailed):
        return CheckResult("branch", "error", _no_entry(tip, place, token=token), token_remedy(place))
    if isinstance(tip, StoreError):
        return CheckResult(
            "branch", "error", f"{place.branch} cannot be read: {tip.cause}", tip.remedy or place.by_hand()
        )
    if tip is None:
        says = f"there is no branch {place.branch}: nothing is remembered yet"
        return CheckResult("branch", "warning", says, place.by_hand())
    written = f"written {age(now - tip.at)} ago" if tip.at else "written nobody knows when"
    many = f"{tip.growth.commits:,} commit{'' if tip.growth.commits == 1 else 's'}"
    grown = f"{many}, {tip.growth.bytes / 1e6:.1f} MB since its last squash"
    says = f"{place.branch}, {written}; {grown}"
    memory = settings.memory
    if tip.growth.commits > memory.squash_commits or tip.growth.bytes > memory.squash_megabytes * 1_000_000:
        remedy = f"let the workflow's token force a push to {place.branch}: {place.page('settings/rules')}"
        return CheckResult("branch", "note", f"{says}: it grows, as the server forbids to squash it", remedy)
    return CheckResult("branch", "ok", says)


def _no_entry(refusal: AuthFailed, place: RepositoryLinks, *, token: bool) -> str:
    if "could not read Username" in str(refusal):  # git was about to ask for one, as there is no token
        if token:
            return f"git may not read {place.repository} with this token: the server does not know it"
        return f"git may not read {place.repository} without a token: it is private, or does not exist"
    return f"git may not read {place.repository}: {refusal.cause}"


def check_manifest(held: InspectedMemory, place: RepositoryLinks) -> Iterator[CheckResult]:
    """Whether the manifest can be read, and is of a format that this version reads."""
    if held.fault == "missing" and not held.has_records:
        yield CheckResult(
            "manifest", "warning", "there is none, and no record: nothing is remembered yet", _fill(place)
        )
    elif held.fault:
        yield CheckResult("manifest", "error", f"manifest.json is {held.fault}", place.by_hand())
    elif held.foreign:
        yield CheckResult("format", "error", held.foreign.cause, held.foreign.remedy)
    else:
        yield CheckResult("manifest", "ok", f"manifest.json is whole, format {FORMAT}")


def _fill(place: RepositoryLinks) -> str:
    is_made_here = place.store and not place.is_checkout
    return f"`precedent import FILE --store {quote(place.store)}`" if is_made_here else place.by_hand()


def check_index(held: InspectedMemory, place: RepositoryLinks) -> Iterator[CheckResult]:
    """Whether the index is what the manifest says, and was made by this version and its analyser."""
    if held.fault or held.foreign:
        return
    if held.manifest.index and (maker := other_maker(held.manifest.layout, held.manifest.analyser)):
        yield CheckResult("index", "note", f"made by {maker}; it is rebuilt when used", place.by_hand())
    elif held.index:
        yield CheckResult("index", "warning", f"damaged: {some(held.index)}; it is rebuilt when used", place.by_hand())
    elif not held.manifest.index and held.manifest.threads:
        yield CheckResult("index", "warning", "there is none; it is rebuilt when used", place.by_hand())
    else:
        yield CheckResult("index", "ok", f"{len(held.manifest.index):,} files, all as the manifest says")
