"""Shards, with one line of JSON for each thread: digests, our posts, requests, fixes, signs of clusters.

Defines how each is written and read, and how two states of one are merged, with the same result in either order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from bot.domain.changes import FixInfo, Request
from bot.domain.cluster import MAX_LINK_CHARS, MAX_LINKS, ClusterLink, ClusterLinks
from bot.domain.digest import Digest
from bot.domain.post import OpenPull, OrganisationKey, Post, PostKey, Renewal, ThreadPosts, Vote
from bot.domain.shape import one_word
from bot.domain.thread import ThreadId
from bot.domain.thread_json import (
    MAX_NAME,
    MAX_TITLE,
    clean,
    parse_key,
    parse_number,
    parse_time,
    stamp,
    time_or_none,
    without_defaults,
)
from bot.memory.bounds import MAX_SHARD_LINES, is_dense
from bot.memory.merge import MAX_REQUESTS, REQUEST_STATES, limit_requests, newest_posts
from bot.memory.paths import folder_of
from bot.memory.records import sort_key

Value = TypeVar("Value")
Item = TypeVar("Item")
Line = Mapping[str, Any]
"""A line of a shard as JSON; its ``id`` is the thread's."""

_PARSE_ERRORS = (KeyError, TypeError, ValueError, OverflowError, AttributeError)

_NAME = re.compile(r"(\d{4,}|x[0-9a-f]{2})\.jsonl", re.ASCII)


@dataclass(frozen=True)
class ShardSchema(Generic[Value]):
    """The shards in one folder. ``fields`` converts a value to JSON; None for a value that needs no line."""

    folder: str
    fields: Callable[[Value], dict[str, object] | None]

    def path(self, key: ThreadId) -> str:
        """The shard of a thread, for example ``digests/0042.jsonl``."""
        return f"{self.folder}/{folder_of(key)}.jsonl"

    def line(self, value: Value) -> str | None:
        fields = self.fields(value)
        return None if fields is None else json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    def select_paths(self, paths: Iterable[str]) -> list[str]:
        """The paths that are shards of this schema."""
        start = f"{self.folder}/"
        return [path for path in paths if path.startswith(start) and _NAME.fullmatch(path, len(start))]

    def edits(self, shards: Mapping[str, bytes], values: Mapping[ThreadId, Value | None]) -> dict[str, bytes | None]:
        """The shards that change when these values are stored (None removes one); empty shards are deleted."""
        lines = ((key, None if value is None else self.line(value)) for key, value in values.items())
        return edit_shards(shards, lines, self.path)


@dataclass(frozen=True)
class StoredShard(ShardSchema[Value]):
    """Shards that are read again.

    ``parse`` returns the value of a line and whether that is all of it; for an unreadable line it raises one of
    _PARSE_ERRORS. ``loss`` tells a maintainer what is lost in that case.
    """

    parse: Callable[[Line], tuple[Value, bool]]
    loss: str

    def read(
        self, path: str, data: bytes, wanted: Iterable[ThreadId] | None = None
    ) -> tuple[dict[ThreadId, Value], bool]:
        """The values of a shard for the ``wanted`` threads (None: for all), and whether nothing was damaged."""
        values: dict[ThreadId, Value] = {}
        lines, is_whole = read_lines(data)
        for key in lines if wanted is None else wanted:
            if key in lines and self.path(key) == path:
                try:
                    values[key], is_all = self.parse(lines[key])
                except _PARSE_ERRORS:
                    is_all = False
                is_whole = is_whole and is_all
        return values, is_whole


def parse_each(lines: Iterable[Any], parse: Callable[[Any], Item]) -> tuple[list[Item], bool]:
    """The readable items, and whether that is all of them."""
    items, is_whole = [], True
    for line in lines:
        try:
            items.append(parse(line))
        except _PARSE_ERRORS:
            is_whole = False
    return items, is_whole


def read_lines(data: bytes) -> tuple[dict[ThreadId, dict[str, Any]], bool]:
    """The lines of a shard by thread, and whether each could be read."""
    rows = list(_lines(data))
    return {key: line for key, _, line in rows if key is not None}, all(key is not None for key, _, _ in rows)


def read_texts(data: bytes) -> list[tuple[ThreadId, str]]:
    """The readable lines of a shard as written, each after its thread."""
    return [(key, text) for key, text, _ in _lines(data) if key is not None]


def _lines(data: bytes) -> Iterator[tuple[ThreadId | None, str, dict[str, Any]]]:
    if data.count(b"\n") > MAX_SHARD_LINES or is_dense(data):
        yield None, "", {}
        return
    for text in data.decode("utf-8", "replace").split("\n"):  # a text may contain other line endings
        if text:
            try:
                line = json.loads(text)
                yield parse_key(line["id"]), text, line
            except (ValueError, TypeError, KeyError, RecursionError):
                yield None, text, {}


