"""A write after the memory was deleted, set back or replaced since it was read.

What a run claims to have read counts only if the memory still has the state on which the run built.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.changes import Changes, HistoryProgress, Request
from bot.domain.post import Post
from bot.domain.thread import Kind, Thread
from bot.memory.memory import BRANCH_RESET, Memory
from bot.memory.model_store import ModelUpdate
from bot.pipeline.setup import page_sources
from bot.ranking.weights import shipped
from bot.sources.pages import refresh_pages
from tests.memory.remotes import HostedRepository, git
from tests.memory.samples import ON_BRANCH_TOO, StoredMemory, at, issue
from tests.sources.projects import REPO, Project
from tests.sources.test_pages import release

BRANCH = "refs/heads/precedent"
FIRST_PAGES = {"docs": "c0", "wiki": "w0", "releases": "r0"}
SECOND_PAGES = {"docs": "c1", "wiki": "w1", "releases": "r1"}
THIRD_PAGES = {"docs": "c2", "releases": "r2"}


def page(name: str, revision: float = 1) -> Thread:
    return replace(issue(name, revision), kind=Kind.PAGE)


def pages(states: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(states.items())


def write(stored: StoredMemory, changes: Changes) -> None:
    memory = stored.memory()
    memory.stage(changes)
    memory.commit("before")


FIRST = Changes(records=(issue(1), page("docs:a.md"), page("docs:b.md")), pages=pages(FIRST_PAGES), cursor=at(1))
SECOND = Changes(
    records=(issue(2, 2), page("docs:b.md", 2)),
    posts=(Post(2, "pending", at(2), reason="it was read as history"),),
    pages=pages(SECOND_PAGES),
    cursor=at(2),
)
THIRD = Changes(
    records=(issue(3, 3), page("docs:c.md", 3)),
    posts=(Post(3, "pending", at(3), content="x"),),
    requests=(Request(3, 30, "search", "octocat", at(3)),),
    pages=pages(THIRD_PAGES),
    cursor=at(3),
)


@pytest.fixture
def stored(stored: StoredMemory) -> StoredMemory:
    """A memory after two runs."""
    for changes in (FIRST, SECOND):
        write(stored, changes)
        keep(stored, changes is FIRST)
    return stored


def keep(stored: StoredMemory, is_first: bool) -> None:
    """Keep a copy of the folder after the first run; a branch keeps its own history."""
    if is_first and not stored.hosted:
        shutil.copytree(stored.folder, stored.folder.with_name("first"))


def delete(stored: StoredMemory) -> None:
    if stored.hosted:
        git(stored.hosted.repository, "update-ref", "-d", BRANCH)
    else:
        shutil.rmtree(stored.folder)


def set_back(stored: StoredMemory) -> None:
    if stored.hosted:
        git(stored.hosted.repository, "update-ref", BRANCH, f"{BRANCH}^")
    else:
        delete(stored)
        shutil.copytree(stored.folder.with_name("first"), stored.folder)


def put_another(stored: StoredMemory) -> None:
    """Put another memory there, with a later cursor and other pages."""
    delete(stored)
    write(stored, Changes(records=(issue(9, 9),), pages=pages({"docs": "c9"}), cursor=at(9)))


Move = Callable[[StoredMemory], None]
MOVES: tuple[Move, ...] = (delete, set_back, put_another)


@ON_BRANCH_TOO
@pytest.mark.parametrize(
    ("move", "states", "cursor"),
    [(delete, {}, None), (set_back, FIRST_PAGES, at(1)), (put_another, {"docs": "c9"}, at(9))],
    ids=["deleted", "set back", "replaced"],
)
def test_reading_progress_is_dropped_when_the_memory_no_longer_has_what_it_builds_on(
    stored: StoredMemory, move: Move, states: dict[str, str], cursor: object
) -> None:
    memory = stored.memory()
    memory.stage(THIRD)
    move(stored)
    assert memory.commit("third")
    assert (BRANCH_RESET in memory.notes) is (cursor != at(9))
    manifest = stored.memory().state.manifest
    assert (dict(manifest.pages), manifest.cursor) == (states, cursor)
    assert set(stored.memory().records([3, "docs:c.md"])) == {3, "docs:c.md"}
    assert manifest.pending == (3,), "promised answers and requests survive"
    assert [request.comment_id for request in manifest.requests_since(at(0))] == [30]


@pytest.mark.parametrize("move", MOVES)
def test_later_changes_claim_no_progress_until_the_memory_is_opened_again(stored: StoredMemory, move: Move) -> None:
    memory = stored.memory()
    memory.stage(THIRD)
    move(stored)
    memory.commit("third")
    cursor_before = memory.state.manifest.cursor
    memory.stage(
        Changes(records=(issue(4, 4),), cursor=at(10), reading=HistoryProgress(at(0), at(4)), read_whole=at(0))
    )
    memory.commit("fourth")
    progress_counts = move is put_another
    assert memory.state.manifest.cursor == (at(10) if progress_counts else cursor_before)
    assert (memory.state.manifest.reading is not None, memory.state.manifest.read_whole) == (
        False,
        at(0) if progress_counts else None,
    )
    memory.open().stage(Changes(records=(issue(5, 5),), cursor=at(11)))
    memory.commit("fifth")
    assert stored.memory().state.manifest.cursor == at(11)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("is_finished", [False, True], ids=["goes on", "ends"])
def test_bulk_reading_of_the_history_does_not_continue_on_a_moved_memory(
    stored: StoredMemory, move: Move, is_finished: bool
) -> None:
    write(stored, Changes(reading=HistoryProgress(at(2), at(1), frozenset({1, 2}))))
    memory = stored.memory()
    memory.stage(Changes(records=(issue(3, 3),), reading=HistoryProgress(at(2), at(2), frozenset({3}))))
    if is_finished:
        memory.stage(Changes(read_whole=at(2)))
    move(stored)
    memory.commit("third")
    manifest = stored.memory().state.manifest
    assert (manifest.reading, manifest.read_whole) == (None, None)


@pytest.mark.parametrize("move", MOVES)
def test_learned_from_never_exceeds_the_number_of_threads(stored: StoredMemory, move: Move) -> None:
    memory = stored.memory()
    memory.install_model(ModelUpdate(shipped(), memory.state.manifest.threads))
    memory.rebuild_index()
    memory.stage(Changes(records=(issue(1, 5),)))
    move(stored)
    memory.commit("learned")
    manifest = stored.memory().state.manifest
    assert 0 < manifest.learned_from <= manifest.threads


def test_what_another_run_read_meanwhile_is_not_overwritten(stored: StoredMemory) -> None:
    memory = stored.memory()
    memory.stage(THIRD)
    write(stored, Changes(records=(page("docs:c.md", 4),), pages=pages({"docs": "c3"}), cursor=at(4)))
    memory.commit("third")
    assert BRANCH_RESET not in memory.notes
    manifest = stored.memory().state.manifest
    assert (dict(manifest.pages), manifest.cursor) == ({"docs": "c3", "wiki": "w1", "releases": "r2"}, at(4))


def test_reading_progress_counts_if_another_run_only_added_an_issue(stored: StoredMemory) -> None:
    write(stored, Changes(reading=HistoryProgress(at(2), at(1), frozenset({1}))))
    memory = stored.memory()
    memory.stage(replace(THIRD, reading=HistoryProgress(at(2), at(2), frozenset({3}))))
    for number in (7, 8):
        write(stored, Changes(records=(issue(number, 4),), cursor=at(4)))
    memory.commit("third")
    assert BRANCH_RESET not in memory.notes
    manifest = stored.memory().state.manifest
    assert (dict(manifest.pages), manifest.cursor) == (SECOND_PAGES | THIRD_PAGES, at(4))
    assert manifest.reading == HistoryProgress(at(2), at(2), frozenset({1, 3}))


@pytest.mark.slow
@pytest.mark.parametrize("move", [delete, set_back])
def test_the_next_run_fetches_all_pages_again(tmp_path: Path, hosted: HostedRepository, move: Move) -> None:
    project, stored = Project(tmp_path, hosted.server), StoredMemory(tmp_path / "memory")
    texts = {"README.md": "# Hello\nRead me.", "docs/a.md": "# A\nFirst.", "docs/b.md": "# B\nSecond."}
    project.releases.items = [release("v1.0")]
    for number in (0, 1):
        project.write(project.docs, texts | {"docs/a.md": f"# A\nRevision {number}."})
        project.write(project.wiki, {"Home.md": f"# Home\nRevision {number}."})
        project.memory = stored.memory()
        project.refresh()
        page_ids_before = set(project.memory.page_ids())
        keep(stored, is_first=not number)
    project.write(project.docs, texts | {"docs/a.md": "# A\nRevision 1.", "docs/b.md": "# B\nChanged."})
    memory: Memory = stored.memory()
    sources = page_sources(project.page_settings, REPO, project.releases, project.open)
    memory.stage(refresh_pages(sources, memory, memory.state.manifest.pages, project.now, print))
    move(stored)
    assert memory.commit("pages")
    project.memory = stored.memory()
    project.refresh()
    assert set(project.memory.page_ids()) == page_ids_before
    bodies = {record.body for record in project.memory.records(page_ids_before).values() if isinstance(record, Thread)}
    assert bodies >= {"# Hello\nRead me.", "# A\nRevision 1.", "# B\nChanged.", "# Home\nRevision 1."}
    stored.close()
