"""The clone cache: one clone per repository, one borrower at a time, a limited size."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.server.model import RepositoryKey
from bot.server.storage.branches import MAX_PACKS, CloneCache

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


def test_the_next_run_of_a_repository_finds_the_clone_of_the_last_one(clones: CloneCache) -> None:
    fill(clones, REPOSITORIES[0], 1)
    with clones.borrow(REPOSITORIES[0]) as folder:
        assert (folder / "pack").exists()
    with clones.borrow(REPOSITORIES[1]) as folder:
        assert list(folder.iterdir()) == []


def test_the_least_recently_used_clones_are_removed_when_there_are_too_many(clones: CloneCache) -> None:
    folders = [
        fill(clones, repository, 1, at) for repository, at in zip(REPOSITORIES[:3], (300.0, 100.0, 200.0), strict=True)
    ]
    assert [each.exists() for each in folders] == [True] * 3
    fill(clones, REPOSITORIES[3], 1)
    assert [each.exists() for each in folders] == [True, False, True]


def test_a_clone_in_use_is_not_removed(clones: CloneCache, tmp_path: Path) -> None:
    fill(clones, REPOSITORIES[0], 2, 100.0)
    with CloneCache(tmp_path, 3).borrow(REPOSITORIES[0]) as borrowed:
        fill(clones, REPOSITORIES[1], 2)
        assert (borrowed / "pack").exists()


def test_a_second_borrower_gets_a_temporary_empty_clone(clones: CloneCache, tmp_path: Path) -> None:
    fill(clones, REPOSITORIES[0], 1)
    with clones.borrow(REPOSITORIES[0]) as first, CloneCache(tmp_path, 3).borrow(REPOSITORIES[0]) as second:
        assert first != second
        assert list(second.iterdir()) == []
    assert not second.exists()
    assert first.exists()


def test_a_forgotten_clone_is_empty_when_borrowed_again(clones: CloneCache) -> None:
    fill(clones, REPOSITORIES[0], 1)
    clones.forget(REPOSITORIES[0])
    clones.forget(REPOSITORIES[1])
    with clones.borrow(REPOSITORIES[0]) as folder:
        assert list(folder.iterdir()) == []


def test_a_clone_with_too_many_packs_is_discarded(clones: CloneCache) -> None:
    with clones.borrow(REPOSITORIES[0]) as folder:
        for number in range(MAX_PACKS + 1):
            (folder / f"{number}.pack").touch()
    assert not folder.exists()


def test_a_half_removed_clone_is_deleted_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / ".gone-1" / "clone.git").mkdir(parents=True)
    CloneCache(tmp_path, 3)
    assert list(tmp_path.iterdir()) == []


def test_the_temporary_clone_of_a_killed_process_is_deleted_after_a_while(tmp_path: Path) -> None:
    for name, ago in ((".apart-new", 60), (".apart-old", 7200)):
        (tmp_path / name / "clone.git").mkdir(parents=True)
        os.utime(tmp_path / name, (time.time() - ago,) * 2)
    CloneCache(tmp_path, 3)
    assert [folder.name for folder in tmp_path.iterdir()] == [".apart-new"]


def test_a_run_that_fails_keeps_its_clone_and_releases_it(clones: CloneCache) -> None:
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


OPENED_FILES: list[list[str]] = []


def record_open(event: str, arguments: tuple[object, ...]) -> None:
    """A permanent audit hook, which does nothing unless a test listens."""
    if OPENED_FILES and event == "open":
        OPENED_FILES[-1].append(str(arguments[0]))


sys.addaudithook(record_open)


def count_opened(call: Callable[[], object]) -> int:
    """How many ``used`` files of clones the call opens."""
    OPENED_FILES.append([])
    try:
        call()
    finally:
        opened = OPENED_FILES.pop()
    return sum(name.endswith("/used") for name in opened)


def make_clones(folder: Path, count: int, size: int = 100_000) -> None:
    """Fake clones that were used long ago."""
    for number in range(1, count + 1):
        clone = folder / f"9-{number}"
        clone.mkdir()
        (clone / "used").write_text(str(size), encoding="ascii")
        os.utime(clone / "used", (number, number))


def test_a_run_whose_clone_does_not_grow_looks_at_no_other_clone(tmp_path: Path) -> None:
    make_clones(tmp_path, 100)
    clones = CloneCache(tmp_path, 100)
    assert count_opened(lambda: fill(clones, REPOSITORIES[0], 1)) > 100, "the first one cannot know what there is"
    for _ in range(5):
        assert count_opened(lambda: fill(clones, REPOSITORIES[0], 1)) < 5


def test_a_full_cache_does_not_scan_all_clones_more_often(tmp_path: Path) -> None:
    make_clones(tmp_path, 100, 500_000)
    clones = CloneCache(tmp_path, 51)
    fill(clones, REPOSITORIES[0], 1)
    repositories = [RepositoryKey(7, number) for number in range(1, 31)]
    scans = [count_opened(lambda repository=repository: fill(clones, repository, 1)) > 5 for repository in repositories]  # type: ignore[misc]
    assert 5 <= sum(scans) <= 15, "each 2.5 MB, which three runs bring"
    total = sum(int((folder / "used").read_text()) for folder in tmp_path.glob("[0-9]*-*") if folder.is_dir())
    assert total <= 51_000_000
    assert (tmp_path / "9-100").exists()
    assert not (tmp_path / "9-20").exists()


def test_a_process_that_starts_over_the_limit_shrinks_the_cache(tmp_path: Path) -> None:
    make_clones(tmp_path, 100, 500_000)
    fill(CloneCache(tmp_path, 50), REPOSITORIES[0], 1)
    assert not (tmp_path / "9-1").exists()
