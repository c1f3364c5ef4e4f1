"""Changes `bot/` in small ways, one at a time, and counts the changes that the tests detect.

``python -m tools.mutants --count 150 --seed 1`` draws 150 mutants from all packages and works in clones of the last
commit. First it runs the quick and the slow tests once, with a probe at the place of each mutant that records which
tests come by, also in child processes. Then each mutant meets the tests that reach it, the nearest and quickest first,
until one fails. Both parts are saved, so a stopped run can be resumed.

Neither mutmut nor cosmic-ray serves here. mutmut follows calls within one process, and much of the bot runs in child
processes; cosmic-ray runs the same command for every mutant, and the whole suite takes minutes.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
MARKS = "not container and not browser and not postgres and not night"
SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.And: ("and", "or"), ast.Or: ("or", "and"), ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"),
}  # fmt: skip
FIRST_TESTS = 40
"""So many of the nearest and quickest tests run first; few mutants survive them."""
MINUTES = 15
"""Longest time of the tests of one mutant."""
PROBE = """
import json, os
FOLDER, seen = {folder!r}, set()

def hit(number):
    if (place := (number, os.environ.get("PYTEST_CURRENT_TEST"))) not in seen:
        seen.add(place)
        with open(f"{{FOLDER}}/hits-{{os.getpid()}}", "a") as out:
            out.write(json.dumps(place) + "\\n")

def pytest_runtest_logreport(report):
    if report.when == "call" and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(f"{{FOLDER}}/seconds", "a") as out:
            out.write(json.dumps([report.nodeid, report.duration]) + "\\n")
