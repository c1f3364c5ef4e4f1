"""The settings of a checkout that every question needs first: what is kept of them is what a parser would find."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.errors import UserError
from bot.local_cache.local_memory import PATH, EarlySettings, early_settings_at, settings_at, templates_of
from bot.local_cache.location import no_memory
from bot.settings.schema import Settings

TEXTS = [
    "branch: memory\n",
    "branch: memorx\n",
    '"br\\u0061nch": memory\nsources: {sessions: [logs]}\n',
    "# branch: other\n",
    "mode: summary\n",
    "---\n",
    "sources:\n  sessions:\n    - 'a/*.jsonl'\n    - b\n",
    'sources: {"s\\x65ssions": [é]}\n',
    "sources: {default_sessions: false}\n",
]


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The top of a checkout of somebody whose cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "top/.github").mkdir(parents=True)
    return tmp_path / "top"


def parsed(top: Path) -> EarlySettings:
    found = settings_at(top)
    return EarlySettings(found.branch, found.sources.sessions, found.sources.default_sessions)


def cached(top: Path) -> list[Path]:
    return [path for path in (top.parent / "cache").rglob("*") if path.is_file()]


def test_without_a_file_they_are_the_defaults(top: Path) -> None:
    assert early_settings_at(None) == early_settings_at(top) == parsed(top) == EarlySettings()
    assert EarlySettings() == EarlySettings(
        Settings().branch, Settings().sources.sessions, Settings().sources.default_sessions
    )


@given(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
def test_they_are_those_of_the_file_as_it_is_now(top: Path, texts: list[str]) -> None:
    for text in texts:
        (top / PATH).write_text(text, encoding="utf-8")
        os.utime(top / PATH, (0, 0))  # a clock tells nothing
        assert [early_settings_at(top), early_settings_at(top)] == [parsed(top)] * 2
    assert len(cached(top)) == 1


def test_wrong_settings_are_told_each_time(top: Path) -> None:
    (top / PATH).write_text("branch: memory\n")
    assert early_settings_at(top).branch == "memory"
    (top / PATH).write_text("branch: memory\nmoed: off\n")
    for _ in range(2):
        with pytest.raises(UserError, match="unknown setting"):
            early_settings_at(top)


@pytest.mark.parametrize(
    "damage", [b"", b"[", b"null\nbranch: memory\n", b'["x", "evil", []]\nbranch: memory\n', b"\xff\n"]
)
def test_what_was_damaged_or_is_of_another_version_is_parsed_again(top: Path, damage: bytes) -> None:
    (top / PATH).write_text("branch: memory\n")
    early_settings_at(top)
    (kept,) = cached(top)
    kept.write_bytes(damage)
    assert early_settings_at(top).branch == "memory"
    assert kept.read_bytes().endswith(b"]\nbranch: memory\n")


def test_a_cache_that_cannot_be_written_is_done_without(top: Path) -> None:
    (top.parent / "cache").write_text("no folder")
    (top / PATH).write_text("branch: memory\n")
    assert early_settings_at(top).branch == "memory"


@pytest.mark.parametrize("link", [".github", ".github/precedent.yml"])
def test_nothing_is_read_through_a_link_of_the_checkout(top: Path, link: str) -> None:
    outside = top.parent / "outside"
    (top / ".github").rename(outside)
    (outside / "precedent.yml").write_text("branch: memory\n")
    if link == ".github":
        (top / link).symlink_to(outside)
    else:
        (top / ".github").mkdir()
        (top / link).symlink_to(outside / "precedent.yml")
    assert early_settings_at(top) == parsed(top) == EarlySettings()


@pytest.mark.parametrize("link", [".github", ".github/precedent"])
def test_no_template_is_read_through_a_link_of_the_checkout(top: Path, link: str) -> None:
    outside, inside = top.parent / "outside", top / ".github/precedent"
    for folder, text in ((outside / "precedent", "Private words."), (inside, "Ours.")):
        folder.mkdir(parents=True)
        (folder / "context.md.j2").write_text(text)
    place = no_memory("")._replace(top=top, is_of_checkout=True)
    assert templates_of(place) == {"context.md.j2": "Ours."}
    shutil.rmtree(top / link)
    (top / link).symlink_to(outside if link == ".github" else outside / "precedent")
    assert templates_of(place) == {}
    place.local_cache.close()
