"""The address of this repository: `python3 -m tools.address OWNER/precedent` writes it into every file that shows it.

The workflow that `precedent init` writes is the source. Until the address is known, the owner is OWNER.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = "templates/workflow.yml"
ALERTS = "deploy/alerts.yml"
UNKNOWN = "OWNER/precedent"
USED = re.compile(r"uses: ([A-Za-z0-9][A-Za-z0-9-]{0,38}/precedent)@v1\n")


def address(root: Path = ROOT) -> str:
    """The address, as owner/name."""
    (name,) = USED.findall((root / WORKFLOW).read_text(encoding="utf-8"))
    return str(name)


def files_with_address(root: Path = ROOT) -> Iterator[Path]:
    """The files that show the address."""
    yield root / WORKFLOW
    yield root / ALERTS
    yield from sorted([*root.glob("*.md"), *(root / "docs").glob("*.md")])


def fill(new: str, root: Path = ROOT) -> None:
    """Write the address ``new`` into all these files. Raises ValueError if a workflow could not use it."""
    if not USED.fullmatch(f"uses: {new}@v1\n"):
        raise ValueError(f"{new!r} is not the address of a repository named precedent, as OWNER/precedent")
    old = re.compile(rf"(?<![\w-]){re.escape(address(root))}(?!\w)")
    for path in files_with_address(root):
        path.write_text(old.sub(new, path.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tools.address", description="Fill in this repository's address.")
    parser.add_argument("address", metavar="OWNER/precedent")
    try:
        fill(parser.parse_args().address)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
