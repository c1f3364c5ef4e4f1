"""The manifest: what a branch holds, in which format, up to which moment, and the SHA-256 of every index file.

The format is raised only when an earlier version would misread the new files or lose some of them. New fields are
optional (tests/upgrades checks both).
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from bot.domain.changes import (
    FORGET,
    LARGEST,
    NOBODY,
    AnswerRecord,
    DiscussionProgress,
    HistoryProgress,
    Renewal,
    Request,
)
from bot.domain.thread import ThreadId
from bot.domain.thread_json import clean, parse_key, parse_time, stamp, time_or_none
from bot.errors import StoreError
from bot.memory.merge import MAX_REQUESTS, recent
from bot.memory.records import canonical, sort_key
from bot.memory.shards import parse_each, parse_renewal, parse_request, stored_fields

Item = TypeVar("Item")

FORMATS = {1: "records, digests, answers; and requests, fixes, pages and a layout of the index, where there are any"}
"""Each format that this version reads → what it has. The next write turns an older one into the newest."""

FORMAT = max(FORMATS)
"""What this version writes."""

REMEDY = "raise the version in `uses:`, or where it is installed from a checkout, `git pull` there and install it again"
NO_FORMAT = "set the branch back to an older commit, or delete it and run a rebuild"

_LONGEST = 20


class ForeignFormat(StoreError):
    """This version does not read the format of the memory: it is neither used nor overwritten."""

    exit_code = 2


def checked(number: object) -> int:
    """The format of a manifest. Raises ForeignFormat for one that this version does not read."""
    if isinstance(number, int) and not isinstance(number, bool):
        if number in FORMATS:
            return number
        if number > FORMAT:
            raise ForeignFormat(_cause(number, "a newer Precedent wrote"), REMEDY)
    raise ForeignFormat(_cause(number, "no Precedent writes"), NO_FORMAT)


def whole_number(digits: str) -> int | float:
    """Parses a whole number in JSON. One with too many digits is infinite instead of an error."""
    return int(digits) if len(digits) <= _LONGEST else float("-inf" if digits.startswith("-") else "inf")


def _cause(number: object, by: str) -> str:
    return f"the memory has format {_short(number)}, which {by}; this one reads up to {FORMAT}"


def _short(number: object) -> str:
    text = f"{number!a}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


MANIFEST_PATH = "manifest.json"
INDEX, MESSAGES = "index", "messages"
PARTS, MESSAGE_PARTS = "index-parts", "messages-parts"
"""Next to their index, so that opening it fetches no part; in 16 folders by the first digit of the name."""

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}/[A-Za-z0-9_.-]{1,100}", re.ASCII)

MAX_PENDING = 200
"""Promised comments that may wait: at five a run they take forty runs."""

WRITTEN_WITHIN = timedelta(hours=24)
MAX_WRITTEN = 500
"""Moments that are kept: as many comments as the settings may allow in 24 hours."""

MAX_OWED = 2_000
"""Comments that wait to be renewed, counted once for each thread that changed; the oldest are kept."""

MAX_UNSEEN = 1_000
"""Threads that GitHub does not show; the last ones found are kept."""

MAX_BEHIND = 1_000_000
"""Messages that the threads which the index of messages is behind on may have had, together."""

MAX_UNLINKED = 2_000
"""Changed threads that wait to be compared for clusters. Beyond it all threads are compared again."""

MAX_SOURCES = 16
MAX_STATE = 200
"""Sources of pages, and characters for the state of one."""


_ALWAYS = frozenset(
    ("analyser", "cursor", "threads", "tombstones", "pending", "index", "model", "learned_from", "embedder")
)


@dataclass(frozen=True, slots=True)
class MessageFiles:
    """The index of messages as it is stored: SHA-256 of its ``files`` by name, and which version made them.

    ``behind``: the threads that changed since, each with the most messages that it had meanwhile. Without files nothing
    but these threads is remembered.
    """

    files: dict[str, str] = field(default_factory=dict)
    layout: int = 0
    analyser: str = ""
    behind: dict[ThreadId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LinkProgress:
    """Which threads were compared for clusters: those from ``down_to`` on, but some changed since, those in ``behind``.

    ``down_to`` is None before the first was, and 0 once all were: the newest threads come first.
    """

    down_to: ThreadId | None = None
    behind: tuple[ThreadId, ...] = ()

    def has_passed(self, key: ThreadId) -> bool:
        """Whether the thread was reached, so that a change of it has to be noted."""
        return self.down_to is not None and sort_key(key) >= sort_key(self.down_to)

    def with_changed(self, keys: Iterable[ThreadId]) -> LinkProgress:
        """The progress after these threads changed."""
        behind = tuple(dict.fromkeys([*self.behind, *filter(self.has_passed, keys)]))
        return LinkProgress(self.down_to, behind) if len(behind) <= MAX_UNLINKED else LinkProgress()

    def with_compared(self, keys: Container[ThreadId], down_to: ThreadId | None) -> LinkProgress:
        """The progress after these threads were compared, and all others from ``down_to`` on (None: no further)."""
        further = down_to is not None and not self.has_passed(down_to)
        return LinkProgress(down_to if further else self.down_to, tuple(k for k in self.behind if k not in keys))


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a memory holds, and how far it has read. Fields that a version does not know are dropped.

    - ``cursor``: everything that changed before it is remembered; None in an empty memory.
    - ``threads``, ``tombstones``: how many issues, pull requests and pages there are, and how many are gone.
    - ``pending``: threads with a promised comment that was not seen yet.
    - ``written``: when the new comments of the last 24 hours were promised, including replies, oldest first.
    - ``index``, ``model``: SHA-256 of the files of the index by name, of the learned files by path.
    - ``learned_from``: from how many threads the word vectors and the ranking were learned; 0 if they were not.
    - ``embedder``: fingerprint of the downloaded model whose vectors the index has, empty for none.
    - ``layout``: number of the layout of the index (`bot.index.protocol.LAYOUT`).
    - ``pages``: which state of each source of pages was read, such as a commit.
    - ``recent``: what people asked for lately on any thread.
    - ``reading``: an unfinished reading of the whole history; ``read_whole``: when the last finished one began.
    - ``discussions``: how far discussions were read; None where there are none, or nobody looked yet.
    - ``repo``: the repository (OWNER/NAME) as the last writer knew it.
    - ``owed``: the comments to be renewed because a thread that they show changed, oldest change first.
    - ``unseen``: threads that GitHub does not show now.
    - ``messages``: the index of messages; None where an earlier version wrote, which knew no such index.
    - ``links``: which threads were compared for clusters.
    - ``forgotten``: how many threads an administrator had forgotten; models learned before the last one are not kept.
    - ``told_until``: reporters know of the releases published until then; None while they are not notified.
    """

    analyser: str = ""
    cursor: datetime | None = None
    threads: int = 0
    tombstones: int = 0
    pending: tuple[ThreadId, ...] = ()
    written: tuple[datetime, ...] = ()
    index: dict[str, str] = field(default_factory=dict)
    model: dict[str, str] = field(default_factory=dict)
    learned_from: int = 0
    embedder: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    recent: tuple[Request, ...] = ()
    reading: HistoryProgress | None = None
    read_whole: datetime | None = None
    layout: int = 0
    repo: str = ""
    owed: tuple[Renewal, ...] = ()
    unseen: tuple[ThreadId, ...] = ()
    messages: MessageFiles | None = None
    forgotten: int = 0
    told_until: datetime | None = None
    links: LinkProgress = LinkProgress()
    discussions: DiscussionProgress | None = None

    def promised_within_day(self, now: datetime) -> int:
        """How many new comments were promised within the 24 hours before ``now``, including replies."""
        return sum(moment > now - WRITTEN_WITHIN for moment in self.written)

    def requests_since(self, moment: datetime) -> tuple[Request, ...]:
        """What was asked for on any thread since then, oldest first; costs nothing, as ``recent`` has it.

        ``recent`` covers the hour before the newest request, a week for those that still wait, and at most 200, by
        turns of the accounts.
        """
        return tuple(request for request in self.recent if request.at >= moment)

    def without(self, gone: Collection[ThreadId]) -> Manifest:
        """The manifest without these forgotten threads; only the requests to forget them stay."""
        return replace(
            self,
            pending=tuple(key for key in self.pending if key not in gone),
            recent=tuple(request for request in self.recent if request.id not in gone or request.name == FORGET),
            owed=tuple(one for one in self.owed if one.id not in gone),
            unseen=tuple(key for key in self.unseen if key not in gone),
            links=replace(self.links, behind=tuple(key for key in self.links.behind if key not in gone)),
            forgotten=self.forgotten + len(gone),
        )

    def with_owed(self, new: Iterable[Renewal], done: Iterable[Renewal] = ()) -> Manifest:
        """The manifest with these comments to be renewed, without those ``done``; a later change of the same thread is
        still owed."""
        owed = {one.key: one for one in sorted([*self.owed, *new], key=lambda one: one.at)}
        for one in done:
            if one.key in owed and owed[one.key].at <= one.at:
                del owed[one.key]
        in_time = sorted(owed.values(), key=lambda one: (one.at, sort_key(one.id), one.reply, sort_key(one.about)))
        return replace(self, owed=tuple(in_time[:MAX_OWED]))

    def with_reading(self, reading: HistoryProgress | None, read_whole: datetime | None) -> Manifest:
        """The manifest with the progress of a reading, unless one that began then or later is finished."""
        whole = max(filter(None, (self.read_whole, read_whole)), default=None)
        known = reading.joined(self.reading) if reading else self.reading
        return replace(self, read_whole=whole, reading=known if known and (not whole or known.began > whole) else None)

    def with_discussions(self, read: DiscussionProgress | None) -> Manifest:
        """The manifest with this progress of reading discussions, unless it has a later one."""
        return replace(self, discussions=read.joined(self.discussions)) if read else self

    def with_pages(self, states: Iterable[tuple[str, str]]) -> Manifest:
        """The manifest with the newest states of these sources; an empty state removes its source."""
        pages = {source: state for source, state in {**self.pages, **dict(states)}.items() if state}
        return replace(self, pages=pages)

    def with_told(self, until: datetime | None) -> Manifest:
        """The manifest after reporters were notified of releases until then (None: as before); NOBODY ends that."""
        latest = max(filter(None, (self.told_until, until)), default=None)
        return replace(self, told_until=None if until == NOBODY else latest)

    def lacks(self, known: Manifest) -> bool:
        """Whether this state did not come after ``known``, so that some of what was read until then is missing."""
        if known.cursor and (self.cursor is None or self.cursor < known.cursor):
            return True
        if known.reading is None:
            return False
        began = (self.reading and self.reading.began, self.read_whole)
        return not any(moment and moment >= known.reading.began for moment in began)

    def fit_pages(self, states: Iterable[tuple[str, str]], known: Manifest) -> tuple[tuple[str, str], ...]:
        """The states that hold here too: of each source, only what ``known`` lacked was read."""
        return tuple((source, state) for source, state in states if self.pages.get(source) == known.pages.get(source))

    def fit_linked(self, linked_to: ThreadId | None, known: Manifest) -> ThreadId | None:
        """How far threads were compared that holds here too. If none was compared before, or another run went on,
        changes since ``known`` may not be noted."""
        is_same = self.links.down_to is not None and self.links.down_to == known.links.down_to
        return linked_to if is_same else None

    def fit_discussions(self, read: DiscussionProgress | None, known: Manifest) -> DiscussionProgress | None:
        """The progress that holds here too: it went on from the one that ``known`` has."""
        before, here = known.discussions, self.discussions
        return read if before is None or (here and here.joined(before) == here) else None

    def with_written(self, moments: Iterable[datetime]) -> Manifest:
        """The manifest with these moments at which a comment was promised, within a day before the newest."""
        written = sorted([*self.written, *moments])
        kept = [moment for moment in written if moment > max(written) - WRITTEN_WITHIN]
        return replace(self, written=tuple(kept[-MAX_WRITTEN:]))


