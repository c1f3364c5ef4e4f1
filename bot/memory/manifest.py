"""The manifest: what a branch contains, in which format, up to which moment, and the SHA-256 of every index file.

Only one format is read. It is raised only when an earlier version would misread the new files or lose some of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated

from bot.domain.bounds import Count, Lenient, MaxItems, Name, Past, Pattern
from bot.domain.card import id_order
from bot.domain.changes import FORGET, NOTICES_OFF, DiscussionProgress, HistoryProgress, Request, is_within
from bot.domain.post import Post, Renewal
from bot.domain.thread import ThreadId
from bot.domain.turns import in_turns
from bot.errors import StoreError
from bot.memory.bounds import load_json
from bot.memory.codec import DAMAGE, decode, encode
from bot.memory.merge import MAX_REQUESTS, recent
from bot.memory.records import canonical

FORMAT = 2
"""What this version writes, and all that it reads."""

UPGRADE_HINT = (
    "raise the version in `uses:`, or where it is installed from a checkout, `git pull` there and install it again"
)
REBUILD_HINT = "delete the branch or the folder, and run a rebuild"

_MAX_NUMBER_CHARS = 20


class ForeignFormat(StoreError):
    """This version cannot read the memory's format, so the memory is neither used nor overwritten."""

    exit_code = 2


def check_format(number: object) -> None:
    """Raises ForeignFormat for the format of a manifest that this version does not read."""
    if type(number) is int and number > FORMAT:
        raise ForeignFormat(_cause(number, "a newer Precedent wrote"), UPGRADE_HINT)
    if type(number) is not int or number < FORMAT:
        raise ForeignFormat(_cause(number, "this Precedent cannot read"), REBUILD_HINT)


def parse_bounded_int(digits: str) -> int | float:
    """Parse a whole number in JSON. One with too many digits becomes infinite instead of an error."""
    return int(digits) if len(digits) <= _MAX_NUMBER_CHARS else float("-inf" if digits.startswith("-") else "inf")


def _cause(number: object, by: str) -> str:
    return f"the memory has format {_short(number)}, which {by}; this one reads only {FORMAT}"


def _short(number: object) -> str:
    text = f"{number!a}"
    return text if len(text) <= _MAX_NUMBER_CHARS else f"{text[: _MAX_NUMBER_CHARS - 3]}..."


MANIFEST_PATH = "manifest.json"
SETTINGS_PATH = "settings.yml"
"""The settings file of the last run that could read it; absent if the repository has none."""

INDEX_FOLDER, MESSAGE_FOLDER = "index", "messages"

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}/[A-Za-z0-9_.-]{1,100}", re.ASCII)

MAX_PENDING = 200
"""Maximum number of promised comments that wait: at five a run they take forty runs."""

WRITTEN_WINDOW = timedelta(hours=24)
MAX_WRITTEN = 500
"""Maximum number of moments kept: as many comments as the settings allow in 24 hours."""

MAX_RENEWALS_DUE = 2_000
"""Maximum number of comments that wait to be renewed, counted once for each changed thread; the oldest are kept."""

MAX_HIDDEN_BY_GITHUB = 1_000
"""Maximum number of threads listed as not shown by GitHub; those found last are kept."""

MAX_BEHIND = 10_000
"""Maximum number of threads that the index of messages is behind on."""

MAX_REMEMBERED = 1_000
"""Maximum number of forgotten threads that are noted as remembered again."""

MAX_SOURCES = 16
"""Maximum number of sources of pages."""


_Number = Annotated[int, Count()]
_Moment = Annotated[datetime | None, Past()]


