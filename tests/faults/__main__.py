"""`python -m tests.faults --write` writes docs/faults.md and tests/faults/README.md, `--check` compares them."""

from __future__ import annotations

import argparse
import sys

from tests.faults.page import pages


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", action="store_true")
    group.add_argument("--check", action="store_true")
    should_write = parser.parse_args().write
    texts_by_page = pages()
    stale = [
        page for page, text in texts_by_page.items() if not page.exists() or page.read_text(encoding="utf-8") != text
    ]
    if should_write:
        for page in stale:
            page.write_text(texts_by_page[page], encoding="utf-8")
        return 0
    for page in stale:
        print(f"{page} is not what the tables say: python -m tests.faults --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
