"""Order of packages, unique class names, one importer per library, pure packages, short modules and functions."""

import ast
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

ORDER = (
    *("errors", "files", "domain", "settings", "reading", "git", "ranking", "index", "memory", "recall", "comment"),
    *("organisation", "github", "sources", "questions", "local_cache", "evaluation", "pipeline"),
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

RAISES_LATER = "bot.pipeline.room:House.each"
"""Another function that catches unexpected exceptions: it raises the first after all other rooms had their turn."""

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

CLOCKS = {"now", "utcnow", "today"}
STARTERS = {
    "bot.git.process": "git",
    "bot.server.processes": "our own workers",
    "bot.server.startup_check": "git --version",
}
"""The modules that may start a program, and which program."""

SERVER_ROOMS = {
    "storage": (),
    "organisation": ("storage",),
    "receive": ("storage",),
    "work": ("receive", "organisation", "storage"),
    "pages": ("organisation", "storage"),
}
"""The folders of `bot.server`, each with those that it may import."""

STARTS_PROGRAM = re.compile(
    r"(subprocess|multiprocessing|pty|_posixsubprocess)(\.|$)"
    r"|(os|posix)\.(exec\w+|fork\w*|popen|posix_spawnp?|spawn\w+|startfile|system)$"
    r"|asyncio(\.subprocess)?\.create_subprocess_\w+$|\w+\.subprocess_(exec|shell)$"
)
"""What starts programs in the standard library, by its dotted name."""

OWN_REPOSITORIES = ("bot.git.", "bot.memory.")
"""Where `bot.git.repository.Git` may be used; it trusts the settings of the repository that it is given."""

FOREIGN_PACKAGES = {
    "markdown_it": ("bot.comment.shown", "bot.reading.markdown"),
    "numpy": ("bot.ranking", "bot.index"),
    "starlette": ("bot.server",),
    "whoosh": ("bot.index.whoosh",),
}
"""Libraries that a package of ours may import, instead of a single module."""

NEVER_IMPORTED = {"psycopg"}
"""A library that SQLAlchemy loads for us."""


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


Finder = Callable[[Module], list[str]]


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


def foreign_libraries(module: Module) -> set[str]:
    return {name.split(".")[0] for name in module.imports} - sys.stdlib_module_names - {"bot"}


def program_starts(module: Module) -> list[str]:
    """What it imports or calls that starts a program, although it may not."""
    calls = {ast.unparse(node.func) for node in module.nodes if isinstance(node, ast.Call)}
    found = sorted(name for name in module.imports | calls if STARTS_PROGRAM.match(name))
    return [] if module.name in STARTERS else [f"{module.name} has {name}" for name in found]


def test_every_package_has_a_place_in_the_order() -> None:
    assert {module.package for module in modules().values()} == set(ORDER)


def test_packages_import_only_earlier_packages() -> None:
    all_modules = set(modules())
    assert [wrong for module in modules().values() for wrong in upward_imports(module, all_modules)] == []


def test_the_rooms_of_the_server_import_only_what_is_before_them() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, module in modules().items()
        for target in module.imports
        if (room := server_room(name)) and (other := server_room(target)) and other not in {room, *SERVER_ROOMS[room]}
    ]
    assert wrong == []


def server_room(name: str) -> str:
    """The folder of `bot.server` that a module is in; "" for one above them, and outside."""
    parts = name.split(".")
    return parts[2] if parts[:2] == ["bot", "server"] and len(parts) > 3 and parts[2] in SERVER_ROOMS else ""


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
    TopologicalSorter(edges).prepare()  # raises CycleError with the modules of a cycle


def test_each_foreign_library_has_one_importer() -> None:
    importers: dict[str, set[str]] = {}
    for module in modules().values():
        for library in foreign_libraries(module):
            packages = FOREIGN_PACKAGES.get(library, ())
            is_at_home = module.name.startswith(packages) if packages else False
            importers.setdefault(library, set()).add(library if is_at_home else module.name)
    assert {library: sorted(names) for library, names in importers.items() if len(names) > 1} == {}
    assert not NEVER_IMPORTED & set(importers)


