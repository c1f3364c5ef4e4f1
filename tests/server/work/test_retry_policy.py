"""What each error means for the delivery that caused it."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from pathlib import Path

import pytest

import bot
from bot.errors import OUT_OF_MEMORY, PrecedentError, StoreError, UserError, WorldError, bug_report
from bot.files import disk_fault
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
    permission_remedy,
)
from bot.github.events import Event
from bot.memory.bounds import MemoryTooLarge
from bot.memory.manifest import ForeignFormat
from bot.server.dependencies import RunLog
from bot.server.log import Bug, catch_error
from bot.server.model import MINUTE, Delivery, RepositoryKey, Result, ServerStopping
from bot.server.storage.counters import REASONS
from bot.server.storage.deliveries import NEVER_ENDED
from bot.server.work.policy import Outcomes, RepositoryMoved, judge

ROOT = Path(bot.__file__).parent
NOW = 1_800_000_000_000


def delivery(attempts: int = 0) -> Delivery:
    return Delivery(
        "1:a", RepositoryKey(1, 2), Event("issues"), received_at=NOW, seq=7, state="working", attempts=attempts
    )


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
def test_an_error_that_nobody_can_fix_ends_the_delivery_silently(error: PrecedentError) -> None:
    assert judge(error, delivery(), NOW, 8) == Result(7, "done", str(error), said="silent")


@pytest.mark.parametrize(
    "error",
    [
        NotPermitted("give it 'issues: write'"),
        RemoteRefused("a rule forbids it"),
        ForeignFormat("a newer one wrote it"),
        MemoryTooLarge("too many large files"),
    ],
)
def test_an_error_that_the_owner_has_to_fix_makes_the_delivery_dead_at_once(error: PrecedentError) -> None:
    assert judge(error, delivery(), NOW, 8) == Result(7, "dead", str(error))


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        (permission_remedy("pull-requests: read"), "give the App 'Pull requests: read', and have the"),
        (permission_remedy("issues: write"), "give the App 'Issues: write', and have the"),
        (AuthFailed.usual_remedy, "check the token, and give the App 'Contents: write', and have the"),
    ],
)
def test_a_missing_permission_is_one_of_the_app_in_notes_and_reasons(cause: str, remedy: str) -> None:
    error, log = NotPermitted("no", cause), RunLog()
    outcomes = Outcomes([delivery()], lambda: NOW, 8)
    outcomes.fail([delivery()], error)
    log.report_fault(error)
    assert [each.reason for each in outcomes.results] == log.notes == [f"no: {remedy} installation accept it"]


def test_a_long_note_is_cut_between_words() -> None:
    log = RunLog()
    log.note("word " * 200)
    assert log.notes[0].endswith(" word…")


def test_a_delivery_is_dropped_where_the_app_is_not_installed() -> None:
    assert judge(NotInstalled("not there"), delivery(), NOW, 8) == Result(7, "dropped", "not there")


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("502"),
        RemoteUnreachable("no answer"),
        StoreError("others keep writing"),
        GitError("bad object"),
        ForgeError("what is that"),
        WorldError("the database is away"),
        Gone("it cannot be seen", certain=False),
    ],
)
def test_a_temporary_error_is_retried_with_growing_delays_until_the_last_attempt(error: PrecedentError) -> None:
    times = [judge(error, delivery(attempts), NOW, 8).next_at - NOW for attempts in range(7)]
    assert times == [15_000, 30_000, 60_000, 120_000, 240_000, 480_000, 960_000]
    assert all(judge(error, delivery(attempts), NOW, 8).counts for attempts in range(7))
    assert judge(error, delivery(7), NOW, 8) == Result(7, "dead", str(error))


def test_a_full_disk_costs_no_attempt() -> None:
    full = disk_fault("cannot write", OSError(errno.ENOSPC, "No space left on device"))
    assert judge(full, delivery(7), NOW, 8) == Result(7, "waiting", str(full), NOW + MINUTE, counts=False)


def test_jitter_spreads_deliveries_that_failed_together() -> None:
    assert judge(Unreachable("502"), delivery(), NOW, 8, 0.5).next_at == NOW + 7_500
    assert judge(Unreachable("502"), delivery(), NOW, 8, 1.5).next_at == NOW + 22_500


@pytest.mark.parametrize("error", [Unauthorised("401"), AuthFailed("403")])
def test_an_expired_token_is_retried_at_once_but_only_once(error: PrecedentError) -> None:
    assert judge(error, delivery(), NOW, 8) == Result(7, "waiting", str(error), NOW)
    assert judge(error, delivery(1), NOW, 8).next_at == NOW + 30_000
    assert judge(error, delivery(7), NOW, 8).state == "dead"


def test_a_rate_limit_waits_at_least_a_minute_and_costs_no_attempt() -> None:
    until = datetime.fromtimestamp(NOW / 1000 + 1800, UTC)
    expected = Result(7, "waiting", "limit", NOW + 1_800_000, counts=False)
    assert judge(RateLimited("limit", until=until), delivery(7), NOW, 8) == expected
    assert judge(RateLimited("limit"), delivery(7), NOW, 8).next_at == NOW + 60_000
    past = datetime.fromtimestamp(NOW / 1000 - 5, UTC)
    assert judge(RateLimited("limit", until=past), delivery(7), NOW, 8).next_at == NOW + 60_000


def test_a_stopping_server_costs_no_attempt() -> None:
    why = "the server stopped: the next one continues"
    assert judge(ServerStopping(), delivery(7), NOW, 8) == Result(7, "waiting", why, NOW, counts=False)


def test_a_moved_repository_is_retried_at_once_and_costs_no_attempt() -> None:
    assert judge(RepositoryMoved("moved"), delivery(7), NOW, 8) == Result(7, "waiting", "moved", NOW, counts=False)


def test_a_lack_of_memory_is_told_in_one_line_and_is_no_bug() -> None:
    def fill_memory() -> None:
        bytes(1 << 62)

    error = catch_error(fill_memory)
    assert error
    assert not isinstance(error, Bug)
    assert str(error) == bug_report(MemoryError()) == OUT_OF_MEMORY


def test_a_bug_is_tried_three_times() -> None:
    states = [judge(Bug("a line"), delivery(attempts), NOW, 8).state for attempts in range(3)]
    assert states == ["waiting", "waiting", "dead"]
    assert judge(Bug("a line"), delivery(), NOW, 1).state == "dead"


def test_every_reason_with_a_counter_occurs_in_the_code() -> None:
    sources = [file for file in ROOT.rglob("*.py") if file.name != "inbox_rows.py"]
    code = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    built = {NEVER_ENDED, "pull requests are not answered"}
    assert [reason for reason in REASONS if f'"{reason}' not in code and reason not in built] == []
