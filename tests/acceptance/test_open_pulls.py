"""An open pull request that may fix an open issue is shown with it while it is open, and is looked up once."""

from __future__ import annotations

import re

import pytest

from tests.acceptance.stage import Stage, graph_requests, summary, with_memory, with_mentions, with_past
from tests.comment.detector import report
from tests.fakes.state import ChangedFile

pytestmark = pytest.mark.slow

TITLE = "Keep sessions over a restart"
FILE = "src/auth/session.py"
CLAIM = "An open pull request says that it fixes this"
TRACE = 'As in #3.\n\n```\n  File "/usr/lib/python3/src/auth/session.py", line 3, in load\n```\n'


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """Issue 3 is open; pull request 4 says that it fixes it."""
    return empty_stage.begin(with_mentions, with_past, with_pull, with_memory)


def with_pull(stage: Stage) -> None:
    stage.github.open_issue("hubot", "Sessions are lost", "On each restart.", at="2026-01-02T10:00:00Z")
    stage.github.add_pull("octocat", TITLE, "Fixes #3.", "2026-01-03T10:00:00Z", [FILE], [3])


def open_issue(stage: Stage, body: str = "As in #3.", title: str = "Everybody is logged out") -> int:
    number = int(stage.github.open_issue("monalisa", title, body))
    stage.deliver("issues", "opened", number)
    return number


def pull_request_lines(stage: Stage, number: int) -> list[str]:
    """The lines about open pull requests in our comment on an issue, without addresses."""
    (text,) = stage.comments(number)
    return [re.sub(r"\(http[^)]*\)", "", line.strip()) for line in text.splitlines() if "pull request" in line]


def request_counts(stage: Stage) -> tuple[int, int, int]:
    """Reads, GraphQL requests and writes of the last run."""
    requests = [(request.method, request.path) for request in stage.github.recent]
    graph = sum(path == "/graphql" for _, path in requests)
    return sum(method == "GET" for method, _ in requests), graph, sum(method != "GET" for method, _ in requests) - graph


def test_an_open_issue_is_shown_with_the_pull_request_that_says_it_fixes_it(stage: Stage) -> None:
    number = open_issue(stage)
    assert pull_request_lines(stage, number) == [f"{CLAIM}: [{TITLE}] (as of 5 January 2026)"]
    assert "/octo-org/hello-world/pull/4) (as of" in stage.comments(number)[0]
    assert "GraphQL: 1 request." in summary(stage)


@pytest.mark.parametrize(
    ("title", "body", "requests"),
    [
        ("Zyx", "Wvu tsr qpo.", (1, 0, 0)),  # silent
        ("Everybody is logged out", "As in #1.", (1, 0, 1)),  # a closed issue is shown
        ("Everybody is logged out", "As in #3.", (1, 1, 1)),  # an open issue is shown
        ("Everybody is logged out", "As in #1, #2 and #3.", (1, 1, 1)),
    ],
)
def test_one_more_request_is_sent_if_an_open_issue_is_shown(
    stage: Stage, title: str, body: str, requests: tuple[int, int, int]
) -> None:
    open_issue(stage, body, title)
    assert request_counts(stage) == requests


def test_all_comments_of_a_run_share_one_lookup(stage: Stage) -> None:
    stage.github.open_issue("hubot", "The cart is lost", "On each restart.", at="2026-01-04T10:00:00Z")
    stage.github.add_pull("hubot", "Keep carts", "Closes #5.", "2026-01-04T10:00:00Z", closes=[5])
    stage.deliver("schedule")
    first = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #3."))
    second = open_issue(stage, "As in #5 and #3.", "Nothing is in the cart")
    assert pull_request_lines(stage, first) == [f"{CLAIM}: [{TITLE}] (as of 5 January 2026)"]
    assert pull_request_lines(stage, second) == [
        f"{CLAIM}: [{title}] (as of 5 January 2026)" for title in ("Keep carts", TITLE)
    ]
    assert request_counts(stage)[1:] == (1, 2)


@pytest.mark.parametrize("how", ["merged", "closed", "renamed"])
def test_a_changed_pull_request_updates_the_line_in_the_next_run(stage: Stage, how: str) -> None:
    """By default, pull requests are not remembered; one that a comment shows is checked all the same."""
    number = open_issue(stage)
    stage.github.clock.advance(3600)
    match how:
        case "merged":
            stage.github.merge_pull(4, "octocat")
        case "closed":
            stage.github.close(4, "octocat", None)
        case _:
            stage.github.edit_issue(4, title="Keep all sessions")
    stage.deliver("issues", "labeled", 2)
    expected = [f"{CLAIM}: [Keep all sessions] (as of 5 January 2026)"] if how == "renamed" else []
    actual = [line for line in pull_request_lines(stage, number) if line.startswith("An open")]
    assert (actual, graph_requests(stage)) == (expected, 0)
    assert ("fixed" in stage.comments(number)[0]) is (how == "merged")
    stage.deliver("schedule")
    assert request_counts(stage)[1:] == (0, 0)


def test_a_comment_that_is_updated_for_another_reason_keeps_the_line(stage: Stage) -> None:
    number = open_issue(stage)
    before = pull_request_lines(stage, number)
    stage.github.edit_issue(3, title="Sessions are lost at night")
    stage.github.clock.advance(24 * 3600)
    stage.deliver("schedule")
    assert "at night" in stage.comments(number)[0]
    assert (pull_request_lines(stage, number), graph_requests(stage)) == (before, 0)


