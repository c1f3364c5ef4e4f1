"""An open pull request that may end an open issue is told with it, as long as it is open, and asked for once."""

from __future__ import annotations

import re

import pytest

from tests.acceptance.stage import REPOSITORY, Stage, graph_requests, summary
from tests.acceptance.test_standing import run
from tests.comment.detector import report
from tests.fakes.state import ChangedFile

pytestmark = pytest.mark.slow

TITLE = "Keep sessions over a restart"
FILE = "src/auth/session.py"
SAYS = "An open pull request says that it fixes this"
TRACE = 'As in #3.\n\n```\n  File "/usr/lib/python3/src/auth/session.py", line 3, in load\n```\n'


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """Issue 3 is open; pull request 4 says that it closes it."""
    stage.github.open_issue("hubot", "Sessions are lost", "On each restart.", at="2026-01-02T10:00:00Z")
    stage.github.add_pull("octocat", TITLE, "Fixes #3.", "2026-01-03T10:00:00Z", [FILE], [3])
    run(stage, "schedule")
    return stage


def opened(stage: Stage, body: str = "As in #3.", title: str = "Everybody is logged out") -> int:
    number = int(stage.github.open_issue("monalisa", title, body))
    run(stage, "issues", "opened", number)
    return number


def lines(stage: Stage, number: int) -> list[str]:
    """The lines about open pull requests in our comment on an issue, without addresses."""
    (text,) = stage.comments(number)
    return [re.sub(r"\(http[^)]*\)", "", one.strip()) for one in text.splitlines() if "pull request" in one]


def sent(stage: Stage) -> tuple[int, int, int]:
    """Reads, GraphQL requests and writes of the last run."""
    asked = [(request.method, request.path) for request in stage.github.recent]
    graph = sum(path == "/graphql" for _, path in asked)
    return sum(method == "GET" for method, _ in asked), graph, sum(method != "GET" for method, _ in asked) - graph


def test_an_open_issue_is_shown_with_the_pull_request_that_says_that_it_closes_it(stage: Stage) -> None:
    number = opened(stage)
    assert lines(stage, number) == [f"{SAYS}: [{TITLE}] (as of 5 January 2026)"]
    assert "/octo-org/hello-world/pull/4) (as of" in stage.comments(number)[0]
    assert "GraphQL: 1 request." in summary(stage)


@pytest.mark.parametrize(
    ("title", "body", "requests"),
    [
        ("Zyx", "Wvu tsr qpo.", (1, 0, 0)),  # silent
        ("Everybody is logged out", "As in #1.", (1, 0, 1)),  # a closed one is shown
        ("Everybody is logged out", "As in #3.", (1, 1, 1)),  # an open one
        ("Everybody is logged out", "As in #1, #2 and #3.", (1, 1, 1)),
    ],
)
def test_one_request_more_is_sent_where_an_open_issue_is_shown(
    stage: Stage, title: str, body: str, requests: tuple[int, int, int]
) -> None:
    opened(stage, body, title)
    assert sent(stage) == requests


def test_all_comments_of_a_run_ask_together(stage: Stage) -> None:
    stage.github.open_issue("hubot", "The cart is lost", "On each restart.", at="2026-01-04T10:00:00Z")
    stage.github.add_pull("hubot", "Keep carts", "Closes #5.", "2026-01-04T10:00:00Z", closes=[5])
    run(stage, "schedule")
    first = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #3."))
    second = opened(stage, "As in #5 and #3.", "Nothing is in the cart")
    assert lines(stage, first) == [f"{SAYS}: [{TITLE}] (as of 5 January 2026)"]
    assert lines(stage, second) == [f"{SAYS}: [{one}] (as of 5 January 2026)" for one in ("Keep carts", TITLE)]
    assert sent(stage)[1:] == (1, 2)


@pytest.mark.parametrize("how", ["merged", "closed", "renamed"])
def test_a_pull_request_that_changes_changes_the_line_in_the_next_run(stage: Stage, how: str) -> None:
    """Pull requests are not remembered here by setting: one that a comment shows is looked at all the same."""
    number = opened(stage)
    stage.github.clock.advance(3600)
    match how:
        case "merged":
            stage.github.merge_pull(4, "octocat")
        case "closed":
            stage.github.close(4, "octocat", None)
        case _:
            stage.github.edit_issue(4, title="Keep all sessions")
    run(stage, "issues", "labeled", 2)
    told = [f"{SAYS}: [Keep all sessions] (as of 5 January 2026)"] if how == "renamed" else []
    shown = [line for line in lines(stage, number) if line.startswith("An open")]
    assert (shown, graph_requests(stage)) == (told, 0)
    assert ("fixed" in stage.comments(number)[0]) is (how == "merged")
    run(stage, "schedule")
    assert sent(stage)[1:] == (0, 0)


def test_a_comment_that_is_brought_up_to_date_for_another_reason_keeps_the_line(stage: Stage) -> None:
    number = opened(stage)
    before = lines(stage, number)
    stage.github.edit_issue(3, title="Sessions are lost at night")
    stage.github.clock.advance(24 * 3600)
    run(stage, "schedule")
    assert "at night" in stage.comments(number)[0]
    assert (lines(stage, number), graph_requests(stage)) == (before, 0)


