"""The benchmarks' runner keeps what it has, and the page and the plots show what is kept."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.bench import page, run
from tests.bench.figures import GROUPS, Limit, Peer, Report, Result, Spread, one, results_of, table_of
from tests.bench.history import history
from tests.bench.image_report import image_report
from tests.bench.machine import Load, Machine, Watch
from tests.bench.plots import plots
from tests.bench.standard import ON_DEMAND, STANDARD, Bench, missing, scripts

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
KEPT = run.read(DOCS / run.FILE)
SVG = "{http://www.w3.org/2000/svg}"


def report(value: float = 2.0, group: str = "search") -> Report:
    peer = Peer("another tool", "1.2", one(4.0))
    return Report(
        "ten threads", (Result(f"{group}-x", group, "a search", "ms", one(value), peer, Limit("ratio", 1.0)),)
    )


def fake(folder: Path, name: str, body: str, **given: object) -> Bench:
    """A benchmark that does what ``body`` says; the last argument it gets is where to write."""
    (folder / f"fake_{name}.py").write_text(f"import sys, time\n{body}\n", encoding="utf-8")
    return Bench(name, f"fake_{name}", ("search",), **given)  # type: ignore[arg-type]


def writes(told: Report) -> str:
    return f"open(sys.argv[-1], 'w').write({json.dumps(told.as_json())!r})"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


# -- what is in the documentation ----------------------------------------------------------------------------------


def test_what_is_kept_says_when_where_and_of_what() -> None:
    assert KEPT["benches"].keys() <= {bench.name for bench in STANDARD}
    for kept in (KEPT, *(entry for entry in KEPT["benches"].values() if "results" in entry)):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", kept["date"])
        assert re.fullmatch(r"[0-9a-f]{12}\+?", kept["commit"])
        machine, load = Machine(**kept["machine"]), Load(**kept["load"])
        assert all(asdict(machine).values())
        assert kept["note"] == load.note(machine.cores)


def test_every_result_that_is_kept_has_the_common_shape() -> None:
    results = results_of(KEPT)
    assert len({result.name for result in results}) == len(results) > 0
    for entry in KEPT["benches"].values():
        if "results" in entry:
            told = Report.of_json(entry).as_json()
            assert {name: entry[name] for name in told} == json.loads(json.dumps(told))
            assert told["data"]


def test_what_is_asked_of_the_benchmarks_is_there_beside_a_peer() -> None:
    with_peers = {result.group for result in results_of(KEPT) if result.peer}
    assert {"search", "build", "event", "memory", "growth", "quality"} <= with_peers
    names = {result.what for result in results_of(KEPT) if result.group == "quality"}
    assert names == {"RR@1", "RR@5", "RR@10", "MRR"}, "the whole table, no chosen row"


def test_the_page_has_the_tables_of_what_is_kept() -> None:
    text = (DOCS / run.PAGE).read_text(encoding="utf-8")
    assert text.count(page.BEGIN) == text.count(page.END) == 1
    assert page.filled(text, KEPT) == text, "run `python -m tests.bench.run --draw`"


def test_the_plots_are_drawn_from_what_is_kept() -> None:
    drawn = plots(KEPT)
    assert drawn.keys() == {path.name for path in (DOCS / "images").glob("bench-*.svg")}
    for name, svg in drawn.items():
        assert (DOCS / "images" / name).read_bytes() == svg.encode(), "run `python -m tests.bench.run --draw`"


@pytest.mark.parametrize("name", sorted(plots(KEPT)))
def test_a_plot_stands_by_itself_and_can_be_read_aloud_in_the_dark_and_small(name: str) -> None:
    svg = plots(KEPT)[name]
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


def test_every_benchmark_is_in_the_set_or_told_why_not() -> None:
    standard = {bench.script for bench in STANDARD}
    assert set(ON_DEMAND) <= scripts() <= standard | set(ON_DEMAND)
    assert [bench.name for bench in STANDARD if bench.script not in scripts() and not missing(bench)] == []
    assert not standard & set(ON_DEMAND)
    assert all(ON_DEMAND.values())
    assert {group for bench in STANDARD for group in bench.groups} == set(GROUPS)


def test_the_make_target_hands_the_choice_on() -> None:
    command = ["make", "--no-print-directory", "-n", "bench", "ONLY=search,event"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert said.splitlines()[-1].endswith('-m tests.bench.run --only "search,event"')


# -- the runner ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_benchmark_that_fails_costs_the_others_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    benches = (
        fake(folder, "broken", "raise SystemExit('no \\x1bluck')"),
        fake(folder, "silent", ""),
        fake(folder, "wrong", "open(sys.argv[-1], 'w').write('{}')"),
        fake(folder, "slow", "time.sleep(60)", seconds=1),
        fake(folder, "good", f"print('its own table')\n{writes(report())}"),
    )
    kept, path = run.read(folder / "none.json"), folder / "kept.json"
    assert run.run(benches, kept, path) == 1
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
    assert [result.name for result in results_of(kept)] == ["search-x"]


def test_what_fails_today_keeps_what_it_had_and_says_so(folder: Path) -> None:
    kept, path = run.read(folder / "none.json"), folder / "kept.json"
    assert run.run((fake(folder, "one", writes(report(2.0))),), kept, path) == 0
    before = dict(kept["benches"]["one"])
    assert run.run((fake(folder, "one", "raise SystemExit(3)"),), kept, path) == 1
    after = kept["benches"]["one"]
    assert after.pop("failed")["reason"] == "ended with 3: nothing was said"
    assert after == before
    after["failed"] = {"reason": "ended with 3"}
    assert "a search" not in run.told(kept, ["one"])
    assert run.told(kept, ["one"]).endswith("\none: failed, ended with 3")
    assert run.run((fake(folder, "one", writes(report(3.0))),), kept, path) == 0
    assert "failed" not in kept["benches"]["one"]
    assert results_of(kept)[0].ours.median == 3.0


def test_what_is_not_chosen_keeps_its_results_with_their_date(folder: Path) -> None:
    both = (fake(folder, "one", writes(report(2.0))), fake(folder, "two", writes(report(2.0, "build"))))
    kept, path = run.read(folder / "none.json"), folder / "kept.json"
    assert run.run(both, kept, path) == 0
    kept["benches"]["two"]["date"] = "2020-01-01T00:00Z"
    assert run.run((fake(folder, "one", writes(report(9.0))),), kept, path) == 0
    found = json.loads(path.read_text())
    assert found["benches"]["two"]["date"] == "2020-01-01T00:00Z"
    assert {result.name: result.ours.median for result in results_of(found)} == {"search-x": 9.0, "build-x": 2.0}
    assert "2020-01-01T00:00Z" in "\n".join(page.written(found))


def test_what_cannot_run_here_is_left_out_with_the_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, path = run.read(folder / "none.json"), folder / "kept.json"
    assert run.run((fake(folder, "one", writes(report())),), kept, path) == 0
    bench = fake(folder, "one", "raise SystemExit(1)", needs="archive")
    monkeypatch.setattr("tests.bench.standard.ARCHIVE", folder / "absent.jsonl.gz")
    assert run.run((bench,), kept, path) == 0
    assert kept["benches"]["one"]["left_out"] == "the development archive is not beside the checkout"
    assert results_of(kept)
    assert "left out: the development archive" in capsys.readouterr().err
    assert "left out: the development archive" in "\n".join(page.written(kept))


def test_a_choice_is_of_benchmarks_or_of_what_they_are_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.selected(STANDARD, "") == STANDARD
    assert [bench.name for bench in run.selected(STANDARD, "search, memory")] == ["index", "event", "memory"]
    assert [bench.name for bench in run.selected(STANDARD, "index")] == ["index"]
    assert run.main(["--only", "serach"]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert told.err.startswith("no benchmark serach; there are: search, build, ")


def test_a_page_without_the_comments_stays_as_it_is() -> None:
    assert page.filled("# Mine\n", KEPT) == "# Mine\n"


def test_the_image_is_told_in_the_same_shape() -> None:
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


def test_ratio_limit_and_verdict() -> None:
    (result,) = report(5.0).results
    assert (result.ratio, result.is_within, result.is_better) == (1.25, False, False)
    assert (report(4.0).results[0].is_within, report(4.0).results[0].is_better) == (True, True)
    worst = Result("x", "event", "x", "MB", Spread.of([1.0, 2.0, 30.0]), limit=Limit("most", 15.0))
    assert (worst.ratio, worst.is_within, worst.is_better) == (None, False, None)
    median = Result("x", "event", "x", "MB", Spread.of([1.0, 2.0, 30.0]), limit=Limit("median", 15.0))
    assert median.is_within is True
    higher = Result("x", "quality", "MRR", "", one(0.6), Peer("p", "", one(0.4)), Limit("ratio", 1.0), True)
    assert (higher.ratio, higher.is_within, higher.is_better) == (1.5, True, True)
    assert Result.of_json(json.loads(json.dumps(higher.as_json()))) == higher
    with pytest.raises(ValueError, match="limit"):
        Limit("mean", 1.0)
    with pytest.raises(ValueError, match="group"):
        Result.of_json(higher.as_json() | {"group": "speed"})


def test_a_spread_keeps_its_ends() -> None:
    spread = Spread.of(float(number) for number in range(1, 101))
    assert (spread.n, spread.median, spread.least, spread.most) == (100, 50.5, 1.0, 100.0)
    assert 95 <= spread.p95 <= 96
    assert Spread.of([3.0, 1.0]) == Spread(2, 2.0, 3.0, 1.0, 3.0)


def test_the_table_says_what_is_over() -> None:
    lines = table_of([*report(5.0).results, *report(1.0, "build").results]).splitlines()
    assert lines[1].split()[-4:] == ["1.25", "≤", "1", "×", "OVER"][-4:]
    assert lines[2].endswith("within")
    kept: dict[str, object] = {"benches": {"one": report(5.0).as_json() | {"date": "d", "commit": "c", "note": "idle"}}}
    kept |= {"machine": asdict(Machine.here()), "load": asdict(Load(0, 0, 0)), "note": "busy"}
    said = "\n".join(page.written(kept | {"date": "d", "commit": "c", "seconds": 1}))
    assert "**Over the limit**: a search (1.25 × another tool, limit 1)." in said
    assert "**Behind a peer**: 1 of 1 ratios." in said
    assert "was not idle" in said


def test_without_the_archive_the_sample_is_told_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.bench.history.ARCHIVE", tmp_path / "absent.jsonl.gz")
    data, remembered, fresh = history(120)
    assert data == "the sample told again as 120 threads"
    assert (len(remembered), len(fresh)) == (120, 1_000)
    assert max(thread.created_at for thread in remembered) < min(thread.created_at for thread in fresh)


def test_a_machine_is_busy_when_others_use_it() -> None:
    assert Load(0.4, 2.0, 0.1).note(2) == "idle"
    assert Load(1.1, 2.0, 0.1).note(2) == "busy"
    assert Load(0.4, 2.0, 0.6).note(2) == "busy"
    whole = Watch()
    load = Watch(whole).load()
    assert load.start == whole.load().start
    assert min(load.start, load.end, load.others) >= 0
