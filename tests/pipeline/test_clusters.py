"""Cluster links: only changed threads are compared, and the result equals that of a rebuild."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.changes import Changes, HistoryProgress, Request
from bot.domain.cluster import ClusterLink, ClusterLinks
from bot.domain.thread import FORGOTTEN, Kind, Thread, Tombstone
from bot.github.events import Event
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.paths import record_path
from bot.pipeline.clusters import BATCH_SIZE, link_threads
from bot.recall.clusters import clusters_of
from tests.examples import examples
from tests.pipeline.sample_repository import SampleRepository
from tests.pipeline.test_handle import run_event
from tests.recall.samples import at, duplicate, message, thread

NO_LIMIT = 1e9


def memory_in(folder: Path) -> Memory:
    return Memory(FolderStore(folder / "store"), sleep=lambda _: None).open()


def store_records(memory: Memory, *records: Thread | Tombstone) -> None:
    memory.stage(Changes(records=records))
    memory.commit("Remember")


def damage(folder: Path, key: int) -> None:
    (folder / record_path(key)).write_bytes(b"{")


def compare_threads(
    memory: Memory, seconds: float = NO_LIMIT, clock: Callable[[], float] = lambda: 0.0, day: float = 40
) -> int:
    count = link_threads(memory, at(day), clock, seconds)
    memory.commit("Compare")
    return count


def test_each_thread_is_compared_once_until_it_changes(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    store_records(memory, thread(1), duplicate(2, 1), thread(3))
    assert compare_threads(memory) == 3
    assert [one.id for one in clusters_of(memory)[0].members] == [1, 2]
    assert compare_threads(memory) == 0
    store_records(memory, thread(4), replace(thread(5), kind=Kind.PULL), replace(thread(6), kind=Kind.DISCUSSION))
    assert list(memory.uncompared()) == [4]
    word = message("Duplicate of #1", 20, "hubot", "MEMBER")
    store_records(memory, replace(thread(3), comments=(word,), updated_at=at(20)))
    assert compare_threads(memory) == 2
    assert [one.id for one in clusters_of(memory)[0].members] == [1, 2, 3]
    store_records(memory, Tombstone(2, at(30)))
    assert [one.id for one in clusters_of(memory)[0].members] == [1, 3]
    assert compare_threads(memory) == 0, "what is gone needs no comparison"
    assert 2 not in memory.open().cluster_links()


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(BATCH_SIZE + 2, marks=pytest.mark.slow)])
def test_a_run_out_of_time_leaves_the_older_threads_to_the_next(tmp_path: Path, count: int) -> None:
    """The clock is checked before each thread, even among those whose records are read together."""
    memory = memory_in(tmp_path)
    store_records(memory, *map(thread, range(1, 2 * BATCH_SIZE + 51)))
    moments, progress = iter(range(1_000)), list[int]()
    assert (
        link_threads(memory, at(40), lambda: float(next(moments)), count + 0.5, progress.append)
        == sum(progress)
        == count
    )
    memory.commit("Compare")
    assert list(memory.open().uncompared()) == [*range(2 * BATCH_SIZE + 50 - count, 0, -1)]
    assert compare_threads(memory) == 2 * BATCH_SIZE + 50 - count
    assert memory.open().uncompared() == {}


def test_nothing_is_compared_while_the_history_is_being_read(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    memory.stage(Changes(records=(thread(1),), reading=HistoryProgress(at(1))))
    assert compare_threads(memory) == 0


def test_links_of_the_later_state_of_a_thread_win_between_two_writers(tmp_path: Path) -> None:
    ours, theirs = memory_in(tmp_path), memory_in(tmp_path)
    store_records(ours, duplicate(3, 1), thread(1), thread(2))
    compare_threads(ours)
    theirs.open()
    link_threads(ours, at(40), lambda: 0.0, NO_LIMIT)
    word = message("Duplicate of #1", 20, "hubot", "MEMBER")
    store_records(theirs, replace(thread(2), comments=(word,), updated_at=at(20)))
    old = ClusterLinks(2, thread(2).revised_at, (ClusterLink(3, "alike"),), at(41))
    ours.stage(Changes(links=(old,)))
    ours.commit("Compare")
    assert list(ours.uncompared()) == [2]  # the links of an older state stay no longer than until the next comparison
    compare_threads(ours)
    assert ours.open().cluster_links()[2].links == (ClusterLink(1, "said"),)


def test_a_first_comparison_does_not_skip_what_another_run_wrote_meanwhile(tmp_path: Path) -> None:
    ours, theirs = memory_in(tmp_path), memory_in(tmp_path)
    store_records(ours, thread(1), thread(2))
    theirs.open()
    link_threads(ours, at(40), lambda: 0.0, NO_LIMIT)
    store_records(theirs, duplicate(3, 1))
    ours.commit("Compare")
    assert ours.has_moved
    compare_threads(ours)
    assert [one.id for one in clusters_of(ours.open())[0].members] == [1, 3]


def test_a_thread_hidden_by_github_is_in_no_cluster_whatever_people_said(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    store_records(memory, *(thread(n, author=f"user-{n}") for n in (1, 2, 3)))
    same = Request(3, 7_000, "same", "hubot", at(20), (1, 2), "done")
    memory.stage(Changes(requests=(same,)))
    compare_threads(memory)
    assert [one.id for one in clusters_of(memory)[0].members] == [1, 2, 3]
    memory.stage(Changes(hidden_by_github=(Tombstone(2, at(30), "unseen"),)))
    memory.commit("Hide")
    assert [one.id for one in clusters_of(memory.open())[0].members] == [1, 3]


def test_a_damaged_record_is_skipped_and_does_not_stay_pending_forever(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    store_records(memory, thread(1), thread(2))
    compare_threads(memory)
    store_records(memory, replace(thread(2), body="More", updated_at=at(30)))
    memory.close()
    damage(tmp_path / "store", 2)
    memory = memory_in(tmp_path)
    assert list(memory.uncompared()) == [2]
    assert compare_threads(memory) == 1
    assert memory.open().uncompared() == {}


def test_a_rebuild_compares_all_threads_again(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    store_records(memory, thread(1), duplicate(2, 1))
    compare_threads(memory)
    wrong = ClusterLinks(2, duplicate(2, 1).revised_at, (ClusterLink(9, "said"),), at(41))
    memory.stage(Changes(links=(wrong,)))
    memory.commit("Damage")
    assert clusters_of(memory) == ()
    memory.stage(Changes(read_whole=at(42)))
    assert compare_threads(memory, day=42) == 2
    assert len(clusters_of(memory.open())) == 1


def test_links_to_a_forgotten_thread_are_forgotten(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    store_records(memory, thread(1), thread(2))
    link = ClusterLink(1, "error", "Error: the secret door jammed")
    memory.stage(Changes(links=(ClusterLinks(2, thread(2).revised_at, (link, replace(link, to=3))),)))
    memory.commit("Compare")
    store_records(memory, Tombstone(1, at(30), FORGOTTEN))
    assert [link.to for link in memory.open().cluster_links()[2].links] == [3]


@pytest.mark.slow
def test_a_scheduled_run_finds_clusters_and_people_correct_them(sample: SampleRepository) -> None:
    """Duplicates marked on GitHub make a cluster; commands add another issue to it and remove one."""
    number = sample.github.open_issue("octocat", "No ink", "The printer is dry.")
    sample.github.comment(number, "hubot", "Duplicate of #2", association="MEMBER")
    sample.github.close(number, "hubot", "not_planned")
    run_event(sample, Event("issues", "closed", number))
    assert cluster_ids(sample) == []
    run_event(sample, Event("schedule"))
    assert cluster_ids(sample) == [[2, number]]
    sample.say("/precedent same #2", "hubot")
    assert cluster_ids(sample) == [[2, 3, number]]
    sample.say("/precedent original #3: it has the details", "hubot", on=number)
    memory = sample.memory().open()
    assert clusters_of(memory)[0].canonical == 3
    memory.close()
    sample.say("/precedent different #2", "stranger", on=number)
    assert cluster_ids(sample) == [[2, 3, number]]
    sample.say("/precedent different #2 and #3", "octocat", on=number)
    assert cluster_ids(sample) == [[2, 3]]


def cluster_ids(sample: SampleRepository) -> list[list[int | str]]:
    memory = sample.memory().open()
    try:
        return [[one.id for one in cluster.members] for cluster in clusters_of(memory)]
    finally:
        memory.close()


WORDS = ("door", "window", "cellar", "roof", "garden")
ERRORS = ("Error: the hinge of the door fell off", "Error: no key fits the cellar", "")
REPORTS = st.lists(
    st.tuples(
        st.sampled_from(WORDS),
        st.sampled_from(WORDS),
        st.sampled_from(ERRORS),
        st.sampled_from(("ann", "bob", "cem", "dee")),
        st.integers(0, 5),
    ),
    min_size=2,
    max_size=14,
)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(REPORTS, st.data())
def test_incremental_comparison_finds_the_same_as_a_rebuild(
    reports: list[tuple[str, str, str, str, int]], data: st.DataObject
) -> None:
    threads = [_report(n, *report) for n, report in enumerate(reports, 1)]
    late = data.draw(st.permutations([one for one in threads if one.comments]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(threads)), max_size=3)))
    with TemporaryDirectory() as folder:
        incremental, rebuilt = memory_in(Path(folder) / "little"), memory_in(Path(folder) / "whole")
        # Threads arrive in the order in which they were opened, as from GitHub; comments at any time.
        ordered = sorted(threads, key=lambda one: one.created_at)
        for start, end in zip([0, *cuts], [*cuts, len(threads)], strict=True):
            store_records(incremental, *(replace(one, comments=(), updated_at=None) for one in ordered[start:end]))
            compare_threads(incremental)
        for one in late:
            store_records(incremental, one)
            compare_threads(incremental)
        store_records(rebuilt, *threads)
        compare_threads(rebuilt)
        assert incremental.cluster_links() == rebuilt.cluster_links()
        assert clusters_of(incremental) == clusters_of(rebuilt)
        incremental.close()
        rebuilt.close()


def _report(number: int, one: str, other: str, error: str, author: str, of: int) -> Thread:
    word = message(f"Duplicate of #{of}", number + 100, "hubot", "MEMBER")
    return thread(
        number,
        f"The {one} of the {other} is broken",
        f"I looked at the {one}, and the {other} too.\n\n{error}\n",
        author=author,
        comments=(word,) if 0 < of < number else (),
        updated_at=at(number + 100) if 0 < of < number else None,
    )
