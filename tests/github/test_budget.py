"""The rest of GitHub's rate limits, from response headers of several workers, and the reserve that history keeps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.budget import (
    ANSWERS_PER_REPORT,
    MAX_WINDOW,
    RESERVE_SHARE,
    WINDOW_TOLERANCE,
    Rate,
    RequestBudget,
    merge_rates,
)
from bot.github.client import GitHubClient
from bot.github.errors import CORE, GRAPHQL, HISTORY, HISTORY_LIMITS, ForgeError, RateLimited
from bot.github.history import GraphQLHistory, HistorySource, RestHistory
from bot.github.threads import OwnCommentRule
from tests.fakes.github import FakeGitHub
from tests.fakes.service import SentReply
from tests.github.conftest import REPOSITORY, ScriptedServer

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
END = NOW + timedelta(minutes=40)
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


def budget(reserve: float = RESERVE_SHARE, known: Mapping[str, Rate] | None = None) -> RequestBudget:
    return RequestBudget(known, reserve=reserve)


RATES = st.builds(
    Rate,
    st.integers(0, 5000),
    st.just(5000),
    st.integers(0, 3).flatmap(lambda hour: st.integers(-2, 2).map(lambda s: NOW + timedelta(hours=hour, seconds=s))),
)


@given(st.lists(RATES, min_size=1))
def test_the_order_of_responses_does_not_matter(rates: list[Rate]) -> None:
    def merge_all(reported: list[Rate]) -> Rate:
        merged = None
        for rate in reported:
            merged = merge_rates(merged, rate)
        assert merged is not None
        return merged

    last = max(rate.ends for rate in rates if rate.ends)
    window = [rate for rate in rates if rate.ends and last - rate.ends < WINDOW_TOLERANCE]
    expected = Rate(min(rate.left for rate in window), 5000, last)
    assert merge_all(rates) == merge_all(rates[::-1]) == expected


@pytest.mark.parametrize(
    "response_headers",
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
def test_malformed_and_unrelated_limits_are_ignored(response_headers: dict[str, str]) -> None:
    request_budget = budget()
    request_budget.note(response_headers)
    assert request_budget.rates == {}


@pytest.mark.parametrize("ends", ["", "soon", "99999999999", NOW + MAX_WINDOW + timedelta(seconds=1)])
def test_an_implausible_reset_time_is_ignored(ends: datetime | str) -> None:
    request_budget = budget()
    request_budget.note(headers(5, ends=ends))
    assert request_budget.rates[CORE] == Rate(5, 5000, None)
    request_budget.note(headers(4000))
    assert request_budget.rates[CORE].left == 4000


@pytest.mark.parametrize(
    ("left", "limit", "reserve", "minimum", "must_pause"),
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
def test_history_leaves_the_reserve(left: int, limit: int, reserve: float, minimum: int, *, must_pause: bool) -> None:
    request_budget = budget(reserve)
    request_budget.note(headers(left, limit))
    if not must_pause:
        request_budget.keep_reserve(CORE, minimum)
        return
    with pytest.raises(RateLimited) as error:
        request_budget.keep_reserve(CORE, minimum)
    assert (error.value.resource, error.value.until) == (HISTORY, END)
    assert error.value.resource in HISTORY_LIMITS
    request_budget.keep_reserve(GRAPHQL, minimum)


def test_the_remaining_requests_are_reported_from_time_to_time() -> None:
    reported: list[int] = []
    request_budget = RequestBudget(report=lambda rates: reported.append(rates[CORE].left))
    for left in range(2 * ANSWERS_PER_REPORT + 1):
        request_budget.note(headers(4000 - left))
    assert reported == [4001 - ANSWERS_PER_REPORT, 4001 - 2 * ANSWERS_PER_REPORT]


@pytest.mark.parametrize("resource", [CORE, GRAPHQL])
def test_history_sends_no_request_once_only_the_reserve_is_left(github: FakeGitHub, resource: str) -> None:
    github.open_issue("octocat", "Crash")
    github.comment(1, "hubot", "Here too.")
    known = {resource: Rate(1499, 5000, datetime.now(UTC) + timedelta(minutes=9))}
    client = GitHubClient(github.url, github.token, REPOSITORY, budget=RequestBudget(known, reserve=RESERVE_SHARE))
    histories: dict[str, HistorySource] = {
        CORE: RestHistory(OWN, client),
        GRAPHQL: GraphQLHistory(REPOSITORY, OWN, client),
    }
    with pytest.raises(RateLimited):
        list(histories[resource].since(None))
    assert not [request for request in github.requests if "timeline" in request.path or "graphql" in request.path]
    assert client.issue(1)["number"] == 1
    assert client.troubles == ()


ISSUE_LIST = b'[{"number": 1, "updated_at": "2026-01-05T11:00:00Z"}]'
CHANGED_AT = datetime(2026, 1, 5, 11, tzinfo=UTC)


def test_an_unchanged_etag_costs_no_request_quota(github: FakeGitHub, client: GitHubClient) -> None:
    initial = client.newest_change()
    assert initial is not None
    assert initial.at is None
    github.open_issue("octocat", "Crash", at="2026-01-05T12:00:00Z")
    first = client.newest_change(initial.etag)
    assert first is not None
    assert first.at == NOW
    left = client.rate
    assert client.newest_change(first.etag) is None
    assert client.rate == left
    github.comment(1, "hubot", "news", at="2026-01-05T13:00:00Z")
    second = client.newest_change(first.etag)
    assert second is not None
    assert second.at == NOW + timedelta(hours=1)


def test_a_304_counts_only_if_there_was_an_etag(scripted_server: ScriptedServer) -> None:
    client = scripted_server.client()
    scripted_server.answers.append(SentReply(304, {}, b""))
    with pytest.raises(ForgeError, match="304"):
        client.newest_change()
    assert client.newest_change('"a"') is None
    assert [headers.get("If-None-Match") for headers in scripted_server.requests] == [None, '"a"']


@pytest.mark.parametrize(
    ("header", "etag"),
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
def test_only_a_valid_etag_is_sent_back(scripted_server: ScriptedServer, header: str, etag: str) -> None:
    scripted_server.answers.append(SentReply(200, {"ETag": header} if header else {}, ISSUE_LIST))
    assert scripted_server.client().newest_change() == (CHANGED_AT, etag)


@pytest.mark.parametrize("body", [b"{}", b'[{"updated_at": 5}]', b'[{"updated_at": "soon"}]', b"[{}]"])
def test_an_unexpected_response_is_not_a_change(scripted_server: ScriptedServer, body: bytes) -> None:
    scripted_server.answers.append(SentReply(200, {}, body))
    with pytest.raises(ForgeError, match="an unexpected answer"):
        scripted_server.client().newest_change()


@pytest.mark.parametrize(("ahead", "counts"), [(0, False), (50, False), (3_600, True), (-86_400, True)])
def test_githubs_clock_counts_where_ours_is_wrong_however_late_its_first_answer_is(
    ahead: int, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, late, seconds = datetime(2026, 5, 3, 12, tzinfo=UTC), timedelta(minutes=7), [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    limits = RequestBudget()
    seconds[0] = late.total_seconds()
    limits.note({"date": format_datetime(began + late + timedelta(seconds=ahead), usegmt=True)})
    right = began + timedelta(seconds=ahead)
    assert limits.correct_time(began) == (right if counts else began)
