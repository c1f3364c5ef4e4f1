"""History by GraphQL, by REST and from the fake's archive: the same threads all three times."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from bot.domain.thread import Kind, OutcomeKind, Thread, ThreadId, TimelineEvent, Tombstone
from bot.domain.thread_json import parse_time, thread_from_archive
from bot.github.client import GitHubClient
from bot.github.errors import (
    ForgeError,
    IssuesOff,
    NoGraphQL,
    NotPermitted,
    RateLimited,
    RepositoryNotVisible,
    Unauthorised,
    Unreachable,
)
from bot.github.history import (
    PAGE_SIZES,
    PER_PAGE,
    GraphQLHistory,
    HistorySource,
    RestHistory,
)
from bot.github.threads import OwnCommentRule
from bot.github.transport import RETRY_DELAYS
from bot.reading.endings.outcome import outcome
from tests.fakes.archive import read_archive
from tests.fakes.github import FakeGitHub
from tests.fakes.httpd import Listener
from tests.fakes.service import SentReply
from tests.github.conftest import REPOSITORY, ScriptedServer

SAMPLE = Path(__file__).parents[2] / "sample" / "history.jsonl"
BOT = "github-actions[bot]"
OUR_COMMENT = "<!-- precedent:v1 id=action -->\nSeen before"
MakeHistory = Callable[[FakeGitHub, OwnCommentRule], HistorySource]


def by_graphql(github: FakeGitHub, own: OwnCommentRule, url: str = "") -> GraphQLHistory:
    return GraphQLHistory(REPOSITORY, own, GitHubClient(url or github.url, github.token, REPOSITORY, write_gap=0))


def by_rest(github: FakeGitHub, own: OwnCommentRule) -> RestHistory:
    return RestHistory(own, GitHubClient(github.url, github.token, REPOSITORY))


def threads(history: HistorySource, since: datetime | None = None) -> dict[ThreadId, Thread]:
    by_id: dict[ThreadId, Thread] = {}
    for updates in history.since(since):
        by_id |= {record.id: record for record in updates.records if isinstance(record, Thread)}
    return by_id


def archived_threads(github: FakeGitHub) -> dict[ThreadId, Thread]:
    """The fake's issues as archived, without comments of ours."""
    by_id = {}
    for thread in github.export_archive():
        if thread.get("kind") != "pull":
            comments = [comment for comment in thread["comments"] if comment["body"] != OUR_COMMENT]
            by_id[thread["id"]] = thread_from_archive(thread | {"comments": comments})
    return by_id


def comparable(by_id: dict[ThreadId, Thread]) -> dict[ThreadId, tuple[object, ...]]:
    """The parts of threads that all three have in common.

    REST names neither the original of a duplicate nor the pull request that closed an issue.
    """
    return {
        key: (
            (t.title, t.body, t.author, t.role, t.is_bot, t.state, t.state_reason, t.closed_at, t.closed_by, t.locked),
            (t.labels, t.created_at, t.updated_at, t.comments),
            {(e.name, e.at, e.actor, *source(e)) for e in t.events if "duplicate" not in e.name},
        )
        for key, t in by_id.items()
    }


def source(event: TimelineEvent) -> tuple[ThreadId | None, Kind | None]:
    return (None, None) if event.name == "closed" else (event.source, event.source_kind)


@pytest.fixture(params=[by_graphql, by_rest])
def make_history(request: pytest.FixtureRequest) -> MakeHistory:
    factory: MakeHistory = request.param
    return factory


@pytest.mark.slow
def test_the_shipped_sample_is_read_as_archived(
    github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory
) -> None:
    github.load_archive(read_archive(SAMPLE))
    assert comparable(threads(make_history(github, own))) == comparable(archived_threads(github))


