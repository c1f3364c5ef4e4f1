"""The benchmark runner stores its results, and the page and the plots show what is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import page, run
from bench.figures import GROUPS, Limit, Peer, Report, Result, Spread, results_of, single
from bench.plots import plots
from bench.standard import ON_DEMAND, STANDARD, Bench, scripts

DOCS = Path(__file__).resolve().parents[1] / "docs"
STORED = run.read(DOCS / run.FILE)
RunAll = Callable[..., tuple[int, dict[str, Any]]]


def report(value: float) -> Report:
    peer = Peer("another tool", "1.2", single(4.0))
    return Report("ten threads", (Result("x", "search", "a search", "ms", single(value), peer, Limit("ratio", 1.0)),))


def writes(value: float) -> str:
    """The code of a benchmark that reports this value; its last argument is the file to write to."""
    return f"print('its own table'); open(sys.argv[-1], 'w').write({json.dumps(report(value).as_json())!r})"


@pytest.fixture
def run_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunAll:
    """Runs benchmarks of these names and code; returns the exit code and what is stored, which the next run adds to."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "kept.json"

    def run_benches(**code_by_name: str) -> tuple[int, dict[str, Any]]:
        for name, code in code_by_name.items():
            (tmp_path / f"fake_{name}.py").write_text(f"import sys, time\n{code}\n", encoding="utf-8")
        limits = {name: 1 if name == "hanging" else 60 for name in code_by_name}
        benches = [Bench(name, f"fake_{name}", ("search",), seconds=limit) for name, limit in limits.items()]
        exit_code = run.run(benches, run.read(file), file)
        return exit_code, run.read(file)["benches"]

    return run_benches


# -- what is in the documentation ----------------------------------------------------------------------------------


def test_stored_results_name_their_date_commit_and_machine() -> None:
    assert STORED["benches"].keys() <= {bench.name for bench in STANDARD}
    for stored in (STORED, *(entry for entry in STORED["benches"].values() if "results" in entry)):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ [0-9a-f]{12}\+?", f"{stored['date']} {stored['commit']}")
        assert all(stored["machine"].values())


def test_the_page_and_the_plots_show_the_stored_results() -> None:
    text = (DOCS / run.PAGE).read_text(encoding="utf-8")
    assert text.count(page.BEGIN) == text.count(page.END) == 1
    assert page.fill_page(text, STORED) == text, "run `python -m bench.run --draw`"
    drawn = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "images").glob("bench-*.svg")}
    assert drawn == plots(STORED), "run `python -m bench.run --draw`"


def test_every_benchmark_is_in_the_standard_set_or_has_a_reason_not_to_be() -> None:
    standard = {bench.script for bench in STANDARD}
    assert standard | set(ON_DEMAND) == scripts()
    assert not standard & set(ON_DEMAND)
    assert {group for bench in STANDARD for group in bench.groups} == set(GROUPS)


def test_a_choice_names_benchmarks_or_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.select(STANDARD, "") == STANDARD
    assert [bench.name for bench in run.select(STANDARD, "shell, memory")] == ["event", "memory", "shell"]
    assert run.main(["--only", "serach"]) == 2
    assert capsys.readouterr().err.startswith("no benchmark serach; there are: search, build, ")


# -- the runner ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_failed_benchmark_is_reported_and_keeps_its_old_results_and_those_of_the_others(
    run_all: RunAll, capfd: pytest.CaptureFixture[str]
) -> None:
    code, stored = run_all(one=writes(2.0), two=writes(3.0))
    assert (code, [result.ours.median for result in results_of({"benches": stored})]) == (0, [2.0, 3.0])
    wrong = {"silent": "", "wrong": "open(sys.argv[-1], 'w').write('{}')", "hanging": "time.sleep(60)"}
    code, after = run_all(one="raise SystemExit('no \\x1bluck')", **wrong, good=writes(5.0))
    reasons = {name: entry.pop("failed")["reason"] for name, entry in after.items() if "failed" in entry}
    assert code == 1
    assert reasons["one"] == "ended with 1: no luck"
    assert reasons["silent"].startswith("wrote no report: FileNotFoundError")
    assert reasons["wrong"].startswith("wrote no report: KeyError")
    assert reasons["hanging"] == "not done after 1 s"
    assert {name: after[name] for name in stored} == stored
    assert [result.ours.median for result in results_of({"benches": {"good": after["good"]}})] == [5.0]
    code, again = run_all(one=writes(4.0))
    assert (code, "failed" in again["one"], again["two"]) == (0, False, stored["two"])
    output = capfd.readouterr()
    assert (output.out, "its own table" in output.err) == ("", True)


def test_results_compute_ratio_limit_and_verdict() -> None:
    values = Spread.of([1.0, 2.0, 30.0])
    most, median = (Result("x", "event", "x", "MB", values, limit=Limit(name, 15.0)) for name in ("most", "median"))
    higher = Result("x", "quality", "MRR", "", single(0.6), Peer("p", "", single(0.4)), Limit("ratio", 1.0), True)
    results = [report(5.0).results[0], report(4.0).results[0], most, median, higher]
    verdicts = [(1.25, False, False), (1.0, True, True), (None, False, None), (None, True, None), (1.5, True, True)]
    assert [(result.ratio, result.is_within, result.is_better) for result in results] == verdicts
    assert Result.of_json(json.loads(json.dumps(higher.as_json()))) == higher
    with pytest.raises(ValueError, match="limit"):
        Limit("mean", 1.0)
