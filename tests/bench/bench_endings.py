"""How often the outcome finds the ending that a reader found, and names its kind rightly; prints one table."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

from bot.archive import thread_from_archive
from bot.model import OutcomeKind, Thread
from bot.reading.outcome import outcome

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PARTS = (("first 80", 0, 80), ("81-120", 80, 120), ("121-160", 120, 160))


def load_threads(data: Path, archive: str) -> dict[object, Thread]:
    with gzip.open(data / "threads" / f"{archive}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {thread.id: thread for thread in map(thread_from_archive, map(json.loads, lines))}


def load_labels(data: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (data / "endings.jsonl").read_text(encoding="utf-8").splitlines()]


def judge(label: dict[str, object], thread: Thread) -> Counter[str]:
    """What is right and wrong in the outcome of one labelled thread, as counts of 0 and 1."""
    found = outcome(thread)
    accepted = {label["ending_comment"], *(label.get("alt_comments") or ())} - {None}
    asserted = found.kind is not OutcomeKind.UNKNOWN
    return Counter(
        threads=1,
        endings=bool(accepted),
        shown=found.comment is not None,
        shown_right=found.comment in accepted,
        asserted=asserted,
        kind_right=asserted and found.kind.value.replace(" ", "_") == label["kind"],
    )


def row(name: str, tally: Counter[str]) -> str:
    def share(part: str, whole: str) -> str:
        return f"{tally[part] / tally[whole]:.2f}" if tally[whole] else "  - "

    counts = f"{name:18} {tally['threads']:4} {tally['endings']:8} {tally['shown']:6}"
    shown = f"{share('shown_right', 'shown'):>6} {share('shown_right', 'endings'):>6}"
    kinds = f"{tally['asserted']:9} {share('asserted', 'threads'):>6} {share('kind_right', 'asserted'):>6}"
    return f"{counts} {shown} {kinds}"


def main() -> None:
    labels = load_labels(DATA)
    threads = {name: load_threads(DATA, name) for name in {str(label["archive"]) for label in labels}}
    tallies: dict[str, Counter[str]] = {}
    for position, label in enumerate(labels):
        verdict = judge(label, threads[str(label["archive"])][label["id"]])
        part = next(name for name, start, end in PARTS if start <= position < end)
        for name in (part, str(label["archive"]), "all"):
            tallies.setdefault(name, Counter()).update(verdict)
    print(f"{'':18}  all  endings  shown  right recall  asserted  share  right")
    for name in sorted(tallies):
        print(row(name, tallies[name]))


if __name__ == "__main__":
    main()
