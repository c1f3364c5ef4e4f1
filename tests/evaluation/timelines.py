"""Histories generated as timelines, so that everything after a given moment can be replaced by other events."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.domain.thread import Message, Thread, TimelineEvent
from tests.recall.samples import at

PEOPLE = ("octocat", "monalisa", "hubot", "defunkt", "helper[bot]")
FEATURES = ("import", "search", "snapshot", "login", "backup", "keyboard", "proxy", "archive", "sync", "theme")
FAILURES = ("crash", "hang", "timeout", "corrupt", "slow", "missing", "garbled", "denied")
PLACES = ("windows", "linux", "docker", "firefox", "nginx", "postgres", "umlaut", "upgrade", "night", "restart")
CHATTER = (
    "I see this too.",
    "Any news?",
    "Thank you!",
    "It works on my machine.",
    "Wontfix, sorry.",
    "Fixed in abc1234.",
)


@dataclass(frozen=True)
class Step:
    """Something that happened to a thread: ``text`` is that of a comment, ``target`` that of a mark."""

    kind: str
    at: datetime
    actor: str
    text: str = ""
    target: int = 0


@dataclass(frozen=True)
class ThreadTimeline:
    """A thread from its opening on; ``now`` are its labels, whose history is not known."""

    opening: Thread
    steps: tuple[Step, ...]
    now: tuple[str, ...] = ()

    def thread(self) -> Thread:
        """The thread as an archive holds it at the end."""
        steps = sorted(self.steps, key=lambda step: step.at)
        turns = [step for step in steps if step.kind in ("closed", "reopened")]
        is_closed = bool(turns) and turns[-1].kind == "closed"
        ended = any(step.kind == "closed" for step in turns)
        return replace(
            self.opening,
            state="closed" if is_closed else "open",
            closed_at=turns[-1].at if is_closed else None,
            closed_by=turns[-1].actor if is_closed else None,
            updated_at=max([self.opening.created_at, *(step.at for step in steps)]),
            labels=self.now,
            comments=tuple(_comment(step) for step in steps if step.kind == "said"),
            events=tuple(_event(step) for step in steps if step.kind != "said") if ended else (),
        )


def _comment(step: Step) -> Message:
    role = "MEMBER" if step.actor == "hubot" else "NONE"
    return Message(step.actor, role, step.at, step.text, is_bot=step.actor.endswith("[bot]"))


def _event(step: Step) -> TimelineEvent:
    return TimelineEvent(step.kind, step.at, step.actor, source=step.target or None)


def generated(count: int, rng: random.Random) -> list[ThreadTimeline]:
    """One thread a day, many like an older one; a third is closed, many of these as duplicates."""
    timelines: list[ThreadTimeline] = []
    for key in range(1, count + 1):
        about = [rng.choice(FEATURES), rng.choice(FAILURES), *rng.sample(PLACES, 3)]
        title, body = f"{about[0]} {about[1]} on {about[2]}", " ".join(rng.sample(about * 2, 8))
        body = f"{body} {_name(key // 4)} {_name(500 + key // 4)} {_name(900 - key // 4)}"
        opening = Thread(key, title, body, rng.choice(PEOPLE[:4]), at(key))
        timelines.append(
            ThreadTimeline(opening, steps(opening, opening.created_at, False, rng), ("now",) * rng.randrange(3))
        )
    return timelines


def _name(number: int) -> str:
    """A distinct word for every number below 1,000."""
    return "".join("bdfgklmnpr"[int(digit)] + "aeiouaeiou"[int(digit)] for digit in f"{number:03}") + "x"


def steps(opening: Thread, since: datetime, is_closed: bool, rng: random.Random) -> tuple[Step, ...]:
    """What happens to a thread after a moment: comments, closings, reopenings, marks and unmarkings."""
    timeline = []
    moment = since
    assert isinstance(opening.id, int)
    for _ in range(rng.randrange(7)):
        moment += timedelta(days=rng.expovariate(1 / 8), seconds=1)
        actor, target = rng.choice(PEOPLE), rng.randrange(1, max(2, opening.id))
        kind = rng.choice(("said", "cites", "duplicate", "turn", "duplicate", "marked", "unmarked"))
        if kind == "said":
            timeline.append(Step("said", moment, actor, rng.choice(CHATTER)))
        elif kind == "cites":
            timeline.append(Step("said", moment, actor, f"See also #{target}."))
        elif kind in ("marked", "unmarked"):
            timeline.append(Step(f"{kind}_as_duplicate", moment, actor, target=target))
        elif kind == "duplicate":
            timeline.append(Step("said", moment, actor, f"Duplicate of #{target}."))
        if kind == "turn" or (kind == "duplicate" and not is_closed):
            moment += timedelta(seconds=rng.randrange(100))
            timeline.append(Step("reopened" if is_closed else "closed", moment, actor))
            is_closed = not is_closed
    return tuple(timeline)


def change_future(
    timelines: Sequence[ThreadTimeline], moment: datetime, asked: Iterable[int], seed: int
) -> list[ThreadTimeline]:
    """The same history up to a moment, and a different one after it.

    For older threads, everything that happened later is different, and so are their current labels. Later threads are
    fewer, in another order, and written by others; those of ``asked`` keep their opening texts.
    """
    rng = random.Random(seed)
    asked_ids = set(asked)
    later = [
        life.opening for life in timelines if life.opening.created_at > moment and life.opening.id not in asked_ids
    ]
    texts = rng.sample(later, len(later))
    replaced = {
        thread.id: replace(thread, title=text.body, body=text.title, author=rng.choice(PEOPLE[:4]))
        for thread, text in zip(later, texts, strict=True)
        if rng.random() < 0.8
    }
    changed = []
    for life in timelines:
        opening = life.opening
        if opening.created_at > moment and opening.id not in asked_ids:
            if opening.id not in replaced:
                continue
            opening = replaced[opening.id]
        past = tuple(step for step in life.steps if step.at <= moment)
        turns = [step.kind for step in sorted(past, key=lambda step: step.at) if step.kind in ("closed", "reopened")]
        since = max(moment, opening.created_at)
        future = steps(opening, since, bool(turns) and turns[-1] == "closed", rng)
        changed.append(ThreadTimeline(opening, past + future, ("other",) * rng.randrange(4)))
    return changed
