"""Shards, with one line of JSON for each thread: digests, our posts, requests, fixes, signs of clusters.

Defines how each is written and read, and how two states of one are merged, with the same result in either order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from bot.domain.card import id_order
from bot.domain.changes import FORGET, FixInfo, Request
from bot.domain.cluster import MAX_LINKS, ClusterLink, ClusterLinks
from bot.domain.digest import Digest
from bot.domain.post import Post, ThreadPosts
from bot.domain.thread import ThreadId
from bot.domain.thread_json import parse_key
from bot.memory.bounds import MAX_SHARD_LINES, is_dense
from bot.memory.codec import DAMAGE, as_list, decode, decode_each, encode, is_empty
from bot.memory.merge import (
    MAX_REQUESTS,
    later_fix,
    later_links,
    limit_requests,
    merge_requests,
    newest_posts,
)
from bot.memory.paths import folder_of

Value = TypeVar("Value")
Line = Mapping[str, Any]
"""A line of a shard as JSON; its ``id`` is the thread's."""

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
    `bot.memory.codec.DAMAGE`. ``loss`` tells a maintainer what is lost in that case.
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
                except DAMAGE:
                    is_all = False
                is_whole = is_whole and is_all
        return values, is_whole


@dataclass(frozen=True)
class MergedShard(StoredShard[Value]):
    """Shards of values that stand for themselves: a new state of a thread's value meets only the stored one.

    ``merge`` decides between the two, with the same result in either order. ``when_gone`` says what is kept if the
    thread is gone; None for nothing.
    """

    merge: Callable[[Value, Value | None], Value]
    when_gone: Callable[[Value], Value | None] = lambda _: None


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
    return "".join(f"{lines[key]}\n" for key in sorted(lines, key=id_order)).encode()


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


def requests_fields(requests: Sequence[Request]) -> dict[str, object] | None:
    """All requests on one thread as JSON: the thread's id once, then the requests without it."""
    return {"id": requests[0].id, "requests": list(map(_without_id, requests))} if requests else None


def parse_requests(line: Line) -> tuple[tuple[Request, ...], bool]:
    """The inverse of `requests_fields`, at most MAX_REQUESTS, and whether each request could be read."""
    requests, is_whole = decode_each(Request, as_list(line["requests"]), id=parse_key(line["id"]))
    return limit_requests({each.comment_id: each for each in requests}.values(), MAX_REQUESTS), is_whole


def thread_posts_fields(thread: ThreadPosts) -> dict[str, object] | None:
    """Our posts on a thread and those that show it as JSON, with its id once; None if there are none."""
    if not (thread.posts or thread.shown_by):
        return None
    posts = {"posts": list(map(_without_id, thread.posts))} if thread.posts else {}
    return encode(replace(thread, posts=())) | posts


def parse_thread_posts(line: Line) -> tuple[ThreadPosts, bool]:
    """The inverse of `thread_posts_fields`, and whether each post could be read."""
    thread = parse_key(line["id"])
    posts, is_whole = decode_each(Post, as_list(line.get("posts", ())), id=thread)
    by_slot = {post.slot: post for post in posts}
    shown_by = decode(ThreadPosts, line, posts=()).shown_by
    return ThreadPosts(thread, newest_posts(by_slot.values()), tuple(dict.fromkeys(shown_by))), is_whole


def parse_cluster_links(line: Line) -> tuple[ClusterLinks, bool]:
    """The inverse of `cluster_links_fields`, at most MAX_LINKS, and whether each sign could be read."""
    links, is_whole = decode_each(ClusterLink, as_list(line.get("links", ()))[:MAX_LINKS])
    return decode(ClusterLinks, line, links=tuple(links)), is_whole


def _digest_fields(digest: Digest) -> dict[str, object]:
    return {name: item for name, item in encode(digest).items() if not is_empty(item)}


def _without_id(value: Request | Post) -> dict[str, object]:
    return {name: item for name, item in encode(value).items() if name != "id"}


DIGESTS = ShardSchema[Digest]("digests", _digest_fields)
POSTS = StoredShard(
    "posts",
    thread_posts_fields,
    parse_thread_posts,
    "what was said on some threads is not known",
)
REQUESTS = MergedShard(
    "requests",
    requests_fields,
    parse_requests,
    "some of what people asked for is not known",
    lambda new, old: merge_requests(old or (), new),
    when_gone=lambda requests: tuple(request for request in requests if request.name == FORGET) or None,
)
FIXES = MergedShard(
    "fixes",
    encode,
    lambda line: (decode(FixInfo, line), True),
    "the places of some fixes are looked up again",
    later_fix,
)
CLUSTERS = MergedShard(
    "clusters",
    encode,
    parse_cluster_links,
    "some signs of clusters are not known until the next rebuild",
    later_links,
)

MERGED: tuple[MergedShard[Any], ...] = (REQUESTS, FIXES, CLUSTERS)
STORED: tuple[StoredShard[Any], ...] = (POSTS, *MERGED)
SCHEMAS: tuple[ShardSchema[Any], ...] = (DIGESTS, *STORED)
EVENT_SCHEMAS: tuple[ShardSchema[Any], ...] = (DIGESTS, POSTS, REQUESTS, FIXES)
"""What an event reads about its thread."""
