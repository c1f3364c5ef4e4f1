"""Both clients read from the fake and write to it, and it refuses them as GitHub does."""

from collections.abc import Callable

import httpx
import pytest
from github import GithubException, UnknownObjectException
from github.Repository import Repository
from githubkit import GitHub, TokenAuthStrategy

from tests.fakes.clients import connect_pygithub
from tests.fakes.github import FakeGitHub

Kit = GitHub[TokenAuthStrategy]


def add_fixed_issue(fake: FakeGitHub) -> int:
    """Add a labelled issue with two comments, fixed by a pull request."""
    fake.set_permission("monalisa", "write")
    number = fake.open_issue("octocat", "Crash on start", "It *crashes*.", at="2026-01-02T08:00:00Z", labels=["bug"])
    fake.comment(number, "hubot", "Here too.", at="2026-01-02T09:00:00Z")
    fake.comment(number, "monalisa", "On it.", at="2026-01-02T10:00:00Z")
    pull = fake.add_pull(
        "monalisa", "Fix the crash", files=["src/start.py"], at="2026-01-03T08:00:00Z", closes=[number]
    )
    fake.merge_pull(pull, "monalisa", at="2026-01-03T09:00:00Z")
    return number


def test_pygithub_reads_an_issue_its_comments_and_its_timeline(github: FakeGitHub, repo: Repository) -> None:
    issue = repo.get_issue(add_fixed_issue(github))

    assert (issue.title, issue.state, issue.state_reason) == ("Crash on start", "closed", "completed")
    assert [label.name for label in issue.labels] == ["bug"]
    assert [(c.user.login, c.body, c.raw_data["author_association"]) for c in issue.get_comments()] == [
        ("hubot", "Here too.", "NONE"),
        ("monalisa", "On it.", "COLLABORATOR"),
    ]
    assert [event.event for event in issue.get_timeline()] == [
        "labeled",
        "commented",
        "commented",
        "cross-referenced",
        "closed",
    ]


@pytest.mark.slow
def test_githubkit_reads_the_same_with_its_strict_models(github: FakeGitHub, kit: Kit) -> None:
    number = add_fixed_issue(github)
    issues = kit.rest.issues.list_for_repo("octocat", "hello-world", state="all", sort="updated").parsed_data
    comments = kit.rest.issues.list_comments("octocat", "hello-world", number).parsed_data
    timeline = kit.rest.issues.list_events_for_timeline("octocat", "hello-world", number).parsed_data

    assert [(issue.number, bool(issue.pull_request)) for issue in issues] == [(2, True), (1, False)]
    assert [comment.body for comment in comments] == ["Here too.", "On it."]
    assert len(timeline) == 5


def test_a_pull_shares_the_numbers_of_issues_and_has_its_own_view(github: FakeGitHub, repo: Repository) -> None:
    add_fixed_issue(github)
    pull = repo.get_pull(2)

    assert pull.merged
    assert [file.filename for file in pull.get_files()] == ["src/start.py"]
    assert [issue.number for issue in repo.get_issues(state="closed")] == [2, 1]
    with pytest.raises(UnknownObjectException):
        repo.get_pull(1)


def test_the_author_of_a_deleted_account_is_null_everywhere(github: FakeGitHub, repo: Repository) -> None:
    number = github.open_issue(None, "Left behind", None)
    github.comment(number, None, "Me too")
    github.close(number, None, "not_planned")
    issue = repo.get_issue(number)

    assert issue.raw_data["user"] is None
    assert issue.raw_data["body"] is None
    assert [comment.raw_data["user"] for comment in issue.get_comments()] == [None]
    assert [event.raw_data["actor"] for event in issue.get_timeline()] == [None, None]


