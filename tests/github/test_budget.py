"""What is left of GitHub's limits, from the headers of several workers, and what history leaves of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.budget import LONGEST, REPORTED, RESERVE, SAME_WINDOW, Rate, RequestBudget, merge_rates
from bot.github.client import GitHubClient
from bot.github.errors import CORE, GRAPHQL, HISTORY, OF_HISTORY, ForgeError, RateLimited
from bot.github.history import GraphQLHistory, HistorySource, RestHistory
from bot.github.threads import OwnCommentRule
from tests.fakes.github import FakeGitHub
from tests.fakes.httpd import Listener
from tests.fakes.service import Sent

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
END = NOW + timedelta(minutes=40)
REPOSITORY = "octocat/hello-world"
OWN = OwnCommentRule("github-actions[bot]", "<!-- marker -->")


def headers(left: object, limit: object = 5000, ends: datetime | str = END, resource: str = "core") -> dict[str, str]:
    reset = ends if isinstance(ends, str) else str(int(ends.timestamp()))
    return {
        "x-ratelimit-remaining": str(left),
        "x-ratelimit-limit": str(limit),
        "x-ratelimit-reset": reset,
        "x-ratelimit-resource": resource,
        "date": format_datetime(NOW, usegmt=True),
    }


def budget(reserve: float = RESERVE, known: Mapping[str, Rate] | None = None) -> RequestBudget:
    return RequestBudget(known, reserve=reserve)


def test_within_one_window_the_lowest_counts_and_the_newest_window_wins() -> None:
    later = END + timedelta(hours=1)
    answers = [
        (headers(900), 900),
        (headers(950), 900),  # a late one
        (headers(800, ends=END + timedelta(seconds=1)), 800),  # the end varies by a second
        (headers(850, ends=END - timedelta(seconds=1)), 800),
        (headers(4990, ends=later), 4990),
        (headers(10), 4990),  # a very late one, of the window before
    ]
    found = budget()
    for told, expected in answers:
        found.note(told)
        assert found.rates[CORE].left == expected


RATES = st.builds(
    Rate,
    st.integers(0, 5000),
    st.just(5000),
    st.integers(0, 3).flatmap(lambda hour: st.integers(-2, 2).map(lambda s: NOW + timedelta(hours=hour, seconds=s))),
)


@given(st.lists(RATES, min_size=1))
def test_the_order_of_answers_does_not_matter(rates: list[Rate]) -> None:
    def together(each: list[Rate]) -> Rate:
        known = None
        for rate in each:
            known = merge_rates(known, rate)
        assert known is not None
        return known

    last = max(rate.ends for rate in rates if rate.ends)
    window = [rate for rate in rates if rate.ends and last - rate.ends < SAME_WINDOW]
    expected = Rate(min(rate.left for rate in window), 5000, last)
    assert together(rates) == together(rates[::-1]) == expected


@pytest.mark.parametrize(
    "told",
    [
        {},
        headers("-1"),
        headers("1e3"),
        headers("٣"),
        headers("9" * 5000),
        headers(5, "none"),
        headers(5, resource="search"),
        headers(5, resource="core\x00"),
    ],
)
def test_what_is_no_limit_of_ours_is_left_out(told: dict[str, str]) -> None:
    found = budget()
    found.note(told)
    assert found.rates == {}


@pytest.mark.parametrize("ends", ["", "soon", "99999999999", NOW + LONGEST + timedelta(seconds=1)])
def test_an_end_that_is_none_is_not_waited_for(ends: datetime | str) -> None:
    found = budget()
    found.note(headers(5, ends=ends))
    assert found.rates[CORE] == Rate(5, 5000, None)
    found.note(headers(4000))
    assert found.rates[CORE].left == 4000


@pytest.mark.parametrize(
    ("left", "limit", "reserve", "least", "rests"),
    [
        (1500, 5000, 0.3, 0, False),
        (1499, 5000, 0.3, 0, True),
        (299, 1000, 0.3, 100, True),
        (99, 5000, 0.0, 100, True),
        (100, 5000, 0.0, 100, False),
        (29, 60, 0.0, 100, True),
        (30, 60, 0.0, 100, False),
        (0, 5000, 0.0, 0, False),
    ],
)
def test_history_leaves_the_reserve(left: int, limit: int, reserve: float, least: int, *, rests: bool) -> None:
    found = budget(reserve)
    found.note(headers(left, limit))
    if not rests:
        found.keep_reserve(CORE, least)
        return
    with pytest.raises(RateLimited) as error:
        found.keep_reserve(CORE, least)
    assert (error.value.resource, error.value.until) == (HISTORY, END)
    assert error.value.resource in OF_HISTORY
    found.keep_reserve(GRAPHQL, least)


def test_the_numbers_are_passed_on_now_and_then() -> None:
    told: list[int] = []
    found = RequestBudget(report=lambda rates: told.append(rates[CORE].left))
    for left in range(2 * REPORTED + 1):
        found.note(headers(4000 - left))
    assert told == [4001 - REPORTED, 4001 - 2 * REPORTED]


@pytest.mark.parametrize("resource", [CORE, GRAPHQL])
def test_no_request_of_history_is_sent_once_others_used_all_but_the_reserve(github: FakeGitHub, resource: str) -> None:
    github.open_issue("octocat", "Crash")
    github.comment(1, "hubot", "Here too.")
    known = {resource: Rate(1499, 5000, datetime.now(UTC) + timedelta(minutes=9))}
    client = GitHubClient(github.url, github.token, REPOSITORY, budget=RequestBudget(known, reserve=RESERVE))
    ways: dict[str, HistorySource] = {
        CORE: RestHistory(OWN, client),
        GRAPHQL: GraphQLHistory(github.url, github.token, REPOSITORY, OWN, client),
    }
    with pytest.raises(RateLimited) as limit:
        list(ways[resource].since(None))
    client.apply_limit(limit.value)
    assert not [each for each in github.requests if "timeline" in each.path or "graphql" in each.path]
    assert client.issue(1)["number"] == 1
    assert client.troubles == ()


@pytest.fixture
def answers() -> Iterator[tuple[Listener, list[dict[str, str]], list[Sent]]]:
    """A server that answers with what is in the second list, and notes the headers that it was asked with."""
    asked: list[dict[str, str]] = []
    told: list[Sent] = []

    def answer(method: str, target: str, given: dict[str, str], body: bytes) -> Sent:
        asked.append(given)
        return told.pop(0)

    listener = Listener(answer)
    yield listener, asked, told
    listener.stop()


LISTED = b'[{"number": 1, "updated_at": "2026-01-05T11:00:00Z"}]'
CHANGED = datetime(2026, 1, 5, 11, tzinfo=UTC)


def test_the_newest_change_is_not_sent_again(github: FakeGitHub) -> None:
    client = GitHubClient(github.url, github.token, REPOSITORY)
    none = client.newest_change()
    assert none is not None
    assert none.at is None
    github.open_issue("octocat", "Crash", at="2026-01-05T12:00:00Z")
    first = client.newest_change(none.etag)
    assert first is not None
    assert first.at == NOW
    left = client.rate
    assert client.newest_change(first.etag) is None
    assert client.rate == left
    github.comment(1, "hubot", "news", at="2026-01-05T13:00:00Z")
    again = client.newest_change(first.etag)
    assert again is not None
    assert again.at == NOW + timedelta(hours=1)


def test_a_304_counts_only_if_there_was_an_etag(answers: tuple[Listener, list[dict[str, str]], list[Sent]]) -> None:
    listener, asked, told = answers
    client = GitHubClient(listener.url, "token", REPOSITORY, write_gap=0)
    told.append(Sent(304, {}, b""))
    with pytest.raises(ForgeError, match="304"):
        client.newest_change()
    assert "If-None-Match" not in asked[0]
    told.append(Sent(304, {}, b""))
    assert client.newest_change('"a"') is None
    assert asked[1]["If-None-Match"] == '"a"'


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ('W/"abc"', 'W/"abc"'),
        ('"abc"', '"abc"'),
        ("", ""),
        ("abc", ""),
        ('"a" , "b"', ""),
        ("*", ""),
        (f'"{"x" * 201}"', ""),
        ('"\xe9"', ""),
    ],
)
def test_only_what_is_an_etag_is_sent_back(
    answers: tuple[Listener, list[dict[str, str]], list[Sent]], header: str, kept: str
) -> None:
    listener, _, told = answers
    told.append(Sent(200, {"ETag": header} if header else {}, LISTED))
    found = GitHubClient(listener.url, "token", REPOSITORY, write_gap=0).newest_change()
    assert found == (CHANGED, kept)


@pytest.mark.parametrize("body", [b"{}", b'[{"updated_at": 5}]', b'[{"updated_at": "soon"}]', b"[{}]"])
def test_what_was_not_asked_for_is_no_change(
    answers: tuple[Listener, list[dict[str, str]], list[Sent]], body: bytes
) -> None:
    listener, _, told = answers
    told.append(Sent(200, {}, body))
    with pytest.raises(ForgeError, match="an unexpected answer"):
        GitHubClient(listener.url, "token", REPOSITORY, write_gap=0).newest_change()
