"""Runs the standard benchmarks, one process after the other, and keeps what they measured in docs/.

python -m tests.bench.run [--only search,event] [--docs FOLDER] [--draw]

One table on stdout, progress on stderr. `benchmarks.json` has the results, each benchmark with its date, commit and
machine; what was not run, or failed, keeps those it had. The page's tables and the plots are written anew from it. Ends
with 1 when a benchmark failed; a limit that is not kept is told in the table and is no failure.
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

from tests.bench import page
from tests.bench.figures import GROUPS, Report, results_of, table_of
from tests.bench.history import ROOT
from tests.bench.machine import Machine, Watch
from tests.bench.plots import plots
from tests.bench.standard import STANDARD, Bench, missing

SCHEMA = 1
FILE, PAGE = "benchmarks.json", "benchmarks.md"
STDERR = 2
REASON = 300
"""Characters of a reason, at most."""

Kept = dict[str, Any]


class Failed(Exception):
    """A benchmark did not measure what it should, with the reason in a line."""


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME,…", help="benchmarks, or what they are about: " + names())
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the results are kept")
    parser.add_argument("--draw", action="store_true", help="run nothing: write page and plots from what is kept")
    chosen = parser.parse_args(given)
    try:
        benches = () if chosen.draw else selected(STANDARD, chosen.only)
    except ValueError as error:
        print(f"{error}; there are: {names()}", file=sys.stderr)
        return 2
    kept = read(chosen.docs / FILE)
    kept["benches"] = {
        bench.name: kept["benches"].get(bench.name, {}) for bench in STANDARD
    }  # in order, none that is gone
    code = run(benches, kept, chosen.docs / FILE)
    write_pages(kept, chosen.docs)
    print(told(kept, [bench.name for bench in benches] or list(kept["benches"])))
    return code


def told(kept: Kept, chosen: Sequence[str]) -> str:
    """The table of what these measured, and a line for each that did not."""
    bad = {name: kept["benches"][name] for name in chosen if {"failed", "left_out"} & kept["benches"][name].keys()}
    lines = [
        f"{name}: failed, {entry['failed']['reason']}" if "failed" in entry else f"{name}: {entry['left_out']}"
        for name, entry in bad.items()
    ]
    return "\n".join([table_of(results_of(kept, set(chosen) - bad.keys())), *lines])


def names() -> str:
    return ", ".join(dict.fromkeys([*GROUPS, *(bench.name for bench in STANDARD)]))


def selected(benches: Iterable[Bench], only: str) -> tuple[Bench, ...]:
    """Those that are named, or are about what is named; all when nothing is. ValueError for a name that is unknown."""
    wanted = {name.strip() for name in only.split(",")} - {""}
    benches = tuple(benches)
    known = {name for bench in benches for name in (bench.name, *bench.groups)}
    if wanted - known:
        raise ValueError(f"no benchmark {', '.join(sorted(wanted - known))}")
    return tuple(bench for bench in benches if not wanted or wanted & {bench.name, *bench.groups})


def read(path: Path) -> Kept:
    """What is kept; nothing where there is no file of this schema."""
    if path.exists():
        kept: Kept = json.loads(path.read_text(encoding="utf-8"))
        if kept.get("schema") == SCHEMA:
            return kept
    return {"schema": SCHEMA, "benches": {}}


def write(kept: Kept, path: Path) -> None:
    ordered = {name: value for name, value in kept.items() if name != "benches"} | {"benches": kept["benches"]}
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run(benches: Sequence[Bench], kept: Kept, path: Path) -> int:
    """Run these, keep each as soon as it is done, and return 1 when one of them failed."""
    code, watch, begun = 0, Watch(), monotonic()
    for number, bench in enumerate(benches, 1):
        say(f"[{number}/{len(benches)}] {bench.name}")
        entry = kept["benches"].setdefault(bench.name, {})
        for reason in ("failed", "left_out"):
            entry.pop(reason, None)
        if absent := missing(bench):
            entry["left_out"] = absent
            say(f"    left out: {absent}")
        else:
            code |= one(bench, entry, Watch(watch))
        kept.update(circumstances(watch) | {"seconds": round(monotonic() - begun)})
        write(kept, path)
    if benches:
        say(f"{kept['seconds']} s; the machine was {kept['note']}")
    return code


def one(bench: Bench, entry: Kept, watch: Watch) -> int:
    """Run it and put what it measured in ``entry``, or why it did not; 1 then."""
    begun = monotonic()
    try:
        report = report_of(bench)
    except Failed as error:
        entry["failed"] = {"date": now(), "commit": commit(), "reason": str(error)}
        say(f"    FAILED: {error}")
        return 1
    entry.update(circumstances(watch) | {"seconds": round(monotonic() - begun)} | report.as_json())
    return 0


def report_of(bench: Bench) -> Report:
    """What it wrote. Its own table goes to stderr."""
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        told = Path(folder, "report.json")
        command = [sys.executable, "-m", bench.module, *bench.arguments, "--json", str(told)]
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
            raise Failed(f"not done after {bench.seconds} s") from error
        said = log.read_text(encoding="utf-8", errors="replace")
        sys.stderr.write(said)
        if code:
            raise Failed(f"ended with {code}: {last_line(said)}")
        try:
            return bench.shape(json.loads(told.read_text(encoding="utf-8")))
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise Failed(f"wrote no report: {type(error).__name__}: {error}") from error


def last_line(said: str) -> str:
    """The last of what a benchmark said, as far as it can be shown."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return "".join(letter for letter in (lines or ["nothing was said"])[-1] if letter.isprintable())[:REASON]


def circumstances(watch: Watch) -> Kept:
    """When, of which state of the code, on which machine, and what else it had to do."""
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
    """The commit of the checkout, with `+` where what is measured is not what was committed; "" outside of one."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], check=False, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "bot", "templates", "tests/bench")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def write_pages(kept: Mapping[str, Any], docs: Path) -> None:
    """The plots, and the page's tables where there is a page."""
    images = docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, svg in plots(kept).items():
        (images / name).write_text(svg, encoding="utf-8")
    told = docs / PAGE
    if told.exists():
        told.write_text(page.filled(told.read_text(encoding="utf-8"), kept), encoding="utf-8")


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
