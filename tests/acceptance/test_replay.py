"""A whole archive through the Action: the branch ends as an import of it, with one comment at most on each issue."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.domain.thread import Thread
from bot.domain.thread_json import thread_from_archive
from tests.acceptance.replay import comparable, read, replay
from tests.acceptance.stage import BOT, Stage
from tests.examples import THOROUGH

ARCHIVE = os.environ.get("REPLAY_ARCHIVE", "ietf_mls-protocol" if THOROUGH else "ietf_qlog")
IS_WHOLE = THOROUGH or "REPLAY_ARCHIVE" in os.environ
THREADS_AT_MOST = int(os.environ.get("REPLAY_THREADS", "10000" if IS_WHOLE else "40"))


@pytest.mark.shared
@pytest.mark.slow
def test_a_replayed_archive_leaves_the_branch_as_an_import_of_it(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = dict(sorted(read(shared / "threads" / f"{ARCHIVE}.jsonl.gz").items())[:THREADS_AT_MOST])
    stage = Stage(tmp_path, now="2010-01-01T00:00:00Z")
    try:
        tally = replay(stage, threads)
        assert stage.act("schedule") == 0
        exported = [_without_own(thread) for thread in stage.github.export_archive()]
        wanted = {thread["id"]: comparable(thread_from_archive(thread)) for thread in exported}
        found = {r.id: comparable(r) for r in stage.memory().state.every_record() if isinstance(r, Thread)}
    finally:
        stage.close()
    with capsys.disabled():
        print(f"\n{ARCHIVE}: {len(threads)} threads, spoke on {sum(map(bool, tally.comments.values()))}")
        for where, by_name in (("", tally.costs), (" on what we show", tally.costs_of_shown)):
            for name, costs in by_name.items():
                told = ", ".join(f"{r} reads {w} writes × {n}" for (r, w), n in costs.most_common())
                print(f"  {name}{where}: {told}")
    assert tally.failures == []
    assert differences(found, wanted) == []
    assert max(tally.comments.values()) <= 1
    assert stage.github.violations == []
    assert _share_within(tally.costs, reads=2, writes=1) >= 0.95
    assert _share_within(tally.costs_of_shown, reads=5, writes=2) >= 0.95


def _share_within(by_name: Mapping[str, Counter[tuple[int, int]]], *, reads: int, writes: int) -> float:
    costs = Counter(cost for counter in by_name.values() for cost in counter.elements())
    return sum(n for (r, w), n in costs.items() if r <= reads and w <= writes) / max(1, costs.total())


def differences(found: dict, wanted: dict) -> list[str]:
    """Each field of each thread that is not as it should be."""
    missing = [f"{key} is missing" for key in wanted.keys() ^ found.keys()]
    return missing + [
        f"{key}.{name}: {found[key].get(name)!r:.300} instead of {wanted[key].get(name)!r:.300}"
        for key in wanted.keys() & found.keys()
        for name in wanted[key].keys() | found[key].keys()
        if found[key].get(name) != wanted[key].get(name)
    ]


def _without_own(thread: dict) -> dict:
    return thread | {"comments": [comment for comment in thread["comments"] if comment["author"] != BOT]}
