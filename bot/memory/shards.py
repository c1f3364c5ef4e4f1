"""What is kept in shards: digests, what was said and stands, wishes, where fixes are; and how each is written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from bot.domain.changes import AnswerRecord, FixInfo, Renewal, Request, StandingComment, ThreadComments
from bot.domain.digest import Digest
from bot.domain.thread import ThreadId
from bot.domain.thread_json import (
    MAX_NAME,
    clean,
    parse_key,
    parse_number,
    parse_time,
    stamp,
    time_or_none,
    without_defaults,
)
from bot.memory.records import folder_of, sort_key

Value = TypeVar("Value")
Line = Mapping[str, Any]
"""A line of a shard as JSON; its ``id`` is a thread's."""

_NAME = re.compile(r"(\d{4,}|x[0-9a-f]{2})\.jsonl", re.ASCII)


@dataclass(frozen=True)
class ShardSchema(Generic[Value]):
    """The shards in one folder. ``fields`` gives what is kept of a value, as JSON, None for nothing worth a line."""

    folder: str
    fields: Callable[[Value], dict[str, object] | None]

    def path(self, key: ThreadId) -> str:
        """The shard of a thread, for example ``digests/0042.jsonl``."""
        return f"{self.folder}/{folder_of(key)}.jsonl"

    def line(self, value: Value) -> str | None:
        fields = self.fields(value)
        return None if fields is None else json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    def among(self, paths: Iterable[str]) -> list[str]:
        """Those of these paths that are shards of this family."""
        start = f"{self.folder}/"
        return [path for path in paths if path.startswith(start) and _NAME.fullmatch(path, len(start))]

    def edits(self, shards: Mapping[str, bytes], values: Mapping[ThreadId, Value | None]) -> dict[str, bytes | None]:
        """The shards that change when these values are put in (None takes one out); an empty shard goes."""
        lines = ((key, None if value is None else self.line(value)) for key, value in values.items())
        return edit_shards(shards, lines, self.path)


@dataclass(frozen=True)
class StoredShard(ShardSchema[Value]):
    """A family that is read again.

    ``parse`` gives the value of a line and whether that is all of it; it raises KeyError, TypeError, ValueError or
    OverflowError where nothing of it can be read. ``loss`` says what a maintainer loses then.
    """

    parse: Callable[[Line], tuple[Value, bool]]
    loss: str

    def read(
        self, path: str, data: bytes, wanted: Iterable[ThreadId] | None = None
    ) -> tuple[dict[ThreadId, Value], bool]:
        """The values of a shard by thread (None: of all), and whether nothing was damaged."""
        found: dict[ThreadId, Value] = {}
        lines, is_whole = read_lines(data)
        for key in lines if wanted is None else wanted:
            if key in lines and self.path(key) == path:
                try:
                    found[key], is_all = self.parse(lines[key])
                except (KeyError, TypeError, ValueError, OverflowError):
                    is_all = False
                is_whole = is_whole and is_all
        return found, is_whole


def read_lines(data: bytes) -> tuple[dict[ThreadId, dict[str, Any]], bool]:
    """The lines of a shard by thread, and whether each could be read."""
    found = list(_lines(data))
    return {key: line for key, _, line in found if key is not None}, all(key is not None for key, _, _ in found)


def read_texts(data: bytes) -> list[tuple[ThreadId, str]]:
    """The lines of a shard as they are written, each after its thread, those that can be read."""
    return [(key, text) for key, text, _ in _lines(data) if key is not None]


def is_damaged(data: bytes) -> bool:
    """Whether a line of this shard cannot be read."""
    return not read_lines(data)[1]


def _lines(data: bytes) -> Iterator[tuple[ThreadId | None, str, dict[str, Any]]]:
    for text in data.decode("utf-8", "replace").split("\n"):  # not at the other ends of lines that a text may hold
        if text:
            try:
                line = json.loads(text)
                yield parse_key(line["id"]), text, line
            except (ValueError, TypeError, KeyError, RecursionError):
                yield None, text, {}


def write_shard(lines: Mapping[ThreadId, str]) -> bytes:
    """The bytes of a shard: one line a thread, in the order of their ids."""
    return "".join(f"{lines[key]}\n" for key in sorted(lines, key=sort_key)).encode()


