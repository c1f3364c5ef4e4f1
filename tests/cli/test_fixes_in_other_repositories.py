"""Every command shows a fix in another repository with the name of that repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.questions.views import outcome_phrase
from tests.cli.program_result import Run

OURS, THEIRS = "octo-org/linkbarn", "octocat/cookie-jar"
FIX = f"{THEIRS}#33906"


def issue(number: int, title: str, **rest: Any) -> dict[str, Any]:
    return {
        "id": number, "title": title, "author": "monalisa", "created_at": "2024-01-01T09:00:00Z",
        "body": f"The session cookie `SESSION_PATH_MISMATCH` loops in store/session.py. {title}.", **rest,
    }  # fmt: skip


def closed(number: int, title: str, answer: str) -> dict[str, Any]:
    comment = {"author": "hubot", "association": "MEMBER", "created_at": "2024-01-02T08:59:00Z", "body": answer}
    return issue(number, title, state="closed", closed_at="2024-01-02T09:00:00Z", closed_by="hubot", comments=[comment])


THREADS = [
    closed(1, "Login loops after the upgrade", f"Fixed by https://github.com/{THEIRS}/pull/33906."),
    closed(2, "Uploads stop", f"Fixed by https://github.com/{OURS}/pull/7."),
    issue(3, "Login loops after the upgrade again", comments=[
        {"author": "octocat", "association": "MEMBER", "created_at": "2024-02-02T08:59:00Z", "body": "See #1."}]),
]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store imported with --repo, which later commands leave out."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = tmp_path / "history.jsonl"
    archive.write_text("".join(json.dumps(thread) + "\n" for thread in THREADS), encoding="utf-8")
    assert call("import", "--store", tmp_path / "store", "--repo", OURS, archive).code == 0
    return tmp_path / "store"


def test_a_fix_in_another_repository_is_shown_with_the_name_of_that_repository(store: Path, call: Run) -> None:
    commands = [
        ["outcomes"],
        ["outcomes", "--json"],
        ["answer", "3"],
        ["answer", "3", "--json"],
        ["show", "1"],
        ["show", "1", "--json"],
        ["search", "login", "loops", "--json"],
        ["related", "store/session.py", "--json"],
    ]
    for command in commands:
        result = call(*command, "--store", store)
        assert (result.code, FIX in result.out) == (0, True), result
        assert f" {OURS}#7" not in result.out, command


def test_links_to_the_repository_itself_are_shown_without_its_name(store: Path, call: Run) -> None:
    assert "\t#7\t" in call("outcomes", "--store", store).out
    assert "\t#7\t" in call("outcomes", "--store", store, "--ids", "2").out
    assert f"\t{OURS}#7\t" in call("outcomes", "--store", store, "--repo", "octo-org/other").out


def test_a_later_import_without_the_repo_option_keeps_the_repository(store: Path, call: Run, tmp_path: Path) -> None:
    archive = tmp_path / "more.jsonl"
    archive.write_text(json.dumps(closed(4, "It hangs", f"Fixed by https://github.com/{THEIRS}/pull/8.")))
    assert call("import", "--store", store, archive).code == 0
    assert f"\t{THEIRS}#8\t" in call("outcomes", "--store", store, "--ids", "4").out
    assert f"{THEIRS}#8" in call("show", "4", "--store", store).out


def test_only_the_id_of_a_commit_is_shortened() -> None:
    cases = [
        ("#50", "#50"),
        ("bitcoin/bitcoin#33906", "bitcoin/bitcoin#33906"),
        ("0d0e0ed056a45781a1b2c3d4e5f60718293a4b5c", "0d0e0ed056"),
        ("0D0E0ED056A45781A1B2C3D4E5F60718293A4B5C", "0D0E0ED056"),
        ("octocat/cookie-jar@0d0e0ed056a45781a1b2c3d4e5f60718293a4b5c", "octocat/cookie-jar@0d0e0ed056"),
        ("a-very-long-reference", "a-very-long-reference"),
    ]
    assert [fix for fix, expected in cases if outcome_phrase("fixed", fix, "v2") != f"fixed by {expected} in v2"] == []
