"""The order of the packages, unique class names, one importer for each library, a pure middle, short pieces."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

ORDER = (
    *(
        "errors",
        "files",
        "domain",
        "settings",
        "reading",
        "git",
        "ranking",
        "index",
        "memory",
        "recall",
        "comment",
        "organisation",
    ),
    *("github", "sources", "questions", "local_cache", "evaluation", "pipeline"),
    *("action", "mcp", "server", "cli", "__main__"),
)
"""The packages, and the modules beside them. Each may import what stands before it."""

FORBIDDEN = {
    "recall": {"git", "memory", "index"},
    "comment": {"git", "memory", "index", "recall"},
    "github": {"memory"},
    "sources": {"memory"},
    "questions": {"git", "memory"},
    "mcp": {"action"},
    "server": {"action", "mcp"},
}
"""A package → what it may not import although it stands before it."""

CONTRACTS = {"recall": {"bot.index.protocol"}}
"""What a package may know of another that it may not import: protocols and their errors."""

DOORS = ("action", "mcp", "server", "cli", "__main__")
"""Where a run begins and ends: only these print, and catch what nobody expected."""

PURE = ("reading", "recall", "comment", "questions")
OUTSIDE = {
    *("asyncio", "ctypes", "ftplib", "glob", "http", "importlib", "io", "multiprocessing", "os", "pathlib", "pickle"),
    *("random", "secrets", "select", "shutil", "signal", "smtplib", "socket", "sqlite3", "ssl", "subprocess"),
    *("tempfile", "threading", "urllib.request", "uuid", "webbrowser"),
}
"""Parts of the standard library that a pure room has no use for: they touch the world, or answer differently twice."""

READS_ITS_FILE = {"imports pathlib", "imports pathlib.Path"}
EXEMPT = {"bot.comment.render": READS_ITS_FILE, "bot.reading.endings.phrases": READS_ITS_FILE}
"""The templates and phrases that we ship are read where they are used."""

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
    "bot.git.process": "git",
    "bot.server.processes": "our own workers",
    "bot.server.startup_check": "git --version",
}
"""The modules that may start a program, and which one."""

STARTING = re.compile(
    r"(subprocess|multiprocessing|pty|_posixsubprocess)(\.|$)"
    r"|(os|posix)\.(exec\w+|fork\w*|popen|posix_spawnp?|spawn\w+|startfile|system)$"
    r"|asyncio(\.subprocess)?\.create_subprocess_\w+$|\w+\.subprocess_(exec|shell)$"
)
"""What starts programs in the standard library, by its dotted name."""

OWN_REPOSITORIES = ("bot.git.", "bot.memory.")
"""Where `bot.git.repository.Git` may be used, which trusts the settings of the repository that it is given."""

FOREIGN_PACKAGES = {
    "numpy": ("bot.ranking", "bot.index"),
    "whoosh": ("bot.index.whoosh",),
}
"""Libraries that packages of ours, instead of one module, keep to themselves."""

SERVING = {
    "sqlalchemy": "bot.server.database",
    "starlette": "bot.server.web",
    "uvicorn": "bot.server.web",
    "prometheus_client": "bot.server.metrics",
    "opentelemetry": "bot.server.tracing",
    "psycopg": "",
    "mcp": "bot.mcp.server",
    "mcp_types": "bot.mcp.server",
    "anyio": "bot.mcp.server",
    "lancedb": "bot.organisation.lance",
    "pyarrow": "bot.organisation.lance",
}
"""A library of the extras ``server``, ``traces``, ``mcp`` and ``org`` → the only module that may import it."""


@dataclass(frozen=True)
class Module:
    """One of our modules. ``imports`` holds dotted names: of ``from a import b`` both ``a`` and ``a.b``."""

    name: str
    tree: ast.Module
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def room(self) -> str:
        return self.name.split(".")[1] if "." in self.name else "__main__"

    @cached_property
    def imports(self) -> set[str]:
        found = set()
        for node in self.nodes:
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


def upward(one: Module, known: set[str]) -> list[str]:
    """Its imports of packages that stand after its own, or that its own may not know."""
    before = {*ORDER[: ORDER.index(one.room) + 1]} - FORBIDDEN.get(one.room, set())
    contracts = CONTRACTS.get(one.room, set())
    targets = sorted(ours(one, known) - {"bot"} - contracts)
    return [f"{one.name} imports {target}" for target in targets if module("", target).room not in before]


def impure(one: Module) -> list[str]:
    """Where a pure room reads a clock, opens a file or imports something that touches the world."""
    wrong = sorted(f"imports {name}" for name in one.imports if name in OUTSIDE or name.split(".")[0] in OUTSIDE)
    imports_time = any(name == "time" or name.startswith("time.") for name in one.imports)
    wrong += ["imports time"] if imports_time else []
    for node in one.nodes:
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
    calls = (node for node in one.nodes if isinstance(node, ast.Call))
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
    calls = {ast.unparse(node.func) for node in one.nodes if isinstance(node, ast.Call)}
    found = sorted(name for name in one.imports | calls if STARTING.match(name))
    return [] if one.name in STARTERS else [f"{one.name} has {name}" for name in found]


def functions(one: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in one.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


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


def test_every_module_is_in_a_package_of_the_order() -> None:
    assert {one.room for one in modules().values()} == set(ORDER)


def test_imports_point_to_what_stands_before() -> None:
    known = set(modules())
    assert [wrong for one in modules().values() for wrong in upward(one, known)] == []


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for one in modules().values():
        for node in one.tree.body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(one.name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_imports_go_in_a_circle() -> None:
    known = set(modules())
    edges = {}
    for name, one in modules().items():
        # A package's __init__ may gather what its own modules offer, and these may import each other.
        edges[name] = {target for target in ours(one, known) if not name.startswith(f"{target}.")}
    assert circle(edges) == []


def test_imports_are_absolute() -> None:
    nodes = ((one.name, node) for one in modules().values() for node in one.nodes)
    assert [name for name, node in nodes if isinstance(node, ast.ImportFrom) and node.level] == []


def test_each_foreign_library_has_one_importer() -> None:
    importers: dict[str, set[str]] = {}
    for one in modules().values():
        for library in foreign(one):
            packages = FOREIGN_PACKAGES.get(library, ())
            is_at_home = one.name.startswith(packages) if packages else False
            importers.setdefault(library, set()).add(library if is_at_home else one.name)
    assert {library: sorted(names) for library, names in importers.items() if len(names) > 1} == {}


def test_whoosh_is_reached_through_one_door() -> None:
    """Other packages know the protocol; `bot.index` opens what implements it."""
    inside = ("whoosh", "bot.index.whoosh")
    users = {name for name, one in modules().items() if any(each.startswith(inside) for each in one.imports)}
    assert {name for name in users if not name.startswith("bot.index.whoosh")} == {"bot.index"}


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
    users = {name for name, one in modules().items() if "bot.git.repository.Git" in one.imports}
    assert sorted(name for name in users if not name.startswith(OWN_REPOSITORIES)) == []
    users = {name for name, one in modules().items() if "bot.git.checkout.CheckoutGit" in one.imports}
    assert {"bot.cli.commands.init", "bot.memory.folder_store"} == users


def test_only_doors_print() -> None:
    assert [wrong for one in modules().values() if one.room not in DOORS for wrong in prints(one)] == []


def test_a_broad_except_outside_the_doors_raises_again() -> None:
    handlers = ((one, node) for one in modules().values() for node in one.nodes if isinstance(node, ast.ExceptHandler))
    wrong = []
    for one, node in handlers:
        broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
        if broad and one.room not in DOORS and not isinstance(node.body[-1], ast.Raise):
            wrong.append(f"{one.name}:{node.lineno}")
    assert wrong == []


def test_every_module_opens_with_its_purpose() -> None:
    assert [name for name, one in modules().items() if one.text.strip() and not ast.get_docstring(one.tree)] == []


def test_names_are_no_drawers() -> None:
    drawers = {"util", "utils", "helper", "helpers", "manager", "misc", "common", "base"}
    assert [name for name in modules() if drawers & set(name.split("."))] == []


def test_pieces_are_short() -> None:
    """The parameters of a tool for agents are those of its function."""
    long = [f"{name}: {one.text.count(chr(10))} lines" for name, one in modules().items() if one.text.count("\n") > 500]
    sizes = []
    for one in modules().values():
        for node in functions(one):
            sizes.append(lines(node))
            is_tool = one.name == "bot.mcp.tools" and node.args.args[:1] and node.args.args[0].arg == "tools"
            if lines(node) > 60 or (parameters(node) > 6 and not is_tool):
                long.append(f"{one.name}:{node.lineno} {node.name}: {lines(node)} lines, {parameters(node)} parameters")
    assert long == []
    assert sorted(sizes)[int(len(sizes) * 0.95)] <= 40


KNOWN = {
    "bot.index.protocol",
    "bot.index.document",
    "bot",
    "bot.domain.thread",
    "bot.github",
    "bot.github.client",
    "bot.memory",
    "bot.memory.store",
    "bot.memory.branch_store",
    "bot.pipeline.handle",
    "bot.server.reconcile",
    "bot.cli.main",
}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("bot.recall.answer", "from bot.github.client import Client", ["bot.github.client"]),
        ("bot.recall.answer", "from bot.github import client", ["bot.github.client"]),
        ("bot.recall.answer", "def f():\n    import bot.memory.branch_store", ["bot.memory.branch_store"]),
        ("bot.recall.answer", "from bot.index.protocol import Query\nfrom bot.domain.thread import Thread", []),
        ("bot.recall.answer", "from bot.index.document import document", ["bot.index.document"]),
        ("bot.reading.analyzer", "from bot.memory.store import Store", ["bot.memory.store"]),
        ("bot.pipeline.eligibility", "from bot.github.client import Client", []),
        ("bot.server.reconcile", "from bot.pipeline.handle import handle\nfrom bot.github.client import Client", []),
        ("bot.pipeline.handle", "from bot.server.reconcile import turn", ["bot.server.reconcile"]),
        ("bot.server.processes", "from bot.cli.main import main", ["bot.cli.main"]),
        ("bot.domain.thread", "from bot.pipeline.handle import handle", ["bot.pipeline.handle"]),
    ],
)
def test_an_upward_import_is_seen(name: str, text: str, expected: list[str]) -> None:
    assert upward(module(text, name), KNOWN) == [f"{name} imports {target}" for target in expected]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("bot.server.database", "import sqlalchemy as sa", []),
        ("bot.server.inbox", "import sqlalchemy as sa", ["bot.server.inbox imports sqlalchemy"]),
        ("bot.server.queue", "from sqlalchemy import text", ["bot.server.queue imports sqlalchemy"]),
        ("bot.server.database", "import psycopg", ["bot.server.database imports psycopg"]),
        ("bot.cli.commands.jobs", "def f():\n    import uvicorn", ["bot.cli.commands.jobs imports uvicorn"]),
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
    assert started(module(text, "bot.cli.sample"))
    assert not started(module(text, "bot.git.process"))


def test_a_circle_is_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []
