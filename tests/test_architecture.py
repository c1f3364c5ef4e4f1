"""Order of packages, unique class names, one importer per library, pure packages, short modules and functions."""

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
"""The packages, and the modules beside them. Each may import the ones before it."""

FORBIDDEN = {
    "recall": {"git", "memory", "index"},
    "comment": {"git", "memory", "index", "recall"},
    "github": {"memory"},
    "sources": {"memory"},
    "questions": {"git", "memory"},
    "mcp": {"action"},
    "server": {"action", "mcp"},
}
"""A package → the earlier packages that it may not import."""

CONTRACTS = {"recall": {"bot.index.protocol"}}
"""What a package may import of a package that is forbidden otherwise: protocols and their errors."""

ENTRY_POINTS = ("action", "mcp", "server", "cli", "__main__")
"""Where a run begins and ends: only these print, and catch unexpected exceptions."""

PURE = ("reading", "recall", "comment", "questions")
IMPURE_MODULES = {
    *("asyncio", "ctypes", "ftplib", "glob", "http", "importlib", "io", "multiprocessing", "os", "pathlib", "pickle"),
    *("random", "secrets", "select", "shutil", "signal", "smtplib", "socket", "sqlite3", "ssl", "subprocess"),
    *("tempfile", "threading", "urllib.request", "uuid", "webbrowser"),
}
"""Parts of the standard library that a pure package must not use: they do I/O, or their results vary."""

READS_ITS_FILE = {"imports pathlib", "imports pathlib.Path"}
EXEMPT = {"bot.comment.render": READS_ITS_FILE, "bot.reading.endings.phrases": READS_ITS_FILE}
"""These two read the templates and phrases that we ship."""

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
"""The modules that may start a program, and which program."""

STARTS_PROGRAM = re.compile(
    r"(subprocess|multiprocessing|pty|_posixsubprocess)(\.|$)"
    r"|(os|posix)\.(exec\w+|fork\w*|popen|posix_spawnp?|spawn\w+|startfile|system)$"
    r"|asyncio(\.subprocess)?\.create_subprocess_\w+$|\w+\.subprocess_(exec|shell)$"
)
"""What starts programs in the standard library, by its dotted name."""

OWN_REPOSITORIES = ("bot.git.", "bot.memory.")
"""Where `bot.git.repository.Git` may be used; it trusts the settings of the repository that it is given."""

FOREIGN_PACKAGES = {
    "numpy": ("bot.ranking", "bot.index"),
    "whoosh": ("bot.index.whoosh",),
}
"""Libraries that a package of ours may import, instead of a single module."""

