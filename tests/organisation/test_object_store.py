"""The engine of an organisation's index in an object store, for several processes, and when the store fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.organisation.lance import open_candidates
from bot.recall.candidates import OrganisationUnavailable
from tests.examples import examples
from tests.fakes.s3 import StoredObjects, s3
from tests.organisation.killed_writers import faults_in_table, race_writers
from tests.organisation.test_lance import find_ids, thread


@contextmanager
def object_store(monkeypatch: pytest.MonkeyPatch, bucket: str) -> Iterator[tuple[StoredObjects, str]]:
    """Yield a store and a URL in it. A process caches its connection to a bucket, so each test has its own."""
    with s3() as (objects, environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield objects, f"s3://{bucket}/organisation/"


def test_two_users_of_an_index_in_an_object_store_see_each_others_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        object_store(monkeypatch, "same") as (objects, uri),
        open_candidates(uri, "17") as one,
        open_candidates(uri, "17") as two,
    ):
        one.upsert([thread(1, number, "crash") for number in range(1, 6)])
        assert len(find_ids(two, "crash")) == 5
        two.upsert([thread(1, number, "crash", 2, is_gone=True) for number in (1, 2)])
        assert sorted(find_ids(one, "crash")) == [(1, 3), (1, 4), (1, 5)]
        one.rebuild([thread(2, 1, "crash")])
        two.compact()
        assert find_ids(two, "crash") == [(2, 1)]
        assert two.rarity(["crash"])["crash"] > 0
        assert {key.partition("/17/")[0] for key in objects.contents} == {"organisation"}


def test_several_writers_can_create_the_first_table_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store(monkeypatch, "first") as (_, uri):
        indexes = [open_candidates(uri, "17") for _ in range(4)]
        writes = [
            threading.Thread(target=index.upsert, args=([thread(1, number, "crash"), thread(1, 99, "crash")],))
            for number, index in enumerate(indexes, 1)
        ]
        for write in writes:
            write.start()
        for write in writes:
            write.join()
        assert sorted(find_ids(indexes[0], "crash")) == [(1, 1), (1, 2), (1, 3), (1, 4), (1, 99)]


@pytest.mark.slow
def test_a_search_during_a_rebuild_sees_either_the_old_or_the_new_index(monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store(monkeypatch, "rebuild") as (_, uri), open_candidates(uri, "17") as index:
        index.rebuild([thread(1, number, "crash generation0") for number in range(1, 40)])
        ended = threading.Event()
        generations: list[set[str]] = []
        sizes: list[int] = []

        def search_repeatedly() -> None:
            with open_candidates(uri, "17") as other:
                while not ended.is_set() or len(generations) < 3:
                    hits = other.search(["crash"], {1})
                    sizes.append(len(hits))
                    generations.append({hit.thread.terms[1] for hit in hits})

        searcher = threading.Thread(target=search_repeatedly)
        searcher.start()
        for generation in (1, 2, 3):
            index.rebuild([thread(1, number, f"crash generation{generation}") for number in range(1, 40)])
            index.compact()
        ended.set()
        searcher.join()
        assert set(sizes) == {39}
        assert all(len(each) == 1 for each in generations)
        assert [hit.thread.terms[1] for hit in index.search(["crash"], {1}, limit=1)] == ["generation3"]


def test_a_write_during_a_rebuild_gets_into_the_new_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store(monkeypatch, "swap") as (objects, uri), open_candidates(uri, "17") as index:
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
        assert find_ids(index, "crash") == [(1, 1), (1, 2)]


def test_a_search_in_a_slow_store_times_out_and_the_next_one_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store(monkeypatch, "slow") as (objects, uri), open_candidates(uri, "17") as index:
        index.upsert([thread(1, 1, "crash")])
        objects.delay = 5
        with pytest.raises(OrganisationUnavailable, match="did not answer within 2 s"):
            index.search(["crash"], {1})
        objects.delay = 0
        assert find_ids(index, "crash") == [(1, 1)]


def test_a_store_that_is_down_is_reported_and_works_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store(monkeypatch, "down") as (objects, uri), open_candidates(uri, "17") as index:
        index.upsert([thread(1, 1, "crash")])
        objects.is_down = True
        with pytest.raises(OrganisationUnavailable, match="the index of the organisation"):
            index.search(["crash"], {1})
        objects.is_down = False
        assert find_ids(index, "crash") == [(1, 1)]


@pytest.mark.night
@pytest.mark.slow
def test_writers_that_are_killed_lose_nothing_and_write_nothing_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    total = examples(1_500)  # 300 for a change: 30 batches of each process, with a compaction
    with object_store(monkeypatch, "index"):
        assert race_writers(total, tmp_path) > 0
        assert faults_in_table(total) == []
