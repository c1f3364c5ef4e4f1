"""Turning GitHub's JSON into threads, and recognising our own comments in it."""

import pytest

from bot.comment.marker import marker
from bot.domain.post import PostKey, notice_slot, reply_slot
from bot.domain.thread import GHOST, Kind
from bot.github.threads import (
    OwnComment,
    OwnCommentRule,
    find_post,
    message_fields,
    own_comment,
    split_own,
    thread_of,
)
from tests.fakes.github import FakeGitHub

MARKER = "<!-- precedent:v1 id=action -->"
OWN = OwnCommentRule("github-actions[bot]", MARKER)
WHEN = "2026-01-05T12:00:00Z"
ISSUE = {"number": 7, "title": None, "body": None, "user": None, "created_at": WHEN}


def comment(login: str | None, body: str | None, number: int = 1) -> dict[str, object]:
    return {"id": number, "user": {"login": login} if login else None, "body": body, "created_at": WHEN}


def test_an_empty_issue_becomes_a_thread_by_ghost() -> None:
    thread = thread_of(ISSUE, [comment(None, None)])
    assert (thread.title, thread.body, thread.author, thread.role, thread.state) == ("", "", GHOST, "NONE", "open")
    assert (thread.comments[0].author, thread.comments[0].text) == (GHOST, "")


def test_an_issue_becomes_a_thread_with_all_its_fields(github: FakeGitHub) -> None:
    number = github.open_issue("octocat", "Crash", "It crashes.", labels=["bug"])
    github.comment(number, "hubot", "Me too")
    github.lock(number)
    github.close(number, "octocat", "not_planned")
    issue = github.issue(number)
    thread = thread_of(github.shapes.issue(issue), [github.shapes.comment(item) for item in issue.comments])
    assert (thread.title, thread.body, thread.author, thread.role) == ("Crash", "It crashes.", "octocat", "OWNER")
    assert (thread.labels, thread.locked) == (("bug",), True)
    assert (thread.state, thread.state_reason, thread.closed_by) == ("closed", "not_planned", "octocat")
    assert [(item.author, item.text) for item in thread.comments] == [("hubot", "Me too")]


def test_a_pull_request_becomes_a_thread_of_its_own_kind() -> None:
    assert thread_of(ISSUE | {"pull_request": {}}, []).kind is Kind.ISSUE
    assert thread_of(ISSUE | {"pull_request": {"url": "x"}}, []).kind is Kind.PULL


def test_labels_may_be_names_or_objects() -> None:
    assert thread_of(ISSUE | {"labels": ["a", {"name": "b"}]}, []).labels == ("a", "b")