EXTRA_LIBRARIES = {
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
    """One of our modules. ``imports`` holds dotted names: ``from a import b`` gives both ``a`` and ``a.b``."""

    name: str
    tree: ast.Module
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def package(self) -> str:
        return self.name.split(".")[1] if "." in self.name else "__main__"

    @cached_property
    def imports(self) -> set[str]:
        imported = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        return imported


@cache
def modules() -> dict[str, Module]:
    parsed = {}
    for path in sorted((ROOT / "bot").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        parsed[name] = Module(name, ast.parse(text, str(path)), text)
    return parsed


def make_module(text: str, name: str = "bot.reading.sample") -> Module:
    return Module(name, ast.parse(text), text)


def own_imports(module: Module, all_modules: set[str]) -> set[str]:
    """The modules of ours that it imports; a package only if nothing inside it is imported."""
    imported = {each for each in module.imports if each in all_modules}
    return {each for each in imported if not any(other.startswith(f"{each}.") for other in imported)} - {module.name}


def upward_imports(module: Module, all_modules: set[str]) -> list[str]:
    """Its imports of packages that come after its own, or that its own package may not import."""
    before = {*ORDER[: ORDER.index(module.package) + 1]} - FORBIDDEN.get(module.package, set())
    contracts = CONTRACTS.get(module.package, set())
    targets = sorted(own_imports(module, all_modules) - {"bot"} - contracts)
    return [f"{module.name} imports {target}" for target in targets if make_module("", target).package not in before]


def find_impurities(module: Module) -> list[str]:
    """Where a pure package reads a clock, opens a file or imports something that does I/O."""
    wrong = sorted(
        f"imports {name}" for name in module.imports if name in IMPURE_MODULES or name.split(".")[0] in IMPURE_MODULES
    )
    imports_time = any(name == "time" or name.startswith("time.") for name in module.imports)
    wrong += ["imports time"] if imports_time else []
    for node in module.nodes:
        if (
            isinstance(node, ast.Attribute)
            and node.attr in CLOCKS
            and ast.unparse(node.value) in {"datetime", "date", "datetime.datetime"}
        ):
            wrong.append(f"line {node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "input"):
            wrong.append(f"line {node.lineno}: {node.func.id}()")
    return wrong


def print_calls(module: Module) -> list[str]:
    calls = (node for node in module.nodes if isinstance(node, ast.Call))
    return [
        f"{module.name}:{call.lineno} prints"
        for call in calls
        if ast.unparse(call.func) in ("print", "sys.stdout.write")
    ]


def foreign_libraries(module: Module) -> set[str]:
    return {name.split(".")[0] for name in module.imports} - sys.stdlib_module_names - {"bot"}


def misplaced_imports(module: Module) -> list[str]:
    """The libraries of the extras that it imports although they belong to another module."""
    return [
        f"{module.name} imports {name}"
        for name in sorted(foreign_libraries(module))
        if EXTRA_LIBRARIES.get(name, module.name) != module.name
    ]


def program_starts(module: Module) -> list[str]:
    """What it imports or calls that starts a program, although it may not."""
    calls = {ast.unparse(node.func) for node in module.nodes if isinstance(node, ast.Call)}
    found = sorted(name for name in module.imports | calls if STARTS_PROGRAM.match(name))
    return [] if module.name in STARTERS else [f"{module.name} has {name}" for name in found]


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def line_count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def arity(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    named = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(named) - (named[:1] in (["self"], ["cls"]))


def find_cycle(edges: dict[str, set[str]]) -> list[str]:
    """One cycle of imports; empty if there is none."""
    visited: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in visited:
            return []
        for target in sorted(edges.get(name, ())):
            if cycle := visit(target, [*path, name]):
                return cycle
        visited.add(name)
        return []

    return next((cycle for name in sorted(edges) if (cycle := visit(name, []))), [])


def test_every_package_has_a_place_in_the_order() -> None:
    assert {module.package for module in modules().values()} == set(ORDER)


def test_packages_import_only_earlier_packages() -> None:
    all_modules = set(modules())
    assert [wrong for module in modules().values() for wrong in upward_imports(module, all_modules)] == []


def test_class_names_are_unique() -> None:
    places: dict[str, list[str]] = {}
    for module in modules().values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module.name)
    assert {name: owners for name, owners in places.items() if len(owners) > 1} == {}


def test_imports_have_no_cycle() -> None:
    all_modules = set(modules())
    edges = {}
    for name, module in modules().items():
        # A package's __init__ may collect what its own modules offer, and these may import each other.
        edges[name] = {target for target in own_imports(module, all_modules) if not name.startswith(f"{target}.")}
    assert find_cycle(edges) == []


def test_imports_are_absolute() -> None:
    nodes = ((module.name, node) for module in modules().values() for node in module.nodes)
    assert [name for name, node in nodes if isinstance(node, ast.ImportFrom) and node.level] == []


def test_each_foreign_library_has_one_importer() -> None:
    importers: dict[str, set[str]] = {}
    for module in modules().values():
        for library in foreign_libraries(module):
            packages = FOREIGN_PACKAGES.get(library, ())
            is_at_home = module.name.startswith(packages) if packages else False
            importers.setdefault(library, set()).add(library if is_at_home else module.name)
    assert {library: sorted(names) for library, names in importers.items() if len(names) > 1} == {}


def test_only_the_index_package_imports_whoosh() -> None:
    """Other packages know the protocol; `bot.index` opens what implements it."""
    inside = ("whoosh", "bot.index.whoosh")
    users = {name for name, module in modules().items() if any(each.startswith(inside) for each in module.imports)}
    assert {name for name in users if not name.startswith("bot.index.whoosh")} == {"bot.index"}


def test_a_library_of_the_extras_is_imported_only_by_its_module() -> None:
    assert [wrong for module in modules().values() for wrong in misplaced_imports(module)] == []


@pytest.mark.parametrize("package", PURE)
def test_pure_packages_do_no_io_and_read_no_clock(package: str) -> None:
    impurities = {
        name: set(find_impurities(module)) - EXEMPT.get(name, set())
        for name, module in modules().items()
        if module.package == package
    }
    assert {name: sorted(wrong) for name, wrong in impurities.items() if wrong} == {}


def test_only_the_listed_modules_start_programs() -> None:
    assert [wrong for module in modules().values() for wrong in program_starts(module)] == []
    assert {name for name in STARTERS if name in modules()} == set(STARTERS)


def test_git_runs_in_a_checkout_only_through_checkout_git() -> None:
    users = {name for name, module in modules().items() if "bot.git.repository.Git" in module.imports}
    assert sorted(name for name in users if not name.startswith(OWN_REPOSITORIES)) == []
    users = {name for name, module in modules().items() if "bot.git.checkout.CheckoutGit" in module.imports}
    assert {"bot.cli.commands.init", "bot.memory.folder_store"} == users


def test_only_entry_points_print() -> None:
    assert [
        wrong for module in modules().values() if module.package not in ENTRY_POINTS for wrong in print_calls(module)
    ] == []


def test_a_broad_except_outside_the_entry_points_reraises() -> None:
    handlers = (
        (module, node) for module in modules().values() for node in module.nodes if isinstance(node, ast.ExceptHandler)
    )
    wrong = []
    for module, node in handlers:
        broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
        if broad and module.package not in ENTRY_POINTS and not isinstance(node.body[-1], ast.Raise):
            wrong.append(f"{module.name}:{node.lineno}")
    assert wrong == []


def test_every_module_has_a_docstring() -> None:
    assert [
        name for name, module in modules().items() if module.text.strip() and not ast.get_docstring(module.tree)
    ] == []


def test_no_module_is_named_utils_or_the_like() -> None:
    drawers = {"util", "utils", "helper", "helpers", "manager", "misc", "common", "base"}
    assert [name for name in modules() if drawers & set(name.split("."))] == []


def test_modules_and_functions_are_short() -> None:
    """A tool for agents may have more parameters: they are those of its function."""
    long = [
        f"{name}: {module.text.count(chr(10))} lines"
        for name, module in modules().items()
        if module.text.count("\n") > 500
    ]
    sizes = []
    for module in modules().values():
        for node in functions(module):
            sizes.append(line_count(node))
            is_tool = module.name == "bot.mcp.tools" and node.args.args[:1] and node.args.args[0].arg == "tools"
            if line_count(node) > 60 or (arity(node) > 6 and not is_tool):
                long.append(
                    f"{module.name}:{node.lineno} {node.name}: {line_count(node)} lines, {arity(node)} parameters"
                )
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
def test_an_upward_import_is_detected(name: str, text: str, expected: list[str]) -> None:
    assert upward_imports(make_module(text, name), KNOWN) == [f"{name} imports {target}" for target in expected]


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
def test_a_library_of_the_server_in_the_wrong_place_is_detected(name: str, text: str, expected: list[str]) -> None:
    assert misplaced_imports(make_module(text, name)) == expected


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
def test_a_clock_or_a_file_in_a_pure_package_is_detected(text: str) -> None:
    assert find_impurities(make_module(text))


def test_pure_code_is_accepted() -> None:
    assert (
        find_impurities(
            make_module(
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
def test_a_program_started_in_the_wrong_place_is_detected(text: str) -> None:
    assert program_starts(make_module(text, "bot.cli.sample"))
    assert not program_starts(make_module(text, "bot.git.process"))


def test_an_import_cycle_is_detected() -> None:
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}}) == []
