"""Kill the Action at random moments and look what the next run makes of it: ``python -m tests.kills --times 200``."""

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

from tests.kills.campaign import measure, strike_all
from tests.kills.points import Hit, points
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
    """Returns 0 when nothing was violated."""
    options = parse_arguments(arguments)
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    started = time.monotonic()
    print(f"seed {seed}, {options.times} kills", flush=True)
    hits = []
    with tempfile.TemporaryDirectory(prefix="precedent-kills-", ignore_cleanup_errors=True) as folder:
        grounds = measure(prepare(Path(folder) / "prepared"), Path(folder))
        for name, length in grounds.lengths.items():
            print(f"  {name}: a whole run takes {length.seconds:.1f} s and {len(length.requests)} requests", flush=True)
        planned = [
            p for p in points(options.times, seed, grounds.lengths) if not options.only or p.case in options.only
        ]
        for hit in strike_all(planned, grounds, Path(folder), options.processes):
            hits.append(hit)
            _show(hit, len(hits), len(planned))
    text = "\n".join(summary(hits, seed, time.monotonic() - started))
    print(text, flush=True)
    if options.json:
        options.json.write_text(json.dumps({"seed": seed, "kills": [asdict(hit) for hit in hits]}, indent=1))
    return 1 if any(hit.faults for hit in hits) else 0


def summary(hits: Sequence[Hit], seed: int, seconds: float) -> list[str]:
    """What came of all kills, in lines."""
    places, violated = Counter(hit.place for hit in hits), [hit for hit in hits if hit.faults]
    lines = [f"\n{len(hits)} kills in {seconds:.0f} s, seed {seed}. They struck:"]
    lines += [f"  {count:4d} × {place}" for place, count in places.most_common()]
    alone = sum(hit.point.alone for hit in hits)
    lines.append(f"  {alone} of them left the git programs alive that the run had started")
    later = [hit for hit in hits if hit.waited]
    runs = Counter(hit.runs for hit in hits)
    lines.append("Runs until the comment stood: " + ", ".join(f"{n} × {runs[n]}" for n in sorted(runs)))
    lines.append(
        f"  {len(later)} were put off by a rule: " + str(dict(Counter(r for hit in later for r in hit.waited)))
    )
    left = [hit.left for hit in hits if hit.left]
    lines.append(
        f"Left in the temporary folder by {len(left)} killed runs: {max(left, default=0) / 1e6:.2f} MB at most,"
        f" {sum(left) / max(1, len(left)) / 1e6:.2f} MB on average"
    )
    lines.append(f"Violations: {sum(len(hit.faults) for hit in hits)} in {len(violated)} kills")
    for hit in violated:
        lines += [f"  --seed {seed} --only {hit.point.case}: {fault}" for fault in hit.faults]
    return lines


def _show(hit: Hit, done: int, planned: int) -> None:
    mark = "VIOLATION" if hit.faults else "ok"
    line = f"{done}/{planned} {hit.point.scenario}, {hit.point.words}: {hit.place}; {hit.runs} runs; {mark}"
    if sys.stdout.isatty() and not hit.faults:
        bar = "#" * (WIDTH * done // planned)
        print(f"\r[{bar:<{WIDTH}}] {line:<90.90}", end="" if done < planned else "\n", flush=True)
    else:
        print(line, flush=True)
        for fault in hit.faults:
            print(f"    case {hit.point.case}: {fault}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
