"""Measures how often the release that people name for a fix is the right one, on the development archives.

Run as ``python -m bench.stated_releases``, which needs the archives next to the checkout. A reader graded every release
found. For misses, the reader checked threads without one in which a maintainer or the closer names a version near a
word for a fix: all of those in which that happens no earlier than two days before the closing, and a sample of the
others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.archives import DATA, need_archives
from bot.domain.thread import Thread, ThreadId
from bot.reading.endings.stated_release import StatedRelease, stated_release
from bot.reading.markdown import statements
from bot.reading.versions import read_version
from bot.sources.archive_file import read_archive

ARCHIVES = {
    "rust_pre2015/issues": "rust-lang/rust",
    "threads/bitcoin_gui": "bitcoin-core/gui",
    "threads/ietf_http2-spec": "httpwg/http2-spec",
    "threads/ietf_mls-protocol": "mlswg/mls-protocol",
    "threads/ietf_qlog": "quicwg/qlog",
}
"""The archives, each with its repository."""

READ: dict[ThreadId, str] = {
    2299: "0.6", 4221: "0.5", 4517: "0.6", 5451: "0.6", 6746: "0.7", 7662: "0.7", 11257: "0.9", 11566: "0.9",
    2940: "0.3.1", 3373: "0.4", 6039: "0.7", 17174: "0.12.0",
}  # fmt: skip
"""The release that a reader found in each of Rust's threads that name one; the other archives have none."""

RELEASED = {
    "0.3": (2012, 7, 12), "0.4": (2012, 10, 15), "0.5": (2012, 12, 21), "0.6": (2013, 4, 3), "0.7": (2013, 7, 3),
    "0.8": (2013, 9, 26), "0.9": (2014, 1, 9), "0.10": (2014, 4, 3), "0.11.0": (2014, 7, 2), "0.12.0": (2014, 10, 9),
}  # fmt: skip
"""The dates of Rust's releases of that time."""

_VERSION = re.compile(r"(?<![\w./])v?\d{1,4}(?:\.\d{1,5}){1,3}(?![\w.]*/)", re.ASCII | re.IGNORECASE)
_FIX = re.compile(
    r"\b(?:fix|releas|availab|merged|landed|shipp|includ|resolv|solved|part of|works|obsolete|gone|done|implement|now"
    r"|closing)",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True)
class ReleaseCase:
    """A closed thread with the release found in it, or None if it may name one but none was found."""

    archive: str
    thread: Thread
    release: StatedRelease | None

    @property
    def is_right(self) -> bool:
        return self.release is not None and READ.get(self.thread.id) == self.release.text

    @property
    def fits_the_dates(self) -> bool:
        """Whether the release was out when the thread was closed, or was the next one."""
        assert self.release
        assert self.thread.closed_at
        before = [name for name, day in RELEASED.items() if datetime(*day, tzinfo=UTC) <= self.thread.closed_at]
        newest = list(RELEASED)[: len(before) + 1]
        return self.release.version in map(read_version, newest)


def read_all(data: Path = DATA) -> Iterator[ReleaseCase]:
    """The closed threads of all archives that name, or may name, a release."""
    for archive, repo in ARCHIVES.items():
        for thread in read_archive(data / f"{archive}.jsonl.gz"):
            release = stated_release(thread, repo)
            if release or (thread.is_closed and _may_name_one(thread)):
                yield ReleaseCase(archive, thread, release)


def _may_name_one(thread: Thread) -> bool:
    texts = (each.text for each in thread.comments if each.by_maintainer or each.author == thread.closed_by)
    return any(
        _VERSION.search(sentence) and _FIX.search(sentence)
        for text in texts
        if _VERSION.search(text)
        for sentence in statements(text)
    )


def main() -> None:
    """Print every release found with its quotation, then the counts."""
    need_archives()
    all_threads = list(read_all())
    with_release = [each for each in all_threads if each.release]
    for each in with_release:
        assert each.release
        mark = "right" if each.is_right else "not read" if each.thread.id not in READ else "WRONG"
        print(f"{each.archive:26}{each.thread.id:>7} {mark:9}{each.release.text:8} {each.release.quote}")
    right = sum(each.is_right for each in with_release)
    print(f"told {len(with_release)}, right {right}; stated {len(READ)}, missed {len(READ) - right}")
    print(f"threads that name a version near a word of a fix, none told: {len(all_threads) - len(with_release)}")


if __name__ == "__main__":
    main()
