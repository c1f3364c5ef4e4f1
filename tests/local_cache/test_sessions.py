"""Transcripts of this machine in the output of every command: the times of messages, and the ends of long ones."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bot.local_cache.session_index import SessionIndex
from bot.local_cache.sessions import SessionScope, ask_sessions
from bot.reading.analyzer import terms
from tests.cli.program_result import Run
from tests.local_cache.outlines import all_outlines
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
        return [*(index.session(each.id) for each in all_outlines(index)), *index.search("the")]

    for count in range(1, len(pieces) + 1):
        path.write_bytes(b"".join(pieces[:count]))
        grown = ask_sessions(SessionScope(None, [path.name]), content)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another cache"))
    assert grown.found == ask_sessions(SessionScope(None, [path.name]), content).found


def is_found(word: str, path: Path) -> bool:
    return bool(ask_sessions(SessionScope(None, [path.name]), lambda index: index.search(word)).found)


@pytest.mark.parametrize("session", [each for each in SESSIONS if each.agent != "opencode"], ids=str)
def test_a_transcript_of_any_agent_that_was_edited_in_place_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: AgentSession
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    path, text = tmp_path / session.path.rpartition("/")[2], text_of(session)
    words = (word for message in session.messages for word in re.findall(r"[A-Za-z]{4,}", message[2:]))
    secret = next(word for word in words if text.count(word) == 1 and terms(text).count("".join(terms(word))) == 1)
    changed = "q" * len(secret)
    path.write_text(text, encoding="utf-8")
    assert [is_found(word, path) for word in (secret, changed)] == [True, False]
    before = path.stat()
    path.write_text(text.replace(secret, changed), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert [is_found(word, path) for word in (secret, changed)] == [False, True]


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
