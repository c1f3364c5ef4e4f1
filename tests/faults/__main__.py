"""`python -m tests.faults --write` writes docs/troubleshooting.md and tests/faults/README.md."""

from __future__ import annotations

import argparse

from tests.faults.page import pages


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