def edit_shards(
    shards: Mapping[str, bytes],
    lines: Iterable[tuple[ThreadId, str | None]],
    path_of: Callable[[ThreadId], str],
) -> dict[str, bytes | None]:
    """The shards that change when these lines are put in (None takes a line out); an empty shard goes."""
    opened: dict[str, dict[ThreadId, str]] = {}
    for key, line in lines:
        path = path_of(key)
        if path not in opened:
            opened[path] = {old: text for old, text, _ in _lines(shards.get(path, b"")) if old is not None}
        if line is None:
            opened[path].pop(key, None)
        else:
            opened[path][key] = line
    edits = {path: write_shard(content) or None for path, content in opened.items()}
    return {path: data for path, data in edits.items() if data != shards.get(path)}


# What is kept in shards: digests, what was said and stands, wishes, where fixes are; and how each is written.


ANSWER_STATES = frozenset({"pending", "said", "silent", "withdrawn", "removed"})
MAX_FILES = 5
MAX_ABOUT = 20
MAX_PATH = 1_024
_REQUEST_NAME = re.compile(r"[a-z]{1,20}", re.ASCII)  # any word: a later version may know more commands than this one


def digest_fields(digest: Digest) -> dict[str, object]:
    """A digest as JSON, without the fields that are empty."""
    return _plain_fields(digest)


def answer_fields(said: AnswerRecord) -> dict[str, object]:
    """What was said on a thread, as JSON."""
    return without_defaults(_plain_fields(said))


def parse_answer(line: Line) -> AnswerRecord:
    """The inverse of `said_fields`; anything else raises KeyError, TypeError, ValueError or OverflowError."""
    return AnswerRecord(
        id=parse_key(line["id"]),
        state=_one_of(ANSWER_STATES, line["state"]),
        at=parse_time(line["at"]),
        reason=clean(line.get("reason")),
        text_hash=clean(line.get("text_hash")),
        comment_id=parse_number(line.get("comment_id")),
        matches=tuple((parse_key(key), float(similarity)) for key, similarity in line.get("matches", ())),
        question=clean(line.get("question")),
        trying_since=time_or_none(line.get("trying_since")),
        ups=parse_number(line.get("ups")) or 0,
        downs=parse_number(line.get("downs")) or 0,
    )


def request_fields(wish: Request) -> dict[str, object]:
    """What somebody asked for, as JSON."""
    return without_defaults(_plain_fields(wish))


def parse_request(line: Line, thread: ThreadId) -> Request:
    """The inverse of `wish_fields` for a wish on this thread; else KeyError, TypeError, ValueError or OverflowError."""
    comment_id, name = parse_number(line["comment_id"]), line["name"]
    if comment_id is None or not _REQUEST_NAME.fullmatch(name):
        raise ValueError("not a wish")
    return Request(
        id=thread,
        comment_id=comment_id,
        name=name,
        by=clean(line.get("by"))[:MAX_NAME],
        at=parse_time(line["at"]),
        about=tuple(map(parse_key, _listed(line.get("about", ()), MAX_ABOUT))),
        state=_one_of(REQUEST_STATES, line["state"]),
        reply_id=parse_number(line.get("reply_id")),
        trying_since=time_or_none(line.get("trying_since")),
    )


def requests_fields(wishes: Sequence[Request]) -> dict[str, object] | None:
    """All that was asked for on one thread, as JSON: the thread's id once, then the wishes without it."""
    if not wishes:
        return None
    told = [{name: value for name, value in request_fields(wish).items() if name != "id"} for wish in wishes]
    return {"id": wishes[0].id, "wishes": told}


def parse_requests(line: Line) -> tuple[tuple[Request, ...], bool]:
    """The inverse of `wishes_fields`, within bounds, and whether each wish could be read."""
    thread, found, is_whole = parse_key(line["id"]), {}, True
    for one in _listed(line["wishes"]):
        try:
            wish = parse_request(one, thread)
            found[wish.comment_id] = wish
        except (KeyError, TypeError, ValueError, OverflowError):
            is_whole = False
    return bounded(found.values(), MAX_REQUESTS), is_whole


def fix_fields(fix: FixInfo) -> dict[str, object]:
    """Where the fix of a thread is, as JSON."""
    return without_defaults(_plain_fields(fix))


