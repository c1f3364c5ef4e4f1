"""No phrase of the reader takes more than linear time, whatever follows its beginning.

Each night tries every phrase with all runs; a change is checked with every other phrase and some of the runs.
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from bot.reading.endings.phrases import phrase_book
from bot.reading.markdown import MAX_SENTENCE_CHARS, sentences
from tests.examples import share
from tests.reading.linear_time import too_slow
from tests.threats.phrases import RUNS, Phrase, all_phrases, matching_text

THREADS, LONGEST = 20, 65_536
TABLES = sorted({phrase.table for phrase in all_phrases()})


def is_quadratic(phrase: Phrase, prefix: str, run: str) -> bool:
    return bool(too_slow(phrase.apply, lambda length: (prefix + run * length)[:length] + "\0x", (3_000, 12_000)))


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_no_phrase_takes_more_than_linear_time(table: str) -> None:
    quadratic = []
    for index, phrase in share([numbered for numbered in enumerate(all_phrases()) if numbered[1].table == table], 2):
        start = matching_text(phrase)
        runs = [*share(RUNS, 8, index), f"{start} ", *(f"{word} " for word in start.split())]
        quadratic += [
            (phrase.name, before, run) for before in ("", start) for run in runs if is_quadratic(phrase, before, run)
        ]
    assert quadratic == []


def test_every_set_of_phrases_is_timed() -> None:
    assert {*phrase_book().sets} <= {*TABLES}


@pytest.mark.parametrize("run", ["-", "a ", "。a", "word, "])
def test_no_phrase_sees_more_of_a_sentence_than_the_limit(run: str) -> None:
    assert max(map(len, sentences(f"Fixed in 1.2.3 {run * 20_000}"))) <= MAX_SENTENCE_CHARS


def hostile_thread(number: int) -> dict[str, object]:
    """A closed thread of 64 KB in two comments, the closing one and a complaint a day later.

    Runs of every character follow the beginnings of many phrases and of one that names a release.
    """
    starts = [matching_text(phrase) for phrase in all_phrases()]
    lines = [f"{text} {run * (60 // len(run))}" for text in starts for run in RUNS]
    body = "\n\n".join(lines[number::THREADS])[: LONGEST // 4]
    text = f"{body}\n\nFixed in 1.2.3 {RUNS[number] * LONGEST}"[: LONGEST // 2]
    comments = [
        {"author": login, "association": role, "created_at": f"2024-05-0{day}T11:59:00Z", "body": text}
        for login, role, day in (("monalisa", "MEMBER", 3), ("octocat", "NONE", 4))
    ]
    return {
        "id": number + 1, "title": "It loops", "body": "It loops.", "state": "closed", "author": "octocat",
        "created_at": "2024-05-01T12:00:00Z", "closed_at": "2024-05-03T12:00:00Z", "closed_by": "monalisa",
        "comments": comments,
    }  # fmt: skip


@pytest.mark.night
@pytest.mark.slow
def test_hostile_threads_are_imported_and_their_outcomes_found_in_seconds(tmp_path: Path) -> None:
    archive, store = tmp_path / "hostile.jsonl.gz", tmp_path / "store"
    archive.write_bytes(gzip.compress("\n".join(json.dumps(hostile_thread(n)) for n in range(THREADS)).encode()))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for command in (["import", "--store", store, archive], ["outcomes", "--store", store]):
        subprocess.run([sys.executable, "-m", "bot", *map(str, command)], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 10
