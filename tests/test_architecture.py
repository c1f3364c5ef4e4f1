"""The shape of the house: arrows, one importer for each foreign library, no clock in the middle, short pieces."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

ARROWS = {
    "errors": "",
    "model": "",
    "answer": "model",
    "settings": "errors",
    "config": "settings errors",
    "inputs": "settings errors",
    "archive": "model errors",
    "reading": "model errors answer settings",
    "ranking": "errors",
    "numeric": "errors model",
    "memory": "numeric ranking reading model errors settings archive",
    "recall": "numeric ranking reading model errors answer settings",
    "comment": "reading model errors answer settings config",
    "github": "reading model errors settings archive",
    "sources": "reading model errors settings archive",
    "glance": "memory numeric ranking reading model errors settings archive sources",
    "evaluation": "recall comment memory numeric ranking reading model errors answer settings archive",
    "flow": "evaluation recall comment memory numeric ranking github sources "
    "reading model errors answer settings config archive",
    "server": "flow evaluation recall comment memory numeric ranking github sources "
    "reading model errors answer settings config archive",
    "doors": "glance server flow evaluation recall comment memory numeric ranking github sources "
    "reading model errors answer settings config inputs archive",
    "entry": "doors errors",
}
"""A room → the rooms that it may import from, beside itself."""

ROOM_OF = {
    "card": "model",
    "indexed": "model",
    "kept": "model",
    "backfill": "flow",
    "duty": "flow",
    "forget": "flow",
    "learning": "flow",
    "lookout": "flow",
    "missing": "flow",
    "outfit": "flow",
    "parts": "flow",
    "plans": "flow",
    "rebuild": "flow",
    "renewal": "flow",
    "replies": "flow",
    "shown": "flow",
    "feedback": "flow",
    "voice": "flow",
    "__main__": "entry",
    "__init__": "entry",
}
"""Modules beside the rooms that are part of one."""

CONTRACTS = {"bot.memory.index", "bot.memory.store"}
"""What the pure rooms may know of memory: protocols and their errors."""

PURE = ("reading", "recall", "comment")
OUTSIDE = {
    *("asyncio", "ctypes", "ftplib", "glob", "http", "importlib", "io", "multiprocessing", "os", "pathlib", "pickle"),
    *("random", "secrets", "select", "shutil", "signal", "smtplib", "socket", "sqlite3", "ssl", "subprocess"),
    *("tempfile", "threading", "urllib.request", "uuid", "webbrowser"),
}
"""Parts of the standard library that a pure room has no use for: they touch the world, or answer differently twice."""

EXEMPT = {"bot.comment.render": {"imports pathlib", "imports pathlib.Path"}}
"""The templates that we ship are read where they are rendered."""

CLOCKS = {
    "now",
    "utcnow",
    "today",
    "time",
    "time_ns",
    "monotonic",
    "perf_counter",
    "process_time",
    "localtime",
    "gmtime",
    "sleep",
}
STARTERS = {
    "bot.memory.checkout_git": "git in a checkout",
    "bot.memory.git": "git in a repository of our own",
    "bot.memory.objects": "the same, for the processes that stay",
    "bot.server.children": "our own workers",
    "bot.server.startup": "git --version",
}
"""The modules that may start a program, and which one."""

STARTING = re.compile(
    r"(subprocess|multiprocessing|pty|_posixsubprocess)(\.|$)"
    r"|(os|posix)\.(exec\w+|fork\w*|popen|posix_spawnp?|spawn\w+|startfile|system)$"
    r"|asyncio(\.subprocess)?\.create_subprocess_\w+$|\w+\.subprocess_(exec|shell)$"
)
"""What starts programs in the standard library, by its dotted name."""

OWN_REPOSITORIES = "bot.memory."
"""Where `bot.memory.git.Git` may be used, which trusts the settings of the repository that it is given."""

FOREIGN_PACKAGES = {"numpy": "bot.numeric", "whoosh": "bot.memory.whoosh", "githubkit": "bot.github"}
"""Libraries that a package of ours, instead of one module, keeps to itself."""

SERVING = {
    "dbos": "bot.server.tickets",
    "sqlalchemy": "bot.server.database",
    "starlette": "bot.server.web",
    "uvicorn": "bot.server.listen",
    "prometheus_client": "bot.server.metrics",
    "psycopg": "",
    "mcp": "bot.doors.agents.protocol",
    "mcp_types": "bot.doors.agents.protocol",
    "anyio": "bot.doors.agents.protocol",
}
"""A library of the extras ``server`` and ``mcp`` → the only module that may import it."""


@dataclass(frozen=True)
class Module:
    """One of our modules. ``imports`` holds dotted names: of ``from a import b`` both ``a`` and ``a.b``."""

    name: str
    tree: ast.Module
    text: str

    @property
    def room(self) -> str:
        first = self.name.split(".")[1] if "." in self.name else "__init__"
        return ROOM_OF.get(first, first)

    @property
    def imports(self) -> set[str]:
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        return found


@cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted((ROOT / "bot").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, ast.parse(text, str(path)), text)
    return found


def module(text: str, name: str = "bot.reading.sample") -> Module:
    return Module(name, ast.parse(text), text)


def ours(one: Module, known: set[str]) -> set[str]:
    """The modules of ours that it imports; a package only where nothing inside it is meant."""
    named = {each for each in one.imports if each in known}
    return {each for each in named if not any(other.startswith(f"{each}.") for other in named)} - {one.name}


def crossed_arrows(one: Module, known: set[str]) -> list[str]:
    allowed = {*ARROWS[one.room].split(), one.room}
    wrong = []
    for target in sorted(ours(one, known)):
        room = module("", target).room
        contract = one.room in ("recall", "comment") and target in CONTRACTS
        if target != "bot" and room not in allowed and not contract:
            wrong.append(f"{one.name} imports {target}")
    return wrong


def impure(one: Module) -> list[str]:
    """Where a pure room reads a clock, opens a file or imports something that touches the world."""
    wrong = sorted(f"imports {name}" for name in one.imports if name in OUTSIDE or name.split(".")[0] in OUTSIDE)
    imports_time = any(name == "time" or name.startswith("time.") for name in one.imports)
    wrong += ["imports time"] if imports_time else []
    for node in ast.walk(one.tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in CLOCKS
            and ast.unparse(node.value) in {"datetime", "date", "datetime.datetime"}
        ):
            wrong.append(f"line {node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "input"):
            wrong.append(f"line {node.lineno}: {node.func.id}()")
    return wrong


def prints(one: Module) -> list[str]:
    calls = (node for node in ast.walk(one.tree) if isinstance(node, ast.Call))
    return [
        f"{one.name}:{call.lineno} prints" for call in calls if ast.unparse(call.func) in ("print", "sys.stdout.write")
    ]


def foreign(one: Module) -> set[str]:
    return {name.split(".")[0] for name in one.imports} - sys.stdlib_module_names - {"bot"}


def strayed(one: Module) -> list[str]:
    """The libraries of the server that it imports though another module is theirs."""
    return [f"{one.name} imports {name}" for name in sorted(foreign(one)) if SERVING.get(name, one.name) != one.name]


def started(one: Module) -> list[str]:
    """What it imports or calls that starts a program, though that is another module's part."""
    calls = {ast.unparse(node.func) for node in ast.walk(one.tree) if isinstance(node, ast.Call)}
    found = sorted(name for name in one.imports | calls if STARTING.match(name))
    return [] if one.name in STARTERS else [f"{one.name} has {name}" for name in found]


