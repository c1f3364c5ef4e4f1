"""`precedent deliveries` on a queue in SQLite."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from bot.github.events import Event
from bot.server.model import Delivery, RepositoryKey, Result, RunReport
from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.inbox import Inbox
from tests.cli.program_result import ProgramResult, Run
from tests.server.queues import begin_work, keys, take_lease

ROOT = Path(__file__).resolve().parents[3]
REPOSITORY, OTHER = RepositoryKey(17, 42), RepositoryKey(17, 43)
NOON, HOUR = 1_767_614_400_000, 3_600_000
NOT_PERMITTED = "it is not permitted: issues: write"
GUID = "0b989ba4-242f-11e5-81e1-c7b6966d2516"
WHO = f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"


@dataclass
class CommandServer:
    """The inbox of a server, and the options with which the command finds it."""

    inbox: Inbox
    location: tuple[str, str]
    run_deliveries: Run

    def run(self, *arguments: str) -> ProgramResult:
        return self.run_deliveries(*arguments, *self.location)

    def json_output(self, *arguments: str) -> object:
        result = self.run(*arguments, "--json")
        assert result.code == 0, result.err
        return result.data

    @property
    def states(self) -> list[str]:
        """The state of each delivery, oldest first."""
        return [row.state for row in reversed(self.inbox.deliveries())]


@pytest.fixture(autouse=True)
def _no_options_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PRECEDENT_") and "TEST" not in name]:
        monkeypatch.delenv(name)


@pytest.fixture
def run_deliveries(call: Run, own_log: None) -> Run:
    """Runs the command in this process, whose log it sets up."""
    return partial(call, "deliveries")


@pytest.fixture
def server(tmp_path: Path, run_deliveries: Run) -> Iterator[CommandServer]:
    """Three deliveries, an hour apart: 1 is dead, 2 and 3 wait."""
    with open_inbox(ServerOptions(data=tmp_path), "test") as inbox:
        commented = Event("issue_comment", "created", 8, comment_id=5)
        arrivals = [
            Delivery("9:a", REPOSITORY, Event("issues", "opened", 7), "octo-org/hello-world", NOON),
            Delivery("9:b", OTHER, commented, "octo-org/other", NOON + HOUR),
            Delivery("9:c", OTHER, Event("push"), "octo-org/other", NOON + 2 * HOUR),
        ]
        assert inbox.put(arrivals) == [True] * 3
        put_aside(inbox, REPOSITORY, NOT_PERMITTED)
        yield CommandServer(inbox, ("--data", str(tmp_path)), run_deliveries)


def put_aside(inbox: Inbox, repository: RepositoryKey, *reasons: str) -> None:
    """End the waiting deliveries of a repository as dead, with these reasons."""
    work = begin_work(inbox, repository)
    report = RunReport(stages=(("look", 0.4), ("say", 1.5)), notes=("one page was skipped: it is too large",))
    results = [Result(each.seq, "dead", why) for each, why in zip(work.deliveries, reasons, strict=True)]
    inbox.end(work, results, report)


@pytest.mark.slow
def test_deliveries_are_listed_newest_first(server: CommandServer) -> None:
    result = server.run("list")
    assert result.code == 0
    assert result.out.splitlines() == [
        "3\twaiting\t2026-01-05T14:00:00+00:00\t17-43\tocto-org/other\tpush\t",
        "2\twaiting\t2026-01-05T13:00:00+00:00\t17-43\tocto-org/other#8\tissue_comment.created\t",
        f"1\tdead\t2026-01-05T12:00:00+00:00\t17-42\tocto-org/hello-world#7\tissues.opened\t{NOT_PERMITTED}",
    ]


@pytest.mark.slow
def test_a_list_can_be_filtered_and_printed_as_json(server: CommandServer) -> None:
    assert numbers(server.json_output("list", "--state", "dead", "--reason", "NOT permitted", "--repo", "17-42")) == [1]
    page = ("--repo", "Octo-Org/Other", "--since", "2026-01-05T12:30", "--until", "2026-01-05T14:30")
    assert numbers(server.json_output("list", *page, "--limit", "1")) == [3]
    assert numbers(server.json_output("list", *page, "--before", "3")) == [2]
    assert numbers(server.json_output("list", "--repo", "octo-org/Other#8")) == [2]
    assert numbers(server.json_output("list", "--repo", "17-43#7")) == []


def numbers(rows: object) -> list[int]:
    assert isinstance(rows, list)
    return [each["number"] for each in rows]


@pytest.mark.slow
def test_show_prints_a_delivery_with_its_last_run(server: CommandServer) -> None:
    lines = server.run("show", "1").out.splitlines()
    assert f"reason       {NOT_PERMITTED}" in lines
    assert "repository   octo-org/hello-world" in lines
    assert [line for line in lines if line.startswith("run stages")] == [
        "run stages   look 0.4",
        "run stages   say 1.5",
    ]
    assert "run notes    one page was skipped: it is too large" in lines
    delivery = server.json_output("show", "1")
    assert isinstance(delivery, dict)
    assert (delivery["number"], delivery["issue"], delivery["run"]["worker"]) == (1, 7, "test")
    server.inbox.put([Delivery(f"9:{GUID}", OTHER, Event("push"), "octo-org/other", NOON)])
    assert "number       4" in server.run("show", GUID.upper()).out
    shown = server.json_output("show", f"9:{GUID}")
    assert isinstance(shown, dict)
    assert (shown["number"], shown["id"]) == (4, GUID), "as the log has it"
    assert server.run("replay", GUID).code == 2
    assert "run" not in server.run("show", "2").out, "it has not run yet"
    result = server.run("show", "99")
    assert result.code == 2
    assert result.err == (
        "precedent deliveries: there is no delivery 99: it was refused or dropped when it arrived, or removed because"
        " of its age; our answer is under Recent deliveries on the App's page, and in the receiver's log\n"
    )


@pytest.mark.slow
def test_a_dead_delivery_is_replayed_and_the_audit_says_who_did_it(server: CommandServer) -> None:
    result = server.run("replay", "1", "2", "--why", "the permission\x1b[31m is there")
    assert result.out == "1 will be tried again, 1 not: not dead, or not found\n"
    delivery = server.inbox.delivery(1)
    assert delivery is not None
    assert (delivery[0].state, delivery[0].attempts) == ("waiting", 0)
    assert REPOSITORY.text in keys(server.inbox)
    line = json.loads(result.err)
    assert (line["message"], line["who"], line["chosen"]) == ("replay: 1 of 2 deliveries", WHO, "1 2")
    why = "the permission[31m is there"
    (entry,) = server.json_output("audit")  # type: ignore[misc]
    assert entry | {"time": ""} == {
        "number": 1, "time": "", "who": WHO, "action": "replay", "done": 1, "asked": 2, "which": "1 2", "why": why,
    }  # fmt: skip
    header, row = server.run("audit", "--header").out.splitlines()
    assert header == "number\ttime\twho\taction\tdone\tasked\twhich\twhy"
    assert row.split("\t") == ["1", entry["time"], WHO, "replay", "1", "2", "1 2", why]


@pytest.mark.slow
def test_dropped_deliveries_keep_the_reason_that_was_given(server: CommandServer) -> None:
    assert server.json_output("drop", "2", "--why", "archived") == {"asked": 1, "done": 1}
    assert server.json_output("drop", "3") == {"asked": 1, "done": 1}
    reasons = [(row.state, row.reason) for row in server.inbox.deliveries(DeliveryFilter(repository=OTHER))]
    assert reasons == [("dropped", "dropped by hand"), ("dropped", "archived")]
    audit = server.json_output("audit")
    assert isinstance(audit, list)
    assert [(each["action"], each["which"], each["why"]) for each in audit] == [
        ("drop", "3", ""),
        ("drop", "2", "archived"),
    ]
    assert server.json_output("audit", "--limit", "1") == audit[:1]
    assert server.json_output("audit", "--before", "2") == audit[1:]
    assert server.json_output("audit", "--until", "2026-01-05") == []


@pytest.mark.slow
def test_all_dead_deliveries_or_a_filtered_part_can_be_replayed_or_dropped(server: CommandServer) -> None:
    put_aside(server.inbox, OTHER, "GitHub did not answer", NOT_PERMITTED)
    assert server.states == ["dead", "dead", "dead"]
    assert server.json_output("replay", "--all-dead", "--reason", "permitted", "--repo", "octo-org/other") == {
        "asked": 1,
        "done": 1,
    }
    assert server.states == ["dead", "dead", "waiting"]
    assert server.json_output("drop", "--all-dead", "--until", "2026-01-05T13:00") == {"asked": 1, "done": 1}
    assert server.states == ["dropped", "dead", "waiting"]
    assert server.json_output("replay", "--all-dead") == {"asked": 1, "done": 1}
    assert server.states == ["dropped", "waiting", "waiting"]
    result = server.run("drop", "--all-dead")
    assert (result.code, result.out) == (0, "0 dropped\n"), "there is none any more"
    audit = server.json_output("audit")
    assert isinstance(audit, list)
    assert [each["which"] for each in audit] == [
        "all dead",
        "all dead, received before 2026-01-05T13:00:00+00:00",
        "all dead, of octo-org/other, with a reason that contains permitted",
    ]


@pytest.mark.slow
def test_a_running_or_finished_delivery_can_be_neither_dropped_nor_replayed(server: CommandServer) -> None:
    work = begin_work(server.inbox, OTHER)
    server.inbox.end(work, [Result(work.deliveries[0].seq, "done", "")], RunReport())
    assert server.inbox.begin(take_lease(server.inbox, OTHER)) is not None
    assert server.run("drop", "2", "3").out == "0 dropped, 2 not: neither waiting nor dead, or not found\n"
    assert server.states == ["dead", "done", "working"]


@pytest.mark.slow
def test_list_works_while_the_database_is_read_only(server: CommandServer, tmp_path: Path) -> None:
    """As when the disk is full: writing a heartbeat fails."""
    server.inbox.database.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "queue.sqlite")) as other, other:
        other.execute("create trigger full before update on heartbeats begin select raise(abort, 'disk full'); end")
    result = server.run("list", "--state", "dead")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("1\tdead")


@pytest.mark.postgres
def test_an_unreachable_database_is_reported_in_one_line(run_deliveries: Run) -> None:
    result = run_deliveries("list", "--database-url", "postgresql://precedent:hushhush@127.0.0.1:1/queue")
    assert result.code == 1
    assert result.err.startswith("precedent deliveries: the queue's database does not answer (")
    assert "hushhush" not in result.err
    assert len(result.err.splitlines()) == 1


HELP = "see --help"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replay"], "replay takes the numbers of deliveries, or --all-dead"),
        (["drop", "1", "--all-dead"], "drop takes the numbers of deliveries, or --all-dead"),
        (["drop", "1", "--repo", "17-42"], "give either numbers or filters: filters go with --all-dead"),
        (["replay", "--all-dead", "--state", "waiting"], "--all-dead means dead ones: leave out --state waiting"),
        (["replay", "--all-dead", "--limit", "5"], f"replay takes no --limit: {HELP}"),
        (["list", "1"], f"list takes no numbers: {HELP}"),
        (["list", "--all-dead"], f"list takes no --all-dead: {HELP}"),
        (["show", "1", "2"], "show takes the number or the GUID of one delivery"),
        (["audit", "--reason", "x"], f"audit takes no --reason: {HELP}"),
    ],
)
def test_a_senseless_combination_of_arguments_is_refused(
    arguments: list[str], message: str, tmp_path: Path, run_deliveries: Run
) -> None:
    result = run_deliveries(*arguments, "--data", str(tmp_path))
    assert (result.code, result.err) == (2, f"precedent deliveries: {message}\n")


@pytest.mark.parametrize("name", ["0", "hello", f"{GUID}0", f"app:{GUID}", f"4:{GUID[:-1]}"])
def test_what_is_no_name_of_a_delivery_is_shown_whole(name: str, tmp_path: Path, run_deliveries: Run) -> None:
    result = run_deliveries("show", name, "--data", str(tmp_path))
    message = f"argument NUMBER: {name!r} is neither a delivery's number nor a GUID"
    assert (result.code, result.err.partition(";")[0]) == (2, f"precedent deliveries: {message}")


@pytest.mark.slow
def test_a_repository_must_be_named_in_full_or_by_its_key(server: CommandServer) -> None:
    result = server.run("list", "--repo", "other")
    assert (result.code, result.err) == (
        2,
        "precedent deliveries: --repo: 'other' is neither OWNER/NAME, OWNER/NAME#ISSUE nor a key such as 17-42\n",
    )


@pytest.mark.parametrize("name", ["--reason", "--repo"])
def test_an_empty_filter_does_not_select_all(name: str, tmp_path: Path, run_deliveries: Run) -> None:
    result = run_deliveries("drop", "--all-dead", name, "", "--data", str(tmp_path))
    assert result.code == 2
    assert result.err.startswith(f"precedent deliveries: argument {name}: it is empty; see")


@pytest.mark.slow
def test_stored_text_cannot_forge_lines_or_control_a_terminal(server: CommandServer) -> None:
    hostile = "x\n9\tdead\x1b[2J"
    event = Event("issues", "opened", 9)
    server.inbox.put([Delivery("9:d", RepositoryKey(17, 44), event, f"octo-org/{hostile}", received_at=NOON)])
    put_aside(server.inbox, RepositoryKey(17, 44), hostile)
    for arguments in (("list", "--repo", "17-44"), ("show", "4")):
        output = server.run(*arguments).out
        assert "\x1b" not in output
        assert "x 9 dead[2J" in output
        assert not [line for line in output.splitlines() if line.startswith("9")]


def test_without_a_queue_it_says_where_it_looked(tmp_path: Path) -> None:
    """In a separate process, as typed in a shell."""
    command = [sys.executable, "-m", "bot", "deliveries", "list", "--data", str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    message = f"there is no queue in {tmp_path}: give the server's --data or --database-url"
    assert result.stderr == f"precedent deliveries: {message}\n"
    assert list(tmp_path.iterdir()) == []