@pytest.mark.parametrize(
    ("login", "body", "slot"),
    [
        ("github-actions[bot]", f"{MARKER}\ntext", ""),
        ("GitHub-Actions[bot]", f"\n  {MARKER}\r\ntext", ""),
        ("octocat", f"{MARKER}\ntext", None),
        (None, MARKER, None),
        ("github-actions[bot]", f"text\n{MARKER}", None),
        ("github-actions[bot]", f"{MARKER} text", None),
        ("github-actions[bot]", "<!-- precedent:v1 id=other -->\ntext", None),
        ("github-actions[bot]", None, None),
        ("GitHub-Actions[bot]", "<!-- precedent:v1 id=action reply=77 -->", "reply:77"),
        ("github-actions[bot]", "\ufeff\n<!-- precedent:v1 id=action reply=77 -->\t", "reply:77"),
        ("hubot", "<!-- precedent:v1 id=action reply=77 -->", None),
        (None, "<!-- precedent:v1 id=action reply=77 -->", None),
        ("github-actions[bot]", "<!-- precedent:v1 id=other reply=77 -->", None),
        ("github-actions[bot]", "<!-- precedent:v1 id=action reply= -->", None),
        ("github-actions[bot]", "<!-- precedent:v1 id=action reply=-7 -->", None),
        ("github-actions[bot]", "<!-- precedent:v1 id=action reply=\u0667 -->", None),
        ("github-actions[bot]", f"<!-- precedent:v1 id=action reply={'7' * 30} -->", None),
        ("github-actions[bot]", "Hello\n<!-- precedent:v1 id=action reply=77 -->", None),
        ("GitHub-Actions[bot]", "<!-- precedent:v1 id=action notice=0123456789abcdef -->", "notice:0123456789abcdef"),
        ("hubot", "<!-- precedent:v1 id=action notice=0123456789abcdef -->", None),
        ("github-actions[bot]", "<!-- precedent:v1 id=other notice=0123456789abcdef -->", None),
        ("github-actions[bot]", "<!-- precedent:v1 id=action notice=0123 -->", None),
        ("github-actions[bot]", "<!-- precedent:v1 id=action notice=0123456789abcdef0 -->", None),
        ("github-actions[bot]", "Hello\n<!-- precedent:v1 id=action notice=0123456789abcdef -->", None),
        ("github-actions[bot]", "<!-- precedent:v1 id=action week=0123456789abcdef -->", None),
    ],
)
def test_a_post_is_ours_by_its_author_and_its_first_line(login: str | None, body: str | None, slot: str | None) -> None:
    post = comment(login, body)
    assert OWN.slot(post) == slot
    others, ours = split_own([post], OWN)
    assert (len(others), len(ours)) == (int(slot is None), int(slot == ""))
    assert (find_post([post], slot, OWN) if slot is not None else None) == (None if slot is None else own_comment(post))


@pytest.mark.parametrize("key", [PostKey(1), PostKey(1, reply_slot(77)), PostKey(1, notice_slot("#57"))])
def test_the_marker_of_each_slot_is_found_again(key: PostKey) -> None:
    assert OWN.slot(comment("github-actions[bot]", f"{marker('action', key.slot)}\ntext")) == key.slot


def test_the_oldest_of_several_own_comments_comes_first() -> None:
    mine = [comment("github-actions[bot]", MARKER, number) for number in (9, 3)]
    others, ours = split_own([*mine, comment("octocat", "Hi", 5)], OWN)
    assert [item["id"] for item in others] == [5]
    assert [item.id for item in ours] == [3, 9]
    assert find_post(mine, "", OWN) == ours[0]


def test_an_own_comment_keeps_what_is_needed_to_change_it() -> None:
    api_comment = comment("github-actions[bot]", MARKER) | {"html_url": "https://x.example/1"}
    assert own_comment(api_comment) == OwnComment(1, MARKER, "https://x.example/1")


def test_references_from_other_repositories_are_left_out() -> None:
    home = "https://api.example/repos/o/r"
    closed = {"state": "closed", "closed_at": WHEN, "repository_url": home}
    events = [
        {"event": "cross-referenced", "created_at": WHEN, "actor": None,
         "source": {"issue": {"number": number, "repository_url": repository, "pull_request": pull}}}
        for number, repository, pull in ((1, home, {"url": "x"}), (2, "https://api.example/repos/o/other", None))
    ] + [{"event": "closed", "created_at": WHEN, "commit_id": "abc", "actor": {"login": "octocat"}}]  # fmt: skip
    thread = thread_of(ISSUE | closed, [], events)
    assert [(e.name, e.source, e.source_kind, e.commit) for e in thread.events] == [
        ("closed", None, None, "abc"),
        ("cross-referenced", None, None, None),
        ("cross-referenced", 1, Kind.PULL, None),
    ]


def test_our_own_reactions_are_not_counted() -> None:
    """They change nothing in memory: the run after the one that reacted finds the thread unchanged."""
    comment = {
        "id": 1,
        "user": {"login": "octocat"},
        "created_at": "2026-01-05T12:00:00Z",
        "body": "Fixed in 1.2.\n\n/precedent refresh",
        "reactions": {"+1": 2, "eyes": 1, "rocket": 1, "confused": 1},
    }
    assert message_fields(comment)["reactions"] == {"+1": 2}