def functions(one: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(one.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    named = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(named) - (named[:1] in (["self"], ["cls"]))


def circle(edges: dict[str, set[str]]) -> list[str]:
    """One circle of imports, empty when there is none."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for target in sorted(edges.get(name, ())):
            if found := walk(target, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(edges) if (found := walk(name, []))), [])


def test_every_module_lives_in_a_room_that_the_plan_knows() -> None:
    assert sorted({one.room for one in modules().values()} - set(ARROWS)) == []


def test_imports_follow_the_arrows() -> None:
    known = set(modules())
    assert [wrong for one in modules().values() for wrong in crossed_arrows(one, known)] == []


def test_the_plan_itself_goes_in_one_direction() -> None:
    assert circle({room: set(targets.split()) for room, targets in ARROWS.items()}) == []
    assert {target for targets in ARROWS.values() for target in targets.split()} <= set(ARROWS)


def test_no_imports_go_in_a_circle() -> None:
    known = set(modules())
    edges = {}
    for name, one in modules().items():
        # A package's __init__ may gather what its own modules offer, and these may import each other.
        edges[name] = {target for target in ours(one, known) if not name.startswith(f"{target}.")}
    assert circle(edges) == []


def test_imports_are_absolute() -> None:
    nodes = ((one.name, node) for one in modules().values() for node in ast.walk(one.tree))
    assert [name for name, node in nodes if isinstance(node, ast.ImportFrom) and node.level] == []


def test_each_foreign_library_has_one_importer() -> None:
    importers: dict[str, set[str]] = {}
    for one in modules().values():
        for library in foreign(one):
            package = FOREIGN_PACKAGES.get(library, "")
            importers.setdefault(library, set()).add(package if package and one.name.startswith(package) else one.name)
    assert {library: sorted(names) for library, names in importers.items() if len(names) > 1} == {}


def test_what_only_the_server_needs_is_imported_where_it_belongs() -> None:
    assert [wrong for one in modules().values() for wrong in strayed(one)] == []


@pytest.mark.parametrize("room", PURE)
def test_the_middle_does_no_io_and_reads_no_clock(room: str) -> None:
    found = {name: set(impure(one)) - EXEMPT.get(name, set()) for name, one in modules().items() if one.room == room}
    assert {name: sorted(wrong) for name, wrong in found.items() if wrong} == {}


def test_programs_are_started_where_they_belong() -> None:
    assert [wrong for one in modules().values() for wrong in started(one)] == []
    assert {name for name in STARTERS if name in modules()} == set(STARTERS)


def test_git_is_started_in_a_checkout_by_one_module_and_elsewhere_in_repositories_of_our_own() -> None:
    users = {name for name, one in modules().items() if "bot.memory.git.Git" in one.imports}
    assert sorted(name for name in users if not name.startswith(OWN_REPOSITORIES)) == []
    users = {name for name, one in modules().items() if "bot.memory.checkout_git.CheckoutGit" in one.imports}
    assert {"bot.doors.remotes", "bot.doors.worktree", "bot.doors.setting_up", "bot.memory.journal"} == users


def test_only_doors_print() -> None:
    assert [wrong for one in modules().values() if one.room not in ("doors", "entry") for wrong in prints(one)] == []


def test_a_broad_except_outside_the_doors_raises_again() -> None:
    handlers = (
        (one, node) for one in modules().values() for node in ast.walk(one.tree) if isinstance(node, ast.ExceptHandler)
    )
    wrong = []
    for one, node in handlers:
        broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
        if broad and one.room not in ("doors", "entry") and not isinstance(node.body[-1], ast.Raise):
            wrong.append(f"{one.name}:{node.lineno}")
    assert wrong == []


def test_every_module_opens_with_its_purpose() -> None:
    assert [name for name, one in modules().items() if one.text.strip() and not ast.get_docstring(one.tree)] == []


def test_names_are_no_drawers() -> None:
    drawers = {"util", "utils", "helper", "helpers", "manager", "misc", "common", "base"}
    assert [name for name in modules() if drawers & set(name.split("."))] == []


def test_pieces_are_short() -> None:
    long = [f"{name}: {one.text.count(chr(10))} lines" for name, one in modules().items() if one.text.count("\n") > 500]
    sizes = []
    for one in modules().values():
        for node in functions(one):
            sizes.append(lines(node))
            if lines(node) > 60 or parameters(node) > 6:
                long.append(f"{one.name}:{node.lineno} {node.name}: {lines(node)} lines, {parameters(node)} parameters")
    assert long == []
    assert sorted(sizes)[int(len(sizes) * 0.95)] <= 40


KNOWN = {
    "bot",
    "bot.model",
    "bot.github",
    "bot.github.client",
    "bot.memory",
    "bot.memory.store",
    "bot.memory.branch",
    "bot.flow",
    "bot.server.turn",
    "bot.doors.cli",
}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("bot.recall.rank", "from bot.github.client import Client", ["bot.recall.rank imports bot.github.client"]),
        ("bot.recall.rank", "from bot.github import client", ["bot.recall.rank imports bot.github.client"]),
        ("bot.recall.rank", "def f():\n    import bot.memory.branch", ["bot.recall.rank imports bot.memory.branch"]),
        ("bot.recall.rank", "from bot.memory.store import Store\nfrom bot.model import Thread", []),
        ("bot.reading.words", "from bot.memory.store import Store", ["bot.reading.words imports bot.memory.store"]),
        ("bot.duty", "from bot.github.client import Client", []),
        ("bot.server.turn", "from bot.flow import handle\nfrom bot.github.client import Client", []),
        ("bot.flow", "from bot.server.turn import turn", ["bot.flow imports bot.server.turn"]),
        ("bot.server.run", "from bot.doors.cli import main", ["bot.server.run imports bot.doors.cli"]),
        ("bot.model", "from bot.flow import handle", ["bot.model imports bot.flow"]),
    ],
)
def test_an_arrow_in_the_wrong_direction_is_seen(name: str, text: str, expected: list[str]) -> None:
    assert crossed_arrows(module(text, name), KNOWN) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("bot.server.tickets", "from dbos import DBOS", []),
        ("bot.server.ledger", "import sqlalchemy as sa", ["bot.server.ledger imports sqlalchemy"]),
        ("bot.server.database", "import psycopg", ["bot.server.database imports psycopg"]),
        ("bot.doors.operating", "def f():\n    import uvicorn", ["bot.doors.operating imports uvicorn"]),
    ],
)
def test_a_library_of_the_server_in_the_wrong_place_is_seen(name: str, text: str, expected: list[str]) -> None:
    assert strayed(module(text, name)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import datetime\nx = datetime.now()",
        "import datetime\nx = datetime.datetime.utcnow",
        "from datetime import date\nx = date.today()",
        "from time import monotonic",
        "import time",
        "import os.path",
        "from urllib.request import urlopen",
        "def f():\n    import subprocess",
        "x = open('f')",
    ],
)
def test_a_clock_or_a_file_in_the_middle_is_seen(text: str) -> None:
    assert impure(module(text))


def test_what_is_pure_is_not_blamed() -> None:
    assert (
        impure(
            module(
                "from datetime import datetime, UTC\nfrom urllib.parse import quote\nx = datetime.fromtimestamp(0, UTC)"
            )
        )
        == []
    )


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess",
        "def f():\n    from subprocess import run",
        "import os\nos.system('git status')",
        "import os\nos.execvp('git', ['git'])",
        "from os import posix_spawn",
        "import asyncio\nasyncio.create_subprocess_exec('git')",
    ],
)
def test_a_program_that_is_started_in_the_wrong_place_is_seen(text: str) -> None:
    assert started(module(text, "bot.doors.sample"))
    assert not started(module(text, "bot.memory.checkout_git"))


def test_a_circle_is_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []
