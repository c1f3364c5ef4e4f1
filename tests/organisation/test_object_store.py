"""The engine of an organisation's index in an object store, for several processes, and when the store fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from bot.organisation.lance import SEARCH_SECONDS, open_candidates
from bot.recall.candidates import OrganisationUnavailable
from tests.examples import examples
from tests.fakes.s3 import Objects, s3
from tests.organisation.test_lance import found, thread
from tests.organisation.writers import race, wrong


@contextmanager
def place(monkeypatch: pytest.MonkeyPatch, bucket: str) -> Iterator[tuple[Objects, str]]:
    """A store, and an address in it. One process keeps the way to a bucket, so that each test has its own."""
    with s3() as (objects, environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield objects, f"s3://{bucket}/organisation/"


def test_it_is_the_same_index_in_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        place(monkeypatch, "same") as (objects, uri),
        open_candidates(uri, "17") as one,
        open_candidates(uri, "17") as two,
    ):
        one.upsert([thread(1, number, "crash") for number in range(1, 6)])
        assert len(found(two, "crash")) == 5
        two.upsert([thread(1, 1, "crash", 2, is_gone=True)])
        two.delete(1, [2])
        assert sorted(found(one, "crash")) == [(1, 3), (1, 4), (1, 5)]
        one.rebuild([thread(2, 1, "crash")])
        two.compact()
        assert found(two, "crash") == [(2, 1)]
        assert two.rarity(["crash"])["crash"] > 0
        assert {key.partition("/17/")[0] for key in objects.contents} == {"organisation"}


def test_of_two_that_make_the_first_table_one_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    with place(monkeypatch, "first") as (_, uri):
        indexes = [open_candidates(uri, "17") for _ in range(4)]
        writes = [
            threading.Thread(target=index.upsert, args=([thread(1, number, "crash"), thread(1, 99, "crash")],))
            for number, index in enumerate(indexes, 1)
        ]
        for write in writes:
            write.start()
        for write in writes:
            write.join()
        assert sorted(found(indexes[0], "crash")) == [(1, 1), (1, 2), (1, 3), (1, 4), (1, 99)]


def test_a_search_during_a_rebuild_sees_the_old_or_the_new_and_never_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    with place(monkeypatch, "rebuild") as (_, uri), open_candidates(uri, "17") as index:
        index.rebuild([thread(1, number, "crash generation0") for number in range(1, 40)])
        ended = threading.Event()
        seen: list[set[str]] = []
        sizes: list[int] = []

        def look() -> None:
            with open_candidates(uri, "17") as other:
                while not ended.is_set() or len(seen) < 3:
                    hits = other.search(["crash"], {1})
                    sizes.append(len(hits))
                    seen.append({hit.thread.terms[1] for hit in hits})

        searcher = threading.Thread(target=look)
        searcher.start()
        for generation in (1, 2, 3):
            index.rebuild([thread(1, number, f"crash generation{generation}") for number in range(1, 40)])
            index.compact()
        ended.set()
        searcher.join()
        assert set(sizes) == {39}
        assert all(len(each) == 1 for each in seen)
        assert [hit.thread.terms[1] for hit in index.search(["crash"], {1}, limit=1)] == ["generation3"]


def test_a_write_during_which_a_rebuild_swaps_is_in_the_new_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    with place(monkeypatch, "swap") as (objects, uri), open_candidates(uri, "17") as index:
        index.upsert([thread(1, 1, "crash")])
        keys: list[str] = []

        def swap(key: str) -> None:
            if "/threads-" in key and "/_versions/" in key and not keys:
                keys.append(key)  # the write is about to become a version of the old table
                with open_candidates(uri, "17") as other:
                    other.rebuild([thread(1, 1, "crash")])

        objects.before_write = swap
        index.upsert([thread(1, 2, "crash")])
        assert keys
        assert found(index, "crash") == [(1, 1), (1, 2)]


def test_a_search_in_a_slow_store_is_given_up_and_the_next_one_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    with place(monkeypatch, "slow") as (objects, uri), open_candidates(uri, "17") as index:
        index.upsert([thread(1, 1, "crash")])
        objects.delay = 5
        begun = monotonic()
        with pytest.raises(OrganisationUnavailable, match="did not answer within 2 s"):
            index.search(["crash"], {1})
        assert monotonic() - begun < SEARCH_SECONDS + 1
        objects.delay = 0
        assert found(index, "crash") == [(1, 1)]


def test_a_store_that_is_down_is_told_in_time_and_it_heals_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with place(monkeypatch, "down") as (objects, uri), open_candidates(uri, "17") as index:
        index.upsert([thread(1, 1, "crash")])
        objects.is_down = True
        begun = monotonic()
        with pytest.raises(OrganisationUnavailable, match="the index of the organisation"):
            index.search(["crash"], {1})
        assert monotonic() - begun < SEARCH_SECONDS + 1
        objects.is_down = False
        assert found(index, "crash") == [(1, 1)]


@pytest.mark.slow
def test_two_processes_that_are_killed_lose_nothing_and_write_nothing_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    total = examples(1_500)  # 300 for a change: 30 batches of each process, with a compaction
    with s3() as (_, environment):
        for name, value in environment.items():
            monkeypatch.setitem(os.environ, name, value)
        kills, _ = race(total, 1, tmp_path, longest=3)
        assert kills > 0
        assert wrong(total) == []
