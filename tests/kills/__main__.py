"""Kills the Action at random moments and checks what later runs make of it: ``python -m tests.kills --times 200``."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.kills.campaign import measure_baseline, perform_kills
from tests.kills.points import KillResult, choose_points
from tests.kills.repository import prepare

WIDTH = 30


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description="Kill the Action, and look.")
    parser.add_argument("--times", type=int, default=200, help="how many kills")
    parser.add_argument("--seed", type=int, help="the seed of the kills (default: a new one)")
    parser.add_argument("--only", type=int, action="append", default=[], metavar="CASE", help="these cases of the seed")
    parser.add_argument("--processes", type=int, default=1, help="kills at once")
    parser.add_argument("--json", type=Path, help="write what came of each kill to this file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if there were no violations."""
    options = parse_arguments(arguments)
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    started = time.monotonic()
    print(f"seed {seed}, {options.times} kills", flush=True)
    results = []
    with tempfile.TemporaryDirectory(prefix="precedent-kills-", ignore_cleanup_errors=True) as folder:
        baseline = measure_baseline(prepare(Path(folder) / "prepared"), Path(folder))
        for name, run in baseline.undisturbed_runs.items():
            print(f"  {name}: a whole run takes {run.seconds:.1f} s and {len(run.requests)} requests", flush=True)
        planned = [
            p
            for p in choose_points(options.times, seed, baseline.undisturbed_runs)
            if not options.only or p.case in options.only
        ]
        for result in perform_kills(planned, baseline, Path(folder), options.processes):
            results.append(result)
            _show(result, len(results), len(planned))
    text = "\n".join(summary(results, seed, time.monotonic() - started))
    print(text, flush=True)
    if options.json:
        options.json.write_text(json.dumps({"seed": seed, "kills": [asdict(result) for result in results]}, indent=1))
    return 1 if any(result.faults for result in results) else 0


def summary(results: Sequence[KillResult], seed: int, seconds: float) -> list[str]:
    """The results of all kills, as lines of text."""
    places, failed = Counter(result.place for result in results), [result for result in results if result.faults]
    lines = [f"\n{len(results)} kills in {seconds:.0f} s, seed {seed}. They struck:"]
    lines += [f"  {count:4d} × {place}" for place, count in places.most_common()]
    alone = sum(result.point.alone for result in results)
    lines.append(f"  {alone} of them left the git programs alive that the run had started")
    postponed = [result for result in results if result.waited]
    runs = Counter(result.runs for result in results)
    lines.append("Runs until the comment stood: " + ", ".join(f"{n} × {runs[n]}" for n in sorted(runs)))
    lines.append(
        f"  {len(postponed)} were put off by a rule: "
        + str(dict(Counter(r for result in postponed for r in result.waited)))
    )
    sizes = [result.left for result in results if result.left]
    lines.append(
        f"Left in the temporary folder by {len(sizes)} killed runs: {max(sizes, default=0) / 1e6:.2f} MB at most,"
        f" {sum(sizes) / max(1, len(sizes)) / 1e6:.2f} MB on average"
    )
    lines.append(f"Violations: {sum(len(result.faults) for result in results)} in {len(failed)} kills")
    for result in failed:
        lines += [f"  --seed {seed} --only {result.point.case}: {fault}" for fault in result.faults]
    return lines


def _show(result: KillResult, done: int, planned: int) -> None:
    mark = "VIOLATION" if result.faults else "ok"
    line = f"{done}/{planned} {result.point.scenario}, {result.point.label}: {result.place}; {result.runs} runs; {mark}"
    if sys.stdout.isatty() and not result.faults:
        bar = "#" * (WIDTH * done // planned)
        print(f"\r[{bar:<{WIDTH}}] {line:<90.90}", end="" if done < planned else "\n", flush=True)
    else:
        print(line, flush=True)
        for fault in result.faults:
            print(f"    case {result.point.case}: {fault}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
