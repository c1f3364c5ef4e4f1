"""A write after the branch was deleted, set back or replaced since it was read.

What a run claims to have read counts only if the branch still has the state on which the run built.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.changes import AnswerRecord, Changes, HistoryProgress, Request
from bot.domain.thread import Kind, Thread
from bot.memory.memory import BRANCH_RESET, Memory
from bot.memory.model_store import ModelUpdate
from bot.pipeline.setup import page_sources
from bot.ranking.weights import shipped
from bot.sources.pages import refresh_pages
from tests.examples import share
from tests.fakes.git_http import GitServer
from tests.memory.remotes import HostedRepository, git, open_store
from tests.memory.samples import at, issue
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


@contextmanager
def open_memory(hosted: HostedRepository) -> Iterator[Memory]:
    with open_store(hosted) as store:
        yield Memory(store, sleep=lambda _: None).open()


def write(hosted: HostedRepository, changes: Changes) -> None:
    with open_memory(hosted) as memory:
        memory.stage(changes)
        memory.commit("before")


FIRST = Changes(records=(issue(1), page("docs:a.md"), page("docs:b.md")), pages=pages(FIRST_PAGES), cursor=at(1))
SECOND = Changes(
    records=(issue(2, 2), page("docs:b.md", 2)),
    answers=(AnswerRecord(2, "pending", at(2), "it was read as history"),),
    pages=pages(SECOND_PAGES),
    cursor=at(2),
)
THIRD = Changes(
    records=(issue(3, 3), page("docs:c.md", 3)),
    answers=(AnswerRecord(3, "pending", at(3), text_hash="x"),),
    requests=(Request(3, 30, "search", "octocat", at(3)),),
    pages=pages(THIRD_PAGES),
    cursor=at(3),
)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A repository after two runs, and their commits, oldest first."""
    tips = []
    with GitServer(tmp_path_factory.mktemp("written")) as server:
        hosted = HostedRepository(server, server.create("octocat/hello"))
        for changes in (FIRST, SECOND):
            write(hosted, changes)
            tips.append(git(hosted.repository, "rev-parse", BRANCH))
    return hosted.repository, tips


@pytest.fixture
def two_commits(hosted: HostedRepository, two_runs: tuple[Path, list[str]]) -> list[str]:
    """The commits of two runs, oldest first; the branch is at the newer one."""
    shutil.copytree(two_runs[0], hosted.repository, dirs_exist_ok=True)
    return two_runs[1]


def delete_branch(hosted: HostedRepository, _: list[str]) -> None:
    git(hosted.repository, "update-ref", "-d", BRANCH)


def set_back_branch(hosted: HostedRepository, tips: list[str]) -> None:
    git(hosted.repository, "update-ref", BRANCH, tips[0])


def replace_branch(hosted: HostedRepository, tips: list[str]) -> None:
    """Put another memory there, with a later cursor and other pages."""
    delete_branch(hosted, tips)
    write(hosted, Changes(records=(issue(9, 9),), pages=pages({"docs": "c9"}), cursor=at(9)))


Move = Callable[[HostedRepository, list[str]], None]
MOVES: tuple[Move, ...] = (delete_branch, set_back_branch, replace_branch)


@pytest.mark.parametrize(
    ("move", "states", "cursor"),
    [(delete_branch, {}, None), (set_back_branch, FIRST_PAGES, at(1)), (replace_branch, {"docs": "c9"}, at(9))],
    ids=["deleted", "set back", "replaced"],
)
def test_reading_progress_is_dropped_when_the_branch_no_longer_has_what_it_builds_on(
    hosted: HostedRepository, two_commits: list[str], move: Move, states: dict[str, str], cursor: object
) -> None:
    with open_memory(hosted) as memory:
        memory.stage(THIRD)
        move(hosted, two_commits)
        assert memory.commit("third")
        assert (BRANCH_RESET in memory.notes) is (cursor != at(9))
    with open_memory(hosted) as memory:
        assert (dict(memory.state.manifest.pages), memory.state.manifest.cursor) == (states, cursor)
        assert set(memory.records([3, "docs:c.md"])) == {3, "docs:c.md"}


@pytest.mark.parametrize("move", share(MOVES, 3, 0))
def test_promised_answers_and_requests_survive_a_moved_branch(
    hosted: HostedRepository, two_commits: list[str], move: Move
) -> None:
    with open_memory(hosted) as memory:
        memory.stage(THIRD)
        move(hosted, two_commits)
        memory.commit("third")
    with open_memory(hosted) as memory:
        assert memory.state.manifest.pending == (3,)
        assert [request.comment_id for request in memory.state.manifest.requests_since(at(0))] == [30]


@pytest.mark.parametrize("move", share(MOVES, 3, 1))
def test_later_changes_claim_no_progress_until_the_memory_is_opened_again(
    hosted: HostedRepository, two_commits: list[str], move: Move
) -> None:
    with open_memory(hosted) as memory:
        memory.stage(THIRD)
        move(hosted, two_commits)
        memory.commit("third")
        cursor_before = memory.state.manifest.cursor
        memory.stage(
            Changes(records=(issue(4, 4),), cursor=at(10), reading=HistoryProgress(at(0), at(4)), read_whole=at(0))
        )
        memory.commit("fourth")
        progress_counts = move is replace_branch
        assert memory.state.manifest.cursor == (at(10) if progress_counts else cursor_before)
        assert (memory.state.manifest.reading is not None, memory.state.manifest.read_whole) == (
            False,
            at(0) if progress_counts else None,
        )
        memory.open().stage(Changes(records=(issue(5, 5),), cursor=at(11)))
        memory.commit("fifth")
    with open_memory(hosted) as memory:
        assert memory.state.manifest.cursor == at(11)


