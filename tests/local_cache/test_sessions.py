"""Transcripts of this machine in the output of every command: the times of messages, and the ends of long ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.local_cache.sessions import SessionIndex, SessionScope, ask_sessions
from tests.cli.program_result import Run
from tests.sources.agents import SESSIONS, AgentSession, text_of
from tests.sources.session_lines import prompt, write

LONG = "It begins. " + "word " * 60_000 + "It ended well."


def lines(*times: str) -> list[bytes]:
    return [prompt(f"zebra {n}", at=f"2026-10-25T{time}:00") for n, time in enumerate(times)]


def test_a_log_that_grows_during_the_repeated_hour_keeps_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    monkeypatch.chdir(tmp_path)
    clock_times = ["02:10", "02:55", "02:05", "02:50", "03:00"]
    for count in range(1, 6):
        write(tmp_path / "a.jsonl", *lines(*clock_times[:count]))
        answer = ask_sessions(SessionScope(None, ["a.jsonl"]), lambda index: index.search("zebra"))
        times_by_text = {each.text: each.at for each in answer.found}
    assert [f"{times_by_text[f'zebra {n}']:%H:%M}" for n in range(5)] == ["00:10", "00:55", "01:05", "01:50", "02:00"]


@pytest.mark.parametrize("session", [each for each in SESSIONS if each.fixture.endswith(".jsonl")], ids=str)
def test_an_index_of_a_transcript_that_grows_is_that_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: AgentSession
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / session.path.rpartition("/")[2]
    pieces = text_of(session).encode().splitlines(keepends=True)

    def content(index: SessionIndex) -> list[object]:
        return [*(index.session(each.id) for each in index.sessions()), *index.search("the")]

    for count in range(1, len(pieces) + 1):
        path.write_bytes(b"".join(pieces[:count]))
        grown = ask_sessions(SessionScope(None, [path.name]), content)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another cache"))
    assert grown.found == ask_sessions(SessionScope(None, [path.name]), content).found


@pytest.mark.parametrize(
    ("zone", "expected"), [("Europe/Berlin", "10:00"), ("America/New_York", "16:00"), ("UTC", "12:00")]
)
def test_every_command_uses_the_time_zone_of_the_machine(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, zone: str, expected: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "logs/a.jsonl", prompt("zebra", at="2026-07-01T12:00:00"))
    for name in ("Asia/Tokyo", zone):  # times stored for another zone are not used
        monkeypatch.setenv("TZ", name)
        (hit,) = call("search", "zebra", "--kind", "session", "--logs", "logs", "--json").data
    assert hit["timestamp"] == f"2026-07-01T{expected}:00Z"
    since = ("search", "zebra", "--kind", "session", "--logs", "logs", "--json", "--since")
    assert len(call(*since, f"2026-07-01T{expected}Z").data) == 1
    assert call(*since, f"2026-07-01T{expected}:01Z").data == []
    arguments = ("context", "--sessions", "logs", "--as-of", f"2026-07-01T{expected}:30Z", "--timezone", "UTC")
    assert f"[human {expected}] zebra" in call(*arguments).out


def test_the_context_shows_the_end_of_a_long_message(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for chars in ["1000", "120000"]:
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "logs/a.jsonl", prompt(LONG, at="2026-07-01T12:00:00Z"))
        arguments = (
            "context",
            "--sessions",
            "logs",
            "--as-of",
            "2026-07-01T12:10Z",
            "--chars",
            chars,
            "--timezone",
            "UTC",
        )
        out = call(*arguments).out
        assert len(out) <= int(chars), chars
        assert "[human 12:00] […] word word" in out, chars
        assert "word It ended well.\n" in out, chars
        assert "It begins." not in out.replace('title="It begins.', ""), chars
