"""Every fault of a rebuild is played and has the outcome in the table."""

from __future__ import annotations

import pytest

from bot.github.history import PER_PAGE
from tests.acceptance.stage import Stage, with_issues
from tests.faults.rebuilds import FULL, ROWS, Row, play

pytestmark = pytest.mark.slow


@pytest.mark.night
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_rebuild_has_the_outcome_of_the_table(row: Row, empty_stage: Stage) -> None:
    stage = with_issues(empty_stage, FULL)
    code, summary = play(row, stage)
    assert code == row.code, summary
    assert row.says in summary
    memory = stage.memory()
    progress = (memory.state.manifest.threads, memory.state.manifest.reading is None)
    assert progress == ((FULL, True) if row.done == "now" else (PER_PAGE, False)), summary
    if row.done == "later":
        stage.github.clock.advance(3700)
        assert stage.act("schedule") == 0
        memory = stage.memory()
        assert (memory.state.manifest.threads, memory.state.manifest.reading) == (FULL, None)