def parse_fix(line: Line) -> FixInfo:
    """The inverse of `fix_fields`; anything else raises KeyError, TypeError, ValueError or OverflowError."""
    return FixInfo(
        id=parse_key(line["id"]),
        ref=clean(line.get("ref"))[:MAX_NAME],
        looked_at=parse_time(line["looked_at"]),
        is_pull=line.get("is_pull") is True,
        commit=clean(line.get("commit"))[:MAX_NAME] or None,
        merged_at=time_or_none(line.get("merged_at")),
        files=tuple(clean(path)[:MAX_PATH] for path in _listed(line.get("files", ()), MAX_FILES)),
        release=clean(line.get("release"))[:MAX_NAME] or None,
        released_at=time_or_none(line.get("released_at")),
        unreleased=line.get("unreleased") is True,
        refuted=line.get("refuted") is True,
    )


def thread_comments_fields(linked: ThreadComments) -> dict[str, object] | None:
    """The comments of ours that stand on a thread or show a thread, as JSON: its id once; None where nothing does."""
    if not (linked.comments or linked.shown_in):
        return None
    told = (without_defaults(_plain_fields(one)) for one in linked.comments)
    comments = [{name: value for name, value in one.items() if name != "id"} for one in told]
    return without_defaults(
        {"id": linked.id, "comments": comments, "shown_in": [list(comment_key) for comment_key in linked.shown_in]}
    )


def parse_thread_comments(line: Line) -> tuple[ThreadComments, bool]:
    """The inverse of `thread_comments_fields`, and whether each comment could be read."""
    thread, found, is_whole = parse_key(line["id"]), {}, True
    for one in _listed(line.get("comments", ())):
        try:
            standing = _parse_standing(one, thread)
            found[standing.reply] = standing
        except (KeyError, TypeError, ValueError, OverflowError):
            is_whole = False
    comment_keys = {
        (parse_key(key), parse_number(reply) or 0): None for key, reply in _listed(line.get("shown_in", ()))
    }
    return ThreadComments(thread, tuple(found.values()), tuple(comment_keys)), is_whole


def _parse_standing(line: Line, thread: ThreadId) -> StandingComment:
    return StandingComment(
        id=thread,
        at=parse_time(line["at"]),
        reply=parse_number(line.get("reply")) or 0,
        content=clean(line.get("content"))[:MAX_NAME],
        shows=tuple(map(parse_key, _listed(line["shows"]))),
        quotes=tuple(clean(mark)[:MAX_NAME] for mark in _listed(line.get("quotes", ()))),
        trying_since=time_or_none(line.get("trying_since")),
    )


def renewal_fields(owed: Renewal) -> dict[str, object]:
    """What is owed to a comment, as JSON."""
    return without_defaults(_plain_fields(owed))


def parse_renewal(line: Line) -> Renewal:
    """The inverse of `renewal_fields`; anything else raises KeyError, TypeError, ValueError or OverflowError."""
    about = parse_key(line["about"])
    return Renewal(parse_key(line["id"]), parse_number(line.get("reply")) or 0, about, parse_time(line["at"]))


DIGESTS = ShardSchema("digests", digest_fields)
ANSWERS = StoredShard(
    "answers", answer_fields, lambda line: (parse_answer(line), True), "what was said on some threads is not known"
)
REQUESTS = StoredShard("wishes", requests_fields, parse_requests, "some of what people asked for is not known")
FIXES = StoredShard(
    "fixes", fix_fields, lambda line: (parse_fix(line), True), "where some fixes are is looked up again"
)
COMMENTS = StoredShard(
    "comments",
    thread_comments_fields,
    parse_thread_comments,
    "which comments show some threads is not known until the next rebuild",
)
SCHEMAS: tuple[ShardSchema[Any], ...] = (DIGESTS, ANSWERS, REQUESTS, FIXES, COMMENTS)


def _one_of(states: frozenset[str], state: Any) -> str:
    if state not in states:
        raise ValueError(f"no such state: {state!r:.40}")
    return str(state)


def _listed(value: Any, most: int | None = None) -> Sequence[Any]:
    """The first items of a list; ValueError for anything else, such as a text."""
    if not isinstance(value, list | tuple):
        raise ValueError("not a list")
    return value[:most]


