"""What clusters cost and keep: only what changed is compared, and the result is that of a rebuild."""

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
from bot.memory.manifest import MAX_UNLINKED, LinkProgress
from bot.memory.memory import Memory
from bot.memory.places import record_path
from bot.pipeline.clusters import BATCH, link_threads
from bot.recall.clusters import clusters_of
from tests.examples import examples
from tests.pipeline.test_handle import office_runs
from tests.pipeline.test_replies import Office, office, opened
from tests.recall.samples import at, duplicate, said, thread

__all__ = ["office", "opened"]

LONG = 1e9


def memory_in(folder: Path) -> Memory:
    return Memory(FolderStore(folder / "store"), sleep=lambda _: None).open()


def put(memory: Memory, *records: Thread | Tombstone) -> None:
    memory.stage(Changes(records=records))
    memory.commit("Remember")


def damage(folder: Path, key: int) -> None:
    (folder / record_path(key)).write_bytes(b"{")


def compared(memory: Memory, seconds: float = LONG, clock: Callable[[], float] = lambda: 0.0) -> int:
    count = link_threads(memory, clock, seconds)
    memory.commit("Compare")
    return count


def test_each_thread_is_compared_once_until_it_changes(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    put(memory, thread(1), duplicate(2, 1), thread(3))
    assert compared(memory) == 3
    assert [one.id for one in clusters_of(memory)[0].members] == [1, 2]
    assert compared(memory) == 0
    put(memory, thread(4), replace(thread(5), kind=Kind.PULL), replace(thread(6), kind=Kind.DISCUSSION))
    assert memory.state.manifest.links == LinkProgress(0, (4,))
    word = said("Duplicate of #1", 20, "hubot", "MEMBER")
    put(memory, replace(thread(3), comments=(word,), updated_at=at(20)))
    assert compared(memory) == 2
    assert [one.id for one in clusters_of(memory)[0].members] == [1, 2, 3]
    put(memory, Tombstone(2, at(30)))
    assert [one.id for one in clusters_of(memory)[0].members] == [1, 3]
    assert compared(memory) == 1
    assert 2 not in memory.open().cluster_links()


@pytest.mark.parametrize("count", [3, BATCH + 2])
def test_a_run_that_has_no_time_left_leaves_the_older_threads_to_the_next(tmp_path: Path, count: int) -> None:
    """The clock is looked at before each thread, also within those whose records are read together."""
    memory = memory_in(tmp_path)
    put(memory, *map(thread, range(1, 2 * BATCH + 51)))
    moments, told = iter(range(1_000)), list[int]()
    assert link_threads(memory, lambda: float(next(moments)), count + 0.5, told.append) == sum(told) == count
    memory.commit("Compare")
    assert memory.open().state.manifest.links == LinkProgress(2 * BATCH + 51 - count)
    assert compared(memory) == 2 * BATCH + 50 - count
    assert memory.open().state.manifest.links == LinkProgress(0)


def test_nothing_is_compared_while_the_history_is_read(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    memory.stage(Changes(records=(thread(1),), reading=HistoryProgress(at(1))))
    assert compared(memory) == 0


def test_more_changes_than_are_noted_are_all_compared_again() -> None:
    progress = LinkProgress(0).with_changed(range(1, MAX_UNLINKED + 1))
    assert len(progress.behind) == MAX_UNLINKED
    assert progress.with_changed([MAX_UNLINKED + 1]) == LinkProgress()


def test_of_two_writers_the_later_state_of_a_thread_wins(tmp_path: Path) -> None:
    ours, theirs = memory_in(tmp_path), memory_in(tmp_path)
    put(ours, duplicate(3, 1), thread(1), thread(2))
    compared(ours)
    theirs.open()
    link_threads(ours, lambda: 0.0, LONG)
    word = said("Duplicate of #1", 20, "hubot", "MEMBER")
    put(theirs, replace(thread(2), comments=(word,), updated_at=at(20)))
    old = ClusterLinks(2, thread(2).revised_at, (ClusterLink(3, "alike"),))
    ours.stage(Changes(links=(old,), linked_to=0))
    ours.commit("Compare")
    assert 2 not in ours.cluster_links()  # what was found for an older state does not count …
    assert ours.state.manifest.links == LinkProgress(0, (2,))  # … and the thread is still to be compared
    compared(ours)
    assert ours.open().cluster_links()[2].links == (ClusterLink(1, "said"),)


def test_a_first_comparison_does_not_pass_over_what_another_run_wrote_meanwhile(tmp_path: Path) -> None:
    ours, theirs = memory_in(tmp_path), memory_in(tmp_path)
    put(ours, thread(1), thread(2))
    theirs.open()
    link_threads(ours, lambda: 0.0, LONG)
    put(theirs, duplicate(3, 1))
    ours.commit("Compare")
    assert ours.has_moved
    compared(ours)
    assert [one.id for one in clusters_of(ours.open())[0].members] == [1, 3]


def test_a_thread_that_github_hides_is_in_no_cluster_whatever_people_said(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    put(memory, *(thread(n, author=f"user-{n}") for n in (1, 2, 3)))
    same = Request(3, 7_000, "same", "hubot", at(20), (1, 2), "done")
    memory.stage(Changes(requests=(same,)))
    compared(memory)
    assert [one.id for one in clusters_of(memory)[0].members] == [1, 2, 3]
    memory.stage(Changes(unseen=(Tombstone(2, at(30), "unseen"),)))
    memory.commit("Hide")
    assert [one.id for one in clusters_of(memory.open())[0].members] == [1, 3]


def test_a_damaged_record_is_compared_with_nothing_and_does_not_wait_forever(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    put(memory, thread(1), thread(2))
    compared(memory)
    put(memory, replace(thread(2), body="More", updated_at=at(30)))
    memory.close()
    damage(tmp_path / "store", 2)
    memory = memory_in(tmp_path)
    assert memory.state.manifest.links == LinkProgress(0, (2,))
    assert compared(memory) == 1
    assert list(memory.open().state.uncompared()) == []


def test_a_rebuild_compares_all_again(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    put(memory, thread(1), duplicate(2, 1))
    compared(memory)
    wrong = ClusterLinks(2, duplicate(2, 1).revised_at, (ClusterLink(9, "said"),))
    memory.stage(Changes(links=(wrong,)))
    memory.commit("Damage")
    assert clusters_of(memory) == ()
    memory.stage(Changes(relink=True))
    assert compared(memory) == 2
    assert len(clusters_of(memory.open())) == 1


def test_what_a_forgotten_thread_shared_is_forgotten(tmp_path: Path) -> None:
    memory = memory_in(tmp_path)
    put(memory, thread(1), thread(2))
    link = ClusterLink(1, "error", "Error: the secret door jammed")
    memory.stage(Changes(links=(ClusterLinks(2, thread(2).revised_at, (link, replace(link, to=3))),)))
    memory.commit("Compare")
    put(memory, Tombstone(1, at(30), FORGOTTEN))
    assert [link.to for link in memory.open().cluster_links()[2].links] == [3]


def test_a_scheduled_run_finds_clusters_and_people_correct_them(office: Office) -> None:
    """Duplicates marked at GitHub make a cluster; commands join another issue to it, and put one apart."""
    number = office.github.open_issue("octocat", "No ink", "The printer is dry.")
    office.github.comment(number, "hubot", "Duplicate of #2", association="MEMBER")
    office.github.close(number, "hubot", "not_planned")
    office_runs(office, Event("issues", "closed", number))
    assert found(office) == []
    office_runs(office, Event("schedule"))
    assert found(office) == [[2, number]]
    office.say("/precedent same #2", "hubot")
    assert found(office) == [[2, 3, number]]
    office.say("/precedent original #3: it has the details", "hubot", on=number)
    memory = office.memory().open()
    assert clusters_of(memory)[0].canonical == 3
    memory.close()
    office.say("/precedent different #2", "stranger", on=number)
    assert found(office) == [[2, 3, number]]
    office.say("/precedent different #2 and #3", "octocat", on=number)
    assert found(office) == [[2, 3]]


def found(office: Office) -> list[list[int | str]]:
    memory = office.memory().open()
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
def test_what_is_compared_little_by_little_is_what_a_rebuild_finds(
    reports: list[tuple[str, str, str, str, int]], data: st.DataObject
) -> None:
    threads = [_report(n, *report) for n, report in enumerate(reports, 1)]
    late = data.draw(st.permutations([one for one in threads if one.comments]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(threads)), max_size=3)))
    with TemporaryDirectory() as folder:
        little, whole = memory_in(Path(folder) / "little"), memory_in(Path(folder) / "whole")
        # Threads come in the order of their opening, as GitHub gives them; comments at any time.
        ordered = sorted(threads, key=lambda one: one.created_at)
        for start, end in zip([0, *cuts], [*cuts, len(threads)], strict=True):
            put(little, *(replace(one, comments=(), updated_at=None) for one in ordered[start:end]))
            compared(little)
        for one in late:
            put(little, one)
            compared(little)
        put(whole, *threads)
        compared(whole)
        assert little.cluster_links() == whole.cluster_links()
        assert clusters_of(little) == clusters_of(whole)
        little.close()
        whole.close()


def _report(number: int, one: str, other: str, error: str, author: str, of: int) -> Thread:
    word = said(f"Duplicate of #{of}", number + 100, "hubot", "MEMBER")
    return thread(
        number,
        f"The {one} of the {other} is broken",
        f"I looked at the {one}, and the {other} too.\n\n{error}\n",
        author=author,
        comments=(word,) if 0 < of < number else (),
        updated_at=at(number + 100) if 0 < of < number else None,
    )
