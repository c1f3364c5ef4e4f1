"""Who lives: a place is lost with its process, each dead worker is found by one, and one leads."""

from __future__ import annotations

import json
import random
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from bot.errors import WorldError
from bot.server.database import Database
from bot.server.inbox import Inbox
from bot.server.leases import LINGER, FileLocks, Lead, Locks, WorkerLeases, locks
from bot.server.model import RepositoryKey
from bot.server.queue import Tickets, prepare
from tests.server import postgres
from tests.server.queues import Clock, arrival, lone_worker, until

Notes = list[list[object]]


@contextmanager
def place(url: str, folder: Path, name: str, clock: Clock) -> Iterator[tuple[WorkerLeases, Locks]]:
    """A worker's place, held as if by a process of its own: with a connection, or open files, that are its alone."""
    database = Database(url)
    held = locks(database, folder / "workers")
    try:
        yield WorkerLeases(name, database, held, clock), held
    finally:
        held.close()
        database.close()


def test_a_worker_that_holds_its_place_is_not_dead(database_url: str, tmp_path: Path) -> None:
    clock = Clock()
    with place(database_url, tmp_path, "a", clock) as (a, _), place(database_url, tmp_path, "b", clock) as (b, _):
        assert a.check() is False
        a.hold()
        b.hold()
        assert (a.check(), b.check(), a.dead(), b.dead()) == (True, True, [], [])


def test_a_worker_that_lost_its_place_is_found_by_one_and_buried(database_url: str, tmp_path: Path) -> None:
    clock = Clock()
    with place(database_url, tmp_path, "b", clock) as (b, _), place(database_url, tmp_path, "c", clock) as (c, _):
        with place(database_url, tmp_path, "a", clock) as (a, _):
            a.hold()
            b.hold()
            c.hold()
        assert (b.dead(), c.dead()) == (["a"], [])
        assert (b.dead(), c.dead()) == (["a"], []), "it is the business of who took it until it is buried"
        b.mark_dead("a")
        assert (b.dead(), c.dead()) == ([], [])
        clock.ahead += LINGER + 1000
        assert (c.dead(), b.dead()) == (["a"], []), "it may have taken a ticket before it saw that it is dead"
        c.mark_dead("a")
        clock.ahead += LINGER + 1000
        assert (b.dead(), c.dead()) == ([], [])


def test_a_worker_that_ends_well_is_asked_about_by_nobody(database_url: str, tmp_path: Path) -> None:
    clock = Clock()
    with place(database_url, tmp_path, "a", clock) as (a, _), place(database_url, tmp_path, "b", clock) as (b, _):
        a.hold()
        b.hold()
        a.mark_dead("a")
        assert (a.check(), b.dead()) == (False, [])
        clock.ahead += LINGER + 1000
        assert b.dead() == []


def test_a_name_is_held_by_one(database_url: str, tmp_path: Path) -> None:
    clock = Clock()
    with place(database_url, tmp_path, "a", clock) as (a, _), place(database_url, tmp_path, "a", clock) as (other, _):
        a.hold()
        with pytest.raises(WorldError, match="another process is a"):
            other.hold()


def test_one_leads_until_it_is_gone(database_url: str, tmp_path: Path) -> None:
    clock = Clock()
    with place(database_url, tmp_path, "b", clock) as (b, _):
        with place(database_url, tmp_path, "a", clock) as (a, _):
            a.hold()
            b.hold()
            assert (a.is_leader(), b.is_leader(), a.is_leader()) == (True, False, True)
        assert b.is_leader() is True


def test_whose_lock_file_was_deleted_holds_nothing(tmp_path: Path) -> None:
    held = FileLocks(tmp_path / "workers")
    assert held.take("a")
    assert not FileLocks(tmp_path / "workers").take("a")
    (tmp_path / "workers" / "a.lock").unlink()
    assert not held.holds("a")
    held.close()


def test_a_folder_that_cannot_be_written_is_the_worlds_error(tmp_path: Path) -> None:
    (tmp_path / "workers").write_text("a file", encoding="utf-8")
    with pytest.raises(WorldError, match="cannot be written"):
        FileLocks(tmp_path / "workers").take("a")


@pytest.mark.slow
def test_a_worker_that_was_killed_is_missed_within_seconds(database_url: str, tmp_path: Path) -> None:
    clock = Clock()
    with place(database_url, tmp_path, "b", clock) as (b, _):
        with lone_worker(database_url, tmp_path, "a", "work") as process:
            until(lambda: "up" in said(tmp_path), 60)
            assert b.dead() == []
            process.kill()
            process.wait()
        until(lambda: b.dead() == ["a"], 5)


@pytest.mark.postgres
def test_a_worker_whose_server_was_restarted_ends_and_another_goes_on(
    tmp_path: Path,
) -> None:
    server = postgres.start()
    if server.folder is None:
        pytest.skip("a given server is not ours to restart")
    with ExitStack() as at_end:
        at_end.callback(server.stop)
        url = at_end.enter_context(made_on(server, tmp_path))
        first = at_end.enter_context(lone_worker(url, tmp_path, "a", "work"))
        until(lambda: "up" in said(tmp_path), 60)
        server.restart()
        assert first.wait(30) == 70
        ledger, _ = opened(url)
        until(lambda: ledger.put([arrival("x", number=1)]), 20)
        at_end.enter_context(lone_worker(url, tmp_path, "b", "work"))
        until(lambda: ledger.counts()["done"] == 1, 60)
        ledger.database.close()