"""
"""A module of the clone, `bot.probe`. It is a plugin of pytest too, which records how long each test takes."""

Span = tuple[int, int]
"""The bytes of an expression in its file."""


@dataclass(frozen=True)
class Mutant:
    """Bytes ``start`` to ``end`` of ``file`` become ``new``.

    ``span`` is the expression around them. If that is evaluated only once, when the file is imported, ``used_as`` is
    the name of the constant, field or argument that has its value; an argument is used in this ``file`` only.
    """

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str
    span: Span = (0, 0)
    used_as: str = ""
    is_argument: bool = False

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.start} {self.old} → {self.new}"

    @property
    def package(self) -> str:
        parts = Path(self.file).parts
        return parts[1] if len(parts) > 2 else "bot"

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]


class Sites(ast.NodeVisitor):
    """Collects the mutants of one file, and where its functions read a name or an attribute.

    Skips annotations, patterns, and f-strings (whose positions are wrong before 3.12).
    """

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source, self.mutants = file, source, list[Mutant]()
        self.uses: dict[str, list[Span]] = defaultdict(list)
        self._runs_often, self._used_as, self._is_argument = False, "", False
        lengths = [len(line) for line in source.splitlines(keepends=True)]
        self._starts = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
        self.visit(ast.parse(source))

    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.JoinedStr() | ast.pattern():
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._visit_function(node)
                return
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                self._used_as = name
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()) if self._runs_often:
                self.uses[name].append(self._span(node))
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                self._swap(node, left, operator, right)
            case ast.BoolOp(op=operator, values=[left, right, *_]) | ast.BinOp(op=operator, left=left, right=right):
                self._swap(node, left, operator, right)
            case ast.UnaryOp(op=ast.Not()):
                start, _ = self._span(node)
                self._add(node, start, start + len("not "), "")
            case ast.Constant(value=bool() as value):
                self._add(node, *self._span(node), str(not value))
            case ast.Constant(value=int() as value):
                self._add(node, *self._span(node), str(value + 1))
            case ast.If(test=ast.Name() | ast.Attribute() | ast.Call() as test) if ast.unparse(test) != "TYPE_CHECKING":
                start, _ = self._span(test)
                self._add(test, start, start, "not ")
        self._visit_fields(node)

    def _visit_fields(self, node: ast.AST, *skipped: str) -> None:
        for name, child in ast.iter_fields(node):
            if name not in ("annotation", "returns", *skipped):
                for each in child if isinstance(child, list) else [child]:
                    if isinstance(each, ast.AST):
                        self.visit(each)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        outer = self._runs_often, self._used_as
        arguments = [*node.args.posonlyargs, *node.args.args]
        defaults = zip(reversed(arguments), reversed(node.args.defaults), strict=False)
        self._is_argument = True
        for argument, default in [*defaults, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]:
            self._used_as = argument.arg
            if default:
                self.visit(default)
        self._is_argument, self._runs_often = False, True
        self._visit_fields(node, "args", "decorator_list")
        self._runs_often, self._used_as = outer

    def _span(self, node: ast.AST) -> Span:
        begin = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def _swap(self, node: ast.AST, left: ast.expr, operator: ast.AST, right: ast.expr) -> None:
        start, end = self._span(left)[1], self._span(right)[0]
        old, new = SWAPS.get(type(operator), ("", ""))
        between = self.source[start:end].decode()
        if old and between.strip() == old:
            self._add(node, start, end, between.replace(old, new))

    def _add(self, node: ast.AST, start: int, end: int, new: str) -> None:
        line, old = self.source.count(b"\n", 0, start) + 1, self.source[start:end].decode()
        used_as = "" if self._runs_often else self._used_as
        mutant = Mutant(self.file, line, start, end, old, new, self._span(node), used_as, self._is_argument)
        self.mutants.append(mutant)


def read_sites(root: Path) -> list[Sites]:
    files = sorted((root / "bot").rglob("*.py"))
    return [Sites(str(file.relative_to(root)), file.read_bytes()) for file in files]


# -- which tests reach a mutant ------------------------------------------------------------------------------------


def place_probes(sites: Iterable[Sites], mutants: Iterable[Mutant]) -> dict[str, bytes]:
    """The files with a probe around each mutant, or around each use of its name if it is evaluated only once."""
    probes: dict[str, list[tuple[Span, int]]] = defaultdict(list)
    sites = list(sites)
    for number, mutant in enumerate(mutants):
        if not mutant.used_as:
            probes[mutant.file].append((mutant.span, number))
        for site in sites if mutant.used_as else ():
            if mutant.is_argument and site.file != mutant.file:
                continue
            probes[site.file] += [(span, number) for span in site.uses.get(mutant.used_as, ())]
    return {site.file: _with_probes(site.source, probes[site.file]) for site in sites if site.file in probes}


def _with_probes(source: bytes, probes: Iterable[tuple[Span, int]]) -> bytes:
    """``x`` becomes ``(hit(3) or (x))``, and ``hit`` returns None. An outer expression opens first and closes last."""
    inserted = []
    for (start, end), number in probes:
        opening = b'(__import__("bot.probe", fromlist="_").hit(%d) or (' % number
        inserted += [((start, 1, -end, number), opening), ((end, 0, -start, -number), b"))")]
    for (position, *_), text in sorted(inserted, reverse=True):
        source = source[:position] + text + source[position:]
    return source


def find_tests(clone: Path, sites: Iterable[Sites], mutants: list[Mutant], marks: str) -> dict[str, list[str]]:
    """Run all tests once: the name of each mutant → the tests that reach it, the nearest and quickest first.

    A test that reaches it while it sets up stands for all tests of its file, which may share what was set up.
    """
    with tempfile.TemporaryDirectory(prefix="reach-") as folder:
        (clone / "bot/probe.py").write_text(PROBE.format(folder=folder), encoding="utf-8")
        for file, source in place_probes(sites, mutants).items():
            (clone / file).write_bytes(source)
        run_pytest(clone, ["-q", "-n", "auto", "--dist", "worksteal", "-m", marks, "-p", "bot.probe"], None, sys.stderr)
        hits = [json.loads(line) for file in Path(folder).glob("hits-*") for line in file.read_text().splitlines()]
        seconds = dict(json.loads(line) for line in (Path(folder) / "seconds").read_text().splitlines())
    subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", "."], check=True)
    (clone / "bot/probe.py").unlink()
    return rank_tests(mutants, [(number, test) for number, test in hits if test], seconds)


def rank_tests(
    mutants: Iterable[Mutant], hits: Iterable[tuple[int, str]], seconds: Mapping[str, float]
) -> dict[str, list[str]]:
    """The tests for each mutant: those of its own package first, then the quickest first."""
    reached: dict[int, set[str]] = defaultdict(set)
    for number, test in hits:
        name, _, phase = test.rpartition(" ")
        reached[number] |= {name} if phase == "(call)" else _tests_of_file(name.partition("::")[0], seconds)
    return {
        mutant.name: sorted(
            reached[number] & seconds.keys(),
            key=lambda test: (not test.startswith(f"tests/{mutant.package}/"), seconds[test], test),
        )
        for number, mutant in enumerate(mutants)
    }


def _tests_of_file(file: str, seconds: Mapping[str, float]) -> set[str]:
    return {test for test in seconds if test.startswith(f"{file}::")}


# -- whether they kill it ------------------------------------------------------------------------------------------


class MutantRunner:
    """Runs mutants in clones of the repository, one clone for each mutant under test."""

    def __init__(self, folder: Path, clones: int) -> None:
        self.free: SimpleQueue[Path] = SimpleQueue()
        for number in range(clones):
            self.clone = folder / str(number)
            subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(self.clone)], check=True)
            self.free.put(self.clone)
        (folder / "shared").symlink_to(ROOT.parent / "shared")
        self._moments = itertools.count(1_700_000_000, 60)
        self.sites = read_sites(self.clone)
        self.mutants = [mutant for site in self.sites for mutant in site.mutants]

    def judge(self, mutant: Mutant, tests: list[str]) -> tuple[str, str]:
        """``killed``, ``survived``, ``timeout`` (which counts as killed) or ``untested``; and the test that fails."""
        clone = self.free.get()
        path = clone / mutant.file
        source = path.read_bytes()
        try:
            self._write(path, mutant.apply(source))
            for some in filter(None, (tests[:FIRST_TESTS], tests[FIRST_TESTS:])):
                if failed := find_failure(clone, some):
                    return "killed", failed
            return "survived" if tests else "untested", ""
        except subprocess.TimeoutExpired:
            return "timeout", ""
        finally:
            self._write(path, source)
            self.free.put(clone)

    def _write(self, path: Path, source: bytes) -> None:
        """Python compares modification times by the second to reuse compiled modules, so each version gets its own."""
        path.write_bytes(source)
        os.utime(path, (moment := next(self._moments), moment))


def find_failure(clone: Path, tests: list[str]) -> str:
    """The first of these tests that fails, or what pytest said when it could not run them; "" if all pass."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as chosen, tempfile.TemporaryFile("w+") as output:
        chosen.write("\n".join(tests))
        chosen.flush()
        code = run_pytest(clone, ["-q", "-x", "-p", "no:cacheprovider", f"@{chosen.name}"], MINUTES * 60, output)
        output.seek(0)
        text = output.read()
    if code == 4 and "ERROR collecting" not in text:  # one of the tests does not exist
        raise ValueError(text)
    failed = re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - |$)", text, re.MULTILINE)
    return "" if code == 0 else failed[1] if failed else text[-200:] or str(code)