def test_graphql_and_rest_read_the_same_threads_whatever_happened_to_them(
    github: FakeGitHub, own: OwnCommentRule
) -> None:
    github.set_permission("octocat", "write")
    first = github.open_issue(None, "Crash \ud800", None, labels=[f"label {count}" for count in range(30)])
    second = github.open_issue("dependabot[bot]", "Hang", f"Like #{first}")
    github.comment(first, None, "Me too")
    github.comment(first, "stale[bot]", "No activity")
    github.comment(first, BOT, OUR_COMMENT)
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
    assert comparable(graph) == comparable(rest) == comparable(archived_threads(github))
    assert graph[first].closed_by == "stale[bot]"
    assert [event.source for event in graph[fourth].events if "duplicate" in event.name] == [second]


# What closed an issue


def closing_pull(by_id: dict[ThreadId, Thread], number: int) -> ThreadId | None:
    """The pull request named by the last closing."""
    last = [event for event in by_id[number].events if event.name == "closed"][-1]
    assert last.source is None or last.source_kind is Kind.PULL
    return last.source


def test_a_person_with_the_name_of_our_app_is_not_us(
    github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory
) -> None:
    """GraphQL gives both the same login."""
    person = own.login.removesuffix("[bot]")
    number = github.open_issue("octocat", "Title", "Text")
    github.comment(number, own.login, f"{own.marker}\nOurs.")
    github.comment(number, person, f"{own.marker}\nTheirs.")
    (thread,) = threads(make_history(github, own)).values()
    assert [(comment.author, comment.is_bot, comment.text[-7:]) for comment in thread.comments] == [
        (person, False, "Theirs.")
    ]


