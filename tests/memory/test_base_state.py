"""A write that meets another history: the branch was deleted, set back or replaced since it was read.

What a run says that it has read holds only where the rest is, on which it built.
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
from bot.memory.memory import WENT_BACK, Memory
from bot.memory.model_store import ModelUpdate
from bot.pipeline.setup import page_sources
from bot.ranking.weights import shipped
from bot.sources.pages import refresh_pages
from tests.examples import share
from tests.fakes.git_http import GitServer
from tests.memory.remotes import Hosted, git, opened
from tests.memory.samples import at, issue
from tests.sources.projects import REPO, Project
from tests.sources.test_pages import release

BRANCH = "refs/heads/precedent"
OLD = {"docs": "c0", "wiki": "w0", "releases": "r0"}
KNOWN = {"docs": "c1", "wiki": "w1", "releases": "r1"}
READ = {"docs": "c2", "releases": "r2"}


def page(name: str, revision: float = 1) -> Thread:
    return replace(issue(name, revision), kind=Kind.PAGE)


def pages(states: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(states.items())


@contextmanager
def memory_of(hosted: Hosted) -> Iterator[Memory]:
    with opened(hosted) as store:
        yield Memory(store, sleep=lambda _: None).open()


def write(hosted: Hosted, changes: Changes) -> None:
    with memory_of(hosted) as memory:
        memory.stage(changes)
        memory.commit("before")


FIRST = Changes(records=(issue(1), page("docs:a.md"), page("docs:b.md")), pages=pages(OLD), cursor=at(1))
SECOND = Changes(
    records=(issue(2, 2), page("docs:b.md", 2)),
    answers=(AnswerRecord(2, "pending", at(2), "it was read as history"),),
    pages=pages(KNOWN),
    cursor=at(2),
)
THIRD = Changes(
    records=(issue(3, 3), page("docs:c.md", 3)),
    answers=(AnswerRecord(3, "pending", at(3), text_hash="x"),),
    requests=(Request(3, 30, "search", "octocat", at(3)),),
    pages=pages(READ),
    cursor=at(3),
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A repository after two runs, and their commits, the older first."""
    tips = []
    with GitServer(tmp_path_factory.mktemp("written")) as server:
        hosted = Hosted(server, server.create("octocat/hello"))
        for changes in (FIRST, SECOND):
            write(hosted, changes)
            tips.append(git(hosted.repository, "rev-parse", BRANCH))
    return hosted.repository, tips


@pytest.fixture
def two_commits(hosted: Hosted, written: tuple[Path, list[str]]) -> list[str]:
    """The commits of two runs, the older first; the branch stands at the newer."""
    shutil.copytree(written[0], hosted.repository, dirs_exist_ok=True)
    return written[1]


def deleted(hosted: Hosted, _: list[str]) -> None:
    git(hosted.repository, "update-ref", "-d", BRANCH)


def set_back(hosted: Hosted, tips: list[str]) -> None:
    git(hosted.repository, "update-ref", BRANCH, tips[0])


def replaced(hosted: Hosted, tips: list[str]) -> None:
    """Another memory stands there, whose cursor is later, and which knows of other pages."""
    deleted(hosted, tips)
    write(hosted, Changes(records=(issue(9, 9),), pages=pages({"docs": "c9"}), cursor=at(9)))


Move = Callable[[Hosted, list[str]], None]
MOVES: tuple[Move, ...] = (deleted, set_back, replaced)


@pytest.mark.parametrize(
    ("move", "states", "cursor"),
    [(deleted, {}, None), (set_back, OLD, at(1)), (replaced, {"docs": "c9"}, at(9))],
    ids=["deleted", "set back", "replaced"],
)
def test_what_was_read_counts_only_where_the_rest_of_it_is(
    hosted: Hosted, two_commits: list[str], move: Move, states: dict[str, str], cursor: object
) -> None:
    with memory_of(hosted) as memory:
        memory.stage(THIRD)
        move(hosted, two_commits)
        assert memory.commit("third")
        assert (WENT_BACK in memory.notes) is (cursor != at(9))
    with memory_of(hosted) as memory:
        assert (dict(memory.state.manifest.pages), memory.state.manifest.cursor) == (states, cursor)
        assert set(memory.records([3, "docs:c.md"])) == {3, "docs:c.md"}


@pytest.mark.parametrize("move", share(MOVES, 3, 0))
def test_what_is_owed_stays_owed(hosted: Hosted, two_commits: list[str], move: Move) -> None:
    with memory_of(hosted) as memory:
        memory.stage(THIRD)
        move(hosted, two_commits)
        memory.commit("third")
    with memory_of(hosted) as memory:
        assert memory.state.manifest.pending == (3,)
        assert [wish.comment_id for wish in memory.state.manifest.requests_since(at(0))] == [30]


