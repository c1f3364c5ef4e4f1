"""`python -m tests.faults --write` writes docs/faults.md, `--check` says whether it is what the tables say."""

from __future__ import annotations

import argparse
import sys

from tests.faults.page import PAGE, render


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", action="store_true")
    group.add_argument("--check", action="store_true")
    if parser.parse_args().write:
        PAGE.write_text(render(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == render():
        return 0
    print(f"{PAGE.name} is not what the tables say: python -m tests.faults --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
