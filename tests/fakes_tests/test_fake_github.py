"""Clients read from the fake and write to it, and it refuses them as GitHub does."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.fakes.github import FakeGitHub

REPO = "/repos/octocat/hello-world"
ISSUES = f"{REPO}/issues"


def fetch(http: httpx.Client, path: str) -> Any:
    answer = http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def fetch_all(http: httpx.Client, path: str) -> list[Any]:
    """The items of all pages of a list."""
    answer = http.get(path)
    items = answer.json()
    while "next" in answer.links:
        answer = http.get(answer.links["next"]["url"])
        items += answer.json()
    return list(items)


def test_lists_are_paged_with_links_by_repository_id(github: FakeGitHub, http: httpx.Client) -> None:
    number = github.open_issue("octocat", "Long talk")
    for i in range(7):
        github.comment(number, "hubot", f"word {i}")
    path = f"{ISSUES}/{number}/comments?per_page=3"
    base = f"{github.url}/repositories/{github.repo.id}/issues/{number}/comments"

    links = {name: link["url"] for name, link in http.get(path).links.items()}
    assert links == {"next": f"{base}?per_page=3&page=2", "last": f"{base}?per_page=3&page=3"}
    assert [comment["body"] for comment in fetch_all(http, path)] == [f"word {i}" for i in range(7)]


def test_pages_of_issues_past_the_hundredth_need_a_cursor(github: FakeGitHub, http: httpx.Client) -> None:
    for i in range(103):
        github.open_issue("octocat", f"Issue {i}")
    path = f"{ISSUES}?per_page=1&direction=asc"
    refused = http.get(f"{path}&page=101")

    assert (refused.status_code, "cursor based pagination" in refused.json()["message"]) == (422, True)
    assert [issue["number"] for issue in fetch_all(http, path)] == list(range(1, 104))


def test_a_cursor_holds_its_place_when_an_issue_changes_meanwhile(github: FakeGitHub, http: httpx.Client) -> None:
    for i in range(4):
        github.open_issue("octocat", f"Issue {i}", at=f"2026-01-02T0{i}:00:00Z")
    first = http.get(f"{ISSUES}?per_page=2&sort=updated&direction=asc")
    github.comment(1, "hubot", "now newest")

    assert [issue["number"] for issue in first.json()] == [1, 2]
    assert [issue["number"] for issue in fetch_all(http, first.links["next"]["url"])] == [3, 4, 1]


@pytest.mark.parametrize(
    ("query", "bodies"),
    [
        ("", ["one", "two", "three"]),
        ("?direction=desc", ["one", "two", "three"]),
        ("?sort=created", ["three", "two", "one"]),
        ("?sort=updated&direction=asc", ["two", "three", "one"]),
        ("?since=2026-01-02T03:00:00Z", ["one"]),
    ],
)
def test_comments_of_the_repository_are_listed_as_requested(
    github: FakeGitHub, http: httpx.Client, query: str, bodies: list[str]
) -> None:
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    first = github.comment(number, "hubot", "first", at="2026-01-02T00:00:00Z")
    github.comment(number, "hubot", "two", at="2026-01-02T01:00:00Z")
    github.comment(number, "hubot", "three", at="2026-01-02T02:00:00Z")
    github.edit_comment(first, "one", at="2026-01-03T00:00:00Z")

    assert [comment["body"] for comment in fetch(http, f"{ISSUES}/comments{query}")] == bodies
    assert [each["number"] for each in fetch(http, f"{ISSUES}?since=2026-01-02T03:00:00Z")] == [number]


def test_an_unchanged_reply_to_the_same_token_is_a_304_and_costs_nothing(
    github: FakeGitHub, http: httpx.Client
) -> None:
    github.open_issue("octocat", "Crash")
    github.add_token("gho_hubot", "hubot")
    first = http.get(f"{ISSUES}/1")
    known = {"If-None-Match": first.headers["etag"]}
    again = http.get(f"{ISSUES}/1", headers=known)
    other = http.get(f"{ISSUES}/1", headers=known | {"Authorization": "Bearer gho_hubot"})
    github.comment(1, "hubot", "news")
    changed = http.get(f"{ISSUES}/1", headers=known)

    assert first.headers["etag"].startswith('W/"')
    assert (again.status_code, again.content) == (304, b"")
    assert (other.status_code, changed.status_code) == (200, 200)
    assert again.headers["x-ratelimit-used"] == first.headers["x-ratelimit-used"]


def archive_repository(fake: FakeGitHub) -> None:
    fake.repo.archived = True


def restrict_token(fake: FakeGitHub) -> None:
    fake.add_token(fake.token, "github-actions[bot]", {"contents": "write", "issues": "read"})


def expire_token(fake: FakeGitHub) -> None:
    fake.add_token(fake.token, "github-actions[bot]", expires_at=fake.clock.now)


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (lambda fake: fake.lock(1, "spam"), 403, "Unable to create comment because issue is locked."),
        (archive_repository, 403, "Repository was archived so is read-only."),
        (lambda fake: fake.delete_issue(1), 410, "This issue was deleted"),
        (restrict_token, 403, "Resource not accessible by integration"),
        (lambda fake: fake.world.tokens.clear(), 401, "Bad credentials"),
        (expire_token, 401, "Bad credentials"),
    ],
)
def test_a_forbidden_comment_is_refused_in_githubs_words(
    github: FakeGitHub, http: httpx.Client, change: Callable[[FakeGitHub], None], status: int, message: str
) -> None:
    github.open_issue("octocat", "Crash")
    change(github)
    refused = http.post(f"{ISSUES}/1/comments", json={"body": "hello"})

    assert (refused.status_code, refused.json()["message"]) == (status, message)
    assert github.comments_by("github-actions[bot]") == []


def test_people_can_edit_only_their_own_comments(github: FakeGitHub, http: httpx.Client) -> None:
    github.add_token("gho_hubot", "hubot")
    github.open_issue("octocat", "Crash")
    comments = [github.comment(1, login, "first") for login in ("hubot", "octocat")]
    headers = {"Authorization": "Bearer gho_hubot"}
    answers = [http.patch(f"{ISSUES}/comments/{each}", json={"body": "new"}, headers=headers) for each in comments]

    assert [answer.status_code for answer in answers] == [200, 403]
    assert [github.comment_by_id(each).body for each in comments] == ["new", "first"]


def test_a_comment_by_a_writer_marks_a_duplicate(github: FakeGitHub) -> None:
    github.set_permission("monalisa", "write")
    for title in ("First", "Second"):
        github.open_issue("octocat", title)
    for login, is_marked in (("hubot", False), ("monalisa", True)):
        github.comment(2, login, "Duplicate of #1")
        assert ("marked_as_duplicate" in [event.kind for event in github.issue(2).events]) == is_marked


def test_a_link_makes_a_backlink_unless_it_is_in_code_or_goes_over_redirect(github: FakeGitHub) -> None:
    for _ in range(5):
        github.open_issue("octocat", "Issue")
    redirected, plain = (f"https://{host}/octocat/hello-world/issues" for host in ("redirect.github.com", "github.com"))
    github.comment(5, "hubot", f"#1 `#2` {redirected}/3 {plain}/4")

    assert [bool(github.issue(number).events) for number in (1, 2, 3, 4)] == [True, False, False, True]


def test_every_request_is_recorded_and_counted_since_the_mark(github: FakeGitHub, http: httpx.Client) -> None:
    github.open_issue("octocat", "Crash")
    http.get(f"{ISSUES}/1")
    github.mark()
    http.get(f"{ISSUES}/1")
    http.post(f"{ISSUES}/1/comments", json={"body": "hello"})

    assert (github.reads, github.writes, len(github.requests)) == (1, 1, 3)
    assert github.recent == [
        ("GET", "/repos/{owner}/{repo}/issues/{issue_number}", 200),
        ("POST", "/repos/{owner}/{repo}/issues/{issue_number}/comments", 201),
    ]


def test_draft_releases_are_shown_only_to_writers(github: FakeGitHub, http: httpx.Client) -> None:
    github.add_release("v1", draft=True)
    github.add_token("reader", "hubot", {"contents": "read"})
    (draft,) = fetch(http, f"{REPO}/releases")

    assert (draft["draft"], draft["published_at"]) == (True, None)
    assert http.get(f"{REPO}/releases", headers={"Authorization": "Bearer reader"}).json() == []
