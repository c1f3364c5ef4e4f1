"""`python -m tests.doors` asks every question of the table and prints what each entry point lists.

The questions to real projects are asked if their archives stand beside the checkout. With `--failing`, only the rows
with a fault are printed; the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from itertools import groupby
from pathlib import Path

from tests.agent_folders import AGENT_FOLDERS
from tests.doors.entrances import opened
from tests.doors.memories import ARCHIVES, build
from tests.doors.table import MADE_UP, Expectation, described, faults, read_table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.doors", description=__doc__)
    parser.add_argument("--failing", action="store_true", help="only rows with a fault")
    only_failing = parser.parse_args().failing
    rows = [row for file in ("made_up.toml", "projects.toml") for row in read_table(file)]
    asked = [row for row in rows if row.memory == MADE_UP or ARCHIVES.is_dir()]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("XDG_CACHE_HOME", *AGENT_FOLDERS):
            os.environ[name] = f"{folder}/{name}"  # nothing of whoever runs this
        failed = sum(_ask_all(list(group), Path(folder), only_failing)
                     for _, group in groupby(asked, key=lambda row: row.memory))  # fmt: skip
    known = sum(bool(row.unmet) for row in asked)
    print(f"{len(asked) - failed} of {len(asked)} questions are answered as expected at every entry point;")
    print(
        f"{failed} are not ({known} known), and {len(rows) - len(asked)} were not asked: their archives are not here."
    )
    return int(failed > 0)


def _ask_all(rows: list[Expectation], folder: Path, only_failing: bool) -> int:
    """Ask the questions to one memory and print the answers. Returns how many rows have a fault."""
    store = folder / rows[0].memory
    build(rows[0].memory, store)
    failed = 0
    with opened(store) as entrances:
        for row in rows:
            answers = entrances.ask(row.query, row.on)
            problems = faults(row, answers, entrances)
            failed += bool(problems)
            if problems or not only_failing:
                print(described(row, answers, problems), end="\n\n")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
