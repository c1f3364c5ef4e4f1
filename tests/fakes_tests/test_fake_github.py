"""Clients read from the fake and write to it, and it refuses them as GitHub does."""

from typing import Any

import httpx

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


def test_draft_releases_are_shown_only_to_writers(github: FakeGitHub, http: httpx.Client) -> None:
    github.add_release("v1", draft=True)
    github.add_token("reader", "hubot", {"contents": "read"})
    (draft,) = fetch(http, f"{REPO}/releases")

    assert (draft["draft"], draft["published_at"]) == (True, None)
    assert http.get(f"{REPO}/releases", headers={"Authorization": "Bearer reader"}).json() == []