def test_a_comment_of_the_workflow_token_is_written_edited_and_deleted(github: FakeGitHub, repo: Repository) -> None:
    number = github.open_issue("octocat", "Crash", at="2026-01-02T08:00:00Z")
    github.clock.now = "2026-01-05T12:30:00Z"
    comment = repo.get_issue(number).create_comment("Seen before.")

    assert (comment.user.login, comment.user.id, comment.user.type) == ("github-actions[bot]", 41898282, "Bot")
    assert comment.raw_data["performed_via_github_app"]["slug"] == "github-actions"
    assert github.issue(number).updated_at == "2026-01-05T12:30:00Z"

    github.clock.advance(60)
    comment.edit("Seen twice before.")
    assert github.comment_by_id(comment.id).updated_at == "2026-01-05T12:31:00Z"

    comment.delete()
    assert github.comments_by("github-actions[bot]") == []
    assert github.issue(number).events[-1].kind == "comment_deleted"


def test_lists_are_paged_with_links_by_repository_id(github: FakeGitHub, http: httpx.Client, repo: Repository) -> None:
    number = github.open_issue("octocat", "Long talk")
    for i in range(7):
        github.comment(number, "hubot", f"word {i}")
    answer = http.get(f"/repos/octocat/hello-world/issues/{number}/comments?per_page=3")

    base = f"{github.url}/repositories/{repo.id}/issues/{number}/comments"
    assert answer.links["next"]["url"] == f"{base}?per_page=3&page=2"
    assert answer.links["last"]["url"] == f"{base}?per_page=3&page=3"
    seen = [comment["body"] for comment in answer.json()]
    while "next" in answer.links:
        answer = http.get(answer.links["next"]["url"])
        seen += [comment["body"] for comment in answer.json()]
    assert seen == [f"word {i}" for i in range(7)]


def test_pages_of_issues_past_the_hundredth_need_a_cursor(github: FakeGitHub, http: httpx.Client) -> None:
    for i in range(103):
        github.open_issue("octocat", f"Issue {i}")
    base = "/repos/octocat/hello-world/issues?per_page=1&direction=asc"

    refused = http.get(f"{base}&page=101")
    assert refused.status_code == 422
    assert "cursor based pagination" in refused.json()["message"]

    answer, seen = http.get(base), []
    while True:
        seen += [issue["number"] for issue in answer.json()]
        if "next" not in answer.links:
            break
        answer = http.get(answer.links["next"]["url"])
    assert seen == list(range(1, 104))


def test_a_cursor_holds_its_place_when_an_issue_changes_meanwhile(github: FakeGitHub, http: httpx.Client) -> None:
    for i in range(4):
        github.open_issue("octocat", f"Issue {i}", at=f"2026-01-02T0{i}:00:00Z")
    first = http.get("/repos/octocat/hello-world/issues?per_page=2&sort=updated&direction=asc")
    github.comment(1, "hubot", "now newest")
    second = http.get(first.links["next"]["url"])
    third = http.get(second.links["next"]["url"])

    assert [[i["number"] for i in page.json()] for page in (first, second, third)] == [[1, 2], [3, 4], [1]]


def test_since_covers_edited_comments(github: FakeGitHub, http: httpx.Client, repo: Repository) -> None:
    github.open_issue("octocat", "Old", at="2026-01-02T00:00:00Z")
    number = github.open_issue("octocat", "Also old", at="2026-01-02T00:00:00Z")
    comment_id = github.comment(number, "hubot", "first", at="2026-01-02T01:00:00Z")
    github.edit_comment(comment_id, "second", at="2026-01-04T00:00:00Z")
    listed = http.get("/repos/octocat/hello-world/issues?state=all&since=2026-01-03T00:00:00Z").json()
    comments = http.get("/repos/octocat/hello-world/issues/comments?since=2026-01-03T00:00:00Z").json()

    assert [issue["number"] for issue in listed] == [number]
    assert [comment["body"] for comment in comments] == ["second"]


