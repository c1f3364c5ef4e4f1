"""The usual folders of coding agents are found, and the sessions in them that belong to a checkout."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from bot.sources.sessions.formats import default_folders, origin_in
from bot.sources.sessions.worktrees import Worktrees
from tests.agent_folders import AGENT_FOLDERS
from tests.sources.session_lines import ROLLOUT, line


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in AGENT_FOLDERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def shown_folders(top: Path) -> list[str]:
    return [each.shown for each in default_folders(top)]


def test_without_agents_no_folder_is_found(home: Path, tmp_path: Path) -> None:
    assert default_folders(tmp_path / "my.app") == ()


def test_the_folders_of_a_checkout_are_found(home: Path, tmp_path: Path) -> None:
    top = tmp_path / "my.app"
    claude = "".join(each if each.isalnum() else "-" for each in str(top))
    for name in (claude, f"{claude}-deep", f"{claude}s", "-elsewhere"):
        (home / ".claude/projects" / name).mkdir(parents=True)
    (home / ".codex/sessions").mkdir(parents=True)
    (home / ".gemini/tmp" / sha256(str(top).encode()).hexdigest()).mkdir(parents=True)
    for name, root in (("my-app", top), ("other", tmp_path)):
        (home / ".gemini/tmp" / name).mkdir()
        (home / ".gemini/tmp" / name / ".project_root").write_text(f"{root}\n")
    (top / ".claude/logging").mkdir(parents=True)
    assert shown_folders(top) == [
        ".claude/logging",
        f"~/.claude/projects/{claude}",
        f"~/.claude/projects/{claude}-deep",
        "~/.codex/sessions",
        f"~/.gemini/tmp/{sha256(str(top).encode()).hexdigest()}",
        "~/.gemini/tmp/my-app",
    ]


def test_environment_variables_of_the_agents_move_their_folders(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "moved/sessions").mkdir(parents=True)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "moved"))
    assert shown_folders(tmp_path / "app") == [f"{tmp_path}/moved/sessions"]
    monkeypatch.setenv("CODEX_HOME", "relative")
    assert shown_folders(tmp_path / "app") == []


def test_a_session_belongs_to_the_innermost_checkout_around_its_folder(tmp_path: Path) -> None:
    top = tmp_path / "app"
    for name in ("src", "vendor/lib/.git", "vendor/lib/src"):
        (top / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(top)
    (top / "away").symlink_to(tmp_path)
    own = (top, top / "src", top / "gone", f"{top}/", f"{top}/src/../src", tmp_path / "link", tmp_path / "link/src")
    assert [Worktrees(str(top)).holds(str(each)) for each in own] == [True] * len(own)
    others = (
        tmp_path,
        f"{top}s",
        top / "vendor/lib",
        top / "vendor/lib/src",
        top / "away",
        f"{top}/..",
        "/",
        "",
        "a\0b",
    )
    assert [Worktrees(str(top)).holds(str(each)) for each in others] == [False] * len(others)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (line({"type": "summary"}) + b"\n" + line({"type": "user", "cwd": "/a"}) + b"\n" + line({"cwd": "/b"}), "/a"),
        (line(ROLLOUT[0]), "/work/app"),
        (b'{"cwd": 5}\n{"cwd": ""}\n"cwd"\n[{"cwd": "/a"}]\n{"payload": {"cwd": ["/a"]}}', ""),
        (b'{"cwd": "/a", ' + b"[" * 100_000, ""),
        (b'{"cwd": "' + b"x" * 5_000 + b'"}', ""),
        (b'{"cwd": "\xff"}', ""),
        (b"", ""),
    ],
)
def test_the_first_folder_of_a_transcript_counts(head: bytes, expected: str) -> None:
    assert origin_in(head).folder == expected
