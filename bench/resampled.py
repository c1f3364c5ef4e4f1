"""Resamples a repository to any size: texts as long and as varied as the originals, and no exact copies.

Each thread is drawn with replacement and varied: some of its sentences are replaced by those of another thread of about
the same time, some words by others of the archive, and new names appear at the rate at which the vocabulary of the
archive grows (Heaps' law, vocabulary ~ words^BETA). Numbers and dates are new and ascending.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from bot.domain.thread import Message, Thread

BETA = 0.74
"""Fitted to the growth of the archive's vocabulary from its first 1,000 threads to its first 10,000."""

SEED = 20150101
REPLACED, BORROWED = 0.08, 0.2
"""The shares of replaced words, and of sentences that come from another thread."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,29}", re.ASCII)
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+")
_RECENT = 4_000


class Resampler:
    """Varies threads, always in the same way."""

    def __init__(self, threads: Sequence[Thread], seed: int = SEED) -> None:
        self._threads = sorted(threads, key=lambda thread: thread.created_at)
        self._random = Random(seed)
        self._words = [word for thread in self._threads for word in _WORD.findall(thread.title + " " + thread.body)]
        self._vocabulary = len({word.lower() for word in self._words})
        self._new: list[str] = []

    def threads(self, count: int, until: datetime) -> Iterator[Thread]:
        """``count`` threads numbered from 1, the last one opened before ``until``."""
        first = self._threads[0].created_at
        step = (until - first) / (count + 1)
        for number in range(1, count + 1):
            yield self._vary(number, count, first + number * step)

    def _vary(self, number: int, count: int, opened: datetime) -> Thread:
        near = (number - 1) * len(self._threads) // count
        origin = self._random.choice(self._threads)
        other = self._threads[min(len(self._threads) - 1, max(0, near + self._random.randint(-200, 200)))]
        moved = opened - origin.created_at
        return replace(
            origin,
            id=number,
            title=self._mix_sentences(origin.title, other.title, number),
            body=self._mix_sentences(origin.body, other.body, number),
            created_at=opened,
            updated_at=origin.updated_at and origin.updated_at + moved,
            closed_at=origin.closed_at and origin.closed_at + moved,
            merged_at=origin.merged_at and origin.merged_at + moved,
            comments=tuple(self._vary_message(message, moved, number) for message in origin.comments),
            events=tuple(replace(event, at=event.at + moved) for event in origin.events),
        )

    def _vary_message(self, message: Message, moved: timedelta, number: int) -> Message:
        changed = message.updated_at and message.updated_at + moved
        text = self._replace_words(message.text, number)
        return replace(message, text=text, created_at=message.created_at + moved, updated_at=changed)

    def _mix_sentences(self, text: str, other: str, number: int) -> str:
        """The text with some of its sentences replaced by those of the other."""
        sentences, other_sentences = _SENTENCE.split(text), _SENTENCE.split(other)
        mixed = [
            self._random.choice(other_sentences) if self._random.random() < BORROWED else sentence
            for sentence in sentences
        ]
        return self._replace_words("\n".join(mixed) if "\n" in text else " ".join(mixed), number)

    def _replace_words(self, text: str, number: int) -> str:
        # Each further word brings dV/dn = BETA * V / n new ones; the archive's own words suffice up to its size.
        size = number / len(self._threads)
        fresh = BETA * self._vocabulary * size ** (BETA - 1) / len(self._words) if size > 1 else 0.0

        def other(match: re.Match[str]) -> str:
            draw = self._random.random()
            if draw < fresh:
                return self._invent_name()
            if draw < 2 * fresh and self._new:
                return self._random.choice(self._new[-_RECENT:])
            return self._random.choice(self._words) if draw < REPLACED else match[0]

        return _WORD.sub(other, text)

    def _invent_name(self) -> str:
        """A new name made of two words."""
        first, second = self._random.choice(self._words), self._random.choice(self._words)
        self._new.append(f"{first[:12]}_{second[:12]}{len(self._new) % 97}")
        return self._new[-1]