@pytest.mark.parametrize(
    ("query", "bodies"),
    [
        ("", ["one", "two", "three"]),
        ("?direction=desc", ["one", "two", "three"]),
        ("?sort=created", ["three", "two", "one"]),
        ("?sort=updated&direction=asc", ["two", "three", "one"]),
    ],
)
def test_comments_of_the_repository_are_sorted_as_requested(
    github: FakeGitHub, http: httpx.Client, query: str, bodies: list[str]
) -> None:
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    first = github.comment(number, "hubot", "first", at="2026-01-02T00:00:00Z")
    github.comment(number, "hubot", "two", at="2026-01-02T01:00:00Z")
    github.comment(number, "hubot", "three", at="2026-01-02T02:00:00Z")
    github.edit_comment(first, "one", at="2026-01-03T00:00:00Z")
    comments = http.get(f"/repos/octocat/hello-world/issues/comments{query}").json()

    assert [comment["body"] for comment in comments] == bodies


def test_an_unchanged_reply_is_a_304_and_costs_nothing(github: FakeGitHub, http: httpx.Client) -> None:
    github.open_issue("octocat", "Crash")
    url = "/repos/octocat/hello-world/issues/1"
    first = http.get(url)
    again = http.get(url, headers={"If-None-Match": first.headers["etag"]})
    github.comment(1, "hubot", "news")
    changed = http.get(url, headers={"If-None-Match": first.headers["etag"]})

    assert first.headers["etag"].startswith('W/"')
    assert (again.status_code, again.content, changed.status_code) == (304, b"", 200)
    assert again.headers["x-ratelimit-used"] == first.headers["x-ratelimit-used"]


def test_the_etag_of_one_token_means_nothing_to_another(github: FakeGitHub, http: httpx.Client) -> None:
    github.open_issue("octocat", "Crash")
    github.add_token("gho_hubot", "hubot")
    url = "/repos/octocat/hello-world/issues/1"
    tag = http.get(url).headers["etag"]
    other = http.get(url, headers={"If-None-Match": tag, "Authorization": "Bearer gho_hubot"})
    assert other.status_code == 200
    assert other.headers["etag"] != tag


def lock_issue(fake: FakeGitHub) -> None:
    fake.lock(1, "spam")


def archive_repository(fake: FakeGitHub) -> None:
    fake.archive_repo()


def delete_the_issue(fake: FakeGitHub) -> None:
    fake.delete_issue(1)


def restrict_token(fake: FakeGitHub) -> None:
    fake.add_token(fake.token, "github-actions[bot]", {"contents": "write", "issues": "read"})


def forget_tokens(fake: FakeGitHub) -> None:
    fake.world.tokens.clear()


def expire_token(fake: FakeGitHub) -> None:
    fake.add_token(fake.token, "github-actions[bot]", expires_at=fake.clock.now)


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (lock_issue, 403, "Unable to create comment because issue is locked."),
        (archive_repository, 403, "Repository was archived so is read-only."),
        (delete_the_issue, 410, "This issue was deleted"),
        (restrict_token, 403, "Resource not accessible by integration"),
        (forget_tokens, 401, "Bad credentials"),
        (expire_token, 401, "Bad credentials"),
    ],
)
def test_a_forbidden_comment_is_refused_in_githubs_words(
    github: FakeGitHub, repo: Repository, change: Callable[[FakeGitHub], None], status: int, message: str
) -> None:
    github.open_issue("octocat", "Crash")
    issue = repo.get_issue(1)
    change(github)
    with pytest.raises(GithubException) as refused:
        issue.create_comment("hello")

    assert (refused.value.status, refused.value.data["message"]) == (status, message)
    assert github.comments_by("github-actions[bot]") == []


def test_a_transferred_issue_redirects_to_where_it_is(github: FakeGitHub, http: httpx.Client, repo: Repository) -> None:
    other = github.add_project("octocat/other")
    number = github.open_issue("octocat", "Wrong place")
    github.comment(number, "hubot", "Indeed")
    there = github.transfer(number, other, "octocat")
    moved = http.get(f"/repos/octocat/hello-world/issues/{number}")

    assert moved.status_code == 301
    assert moved.headers["location"] == f"{github.url}/repositories/{other.repo.id}/issues/{there}"
    assert repo.get_issue(number).title == "Wrong place"


