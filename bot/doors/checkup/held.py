"""What a memory holds, read from one state of its store for the checks to judge. Nothing is written or made anew."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

from bot.memory import manifest as manifests
from bot.memory.draft import other_maker, part_path
from bot.memory.formats import ForeignFormat
from bot.memory.index import IndexCorrupt
from bot.memory.manifest import INDEX, PARTS, Manifest
from bot.memory.records import FOLDER
from bot.memory.store import Snapshot, StoreError
from bot.memory.whoosh import open_index


@dataclass(frozen=True, slots=True)
class Held:
    """One state of memory. ``fault`` says why ``manifest`` cannot be read ("" where it can), ``foreign`` that this
    version does not read its format; nothing else counts then. ``has_records``: there are files of records.

    ``index`` are the files and parts of the index that are not as they should be, where this version made it.
    """

    manifest: Manifest = field(default_factory=Manifest)
    fault: str = ""
    foreign: ForeignFormat | None = None
    has_records: bool = False
    index: tuple[str, ...] = ()


def look_at(snapshot: Snapshot) -> Held:
    """Everything that the checks judge. Raises StoreError."""
    data = snapshot.read([manifests.PATH]).get(manifests.PATH)
    if data is None:
        return Held(fault="missing", has_records=any(snapshot.paths(FOLDER)))
    try:
        manifest = manifests.decode(data)
    except ForeignFormat as error:
        return Held(foreign=error)
    except ValueError as error:
        return Held(fault=f"damaged ({error})")
    return Held(manifest, index=_index_faults(snapshot, manifest))


def _index_faults(snapshot: Snapshot, manifest: Manifest) -> tuple[str, ...]:
    """The files and parts of the index that are not as they should be; of one by another version nothing is known."""
    if manifest.index and other_maker(manifest):
        return ()
    strangers = snapshot.strangers(INDEX)
    if strangers or not manifest.index:
        return tuple(strangers)
    try:
        folder = snapshot.checkout(INDEX)
        if wrong := manifests.damaged_files(manifest, folder):
            return tuple(f"{INDEX}/{name}" for name in wrong)
        with closing(open_index(folder)) as index:
            parts = {part_path(name) for name in index.parts()}
    except StoreError as error:
        return (error.cause,)
    except IndexCorrupt as error:
        return (f"{INDEX} ({error!s:.100})",)
    return tuple(sorted(parts.difference(snapshot.paths(PARTS))))
