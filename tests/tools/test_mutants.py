"""Mutants: each is valid Python with another meaning, and a run resumes where it was stopped."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.examples import share
from tools import mutants
from tools.mutants import Sites, all_mutants, list_covering_tests, main, summary

SOURCE = '''"""Docs with 3."""
LIMIT: "Literal[3]" = 3
def f(a: int = 1, é: bool = True) -> "Literal[4]":
    if a < LIMIT and not é:
        return f"{a + 1}"
    if é:
        return a - 2
    return a in (é,) or (a) * (2)
'''


def test_each_kind_of_mutant_is_found_on_its_line() -> None:
    mutated = [(each.line, each.old.strip(), each.new.strip()) for each in Sites("bot/a.py", SOURCE.encode()).mutants]
    assert mutated == [
        (2, "3", "4"), (3, "1", "2"), (3, "True", "False"), (4, "and", "or"), (4, "<", "<="), (4, "not", ""),
        (6, "", "not"), (7, "-", "+"), (7, "2", "3"), (8, "or", "and"), (8, "in", "not in"), (8, "2", "3"),
    ]  # fmt: skip


def test_every_mutant_of_the_bot_is_valid_python_with_another_meaning() -> None:
    for each in share(all_mutants(mutants.ROOT)[::97]):
        source = (mutants.ROOT / each.file).read_bytes()
        assert ast.dump(ast.parse(each.apply(source))) != ast.dump(ast.parse(source)), each.name


def test_the_tests_of_a_module_begin_with_the_nearest(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    imported = {
        folder / "cli/test_far.py": {"bot.index.bm25f.score"},
        folder / "index/test_near.py": {"bot.index.bm25f"},
        folder / "index/test_other.py": set[str](),
        folder / "test_apart.py": {"bot.index.bm25f"},
    }
    covering_tests = list_covering_tests("bot/index/bm25f.py", tmp_path, imported)
    assert covering_tests == ["tests/index/test_near.py", "tests/index/test_other.py", "tests/test_apart.py"]


def test_the_summary_counts_by_package_and_names_the_survivors() -> None:
    rows = {
        name: {"name": name, "package": package, "result": result}
        for name, package, result in (
            ("a", "index", "killed"), ("b", "index", "survived"), ("c", "cli", "timeout"), ("d", "bot", "untested"),
        )
    }  # fmt: skip
    assert summary(rows) == {
        "mutants": 4,
        "killed": 2,
        "rate": 0.5,
        "packages": {
            "bot": {"mutants": 1, "killed": 0, "rate": 0.0},
            "cli": {"mutants": 1, "killed": 1, "rate": 1.0},
            "index": {"mutants": 2, "killed": 1, "rate": 0.5},
        },
        "alive": ["b (survived)", "d (untested)"],
    }


@pytest.mark.slow
def test_a_run_kills_detected_mutants_and_does_not_repeat_known_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--package", "bot", "--count", "1", "-j", "1", "--results", str(tmp_path / "done.jsonl")]
    assert main(arguments) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["mutants"] == 1
    assert main(arguments) == 0
    repeated = capsys.readouterr()
    assert (json.loads(repeated.out), repeated.err) == (first, "")
