"""The threads for benchmarks: the development archive if it is available, or else the resampled sample."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

from bench.archives import ARCHIVE, ROOT
from bench.resampled import Resampler
from bot.domain.thread import Thread
from bot.domain.thread_json import thread_from_archive
from bot.sources.archive_file import read_archive

SAMPLE = ROOT / "sample" / "history.jsonl"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
LATER = 1_000
"""Threads opened after the remembered ones, if the sample is resampled."""


def history(count: int) -> tuple[str, list[Thread], list[Thread]]:
    """A description of the data, the oldest ``count`` threads, and those that came after them."""
    if not ARCHIVE.exists():
        varied = list(Resampler(list(read_archive(SAMPLE))).threads(count + LATER, NOW))
        return f"the sample, resampled to {count:,} threads", varied[:count], varied[count:]
    with gzip.open(ARCHIVE, "rt", encoding="utf-8") as lines:
        threads = sorted(map(thread_from_archive, map(json.loads, lines)), key=lambda thread: thread.created_at)
    return f"{min(count, len(threads)):,} of {len(threads):,} issues of Rust", threads[:count], threads[count:]
