"""Log times without a zone are those of a wall clock, which changes twice a year."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.thread_json import MAX_TEXT
from bot.sources.sessions.content import MAX_PARTS, content_of
from bot.sources.sessions.reader import read_sessions
from bot.sources.sessions.session import thread_of
from bot.sources.sessions.times import TranscriptClock
from tests.sources.session_lines import response, session_file, write

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}Z").astimezone(UTC)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-07-01T12:00:00", BERLIN, "07-01T10:00"),
        ("2026-01-01 12:00:00.000", BERLIN, "01-01T11:00"),
        ("2026-07-01T12:00:00", NEW_YORK, "07-01T16:00"),
        ("2026-07-01", BERLIN, "06-30T22:00"),
        ("2026-07-01T12:00:00Z", BERLIN, "07-01T12:00"),
        ("2026-07-01T12:00:00+05:30", BERLIN, "07-01T06:30"),
        ("1782907200", BERLIN, "07-01T12:00"),
        ("2026-03-29T02:30:00", BERLIN, "03-29T01:30"),  # a time that did not exist that night
        ("2026-10-25T02:30:00", BERLIN, "10-25T00:30"),  # there are two, and nothing shows which one it is
    ],
)
def test_a_time_without_a_zone_is_in_the_zone_of_the_machine(text: str, zone: ZoneInfo, expected: str) -> None:
    assert TranscriptClock(zone).read(text) == utc(expected)


def test_the_repeated_hour_is_resolved_by_the_order_of_the_lines() -> None:
    clock = TranscriptClock(BERLIN)
    clock_times = ["01:59", "02:10", "02:09:50", "02:55", "02:05", "02:50", "02:49:30", "03:00"]
    times = [clock.read(f"2026-10-25T{time}") for time in clock_times]
    assert [f"{time:%H:%M:%S}" for time in times if time] == [
        *("23:59:00", "00:10:00", "00:09:50", "00:55:00"),
        *("01:05:00", "01:50:00", "01:49:30", "02:00:00"),
    ]


@given(st.lists(st.integers(1, 55), max_size=30), st.sampled_from([BERLIN, NEW_YORK, ZoneInfo("Australia/Lord_Howe")]))
def test_the_times_of_a_wall_clock_are_read_in_order(steps: list[int], zone: ZoneInfo) -> None:
    """With less than an hour between lines, none is read as earlier than the one before."""
    clock, moment = TranscriptClock(zone), datetime(2026, 10, 24, 12, tzinfo=UTC)
    before = None
    for step in steps:
        moment += timedelta(minutes=step)
        read = clock.read(moment.astimezone(zone).replace(tzinfo=None).isoformat())
        assert read is not None
        assert before is None or read >= before - timedelta(minutes=1)
        before = read


# -- long messages -------------------------------------------------------------------------------------------------

LONG = "It begins. " + "word " * 60_000 + "It ended well."


def test_a_long_message_keeps_its_end_and_is_marked_where_it_was_cut(tmp_path: Path) -> None:
    files = [{"type": "tool_use", "input": {"path": f"{n}.py"}} for n in range(50)]
    for content in (LONG, [{"type": "text", "text": LONG}], [{"type": "text", "text": LONG}, *files]):
        (session,) = read_sessions(session_file(write(tmp_path / "a.jsonl", response("before"), {
            "type": "user", "message": {"role": "user", "content": content}, "sessionId": "h-1"})))  # fmt: skip
        text = session.utterances[-1].text
        assert text.startswith("[…] word word")
        assert text.endswith("word It ended well.")
        assert MAX_TEXT - 50 <= len(text) <= MAX_TEXT
        shown_text = thread_of(session).comments[-1].text if len(session.utterances) > 1 else thread_of(session).body
        assert shown_text.startswith("[…] word")
        assert "It ended well." in shown_text
        assert len(shown_text) <= MAX_TEXT


def test_the_last_of_too_many_parts_are_kept() -> None:
    parts = [{"type": "text", "text": f"part {n}"} for n in range(MAX_PARTS + 5)]
    text = content_of(parts).text
    assert text.startswith("[…] part 5\n\npart 6\n")
    assert text.endswith(f"part {MAX_PARTS + 4}")
    assert content_of(parts[5:]).text == text.removeprefix("[…] ")
