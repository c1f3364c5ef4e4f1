"""Kills the Action at random moments and checks what later runs make of it: ``python -m tests.kills --times 200``."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.kills.campaign import measure_baseline, perform_kill
from tests.kills.kill_stage import KillStage
from tests.kills.points import KillResult, choose_points


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if there were no violations."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description="Kill the Action, and look.")
    parser.add_argument("--times", type=int, default=200, help="how many kills")
    parser.add_argument("--seed", type=int, help="the seed of the kills (default: a new one)")
    parser.add_argument("--only", type=int, action="append", default=[], metavar="CASE", help="these cases of the seed")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    started, results = time.monotonic(), list[KillResult]()
    print(f"seed {seed}, {options.times} kills", flush=True)
    with tempfile.TemporaryDirectory(prefix="precedent-kills-", ignore_cleanup_errors=True) as folder:
        stage = KillStage(Path(folder))
        baseline = measure_baseline(stage)
        for name, run in baseline.undisturbed_runs.items():
            print(f"  {name}: a whole run takes {run.seconds:.1f} s and {len(run.requests)} requests", flush=True)
        for point in choose_points(options.times, seed, baseline.undisturbed_runs):
            if not options.only or point.case in options.only:
                results.append(result := perform_kill(point, baseline))
                print(f"{point.case}: {point.scenario}, {point.label}: {result.place}; {result.runs} runs", flush=True)
                for fault in result.faults:
                    print(f"    VIOLATION {fault}", flush=True)
        stage.close()
    print("\n".join(summary(results, seed, time.monotonic() - started)), flush=True)
    return 1 if any(result.faults for result in results) else 0


def summary(results: Sequence[KillResult], seed: int, seconds: float) -> list[str]:
    """The results of all kills, as lines of text."""
    places, failed = Counter(result.place for result in results), [result for result in results if result.faults]
    lines = [f"\n{len(results)} kills in {seconds:.0f} s, seed {seed}. They struck:"]
    lines += [f"  {count:4d} × {place}" for place, count in places.most_common()]
    alone = sum(result.point.alone for result in results)
    lines.append(f"  {alone} of them left the git programs alive that the run had started")
    runs = Counter(result.runs for result in results)
    lines.append("Runs until the comment stood: " + ", ".join(f"{n} × {runs[n]}" for n in sorted(runs)))
    rules = Counter(rule for result in results for rule in result.waited)
    lines.append(f"  {rules.total()} runs were put off by a rule: {dict(rules)}")
    lines.append(f"Violations: {sum(len(result.faults) for result in results)} in {len(failed)} kills")
    for result in failed:
        lines += [f"  --seed {seed} --only {result.point.case}: {fault}" for fault in result.faults]
    return lines


if __name__ == "__main__":
    sys.exit(main())
