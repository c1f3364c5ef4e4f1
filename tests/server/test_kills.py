"""A few kills of the whole server, and whether a campaign of kills detects faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.github.events import Event
from bot.server.model import Delivery, RepositoryKey
from tests.examples import THOROUGH, share
from tests.fakes.github import FakeGitHub
from tests.server.kill_checks import (
    Kill,
    Run,
    Sent,
    comment_fault,
    delivery_fault,
    name_of,
    overlap_faults,
    restart_delays,
)
from tests.server.kills import campaign

DATABASES = [False, pytest.param(True, marks=pytest.mark.postgres)]


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.parametrize("on_postgres", share(DATABASES, 2), ids=lambda on: "postgres" if on else "sqlite")
def test_nothing_is_lost_or_done_twice_when_processes_are_killed(tmp_path: Path, on_postgres: bool) -> None:
    assert campaign(tmp_path, seed=5, kills=5 if THOROUGH else 3, on_postgres=on_postgres, standin=False) == []


@pytest.mark.slow
@pytest.mark.parametrize("on_postgres", share(DATABASES, 2, 1), ids=lambda on: "postgres" if on else "sqlite")
def test_the_queue_alone_loses_nothing_when_processes_are_killed(tmp_path: Path, on_postgres: bool) -> None:
    assert campaign(tmp_path, seed=6, kills=5 if THOROUGH else 3, on_postgres=on_postgres, standin=True) == []


def test_the_campaign_detects_lost_and_doubled_work() -> None:
    with FakeGitHub("octo-org/hello-world") as github:
        accepted, rejected = Sent("9:a", github, 3, 202), Sent("9:b", github, 4, 504)
    row = Delivery(1, "9:a", RepositoryKey(1, 2), Event("issues"), "", False, "done", 1)
    assert delivery_fault(accepted, None) == "9:a is lost"
    assert delivery_fault(accepted, row) == ""
    assert [comment_fault(accepted, count) == "" for count in (0, 1, 2)] == [False, True, False]
    assert [comment_fault(rejected, count) == "" for count in (0, 1, 2)] == [True, True, False]


def test_the_campaign_detects_overlapping_runs_and_measures_restarts() -> None:
    kills = [Kill(1500, "web"), Kill(9000, "worker")]
    runs = [Run("1-2", 1000, 0), Run("1-2", 1400, 1600), Run("1-3", 1450, 1600), Run("1-2", 4000, 4100)]
    assert overlap_faults(runs, kills) == ["two runs of 1-2 ran at once, 100 ms"]
    assert overlap_faults(runs[1:], kills) == []
    assert restart_delays([runs[0], runs[3]], kills) == [2.5]
    assert restart_delays([runs[0]], kills) == [999_999.999 + 0.001]


def test_a_kill_is_blamed_only_for_runs_of_its_own_processes() -> None:
    runs = [Run("1-2", 1000, 0, worker="a-host-77-0a1b"), Run("1-2", 9500, 9600)]
    other, own = name_of(["python", "-m", "bot", "worker"], 78), name_of(["python", "-m", "bot", "worker"], 77)
    assert restart_delays(runs, [Kill(1500, "worker", (other,)), Kill(9000, "worker", (own, other))]) == [0.5]
    named = name_of(["python", "-m", "bot", "worker", "--parent", "77", "--name", "a-host-77-0a1b", ""], 99)
    assert restart_delays(runs, [Kill(1500, "worker", ("a-host-77-ffff",)), Kill(9000, "worker", (named,))]) == [0.5]
