"""Whether a fix was reverted, according to later references in its timeline."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bot.github.client import GitHubClient
from bot.github.fixes import MAX_COMMITS, was_reverted
from tests.fakes.github import FakeGitHub
from tests.github.conftest import REPOSITORY

MERGED = datetime(2026, 1, 3, tzinfo=UTC)
COMMITS = f"/repos/{REPOSITORY}/commits"


def cross_reference(title: Any, day: int = 4, *, is_merged: bool = True) -> dict[str, Any]:
    merged_at = f"2026-01-{day:02d}T10:00:00Z" if is_merged else None
    source = {"number": 60, "title": title, "pull_request": {"merged_at": merged_at}}
    return {"event": "cross-referenced", "source": {"issue": source}, "created_at": "2026-01-04T09:00:00Z"}


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        ([], False),
        (['Revert "Keep sessions"'], True),
        (["revert: keep sessions"], True),
        (['Revert "Revert "Keep sessions""'], False),
        (['Revert "Keep sessions"', 'Revert "Revert "Keep sessions""'], False),
        (['Revert "Keep sessions"', 'Reapply "Keep sessions"'], False),
        (['Revert "Keep sessions"', "Re-land: keep sessions", 'Revert "Keep sessions"'], True),
        (['Revert "Keep sessions"', "Add a test for #57"], True),
        (["Do not revert the fix", "Reverse the list", None, 7], False),
    ],
)
def test_the_last_revert_or_reapplication_counts(client: GitHubClient, titles: list[Any], expected: bool) -> None:
    timeline = [cross_reference(title, 4 + offset) for offset, title in enumerate(titles)]
    assert was_reverted(reversed(timeline), MERGED, client, COMMITS) is expected
    assert client.reads == 0


@pytest.mark.parametrize(
    "item",
    [
        cross_reference("Revert it", 2),
        cross_reference("Revert it", is_merged=False),
        {"event": "cross-referenced", "source": None},
        {"event": "cross-referenced", "source": {"issue": {"title": "Revert it"}}},
        {"event": "referenced", "commit_id": "abcdef1", "commit_url": None, "created_at": "2026-01-04T10:00:00Z"},
        {"event": "referenced", "commit_id": 5, "commit_url": 5, "created_at": 5},
        {},
    ],
)
def test_earlier_unmerged_and_unrelated_references_revert_nothing(client: GitHubClient, item: dict[str, Any]) -> None:
    assert not was_reverted([item], MERGED, client, COMMITS)
    assert client.reads == 0


def test_only_the_last_of_many_later_commits_are_read(client: GitHubClient, github: FakeGitHub) -> None:
    number = github.open_issue("hubot", "Sessions are lost", at="2026-01-01T10:00:00Z")
    for day in range(4, 12):
        at = f"2026-01-{day:02d}T10:00:00Z"
        github.reference(number, github.add_commit(f'Revert "{day}"', "octocat", at=at), "octocat", at=at)
    timeline = client.timeline(number)
    assert was_reverted(timeline, MERGED, client, COMMITS)
    assert not was_reverted(timeline, MERGED, client, "/repos/octo-org/elsewhere/commits")
    assert client.reads == 1 + MAX_COMMITS


@pytest.mark.parametrize("kind", ["404", "422"])
def test_a_commit_missing_on_github_is_skipped(client: GitHubClient, github: FakeGitHub, kind: str) -> None:
    number = github.open_issue("hubot", "Sessions are lost", at="2026-01-01T10:00:00Z")
    shas = []
    for day, title in ((4, 'Revert "Keep sessions"'), (5, 'Reapply "Keep sessions"')):
        at = f"2026-01-{day:02d}T10:00:00Z"
        shas.append(github.add_commit(title, "octocat", at=at))
        github.reference(number, shas[-1], "octocat", at=at)
    github.faults.add(f"GET *commits/{shas[-1]}", kind, times=None)
    assert was_reverted(client.timeline(number), MERGED, client, COMMITS)