@pytest.mark.parametrize("fault", ["404", "limit200", "5xx", "drop", "permission", "html", "cut"])
def test_without_an_answer_the_line_is_left_out(stage: Stage, fault: str) -> None:
    stage.github.faults.add("POST /graphql", fault, None)
    number = opened(stage)
    assert lines(stage, number) == []
    assert "Sessions are lost" in stage.comments(number)[0]
    assert "Open pull requests were not looked up" in summary(stage)
    assert ("pull-requests: read" in summary(stage)) is (fault == "permission")
    assert graph_requests(stage) == 1


def test_one_issue_that_is_gone_does_not_hide_the_lines_of_others(stage: Stage) -> None:
    gone = stage.github.open_issue("hubot", "The cart is lost", "On each restart.", at="2026-01-04T10:00:00Z")
    run(stage, "schedule")
    stage.github.hide_issue(gone)
    number = opened(stage, f"As in #{gone} and #3.")
    assert lines(stage, number) == [f"{SAYS}: [{TITLE}] (as of 5 January 2026)"]
    assert "not looked for" not in summary(stage)


def test_a_pull_request_that_is_called_wrong_is_shown_no_more(stage: Stage) -> None:
    number = opened(stage)
    comment = int(stage.github.comment(number, "octocat", "/precedent wrong #4"))
    run(stage, "issue_comment", "created", number, comment)
    assert SAYS not in stage.comments(number)[0]
    stage.github.edit_issue(number, body="As in #3 and #1.")
    run(stage, "issues", "edited", number)
    assert SAYS not in stage.comments(number)[0]


def test_a_second_look_that_fails_leaves_what_was_said(stage: Stage) -> None:
    number = opened(stage)
    before = lines(stage, number)
    stage.github.edit_issue(number, body="As in #3 and #1.")
    stage.github.faults.add("POST /graphql", "5xx", None)
    run(stage, "issues", "edited", number)
    assert "Where should sessions live?" in stage.comments(number)[0]
    assert lines(stage, number) == before


def test_a_second_look_says_what_is_so_now(stage: Stage) -> None:
    number = opened(stage)
    stage.github.close(4, "octocat", None)
    stage.github.add_pull("hubot", "Another way", "Fixes #3.", closes=[3])
    stage.github.edit_issue(number, body="As in #3 and #1.")
    run(stage, "issues", "edited", number)
    assert lines(stage, number) == [f"{SAYS}: [Another way] (as of 5 January 2026)"]


def test_the_file_that_the_report_names_is_told(stage: Stage) -> None:
    number = opened(stage, TRACE)
    told = "says that it fixes this, and changes `src/auth/session.py`, which this report names"
    assert lines(stage, number) == [f"An open pull request {told}: [{TITLE}] (as of 5 January 2026)"]


def test_one_that_only_refers_to_the_issue_is_told_if_it_changes_a_file_that_the_report_names(stage: Stage) -> None:
    stage.github.close(4, "octocat", None)
    stage.github.add_pull("hubot", "Sign cookies", "See #3.", files=[ChangedFile("docs/a.md"), ChangedFile(FILE)])
    told = "An open pull request changes `src/auth/session.py`, which this report names"
    assert lines(stage, opened(stage, TRACE)) == [f"{told}: [Sign cookies] (as of 5 January 2026)"]
    assert lines(stage, opened(stage)) == []


def test_a_draft_is_called_one(stage: Stage) -> None:
    stage.github.set_draft(4)
    number = opened(stage)
    assert lines(stage, number) == [f"A draft pull request says that it fixes this: [{TITLE}] (as of 5 January 2026)"]


def test_where_pull_requests_are_remembered_nothing_is_asked(stage: Stage) -> None:
    github = stage.github
    stage.git.commit(REPOSITORY, ".github/precedent.yml", "pulls: true\n")
    for number in range(5, 12):
        github.open_issue("hubot", f"Carts are lost {number}", "On each restart.", at="2026-01-04T10:00:00Z")
    pull = github.add_pull("hubot", "Keep carts", "Fixes #11.", closes=[11])
    run(stage, "schedule")
    number = opened(stage, "As in #11.")
    assert lines(stage, number) == [f"{SAYS}: [Keep carts]"]
    assert graph_requests(stage) == 0
    github.clock.advance(3600)
    github.edit_issue(pull, body="See #11.")
    run(stage, "schedule")
    assert lines(stage, number) == []


def test_a_hostile_title_pings_nobody_and_leaves_no_trace(stage: Stage) -> None:
    title = "@octocat Fixes #1 ](https://evil.example) <img src=x> :+1: $a$ ![](https://evil.example/x) fixes a/b#2"
    stage.github.edit_issue(4, title=title)
    (text,) = stage.comments(opened(stage))
    found = report(text)
    assert SAYS in found.text
    assert "evil.example" in found.text
    assert (found.mentions, found.references, found.images, found.formulas, found.shortcodes) == ([], [], [], [], [])
    assert [link.rpartition("/hello-world")[2] for link in found.links] == ["/issues/3", "/pull/4"]