def test_a_renamed_repository_redirects(github: FakeGitHub, http: httpx.Client) -> None:
    github.open_issue("octocat", "Crash")
    github.rename_repo("octocat/renamed")
    old = "/repos/octocat/hello-world/issues/1"

    assert http.get(old).status_code == 301
    assert http.get(old, follow_redirects=True).json()["repository_url"].endswith("/octocat/renamed")


def test_contents_come_as_json_as_raw_bytes_and_as_a_folder(
    github: FakeGitHub, http: httpx.Client, repo: Repository
) -> None:
    github.set_file(".github/precedent.yml", "quiet: true\n")
    raw = http.get(
        "/repos/octocat/hello-world/contents/.github/precedent.yml",
        headers={"Accept": "application/vnd.github.raw+json"},
    )

    assert repo.get_contents(".github/precedent.yml").decoded_content == b"quiet: true\n"
    assert raw.content == b"quiet: true\n"
    assert [entry.path for entry in repo.get_contents(".github")] == [".github/precedent.yml"]
    with pytest.raises(UnknownObjectException):
        repo.get_contents("absent")


def test_releases_tags_commits_labels_and_permissions_are_read(github: FakeGitHub, repo: Repository) -> None:
    github.set_permission("monalisa", "maintain")
    github.add_release("v1.1.0", at="2026-01-02T00:00:00Z", body="Fixes")
    sha = github.add_commit("Fix it", "monalisa", files=["a.py"])
    github.open_issue("octocat", "Crash", labels=["bug"])

    assert [release.tag_name for release in repo.get_releases()] == ["v1.1.0"]
    assert [tag.name for tag in repo.get_tags()] == ["v1.1.0"]
    assert repo.get_commit(sha[:8]).commit.message == "Fix it"
    assert [label.name for label in repo.get_labels()] == ["bug"]
    assert repo.get_collaborator_permission("monalisa") == "write"
    assert repo.get_collaborator_permission("octocat") == "admin"


def test_reactions_are_counted_and_a_repeated_one_returns_the_first(github: FakeGitHub, repo: Repository) -> None:
    number = github.open_issue("octocat", "Crash")
    comment_id = github.comment(number, "monalisa", "Fixed.")
    comment = repo.get_issue(number).get_comment(comment_id)
    github.react(number, "hubot", "+1", comment_id=comment_id)

    assert comment.create_reaction("eyes").id == comment.create_reaction("eyes").id
    assert comment.reactions["eyes"] == 0  # as it was when it was read
    assert [reaction.content for reaction in comment.get_reactions()] == ["+1", "eyes"]
    assert repo.get_issue(number).get_comment(comment_id).reactions["total_count"] == 2


def test_a_comment_by_a_writer_marks_a_duplicate(github: FakeGitHub) -> None:
    github.set_permission("monalisa", "write")
    for title in ("First", "Second"):
        github.open_issue("octocat", title)
    github.comment(2, "hubot", "Duplicate of #1")
    assert "marked_as_duplicate" not in [event.kind for event in github.issue(2).events]

    github.comment(2, "monalisa", "Duplicate of #1")
    assert "marked_as_duplicate" in [event.kind for event in github.issue(2).events]


def test_a_link_makes_a_backlink_unless_it_is_in_code_or_goes_over_redirect(github: FakeGitHub) -> None:
    for _ in range(5):
        github.open_issue("octocat", "Issue")
    github.comment(
        5,
        "hubot",
        "#1 `#2` https://redirect.github.com/octocat/hello-world/issues/3 "
        "https://github.com/octocat/hello-world/issues/4",
    )

    assert [bool(github.issue(number).events) for number in (1, 2, 3, 4)] == [True, False, False, True]


