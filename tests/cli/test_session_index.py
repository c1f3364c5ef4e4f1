"""The index of agents' sessions may be locked, damaged or unreadable: every command and tool still answers."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bot.errors import WorldError
from bot.local_cache.session_index import MAX_WAIT, SessionIndex
from bot.local_cache.sessions import SessionScope, ask_sessions
from tests.agent_folders import AGENT_FOLDERS
from tests.cli.checkouts import ROOT, create_cookie_checkout
from tests.local_cache.outlines import all_outlines
from tests.sources.session_lines import response, write

LOG = ".claude/logging/log.jsonl"
NOTE = "Agents' sessions are left out: "
COMMANDS = {
    "search": ("search", "cookie", "path", "--json"),
    "lines": ("search", "cookie", "path"),
    "ss": ("ss", "cookie", "path", "--json"),
    "work": ("ss",),
    "what": ("what", "--json"),
    "show": ("show", "48", "--json"),
    "context": ("context", "--issue", "48", "--as-of", "2026-05-15T12:00Z"),
    "branch": ("context", "--branch"),
}
TOOLS: dict[str, dict[str, Any]] = {
    "search_memories": {"query": "cookie path"},
    "memory_smart_search": {"query": "cookie path"},
    "memory_what": {},
    "get_conversation": {"id": 48},
    "issue_context": {"number": 48},
}
ASK = """
import ctypes, io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from time import monotonic
if os.geteuid() == 0:  # no right to read and write what the modes of files forbid
    for capability in (1, 2):
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0
    if sys.argv[1] != "again":
        os.execv(sys.executable, [sys.executable, "-c", os.environ["ASK"], "again", *sys.argv[1:]])
    del sys.argv[1]
from bot.cli.main import main
import bot.cli.commands.context  # its modules take a second to load, which is not what is timed
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ToolContext
store, commands, tools = sys.argv[1], *map(json.loads, sys.argv[2:])
answers = {}
for name, arguments in commands.items():
    begun, out, err = monotonic(), io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*arguments, "--store", store])
    seconds, shown, lines = monotonic() - begun, out.getvalue(), err.getvalue().splitlines()
    if shown.startswith("{"):
        data = json.loads(shown)
        assert set(data.pop("notes", ())) <= set(lines)
        shown = json.dumps(data)
    answers[name] = [shown if code == 0 else f"code {code}", lines, seconds]
context = ToolContext(MemoryOptions(Path.cwd(), store=Path(store)))
for name, arguments in tools.items():
    begun, result = monotonic(), answer(context, name, arguments)
    notes = result.data.pop("notes", [result.text])
    answers[name] = [json.dumps(result.data), notes, monotonic() - begun]
print(json.dumps(answers))
"""


class Answer(NamedTuple):
    """What a command or tool shows, its notes, and how long it took."""

    shown: str
    notes: list[str]
    seconds: float


class Machine:
    """A checkout with a transcript in it, a cache, and the sample's memory."""

    def __init__(self, checkout: Path, cache: Path, store: Path) -> None:
        self.checkout, self.cache, self.store = checkout, cache, store

    def log(self, *texts: str) -> None:
        first = {"type": "user", "sessionId": "c-1", "timestamp": "2026-05-15T11:40:00Z", "gitBranch": "fix/login-loop"}
        content = "Fix #48: which cookie path?"
        lines: list[Any] = [first | {"message": {"role": "user", "content": content}}]
        lines += [response(text, "c-1", f"2026-05-15T11:{41 + n}:00Z") for n, text in enumerate(texts)]
        write(self.checkout / LOG, *lines)

    @property
    def index(self) -> Path:
        (file,) = (self.cache / "precedent/logs").glob("*.db")
        return file

    def ask(self) -> dict[str, Answer]:
        """Ask every command and every tool in another process, without the rights of root."""
        environment = os.environ | {"PYTHONPATH": str(ROOT), "ASK": ASK}
        command = [sys.executable, "-c", ASK, str(self.store), json.dumps(COMMANDS), json.dumps(TOOLS)]
        process = subprocess.run(
            command, cwd=self.checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return {name: Answer(*fields) for name, fields in json.loads(process.stdout).items()}

    def without_sessions(self) -> dict[str, str]:
        """What is shown in a checkout without a transcript."""
        (self.checkout / ".claude").rename(self.checkout.parent / "aside")
        answers = self.ask()
        (self.checkout.parent / "aside").rename(self.checkout / ".claude")
        return {name: answer.shown for name, answer in answers.items()}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_cache: Path, sample_store: Path) -> Machine:
    for name in AGENT_FOLDERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(store_cache, tmp_path / "cache")
    machine = Machine(create_cookie_checkout(tmp_path / "linkbarn"), tmp_path / "cache", sample_store)
    machine.log("The cookie path changed.")
    return machine


