"""Every cell of the table is played every night, and what comes of it is what the table says.

For a change every other one is played of those that no other stands for: the first of each rule, fault and call.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import THOROUGH, share
from tests.faults.calls import CALLS, FAULTS
from tests.faults.cells import Stages, play, stages
from tests.faults.exchanges import ROWS, Row
from tests.faults.exchanges import play as play_git
from tests.faults.scenes import SCENES
from tests.faults.table import Rule, played
from tests.faults.theatre import Theatre

pytestmark = pytest.mark.slow

LIMITED = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({0}, {0})); sys.exit(run_action())"
"""A run that can write so many bytes into one file, as on a full disk; git is told so, or killed for trying."""

ORDER = {call: place for place, call in enumerate(CALLS)}
ALL = sorted(played().items(), key=lambda cell: (CALLS[cell[0][0]].scene, ORDER[cell[0][0]]))


def firsts() -> Iterator[tuple[tuple[str, str], Rule]]:
    seen = set[object]()
    for (call, fault), rule in ALL:
        if new := {rule, fault, call} - seen:
            seen |= new
            yield (call, fault), rule


CELLS = ALL if THOROUGH else share(firsts(), 2)


@pytest.fixture(scope="module")
def on() -> Iterator[Stages]:
    with stages() as opened:
        yield opened


@pytest.mark.parametrize(("pair", "rule"), CELLS, ids=[" x ".join(pair) for pair, _ in CELLS])
def test_a_fault_has_the_outcome_of_the_table(pair: tuple[str, str], rule: Rule, on: Stages) -> None:
    expected = rule.outcome
    assert expected
    found = play(CALLS[pair[0]], FAULTS[pair[1]], on)
    assert found.wrong == []
    assert expected.says in found.outcome.says, found.log
    told = (found.outcome.code, found.outcome.done, found.outcome.remembers, found.outcome.buried)
    assert told == (expected.code, expected.done, expected.remembers, expected.buried), found.log
    assert expected.says or not found.outcome.says or expected.code or expected.buried, "it complains of nothing"


@pytest.mark.parametrize("row", share(ROWS, 2), ids=lambda row: row.name)
def test_a_trouble_with_git_has_the_outcome_of_the_table(row: Row, on: Stages) -> None:
    found, expected = play_git(row, on), row.outcome
    assert found.wrong == []
    assert expected.says in found.outcome.says, found.log
    told = (found.outcome.code, found.outcome.done, found.outcome.remembers)
    assert told == (expected.code, expected.done, expected.remembers), found.log


@pytest.mark.parametrize("room", [0, 1_000])
def test_a_full_disk_ends_the_run_before_anything_is_pushed(room: int, tmp_path: Path) -> None:
    theatre = Theatre(tmp_path)
    event = SCENES["opened"].tell(theatre)
    stood, folder = theatre.refs(), tmp_path / "scratch"
    folder.mkdir()
    theatre.github.clock.advance(20)
    theatre.github.write_event(tmp_path / "event.json", *event)
    environment = {**os.environ, **theatre.stage.environment(event[0]), "TMPDIR": str(folder)}
    environment |= {"GITHUB_OUTPUT": "/dev/null", "GITHUB_STEP_SUMMARY": "/dev/null"}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; from bot.action.main import run_action; {LIMITED.format(room)}"],
        cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    complaints = [line for line in done.stdout.splitlines() if line.startswith("::error::")]
    assert (done.returncode, len(complaints)) == (1, 1), done.stdout + done.stderr
    assert any(words in complaints[0] for words in ("free some space", "died of signal")), complaints
    assert "bug" not in done.stdout + done.stderr
    assert theatre.refs() == stood
    assert theatre.comments(2) == 0
    assert list(folder.iterdir()) == []
    assert theatre.act("schedule") == 0
    assert theatre.comments(2) == 1
    theatre.close()