def test_every_request_is_recorded_and_counted_since_the_mark(github: FakeGitHub, repo: Repository) -> None:
    github.open_issue("octocat", "Crash")
    repo.get_issue(1)
    github.mark()
    repo.get_issue(1).create_comment("hello")

    assert (github.reads, github.writes) == (1, 1)
    assert github.recent == [
        ("GET", "/repos/{owner}/{repo}/issues/{issue_number}", 200),
        ("POST", "/repos/{owner}/{repo}/issues/{issue_number}/comments", 201),
    ]
    assert len(github.requests) == 4


def test_the_api_is_also_served_under_the_enterprise_prefix(github: FakeGitHub) -> None:
    github.open_issue("octocat", "Crash")
    with connect_pygithub(github, base_url=github.enterprise_url) as client:
        issue = client.get_repo("octocat/hello-world").get_issue(1)
        issue.create_comment("hello")

    assert issue.url == f"{github.url}/api/v3/repos/octocat/hello-world/issues/1"


def test_people_can_edit_only_their_own_comments(github: FakeGitHub) -> None:
    github.add_token("gho_hubot", "hubot")
    number = github.open_issue("octocat", "Crash")
    own, foreign = github.comment(number, "hubot", "mine"), github.comment(number, "octocat", "theirs")
    with connect_pygithub(github, "gho_hubot") as client:
        issue = client.get_repo("octocat/hello-world").get_issue(number)
        issue.get_comment(own).edit("still mine")
        with pytest.raises(GithubException) as refused:
            issue.get_comment(foreign).edit("mine now")

    assert refused.value.status == 403
    assert github.comment_by_id(foreign).body == "theirs"


def test_commits_are_compared_by_their_history(github: FakeGitHub, repo: Repository) -> None:
    base = github.add_commit("Begin", "octocat")
    github.add_branch("1.x")
    pull = github.add_pull("hubot", "Fix", files=["a.py"])
    github.merge_pull(pull, "octocat")
    merge = repo.get_pull(pull).merge_commit_sha
    github.add_commit("Backport", "octocat", branch="1.x")
    github.add_tag("v2.0", merge)
    comparisons = {
        (a, b): repo.compare(a, b) for a, b in ((base, "v2.0"), ("v2.0", base), (base, base), (merge, "1.x"))
    }
    assert [comparison.status for comparison in comparisons.values()] == ["ahead", "behind", "identical", "diverged"]
    ahead = comparisons[base, "v2.0"]
    assert (ahead.ahead_by, ahead.behind_by, [file.filename for file in ahead.files]) == (1, 0, ["a.py"])
    assert repo.get_commit(merge).parents[0].sha == base
    with pytest.raises(UnknownObjectException):
        repo.compare(base, "absent")


def test_a_pull_may_be_a_draft_and_for_another_branch(github: FakeGitHub, repo: Repository) -> None:
    github.add_commit("Begin", "octocat")
    github.add_branch("1.x")
    number = github.add_pull("hubot", "Fix")
    github.set_draft(number)
    github.retarget(number, "1.x")
    assert (repo.get_pull(number).draft, repo.get_pull(number).base.ref) == (True, "1.x")
    assert repo.get_issue(number).raw_data["draft"] is True
    github.merge_pull(number, "octocat")
    assert repo.get_commit("1.x").sha == repo.get_pull(number).merge_commit_sha
    assert repo.get_commit("main").sha != repo.get_pull(number).merge_commit_sha


def test_draft_releases_are_shown_only_to_writers(github: FakeGitHub, repo: Repository) -> None:
    github.add_release("v1", draft=True)
    (draft,) = repo.get_releases()
    assert (draft.draft, draft.published_at) == (True, None)
    github.add_token("reader", "hubot", {"contents": "read"})
    assert list(connect_pygithub(github, "reader").get_repo(repo.full_name).get_releases()) == []
