"""Accounts that flood a tracker with issues, each in its own way, for `bench.flood`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from bot.domain.thread import Message, Thread
from bot.reading.signals import find_errors, find_files, find_identifiers
from bot.reading.word_lists import COMMON_WORDS

FIRST_NUMBER = 10_000_000
"""The flood's issues have numbers from here on."""

WORDS = 60
"""How many words a stuffed issue has."""


@dataclass(frozen=True)
class Tracker:
    """What an attacker knows: all older threads, and at worst the issues that will be opened later."""

    threads: Sequence[Thread]
    targets: Sequence[Thread]

    @property
    def begin(self) -> datetime:
        """Right after the last issue before the flood."""
        return self.threads[-1].created_at + timedelta(microseconds=1)

    @cached_property
    def frequent(self) -> list[str]:
        """The most frequent content words, in descending order."""
        counts = Counter(word for thread in self.threads for word in {*f"{thread.title} {thread.body}".lower().split()})
        return [word for word, _ in counts.most_common(600) if word.isalpha() and word not in COMMON_WORDS][:300]

    @cached_property
    def popular(self) -> list[Thread]:
        """The most discussed issues first."""
        return sorted(self.threads, key=lambda thread: -len(thread.comments))


Attack = Callable[[Tracker, int, random.Random], list[Thread]]


def stuffed(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """Many of the most frequent words, in any order."""
    texts = [rng.sample(tracker.frequent, min(WORDS, len(tracker.frequent))) for _ in range(count)]
    return [_issue(tracker, n, " ".join(words[:8]), " ".join(words)) for n, words in enumerate(texts)]


def _rare_parts(text: str) -> tuple[str, ...]:
    return (*find_errors(text)[:4], *find_files(text)[:4], *find_identifiers(text)[:12])


def rare(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """Errors, files and identifiers of five real issues each, with their titles."""
    issues = []
    for n in range(count):
        sources = rng.sample(list(tracker.threads), 5)
        parts = [part for source in sources for part in _rare_parts(f"{source.title}\n{source.body}")]
        issues.append(_issue(tracker, n, sources[0].title, "\n".join([*(source.title for source in sources), *parts])))
    return issues


def copies(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """Near-duplicates of the most discussed issues: a few words are changed."""
    sources = [tracker.popular[n % min(count, len(tracker.popular))] for n in range(count)]
    return [_copy(tracker, n, thread, rng) for n, thread in enumerate(sources)]


def foreseen(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The worst case: copies of the very issues that will be opened later, opened before them."""
    return [_copy(tracker, n, tracker.targets[n % len(tracker.targets)], rng) for n in range(count)]


def ten_accounts(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The foreseen copies, by ten accounts."""
    return [replace(thread, **_by(f"spammer{n % 10}")) for n, thread in enumerate(foreseen(tracker, count, rng))]


def many_accounts(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The foreseen copies, each by a different account."""
    return [replace(thread, **_by(f"spammer{n}")) for n, thread in enumerate(foreseen(tracker, count, rng))]


def folded(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The foreseen copies, all closed as duplicates of the first one."""
    return _with_word(foreseen(tracker, count, rng), f"Duplicate of #{FIRST_NUMBER}.")


def folded_into_one(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The foreseen copies, all closed as duplicates of an innocent issue."""
    return _with_word(foreseen(tracker, count, rng), f"Duplicate of #{tracker.threads[0].id}.")


def boosted(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The foreseen copies, with twenty comments each, all by the same account."""
    threads = []
    for copy in foreseen(tracker, count, rng):
        praise = [
            Message(copy.author, "NONE", copy.created_at + timedelta(microseconds=n + 1), "Solved! Works, thank you.")
            for n in range(20)
        ]
        threads.append(replace(copy, comments=tuple(praise)))
    return threads


def still_open(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The foreseen copies, left open."""
    return [
        replace(thread, state="open", state_reason=None, closed_at=None, closed_by=None)
        for thread in foreseen(tracker, count, rng)
    ]


def ten_open(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The foreseen copies, left open, by ten accounts."""
    threads = still_open(tracker, count, rng)
    return [replace(thread, author=f"spammer{n % 10}") for n, thread in enumerate(threads)]


def answered(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The foreseen copies, each with a reply by a second account. The defence does not stop this: others took part."""
    threads = []
    for copy in foreseen(tracker, count, rng):
        reply = Message("spammer2", "NONE", copy.created_at + timedelta(microseconds=1), "Works for me now.")
        threads.append(replace(copy, comments=(reply,)))
    return threads


def contributor(tracker: Tracker, count: int, rng: random.Random) -> list[Thread]:
    """The foreseen copies, by a contributor. The defence does not stop this: the account is known."""
    return [replace(thread, role="CONTRIBUTOR") for thread in foreseen(tracker, count, rng)]


KINDS: dict[str, Attack] = {
    "foreseen": foreseen,
    "copies": copies,
    "rare": rare,
    "stuffed": stuffed,
    "10 accounts": ten_accounts,
    "accounts": many_accounts,
    "folded": folded,
    "folded away": folded_into_one,
    "boosted": boosted,
    "open": still_open,
    "10 open": ten_open,
    "answered": answered,
    "contributor": contributor,
}


def _issue(tracker: Tracker, number: int, title: str, body: str) -> Thread:
    """An issue of the flood, closed as completed right away."""
    at = tracker.begin + number * _step(tracker)
    return Thread(
        *(FIRST_NUMBER + number, title, body, "spammer", at),
        state="closed",
        state_reason="completed",
        closed_at=at + timedelta(microseconds=50),
        closed_by="spammer",
    )


def _step(tracker: Tracker) -> timedelta:
    """The time between two issues, so short that the whole flood comes before the next real issue."""
    return timedelta(microseconds=100)


def _copy(tracker: Tracker, number: int, source: Thread, rng: random.Random) -> Thread:
    """A copy with one word in ten replaced."""
    return _issue(tracker, number, _varied(source.title, rng), _varied(source.body, rng))


def _varied(text: str, rng: random.Random) -> str:
    lines = [[w if rng.random() > 0.1 else "really" for w in line.split(" ")] for line in text.split("\n")]
    return "\n".join(" ".join(words) for words in lines)


def _by(account: str) -> dict[str, str]:
    return {"author": account, "closed_by": account}


def _with_word(flood: Sequence[Thread], text: str) -> list[Thread]:
    return [
        replace(
            thread, comments=(Message(thread.author, "NONE", thread.created_at + timedelta(microseconds=10), text),)
        )
        for thread in flood
    ]