@contextmanager
def locked(file: Path, mode: str) -> Iterator[None]:
    """Another process has locked the file."""
    hold = f"import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('BEGIN {mode}'); print(); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        yield
        process.communicate()


def garbage(file: Path) -> None:
    file.write_bytes(b"garbage " * 5_000)


def garbage_inside(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4_096:] = b"\xa5" * len(data[4_096:])
    file.write_bytes(data)


def without_a_table(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("DROP TABLE texts")


def wrong_values(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE passages SET at = 'tomorrow', length = x'00'")
        database.commit()


def numbers_for_texts(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE changed AS SELECT number, text, +5 AS files FROM texts")
        database.execute("DROP TABLE texts")
        database.execute("ALTER TABLE changed RENAME TO texts")
        database.commit()


def unreadable(file: Path) -> None:
    file.chmod(0)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_link(file: Path) -> None:
    file.rename(file.with_suffix(".aside"))
    file.symlink_to(file.with_suffix(".aside"))


def test_a_healthy_index_adds_sessions_to_every_answer(machine: Machine) -> None:
    without = machine.without_sessions()
    for name, answer in machine.ask().items():
        assert ("c-1" in answer.shown, "c-1" in without[name]) == (True, False), name
        assert not [note for note in answer.notes if NOTE in note], name


@pytest.mark.slow
def test_a_locked_index_costs_every_answer_two_seconds_and_its_sessions(machine: Machine) -> None:
    expected = machine.without_sessions()
    before = machine.ask()
    with locked(machine.index, "EXCLUSIVE"):
        answers = machine.ask()
    for name, answer in answers.items():
        assert answer.shown == expected[name], name
        assert answer.notes[-1:] == [f"{NOTE}{machine.index} cannot be used: database is locked; try again"], name
        assert answer.seconds < MAX_WAIT + 1.5 + 2 * before[name].seconds, name  # it waits once, on a busy machine too


@pytest.mark.slow
def test_an_index_that_another_process_updates_is_read_as_it_is(machine: Machine) -> None:
    before = machine.ask()
    machine.log("The cookie path changed.", "The cookie path is lost.")
    with locked(machine.index, "IMMEDIATE"):
        during = machine.ask()
    after = machine.ask()
    reason = "The index of agents' sessions was not updated, so the newest may be missing: database is locked"
    for name, answer in during.items():
        assert answer.shown == before[name].shown, name
        assert reason in answer.notes, name
        assert answer.seconds < MAX_WAIT + 1.5 + 2 * before[name].seconds, name  # it waits once, on a busy machine too
    assert before["search"].shown != after["search"].shown


@pytest.mark.slow
@pytest.mark.parametrize("damage", [garbage, garbage_inside, without_a_table, wrong_values, numbers_for_texts])
def test_a_damaged_index_is_replaced(machine: Machine, damage: Callable[[Path], None]) -> None:
    expected = machine.ask()
    damage(machine.index)
    answers = machine.ask()
    assert {name: answer.shown for name, answer in answers.items()} == {n: each.shown for n, each in expected.items()}
    with closing(sqlite3.connect(machine.index)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.slow
@pytest.mark.parametrize("obstruct", [unreadable, a_folder, a_link])
def test_an_index_that_cannot_be_opened_costs_a_note(machine: Machine, obstruct: Callable[[Path], None]) -> None:
    expected = machine.without_sessions()
    machine.ask()
    obstruct(machine.index)
    for name, answer in machine.ask().items():
        assert answer.shown == expected[name], name
        assert answer.notes[-1].startswith(f"{NOTE}{machine.index} cannot be used: "), name
        assert answer.notes[-1].endswith("; set XDG_CACHE_HOME to another folder"), name


@pytest.mark.slow
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_read_only_index_is_read_as_it_is(machine: Machine, is_folder: bool) -> None:
    before = machine.ask()
    (machine.index.parent if is_folder else machine.index).chmod(0o500 if is_folder else 0o400)
    for name, answer in machine.ask().items():
        assert answer == before[name]._replace(seconds=answer.seconds), name
    machine.log("The cookie path changed.", "The cookie path is lost.")
    for name, answer in machine.ask().items():
        assert answer.shown == before[name].shown, name
        assert "sessions was not updated, so the newest may be missing: " in "\n".join(answer.notes), name
    machine.index.parent.chmod(0o700)


@pytest.mark.slow
def test_processes_that_start_at_once_without_an_index_all_succeed(machine: Machine) -> None:
    """One builds the index; the others wait for it, and one that has waited too long says what it lacks."""
    machine.log(*(f"The cookie path changed for the word{number}" for number in range(18)))
    for number in range(60):
        lines = [response(f"A zebra {number} {n}", f"z-{number}") for n in range(40)]
        write(machine.checkout / f".claude/logging/{number}.jsonl", *lines)

    def search(_: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bot", "search", "cookie", "path", "--json", "--store", str(machine.store)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(
            command, cwd=machine.checkout, env=environment, capture_output=True, text=True, check=False
        )

    for damage in (None, garbage):
        if damage:
            damage(machine.index)
        with ThreadPoolExecutor(3) as pool:
            processes = list(pool.map(search, range(3)))
        late = [process for process in processes if "the newest may be missing: database is locked" in process.stderr]
        assert len(late) < len(processes)
        for process in processes:
            assert process.returncode == 0, process.stderr
            expected = {48} if process in late else {48, "c-1"}
            assert expected <= {row["id"] for row in json.loads(process.stdout)}, process.stderr
        with closing(sqlite3.connect(machine.index)) as database:
            assert database.execute("SELECT count(*) FROM passages").fetchall() == [(19 + 60 * 40,)]
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_search_for_sessions_alone_says_that_their_index_is_locked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(machine.checkout)
    scope = SessionScope(machine.checkout)
    assert [hit.session for hit in ask_sessions(scope, lambda index: index.search("cookie")).found] == ["c-1"] * 2
    with locked(machine.index, "EXCLUSIVE"), pytest.raises(WorldError, match="database is locked; try again"):
        ask_sessions(scope, lambda index: index.search("cookie"))


def test_a_fault_of_ours_is_no_damage(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(machine.checkout)

    def fail(_: object) -> list[str]:
        raise ValueError("ours")

    with pytest.raises(ValueError, match="ours"):
        ask_sessions(SessionScope(machine.checkout), fail)


@pytest.mark.slow
def test_any_damage_costs_at_most_a_rebuild(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def question(index: SessionIndex) -> list[object]:
        outlines = [*all_outlines(index), *index.find_by_subject([48], "", "fix/login-loop")]
        return [*index.search("cookie path", 50), *outlines, index.session("c-1")]

    machine.log(*(f"The cookie path changed for the word{number}" for number in range(18)))
    monkeypatch.chdir(machine.checkout)
    scope = SessionScope(machine.checkout)
    count = len(ask_sessions(scope, question).found)
    healthy, chance = machine.index.read_bytes(), random.Random(48)
    for _ in range(60):
        damaged = bytearray(healthy)
        for _ in range(chance.choice((1, 5, 50))):
            start, length = chance.randrange(len(damaged)), chance.choice((1, 16, 200))
            damaged[start : start + length] = chance.randbytes(length)
        machine.index.write_bytes(damaged)
        (machine.checkout / LOG).touch()
        assert len(ask_sessions(scope, question).found) <= count
        machine.index.write_bytes(healthy)
    assert len(ask_sessions(scope, question).found) == count
