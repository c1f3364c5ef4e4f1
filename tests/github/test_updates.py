"""What changed since the last look, read with few requests, whatever was lost, repeated or deleted in between."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.thread import Record, Thread, ThreadId, Tombstone
from bot.domain.thread_json import thread_from_archive
from bot.github.client import GitHubClient
from bot.github.errors import Gone
from bot.github.history import GraphQLHistory
from bot.github.threads import OwnCommentRule
from bot.github.updates import OVERLAP, KnownIssues, Updates, catch_up, comments_of, read_thread, tombstone
from tests.fakes.github import FakeGitHub
from tests.github.conftest import REPOSITORY

BOT = "github-actions[bot]"
OURS = "<!-- precedent:v1 id=action -->\nSeen before"
MORNING = datetime(2026, 1, 5, 8, tzinfo=UTC)


class Watcher:
    """Looks again and again, and remembers what it saw as memory does."""

    def __init__(self, client: GitHubClient, own: OwnCommentRule) -> None:
        self.client, self.own = client, own
        self.cursor = MORNING
        self.held: dict[ThreadId, Record] = {}
        self.spoken: set[ThreadId] = set()
        self.promised: set[ThreadId] = set()

    def look(self) -> Updates:
        since = self.cursor - OVERLAP
        listed, _ = self.client.issues_since(since, 3)
        known = KnownIssues(self.held, dict.fromkeys(self.spoken, 1), promised=frozenset(self.promised))
        news = catch_up(self.client, self.own, known, listed, since)
        self.held |= {record.id: record for record in news.records}
        self.cursor = news.cursor or self.cursor
        return news

    def texts(self, number: int) -> list[str]:
        thread = self.held[number]
        assert isinstance(thread, Thread)
        return [comment.text for comment in thread.comments]


@pytest.fixture
def watcher(client: GitHubClient, own: OwnCommentRule) -> Watcher:
    return Watcher(client, own)


def ids(news: Updates) -> list[ThreadId]:
    return [record.id for record in news.records]


def test_one_new_issue_costs_one_read(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    news = watcher.look()
    assert (ids(news), dict(news.own), github.reads) == ([number], {number: None}, 1)
    assert news.cursor == datetime.fromisoformat(github.clock.now)


def test_one_changed_issue_costs_two(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    watcher.look()
    github.clock.advance(60)
    github.comment(number, "hubot", "Me too")
    github.mark()
    news = watcher.look()
    assert (ids(news), github.reads, watcher.texts(number)) == ([number], 2, ["Me too"])


def test_many_changed_issues_cost_two_as_well(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", f"Crash {count}") for count in range(10)]
    for number in numbers:
        github.comment(number, "hubot", f"First on {number}")
    watcher.look()
    github.clock.advance(3600)
    for number in numbers:
        github.comment(number, "hubot", f"Second on {number}")
    github.mark()
    news = watcher.look()
    assert (ids(news), github.reads) == (numbers, 2)
    assert watcher.texts(numbers[3]) == [f"First on {numbers[3]}", f"Second on {numbers[3]}"]


def test_a_long_thread_costs_two_as_well(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash", at=MORNING)
    for count in range(250):
        github.comment(number, "hubot", f"{count}", at=MORNING)
    github.open_issue("octocat", "Another")
    watcher.look()
    github.clock.advance(3600)
    github.comment(number, "hubot", "last")
    github.mark()
    watcher.look()
    assert github.reads == 2
    assert watcher.texts(number) == [*map(str, range(250)), "last"]


def test_nothing_new_costs_one_and_brings_nothing(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    github.comment(number, "hubot", "Me too")
    watcher.look()
    github.mark()
    assert (watcher.look().records, github.reads) == ((), 1)


def test_an_edited_comment_takes_the_place_of_what_it_was(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", "Crash") for _ in range(3)]
    said = [github.comment(number, "hubot", "Me too") for number in numbers]
    watcher.look()
    github.clock.advance(3600)
    for comment in said:
        github.edit_comment(comment, "Not me")
    watcher.look()
    assert [watcher.texts(number) for number in numbers] == [["Not me"]] * 3


@pytest.mark.parametrize("others", [0, 3])
def test_a_deleted_comment_is_forgotten(github: FakeGitHub, watcher: Watcher, others: int) -> None:
    number = github.open_issue("octocat", "Crash")
    gone, _ = (github.comment(number, "hubot", text) for text in ("My address is …", "Never mind"))
    crowd = [github.open_issue("octocat", f"Crash {count}") for count in range(others)]
    watcher.look()
    github.clock.advance(3600)
    github.delete_comment(gone)
    for each in crowd:
        github.comment(each, "hubot", "Me too")
    watcher.look()
    assert watcher.texts(number) == ["Never mind"]


def test_a_deleted_comment_is_forgotten_where_ours_stands(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    gone = github.comment(number, "hubot", "My address is …")
    github.comment(number, BOT, OURS)
    github.open_issue("octocat", "Another", at="2026-01-05T13:00:00Z")
    crowd = [github.open_issue("octocat", f"Crash {count}") for count in range(3)]
    watcher.look()
    watcher.spoken.add(number)
    github.clock.advance(3600)
    github.delete_comment(gone)
    for each in crowd:
        github.comment(each, "hubot", "Me too")
    watcher.look()
    assert watcher.texts(number) == []


def test_a_comment_deleted_while_another_came_is_forgotten(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", "Crash") for _ in range(2)]
    gone = [github.comment(number, "hubot", "My address is …") for number in numbers]
    watcher.look()
    github.clock.advance(3600)
    for number, comment in zip(numbers, gone, strict=True):
        github.delete_comment(comment)
        github.comment(number, "hubot", "Never mind")
    watcher.look()
    assert [watcher.texts(number) for number in numbers] == [["Never mind"]] * 2


def test_our_own_comments_are_told_apart(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", "Crash") for _ in range(3)]
    for number in numbers:
        github.comment(number, "hubot", "Me too")
    mine = github.comment(numbers[0], BOT, OURS)
    github.comment(numbers[1], "monalisa", OURS)
    news = watcher.look()
    found = news.own[numbers[0]]
    assert found is not None
    assert (found.id, found.text) == (mine, OURS)
    assert [news.own[number] for number in numbers[1:]] == [None, None]
    assert [watcher.texts(number) for number in numbers] == [["Me too"], ["Me too", OURS], ["Me too"]]


def test_where_ours_stands_is_unknown_when_only_newer_comments_were_read(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", "Crash", at=MORNING) for _ in range(2)]
    github.comment(numbers[0], BOT, OURS, at=MORNING)
    github.open_issue("octocat", "Another")
    watcher.look()
    watcher.spoken.add(numbers[0])
    github.clock.advance(3600)
    for number in numbers:
        github.comment(number, "hubot", "Me too")
    github.mark()
    news = watcher.look()
    assert (numbers[0] in news.own, numbers[1] in news.own, github.reads) == (False, True, 2)


def test_a_promised_comment_that_is_seen_among_the_newest_costs_nothing_more(
    github: FakeGitHub, watcher: Watcher
) -> None:
    numbers = [github.open_issue("octocat", "Crash") for _ in range(2)]
    watcher.look()
    watcher.promised.add(numbers[0])
    github.clock.advance(60)
    mine = github.comment(numbers[0], BOT, OURS)
    github.comment(numbers[1], "hubot", "Me too")
    github.mark()
    found = watcher.look().own[numbers[0]]
    assert found is not None
    assert (found.id, github.reads) == (mine, 2)


def test_where_one_was_promised_and_is_not_among_the_newest_the_thread_is_read(
    github: FakeGitHub, watcher: Watcher
) -> None:
    """The promised one makes up for the one that was deleted: the number of comments is what it was."""
    numbers = [github.open_issue("octocat", "Crash", at=MORNING) for _ in range(2)]
    gone = github.comment(numbers[0], "hubot", "My address is …", at=MORNING)
    github.open_issue("octocat", "Another")
    watcher.look()
    watcher.promised.add(numbers[0])
    github.comment(numbers[0], BOT, OURS, at=MORNING)
    github.clock.advance(3600)
    github.delete_comment(gone)
    github.comment(numbers[1], "hubot", "Me too")
    news = watcher.look()
    assert news.own[numbers[0]] is not None
    assert watcher.texts(numbers[0]) == []


@pytest.mark.parametrize("change", ["comment", "edit", "close", "close and reopen", "label", "lock"])
def test_a_change_within_the_same_second_is_seen(github: FakeGitHub, watcher: Watcher, change: str) -> None:
    number = github.open_issue("octocat", "Crash", "It crashes.")
    watcher.look()
    match change:
        case "comment":
            github.comment(number, "hubot", "Me too")
        case "edit":
            github.edit_issue(number, body="It hangs.")
        case "close":
            github.close(number, "octocat")
        case "close and reopen":
            github.close(number, "octocat")
            github.reopen(number, "octocat")
        case "label":
            github.label(number, "bug")
        case "lock":
            github.lock(number)
    assert ids(watcher.look()) == [number]


def test_our_comment_within_the_same_second_is_no_news(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    watcher.look()
    github.comment(number, BOT, OURS)
    watcher.spoken.add(number)
    assert watcher.look().records == ()


def test_a_closing_brings_the_events_around_it(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    watcher.look()
    github.clock.advance(60)
    pull = github.add_pull("hubot", "Fix", f"Fixes #{number}", closes=[number])
    github.merge_pull(pull, "octocat")
    github.mark()
    watcher.look()
    thread = watcher.held[number]
    assert isinstance(thread, Thread)
    assert (thread.state, thread.closed_by) == ("closed", "octocat")
    assert {(event.name, event.source) for event in thread.events} == {("cross-referenced", pull), ("closed", None)}
    github.clock.advance(60)
    github.comment(number, "hubot", "Thanks")
    watcher.look()
    later = watcher.held[number]
    assert isinstance(later, Thread)
    assert later.events == thread.events


def test_a_reopened_issue_keeps_its_story(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    github.close(number, "octocat")
    watcher.look()
    github.clock.advance(60)
    github.reopen(number, "hubot")
    watcher.look()
    thread = watcher.held[number]
    assert isinstance(thread, Thread)
    assert (thread.state, [event.name for event in thread.events]) == ("open", ["closed", "reopened"])


def test_what_a_duplicate_mark_points_at_is_not_forgotten(github: FakeGitHub, watcher: Watcher) -> None:
    first = github.open_issue("octocat", "Crash")
    number = github.open_issue("octocat", "Crash again")
    github.mark_duplicate(number, first, "octocat")
    github.close(number, "octocat", "duplicate")
    history = GraphQLHistory(github.url, github.token, REPOSITORY, watcher.own, watcher.client)
    watcher.held = {record.id: record for news in history.since(None) for record in news.records}
    github.clock.advance(60)
    github.comment(number, "hubot", "Thanks")
    watcher.look()
    thread = watcher.held[number]
    assert isinstance(thread, Thread)
    assert watcher.texts(number) == ["Thanks"]
    assert [event.source for event in thread.events if event.name == "marked_as_duplicate"] == [first]


def test_an_issue_that_vanishes_while_it_is_read_is_listed_again(
    github: FakeGitHub, client: GitHubClient, own: OwnCommentRule
) -> None:
    numbers = []
    for hour in (9, 10, 11):
        numbers.append(github.open_issue("octocat", "Crash", at=f"2026-01-05T{hour:02d}:00:00Z"))
        github.comment(numbers[-1], "hubot", "Me too", at=f"2026-01-05T{hour:02d}:00:00Z")
    listed, _ = client.issues_since(MORNING, 3)
    github.hide_issue(numbers[1])
    news = catch_up(client, own, KnownIssues(), listed, None)
    assert ids(news) == [numbers[0], numbers[2]]
    assert (news.complete, news.cursor) == (False, datetime.fromisoformat("2026-01-05T10:00:00Z"))


def test_one_thread_is_read_whole(github: FakeGitHub, client: GitHubClient, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash")
    github.comment(number, "hubot", "Me too")
    mine = github.comment(number, BOT, OURS)
    github.close(number, "octocat")
    thread, ours, issue = read_thread(client, own, number)
    assert isinstance(thread, Thread)
    assert ([c.text for c in thread.comments], ours and ours.id, issue["number"]) == (["Me too"], mine, number)


def test_what_is_gone_becomes_a_tombstone() -> None:
    now = MORNING
    assert tombstone(7, Gone("x", certain=True), now) == Tombstone(7, now, "deleted")
    assert tombstone(7, Gone("x", certain=True, moved_to="o/r#1"), now) == Tombstone(7, now, "transferred", "o/r#1")


def test_items_of_a_timeline_that_are_no_comments_are_left_out() -> None:
    good = {"event": "commented", "id": 1, "created_at": "2026-01-05T12:00:00Z", "actor": {"login": "octocat"}}
    bad = [{"event": "commented"}, {"event": "closed", "id": 2, "created_at": "x"}, {}]
    assert comments_of([good, *bad]) == [good | {"user": {"login": "octocat"}}]


STEPS = ("open", "comment", "edit", "edit comment", "delete comment", "close", "reopen", "label", "ours", "look")


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), min_size=5, max_size=40))
def test_whatever_happens_between_two_looks_the_result_is_what_is_there(steps: list[tuple[str, int]]) -> None:
    with FakeGitHub(REPOSITORY, validate=False) as github:
        own = OwnCommentRule(BOT, OURS.partition("\n")[0])
        watcher = Watcher(GitHubClient(github.url, github.token, REPOSITORY, write_gap=0), own)
        for step, choice in steps:
            happen(github, watcher, step, choice)
        github.clock.advance(60)
        watcher.look()
        there = {number: comparable(github, number) for number in github.repo.issues}
        assert {key: known(watcher.held[key]) for key in watcher.held} == there


def happen(github: FakeGitHub, watcher: Watcher, step: str, choice: int) -> None:
    numbers = list(github.repo.issues)
    github.clock.advance(1 + 200 * choice)
    if step == "look":
        watcher.look()
    elif step == "open" or not numbers:
        github.open_issue("octocat", f"Crash {choice}")
    else:
        change(github, watcher, step, numbers[choice % len(numbers)], choice)


def change(github: FakeGitHub, watcher: Watcher, step: str, number: int, choice: int) -> None:
    others = [comment.id for comment in github.issue(number).comments if comment.body != OURS]
    match step:
        case "comment":
            github.comment(number, "hubot", f"Remark {choice}")
        case "edit":
            github.edit_issue(number, body=f"Body {choice}")
        case "edit comment" if others:
            github.edit_comment(others[choice % len(others)], f"Edited {choice}")
        case "delete comment" if others:
            github.delete_comment(others[choice % len(others)])
        case "close":
            github.close(number, "octocat")
        case "reopen":
            github.reopen(number, "octocat")
        case "label":
            github.label(number, f"label {choice}")
        case "ours" if number not in watcher.spoken:
            github.comment(number, BOT, OURS)
            watcher.spoken.add(number)


def comparable(github: FakeGitHub, number: int) -> tuple[object, ...]:
    issue = next(each for each in github.export_archive() if each["id"] == number)
    comments = [comment for comment in issue["comments"] if comment["body"] != OURS]
    return known(thread_from_archive(issue | {"comments": comments}))


def known(record: Record) -> tuple[object, ...]:
    """All of a thread but when it was last changed, which our own comment moves too."""
    assert isinstance(record, Thread)
    texts = [(comment.id, comment.text) for comment in record.comments]
    events = [(event.name, event.at) for event in record.events]
    return (record.title, record.body, record.state, record.closed_at, record.labels, texts, events)


def test_an_overlap_forgives_clocks_that_differ(github: FakeGitHub, watcher: Watcher) -> None:
    github.open_issue("octocat", "Crash")
    watcher.look()
    late = github.open_issue("hubot", "Seen late", at=watcher.cursor - timedelta(minutes=4))
    github.open_issue("octocat", "Another")
    assert late in ids(watcher.look())