def test_an_issue_closed_by_a_pull_request_names_it(github: FakeGitHub, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash")
    pull = github.add_pull("hubot", "Fix", closes=[number])
    github.merge_pull(pull, "hubot")
    by_id = threads(by_graphql(github, own))
    assert closing_pull(by_id, number) == pull
    conclusion = outcome(by_id[number])
    assert (conclusion.kind, conclusion.fix) == (OutcomeKind.FIXED, f"#{pull}")


@pytest.mark.parametrize(
    ("merged", "reason", "is_named"),
    [
        ("2026-01-02T00:00:00Z", "completed", True),
        ("2026-01-04T00:00:00Z", "completed", True),
        ("2026-01-04T00:30:00Z", "completed", False),
        ("2026-01-02T00:00:00Z", "not_planned", False),
        ("2026-01-02T00:00:00Z", "duplicate", False),
    ],
)
def test_an_issue_closed_by_hand_names_its_linked_merged_pull_request(
    github: FakeGitHub, own: OwnCommentRule, merged: str, reason: str, *, is_named: bool
) -> None:
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    pull = github.add_pull("hubot", "Fix", at="2026-01-01T01:00:00Z")
    github.merge_pull(pull, "hubot", at=merged)
    github.close(number, "octocat", reason, at="2026-01-04T00:00:00Z")
    link_pulls(github, number, pull)
    assert closing_pull(threads(by_graphql(github, own)), number) == (pull if is_named else None)


def test_a_pull_request_that_says_it_closes_an_issue_counts_as_linked(github: FakeGitHub, own: OwnCommentRule) -> None:
    """Beyond the first three linked pull requests, cross-references decide."""
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    pulls = [github.add_pull("hubot", "Fix", f"Fixes #{number}", at="2026-01-01T01:00:00Z") for _ in range(5)]
    github.merge_pull(pulls[4], "hubot", at="2026-01-02T00:00:00Z")
    github.close(number, "octocat", at="2026-01-04T00:00:00Z")
    link_pulls(github, number, *pulls)
    assert closing_pull(threads(by_graphql(github, own)), number) == pulls[4]


def test_a_fix_from_before_a_reopening_does_not_count(github: FakeGitHub, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    pull = github.add_pull("hubot", "Fix", at="2026-01-01T01:00:00Z", closes=[number])
    github.merge_pull(pull, "hubot", at="2026-01-02T00:00:00Z")
    github.reopen(number, "octocat", at="2026-01-03T00:00:00Z")
    github.close(number, "octocat", at="2026-01-04T00:00:00Z")
    by_id = threads(by_graphql(github, own))
    assert closing_pull(by_id, number) is None
    assert [event.source for event in by_id[number].events if event.name == "closed"] == [pull, None]


def test_an_issue_closed_by_a_commit_keeps_the_commit(github: FakeGitHub, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash")
    pull = github.add_pull("hubot", "Fix")
    github.merge_pull(pull, "hubot")
    github.close(number, "octocat", commit="b" * 40)
    link_pulls(github, number, pull)
    by_id = threads(by_graphql(github, own))
    assert closing_pull(by_id, number) is None
    assert outcome(by_id[number]).fix == "b" * 40


def test_a_pull_request_of_another_repository_is_not_mistaken_for_our_own(
    github: FakeGitHub, own: OwnCommentRule
) -> None:
    number = github.open_issue("octocat", "Crash")
    other = github.add_project("octocat/other")
    pull = other.add_pull("hubot", "Fix")
    github.close(number, "octocat")
    github.issue(number).events[-1].other = other.issue(pull)
    assert closing_pull(threads(by_graphql(github, own)), number) is None


def test_a_token_without_pull_requests_permission_reads_the_issues(github: FakeGitHub, own: OwnCommentRule) -> None:
    github.add_token("weak", BOT, {"issues": "write", "contents": "write"})
    for _ in range(PER_PAGE + 1):
        github.close(github.open_issue("octocat", "Crash"), "octocat")
    client = GitHubClient(github.url, "weak", REPOSITORY)
    assert len(threads(GraphQLHistory(REPOSITORY, own, client))) == PER_PAGE + 1
    assert (client.queries, client.lacking) == (3, ())


def link_pulls(github: FakeGitHub, number: int, *pulls: int) -> None:
    """Link pull requests to the issue by hand, as GitHub's page allows."""
    for pull_number in pulls:
        pull = github.issue(pull_number).pull
        assert pull is not None
        pull.closes.append(number)


# Long histories


@pytest.mark.slow
def test_threads_with_more_than_a_hundred_comments_are_read_completely(
    github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory
) -> None:
    number = github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    pull = github.add_pull("hubot", "Fix", at="2026-01-01T01:00:00Z", closes=[number])
    github.merge_pull(pull, "hubot", at="2026-01-02T00:00:00Z")
    for count in range(130):
        text = f"{count}" if count else OUR_COMMENT
        github.comment(number, "hubot" if count else BOT, text, at="2026-01-03T00:00:00Z")
    by_id = threads(make_history(github, own))
    assert [comment.text for comment in by_id[number].comments] == [str(count) for count in range(1, 130)]
    assert {event.name for event in by_id[number].events} == {"cross-referenced", "closed"}
    assert make_history is by_rest or closing_pull(by_id, number) == pull


def test_issues_on_several_pages_come_oldest_change_first(
    github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory
) -> None:
    for count in range(2 * PER_PAGE + 20):
        github.open_issue("octocat", "Crash", at=f"2026-01-01T{count // 60:02d}:{count % 60:02d}:00Z")
    batches = list(make_history(github, own).since(None))
    numbers = dict.fromkeys(record.id for updates in batches for record in updates.records)
    assert list(numbers) == [*range(1, 2 * PER_PAGE + 21)]
    assert [updates.complete for updates in batches] == [False] * (len(batches) - 1) + [True]
    cursors = [updates.cursor for updates in batches if updates.cursor]
    assert cursors == sorted(cursors)
    assert cursors[-1] == parse_time("2026-01-01T01:59:00Z")


def test_all_changes_of_one_second_are_read_even_if_they_exceed_a_page(
    github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory
) -> None:
    for _ in range(350):
        github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
    assert len(threads(make_history(github, own))) == 350


@pytest.mark.night
@pytest.mark.slow
def test_more_than_a_hundred_pages_are_read_by_following_the_link_cursor(own: OwnCommentRule) -> None:
    """GitHub accepts no page number above 100; so much can change in one second when a label is renamed.

    Other tests check the pages against GitHub's schema: for 10,000 issues that takes long.
    """
    with FakeGitHub(validate=False) as github:
        for _ in range(10_150):
            github.open_issue("octocat", "Crash", at="2026-01-01T00:00:00Z")
        assert len(threads(by_rest(github, own))) == 10_150


def test_a_dropped_response_does_not_cost_the_rest_of_the_history(github: FakeGitHub, own: OwnCommentRule) -> None:
    for count in range(12):
        github.comment(github.open_issue("octocat", f"Crash {count}"), "hubot", "Me too")
    github.faults.add("POST /graphql", "drop", len(PAGE_SIZES))
    github.mark()
    assert comparable(threads(by_graphql(github, own))) == comparable(archived_threads(github))
    assert sum("graphql" in request.path for request in github.recent) == len(PAGE_SIZES) + 3


def test_threads_too_large_for_any_page_are_read_one_by_one(github: FakeGitHub, own: OwnCommentRule) -> None:
    github.comment(github.open_issue("octocat", "Crash"), BOT, OUR_COMMENT)
    github.comment(github.open_issue("octocat", "Hang"), "hubot", "Me too")
    github.faults.add("POST /graphql", "drop", len(PAGE_SIZES))
    github.faults.add("GET /repos/*/issues/1", "410")
    (updates,) = by_graphql(github, own).since(None)
    tombstone, thread = updates.records
    assert isinstance(tombstone, Tombstone)
    assert isinstance(thread, Thread)
    assert tombstone.revised_at > thread.revised_at, "it was there when it was listed"
    assert [comment.text for comment in thread.comments] == ["Me too"]
    assert (updates.listed, dict(updates.unread)) == ({1, 2}, {})


def long_thread(github: FakeGitHub) -> int:
    number = github.open_issue("octocat", "Long", at="2026-01-01T00:00:00Z")
    for _ in range(130):
        github.comment(number, "hubot", "Me too")
    return number


@pytest.mark.slow
def test_a_server_too_slow_for_large_pages_is_asked_for_smaller_ones(github: FakeGitHub, own: OwnCommentRule) -> None:
    for _ in range(15 * 14):
        github.open_issue("octocat", "Crash")
    page_sizes: list[int] = []

    def answer(_: str, path: str, headers: dict[str, str], body: bytes) -> SentReply:
        page_sizes.append(json.loads(body)["variables"]["first"])
        if page_sizes[-1] > PAGE_SIZES[1]:
            return SentReply(0, {}, b"", dropped=True)
        sent = httpx.post(f"{github.url}{path}", content=body, headers={"Authorization": headers["Authorization"]})
        return SentReply(sent.status_code, {"Content-Type": "application/json"}, sent.content)

    listener = Listener(answer)
    try:
        assert len(threads(by_graphql(github, own, listener.url))) == 15 * 14
    finally:
        listener.stop()
    assert page_sizes == [50, *[15] * 10, 50, *[15] * 4]


@pytest.mark.parametrize("too_much", [False, True])
def test_an_invisible_thread_costs_no_other_thread(
    github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory, *, too_much: bool
) -> None:
    number, other = long_thread(github), github.open_issue("octocat", "Short")
    github.close(number, "octocat")
    github.faults.add("GET */issues/1/timeline", "404", None)
    github.faults.add("POST /graphql", "drop", len(PAGE_SIZES) if too_much else 0)
    (updates,) = make_history(github, own).since(None)
    assert [record.id for record in updates.records] == [other]
    assert (updates.listed, updates.unread) == ({number, other}, {number: parse_time("2026-01-01T00:00:00Z")})
    assert (updates.cursor, updates.complete) == (parse_time(github.issue(number).updated_at), True)


def test_a_thread_deleted_while_it_is_read_becomes_a_tombstone(
    github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory
) -> None:
    number, other = long_thread(github), github.open_issue("octocat", "Short")
    github.faults.add("GET */issues/1/timeline", "410", None)
    (updates,) = make_history(github, own).since(None)
    assert {record.id: type(record) for record in updates.records} == {number: Tombstone, other: Thread}


@pytest.mark.parametrize("while_read", [False, True])
def test_switched_off_issues_are_not_mistaken_for_an_empty_history(
    github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory, *, while_read: bool
) -> None:
    long_thread(github)
    if while_read:
        github.faults.add("GET */issues/1/timeline", "issues-off", None)
    else:
        github.switch_issues(on=False)
    with pytest.raises(IssuesOff, match="switched off"):
        list(make_history(github, own).since(None))


def test_only_issues_changed_since_the_given_time_are_read(
    github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory
) -> None:
    github.open_issue("octocat", "Old", at="2025-01-01T00:00:00Z")
    github.add_pull("hubot", "Fix", at="2026-01-01T00:00:00Z")
    number = github.open_issue("octocat", "New", at="2026-01-01T00:00:00Z")
    assert list(threads(make_history(github, own), parse_time("2025-06-01T00:00:00Z"))) == [number]


def test_an_empty_repository_has_no_history(github: FakeGitHub, own: OwnCommentRule, make_history: MakeHistory) -> None:
    (updates,) = make_history(github, own).since(None)
    assert (updates.records, updates.cursor, updates.complete) == ((), None, True)


def test_fifty_issues_cost_one_request(github: FakeGitHub, own: OwnCommentRule) -> None:
    for _ in range(PER_PAGE):
        github.comment(github.open_issue("octocat", "Crash"), "hubot", "Me too")
    threads(by_graphql(github, own))
    assert github.reads == 1


def test_an_enterprise_server_has_its_own_graphql_url(github: FakeGitHub, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash")
    for url in (github.enterprise_url, f"{github.enterprise_url}/", f"{github.url}/"):
        assert list(threads(by_graphql(github, own, url))) == [number]


@pytest.mark.parametrize(
    ("kind", "meaning"),
    [("401", Unauthorised), ("primary403", RateLimited), ("secondary403", RateLimited), ("429", RateLimited),
     ("limit200", RateLimited), ("secondary200", RateLimited), ("404", NoGraphQL), ("drop", Unreachable)],
)  # fmt: skip
def test_each_refusal_has_a_meaning_and_is_not_repeated_later(
    github: FakeGitHub, own: OwnCommentRule, kind: str, meaning: type[ForgeError]
) -> None:
    github.faults.add("POST /graphql", kind, None, seconds=3600)
    with pytest.raises(meaning) as refused:
        threads(by_graphql(github, own))
    assert "\n" not in str(refused.value)
    assert len(github.requests) == (len(PAGE_SIZES) + 1 + len(RETRY_DELAYS) if kind == "drop" else 1)


def reply(answer: object, status: int = 200, **headers: str) -> SentReply:
    body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
    return SentReply(status, {"Content-Type": "application/json", **headers}, body)


def error_response(kind: str, words: str, **data: object) -> dict[str, object]:
    return {"errors": [{"type": kind, "message": words}], "data": data}


@pytest.mark.parametrize(
    ("sent", "meaning", "words"),
    [
        (reply(error_response("FORBIDDEN", "Your organisation has a list")), NotPermitted, "issues: write"),
        (reply(error_response("", "Later, please"), **{"Retry-After": "60"}), RateLimited, "secondary"),
        (reply({"message": "You have triggered an abuse detection mechanism"}, 403), RateLimited, "secondary"),
        (reply("a page", 403), NotPermitted, "issues: write"),
        (reply("a page", 404), NoGraphQL, "404"),
        (reply({"message": "no"}, 422), Unreachable, "continues from here"),
        (reply(error_response("NOT_FOUND", "No such repository", repository=None)), NotPermitted, "cannot see"),
        (reply(error_response("NOT_FOUND", "No", repository={"issues": {"nodes": [None]}})), Unreachable, "No"),
        (reply([]), Unreachable, "no readable error"),
        (reply("no JSON"), Unreachable, "not JSON"),
    ],
)
def test_graphql_errors_mean_the_same_as_in_the_rest_api(
    own: OwnCommentRule, scripted_server: ScriptedServer, sent: SentReply, meaning: type[ForgeError], words: str
) -> None:
    scripted_server.answers.append(sent)
    with pytest.raises(meaning, match=words):
        threads(GraphQLHistory(REPOSITORY, own, scripted_server.client()))


def test_a_server_error_is_retried(github: FakeGitHub, own: OwnCommentRule, capfd: pytest.CaptureFixture[str]) -> None:
    github.open_issue("octocat", "Crash")
    github.faults.add("POST /graphql", "5xx")
    assert len(threads(by_graphql(github, own))) == 1
    assert "Traceback" not in capfd.readouterr().err


def test_an_exhausted_limit_keeps_the_pages_read_before(github: FakeGitHub, own: OwnCommentRule) -> None:
    for _ in range(2 * PER_PAGE):
        github.open_issue("octocat", "Crash")
    batches = by_graphql(github, own).since(None)
    assert len(next(batches).records) == PER_PAGE
    github.limits.set(0, resource="graphql")
    with pytest.raises(RateLimited, match="the next run continues"):
        next(batches)


@pytest.mark.parametrize(
    ("name", "permissions", "meaning", "words"),
    [
        (REPOSITORY, {"contents": "write"}, NotPermitted, "issues: write"),
        ("octocat/absent", None, RepositoryNotVisible, "cannot see"),
    ],
)
def test_an_invisible_repository_and_a_missing_permission_are_reported(
    github: FakeGitHub,
    own: OwnCommentRule,
    name: str,
    permissions: dict[str, str] | None,
    meaning: type[ForgeError],
    words: str,
) -> None:
    github.world.tokens[github.token].permissions = permissions
    history = GraphQLHistory(name, own, GitHubClient(github.url, github.token, REPOSITORY))
    for read in (lambda: threads(history), lambda: history.glimpse(None)):
        with pytest.raises(meaning, match=words):
            read()


# Glimpses


def test_a_glimpse_shows_how_much_a_reading_would_cover(github: FakeGitHub, own: OwnCommentRule) -> None:
    for count in range(PER_PAGE + 20):
        github.open_issue("octocat", "Crash", at=f"2026-01-01T{count // 60:02d}:{count % 60:02d}:00Z")
    github.comment(1, "hubot", "Me too", at="2026-01-02T00:00:00Z")
    glimpse = by_graphql(github, own).glimpse(parse_time("2026-01-01T01:00:00Z"))
    assert glimpse[:4] == (REPOSITORY, False, PER_PAGE + 20, 11)
    assert glimpse.rate is not None
    assert glimpse.rate.limit - glimpse.rate.left == 1
    github.switch_issues(on=False)
    with pytest.raises(IssuesOff):
        by_graphql(github, own).glimpse(None)


@pytest.mark.parametrize("kind", ["429", "secondary403", "401"])
def test_a_limit_that_any_request_met_stops_the_history_too(github: FakeGitHub, own: OwnCommentRule, kind: str) -> None:
    number = github.open_issue("octocat", "Crash")
    client = GitHubClient(github.url, github.token, REPOSITORY)
    history = GraphQLHistory(REPOSITORY, own, client)
    github.faults.add("GET *", kind)
    with pytest.raises(ForgeError) as met:
        client.issue(number)
    github.mark()
    with pytest.raises(type(met.value)):
        threads(history)
    assert github.recent == []