def write_shard(lines: Mapping[ThreadId, str]) -> bytes:
    """The bytes of a shard: one line for each thread, in the order of their ids."""
    return "".join(f"{lines[key]}\n" for key in sorted(lines, key=sort_key)).encode()


def edit_shards(
    shards: Mapping[str, bytes],
    lines: Iterable[tuple[ThreadId, str | None]],
    path_of: Callable[[ThreadId], str],
) -> dict[str, bytes | None]:
    """The shards that change when these lines are stored (None removes a line); empty shards are deleted."""
    opened: dict[str, dict[ThreadId, str]] = {}
    for key, line in lines:
        path = path_of(key)
        if path not in opened:
            opened[path] = {
                stored_key: text for stored_key, text, _ in _lines(shards.get(path, b"")) if stored_key is not None
            }
        if line is None:
            opened[path].pop(key, None)
        else:
            opened[path][key] = line
    edits = {path: write_shard(content) or None for path, content in opened.items()}
    return {path: data for path, data in edits.items() if data != shards.get(path)}


POST_STATES = frozenset({"pending", "said", "silent", "withdrawn", "removed"})
_SLOT = re.compile(r"(reply:\d{1,19}|notice:[0-9a-f]{16})?", re.ASCII)
MAX_FILES = 5
MAX_OTHERS = 4
MAX_ABOUT = MAX_PULLS = 20
MAX_PATH = 1_024
MAX_VOTES = 100
_REQUEST_NAME = re.compile(r"[a-z]{1,20}", re.ASCII)  # any word: a later version may know more commands than this one


def stored_fields(
    value: Post | Request | FixInfo | Renewal,
) -> dict[str, object]:
    """A post, a request, a fix or a renewal as JSON, without defaults."""
    return without_defaults(_plain_fields(value))


def _parse_vote(fields: Sequence[Any]) -> Vote:
    by, helps, may_write = fields
    return Vote(clean(by)[:MAX_NAME], helps is True, may_write is True)


def parse_request(line: Line, thread: ThreadId) -> Request:
    comment_id, name = parse_number(line["comment_id"]), line["name"]
    if comment_id is None or not _REQUEST_NAME.fullmatch(name):
        raise ValueError("not a request")
    return Request(
        id=thread,
        comment_id=comment_id,
        name=name,
        by=clean(line.get("by"))[:MAX_NAME],
        at=parse_time(line["at"]),
        about=tuple(map(parse_key, _as_list(line.get("about", ()), MAX_ABOUT))),
        state=_one_of(REQUEST_STATES, line["state"]),
        trying_since=time_or_none(line.get("trying_since")),
    )


def requests_fields(requests: Sequence[Request]) -> dict[str, object] | None:
    """All requests on one thread as JSON: the thread's id once, then the requests without it."""
    if not requests:
        return None
    return {"id": requests[0].id, "requests": [_without_id(request) for request in requests]}


def parse_requests(line: Line) -> tuple[tuple[Request, ...], bool]:
    """The inverse of `requests_fields`, at most MAX_REQUESTS, and whether each request could be read."""
    thread = parse_key(line["id"])
    requests, is_whole = parse_each(_as_list(line["requests"]), lambda each: parse_request(each, thread))
    return limit_requests({each.comment_id: each for each in requests}.values(), MAX_REQUESTS), is_whole


def parse_fix(line: Line) -> FixInfo:
    """The inverse of `stored_fields`."""
    return FixInfo(
        id=parse_key(line["id"]),
        ref=one_word(line.get("ref")),
        looked_at=parse_time(line["looked_at"]),
        is_pull=line.get("is_pull") is True,
        commit=one_word(line.get("commit")) or None,
        merged_at=time_or_none(line.get("merged_at")),
        files=tuple(clean(path)[:MAX_PATH] for path in _as_list(line.get("files", ()), MAX_FILES)),
        release=one_word(line.get("release")) or None,
        released_at=time_or_none(line.get("released_at")),
        unreleased=line.get("unreleased") is True,
        refuted=line.get("refuted") is True,
        closed_by=one_word(line.get("closed_by")),
    )


def thread_posts_fields(thread: ThreadPosts) -> dict[str, object] | None:
    """Our posts on a thread and those that show it as JSON, with its id once; None if there are none."""
    if not (thread.posts or thread.shown_by):
        return None
    shown_by = [list(key) for key in thread.shown_by]
    return without_defaults({"id": thread.id, "posts": list(map(_without_id, thread.posts)), "shown_by": shown_by})


def parse_thread_posts(line: Line) -> tuple[ThreadPosts, bool]:
    """The inverse of `thread_posts_fields`, and whether each post could be read."""
    thread = parse_key(line["id"])
    posts, is_whole = parse_each(_as_list(line.get("posts", ())), lambda item: _parse_post(item, thread))
    shown_by = [PostKey(parse_key(key), _parse_slot(slot)) for key, slot in _as_list(line.get("shown_by", ()))]
    by_slot = {post.slot: post for post in posts}
    return ThreadPosts(thread, newest_posts(by_slot.values()), tuple(dict.fromkeys(shown_by))), is_whole