def encode_manifest(manifest: Manifest) -> bytes:
    """The canonical bytes of the manifest. Fields that came later than _ALWAYS are left out while they are empty."""
    values = {each.name: _plain(getattr(manifest, each.name)) for each in fields(manifest)}
    kept = {name: value for name, value in values.items() if value or name in _ALWAYS}
    return canonical({"format": FORMAT} | kept)


def _plain(value: Any) -> Any:
    match value:
        case tuple():
            return [_plain(each) for each in value]
        case datetime():
            return stamp(value)
        case Request() | Renewal():
            return stored_fields(value)
        case HistoryProgress():
            return _reading_fields(value)
        case LinkProgress():
            return {} if value == LinkProgress() else {"down_to": value.down_to, "behind": list(value.behind)}
        case DiscussionProgress():
            return _discussions_fields(value)
        case MessageFiles():
            made = {"files": value.files, "layout": value.layout, "analyser": value.analyser}
            return made | {"behind": [[key, value.behind[key]] for key in sorted(value.behind, key=sort_key)]}
    return value


def decode_manifest(data: bytes) -> Manifest:
    """The manifest of these bytes. Raises ValueError for damaged ones, ForeignFormat for a format that this version
    does not read; nothing else is read then."""
    try:
        stored = json.loads(data, parse_int=whole_number)
        checked(stored["format"])
        cursor = stored.get("cursor")
        return Manifest(
            analyser=str(stored.get("analyser", "")),
            layout=_count(stored.get("layout", 0)),
            cursor=parse_time(cursor) if cursor else None,
            threads=_count(stored.get("threads", 0)),
            tombstones=_count(stored.get("tombstones", 0)),
            pending=tuple(parse_key(key) for key in stored.get("pending", ()))[:MAX_PENDING],
            written=tuple(sorted(_readable(_listed(stored, "written")[-MAX_WRITTEN:], parse_time))),
            index={str(name): str(digest) for name, digest in stored.get("index", {}).items()},
            model={str(name): str(digest) for name, digest in stored.get("model", {}).items()},
            learned_from=_count(stored.get("learned_from", 0)),
            embedder=clean(stored.get("embedder")),
            pages=_pages(stored.get("pages")),
            recent=recent(_readable(_listed(stored, "recent")[: 2 * MAX_REQUESTS], _request)),
            reading=_reading(stored.get("reading")),
            read_whole=time_or_none(stored.get("read_whole")),
            repo=_repo(stored.get("repo")),
            forgotten=_count(stored.get("forgotten", 0)),
            discussions=_discussions(stored.get("discussions")),
            owed=tuple(_readable(_listed(stored, "owed")[:MAX_OWED], parse_renewal)),
            unseen=tuple(parse_key(key) for key in stored.get("unseen", ()))[:MAX_UNSEEN],
            messages=_messages(stored.get("messages")),
            told_until=time_or_none(stored.get("told_until")),
            links=_link_progress(stored.get("links")),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}"[:120]) from error


