"""A few kills of the whole server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples import THOROUGH, share
from tests.server.kills import campaign

DATABASES = [False, pytest.param(True, marks=pytest.mark.postgres)]
KILLS = 5 if THOROUGH else 3


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.parametrize("on_postgres", share(DATABASES, 2), ids=lambda on: "postgres" if on else "sqlite")
def test_nothing_is_lost_or_done_twice_when_processes_are_killed(tmp_path: Path, on_postgres: bool) -> None:
    assert campaign(tmp_path, seed=5, kills=KILLS, on_postgres=on_postgres, standin=False) == []


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("on_postgres", share(DATABASES, 2, 1), ids=lambda on: "postgres" if on else "sqlite")
def test_the_queue_alone_loses_nothing_when_processes_are_killed(tmp_path: Path, on_postgres: bool) -> None:
    assert campaign(tmp_path, seed=6, kills=KILLS, on_postgres=on_postgres, standin=True) == []