@dataclass(frozen=True, slots=True)
class MessageFiles:
    """The index of messages as stored: SHA-256 of its ``files`` by name, and which version made them.

    ``behind``: the threads that changed since, in order. Without files, only these threads are recorded.
    """

    files: dict[str, str] = field(default_factory=dict)
    layout: _Number = 0
    analyser: str = ""
    behind: Annotated[tuple[ThreadId, ...], MaxItems(MAX_BEHIND)] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a memory contains, and how far it has read. Fields unknown to a version are dropped; one that is lenient
    costs only that something is read or compared again.

    - ``cursor``: everything that changed before it is remembered; None in an empty memory.
    - ``threads``: the number of issues, pull requests and pages, without those that are gone.
    - ``pending``: threads with a promised comment that has not been seen yet.
    - ``written``: when the new comments of the last 24 hours were promised, including replies, oldest first.
    - ``index``, ``model``: SHA-256 of the files of the index by name, of the learned files by path.
    - ``learned_from``: the number of threads from which the ranking was learned; 0 for none.
    - ``embedder``: fingerprint of the text model whose vectors are in the index, empty for none.
    - ``layout``: number of the layout of the index (`bot.index.protocol.LAYOUT_VERSION`).
    - ``pages``: the state of each source of pages that was read, such as a commit.
    - ``recent``: what people asked for lately on any thread.
    - ``reading``: an unfinished reading of the whole history; ``read_whole``: when the last finished one began.
    - ``discussions``: how far discussions were read; None if there are none, or none were looked for yet.
    - ``repo``: the repository (OWNER/NAME) as the last writer knew it.
    - ``renewals_due``: the comments to renew because a thread that they show changed, oldest change first.
    - ``hidden_by_github``: threads that GitHub does not show now.
    - ``messages``: the index of messages; None if it could not be read or used.
    - ``forgotten``: how many threads an administrator has had forgotten; models from before the last one are discarded.
    - ``remembered``: threads to be remembered again, and since when; forgetting them before has no effect.
    - ``notified_until``: reporters were notified of the releases published until then; None while they are not.
    - ``notifying_from``: if it is not before ``notified_until``, reporters still wait to be notified of the releases
      after it.
    """

    analyser: str = ""
    cursor: _Moment = None
    threads: _Number = 0
    pending: Annotated[tuple[ThreadId, ...], MaxItems(MAX_PENDING)] = ()
    written: Annotated[tuple[datetime, ...], MaxItems(MAX_WRITTEN), Lenient()] = ()
    index: dict[str, str] = field(default_factory=dict)
    model: dict[str, str] = field(default_factory=dict)
    learned_from: _Number = 0
    embedder: str = ""
    pages: Annotated[dict[Name, Name], Lenient()] = field(default_factory=dict)
    recent: Annotated[tuple[Request, ...], MaxItems(2 * MAX_REQUESTS), Lenient()] = ()
    reading: Annotated[HistoryProgress | None, Lenient()] = None
    read_whole: _Moment = None
    layout: _Number = 0
    repo: Annotated[str, Pattern(_REPO), Lenient()] = ""
    renewals_due: Annotated[tuple[Renewal, ...], MaxItems(MAX_RENEWALS_DUE), Lenient()] = ()
    hidden_by_github: Annotated[tuple[ThreadId, ...], MaxItems(MAX_HIDDEN_BY_GITHUB)] = ()
    messages: Annotated[MessageFiles | None, Lenient()] = None
    forgotten: _Number = 0
    notified_until: _Moment = None
    notifying_from: _Moment = None
    remembered: Annotated[tuple[tuple[ThreadId, datetime], ...], MaxItems(MAX_REMEMBERED), Lenient()] = ()
    discussions: Annotated[DiscussionProgress | None, Lenient()] = None

    def promised_within_day(self, now: datetime) -> int:
        """How many new comments were promised within the 24 hours before ``now``, including replies."""
        return sum(is_within(moment, WRITTEN_WINDOW, now) for moment in self.written)

    def requests_since(self, moment: datetime) -> tuple[Request, ...]:
        """The requests on any thread since then, oldest first; read from ``recent``, so no file is opened.

        ``recent`` covers the hour before the newest request, a week for those that still wait, and at most 200, with
        the accounts taking turns.
        """
        return tuple(request for request in self.recent if request.at >= moment)

    def without(self, gone: Collection[ThreadId]) -> Manifest:
        """The manifest without these forgotten threads; only the requests to forget them remain."""
        return replace(
            self,
            pending=tuple(key for key in self.pending if key not in gone),
            recent=tuple(request for request in self.recent if request.id not in gone or request.name == FORGET),
            renewals_due=tuple(renewal for renewal in self.renewals_due if renewal.id not in gone),
            hidden_by_github=tuple(key for key in self.hidden_by_github if key not in gone),
            forgotten=self.forgotten + len(gone),
        )

    def with_renewals(self, new: Iterable[Renewal], done: Iterable[Renewal] = ()) -> Manifest:
        """The manifest with these comments to renew, without those ``done``; a later change to the same thread still
        needs a renewal."""
        owed = {renewal.key: renewal for renewal in sorted([*self.renewals_due, *new], key=lambda renewal: renewal.at)}
        for renewal in done:
            if renewal.key in owed and owed[renewal.key].at <= renewal.at:
                del owed[renewal.key]
        ordered = sorted(
            owed.values(),
            key=lambda renewal: (renewal.at, id_order(renewal.id), renewal.slot, id_order(renewal.about)),
        )
        return replace(self, renewals_due=tuple(ordered[:MAX_RENEWALS_DUE]))

    def with_reading(self, reading: HistoryProgress | None, read_whole: datetime | None) -> Manifest:
        """The manifest with this reading progress, unless a reading that began then or later is finished."""
        last_complete = max(filter(None, (self.read_whole, read_whole)), default=None)
        merged = reading.merge(self.reading) if reading else self.reading
        return replace(
            self,
            read_whole=last_complete,
            reading=merged if merged and (not last_complete or merged.began > last_complete) else None,
        )

    def with_discussions(self, read: DiscussionProgress | None) -> Manifest:
        """The manifest with this progress of reading discussions, unless it already has a later one."""
        return replace(self, discussions=read.merge(self.discussions)) if read else self

    def with_pages(self, states: Iterable[tuple[str, str]]) -> Manifest:
        """The manifest with the newest states of these sources; an empty state removes its source."""
        known = [(source, state) for source, state in {**self.pages, **dict(states)}.items() if source and state]
        return replace(self, pages=dict(known[:MAX_SOURCES]))

    def with_notified(self, until: datetime | None, since: datetime | None = None) -> Manifest:
        """The manifest with reporters notified of releases until then (None: unchanged); NOTICES_OFF ends notices.
        ``since``: those of later releases still wait."""
        latest = max(filter(None, (self.notified_until, until)), default=None)
        first = max(filter(None, (self.notifying_from, since)), default=None)
        return replace(self, notified_until=None if until == NOTICES_OFF else latest, notifying_from=first)

    def releases_told_from(self, max_age: timedelta, now: datetime) -> datetime:
        """The time from which on releases are told: none before the last one that was told, nor any older than
        ``max_age`` now, unless reporters wait for it since it was younger."""
        until = self.notified_until or now
        return (
            self.notifying_from if self.notifying_from and self.notifying_from >= until else max(until, now - max_age)
        )

    def with_remembered(self, new: Iterable[tuple[ThreadId, datetime]]) -> Manifest:
        """The manifest with these threads remembered again; of two times for one thread, the later one."""
        latest = dict(sorted([*self.remembered, *new], key=lambda entry: entry[1]))
        ordered = sorted(latest.items(), key=lambda entry: (entry[1], id_order(entry[0])))
        return replace(self, remembered=tuple(ordered[-MAX_REMEMBERED:]))

    def is_behind(self, earlier: Manifest) -> bool:
        """Whether this state did not follow ``earlier``, so that some of what was read until then is missing."""
        if earlier.cursor and (self.cursor is None or self.cursor < earlier.cursor):
            return True
        if earlier.reading is None:
            return False
        began = (self.reading and self.reading.began, self.read_whole)
        return not any(moment and moment >= earlier.reading.began for moment in began)

    def valid_pages(self, states: Iterable[tuple[str, str]], earlier: Manifest) -> tuple[tuple[str, str], ...]:
        """The states that are valid here too: only what ``earlier`` lacked of each source was read."""
        return tuple((source, state) for source, state in states if self.pages.get(source) == earlier.pages.get(source))

    def valid_discussions(self, read: DiscussionProgress | None, earlier: Manifest) -> DiscussionProgress | None:
        """The progress if it is valid here too: if it continued from that in ``earlier``."""
        before, current = earlier.discussions, self.discussions
        return read if before is None or (current and current.merge(before) == current) else None

    def with_written(self, moments: Iterable[datetime]) -> Manifest:
        """The manifest with these moments at which comments were promised, and those less than a day from the newest of
        them; a wrong clock may have stored later ones."""
        new = sorted(moments)
        kept = [moment for moment in self.written if not new or abs(new[-1] - moment) < WRITTEN_WINDOW]
        return replace(self, written=tuple(sorted([*kept, *new])[-MAX_WRITTEN:]))


def encode_manifest(manifest: Manifest) -> bytes:
    """The canonical bytes of the manifest."""
    return canonical({"format": FORMAT} | encode(manifest))


def decode_manifest(data: bytes) -> Manifest:
    """The manifest in these bytes. Raises ValueError if they are damaged, and ForeignFormat, before reading anything
    else, for a format that this version does not read."""
    try:
        stored = load_json(data, parse_bounded_int)
        check_format(stored["format"])
        manifest = decode(Manifest, stored).with_pages(())
    except DAMAGE as error:
        raise ValueError(f"{type(error).__name__}: {error}"[:120]) from error
    return replace(manifest, written=tuple(sorted(manifest.written)), recent=recent(manifest.recent))


def next_pending(
    pending: Iterable[ThreadId], promised: Iterable[ThreadId], settled: Iterable[ThreadId]
) -> tuple[ThreadId, ...]:
    """The promised comments not seen yet, oldest promise first. `limit_pending` limits them."""
    done = set(settled)
    kept = [key for key in pending if key not in done]
    return tuple(dict.fromkeys([*kept, *promised]))


def limit_pending(
    pending: Iterable[ThreadId], first: Container[ThreadId], authors: Mapping[ThreadId, str]
) -> tuple[ThreadId, ...]:
    """At most MAX_PENDING of these promises, in their order: those in ``first``, then the oldest of each account in
    turn, so that an account that opens many issues does not crowd out the others."""
    order = list(pending)
    others = in_turns((key for key in order if key not in first), lambda key: authors.get(key, "").casefold())
    kept = {*[*(key for key in order if key in first), *others][:MAX_PENDING]}
    return tuple(key for key in order if key in kept)


def promised_posts(merged: Iterable[tuple[Post, Post | None]]) -> list[datetime]:
    """When the new comments and notices among these posts were promised, each after its state before; replies count
    with their requests."""
    counted = ((post, before) for post, before in merged if not post.key.is_reply)
    return [post.at for post, before in counted if post.is_promised and not (before and before.is_promised)]


def promised_replies(requests: Iterable[Request], before: Iterable[Request]) -> list[datetime]:
    """When the replies to these requests were promised, each once."""
    known = {(request.id, request.comment_id) for request in before if request.trying_since}
    return [each.trying_since for each in requests if each.trying_since and (each.id, each.comment_id) not in known]
