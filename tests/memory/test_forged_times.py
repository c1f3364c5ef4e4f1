"""Times that have not come yet, which somebody who can push to the memory wrote into it, count for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from bot.domain.changes import Changes, DiscussionProgress, FixInfo, HistoryProgress
from bot.domain.cluster import ClusterLink, ClusterLinks
from bot.domain.post import OpenPull, Post, Renewal, notice_slot, reply_slot
from bot.domain.thread import FORGOTTEN, Message, Record, Tombstone
from bot.domain.thread_json import MAX_AHEAD, MAX_TIME, TimeLimit, stamp
from bot.memory.memory import Memory
from bot.memory.records import encode_record, wins
from bot.memory.shards import FIXES
from tests.memory.samples import StoredMemory, ask, at, issue, remember

NOW = at(100)
STORED_TIME = re.compile(rb"20\d\d-\d\d-\d\dT[0-9:.]+Z")
DERIVED = ("index", "messages", "digests/")
"""Files made from the others."""

COMMENT = Message("hubot", "MEMBER", at(1), "Try again.", 5, at(2))
CLOSED = issue(1, 3, state="closed", closed_at=at(3), comments=(COMMENT,))
COMMENT_ON_1 = Post(1, "pending", at(5), content="x", shows=(7,), trying_since=at(5), revised_at=at(5),
                    pulls=(OpenPull(7, 3, "Fix", seen_at=at(8)),))  # fmt: skip
REPLY_ON_8 = Post(8, "said", at(8), reply_slot(80), shows=(7,), trying_since=at(8))
EVERYTHING = Changes(
    records=(CLOSED, issue(7, 4), Tombstone(2, at(4)), replace(issue(8, 4), updated_at=None)),
    posts=(COMMENT_ON_1, Post(7, "pending", at(8), notice_slot("#9"), release="v1", trying_since=at(8)), REPLY_ON_8),
    requests=(ask(7, 9, at=at(6), trying_since=at(6)),),
    fixes=(FixInfo(1, "#9", at(7), True, "a" * 40, at(3), ("a.py",), "v1", at(5)),),
    renewals_due=(Renewal(1, "", 7, at(9)),),
    cursor=at(10),
    reading=HistoryProgress(at(9), at(4), frozenset({1})),
    notified_until=at(10),
    links=(ClusterLinks(7, at(4), (ClusterLink(1, "error", "E42"),), at(9)),),
    discussions=DiscussionProgress(at(9), at(5), "", is_done=False),
)


def times_in(value: Any) -> Iterator[datetime]:
    """All times in a value, at any depth."""
    if isinstance(value, datetime):
        yield value
    elif is_dataclass(value):
        yield from (time for each in fields(value) for time in times_in(getattr(value, each.name)))
    elif isinstance(value, Mapping):
        yield from (time for each in value.values() for time in times_in(each))
    elif isinstance(value, tuple | list | frozenset):
        yield from (time for each in value for time in times_in(each))


def open_at(stored: StoredMemory, now: datetime) -> Memory:
    memory = Memory(stored.store())
    memory.time_limit = lambda: TimeLimit(now + MAX_AHEAD, lambda: now + MAX_AHEAD)
    return memory.open()


def everything_in(memory: Memory) -> list[Any]:
    state = memory.state
    every = (state.every_record, state.every_thread_posts, state.every_request)
    return [state.manifest, state.every_link(), *state.all_values(FIXES).values(), *([*read()] for read in every)]


def test_no_stored_time_may_be_later_than_now(stored: StoredMemory) -> None:
    memory = stored.memory()
    memory.stage(EVERYTHING)
    memory.stage(Changes(read_whole=at(8)))
    assert memory.commit("everything")
    whole = [*times_in(everything_in(open_at(stored, NOW)))]
    tried = 0
    for path, data in stored.files().items():
        for found in STORED_TIME.finditer(data) if not path.startswith(DERIVED) else ():
            for forged in (b"8999-01-01T00:00:00Z", str(stamp(NOW + 2 * MAX_AHEAD)).encode()):
                stored.put({path: data[: found.start()] + forged + data[found.end() :]})
                read = [*times_in(everything_in(open_at(stored, NOW)))]
                assert max(read) <= NOW + MAX_AHEAD, f"{path}: {data[found.start() - 20 : found.end()]!r}"
                assert len(read) < len(whole), "it counts as damaged, or as never"
                tried += 1
        stored.put({path: data})
    assert tried >= 2 * 30, "there are many stored times"
    assert [*times_in(everything_in(open_at(stored, NOW)))] == whole


def test_an_edit_replaces_a_record_of_the_year_8999(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(1, 3))
    for forged in (issue(1, 3, body="forged", updated_at=MAX_TIME - timedelta(days=1)), Tombstone(1, MAX_TIME)):
        stored.put({"records/0000/1.json": encode_record(forged)})
        memory = open_at(stored, NOW)
        assert memory.records([1]) == {}
        assert "damaged" in "".join(memory.notes)
        assert remember(memory, issue(1, 4))
        assert open_at(stored, NOW).records([1])[1] == issue(1, 4)


FORGED = [
    issue(1, 3, body="forged"),
    issue(1, 9, body="forged"),
    issue(1, 20, body="forged"),
    issue(1, 20),
    Tombstone(1, at(9)),
]


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize(
    "reading",
    [
        Changes(reading=HistoryProgress(at(20), at(3), frozenset({1, 2}))),
        Changes(discussions=DiscussionProgress(at(20), at(3))),
    ],
    ids=["of issues", "of discussions"],
)
def test_a_rebuild_replaces_what_the_forge_says_otherwise(
    stored: StoredMemory, forged: Record, reading: Changes
) -> None:
    remember(stored.memory(), issue(1, 3), issue(2, 3))
    stored.put({"records/0000/1.json": encode_record(forged)})
    memory = stored.memory()
    memory.stage(replace(reading, records=(issue(1, 3), issue(2, 3))))
    assert memory.commit("Rebuild")
    assert stored.memory().records([1, 2]) == {1: issue(1, 3), 2: issue(2, 3)}


def test_a_rebuild_replaces_nothing_that_changed_since_it_began_and_nothing_forgotten() -> None:
    read = issue(1, 3)
    assert not wins(read, issue(1, 21, body="edited meanwhile"), at(20))
    assert not wins(read, Tombstone(1, at(9), FORGOTTEN), at(20))
    assert not wins(issue(1, 5), replace(read, title=issue(1, 5).title), at(20)), "only our own comment came since"
    assert not wins(read, read, at(20))
