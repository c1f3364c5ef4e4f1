"""What a thread of the server calls ends in a line, whatever happens in it."""

from __future__ import annotations

import pytest

from bot.errors import WorldError
from bot.server.log import run_guarded
from bot.server.worker import LOST, WorkerExit


def fails(error: BaseException) -> None:
    raise error


def test_what_ends_well_has_nothing_to_say() -> None:
    assert run_guarded(lambda: "a result of no interest") == ""


def test_an_expected_error_is_its_own_line() -> None:
    assert run_guarded(lambda: fails(WorldError("the disk is full: make room"))) == "the disk is full: make room"


def test_a_bug_is_told_without_the_words_of_anybody() -> None:
    line = run_guarded(lambda: fails(ValueError("the words of a stranger")))
    assert line.startswith("this is a bug of Precedent, please report it: ValueError at ")
    assert "test_guarded.py:" in line
    assert "stranger" not in line


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), WorkerExit(LOST)])
def test_what_ends_the_process_is_not_held_up(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run_guarded(lambda: fails(error))
