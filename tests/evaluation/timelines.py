"""Histories that are generated as timelines, so that everything after a moment can be made to happen otherwise."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.domain.thread import Message, Thread, TimelineEvent
from tests.recall.samples import at

PEOPLE = ("octocat", "monalisa", "hubot", "defunkt", "helper[bot]")
THINGS = ("import", "search", "snapshot", "login", "backup", "keyboard", "proxy", "archive", "sync", "theme")
TROUBLES = ("crash", "hang", "timeout", "corrupt", "slow", "missing", "garbled", "denied")
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
    """Something that happened to a thread; ``text`` of a comment, ``target`` of a mark."""

    what: str
    at: datetime
    actor: str
    text: str = ""
    target: int = 0


@dataclass(frozen=True)
class Life:
    """A thread from its opening on; ``now`` is what is only known as it is now."""

    opening: Thread
    steps: tuple[Step, ...]
    now: tuple[str, ...] = ()

    def thread(self) -> Thread:
        """What an archive has of it at the end."""
        steps = sorted(self.steps, key=lambda step: step.at)
        turns = [step for step in steps if step.what in ("closed", "reopened")]
        is_closed = bool(turns) and turns[-1].what == "closed"
        ended = any(step.what == "closed" for step in turns)
        return replace(
            self.opening,
            state="closed" if is_closed else "open",
            closed_at=turns[-1].at if is_closed else None,
            closed_by=turns[-1].actor if is_closed else None,
            updated_at=max([self.opening.created_at, *(step.at for step in steps)]),
            labels=self.now,
            reactions=(("+1", len(self.now)),) if self.now else (),
            comments=tuple(_comment(step) for step in steps if step.what == "said"),
            events=tuple(_event(step) for step in steps if step.what != "said") if ended else (),
        )


def _comment(step: Step) -> Message:
    role = "MEMBER" if step.actor == "hubot" else "NONE"
    return Message(step.actor, role, step.at, step.text, is_bot=step.actor.endswith("[bot]"))


def _event(step: Step) -> TimelineEvent:
    return TimelineEvent(step.what, step.at, step.actor, source=step.target or None)


def generated(count: int, chance: random.Random) -> list[Life]:
    """A thread a day, many like an older one; a third is closed, many of these as duplicates."""
    lives: list[Life] = []
    for key in range(1, count + 1):
        about = [chance.choice(THINGS), chance.choice(TROUBLES), *chance.sample(PLACES, 3)]
        title, body = f"{about[0]} {about[1]} on {about[2]}", " ".join(chance.sample(about * 2, 8))
        body = f"{body} {_name(key // 4)} {_name(500 + key // 4)} {_name(900 - key // 4)}"
        opening = Thread(key, title, body, chance.choice(PEOPLE[:4]), at(key))
        lives.append(Life(opening, steps(opening, opening.created_at, False, chance), ("now",) * chance.randrange(3)))
    return lives


def _name(number: int) -> str:
    """A word of its own for every number below 1,000."""
    return "".join("bdfgklmnpr"[int(digit)] + "aeiouaeiou"[int(digit)] for digit in f"{number:03}") + "x"


def steps(opening: Thread, since: datetime, is_closed: bool, chance: random.Random) -> tuple[Step, ...]:
    """What happens to a thread after a moment: words, closings and what takes them back, marks."""
    found = []
    moment = since
    assert isinstance(opening.id, int)
    for _ in range(chance.randrange(7)):
        moment += timedelta(days=chance.expovariate(1 / 8), seconds=1)
        actor, target = chance.choice(PEOPLE), chance.randrange(1, max(2, opening.id))
        kind = chance.choice(("said", "cites", "duplicate", "turn", "duplicate", "marked", "unmarked"))
        if kind == "said":
            found.append(Step("said", moment, actor, chance.choice(CHATTER)))
        elif kind == "cites":
            found.append(Step("said", moment, actor, f"See also #{target}."))
        elif kind in ("marked", "unmarked"):
            found.append(Step(f"{kind}_as_duplicate", moment, actor, target=target))
        elif kind == "duplicate":
            found.append(Step("said", moment, actor, f"Duplicate of #{target}."))
        if kind == "turn" or (kind == "duplicate" and not is_closed):
            moment += timedelta(seconds=chance.randrange(100))
            found.append(Step("reopened" if is_closed else "closed", moment, actor))
            is_closed = not is_closed
    return tuple(found)


def otherwise(lives: Sequence[Life], moment: datetime, asked: Iterable[int], seed: int) -> list[Life]:
    """The same history up to a moment, and another one after it.

    Of older threads everything that happened later is different, and so is what is only known as it is now. Later
    threads are fewer, in another order, and written by others; those of ``asked`` keep what they were opened with.
    """
    chance = random.Random(seed)
    kept = set(asked)
    later = [life.opening for life in lives if life.opening.created_at > moment and life.opening.id not in kept]
    texts = chance.sample(later, len(later))
    replaced = {
        one.id: replace(one, title=text.body, body=text.title, author=chance.choice(PEOPLE[:4]))
        for one, text in zip(later, texts, strict=True)
        if chance.random() < 0.8
    }
    found = []
    for life in lives:
        opening = life.opening
        if opening.created_at > moment and opening.id not in kept:
            if opening.id not in replaced:
                continue
            opening = replaced[opening.id]
        past = tuple(step for step in life.steps if step.at <= moment)
        turns = [step.what for step in sorted(past, key=lambda step: step.at) if step.what in ("closed", "reopened")]
        since = max(moment, opening.created_at)
        future = steps(opening, since, bool(turns) and turns[-1] == "closed", chance)
        found.append(Life(opening, past + future, ("other",) * chance.randrange(4)))
    return found
