"""What is kept in shards: digests, what was said and stands, wishes, where fixes are; and how each is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from bot.archive import MAX_NAME, clean, parse_key, parse_number, parse_time, stamp, time_or_none, without_defaults
from bot.indexed import Digest
from bot.kept import Fix, Renewal, Said, StandingComment, ThreadComments, Wish
from bot.memory.merging import MAX_WISHES, WISH_STATES, bounded
from bot.memory.shards import Family, Kept, Line
from bot.model import ThreadId

ANSWER_STATES = frozenset({"pending", "said", "silent", "withdrawn", "removed"})
MAX_FILES = 5
MAX_ABOUT = 20
MAX_PATH = 1_024
_NAME = re.compile(r"[a-z]{1,20}", re.ASCII)  # any word: a later version may know more commands than this one


def digest_fields(digest: Digest) -> dict[str, object]:
    """A digest as JSON, without the fields that are empty."""
    return _plain_fields(digest)


def said_fields(said: Said) -> dict[str, object]:
    """What was said on a thread, as JSON."""
    return without_defaults(_plain_fields(said))


def parse_said(line: Line) -> Said:
    """The inverse of `said_fields`; anything else raises KeyError, TypeError, ValueError or OverflowError."""
    return Said(
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


def wish_fields(wish: Wish) -> dict[str, object]:
    """What somebody asked for, as JSON."""
    return without_defaults(_plain_fields(wish))


def parse_wish(line: Line, thread: ThreadId) -> Wish:
    """The inverse of `wish_fields` for a wish on this thread; else KeyError, TypeError, ValueError or OverflowError."""
    comment_id, name = parse_number(line["comment_id"]), line["name"]
    if comment_id is None or not _NAME.fullmatch(name):
        raise ValueError("not a wish")
    return Wish(
        id=thread,
        comment_id=comment_id,
        name=name,
        by=clean(line.get("by"))[:MAX_NAME],
        at=parse_time(line["at"]),
        about=tuple(map(parse_key, _listed(line.get("about", ()), MAX_ABOUT))),
        state=_one_of(WISH_STATES, line["state"]),
        reply_id=parse_number(line.get("reply_id")),
        trying_since=time_or_none(line.get("trying_since")),
    )


def wishes_fields(wishes: Sequence[Wish]) -> dict[str, object] | None:
    """All that was asked for on one thread, as JSON: the thread's id once, then the wishes without it."""
    if not wishes:
        return None
    told = [{name: value for name, value in wish_fields(wish).items() if name != "id"} for wish in wishes]
    return {"id": wishes[0].id, "wishes": told}


def parse_wishes(line: Line) -> tuple[tuple[Wish, ...], bool]:
    """The inverse of `wishes_fields`, within bounds, and whether each wish could be read."""
    thread, found, is_whole = parse_key(line["id"]), {}, True
    for one in _listed(line["wishes"]):
        try:
            wish = parse_wish(one, thread)
            found[wish.comment_id] = wish
        except (KeyError, TypeError, ValueError, OverflowError):
            is_whole = False
    return bounded(found.values(), MAX_WISHES), is_whole


def fix_fields(fix: Fix) -> dict[str, object]:
    """Where the fix of a thread is, as JSON."""
    return without_defaults(_plain_fields(fix))


def parse_fix(line: Line) -> Fix:
    """The inverse of `fix_fields`; anything else raises KeyError, TypeError, ValueError or OverflowError."""
    return Fix(
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


DIGESTS = Family("digests", digest_fields)
ANSWERS = Kept(
    "answers", said_fields, lambda line: (parse_said(line), True), "what was said on some threads is not known"
)
WISHES = Kept("wishes", wishes_fields, parse_wishes, "some of what people asked for is not known")
FIXES = Kept("fixes", fix_fields, lambda line: (parse_fix(line), True), "where some fixes are is looked up again")
COMMENTS = Kept(
    "comments",
    thread_comments_fields,
    parse_thread_comments,
    "which comments show some threads is not known until the next rebuild",
)
FAMILIES: tuple[Family[Any], ...] = (DIGESTS, ANSWERS, WISHES, FIXES, COMMENTS)


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
