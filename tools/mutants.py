"""Changes `bot/` in small ways, one at a time, and counts the changes that the quick tests detect.

``python -m tools.mutants --count 300 --seed 1 -j 2 --json build/mutants.json`` draws 300 mutants from all packages.
It works in clones of the last commit. Each result is appended to ``--results``, so a stopped run can be resumed. A
mutant is tested with the quick tests of its package and those that import its module.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
MARKS = "not container and not browser and not postgres and not slow"
SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.And: ("and", "or"), ast.Or: ("or", "and"), ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"),
}  # fmt: skip
MINUTES = 15


@dataclass(frozen=True)
class Mutant:
    """Bytes ``start`` to ``end`` of ``file`` become ``new``."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

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
    """Collects the mutants of one file. Skips annotations, and f-strings (whose positions are wrong before 3.12)."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source, self.mutants = file, source, list[Mutant]()
        lengths = [len(line) for line in source.splitlines(keepends=True)]
        self._starts = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
        self.visit(ast.parse(source))

    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.JoinedStr():
                return
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                self._swap(left, operator, right)
            case ast.BoolOp(op=operator, values=[left, right, *_]) | ast.BinOp(op=operator, left=left, right=right):
                self._swap(left, operator, right)
            case ast.UnaryOp(op=ast.Not()):
                self._add(node, self._begin(node), self._begin(node) + len("not "), "")
            case ast.Constant(value=bool() as value):
                self._add(node, self._begin(node), self._end(node), str(not value))
            case ast.Constant(value=int() as value):
                self._add(node, self._begin(node), self._end(node), str(value + 1))
            case ast.If(test=ast.Name() | ast.Attribute() | ast.Call() as test) if ast.unparse(test) != "TYPE_CHECKING":
                self._add(test, self._begin(test), self._begin(test), "not ")
        for name, child in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                for each in child if isinstance(child, list) else [child]:
                    if isinstance(each, ast.AST):
                        self.visit(each)

    def _begin(self, node: ast.AST) -> int:
        return self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def _swap(self, left: ast.expr, operator: ast.AST, right: ast.expr) -> None:
        start, end = self._end(left), self._begin(right)
        old, new = SWAPS.get(type(operator), ("", ""))
        between = self.source[start:end].decode()
        if old and between.strip() == old:
            self._add(left, start, end, between.replace(old, new))

    def _add(self, node: ast.AST, start: int, end: int, new: str) -> None:
        line: int = node.lineno  # type: ignore[attr-defined]
        self.mutants.append(Mutant(self.file, line, start, end, self.source[start:end].decode(), new))


def all_mutants(root: Path) -> list[Mutant]:
    files = sorted((root / "bot").rglob("*.py"))
    return [mutant for file in files for mutant in Sites(str(file.relative_to(root)), file.read_bytes()).mutants]


def imports(file: Path) -> set[str]:
    """The dotted names that a file imports: modules and their members."""
    imported_names = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            imported_names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported_names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return imported_names


def list_covering_tests(file: str, root: Path, imported: dict[Path, set[str]]) -> list[str]:
    """The test files to run, best first: in the same package and importing the module, then either."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    folder = root / "tests" / (Path(file).parts[1] if len(Path(file).parts) > 2 else "none")
    ranked = []
    for test, names in imported.items():
        is_near, is_importer = test.is_relative_to(folder), module in names
        if is_near or is_importer:
            ranked.append((2 - is_near - is_importer, is_importer, str(test.relative_to(root))))
    return [name for *_, name in sorted(ranked)]


class MutantRunner:
    """Runs mutants in clones of the repository, one clone for each mutant under test."""

    def __init__(self, folder: Path, clones: int) -> None:
        self.free: SimpleQueue[Path] = SimpleQueue()
        for number in range(clones):
            clone = folder / str(number)
            subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(clone)], check=True)
            self.free.put(clone)
        self.root = clone
        self._moments = itertools.count(1_700_000_000, 60)
        self.mutants = all_mutants(clone)
        self.imported = {test: imports(test) for test in sorted((clone / "tests").rglob("test_*.py"))}

    def tests(self, mutant: Mutant) -> list[str]:
        return list_covering_tests(mutant.file, self.root, self.imported)

    def judge(self, mutant: Mutant) -> str:
        """``killed``, ``survived``, ``timeout`` (which counts as killed) or ``untested``."""
        if not (tests := self.tests(mutant)):
            return "untested"
        clone = self.free.get()
        path = clone / mutant.file
        source = path.read_bytes()
        try:
            self._write(path, mutant.apply(source))
            return {0: "survived", 5: "untested"}.get(run_tests(clone, tests), "killed")  # 5: there is no quick test
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            self._write(path, source)
            self.free.put(clone)

    def _write(self, path: Path, source: bytes) -> None:
        """Python compares modification times by the second to reuse compiled modules, so each version gets its own."""
        path.write_bytes(source)
        os.utime(path, (moment := next(self._moments), moment))


def run_tests(clone: Path, tests: list[str]) -> int:
    """The exit code of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", MARKS, *tests]
    quiet = subprocess.DEVNULL
    return subprocess.run(command, cwd=clone, stdout=quiet, stderr=quiet, check=False, timeout=MINUTES * 60).returncode


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
    parser.add_argument("--count", type=int, default=300, help="how many mutants (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default 1)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many at once (default 2)")
    parser.add_argument("--package", help="only mutants of this package of bot/")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "mutants.jsonl", help="finished ones")
    parser.add_argument("--json", type=Path, help="write the summary here")
    parser.add_argument("--list", action="store_true", help="print the mutants and their tests, try none")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        runner = MutantRunner(Path(folder), options.jobs)
        pool = [each for each in runner.mutants if options.package in (None, each.package)]
        chosen = random.Random(options.seed).sample(pool, min(options.count, len(pool)))
        if options.list:
            print("\n".join(f"{each.name}: {' '.join(runner.tests(each)) or 'untested'}" for each in chosen))
            return 0
        finished = {row["name"]: row for row in read_results(options.results)}
        options.results.parent.mkdir(parents=True, exist_ok=True)
        lock = threading.Lock()

        def attempt(mutant: Mutant) -> None:
            row = asdict(mutant) | {"name": mutant.name, "package": mutant.package, "result": runner.judge(mutant)}
            with lock, options.results.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                finished[mutant.name] = row
            print(f"{row['result']:9} {mutant.name}", file=sys.stderr, flush=True)

        with ThreadPoolExecutor(options.jobs) as workers:
            list(workers.map(attempt, [each for each in chosen if each.name not in finished]))
    report = {"seed": options.seed} | summary({each.name: finished[each.name] for each in chosen})
    text = json.dumps(report, indent=1, ensure_ascii=False)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