@pytest.mark.slow
def test_two_workers_that_are_killed_again_and_again_do_everything_once_and_in_order(
    database_url: str, tmp_path: Path
) -> None:
    ledger, put = opened(database_url)
    chance = random.Random(5)
    with ExitStack() as at_end:
        workers = [at_end.enter_context(lone_worker(database_url, tmp_path, f"w{n}", "work")) for n in range(2)]
        until(lambda: said(tmp_path).count("up") == 2, 60)
        for kill in range(6):
            for _ in range(5):
                put.extend(some(ledger, chance, len(put)))
                time.sleep(0.4)
            workers[kill % 2].send_signal(signal.SIGKILL)
            workers[kill % 2].wait()
            new = lone_worker(database_url, tmp_path, f"w{kill + 2}", "work")
            workers[kill % 2] = at_end.enter_context(new)
        until(lambda: ledger.counts()["done"] == len(put), 120)
    ledger.database.close()
    assert len(put) == 600
    assert sum(word == "took over" for word in said(tmp_path)) >= 6
    assert overlaps(notes(tmp_path)) == []
    assert disorder(notes(tmp_path)) == []


def opened(url: str) -> tuple[Inbox, list[str]]:
    database = Database(url)
    return Inbox(database, Tickets(database), "web", Clock()), []


def some(ledger: Inbox, chance: random.Random, number: int) -> list[str]:
    """Twenty deliveries for twelve lanes, stored."""
    names = [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(20)]
    ledger.put([arrival(name, RepositoryKey(9, chance.randint(1, 12)), number + n) for n, name in enumerate(names)])
    return names


@contextmanager
def made_on(server: postgres.Server, folder: Path) -> Iterator[str]:
    with server.database() as url:
        database = Database(url)
        prepare(database, folder)
        database.close()
        yield url


def notes(folder: Path) -> Notes:
    lines = (folder / "log").read_text(encoding="utf-8").splitlines() if (folder / "log").exists() else []
    return [json.loads(line) for line in lines]


def said(folder: Path) -> list[object]:
    return [note[2] for note in notes(folder)]


def overlaps(diary: Notes) -> list[str]:
    """Turns of a lane that began while another one of it, whose process went on, had not ended."""
    last = {pid: at for at, pid, *_ in diary}
    running: dict[object, tuple[object, float]] = {}
    wrong = []
    for at, pid, word, *rest in diary:
        if word not in ("begin", "end"):
            continue
        lane = rest[0]
        if word == "begin":
            before = running.get(lane)
            if before and last[before[0]] > at:  # type: ignore[operator]
                wrong.append(f"{lane} at {at}")
            running[lane] = (pid, at)  # type: ignore[assignment]
        elif lane in running and running[lane][0] == pid:
            del running[lane]
    return wrong


def disorder(diary: Notes) -> list[object]:
    """Lanes whose deliveries were first begun in another order than that of their arrival."""
    firsts: dict[object, list[int]] = {}
    for _, _, word, *rest in diary:
        if word == "begin":
            firsts.setdefault(rest[0], []).extend(rest[1])  # type: ignore[arg-type]
    return [lane for lane, seqs in firsts.items() if list(dict.fromkeys(seqs)) != sorted(set(seqs))]


def test_overlaps_and_disorder_are_seen() -> None:
    diary: Notes = [
        [1.0, 1, "begin", "a", [1, 3]],
        [1.5, 2, "begin", "a", [2]],
        [2.0, 1, "end", "a", [1, 3]],
        [2.5, 2, "end", "a", [2]],
    ]
    assert overlaps(diary) == ["a at 1.5"]
    assert disorder(diary) == ["a"]
    assert overlaps(diary[:2]) == []


def test_one_of_several_leads_and_another_once_it_is_gone(database_url: str, tmp_path: Path) -> None:
    databases = [Database(database_url) for _ in range(3)]
    helds = [locks(each, tmp_path / "workers") for each in databases]
    leads = [Lead(held, "metrics") for held in helds]
    for _ in range(2):
        assert [lead() for lead in leads] == [True, False, False]
    helds[0].close()
    assert [lead() for lead in leads[1:]] == [True, False]
    helds[1].close()
    assert [lead() for lead in (leads[2], leads[0])] == [True, False]
    for held, database in zip(helds, databases, strict=True):
        held.close()
        database.close()


@pytest.mark.postgres
def test_one_leads_again_after_the_database_was_away(tmp_path: Path) -> None:
    server = postgres.start()
    with server.database() as url:
        database = Database(url)
        held = locks(database, tmp_path)
        lead = Lead(held, "metrics")
        assert lead()
        server.restart()
        assert lead()
        held.close()
        database.close()
    server.stop()
