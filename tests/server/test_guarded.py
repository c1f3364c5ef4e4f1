"""`run_guarded` turns whatever happens in a server thread into one line."""

from __future__ import annotations

import pytest

from bot.errors import WorldError
from bot.server.log import run_guarded
from bot.server.worker import EXIT_WORK_ABANDONED, WorkerExit


def fail(error: BaseException) -> None:
    raise error


def test_a_call_that_succeeds_returns_no_message() -> None:
    assert run_guarded(lambda: "a result of no interest") == ""


def test_an_expected_error_becomes_its_own_message() -> None:
    assert run_guarded(lambda: fail(WorldError("the disk is full: make room"))) == "the disk is full: make room"


def test_a_bug_is_reported_without_text_that_somebody_wrote() -> None:
    line = run_guarded(lambda: fail(ValueError("the words of a stranger")))
    assert line.startswith("this is a bug of Precedent, please report it: ValueError at ")
    assert "test_guarded.py:" in line
    assert "stranger" not in line


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), WorkerExit(EXIT_WORK_ABANDONED)])
def test_exceptions_that_end_the_process_pass_through(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run_guarded(lambda: fail(error))
