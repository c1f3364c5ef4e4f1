"""Replay of an archive through the Action: memory ends as after an import, with at most one comment per issue."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.domain.thread import Thread
from bot.domain.thread_json import thread_from_archive
from tests.acceptance.replay import comparable, read_threads, replay
from tests.acceptance.stage import BOT, Stage, with_mentions
from tests.examples import THOROUGH

ARCHIVE = os.environ.get("REPLAY_ARCHIVE", "ietf_mls-protocol" if THOROUGH else "ietf_qlog")
IS_WHOLE = THOROUGH or "REPLAY_ARCHIVE" in os.environ
THREADS_AT_MOST = int(os.environ.get("REPLAY_THREADS", "10000" if IS_WHOLE else "40"))


@pytest.mark.shared
@pytest.mark.night
@pytest.mark.slow
def test_replaying_an_archive_gives_the_same_memory_as_importing_it(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = dict(sorted(read_threads(shared / "threads" / f"{ARCHIVE}.jsonl.gz").items())[:THREADS_AT_MOST])
    stage = Stage(tmp_path, now="2010-01-01T00:00:00Z")
    try:
        with_mentions(stage)
        tally = replay(stage, threads)
        assert stage.act("schedule") == 0
        exported = [without_our_comments(thread) for thread in stage.github.export_archive()]
        expected = {thread["id"]: comparable(thread_from_archive(thread)) for thread in exported}
        actual = {r.id: comparable(r) for r in stage.memory().state.every_record() if isinstance(r, Thread)}
    finally:
        stage.close()
    with capsys.disabled():
        print(f"\n{ARCHIVE}: {len(threads)} threads, spoke on {sum(map(bool, tally.comments.values()))}")
        for suffix, by_name in (("", tally.costs), (" on what we show", tally.costs_of_shown)):
            for name, costs in by_name.items():
                counts = ", ".join(f"{r} reads {w} writes × {n}" for (r, w), n in costs.most_common())
                print(f"  {name}{suffix}: {counts}")
    assert tally.failures == []
    assert differences(actual, expected) == []
    assert max(tally.comments.values()) <= 1
    assert stage.github.violations == []
    assert _share_within(tally.costs, reads=2, writes=1) >= 0.95
    assert _share_within(tally.costs_of_shown, reads=5, writes=2) >= 0.95


def _share_within(by_name: Mapping[str, Counter[tuple[int, int]]], *, reads: int, writes: int) -> float:
    costs = Counter(cost for counter in by_name.values() for cost in counter.elements())
    return sum(n for (r, w), n in costs.items() if r <= reads and w <= writes) / max(1, costs.total())


def differences(actual: dict, expected: dict) -> list[str]:
    """Each field of each thread that differs from what is expected."""
    missing = [f"{key} is missing" for key in expected.keys() ^ actual.keys()]
    return missing + [
        f"{key}.{name}: {actual[key].get(name)!r:.300} instead of {expected[key].get(name)!r:.300}"
        for key in expected.keys() & actual.keys()
        for name in expected[key].keys() | actual[key].keys()
        if actual[key].get(name) != expected[key].get(name)
    ]


def without_our_comments(thread: dict) -> dict:
    return thread | {"comments": [comment for comment in thread["comments"] if comment["author"] != BOT]}