@pytest.mark.parametrize("fault", ["404", "limit200", "5xx", "drop", "permission", "html", "cut"])
def test_the_line_is_left_out_if_the_lookup_fails(stage: Stage, fault: str) -> None:
    stage.github.faults.add("POST /graphql", fault, None)
    number = open_issue(stage)
    assert pull_request_lines(stage, number) == []
    assert "Sessions are lost" in stage.comments(number)[0]
    assert "Open pull requests were not looked up" in summary(stage)
    assert ("pull-requests: read" in summary(stage)) is (fault == "permission")
    assert graph_requests(stage) == 1


def test_a_hidden_issue_does_not_hide_the_lines_of_other_issues(stage: Stage) -> None:
    hidden = stage.github.open_issue("hubot", "The cart is lost", "On each restart.", at="2026-01-04T10:00:00Z")
    stage.deliver("schedule")
    stage.github.hide_issue(hidden)
    number = open_issue(stage, f"As in #{hidden} and #3.")
    assert pull_request_lines(stage, number) == [f"{CLAIM}: [{TITLE}] (as of 5 January 2026)"]
    assert "not looked up" not in summary(stage)


def test_a_pull_request_called_wrong_is_no_longer_shown(stage: Stage) -> None:
    number = open_issue(stage)
    comment = int(stage.github.comment(number, "octocat", "/precedent wrong #4"))
    stage.deliver("issue_comment", "created", number, comment)
    assert CLAIM not in stage.comments(number)[0]
    stage.github.edit_issue(number, body="As in #3 and #1.")
    stage.deliver("issues", "edited", number)
    assert CLAIM not in stage.comments(number)[0]


def test_a_second_lookup_that_fails_keeps_the_line(stage: Stage) -> None:
    number = open_issue(stage)
    before = pull_request_lines(stage, number)
    stage.github.edit_issue(number, body="As in #3 and #1.")
    stage.github.faults.add("POST /graphql", "5xx", None)
    stage.deliver("issues", "edited", number)
    assert "Where should sessions live?" in stage.comments(number)[0]
    assert pull_request_lines(stage, number) == before


def test_a_second_lookup_shows_the_current_pull_requests(stage: Stage) -> None:
    number = open_issue(stage)
    stage.github.close(4, "octocat", None)
    stage.github.add_pull("hubot", "Another way", "Fixes #3.", closes=[3])
    stage.github.edit_issue(number, body="As in #3 and #1.")
    stage.deliver("issues", "edited", number)
    assert pull_request_lines(stage, number) == [f"{CLAIM}: [Another way] (as of 5 January 2026)"]


def test_a_changed_file_that_the_report_names_is_shown(stage: Stage) -> None:
    number = open_issue(stage, TRACE)
    claim = "says that it fixes this, and changes `src/auth/session.py`, which this report names"
    assert pull_request_lines(stage, number) == [f"An open pull request {claim}: [{TITLE}] (as of 5 January 2026)"]


def test_a_pull_request_that_only_refers_to_the_issue_is_shown_if_it_changes_a_named_file(stage: Stage) -> None:
    stage.github.close(4, "octocat", None)
    stage.github.add_pull("hubot", "Sign cookies", "See #3.", files=[ChangedFile("docs/a.md"), ChangedFile(FILE)])
    claim = "An open pull request changes `src/auth/session.py`, which this report names"
    assert pull_request_lines(stage, open_issue(stage, TRACE)) == [f"{claim}: [Sign cookies] (as of 5 January 2026)"]
    assert pull_request_lines(stage, open_issue(stage)) == []


def test_a_draft_pull_request_is_called_a_draft(stage: Stage) -> None:
    stage.github.set_draft(4)
    number = open_issue(stage)
    assert pull_request_lines(stage, number) == [
        f"A draft pull request says that it fixes this: [{TITLE}] (as of 5 January 2026)"
    ]


def test_nothing_is_looked_up_if_pull_requests_are_remembered(stage: Stage) -> None:
    github = stage.github
    stage.configure("pulls: true\nmentions:\n  speak: always\n")
    for number in range(5, 12):
        github.open_issue("hubot", f"Carts are lost {number}", "On each restart.", at="2026-01-04T10:00:00Z")
    pull = github.add_pull("hubot", "Keep carts", "Fixes #11.", closes=[11])
    stage.deliver("schedule")
    number = open_issue(stage, "As in #11.")
    assert pull_request_lines(stage, number) == [f"{CLAIM}: [Keep carts]"]
    assert graph_requests(stage) == 0
    github.clock.advance(3600)
    github.edit_issue(pull, body="See #11.")
    stage.deliver("schedule")
    assert pull_request_lines(stage, number) == []


def test_a_hostile_title_pings_nobody_and_refers_to_nothing(stage: Stage) -> None:
    title = "@octocat Fixes #1 ](https://evil.example) <img src=x> :+1: $a$ ![](https://evil.example/x) fixes a/b#2"
    stage.github.edit_issue(4, title=title)
    (text,) = stage.comments(open_issue(stage))
    detected = report(text)
    assert CLAIM in detected.text
    assert "evil.example" in detected.text
    assert (detected.mentions, detected.references, detected.images, detected.formulas, detected.shortcodes) == (
        [],
        [],
        [],
        [],
        [],
    )
    assert [link.rpartition("/hello-world")[2] for link in detected.links] == ["/issues/3", "/pull/4"]
