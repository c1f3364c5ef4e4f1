"""What each error means for the delivery that met it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import bot
from bot.errors import PrecedentError, StoreError, UserError, WorldError
from bot.files import DiskFault
from bot.git.errors import Archived, AuthFailed, GitError, RemoteRefused, RemoteUnreachable
from bot.github.errors import (
    CannotComment,
    ForgeError,
    Gone,
    Invalid,
    IssuesOff,
    NotInstalled,
    NotPermitted,
    RateLimited,
    Unauthorised,
    Unreachable,
)
from bot.github.events import Event
from bot.server.inbox_rows import NEVER_ENDED, REASONS
from bot.server.log import Bug
from bot.server.model import Delivery, RepositoryKey, Result, ServerStopping
from bot.server.retry_policy import RepositoryMoved, judge

ROOT = Path(bot.__file__).parent
NOW = 1_800_000_000_000


def tried(attempts: int = 0) -> Delivery:
    return Delivery(7, "1:a", RepositoryKey(1, 2), Event("issues"), "", True, "working", NOW, attempts=attempts)


@pytest.mark.parametrize(
    "error",
    [
        Gone("gone", certain=True),
        IssuesOff("off"),
        Archived("archived"),
        CannotComment("locked"),
        Invalid("too long"),
        UserError("branch: no name"),
    ],
)
def test_what_nobody_here_can_mend_is_done_in_silence(error: PrecedentError) -> None:
    assert judge(error, tried(), NOW, 8) == Result(7, "done", str(error), said="silent")


@pytest.mark.parametrize("error", [NotPermitted("give it 'issues: write'"), RemoteRefused("a rule forbids it")])
def test_what_the_owner_has_to_mend_is_put_aside_at_once(error: PrecedentError) -> None:
    assert judge(error, tried(), NOW, 8) == Result(7, "dead", str(error))


def test_where_the_app_is_not_installed_a_delivery_is_dropped() -> None:
    assert judge(NotInstalled("not there"), tried(), NOW, 8) == Result(7, "dropped", "not there")


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("502"),
        RemoteUnreachable("no answer"),
        DiskFault("full"),
        StoreError("others keep writing"),
        GitError("bad object"),
        ForgeError("what is that"),
        WorldError("the database is away"),
        Gone("it cannot be seen", certain=False),
    ],
)
def test_what_passes_is_tried_again_ever_later_and_put_aside_after_the_last_try(error: PrecedentError) -> None:
    times = [judge(error, tried(attempts), NOW, 8).next_at - NOW for attempts in range(7)]
    assert times == [15_000, 30_000, 60_000, 120_000, 240_000, 480_000, 960_000]
    assert all(judge(error, tried(attempts), NOW, 8).counts for attempts in range(7))
    assert judge(error, tried(7), NOW, 8) == Result(7, "dead", str(error))


def test_chance_keeps_apart_what_failed_together() -> None:
    assert judge(Unreachable("502"), tried(), NOW, 8, 0.5).next_at == NOW + 7_500
    assert judge(Unreachable("502"), tried(), NOW, 8, 1.5).next_at == NOW + 22_500


@pytest.mark.parametrize("error", [Unauthorised("401"), AuthFailed("403")])
def test_a_token_that_died_is_followed_by_a_new_one_at_once_and_only_once(error: PrecedentError) -> None:
    assert judge(error, tried(), NOW, 8) == Result(7, "waiting", str(error), NOW)
    assert judge(error, tried(1), NOW, 8).next_at == NOW + 30_000
    assert judge(error, tried(7), NOW, 8).state == "dead"


def test_a_limit_is_sat_out_for_a_minute_at_least_and_counts_for_nothing() -> None:
    until = datetime.fromtimestamp(NOW / 1000 + 1800, UTC)
    expected = Result(7, "waiting", "limit", NOW + 1_800_000, counts=False)
    assert judge(RateLimited("limit", until=until), tried(7), NOW, 8) == expected
    assert judge(RateLimited("limit"), tried(7), NOW, 8).next_at == NOW + 60_000
    past = datetime.fromtimestamp(NOW / 1000 - 5, UTC)
    assert judge(RateLimited("limit", until=past), tried(7), NOW, 8).next_at == NOW + 60_000


def test_a_server_that_stops_costs_no_try() -> None:
    assert judge(ServerStopping("stopped"), tried(7), NOW, 8) == Result(7, "waiting", "stopped", NOW, counts=False)


def test_a_repository_that_went_elsewhere_is_looked_at_again_at_once_which_costs_no_try() -> None:
    assert judge(RepositoryMoved("moved"), tried(7), NOW, 8) == Result(7, "waiting", "moved", NOW, counts=False)


def test_a_bug_is_tried_three_times() -> None:
    states = [judge(Bug("a line"), tried(attempts), NOW, 8).state for attempts in range(3)]
    assert states == ["waiting", "waiting", "dead"]
    assert judge(Bug("a line"), tried(), NOW, 1).state == "dead"


def test_every_reason_that_is_counted_by_name_is_one_that_the_code_gives() -> None:
    sources = [file for file in ROOT.rglob("*.py") if file.name != "bookkeeping.py"]
    code = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    assert [reason for reason in REASONS if f'"{reason}' not in code and reason != NEVER_ENDED] == []
