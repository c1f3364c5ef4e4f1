"""Changes since the last run, read with few requests, whatever was lost, repeated or deleted in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.thread import Record, Thread, ThreadId, Tombstone, text_id
from bot.domain.thread_json import thread_from_archive
from bot.github.client import GitHubClient
from bot.github.errors import Gone
from bot.github.history import GraphQLHistory
from bot.github.threads import OwnCommentRule
from bot.github.updates import OVERLAP, KnownIssues, Updates, catch_up, comments_of, read_thread, tombstone
from tests.fakes.github import FakeGitHub
from tests.github.conftest import REPOSITORY

BOT = "github-actions[bot]"
OUR_COMMENT = "<!-- precedent:v1 id=action -->\nSeen before"
MORNING = datetime(2026, 1, 5, 8, tzinfo=UTC)


class Watcher:
    """Fetches updates again and again, and remembers the threads as memory does."""

    def __init__(self, client: GitHubClient, own: OwnCommentRule) -> None:
        self.client, self.own = client, own
        self.cursor = MORNING
        self.memory: dict[ThreadId, Record] = {}
        self.answered: set[ThreadId] = set()
        self.promised: set[ThreadId] = set()

    def fetch_updates(self) -> Updates:
        since = self.cursor - OVERLAP
        listed, _ = self.client.issues_since(since, 3)
        known_issues = KnownIssues(self.memory, dict.fromkeys(self.answered, 1), promised=frozenset(self.promised))
        changes = catch_up(self.client, self.own, known_issues, listed, since)
        self.memory |= {record.id: record for record in changes.records}
        self.cursor = changes.cursor or self.cursor
        return changes

    def thread(self, number: int) -> Thread:
        thread = self.memory[number]
        assert isinstance(thread, Thread)
        return thread

    def texts(self, number: int) -> list[str]:
        return [comment.text for comment in self.thread(number).comments]


@pytest.fixture
def watcher(client: GitHubClient, own: OwnCommentRule) -> Watcher:
    return Watcher(client, own)


def ids(changes: Updates) -> list[ThreadId]:
    return [record.id for record in changes.records]


def test_one_new_issue_costs_one_read(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    changes = watcher.fetch_updates()
    assert (ids(changes), dict(changes.own), github.reads) == ([number], {number: None}, 1)
    assert changes.cursor == datetime.fromisoformat(github.clock.now)


@pytest.mark.parametrize(("issues", "comments"), [(1, 0), (10, 1), (1, 250)])
def test_changed_issues_cost_two_reads_however_many_and_long(
    github: FakeGitHub, watcher: Watcher, issues: int, comments: int
) -> None:
    numbers = [github.open_issue("octocat", f"Crash {count}", at=MORNING) for count in range(issues)]
    for number in numbers:
        for count in range(comments):
            github.comment(number, "hubot", f"{count} on {number}", at=MORNING)
    github.open_issue("octocat", "Another")
    watcher.fetch_updates()
    for number in numbers:  # stored comments may be shortened
        stored = watcher.thread(number)
        watcher.memory[number] = replace(stored, comments=tuple(comment.shortened(1) for comment in stored.comments))
    github.clock.advance(3600)
    for number in numbers:
        github.comment(number, "hubot", "Me too")
    github.mark()
    assert (ids(watcher.fetch_updates()), github.reads) == (numbers, 2)
    for number in numbers:
        written = [*(f"{count} on {number}" for count in range(comments)), "Me too"]
        assert [comment.text_id for comment in watcher.thread(number).comments] == list(map(text_id, written))


def test_no_change_costs_one_read_and_returns_nothing(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    github.comment(number, "hubot", "Me too")
    watcher.fetch_updates()
    github.mark()
    assert (watcher.fetch_updates().records, github.reads) == ((), 1)


def test_an_edited_comment_replaces_the_earlier_version(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", "Crash") for _ in range(3)]
    comment_ids = [github.comment(number, "hubot", "Me too") for number in numbers]
    watcher.fetch_updates()
    github.clock.advance(3600)
    for comment in comment_ids:
        github.edit_comment(comment, "Not me")
    watcher.fetch_updates()
    assert [watcher.texts(number) for number in numbers] == [["Not me"]] * 3


@pytest.mark.parametrize(("others", "is_answered"), [(0, False), (3, False), (3, True)])
def test_a_deleted_comment_is_forgotten(
    github: FakeGitHub, watcher: Watcher, others: int, *, is_answered: bool
) -> None:
    number = github.open_issue("octocat", "Crash")
    deleted, _ = (github.comment(number, "hubot", text) for text in ("My address is …", "Never mind"))
    if is_answered:
        github.comment(number, BOT, OUR_COMMENT)
        github.open_issue("octocat", "Another", at="2026-01-05T13:00:00Z")
    other_issues = [github.open_issue("octocat", f"Crash {count}") for count in range(others)]
    watcher.fetch_updates()
    watcher.answered |= {number} if is_answered else set()
    github.clock.advance(3600)
    github.delete_comment(deleted)
    for other in other_issues:
        github.comment(other, "hubot", "Me too")
    watcher.fetch_updates()
    assert watcher.texts(number) == ["Never mind"]


def test_a_deleted_comment_is_forgotten_even_if_another_was_added(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", "Crash") for _ in range(2)]
    deleted = [github.comment(number, "hubot", "My address is …") for number in numbers]
    watcher.fetch_updates()
    github.clock.advance(3600)
    for number, comment in zip(numbers, deleted, strict=True):
        github.delete_comment(comment)
        github.comment(number, "hubot", "Never mind")
    watcher.fetch_updates()
    assert [watcher.texts(number) for number in numbers] == [["Never mind"]] * 2


def test_our_own_comments_are_recognised(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", "Crash") for _ in range(3)]
    for number in numbers:
        github.comment(number, "hubot", "Me too")
    mine = github.comment(numbers[0], BOT, OUR_COMMENT)
    github.comment(numbers[1], "monalisa", OUR_COMMENT)
    changes = watcher.fetch_updates()
    our_comment = changes.own[numbers[0]]
    assert our_comment is not None
    assert (our_comment.id, our_comment.text) == (mine, OUR_COMMENT)
    assert [changes.own[number] for number in numbers[1:]] == [None, None]
    assert [watcher.texts(number) for number in numbers] == [["Me too"], ["Me too", OUR_COMMENT], ["Me too"]]


def test_our_comment_is_unknown_if_only_newer_comments_were_read(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", "Crash", at=MORNING) for _ in range(2)]
    github.comment(numbers[0], BOT, OUR_COMMENT, at=MORNING)
    github.open_issue("octocat", "Another")
    watcher.fetch_updates()
    watcher.answered.add(numbers[0])
    github.clock.advance(3600)
    for number in numbers:
        github.comment(number, "hubot", "Me too")
    github.mark()
    changes = watcher.fetch_updates()
    assert (numbers[0] in changes.own, numbers[1] in changes.own, github.reads) == (False, True, 2)


def test_a_promised_comment_among_the_newest_costs_no_further_read(github: FakeGitHub, watcher: Watcher) -> None:
    numbers = [github.open_issue("octocat", "Crash") for _ in range(2)]
    watcher.fetch_updates()
    watcher.promised.add(numbers[0])
    github.clock.advance(60)
    mine = github.comment(numbers[0], BOT, OUR_COMMENT)
    github.comment(numbers[1], "hubot", "Me too")
    github.mark()
    our_comment = watcher.fetch_updates().own[numbers[0]]
    assert our_comment is not None
    assert (our_comment.id, github.reads) == (mine, 2)


def test_the_thread_is_read_if_a_promised_comment_is_not_among_the_newest(github: FakeGitHub, watcher: Watcher) -> None:
    """The promised comment makes up for the deleted one: the number of comments is unchanged."""
    numbers = [github.open_issue("octocat", "Crash", at=MORNING) for _ in range(2)]
    deleted = github.comment(numbers[0], "hubot", "My address is …", at=MORNING)
    github.open_issue("octocat", "Another")
    watcher.fetch_updates()
    watcher.promised.add(numbers[0])
    github.comment(numbers[0], BOT, OUR_COMMENT, at=MORNING)
    github.clock.advance(3600)
    github.delete_comment(deleted)
    github.comment(numbers[1], "hubot", "Me too")
    changes = watcher.fetch_updates()
    assert changes.own[numbers[0]] is not None
    assert watcher.texts(numbers[0]) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda github: github.comment(1, "hubot", "Me too"),
        lambda github: github.edit_issue(1, body="It hangs."),
        lambda github: github.close(1, "octocat"),
        lambda github: (github.close(1, "octocat"), github.reopen(1, "octocat")),
        lambda github: github.label(1, "bug"),
        lambda github: github.lock(1),
    ],
)
def test_a_change_within_the_same_second_is_seen(
    github: FakeGitHub, watcher: Watcher, change: Callable[[FakeGitHub], object]
) -> None:
    number = github.open_issue("octocat", "Crash", "It crashes.")
    watcher.fetch_updates()
    change(github)
    assert ids(watcher.fetch_updates()) == [number]


def test_our_comment_within_the_same_second_is_not_a_change(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    watcher.fetch_updates()
    github.comment(number, BOT, OUR_COMMENT)
    watcher.answered.add(number)
    assert watcher.fetch_updates().records == ()


def test_closing_an_issue_fetches_the_events_around_it(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    watcher.fetch_updates()
    github.clock.advance(60)
    pull = github.add_pull("hubot", "Fix", f"Fixes #{number}", closes=[number])
    github.merge_pull(pull, "octocat")
    github.mark()
    watcher.fetch_updates()
    thread = watcher.thread(number)
    assert (thread.state, thread.closed_by) == ("closed", "octocat")
    assert {(event.name, event.source) for event in thread.events} == {("cross-referenced", pull), ("closed", None)}
    github.clock.advance(60)
    github.comment(number, "hubot", "Thanks")
    watcher.fetch_updates()
    assert watcher.thread(number).events == thread.events


def test_a_reopened_issue_keeps_its_events(github: FakeGitHub, watcher: Watcher) -> None:
    number = github.open_issue("octocat", "Crash")
    github.close(number, "octocat")
    watcher.fetch_updates()
    github.clock.advance(60)
    github.reopen(number, "hubot")
    watcher.fetch_updates()
    thread = watcher.thread(number)
    assert (thread.state, [event.name for event in thread.events]) == ("open", ["closed", "reopened"])


def test_the_original_of_a_marked_duplicate_is_not_forgotten(github: FakeGitHub, watcher: Watcher) -> None:
    first = github.open_issue("octocat", "Crash")
    number = github.open_issue("octocat", "Crash again")
    github.mark_duplicate(number, first, "octocat")
    github.close(number, "octocat", "duplicate")
    history = GraphQLHistory(REPOSITORY, watcher.own, watcher.client)
    watcher.memory = {record.id: record for changes in history.since(None) for record in changes.records}
    github.clock.advance(60)
    github.comment(number, "hubot", "Thanks")
    watcher.fetch_updates()
    assert watcher.texts(number) == ["Thanks"]
    again, _, _ = read_thread(watcher.client, watcher.own, number, watcher.thread(number))
    for thread in (watcher.thread(number), again):
        assert [event.source for event in thread.events if event.name == "marked_as_duplicate"] == [first]


def test_an_issue_that_vanishes_while_it_is_read_is_left_for_the_next_run(
    github: FakeGitHub, client: GitHubClient, own: OwnCommentRule
) -> None:
    numbers = []
    for hour in (9, 10, 11):
        numbers.append(github.open_issue("octocat", "Crash", at=f"2026-01-05T{hour:02d}:00:00Z"))
        github.comment(numbers[-1], "hubot", "Me too", at=f"2026-01-05T{hour:02d}:00:00Z")
    listed, _ = client.issues_since(MORNING, 3)
    github.hide_issue(numbers[1])
    changes = catch_up(client, own, KnownIssues(), listed, None)
    assert ids(changes) == [numbers[0], numbers[2]]
    assert (changes.complete, changes.cursor) == (False, datetime.fromisoformat("2026-01-05T10:00:00Z"))


def test_a_single_thread_is_read_completely(github: FakeGitHub, client: GitHubClient, own: OwnCommentRule) -> None:
    number = github.open_issue("octocat", "Crash")
    github.comment(number, "hubot", "Me too")
    mine = github.comment(number, BOT, OUR_COMMENT)
    github.close(number, "octocat")
    thread, ours, issue = read_thread(client, own, number, None)
    assert isinstance(thread, Thread)
    assert ([c.text for c in thread.comments], ours and ours.id, issue["number"]) == (["Me too"], mine, number)


def test_a_deleted_or_transferred_issue_becomes_a_tombstone() -> None:
    now = MORNING
    assert tombstone(7, Gone("x", certain=True), now) == Tombstone(7, now, "deleted")
    assert tombstone(7, Gone("x", certain=True, moved_to="o/r#1"), now) == Tombstone(7, now, "transferred", "o/r#1")


def test_timeline_items_that_are_not_comments_are_left_out() -> None:
    good = {"event": "commented", "id": 1, "created_at": "2026-01-05T12:00:00Z", "actor": {"login": "octocat"}}
    bad = [{"event": "commented"}, {"event": "closed", "id": 2, "created_at": "x"}, {}]
    assert comments_of([good, *bad]) == [good | {"user": {"login": "octocat"}}]


STEPS = ("open", "comment", "edit", "edit comment", "delete comment", "close", "reopen", "label", "ours", "look")


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), min_size=5, max_size=40))
def test_whatever_happens_between_two_fetches_memory_matches_github(steps: list[tuple[str, int]]) -> None:
    with FakeGitHub(REPOSITORY, validate=False) as github:
        own = OwnCommentRule(BOT, OUR_COMMENT.partition("\n")[0])
        watcher = Watcher(GitHubClient(github.url, github.token, REPOSITORY, write_gap=0), own)
        for step, choice in steps:
            take_step(github, watcher, step, choice)
        github.clock.advance(60)
        watcher.fetch_updates()
        expected = {number: comparable_issue(github, number) for number in github.repo.issues}
        assert {key: comparable_record(watcher.memory[key]) for key in watcher.memory} == expected


def take_step(github: FakeGitHub, watcher: Watcher, step: str, choice: int) -> None:
    numbers = list(github.repo.issues)
    github.clock.advance(1 + 200 * choice)
    if step == "look":
        watcher.fetch_updates()
    elif step == "open" or not numbers:
        github.open_issue("octocat", f"Crash {choice}")
    else:
        change_issue(github, watcher, step, numbers[choice % len(numbers)], choice)


def change_issue(github: FakeGitHub, watcher: Watcher, step: str, number: int, choice: int) -> None:
    foreign_comments = [comment.id for comment in github.issue(number).comments if comment.body != OUR_COMMENT]
    match step:
        case "comment":
            github.comment(number, "hubot", f"Remark {choice}")
        case "edit":
            github.edit_issue(number, body=f"Body {choice}")
        case "edit comment" if foreign_comments:
            github.edit_comment(foreign_comments[choice % len(foreign_comments)], f"Edited {choice}")
        case "delete comment" if foreign_comments:
            github.delete_comment(foreign_comments[choice % len(foreign_comments)])
        case "close":
            github.close(number, "octocat")
        case "reopen":
            github.reopen(number, "octocat")
        case "label":
            github.label(number, f"label {choice}")
        case "ours" if number not in watcher.answered:
            github.comment(number, BOT, OUR_COMMENT)
            watcher.answered.add(number)


def comparable_issue(github: FakeGitHub, number: int) -> tuple[object, ...]:
    issue = next(archived for archived in github.export_archive() if archived["id"] == number)
    comments = [comment for comment in issue["comments"] if comment["body"] != OUR_COMMENT]
    return comparable_record(thread_from_archive(issue | {"comments": comments}))


def comparable_record(record: Record) -> tuple[object, ...]:
    """The thread without the time of its last change, which our own comment updates too."""
    assert isinstance(record, Thread)
    texts = [(comment.id, comment.text) for comment in record.comments]
    events = [(event.name, event.at) for event in record.events]
    return (record.title, record.body, record.state, record.closed_at, record.labels, texts, events)


def test_the_overlap_tolerates_differing_clocks(github: FakeGitHub, watcher: Watcher) -> None:
    github.open_issue("octocat", "Crash")
    watcher.fetch_updates()
    late = github.open_issue("hubot", "Seen late", at=watcher.cursor - timedelta(minutes=4))
    github.open_issue("octocat", "Another")
    assert late in ids(watcher.fetch_updates())