def test_only_the_index_package_imports_whoosh() -> None:
    """Other packages know the protocol; `bot.index` opens what implements it."""
    inside = ("whoosh", "bot.index.whoosh")
    users = {name for name, module in modules().items() if any(each.startswith(inside) for each in module.imports)}
    assert {name for name in users if not name.startswith("bot.index.whoosh")} == {"bot.index"}


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


def methods(module: Module) -> dict[str, ast.AST]:
    """Its methods, by ``module:Class.name``."""
    classes = [node for node in module.tree.body if isinstance(node, ast.ClassDef)]
    return {
        f"{module.name}:{owner.name}.{node.name}": node
        for owner in classes
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def is_broad_handler(node: ast.AST) -> bool:
    """Whether it catches all exceptions and does not raise again at its end."""
    if not isinstance(node, ast.ExceptHandler) or isinstance(node.body[-1], ast.Raise):
        return False
    return node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")


def test_only_entry_points_print_and_catch_all_exceptions_without_raising_again() -> None:
    wrong = []
    for module in modules().values():
        later = methods(module).get(RAISES_LATER)
        exempt = {*ast.walk(later)} if later else set()
        for node in module.nodes if module.package not in ENTRY_POINTS else ():
            prints = isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.stdout.write")
            if prints or (is_broad_handler(node) and node not in exempt):
                wrong.append(f"{module.name}:{node.lineno}")
    assert wrong == []
    (handler,) = filter(is_broad_handler, ast.walk(methods(modules()["bot.pipeline.room"])[RAISES_LATER]))
    assert "self.error = self.error or error" in ast.unparse(handler)


def test_only_one_module_prints_what_commands_say() -> None:
    """It takes out what would control a terminal, or be another line."""
    printing = {
        name
        for name, module in modules().items()
        for node in module.nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
    }
    assert {name for name in printing if name.startswith("bot.cli.")} == {"bot.cli.output"}


def test_every_module_has_a_docstring_and_a_name_that_says_something() -> None:
    drawers = {"util", "utils", "helper", "helpers", "manager", "misc", "common", "base"}
    assert [name for name in modules() if drawers & set(name.split("."))] == []
    assert [name for name, each in modules().items() if each.text.strip() and not ast.get_docstring(each.tree)] == []


def test_functions_are_short() -> None:
    """A module is one idea, however long; a function fits on a screen."""
    sizes = {
        f"{module.name}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for module in modules().values()
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: size for name, size in sizes.items() if size > 60} == {}
    assert sorted(sizes.values())[int(len(sizes) * 0.95)] <= 40


@pytest.mark.parametrize(
    ("name", "text", "is_upward"),
    [
        ("bot.recall.answer", "from bot.github import client", True),
        ("bot.recall.answer", "def f():\n    import bot.memory.branch_store", True),
        ("bot.recall.answer", "from bot.index.protocol import Query\nfrom bot.domain.thread import Thread", False),
        ("bot.recall.answer", "from bot.index.document import document", True),
        ("bot.pipeline.eligibility", "from bot.github.client import Client", False),
        ("bot.server.processes", "from bot.cli.main import main", True),
    ],
)
def test_an_upward_import_is_detected(name: str, text: str, is_upward: bool) -> None:
    assert bool(upward_imports(make_module(text, name), set(modules()))) is is_upward


@pytest.mark.parametrize(
    ("text", "find"),
    [
        ("from datetime import datetime\nx = datetime.now()", find_impurities),
        ("import datetime\nx = datetime.datetime.utcnow", find_impurities),
        ("from time import monotonic", find_impurities),
        ("import os.path", find_impurities),
        ("def f():\n    import subprocess", find_impurities),
        ("x = open('f')", find_impurities),
        ("def f():\n    from subprocess import run", program_starts),
        ("import os\nos.execvp('git', ['git'])", program_starts),
        ("import asyncio\nasyncio.create_subprocess_exec('git')", program_starts),
    ],
)
def test_io_a_clock_or_a_program_in_the_wrong_place_is_detected(text: str, find: Finder) -> None:
    assert find(make_module(text))
    pure = "from datetime import datetime, UTC\nfrom urllib.parse import quote\nx = datetime.fromtimestamp(0, UTC)"
    assert not find(make_module(pure))