def run_pytest(clone: Path, options: list[str], seconds: float | None, output: IO[str]) -> int:
    """The exit code of pytest."""
    command = [sys.executable, "-m", "pytest", *options]
    environment = os.environ | {"PYTHONPATH": str(clone)}
    return subprocess.run(
        command, cwd=clone, env=environment, stdout=output, stderr=output, check=False, timeout=seconds
    ).returncode


def summary(results: dict[str, dict[str, str]]) -> dict[str, object]:
    """The kill rate, overall and per package, and the names of the mutants that no test detected."""

    def rate(rows: list[dict[str, str]]) -> dict[str, object]:
        killed = sum(row["result"] in ("killed", "timeout") for row in rows)
        return {"mutants": len(rows), "killed": killed, "rate": round(killed / max(1, len(rows)), 3)}

    rows = [results[name] for name in sorted(results)]
    packages = sorted({row["package"] for row in rows})
    alive = [f"{row['name']} ({row['result']})" for row in rows if row["result"] in ("survived", "untested")]
    by_package = {name: rate([row for row in rows if row["package"] == name]) for name in packages}
    return rate(rows) | {"packages": by_package, "alive": alive}


def read_results(path: Path) -> Iterator[dict[str, str]]:
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=150, help="how many mutants (default 150)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default 1)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many at once (default 2)")
    parser.add_argument("--package", help="only mutants of this package of bot/")
    parser.add_argument("-m", dest="marks", default=MARKS, help="which tests, as for pytest (default: %(default)s)")
    parser.add_argument("--most", type=int, help="at most so many tests for each mutant (default: all that reach it)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants", help="where results are kept")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        runner = MutantRunner(Path(folder), options.jobs)
        pool = [each for each in runner.mutants if options.package in (None, each.package)]
        chosen = random.Random(options.seed).sample(pool, min(options.count, len(pool)))
        reach_file = options.folder / "reach.json"
        if not reach_file.exists():
            reach_file.write_text(json.dumps(find_tests(runner.clone, runner.sites, chosen, options.marks), indent=1))
        reach = json.loads(reach_file.read_text())
        rows = run_mutants(runner, chosen, {name: tests[: options.most] for name, tests in reach.items()}, options)
    report = {"seed": options.seed} | summary(rows)
    text = json.dumps(report, indent=1, ensure_ascii=False)
    (options.folder / "summary.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


def run_mutants(
    runner: MutantRunner, chosen: list[Mutant], reach: Mapping[str, list[str]], options: argparse.Namespace
) -> dict[str, dict[str, str]]:
    """Judge these mutants, except those whose result is stored; each result is stored at once."""
    results = options.folder / "results.jsonl"
    finished = {row["name"]: row for row in read_results(results)}
    lock = threading.Lock()

    def attempt(mutant: Mutant) -> None:
        result, killer = runner.judge(mutant, reach[mutant.name])
        row = asdict(mutant) | {"name": mutant.name, "package": mutant.package, "result": result, "killer": killer}
        with lock, results.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            finished[mutant.name] = row
        print(f"{result:9} {mutant.name}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(options.jobs) as workers:
        list(workers.map(attempt, [each for each in chosen if each.name not in finished]))
    return {each.name: finished[each.name] for each in chosen}


if __name__ == "__main__":
    raise SystemExit(main())
