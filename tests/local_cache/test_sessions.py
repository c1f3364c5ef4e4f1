"""The transcripts of this machine, as they are told through every door: when something was said, and how it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.local_cache.sessions import open_session_index
from tests.cli.console import Run
from tests.sources.session_lines import prompt, write

LONG = "It begins. " + "word " * 60_000 + "It ended well."


def lines(*times: str) -> list[bytes]:
    return [prompt(f"zebra {n}", at=f"2026-10-25T{each}:00") for n, each in enumerate(times)]


def test_a_log_that_grows_in_the_hour_that_comes_twice_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    monkeypatch.chdir(tmp_path)
    shown = ["02:10", "02:55", "02:05", "02:50", "03:00"]
    for count in range(1, 6):
        write(tmp_path / "a.jsonl", *lines(*shown[:count]))
        with open_session_index(None, ["a.jsonl"]) as logs:
            assert logs is not None
            told = {each.text: each.at for each in logs.search("zebra")}
    assert [f"{told[f'zebra {n}']:%H:%M}" for n in range(5)] == ["00:10", "00:55", "01:05", "01:50", "02:00"]


@pytest.mark.parametrize(
    ("zone", "expected"), [("Europe/Berlin", "10:00"), ("America/New_York", "16:00"), ("UTC", "12:00")]
)
def test_every_door_takes_the_zone_of_the_machine(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, zone: str, expected: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "logs/a.jsonl", prompt("zebra", at="2026-07-01T12:00:00"))
    for name in ("Asia/Tokyo", zone):  # what was kept for another zone is not what is told now
        monkeypatch.setenv("TZ", name)
        (hit,) = call("search", "zebra", "--kind", "session", "--logs", "logs", "--json").data
    assert hit["timestamp"] == f"2026-07-01T{expected}:00Z"
    since = ("search", "zebra", "--kind", "session", "--logs", "logs", "--json", "--since")
    assert len(call(*since, f"2026-07-01T{expected}Z").data) == 1
    assert call(*since, f"2026-07-01T{expected}:01Z").data == []
    asked = ("context", "--sessions", "logs", "--as-of", f"2026-07-01T{expected}:30Z", "--timezone", "UTC")
    assert f"[human {expected}] zebra" in call(*asked).out


@pytest.mark.parametrize("chars", ["1000", "120000"])
def test_the_context_tells_the_end_of_a_long_message(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, chars: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "logs/a.jsonl", prompt(LONG, at="2026-07-01T12:00:00Z"))
    asked = ("context", "--sessions", "logs", "--as-of", "2026-07-01T12:10Z", "--chars", chars, "--timezone", "UTC")
    out = call(*asked).out
    assert len(out) <= int(chars)
    assert "[human 12:00] […] word word" in out
    assert "word It ended well.\n" in out
    assert "It begins." not in out.replace('title="It begins.', "")
