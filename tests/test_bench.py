"""The benchmark runner stores its results, and the page and the plots show what is stored."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.bench import page, run
from tests.bench.figures import GROUPS, Limit, Peer, Report, Result, Spread, results_of, single, table_of
from tests.bench.history import history
from tests.bench.image_report import image_report
from tests.bench.machine import Load, Machine, Watch
from tests.bench.plots import plots
from tests.bench.standard import ON_DEMAND, STANDARD, Bench, missing, scripts

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
STORED = run.read(DOCS / run.FILE)
SVG = "{http://www.w3.org/2000/svg}"


def report(value: float = 2.0, group: str = "search") -> Report:
    peer = Peer("another tool", "1.2", single(4.0))
    return Report(
        "ten threads", (Result(f"{group}-x", group, "a search", "ms", single(value), peer, Limit("ratio", 1.0)),)
    )


def fake_bench(folder: Path, name: str, body: str, **options: object) -> Bench:
    """A benchmark that runs ``body``; its last argument is the file to write to."""
    (folder / f"fake_{name}.py").write_text(f"import sys, time\n{body}\n", encoding="utf-8")
    return Bench(name, f"fake_{name}", ("search",), **options)  # type: ignore[arg-type]


def report_writer(written_report: Report) -> str:
    return f"open(sys.argv[-1], 'w').write({json.dumps(written_report.as_json())!r})"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


# -- what is in the documentation ----------------------------------------------------------------------------------


def test_stored_results_name_their_date_commit_and_machine() -> None:
    assert STORED["benches"].keys() <= {bench.name for bench in STANDARD}
    for stored in (STORED, *(entry for entry in STORED["benches"].values() if "results" in entry)):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", stored["date"])
        assert re.fullmatch(r"[0-9a-f]{12}\+?", stored["commit"])
        machine, load = Machine(**stored["machine"]), Load(**stored["load"])
        assert all(asdict(machine).values())
        assert stored["note"] == load.note(machine.cores)


def test_every_stored_result_has_the_common_format() -> None:
    results = results_of(STORED)
    assert len({result.name for result in results}) == len(results) > 0
    for entry in STORED["benches"].values():
        if "results" in entry:
            fields = Report.of_json(entry).as_json()
            assert {name: entry[name] for name in fields} == json.loads(json.dumps(fields))
            assert fields["data"]


def test_every_group_of_results_is_compared_with_a_peer() -> None:
    with_peers = {result.group for result in results_of(STORED) if result.peer}
    assert {"search", "build", "event", "memory", "growth", "quality"} <= with_peers
    names = {result.what for result in results_of(STORED) if result.group == "quality"}
    assert names == {"RR@1", "RR@5", "RR@10", "MRR"}, "the whole table, no chosen row"


def test_the_page_shows_the_stored_results() -> None:
    text = (DOCS / run.PAGE).read_text(encoding="utf-8")
    assert text.count(page.BEGIN) == text.count(page.END) == 1
    assert page.fill_page(text, STORED) == text, "run `python -m tests.bench.run --draw`"


def test_the_plots_show_the_stored_results() -> None:
    drawn = plots(STORED)
    assert drawn.keys() == {path.name for path in (DOCS / "images").glob("bench-*.svg")}
    for name, svg in drawn.items():
        assert (DOCS / "images" / name).read_bytes() == svg.encode(), "run `python -m tests.bench.run --draw`"


@pytest.mark.parametrize("name", sorted(plots(STORED)))
def test_a_plot_is_self_contained_accessible_and_legible(name: str) -> None:
    svg = plots(STORED)[name]
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title about"
    for tag in ("title", "desc"):
        assert len((root.findtext(f"{SVG}{tag}") or "").split()) > 3
    assert "prefers-color-scheme: dark" in svg
    assert re.findall(r"(?:https?:)?//[^\s\"]+", svg) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|url\(|<(script|image|foreignObject)", svg)
    width = float(root.attrib["viewBox"].split()[2])
    assert min(float(size) for size in re.findall(r"font-size: (\d+)px", svg)) * 600 / width > 11.5
    classes = {word for each in root.iter() for word in (each.get("class") or "").split()}
    assert classes <= set(re.findall(r"\.([a-z][\w-]*)", svg)), "a class without a style"
    for each in root.iter(f"{SVG}text"):
        assert 0 <= float(each.attrib["x"]) <= width
        assert 0 <= float(each.attrib["y"]) <= float(root.attrib["height"])


def test_every_benchmark_is_in_the_standard_set_or_has_a_reason_not_to_be() -> None:
    standard = {bench.script for bench in STANDARD}
    assert set(ON_DEMAND) <= scripts() <= standard | set(ON_DEMAND)
    assert [bench.name for bench in STANDARD if bench.script not in scripts() and not missing(bench)] == []
    assert not standard & set(ON_DEMAND)
    assert all(ON_DEMAND.values())
    assert {group for bench in STANDARD for group in bench.groups} == set(GROUPS)


def test_make_bench_passes_the_choice_on() -> None:
    command = ["make", "--no-print-directory", "-n", "bench", "ONLY=search,event"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert output.splitlines()[-1].endswith('-m tests.bench.run --only "search,event"')


# -- the runner ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_failed_benchmark_does_not_affect_the_others(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    benches = (
        fake_bench(folder, "broken", "raise SystemExit('no \\x1bluck')"),
        fake_bench(folder, "silent", ""),
        fake_bench(folder, "wrong", "open(sys.argv[-1], 'w').write('{}')"),
        fake_bench(folder, "slow", "time.sleep(60)", seconds=1),
        fake_bench(folder, "good", f"print('its own table')\n{report_writer(report())}"),
    )
    stored, path = run.read(folder / "none.json"), folder / "kept.json"
    assert run.run(benches, stored, path) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "its own table" in err
    entries = json.loads(path.read_text())["benches"]
    reasons = {name: entry.get("failed", {}).get("reason", "") for name, entry in entries.items()}
    assert reasons["broken"] == "ended with 1: no luck"
    assert reasons["silent"].startswith("wrote no report: FileNotFoundError")
    assert reasons["wrong"].startswith("wrote no report: KeyError")
    assert reasons["slow"] == "not done after 1 s"
    assert reasons["good"] == ""
    assert [result.name for result in results_of(stored)] == ["search-x"]


def test_a_failed_benchmark_keeps_its_old_results_and_is_reported(folder: Path) -> None:
    stored, path = run.read(folder / "none.json"), folder / "kept.json"
    assert run.run((fake_bench(folder, "one", report_writer(report(2.0))),), stored, path) == 0
    before = dict(stored["benches"]["one"])
    assert run.run((fake_bench(folder, "one", "raise SystemExit(3)"),), stored, path) == 1
    after = stored["benches"]["one"]
    assert after.pop("failed")["reason"] == "ended with 3: nothing was said"
    assert after == before
    after["failed"] = {"reason": "ended with 3"}
    assert "a search" not in run.summary(stored, ["one"])
    assert run.summary(stored, ["one"]).endswith("\none: failed, ended with 3")
    assert run.run((fake_bench(folder, "one", report_writer(report(3.0))),), stored, path) == 0
    assert "failed" not in stored["benches"]["one"]
    assert results_of(stored)[0].ours.median == 3.0


def test_unselected_benchmarks_keep_their_results_and_dates(folder: Path) -> None:
    both = (
        fake_bench(folder, "one", report_writer(report(2.0))),
        fake_bench(folder, "two", report_writer(report(2.0, "build"))),
    )
    stored, path = run.read(folder / "none.json"), folder / "kept.json"
    assert run.run(both, stored, path) == 0
    stored["benches"]["two"]["date"] = "2020-01-01T00:00Z"
    assert run.run((fake_bench(folder, "one", report_writer(report(9.0))),), stored, path) == 0
    reread = json.loads(path.read_text())
    assert reread["benches"]["two"]["date"] == "2020-01-01T00:00Z"
    assert {result.name: result.ours.median for result in results_of(reread)} == {"search-x": 9.0, "build-x": 2.0}
    assert "2020-01-01T00:00Z" in "\n".join(page.markdown_blocks(reread))


def test_a_benchmark_that_cannot_run_is_left_out_with_the_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored, path = run.read(folder / "none.json"), folder / "kept.json"
    assert run.run((fake_bench(folder, "one", report_writer(report())),), stored, path) == 0
    bench = fake_bench(folder, "one", "raise SystemExit(1)", needs="archive")
    monkeypatch.setattr("tests.bench.standard.ARCHIVE", folder / "absent.jsonl.gz")
    assert run.run((bench,), stored, path) == 0
    assert stored["benches"]["one"]["left_out"] == "the development archive is not beside the checkout"
    assert results_of(stored)
    assert "left out: the development archive" in capsys.readouterr().err
    assert "left out: the development archive" in "\n".join(page.markdown_blocks(stored))


def test_a_choice_names_benchmarks_or_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.select(STANDARD, "") == STANDARD
    assert [bench.name for bench in run.select(STANDARD, "search, memory")] == ["index", "event", "memory"]
    assert [bench.name for bench in run.select(STANDARD, "index")] == ["index"]
    assert run.main(["--only", "serach"]) == 2
    output = capsys.readouterr()
    assert not output.out
    assert output.err.startswith("no benchmark serach; there are: search, build, ")


def test_a_page_without_the_markers_stays_unchanged() -> None:
    assert page.fill_page("# Mine\n", STORED) == "# Mine\n"


def test_the_image_report_has_the_same_format() -> None:
    times = {
        "to the first request": [30.0, 20.0],
        "to the first request to the API": [40.0, 20.0],
        "imports done": [20.0, 10.0],
    }
    sizes = {"image": 180_000_000, "example/python:slim": 120_000_000, "layers, packed": 60_000_000}
    results = image_report({"ms": times | {"bare": [1.0]}, "bytes": sizes}).results
    assert [result.ratio for result in results] == [1.667, 2.0, 1.5, None]
    assert [result.is_within for result in results] == [False, None, None, None]
    with pytest.raises(KeyError):
        image_report({"ms": {}, "bytes": sizes})


# -- figures -------------------------------------------------------------------------------------------------------


def test_results_compute_ratio_limit_and_verdict() -> None:
    (result,) = report(5.0).results
    assert (result.ratio, result.is_within, result.is_better) == (1.25, False, False)
    assert (report(4.0).results[0].is_within, report(4.0).results[0].is_better) == (True, True)
    worst = Result("x", "event", "x", "MB", Spread.of([1.0, 2.0, 30.0]), limit=Limit("most", 15.0))
    assert (worst.ratio, worst.is_within, worst.is_better) == (None, False, None)
    median = Result("x", "event", "x", "MB", Spread.of([1.0, 2.0, 30.0]), limit=Limit("median", 15.0))
    assert median.is_within is True
    higher = Result("x", "quality", "MRR", "", single(0.6), Peer("p", "", single(0.4)), Limit("ratio", 1.0), True)
    assert (higher.ratio, higher.is_within, higher.is_better) == (1.5, True, True)
    assert Result.of_json(json.loads(json.dumps(higher.as_json()))) == higher
    with pytest.raises(ValueError, match="limit"):
        Limit("mean", 1.0)
    with pytest.raises(ValueError, match="group"):
        Result.of_json(higher.as_json() | {"group": "speed"})


def test_a_spread_keeps_its_least_and_most_value() -> None:
    spread = Spread.of(float(number) for number in range(1, 101))
    assert (spread.n, spread.median, spread.least, spread.most) == (100, 50.5, 1.0, 100.0)
    assert 95 <= spread.p95 <= 96
    assert Spread.of([3.0, 1.0]) == Spread(2, 2.0, 3.0, 1.0, 3.0)


def test_the_table_marks_results_over_the_limit() -> None:
    lines = table_of([*report(5.0).results, *report(1.0, "build").results]).splitlines()
    assert lines[1].split()[-4:] == ["1.25", "≤", "1", "×", "OVER"][-4:]
    assert lines[2].endswith("within")
    stored: dict[str, object] = {
        "benches": {"one": report(5.0).as_json() | {"date": "d", "commit": "c", "note": "idle"}}
    }
    stored |= {"machine": asdict(Machine.here()), "load": asdict(Load(0, 0, 0)), "note": "busy"}
    output = "\n".join(page.markdown_blocks(stored | {"date": "d", "commit": "c", "seconds": 1}))
    assert "**Over the limit**: a search (1.25 × another tool, limit 1)." in output
    assert "**Behind a peer**: 1 of 1 ratios." in output
    assert "was not idle" in output


def test_without_the_archive_the_sample_is_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.bench.history.ARCHIVE", tmp_path / "absent.jsonl.gz")
    data, remembered, fresh = history(120)
    assert data == "the sample, resampled to 120 threads"
    assert (len(remembered), len(fresh)) == (120, 1_000)
    assert max(thread.created_at for thread in remembered) < min(thread.created_at for thread in fresh)


def test_a_machine_is_busy_when_others_use_it() -> None:
    assert Load(0.4, 2.0, 0.1).note(2) == "idle"
    assert Load(1.1, 2.0, 0.1).note(2) == "busy"
    assert Load(0.4, 2.0, 0.6).note(2) == "busy"
    outer_watch = Watch()
    load = Watch(outer_watch).load()
    assert load.start == outer_watch.load().start
    assert min(load.start, load.end, load.others) >= 0
