"""Fuzzes everything that reads strangers' input: ``python -m tests.fuzz --minutes 30``.

A finding is an exception that no contract names, a property that does not hold, or more than a second of
processor time for one input. Each is a file below ``--out``; ``--replay FILE`` shows it again.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.execution import check_input
from tests.fuzz.findings import load
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import Row, share

OUT = Path("build/fuzz")


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz what reads strangers' input.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, help="the seed of the inputs (default: a new one)")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="this one only; may be repeated")
    parser.add_argument("--processes", type=int, default=1, help="targets are shared out among so many")
    parser.add_argument("--out", type=Path, default=OUT, help="where findings are written")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run the input of a finding again, and stop")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when nothing was found."""
    options = parse_arguments(arguments)
    if options.replay:
        return replay(options.replay)
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    names = options.target or list(TARGETS)
    print(f"seed {seed}, {options.minutes:g} minutes, {len(names)} targets", flush=True)
    shares = [names[at :: options.processes] for at in range(min(options.processes, len(names)))]
    work = partial(share, minutes=options.minutes, seed=seed, out=options.out)
    if len(shares) == 1:
        rows = work(names)
    else:
        with ProcessPoolExecutor(len(shares), mp_context=get_context("spawn")) as pool:
            rows = [row for part in pool.map(work, shares) for row in part]
    print("\n".join(table(rows)), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"seed": seed, "minutes": options.minutes, "targets": rows}, indent=1))
    return 1 if any(row["findings"] for row in rows) else 0


def replay(file: Path) -> int:
    """Run the input of a finding; returns 1 if it still fails."""
    finding = load(file)
    target = TARGETS[finding.target]
    fault, seconds = check_input(target, finding.input)
    print(f"{finding.target}: {fault.what if fault else 'nothing is wrong'} ({seconds:.2f} s)")
    if fault is None:
        return 0
    try:
        target.all(finding.input)
    except Exception:  # noqa: BLE001 - printed for inspection
        import traceback

        traceback.print_exc()
    return 1


def table(rows: Sequence[Row]) -> list[str]:
    """The figures of all targets as lines of a table."""
    lines = [f"{'target':14} {'inputs':>9} {'steps':>6} {'kept':>5} {'slowest':>8} {'crashes':>8} {'hangs':>6}"]
    for row in rows:
        hangs = sum(finding["key"] == "hang" for finding in row["findings"])
        counted = f"{len(row['findings']) - hangs:8} {hangs:6}"
        lines.append(
            f"{row['target']:14} {row['inputs']:9,} {row['steps']:6} {row['kept']:5} {row['slowest']:6.2f} s {counted}"
        )
    total = sum(row["inputs"] for row in rows)
    findings = [finding for row in rows for finding in row["findings"]]
    lines.append(f"{total:,} inputs, {sum(row['seconds'] for row in rows):.0f} s, {len(findings)} findings")
    return lines + [f"  {row['target']}: {finding['what']}" for row in rows for finding in row["findings"]]


if __name__ == "__main__":
    sys.exit(main())