def _parse_post(line: Line, thread: ThreadId) -> Post:
    return Post(
        id=thread,
        state=_one_of(POST_STATES, line["state"]),
        at=parse_time(line["at"]),
        slot=_parse_slot(line.get("slot", "")),
        reason=clean(line.get("reason")),
        content=clean(line.get("content"))[:MAX_NAME],
        comment_id=parse_number(line.get("comment_id")),
        trying_since=time_or_none(line.get("trying_since")),
        revised_at=time_or_none(line.get("revised_at")),
        shows=tuple(map(parse_key, _as_list(line.get("shows", ())))),
        quotes=tuple(clean(mark)[:MAX_NAME] for mark in _as_list(line.get("quotes", ()))),
        others=tuple(map(_parse_other, _as_list(line.get("others", ()), MAX_OTHERS))),
        pulls=tuple(map(_parse_pull, _as_list(line.get("pulls", ()), MAX_PULLS))),
        question=clean(line.get("question")),
        matches=tuple((parse_key(key), float(similarity)) for key, similarity in line.get("matches", ())),
        votes=tuple(map(_parse_vote, _as_list(line.get("votes", ()), MAX_VOTES))),
        release=one_word(line.get("release")),
    )


def _parse_slot(slot: object) -> str:
    if not isinstance(slot, str) or not _SLOT.fullmatch(slot):
        raise ValueError("no such slot")
    return slot


def _parse_other(pair: Sequence[Any]) -> OrganisationKey:
    repository, thread = pair
    return OrganisationKey(_require_number(repository), parse_key(thread))


def _parse_pull(line: Line) -> OpenPull:
    return OpenPull(
        about=_require_number(line["about"]),
        id=_require_number(line["id"]),
        title=clean(line.get("title"))[:MAX_TITLE],
        closes=line.get("closes") is True,
        draft=line.get("draft") is True,
        files=tuple(clean(path)[:MAX_PATH] for path in _as_list(line.get("files", ()), MAX_FILES)),
        seen_at=time_or_none(line.get("seen_at")),
    )


def cluster_links_fields(cluster_links: ClusterLinks) -> dict[str, object] | None:
    """The cluster signs of one thread as JSON; None if there are none."""
    return _plain_fields(cluster_links) if cluster_links.links else None


def parse_cluster_links(line: Line) -> tuple[ClusterLinks, bool]:
    """The inverse of `cluster_links_fields`, at most MAX_LINKS, and whether each sign could be read."""
    links, is_whole = parse_each(_as_list(line["links"], MAX_LINKS), _parse_cluster_link)
    at, found_at = parse_time(line["at"]), time_or_none(line.get("found_at"))
    return ClusterLinks(parse_key(line["id"]), at, tuple(links), found_at), is_whole


def _parse_cluster_link(line: Line) -> ClusterLink:
    if not _REQUEST_NAME.fullmatch(line["sign"]):
        raise ValueError("not a sign")
    return ClusterLink(parse_key(line["to"]), line["sign"], clean(line.get("words"))[:MAX_LINK_CHARS])


def parse_renewal(line: Line) -> Renewal:
    """The inverse of `stored_fields`."""
    about = parse_key(line["about"])
    return Renewal(parse_key(line["id"]), _parse_slot(line.get("slot", "")), about, parse_time(line["at"]))


def _require_number(value: Any) -> int:
    number = parse_number(value)
    if number is None:
        raise ValueError("not a number")
    return number


def _one_of(states: Collection[str], state: Any) -> str:
    if state not in states:
        raise ValueError(f"no such state: {state!r:.40}")
    return str(state)


def _as_list(value: Any, most: int | None = None) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError("not a list")
    return value[:most]


def _without_id(value: Request | Post) -> dict[str, object]:
    return {name: item for name, item in stored_fields(value).items() if name != "id"}


def _plain_fields(value: Any) -> dict[str, object]:
    plain = ((field.name, _plain(getattr(value, field.name))) for field in fields(value))
    return {name: item for name, item in plain if item is not None and item not in ("", [], {})}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _plain_fields(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return stamp(value) if isinstance(value, datetime) else value


DIGESTS = ShardSchema[Digest]("digests", _plain_fields)
POSTS = StoredShard("posts", thread_posts_fields, parse_thread_posts, "what was said on some threads is not known")
REQUESTS = StoredShard("requests", requests_fields, parse_requests, "some of what people asked for is not known")
FIXES = StoredShard(
    "fixes", stored_fields, lambda line: (parse_fix(line), True), "the places of some fixes are looked up again"
)
CLUSTERS = StoredShard(
    "clusters", cluster_links_fields, parse_cluster_links, "some signs of clusters are not known until the next rebuild"
)
EVENT_SCHEMAS: tuple[ShardSchema[Any], ...] = (DIGESTS, POSTS, REQUESTS, FIXES)
"""What an event reads about its thread."""

SCHEMAS = (*EVENT_SCHEMAS, CLUSTERS)
