"""What a memory holds, read from one state of its store for the checks to judge. Nothing is written or made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from bot.archive import stamp
from bot.kept import Said
from bot.memory import manifest as manifests
from bot.memory.draft import INDEX, PARTS, other_maker, part_path
from bot.memory.families import ANSWERS, DIGESTS
from bot.memory.formats import ForeignFormat
from bot.memory.index import IndexCorrupt
from bot.memory.learned import RANKING, WORDS, read_ranking, read_words
from bot.memory.manifest import Manifest
from bot.memory.records import FOLDER, CorruptRecord, decode, in_order, record_path
from bot.memory.shards import read_lines
from bot.memory.store import Snapshot, StoreError
from bot.memory.whoosh import open_index
from bot.model import Record, Thread, ThreadId

CHUNK = 1_000
"""Records that are read at a time."""

SAMPLE = 300
"""Records that are read where not all are asked for."""

Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was wrong among the ``read`` records. All are paths; ``leftover`` names records of threads that are gone."""

    read: int = 0
    damaged: tuple[str, ...] = ()
    undigested: tuple[str, ...] = ()
    leftover: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """One state of memory. ``fault`` says why ``manifest`` cannot be read ("" where it can), ``foreign`` that this
    version does not read its format; nothing else counts then.

    ``index`` are the files and parts of the index that are not as they should be, where this version made it;
    ``learned`` the same of what was learned. ``promised`` is what is known of the comments that wait, ``records`` how
    many files of records there are.
    """

    manifest: Manifest = field(default_factory=Manifest)
    fault: str = ""
    foreign: ForeignFormat | None = None
    records: int = 0
    index: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    promised: tuple[Said, ...] = ()
    sampled: Sampled = field(default_factory=Sampled)


def look_at(snapshot: Snapshot, chosen: Iterable[str], tick: Tick = lambda _: None) -> Held:
    """Everything that the checks judge; of the records those in ``chosen``. Raises StoreError."""
    paths = in_order(snapshot.paths(FOLDER))
    data = snapshot.read([manifests.PATH]).get(manifests.PATH)
    if data is None:
        return Held(fault="missing", records=len(paths))
    try:
        manifest = manifests.decode(data)
    except ForeignFormat as error:
        return Held(foreign=error, records=len(paths))
    except ValueError as error:
        return Held(fault=f"damaged ({error})", records=len(paths))
    return Held(
        manifest,
        records=len(paths),
        index=_index_faults(snapshot, manifest),
        learned=_learned_faults(snapshot, manifest),
        promised=_promised(snapshot, manifest),
        sampled=sampled(snapshot, chosen, tick),
    )


def chosen_records(snapshot: Snapshot, *, all_of_them: bool) -> list[str]:
    """The records to read: all, or `SAMPLE` of them spread evenly from the first to the last."""
    paths = in_order(snapshot.paths(FOLDER))
    if all_of_them or len(paths) <= SAMPLE:
        return paths
    return [paths[at * (len(paths) - 1) // (SAMPLE - 1)] for at in range(SAMPLE)]


def sampled(snapshot: Snapshot, chosen: Iterable[str], tick: Tick = lambda _: None) -> Sampled:
    """Read these records, each against its digest; a thousand at a time, in two exchanges."""
    paths, found = list(chosen), Sampled()
    for start in range(0, len(paths), CHUNK):
        part = paths[start : start + CHUNK]
        records, damaged = _decoded(snapshot.read(part), part)
        shards = snapshot.read({DIGESTS.path(record.id) for record in records.values()})
        lines = {path: read_lines(data)[0] for path, data in shards.items()}
        wrong = [path for path, record in records.items() if not _agrees(record, lines)]
        gone = [path for path in wrong if not isinstance(records[path], Thread)]
        found = Sampled(
            found.read + len(part),
            (*found.damaged, *damaged),
            (*found.undigested, *(path for path in wrong if path not in gone)),
            (*found.leftover, *gone),
        )
        tick(len(part))
    return found


def _decoded(files: Mapping[str, bytes], paths: Iterable[str]) -> tuple[dict[str, Record], list[str]]:
    records, damaged = {}, []
    for path in paths:
        try:
            record = decode(files.get(path, b""))
            if record_path(record.id) != path:
                raise CorruptRecord("it is that of another thread")
            records[path] = record
        except CorruptRecord:
            damaged.append(path)
    return records, damaged


def _agrees(record: Record, shards: Mapping[str, Mapping[ThreadId, Mapping[str, object]]]) -> bool:
    """Whether the digest was made of this very revision; a thread that is gone has none, as it has no text."""
    line = shards.get(DIGESTS.path(record.id), {}).get(record.id)
    if not isinstance(record, Thread):
        return line is None
    return line is not None and line.get("updated_at") == stamp(record.revised_at)


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


def _learned_faults(snapshot: Snapshot, manifest: Manifest) -> tuple[str, ...]:
    readers: dict[str, Callable[[bytes], object]] = {WORDS: read_words, RANKING: read_ranking}
    files = snapshot.read(path for path in manifest.model if path.startswith("model/"))
    wrong = []
    for path, digest in manifest.model.items():
        try:
            if manifests.bytes_hash(files[path]) != digest:
                raise ValueError("it is not what the manifest says")
            readers.get(path, bytes)(files[path])
        except (KeyError, ValueError):
            wrong.append(path)
    return tuple(sorted(wrong))


def _promised(snapshot: Snapshot, manifest: Manifest) -> tuple[Said, ...]:
    shards = snapshot.read(dict.fromkeys(ANSWERS.path(key) for key in manifest.pending))
    found: dict[ThreadId, Said] = {}
    for path, data in shards.items():
        found |= ANSWERS.read(path, data, [key for key in manifest.pending if ANSWERS.path(key) == path])[0]
    return tuple(found[key] for key in manifest.pending if key in found)
