"""A repository of any size, made from a small one by resampling: as long, as wordy and as varied, and no exact copies.

Each thread is drawn with replacement and told again: its sentences are joined by some of another thread of about the
same time, some words are replaced by others of the archive, and new names turn up as fast as the vocabulary of the
archive grows (Heaps' law, vocabulary ~ words^BETA). Numbers and dates are new, and ascend.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from bot.domain.thread import Message, Thread

BETA = 0.74
"""How the vocabulary of the archive grows from its first 1,000 threads to its first 10,000."""

SEED = 20150101
REPLACED, BORROWED = 0.08, 0.2
"""The shares of words that are replaced, and of sentences that come from another thread."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,29}", re.ASCII)
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+")
_RECENT = 4_000


class Resampler:
    """Tells threads again, always in the same way."""

    def __init__(self, threads: Sequence[Thread], seed: int = SEED) -> None:
        self._threads = sorted(threads, key=lambda thread: thread.created_at)
        self._random = Random(seed)
        self._words = [word for thread in self._threads for word in _WORD.findall(thread.title + " " + thread.body)]
        self._known = len({word.lower() for word in self._words})
        self._new: list[str] = []

    def threads(self, count: int, until: datetime) -> Iterator[Thread]:
        """``count`` threads numbered from 1, the last of them opened before ``until``."""
        first = self._threads[0].created_at
        step = (until - first) / (count + 1)
        for number in range(1, count + 1):
            yield self._again(number, count, first + number * step)

    def _again(self, number: int, count: int, opened: datetime) -> Thread:
        near = (number - 1) * len(self._threads) // count
        origin = self._random.choice(self._threads)
        other = self._threads[min(len(self._threads) - 1, max(0, near + self._random.randint(-200, 200)))]
        moved = opened - origin.created_at
        return replace(
            origin,
            id=number,
            title=self._mixed(origin.title, other.title, number),
            body=self._mixed(origin.body, other.body, number),
            created_at=opened,
            updated_at=origin.updated_at and origin.updated_at + moved,
            closed_at=origin.closed_at and origin.closed_at + moved,
            merged_at=origin.merged_at and origin.merged_at + moved,
            comments=tuple(self._said(message, moved, number) for message in origin.comments),
            events=tuple(replace(event, at=event.at + moved) for event in origin.events),
        )

    def _said(self, message: Message, moved: timedelta, number: int) -> Message:
        changed = message.updated_at and message.updated_at + moved
        text = self._worded(message.text, number)
        return replace(message, text=text, created_at=message.created_at + moved, updated_at=changed)

    def _mixed(self, text: str, other: str, number: int) -> str:
        """The text with some of its sentences replaced by those of the other."""
        own, theirs = _SENTENCE.split(text), _SENTENCE.split(other)
        kept = [self._random.choice(theirs) if self._random.random() < BORROWED else one for one in own]
        return self._worded("\n".join(kept) if "\n" in text else " ".join(kept), number)

    def _worded(self, text: str, number: int) -> str:
        # Each word more brings dV/dn = BETA * V / n new ones; the archive's own suffice up to its own size.
        size = number / len(self._threads)
        fresh = BETA * self._known * size ** (BETA - 1) / len(self._words) if size > 1 else 0.0

        def other(found: re.Match[str]) -> str:
            chance = self._random.random()
            if chance < fresh:
                return self._invented()
            if chance < 2 * fresh and self._new:
                return self._random.choice(self._new[-_RECENT:])
            return self._random.choice(self._words) if chance < REPLACED else found[0]

        return _WORD.sub(other, text)

    def _invented(self) -> str:
        """A name that nobody used before, made of two words."""
        one, two = self._random.choice(self._words), self._random.choice(self._words)
        self._new.append(f"{one[:12]}_{two[:12]}{len(self._new) % 97}")
        return self._new[-1]
