"""Every cell of the table is played every night and has the outcome in the table.

A change is checked with every other one of the cells that are the first of their rule, fault or call.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.bare_repository import Bare
from tests.examples import THOROUGH, share
from tests.faults.calls import CALLS, FAULTS
from tests.faults.fault_runs import Playhouse, play
from tests.faults.git_faults import ROWS, Row
from tests.faults.git_faults import play as play_git
from tests.faults.scenes import SCENES
from tests.faults.table import Rule, cells_to_play

pytestmark = pytest.mark.slow

LIMITED_RUN = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({0}, {0})); sys.exit(run_action())"
"""A run that can write only so many bytes to a file, as on a full disk; git gets an error or is killed."""

ORDER = {call: index for index, call in enumerate(CALLS)}
ALL = sorted(cells_to_play().items(), key=lambda cell: (CALLS[cell[0][0]].scene, ORDER[cell[0][0]]))


def first_cells() -> Iterator[tuple[tuple[str, str], Rule]]:
    seen = set[object]()
    for (call, fault), rule in ALL:
        if new := {rule, fault, call} - seen:
            seen |= new
            yield (call, fault), rule


CELLS = ALL if THOROUGH else share(first_cells(), 2)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playhouse]:
    house = Playhouse(tmp_path_factory.mktemp("faults"))
    yield house
    house.stage.close()


@pytest.mark.parametrize(("pair", "rule"), CELLS, ids=[" x ".join(pair) for pair, _ in CELLS])
def test_a_fault_has_the_outcome_of_the_table(pair: tuple[str, str], rule: Rule, house: Playhouse) -> None:
    expected = rule.outcome
    assert expected
    result = play(CALLS[pair[0]], FAULTS[pair[1]], house)
    assert result.problems == []
    assert expected.says in result.outcome.says, result.log
    actual = (result.outcome.code, result.outcome.done, result.outcome.remembers, result.outcome.buried)
    assert actual == (expected.code, expected.done, expected.remembers, expected.buried), result.log
    assert expected.says or not result.outcome.says or expected.code or expected.buried, "it complains of nothing"


@pytest.mark.parametrize("row", share(ROWS, 2), ids=lambda row: row.name)
def test_a_git_trouble_has_the_outcome_of_the_table(row: Row, house: Playhouse) -> None:
    result, expected = play_git(row, house), row.outcome
    assert result.problems == []
    assert expected.says in result.outcome.says, result.log
    actual = (result.outcome.code, result.outcome.done, result.outcome.remembers)
    assert actual == (expected.code, expected.done, expected.remembers), result.log


@pytest.mark.parametrize("max_bytes", [0, 1_000])
def test_a_full_disk_ends_the_run_before_anything_is_pushed(max_bytes: int, house: Playhouse, tmp_path: Path) -> None:
    stage, event = house.begin(SCENES["opened"])
    tip = Bare(stage.bare).tip()
    stage.github.clock.advance(20)
    stage.github.write_event(stage.folder / "event.json", *event)
    environment = {**os.environ, **stage.environment(event[0]), "TMPDIR": str(tmp_path)}
    environment |= {"GITHUB_OUTPUT": "/dev/null", "GITHUB_STEP_SUMMARY": "/dev/null"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}  # a compiled file that is cut off would break every later test
    process = subprocess.run(
        [sys.executable, "-c", f"import sys; from bot.action.main import run_action; {LIMITED_RUN.format(max_bytes)}"],
        cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    complaints = [line for line in process.stdout.splitlines() if line.startswith("::error::")]
    assert (process.returncode, len(complaints)) == (1, 1), process.stdout + process.stderr
    assert any(words in complaints[0] for words in ("free some space", "died of signal")), complaints
    assert "bug" not in process.stdout + process.stderr
    assert Bare(stage.bare).tip() == tip
    assert stage.comments(2) == []
    assert list(tmp_path.iterdir()) == []
    assert stage.act("schedule") == 0
    assert len(stage.comments(2)) == 1
