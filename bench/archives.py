"""Where the development archives are; benchmarks that need them end with one line if they are not there."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
ARCHIVE = DATA / "rust_pre2015" / "issues.jsonl.gz"
"""The large one: 11,109 issues of Rust."""


def need_archives() -> None:
    """End the benchmark unless the archives are next to the checkout."""
    if not ARCHIVE.exists():
        raise SystemExit(f"the archives are not here: {DATA}; nothing was measured")
