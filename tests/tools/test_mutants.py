"""Mutants: each is valid Python with another meaning, and probes tell which tests reach it."""

from __future__ import annotations

import ast
import builtins
from types import SimpleNamespace
from typing import Any

from tools.mutants import Mutant, Sites, place_probes, rank_tests, summary

SOURCE = '''"""Docs with 3."""
LIMIT: "Literal[3]" = 3
def f(a: int = 1, é: bool = True) -> "Literal[4]":
    if a < LIMIT and not é:
        return f"{a + 1}"
    if é:
        return a - 2
    return a in (é,) or (a) * (2)
'''
USE = "def g():\n    return LIMIT\n"


def test_each_kind_of_mutant_is_found_on_its_line_and_is_valid_python_with_another_meaning() -> None:
    mutants = Sites("bot/a.py", SOURCE.encode()).mutants
    assert [(each.line, each.old.strip(), each.new.strip()) for each in mutants] == [
        (2, "3", "4"), (3, "True", "False"), (3, "1", "2"), (4, "and", "or"), (4, "<", "<="), (4, "not", ""),
        (6, "", "not"), (7, "-", "+"), (7, "2", "3"), (8, "or", "and"), (8, "in", "not in"), (8, "2", "3"),
    ]  # fmt: skip
    variants = [ast.dump(ast.parse(each.apply(SOURCE.encode()))) for each in mutants]
    assert len({*variants, ast.dump(ast.parse(SOURCE))}) == len(mutants) + 1


def test_probes_record_the_mutants_that_a_call_reaches_and_change_no_result() -> None:
    sites = [Sites("bot/a.py", SOURCE.encode()), Sites("bot/b.py", USE.encode())]
    files, reached = place_probes(sites, sites[0].mutants), set[int]()
    probe = SimpleNamespace(hit=reached.add)
    names: dict[str, Any] = {"__builtins__": vars(builtins) | {"__import__": lambda *_, **__: probe}}
    for source in files.values():
        exec(source, names)
    assert names["f"](9, False) == 18
    assert reached == {0, 1, 2, 3, 4, 6, 9, 10, 11}  # `not é` and `a - 2` are not evaluated
    reached.clear()
    assert names["g"]() == 3
    assert reached == {0}


def test_the_nearest_and_quickest_tests_come_first_and_a_set_up_stands_for_its_whole_file() -> None:
    mutant = Mutant("bot/cli/a.py", 1, 2, 3, "3", "4")
    seconds = {"tests/x.py::a": 0.1, "tests/x.py::b": 0.3, "tests/cli/y.py::c": 5.0, "tests/y.py::d": 0.2}
    hits = [(0, "tests/y.py::d (call)"), (0, "tests/x.py::a (setup)"), (0, "tests/cli/y.py::c (call)")]
    assert rank_tests([mutant], hits, seconds) == {
        mutant.name: ["tests/cli/y.py::c", "tests/x.py::a", "tests/y.py::d", "tests/x.py::b"]
    }


def test_the_summary_counts_by_package_and_names_the_survivors() -> None:
    rows = {
        name: {"name": name, "package": package, "result": result}
        for name, package, result in (("a", "cli", "killed"), ("b", "cli", "survived"), ("c", "bot", "untested"))
    }
    assert summary(rows) == {
        "mutants": 3,
        "killed": 1,
        "rate": 0.333,
        "packages": {
            "bot": {"mutants": 1, "killed": 0, "rate": 0.0},
            "cli": {"mutants": 2, "killed": 1, "rate": 0.5},
        },
        "alive": ["b (survived)", "c (untested)"],
    }
