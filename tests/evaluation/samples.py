"""Sample replays of the sample project: written down by hand for single cases, or generated in any number."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.evaluation.results import Backtest, Grade, Relations, Replayed, ShownThread

START = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
THRESHOLD = 0.65
MARKER = "<!-- precedent:v1 id=action -->"

FEATURES = (
    ("Import", ("of a Netscape bookmark file", "of tags from another service", "of 40,000 links", "of an OPML file")),
    ("Search", ("with umlauts", "inside archived pages", "by tag and date", "for a phrase in quotes")),
    ("Snapshot worker", ("behind a proxy", "on ARM", "with a low memory limit", "on pages that need a login")),
    ("Login", ("behind nginx", "with a proxy header", "after the upgrade to 1.4", "in a second browser")),
    ("Backup", ("while the server runs", "of a large database", "to a network share", "from cron")),
    ("Keyboard navigation", ("on a Dvorak layout", "in the archive view", "with a screen reader", "in Firefox")),
)
"""Features of the sample project, and circumstances under which each may fail."""

FAILURES = (
    *("fails with `database is locked`", "returns 502", "loses the last entry", "takes minutes", "shows an empty page"),
    *("stops after the first hundred", "ignores the setting", "does not work", "ends with `ENOSPC`"),
)


def shown(key: int, similarity: float, related: bool = False, **rest: Any) -> ShownThread:
    """A hit, shown if its similarity reaches the samples' threshold."""
    values: dict[str, Any] = {
        "title": "The worker stops",
        "is_open": False,
        "confidence": similarity,
        "is_shown": similarity >= THRESHOLD,
        **rest,
    }
    return ShownThread(id=key, similarity=similarity, related=related, **values)


def replayed(key: int, *hits: ShownThread, rank: int | None = None, ms: float = 10.0, **rest: Any) -> Replayed:
    """A replayed thread; people linked it to its related hits."""
    linked = frozenset(hit.id for hit in hits if hit.related)
    values: dict[str, Any] = {
        "title": "The worker stops at night",
        "created_at": START + timedelta(hours=key),
        "relations": Relations(others=linked),
        "markdown": "### Seen before\n" if any(hit.is_shown for hit in hits) else "",
        **rest,
    }
    return Replayed(id=key, hits=hits, rank=rank, ms=ms, **values)


def backtest(*threads: Replayed, **rest: Any) -> Backtest:
    values: dict[str, Any] = {"threads": 1000, "threshold": THRESHOLD, "wanted": len(threads), "seconds": 1.5, **rest}
    return Backtest(replayed=threads, **values)


def of_every_grade() -> Backtest:
    """Five threads, one of each grade, in the order of the grades."""
    threads = (
        replayed(201, shown(11, 0.9, True), rank=1, relations=Relations(duplicates=frozenset({11}))),
        replayed(202, shown(12, 0.7), shown(13, 0.68, True), rank=2),
        replayed(203, shown(14, 0.66)),
        replayed(204, shown(15, 0.4), rank=7, relations=Relations(others=frozenset({16}))),
        replayed(205, shown(17, 0.3)),
    )
    assert [thread.grade for thread in threads] == list(Grade)
    return backtest(*threads, repo="octocat/linkbarn")


def generated(count: int, seed: int = 7) -> Backtest:
    """A believable replay: about one thread in seven gets a comment, and confidence is informative."""
    rng = random.Random(seed)
    threads = tuple(_thread(1200 + 3 * position, rng) for position in range(count))
    evidence: dict[str, object] = {"ranking": "shipped weights", "calibration": "this repository, 212 labels"}
    return backtest(
        *threads, repo="octocat/linkbarn", threads=2_438, wanted=count, seconds=count * 0.021, evidence=evidence
    )


def _thread(key: int, rng: random.Random) -> Replayed:
    title = _title(rng, rng.choice(FEATURES))
    hits = tuple(sorted(_hits(key, title, rng), key=lambda hit: -hit.similarity))
    linked = frozenset(hit.id for hit in hits if hit.related)
    missed = frozenset({rng.randrange(1, key)} - linked) if rng.random() < 0.08 else frozenset()
    is_duplicate = rng.random() < 0.4
    return Replayed(
        id=key,
        title=title,
        created_at=START + timedelta(hours=(key - 1200) * 2.6),
        hits=hits,
        relations=Relations(linked, missed) if is_duplicate else Relations(others=linked | missed),
        rank=_rank(hits, bool(missed), rng),
        ms=round(rng.lognormvariate(2.6, 0.45), 3),
        markdown=_markdown([hit for hit in hits if hit.is_shown]),
        mentions=int(rng.random() < 0.1),
    )


def _hits(key: int, title: str, rng: random.Random) -> list[ShownThread]:
    hits = []
    for id_ in rng.sample(range(1, key), rng.randrange(6)):
        similarity = round(min(0.98, rng.betavariate(2.0, 4.4)), 3)
        confidence = round(similarity**2 * 0.8, 3)
        feature = (
            next(candidate for candidate in FEATURES if title.startswith(candidate[0]))
            if similarity > 0.4
            else rng.choice(FEATURES)
        )
        older = _title(rng, feature)
        hits.append(
            shown(
                id_,
                similarity,
                rng.random() < confidence,
                title=older,
                is_open=rng.random() < 0.3,
                confidence=confidence,
                why=_why(title, older),
            )
        )
    return hits


def _why(title: str, older: str) -> tuple[str, ...]:
    shared = [word for word in title.split() if len(word) > 3 and "`" not in word and word in older.split()]
    quoted = [text for text in title.split("`")[1:2] if text in older]
    reasons = [f"same error `{text}`" for text in quoted] + [f"words in common: {', '.join(shared)}"] * bool(shared)
    return tuple(reasons or ["words in common: linkbarn, server"])


def _rank(hits: Sequence[ShownThread], missed: bool, rng: random.Random) -> int | None:
    first = next((rank for rank, hit in enumerate(hits, 1) if hit.related), None)
    return first if first or not missed else rng.choice([None, 4, 8, 13, 37, 112])


def _title(rng: random.Random, feature: tuple[str, tuple[str, ...]]) -> str:
    name, circumstances = feature
    return f"{name} {rng.choice(circumstances)} {rng.choice(FAILURES)}"


def _markdown(hits: Sequence[ShownThread]) -> str:
    """A comment in the form of our own."""
    if not hits:
        return ""
    items = "\n".join(map(_item, hits))
    footer = "<sub>Precedent, a bot, looked through 2,438 issues. Not helpful? 👎, or comment `/precedent off`</sub>"
    return f"{MARKER}\n\n**Seen before**\n\n{items}\n{footer}\n"


def _item(hit: ShownThread) -> str:
    title = hit.title.replace("`", "\\`")
    link = f"[{title}](https://github.com/octocat/linkbarn/issues/{hit.id}) (issue {hit.id})"
    folded = "  <details><summary>Show 2 messages</summary>\n\n  > **octocat**, 2026-01-04:\n  > > At night.\n"
    return f"- {link} · **answered**, 12 May 2026\n  *Why:* {', '.join(hit.why)}\n{folded}\n  </details>\n"