@pytest.mark.parametrize("move", share(MOVES, 3, 1))
def test_what_is_staged_afterwards_claims_no_more_until_the_memory_is_opened_again(
    hosted: Hosted, two_commits: list[str], move: Move
) -> None:
    with memory_of(hosted) as memory:
        memory.stage(THIRD)
        move(hosted, two_commits)
        memory.commit("third")
        held = memory.state.manifest.cursor
        memory.stage(
            Changes(records=(issue(4, 4),), cursor=at(10), reading=HistoryProgress(at(0), at(4)), read_whole=at(0))
        )
        memory.commit("fourth")
        is_whole = move is replaced
        assert memory.state.manifest.cursor == (at(10) if is_whole else held)
        assert (memory.state.manifest.reading is not None, memory.state.manifest.read_whole) == (
            False,
            at(0) if is_whole else None,
        )
        memory.open().stage(Changes(records=(issue(5, 5),), cursor=at(11)))
        memory.commit("fifth")
    with memory_of(hosted) as memory:
        assert memory.state.manifest.cursor == at(11)


@pytest.mark.parametrize("move", share(MOVES, 3, 2))
@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "ends"])
def test_a_reading_of_the_whole_history_does_not_go_on_elsewhere(
    hosted: Hosted, two_commits: list[str], move: Move, ends: bool
) -> None:
    write(hosted, Changes(reading=HistoryProgress(at(2), at(1), frozenset({1, 2}))))
    with memory_of(hosted) as memory:
        memory.stage(Changes(records=(issue(3, 3),), reading=HistoryProgress(at(2), at(2), frozenset({3}))))
        if ends:
            memory.stage(Changes(read_whole=at(2)))
        move(hosted, two_commits)
        memory.commit("third")
    with memory_of(hosted) as memory:
        assert (memory.state.manifest.reading, memory.state.manifest.read_whole) == (None, None)


@pytest.mark.parametrize("move", share(MOVES, 3, 3))
def test_nothing_is_learned_from_more_threads_than_there_are(
    hosted: Hosted, two_commits: list[str], move: Move
) -> None:
    with memory_of(hosted) as memory:
        memory.install_model(ModelUpdate(None, shipped(), memory.state.manifest.threads))
        memory.rebuild_index()
        memory.stage(Changes(records=(issue(1, 5),)))
        move(hosted, two_commits)
        memory.commit("learned")
    with memory_of(hosted) as memory:
        assert 0 < memory.state.manifest.learned_from <= memory.state.manifest.threads


def test_what_another_run_read_meanwhile_stays_as_that_run_has_it(hosted: Hosted, two_commits: list[str]) -> None:
    with memory_of(hosted) as memory:
        memory.stage(THIRD)
        write(hosted, Changes(records=(page("docs:c.md", 4),), pages=pages({"docs": "c3"}), cursor=at(4)))
        memory.commit("third")
        assert WENT_BACK not in memory.notes
    with memory_of(hosted) as memory:
        assert (dict(memory.state.manifest.pages), memory.state.manifest.cursor) == (
            {"docs": "c3", "wiki": "w1", "releases": "r2"},
            at(4),
        )


def test_what_was_read_counts_where_another_run_only_brought_an_issue(hosted: Hosted, two_commits: list[str]) -> None:
    write(hosted, Changes(reading=HistoryProgress(at(2), at(1), frozenset({1}))))
    with memory_of(hosted) as memory:
        memory.stage(replace(THIRD, reading=HistoryProgress(at(2), at(2), frozenset({3}))))
        for number in (7, 8):
            write(hosted, Changes(records=(issue(number, 4),), cursor=at(4)))
        memory.commit("third")
        assert WENT_BACK not in memory.notes
    with memory_of(hosted) as memory:
        assert (dict(memory.state.manifest.pages), memory.state.manifest.cursor) == (KNOWN | READ, at(4))
        assert memory.state.manifest.reading == HistoryProgress(at(2), at(2), frozenset({1, 3}))


@pytest.mark.parametrize("move", share([deleted, set_back], 2))
def test_the_next_run_has_all_pages_again(tmp_path: Path, hosted: Hosted, move: Move) -> None:
    project = Project(tmp_path, hosted.server)
    project.memory.close()
    project.server.create("octocat/memory")
    there = Hosted(hosted.server, hosted.server.folder / "octocat/memory.git", "octocat/memory")
    texts = {"README.md": "# Hello\nRead me.", "docs/a.md": "# A\nFirst.", "docs/b.md": "# B\nSecond."}
    project.releases.items = [release("v1.0")]
    tips = []
    for number in (0, 1):
        project.write(project.docs, texts | {"docs/a.md": f"# A\nRevision {number}."})
        project.write(project.wiki, {"Home.md": f"# Home\nRevision {number}."})
        with memory_of(there) as project.memory:
            project.follow()
            held = project.memory.state.page_ids()
        tips.append(git(there.repository, "rev-parse", BRANCH))
    project.write(project.docs, texts | {"docs/a.md": "# A\nRevision 1.", "docs/b.md": "# B\nChanged."})
    with memory_of(there) as project.memory:
        sources = page_sources(project.wanted, REPO, project.releases, project.open)
        project.memory.stage(
            refresh_pages(sources, project.memory.state, project.memory.state.manifest.pages, project.now, print)
        )
        move(there, tips)
        assert project.memory.commit("pages")
    with memory_of(there) as project.memory:
        project.follow()
        assert project.memory.state.page_ids() == held
        bodies = {one.body for one in project.memory.records(held).values() if isinstance(one, Thread)}
        assert bodies >= {"# Hello\nRead me.", "# A\nRevision 1.", "# B\nChanged.", "# Home\nRevision 1."}
