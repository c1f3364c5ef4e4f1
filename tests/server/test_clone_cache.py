"""Clones that are kept: by repository, for one at a time, within a bound."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.server.clone_cache import MOST_PACKS, CloneCache
from bot.server.model import RepositoryKey

REPOSITORIES = [RepositoryKey(1, number) for number in range(1, 5)]


@pytest.fixture
def clones(tmp_path: Path) -> CloneCache:
    return CloneCache(tmp_path, 3)


def fill(clones: CloneCache, repository: RepositoryKey, megabytes: int, at: float = 0) -> Path:
    with clones.borrow(repository) as folder:
        (folder / "pack").write_bytes(b"x" * (megabytes * 1_000_000 - 100_000))
    if at:
        os.utime(folder / "used", (at, at))
    return folder


def test_what_a_run_leaves_the_next_one_of_its_repository_finds(clones: CloneCache) -> None:
    fill(clones, REPOSITORIES[0], 1)
    with clones.borrow(REPOSITORIES[0]) as folder:
        assert (folder / "pack").exists()
    with clones.borrow(REPOSITORIES[1]) as folder:
        assert list(folder.iterdir()) == []


def test_those_that_were_not_used_for_longest_go_when_there_are_too_many(clones: CloneCache) -> None:
    folders = [
        fill(clones, repository, 1, at) for repository, at in zip(REPOSITORIES[:3], (300.0, 100.0, 200.0), strict=True)
    ]
    assert [each.exists() for each in folders] == [True] * 3
    fill(clones, REPOSITORIES[3], 1)
    assert [each.exists() for each in folders] == [True, False, True]


def test_one_that_is_at_work_stays(clones: CloneCache, tmp_path: Path) -> None:
    fill(clones, REPOSITORIES[0], 2, 100.0)
    with CloneCache(tmp_path, 3).borrow(REPOSITORIES[0]) as held:
        fill(clones, REPOSITORIES[1], 2)
        assert (held / "pack").exists()


def test_who_comes_second_has_an_empty_one_of_his_own_that_goes_again(clones: CloneCache, tmp_path: Path) -> None:
    fill(clones, REPOSITORIES[0], 1)
    with clones.borrow(REPOSITORIES[0]) as first, CloneCache(tmp_path, 3).borrow(REPOSITORIES[0]) as second:
        assert first != second
        assert list(second.iterdir()) == []
    assert not second.exists()
    assert first.exists()


def test_one_that_was_forgotten_is_empty(clones: CloneCache) -> None:
    fill(clones, REPOSITORIES[0], 1)
    clones.forget(REPOSITORIES[0])
    clones.forget(REPOSITORIES[1])
    with clones.borrow(REPOSITORIES[0]) as folder:
        assert list(folder.iterdir()) == []


def test_one_with_too_many_packs_is_made_anew(clones: CloneCache) -> None:
    with clones.borrow(REPOSITORIES[0]) as folder:
        for number in range(MOST_PACKS + 1):
            (folder / f"{number}.pack").touch()
    assert not folder.exists()


def test_what_was_half_removed_goes_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / ".gone-1" / "clone.git").mkdir(parents=True)
    CloneCache(tmp_path, 3)
    assert list(tmp_path.iterdir()) == []


def test_what_was_made_for_one_run_of_a_killed_process_goes_later(tmp_path: Path) -> None:
    for name, ago in ((".apart-new", 60), (".apart-old", 7200)):
        (tmp_path / name / "clone.git").mkdir(parents=True)
        os.utime(tmp_path / name, (time.time() - ago,) * 2)
    CloneCache(tmp_path, 3)
    assert [place.name for place in tmp_path.iterdir()] == [".apart-new"]


def test_a_run_that_fails_leaves_its_clone_and_gives_it_back(clones: CloneCache) -> None:
    folder = Path()

    def failing() -> None:
        nonlocal folder
        with clones.borrow(REPOSITORIES[0]) as folder:
            (folder / "pack").touch()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    with clones.borrow(REPOSITORIES[0]) as again:
        assert again == folder
        assert (again / "pack").exists()


OPENED: list[list[str]] = []


def hear(event: str, given: tuple[object, ...]) -> None:
    """A hook for good, that does nothing while nobody listens."""
    if OPENED and event == "open":
        OPENED[-1].append(str(given[0]))


sys.addaudithook(hear)


def looked_at(call: Callable[[], object]) -> int:
    """How many notes of clones were opened meanwhile."""
    OPENED.append([])
    try:
        call()
    finally:
        opened = OPENED.pop()
    return sum(name.endswith("/used") for name in opened)


def many(folder: Path, count: int, size: int = 100_000) -> None:
    """Clones that were used long ago, without the work of making them."""
    for number in range(1, count + 1):
        place = folder / f"9-{number}"
        place.mkdir()
        (place / "used").write_text(str(size), encoding="ascii")
        os.utime(place / "used", (number, number))


def test_a_run_that_lets_nothing_grow_looks_at_no_other_clone(tmp_path: Path) -> None:
    many(tmp_path, 500)
    clones = CloneCache(tmp_path, 100)
    assert looked_at(lambda: fill(clones, REPOSITORIES[0], 1)) > 500, "the first one cannot know what there is"
    for _ in range(20):
        assert looked_at(lambda: fill(clones, REPOSITORIES[0], 1)) < 5


def test_looks_at_all_clones_become_no_more_frequent_when_the_room_is_used_up(tmp_path: Path) -> None:
    many(tmp_path, 500)
    clones = CloneCache(tmp_path, 51)
    fill(clones, REPOSITORIES[0], 1)
    repositories = [RepositoryKey(7, number) for number in range(1, 31)]
    looks = [looked_at(lambda repository=repository: fill(clones, repository, 1)) > 5 for repository in repositories]  # type: ignore[misc]
    assert 5 <= sum(looks) <= 15, "each 2.5 MB, which three runs bring"
    total = sum(int((place / "used").read_text()) for place in tmp_path.glob("[0-9]*-*") if place.is_dir())
    assert total <= 51_000_000
    assert (tmp_path / "9-500").exists()
    assert not (tmp_path / "9-100").exists()


def test_the_room_is_kept_by_a_process_that_found_it_overfull(tmp_path: Path) -> None:
    many(tmp_path, 500)
    fill(CloneCache(tmp_path, 50), REPOSITORIES[0], 1)
    assert not (tmp_path / "9-1").exists()
