"""Measures how often the outcome finds the ending that a reader found, and names the right kind.

Run as ``python -m bench.endings``, which needs the archives next to the checkout.

Held-out figures cover five folds and the archives: a phrase that matches only in threads of one fold was presumably
found there, and is switched off while that fold is judged.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.archives import DATA, need_archives
from bot.domain.thread import Outcome, OutcomeKind, Thread
from bot.domain.thread_json import thread_from_archive
from bot.reading.endings.outcome import outcome
from bot.reading.endings.phrases import PhraseBook, phrase_book
from bot.reading.markdown import statements

PARTS = (("first 80", 0, 80), ("81-120", 80, 120), ("121-160", 120, 160))
FOLDS = 5
_LAST = 3
"""How many comments before the closing are searched for phrases."""


@dataclass(frozen=True)
class Case:
    """A thread with a reader's labels."""

    position: int
    archive: str
    thread: Thread
    kind: str
    endings: frozenset[int]
    is_visible: bool

    @property
    def part(self) -> str:
        return next(name for name, start, end in PARTS if start <= self.position < end)

    @property
    def fold(self) -> str:
        return f"fold {self.position % FOLDS + 1}"


def load_threads(data: Path, archive: str) -> dict[object, Thread]:
    """The threads of one archive by id."""
    with gzip.open(data / "threads" / f"{archive}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {thread.id: thread for thread in map(thread_from_archive, map(json.loads, lines))}


def load_cases(data: Path = DATA) -> list[Case]:
    """The labelled threads, in the order of the labels."""
    labels = [json.loads(line) for line in (data / "endings.jsonl").read_text(encoding="utf-8").splitlines()]
    threads = {name: load_threads(data, name) for name in {label["archive"] for label in labels}}
    return [_case(position, label, threads) for position, label in enumerate(labels)]


def _case(position: int, label: dict[str, Any], threads: dict[str, dict[object, Thread]]) -> Case:
    accepted = {label["ending_comment"], *(label.get("alt_comments") or ())} - {None}
    archive = label["archive"]
    thread = threads[archive][label["id"]]
    return Case(position, archive, thread, label["kind"], frozenset(accepted), label["visible_ending"])


def judge(case: Case, book: PhraseBook | None = None) -> Counter[str]:
    """What is right or wrong in the outcome of one labelled thread, as counts of 0 and 1."""
    result = outcome(case.thread, book=book)
    asserted = result.kind is not OutcomeKind.UNKNOWN
    right = asserted and kind_of(result) == case.kind
    return Counter(
        threads=1,
        endings=bool(case.endings),
        shown=result.comment is not None,
        shown_right=result.comment in case.endings,
        asserted=asserted,
        kind_right=right,
        visible=case.is_visible,
        visible_asserted=case.is_visible and asserted,
        visible_right=case.is_visible and right,
    )


def kind_of(result: Outcome) -> str:
    """The kind as the labels spell it."""
    return result.kind.value.replace(" ", "_")


def total(cases: Iterable[Case], book: PhraseBook | None = None) -> Counter[str]:
    """The sum of the counts of these cases."""
    counts: Counter[str] = Counter()
    for case in cases:
        counts.update(judge(case, book))
    return counts


def phrase_positions(cases: Sequence[Case]) -> dict[str, frozenset[int]]:
    """Phrase → the positions of the threads that end with it."""
    sentences_by_position = {case.position: _last_words(case.thread) for case in cases}
    positions = {}
    book = phrase_book()
    for rule in (*book.endings, book.rules["thanked"]):
        for patterns in rule.phrases.by_language.values():
            for text in patterns.texts:
                alone = replace(patterns, texts=(text,)).regex
                positions[text] = frozenset(
                    at for at, sentences in sentences_by_position.items() if any(map(alone.search, sentences))
                )
    return positions


def _last_words(thread: Thread) -> list[str]:
    assert thread.closed_at
    before = [comment for comment in thread.comments if comment.created_at <= thread.closed_at]
    return [sentence for comment in before[-_LAST:] for sentence in statements(comment.text)]


def held_out(cases: Sequence[Case], group: Callable[[Case], str]) -> dict[str, Counter[str]]:
    """The counts of each group of cases, judged without the phrases that match only in that group."""
    matches = phrase_positions(cases)
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(group(case), []).append(case)
    counts = {}
    for name, members in groups.items():
        inside = {case.position for case in members}
        own_phrases = frozenset(phrase for phrase, positions in matches.items() if positions and positions <= inside)
        counts[name] = total(members, phrase_book().without(own_phrases)) + Counter(switched_off=len(own_phrases))
    return counts


def confusion(cases: Iterable[Case]) -> Counter[tuple[str, str]]:
    """How often a labelled kind was recognised as which kind."""
    return Counter((case.kind, kind_of(outcome(case.thread))) for case in cases)


def row(name: str, tally: Counter[str]) -> str:
    """One line of the table."""

    def share(part: str, whole: str) -> str:
        return f"{tally[part] / tally[whole]:6.3f}" if tally[whole] else "     -"

    return "  ".join(
        (
            f"{name:16}{tally['threads']:4}",
            f"{tally['endings']:4}{tally['shown']:6}{share('shown_right', 'shown')}{share('shown_right', 'endings')}",
            f"{tally['visible']:5}{share('visible_asserted', 'visible')}{share('visible_right', 'visible_asserted')}",
            f"{tally['asserted']:5}{share('kind_right', 'asserted')}",
            f"{tally['switched_off'] or '':>4}",
        )
    )


def main() -> None:
    """Print the tables."""
    need_archives()
    cases = load_cases()
    print(f"{'':16} all  ends shown right  found  open  named right  named right  off")
    for group in ((lambda case: case.part), (lambda case: case.archive)):
        names = dict.fromkeys(map(group, cases))
        for name in names:
            print(row(name, total(case for case in cases if group(case) == name)))
    print(row("all", total(cases)))
    for title, group in (("all by folds", lambda case: case.fold), ("all by archive", lambda case: case.archive)):
        counts = held_out(cases, group)
        print()
        for name in sorted(counts):
            print(row(name, counts[name]))
        print(row(title, sum(counts.values(), Counter())))
    _print_confusion(cases)


def _print_confusion(cases: Sequence[Case]) -> None:
    kinds = [kind.value.replace(" ", "_") for kind in OutcomeKind]
    counts = confusion(cases)
    print("\n" + " " * 14 + "".join(f"{kind:>12}" for kind in kinds))
    for gold in kinds:
        print(f"{gold:14}" + "".join(f"{counts[gold, kind] or '.':>12}" for kind in kinds))


if __name__ == "__main__":
    main()
