"""The status page and a delivery's page: what they show and hide, and where their links go."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.answer import Match
from bot.domain.organisation import Visibility
from bot.github.events import Event
from bot.pipeline.reconcile import CommentResult
from bot.server.model import MINUTE, Delivery, RepositoryKey, Result, RunReport, RunRow, State
from bot.server.organisation.register import OrganisationRegister
from bot.server.pages.deliveries import delivery_page
from bot.server.pages.health import Check, readiness_checks
from bot.server.pages.parts import (
    PAGE_SIZE,
    badge,
    count_of,
    describe_event,
    format_duration,
    join_names,
    moment,
    policy,
    style,
)
from bot.server.pages.status_page import status_page
from bot.server.receive.endpoint import RecentRefusals
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.work.policy import nearest
from tests.server.queues import begin_work
from tests.server.sample_inbox import (
    DAY,
    NOW,
    OPTIONS,
    PastDelivery,
    SampleInbox,
    empty_inbox,
    hostile_inbox,
    issue_opened,
    sample_inbox,
)

WELL = [Check("queue", True, "nothing is waiting")]
DELIVERY = Delivery(
    "7:guid", RepositoryKey(1, 17), issue_opened(12), "octo-org/compass", NOW - 90_000, seq=5, state="done"
)


def text_of(page: str) -> str:
    """Return what a reader sees, without markup and with single spaces."""
    body = page.partition("<body>")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def links(page: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'href="([^"]*)"', page)]


def status(inbox: SampleInbox, delivery_filter: DeliveryFilter | None = None) -> str:
    return status_page(inbox, readiness_checks(inbox, OPTIONS, NOW), NOW, delivery_filter)


def test_the_status_page_shows_comments_and_the_reasons_for_silence() -> None:
    page = text_of(status(sample_inbox()))
    assert "Please act: 1 delivery was put aside" in page
    assert "It looks after 4 repositories. 3 deliveries are in hand." in page
    assert (
        "Commented octo-org/harbour #878 issue opened showed #512 (83 %) · the comment of delivery 12 1 min ago" in page
    )
    assert "Silent octo-org/lighthouse #66 issue opened · nothing in memory is close enough 13 min ago" in page
    assert "Put aside octo-org/lighthouse #65 issue opened · GitHub did not answer (502): tried 8 times" in page
    assert "nothing in memory is close enough (214)" in page


def test_problems_come_first() -> None:
    page = status_page(
        empty_inbox(), [*WELL, Check("disk", False, "only 0.1 GB free: make room"), Check("clock", False, "x")], NOW
    )
    assert "Please act: disk and clock are not well" in text_of(page)
    assert "✗ not well: only 0.1 GB free: make room" in text_of(page)
    assert "Please act" in page.partition("<title>")[2].partition("</title>")[0]


def test_refused_deliveries_are_shown_with_what_their_status_means() -> None:
    page = text_of(status_page(empty_inbox(), WELL, NOW, refused={403: 3, 408: 1}))
    assert "Please look: deliveries were refused" in page
    assert (
        "Refused by this process in the last hour: 3 with 403 (a wrong signature: enter the server's webhook secret in"
        " the App), 1 with 408 (see the log)." in page
    )


def test_refusals_are_counted_for_an_hour() -> None:
    refusals = RecentRefusals()
    for minute, status in ((0, 403), (30, 403), (50, 503)):
        refusals.add(minute * MINUTE, status)
    assert refusals.by_status(61 * MINUTE) == {403: 1, 503: 1}
    assert refusals.by_status(200 * MINUTE) == {}


def test_the_page_of_a_new_server_says_that_there_is_nothing_yet() -> None:
    page = text_of(status_page(empty_inbox(), WELL, NOW))
    assert "All is well: there is nothing to do It looks after no repositories. Nothing is waiting." in page
    assert "No delivery to show here." in page
    assert "None. Once the App" in page
    assert "What it did so far" not in page


@pytest.mark.slow
def test_paging_shows_every_delivery_once() -> None:
    inbox = hostile_inbox()
    shown: list[str] = []
    page = status(inbox)
    for _ in range(9):
        page_links = [link for link in links(page) if link.startswith("/deliveries/")]
        assert len(page_links) <= PAGE_SIZE
        shown += page_links
        older = [link for link in links(page) if "before=" in link]
        if not older:
            break
        page = status(inbox, DeliveryFilter(before=int(older[0].partition("before=")[2].partition("#")[0])))
        assert "Newest" in text_of(page)
    assert shown == [f"/deliveries/{row.seq}" for row in inbox.deliveries(limit=999)]


@pytest.mark.slow
def test_deliveries_can_be_filtered_by_state_and_repository() -> None:
    inbox = sample_inbox()
    for state, expected in (("dead", 1), ("waiting", 2), ("dropped", 0)):
        page = status(inbox, DeliveryFilter(state=state))  # type: ignore[arg-type]
        assert len([link for link in links(page) if link.startswith("/deliveries/")]) == expected
        assert page.count('aria-current="page"') == 1
    page = status(inbox, DeliveryFilter(repository=RepositoryKey(1, 17)))
    assert "Deliveries of octo-org/compass" in text_of(page)
    seqs = {int(link.rpartition("/")[2]) for link in links(page) if link.startswith("/deliveries/")}
    assert seqs == {row.seq for row in inbox.deliveries(DeliveryFilter(repository=RepositoryKey(1, 17)))}
    assert "/?state=dead&repository=1-17#deliveries" in links(page)


def test_each_repository_links_to_its_deliveries() -> None:
    page = status(sample_inbox())
    assert {f"/?repository=1-{number}#deliveries" for number in (17, 18, 19, 20)} <= set(links(page))
    assert "octo-org/harbour private" in text_of(page)


def test_only_a_hundred_repositories_are_listed() -> None:
    inbox = empty_inbox()
    for number in range(1, 131):
        OrganisationRegister(inbox).store_repository(RepositoryKey(1, number), f"octo-org/p{number}", Visibility.PUBLIC)
    page = text_of(status_page(inbox, WELL, NOW))
    assert "130 repositories" in page
    assert "and 30 more" in page


@pytest.mark.parametrize("make", [sample_inbox, hostile_inbox, empty_inbox])
def test_no_page_has_a_script_a_form_or_anything_from_elsewhere(make: object) -> None:
    page = status(make())  # type: ignore[operator]
    assert not re.search(
        r"<(script|form|iframe|img|link|object|base)\b|\son\w+=|\sstyle=|javascript:", page, re.IGNORECASE
    )
    assert all(link.startswith(("/", "#", "https://github.com/")) for link in links(page))


@pytest.mark.slow
def test_hostile_names_are_escaped() -> None:
    page = status(hostile_inbox())
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_an_automatic_check_is_shown_with_the_name_of_its_repository() -> None:
    inbox = sample_inbox()
    inbox.put([Delivery("7:catch-up-1-18-1", RepositoryKey(1, 18), Event("catch-up"), received_at=NOW)])
    assert "Waiting octo-org/harbour automatic check" in text_of(status(inbox))
    assert "octo-org/harbour automatic check" in text_of(delivery_page(inbox.delivery(16), NOW, "octo-org/harbour"))


def test_a_javascript_url_does_not_become_a_link() -> None:
    page = delivery_page((replace(DELIVERY, url="javascript:alert(1)"), None), NOW)
    assert "javascript" not in page


def test_the_content_security_policy_allows_only_the_style_of_the_page() -> None:
    page = status(sample_inbox())
    inline = page.partition("<style>")[2].partition("</style>")[0]
    assert inline == style()
    digest = b64encode(hashlib.sha256(inline.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy()
    assert unescape(page.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]) == policy()


def test_the_page_of_a_delivery_shows_its_run_and_stages() -> None:
    inbox = sample_inbox()
    seq = 1 + next(n for n, past in enumerate(DAY) if past.said == "updated")
    page = delivery_page(inbox.delivery(seq), NOW)
    text = text_of(page)
    assert "octo-org/compass #4131 comment created, delivery 6, 1 h ago" in text
    assert "A run of its repository began 340 ms after it arrived, by worker mill-4711-c0ffee" in text
    assert "The run ended it took 2.6 s" in text
    assert "#3870 93 % #4002 71 % #2204 61 %" in text
    assert "look 412 ms remember 93 ms plan 62 ms push 1.3 s say 702 ms" in text
    assert "one page was skipped: it is too large" in text
    assert "7 read, 2 written, 1 push" in text
    assert "deliveries replay" not in text


def test_the_page_of_a_dead_delivery_shows_how_to_replay_it() -> None:
    text = text_of(delivery_page(sample_inbox().delivery(5), NOW))
    assert "precedent deliveries replay 5" in text
    assert "precedent deliveries drop 5" in text


def test_the_page_of_a_waiting_delivery_shows_its_next_attempt() -> None:
    waiting = replace(DELIVERY, state="waiting", attempts=2, next_at=NOW + 60_000, reason="GitHub did not answer")
    text = text_of(delivery_page((waiting, None), NOW))
    assert "Retrying GitHub did not answer" in text
    assert "2 tries failed" in text
    assert "22 November 2026, 12:21:00 Next try" in text


def test_an_earlier_run_is_not_shown_as_the_run_of_a_delivery() -> None:
    run = RunRow("other", RepositoryKey(1, 17), "mill", NOW)
    assert "A run" not in text_of(delivery_page((DELIVERY, run), NOW))


def test_the_page_of_an_unknown_delivery_says_so() -> None:
    assert "No such delivery" in text_of(delivery_page(None, NOW))


def test_an_installation_event_is_shown_without_a_repository() -> None:
    installed = replace(
        DELIVERY,
        repository=RepositoryKey(1, 0),
        event=Event("installation", "created"),
        name="",
        extra=(("account", "octo-org"),),
    )
    text = text_of(delivery_page((installed, None), NOW))
    assert "installation 1 App created" in text
    assert "Of the account octo-org" in text


@pytest.mark.parametrize(
    ("state", "said", "attempts", "name"),
    [
        ("done", "created", 0, "Commented"),
        ("done", "silent", 0, "Silent"),
        ("done", "", 0, "Done"),
        ("done", "something new", 0, "Done"),
        ("waiting", "", 0, "Waiting"),
        ("waiting", "", 1, "Retrying"),
        ("working", "", 1, "In progress"),
        ("dead", "failed", 8, "Put aside"),
        ("dropped", "", 0, "Dropped"),
    ],
)
def test_a_badge_shows_the_outcome_of_a_delivery(state: State, said: str, attempts: int, name: str) -> None:
    assert badge(replace(DELIVERY, state=state, said=said, attempts=attempts)).name == name


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5_000, "just now"),
        (1_999, "just now"),
        (2_000, "2 s ago"),
        (59_999, "59 s ago"),
        (60_000, "1 min ago"),
        (3_600_000, "1 h ago"),
        (47 * 3_600_000, "47 h ago"),
        (48 * 3_600_000, "2 days ago"),
    ],
)
def test_past_times_are_shown_briefly(milliseconds: int, text: str) -> None:
    assert moment(NOW - milliseconds, NOW).ago.replace("\u00a0", " ") == text


def test_durations_counts_and_lists_are_formatted_in_words() -> None:
    assert [format_duration(s) for s in (0, 0.0004, 0.25, 2.34, 90, 7_000, 9_000)] == [
        "0 s", "0 s", "250 ms", "2.3 s", "2 min", "117 min", "2.5 h",
    ]  # fmt: skip
    assert [count_of(n, "try", "tries") for n in (0, 1, 2_000)] == ["0 tries", "1 try", "2,000 tries"]
    assert count_of(2, "day") == "2 days"
    assert [join_names(n) for n in ((), ("a",), ("a", "b"), ("a", "b", "c"))] == ["", "a", "a and b", "a, b and c"]
    assert describe_event(Event("issue_comment", "created")) == "comment created"
    assert describe_event(Event("installation_repositories", "added")) == "repositories added"


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            PastDelivery,
            st.floats(0, 9_999),
            st.integers(0, 3),
            st.just(issue_opened(3)),
            st.sampled_from(["silent", "created", ""]),
            st.text(max_size=50),
        ),
        max_size=4,
    )
)
def test_no_data_breaks_the_page(days: list[PastDelivery]) -> None:
    page = status(sample_inbox(sorted(days, key=lambda past: -past.minutes)))
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")


def test_both_pages_list_the_nearest_threads_without_quoting_them() -> None:
    inbox = sample_inbox([])
    received_at = NOW - 300_000
    arrival = Delivery(
        "7:near", RepositoryKey(1, 17), Event("issues", "opened", 99), "octo-org/compass", received_at, "9"
    )
    inbox.put([arrival])
    work = begin_work(inbox, arrival.repository)
    comment = CommentResult(99, "", "silent", "nothing is close", nearest=(near(7, 0.5123), near(8, 0.31)))
    result = Result(work.deliveries[0].seq, "done", comment.reason, said="silent", nearest=nearest(comment))
    inbox.end(work, [result], RunReport())
    pages = (status_page(inbox, (), NOW), delivery_page(inbox.delivery(work.deliveries[0].seq), NOW))
    for page in pages:
        assert "#7" in page
        assert "0.51" in page
        assert "same error, words in common" in page
        assert "SECRET" not in page


def near(number: int, similarity: float) -> Match:
    why = ("same error `SECRET_LOST`", "words in common: SECRET, things")
    return Match(number, "SECRET", similarity, "closed", datetime(2025, 1, 1, tzinfo=UTC), why=why)
