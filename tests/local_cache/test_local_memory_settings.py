"""The settings of a checkout that every question needs first: the cached ones are those that a parser would find."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.errors import UserError
from bot.local_cache.local_memory import SETTINGS_PATH, EarlySettings, early_settings_at, settings_at, templates_of
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
    """The top of a checkout; the user's cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "top/.github").mkdir(parents=True)
    return tmp_path / "top"


def parse_settings(top: Path) -> EarlySettings:
    all_settings = settings_at(top)
    sources = all_settings.sources
    phrases = all_settings.commands.questions
    return EarlySettings(all_settings.branch, sources.sessions, sources.default_sessions, (), phrases)


def cache_files(top: Path) -> list[Path]:
    return [path for path in (top.parent / "cache").rglob("*") if path.is_file()]


def test_without_a_file_early_settings_are_the_defaults(top: Path) -> None:
    assert early_settings_at(None) == early_settings_at(top) == parse_settings(top) == EarlySettings()
    assert EarlySettings() == EarlySettings(
        Settings().branch, Settings().sources.sessions, Settings().sources.default_sessions
    )


@given(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
def test_early_settings_are_those_of_the_current_file(top: Path, texts: list[str]) -> None:
    for text in texts:
        (top / SETTINGS_PATH).write_text(text, encoding="utf-8")
        os.utime(top / SETTINGS_PATH, (0, 0))  # the time of the file must not matter
        assert [early_settings_at(top), early_settings_at(top)] == [parse_settings(top)] * 2
    assert len(cache_files(top)) == 1


def test_wrong_settings_are_reported_each_time(top: Path) -> None:
    (top / SETTINGS_PATH).write_text("branch: memory\n")
    assert early_settings_at(top).branch == "memory"
    (top / SETTINGS_PATH).write_text("branch: memory\nmoed: off\n")
    for _ in range(2):
        with pytest.raises(UserError, match="unknown setting"):
            early_settings_at(top)


@pytest.mark.parametrize(
    "damage", [b"", b"[", b"null\nbranch: memory\n", b'["x", "evil", []]\nbranch: memory\n', b"\xff\n"]
)
def test_settings_with_a_damaged_or_outdated_cache_are_parsed_again(top: Path, damage: bytes) -> None:
    (top / SETTINGS_PATH).write_text("branch: memory\n")
    early_settings_at(top)
    (cache_file,) = cache_files(top)
    cache_file.write_bytes(damage)
    assert early_settings_at(top).branch == "memory"
    assert cache_file.read_bytes().endswith(b"]\nbranch: memory\n")


def test_an_unwritable_cache_does_no_harm(top: Path) -> None:
    (top.parent / "cache").write_text("no folder")
    (top / SETTINGS_PATH).write_text("branch: memory\n")
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
    assert early_settings_at(top) == parse_settings(top) == EarlySettings()


@pytest.mark.parametrize("link", [".github", ".github/precedent"])
def test_no_template_is_read_through_a_link_of_the_checkout(top: Path, link: str) -> None:
    outside, inside = top.parent / "outside", top / ".github/precedent"
    for folder, text in ((outside / "precedent", "Private words."), (inside, "Ours.")):
        folder.mkdir(parents=True)
        (folder / "context.md.j2").write_text(text)
    memory = no_memory("")._replace(top=top, is_of_checkout=True)
    assert templates_of(memory) == {"context.md.j2": "Ours."}
    shutil.rmtree(top / link)
    (top / link).symlink_to(outside if link == ".github" else outside / "precedent")
    assert templates_of(memory) == {}
    memory.local_cache.close()
