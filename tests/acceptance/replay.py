"""Replay of a real archive: the Action runs on each of its events, in time order."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bot.domain.thread import Thread
from bot.domain.thread_json import archive_fields
from tests.acceptance.stage import BOT, Stage, graph_requests

Json = Mapping[str, Any]
REFERENCES = ("cross-referenced", "referenced")


@dataclass(frozen=True, slots=True, order=True)
class ArchiveEvent:
    """One event of an archive; ``step`` orders events of the same second (opened, then comments, then closed)."""

    at: str
    step: int
    number: int
    index: int = 0


@dataclass(slots=True)
class Tally:
    """What a replay cost: the (reads, writes) of events by name, failed runs, and our comments on each issue.

    Events on a thread that one of our comments shows are counted separately: that comment may have to change too.
    """

    costs: dict[str, Counter[tuple[int, int]]] = field(default_factory=dict)
    costs_of_shown: dict[str, Counter[tuple[int, int]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    comments: dict[int, int] = field(default_factory=dict)


def read_threads(path: Path) -> dict[int, Json]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {thread["id"]: thread for thread in map(json.loads, lines)}


def archive_events(threads: Iterable[Json]) -> Iterator[ArchiveEvent]:
    for thread in threads:
        yield ArchiveEvent(thread["created_at"], 0, thread["id"])
        for index, comment in enumerate(thread["comments"]):
            yield ArchiveEvent(max(comment["created_at"], thread["created_at"]), 1, thread["id"], index)
        if thread["state"] == "closed":
            yield ArchiveEvent(max(thread["closed_at"], thread["created_at"]), 2, thread["id"])


def replay(stage: Stage, threads: Mapping[int, Json]) -> Tally:
    """Deliver each event once, in order."""
    tally = Tally()
    for event in sorted(archive_events(threads.values())):
        costs = tally.costs_of_shown if is_shown(stage, event.number) else tally.costs
        name, action, comment = apply_event(stage, event, threads[event.number])
        stage.github.mark()
        code = stage.act(name, action, event.number, comment)
        costs.setdefault(f"{name}.{action}", Counter())[(_reads(stage), stage.github.writes)] += 1
        if code:
            tally.failures.append(f"{event}: exit code {code}")
    tally.comments = {number: len(stage.comments(number)) for number in threads}
    return tally


def _reads(stage: Stage) -> int:
    """Reads of the last run, without a closed thread's timeline if another thread changed too, and without the one
    lookup of open pull requests if an open issue is shown."""
    ends = {request.path.rpartition("/")[2] for request in stage.github.recent if request.method == "GET"}
    lists = {request.path for request in stage.github.recent}
    is_extra = "timeline" in ends and any(path.endswith("/issues/comments") for path in lists)
    is_lookup = stage.github.writes > 0 and graph_requests(stage) == 1
    return stage.github.reads - is_extra - is_lookup


def is_shown(stage: Stage, number: int) -> bool:
    """Whether one of our comments shows this issue."""
    link = re.compile(rf"/issues/{number}\b")
    return any(link.search(comment.body) for comment in stage.github.comments_by(BOT))


def apply_event(stage: Stage, event: ArchiveEvent, thread: Json) -> tuple[str, str, int | None]:
    """Apply the event to the fake GitHub; returns the event name, action and comment id that GitHub would send."""
    github, number = stage.github, event.number
    if event.step == 0:
        github.repo.next_number = number
        github.open_issue(
            thread["author"], thread["title"], thread["body"], event.at, thread["labels"], thread["author_association"]
        )
        return "issues", "opened", None
    if event.step == 1:
        entry = thread["comments"][event.index]
        comment_id = github.comment(number, entry["author"], entry["body"], event.at, entry.get("association"))
        return "issue_comment", "created", comment_id
    reason = thread.get("state_reason") or "completed"
    github.close(number, thread.get("closed_by") or thread["author"], reason, event.at)
    return "issues", "closed", None


def comparable(thread: Thread) -> dict[str, object]:
    """The fields of a thread, without changes that GitHub does not report.

    Our own comment moves the time of the last update. A reference from elsewhere that was made after the thread was
    closed moves nothing, so no run learns of it until the thread itself changes.
    """
    closed_at = thread.closed_at
    events = tuple(e for e in thread.events if closed_at is None or e.at <= closed_at or e.name not in REFERENCES)
    return archive_fields(replace(thread, updated_at=None, events=events))
