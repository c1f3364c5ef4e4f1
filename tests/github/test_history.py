"""History by GraphQL, by REST, and as it really was: three times the same threads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from bot.domain.thread import Kind, OutcomeKind, Thread, ThreadId, TimelineEvent, Tombstone
from bot.domain.thread_json import parse_time, thread_from_archive
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, IssuesOff, NotPermitted, RateLimited, Unauthorised, Unreachable
from bot.github.history import (
    PER_PAGE,
    SIZES,
    GraphQLHistory,
    HistorySource,
    NoGraphQL,
    RepositoryNotVisible,
    RestHistory,
)
from bot.github.threads import OwnCommentRule
from bot.reading.endings.outcome import outcome
from tests.fakes.archive import read_archive
from tests.fakes.github import FakeGitHub
from tests.fakes.httpd import Listener
from tests.fakes.service import Sent
from tests.github.conftest import REPOSITORY

SAMPLE = Path(__file__).parents[2] / "sample" / "history.jsonl"
BOT = "github-actions[bot]"
OURS = "<!-- precedent:v1 id=action -->\nSeen before"
Make = Callable[[FakeGitHub, OwnCommentRule], HistorySource]


def by_graphql(github: FakeGitHub, own: OwnCommentRule, url: str = "") -> GraphQLHistory:
    client = GitHubClient(github.url, github.token, REPOSITORY)
    return GraphQLHistory(url or github.url, github.token, REPOSITORY, own, client)


def by_rest(github: FakeGitHub, own: OwnCommentRule) -> RestHistory:
    return RestHistory(own, GitHubClient(github.url, github.token, REPOSITORY))


def threads(history: HistorySource, since: datetime | None = None) -> dict[ThreadId, Thread]:
    found: dict[ThreadId, Thread] = {}
    for news in history.since(since):
        found |= {record.id: record for record in news.records if isinstance(record, Thread)}
    return found


def as_it_was(github: FakeGitHub) -> dict[ThreadId, Thread]:
    """The issues of the fake as its archive has them, without comments of ours."""
    found = {}
    for thread in github.export_archive():
        if thread.get("kind") != "pull":
            comments = [comment for comment in thread["comments"] if comment["body"] != OURS]
            found[thread["id"]] = thread_from_archive(thread | {"comments": comments})
    return found


def plain(found: dict[ThreadId, Thread]) -> dict[ThreadId, tuple[object, ...]]:
    """All of a thread that the three ways have in common.

    REST does not tell of what a duplicate is one, nor which pull request closed an issue.
    """
    return {
        key: (
            (t.title, t.body, t.author, t.role, t.is_bot, t.state, t.state_reason, t.closed_at, t.closed_by, t.locked),
            (t.labels, t.created_at, t.updated_at, t.comments),
            {(e.name, e.at, e.actor, *source(e)) for e in t.events if "duplicate" not in e.name},
        )
        for key, t in found.items()
    }


def source(event: TimelineEvent) -> tuple[ThreadId | None, Kind | None]:
    return (None, None) if event.name == "closed" else (event.source, event.source_kind)


@pytest.fixture(params=[by_graphql, by_rest])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


@pytest.mark.slow
def test_the_shipped_sample_is_read_as_it_was(github: FakeGitHub, own: OwnCommentRule, make: Make) -> None:
    github.load_archive(read_archive(SAMPLE))
    assert plain(threads(make(github, own))) == plain(as_it_was(github))


def test_both_ways_give_the_same_of_everything_that_can_happen(github: FakeGitHub, own: OwnCommentRule) -> None:
    github.set_permission("octocat", "write")
    first = github.open_issue(None, "Crash \ud800", None, labels=[f"label {count}" for count in range(30)])
    second = github.open_issue("dependabot[bot]", "Hang", f"Like #{first}")
    github.comment(first, None, "Me too")
    github.comment(first, "stale[bot]", "No activity")
    github.comment(first, BOT, OURS)
    github.react(first, "hubot", "+1")
    github.close(first, "stale[bot]", "not_planned")
    github.reopen(first, "octocat")
    github.lock(second)
    pull = github.add_pull("hubot", "Fix", f"Fixes #{second}", closes=[second])
    github.reference(second, "a" * 40, "hubot")
    github.merge_pull(pull, "octocat")
    third = github.open_issue("hubot", "Reopened without a word")
    github.close(third, None)
    github.reopen(third, None)
    fourth = github.open_issue("hubot", "Twice")
    github.mark_duplicate(fourth, second, "octocat")
    github.close(fourth, "octocat", "duplicate", commit="b" * 40)
    graph, rest = threads(by_graphql(github, own)), threads(by_rest(github, own))
    assert plain(graph) == plain(rest) == plain(as_it_was(github))
    assert graph[first].closed_by == "stale[bot]"
    assert [event.source for event in graph[fourth].events if "duplicate" in event.name] == [second]


# What closed an issue


def closer(found: dict[ThreadId, Thread], number: int) -> ThreadId | None:
    """The pull request that the last closing names."""
    last = [event for event in found[number].events if event.name == "closed"][-1]
    assert last.source is None or last.source_kind is Kind.PULL
    return last.source


def test_a_person_with_the_name_of_our_app_is_not_us(github: FakeGitHub, own: OwnCommentRule, make: Make) -> None:
    """GraphQL calls both by the same login."""
    person = own.login.removesuffix("[bot]")
    number = github.open_issue("octocat", "Title", "Text")
    github.comment(number, own.login, f"{own.marker}\nOurs.")
    github.comment(number, person, f"{own.marker}\nTheirs.")
    (thread,) = threads(make(github, own)).values()
    assert [(said.author, said.is_bot, said.text[-7:]) for said in thread.comments] == [(person, False, "Theirs.")]


def test_a_closing_by_a_pull_request_names_it(github: FakeGitHub, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash")
    pull = github.add_pull("hubot", "Fix", closes=[number])
    github.merge_pull(pull, "hubot")
    found = threads(by_graphql(github, own))
    assert closer(found, number) == pull
    told = outcome(found[number])
    assert (told.kind, told.fix) == (OutcomeKind.FIXED, f"#{pull}")


@pytest.mark.slow
def test_a_long_thread_keeps_what_closed_it(github: FakeGitHub, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    pull = github.add_pull("hubot", "Fix", at="2026-01-01T01:00:00Z", closes=[number])
    github.merge_pull(pull, "hubot", at="2026-01-02T00:00:00Z")
    for _ in range(130):
        github.comment(number, "hubot", "Thanks", at="2026-01-03T00:00:00Z")
    found = threads(by_graphql(github, own))
    assert (closer(found, number), len(found[number].comments)) == (pull, 130)


@pytest.mark.parametrize(
    ("merged", "reason", "is_told"),
    [
        ("2026-01-02T00:00:00Z", "completed", True),
        ("2026-01-04T00:30:00Z", "completed", True),
        ("2026-01-04T02:00:00Z", "completed", False),
        ("2026-01-02T00:00:00Z", "not_planned", False),
        ("2026-01-02T00:00:00Z", "duplicate", False),
    ],
)
def test_a_closing_by_hand_names_the_merged_pull_request_that_is_linked(
    github: FakeGitHub, own: OwnCommentRule, merged: str, reason: str, *, is_told: bool
) -> None:
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    pull = github.add_pull("hubot", "Fix", at="2026-01-01T01:00:00Z")
    github.merge_pull(pull, "hubot", at=merged)
    github.close(number, "octocat", reason, at="2026-01-04T00:00:00Z")
    link(github, number, pull)
    assert closer(threads(by_graphql(github, own)), number) == (pull if is_told else None)


def test_a_pull_request_that_says_that_it_closes_an_issue_is_linked(github: FakeGitHub, own: OwnCommentRule) -> None:
    """Beyond the first three linked ones, the references tell."""
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    pulls = [github.add_pull("hubot", "Fix", f"Fixes #{number}", at="2026-01-01T01:00:00Z") for _ in range(5)]
    github.merge_pull(pulls[4], "hubot", at="2026-01-02T00:00:00Z")
    github.close(number, "octocat", at="2026-01-04T00:00:00Z")
    link(github, number, *pulls)
    assert closer(threads(by_graphql(github, own)), number) == pulls[4]


def test_a_fix_from_before_the_issue_was_opened_again_is_none(github: FakeGitHub, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    pull = github.add_pull("hubot", "Fix", at="2026-01-01T01:00:00Z", closes=[number])
    github.merge_pull(pull, "hubot", at="2026-01-02T00:00:00Z")
    github.reopen(number, "octocat", at="2026-01-03T00:00:00Z")
    github.close(number, "octocat", at="2026-01-04T00:00:00Z")
    found = threads(by_graphql(github, own))
    assert closer(found, number) is None
    assert [event.source for event in found[number].events if event.name == "closed"] == [pull, None]


def test_a_closing_that_names_a_commit_keeps_it(github: FakeGitHub, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash")
    pull = github.add_pull("hubot", "Fix")
    github.merge_pull(pull, "hubot")
    github.close(number, "octocat", commit="b" * 40)
    link(github, number, pull)
    found = threads(by_graphql(github, own))
    assert closer(found, number) is None
    assert outcome(found[number]).fix == "b" * 40


def test_a_pull_request_of_another_repository_is_not_taken_for_one_of_this(
    github: FakeGitHub, own: OwnCommentRule
) -> None:
    number = github.open_issue("octocat", "Crash")
    other = github.add_project("octocat/other")
    pull = other.add_pull("hubot", "Fix")
    github.close(number, "octocat")
    github.issue(number).events[-1].other = other.issue(pull)
    assert closer(threads(by_graphql(github, own)), number) is None


def test_a_token_that_may_not_read_pull_requests_reads_the_issues(github: FakeGitHub, own: OwnCommentRule) -> None:
    github.add_token("weak", BOT, {"issues": "write", "contents": "write"})
    for _ in range(PER_PAGE + 1):
        github.close(github.open_issue("octocat", "Crash"), "octocat")
    history = GraphQLHistory(github.url, "weak", REPOSITORY, own, GitHubClient(github.url, "weak", REPOSITORY))
    assert len(threads(history)) == PER_PAGE + 1
    assert history.requests == 3


def link(github: FakeGitHub, number: int, *pulls: int) -> None:
    """Link the issue with pull requests by hand, as its page allows."""
    for each in pulls:
        pull = github.issue(each).pull
        assert pull is not None
        pull.closes.append(number)


# Its length


@pytest.mark.slow
def test_threads_with_more_than_a_hundred_comments_are_whole(
    github: FakeGitHub, own: OwnCommentRule, make: Make
) -> None:
    number = github.open_issue("octocat", "Crash")
    for count in range(130):
        github.comment(number, "hubot" if count else BOT, f"{count}" if count else OURS)
    github.close(number, "octocat")
    (thread,) = threads(make(github, own)).values()
    assert [comment.text for comment in thread.comments] == [str(count) for count in range(1, 130)]
    assert [event.name for event in thread.events] == ["closed"]


def test_more_issues_than_a_page_come_oldest_change_first(github: FakeGitHub, own: OwnCommentRule, make: Make) -> None:
    for count in range(2 * PER_PAGE + 20):
        github.open_issue("octocat", "Crash", at=f"2026-01-01T{count // 60:02d}:{count % 60:02d}:00Z")
    batches = list(make(github, own).since(None))
    found = dict.fromkeys(record.id for news in batches for record in news.records)
    assert list(found) == [*range(1, 2 * PER_PAGE + 21)]
    assert [news.complete for news in batches] == [False] * (len(batches) - 1) + [True]
    cursors = [news.cursor for news in batches if news.cursor]
    assert cursors == sorted(cursors)
    assert cursors[-1] == parse_time("2026-01-01T01:59:00Z")


def test_more_changes_in_one_second_than_a_page_holds_are_all_read(
    github: FakeGitHub, own: OwnCommentRule, make: Make
) -> None:
    for _ in range(350):
        github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    assert len(threads(make(github, own))) == 350


@pytest.mark.slow
def test_more_than_a_hundred_pages_are_read_on_by_the_cursor_of_the_link(own: OwnCommentRule) -> None:
    """GitHub takes no number of a page above 100; so much can change in one second when a label is renamed.

    That the pages are as GitHub describes them is seen by the other tests: of 10,000 issues it takes long.
    """
    with FakeGitHub(validate=False) as github:
        for _ in range(10_150):
            github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
        assert len(threads(by_rest(github, own))) == 10_150


def test_an_answer_that_lacks_a_part_costs_that_part_only(github: FakeGitHub, own: OwnCommentRule) -> None:
    for count in range(12):
        github.comment(github.open_issue("octocat", f"Crash {count}"), "hubot", "Me too")
    github.faults.add("POST /graphql", "drop", len(SIZES))
    history = by_graphql(github, own)
    assert plain(threads(history)) == plain(as_it_was(github))
    assert history.requests == len(SIZES) + 3


def test_what_is_too_much_for_any_answer_is_read_one_by_one(github: FakeGitHub, own: OwnCommentRule) -> None:
    github.comment(github.open_issue("octocat", "Crash"), BOT, OURS)
    github.comment(github.open_issue("octocat", "Hang"), "hubot", "Me too")
    github.faults.add("POST /graphql", "drop", len(SIZES))
    github.faults.add("GET /repos/*/issues/1", "410")
    (news,) = by_graphql(github, own).since(None)
    gone, read = news.records
    assert isinstance(gone, Tombstone)
    assert isinstance(read, Thread)
    assert gone.revised_at > read.revised_at, "it was there when it was listed"
    assert [comment.text for comment in read.comments] == ["Me too"]
    assert (news.listed, dict(news.unread)) == ({1, 2}, {})


def long_thread(github: FakeGitHub) -> int:
    number = github.open_issue("octocat", "Long", at="2026-01-01T00:00:00Z")
    for _ in range(130):
        github.comment(number, "hubot", "Me too")
    return number


@pytest.mark.slow
def test_a_server_without_time_for_fifty_is_asked_for_fewer_from_then_on(
    github: FakeGitHub, own: OwnCommentRule
) -> None:
    for _ in range(15 * 14):
        github.open_issue("octocat", "Crash")
    asked: list[int] = []

    def answer(_: str, path: str, headers: dict[str, str], body: bytes) -> Sent:
        asked.append(json.loads(body)["variables"]["first"])
        if asked[-1] > SIZES[1]:
            return Sent(0, {}, b"", dropped=True)
        sent = httpx.post(f"{github.url}{path}", content=body, headers={"Authorization": headers["Authorization"]})
        return Sent(sent.status_code, {"Content-Type": "application/json"}, sent.content)

    listener = Listener(answer)
    try:
        assert len(threads(by_graphql(github, own, listener.url))) == 15 * 14
    finally:
        listener.stop()
    assert asked == [50, *[15] * 10, 50, *[15] * 4]


@pytest.mark.parametrize("too_much", [False, True])
def test_a_thread_that_cannot_be_seen_costs_no_other(
    github: FakeGitHub, own: OwnCommentRule, make: Make, *, too_much: bool
) -> None:
    number, other = long_thread(github), github.open_issue("octocat", "Short")
    github.close(number, "octocat")
    github.faults.add("GET */issues/1/timeline", "404", None)
    github.faults.add("POST /graphql", "drop", len(SIZES) if too_much else 0)
    (news,) = make(github, own).since(None)
    assert [record.id for record in news.records] == [other]
    assert (news.listed, news.unread) == ({number, other}, {number: parse_time("2026-01-01T00:00:00Z")})
    assert (news.cursor, news.complete) == (parse_time(github.issue(number).updated_at), True)


def test_a_thread_that_went_while_it_was_read_is_a_tombstone(
    github: FakeGitHub, own: OwnCommentRule, make: Make
) -> None:
    number, other = long_thread(github), github.open_issue("octocat", "Short")
    github.faults.add("GET */issues/1/timeline", "410", None)
    (news,) = make(github, own).since(None)
    assert {record.id: type(record) for record in news.records} == {number: Tombstone, other: Thread}


def test_issues_that_are_switched_off_are_no_empty_history(github: FakeGitHub, own: OwnCommentRule, make: Make) -> None:
    github.open_issue("octocat", "Crash")
    github.switch_issues(on=False)
    with pytest.raises(IssuesOff, match="switched off"):
        list(make(github, own).since(None))


def test_issues_that_are_switched_off_while_threads_are_read_end_it(
    github: FakeGitHub, own: OwnCommentRule, make: Make
) -> None:
    long_thread(github)
    github.faults.add("GET */issues/1/timeline", "issues-off", None)
    with pytest.raises(IssuesOff, match="switched off"):
        list(make(github, own).since(None))


def test_pull_requests_are_no_part_of_it(github: FakeGitHub, own: OwnCommentRule, make: Make) -> None:
    github.add_pull("hubot", "Fix")
    number = github.open_issue("octocat", "Crash")
    assert list(threads(make(github, own))) == [number]


def test_only_what_changed_since_is_read(github: FakeGitHub, own: OwnCommentRule, make: Make) -> None:
    github.open_issue("octocat", "Old", at="2025-01-01T00:00:00Z")
    number = github.open_issue("octocat", "New", at="2026-01-01T00:00:00Z")
    assert list(threads(make(github, own), parse_time("2025-06-01T00:00:00Z"))) == [number]


def test_an_empty_repository_has_no_history(github: FakeGitHub, own: OwnCommentRule, make: Make) -> None:
    (news,) = make(github, own).since(None)
    assert (news.records, news.cursor, news.complete) == ((), None, True)


def test_fifty_issues_cost_one_request(github: FakeGitHub, own: OwnCommentRule) -> None:
    for _ in range(PER_PAGE):
        github.comment(github.open_issue("octocat", "Crash"), "hubot", "Me too")
    threads(by_graphql(github, own))
    assert github.reads == 1


def test_a_companys_own_server_has_its_graphql_elsewhere(github: FakeGitHub, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash")
    for url in (github.enterprise_url, f"{github.enterprise_url}/", f"{github.url}/"):
        assert list(threads(by_graphql(github, own, url))) == [number]


@pytest.mark.parametrize(
    ("kind", "meaning"),
    [("401", Unauthorised), ("primary403", RateLimited), ("secondary403", RateLimited), ("429", RateLimited),
     ("limit200", RateLimited), ("secondary200", RateLimited), ("404", NoGraphQL), ("drop", Unreachable)],
)  # fmt: skip
def test_what_a_refusal_means_and_that_it_is_not_waited_for(
    github: FakeGitHub, own: OwnCommentRule, kind: str, meaning: type[ForgeError]
) -> None:
    github.faults.add("POST /graphql", kind, None, seconds=3600)
    started = time.monotonic()
    with pytest.raises(meaning) as refused:
        threads(by_graphql(github, own))
    assert "\n" not in str(refused.value)
    assert time.monotonic() - started < 5


def errors(kind: str, words: str, **data: object) -> dict[str, object]:
    return {"errors": [{"type": kind, "message": words}], "data": data}


@pytest.mark.parametrize(
    ("status", "headers", "answer", "meaning", "words"),
    [
        (200, {}, errors("FORBIDDEN", "Your organisation has a list of addresses"), NotPermitted, "issues: write"),
        (200, {"Retry-After": "60"}, errors("", "Later, please"), RateLimited, "secondary"),
        (403, {}, {"message": "You have triggered an abuse detection mechanism"}, RateLimited, "secondary"),
        (403, {}, "a page", NotPermitted, "issues: write"),
        (404, {}, "a page", NoGraphQL, "404"),
        (422, {}, {"message": "no"}, Unreachable, "continues from here"),
        (200, {}, errors("NOT_FOUND", "No such repository", repository=None), NotPermitted, "cannot see"),
        (
            200,
            {},
            errors("NOT_FOUND", "No such pull", repository={"issues": {"nodes": [None]}}),
            Unreachable,
            "No such",
        ),
        (200, {}, [], Unreachable, "no readable error"),
        (200, {}, "no JSON", Unreachable, "could not be reached"),
    ],
)
def test_what_graphql_says_in_words_means_the_same_as_in_the_rest_api(
    own: OwnCommentRule, status: int, headers: dict[str, str], answer: object, meaning: type[ForgeError], words: str
) -> None:
    told = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
    listener = Listener(lambda *_: Sent(status, {"Content-Type": "application/json", **headers}, told))
    client = GitHubClient(listener.url, "token", REPOSITORY)
    try:
        with pytest.raises(meaning, match=words):
            threads(GraphQLHistory(listener.url, "token", REPOSITORY, own, client))
    finally:
        listener.stop()


def test_a_fault_of_the_server_is_tried_again(
    github: FakeGitHub, own: OwnCommentRule, capfd: pytest.CaptureFixture[str]
) -> None:
    github.open_issue("octocat", "Crash")
    github.faults.add("POST /graphql", "5xx")
    assert len(threads(by_graphql(github, own))) == 1
    assert "Traceback" not in capfd.readouterr().err


def test_a_limit_that_is_used_up_keeps_what_came_before_it(github: FakeGitHub, own: OwnCommentRule) -> None:
    for _ in range(2 * PER_PAGE):
        github.open_issue("octocat", "Crash")
    batches = by_graphql(github, own).since(None)
    assert len(next(batches).records) == PER_PAGE
    github.limits.set(0, resource="graphql")
    with pytest.raises(RateLimited, match="the next run continues"):
        next(batches)


def test_a_token_that_may_not_read_issues_is_told_so(github: FakeGitHub, own: OwnCommentRule) -> None:
    github.add_token("weak", BOT, {"contents": "write"})
    history = GraphQLHistory(github.url, "weak", REPOSITORY, own, GitHubClient(github.url, "weak", REPOSITORY))
    with pytest.raises(NotPermitted, match="issues: write"):
        threads(history)


def test_a_repository_out_of_sight_is_told_so(github: FakeGitHub, own: OwnCommentRule) -> None:
    history = GraphQLHistory(github.url, github.token, "octocat/absent", own, GitHubClient(github.url, "x", REPOSITORY))
    with pytest.raises(ForgeError, match="cannot see"):
        threads(history)


# Before a reading


def two_days(github: FakeGitHub) -> None:
    """A page and a half of issues; the first was changed last."""
    for count in range(PER_PAGE + 20):
        github.open_issue("octocat", "Crash", at=f"2026-01-01T{count // 60:02d}:{count % 60:02d}:00Z")
    github.comment(1, "hubot", "Me too", at="2026-01-02T00:00:00Z")


def test_a_glimpse_tells_what_a_reading_would_be_about(github: FakeGitHub, own: OwnCommentRule) -> None:
    two_days(github)
    told = by_graphql(github, own).glimpse(parse_time("2026-01-01T01:00:00Z"))
    assert told[:4] == (REPOSITORY, False, PER_PAGE + 20, 11)
    assert told.rate is not None
    assert told.rate.limit - told.rate.left == 1
    github.switch_issues(on=False)
    with pytest.raises(IssuesOff):
        by_graphql(github, own).glimpse(None)


def test_a_glimpse_of_what_cannot_be_seen_is_told_so(github: FakeGitHub, own: OwnCommentRule) -> None:
    history = GraphQLHistory(github.url, github.token, "octocat/absent", own, GitHubClient(github.url, "x", REPOSITORY))
    with pytest.raises(RepositoryNotVisible):
        history.glimpse(None)