def _plain_fields(value: Any) -> dict[str, object]:
    plain = ((field.name, _plain(getattr(value, field.name))) for field in fields(value))
    return {name: item for name, item in plain if item is not None and item not in ("", [], {})}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _plain_fields(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return stamp(value) if isinstance(value, datetime) else value


# How two states of what memory keeps become one: the same, in whichever order and however often they come.


MAX_REQUESTS = 200
"""Wishes that are kept of one thread, and of the last hour in the manifest."""

RECENT = timedelta(hours=1)
"""How long before the newest wish others count as recent; what limits an account counts within it."""

WAITING = timedelta(days=7)
"""How long it stays recent while nobody has replied: a later run may be as late as a repository's settings allow."""

STANDING = frozenset({"wrong", "off", "on"})
"""Wishes that hold until somebody says otherwise: they are kept before all others."""

_PROGRESS = {"pending": 0, "refused": 1, "done": 2}
REQUEST_STATES = frozenset(_PROGRESS)
_SETTLED = {"pending": 0, "said": 1, "silent": 1, "withdrawn": 1, "removed": 2}
_NEVER = datetime.min.replace(tzinfo=UTC)


def later_answer(new: AnswerRecord, stood: AnswerRecord | None) -> AnswerRecord:
    """What stands when ``new`` is put over ``stood``.

    A later answer replaces an earlier one. Of one answer the settled state stays over the promise, and ``removed`` over
    both, whoever writes last: who counts 👍 and 👎 writes what it had read before somebody else settled the answer. A
    later answer in the same comment has its counts until they are read again.
    """
    if stood is None or new.at < stood.at:
        return stood or new
    if new.at > stood.at:
        is_same = new.comment_id is not None and new.comment_id == stood.comment_id
        uncounted = is_same and not (new.ups or new.downs)
        return replace(new, ups=stood.ups, downs=stood.downs) if uncounted else new
    if new.state == stood.state or (new.text_hash, new.question) != (stood.text_hash, stood.question):
        return new
    last = max(new, stood, key=lambda said: _SETTLED[said.state])
    return replace(last, ups=max(new.ups, stood.ups), downs=max(new.downs, stood.downs))


def later_fix(new: FixInfo, stood: FixInfo | None) -> FixInfo:
    """The one that was looked at later."""
    return new if stood is None else max(new, stood, key=lambda fix: (fix.looked_at, repr(fix)))


def union(*wishes: Iterable[Request]) -> list[Request]:
    """All of these wishes; of the same one, by thread and comment, the state that came further."""
    found: dict[tuple[ThreadId, int], Request] = {}
    for wish in (each for some in wishes for each in some):
        key = wish.id, wish.comment_id
        found[key] = max(found.get(key, wish), wish, key=_progress)
    return list(found.values())


def joined(*wishes: Iterable[Request]) -> tuple[Request, ...]:
    """What was asked for on one thread, oldest first, within bounds."""
    return bounded(union(*wishes), MAX_REQUESTS)


def recent(*wishes: Iterable[Request]) -> tuple[Request, ...]:
    """What was asked for within an hour before the newest of these, and what still waits, oldest first, within bounds.

    Who adds to it says how far each wish came: of one that was forgotten as done an earlier state would be news.
    """
    found = union(*wishes)
    newest = max((wish.at for wish in found), default=_NEVER)
    lately = (w for w in found if newest - w.at <= (WAITING if w.state == "pending" else RECENT))
    return bounded(lately, MAX_REQUESTS, standing=frozenset())


def bounded(wishes: Iterable[Request], most: int, *, standing: frozenset[str] = STANDING) -> tuple[Request, ...]:
    """So many of these wishes, oldest first: those in ``standing`` before others, then the newest of each account.

    By account, so that nobody pushes out what others asked for by asking often.
    """
    turns: Counter[tuple[bool, str]] = Counter()
    places = []
    for place, wish in enumerate(sorted(wishes, key=_in_time, reverse=True)):
        turn = (wish.name not in standing, wish.by.casefold())
        places.append((turn[0], turns[turn], place, wish))
        turns[turn] += 1
    return tuple(sorted((place[-1] for place in sorted(places)[:most]), key=_in_time))


def _in_time(wish: Request) -> tuple[datetime, int]:
    return wish.at, wish.comment_id


def _progress(wish: Request) -> tuple[int, datetime, int, str]:
    return _PROGRESS[wish.state], wish.trying_since or _NEVER, wish.reply_id or 0, repr(wish)
