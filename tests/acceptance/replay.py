"""A real archive, event by event in time order, through the Action's door."""

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
class Happening:
    """One event of an archive: ``step`` orders those of the same second (opened, then comments, then closed)."""

    at: str
    step: int
    number: int
    index: int = 0


@dataclass(slots=True)
class Tally:
    """What a replay cost: (reads, writes) of each event by its name, exit codes, and comments on each issue.

    Events on a thread that one of our comments shows are counted apart: that comment may have to change too.
    """

    costs: dict[str, Counter[tuple[int, int]]] = field(default_factory=dict)
    costs_of_shown: dict[str, Counter[tuple[int, int]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    comments: dict[int, int] = field(default_factory=dict)


def read(path: Path) -> dict[int, Json]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {thread["id"]: thread for thread in map(json.loads, lines)}


def happenings(threads: Iterable[Json]) -> Iterator[Happening]:
    for thread in threads:
        yield Happening(thread["created_at"], 0, thread["id"])
        for index, comment in enumerate(thread["comments"]):
            yield Happening(max(comment["created_at"], thread["created_at"]), 1, thread["id"], index)
        if thread["state"] == "closed":
            yield Happening(max(thread["closed_at"], thread["created_at"]), 2, thread["id"])


def replay(stage: Stage, threads: Mapping[int, Json]) -> Tally:
    """Play everything; each event is delivered once, in order."""
    tally = Tally()
    for event in sorted(happenings(threads.values())):
        costs = tally.costs_of_shown if is_shown(stage, event.number) else tally.costs
        name, action, comment = happen(stage, event, threads[event.number])
        stage.github.mark()
        code = stage.act(name, action, event.number, comment)
        costs.setdefault(f"{name}.{action}", Counter())[(_reads(stage), stage.github.writes)] += 1
        if code:
            tally.failures.append(f"{event}: exit code {code}")
    tally.comments = {number: len(stage.comments(number)) for number in threads}
    return tally


def _reads(stage: Stage) -> int:
    """The reads of the last run. A closed thread's timeline is not counted where another thread changed too, nor is the
    one look for open pull requests where an open issue is shown."""
    ends = {request.path.rpartition("/")[2] for request in stage.github.recent if request.method == "GET"}
    lists = {request.path for request in stage.github.recent}
    is_extra = "timeline" in ends and any(path.endswith("/issues/comments") for path in lists)
    is_look = stage.github.writes > 0 and graph_requests(stage) == 1
    return stage.github.reads - is_extra - is_look


def is_shown(stage: Stage, number: int) -> bool:
    """Whether a comment of ours shows this issue."""
    link = re.compile(rf"/issues/{number}\b")
    return any(link.search(comment.body) for comment in stage.github.comments_by(BOT))


def happen(stage: Stage, event: Happening, thread: Json) -> tuple[str, str, int | None]:
    """Let it happen on the fake forge; the name, action and comment of the event that GitHub would send."""
    github, number = stage.github, event.number
    if event.step == 0:
        github.repo.next_number = number
        github.open_issue(
            thread["author"], thread["title"], thread["body"], event.at, thread["labels"], thread["author_association"]
        )
        return "issues", "opened", None
    if event.step == 1:
        said = thread["comments"][event.index]
        made = github.comment(number, said["author"], said["body"], event.at, said.get("association"))
        return "issue_comment", "created", made
    reason = thread.get("state_reason") or "completed"
    github.close(number, thread.get("closed_by") or thread["author"], reason, event.at)
    return "issues", "closed", None


def comparable(thread: Thread) -> dict[str, object]:
    """A thread without what GitHub tells nobody about.

    Our own comment moves the time of the last update; a reference from elsewhere, made after the thread was closed,
    moves nothing, so nobody learns of it until the thread itself changes.
    """
    closed_at = thread.closed_at
    kept = tuple(e for e in thread.events if closed_at is None or e.at <= closed_at or e.name not in REFERENCES)
    return archive_fields(replace(thread, updated_at=None, events=kept))
