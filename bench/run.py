"""Runs the standard benchmarks, one process after another, and saves their results in docs/.

python -m bench.run [--only search,event] [--docs FOLDER] [--draw]

One table on stdout, progress on stderr. `benchmarks.json` has the results, each benchmark with its date, commit and
machine; benchmarks that did not run, or failed, keep their old results. The page's tables and the plots are rewritten
from it. Exits with 1 if a benchmark failed; an exceeded limit is only shown in the table.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from bench import page
from bench.archives import ROOT
from bench.figures import GROUPS, Report, results_of, table_of
from bench.machine import Machine, Watch
from bench.plots import plots
from bench.standard import STANDARD, Bench, missing

SCHEMA = 1
FILE, PAGE = "benchmarks.json", "bench/README.md"
"""The results, in the folder of the documentation, and their page, from the folder above."""
STDERR = 2
REASON = 300
"""Longest reason, in characters."""

SavedResults = dict[str, Any]


class BenchmarkFailed(Exception):
    """A benchmark failed; the message is one line with the reason."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME,…", help="benchmarks, or what they are about: " + names())
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the results are kept")
    parser.add_argument("--draw", action="store_true", help="run nothing: write page and plots from what is kept")
    options = parser.parse_args(arguments)
    try:
        benches = () if options.draw else select(STANDARD, options.only)
    except ValueError as error:
        print(f"{error}; there are: {names()}", file=sys.stderr)
        return 2
    saved = read(options.docs / FILE)
    saved["benches"] = {
        bench.name: saved["benches"].get(bench.name, {}) for bench in STANDARD
    }  # in order, without removed ones
    code = run(benches, saved, options.docs / FILE)
    write_pages(saved, options.docs)
    print(summary(saved, [bench.name for bench in benches] or list(saved["benches"])))
    return code


def summary(saved: SavedResults, chosen: Sequence[str]) -> str:
    """The table of their results, and a line for each without a result."""
    bad = {name: saved["benches"][name] for name in chosen if {"failed", "left_out"} & saved["benches"][name].keys()}
    lines = [
        f"{name}: failed, {entry['failed']['reason']}" if "failed" in entry else f"{name}: {entry['left_out']}"
        for name, entry in bad.items()
    ]
    return "\n".join([table_of(results_of(saved, set(chosen) - bad.keys())), *lines])


def names() -> str:
    return ", ".join(dict.fromkeys([*GROUPS, *(bench.name for bench in STANDARD)]))


def select(benches: Iterable[Bench], only: str) -> tuple[Bench, ...]:
    """The benchmarks with these names or groups, or all if ``only`` is empty. Raises ValueError for an unknown name."""
    chosen = {name.strip() for name in only.split(",")} - {""}
    benches = tuple(benches)
    all_names = {name for bench in benches for name in (bench.name, *bench.groups)}
    if chosen - all_names:
        raise ValueError(f"no benchmark {', '.join(sorted(chosen - all_names))}")
    return tuple(bench for bench in benches if not chosen or chosen & {bench.name, *bench.groups})


def read(path: Path) -> SavedResults:
    """The saved results; empty if there is no file of this schema."""
    if path.exists():
        saved: SavedResults = json.loads(path.read_text(encoding="utf-8"))
        if saved.get("schema") == SCHEMA:
            return saved
    return {"schema": SCHEMA, "benches": {}}


def write(saved: SavedResults, path: Path) -> None:
    ordered = {name: value for name, value in saved.items() if name != "benches"} | {"benches": saved["benches"]}
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run(benches: Sequence[Bench], saved: SavedResults, path: Path) -> int:
    """Run these and save each result at once; returns 1 if one of them failed."""
    code, watch, started = 0, Watch(), monotonic()
    for number, bench in enumerate(benches, 1):
        log_line(f"[{number}/{len(benches)}] {bench.name}")
        entry = saved["benches"].setdefault(bench.name, {})
        for reason in ("failed", "left_out"):
            entry.pop(reason, None)
        if absent := missing(bench):
            entry["left_out"] = absent
            log_line(f"    left out: {absent}")
        else:
            code |= run_one(bench, entry, Watch(watch))
        saved.update(circumstances(watch) | {"seconds": round(monotonic() - started)})
        write(saved, path)
    if benches:
        log_line(f"{saved['seconds']} s; the machine was {saved['note']}")
    return code


def run_one(bench: Bench, entry: SavedResults, watch: Watch) -> int:
    """Run a benchmark and put its results, or the reason for its failure, in ``entry``; returns 1 if it failed."""
    started = monotonic()
    try:
        report = report_of(bench)
    except BenchmarkFailed as error:
        entry["failed"] = {"date": now(), "commit": commit(), "reason": str(error)}
        log_line(f"    FAILED: {error}")
        return 1
    entry.update(circumstances(watch) | {"seconds": round(monotonic() - started)} | report.as_json())
    return 0


def report_of(bench: Bench) -> Report:
    """Run a benchmark; returns its report. Its own table goes to stderr."""
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", bench.module, *bench.arguments, "--json", str(report)]
        environment = os.environ | {
            "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
            "OPENBLAS_NUM_THREADS": "1",
        }
        log = Path(folder, "log")
        with log.open("wb") as errors:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=STDERR, stderr=errors, start_new_session=True
            )
        try:
            code = process.wait(bench.seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise BenchmarkFailed(f"not done after {bench.seconds} s") from error
        output = log.read_text(encoding="utf-8", errors="replace")
        sys.stderr.write(output)
        if code:
            raise BenchmarkFailed(f"ended with {code}: {last_line(output)}")
        try:
            return bench.shape(json.loads(report.read_text(encoding="utf-8")))
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise BenchmarkFailed(f"wrote no report: {type(error).__name__}: {error}") from error


def last_line(output: str) -> str:
    """The last line of a benchmark's output, as far as it is printable."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return "".join(letter for letter in (lines or ["nothing was said"])[-1] if letter.isprintable())[:REASON]


def circumstances(watch: Watch) -> SavedResults:
    """The date, the commit, the machine and its load."""
    machine, load = Machine.here(), watch.load()
    return {
        "date": now(),
        "commit": commit(),
        "machine": asdict(machine),
        "load": asdict(load),
        "note": load.note(machine.cores),
    }


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")


def commit() -> str:
    """The commit of the checkout, with `+` if measured code is uncommitted; "" outside a checkout."""

    def git(*arguments: str) -> str:
        result = subprocess.run(["git", "-C", str(ROOT), *arguments], check=False, capture_output=True, text=True)
        return result.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "bot", "templates", "bench")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def write_pages(saved: Mapping[str, Any], docs: Path) -> None:
    """Write the plots, and the page's tables if there is a page."""
    images = docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, svg in plots(saved).items():
        (images / name).write_text(svg, encoding="utf-8")
    page_file = docs.parent / PAGE
    if page_file.exists():
        page_file.write_text(page.fill_page(page_file.read_text(encoding="utf-8"), saved), encoding="utf-8")


def log_line(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
