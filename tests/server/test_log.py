"""The log of the server: what a line contains, and what no line may contain."""

from __future__ import annotations

import io
import json
import logging
import threading
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import WorldError
from bot.server.log import (
    CHECK_FAILED,
    DATABASE_OUTAGE,
    HIDDEN,
    MAX_CHARS,
    OUTAGE_SECONDS,
    LogFormatter,
    OutageFilter,
    log_fields,
    run_guarded,
    write_logs,
)
from bot.server.options import Misconfigured
from bot.server.work.worker import EXIT_WORK_ABANDONED, WorkerExit

SECRET = "It's a Secret to Everybody"


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    log_record = logging.LogRecord("bot.server.work.reconcile", logging.INFO, __file__, 1, message, arguments, None)
    vars(log_record).update(extra)
    return log_record


def line(message: str, *arguments: object, **extra: object) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(LogFormatter("json", [SECRET]).format(record(message, *arguments, **extra)))
    return parsed


@pytest.fixture
def log(own_log: None) -> io.StringIO:
    """What this process logs during a test."""
    stream = io.StringIO()
    write_logs("json", [SECRET], stream)
    return stream


def test_a_line_is_an_object_with_time_level_and_message() -> None:
    parsed = line("took %d of %s", 3, "17-4")
    assert (parsed["level"], parsed["message"], parsed["logger"]) == (
        "info",
        "took 3 of 17-4",
        "bot.server.work.reconcile",
    )
    assert parsed["time"].endswith("+00:00")


def test_extra_values_become_fields() -> None:
    parsed = line("run ended", repository="17-4", seconds=1.5, private=True)
    assert (parsed["repository"], parsed["seconds"], parsed["private"]) == ("17-4", 1.5, True)


def test_lines_about_a_request_name_it() -> None:
    with log_fields(request="r-1"):
        assert line("stored")["request"] == "r-1"
        assert line("stored", request="r-2")["request"] == "r-2"
    assert "request" not in line("stored")


def test_lines_within_a_block_share_its_fields_even_those_of_libraries(log: io.StringIO) -> None:
    with log_fields(request="r-1", delivery="guid-1", run=""), log_fields(run="t-1", delivery="guid-2"):
        logging.getLogger("urllib3").warning("a retry")
        threading.Thread(target=lambda: logging.getLogger("bot.server.work.worker").info("another's")).start()
    logging.getLogger("bot.server.work.worker").info("afterwards")
    parsed = [json.loads(each) for each in log.getvalue().splitlines()]
    shared = {"request": "r-1", "delivery": "guid-2", "run": "t-1"}
    lines = {line["message"]: {name: line[name] for name in shared if name in line} for line in parsed}
    assert lines == {"a retry": shared, "another's": {}, "afterwards": {}}


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        "ghs_" + "a1B2" * 12,
        "github_pat_" + "A" * 40,
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOjF9.c2lnbmF0dXJl",
        "Authorization: Basic eC1hY2Nlc3M6dG9rZW4=",
        "authorization: bearer 0123456789abcdef",
        "https://x-access-token:hunter2@github.com/o/r.git",
        "postgresql+psycopg://bot:pass@db/precedent",
    ],
)
@pytest.mark.parametrize("position", ["message", "argument", "field"])
def test_neither_a_secret_nor_anything_like_one_is_in_a_line(text: str, position: str) -> None:
    logged = {
        "message": lambda: line(f"it said {text}."),
        "argument": lambda: line("it said %s.", text),
        "field": lambda: line("it said", what=text),
    }[position]()
    shown = json.dumps(logged)
    assert HIDDEN in shown
    for part in (SECRET, "ghs_", "github_pat_A", "eyJ", "eC1h", "0123456789", "hunter2", "bot:pass"):
        assert part not in shown


def test_an_exception_is_logged_with_its_type_and_location_but_not_its_message() -> None:
    logged = record("storing failed")
    try:
        raise ValueError("the words of a stranger")
    except ValueError as error:
        logged.exc_info = (ValueError, error, error.__traceback__)
    parsed = json.loads(LogFormatter().format(logged))
    assert parsed["error"].startswith("ValueError at test_log.py:")
    assert "stranger" not in json.dumps(parsed)


@settings(deadline=None)
@given(st.text(max_size=200), st.sampled_from(["json", "text"]))
def test_a_line_is_one_line_whatever_is_in_it(text: str, form: Any) -> None:
    shown = LogFormatter(form).format(record("it said %s", text, title=text))
    assert len(shown.splitlines()) == 1
    shown.encode()


def test_long_text_is_truncated() -> None:
    assert len(line("x" * (MAX_CHARS + 50))["message"]) == MAX_CHARS + 1


def test_the_text_format_has_the_same_content_in_a_readable_line() -> None:
    shown = LogFormatter("text").format(record("run ended", repository="17-4"))
    assert shown.partition(" ")[2] == "info: run ended repository=17-4"


def test_libraries_log_from_warning_and_we_log_from_info(log: io.StringIO) -> None:
    logging.getLogger("sqlalchemy").info("a detail")
    logging.getLogger("sqlalchemy").warning("signed with %s", SECRET)
    logging.getLogger("bot.server.processes").info("ready")
    parsed = [json.loads(each) for each in log.getvalue().splitlines()]
    assert [each["message"] for each in parsed] == [f"signed with {HIDDEN}", "ready"]


def fail(error: BaseException) -> None:
    raise error


def test_whatever_happens_in_a_guarded_call_is_one_line() -> None:
    assert run_guarded(lambda: "a result of no interest") == ""
    assert run_guarded(lambda: fail(WorldError("the disk is full: make room"))) == "the disk is full: make room"
    faults = ["data: it is read-only", "port: it is taken"]
    assert run_guarded(lambda: fail(Misconfigured(faults))) == "; ".join(faults)


def test_a_bug_is_reported_without_text_that_somebody_wrote() -> None:
    reported = run_guarded(lambda: fail(ValueError("the words of a stranger")))
    assert reported.startswith("this is a bug of Precedent, please report it: ValueError at ")
    assert "test_log.py:" in reported
    assert "stranger" not in reported


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), WorkerExit(EXIT_WORK_ABANDONED)])
def test_exceptions_that_end_the_process_pass_through(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run_guarded(lambda: fail(error))


def test_an_outage_of_the_database_is_reported_once_a_minute() -> None:
    now = [0.0]
    outages = OutageFilter(lambda: now[0])
    make = partial(logging.LogRecord, "bot", logging.WARNING, "", 1, msg="not stored: %s", exc_info=None)
    outage = make(args=(f"{DATABASE_OUTAGE} (refused)",))
    assert [bool(outages.filter(outage)) for _ in range(1000)] == [True] + [False] * 999
    assert outages.filter(make(args=("the disk is full",)))
    assert outages.filter(make(msg=f"{CHECK_FAILED}: queue: {DATABASE_OUTAGE}", args=())), "it is written once"
    now[0] += OUTAGE_SECONDS
    assert outages.filter(outage)
    assert vars(outage)["left_out"] == 999
