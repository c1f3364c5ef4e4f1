"""`precedent deliveries`, run as it is typed, on a queue in a file."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.github.events import Event
from bot.server.inbox import Inbox
from bot.server.model import Arrival, RepositoryKey, Result, RunReport
from bot.server.options import ServerOptions
from bot.server.processes import opened

ROOT = Path(__file__).resolve().parents[2]
LANE, OTHER = RepositoryKey(17, 42), RepositoryKey(17, 43)
NOON = 1_767_614_400_000


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Inbox]:
    """Three deliveries: 1 is dead, 2 and 3 wait."""
    with opened(ServerOptions(data=tmp_path), "test") as made:
        arrivals = [
            Arrival("9:a", LANE, Event("issues", "opened", 7), "octo-org/hello-world", True, NOON),
            Arrival("9:b", OTHER, Event("issue_comment", "created", 8, comment_id=5), "octo-org/other", True, NOON),
            Arrival("9:c", OTHER, Event("push"), "octo-org/other", True, NOON),
        ]
        assert made.put(arrivals) == [True] * 3
        work = made.begin("9:a", LANE, NOON)
        assert work is not None
        made.end(work, [Result(work.deliveries[0].seq, "dead", "it is not permitted: issues: write")], RunReport())
        yield made


def deliveries(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bot", "deliveries", *arguments, "--data", str(folder)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PRECEDENT_")}
    return subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_deliveries_are_listed_newest_first(queue: Inbox, tmp_path: Path) -> None:
    done = deliveries(tmp_path, "list")
    assert done.returncode == 0
    at = "2026-01-05T12:00:00+00:00"
    assert done.stdout.splitlines() == [
        f"3\twaiting\t{at}\t17-43\tocto-org/other\tpush\t",
        f"2\twaiting\t{at}\t17-43\tocto-org/other#8\tissue_comment.created\t",
        f"1\tdead\t{at}\t17-42\tocto-org/hello-world#7\tissues.opened\tit is not permitted: issues: write",
    ]


@pytest.mark.slow
def test_a_list_can_be_narrowed_and_taken_as_json(queue: Inbox, tmp_path: Path) -> None:
    (dead,) = json.loads(deliveries(tmp_path, "list", "--state", "dead", "--json").stdout)
    assert (dead["number"], dead["issue"], dead["reason"]) == (1, 7, "it is not permitted: issues: write")
    of_lane = json.loads(
        deliveries(tmp_path, "list", "--repo", "17-43", "--before", "3", "--limit", "5", "--json").stdout
    )
    assert [each["number"] for each in of_lane] == [2]


@pytest.mark.slow
def test_a_dead_one_is_tried_again(queue: Inbox, tmp_path: Path) -> None:
    done = deliveries(tmp_path, "replay", "1", "2")
    assert done.stdout == "1 to be tried again, 1 not: not dead, or not there\n"
    found = queue.delivery(1)
    assert found is not None
    assert (found[0].state, found[0].attempts) == ("waiting", 0)
    assert LANE.key in queue.tickets.live()


@pytest.mark.slow
def test_what_is_dropped_keeps_the_reason(queue: Inbox, tmp_path: Path) -> None:
    done = deliveries(tmp_path, "drop", "2", "--why", "archived", "--json")
    assert json.loads(done.stdout) == {"asked": 1, "done": 1}
    found = queue.delivery(2)
    assert found is not None
    assert (found[0].state, found[0].reason) == ("dropped", "archived")


@pytest.mark.slow
def test_all_dead_ones_at_once(queue: Inbox, tmp_path: Path) -> None:
    assert json.loads(deliveries(tmp_path, "replay", "--all-dead", "--json").stdout) == {"asked": 1, "done": 1}
    assert queue.counts()["waiting"] == 3
    done = deliveries(tmp_path, "drop", "--all-dead")
    assert (done.returncode, done.stdout) == (0, "0 dropped\n"), "there is none any more"


@pytest.mark.slow
def test_what_is_worked_on_or_done_can_be_neither_dropped_nor_tried_again(queue: Inbox, tmp_path: Path) -> None:
    work = queue.begin("9:b", OTHER, NOON)
    assert work is not None
    queue.end(work, [Result(work.deliveries[0].seq, "done", "")], RunReport())
    assert queue.begin("9:c", OTHER, NOON) is not None
    assert deliveries(tmp_path, "drop", "2", "3").stdout == "0 dropped, 2 not: neither waiting nor dead, or not there\n"
    assert [row.state for row in queue.deliveries(lane=OTHER)] == ["working", "done"]


@pytest.mark.slow
def test_a_list_can_be_seen_while_nothing_can_be_written(queue: Inbox, tmp_path: Path) -> None:
    """As when the disk is full: SQLite lets nobody write who was not told to."""
    queue.database.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "queue.sqlite")) as other, other:
        other.execute("create trigger full before update on pulses begin select raise(abort, 'disk full'); end")
    done = deliveries(tmp_path, "list", "--state", "dead")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1\tdead")


@pytest.mark.postgres
def test_it_says_so_when_the_database_is_away(tmp_path: Path) -> None:
    done = deliveries(tmp_path, "list", "--database-url", "postgresql://precedent:hushhush@127.0.0.1:1/queue")
    assert done.returncode == 1
    assert done.stderr.startswith("precedent deliveries: the queue's database does not answer (")
    assert "hushhush" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay"], "precedent deliveries: replay takes the numbers of deliveries, or --all-dead"),
        (["drop", "1", "--all-dead"], "precedent deliveries: drop takes the numbers of deliveries, or --all-dead"),
        (["list", "1"], "precedent deliveries: list takes no numbers: see `precedent deliveries --help`"),
    ],
)
def test_what_makes_no_sense_is_said_and_nothing_is_done(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = deliveries(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (2, f"{said}\n")


def test_without_a_queue_it_says_where_it_looked(tmp_path: Path) -> None:
    done = deliveries(tmp_path, "list")
    assert done.returncode == 2
    assert (
        done.stderr
        == f"precedent deliveries: there is no queue in {tmp_path}: give the server's --data or --database-url\n"
    )
    assert list(tmp_path.iterdir()) == []
