"""``python -m tests.simulator --histories 2000 --processes 2`` plays random histories; ``--replay SEED`` tells one."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.simulator.runner import HistoryResult, Summary, get_scene, play, play_all, remove_scene


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--histories", type=int, default=200, help="how many")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first seed; the others follow")
    parser.add_argument("--processes", type=int, default=2, help="how many at once")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no more after so many, and fail")
    parser.add_argument("--first-violation", action="store_true", help="stop at the first one")
    parser.add_argument("--json", type=Path, help="write the summary there")
    parser.add_argument("--replay", type=int, metavar="SEED", help="play one history and tell its story")
    return parser.parse_args(arguments)


def replay(seed: int) -> int:
    """Play one history and print its story; 1 if an invariant is broken."""
    try:
        played = play(get_scene(), seed, lambda line: print(line, file=sys.__stdout__, flush=True))
    finally:
        remove_scene()
    for fault in played.broken:
        print(f"BROKEN {fault}")
    print(f"seed {seed}: " + (f"{len(played.broken)} violations" if played.broken else "nothing is broken"))
    return 1 if played.broken else 0


def report_progress(summary: Summary, new: list[HistoryResult]) -> None:
    for played in new:
        for fault in played.broken[:1]:
            print(f"seed {played.seed}: {fault}", file=sys.stderr)
    fault = f"{summary.histories} histories, {summary.seconds:.0f} s, {len(summary.broken)} with violations"
    print(fault, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    if options.replay is not None:
        return replay(options.replay)
    seeds = range(options.first, options.first + options.histories)
    print(f"seeds {seeds[0]} to {seeds[-1]}", flush=True)
    summary = play_all(
        seeds, options.processes, options.minutes * 60, report_progress, first_only=options.first_violation
    )
    print("\n".join(summary.lines()))
    if options.json:
        totals = {"histories": summary.histories, "seconds": summary.seconds, "counts": dict(summary.counts)}
        options.json.write_text(json.dumps(totals | {"broken": summary.broken}, indent=1), encoding="utf-8")
    missing = len(seeds) - summary.histories
    if missing and not (options.first_violation and summary.broken):
        print(f"the time was over: {missing:,} of {len(seeds):,} histories were not played", file=sys.stderr)
        return 1
    return 1 if summary.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