@pytest.mark.parametrize("move", share(MOVES, 3, 2))
@pytest.mark.parametrize("is_finished", [False, True], ids=["goes on", "ends"])
def test_bulk_reading_of_the_history_does_not_continue_on_a_moved_branch(
    hosted: HostedRepository, two_commits: list[str], move: Move, is_finished: bool
) -> None:
    write(hosted, Changes(reading=HistoryProgress(at(2), at(1), frozenset({1, 2}))))
    with open_memory(hosted) as memory:
        memory.stage(Changes(records=(issue(3, 3),), reading=HistoryProgress(at(2), at(2), frozenset({3}))))
        if is_finished:
            memory.stage(Changes(read_whole=at(2)))
        move(hosted, two_commits)
        memory.commit("third")
    with open_memory(hosted) as memory:
        assert (memory.state.manifest.reading, memory.state.manifest.read_whole) == (None, None)


@pytest.mark.parametrize("move", share(MOVES, 3, 3))
def test_learned_from_never_exceeds_the_number_of_threads(
    hosted: HostedRepository, two_commits: list[str], move: Move
) -> None:
    with open_memory(hosted) as memory:
        memory.install_model(ModelUpdate(None, shipped(), memory.state.manifest.threads))
        memory.rebuild_index()
        memory.stage(Changes(records=(issue(1, 5),)))
        move(hosted, two_commits)
        memory.commit("learned")
    with open_memory(hosted) as memory:
        assert 0 < memory.state.manifest.learned_from <= memory.state.manifest.threads


def test_what_another_run_read_meanwhile_is_not_overwritten(hosted: HostedRepository, two_commits: list[str]) -> None:
    with open_memory(hosted) as memory:
        memory.stage(THIRD)
        write(hosted, Changes(records=(page("docs:c.md", 4),), pages=pages({"docs": "c3"}), cursor=at(4)))
        memory.commit("third")
        assert BRANCH_RESET not in memory.notes
    with open_memory(hosted) as memory:
        assert (dict(memory.state.manifest.pages), memory.state.manifest.cursor) == (
            {"docs": "c3", "wiki": "w1", "releases": "r2"},
            at(4),
        )


def test_reading_progress_counts_if_another_run_only_added_an_issue(
    hosted: HostedRepository, two_commits: list[str]
) -> None:
    write(hosted, Changes(reading=HistoryProgress(at(2), at(1), frozenset({1}))))
    with open_memory(hosted) as memory:
        memory.stage(replace(THIRD, reading=HistoryProgress(at(2), at(2), frozenset({3}))))
        for number in (7, 8):
            write(hosted, Changes(records=(issue(number, 4),), cursor=at(4)))
        memory.commit("third")
        assert BRANCH_RESET not in memory.notes
    with open_memory(hosted) as memory:
        assert (dict(memory.state.manifest.pages), memory.state.manifest.cursor) == (SECOND_PAGES | THIRD_PAGES, at(4))
        assert memory.state.manifest.reading == HistoryProgress(at(2), at(2), frozenset({1, 3}))


@pytest.mark.parametrize("move", share([delete_branch, set_back_branch], 2))
def test_the_next_run_fetches_all_pages_again(tmp_path: Path, hosted: HostedRepository, move: Move) -> None:
    project = Project(tmp_path, hosted.server)
    project.memory.close()
    project.server.create("octocat/memory")
    memory_repository = HostedRepository(hosted.server, hosted.server.folder / "octocat/memory.git", "octocat/memory")
    texts = {"README.md": "# Hello\nRead me.", "docs/a.md": "# A\nFirst.", "docs/b.md": "# B\nSecond."}
    project.releases.items = [release("v1.0")]
    tips = []
    for number in (0, 1):
        project.write(project.docs, texts | {"docs/a.md": f"# A\nRevision {number}."})
        project.write(project.wiki, {"Home.md": f"# Home\nRevision {number}."})
        with open_memory(memory_repository) as project.memory:
            project.refresh()
            page_ids_before = project.memory.state.page_ids()
        tips.append(git(memory_repository.repository, "rev-parse", BRANCH))
    project.write(project.docs, texts | {"docs/a.md": "# A\nRevision 1.", "docs/b.md": "# B\nChanged."})
    with open_memory(memory_repository) as project.memory:
        sources = page_sources(project.page_settings, REPO, project.releases, project.open)
        project.memory.stage(
            refresh_pages(sources, project.memory.state, project.memory.state.manifest.pages, project.now, print)
        )
        move(memory_repository, tips)
        assert project.memory.commit("pages")
    with open_memory(memory_repository) as project.memory:
        project.refresh()
        assert project.memory.state.page_ids() == page_ids_before
        bodies = {
            record.body for record in project.memory.records(page_ids_before).values() if isinstance(record, Thread)
        }
        assert bodies >= {"# Hello\nRead me.", "# A\nRevision 1.", "# B\nChanged.", "# Home\nRevision 1."}
