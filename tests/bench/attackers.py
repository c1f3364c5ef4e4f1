"""Accounts that flood a tracker with issues, each in its own way, for `tests.bench.poison`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from bot.domain.thread import Message, Thread
from bot.reading.signals import read_signals
from bot.reading.word_lists import COMMON_WORDS

FIRST_NUMBER = 10_000_000
"""Numbers from here on are the flood's."""

WORDS = 60
"""Words of a stuffed issue."""


@dataclass(frozen=True)
class Tracker:
    """What an attacker reads: everything that was written before, and, at worst, what will be asked."""

    threads: Sequence[Thread]
    asked: Sequence[Thread]

    @property
    def begin(self) -> datetime:
        """A second after the last issue before the flood."""
        return self.threads[-1].created_at + timedelta(microseconds=1)

    @cached_property
    def frequent(self) -> list[str]:
        """The content words that most issues have, the most frequent first."""
        counts = Counter(word for one in self.threads for word in {*f"{one.title} {one.body}".lower().split()})
        return [word for word, _ in counts.most_common(600) if word.isalpha() and word not in COMMON_WORDS][:300]

    @cached_property
    def popular(self) -> list[Thread]:
        """The issues that were talked about most."""
        return sorted(self.threads, key=lambda one: -len(one.comments))


Attack = Callable[[Tracker, int, random.Random], list[Thread]]


def stuffed(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """Many of the most frequent words, in any order."""
    texts = [chance.sample(tracker.frequent, min(WORDS, len(tracker.frequent))) for _ in range(count)]
    return [_issue(tracker, n, " ".join(words[:8]), " ".join(words)) for n, words in enumerate(texts)]


def rare(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """Errors, files and identifiers of five real issues each, with their titles."""
    found = []
    for n in range(count):
        sources = chance.sample(list(tracker.threads), 5)
        signals = [read_signals(f"{one.title}\n{one.body}") for one in sources]
        parts = [part for one in signals for part in (*one.errors[:4], *one.files[:4], *one.identifiers[:12])]
        found.append(_issue(tracker, n, sources[0].title, "\n".join([*(one.title for one in sources), *parts])))
    return found


def copies(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """Near-duplicates of the most discussed issues: a few words are changed."""
    sources = [tracker.popular[n % min(count, len(tracker.popular))] for n in range(count)]
    return [_copy(tracker, n, one, chance) for n, one in enumerate(sources)]


def foreseen(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The worst there can be: copies of the very issues that will be asked, opened before them."""
    return [_copy(tracker, n, tracker.asked[n % len(tracker.asked)], chance) for n in range(count)]


def ten_accounts(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The foreseen copies, by ten accounts."""
    return [replace(one, **_by(f"spammer{n % 10}")) for n, one in enumerate(foreseen(tracker, count, chance))]


def many_accounts(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The foreseen copies, each by an account of its own."""
    return [replace(one, **_by(f"spammer{n}")) for n, one in enumerate(foreseen(tracker, count, chance))]


def folded(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The foreseen copies, all closed as duplicates of the first one."""
    return _with_word(foreseen(tracker, count, chance), f"Duplicate of #{FIRST_NUMBER}.")


def folded_into_one(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The foreseen copies, all closed as duplicates of an innocent issue."""
    return _with_word(foreseen(tracker, count, chance), f"Duplicate of #{tracker.threads[0].id}.")


def boosted(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The foreseen copies, with twenty comments and reactions each, all by the same account."""
    found = []
    for one in foreseen(tracker, count, chance):
        said = [
            Message(one.author, "NONE", one.created_at + timedelta(microseconds=n + 1), "Solved! Works, thank you.")
            for n in range(20)
        ]
        found.append(replace(one, comments=tuple(said), reactions=(("+1", 20), ("heart", 20))))
    return found


def still_open(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The foreseen copies, left open."""
    return [
        replace(one, state="open", state_reason=None, closed_at=None, closed_by=None)
        for one in foreseen(tracker, count, chance)
    ]


def ten_open(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The foreseen copies, left open, by ten accounts."""
    found = still_open(tracker, count, chance)
    return [replace(one, author=f"spammer{n % 10}") for n, one in enumerate(found)]


def answered(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The foreseen copies, each with a reply by a second account. This is not stopped: others took part."""
    found = []
    for one in foreseen(tracker, count, chance):
        said = Message("spammer2", "NONE", one.created_at + timedelta(microseconds=1), "Works for me now.")
        found.append(replace(one, comments=(said,)))
    return found


def contributor(tracker: Tracker, count: int, chance: random.Random) -> list[Thread]:
    """The foreseen copies, by somebody who has committed. This is not stopped: they are known here."""
    return [replace(one, role="CONTRIBUTOR") for one in foreseen(tracker, count, chance)]


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
    """Opened in a flood of an issue a minute, and closed as completed at once."""
    at = tracker.begin + number * _step(tracker)
    return Thread(
        *(FIRST_NUMBER + number, title, body, "spammer", at),
        state="closed",
        state_reason="completed",
        closed_at=at + timedelta(microseconds=50),
        closed_by="spammer",
    )


def _step(tracker: Tracker) -> timedelta:
    """So short that the whole flood comes before the next issue."""
    return timedelta(microseconds=100)


def _copy(tracker: Tracker, number: int, source: Thread, chance: random.Random) -> Thread:
    """One word in ten is another."""
    return _issue(tracker, number, _varied(source.title, chance), _varied(source.body, chance))


def _varied(text: str, chance: random.Random) -> str:
    lines = [[w if chance.random() > 0.1 else "really" for w in line.split(" ")] for line in text.split("\n")]
    return "\n".join(" ".join(words) for words in lines)


def _by(account: str) -> dict[str, str]:
    return {"author": account, "closed_by": account}


def _with_word(flood: Sequence[Thread], text: str) -> list[Thread]:
    return [
        replace(one, comments=(Message(one.author, "NONE", one.created_at + timedelta(microseconds=10), text),))
        for one in flood
    ]