def _repo(value: object) -> str:
    return value if isinstance(value, str) and _REPO.fullmatch(value) else ""


def _pages(value: object) -> dict[str, str]:
    """The states of sources, as far as they can be read: a lost one is read again, without losing the cursor."""
    if not isinstance(value, dict):
        return {}
    states = [(clean(source)[:MAX_STATE], clean(state)[:MAX_STATE]) for source, state in value.items()]
    return {source: state for source, state in states[:MAX_SOURCES] if source and state}


def _listed(stored: Mapping[str, Any], name: str) -> list[Any]:
    value = stored.get(name)
    return value if isinstance(value, list) else []


def _readable(listed: Iterable[Any], read: Callable[[Any], Item]) -> list[Item]:
    return parse_each(listed, read)[0]


def _request(line: Any) -> Request:
    return parse_request(line, parse_key(line["id"]))


def _reading_fields(reading: HistoryProgress) -> dict[str, object]:
    """``seen`` is a bit for each number from 0, lowest bit first, in base64."""
    kept = [number for number in reading.seen if number < LARGEST]
    bits = bytearray(max(kept, default=0) // 8 + 1)
    for number in kept:
        bits[number // 8] |= 1 << number % 8
    seen = base64.b64encode(bits).decode()
    return {"began": stamp(reading.began), "upto": stamp(reading.upto), "seen": seen}


def _reading(value: Any) -> HistoryProgress | None:
    """The unfinished reading; None if it cannot be read: then it starts again."""
    try:
        bits = base64.b64decode(value["seen"], validate=True)[: LARGEST // 8]
        seen = frozenset(8 * place + bit for place, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1)
        return HistoryProgress(parse_time(value["began"]), time_or_none(value.get("upto")), seen)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _discussions_fields(read: DiscussionProgress) -> dict[str, object]:
    return {"began": stamp(read.began), "upto": stamp(read.upto), "after": read.after, "done": read.is_done}


def _discussions(value: Any) -> DiscussionProgress | None:
    """How far discussions were read; None if that cannot be read: then they are read again."""
    try:
        after = clean(value["after"])
        if len(after) > MAX_STATE:
            return None
        return DiscussionProgress(
            parse_time(value["began"]), time_or_none(value.get("upto")), after, value["done"] is True
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _messages(value: Any) -> MessageFiles | None:
    """The index of messages; None if this cannot be read: then it is built again."""
    try:
        behind = {parse_key(key): _count(count) for key, count in value["behind"]}
        files = {str(name): str(digest) for name, digest in value["files"].items()}
        if sum(behind.values()) > MAX_BEHIND:
            return None
        return MessageFiles(files, _count(value["layout"]), str(value["analyser"]), behind)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _link_progress(value: Any) -> LinkProgress:
    """Which threads were compared; none if this cannot be read: then all are compared again."""
    try:
        down_to = value["down_to"]
        behind = tuple(map(parse_key, _listed(value, "behind")))
        known = LinkProgress(None if down_to is None else 0 if down_to == 0 else parse_key(down_to), behind)
        return known if len(behind) <= MAX_UNLINKED else LinkProgress()
    except (KeyError, TypeError, ValueError, OverflowError):
        return LinkProgress()


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("no such count")
    return value


def next_pending(
    before: Iterable[ThreadId], promised: Iterable[ThreadId], settled: Iterable[ThreadId]
) -> tuple[ThreadId, ...]:
    """The promised comments that were not seen yet, oldest promise first. `within_bounds` limits them."""
    done = set(settled)
    kept = [key for key in before if key not in done]
    return tuple(dict.fromkeys([*kept, *promised]))


def within_bounds(
    pending: Iterable[ThreadId], first: Container[ThreadId], authors: Mapping[ThreadId, str]
) -> tuple[ThreadId, ...]:
    """MAX_PENDING of these promises, in their order: those in ``first``, then the oldest of each account in turn, so
    that nobody who opens many issues pushes out the promises made to others."""
    turns: Counter[str] = Counter()
    places = []
    for place, key in enumerate(pending):
        author = authors.get(key, "").casefold()
        places.append((key not in first, turns[author], place, key))
        turns[author] += key not in first
    kept = sorted(places, key=lambda one: one[:3])[:MAX_PENDING]
    return tuple(key for *_, key in sorted(kept, key=lambda one: one[2]))


def promised_comments(said: Iterable[AnswerRecord], before: Mapping[ThreadId, AnswerRecord]) -> list[datetime]:
    """When the new comments among ``said`` were promised, each once."""
    new = (one for one in said if _is_promise(one) and not ((old := before.get(one.id)) and _is_promise(old)))
    return [one.at for one in new]


def promised_replies(requests: Iterable[Request], before: Iterable[Request]) -> list[datetime]:
    """When the replies to these requests were promised, each once."""
    known = {(request.id, request.comment_id) for request in before if request.trying_since}
    return [one.trying_since for one in requests if one.trying_since and (one.id, one.comment_id) not in known]


def _is_promise(said: AnswerRecord) -> bool:
    return said.state == "pending" and bool(said.text_hash) and said.comment_id is None
