"""Recent conversations: their messages and speakers, tiers within a budget, and the labels of days."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.comment.prompt import FORMATS, Xml, render
from bot.domain.thread import Kind, Message, Thread, TimelineEvent
from bot.questions.context import (
    RecentConversations,
    Tier,
    history_of,
    recent_conversations,
    threads_of_issue,
    threads_of_participant,
    tiers_of,
)
from bot.questions.requests import MAX_CHARS, MIN_CHARS
from bot.reading.conversations import Conversation, ConversationHistory, Turn
from tests.examples import examples

NOW = datetime(2026, 5, 14, 12, 0, tzinfo=UTC)  # a Thursday
ME = ["Hubot"]
BERLIN, NEW_YORK, AUCKLAND = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Pacific/Auckland")
ZONES = [UTC, BERLIN, NEW_YORK, AUCKLAND, ZoneInfo("Asia/Kolkata"), ZoneInfo("Pacific/Apia")]
DAY = 24 * 60


def before(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def thread(key: int | str, *messages: tuple[float, str], title: str = "Login loops", **fields: Any) -> Thread:
    """Return a thread of messages, each so many minutes before now; the first one opens it, Hubot is the agent."""
    (opened_at, body), *others = messages
    comments = tuple(Message("hubot" if "mine" in text else "octocat", "NONE", before(at), text) for at, text in others)
    values: dict[str, Any] = {"author": "monalisa", "created_at": before(opened_at), "comments": comments}
    return Thread(key, title, body, **(values | fields))


def history_with(*threads: Thread, chars: int = MAX_CHARS, now: datetime = NOW, days: int = 7) -> ConversationHistory:
    return history_of(recent_conversations(threads, ME, now, days), Xml(UTC), chars)


def texts(conversation: Conversation) -> list[str]:
    return [turn.text for turn in conversation.turns]


# Conversations


def test_half_an_hour_without_a_message_ends_a_conversation() -> None:
    cases = [(timedelta(minutes=29, seconds=59), 1), (timedelta(minutes=30), 2)]
    for gap, parts in cases:
        reply = Message("octocat", "NONE", before(60) + gap, "b")
        recent = recent_conversations([thread(1, (60, "a"), comments=(reply,))], ME, NOW)
        assert len(recent.conversations) == parts, gap


def test_the_opening_text_is_the_first_message_and_each_gap_counts_separately() -> None:
    newest, oldest = recent_conversations(
        [thread(1, (200, "a"), (180, "b"), (160, "c"), (100, "d"))], ME, NOW
    ).conversations
    assert (texts(oldest), texts(newest)) == (["a", "b", "c"], ["d"])
    assert (oldest.start, oldest.end) == (before(200), before(160))
    assert (oldest.thread, oldest.title, oldest.kind) == (1, "Login loops", Kind.ISSUE)


def test_the_agent_is_recognised_by_its_logins_and_humans_are_named() -> None:
    (conversation,) = recent_conversations([thread(1, (10, "a"), (9, "mine"), (8, "b"))], ME, NOW).conversations
    assert [(turn.speaker, turn.name) for turn in conversation.turns] == [
        ("human", "monalisa"),
        ("you", "hubot"),
        ("human", "octocat"),
    ]


def test_messages_of_a_bot_count_as_the_agents_only_in_sessions() -> None:
    cases = [(Kind.SESSION, "you"), (Kind.ISSUE, "human"), (Kind.PULL, "human")]
    for kind, speaker in cases:
        answer = Message("somebot", "NONE", before(9), "b", is_bot=True)
        (conversation,) = recent_conversations(
            [thread("x", (10, "a"), kind=kind, comments=(answer,))], ME, NOW
        ).conversations
        assert [turn.speaker for turn in conversation.turns] == ["human", speaker], kind


def test_pages_are_not_conversations() -> None:
    assert recent_conversations([thread("docs:a.md", (10, "a"), kind=Kind.PAGE)], ME, NOW).conversations == ()


def test_only_conversations_that_ended_in_the_last_seven_days_count() -> None:
    expected = {
        7 * DAY: True,
        7 * DAY + 1: False,
    }
    assert {
        minutes: bool(recent_conversations([thread(1, (minutes, "a"))], ME, NOW).conversations) for minutes in expected
    } == expected


def test_a_conversation_that_began_before_the_period_and_ended_in_it_is_complete() -> None:
    (conversation,) = recent_conversations([thread(1, (7 * DAY + 20, "a"), (7 * DAY - 5, "b"))], ME, NOW).conversations
    assert texts(conversation) == ["a", "b"]


def test_nothing_after_now_is_shown() -> None:
    later_thread = thread(1, (10, "a"), (-1, "b"), state="closed", closed_at=before(-1))
    (conversation,) = recent_conversations([later_thread, thread(2, (-5, "c"))], ME, NOW).conversations
    assert (texts(conversation), conversation.ending) == (["a"], "")


def test_the_ending_of_a_closed_thread_is_shown() -> None:
    fix = Message("octocat", "OWNER", before(20), "Fixed in 2.3.0 by #12.")
    closing = {"state": "closed", "closed_at": before(19), "state_reason": "completed", "closed_by": "octocat"}
    (conversation,) = recent_conversations([thread(1, (30, "a"), comments=(fix,), **closing)], ME, NOW).conversations
    assert conversation.ending == "fixed"
    (conversation,) = recent_conversations(
        [thread(1, (30, "a"), state="closed", closed_at=before(19))], ME, NOW
    ).conversations
    assert conversation.ending == "closed"


def test_now_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        history_with(thread(1, (1, "a")), now=NOW.replace(tzinfo=None))


# Scopes


def test_the_scope_of_an_issue_is_its_thread_and_the_sessions_about_it() -> None:
    refers = TimelineEvent("cross-referenced", before(7), source=1, source_kind=Kind.ISSUE)
    threads = [thread(1, (9, "a")), thread(2, (8, "b"), events=(refers,)), thread("t", (6, "d"), kind=Kind.SESSION)]
    threads += [thread("s", (7, "c"), kind=Kind.SESSION, events=(refers,))]
    assert [one.id for one in threads_of_issue(threads, 1)] == [1, "s"]


def test_the_scope_of_a_participant_is_the_threads_they_wrote_in() -> None:
    threads = [thread(1, (9, "a")), thread(2, (9, "a"), (8, "b")), thread(3, (9, "c"), author="OctoCat")]
    assert [one.id for one in threads_of_participant(threads, "octocat")] == [2, 3]


# Status


def test_a_conversation_counts_as_continuing_for_half_an_hour() -> None:
    expected = {
        0: True,
        29.99: True,
        30: False,
        3 * DAY: False,
    }
    assert {
        minutes: history_with(thread(1, (minutes, "a")), thread(2, (4 * DAY, "b"))).is_continuation
        for minutes in expected
    } == expected


# Tiers


def tier_names(*threads: Thread, now: datetime = NOW) -> list[str]:
    return [tier.name for tier in tiers_of(recent_conversations(threads, ME, now))]


def test_the_newest_conversation_is_active_however_old_it_is() -> None:
    assert tier_names(thread(1, (3 * DAY, "a")), thread(2, (4 * DAY, "b"))) == ["ACTIVE", "EARLIER"]


def test_the_active_tier_extends_to_threads_less_than_half_an_hour_apart() -> None:
    assert [
        end
        for end, tier in [(40 + 29.9, "ACTIVE"), (40 + 30, "LAST_DAY")]
        if tier_names(thread(1, (40, "a"), (20, "b")), thread(2, (end, "c"))) != ["ACTIVE", tier]
    ] == []


def test_the_active_tier_extends_from_its_earliest_start() -> None:
    long = thread(1, *((60 - 15 * n, "a") for n in range(4)))  # from 60 to 15 minutes ago
    assert tier_names(long, thread(2, (10, "b")), thread(3, (85, "c"))) == ["ACTIVE", "ACTIVE", "ACTIVE"]
    assert tier_names(long, thread(2, (40, "b")), thread(3, (85, "c"))) == ["ACTIVE", "ACTIVE", "ACTIVE"]


def test_the_last_day_is_shown_in_full_and_older_conversations_as_summaries() -> None:
    cases = [
        (DAY, "LAST_DAY"),
        (DAY + 1, "YESTERDAY"),
        (36 * 60, "YESTERDAY"),
        (36 * 60 + 1, "EARLIER"),
        (7 * DAY, "EARLIER"),
    ]
    for minutes, tier in cases:
        now_at = thread(9, (1, "now"))
        assert tier_names(now_at, thread(1, (minutes, "a"))) == ["ACTIVE", tier], minutes
        shown = history_with(now_at, thread(1, (minutes, "a"))).shown[1]
        assert shown.is_summary is (tier != "LAST_DAY"), minutes
        assert bool(shown.turns) is (tier == "LAST_DAY"), minutes


def test_a_day_of_twenty_five_hours_leaves_no_conversation_out() -> None:
    now = datetime(2026, 10, 25, 23, 50, tzinfo=BERLIN)  # summer time ended that morning
    early = Thread(1, "", "a", "monalisa", datetime(2026, 10, 25, 0, 5, tzinfo=BERLIN))
    late = Thread(2, "", "b", "monalisa", datetime(2026, 10, 25, 23, 49, tzinfo=BERLIN))
    recent = recent_conversations([early, late], ME, now)
    assert [tier.name for tier in tiers_of(recent)] == ["ACTIVE", "YESTERDAY"]
    assert [one.relative for one in history_of(recent, Xml(BERLIN)).shown] == ["today", "today"]


MINUTES = st.one_of(st.integers(0, 300), st.integers(0, 9 * DAY), st.sampled_from([30, 60, DAY, 2 * DAY, 7 * DAY]))
PLAIN = st.sampled_from(["short", "mine", "a longer text that goes on. " * 4, "x" * 700, "<&>\"'`\n" * 40])
HOSTILE = st.text(st.characters(codec=None), max_size=120)


@st.composite
def pasts(draw: st.DrawFn, words: st.SearchStrategy[str] = PLAIN | HOSTILE) -> RecentConversations:
    threads = []
    for number in range(draw(st.integers(0, 5))):
        times = sorted(draw(st.lists(MINUTES, min_size=1, max_size=6)), reverse=True)
        messages = [(float(at), draw(words)) for at in times]
        kind = draw(st.sampled_from([Kind.ISSUE, Kind.PULL, Kind.SESSION]))
        key = f"s-{draw(words)}" if kind is Kind.SESSION else number + 1
        threads.append(thread(key, *messages, kind=kind, title=draw(words), author=draw(words)))
    return recent_conversations(
        threads, ME, NOW.astimezone(draw(st.sampled_from(ZONES))), draw(st.sampled_from([1, 7, 30]))
    )


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(pasts(), st.sampled_from(sorted(FORMATS)), st.integers(MIN_CHARS, 6_000))
def test_no_history_is_longer_than_its_budget(recent: RecentConversations, name: str, chars: int) -> None:
    form = FORMATS[name](recent.zone)
    text = render(history_of(recent, form, chars), form)
    assert len(text) <= chars
    assert text.endswith("\n") or not text


@pytest.mark.slow
def test_no_small_budget_is_exceeded_by_a_single_character() -> None:
    for name in FORMATS:
        conversation = thread(1, *((60 - n, "x" * (n % 7)) for n in range(30)))
        old = [thread(n, (2 * DAY + n, "y" * (n % 5)), title="") for n in range(2, 40)]
        form = FORMATS[name](UTC)
        for threads in ([conversation, *old], [thread(1, (1, "a")), *old], [conversation]):
            recent = recent_conversations(threads, ME, NOW)
            full_length = len(render(history_of(recent, form), form))
            for chars in [*range(MIN_CHARS, MIN_CHARS + 90), *range(full_length - 90, full_length + 10)]:
                text = render(history_of(recent, form, chars), form)
                assert max(1, min(chars, full_length) - 400) <= len(text) <= max(chars, MIN_CHARS), name


def shown_pieces(recent: RecentConversations, history: ConversationHistory) -> list[tuple[int, datetime]]:
    """Return what is shown as pairs of a tier and a time: of a message, or of the end of a summary."""
    tier = dict(zip(recent.conversations, tiers_of(recent), strict=True))
    pieces = []
    for shown in history.shown:
        conversation = shown.conversation
        ends = [conversation.end] if shown.is_summary else [turn.at for turn in shown.turns]
        pieces += [(tier[conversation], at) for at in ends]
    return pieces


@settings(max_examples=examples(150), deadline=None)
@given(pasts(PLAIN), st.sampled_from(sorted(FORMATS)), st.integers(MIN_CHARS, 4_000))
def test_tiers_are_filled_in_order_and_the_oldest_messages_are_cut(
    recent: RecentConversations, name: str, chars: int
) -> None:
    form = FORMATS[name](recent.zone)
    limited, complete = history_of(recent, form, chars), history_of(recent, form)
    assert complete.omitted == 0
    assert [shown.conversation for shown in complete.shown] == list(recent.conversations)
    assert [shown.conversation for shown in limited.shown] == list(recent.conversations[: len(limited.shown)])
    assert limited.omitted == len(recent.conversations) - len(limited.shown)
    for shown_part, shown_full in zip(limited.shown, complete.shown, strict=False):
        kept_count = len(shown_part.turns)
        assert [turn.at for turn in shown_part.turns] == [
            turn.at for turn in shown_full.turns[len(shown_full.turns) - kept_count :]
        ]
        assert shown_part.omitted == len(shown_full.turns) - kept_count
    kept_pieces, all_pieces = shown_pieces(recent, limited), shown_pieces(recent, complete)
    cut = list(all_pieces)
    for piece in kept_pieces:
        cut.remove(piece)
    for tier, at in cut:
        assert not [piece for piece in kept_pieces if piece[0] > tier], "a later tier was filled before this one"
        if tier == Tier.ACTIVE:
            assert all(other >= at for kind, other in kept_pieces if kind == tier)
    assert [tier for tier, _ in all_pieces] == sorted(tier for tier, _ in all_pieces)


def test_the_order_of_the_threads_makes_no_difference() -> None:
    threads = [thread(n, (float(30 * n), "a"), (30.0 * n, "b")) for n in range(1, 9)] + [
        thread("1", (30, "a"), (30, "b"))
    ]
    assert history_with(*threads) == history_with(*reversed(threads))
    for make_form in FORMATS.values():
        texts_of = {
            render(history_of(recent_conversations(each, ME, NOW), make_form(UTC)), make_form(UTC))
            for each in (threads, threads[::-1])
        }
        assert len(texts_of) == 1


def test_the_end_of_the_newest_message_is_shown_if_it_alone_is_too_long() -> None:
    history = history_with(thread(1, (20, "old"), (10, f"first {'word ' * 2_000}last")), chars=1_000)
    (shown,) = history.shown
    assert shown.omitted == 1
    assert shown.turns[0].text.startswith("[…] word word")
    assert shown.turns[0].text.endswith("word last")
    assert 900 <= len(render(history, Xml(UTC))) <= 1_000


def test_budgets_are_limited_to_the_minimum_and_the_maximum() -> None:
    long_thread = thread(1, *((20 - n, "x" * 40_000) for n in range(5)))
    assert history_with(long_thread, chars=10**9) == history_with(long_thread)
    assert history_with(long_thread, chars=1) == history_with(long_thread, chars=MIN_CHARS)


def test_a_summary_that_does_not_fit_ends_the_history_even_if_an_older_one_would_fit() -> None:
    long = "A long sentence of many words " * 6
    threads = [thread(1, (1, "x" * 250)), thread(2, (2 * DAY, long), title=long), thread(3, (3 * DAY, "a"), title="b")]
    history = history_with(*threads, chars=1_000)
    assert [shown.conversation.thread for shown in history.shown] == [1]
    assert history.omitted == 2


@pytest.mark.slow
def test_a_hundred_thousand_messages_take_linear_time() -> None:
    comments = tuple(Message("octocat", "NONE", before(5_000 - n / 25), "x") for n in range(100_000))
    history = history_with(thread(1, (5_001, "a"), comments=comments))
    assert len(render(history, Xml(UTC))) > MAX_CHARS - 100


# Labels


def label(end: datetime, now: datetime) -> str:
    """Return the label of the day on which a conversation other than the newest ended."""
    conversation = Conversation(1, Kind.ISSUE, "", (Turn("human", "monalisa", end.astimezone(UTC), "a"),))
    newest = Conversation(2, Kind.ISSUE, "", (Turn("human", "monalisa", now.astimezone(UTC), "b"),))
    return history_of(RecentConversations((newest, conversation), now), Xml(UTC)).shown[1].relative


def test_days_have_the_labels_that_people_use() -> None:
    expected = {
        31: "today, recent",
        240: "today, recent",
        241: "today",
        12 * 60: "today",
        12 * 60 + 1: "yesterday",
        36 * 60 + 1: "Tuesday",
        7 * DAY: "Thursday",
        9 * DAY: "Tuesday 2026-05-05",
    }
    assert {minutes: label(before(minutes), NOW) for minutes in expected} == expected


def local(zone: tzinfo, *when: int) -> datetime:
    return datetime(*when, tzinfo=zone)  # type: ignore[misc,arg-type]


def test_labels_follow_midnight_and_summer_time_of_the_time_zone() -> None:
    cases = [
        (local(BERLIN, 2026, 5, 13, 23, 59), local(BERLIN, 2026, 5, 14, 0, 31), "yesterday, recent"),
        (local(BERLIN, 2026, 5, 14, 0, 0), local(BERLIN, 2026, 5, 14, 0, 31), "today, recent"),
        (local(UTC, 2026, 5, 13, 22, 30), local(BERLIN, 2026, 5, 14, 3, 0), "today, recent"),
        (local(UTC, 2026, 5, 14, 3, 30), local(NEW_YORK, 2026, 5, 14, 0, 30), "yesterday, recent"),
        # the night in which clocks go forward: five hours on the clock, four that passed
        (local(BERLIN, 2026, 3, 28, 23, 30), local(BERLIN, 2026, 3, 29, 4, 30), "yesterday, recent"),
        # and back: four on the clock, five that passed
        (local(BERLIN, 2026, 10, 24, 23, 30), local(BERLIN, 2026, 10, 25, 3, 30), "yesterday"),
        (local(AUCKLAND, 2026, 4, 4, 23, 59), local(AUCKLAND, 2026, 4, 6, 0, 1), "Saturday"),
    ]
    assert [end for end, now, expected in cases if label(end, now) != expected] == []


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(0, 2 * 365 * DAY), st.integers(31, 30 * DAY), st.sampled_from(ZONES))
def test_a_label_agrees_with_the_calendar(later: int, minutes: int, zone: tzinfo) -> None:
    now = (NOW + timedelta(minutes=later)).astimezone(zone)
    end = (now.astimezone(UTC) - timedelta(minutes=minutes)).astimezone(zone)
    days = now.date().toordinal() - end.date().toordinal()
    names = {0: "today", 1: "yesterday"}
    expected = names.get(days, ("Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun")[end.weekday()] + "day")
    expected += f" {end.date().isoformat()}" if days > 7 else ""
    assert label(end, now) == expected + (", recent" if minutes <= 240 else "")


def is_newest_first(ends: Iterable[datetime]) -> bool:
    return all(one >= other for one, other in pairwise(ends))


@settings(max_examples=examples(50), deadline=None)
@given(pasts())
def test_conversations_come_newest_first_and_messages_in_order_of_time(recent: RecentConversations) -> None:
    history = history_of(recent, Xml(UTC))
    assert is_newest_first(shown.conversation.end for shown in history.shown)
    assert all(is_newest_first([turn.at for turn in shown.turns][::-1]) for shown in history.shown)
