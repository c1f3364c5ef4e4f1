"""Archives can be loaded into the fake and exported again, and clients read the same in between."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from github.Repository import Repository

from tests.fakes.archive import read_archive
from tests.fakes.github import FakeGitHub

pytestmark = pytest.mark.slow

THREAD: dict[str, Any] = {
    "id": 7,
    "title": "Crash on start",
    "body": "It crashes.",
    "state": "closed",
    "state_reason": "completed",
    "created_at": "2024-01-01T00:00:00Z",
    "closed_at": "2024-01-05T00:00:00Z",
    "closed_by": "monalisa",
    "author": "octocat",
    "author_association": "OWNER",
    "labels": ["bug", "crash"],
    "comments": [
        {"author": "ghost", "association": "NONE", "created_at": "2024-01-02T00:00:00Z", "body": "Me too"},
        {"author": "monalisa", "association": "MEMBER", "created_at": "2024-01-06T00:00:00Z", "body": "Thanks"},
    ],
    "events": [
        {"event": "labeled", "actor": "monalisa", "at": "2024-01-01T01:00:00Z"},
        {"event": "closed", "actor": "monalisa", "at": "2024-01-05T00:00:00Z"},
        {"event": "locked", "actor": "monalisa", "at": "2024-02-01T00:00:00Z"},
    ],
    "xrefs": [
        {"event": "cross-referenced", "from": 99, "type": "pull", "actor": None, "date": "2024-01-04T00:00:00Z"},
        {"event": "referenced", "commit": "4169feac", "actor": "monalisa", "date": "2026-01-01T00:00:00Z"},
    ],
}
PLAIN: dict[str, Any] = {
    "id": 3,
    "title": "Older",
    "body": None,
    "state": "open",
    "created_at": "2023-01-01T00:00:00Z",
    "author": None,
    "labels": [],
    "comments": [{"author": "hubot", "created_at": "2024-01-03T00:00:00Z", "body": "Still so", "is_bot": True}],
}


def test_an_archived_thread_reads_as_an_issue_with_its_timeline(github: FakeGitHub, repo: Repository) -> None:
    github.load_archive([THREAD])
    issue = repo.get_issue(7)
    timeline = [(event.event, event.raw_data.get("commit_id")) for event in issue.get_timeline()]

    assert (issue.state, issue.closed_by.login, issue.locked, issue.comments) == ("closed", "monalisa", True, 2)
    assert issue.raw_data["updated_at"] == "2024-02-01T00:00:00Z"
    assert timeline == [
        ("labeled", None),
        ("commented", None),
        ("cross-referenced", None),
        ("closed", None),
        ("commented", None),
        ("locked", None),
        ("referenced", "4169feac"),
    ]
    assert github.open_issue("octocat", "Next") == 8


def test_a_source_that_the_archive_lacks_is_not_an_issue_of_the_repository(
    github: FakeGitHub, http: httpx.Client
) -> None:
    github.load_archive([THREAD])
    timeline = http.get("/repos/octocat/hello-world/issues/7/timeline").json()
    source = next(event["source"]["issue"] for event in timeline if event["event"] == "cross-referenced")

    assert (source["number"], "pull_request" in source) == (99, True)
    assert http.get("/repos/octocat/hello-world/issues/99").status_code == 404


def test_comment_ids_rise_with_time_across_threads(github: FakeGitHub) -> None:
    github.load_archive([THREAD, PLAIN])
    by_id = sorted(github.repo.comments.values(), key=lambda comment: comment.id)

    assert [comment.body for comment in by_id] == ["Me too", "Still so", "Thanks"]


def test_the_export_holds_loaded_threads_and_later_changes(github: FakeGitHub) -> None:
    github.load_archive([PLAIN, THREAD])
    comment_id = github.comment(3, "github-actions[bot]", "Seen before.", at="2026-01-05T12:00:00Z")
    plain, thread = github.export_archive()

    assert {key: thread[key] for key in THREAD if key != "comments"} == {
        **{key: value for key, value in THREAD.items() if key != "comments"},
        "xrefs": [{**THREAD["xrefs"][0], "actor": "ghost"}, THREAD["xrefs"][1]],
    }
    assert (plain["author"], plain["updated_at"]) == ("ghost", "2026-01-05T12:00:00Z")
    assert [comment["is_bot"] for comment in plain["comments"]] == [True, True]
    assert plain["comments"][1]["id"] == comment_id


def test_an_export_loads_into_the_same_state_again(github: FakeGitHub) -> None:
    github.load_archive([PLAIN, THREAD])
    github.set_permission("monalisa", "write")
    github.open_issue("octocat", "New", at="2026-01-02T00:00:00Z")
    edited = github.comment(8, "hubot", "first", at="2026-01-02T01:00:00Z")
    github.edit_comment(edited, "second", at="2026-01-03T00:00:00Z")
    github.mark_duplicate(8, 7, "monalisa", at="2026-01-04T00:00:00Z")
    github.close(8, "monalisa", "duplicate", at="2026-01-04T00:00:00Z")
    github.add_pull("octocat", "A pull")
    exported = github.export_archive()
    with FakeGitHub() as second:
        second.load_archive(exported)

        assert second.export_archive() == exported


@pytest.mark.shared
@pytest.mark.parametrize("name", ["rust_endings", "bitcoin_gui", "ietf_qlog"])
def test_real_archives_keep_the_contract(github: FakeGitHub, http: httpx.Client, shared: Path, name: str) -> None:
    threads = list(read_archive(shared / "threads" / f"{name}.jsonl.gz"))
    numbers = github.load_archive(threads)
    for page in (1, 2):
        issues = http.get(f"/repos/octocat/hello-world/issues?state=all&per_page=100&page={page}").json()
        assert all(issue["number"] in numbers for issue in issues)
    for thread in threads[:40]:
        timeline = http.get(f"/repos/octocat/hello-world/issues/{thread['id']}/timeline?per_page=100").json()
        bodies = [entry["body"] for entry in timeline if entry["event"] == "commented"]
        assert bodies == [comment["body"] for comment in thread["comments"]][: len(bodies)]
